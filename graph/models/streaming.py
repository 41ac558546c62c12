"""One answer of a language model: its text shown while it is written, the whole returned as one message."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import structlog
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.runnables import Runnable, RunnableBinding

from graph.json_values import LARGEST_INTEGER
from graph.models.problems import ModelProblem, Trouble, explain_model_error
from graph.models.tool_calls import LONGEST_ANSWER, WRITTEN_CALLS, WrittenCalls
from graph.models.wire import wire_messages
from graph.usage import ServiceCount

log = structlog.get_logger(__name__)

_AT_ONCE = 20
"""Pieces that are taken one after the other before others get their turn, some 5 ms: they may all be there already."""
_REASONS = ("finish_reason", "stop_reason", "done_reason", "status", "native_finish_reason")
"""Where services say why an answer ended: chat completions and Google, Anthropic, Ollama, OpenAI's responses, and
OpenRouter in the words of the service behind it."""
_PROPERLY = frozenset(
    {"stop", "tool_calls", "function_call", "completed", "tool_use", "end_turn", "stop_sequence", "eos_token"}
)
"""What they say when the model had said all that it wanted to. Anything else (`length`, `max_tokens`, `incomplete`, a
word that we do not know) means that the answer may have been cut."""
_CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "incomplete", "model_length"}
    | {"model_context_window_exceeded", "error", "failed", "cancelled", "canceled", "aborted", "pause_turn", "refusal"}
    | {"malformed_function_call", "malformed_response", "unexpected_tool_call", "too_many_tool_calls"}
)
"""What they say when it was cut or broken for certain, whatever else they say beside it: gateways translate. Other
words may stand beside a proper one: `stop_reason` is a model's own mark for the end with some services."""
_UNDER_WAY = frozenset({"queued", "in_progress"})
"""What they say of an answer that has not ended yet."""
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "spii", "recitation"})
"""What they say when a filter ended it."""

_AFTER_IT_BEGAN = frozenset({Trouble.BROKE_OFF, Trouble.FILTERED, Trouble.TOO_MUCH, Trouble.MALFORMED})
"""Troubles of an answer that had begun."""

CHARACTERS_A_TOKEN = 4
"""Characters of English text in a token, https://help.openai.com/en/articles/4936856."""

_NO_COUNT = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)

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


def _nobody_is_told(_trouble: Trouble) -> None:
    pass


@dataclass(slots=True)
class AnswerTimes:
    """What is noted while a model is asked."""

    failed: Callable[[Trouble], None] = _nobody_is_told
    """Called with the trouble of each try that gives no answer, at once."""
    first: float | None = None
    """When the first piece of the answer came, in seconds of `time.monotonic`; `None`: none has come."""
    refusals: int = 0
    """How often its service said that it is asked too often."""
    lost_input: int = 0
    """Tokens of tries that gave no answer after something of it had come, or that were broken off: their service counts
    them. Estimated, where it said nothing of them by then."""
    lost_cached: int = 0
    """Those of them that their service had kept from an earlier call."""
    lost_output: int = 0
    """The same of what had come."""

    def piece(self, came: float | None = None) -> None:
        """Note that a piece of the answer is there. `came`: when it was read, if that was earlier."""
        at = time.monotonic() if came is None else came
        self.first = at if self.first is None else min(self.first, at)


async def stream_message(
    model: Model,
    messages: Sequence[AnyMessage],
    on_text: Callable[[str], None],
    *,
    retry: Retry | None = None,
    times: AnswerTimes | None = None,
) -> AIMessage:
    """Ask the model once and return its whole answer, calling `on_text` with each piece of text as it comes.

    A transient failure is tried again with exponential backoff, jitter and the service's `Retry-After`, but only
    while no text has been shown: pieces of tool calls from a broken try are thrown away with it, so that a restart
    begins from nothing. After the first shown piece a failure is final.

    Calls that cannot be taken come back as `invalid_tool_calls` with their `error`, and each has to be answered like
    any other: arguments that `read_arguments` refuses, which are never guessed, and the last call of an answer that was
    cut, for whatever reason, which is no call even when it reads like one. `usage_metadata` holds the tokens of
    question and answer, estimated where the service does not count them.

    `times` is filled in, whatever comes of it.

    Raises `ModelProblem`, with the provider's exception as its cause.
    """
    policy = retry or Retry()
    noted = times or AnswerTimes()
    outgoing = wire_messages(messages)
    for tried in range(policy.times + 1):
        shown = _Shown(on_text)
        try:
            answer = await _ask(model, outgoing, shown, noted)
        except ModelProblem as problem:
            noted.failed(problem.trouble)
            noted.refusals += problem.trouble is Trouble.RATE_LIMITED
            pause = pause_before(tried, problem, policy, random.random())  # noqa: S311 (jitter, not a secret)
            if pause is None or shown.any:
                raise
            log.warning("model_asked_again", trouble=problem.trouble.value, tried=tried + 1, pause=round(pause, 3))
            await asyncio.sleep(pause)
        else:
            return answer
    raise AssertionError("the last try returns or raises")


