"""Slack's Web API: rate limits, one request with its answer or failure, and the client of a workspace's bot."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.shared.calls import AfterRefusals, CallFailed, Calls, Pace, PauseExchange, Windows
from adapters.shared.http import bounded_session, failing, proxy_for, retry_after

CALL_SECONDS = 20.0
"""Seconds that a call may take with its waits and tries, where nobody waits for it."""
AT_ONCE = 2.0
"""Seconds where somebody does: a trigger lives 3 s, and so long does Slack wait for an answer to a click."""
INTERVALS = {"chat.postMessage": 1.0, "chat.update": 1.2}
"""Seconds between two calls in a channel, once Slack has refused one (429). Before, there are none: a channel takes one
message a second, "short bursts >1 allowed", and an app takes 50 updates a minute or more (tier 3), "sporadic bursts are
welcome" (https://docs.slack.dev/apis/web-api/rate-limits). How large a burst may be is said nowhere, so Slack says it
itself. What it refuses was not done, and is sent again."""
QUIET_SECONDS = 60.0
"""Seconds without anybody having to wait until a channel has no such interval any more (Slack counts by the minute)."""
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
        "files.info",
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
"""Logger for the SDK, whose own loggers write messages, codes and states into the log."""


class SlackHttpClient:
    """Sends one request at a time per call. `close` in the end."""

    def __init__(self, api_url: str) -> None:
        self._api_url = api_url
        self._client: AsyncWebClient | None = None
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, arguments: Mapping[str, Any], *, token: str, seconds: float = REQUEST_SECONDS
    ) -> Mapping[str, Any]:
        """What Slack answered within `seconds`. Raises `CallFailed`."""
        given = {name: value for name, value in arguments.items() if value is not None} | {"token": token}
        # Causes are not kept: they hold the request, and with it texts and tokens.
        try:
            with failing(method):
                async with asyncio.timeout(min(seconds, REQUEST_SECONDS)):
                    if method in _IN_THE_ADDRESS:
                        response = await self.client.api_call(method, http_verb="GET", params=given)
                    else:
                        response = await self.client.api_call(method, json=given)
        except SlackApiError as error:
            raise refusal_of(method, error.response) from None
        except (AttributeError, ValueError, LookupError, RecursionError):
            # The SDK stumbles over answers that are no JSON objects, or nested without end.
            raise CallFailed(method, "bad_answer", may_have_acted=True) from None
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
            self._client.proxy = proxy_for(self._api_url)  # the SDK does not know NO_PROXY
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


def refusal_of(method: str, response: Any) -> CallFailed:
    """Slack's answer as a failure. `response`: the SDK's, or aiohttp's where the SDK could not read it."""
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    body = data if isinstance(data, dict) else {}
    word = body.get("error")
    if status == 429 or word in _RATE_LIMITED:
        wait = retry_after(response.headers)
        return CallFailed(method, "ratelimited", retry_after=_RETRY_AFTER if wait is None else max(wait, 0.1))
    if not isinstance(word, str):
        return _without_words(method, status)
    if word in _NOTHING_DONE:
        return CallFailed(method, word)
    if word in _BROKE_OFF or status >= 500:
        return CallFailed(method, word, may_have_acted=True)
    _log_mistakes(method, word, body)
    return CallFailed(method, word, permanent=True)


def _without_words(method: str, status: int) -> CallFailed:
    """A status without one of Slack's words: something between us and Slack, most often."""
    if status == 200:
        return CallFailed(method, "bad_answer", may_have_acted=True)
    return CallFailed(method, f"http_{status}", permanent=status < 500, may_have_acted=status >= 500)


def _log_mistakes(method: str, word: str, body: Mapping[str, Any]) -> None:
    """Where in our own request Slack found mistakes: the places only, since what stands there is people's."""
    details = body.get("response_metadata")
    messages = details.get("messages") if isinstance(details, dict) else None
    places = _POINTER.findall(" ".join(map(str, messages))) if isinstance(messages, list) else []
    if places:
        log.warning("slack_found_mistakes", method=method, error=word, at=places[:10])


# -------------------------------------------- the client: one workspace's bot, within its rate limits

REPEATABLE = READING | {"chat.update", "conversations.open", "views.publish"}
_BAD_TOKEN = frozenset({"token_expired", "invalid_auth", "token_revoked", "account_inactive"})
USED_UP = "invalid_refresh_token"
"""Slack's word for a refresh token that was exchanged before."""
Tokens = Callable[[str], Awaitable[str]]
"""team → bot token. Raises `CallFailed`."""


def line_of(team: str, method: str, channel: str) -> tuple[str, str, str]:
    """Returns what Slack counts a call with: messages by channel (`chat.*`) and everything else by method and
    workspace, so that a pause of `conversations.replies` in one channel holds for all of them."""
    return team, method, channel if method.startswith("chat.") else ""


def pace_of(line: Hashable) -> Pace:
    """Returns how fast the calls of a line may follow each other. Those without an interval wait as long as Slack says
    (`Retry-After`), and no longer."""
    interval = INTERVALS.get(line[1]) if isinstance(line, tuple) else None
    return Windows() if interval is None else AfterRefusals(interval, QUIET_SECONDS)


def _keep(_team: str, _token: str) -> None:
    """A token that is configured stays what it is."""


class WebApi:
    """Calls methods of the Web API as one workspace's bot, within Slack's rate limits. `close` in the end.

    Args:
        tokens: What to speak with; asked before each try, so it should remember.
        refused: Told of a token that Slack did not take, before `tokens` is asked for another.
        exchange: Lets other processes wait when Slack asks this one to.
    """

    def __init__(
        self,
        tokens: Tokens,
        api_url: str,
        *,
        refused: Callable[[str, str], None] = _keep,
        exchange: PauseExchange | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._tokens = tokens
        self._refused = refused
        self._http = SlackHttpClient(api_url)
        self._calls = Calls(
            "slack",
            pace_of,
            repeatable=REPEATABLE,
            pauses=(0.25, 5.0),
            exchange=exchange,
            clock=clock,
            sleep=sleep,
            jitter=jitter,
        )

    async def call(
        self,
        team: str,
        method: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float = CALL_SECONDS,
    ) -> Mapping[str, Any]:
        """Returns what Slack answered. Raises `CallFailed`.

        Reading methods are tried again within `patience` seconds, with jitter; those that post only where it is
        certain that nothing was done (429, or no connection).
        """
        given = arguments or {}

        async def send(token: str, seconds: float) -> Mapping[str, Any]:
            return await self._http.request(method, given, token=token, seconds=seconds)

        async def renewed(failure: CallFailed, token: str) -> bool:
            return failure.error in _BAD_TOKEN and await self._has_another(team, token)

        line, deadline = line_of(team, method, str(given.get("channel", ""))), self._calls.clock() + patience
        return await self._calls.run(method, line, deadline, send, token=lambda: self._tokens(team), renewed=renewed)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _has_another(self, team: str, token: str) -> bool:
        """Whether there is a newer token than the one that Slack did not take: it was rotated meanwhile."""
        self._refused(team, token)
        try:
            return await self._tokens(team) != token
        except CallFailed as failure:
            log.warning("slack_token_not_renewed", team=team, error=failure.error)
            return False
