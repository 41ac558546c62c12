"""A person's accounts on the page: links to sign in by, codes, what is connected. The desk says whose each is."""

from __future__ import annotations

from aiohttp import web

from adapters.web.bodies import CodeBody, SignInBody, read_body
from adapters.web.clicks import click_answer, click_key, id_of
from adapters.web.door import Visitor, json_answer
from adapters.web.render import passage
from adapters.web.render_mine import connections_json
from bot.domain import CodeEntry, SignInReply, SignInView
from bot.platform import Desk


class Accounts:
    """What the page asks for accounts, one method each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def link(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/sign-ins/{id}/link`, with what the server says of it: for its owner alone; the desk says who that
        is."""
        link = await self._desk.sign_in_link(id_of(request), visitor.person)
        if not isinstance(link, str):
            return click_answer(link)
        shown = await self._desk.shown(id_of(request))
        view = shown[0].post.content if shown else None
        said = view.message if isinstance(view, SignInView) and view.owner_id == visitor.person.person_id else ""
        return json_answer({"url": link, "message": passage(said)})

    async def reply(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/sign-ins/{id}`: "I have signed in", or "Not now"."""
        body = await read_body(request, SignInBody)
        reply = SignInReply(click_key(body.id, visitor), visitor.person, id_of(request), body.done)
        return click_answer(await self._desk.sign_in_reply(reply))

    async def code(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/sign-ins/{id}/code`: what the browser showed in the end."""
        body = await read_body(request, CodeBody)
        entry = CodeEntry(click_key(body.id, visitor), visitor.person, body.code, id_of(request))
        return click_answer(await self._desk.enter_code(entry))

    async def connections(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/connections`: the visitor's own."""
        return json_answer(connections_json(await self._desk.connections(visitor.person)))

    async def disconnect(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`DELETE /api/connections/{id}`: doing it twice is doing it once, so the id is the click's, too."""
        connection_id = id_of(request)
        return click_answer(
            await self._desk.disconnect(click_key(connection_id, visitor), connection_id, visitor.person)
        )
