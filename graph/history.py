"""A conversation of bounded length: the last turns verbatim, a rolling summary of what came before."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.calls import FOREIGN_RESULT

VERBATIM_TURNS = 20
"""Turns that are always carried word for word."""
FOLD_EVERY = 5
"""Turns that are folded into the summary at a time, so that not every turn pays for a summary."""
SUMMARY_LIMIT = 4_000
"""Characters of the summary."""
_EXCERPT = 160

SUMMARISE = (
    "Summarise the conversation so far for your own later use, in at most 250 words: who asked for what, what was done "
    "with which result (keep names, dates and ids), what was rejected and why, and what was left open. "
    "Write plain sentences. Do not add anything that was not said."
)


def turns(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """The conversation cut at each person's message; what precedes the first one belongs to the first turn."""
    result: list[list[AnyMessage]] = []
    for message in messages:
        if isinstance(message, HumanMessage) or not result:
            result.append([])
        result[-1].append(message)
    return result


def to_fold(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The oldest messages that are due to be summarised; empty most of the time."""
    cut = turns(messages)
    if len(cut) < VERBATIM_TURNS + FOLD_EVERY:
        return []
    return [message for turn in cut[:-VERBATIM_TURNS] for message in turn]


def for_requester(messages: Sequence[AnyMessage], requester: str) -> list[AnyMessage]:
    """The messages as the model may see them in this requester's turn: other people's personal results are masked."""
    return [_masked(message, requester) for message in messages]


def _masked(message: AnyMessage, requester: str) -> AnyMessage:
    if not isinstance(message, ToolMessage):
        return message
    owner = message.additional_kwargs.get("owner")
    if owner is None or owner == requester:
        return message
    return message.model_copy(update={"content": FOREIGN_RESULT})


def summary_request(summary: str, folded: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What to send to a model so that it summarises. Personal results are left out: a summary belongs to everybody."""
    said = [*([f"Earlier: {summary}"] if summary else []), *(line for m in folded if (line := _line(m, limit=2_000)))]
    return [SystemMessage(SUMMARISE), HumanMessage("\n".join(said))]


def extract(summary: str, folded: Sequence[AnyMessage]) -> str:
    """A summary made without a model: the beginnings of what was said. Used when the model cannot be asked."""
    lines = [*([summary] if summary else []), *(line for m in folded if (line := _line(m, limit=_EXCERPT)))]
    return "\n".join(lines)[-SUMMARY_LIMIT:]


def _line(message: AnyMessage, *, limit: int) -> str:
    text = " ".join(message.text.split())[:limit]
    match message:
        case HumanMessage():
            return f"{message.additional_kwargs.get('name', 'Person')}: {text}"
        case ToolMessage():
            shown = FOREIGN_RESULT if message.additional_kwargs.get("owner") else text
            return f"(tool {message.name}: {shown})"
        case AIMessage():
            calls = ", ".join(c["name"] for c in message.tool_calls)
            return f"Assistant: {text}" + (f" (called {calls})" if calls else "")
        case _:
            return ""
