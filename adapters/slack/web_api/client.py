"""Slack's Web API: rate limits, one request with its answer or failure, and the client of a workspace's bot."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.shared.answers import AnswerTooLong, bounded_session
from adapters.slack.api import PATIENCE, ApiFailed

PACED = "chat.postMessage"
"""Slack: about one message a second in a channel, "short bursts" allowed."""
INTERVAL = 1.0
"""Seconds between two posts in a channel, in the long run."""
BURST = 10
"""Posts that may follow each other at once after a quiet time: the parts of a long answer and its cards."""
_MANY = 1_000
"""Lines remembered before those that lie idle are forgotten."""


@dataclass(frozen=True, slots=True)
class Line:
    """Calls that Slack counts together."""

    team: str
    method: str
    channel: str = ""


def line_of(team: str, method: str, channel: str) -> Line:
    """The line in which a call stands.

    Slack counts messages by channel (`chat.*`) and everything else by method and workspace, so a pause of
    `conversations.replies` in one channel holds for all of them.
    """
    return Line(team, method, channel if method.startswith("chat.") else "")


@dataclass(frozen=True, slots=True)
class Slot:
    """A caller's time."""

    at: float
    pauses: int


@dataclass(slots=True)
class _State:
    pauses: int = 0
    paused_until: float = 0.0
    full_until: float = 0.0
    """When the posts let through so far are paid for, at one interval each."""


class RateLimits:
    """Gives every call its time, first come, first served. Times are seconds on the caller's clock; nothing waits."""

    def __init__(self) -> None:
        self._states: dict[Line, _State] = {}

    def reserve(self, line: Line, now: float, until: float) -> Slot:
        """The time at which the call may go out; one that is later than `until` is not kept for it."""
        state = self._state(line, now)
        at = max(now, state.paused_until)
        if line.method == PACED:
            paid = max(state.full_until, at)
            at = max(at, paid - INTERVAL * (BURST - 1))
            if at <= until:
                state.full_until = paid + INTERVAL
        return Slot(at, state.pauses)

    def pause(self, line: Line, now: float, seconds: float) -> None:
        """Slack answered 429: nobody in this line may call before that many seconds, and then without a burst.

        Slots given before are void: who has one asks for another when its time has come.
        """
        state = self._state(line, now)
        state.pauses += 1
        state.paused_until = max(state.paused_until, now + seconds)
        state.full_until = state.paused_until + INTERVAL * (BURST - 1)

    def is_void(self, line: Line, slot: Slot) -> bool:
        """Whether Slack has asked to wait since the slot was given."""
        state = self._states.get(line)
        return state is None or state.pauses != slot.pauses

    def _state(self, line: Line, now: float) -> _State:
        state = self._states.get(line)
        if state is None:
            if len(self._states) >= _MANY:
                self._forget_idle(now)
            state = self._states[line] = _State()
        return state

    def _forget_idle(self, now: float) -> None:
        busy = {line: s for line, s in self._states.items() if max(s.paused_until, s.full_until) > now}
        self._states = busy


# ------------------------------------------------------------------------- one request and its answer

log = structlog.get_logger(__name__)
REQUEST_SECONDS = 10.0
"""What a request may take, from connecting to the last byte."""
READING = frozenset(
    {
        "auth.test",
        "bots.info",
        "chat.getPermalink",
        "conversations.history",
        "conversations.info",
        "conversations.members",
        "conversations.replies",
        "team.info",
        "usergroups.users.list",
        "users.conversations",
        "users.info",
    }
)
"""Methods that change nothing. Slack takes their arguments from the address only, not from a JSON body."""
_IN_THE_ADDRESS = READING | {"auth.revoke"}
_RATE_LIMITED = frozenset({"ratelimited", "rate_limited"})
_NOTHING_DONE = frozenset({"request_timeout", "accesslimited", "team_added_to_org", "org_login_required"})
"""Slack's words for "not now": the request did not arrive whole, or the workspace is being moved."""
_BROKE_OFF = frozenset({"internal_error", "fatal_error", "service_unavailable"})
"""Slack: "it's possible some aspect of the operation succeeded before the error was raised"."""
_RETRY_AFTER = 1.0
"""Seconds to wait where Slack says 429 without a number."""
_POINTER = re.compile(r"\[json-pointer:([\w/-]{1,100})\]")
QUIET = logging.Logger("slack_sdk", level=logging.CRITICAL + 1)
"""For the SDK, whose own loggers write messages, codes and states into the log."""


