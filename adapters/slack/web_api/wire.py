"""One request to Slack's Web API and its answer, or the reason why there is none."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.shared.answers import AnswerTooLong, bounded_session
from adapters.slack.api import ApiFailed

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


class Wire:
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
