"""`POST /slack/events`: the signature first, then the body, then Bolt routes it. Nothing is decided here.

Bolt routes, authorises and acknowledges. Requests over HTTP are verified before anything in them is parsed, which is
earlier than Bolt's own check; after that HTTP and Socket Mode look alike to it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock as SdkClock
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.untrusted_json import LONG, MalformedBodyError, json_in, part, refuse_unsound, words
from adapters.slack.actions import COMMAND, SHORTCUT
from adapters.slack.ids import SlackLocation, slack_id, slack_ts
from adapters.slack.inbound.clicks import SlackClickHandler, said
from adapters.slack.inbound.commands import SlackCommandHandler, ephemeral
from adapters.slack.inbound.events import SlackMessageHandler, SlackRecipient
from adapters.slack.inbound.payloads import read_click, read_command, read_shortcut, read_submission, web_address
from adapters.slack.outbound.posting import reply
from adapters.slack.render.posts import note
from adapters.slack.web_api.client import QUIET
from adapters.slack.web_api.workspaces import Authorize
from bot.domain import Clock
from bot.records.database import is_outage
from bot.repeated_failures import RepeatedFailure
from graph.json_values import storable
from translations import gettext as _

log = structlog.get_logger(__name__)
LARGEST_BODY = 1_000_000
"""Bytes. Slack's own stay well below: a message has 40,000 characters at most, a modal 250 kB."""


class SlackRequestVerifier:
    """Lets in what Slack has signed."""

    def __init__(self, inbound: SlackPayloadHandler, signing_secret: str, clock: Clock) -> None:
        self._inbound = inbound
        self._verifier = SignatureVerifier(signing_secret, _SignedAt(clock))

    async def handle(self, request: web.Request) -> web.Response:
        """200 with the answer; 400 malformed, 401 not from Slack or older than five minutes, 408 too slow, 413 too
        large, 503 could not be kept."""
        try:
            raw = await read_whole_body(request, LARGEST_BODY, "The body is too large.")
        except BodyNotReadError as error:
            return _refused(error.status, str(error))
        if not self._is_from_slack(request, raw):
            log.warning("slack_signature_refused", remote=request.remote)
            return _refused(401, "The signature is missing, wrong, or too old.")
        try:
            read = partial(decode, raw, request.content_type)
            payload = await asyncio.to_thread(read) if len(raw) > LONG else read()
        except MalformedBodyError as error:
            log.warning("slack_request_malformed", reason=str(error))
            return _refused(400, f"The request is malformed: {error}.")
        return await to_aiohttp_response(await self._inbound.take(payload))

    def _is_from_slack(self, request: web.Request, raw: bytes) -> bool:
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        # The verifier takes numbers, ASCII and UTF-8 for granted.
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12 and signature.isascii()):
            return False
        try:
            return self._verifier.is_valid(raw, timestamp, signature)
        except UnicodeDecodeError:
            return False


class _SignedAt(SdkClock):
    """Our clock, for the verifier."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock()


def _refused(status: int, error: str) -> web.Response:
    return web.json_response({"error": error}, status=status)


# --------------------------------------------------------------------------------------------- bodies
# Decoded, and checked as far as Bolt takes their shape for granted, so that none makes a 500.
DEEPEST = 64
"""How deep a payload may nest. Slack's own (a modal with its state) stay below 20."""
MOST_FIELDS = 100
"""Fields of a form-encoded body. Slack's slash commands have 14."""
_KINDS = {
    "event_callback": ("event",),
    "block_actions": ("user", "actions"),
    "block_suggestion": ("action_id",),
    "message_action": ("user", "callback_id"),
    "shortcut": ("user", "callback_id"),
    "view_submission": ("user", "view"),
    "view_closed": ("user", "view"),
    "url_verification": ("challenge",),
}
"""`type` of what Slack sends, and what has to be in it. Slash commands have no type but a `command`."""
_NAMED = ("enterprise", "team", "user", "channel")
"""Either an id or an object with one, depending on the payload."""
_OBJECTS = ("event", "view", "message", "previous_message", "item", "assistant_thread", "function", "function_data")
_WORDS = (
    *("type", "subtype", "callback_id", "command", "action_id", "response_url", "challenge", "thread_ts"),
    *(f"{name}_id" for name in _NAMED),
)
_LISTS = ("actions", "authorizations", "response_urls")
_NEVER_NOTHING = frozenset(_OBJECTS + _LISTS + _WORDS)
_KIND_OF: dict[str, tuple[type, ...]] = (
    dict.fromkeys(_NAMED, (str, dict))
    | dict.fromkeys(_OBJECTS, (dict,))
    | dict.fromkeys(_LISTS, (list,))
    | dict.fromkeys(_WORDS, (str,))
)


