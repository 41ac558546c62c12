"""The receiving half of the web page: every address of it, and which check stands before it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from aiohttp import web

from adapters.shared.live.entries import person_json
from adapters.web.access import (
    MOST_ADDRESSES,
    PageVisitor,
    PasswordGate,
    RequestChecks,
    Session,
    Sessions,
    json_answer,
    visitor_of,
)
from adapters.web.bodies import RefusalError, WhoBody, read_body
from adapters.web.config import PageFacts, facts_json
from adapters.web.events import EventStreams
from adapters.web.inbound import PageActions
from adapters.web.sender import WebSender
from bot.domain import Clock, system_clock
from bot.limits import Beginnings, BeginningsHere
from bot.services import Services


class WebReceiver:
    """Takes what browsers send.

    Args:
        facts: what the page says about the server, asked for at each request.
        guesses: where wrong passwords are counted; `None`: in this process.
    """

    def __init__(
        self,
        sender: WebSender,
        services: Services,
        facts: Callable[[], PageFacts],
        *,
        clock: Clock = system_clock,
        guesses: Beginnings | None = None,
    ) -> None:
        self.name = sender.name
        self._sender = sender
        self._services = services
        self._facts = facts
        self._clock = clock
        self._gate = PasswordGate(
            sender.config.password or "", guesses or BeginningsHere(monotonic, most_names=MOST_ADDRESSES)
        )
        self._sessions = Sessions(sender.config, clock)
        self.visitor = visitor_of(sender.config, self._sessions)
        """The person id that the session of a request proves, also of one that is not for the page itself."""

    async def stop(self) -> None:
        """End the open event streams."""
        self._sender.hub.close()

    def routes(self) -> list[web.RouteDef]:
        """The page's routes, for the one aiohttp application."""
        checks = RequestChecks(self._sender.config, self._sessions)
        pages = Pages()
        session = SessionHandler(self._sender, self._sessions, self._facts, self._gate)
        inbound = PageActions(self._sender, self._services, self._clock)
        streams = EventStreams(
            self._services.conversations, self._services.queries, self._sender.hub, self._sender.board
        )
        return [
            web.get("/", checks.page(pages.index)),
            web.get("/static/{name}", checks.page(pages.static)),
            web.get("/api/session", checks.hello(session.who)),
            web.post("/api/session", checks.sign_in(session.become)),
            web.delete("/api/session", checks.sign_in(session.leave)),
            web.get("/api/threads", checks.reading(inbound.threads)),
            web.get("/api/events", checks.reading(streams.events), allow_head=False),
            web.post("/api/threads/{id}/messages", checks.acting(inbound.message)),
            web.post("/api/threads/{id}/stop", checks.acting(inbound.stop)),
            web.post("/api/approvals/decisions", checks.acting(inbound.decide)),
            web.post("/api/approvals/{id}/handover", checks.acting(inbound.hand_over)),
            web.post("/api/approvals/{id}/withdrawal", checks.acting(inbound.take_back)),
            web.get("/api/grants/{id}/arguments", checks.reading(inbound.grant_arguments)),
            web.get("/api/outcomes/{id}/arguments", checks.reading(inbound.outcome_arguments)),
            web.get("/api/grants", checks.reading(inbound.grants)),
            web.delete("/api/grants/{id}", checks.acting(inbound.revoke)),
            web.post("/api/approvals/{id}/look", checks.acting(inbound.look)),
            web.get("/api/approvals/{id}/together", checks.reading(inbound.together)),
            web.get("/api/approvals/{id}/arguments", checks.reading(inbound.arguments)),
            web.get("/api/approvals/{id}/form", checks.reading(inbound.form)),
            web.post("/api/clarifications/{id}/answer", checks.acting(inbound.answer)),
            web.post("/api/clarifications/{id}/dismissal", checks.acting(inbound.dismiss)),
            web.post("/api/outcomes/{id}", checks.acting(inbound.outcome)),
            web.get("/api/sign-ins/{id}/link", checks.reading(inbound.link)),
            web.post("/api/sign-ins/{id}", checks.acting(inbound.reply)),
            web.post("/api/sign-ins/{id}/code", checks.acting(inbound.code)),
            web.get("/api/connections", checks.reading(inbound.connections)),
            web.delete("/api/connections/{id}", checks.acting(inbound.disconnect)),
            web.post("/api/connections/{provider}/link", checks.acting(inbound.connect_link)),
            web.post("/api/connections/code", checks.acting(inbound.connection_code)),
        ]


# ------------------------------------------------------------------ who a browser is


class SessionHandler:
    """Serves `/api/session`."""

    def __init__(
        self, sender: WebSender, sessions: Sessions, facts: Callable[[], PageFacts], gate: PasswordGate
    ) -> None:
        self._sender = sender
        self._config = sender.config
        self._sessions = sessions
        self._facts = facts
        self._gate = gate

    async def who(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/session`: who this browser is, and its token; makes a session where there is none."""
        return self._answer(visitor.session)

    async def become(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/session`: give the password, or choose who to be."""
        body = await read_body(request, WhoBody)
        if body.password is not None:
            if not self._config.needs_password:
                raise RefusalError(400, "No password is needed here.")
            await self._gate.check(body.password, request.remote or "")
            return self._answer(self._sessions.signed_in(visitor.session))
        if not visitor.session.signed_in:
            raise RefusalError(401, "Give the password first.")
        person = self._config.person(body.person or "")
        if person is None:
            raise RefusalError(404, "There is nobody of that name here.")
        await self._sender.end_session(visitor.session.session_id)
        return self._answer(replace(visitor.session, person_id=person.person_id))

    async def leave(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/session`: sign out of this browser."""
        await self._sender.end_session(visitor.session.session_id)
        return self._answer(self._sessions.begin())

    def _answer(self, session: Session) -> web.Response:
        body = {
            "needs_password": not session.signed_in,
            "csrf": self._sessions.csrf_token(session),
            "can_sign_out": self._config.needs_password and session.signed_in,
        }
        if session.signed_in:
            me = self._config.person(session.person_id) or self._config.people[0]
            body["me"] = person_json(me)
            body["people"] = [person_json(person) for person in self._config.people]
            body["facts"] = facts_json(self._facts())
        response = json_answer(body)
        self._sessions.write(response, session)
        return response


# ------------------------------------------------------------------ the page and its files

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    content_type: str
    etag: str


class Pages:
    """Serves `GET /` and `GET /static/{name}`: only what lay in the folder at the start, so no path leads out of it."""

    def __init__(self) -> None:
        self._files = {path.name: _read(path) for path in sorted(STATIC.iterdir()) if path.suffix in _TYPES}

    async def index(self, request: web.Request) -> web.Response:
        """The page."""
        return self._serve(request, "index.html")

    async def static(self, request: web.Request) -> web.Response:
        """One of its files."""
        return self._serve(request, request.match_info["name"])

    def _serve(self, request: web.Request, name: str) -> web.Response:
        file = self._files.get(name)
        if file is None:
            raise RefusalError(404, "There is no such file.")
        # Asked again each time and mostly answered "not modified": a new release is seen at once.
        headers = {"ETag": f'"{file.etag}"', "Cache-Control": "no-cache"}
        if any(tag.value in (file.etag, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers=headers | {"Content-Type": file.content_type})


def _read(path: Path) -> _File:
    body = path.read_bytes()
    return _File(body, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:20])
