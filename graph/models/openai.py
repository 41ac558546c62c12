"""Any OpenAI-compatible service as a chat model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessageChunk,
    AnyMessage,
)
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from graph.models.chat_completions import ChatCompletions, events_of
from graph.models.event_stream import Lumps, takes_long
from graph.models.http_client import blocking_client, http_client
from graph.models.problems import ModelProblem, Trouble
from graph.models.tool_calls import WRITTEN_CALLS, WrittenCalls
from graph.usage import ServiceCount, larger

OPENAI = "https://api.openai.com/v1"
_CONNECT_SECONDS = 10.0
_AT_ONCE = 50
"""Events that are read one after the other before others get their turn, some 5 ms: they may all be there already."""
_ANTHROPICS = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""How Anthropic calls the tokens of a question that its cache had, and those that it has put there."""
_MOST_TOLD = 100
"""Different things that a service says beside the text of one answer, such as why it ended: others say two or three."""
_RESPONSES_ONLY = re.compile(r"gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)")
"""OpenAI's models that take function tools only at `/v1/responses` unless they are told not to reason (GPT-5.6 and
later, https://github.com/BerriAI/litellm/pull/34569)."""


def create_openai_model(
    name: str,
    *,
    base_url: str | None,
    api_key: SecretStr | None,
    timeout: float,
    temperature: float | None = None,
) -> BaseChatModel:
    """A streaming chat model at `base_url` (OpenAI's own when `None`).

    `timeout`: the longest wait, in seconds, for the answer to begin and then for each further piece of it.
    `temperature`: from 0 to 2; `None`: it is not sent, and the service takes its own.

    It never retries: the client's own retries also repeat requests that cannot succeed (an empty account is a 429),
    wait up to two minutes without a word, and do not cover a stream that breaks off. `stream_message` does all that.
    """
    address = base_url or OPENAI
    extra: dict[str, Any] = {}
    if urlsplit(address).hostname != urlsplit(OPENAI).hostname:
        extra["use_responses_api"] = False  # others speak chat completions, whatever their models are called
    elif _RESPONSES_ONLY.match(name):
        extra |= {"use_responses_api": True, "store": False}
    connect = min(_CONNECT_SECONDS, timeout)
    return OpenAIModel(
        model=name,
        base_url=address,
        # Local services want no key, the client insists on one.
        api_key=api_key or SecretStr("none"),
        timeout=openai.Timeout(timeout, connect=connect),
        http_async_client=http_client(timeout, connect),
        http_client=blocking_client(),
        http_socket_options=(),  # none for these clients; else its log says that no proxy of the environment is used
        stream_chunk_timeout=timeout,
        max_retries=0,
        streaming=True,
        stream_usage=True,
        temperature=temperature,
        **extra,
    )


class OpenAIModel(ChatOpenAI):
    """`ChatOpenAI`, with another way to stream an answer: `stream_answer`. Text, and pieces of tool calls, are taken
    out of the service's events before LangChain sees them; the calls come with the last piece, under `WRITTEN_CALLS`.

    LangChain makes a message of every event, and each parses the arguments it holds, leniently: from broken JSON
    (which every piece is) it takes off one character after the other, so that 50,000 characters in one event kept the
    process from everything else for 8 seconds. Text comes as text, without the blocks of the responses API, which
    LangChain joins in quadratic time.
    """

    @cached_property
    def _chat_completions(self) -> ChatCompletions:
        return ChatCompletions(self.root_async_client, cast("httpx2.AsyncClient", self.http_async_client))

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], *args: Any, **kwargs: Any
    ) -> ChatGenerationChunk | None:
        """Converts a chunk as LangChain does, and keeps all that the service says of the end: LangChain takes over
        `finish_reason` alone, and gateways translate a cut answer into a proper end."""
        generation = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)
        choices = chunk.get("choices")
        if generation is not None and choices and (said := _said_of_the_end(choices[0])):
            generation.generation_info = (generation.generation_info or {}) | said
        return generation

    async def stream_answer(
        self, messages: Sequence[AnyMessage], on_text: Callable[[str], None], count: ServiceCount, **bound: Any
    ) -> AsyncGenerator[AIMessageChunk]:
        """Ask, and stream the answer: its text to `on_text` and its tokens to `count` as they come, all else that the
        service says (why it ended, the calls) in pieces without text. Raises what LangChain and the client raise.

        The request, the errors and whatever is more than text are LangChain's: `_astream`. Not `astream`, which makes
        five objects of each piece of text, tells callbacks that nobody has set, and keeps all pieces to join them in
        the end: that was a third of a model's call, without the network. What a service says beside the text is passed
        on when it says so for the first time. Raises `ValueError` when it says more than `_MOST_TOLD` different things.

        Tokens are counted before LangChain sees them: it files the cached ones under another name for each service
        tier, and gives up an answer for a number that is none.

        `bound`: what is bound to the model, such as tools.
        """
        calls, root, lumps = WrittenCalls(), self.root_async_client, Lumps(on_text)
        # The events are timed where they are read: many of them are not passed on.
        timed: dict[str, Any] = {"stream_chunk_timeout": None}
        create = _Completions(self._chat_completions, calls, lumps.add, count, self.stream_chunk_timeout)
        responses = _Client(_Responses(root, calls, count, self.stream_chunk_timeout))
        asking = self.model_copy(update={**timed, "async_client": create, "root_async_client": responses})
        told: list[Mapping[str, Any]] = []
        # It is declared as an iterator and is a generator: closed here, its connection is released at once.
        answer = cast("AsyncGenerator[ChatGenerationChunk]", asking._astream(list(messages), **bound))
        async with aclosing(answer):
            async for generation in answer:
                message = generation.message
                if text := message.text:
                    lumps.add(text)
                tells = {**(generation.generation_info or {}), **message.response_metadata}
                tells.pop("logprobs", None)
                if tells in told:
                    continue
                told.append(tells)
                if len(told) > _MOST_TOLD:
                    raise ValueError("an answer that ends again and again")
                yield AIMessageChunk(content="", response_metadata=tells)
        lumps.end()
        more = {WRITTEN_CALLS: calls} if calls else {}
        # What LangChain says of each piece that it sees.
        ours = {"model_provider": "openai"} if calls or lumps.began else {}
        yield AIMessageChunk(content="", additional_kwargs=more, response_metadata=ours)


