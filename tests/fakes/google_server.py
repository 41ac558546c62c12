"""A stand-in for Google's `:streamGenerateContent` (the Gemini API), written from the types of Google's SDK: a request
has to be what they describe, key by key, and keep the rules of the documentation; an answer is made of their types.

It is no substitute for the service: what neither the types nor the documentation say is not in it.

async with fake_google([Reply(text="Hello")]) as server:
    ... server.base_url ... server.requests ... server.refused
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from google.genai import types
from pydantic import ValidationError

from tests.fakes.model_service import ModelService, RefusedError, data_event, object_of, running, words
from tests.fakes.openai_server import Brain, Reply, Request

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_KEYS: Mapping[str, Any] = {
    "contents": types.Content,
    "tools": types.Tool,
    "toolConfig": types.ToolConfig,
    "safetySettings": types.SafetySetting,
    "systemInstruction": types.Content,
    "generationConfig": types.GenerationConfig,
    "cachedContent": str,
}
_SCHEMA_KEYS = frozenset(
    {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems"}
    | {"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties"}
    | {"required", "propertyOrdering"}
)
"""What the documentation lists for schemas in JSON Schema (`GenerationConfig.responseJsonSchema`)."""
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class FakeGoogle(ModelService):
    """The running server."""

    def check(self, request: web.Request, body: Request) -> None:
        if request.query.get("alt") != "sse":
            raise RefusedError("without alt=sse the answer is one array, which this product does not read")
        if "key" in request.query:
            raise RefusedError("a key in the address is in the log of every proxy")
        for name, value in body.items():
            if name not in _KEYS:
                raise RefusedError(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
            for item in value if isinstance(value, list) else [value]:
                _check_type(item, _KEYS[name], name)
        _check_tools(body.get("tools", []))
        _check_contents(body.get("contents", []), request.match_info["model"])
        if system := body.get("systemInstruction"):
            _check_parts(system, "systemInstruction")

    def error(self, status: int, error: Mapping[str, Any]) -> Any:
        return {"error": {"code": status, "message": "no", "status": _STATUSES.get(status, "UNKNOWN"), **error}}

    def events(self, body: Request, reply: Reply) -> Iterator[bytes]:
        parts: list[list[types.Part]] = [[types.Part(text=word)] for word in words(reply.text)]
        if reply.calls:
            calls = [types.FunctionCall(name=call.name, args=object_of(call.text)) for call in reply.calls]
            parts.append([types.Part(function_call=call, thought_signature=b"thought of") for call in calls])
        for some in parts:
            yield _event([types.Candidate(content=types.Content(role="model", parts=some), index=0)], reply)
        reason = types.FinishReason(reply.finish_reason or "STOP")
        content = types.Content(role="model", parts=[types.Part(text="")])
        yield _event([types.Candidate(content=content, finish_reason=reason, index=0)], reply)


@asynccontextmanager
async def fake_google(script: Sequence[Reply] | Brain) -> AsyncIterator[FakeGoogle]:
    """Run a server with a script (one reply per request) or a function of the request."""
    server = FakeGoogle(script)
    async with running(server, "/v1beta/models/{model}:streamGenerateContent"):
        yield server


def _event(candidates: list[types.Candidate], reply: Reply) -> bytes:
    given, made = reply.usage
    response = types.GenerateContentResponse(
        candidates=candidates,
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=given, candidates_token_count=made, total_token_count=given + made
        ),
        model_version="gemini-fake",
        response_id="fake",
    )
    return data_event(response.model_dump_json(by_alias=True, exclude_none=True))


# ------------------------------------------------------------------------------------------------ the SDK's types


def _check_type(value: Any, wanted: Any, where: str) -> None:
    try:
        if wanted is str:
            if not isinstance(value, str):
                raise RefusedError(f"Invalid value at '{where}'")
        else:
            wanted.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise RefusedError(f"Invalid JSON payload received. At '{place}': {first['msg']}") from error


# ------------------------------------------------------------------------------------------------ the documentation


def _check_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    functions = [function for tool in tools for function in tool.get("functionDeclarations", [])]
    names = [function.get("name", "") for function in functions]
    if len(set(names)) != len(names):
        raise RefusedError(f"Duplicate function declaration found: {names}")
    for function in functions:
        where = f"tools[0].function_declarations[{function.get('name')}]"
        if not _FUNCTION.fullmatch(function.get("name", "")):
            raise RefusedError(
                f"{where}.name: Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
                "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
            )
        if "parameters" in function and "parametersJsonSchema" in function:
            raise RefusedError(f"{where}: parameters and parameters_json_schema are mutually exclusive")
        schema = function.get("parametersJsonSchema")
        if schema is not None:
            if schema.get("type") != "object":
                raise RefusedError(f"{where}.parameters_json_schema: must describe an object")
            _check_schema(schema, f"{where}.parameters_json_schema", schema)


def _check_schema(schema: Any, where: str, root: Mapping[str, Any]) -> None:
    if not isinstance(schema, dict):
        raise RefusedError(f"{where}: must be an object")
    if unknown := schema.keys() - _SCHEMA_KEYS:
        raise RefusedError(f"{where}: keywords that are not supported: {sorted(unknown)}")
    if (reference := schema.get("$ref")) is not None:
        if more := [key for key in schema if not key.startswith("$")]:
            raise RefusedError(f"{where}: with $ref, no other properties may be set: {more}")
        if not reference.startswith("#/$defs/") or reference.removeprefix("#/$defs/") not in root.get("$defs", {}):
            raise RefusedError(f"{where}: {reference} refers to nothing")
    if not all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in schema.get("enum", [])):
        raise RefusedError(f"{where}.enum: only strings and numbers")
    properties = schema.get("properties", {})
    if missing := [name for name in schema.get("required", []) if name not in properties]:
        raise RefusedError(f"{where}.required: property is not defined: {missing}")
    below = [*properties.values(), *schema.get("$defs", {}).values()]
    for key in ("anyOf", "oneOf", "prefixItems"):
        below += schema.get(key, [])
    if "items" in schema:
        below.append(schema["items"])
    if not isinstance(schema.get("additionalProperties", True), bool):
        below.append(schema["additionalProperties"])
    for each in below:
        _check_schema(each, where, root)


def _check_parts(content: Mapping[str, Any], where: str) -> None:
    parts = content.get("parts") or []
    if not parts:
        raise RefusedError(f"{where}.parts must not be empty")
    for part in parts:
        if not part.keys() - {"thoughtSignature", "thought"}:
            raise RefusedError(f"{where}.parts: required oneof field 'data' must have one initialized field")
        if "text" in part and not part["text"].strip():
            raise RefusedError(f"{where}: Unable to submit request because it has an empty text parameter.")
        if unknown := part.keys() - {"text", "functionCall", "functionResponse", "thoughtSignature"}:
            raise RefusedError(f"{where}: {sorted(unknown)} is nothing that this product may send")


def _check_contents(contents: Sequence[Mapping[str, Any]], model: str) -> None:
    if not contents:
        raise RefusedError("contents are required")
    if contents[-1].get("role") != "user":
        raise RefusedError("the last turn has to be a user's, or a function response")
    said = max(
        (n for n, c in enumerate(contents) if c.get("role") == "user" and not _of(c, "functionResponse")), default=-1
    )
    for number, content in enumerate(contents):
        where, role = f"contents[{number}]", content.get("role")
        if role not in {"user", "model"}:
            raise RefusedError("Please use a valid role: user, model.")
        _check_parts(content, where)
        calls, results = _of(content, "functionCall"), _of(content, "functionResponse")
        if (calls and role != "model") or (results and role != "user"):
            raise RefusedError(f"{where}: a function call is the model's, its response the user's")
        before = contents[number - 1] if number else {}
        asked = _of(before, "functionCall")
        if calls and before.get("role") != "user":
            raise RefusedError(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if len(results) != len(asked):
            raise RefusedError(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if [result["name"] for result in results] != [call["name"] for call in asked]:
            raise RefusedError(f"{where}: function responses in another order than the calls")
        if calls and number > said and _needs_signatures(model):
            first = next(part for part in content["parts"] if "functionCall" in part)
            if not first.get("thoughtSignature"):
                raise RefusedError("Function call is missing a thought_signature in functionCall parts.")
    if _of(contents[-1], "functionCall"):
        raise RefusedError("a function call without its response")


def _of(content: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part[kind] for part in content.get("parts") or [] if kind in part]


def _needs_signatures(model: str) -> bool:
    found = re.search(r"gemini-(\d+)", model)
    return found is not None and int(found[1]) >= 3
