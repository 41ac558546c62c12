"""Teams as a platform: all of this folder put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from adapters.teams.config import TeamsConfig
from adapters.teams.connecting import Connecting
from adapters.teams.connector.authentication import Authentication
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.people import People
from adapters.teams.connector.standing import Standing
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.connector.turns import Turns
from adapters.teams.errands import Errands
from adapters.teams.ids import PLATFORM, named_place
from adapters.teams.inbound.answers import Answers
from adapters.teams.inbound.clicks import Clicks
from adapters.teams.inbound.commands import Commands
from adapters.teams.inbound.concerns import Concerns
from adapters.teams.inbound.dialogs import Dialogs
from adapters.teams.inbound.door import Door
from adapters.teams.inbound.duplicates import GRACE, Duplicates
from adapters.teams.inbound.introducing import introduce
from adapters.teams.inbound.invokes import WITHIN, Invokes
from adapters.teams.inbound.links import Links
from adapters.teams.inbound.listening import Listening
from adapters.teams.outbound.drafts import Drafts
from adapters.teams.outbound.outbox import Outbound
from adapters.teams.outbound.private import Private
from bot.clock import Clock, system_clock
from bot.domain import AccountFacts, Arrival, Introduction, Person, Place, Post, Refused, Unknown, Unwelcome
from bot.platform import Desk, Reference
from graph.ports import Live

MESSAGES_PATH = "/api/messages"
DRAIN_SECONDS = 3.0
"""For answers to people's clicks, when the process ends."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long is waited, in seconds."""

    answer: float = WITHIN
    """For what comes of an invoke, before it goes on without the person who waits."""
    duplicate: float = GRACE
    """Before a card that the records do not know is taken for a duplicate."""


class TeamsPlatform:
    """`bot.platform.Platform` for Teams.

    Made first, then `connect(desk)` when the house is built, then `routes()` and `start()`. In the end `stop()`, and
    `close()` after the house, which may still be posting.
    """

    name = PLATFORM

    def __init__(self, config: TeamsConfig, *, clock: Clock = system_clock, waits: Waits | None = None) -> None:
        """Raises `ValueError` for a configuration that cannot work."""
        self._config = config
        self._clock = clock
        self._waits = waits or Waits()
        self._tokens = tokens_of(config, clock=clock)
        self._connecting = Connecting(config, self._tokens)
        self._authentication = Authentication(config, clock=clock)
        self._connector = BotConnector(config, self._tokens)
        self._people = People(self._connector, config, clock=clock)
        self._standing = Standing(self._people, config, clock=clock)
        self._private = Private(self._connector, self._people, config, clock=clock)
        self._drafts = Drafts(self._connector, clock=clock)
        self._outbound = Outbound(self._connector, self._people, self._drafts, self._private, self._sign_in_link)
        self._errands = Errands()
        self._desk: Desk | None = None
        self._door: Door | None = None

    # ------------------------------------------------------------------------------------------- coming in

    def connect(self, desk: Desk) -> None:
        """Who handles what comes in."""
        connector, people, errands, waits = self._connector, self._people, self._errands, self._waits
        answers = Answers(connector, people, self._private)
        duplicates = Duplicates(desk, connector, errands, grace=waits.duplicate)
        clicks = Clicks(desk, answers, Links(desk, answers, errands), duplicates, errands)
        commands = Commands(desk, answers, Concerns(desk, connector))
        listening = Listening(desk, people=people, answers=answers, clicks=clicks, commands=commands, errands=errands)
        invokes = Invokes(
            desk,
            answers=answers,
            clicks=clicks,
            dialogs=Dialogs(desk, answers, self._standing.colleague),
            listening=listening,
            errands=errands,
            within=waits.answer,
        )
        self._desk = desk
        turns = Turns(self._authentication)
        self._door = Door(self._config, turns, listening, invokes, self._clock)

    def routes(self) -> list[web.RouteDef]:
        """For the one aiohttp application; after `connect`."""
        if self._door is None:
            raise RuntimeError("connect(desk) comes first")
        return [web.post(MESSAGES_PATH, self._door.handle)]

    async def start(self) -> None:
        """Get the bot's token once. Raises `TeamsNotConnected` when Microsoft refuses us; when it cannot be reached,
        this goes on trying in the background."""
        await self._connecting.start()

    def facts(self) -> Mapping[str, Any]:
        """For `/health-check`."""
        return self._connector.facts()

    async def stop(self) -> None:
        """Give the answers that are still to be given. Posting goes on until `close`."""
        await self._connecting.close()
        await self._errands.drain(DRAIN_SECONDS)

    async def close(self) -> None:
        """Disconnect, when nobody posts any more."""
        await self.stop()
        await self._drafts.close()
        await self._private.close()
        await self._standing.close()
        await self._people.close()
        await self._connector.close()
        await self._tokens.close()
        await self._authentication.close()

    # ------------------------------------------------------------------------------------------- going out

    async def send(self, post: Post) -> Reference:
        """Show a post for the first time. Raises `PostFailed`."""
        return await self._outbound.send(post)

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Replace what a post showed. Raises `PostFailed`."""
        return await self._outbound.update(post, reference)

    async def find(self, post: Post) -> Reference | None:
        """What this process has shown of it; Teams itself lets nobody search for a message."""
        return await self._outbound.find(post)

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        """Who wrote a message, and what they quoted. Raises `PostFailed`."""
        return await introduce(self._people, arrival)

    def live(self, thread_id: str, place: Place, reader: str) -> Live:
        """Where to show what happens in a thread while it happens."""
        return self._drafts.live(thread_id, place, reader)

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in an Entra group; `None`: it could not be found out."""
        return await self._standing.in_group(person_id, group)

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a conversation; `None`: it could not be found out."""
        return await self._standing.in_channel(person_id, channel)

    async def account_of(self, person_id: str) -> AccountFacts:
        """Whose an account is, as far as Microsoft knows."""
        return await self._standing.account_of(person_id)

    async def name_of(self, person_id: str) -> str | None:
        """What Microsoft calls somebody; `None`: it could not be found out."""
        return await self._standing.name_of(person_id)

    def named_place(self, reference: str) -> Place | None:
        """The place that a policy names; `None`: it is none of ours."""
        return named_place(reference)

    # ------------------------------------------------------------------------------------------- parts

    async def _sign_in_link(self, sign_in_id: str, person: str) -> str | Refused | Unknown:
        if self._desk is None:
            raise RuntimeError("connect(desk) comes first")
        return await self._desk.sign_in_link(sign_in_id, Person(person, ""))
