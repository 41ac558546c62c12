"""What a message means while something is pending in its thread (docs/architecture.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.records.clarifications import ClarificationRow
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
from tests.bot.rows import approval, attempt, clarification, question_of_tool, sign_in

TOO_EARLY = "You wrote this before the question was asked. Answer it now, or say “stop”."
SEVERAL = "Several questions are open. Answer each with its form, or say “stop”."

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
NOW, BEFORE, LATER = 100.0, 99.0, 101.0


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
    assert meaning(author, addressed=addressed, at=NOW, requester=ANA, waiting=waiting) == meant


@pytest.mark.parametrize(
    ("questions", "meant"),
    [
        pytest.param({"c1": BEFORE}, AnswersClarification("c1"), id="one that is open when it is written"),
        pytest.param({"c1": NOW}, AnswersClarification("c1"), id="one that is opened in that moment"),
        pytest.param({"c1": LATER}, ToldToWait(TOO_EARLY), id="one that is asked later"),
        pytest.param({"c1": LATER, "c2": LATER}, ToldToWait(TOO_EARLY), id="two that are asked later"),
        pytest.param({"c1": LATER, "c2": BEFORE}, AnswersClarification("c2"), id="the only one of two that was asked"),
        pytest.param({"c1": BEFORE, "c2": BEFORE}, ToldToWait(SEVERAL), id="two at once"),
    ],
)
def test_a_reply_answers_the_one_question_of_a_tool_that_its_author_could_see(
    questions: dict[str, float], meant: Meaning
) -> None:
    """Rule 12: what a tool takes for a person's word was said about what it asked. A second "yes" in a row is none to
    the question that follows."""
    waiting = Waiting(clarifications=[question_of_tool(name, asked_at) for name, asked_at in questions.items()])
    assert meaning(ANA, addressed=TO_BOT, at=NOW, requester=ANA, waiting=waiting) == meant


def test_a_question_of_the_model_is_answered_by_what_was_written_before_it_too() -> None:
    waiting = Waiting(clarifications=[replace(clarification(), asked_at=LATER)])
    assert meaning(ANA, addressed=TO_BOT, at=NOW, requester=ANA, waiting=waiting) == AnswersClarification("c1")


@pytest.mark.parametrize("question", [replace(clarification(), asked_at=BEFORE), question_of_tool("c1", BEFORE)])
def test_a_message_that_allows_less_than_the_turn_that_asks_is_no_answer_but_something_new(
    question: ClarificationRow,
) -> None:
    waiting = Waiting(clarifications=[question])
    meant = meaning(ANA, addressed=TO_BOT, at=NOW, requester=ANA, waiting=waiting, is_stricter=True)
    assert meant == Supersedes()


@pytest.mark.parametrize(
    ("waiting", "meant"),
    [(QUESTION, AnswersClarification("c1")), (OTHERS, Supersedes()), (SIGN_IN, Supersedes())],
)
def test_what_the_requester_writes_under_another_account_means_the_same(waiting: Waiting, meant: Meaning) -> None:
    assert meaning(BEN, addressed=TO_BOT, at=NOW, requester=ANA, waiting=waiting, accounts=[ANA, BEN]) == meant


@pytest.mark.parametrize("text", ["stop", "Stop!", " cancel. ", "CANCEL", "stop!!"])
def test_one_word_stops(text: str) -> None:
    assert is_stop(text)


@pytest.mark.parametrize("text", ["", "stop the music", "don't stop", "please cancel the meeting", "approve"])
def test_anything_longer_does_not(text: str) -> None:
    assert not is_stop(text)


def test_what_a_thread_waits_for_is_told_under_the_names_the_operator_knows() -> None:
    everything = Waiting([approval()], [clarification()], [sign_in()], [attempt()])
    assert waits_for(everything) == (
        "approval (workshop › make), an answer, a sign-in (workshop), an outcome (workshop › make)"
    )


def test_the_requesters_of_what_waits_are_those_who_asked_first() -> None:
    waiting = Waiting([approval(requesters=(ANA, BEN))], [clarification("chat:chloe")])
    assert waiting.requesters == {ANA, "chat:chloe"}
    assert NOTHING.requesters == frozenset()