class SlackHttpClient:
    """Sends one request at a time per call. `close` in the end."""

    def __init__(self, api_url: str) -> None:
        self._api_url = api_url
        self._client: AsyncWebClient | None = None
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, arguments: Mapping[str, Any], *, token: str, seconds: float = REQUEST_SECONDS
    ) -> Mapping[str, Any]:
        """What Slack answered within `seconds`. Raises `ApiFailed`."""
        given = {name: value for name, value in arguments.items() if value is not None} | {"token": token}
        # Causes are not kept: they hold the request, and with it texts and tokens.
        try:
            async with asyncio.timeout(min(seconds, REQUEST_SECONDS)):
                if method in _IN_THE_ADDRESS:
                    response = await self.client.api_call(method, http_verb="GET", params=given)
                else:
                    response = await self.client.api_call(method, json=given)
        except SlackApiError as error:
            raise refusal_of(method, error.response) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError):
            raise ApiFailed(method, "connection") from None
        except TimeoutError:
            raise ApiFailed(method, "timeout", may_have_acted=True) from None
        except AnswerTooLong:
            raise ApiFailed(method, "bad_answer", may_have_acted=True) from None
        except aiohttp.ClientError:
            raise ApiFailed(method, "connection", may_have_acted=True) from None
        except (AttributeError, ValueError, LookupError, RecursionError):
            # The SDK stumbles over answers that are no JSON objects, or nested without end.
            raise ApiFailed(method, "bad_answer", may_have_acted=True) from None
        data = response.data
        return data if isinstance(data, dict) else {}

    @property
    def client(self) -> AsyncWebClient:
        """The SDK's client, for those parts of the SDK that want one. Made in the running loop, at its first use."""
        if self._client is None:
            timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=REQUEST_SECONDS / 2)
            self._session = bounded_session(timeout, _refuse_redirects)
            self._client = AsyncWebClient(
                base_url=self._api_url, session=self._session, retry_handlers=[], logger=QUIET
            )
            self._client.proxy = _proxy_for(self._api_url)  # the SDK does not know NO_PROXY
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        self._session = self._client = None


