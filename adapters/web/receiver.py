"""The receiving half of the web page: every address of it, and which check stands before it."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adapters.web.config import PageFacts
from adapters.web.events import EventStreams
from adapters.web.inbound import Accounts, PageActions
from adapters.web.pages import Pages
from adapters.web.proving import visitor_of
from adapters.web.reception import Reception
from adapters.web.request_checks import RequestChecks
from adapters.web.sender import WebSender
from adapters.web.sessions import Sessions
from bot.domain import Clock, system_clock
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
        checks = RequestChecks(config, sessions)
        pages = Pages()
        reception = Reception(config, sessions, self._facts, hub)
        inbound = PageActions(config, self._services, hub, self._clock)
        accounts = Accounts(self._services)
        streams = EventStreams(self._services.queries, hub, self._sender.board)
        return [
            web.get("/", checks.page(pages.index)),
            web.get("/static/{name}", checks.page(pages.static)),
            web.get("/api/session", checks.hello(reception.who)),
            web.post("/api/session", checks.sign_in(reception.become)),
            web.delete("/api/session", checks.sign_in(reception.leave)),
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
            web.get("/api/sign-ins/{id}/link", checks.reading(accounts.link)),
            web.post("/api/sign-ins/{id}", checks.acting(accounts.reply)),
            web.post("/api/sign-ins/{id}/code", checks.acting(accounts.code)),
            web.get("/api/connections", checks.reading(accounts.connections)),
            web.delete("/api/connections/{id}", checks.acting(accounts.disconnect)),
        ]
