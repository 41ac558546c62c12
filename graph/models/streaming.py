"""One answer of a language model: its text shown while it is written, the whole returned as one message."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import structlog
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    InvalidToolCall,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable

from graph.models.problems import ModelProblem, Trouble, explain_model_error
from graph.models.wire import wire_messages

log = structlog.get_logger(__name__)

CHARACTERS_A_TOKEN = 4
"""In English text, https://help.openai.com/en/articles/4936856."""

Model = Runnable[LanguageModelInput, AIMessage]
"""A chat model, with or without tools bound to it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which pause, a model is asked again. Times are seconds."""

    times: int = 3
    """Tries after the first one; 0: none."""
    first_pause: float = 0.5
    longest_pause: float = 8.0
    patience: float = 30.0
    """The longest `Retry-After` that is waited for; people are told at once when the service wants more."""


async def stream_message(
    model: Model, messages: Sequence[AnyMessage], on_text: Callable[[str], None], *, retry: Retry | None = None
) -> AIMessage:
    """Ask the model once and return its whole answer, calling `on_text` with each piece of text as it comes.

    A transient failure is tried again with exponential backoff, jitter and the service's `Retry-After`, but only
    while no text has been shown: pieces of tool calls from a broken try are thrown away with it, so that a restart
    begins from nothing. After the first shown piece a failure is final.

    Arguments of tool calls that are not a JSON object come back as `invalid_tool_calls` with their `error`; each has
    to be answered like any other call. They are never guessed. `usage_metadata` holds the tokens of question and
    answer, estimated where the service does not count them.

    Raises `ModelProblem`, with the provider's exception as its cause.
    """
    policy = retry or Retry()
    outgoing = wire_messages(messages)
    for tried in range(policy.times + 1):
        shown = _Shown(on_text)
        try:
            answer = await _ask(model, outgoing, shown)
        except ModelProblem as problem:
            pause = pause_before(tried, problem, policy, random.random())  # noqa: S311 (jitter, not a secret)
            if pause is None or shown.any:
                raise
            log.warning("model asked again", trouble=problem.trouble.value, tried=tried + 1, pause=round(pause, 3))
            await asyncio.sleep(pause)
        else:
            usage = answer.usage_metadata or estimated_tokens(outgoing, answer)
            return answer.model_copy(update={"usage_metadata": usage})
    raise AssertionError("the last try returns or raises")


def estimated_tokens(question: Sequence[AnyMessage], answer: AIMessage) -> UsageMetadata:
    """What a service that does not count would have counted, roughly: a limit must not depend on its manners."""
    asked = sum(len(message.text) for message in question) // CHARACTERS_A_TOKEN + 1
    made = (
        len(answer.text) + sum(len(json.dumps(call["args"])) for call in answer.tool_calls)
    ) // CHARACTERS_A_TOKEN + 1
    return UsageMetadata(input_tokens=asked, output_tokens=made, total_tokens=asked + made)


def tokens_of(message: AIMessage) -> int:
    """What the answer and what it answers cost."""
    return message.usage_metadata["total_tokens"] if message.usage_metadata else 0


def pause_before(tried: int, problem: ModelProblem, retry: Retry, chance: float) -> float | None:
    """Seconds to wait after try number `tried` (from 0) has failed; `None`: do not try again.

    `chance` in [0, 1) spreads the pause over its upper half, so that many threads do not come back together.
    """
    if not problem.transient or tried >= retry.times:
        return None
    backoff = min(retry.longest_pause, retry.first_pause * 2.0**tried) * (0.5 + chance / 2)
    if problem.retry_after is None:
        return backoff
    if problem.retry_after > retry.patience:
        return None
    # Never earlier than we were told, and not all at the same moment either.
    return problem.retry_after + min(backoff, retry.first_pause) * chance


class _Shown:
    """Passes text on and remembers whether there was any."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.any = False
        self._on_text = on_text

    def __call__(self, text: str) -> None:
        if text:
            self.any = True
            self._on_text(text)


async def _ask(model: Model, messages: list[AnyMessage], show: _Shown) -> AIMessage:
    whole: AIMessageChunk | None = None
    # Runnable.astream is declared as an iterator and is a generator: closed here, its connection is released at once.
    chunks = cast(AsyncGenerator[AIMessage, None], model.astream(cast(LanguageModelInput, messages)))
    async with aclosing(chunks):
        while True:
            try:
                chunk = await anext(chunks, None)
                piece = None if chunk is None else _as_chunk(chunk)
                if piece is not None:
                    whole = piece if whole is None else whole + piece
            except Exception as error:  # whatever a provider's client raises is the model's failure
                raise explain_model_error(error) from error
            if piece is None:
                break
            show(piece.text)
    return _finished(whole)


def _as_chunk(message: AIMessage) -> AIMessageChunk:
    if isinstance(message, AIMessageChunk):
        return message
    fields: dict[str, Any] = message.model_dump(exclude={"type"})
    return AIMessageChunk(**fields)


def _finished(whole: AIMessageChunk | None) -> AIMessage:
    """The pieces as one message. Raises `ModelProblem` if they are not a whole answer."""
    if whole is None:
        raise ModelProblem(Trouble.MALFORMED)
    calls, unreadable = _calls(whole.tool_call_chunks)
    metadata = whole.response_metadata
    if metadata.get("finish_reason") == "content_filter":
        raise ModelProblem(Trouble.FILTERED)
    if metadata.get("model_provider") == "openai" and not metadata.keys() & {"finish_reason", "status"}:
        # A connection that closes between two events looks like the end of the stream; only the reason tells.
        raise ModelProblem(Trouble.BROKE_OFF)
    if not whole.text and not calls and not unreadable:
        raise ModelProblem(Trouble.MALFORMED)
    return AIMessage(
        content=whole.text,
        tool_calls=calls,
        invalid_tool_calls=unreadable,
        usage_metadata=whole.usage_metadata,
        response_metadata=metadata,
        id=whole.id,
    )


def _calls(chunks: Sequence[ToolCallChunk]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """The calls that can be read and those that cannot.

    `AIMessageChunk` completes broken JSON by itself (`{"title": "Sta` becomes a call with the title "Sta"): good for
    previews, and wrong for anything that people are asked to approve.
    """
    calls: list[ToolCall] = []
    unreadable: list[InvalidToolCall] = []
    for chunk in chunks:
        name, text, call_id = chunk["name"], chunk["args"] or "", chunk["id"]
        arguments, error = _arguments(text)
        if not name:
            error = "the call names no tool"
        if name and arguments is not None:
            calls.append(ToolCall(name=name, args=arguments, id=call_id, type="tool_call"))
        else:
            unreadable.append(
                InvalidToolCall(name=name, args=text, id=call_id, error=error, type="invalid_tool_call"),
            )
    return calls, unreadable


def _arguments(text: str) -> tuple[dict[str, Any] | None, str]:
    """The arguments, or `None` and what is wrong with them."""
    if not text.strip():
        return {}, ""
    try:
        # Not strict: models put plain line breaks into strings, which have one meaning only.
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        return None, f"the arguments were not valid JSON{where}"
    if not isinstance(value, dict):
        return None, "the arguments were not a JSON object"
    return value, ""
