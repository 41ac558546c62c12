"""Slack as a platform: all of this folder put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web

from adapters.slack.config import SlackConfig
from adapters.slack.errands import Errands
from adapters.slack.ids import PLATFORM, named_place
from adapters.slack.inbound.answers import Answers
from adapters.slack.inbound.bolt import Handlers, Inbound
from adapters.slack.inbound.clicks import Clicks
from adapters.slack.inbound.commands import Commands
from adapters.slack.inbound.concerns import Concerns
from adapters.slack.inbound.door import Door
from adapters.slack.inbound.home_tab import HomeTab
from adapters.slack.inbound.listening import Listening
from adapters.slack.inbound.modals import Modals
from adapters.slack.inbound.not_installed import NotInstalled
from adapters.slack.inbound.openings import Openings
from adapters.slack.inbound.shortcuts import Shortcuts
from adapters.slack.inbound.socket_mode import SocketMode
from adapters.slack.outbound.drafts import Drafts
from adapters.slack.outbound.outbox import Outbound
from adapters.slack.outbound.private import Private
from adapters.slack.web_api.background import Backgrounds
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.connecting import Connecting
from adapters.slack.web_api.install_pages import InstallPages
from adapters.slack.web_api.installing import InstallationRecords
from adapters.slack.web_api.members import Members
from adapters.slack.web_api.people import People
from adapters.slack.web_api.rotation import InstalledTokens
from adapters.slack.web_api.standing import Standing
from adapters.slack.web_api.user_groups import UserGroups
from adapters.slack.web_api.workspaces import OneToken, Workspaces
from bot.clock import Clock, system_clock
from bot.domain import AccountFacts, Arrival, Introduction, Person, Place, Post, Refused, Unknown, Unwelcome
from bot.platform import Desk, Reference
from bot.secrets import Sealer
from graph.ports import Live

log = structlog.get_logger(__name__)

EVENTS_PATH = "/slack/events"
INSTALLS_CLOSED = (
    "SLACK_INSTALL_TEAMS is not set: no workspace can install the app or is served. Set it to the ids of yours, or to *"
)
DRAIN_SECONDS = 3.0
"""For answers to people's clicks, when the process ends."""


@dataclass(frozen=True, slots=True)
class Installations:
    """Where installs into many workspaces are kept."""

    database: Path
    """The house's SQLite file."""
    sealer: Sealer


