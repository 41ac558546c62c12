"""The sending half of Teams: it shows posts and looks people up. Made before the services; needs only its client."""

from __future__ import annotations

from functools import partial

from adapters.shared.calls import PauseExchange
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.sending import SignInLink
from adapters.teams.config import TeamsConfig, config_from
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.files import TeamsFiles
from adapters.teams.connector.people import TeamsPeople, TeamsPersonFacts
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import PLATFORM, named_place
from adapters.teams.inbound.visitors import introduce
from adapters.teams.outbound.drafts import TeamsDrafts
from adapters.teams.outbound.outbox import TeamsPostSender
from adapters.teams.outbound.posting import TeamsPrivateMessages
from bot.domain import Clock, system_clock
from bot.settings import Settings


class TeamsSender:
    """Fills `bot.platform.Platform`: each method of the port is that of the part which does it.

    What the receiving half needs of the same client is public. `close` it when nobody posts any more.
    """

    name = PLATFORM

    def __init__(
        self,
        config: TeamsConfig,
        sign_in_link: SignInLink,
        *,
        clock: Clock = system_clock,
        exchange: PauseExchange | None = None,
        changes: PeopleChanges | None = None,
    ) -> None:
        """`exchange`: lets other processes wait when Teams asks this one to; `changes`: lets them know when it says
        that people have changed. Raises `ValueError` for a configuration that cannot work."""
        self.config = config
        self.clock = clock
        self.tokens = tokens_of(config, clock=clock)
        self.connector = BotConnector(config, self.tokens, exchange=exchange)
        self.people = TeamsPeople(self.connector, config, clock=clock, changes=changes)
        self.facts = TeamsPersonFacts(self.people, config, exchange=exchange, clock=clock)
        self.private = TeamsPrivateMessages(self.connector, self.people, config, clock=clock)
        self._drafts = TeamsDrafts(self.connector, clock=clock)

        outbound = TeamsPostSender(self.connector, self.people, self._drafts, self.private, sign_in_link)
        self.send, self.update, self.find = outbound.send, outbound.update, outbound.find
        self._files = TeamsFiles(config, self.facts.entra)
        self.introduce = partial(introduce, self.people, self._files)
        self.fetch_file = self._files.fetch_file
        self.live = self._drafts.live
        self.in_group, self.in_channel = self.facts.in_group, self.facts.in_channel
        self.account_of, self.name_of = self.facts.account_of, self.facts.name_of
        self.named_place = named_place

    async def close(self) -> None:
        """Disconnect."""
        await self._drafts.close()
        await self.private.close()
        await self._files.close()
        await self.facts.close()
        await self.people.close()
        await self.connector.close()
        await self.tokens.close()


def teams_sender(
    settings: Settings,
    sign_in_link: SignInLink,
    clock: Clock,
    *,
    exchange: PauseExchange | None,
    changes: PeopleChanges | None,
) -> TeamsSender:
    """The sending half that the settings describe."""
    return TeamsSender(config_from(settings), sign_in_link, clock=clock, exchange=exchange, changes=changes)
