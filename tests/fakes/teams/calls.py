"""What the fake is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.fakes.teams.refused import Refused

Json = dict[str, Any]


@dataclass(frozen=True)
class ApiCall:
    """One request, as it was received."""

    method: str
    """`POST`, `GET`…"""
    path: str
    """From `/v3/` on, decoded."""
    query: Mapping[str, str]
    body: Json
    """The JSON, or the fields of a form; `{}`: none."""
    token: str
    """What stood behind `Bearer`."""
    verb: str
    """`send`, `update`, `delete`, `open_chat`, `open_thread`, `member`, `members`; elsewhere `token`, `metadata`,
    `keys`, `managed_identity`."""
    conversation: str = ""
    """The id in the path."""


async def read_body(request: web.Request) -> Json:
    """The body of a request. Raises `Refused`."""
    if not request.can_read_body:
        return {}
    if request.content_type != "application/json":
        return {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    try:
        body = json.loads(await request.text())
    except ValueError:
        raise Refused("BadSyntax", "The request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise Refused("BadSyntax", "The request body is not an object.")
    return body


def bearer(request: web.Request) -> str:
    """The token of a request; empty: none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
