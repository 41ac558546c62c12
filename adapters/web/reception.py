"""Who a browser is: its session, the local names it may choose from, and the password."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from aiohttp import web

from adapters.web.bodies import RefusalError, WhoBody, read_body
from adapters.web.config import PageFacts, WebConfig
from adapters.web.live import Hub
from adapters.web.password import PasswordGate
from adapters.web.render import facts_json, person_json
from adapters.web.request_checks import PageVisitor, json_answer
from adapters.web.sessions import Session, Sessions


class Reception:
    """Serves `/api/session`."""

    def __init__(self, config: WebConfig, sessions: Sessions, facts: Callable[[], PageFacts], hub: Hub) -> None:
        self._config = config
        self._sessions = sessions
        self._facts = facts
        self._hub = hub
        self._gate = PasswordGate(config.password or "", monotonic)

    async def who(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/session`: who this browser is, and its token; makes a session where there is none."""
        return self._answer(visitor.session)

    async def become(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/session`: give the password, or choose who to be."""
        body = await read_body(request, WhoBody)
        if body.password is not None:
            if not self._config.needs_password:
                raise RefusalError(400, "No password is needed here.")
            self._gate.check(body.password, request.remote or "")
            return self._answer(self._sessions.signed_in(visitor.session))
        if not visitor.session.signed_in:
            raise RefusalError(401, "Give the password first.")
        person = self._config.person(body.person or "")
        if person is None:
            raise RefusalError(404, "There is nobody of that name here.")
        self._hub.end_session(visitor.session.session_id)
        return self._answer(replace(visitor.session, person_id=person.person_id))

    async def leave(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/session`: sign out of this browser."""
        self._hub.end_session(visitor.session.session_id)
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
