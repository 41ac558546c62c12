"""What a job comes to next: a call that it wants, or what there is to say at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graph.models.demo.outcomes import Rejected
from graph.models.demo.phrases import one_line
from graph.models.demo.turn import CLARIFY, Call, Done

MOST_QUESTIONS = 4
"""Times that one job asks for the same thing before it gives up. Our own choice."""

History = tuple[Done, ...]
"""The calls that one job has made in this turn, oldest first."""


@dataclass(frozen=True, slots=True)
class Wants:
    """The job goes on with this call."""

    call: Call
    words: str
    """Completes "I want to …"."""
    because: str = ""
    """A sentence that leads to it, such as who rejected what was proposed before."""


@dataclass(frozen=True, slots=True)
class Says:
    """The job is at its end."""

    text: str


Next = Wants | Says


def ask(question: str, context: str, fields: list[dict[str, Any]]) -> Wants:
    """A question to the requester with typed fields."""
    return Wants(Call(CLARIFY, {"question": question, "context": context, "fields": fields}), "ask you something")


def field(name: str, label: str, kind: str, *, options: tuple[str, ...] = (), hint: str = "") -> dict[str, Any]:
    """One input of a form, as `graph.fields.FormField` reads it."""
    return {"name": name, "label": label, "type": kind, "required": True, "options": list(options), "help": hint}


def corrected_because(rejected: Rejected) -> str:
    """Why another proposal follows."""
    return f"{one_line(rejected.by)} rejected this (“{one_line(rejected.reason)}”). A corrected proposal:"


def questions_in(history: History) -> tuple[Done, ...]:
    """The clarifications among the calls."""
    return tuple(done for done in history if done.call.tool == CLARIFY)


def newest(history: History, tool: str) -> Done | None:
    """The newest call of a tool."""
    return next((done for done in reversed(history) if done.call.tool == tool), None)