_OFTEN_ESCAPED = tuple((f"%{ord(sign):02X}", sign) for sign in '" ,:{}[]/\\')
"""What escapes of JSON in a form are mostly. None of them is a part of an escape, or of the form."""


def decode(raw: bytes, content_type: str) -> dict[str, Any]:
    """The payload of a request: JSON for events, a form for commands, JSON within a form for clicks and modals.

    Raises `MalformedBodyError`.
    """
    if content_type == "application/json":
        return _checked_json(raw)
    try:
        text = raw.decode("utf-8")
        for escaped, sign in _OFTEN_ESCAPED:  # takes a third of what `parse_qsl` does for them, of 0.1 ms for a card
            text = text.replace(escaped, sign)
        form = dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except UnicodeDecodeError as error:
        raise MalformedBodyError("the body is not UTF-8") from error
    except ValueError as error:
        raise MalformedBodyError("the body is neither JSON nor a form") from error
    return _checked_json(form["payload"].encode()) if "payload" in form else checked(form)


_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
"""The only way in which JSON that can be read holds NUL or halves of surrogate pairs."""


def _checked_json(text: bytes) -> dict[str, Any]:
    """The same, without going through all values when the text shows that nothing is to be taken out of them: 0.05 ms
    for a card."""
    return checked(json_in(text), storable if _UNSTORABLE.search(text) else _as_it_is)


def _as_it_is(payload: dict[str, Any]) -> dict[str, Any]:
    return payload


def checked(payload: object, without: Callable[[dict[str, Any]], Any] = storable) -> dict[str, Any]:
    """The payload, without what no database keeps (NUL, halves of surrogate pairs): `without` takes it out. Raises
    `MalformedBodyError`."""
    if not isinstance(payload, dict):
        raise MalformedBodyError("the body is not an object")
    refuse_unsound(payload, DEEPEST)
    if payload.get("ssl_check") == "1":
        return {"ssl_check": "1"}
    needed = ("command", "user_id", "channel_id") if "command" in payload else _KINDS.get(str(payload.get("type")))
    if needed is None:
        raise MalformedBodyError("this kind of payload is not for us")
    if missing := [name for name in needed if not payload.get(name)]:
        raise MalformedBodyError(f"it has no {' and no '.join(missing)}")
    sound: dict[str, Any] = without(_sound(payload))
    if "event" in sound and "type" not in sound["event"]:
        raise MalformedBodyError("its event has no type")
    if sound.get("type", "").startswith("view_") and "type" not in sound["view"]:
        raise MalformedBodyError("its view has no type")
    if not all("action_id" in action for action in sound.get("actions", ())):
        raise MalformedBodyError("one of its actions has no id")
    return sound


