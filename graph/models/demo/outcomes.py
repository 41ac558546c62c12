"""What a ToolMessage says came of a call. The wordings are fixed between the agent and its models."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_REJECTED = re.compile(r"^Rejected by (?P<by>.+?)\. (?:No reason was given\.|Reason: (?P<reason>.*))", re.DOTALL)
_TROUBLE = re.compile(
    r"^(?:Expired|Superseded|Blocked by policy|Limited|Failed|Outcome unknown)\b|^(?:Skipped|Withdrawn) by ",
    re.IGNORECASE,
)

_CONFIRMED = re.compile(r"^Done, as .+? confirmed\b")


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool answered; `data` is its JSON."""

    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A person said no."""

    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """It did not happen, or nobody knows; `text` is the house's own sentence and says which."""

    text: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The call broke off, and a person says that it took effect all the same; `text` is the house's sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The tool answered something that is not a JSON object: cut short, withheld, or plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The requester answered a clarification, in words or in a form."""

    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)


Outcome = Succeeded | Rejected | Trouble | Confirmed | Unreadable | Answered

NO_ANSWER = Trouble("No result of this call was recorded.")


def read_outcome(content: str, *, failed: bool) -> Outcome:
    """What a tool's message says. `failed`: the message is marked as an error."""
    if rejected := _REJECTED.match(content):
        return Rejected(rejected["by"], (rejected["reason"] or "").strip())
    if _CONFIRMED.match(content):
        return Confirmed(content)
    if _TROUBLE.match(content):
        return Trouble(content)
    if failed:
        return Trouble(f"Failed: {content}")
    data = _json_object(content)
    return Unreadable(content) if data is None else Succeeded(data)


def read_answer(content: str, *, failed: bool) -> Outcome:
    """What the message of a clarification says; words that are not JSON are the answer themselves."""
    outcome = read_outcome(content, failed=failed)
    match outcome:
        case Succeeded(data={"values": dict() as values}):
            return Answered(values={str(name): value for name, value in values.items()})
        case Succeeded(data={"answer": answer}):
            return Answered(text=str(answer))
        case Succeeded() | Unreadable():
            return Answered(text=content if isinstance(outcome, Unreadable) else "")
        case _:
            return outcome


def _json_object(content: str) -> dict[str, Any] | None:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
