"""The turn so far, read from the messages: what was asked last, which calls were made since, and what came of each.

Nothing else is remembered anywhere, so a turn can go on after a restart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph.models.demo.outcomes import NO_ANSWER, Outcome, read_answer, read_outcome
from graph.models.demo.times import read_present
from policies.quoting import own_words

CLARIFY = "request_clarification"
_REQUESTER = re.compile(r"^The requester is (.+)\.$", re.MULTILINE)
LONGEST_REQUEST = 4000
"""Characters of a message that are looked at. Our own choice."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: wanted, or made."""

    tool: str
    """The full name, such as `calendar__create_event`."""
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was made, and what came of it."""

    call: Call
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Turn:
    """What there is to answer."""

    request: str
    now: datetime
    steps: tuple[tuple[Done, ...], ...]
    """The calls of each message of the model since the request, in order."""


def read_turn(messages: Sequence[BaseMessage]) -> Turn:
    """The turn that the newest HumanMessage began; without one, an empty request."""
    began = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=len(messages))
    request = plain_text(messages[began])[:LONGEST_REQUEST] if began < len(messages) else ""
    return Turn(request, read_present(system_text(messages)), _steps(messages[began + 1 :]))


def own_words_of(messages: Sequence[BaseMessage], turn: Turn) -> str:
    """The longest passage of the request that its author wrote, without their name before it and what they quoted."""
    named = _REQUESTER.search(system_text(messages))
    written = turn.request.removeprefix(f"{named[1]}: ") if named else turn.request
    return max(own_words(written), key=len, default="")


def system_text(messages: Sequence[BaseMessage]) -> str:
    """All system prompts as one text."""
    return "\n".join(plain_text(message) for message in messages if isinstance(message, SystemMessage))


def plain_text(message: BaseMessage) -> str:
    """The text of a message, whatever blocks it is made of."""
    return str(message.text)


def _steps(messages: Sequence[BaseMessage]) -> tuple[tuple[Done, ...], ...]:
    starts = [i for i, message in enumerate(messages) if isinstance(message, AIMessage) and message.tool_calls]
    steps = []
    for start, end in pairwise([*starts, len(messages)]):
        made = messages[start]
        if isinstance(made, AIMessage):
            steps.append(_step(made, messages[start + 1 : end]))
    return tuple(steps)


def _step(made: AIMessage, results: Sequence[BaseMessage]) -> tuple[Done, ...]:
    by_id = {result.tool_call_id: result for result in results if isinstance(result, ToolMessage)}
    done = []
    for call in made.tool_calls:
        result = by_id.get(call["id"] or "")
        done.append(Done(Call(call["name"], call["args"]), _outcome(call["name"], result)))
    return tuple(done)


def _outcome(tool: str, result: ToolMessage | None) -> Outcome:
    if result is None:
        return NO_ANSWER
    read = read_answer if tool == CLARIFY else read_outcome
    return read(plain_text(result), failed=result.status == "error")
