"""Anthropic's models. LangChain makes the request of the conversation and the tools; asking, and reading the answer,
are ours, as for OpenAI's services: bounded, each call's arguments read once and strictly, no retries below our own."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SecretStr

from graph.models.event_stream import NOTHING, Lumps
from graph.models.function_schemas import root_object
from graph.models.problems import ModelProblem, Trouble, explain_model_error
from graph.models.service import ServiceError, StreamingService, json_of
from graph.models.tool_calls import WRITTEN_CALLS, WrittenCall, WrittenCalls
from graph.models.wire import said_messages
from graph.usage import ServiceCount, largest

log = structlog.get_logger(__name__)

ANTHROPIC = "https://api.anthropic.com"
_VERSION = "2026-10-21"
"""Of the API, the one of the SDK's types, https://platform.claude.com/docs/en/api/versioning."""
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""What the service takes as the name of an argument; it refuses the whole request for another one."""
_BY_TYPE = {
    "authentication_error": Trouble.WRONG_KEY,
    "billing_error": Trouble.QUOTA_GONE,
    "permission_error": Trouble.NO_ACCESS,
    "not_found_error": Trouble.UNKNOWN_MODEL,
    "request_too_large": Trouble.TOO_LONG,
    "rate_limit_error": Trouble.RATE_LIMITED,
    "timeout_error": Trouble.TIMED_OUT,
    "api_error": Trouble.SERVER_FAILED,
    "overloaded_error": Trouble.SERVER_FAILED,
}
"""https://platform.claude.com/docs/en/api/errors; those within a stream have no status."""
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
"""What it counts, as far as we add it up; whatever else it says of that is not kept."""
_BY_WORDS = (
    ("prompt is too long", Trouble.TOO_LONG),
    ("exceed context limit", Trouble.TOO_LONG),
    ("credit balance is too low", Trouble.QUOTA_GONE),
)
"""What an `invalid_request_error` says that is more than that."""


def create_anthropic_model(
    name: str, *, base_url: str | None, api_key: SecretStr | None, timeout: float
) -> AnthropicModel:
    """A streaming chat model of Anthropic's, or of a gateway at `base_url` (without `/v1`).

    `timeout`: the longest wait, in seconds, for the answer to begin and then for each further piece of it.
    """
    address = base_url or ANTHROPIC
    model = AnthropicModel(
        model=name,
        anthropic_api_url=address,
        # Nobody asks by LangChain's client; a key that it is given is one that it does not look for elsewhere.
        anthropic_api_key=SecretStr("none"),
        max_retries=0,
        streaming=True,
    )
    key = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
    model._service = StreamingService(address, {"anthropic-version": _VERSION, **key}, timeout)
    return model


class AnthropicModel(ChatAnthropic):
    """`ChatAnthropic`, asked by `stream_answer` alone."""

    _service: StreamingService = PrivateAttr()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: dict[str, str] | str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind OpenAI-style definitions. LangChain would leave out a tool that describes its arguments by a choice, and
        pass on one for whose arguments' names the service refuses the request, whatever it is about."""
        taken = []
        for tool in tools:
            function = tool["function"]
            schema = root_object(function["parameters"])
            if refused := sorted(name for name in schema["properties"] if not _PROPERTY.fullmatch(name)):
                log.warning("tool_not_offered", tool=function["name"], arguments=refused, note="names not taken")
                continue
            taken.append({**tool, "function": {**function, "parameters": schema}})
        return super().bind_tools(taken, tool_choice=tool_choice, **kwargs) if taken else self.bind(**kwargs)

    async def stream_answer(
        self, messages: Sequence[AnyMessage], on_text: Callable[[str], None], count: ServiceCount, **bound: Any
    ) -> AsyncGenerator[AIMessageChunk]:
        """Ask, and stream the answer: its text to `on_text` and its tokens to `count` as they come, all else in one
        piece. `bound`: what is bound to the model, such as tools. Raises `ModelProblem`, and what reading an answer
        raises."""
        answer = _AnthropicAnswer(on_text, count)
        try:
            await self._service.ask("/v1/messages", partial(self._body, messages, bound), _read, answer.take)
        except ServiceError as error:
            raise _problem(error) from error
        yield answer.finished()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._service.aclose()

    def _body(self, messages: Sequence[AnyMessage], bound: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._get_request_payload(said_messages(messages), **bound), "stream": True}


