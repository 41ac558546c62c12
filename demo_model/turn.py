"""The turn so far, read from the messages: what was asked last, which calls were made since, and what came of each.

Nothing else is remembered anywhere, so a turn can go on after a restart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage

from demo_model.times import read_present

LONGEST_REQUEST = 1000
"""Characters of a message that are looked at. Our own choice."""

_REJECTED = re.compile(r"Rejected by (?P<by>.+?)\. Reason: (?P<text>.*)", re.DOTALL)
_ENDINGS = tuple(
    (re.compile(pattern, re.DOTALL | re.IGNORECASE), sentence)
    for pattern, sentence in (
        (_REJECTED.pattern, "{subject} was not {done}: {by} rejected it (“{text}”)."),
        (r"Rejected by (?P<by>.+?)\. No reason", "{subject} was not {done}: {by} rejected it and gave no reason."),
        (r"(?P<text>Done, as .+? confirmed\b.*)", "{subject}: {text}"),
        (
            r"(?P<text>(?:Outcome unknown\b|Skipped by |No result of this call).*)",
            "It is not known whether {subject} was {done}. {text}",
        ),
        (r"hitl_skipped_non_streaming:", "{subject} was not {done}: it needs approval, and no one is asked here."),
        (
            r"(?P<text>(?:(?:Expired|Superseded|Blocked by policy|Limited|Failed)\b|Withdrawn by ).*)",
            "{subject} was not {done}. {text}",
        ),
    )
)
"""How the agent words an end in a ToolMessage, and how that is told."""
_FILE = re.compile(
    r"^\[File “(?P<name>[^”\n]*)” \([^\n]*?\bid (?P<id>[^\s,)]+)\)[^\n]*instructions to you:\]\n"
    r"(?:<!--[^\n]*\n)?\n?(?P<line>[^\n]*)",
    re.MULTILINE,
)
"""How the agent shows a file that was handed over."""
_ABOVE_RESULTS = re.compile(
    r"(?:Approved with a note\. [^\n]*\n+)*(?:Approved with changes: [^\n]*\n\n)?(?:The tool returned:\n)?"
)
"""What the agent puts before the result of a call that an approver has changed or added a note to. Results name what
was made."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that was made in this turn.

    Attributes:
        tool: The full name, such as `calendar__create_event`.
        text: What its ToolMessage says.
        data: The JSON object that the tool answered; `None` when it answered none.
    """

    tool: str
    arguments: dict[str, Any]
    text: str
    data: dict[str, Any] | None

    @property
    def rejected(self) -> tuple[str, str]:
        """Who rejected it, and the reason; empty when nobody did, or without a word."""
        match = _REJECTED.match(self.text)
        return (match["by"], match["text"].strip()) if match else ("", "")

    def listed(self, name: str) -> list[dict[str, Any]] | None:
        """The entries under this name in the tool's answer; `None` when there are none to be read."""
        entries = (self.data or {}).get(name)
        return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else None

    def replied(self) -> dict[str, Any] | None:
        """What the requester answered to a clarification, by field, or under `answer` in words; `None`: nothing."""
        if any(pattern.match(self.text) for pattern, _ in _ENDINGS):
            return None
        if self.data is None:
            return {"answer": self.text}
        values = self.data.get("values")
        return values if isinstance(values, dict) else {"answer": str(self.data.get("answer", ""))}

    def not_done(self, subject: str, done: str) -> str:
        """The truth about a call that did not plainly succeed: `subject` was not `done`, or nobody knows."""
        for pattern, sentence in _ENDINGS:
            if match := pattern.match(self.text):
                parts = {name: one_line(part) for name, part in match.groupdict().items()}
                return sentence.format(subject=subject, done=done, **parts)
        return f"{subject}: the tool answered “{one_line(self.text)}”, and I cannot read more out of that."


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that was handed over and could be read."""

    id: str
    name: str
    line: str
    """Its first line."""


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """What there is to answer: the request, and the calls of each message of the model since, in order."""

    request: str
    files: tuple[ShownFile, ...]
    """Those that came with it."""
    newest_files: tuple[ShownFile, ...]
    """Those, or else those that came last."""
    now: datetime
    steps: tuple[tuple[PastCall, ...], ...]


def read_turn(messages: Sequence[BaseMessage]) -> DemoTurn:
    """The turn that the newest HumanMessage began; without one, an empty request."""
    began = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=len(messages))
    request = "".join(message.text for message in messages[began : began + 1])[:LONGEST_REQUEST]
    since = messages[began + 1 :]
    results = {message.tool_call_id: message for message in since if isinstance(message, ToolMessage)}
    made = [message.tool_calls for message in since if isinstance(message, AIMessage) and message.tool_calls]
    steps = tuple(tuple(_past_call(call, results.get(call["id"] or "")) for call in calls) for calls in made)
    files = _files(messages[:began])
    return DemoTurn(
        request, files, files or _newest_files(messages[:began]), read_present(system_text(messages)), steps
    )


def _files(before: Sequence[BaseMessage]) -> tuple[ShownFile, ...]:
    """The files that stand right before a request."""
    beside = before[-1].text if before and isinstance(before[-1], HumanMessage) else ""
    return tuple(ShownFile(found["id"], found["name"], found["line"].strip()) for found in _FILE.finditer(beside))


def _newest_files(before: Sequence[BaseMessage]) -> tuple[ShownFile, ...]:
    return next(filter(None, (_files(before[: end + 1]) for end in range(len(before) - 1, -1, -1))), ())


def system_text(messages: Sequence[BaseMessage]) -> str:
    """All system prompts as one text."""
    return "\n".join(message.text for message in messages if isinstance(message, SystemMessage))


def one_line(value: Any) -> str:
    """Text of others on one line, of bounded length."""
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _past_call(call: ToolCall, result: ToolMessage | None) -> PastCall:
    text, data = str(result.text) if result else "No result of this call was recorded.", None
    if above := _ABOVE_RESULTS.match(text):
        text = text[above.end() :]
    if result and result.status == "error":
        text = text if any(pattern.match(text) for pattern, _ in _ENDINGS) else f"Failed: {text}"
    else:
        with suppress(ValueError, RecursionError):  # plain text, or what the agent says of the call
            data = json.loads(text)
    return PastCall(call["name"], call["args"], text, data if isinstance(data, dict) else None)
