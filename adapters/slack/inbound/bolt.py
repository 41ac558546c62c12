"""What Slack sends, by either way, through Bolt to whoever handles it. Nothing is decided here.

Bolt routes, authorises and acknowledges. Requests over HTTP are verified before anything in them is parsed, which is
earlier than Bolt's own check comes; after that both ways look alike to it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack import actions
from adapters.slack.inbound.clicks import Clicks
from adapters.slack.inbound.commands import Commands
from adapters.slack.inbound.events import Ears
from adapters.slack.inbound.gestures import read_click, read_command, read_shortcut, read_submission
from adapters.slack.inbound.listening import Listening
from adapters.slack.inbound.modals import Modals
from adapters.slack.inbound.not_installed import NotInstalled
from adapters.slack.inbound.shortcuts import Shortcuts
from adapters.slack.web_api.wire import QUIET
from adapters.slack.web_api.workspaces import Authorize

log = structlog.get_logger(__name__)

Payload = dict[str, Any]
_ANYTHING = re.compile("")


@dataclass(frozen=True, slots=True)
class Handlers:
    """Who handles what."""

    listening: Listening
    clicks: Clicks
    modals: Modals
    commands: Commands
    shortcuts: Shortcuts
    not_installed: NotInstalled


class Inbound:
    """Takes payloads that are known to come from Slack, and answers them when what they say is kept."""

    def __init__(self, handlers: Handlers, authorize: Authorize, api_url: str, *, agent_view: bool) -> None:
        self._app = AsyncApp(
            name="countersign",
            logger=QUIET,
            client=AsyncWebClient(base_url=api_url, logger=QUIET),
            process_before_response=True,
            authorize=_authorized_by(authorize),
            request_verification_enabled=False,
            ignoring_self_events_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
        )
        _route(self._app, handlers, agent_view=agent_view)

    async def take(self, payload: Payload) -> BoltResponse:
        """The answer to a payload that `envelope.checked` has passed. 503: it could not be kept, send it again."""
        # Slack's signature was checked already, or there is none to check: to Bolt both are as in Socket Mode.
        return await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))


def _route(app: AsyncApp, handlers: Handlers, *, agent_view: bool) -> None:
    listening, commands, shortcuts = handlers.listening, handlers.commands, handlers.shortcuts

    def hears(handle: Callable[[Mapping[str, Any], Ears], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def listener(event: Payload, context: AsyncBoltContext) -> None:
            await handle(event, replace(ears_of(context), agent_view=agent_view))

        return listener

    async def clicked(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        click = read_click(body, ears_of(context).team)
        if click is None or not await handlers.clicks.handle(click):
            log.warning("slack_click_not_known", action=click.action if click else None)
        await ack()

    async def submitted(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        submission = read_submission(body, ears_of(context).team)
        if submission is None:
            log.warning("slack_submission_not_read")
            await ack()
            return
        await _answer(ack, await handlers.modals.handle(submission))

    async def commanded(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        command = read_command(body, ears_of(context).team)
        await _answer(ack, await commands.handle(command) if command else {})

    async def asked_about(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        ears = ears_of(context)
        shortcut = read_shortcut(body, ears.team)
        if shortcut is not None:
            shortcuts.handle(shortcut, ears.bot_user)
        await ack()

    app.event("message")(hears(listening.message))
    app.event("app_mention")(hears(listening.message))
    app.event("app_home_opened")(hears(listening.home_opened))
    app.event("assistant_thread_started")(hears(listening.agent_opened))
    app.event("agent_session_stopped")(hears(listening.agent_stopped))
    app.event("user_change")(hears(listening.person_changed))
    app.event("app_uninstalled")(_whole(listening.uninstalled))
    app.event("tokens_revoked")(_whole(listening.revoked))
    app.event(_ANYTHING)(_not_known)
    app.action(_ANYTHING)(clicked)
    app.view(_ANYTHING)(submitted)
    app.view_closed(_ANYTHING)(_not_known)
    app.command(actions.COMMAND)(commanded)
    app.command(_ANYTHING)(_not_known)
    app.message_shortcut(actions.SHORTCUT)(asked_about)
    app.shortcut(_ANYTHING)(_not_known)
    app.options(_ANYTHING)(_not_known)
    app.error(_failing(handlers.not_installed))


def _whole(handle: Callable[[Mapping[str, Any]], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def listener(body: Payload) -> None:
        await handle(body)

    return listener


async def _not_known(body: Payload, ack: AsyncAck) -> None:
    """Acknowledged all the same: sent again, it would not be known either."""
    event = body.get("event")
    log.info("slack_payload_not_known", kind=body.get("type"), event_type=event.get("type") if event else None)
    await ack()


class _NotInstalledError(Exception):
    """The workspace has not installed us (any more)."""


def _authorized_by(authorize: Authorize) -> Callable[..., Awaitable[AuthorizeResult]]:
    """The same, but raising for a workspace we are not installed in: Bolt would apologise to its people at length."""

    async def authorized(enterprise_id: object, team_id: object, user_id: object) -> AuthorizeResult:
        result = await authorize(_word(enterprise_id), _word(team_id), _word(user_id))
        if result is None:
            raise _NotInstalledError
        return result

    return authorized


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _failing(not_installed: NotInstalled) -> Callable[..., Awaitable[BoltResponse]]:
    async def failed(error: Exception, body: Payload) -> BoltResponse:
        """It could not be kept (or we could not find out for whom): Slack sends events again, and shows people that
        their click did not work."""
        if isinstance(error, _NotInstalledError):
            return BoltResponse(status=200, body=not_installed.handle(body) or "")
        log.error("slack_payload_not_taken", exc_info=error)
        return BoltResponse(status=503, body="")

    return failed


async def _answer(ack: AsyncAck, body: Payload) -> None:
    if body:
        await ack(body)
    else:
        await ack()


def ears_of(context: AsyncBoltContext) -> Ears:
    """The installation that a payload was sent to."""
    us = context.authorize_result
    team = (us.team_id if us else None) or context.team_id or ""
    return Ears(team, (us.bot_user_id if us else None) or "", (us.bot_id if us else None) or "")
