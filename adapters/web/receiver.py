"""The receiving half of the web page: every address of it, and which check stands before it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from aiohttp import web

from adapters.shared.live.entries import person_json
from adapters.shared.operator_operations import OperatorOperation
from adapters.shared.requests import address_of_sender
from adapters.web.access import (
    MOST_ADDRESSES,
    NOBODY,
    Greeting,
    PageVisitor,
    PasswordGate,
    RequestChecks,
    Session,
    Sessions,
    json_answer,
    visitor_of,
)
from adapters.web.bodies import RefusalError, WhoBody, read_body
from adapters.web.config import PageFacts, WebConfig, facts_json
from adapters.web.events import EventStreams
from adapters.web.inbound import PageActions
from adapters.web.sender import WebSender
from adapters.web.session_watch import SessionWatch
from adapters.web.sign_in import BACK, LOGIN, LOGOUT, REGISTER, TO_ISSUER, IssuerPages, NamesAndPasswords
from bot.crypto import hashed
from bot.domain import Clock, Person, system_clock
from bot.identity.page_identity import PageIdentity
from bot.identity.principal import Principal
from bot.limits import Beginnings, BeginningsHere
from bot.services import Services
from translations import gettext as _


class WebReceiver:
    """Takes what browsers send.

    Args:
        facts: what the page says about the server, asked for at each request.
        guesses: where wrong passwords are counted; `None`: in this process.
        identity: who people are; needed where somebody has to sign in.
        console: what operators can ask for.
        is_stopped: whether an operator has stopped everything.
    """

    def __init__(
        self,
        sender: WebSender,
        services: Services,
        facts: Callable[[], PageFacts],
        *,
        clock: Clock = system_clock,
        guesses: Beginnings | None = None,
        identity: PageIdentity | None = None,
        console: Sequence[OperatorOperation] = (),
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = sender.name
        self._sender = sender
        self._services = services
        self._facts = facts
        self._clock = clock
        self._guesses = guesses or BeginningsHere(monotonic, most_names=MOST_ADDRESSES)
        self._identity = identity
        self._console = console
        self._is_stopped = is_stopped
        self._sessions = Sessions(sender.config, clock, identity.sessions if identity is not None else None)
        self._watch: SessionWatch | None = None
        if identity is not None and sender.config.needs_sign_in:
            self._watch = SessionWatch(identity.sessions, sender.hub.end_session)
        self.visitor = visitor_of(sender.config, self._sessions)
        """The person id that the session of a request proves, also of one that is not for the page itself."""

    async def stop(self) -> None:
        """End the open event streams."""
        self._sender.hub.close()
        if self._watch is not None:
            await self._watch.stop()

    def routes(self) -> list[web.RouteDef]:
        """The page's routes, for the one aiohttp application."""
        checks = RequestChecks(self._sender.config, self._sessions)
        pages = Pages()
        session = SessionHandler(self._sender, self._sessions, self._facts, self._guesses, self._identity)
        names = NamesAndPasswords(
            self._sender.config,
            self._sessions,
            self._identity,
            self._guesses,
            checks=checks,
            answer=session.answer,
            end_streams=self._sender.end_session,
        )
        inbound = PageActions(self._sender, self._services, self._clock)
        streams = EventStreams(
            self._services.conversations,
            self._services.queries,
            self._sender.hub,
            self._sender.board,
            agents=self._services.agents,
            facts=self._facts,
            is_local=self._sender.config.login == "local",
            is_stopped=self._is_stopped,
        )
        events = self._watch.watched(streams.events) if self._watch is not None else streams.events
        return [
            web.get("/", checks.page(pages.index)),
            web.get("/static/{name}", checks.page(pages.static)),
            web.get("/static/{version}/{name}", checks.page(pages.static)),
            web.get("/api/session", checks.hello(session.who)),
            web.post("/api/session", checks.sign_in(session.become)),
            web.delete("/api/session", checks.sign_in(names.leave)),
            web.post(LOGIN, checks.open(names.login)),
            web.post(REGISTER, checks.open(names.register)),
            web.post(LOGOUT, checks.open(names.logout)),
            *self._issuer_routes(checks),
            web.get("/api/threads", checks.reading(inbound.threads)),
            web.get("/api/threads/search", checks.reading(inbound.search)),
            web.post("/api/threads/{id}/title", checks.acting(inbound.rename)),
            web.post("/api/threads/{id}/deletion", checks.acting(inbound.delete)),
            web.get("/api/events", checks.reading(events, streams.check_records), allow_head=False),
            web.post("/api/threads/{id}/messages", checks.acting(inbound.message)),
            web.post("/api/files", checks.acting(inbound.upload)),
            web.post("/api/agent", checks.acting(inbound.pick_agent)),
            web.post("/api/threads/{id}/stop", checks.acting(inbound.stop)),
            web.post("/api/approvals/decisions", checks.acting(inbound.decide)),
            web.get("/api/approvals/decided", checks.reading(inbound.decided)),
            web.post("/api/approvals/{id}/handover", checks.acting(inbound.hand_over)),
            web.get("/api/approvals/{id}/colleagues", checks.reading(inbound.colleagues)),
            web.post("/api/approvals/{id}/withdrawal", checks.acting(inbound.take_back)),
            web.post("/api/approvals/{id}/retry", checks.acting(inbound.retry)),
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
            web.get("/api/memories", checks.reading(inbound.memories)),
            web.get("/api/usage", checks.reading(inbound.usage)),
            web.get("/api/usage/{id}", checks.reading(inbound.usage_of_answer)),
            web.delete("/api/memories", checks.acting(inbound.forget_all)),
            web.delete("/api/memories/{id}", checks.acting(inbound.forget)),
            web.post("/api/memories/off", checks.acting(inbound.stop_remembering)),
            web.post("/api/memories/on", checks.acting(inbound.start_remembering)),
            web.get("/api/connections", checks.reading(inbound.connections)),
            web.delete("/api/connections/{id}", checks.acting(inbound.disconnect)),
            web.post("/api/connections/{provider}/link", checks.acting(inbound.connect_link)),
            web.post("/api/connections/code", checks.acting(inbound.connection_code)),
            *self._console_routes(checks),
        ]

    def _console_routes(self, checks: RequestChecks) -> list[web.RouteDef]:
        """What operators can ask for, with the page's session and, where it is no mere reading, its token."""
        routes = []
        for each in self._console:
            handler = _as_principal(each, self._sender.config)
            path = f"/api/console{each.path}"
            if each.method == "GET":
                routes.append(web.get(path, checks.reading(handler), allow_head=not each.is_stream))
            else:
                routes.append(web.route(each.method, path, checks.acting(handler)))
        return routes

    def _issuer_routes(self, checks: RequestChecks) -> list[web.RouteDef]:
        issuer = self._identity.issuer if self._identity is not None else None
        if issuer is None or self._sender.config.login != "oidc":
            return []
        pages = IssuerPages(self._sender.config, self._sessions, issuer, self._sender.end_session)
        # No HEAD: it would use a state up.
        return [
            web.get(TO_ISSUER, checks.page(pages.begin), allow_head=False),
            web.get(BACK, checks.page(pages.back), allow_head=False),
        ]


