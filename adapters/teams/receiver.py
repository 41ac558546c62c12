"""The receiving half of Teams: its one route, verified, parsed, and given to the services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.connecting import ConnectionCheck
from adapters.teams.connector.authentication import Authentication
from adapters.teams.connector.tokens import connect
from adapters.teams.connector.turns import Turns
from adapters.teams.ids import PLATFORM
from adapters.teams.inbound.answers import TeamsAnswers
from adapters.teams.inbound.clicks import TeamsClickHandler
from adapters.teams.inbound.dialogs import Dialogs
from adapters.teams.inbound.duplicates import GRACE, Duplicates
from adapters.teams.inbound.invokes import ANSWER_SECONDS, Invokes
from adapters.teams.inbound.messages import TeamsMessageHandler
from adapters.teams.inbound.verification import ActivityVerifier
from adapters.teams.sender import TeamsSender
from bot.services import Services

MESSAGES_PATH = "/api/messages"
DRAIN_SECONDS = 3.0
"""Time for answers to people's clicks, when the process ends."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, in seconds."""

    answer: float = ANSWER_SECONDS
    """Seconds for the answer to an invoke, before it goes on without the person who waits."""
    duplicate: float = GRACE
    """Before a card that the records do not know is taken for a duplicate."""


class TeamsReceiver:
    """Takes what Teams sends. `start` it when its routes are there, and `stop` it before the services stop."""

    def __init__(self, sender: TeamsSender, services: Services, *, patience: Patience | None = None) -> None:
        patience = patience or Patience()
        self.name = sender.name
        self._connector = connector = sender.connector
        self._background = background = BackgroundTasks(PLATFORM)
        self._connecting = ConnectionCheck(PLATFORM, partial(connect, sender.config, sender.tokens))
        self._authentication = Authentication(sender.config, clock=sender.clock)
        answers = TeamsAnswers(sender)
        duplicates = Duplicates(services.queries, connector, background, grace=patience.duplicate)
        clicks = TeamsClickHandler(services, answers, duplicates, background)
        messages = TeamsMessageHandler(services, sender, answers=answers, clicks=clicks, background=background)
        invokes = Invokes(
            services.connections,
            answers=answers,
            clicks=clicks,
            dialogs=Dialogs(services, answers, sender.facts.colleague),
            messages=messages,
            background=background,
            within=patience.answer,
        )
        self._verifier = ActivityVerifier(sender.config, Turns(self._authentication), messages, invokes, sender.clock)

    def routes(self) -> list[web.RouteDef]:
        """Returns the routes for the one aiohttp application."""
        return [web.post(MESSAGES_PATH, self._verifier.handle)]

    async def start(self) -> None:
        """Get the bot's token once. Raises `NotConnected` when Microsoft refuses us; when it cannot be reached, this
        goes on trying in the background."""
        await self._connecting.start()

    def facts(self) -> Mapping[str, Any]:
        """Returns facts for `/health-check`."""
        return self._connector.facts()

    async def stop(self) -> None:
        """Give the answers that are still to be given, and take nothing in any more. Posting goes on."""
        await self._connecting.close()
        await self._background.drain(DRAIN_SECONDS)
        await self._authentication.close()