def _tokens_of_question(question: Sequence[AnyMessage], bound: Mapping[str, Any]) -> int:
    """What a service that does not count would have counted, roughly: a limit must not depend on its manners."""
    characters = sum(len(message.text) for message in question)
    for message in question:
        if isinstance(message, AIMessage) and message.tool_calls:
            characters += len(json.dumps([call["args"] for call in message.tool_calls]))
    if tools := bound.get("tools"):
        characters += len(json.dumps(tools, default=str))
    return characters // CHARACTERS_A_TOKEN + 1


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
        self.fault: Exception | None = None
        """What showing has raised, which is not the model's failure."""
        self._on_text = on_text

    def __call__(self, text: str) -> None:
        if text:
            self.any = True
            try:
                self._on_text(text)
            except Exception as fault:
                self.fault = fault
                raise


async def _ask(model: Model, messages: list[AnyMessage], show: _Shown, times: AnswerTimes) -> AIMessage:
    answer = _Answer(messages, model.kwargs if isinstance(model, RunnableBinding) else {})

    def take(text: str) -> None:
        times.piece()
        answer.add_text(text)
        show(text)

    try:
        async with aclosing(_pieces(model, messages, take, answer.count)) as pieces:
            while (piece := await _take_next(pieces, answer, show, times)) is not None:
                show(piece.text)
                if answer.pieces % _AT_ONCE == 0:
                    await asyncio.sleep(0)
        return await answer.finished()
    except BaseException as end:
        if answer.pieces or answer.count.given or _has_its_price(end):
            given, cached, made = answer.tokens_so_far()
            times.lost_input += given
            times.lost_cached += cached
            times.lost_output += made
        raise


async def _take_next(
    pieces: AsyncGenerator[AIMessage | AIMessageChunk], answer: _Answer, show: _Shown, times: AnswerTimes
) -> AIMessage | None:
    """Add the next piece to the answer and return it; `None`: there is none. Raises `ModelProblem` for whatever a
    provider's client raises, and as it is what showing raised."""
    try:
        piece = await anext(pieces, None)
        if piece is not None:
            written = piece.additional_kwargs.get(WRITTEN_CALLS)  # the end of an answer has all its calls
            times.piece(written.began if isinstance(written, WrittenCalls) else None)
            answer.add(piece)
    except Exception as error:
        if error is show.fault or isinstance(error, ModelProblem):  # which has its own cause
            raise
        raise explain_model_error(error) from error
    return piece


def _has_its_price(end: BaseException) -> bool:
    """Whether a try of which nothing was read may cost something: a service that refuses wants nothing for it."""
    if isinstance(end, ModelProblem):
        return end.trouble in _AFTER_IT_BEGAN
    return isinstance(end, asyncio.CancelledError)


@runtime_checkable
class StreamsAnswers(Protocol):
    """A model that can give away text that is nothing else before it makes a piece of it, and what its service counts
    as soon as it says so: of an answer that breaks off it may have said everything."""

    def stream_answer(
        self, messages: list[AnyMessage], on_text: Callable[[str], None], count: ServiceCount, **bound: Any
    ) -> AsyncGenerator[AIMessageChunk]:
        """The answer in pieces, but for what `on_text` was given, and for tokens, which `count` is told of. `bound`:
        what goes with it, such as tools."""
        ...


def _pieces(
    model: Model, messages: list[AnyMessage], on_text: Callable[[str], None], count: ServiceCount
) -> AsyncGenerator[AIMessage | AIMessageChunk]:
    """An answer in pieces. Where a model can, text that is nothing else goes to `on_text` instead."""
    asked, bound = (model.bound, model.kwargs) if isinstance(model, RunnableBinding) else (model, {})
    if isinstance(asked, StreamsAnswers):
        return asked.stream_answer(messages, on_text, count, **bound)
    # Runnable.astream is declared as an iterator and is a generator: closed by the caller, its connection is released
    # at once.
    return cast(AsyncGenerator[AIMessage], model.astream(cast(LanguageModelInput, messages)))