def _count(count: ServiceCount, usage: object, given: str, made: str) -> None:
    """Take in what an event says of tokens, if it is what it has to be.

    Args:
        given: how the numbers of the question are called there, and the beginning of how their details are.
        made: how those of the answer are called.
    """
    if not isinstance(usage, Mapping):
        return
    details = usage.get(f"{given}_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    asked, answered, read, kept, together = (
        larger(0, usage.get(name)) for name in (given, made, *_ANTHROPICS, "total_tokens")
    )
    # Gateways to Anthropic's models say these, too; some leave them out of the question and count them in the sum alone
    # (https://github.com/Portkey-AI/gateway/blob/main/src/providers/anthropic/chatComplete.ts).
    if read + kept and together >= asked + read + kept + answered:
        asked += read + kept
    count.note(given=asked, cached=larger(read, cached), made=answered)
    # What a model thinks is a part of its answer with OpenAI; xAI, and gateways to Google's models, count it in the
    # sum alone (https://docs.x.ai/docs/key-information/consumption-and-rate-limits), and take as much for it.
    if asked:
        count.note(made=together - asked)


def _text_alone(event: Any) -> str | None:
    """The text of an event of chat completions that says nothing else; None when it may say something. LangChain reads
    no more than the text out of such an event, at twenty times the cost."""
    choices = event.get("choices") if isinstance(event, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or event.get("type"):
        return None
    choice = choices[0]
    if not isinstance(choice, dict) or any(choice.get(key) for key in choice.keys() - {"index", "delta"}):
        return None
    delta = choice.get("delta")
    if not isinstance(delta, dict) or any(delta[key] for key in delta.keys() - {"role", "content"}):
        return None
    text = delta.get("content")
    return text if isinstance(text, str) and delta.get("role") in {None, "", "assistant"} else None


def _said_of_the_end(choice: Mapping[str, Any]) -> dict[str, str]:
    """What stands in a piece of an answer about its end beside `finish_reason`, under the names that `stream_message`
    looks for."""
    found = {key: choice.get(key) for key in ("native_finish_reason", "stop_reason")}
    said = {key: value for key, value in found.items() if isinstance(value, str) and value}
    return said | {"status": "error"} if choice.get("error") else said


class _Untaken:
    """The events of an answer without those that `take` keeps. Each has `seconds` to come."""

    def __init__(self, response: httpx2.Response, seconds: float | None, take: Callable[[Any], bool]) -> None:
        self._response = response
        self._events = events_of(response, seconds)
        self._take = take

    async def __aenter__(self) -> _Untaken:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._events.aclose()
        await self._response.aclose()  # a generator that nobody began closes nothing

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events:
            if not self._take(event):
                yield event


class _Events:
    """The events of the responses API without those that `take` keeps. Each has `seconds` to come."""

    def __init__(self, stream: openai.AsyncStream[Any], take: Callable[[Any], bool], *, seconds: float | None) -> None:
        stream._decoder = _BoundedDecoder(stream._decoder)  # type: ignore[assignment]  # it has no setting for it
        self._stream = stream
        self._take = take
        self._seconds = seconds

    async def __aenter__(self) -> _Events:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        events, read = aiter(self._stream), 0
        while True:
            try:
                async with asyncio.timeout(self._seconds):
                    event = await anext(events)
            except StopAsyncIteration:
                return
            if not self._take(event):
                yield event
            read += 1
            if read % _AT_ONCE == 0:
                await asyncio.sleep(0)


class _BoundedDecoder:
    """A decoder of the client's, without events that would take long to be parsed."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    async def aiter_bytes(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """Yields the events. Raises `ModelProblem` at one with too many values, or with a number of too many digits."""
        async for event in self._decoder.aiter_bytes(pieces):
            if await takes_long(event.data):
                raise ModelProblem(Trouble.TOO_MUCH)
            yield event


class _Completions:
    """`client.chat.completions` as far as a streaming `ChatOpenAI` uses it, JSON in and JSON out.

    The client's own looks through every message for fields to rename, of which there are none, and makes a pydantic
    model of every piece of the answer, which LangChain turns back into a dict: with 20 turns of history that was more
    than all the rest of a turn (`make bench`).
    """

    def __init__(
        self,
        service: ChatCompletions,
        calls: WrittenCalls,
        on_text: Callable[[str], None],
        count: ServiceCount,
        seconds: float | None,
    ) -> None:
        self._service = service
        self._calls = calls
        self._on_text = on_text
        self._counted = count
        self._seconds = seconds

    async def create(self, **body: Any) -> _Untaken:
        """Ask, and stream the answer. Raises what the client raises."""
        return _Untaken(await self._service.ask(body), self._seconds, self._take)

    def _take(self, event: Any) -> bool:
        """Whether there is nothing in an event but text, which is passed on, or pieces of calls, which are kept. Tokens
        are taken out of it.

        Raises `ValueError` when they cannot be read.
        """
        if isinstance(event, dict) and (usage := event.pop("usage", None)):
            _count(self._counted, usage, "prompt_tokens", "completion_tokens")
        if (text := _text_alone(event)) is not None:
            self._on_text(text)
            return True
        choices = event.get("choices") if isinstance(event, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(delta := choice.get("delta"), dict):
            return False
        delta.pop("function_call", None)  # the way of 2023, for which we never ask
        pieces = delta.pop("tool_calls", None)
        if not pieces:
            return False
        for piece in pieces:
            self._add(piece)
        ends = choice.get("finish_reason") or _said_of_the_end(choice)
        return not (delta.get("content") or ends)

    def _add(self, piece: Any) -> None:
        function = piece.get("function") if isinstance(piece, dict) else None
        if not isinstance(function, dict):
            raise ValueError("a piece of a tool call without its function")  # noqa: TRY004 (a fault of the service)
        number, name, text, call_id = (
            piece.get("index"),
            function.get("name"),
            function.get("arguments"),
            piece.get("id"),
        )
        if text is not None and not isinstance(text, str):
            # Some services parse them by themselves; what is no object either is for their reader to refuse.
            text = json.dumps(text)
        self._calls.add(
            number if isinstance(number, int) else None,
            call_id=call_id if isinstance(call_id, str) else None,
            name=name if isinstance(name, str) else None,
            text=text,
        )


class _Responses:
    """`client.responses` as far as a streaming `ChatOpenAI` uses it."""

    def __init__(
        self, client: openai.AsyncOpenAI, calls: WrittenCalls, count: ServiceCount, seconds: float | None
    ) -> None:
        self._client = client
        self._calls = calls
        self._counted = count
        self._seconds = seconds

    async def create(self, **body: Any) -> _Events:
        """Ask, and stream the answer. Raises what the client raises."""
        stream = await self._client.responses.create(**body)
        return _Events(stream, self._take, seconds=self._seconds)

    def _take(self, event: Any) -> bool:
        """Whether an event is about a call. A call is complete when the service says so of it, not when it reads so.

        Raises `openai.APIError` for a failure: LangChain makes one of it that does not say which.
        """
        match event.type:
            case "response.output_item.added" if event.item.type == "function_call":
                item = event.item
                self._calls.add(event.output_index, call_id=item.call_id, name=item.name).complete = False
            case "response.function_call_arguments.delta":
                self._calls.add(event.output_index, text=event.delta)
            case "response.output_item.done" if event.item.type == "function_call":
                item = event.item
                done = self._calls.add(event.output_index, call_id=item.call_id, name=item.name)
                # What was streamed and what is said to be the whole of it are the same, or neither is certain.
                written = item.arguments or ""
                done.complete = item.status in {None, "completed"} and done.text in {"", written}
                done.pieces = [written]
            case "response.function_call_arguments.done":
                # Some gateways say them here alone: an item that is then done without any is not what was written.
                call = self._calls.add(event.output_index)
                call.pieces = call.pieces if call.text else [event.arguments or ""]
            case "response.failed":
                self._count(event.response)
                raise self._failure(event.response.error)
            case "error":
                raise self._failure(event)
            case "response.completed" | "response.incomplete":
                self._count(event.response)
                event.response.output = [item for item in event.response.output if item.type != "function_call"]
                return False
            case _:
                return False
        return True

    def _failure(self, error: Any) -> openai.APIError:
        code, message = getattr(error, "code", None), getattr(error, "message", None)
        text = message if isinstance(message, str) and message else f"{code}"
        return openai.APIError(text, request=httpx2.Request("POST", self._client.base_url), body={"code": code})

    def _count(self, response: Any) -> None:
        """The client makes an object of what it knows, and leaves as it came what is something else."""
        usage, response.usage = response.usage, None
        said = usage.model_dump(warnings=False) if isinstance(usage, BaseModel) else usage
        _count(self._counted, said, "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class _Client:
    """An OpenAI client of which only this is used."""

    responses: _Responses
