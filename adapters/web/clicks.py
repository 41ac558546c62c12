"""What all clicks have in common: their key, the id in their address, and the HTTP answer to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from adapters.web.door import Visitor, json_answer
from adapters.web.refusal import RefusalError
from adapters.web.render import click_json
from bot.domain import AlreadySettled, ClickResult, Invalid, Refused, Settled, Unknown

_STATUS: dict[type[ClickResult], int] = {Settled: 200, AlreadySettled: 409, Refused: 403, Unknown: 404, Invalid: 422}


def click_answer(result: ClickResult) -> web.Response:
    """The answer to one click: its kind as the status too, and `error` wherever nothing was changed."""
    body = click_json(result)
    if not isinstance(result, Settled):
        body["error"] = body["text"]
    return json_answer(body, status=_STATUS[type(result)])


def clicks_answer(results: Mapping[str, ClickResult]) -> web.Response:
    """The answer to a click on several, by id; what each came to is in `results`."""
    body: dict[str, Any] = {"results": {subject: click_json(result) for subject, result in results.items()}}
    if not results or any(isinstance(result, Settled) for result in results.values()):
        return json_answer(body)
    first = next(iter(results.values()))
    told = click_json(first)
    return json_answer(body | told | {"error": told["text"]}, status=_STATUS[type(first)])


def click_key(client_id: str, visitor: Visitor) -> str:
    """The click's identity: the same one sent twice by the same person is the same."""
    return f"web:{client_id}:{visitor.person.person_id}"


def id_of(request: web.Request) -> str:
    """The id in the address. Raises `RefusalError` (404): what cannot be one names nothing."""
    text = request.match_info["id"]
    if len(text) > 500 or "\0" in text or not text.isprintable():
        raise RefusalError(404, "There is no such thing here.")
    return text
