"""Whether Microsoft gives the bot its token, and one for it. Asking for a token changes nothing there."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.tokens import connect, tokens_of
from bot.findings import Finding, HeardTimes, doubtful, fine, remedy_for, wrong
from bot.platform import NotConnected

_TOKEN, _KEYS, _ENDPOINT = "teams token", "teams keys", "teams endpoint"  # names of checks
_SECONDS = 8.0
_PAGE = "docs/teams.md#register-the-bot"


async def teams_findings(config: TeamsConfig, public_url: str | None, times: HeardTimes) -> list[Finding]:
    """What Microsoft says of the bot, and what it needs to reach us."""
    if not config.app_id:
        return [fine(_TOKEN, "TEAMS_LOCAL_UNAUTHENTICATED: local clients need none")]
    token, keys = await asyncio.gather(_token(config), _keys(config, times))
    return [*token, *keys, _endpoint(public_url)]


async def _token(config: TeamsConfig) -> list[Finding]:
    tokens = tokens_of(config)
    try:
        await connect(config, tokens)
        claims = _claims(await tokens.token())
    except NotConnected as refusal:
        return [wrong(_TOKEN, refusal.sentence, f"https://entra.microsoft.com (App registrations), and {_PAGE}")]
    except CallFailed as failure:
        if config.app_type == "UserAssignedMSI":
            where = f"MICROSOFT_APP_TYPE: this machine's managed identity cannot be asked ({failure.error})"
            remedy = (
                f"Give this machine the identity MICROSOFT_APP_ID, or set the type of an app with a secret: {_PAGE}"
            )
            return [wrong(_TOKEN, where, remedy)]
        where = f"TEAMS_LOGIN_URL: Microsoft cannot be asked for the bot's token ({failure.error})"
        reach = "Look whether this machine reaches it (a proxy? HTTPS_PROXY)."
        return [wrong(_TOKEN, where, remedy_for(failure.error, reach))]
    finally:
        await tokens.close()
    odd = _odd(claims, config)
    if odd:
        return [wrong(_TOKEN, odd, f"Compare the MICROSOFT_ and TEAMS_ variables with Entra: {_PAGE}")]
    return [fine(_TOKEN, f"MICROSOFT_APP_ID: {config.app_id} gets its token")]


def _odd(claims: Mapping[str, Any], config: TeamsConfig) -> str:
    """What of a token is not as it should be; empty: nothing, or it cannot be read, as not every token can."""
    audience = claims.get("aud")
    if isinstance(audience, str) and audience.rstrip("/") != config.cloud.token_scope.rstrip("/"):
        return "TEAMS_TOKEN_SCOPE: the token is for another service than the Bot Connector"
    if claims.get("appid", config.app_id) != config.app_id:
        return "MICROSOFT_APP_ID: the token is another app's"
    if config.app_type == "SingleTenant" and claims.get("tid", config.tenant) != config.tenant:
        return "MICROSOFT_APP_TENANT_ID: the token is another tenant's"
    return ""


def _claims(token: str) -> Mapping[str, Any]:
    """What a token says; nothing where it is none that can be read. It comes from who signs it: no one verifies it."""
    try:
        part = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, binascii.Error, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


async def _keys(config: TeamsConfig, times: HeardTimes) -> list[Finding]:
    http = Http()
    try:
        answer = await http.request("openid", "GET", config.cloud.openid_metadata_url, seconds=_SECONDS)
        times.hear("Microsoft", answer.headers)
        if answer.status == 200 and isinstance(answer.object().get("jwks_uri"), str):
            return [fine(_KEYS, "TEAMS_OPENID_METADATA_URL: says with which keys the Bot Connector signs")]
        why = f"it answered {answer.status} without keys"
    except CallFailed as failure:
        why = failure.error
    finally:
        await http.close()
    where = f"TEAMS_OPENID_METADATA_URL: the Bot Connector's keys cannot be had ({why}), so nothing of Teams is taken"
    reach = "Look whether this machine reaches it; other clouds' addresses are in docs/teams.md."
    return [wrong(_KEYS, where, remedy_for(why, reach))]


def _endpoint(public_url: str | None) -> Finding:
    if public_url is None:
        remedy = f"Set PUBLIC_URL to where Microsoft reaches this server: {_PAGE}"
        return doubtful(_ENDPOINT, "PUBLIC_URL: is not set, and Microsoft has to call us", remedy)
    return fine(_ENDPOINT, f"the bot's messaging endpoint in Azure has to be {public_url}/api/messages")
