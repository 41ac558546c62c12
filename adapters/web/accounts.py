"""A person's accounts on the page: links to sign in by, codes, what is connected. The services say whose each is."""

from __future__ import annotations

from aiohttp import web

from adapters.web.bodies import CodeBody, SignInBody, read_body
from adapters.web.clicks import click_answer, click_key, id_of
from adapters.web.door import Visitor, json_answer
from adapters.web.render import passage
from adapters.web.render_mine import connections_json
from bot.domain import CodeEntry, SignInReply, SignInView
from bot.services import Services


class Accounts:
    """What the page asks for accounts, one method each."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def link(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/sign-ins/{id}/link`, with what the server says of it: for its owner alone; the
        service knows who that is."""
        link = await self._services.sign_in_links.link(id_of(request), visitor.person.person_id)
        if not isinstance(link, str):
            return click_answer(link)
        shown = await self._services.queries.shown(id_of(request))
        view = shown[0].post.content if shown else None
        said = view.message if isinstance(view, SignInView) and view.owner_id == visitor.person.person_id else ""
        return json_answer({"url": link, "message": passage(said)})

    async def reply(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/sign-ins/{id}`: "I have signed in", or "Not now"."""
        body = await read_body(request, SignInBody)
        reply = SignInReply(click_key(body.id, visitor), visitor.person, id_of(request), body.done)
        return click_answer(await self._services.connections.sign_in_reply(reply))

    async def code(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/sign-ins/{id}/code`: what the browser showed in the end."""
        body = await read_body(request, CodeBody)
        entry = CodeEntry(click_key(body.id, visitor), visitor.person, body.code, id_of(request))
        return click_answer(await self._services.connections.enter_code(entry))

    async def connections(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/connections`: the visitor's own."""
        return json_answer(connections_json(await self._services.connections.of_person(visitor.person)))

    async def disconnect(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`DELETE /api/connections/{id}`: doing it twice is doing it once."""
        return click_answer(await self._services.connections.disconnect(id_of(request), visitor.person))
