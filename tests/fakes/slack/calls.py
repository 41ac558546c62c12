"""What a method is called with, whichever way it was sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Json, Workspace, World

AS_JSON = ("blocks", "attachments", "metadata", "view", "chunks", "prompts", "loading_messages")
"""Arguments that are JSON in text when the rest is a form."""


@dataclass(frozen=True)
class ApiCall:
    """One request to the Web API, as it was received."""

    method: str
    arguments: Json
    token: str


@dataclass(frozen=True)
class Caller:
    """Whose bot is calling."""

    workspace: Workspace
    token: str

    @property
    def team(self) -> str:
        """Id of its workspace."""
        return self.workspace.team


async def read_call(request: web.Request) -> ApiCall:
    """The call in a request: arguments from the query, a form or JSON. Raises `Refused`."""
    arguments: Json = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = await request.json()
        except ValueError:
            raise Refused("invalid_json") from None
        if not isinstance(body, dict):
            raise Refused("json_not_object")
        arguments |= body
    else:
        arguments |= {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    for name in AS_JSON:
        if isinstance(arguments.get(name), str):
            arguments[name] = _loaded(name, arguments[name])
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    token = str(arguments.pop("token", "")) or token
    return ApiCall(request.match_info["method"], {n: v for n, v in arguments.items() if v is not None}, token)


def _loaded(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Refused(f"invalid_{name}_format" if name in {"blocks", "metadata"} else "invalid_arguments") from None


def caller_of(world: World, token: str) -> Caller:
    """Whose token it is. Raises `Refused`."""
    if not token or token.startswith("Basic "):
        raise Refused("not_authed")
    if token == world.app_token:
        raise Refused("not_allowed_token_type")
    known = world.tokens.get(token)
    if known is None:
        raise Refused("invalid_auth")
    if known.revoked:
        raise Refused("token_revoked")
    if known.expires_at is not None and world.clock.moved >= known.expires_at:
        raise Refused("token_expired")
    return Caller(world.workspaces[known.team], token)


def required(arguments: Json, name: str, error: str = "invalid_arguments") -> str:
    """An argument that has to be there. Raises `Refused`."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(error, [f"[ERROR] missing required field: {name}"] if error == "invalid_arguments" else ())
    return value


def yes(arguments: Json, name: str) -> bool:
    """A boolean argument: forms say it in words."""
    return str(arguments.get(name, "")).lower() in {"1", "true"}
