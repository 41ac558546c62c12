"""The checks of every request: a handler only ever gets a visitor whose right to be here is known."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from aiohttp import web

from adapters.web.access import refuse_beyond_loopback, refuse_other_sites
from adapters.web.bodies import RefusalError
from adapters.web.config import WebConfig
from adapters.web.sessions import Session, Sessions
from bot.domain import Person

log = structlog.get_logger(__name__)
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}")


@dataclass(frozen=True, slots=True)
class PageVisitor:
    """Whoever sent a request, as far as the page knows."""

    session: Session
    person: Person


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Greeting = Callable[[web.Request, PageVisitor], Awaitable[web.StreamResponse]]
Check = Callable[[web.Request], None]


class RequestChecks:
    """Wraps handlers in the checks that their kind needs. A refusal becomes its status and one JSON sentence."""

    def __init__(self, config: WebConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions

    def page(self, handler: Handler) -> Handler:
        """The page and its files: for whoever may reach us at all; nothing in them is secret."""
        return self._guarded(handler, self._check_reach)

    def hello(self, handler: Greeting) -> Handler:
        """Reading that needs no session yet: who am I?"""
        return self._guarded(self._greeted(handler), self._check_reach, self._check_site)

    def sign_in(self, handler: Greeting) -> Handler:
        """Changing who one is: needs a session and its token, not yet the password."""
        return self._guarded(self._greeted(handler), self._check_reach, self._check_site, self._check_token)

    def reading(self, handler: Greeting) -> Handler:
        """Reading what is in the house."""
        return self._guarded(self._greeted(handler), self._check_reach, self._check_site, self._check_signed_in)

    def acting(self, handler: Greeting) -> Handler:
        """Changing something in the house."""
        checks = (self._check_reach, self._check_site, self._check_signed_in, self._check_token)
        return self._guarded(self._greeted(handler), *checks)

    # ------------------------------------------------------------------------------------------------ checks

    def _check_reach(self, request: web.Request) -> None:
        refuse_beyond_loopback(self._config, request.headers, request.remote)

    def _check_site(self, request: web.Request) -> None:
        refuse_other_sites(self._config, request.headers)

    def _check_signed_in(self, request: web.Request) -> None:
        session = self._sessions.read(request.cookies)
        if session is None or not session.signed_in:
            raise RefusalError(401, "This browser has no session here (any more): reload the page.")

    def _check_token(self, request: web.Request) -> None:
        session = self._sessions.read(request.cookies)
        if session is None or not self._sessions.is_csrf_token(session, request.headers.get("X-CSRF-Token", "")):
            raise RefusalError(403, "The page's token is missing or belongs to another session: reload the page.")

    # ------------------------------------------------------------------------------------------------ wrapping

    def _greeted(self, handler: Greeting) -> Handler:
        async def meet(request: web.Request) -> web.StreamResponse:
            session = self._sessions.read(request.cookies) or self._sessions.begin()
            person = self._config.person(session.person_id) or self._config.people[0]
            zone = request.headers.get("X-Time-Zone", "")
            visitor = PageVisitor(session, replace(person, time_zone=zone) if is_time_zone(zone) else person)
            return await handler(request, visitor)

        return meet

    def _guarded(self, handler: Handler, *checks: Check) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                for check in checks:
                    check(request)
                response = await handler(request)
            except RefusalError as refusal:
                response = _refused(refusal)
            except web.HTTPException:
                raise
            except Exception:
                # The last resort of a request: its sender gets a reference, the log gets the cause, once.
                reference = secrets.token_hex(4)
                log.exception("web_request_failed", reference=reference, method=request.method, path=_route(request))
                response = json_answer({"error": f"Something went wrong here (reference {reference})."}, status=500)
            if not response.prepared:
                response.headers.update(SECURITY_HEADERS)
            return response

        return answer


def json_answer(body: Any, *, status: int = 200) -> web.Response:
    """A JSON answer that nobody caches."""
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})


def is_time_zone(name: str) -> bool:
    """Whether `name` is an IANA time zone that this machine knows."""
    if not _ZONE.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # Not found is a KeyError; a folder of zones, such as "Europe", is an OSError.
        return False
    return True


def _refused(refusal: RefusalError) -> web.Response:
    response = json_answer({"error": refusal.sentence}, status=refusal.status)
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(ceil(refusal.retry_after))
    return response


def _route(request: web.Request) -> str:
    # The route's pattern: paths hold ids of people's things, queries might hold anything.
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""
