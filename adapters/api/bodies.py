"""What requests say: read with limits, and checked by their models. What cannot be read is a `Problem`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ValidationError

from adapters.api.operations import ModelT
from adapters.shared.problems import Problem
from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.untrusted_json import LONG, MalformedBodyError, has_too_many_values, json_in, refuse_unsound
from graph.json_values import storable

LARGEST_BODY = 256 * 1024
"""Bytes."""
DEEPEST = 32
"""How deep a body may nest."""
MOST_ERRORS = 20
"""Mistakes that one answer names."""


async def read_body(request: web.Request, kind: type[ModelT]) -> ModelT:
    """The request's body. Raises `Problem`: 400, 408, 413, 415, 422."""
    if request.content_type != "application/json":
        raise Problem(415, "The body must be JSON: send Content-Type: application/json.")
    too_large = f"The body is larger than {LARGEST_BODY // 1024} KiB."
    try:
        raw = await read_whole_body(request, LARGEST_BODY, too_large)
    except BodyNotReadError as error:
        raise Problem(error.status, str(error)) from None
    if len(raw) > LONG:
        return await asyncio.to_thread(_checked, raw, kind)
    return _checked(raw, kind)


def _checked(raw: bytes, kind: type[ModelT]) -> ModelT:
    if has_too_many_values(raw):
        raise Problem(413, "The body has too many values.")
    try:
        value = json_in(raw)
        refuse_unsound(value, DEEPEST)
    except MalformedBodyError as error:
        raise Problem(400, f"The body isn’t valid JSON: {error}.") from None
    if issubclass(kind, LooseBody):
        return checked(storable(value), kind)
    if value != storable(value):
        raise Problem(400, "The body has a character that isn’t text (NUL or half of a surrogate pair).")
    return checked(value, kind, strict=True)


def read_query(request: web.Request, kind: type[ModelT]) -> ModelT:
    """The query of a request, in which each name stands once. Raises `Problem`: 422."""
    if any(value != storable(value) for value in request.query.values()):
        raise Problem(422, "The query has a character that isn’t text (NUL or half of a surrogate pair).")
    twice = sorted({name for name in request.query if len(request.query.getall(name)) > 1})
    if twice:
        raise Problem(422, "A parameter is given more than once.", errors=dict.fromkeys(twice, "is given twice"))
    return checked(dict(request.query), kind)


def checked(value: object, kind: type[ModelT], *, strict: bool | None = None) -> ModelT:
    """A value as its model says it must be. Raises `Problem`: 422, with what is wrong where, and no values.

    `strict`: nothing that is of another type is taken for what it could mean.
    """
    try:
        return kind.model_validate(value, strict=strict)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)[:MOST_ERRORS]
        errors = {_where(each): each["msg"].removeprefix("Value error, ") for each in found}
        raise Problem(422, "The request isn’t valid.", errors=errors) from None


def _where(error: Mapping[str, Any]) -> str:
    return ".".join(str(part) for part in error["loc"]) or "body"


NOT_BLANK: dict[str, Any] = {"minLength": 1, "pattern": r"\S"}
"""JSON Schema of a text that says something, where the answer to another has a status of its own."""


class Body(BaseModel):
    """A body, or a part of one. What is not named in it is refused."""

    model_config = {"frozen": True, "extra": "forbid"}


class LooseBody(BaseModel):
    """A body of a client that may send more than is asked for, and characters that are no text: those are left out."""

    model_config = {"frozen": True, "extra": "ignore"}
