"""`/oauth/start` and `/oauth/callback…`: what a browser meets on the way of a sign-in."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from adapters.oauth import page
from adapters.oauth.page import Page
from bot.accounts.pages import Connected, GoTo, Offer, Problem, ShowCode

log = structlog.get_logger(__name__)

START, CALLBACK = page.START, "/oauth/callback"
COOKIE = "countersign-oauth"
COOKIE_SECONDS = 3600
"""Longer than any sign-in may take; the rows decide about that."""
LONGEST_PARAMETER = 4096
"""Characters; codes of big providers take some 1,500."""
MOST_PARAMETERS = 20
LONGEST_FORM = 8192
"""Bytes of the one form there is."""


class Flow(Protocol):
    """What decides (`bot/accounts/flow.SignInFlow`)."""

    async def offered(self, token: str) -> Offer | Problem:
        """What a link is for. Without effect."""
        ...

    async def start(self, token: str, *, visitor: str | None, cookie: str | None) -> GoTo | Problem:
        """Go on from the page. `visitor`: person id that the web page's session proves; `cookie`: this browser's."""
        ...

    async def back(
        self, query: Mapping[str, str], *, cookie: str | None, connection: str = ""
    ) -> GoTo | Connected | ShowCode | Problem:
        """A browser came back from the service of a connection; empty: from a proof of identity."""
        ...


Answer = GoTo | Connected | ShowCode | Problem | Page
PageVisitor = Callable[[web.Request], str | None]
"""The person id that the web page's session cookie of a request proves; `None`: nobody's."""


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.page = page.refusal(status, sentence)


def routes(flow: Flow, page_visitor: PageVisitor, *, secure: bool) -> list[web.RouteDef]:
    """For the one aiohttp application. `secure`: whether people reach it over TLS. No HEAD: it would use a state up."""
    pages = _Pages(flow, page_visitor, secure=secure)
    return [
        web.get(START, pages.answering(pages.offer), allow_head=False),
        web.post(START, pages.answering(pages.start)),
        web.get(CALLBACK, pages.answering(pages.back), allow_head=False),
        web.get(CALLBACK + "/{connection}", pages.answering(pages.back), allow_head=False),
    ]


class _Pages:
    def __init__(self, flow: Flow, page_visitor: PageVisitor, *, secure: bool) -> None:
        self._flow = flow
        self._page_visitor = page_visitor
        self._secure = secure
        # A cookie of the prefix, which has to be for all paths, cannot be set by a neighbour's subdomain: somebody who
        # could give their own to another browser would get what is consented to there.
        self._cookie, self._path = (f"__Host-{COOKIE}", "/") if secure else (COOKIE, "/oauth")

    async def offer(self, request: web.Request) -> Answer:
        """`GET /oauth/start?s=…`."""
        token = _parameters(request).get("s", "")
        found = await self._flow.offered(token)
        return page.offer(found, token) if isinstance(found, Offer) else found

    async def start(self, request: web.Request) -> Answer:
        """`POST /oauth/start`, from the page's button and from nowhere else."""
        if not _is_from_our_page(request.headers, request.host):
            raise _RefusedError(403, "That came from another site's page. Open the link from the chat yourself.")
        token = _only_field(await _form(request))
        return await self._flow.start(token, visitor=self._page_visitor(request), cookie=self._own_cookie(request))

    async def back(self, request: web.Request) -> Answer:
        """`GET /oauth/callback/{connection}?…`, and without a connection for proofs of identity."""
        connection = request.match_info.get("connection", "")
        return await self._flow.back(_parameters(request), cookie=self._own_cookie(request), connection=connection)

    def answering(
        self, handler: Callable[[web.Request], Awaitable[Answer]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler's answer as HTTP, whatever happens in it."""

        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return self._response(await handler(request))
            except _RefusedError as refused:
                return self._response(refused.page)
            except web.HTTPException:
                raise
            except Exception as error:  # noqa: BLE001  # the last resort of a request: a page, and the cause in the log
                reference = secrets.token_hex(4)
                # Never the message or a traceback with values: either may hold a code, a token or the link.
                log.error(  # noqa: TRY400
                    "sign_in_page_failed", reference=reference, error=type(error).__name__, where=_where(error)
                )
                sentence = f"Something went wrong here (reference {reference}). Ask the bot for a new link."
                return self._response(page.refusal(500, sentence))

        return answer

    def _response(self, found: Answer) -> web.Response:
        match found:
            case GoTo():
                headers = page.security_headers(secure=self._secure) | {"Location": found.url}
                response = web.Response(status=303, headers=headers)
                if found.cookie is not None:
                    response.set_cookie(
                        self._cookie,
                        found.cookie,
                        max_age=COOKIE_SECONDS,
                        path=self._path,
                        httponly=True,
                        samesite="Lax",  # Strict would not come back with somebody whom a service sends
                        secure=self._secure,
                    )
                return response
            case Connected():
                shown = page.connected(found)
            case ShowCode():
                shown = page.show_code(found)
            case Problem():
                shown = page.problem(found)
            case Page():
                shown = found
        headers = page.security_headers(secure=self._secure, has_form=shown.has_form)
        return web.Response(
            status=shown.status, text=shown.html, content_type="text/html", charset="utf-8", headers=headers
        )

    def _own_cookie(self, request: web.Request) -> str | None:
        value = request.cookies.get(self._cookie)
        return value if value and len(value) <= LONGEST_PARAMETER else None


def _parameters(request: web.Request) -> dict[str, str]:
    """The query, each parameter once: of two, a service and we might believe different ones."""
    query = request.query
    if len(query) > MOST_PARAMETERS or len(set(query)) != len(query):
        raise _RefusedError(400, "That address is not one of ours. Ask the bot for a new link.")
    if any(len(value) > LONGEST_PARAMETER or "\x00" in value for value in query.values()):
        raise _RefusedError(400, "That address is not one of ours. Ask the bot for a new link.")
    return dict(query)


async def _form(request: web.Request) -> bytes:
    if request.content_type != "application/x-www-form-urlencoded":
        raise _RefusedError(400, "That is not what the page's button sends.")
    if (request.content_length or 0) > LONGEST_FORM:
        raise _RefusedError(413, "That is more than the form holds.")
    return await request.read()


def _only_field(form: bytes) -> str:
    """`s`, and nothing but it."""
    try:
        fields = parse_qsl(form.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=2)
    except ValueError:  # more of them
        fields = []
    if len(fields) != 1 or fields[0][0] != "s" or len(fields[0][1]) > LONGEST_PARAMETER:
        raise _RefusedError(400, "That is not what the page's button sends.")
    return fields[0][1]


def _is_from_our_page(headers: Mapping[str, str], host: str) -> bool:
    """Whether a browser says that it was our button: another page must not press it for somebody who has not read it.

    Browsers send `Sec-Fetch-Site` over TLS and on loopback, `Origin` everywhere; who sends neither is no browser.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("Origin")
    return origin is None or origin.partition("://")[2].lower() == host.lower()


def _where(error: BaseException) -> str:
    """File and line at which it happened, without any value."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
