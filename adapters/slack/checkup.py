"""Whether Slack takes our tokens, and lets the app do what it has to do. Nothing is changed there: an unused address of
a WebSocket ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from slack_sdk.errors import SlackApiError

from adapters.shared.calls import CallFailed
from adapters.shared.http import failing
from adapters.slack.config import SCOPES, SlackConfig
from adapters.slack.web_api.client import SlackHttpClient, refusal_of
from bot.findings import Finding, HeardTimes, doubtful, fine, remedy_for, wrong

_TOKEN, _SCOPES, _APP_TOKEN, _EVENTS = "slack token", "slack scopes", "slack app token", "slack events"
_PAGE = "https://api.slack.com/apps"


async def slack_findings(config: SlackConfig, times: HeardTimes) -> list[Finding]:
    """What Slack says of our tokens, and what it needs to reach us."""
    http = SlackHttpClient(config.api_url)
    try:
        bot, app = await asyncio.gather(_bot(http, config, times), _app(http, config))
    finally:
        await http.close()
    return [*bot, *app, *_events(config)]


async def _bot(http: SlackHttpClient, config: SlackConfig, times: HeardTimes) -> list[Finding]:
    if config.bot_token is None:
        where = "SLACK_CLIENT_ID: each workspace that installs the app has its own, which is not asked about here"
        return [fine(_TOKEN, where)]
    try:
        with failing("auth.test"):
            answer = await http.client.api_call("auth.test", http_verb="GET", params={"token": config.bot_token})
    except SlackApiError as error:
        return [_refused(_TOKEN, "SLACK_BOT_TOKEN", refusal_of("auth.test", error.response))]
    except CallFailed as failure:
        return [_refused(_TOKEN, "SLACK_BOT_TOKEN", failure)]
    headers: Mapping[str, str] = {name.title(): value for name, value in answer.headers.items()}
    times.hear("Slack", headers)
    team = answer.get("team") or answer.get("team_id")
    return [fine(_TOKEN, f"SLACK_BOT_TOKEN: is good for the workspace {team}"), _scopes(headers)]


def _scopes(headers: Mapping[str, str]) -> Finding:
    granted = {each.strip() for each in headers.get("X-Oauth-Scopes", "").split(",")} - {""}
    missing = [each for each in SCOPES if each not in granted]
    if not missing:
        return fine(_SCOPES, f"all {len(SCOPES)} of manifest.yml are granted")
    return wrong(
        _SCOPES,
        f"the app has not been granted {', '.join(missing)}",
        f"Paste manifest.yml at {_PAGE} (App Manifest), then press Install App → Reinstall to Workspace.",
    )


async def _app(http: SlackHttpClient, config: SlackConfig) -> list[Finding]:
    if config.app_token is None:
        return []
    try:
        await http.request("apps.connections.open", {}, token=config.app_token)
    except CallFailed as failure:
        return [_refused(_APP_TOKEN, "SLACK_APP_TOKEN", failure)]
    return [fine(_APP_TOKEN, "SLACK_APP_TOKEN: opens Socket Mode")]


def _events(config: SlackConfig) -> list[Finding]:
    if config.socket_mode:
        return []
    if config.public_url is None:
        remedy = "Set PUBLIC_URL to where Slack reaches this server, or SLACK_APP_TOKEN for Socket Mode: docs/slack.md"
        return [doubtful(_EVENTS, "PUBLIC_URL: is not set, and Slack has to call us", remedy)]
    return [fine(_EVENTS, f"the app’s request URL at {_PAGE} has to be {config.public_url}/slack/events")]


def _refused(what: str, variable: str, failure: CallFailed) -> Finding:
    if failure.permanent and not failure.error.startswith("http_"):
        page = "Basic Information → App-Level Tokens" if what == _APP_TOKEN else "OAuth & Permissions"
        return wrong(what, f"{variable}: Slack refuses it ({failure.error})", f"Copy it anew from {_PAGE}, {page}.")
    reach = "Look whether this machine reaches SLACK_API_URL (a proxy? HTTPS_PROXY), and https://slack-status.com"
    return wrong(what, f"{variable}: Slack cannot be asked ({failure.error})", remedy_for(failure.error, reach))
