"""Google's models, by the Gemini API. LangChain makes the request of the conversation; asking, and reading the answer,
are ours, as for OpenAI's services: bounded, each call's arguments read once and strictly, no retries below our own."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from google.genai.types import Content, FunctionDeclaration, GenerateContentConfig, GenerationConfig, Tool
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_google_genai import ChatGoogleGenerativeAI
from pydantic import BaseModel, PrivateAttr, SecretStr, model_validator

from graph.models.event_stream import Lumps
from graph.models.function_schemas import documented_by_google
from graph.models.problems import ModelProblem, Trouble, explain_model_error
from graph.models.service import ServiceError, StreamingService, json_of
from graph.models.tool_calls import WRITTEN_CALLS, WrittenCalls
from graph.models.wire import said_messages
from graph.usage import ServiceCount, largest

GOOGLE = "https://generativelanguage.googleapis.com"
_FIRST = re.compile(r"[A-Za-z_]")
"""What the name of a function has to begin with."""
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
"""A duration in JSON, https://protobuf.dev/reference/protobuf/google.protobuf/#duration."""
_BY_WORDS = (
    ("exceeds the maximum number of tokens", Trouble.TOO_LONG),
    ("api key", Trouble.WRONG_KEY),
    ("user location is not supported", Trouble.NO_ACCESS),
)
"""What a 400 says that is more than that: Google has no other sign for these."""
_COUNTS = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
_MESSAGES = ("contents", "system_instruction", "tools", "tool_config", "safety_settings", "cached_content")
"""Fields of the SDK's configuration that stand beside `generationConfig` in a request."""


def create_google_model(
    name: str,
    *,
    base_url: str | None,
    api_key: SecretStr | None,
    timeout: float,
    temperature: float | None = None,
) -> GoogleModel:
    """A streaming chat model of Google's, or of a gateway at `base_url` (without `/v1beta`).

    `timeout`: the longest wait, in seconds, for the answer to begin and then for each further piece of it.
    `temperature`: from 0 to 2; `None`: the service's own.
    """
    model = GoogleModel(
        model=name,
        vertexai=False,
        # Nobody asks by LangChain's client; a key that it is given is one that it does not look for elsewhere.
        google_api_key=SecretStr("none"),
        temperature=temperature,  # said even when it is `None`: LangChain has one of its own
    )
    key = {"x-goog-api-key": api_key.get_secret_value()} if api_key else {}
    model._service = StreamingService(base_url or GOOGLE, key, timeout)
    return model