async def _refuse_redirects(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """The SDK follows them, with texts and codes, to wherever an answer says; Slack's API sends none."""
    response = await send(request)
    if 300 <= response.status < 400:
        response.close()
        raise aiohttp.ClientPayloadError
    return response


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`)."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def refusal_of(method: str, response: Any) -> ApiFailed:
    """Slack's answer as a failure. `response`: the SDK's, or aiohttp's where the SDK could not read it."""
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    body = data if isinstance(data, dict) else {}
    word = body.get("error")
    if status == 429 or word in _RATE_LIMITED:
        return ApiFailed(method, "ratelimited", retry_after=_seconds(response.headers.get("Retry-After")))
    if not isinstance(word, str):
        return _without_words(method, status)
    if word in _NOTHING_DONE:
        return ApiFailed(method, word)
    if word in _BROKE_OFF or status >= 500:
        return ApiFailed(method, word, may_have_acted=True)
    _log_mistakes(method, word, body)
    return ApiFailed(method, word, permanent=True)


def _without_words(method: str, status: int) -> ApiFailed:
    """A status without one of Slack's words: something between us and Slack, most often."""
    if status == 200:
        return ApiFailed(method, "bad_answer", may_have_acted=True)
    return ApiFailed(method, f"http_{status}", permanent=status < 500, may_have_acted=status >= 500)


def _seconds(retry_after: str | None) -> float:
    try:
        return max(float(retry_after or _RETRY_AFTER), 0.1)
    except ValueError:
        return _RETRY_AFTER


def _log_mistakes(method: str, word: str, body: Mapping[str, Any]) -> None:
    """Where in our own request Slack found mistakes: the places only, since what stands there is people's."""
    details = body.get("response_metadata")
    messages = details.get("messages") if isinstance(details, dict) else None
    places = _POINTER.findall(" ".join(map(str, messages))) if isinstance(messages, list) else []
    if places:
        log.warning("slack_found_mistakes", method=method, error=word, at=places[:10])


# -------------------------------------------- the client: one workspace's bot, within its rate limits

REPEATABLE = READING | {"chat.update", "conversations.open", "views.publish"}
"""Methods that may be called twice: those that read, and those that do the same the second time."""
_BAD_TOKEN = frozenset({"token_expired", "invalid_auth", "token_revoked", "account_inactive"})
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 5.0
Tokens = Callable[[str], Awaitable[str]]
"""team → bot token. Raises `ApiFailed`."""


def _keep(_team: str, _token: str) -> None:
    """A token that is configured stays what it is."""


class WebApi:
    """Calls the methods, and calls again where that is safe.

    `tokens`: what to speak with; asked before each try, so it should remember.
    `refused`: told of a token that Slack did not take, before `tokens` is asked for another.
    """

    def __init__(
        self,
        tokens: Tokens,
        api_url: str,
        *,
        refused: Callable[[str, str], None] = _keep,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._tokens = tokens
        self._refused = refused
        self._wire = SlackHttpClient(api_url)
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._limits = RateLimits()

    async def call(
        self,
        team: str,
        method: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float = PATIENCE,
    ) -> Mapping[str, Any]:
        """What Slack answered. Raises `ApiFailed`, and at once when the line is paused for longer than `patience`."""
        given = arguments or {}
        line = line_of(team, method, str(given.get("channel", "")))
        deadline = self._clock() + patience
        tries, renewed = 0, False
        while True:
            await self._turn(line, deadline)
            token = await self._token(team, method, deadline)
            try:
                return await self._wire.request(method, given, token=token, seconds=self._left(method, deadline))
            except ApiFailed as failure:
                if failure.error == "ratelimited":
                    self._pause(line, failure.retry_after or 1.0)
                    continue
                if failure.error in _BAD_TOKEN and not renewed and await self._has_another(team, token):
                    renewed = True
                    continue
                pause = self._pause_before_retry(tries)
                if not _may_repeat(failure) or self._clock() + pause >= deadline:
                    raise
                tries += 1
                log.info("slack_call_retried", team=team, method=method, error=failure.error, tries=tries)
            await self._sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def _turn(self, line: Line, deadline: float) -> None:
        """Wait until this call may go out."""
        while True:
            now = self._clock()
            slot = self._limits.reserve(line, now, deadline)
            wait = slot.at - now
            if slot.at > deadline:
                raise ApiFailed(line.method, "ratelimited", retry_after=wait)
            if wait > 0:
                await self._sleep(wait)
            if not self._limits.is_void(line, slot):
                return

    def _pause(self, line: Line, seconds: float) -> None:
        log.info("slack_rate_limited", team=line.team, method=line.method, channel=line.channel, seconds=seconds)
        self._limits.pause(line, self._clock(), seconds)

    def _left(self, method: str, deadline: float) -> float:
        left = deadline - self._clock()
        if left <= 0:
            raise ApiFailed(method, "timeout")
        return left

    async def _token(self, team: str, method: str, deadline: float) -> str:
        try:
            async with asyncio.timeout(self._left(method, deadline)):
                return await self._tokens(team)
        except TimeoutError:
            raise ApiFailed(method, "timeout") from None
        except ApiFailed as failure:
            # Whatever was done to find out the token, what we were asked for was not.
            error, permanent, retry_after = failure.error, failure.permanent, failure.retry_after
            raise ApiFailed(method, error, permanent=permanent, retry_after=retry_after) from failure

    async def _has_another(self, team: str, token: str) -> bool:
        """Whether there is a newer token than the one that Slack did not take: it was rotated meanwhile."""
        self._refused(team, token)
        try:
            return await self._tokens(team) != token
        except ApiFailed as failure:
            log.warning("slack_token_not_renewed", team=team, error=failure.error)
            return False

    def _pause_before_retry(self, tries: int) -> float:
        """Seconds, doubling, half of them by chance: so that many do not come back at the same moment."""
        longest: float = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        return longest * (0.5 + self._jitter() / 2)


def _may_repeat(failure: ApiFailed) -> bool:
    """Posting twice is worse than posting late."""
    if failure.permanent:
        return False
    return not failure.may_have_acted or failure.method in REPEATABLE