class SlackPlatform:
    """`bot.platform.Platform` for Slack.

    Made first, then `connect(desk)` when the house is built, then `routes()` and `start()`. In the end `stop()`, and
    `close()` after the house, which may still be posting.
    """

    name = PLATFORM

    def __init__(
        self, config: SlackConfig, *, installations: Installations | None = None, clock: Clock = system_clock
    ) -> None:
        """`installations` is needed where people install it themselves, that is, where no `bot_token` is set. Raises
        `ValueError` for a configuration that cannot work."""
        if not (config.signing_secret or config.app_token):
            raise ValueError("neither a signing secret (Events API) nor an app token (Socket Mode) is set")
        self._config = config
        self._clock = clock
        self._installing = None if config.bot_token else _Installing.of(config, installations, clock)
        tokens = self._installing.tokens if self._installing else OneToken(config.bot_token or "")
        self._workspaces = Workspaces(tokens, config.api_url)
        self._connecting = Connecting(self._workspaces, self._mode)
        self._api = WebApi(self._workspaces.token, config.api_url, refused=self._workspaces.refused)
        self._people = People(self._api, config, clock=clock)
        self._members = Members(self._api, clock=clock)
        self._groups = UserGroups(self._api, clock=clock)
        self._standing = Standing(self._people, self._members, self._groups)
        self._backgrounds = Backgrounds(self._api, self._people, clock=clock)
        self._drafts = Drafts(self._api, clock=clock)
        self._outbound = Outbound(self._api, self._drafts, self._sign_in_link)
        self._errands = Errands()
        self._desk: Desk | None = None
        self._openings: Openings | None = None
        self._inbound: Inbound | None = None
        self._socket: SocketMode | None = None

    # ------------------------------------------------------------------------------------------- coming in

    def connect(self, desk: Desk) -> None:
        """Who handles what comes in."""
        api, people, workspaces, errands = self._api, self._people, self._workspaces, self._errands
        answers = Answers(api, people, Private(api))
        concerns = Concerns(desk, self._members)
        home = HomeTab(desk, concerns, api, people, workspaces)
        self._openings = openings = Openings(desk, api, people, workspaces, errands)
        handlers = Handlers(
            Listening(desk, api=api, people=people, workspaces=workspaces, home=home, errands=errands),
            Clicks(desk, answers, home, errands),
            Modals(desk, answers, openings, home, errands),
            Commands(desk, concerns, answers, openings, workspaces),
            Shortcuts(answers, errands),
            NotInstalled(errands),
        )
        self._desk = desk
        self._inbound = Inbound(
            handlers, workspaces.authorize, self._config.api_url, agent_view=self._config.agent_view
        )
        if self._config.app_token:
            self._socket = SocketMode(self._inbound, self._config.app_token, self._config.api_url, errands)

    def routes(self) -> list[web.RouteDef]:
        """For the one aiohttp application; after `connect`. In Socket Mode Slack sends no events here."""
        routes = self._installing.pages.routes() if self._installing else []
        if self._config.signing_secret and not self._config.socket_mode:
            if self._inbound is None:
                raise RuntimeError("connect(desk) comes first")
            door = Door(self._inbound, self._config.signing_secret, self._clock)
            routes.append(web.post(EVENTS_PATH, door.handle))
        return routes

    async def start(self) -> None:
        """Find out which workspaces we are in, and open the socket. Raises `SlackNotConnected` when Slack refuses us;
        when it cannot be reached, this goes on trying in the background."""
        if self._installing:
            await self._installing.records.open()
            if not self._config.install_teams:
                log.warning("slack_installs_closed", note=INSTALLS_CLOSED)
        await self._connecting.start()
        if self._socket:
            await self._socket.start()

    def facts(self) -> Mapping[str, Any]:
        """For `/health-check`."""
        bots = self._connecting.bots
        return {
            "mode": self._mode,
            "connected": bots is not None and (self._socket is None or self._socket.connected),
            "workspaces": len(bots or ()),
        }

    async def stop(self) -> None:
        """Take nothing in any more, and give the answers that are still to be given. Posting goes on until `close`."""
        await self._connecting.close()
        await self._errands.drain(DRAIN_SECONDS)
        if self._openings:
            await self._openings.close()
        if self._socket:
            await self._socket.close()
            await self._errands.drain(0.0)  # what came in meanwhile was not acknowledged: Slack sends it again

    async def close(self) -> None:
        """Disconnect, when nobody posts any more."""
        await self.stop()
        await self._drafts.close()
        await self._backgrounds.close()
        await self._groups.close()
        await self._members.close()
        await self._people.close()
        await self._api.close()
        await self._workspaces.close()
        if self._installing:
            await self._installing.close()

    # ------------------------------------------------------------------------------------------- going out

    async def send(self, post: Post) -> Reference:
        """Show a post for the first time. Raises `PostFailed`."""
        return await self._outbound.send(post)

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Replace what a post showed. Raises `PostFailed`."""
        return await self._outbound.update(post, reference)

    async def find(self, post: Post) -> Reference | None:
        """The reference of a post that was sent just before a crash."""
        return await self._outbound.find(post)

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        """Who wrote a message, what it says in words, and what was said before it. Raises `PostFailed`."""
        return await self._backgrounds.introduce(arrival)

    def live(self, thread_id: str, place: Place, reader: str) -> Live:
        """Where to show what happens in a thread while it happens."""
        return self._drafts.live(thread_id, place, reader)

    async def in_group(self, person_id: str, group: str) -> bool | None:
        """Whether somebody is in a user group; `None`: it could not be found out."""
        return await self._standing.in_group(person_id, group)

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel; `None`: it could not be found out."""
        return await self._standing.in_channel(person_id, channel)

    async def account_of(self, person_id: str) -> AccountFacts:
        """Whose an account is, as far as Slack knows."""
        return await self._standing.account_of(person_id)

    async def name_of(self, person_id: str) -> str | None:
        """What Slack calls somebody; `None`: it could not be found out."""
        return await self._standing.name_of(person_id)

    def named_place(self, reference: str) -> Place | None:
        """The place that a policy names."""
        return named_place(reference)

    # ------------------------------------------------------------------------------------------- parts

    @property
    def _mode(self) -> str:
        return "socket" if self._config.socket_mode else "http"

    async def _sign_in_link(self, sign_in_id: str, person: str) -> str | Refused | Unknown:
        if self._desk is None:
            raise RuntimeError("connect(desk) comes first")
        return await self._desk.sign_in_link(sign_in_id, Person(person, ""))


@dataclass(frozen=True, slots=True)
class _Installing:
    """What installs into many workspaces need."""

    records: InstallationRecords
    tokens: InstalledTokens
    pages: InstallPages

    @classmethod
    def of(cls, config: SlackConfig, installations: Installations | None, clock: Clock) -> _Installing:
        """Raises `ValueError` when something is missing."""
        client_id, secret = config.client_id, config.client_secret
        if installations is None or not client_id or not secret:
            raise ValueError("neither a bot token is set nor what installs into many workspaces need")
        records = InstallationRecords(installations.database, client_id, installations.sealer, clock=clock)
        tokens = InstalledTokens(
            records,
            client_id=client_id,
            client_secret=secret,
            api_url=config.api_url,
            allowed=config.may_install,
            clock=clock,
        )
        return cls(records, tokens, InstallPages(config, records, tokens.changed))

    async def close(self) -> None:
        """Disconnect."""
        await self.pages.close()
        await self.tokens.close()
        await self.records.close()