class _Answer:
    """What has come of an answer. LangChain's own sum of pieces parses all arguments again with each of them.

    Args:
        question: what was asked.
        bound: what went with it, such as tools.
    """

    def __init__(self, question: Sequence[AnyMessage], bound: Mapping[str, Any]) -> None:
        self.count = ServiceCount()
        """What its service counts, where the model passes that on."""
        self.pieces = 0
        self._question = question
        self._bound = bound
        self._text: list[str] = []
        self._characters = 0
        self._calls = WrittenCalls()
        self._usage: UsageMetadata | None = None
        self._metadata: dict[str, Any] = {}
        self._is_cut = self._is_filtered = False
        """Whether any piece said so: nothing that is said afterwards takes it back."""
        self._id: str | None = None
        self._whole = True
        """Whether all of it came as whole messages, not as pieces of one."""

    def add(self, piece: AIMessage) -> None:
        """Raises `ModelProblem` when the answer does not end."""
        self.add_text(piece.text)
        self._add_calls(piece)
        if piece.usage_metadata is not None:
            self._usage = add_usage(self._usage, piece.usage_metadata)
        self._metadata |= {key: value for key, value in piece.response_metadata.items() if value is not None}
        self._note_end(piece.response_metadata)
        self._id = self._id or piece.id

    def add_text(self, text: str) -> None:
        """Add a piece that is nothing but text. Raises `ModelProblem` when the answer does not end."""
        self.pieces += 1
        self._characters += len(text)
        if max(self._characters, self.pieces) > LONGEST_ANSWER:
            raise ModelProblem(Trouble.TOO_MUCH)
        self._text.append(text)

    def tokens_so_far(self) -> tuple[int, int, int]:
        """Of the question, of it those that were cached, and of what has come: as the service has said, or estimated.
        What it says in the middle of an answer may be less than what has come since."""
        said = self._usage or _NO_COUNT
        given, made = max(self.count.given, said["input_tokens"]), max(self.count.made, said["output_tokens"])
        return given if given > 0 else self._estimated_input(), self.count.cached, max(made, self._estimated_output())

    def _tokens(self) -> UsageMetadata:
        """Of a whole answer; estimated is only what its service does not count."""
        if self._usage is not None:  # a model that counts by itself, and may take nothing
            return _bounded(self._usage)
        given, made = self.count.given or self._estimated_input(), self.count.made or self._estimated_output() + 1
        counted = UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
        if self.count.cached:
            counted["input_token_details"] = {"cache_read": self.count.cached}
        return counted

    def _estimated_input(self) -> int:
        return _tokens_of_question(self._question, self._bound)

    def _estimated_output(self) -> int:
        return (self._characters + self._calls.characters) // CHARACTERS_A_TOKEN

    def _note_end(self, metadata: Mapping[str, Any]) -> None:
        ended = _ended(metadata)
        self._is_filtered = self._is_filtered or ended in _FILTERED
        self._is_cut = (
            self._is_cut
            or (ended != "" and ended not in _PROPERLY | _UNDER_WAY)
            or not (_CUT | _FILTERED).isdisjoint(_reasons(metadata))
        )

    def _add_calls(self, piece: AIMessage) -> None:
        written = piece.additional_kwargs.get(WRITTEN_CALLS)
        if isinstance(written, WrittenCalls):
            self._calls.add_all(written)
        elif isinstance(piece, AIMessageChunk):
            self._whole = False
            for part in piece.tool_call_chunks:
                self._calls.add(part["index"], call_id=part["id"], name=part["name"], text=part["args"])
        else:
            for call in piece.tool_calls:
                self._calls.add(None, call_id=call["id"], name=call["name"], text=json.dumps(call["args"]))
            for bad in piece.invalid_tool_calls:
                name, written_as = bad["name"] or "unnamed", bad["args"] or "?"
                self._calls.add(None, call_id=bad["id"], name=name, text=written_as)

    async def finished(self) -> AIMessage:
        """The pieces as one message. Raises `ModelProblem` if they are not a whole answer."""
        ended = _ended(self._metadata)
        if self._is_filtered:
            raise ModelProblem(Trouble.FILTERED)
        if self._metadata.get("model_provider") == "openai" and not ended:
            # A connection that closes between two events looks like the end of the stream; only the reason tells.
            raise ModelProblem(Trouble.BROKE_OFF)
        # Pieces without a reason for their end may be some of the pieces.
        cut = self._is_cut or (ended not in _PROPERLY if ended else not self._whole)
        calls, unreadable = await self._calls.read(cut=cut)
        text = "".join(self._text)
        if not text and not calls and not unreadable:
            raise ModelProblem(Trouble.MALFORMED)
        return AIMessage(
            content=text,
            tool_calls=calls,
            invalid_tool_calls=unreadable,
            usage_metadata=self._tokens(),
            response_metadata=self._metadata,
            id=self._id,
        )


def _bounded(usage: UsageMetadata) -> UsageMetadata:
    """The counts alone, none larger than a checkpoint takes: they are not worth a turn that cannot be kept."""
    given, made, total = (
        max(-LARGEST_INTEGER, min(count, LARGEST_INTEGER))
        for count in (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"])
    )
    counted = UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=total)
    cached = usage.get("input_token_details", {}).get("cache_read")
    if cached:
        counted["input_token_details"] = {"cache_read": max(0, min(cached, LARGEST_INTEGER))}
    return counted


def _ended(metadata: Mapping[str, Any]) -> str:
    """Why the service says that the answer ended, in lower case; empty: it does not say."""
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping) and isinstance(reason := details.get("reason"), str):
        return reason.lower()
    found = _reasons(metadata)
    return found[0] if found else ""


def _reasons(metadata: Mapping[str, Any]) -> list[str]:
    """All that it says about that, the first of `_REASONS` first, in lower case."""
    return [metadata[key].lower() for key in _REASONS if isinstance(metadata.get(key), str)]
