"""Whose browser sends a request that is no part of the page: what its session proves to the sign-in pages."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adapters.web.access import refuse_beyond_loopback, refuse_other_sites
from adapters.web.bodies import RefusalError
from adapters.web.config import WebConfig
from adapters.web.sessions import Sessions
from bot.domain import Clock, system_clock


def visitor_of(config: WebConfig, clock: Clock = system_clock) -> Callable[[web.Request], str | None]:
    """The person id that a request's session cookie stands for; `None` for whoever may not use the page either."""
    sessions = Sessions(config, clock)

    def visitor(request: web.Request) -> str | None:
        try:
            refuse_beyond_loopback(config, request.headers, request.remote)
            refuse_other_sites(config, request.headers)
        except RefusalError:
            return None
        session = sessions.read(request.cookies)
        return session.person_id if session is not None and session.signed_in else None

    return visitor