def _as_principal(operation: OperatorOperation, config: WebConfig) -> Greeting:
    async def answer(request: web.Request, visitor: PageVisitor) -> web.StreamResponse:
        person, session = visitor.person, visitor.session
        # Whoever does not sign in has no session in the records, which would end what is open when it ends.
        key = f"session:{hashed(session.session_id)}" if config.needs_sign_in else ""
        subject = person.person_id.rpartition(":")[2]
        return await operation.answer(request, Principal(person, via="session", subject=subject, key=key))

    return answer


# ------------------------------------------------------------------ who a browser is


class SessionHandler:
    """Serves `/api/session`."""

    def __init__(
        self,
        sender: WebSender,
        sessions: Sessions,
        facts: Callable[[], PageFacts],
        guesses: Beginnings,
        identity: PageIdentity | None,
    ) -> None:
        self._sender = sender
        self._config = sender.config
        self._sessions = sessions
        self._facts = facts
        self._gate = PasswordGate(sender.config.password or "", guesses)
        self._issuer = identity.issuer if identity is not None else None

    async def who(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/session`: who this browser is, and its token; makes a session where there is none."""
        return self.answer(visitor.session, visitor.person)

    async def become(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/session`: give the password that all share, or choose who to be."""
        body = await read_body(request, WhoBody)
        if self._config.login != "local":
            raise RefusalError(403, _("You are who you signed in as."))
        if body.password is not None:
            if not self._config.needs_password:
                raise RefusalError(400, _("No password needed."))
            await self._gate.check(body.password, address_of_sender(request, self._config.public_url))
            before = self._config.person(visitor.session.person_id) or self._config.people[0]
            session = await self._sessions.sign_in(before)
            assert session is not None  # noqa: S101  # nobody has to be a user
            await self._sessions.end(visitor.session)
            return self.answer(session)
        if not visitor.session.signed_in:
            raise RefusalError(401, _("Enter the password first."))
        person = self._config.person(body.person or "")
        if person is None:
            raise RefusalError(404, _("No one has that name."))
        await self._sender.end_session(visitor.session.session_id)
        return self.answer(replace(visitor.session, person_id=person.person_id))

    def answer(self, session: Session, person: Person | None = None) -> web.Response:
        """What a page is told of its session. `person`: who it is, where they do not choose that themselves."""
        body = {
            "needs_password": not session.signed_in,
            "csrf": self._sessions.csrf_token(session),
            "can_sign_out": self._config.needs_sign_in and session.signed_in,
            "login": self._config.login,
            "register": self._config.register,
            "issuer_name": self._issuer.name if self._issuer is not None else "",
        }
        if session.signed_in:
            is_local = self._config.login == "local"
            me = self._config.person(session.person_id) or self._config.people[0] if is_local else person
            body["me"] = person_json(me or NOBODY)
            body["people"] = [person_json(each) for each in self._config.people] if is_local else []
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
    ".json": "application/json; charset=utf-8",
}


_CHECKED_AGAIN = "no-cache"
_KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    content_type: str
    etag: str

    def answer(self, request: web.Request, cached: str) -> web.Response:
        """The file, or that it has not changed. `cached`: what browsers may do with it (`Cache-Control`)."""
        headers = {"ETag": f'"{self.etag}"', "Cache-Control": cached}
        if any(tag.value in (self.etag, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.body, headers=headers | {"Content-Type": self.content_type})


class Pages:
    """Serves the page and its files: only what lay in the folder at the start, so no path leads out of it.

    The page names its files by their version: browsers keep them for good, and still see a new release at once.
    """

    def __init__(self) -> None:
        self._files = {path.name: _file(path.read_bytes(), path) for path in STATIC.iterdir() if path.suffix in _TYPES}
        tags = sorted(f"{name} {file.etag}" for name, file in self._files.items())
        self._version = _tag_of("\n".join(tags).encode())
        index = self._files["index.html"].body.replace(b'"/static/', f'"/static/{self._version}/'.encode())
        self._index = _file(index, STATIC / "index.html")

    async def index(self, request: web.Request) -> web.Response:
        """`GET /`: the page."""
        return self._index.answer(request, _CHECKED_AGAIN)

    async def static(self, request: web.Request) -> web.Response:
        """`GET /static/{version}/{name}`: one of its files; `GET /static/{name}` for pages that know no version."""
        file = self._files.get(request.match_info["name"])
        if file is None:
            raise RefusalError(404, _("There’s nothing here."))
        # During a change of releases, the page may be another's: one that is still open, or that another replica sent.
        is_ours = request.match_info.get("version") == self._version
        return file.answer(request, _KEPT if is_ours else _CHECKED_AGAIN)


def _file(body: bytes, path: Path) -> _File:
    return _File(body, _TYPES[path.suffix], _tag_of(body))


def _tag_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:20]
