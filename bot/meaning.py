"""What a message means while something is pending in its thread. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.records.waiting import Waiting
from policies.approvers import Decider, Permitted, may_decide

STOP = frozenset({"stop", "cancel"})
"""What the requester says to end the turn."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """Begin a turn with it."""


@dataclass(frozen=True, slots=True)
class AnswersClarification:
    """It is the answer to the question that is open."""

    clarification_id: str


@dataclass(frozen=True, slots=True)
class Supersedes:
    """The requester goes on to something else: what is open is given up, then a turn begins with it."""


@dataclass(frozen=True, slots=True)
class ToldToWait:
    """Somebody else is being waited for; tell its author so."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """People talking to each other."""


Meaning = NewTurn | AnswersClarification | Supersedes | ToldToWait | Ignored


def is_stop(text: str) -> bool:
    """Whether the whole message is a word that ends the turn."""
    return text.strip().rstrip(".!").lower() in STOP


def meaning(author: str, *, addressed: bool, requester: str | None, waiting: Waiting) -> Meaning:
    """What a message by `author` means. Text is never an approval."""
    if not waiting:
        return NewTurn() if addressed or author == requester else Ignored()
    for question in waiting.clarifications:
        if question.requester == author:
            return AnswersClarification(question.clarification_id)
    if author != requester:
        return ToldToWait() if addressed else Ignored()
    return Supersedes() if addressed or _waits_only_for(author, waiting) else Ignored()


def _waits_only_for(requester: str, waiting: Waiting) -> bool:
    """Whether nobody but the requester could be spoken to with a plain reply."""
    return all(
        {*row.asked.ask.approvers, *row.asked.ask.escalate_to} <= {"requester", requester}
        and isinstance(may_decide(row.asked.ask, Decider(requester, row.asked.requesters)), Permitted)
        for row in waiting.approvals
    )


def waits_for(waiting: Waiting) -> str:
    """What a thread waits for, in words. Under the names that the operator knows: a server's titles may say
    anything."""
    parts = []
    if waiting.approvals:
        parts.append("a decision on " + ", ".join(f"{a.asked.server}: {a.asked.tool}" for a in waiting.approvals))
    if waiting.clarifications:
        parts.append("an answer to a question")
    if waiting.sign_ins:
        parts.append("a sign-in at " + ", ".join(s.server for s in waiting.sign_ins))
    if waiting.outcomes:
        parts.append("word on what came of " + ", ".join(f"{o.server}: {o.tool}" for o in waiting.outcomes))
    return " and ".join(parts)


def told_to_wait(waiting: Waiting) -> str:
    """What somebody is told who writes where somebody else is waited for."""
    return (
        f"This conversation waits for {waits_for(waiting)}. "
        "Please start a conversation of your own, and I will help you there."
    )
