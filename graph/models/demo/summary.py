"""A summary without a language model: the beginnings of what was said."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graph.models.demo.turn import plain_text, system_text

SUMMARY_REQUEST = "Summarise the conversation"
LONGEST_LINE = 160
LONGEST_SUMMARY = 2000
"""Characters. Our own choices."""


def is_summary_request(messages: Sequence[BaseMessage]) -> bool:
    """Whether the system prompt asks, in its first line, for a summary instead of an answer.

    Further down it may quote people, who may have written the same words.
    """
    first, *_ = system_text(messages).lstrip().splitlines() or [""]
    return SUMMARY_REQUEST.casefold() in first.casefold()


def summarise(messages: Sequence[BaseMessage]) -> str:
    """The newest lines of what people and the assistant said, each cut short, oldest first."""
    lines = [line for message in messages if isinstance(message, HumanMessage | AIMessage) for line in _lines(message)]
    kept: list[str] = []
    for line in reversed(lines):
        if sum(map(len, kept)) + len(kept) + len(line) > LONGEST_SUMMARY:
            break
        kept.append(line)
    return "\n".join(reversed(kept)) or "Nothing was said yet."


def _lines(message: BaseMessage) -> list[str]:
    said = (" ".join(line.split()) for line in plain_text(message).splitlines())
    return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in said if line]
