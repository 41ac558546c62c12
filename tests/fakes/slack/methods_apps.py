"""auth.*, oauth.*, bots.info, assistant.threads.*, agents.sessions.*: the app and its tokens, and what
is shown of it beside the chat."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable

from tests.fakes.slack.calls import ApiCall, Caller, required
from tests.fakes.slack.places import readable
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import APP_ID, Json, Token, World

SESSION_STATES = {"active", "processing", "suspended", "closed"}
TOKEN_LIVES = 43_200
"""Seconds that a rotated token is good for (Slack: 12 h)."""


def auth_test(_world: World, caller: Caller, _arguments: Json) -> Json:
    """auth.test; the scopes are in the header `x-oauth-scopes`."""
    workspace = caller.workspace
    return {
        "url": f"https://{workspace.domain}.slack.com/",
        "team": workspace.name,
        "user": "countersign",
        "team_id": workspace.team,
        "user_id": workspace.bot_user,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": False,
    }


def auth_revoke(world: World, caller: Caller, _arguments: Json) -> Json:
    """auth.revoke."""
    world.tokens[caller.token].revoked = True
    return {"revoked": True}


def bot_info(world: World, caller: Caller, arguments: Json) -> Json:
    """bots.info."""
    bot = required(arguments, "bot", "bot_not_found")
    if bot == caller.workspace.bot_id:
        return {"bot": {"id": bot, "app_id": APP_ID, "user_id": caller.workspace.bot_user, "name": "countersign"}}
    for (team, user), facts in world.users.items():
        if team == caller.team and facts["is_bot"] and facts["profile"].get("bot_id", user) == bot:
            return {"bot": {"id": bot, "app_id": "A9", "user_id": user, "name": facts["name"]}}
    raise Refused("bot_not_found")


def set_assistant(kind: str, *needs: str) -> Callable[[World, Caller, Json], Json]:
    """assistant.threads.set…: what was set is remembered in order."""

    def method(world: World, caller: Caller, arguments: Json) -> Json:
        channel = readable(world, caller, required(arguments, "channel_id", "channel_not_found"))
        thread_ts = required(arguments, "thread_ts", "invalid_thread_ts")
        if missing := [name for name in needs if name not in arguments]:
            raise Refused("invalid_arguments", [f"[ERROR] missing required field: {name}" for name in missing])
        what = {name: copy.deepcopy(v) for name, v in arguments.items() if name not in {"channel_id", "thread_ts"}}
        world.assistant.append({"kind": kind, "channel": channel.id, "thread_ts": thread_ts, **what})
        return {}

    return method


def set_session(world: World, caller: Caller, arguments: Json) -> Json:
    """agents.sessions.setStatus: remembered in order, as the kind `session`."""
    channel = readable(world, caller, required(arguments, "channel_id", "channel_not_found"))
    thread_ts = required(arguments, "thread_ts", "invalid_thread_ts")
    status = required(arguments, "status")
    if status not in SESSION_STATES:
        raise Refused("invalid_arguments", ["[ERROR] must be a valid enum value [json-pointer:/status]"])
    world.assistant.append({"kind": "session", "channel": channel.id, "thread_ts": thread_ts, "status": status})
    return {"status": status, "agent_status": status}


def oauth_access(world: World, call: ApiCall) -> Json:
    """oauth.v2.access: a code of an install, or a refresh token, for a token."""
    _authenticated(world, call)
    if call.arguments.get("grant_type") == "refresh_token":
        team = world.refresh_tokens.pop(call.arguments.get("refresh_token", ""), None)
        if team is None:
            raise Refused("invalid_refresh_token")
        return _granted(world, team, "", rotating=True)
    code = world.codes.get(required(call.arguments, "code", "invalid_code"))
    if code is None:
        raise Refused("invalid_code")
    if code["used"]:
        raise Refused("code_already_used")
    if code["redirect_uri"] is not None and call.arguments.get("redirect_uri") != code["redirect_uri"]:
        raise Refused("bad_redirect_uri")
    code["used"] = True
    return _granted(world, code["team"], code["user"], rotating=code["rotating"])


def connections_open(world: World, call: ApiCall) -> Json:
    """apps.connections.open, with the app's own token: where the WebSocket is."""
    if not call.token:
        raise Refused("not_authed")
    if call.token != world.app_token:
        raise Refused("not_allowed_token_type" if call.token in world.tokens else "invalid_auth")
    return {"url": f"{world.base_url.replace('http', 'ws', 1)}/link?ticket={world.next_id('ticket')}&app_id={APP_ID}"}


def _authenticated(world: World, call: ApiCall) -> None:
    client_id, secret = call.arguments.get("client_id", ""), call.arguments.get("client_secret", "")
    if call.token.startswith("Basic "):
        client_id, _, secret = base64.b64decode(call.token.removeprefix("Basic ")).decode().partition(":")
    if client_id != world.client_id:
        raise Refused("invalid_client_id")
    if secret != world.client_secret:
        raise Refused("bad_client_secret")


def _granted(world: World, team: str, user: str, *, rotating: bool) -> Json:
    workspace = world.workspaces[team]
    token = world.next_id("xoxe.xoxb-" if rotating else "xoxb-")
    world.tokens[token] = Token(team, expires_at=world.clock.moved + TOKEN_LIVES if rotating else None)
    rotation: Json = {}
    if rotating:
        rotation = {"refresh_token": world.next_id("xoxe-1-"), "expires_in": TOKEN_LIVES}
        world.refresh_tokens[rotation["refresh_token"]] = team
    return {
        "app_id": APP_ID,
        "authed_user": {"id": user} if user else {},
        "scope": workspace.scopes,
        "token_type": "bot",
        "access_token": token,
        "bot_user_id": workspace.bot_user,
        "team": {"id": team, "name": workspace.name},
        "enterprise": None,
        "is_enterprise_install": False,
        **rotation,
    }