class GoogleModel(ChatGoogleGenerativeAI):
    """`ChatGoogleGenerativeAI`, asked by `stream_answer` alone."""

    _service: StreamingService = PrivateAttr()

    @model_validator(mode="after")
    def validate_environment(self) -> GoogleModel:
        """LangChain's check, which makes the SDK's client, with connections of its own that are not needed here."""
        return self

    def bind_tools(self, tools: Sequence[Any], *_: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind OpenAI-style definitions. LangChain would make them OpenAPI schemas, which leave out most limits, fail
        for an argument of several types, and call one of any kind a text."""
        functions = [
            FunctionDeclaration(
                name=_outgoing(tool["function"]["name"]),
                description=tool["function"]["description"],
                parameters_json_schema=documented_by_google(tool["function"]["parameters"]),
            )
            for tool in tools
        ]
        return self.bind(tools=[Tool(function_declarations=functions)], **kwargs)

    async def stream_answer(
        self, messages: Sequence[AnyMessage], on_text: Callable[[str], None], count: ServiceCount, **bound: Any
    ) -> AsyncGenerator[AIMessageChunk]:
        """Ask, and stream the answer: its text to `on_text` and its tokens to `count` as they come, all else in one
        piece. `bound`: what is bound to the model, such as tools. Raises `ModelProblem`, and what reading an answer
        raises."""
        answer = _GoogleAnswer(on_text, count)
        path = f"/v1beta/models/{quote(self.model.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"
        try:
            await self._service.ask(path, partial(self._body, messages, bound), _read, answer.take)
        except ServiceError as error:
            raise _problem(error) from error
        yield answer.finished()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._service.aclose()

    def _body(self, messages: Sequence[AnyMessage], bound: Mapping[str, Any]) -> dict[str, Any]:
        request = self._prepare_request([_unparsed(m) for m in said_messages(messages)], **bound)
        config: GenerateContentConfig = request["config"]
        body = {_camel(name): _dumped(getattr(config, name, None)) for name in _MESSAGES}
        body["contents"] = [_dumped(content) for content in _joined(request["contents"])]
        known = GenerationConfig.model_fields.keys() & config.model_fields_set
        chosen = {_camel(name): _dumped(getattr(config, name)) for name in sorted(known)}
        body["generationConfig"] = {name: value for name, value in chosen.items() if value is not None}
        return {name: value for name, value in body.items() if value}


def _unparsed(message: AnyMessage) -> AnyMessage:
    """LangChain parses a result that reads like JSON, however deep or long it is; not one in a list."""
    return message.model_copy(update={"content": [message.text]}) if isinstance(message, ToolMessage) else message


def _joined(contents: Sequence[Content]) -> list[Content]:
    """The model's texts in a row as one: a function may only be called right after a person's message or a result."""
    joined: list[Content] = []
    for content in contents:
        parts = list(content.parts or [])
        for part in parts:
            if part.function_call is not None:
                part.function_call.name = _outgoing(part.function_call.name or "")
            elif part.function_response is not None:
                part.function_response.name = _outgoing(part.function_response.name or "")
                part.function_response.response = _output(part.function_response.response)
        last = joined[-1] if joined else None
        if last is not None and last.role == content.role == "model" and not _calls(last):
            last.parts = [*(last.parts or []), *parts]
        else:
            joined.append(content)
    return joined


def _calls(content: Content) -> bool:
    return any(part.function_call is not None for part in content.parts or [])


def _output(response: dict[str, Any] | None) -> dict[str, Any]:
    output = (response or {}).get("output")
    return {"output": "".join(output) if isinstance(output, list) else output}


def _outgoing(name: str) -> str:
    """A function's name as the service takes it."""
    return name if _FIRST.match(name) else f"_{name}"


def _incoming(name: str) -> str:
    bare = name.removeprefix("_")
    return bare if _outgoing(bare) == name else name


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    if isinstance(value, BaseModel):
        # Without warnings: LangChain puts a text where a signature's bytes belong, as the service wants it.
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _read(said: str) -> dict[str, Any]:
    event = json_of(said)
    if isinstance(event, list) or "error" in event:
        raise ServiceError(event)
    if not isinstance(event, dict):
        raise ValueError("an event that is no object")  # noqa: TRY004 (a fault of the service)
    return event


def _problem(error: ServiceError) -> ModelProblem:
    """What people are told of an error (https://ai.google.dev/gemini-api/docs/troubleshooting). The service says its
    codes and the time to wait in the body."""
    told = explain_model_error(error)
    details = error.error.get("details")
    details = [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
    code, words = error.status_code or error.error.get("code"), error.said.lower()
    trouble = told.trouble if error.status_code else _by_code(code)
    if code == 400 or any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        trouble = next((other for part, other in _BY_WORDS if part in words), trouble)
    if code == 429 and "PerDay" in json.dumps(details):
        trouble = Trouble.QUOTA_GONE
    waits = [_SECONDS.fullmatch(str(detail.get("retryDelay"))) for detail in details]
    seconds = [float(wait[1]) for wait in waits if wait]
    return ModelProblem(trouble, retry_after=max(seconds) if seconds else told.retry_after)


def _by_code(code: Any) -> Trouble:
    """Of an error within an answer, which has no status."""
    known = {429: Trouble.RATE_LIMITED, 504: Trouble.TIMED_OUT}
    return known.get(code, Trouble.SERVER_FAILED) if isinstance(code, int) else Trouble.SERVER_FAILED


class _GoogleAnswer:
    """What has come of an answer (https://ai.google.dev/api/generate-content)."""

    def __init__(self, on_text: Callable[[str], None], count: ServiceCount) -> None:
        self._lumps = Lumps(on_text)
        self._counted = count
        self._calls = WrittenCalls()
        self._tokens = dict.fromkeys(_COUNTS, 0)
        self._made = 0
        """Calls so far."""
        self._ended = ""
        self._is_blocked = self._began = False

    def take(self, event: Mapping[str, Any]) -> None:
        """One more event. What it thinks aloud is neither shown nor kept; parts of other kinds, such as images, are
        left out. Raises what stumbling over another shape raises."""
        self._began = True
        self._count(event.get("usageMetadata"))
        if (event.get("promptFeedback") or {}).get("blockReason"):
            self._is_blocked = True
        for candidate in (event.get("candidates") or [])[:1]:
            for part in (candidate.get("content") or {}).get("parts") or []:
                self._take_part(part)
            self._end(candidate.get("finishReason"))

    def _count(self, usage: Any) -> None:
        """All count from the beginning."""
        self._tokens = largest(self._tokens, usage)
        given, cached, made, thought = self._tokens.values()
        self._counted.note(given=given, cached=cached, made=made + thought)

    def _take_part(self, part: Mapping[str, Any]) -> None:
        if call := part.get("functionCall"):
            # A call comes whole; each is a new one.
            self._made += 1
            self._calls.add(self._made, name=_incoming(call["name"]), text=json.dumps(call.get("args") or {}))
        elif (text := part.get("text")) and not part.get("thought"):
            if not isinstance(text, str):
                raise ValueError("something else in the place of a text")
            self._lumps.add(text)

    def _end(self, reason: Any) -> None:
        """Some models say `STOP` with each piece; nothing that is said afterwards takes another reason back."""
        if reason and not isinstance(reason, str):
            raise ValueError("something else in the place of a reason")
        if self._ended in {"", "STOP"}:
            self._ended = reason or self._ended

    def finished(self) -> AIMessageChunk:
        """All of it but the text. Raises `ModelProblem` where it did not end, or was stopped by a filter."""
        self._lumps.end()
        if self._is_blocked:
            raise ModelProblem(Trouble.FILTERED)
        if not self._ended:
            raise ModelProblem(Trouble.BROKE_OFF if self._began else Trouble.MALFORMED)
        return AIMessageChunk(
            content="",
            additional_kwargs={WRITTEN_CALLS: self._calls} if self._calls else {},
            response_metadata={"finish_reason": self._ended, "model_provider": "google_genai"},
        )