def _read(said: str) -> Any:
    event = json_of(said)
    if not isinstance(event, dict):
        raise ValueError("an event that is no object")  # noqa: TRY004 (a fault of the service)
    if event.get("type") == "error" or "error" in event:
        raise ServiceError(event)
    return NOTHING if event.get("type") == "ping" else event


def _problem(error: ServiceError) -> ModelProblem:
    """What people are told of an error. The time to wait is read from the answer's head, as everywhere."""
    told = explain_model_error(error)
    trouble = _BY_TYPE.get(str(error.error.get("type")), told.trouble)
    words = error.said.lower()
    trouble = next((other for part, other in _BY_WORDS if part in words), trouble)
    return ModelProblem(trouble, retry_after=told.retry_after)


class _AnthropicAnswer:
    """What has come of an answer (https://platform.claude.com/docs/en/build-with-claude/streaming)."""

    def __init__(self, on_text: Callable[[str], None], count: ServiceCount) -> None:
        self._lumps = Lumps(on_text)
        self._counted = count
        self._calls = WrittenCalls()
        self._open: dict[int, WrittenCall] = {}
        """The number of a block → the call in it, until the service says that it is complete."""
        self._tokens = dict.fromkeys(_COUNTS, 0)
        self._tells: dict[str, Any] = {}
        self._began = False

    def take(self, event: Mapping[str, Any]) -> None:
        """One more event. What it thinks aloud is neither shown nor kept; events and blocks of kinds that are not known
        say nothing. Raises what stumbling over another shape raises."""
        self._began = True
        match event.get("type"):
            case "message_start":
                self._count(event["message"].get("usage"))
            case "content_block_start":
                self._begin(event["index"], event["content_block"])
            case "content_block_delta":
                self._go_on(event["index"], event["delta"])
            case "content_block_stop":
                if (call := self._open.pop(event["index"], None)) is not None:
                    call.complete = True
            case "message_delta":
                self._count(event.get("usage"))
                # Nothing that is said afterwards takes it back.
                self._tells["stop_reason"] = self._tells.get("stop_reason") or _text(event["delta"].get("stop_reason"))

    def _begin(self, number: int, block: Mapping[str, Any]) -> None:
        match block.get("type"):
            case "text":
                self._lumps.add(_text(block.get("text")))
            case "tool_use":
                # Some gateways say the arguments here, and nothing afterwards.
                given = json.dumps(block["input"]) if block.get("input") else None
                call = self._calls.add(number, call_id=_text(block["id"]), name=_text(block["name"]), text=given)
                call.complete, self._open[number] = False, call

    def _go_on(self, number: int, delta: Mapping[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._lumps.add(_text(delta["text"]))
            case "input_json_delta" if number in self._open:  # else of a tool of the service's own
                self._calls.add(number, text=_text(delta["partial_json"]))

    def _count(self, usage: Any) -> None:
        """All count from the beginning. Some gateways say 0 in the end of what they have counted before."""
        self._tokens = largest(self._tokens, usage)
        new, cached, kept, made = self._tokens.values()
        self._counted.note(given=new + cached + kept, cached=cached, made=made)

    def finished(self) -> AIMessageChunk:
        """All of it but the text. Raises `ModelProblem` where it did not end, or was stopped by a filter."""
        self._lumps.end()
        if self._tells.get("stop_reason") == "refusal":
            raise ModelProblem(Trouble.FILTERED)
        if not self._tells.get("stop_reason"):
            raise ModelProblem(Trouble.BROKE_OFF if self._began else Trouble.MALFORMED)
        return AIMessageChunk(
            content="",
            additional_kwargs={WRITTEN_CALLS: self._calls} if self._calls else {},
            response_metadata={**self._tells, "model_provider": "anthropic"},
        )


def _text(value: Any) -> str:
    """Raises `ValueError` for what is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError("something else in the place of a text")  # noqa: TRY004 (a fault of the service)
    return value
