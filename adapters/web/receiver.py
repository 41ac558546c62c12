"""The receiving half of the web page: every address of it, and which check stands before it."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adapters.web.config import PageFacts
from adapters.web.door import Door
from adapters.web.events import EventStreams
from adapters.web.inbound import Accounts, Inbound
from adapters.web.pages import Pages
from adapters.web.proving import visitor_of
from adapters.web.reception import Reception
from adapters.web.sender import WebSender
from adapters.web.sessions import Sessions
from bot.clock import Clock, system_clock
from bot.services import Services


class WebReceiver:
    """Takes what browsers send. `facts`: what the page says about the server, asked for each time somebody looks."""

    def __init__(
        self, sender: WebSender, services: Services, facts: Callable[[], PageFacts], *, clock: Clock = system_clock
    ) -> None:
        self.name = sender.name
        self._sender = sender
        self._services = services
        self._facts = facts
        self._clock = clock
        self.visitor = visitor_of(sender.config, clock)
        """The person id that the session of a request proves, also of one that is not for the page itself."""

    async def stop(self) -> None:
        """End the open event streams, which would otherwise hold up the server's shutdown."""
        self._sender.hub.close()

    def routes(self) -> list[web.RouteDef]:
        """The page's routes, for the one aiohttp application."""
        config, hub = self._sender.config, self._sender.hub
        sessions = Sessions(config, self._clock)
        door = Door(config, sessions)
        pages = Pages()
        reception = Reception(config, sessions, self._facts, hub)
        inbound = Inbound(config, self._services, hub, self._clock)
        accounts = Accounts(self._services)
        streams = EventStreams(self._services.queries, hub, self._sender.board)
        return [
            web.get("/", door.page(pages.index)),
            web.get("/static/{name}", door.page(pages.static)),
            web.get("/api/session", door.hello(reception.who)),
            web.post("/api/session", door.sign_in(reception.become)),
            web.delete("/api/session", door.sign_in(reception.leave)),
            web.get("/api/threads", door.reading(inbound.threads)),
            web.get("/api/events", door.reading(streams.events), allow_head=False),
            web.post("/api/threads/{id}/messages", door.acting(inbound.message)),
            web.post("/api/threads/{id}/stop", door.acting(inbound.stop)),
            web.post("/api/approvals/decisions", door.acting(inbound.decide)),
            web.post("/api/approvals/{id}/handover", door.acting(inbound.hand_over)),
            web.post("/api/approvals/{id}/withdrawal", door.acting(inbound.take_back)),
            web.get("/api/grants/{id}/arguments", door.reading(inbound.grant_arguments)),
            web.get("/api/outcomes/{id}/arguments", door.reading(inbound.outcome_arguments)),
            web.get("/api/grants", door.reading(inbound.grants)),
            web.delete("/api/grants/{id}", door.acting(inbound.revoke)),
            web.post("/api/approvals/{id}/look", door.acting(inbound.look)),
            web.get("/api/approvals/{id}/together", door.reading(inbound.together)),
            web.get("/api/approvals/{id}/arguments", door.reading(inbound.arguments)),
            web.get("/api/approvals/{id}/form", door.reading(inbound.form)),
            web.post("/api/clarifications/{id}/answer", door.acting(inbound.answer)),
            web.post("/api/clarifications/{id}/dismissal", door.acting(inbound.dismiss)),
            web.post("/api/outcomes/{id}", door.acting(inbound.outcome)),
            web.get("/api/sign-ins/{id}/link", door.reading(accounts.link)),
            web.post("/api/sign-ins/{id}", door.acting(accounts.reply)),
            web.post("/api/sign-ins/{id}/code", door.acting(accounts.code)),
            web.get("/api/connections", door.reading(accounts.connections)),
            web.delete("/api/connections/{id}", door.acting(accounts.disconnect)),
        ]
