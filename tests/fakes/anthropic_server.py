"""A stand-in for Anthropic's `/v1/messages`, written from the types of Anthropic's SDK: a request has to be what they
describe, key by key, and keep the rules of the documentation; an answer is made of their events.

It is no substitute for the service: what neither the types nor the documentation say is not in it.

async with fake_anthropic([Reply(text="Hello")]) as server:
    ... server.base_url ... server.requests ... server.refused
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, is_typeddict

import typing_extensions
from aiohttp import web
from anthropic import types
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic._types import SequenceNotStr
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from anthropic.types.raw_message_delta_event import Delta
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tests.fakes.model_service import ModelService, RefusedError, data_event, pieces_of_json, running, words
from tests.fakes.openai_server import Brain, Reply, Request

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class FakeAnthropic(ModelService):
    """The running server."""

    first_text = 2
    keep_alive = data_event('{"type": "ping"}', name="ping")

    def check(self, request: web.Request, body: Request) -> None:
        if request.headers.get("anthropic-version") != ANTHROPIC_API_VERSION:
            raise RefusedError(f"anthropic-version: the types are those of {ANTHROPIC_API_VERSION}")
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise RefusedError("content-type: must be application/json")
        _check_type(body, MessageCreateParamsStreaming, "")
        _check_tools(body.get("tools", []))
        _check_texts(body)
        _check_order(body["messages"])

    def error(self, status: int, error: Mapping[str, Any]) -> Any:
        return {
            "type": "error",
            "error": {"type": _TYPES.get(status, "api_error"), "message": "no", **error},
            "request_id": "req_fake",
        }

    def events(self, body: Request, reply: Reply) -> Iterator[bytes]:
        given, made = reply.usage
        message = types.Message(
            id="msg_fake",
            type="message",
            role="assistant",
            model=body["model"],
            content=[],
            usage=types.Usage(input_tokens=given, output_tokens=1),
        )
        yield _event(types.RawMessageStartEvent(type="message_start", message=message))
        number = 0
        if reply.text:
            block: Any = types.TextBlock(type="text", text="")
            deltas: list[Any] = [types.TextDelta(type="text_delta", text=word) for word in words(reply.text)]
            yield from _block(number, block, deltas)
            number += 1
        for index, call in enumerate(reply.calls):
            block = types.ToolUseBlock(type="tool_use", id=call.call_id or f"toolu_{index}", name=call.name, input={})
            written = "" if call.text == "{}" else call.text
            deltas = [types.InputJSONDelta(type="input_json_delta", partial_json=p) for p in pieces_of_json(written)]
            yield from _block(number, block, deltas)
            number += 1
        reason: Any = reply.finish_reason or ("tool_use" if reply.calls else "end_turn")
        usage = types.MessageDeltaUsage(output_tokens=made)
        yield _event(types.RawMessageDeltaEvent(type="message_delta", delta=Delta(stop_reason=reason), usage=usage))
        yield _event(types.RawMessageStopEvent(type="message_stop"))


@asynccontextmanager
async def fake_anthropic(script: Sequence[Reply] | Brain) -> AsyncIterator[FakeAnthropic]:
    """Run a server with a script (one reply per request) or a function of the request."""
    server = FakeAnthropic(script)
    async with running(server, "/v1/messages"):
        yield server


def _event(event: Any) -> bytes:
    return data_event(event.model_dump_json(exclude_none=True), name=event.type)


def _block(number: int, block: Any, deltas: Sequence[Any]) -> Iterator[bytes]:
    yield _event(types.RawContentBlockStartEvent(type="content_block_start", index=number, content_block=block))
    for delta in deltas:
        yield _event(types.RawContentBlockDeltaEvent(type="content_block_delta", index=number, delta=delta))
    yield _event(types.RawContentBlockStopEvent(type="content_block_stop", index=number))


# ------------------------------------------------------------------------------------------------ the SDK's types


def _check_type(value: Any, wanted: Any, where: str) -> None:
    """Raises `RefusedError` unless a value is what an annotation of the SDK says: no key more, none missing."""
    if problem := _mismatch(value, wanted, where):
        raise RefusedError(problem)


def _mismatch(value: Any, wanted: Any, where: str) -> str:
    wanted = _bare(wanted)
    origin, arguments = get_origin(wanted), get_args(wanted)
    if is_typeddict(wanted) or typing_extensions.is_typeddict(wanted):
        return _mismatched_keys(value, wanted, where)
    if origin in {Union, UnionType}:
        problems = [_mismatch(value, one, where) for one in _likely(value, arguments)]
        return "" if "" in problems else min(problems, key=len, default=f"{where}: none of the types it may be")
    if origin is Literal:
        return "" if value in arguments else f"{where}: Input should be one of {arguments}"
    if origin in {dict, Mapping}:
        return "" if isinstance(value, dict) else f"{where}: Input should be a valid dictionary"
    if origin is not None and (origin is SequenceNotStr or hasattr(origin, "__iter__")):
        if not isinstance(value, list):
            return f"{where}: Input should be a valid list"
        problems = [_mismatch(item, arguments[0], f"{where}.{n}") for n, item in enumerate(value)]
        return next(filter(None, problems), "")
    if wanted in {Any, object}:
        return ""
    if wanted in {None, NoneType}:
        return "" if value is None else f"{where}: Input should be null"
    if wanted is float:
        wanted = (int, float)
    if isinstance(wanted, type | tuple):
        is_right = isinstance(value, wanted) and (not isinstance(value, bool) or wanted is bool)
        return "" if is_right else f"{where}: Input should be a valid {wanted}"
    raise NotImplementedError(f"an annotation that this stand-in does not know: {wanted}")


def _bare(wanted: Any) -> Any:
    """Without what only says whether a key is required, and without another name for the same."""
    while True:
        if get_origin(wanted) in {Required, NotRequired, typing_extensions.Required, typing_extensions.NotRequired}:
            (wanted,) = get_args(wanted)
        elif hasattr(wanted, "__value__"):
            wanted = wanted.__value__
        elif hasattr(wanted, "__metadata__"):
            wanted = wanted.__origin__
        else:
            return wanted


def _likely(value: Any, several: Sequence[Any]) -> list[Any]:
    """Those of several types with the same `type` as the value, if any: one error is read more easily than thirty."""
    if not isinstance(value, dict) or "type" not in value:
        return list(several)
    named = [
        one
        for one in several
        if typing_extensions.is_typeddict(_bare(one))
        and value["type"] in get_args(_bare(_hints(_bare(one)).get("type")))
    ]
    return named or list(several)


def _hints(wanted: Any) -> dict[str, Any]:
    return typing_extensions.get_type_hints(wanted, include_extras=True)


def _mismatched_keys(value: Any, wanted: Any, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where}: Input should be an object"
    hints = _hints(wanted)
    takes_more = getattr(wanted, "__pydantic_config__", {}).get("extra") == "allow"
    if not takes_more and (more := sorted(value.keys() - hints.keys())):
        return f"{where}.{more[0]}: Extra inputs are not permitted"
    needed = {name for name, hint in hints.items() if get_origin(hint) in {Required, typing_extensions.Required}}
    if missing := sorted((needed | wanted.__required_keys__) - value.keys()):
        return f"{where}.{missing[0]}: Field required"
    problems = [
        _mismatch(item, hints[name], f"{where}.{name}".lstrip(".")) for name, item in value.items() if name in hints
    ]
    return next(filter(None, problems), "")


# ------------------------------------------------------------------------------------------------ the documentation


def _check_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    names = [tool["name"] for tool in tools]
    if len(set(names)) != len(names):
        raise RefusedError("tools: Tool names must be unique.")
    for number, tool in enumerate(tools):
        where = f"tools.{number}.custom"
        if not _TOOL_NAME.fullmatch(tool["name"]):
            raise RefusedError(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        schema = tool["input_schema"]
        if schema.get("type") != "object":
            raise RefusedError(f"{where}.input_schema.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"} & schema.keys():
            raise RefusedError(f"{where}.input_schema: does not support oneOf, allOf, or anyOf at the top level")
        if not all(_PROPERTY.fullmatch(name) for name in schema.get("properties", {})):
            raise RefusedError(
                f"{where}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
            )
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise RefusedError(f"{where}.input_schema: JSON schema is invalid (draft 2020-12)") from error


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _check_texts(body: Request) -> None:
    system = body.get("system")
    if system is not None and any(not block["text"].strip() for block in _blocks(system)):
        raise RefusedError("system: text content blocks must contain non-whitespace text")
    for number, message in enumerate(body["messages"]):
        where = f"messages.{number}"
        if not message["content"]:
            raise RefusedError(f"{where}: all messages must have non-empty content")
        for block in _blocks(message["content"]):
            if block["type"] == "text" and not block["text"].strip():
                raise RefusedError(f"{where}: text content blocks must contain non-whitespace text")
            if block["type"] not in {"text", "tool_use", "tool_result"}:
                raise RefusedError(f"{where}: {block['type']} is nothing that this product may send")


def _check_order(messages: Sequence[Mapping[str, Any]]) -> None:
    if not messages:
        raise RefusedError("messages: at least one message is required")
    if messages[0]["role"] != "user":
        raise RefusedError('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant":
        raise RefusedError("This model does not support assistant message prefill. It must end with a user message.")
    turns = _turns(messages)
    known: set[str] = set()
    for number, (role, blocks) in enumerate(turns):
        where = f"messages.{number}"
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if (calls and role != "assistant") or (results and role != "user"):
            raise RefusedError(f"{where}: `tool_use` belongs to the assistant, `tool_result` to the user")
        if len(set(calls)) != len(calls) or known & set(calls):
            raise RefusedError(f"{where}: `tool_use` ids must be unique")
        if bad := [call for call in calls if not _CALL_ID.fullmatch(call)]:
            raise RefusedError(f"{where}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {bad}")
        known |= set(calls)
        before = turns[number - 1][1] if number else []
        asked = [block["id"] for block in before if block["type"] == "tool_use"]
        if set(results) - set(asked):
            raise RefusedError(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks")
        if set(asked) - set(results):
            raise RefusedError(f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after")
        if len(set(results)) != len(results):
            raise RefusedError(f"{where}: each tool_use must have a single result")
        if results and [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
            raise RefusedError(f"{where}: tool_result blocks come first in a message")


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Consecutive messages of one role are one turn."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        if not turns or turns[-1][0] != message["role"]:
            turns.append((message["role"], []))
        turns[-1][1].extend(_blocks(message["content"]))
    return turns