def _sound(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload, without the nothings that Bolt does not expect. Raises `MalformedBodyError` where something is of
    another kind than Bolt assumes."""
    sound = {name: value for name, value in payload.items() if value is not None or name not in _NEVER_NOTHING}
    for name in sound.keys() & _KIND_OF.keys():
        if sound[name] is not None and not isinstance(sound[name], _KIND_OF[name]):
            raise MalformedBodyError(f"{name} is not what it should be")
        if name in _OBJECTS:
            sound[name] = _sound(sound[name])
        elif name in _LISTS:
            if not all(isinstance(item, dict) for item in sound[name]):
                raise MalformedBodyError(f"{name} holds something that is no object")
            sound[name] = [_sound(item) for item in sound[name]]
    return sound


# ------------------------------------------------------------------------------------ routing by Bolt
Payload = dict[str, Any]
_ANYTHING = re.compile("")
_NOT_TAKEN = 503


@dataclass(frozen=True, slots=True)
class Handlers:
    """Who handles what."""

    messages: SlackMessageHandler
    clicks: SlackClickHandler
    commands: SlackCommandHandler
    background: BackgroundTasks


class SlackPayloadHandler:
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
        self._outage = RepeatedFailure("slack_payload_not_taken")
        _route(self._app, handlers, self._outage, agent_view=agent_view)

    async def take(self, payload: Payload) -> BoltResponse:
        """The answer to a payload that `envelope.checked` has passed. 503: it could not be kept, send it again."""
        # Slack's signature was checked already, or there is none to check: to Bolt both are as in Socket Mode.
        answer = await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))
        if answer.status != _NOT_TAKEN:
            self._outage.worked()
        return answer


def _route(app: AsyncApp, handlers: Handlers, outage: RepeatedFailure, *, agent_view: bool) -> None:
    messages, clicks, commands = handlers.messages, handlers.clicks, handlers.commands

    def hears(handle: Callable[[Mapping[str, Any], SlackRecipient], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def listener(event: Payload, context: AsyncBoltContext) -> None:
            await handle(event, replace(recipient_of(context), agent_view=agent_view))

        return listener

    async def clicked(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        click = read_click(body, recipient_of(context).team)
        if click is None or not await clicks.clicked(click):
            log.warning("slack_click_not_known", action=click.action if click else None)
        await ack()

    async def submitted(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        submission = read_submission(body, recipient_of(context).team)
        if submission is None:
            log.warning("slack_submission_not_read")
            await ack()
            return
        await _answer(ack, await clicks.submitted(submission))

    async def commanded(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        command = read_command(body, recipient_of(context).team)
        await _answer(ack, await commands.handle(command) if command else {})

    async def asked_about(body: Payload, ack: AsyncAck, context: AsyncBoltContext) -> None:
        recipient = recipient_of(context)
        shortcut = read_shortcut(body, recipient.team)
        if shortcut is not None:
            clicks.asked_about(shortcut, recipient.bot_user)
        await ack()

    app.event("message")(hears(messages.message))
    app.event("app_mention")(hears(messages.message))
    app.event("app_home_opened")(hears(messages.home_opened))
    app.event("assistant_thread_started")(hears(messages.agent_opened))
    app.event("agent_session_stopped")(hears(messages.agent_stopped))
    app.event("user_change")(hears(messages.person_changed))
    app.event("app_uninstalled")(_whole(messages.uninstalled))
    app.event("tokens_revoked")(_whole(messages.revoked))
    app.event(_ANYTHING)(_not_known)
    app.action(_ANYTHING)(clicked)
    app.view(_ANYTHING)(submitted)
    app.view_closed(_ANYTHING)(_not_known)
    app.command(COMMAND)(commanded)
    app.command(_ANYTHING)(_not_known)
    app.message_shortcut(SHORTCUT)(asked_about)
    app.shortcut(_ANYTHING)(_not_known)
    app.options(_ANYTHING)(_not_known)
    app.error(_failing(handlers.background, outage))


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
    """Wraps `authorize` so that it raises for a workspace we are not installed in: Bolt would apologise to its people
    at length."""

    async def authorized(enterprise_id: object, team_id: object, user_id: object) -> AuthorizeResult:
        result = await authorize(_word(enterprise_id), _word(team_id), _word(user_id))
        if result is None:
            raise _NotInstalledError
        return result

    return authorized


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _failing(background: BackgroundTasks, outage: RepeatedFailure) -> Callable[..., Awaitable[BoltResponse]]:
    async def failed(error: Exception, body: Payload) -> BoltResponse:
        """Answers when a request could not be kept (or we could not find out for whom): Slack sends events again, and
        shows people that their click did not work."""
        if isinstance(error, _NotInstalledError):
            return BoltResponse(status=200, body=_not_installed(body, background) or "")
        if is_outage(error):
            outage.failed(error, with_traceback=True)  # many are refused then
        else:
            log.error("slack_payload_not_taken", exc_info=error)
        return BoltResponse(status=_NOT_TAKEN, body="")

    return failed


async def _answer(ack: AsyncAck, body: Payload) -> None:
    if body:
        await ack(body)
    else:
        await ack()


def recipient_of(context: AsyncBoltContext) -> SlackRecipient:
    """The installation that a payload was sent to."""
    us = context.authorize_result
    team = (us.team_id if us else None) or context.team_id or ""
    return SlackRecipient(team, (us.bot_user_id if us else None) or "", (us.bot_id if us else None) or "")


# ------------------------------------------------------------------------------------------------ from elsewhere
# A workspace that has not installed the app (any more): there is no token to answer with.


def not_installed() -> str:
    """Returns what somebody is told whose workspace has removed us."""
    return _("Countersign is no longer installed in this workspace.")


def _not_installed(body: Mapping[str, Any], background: BackgroundTasks) -> dict[str, Any]:
    """The body of the answer, where that takes no token: whatever they clicked, nobody else would tell them. Empty when
    there is nothing to say."""
    if words(body, "command"):
        return ephemeral(note(not_installed()))
    if words(body, "type") == "view_submission":
        return said(_("Not installed"), not_installed())
    if response_url := web_address(body, "response_url"):
        background.start(_tell(response_url, _location(body)), "not installed")
    return {}


async def _tell(response_url: str, location: SlackLocation) -> None:
    if not await reply(response_url, location, note(not_installed())):
        log.info("slack_person_not_told", reason="not installed", channel=location.channel)


def _location(body: Mapping[str, Any]) -> SlackLocation:
    thread_ts = slack_ts(body, "message", "thread_ts") or slack_ts(part(body, "container"), "thread_ts")
    return SlackLocation("", slack_id(body, "channel", "id"), thread_ts)
