"""What a message means while something is pending in its thread (docs/architecture.md)."""

from __future__ import annotations

import pytest

from bot.records.waiting import Waiting
from bot.turns.messages import (
    AnswersClarification,
    Ignored,
    Meaning,
    NewTurn,
    Supersedes,
    ToldToWait,
    is_stop,
    meaning,
    told_to_wait,
    waits_for,
)
from tests.bot.rows import approval, attempt, clarification, sign_in

ANA, BEN = "chat:ana", "chat:ben"
NOTHING = Waiting()
OWN = Waiting(approvals=[approval()])
"""Only Ana, who asked, can decide."""
NAMED = Waiting(approvals=[approval(approvers=(ANA,))])
OPEN = Waiting(approvals=[approval(approvers=("requester", BEN))])
ANYBODYS = Waiting(approvals=[approval(approvers=("any",))])
OTHERS = Waiting(approvals=[approval(approvers=("any",), self_approval="fourEyes")])
MIXED = Waiting(approvals=[approval(), approval(approvers=(BEN,))])
QUESTION = Waiting(clarifications=[clarification()])
SIGN_IN = Waiting(sign_ins=[sign_in()])
OUTCOME = Waiting(outcomes=[attempt()])

TO_BOT, TO_OTHERS = True, False


def told(waiting: Waiting) -> ToldToWait:
    return ToldToWait(told_to_wait(waiting))


TABLE: list[tuple[str, Waiting, str, bool, Meaning]] = [
    ("nothing waits and it is for the bot", NOTHING, BEN, TO_BOT, NewTurn()),
    ("nothing waits and the requester goes on", NOTHING, ANA, TO_OTHERS, NewTurn()),
    ("nothing waits and others talk to each other", NOTHING, BEN, TO_OTHERS, Ignored()),
    ("the asked person replies", QUESTION, ANA, TO_OTHERS, AnswersClarification("c1")),
    ("the asked person replies to the bot", QUESTION, ANA, TO_BOT, AnswersClarification("c1")),
    (
        "somebody else writes to the bot while a question is open",
        QUESTION,
        BEN,
        TO_BOT,
        told(QUESTION),
    ),
    ("somebody else replies to the question", QUESTION, BEN, TO_OTHERS, Ignored()),
    ("the requester goes on to something else", OWN, ANA, TO_BOT, Supersedes()),
    ("the requester, who alone decides, goes on", OWN, ANA, TO_OTHERS, Supersedes()),
    ("the requester, named as the only approver, goes on", NAMED, ANA, TO_OTHERS, Supersedes()),
    ("the requester talks to an approver", OPEN, ANA, TO_OTHERS, Ignored()),
    ("the requester talks to those who may decide", ANYBODYS, ANA, TO_OTHERS, Ignored()),
    ("the requester, who may not decide, talks to others", OTHERS, ANA, TO_OTHERS, Ignored()),
    ("one of two calls is for somebody else", MIXED, ANA, TO_OTHERS, Ignored()),
    ("the requester writes to the bot although others decide", OTHERS, ANA, TO_BOT, Supersedes()),
    ("an approver writes to the bot", OPEN, BEN, TO_BOT, told(OPEN)),
    ("an approver talks to the requester", OPEN, BEN, TO_OTHERS, Ignored()),
    ("the requester goes on instead of signing in", SIGN_IN, ANA, TO_OTHERS, Supersedes()),
    ("the requester goes on instead of saying what came of it", OUTCOME, ANA, TO_OTHERS, Supersedes()),
    (
        "somebody else writes to the bot while a sign-in is open",
        SIGN_IN,
        BEN,
        TO_BOT,
        told(SIGN_IN),
    ),
]


@pytest.mark.parametrize(
    ("waiting", "author", "addressed", "meant"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_what_a_message_means(*, waiting: Waiting, author: str, addressed: bool, meant: Meaning) -> None:
    assert meaning(author, addressed=addressed, requester=ANA, waiting=waiting) == meant


@pytest.mark.parametrize("text", ["stop", "Stop!", " cancel. ", "CANCEL", "stop!!"])
def test_one_word_stops(text: str) -> None:
    assert is_stop(text)


@pytest.mark.parametrize("text", ["", "stop the music", "don't stop", "please cancel the meeting", "approve"])
def test_anything_longer_does_not(text: str) -> None:
    assert not is_stop(text)


def test_what_a_thread_waits_for_is_told_under_the_names_the_operator_knows() -> None:
    everything = Waiting([approval()], [clarification()], [sign_in()], [attempt()])
    assert waits_for(everything) == (
        "a decision on workshop: make and an answer to a question and a sign-in at workshop "
        "and word on what came of workshop: make"
    )


def test_the_requesters_of_what_waits_are_those_who_asked_first() -> None:
    waiting = Waiting([approval(requesters=(ANA, BEN))], [clarification("chat:chloe")])
    assert waiting.requesters == {ANA, "chat:chloe"}
    assert NOTHING.requesters == frozenset()
