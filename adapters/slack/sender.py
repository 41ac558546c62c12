"""The sending half of Slack: it shows posts and looks people up. Made before the services; needs only its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.shared.calls import PauseExchange
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.sending import SignInLink
from adapters.slack.config import SlackConfig, config_from
from adapters.slack.ids import PLATFORM, named_place
from adapters.slack.outbound.drafts import SlackDrafts
from adapters.slack.outbound.outbox import SlackPostSender
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.earlier_messages import EarlierMessages
from adapters.slack.web_api.files import SlackFiles
from adapters.slack.web_api.people import SlackPeople, SlackPersonFacts
from adapters.slack.web_api.workspaces import OneToken, Workspaces
from bot.crypto import Sealer
from bot.domain import Clock, system_clock
from bot.settings import Settings

if TYPE_CHECKING:
    from adapters.slack.web_api.installing import Installations


class SlackSender:
    """Fills `bot.platform.Platform`: each method of the port is that of the part which does it.

    What the receiving half needs of the same client is public. `close` it when nobody posts any more.
    """

    name = PLATFORM

    def __init__(
        self,
        config: SlackConfig,
        sign_in_link: SignInLink,
        *,
        installations: Installations | None = None,
        clock: Clock = system_clock,
        exchange: PauseExchange | None = None,
        changes: PeopleChanges | None = None,
    ) -> None:
        """`installations` are needed where people install it themselves, that is, where no `bot_token` is set.
        `exchange`: lets other processes wait when Slack asks this one to; `changes`: lets them know when it says that
        people have changed. Raises `ValueError` for a configuration that cannot work."""
        if not (config.signing_secret or config.app_token):
            raise ValueError("neither a signing secret (Events API) nor an app token (Socket Mode) is set")
        tokens = OneToken(config.bot_token) if config.bot_token else installations
        if tokens is None:
            raise ValueError("neither a bot token is set nor what installs into many workspaces need")
        self.config = config
        self.clock = clock
        self.installations = installations
        self.workspaces = Workspaces(tokens, config.api_url, clock)
        self.api = WebApi(self.workspaces.token, config.api_url, refused=self.workspaces.refused, exchange=exchange)
        self.people = SlackPeople(self.api, config, clock, changes)
        self.facts = facts = SlackPersonFacts(self.api, self.people, clock=clock)
        self._earlier_messages = EarlierMessages(self.api, self.people, clock=clock)
        self._drafts = SlackDrafts(self.api, clock=clock)

        outbound = SlackPostSender(self.api, self._drafts, sign_in_link)
        self.send, self.update, self.find = outbound.send, outbound.update, outbound.find
        self.introduce = self._earlier_messages.introduce
        self._files = SlackFiles(self.api, self.workspaces.token, config.api_url)
        self.fetch_file = self._files.fetch_file
        self.live = self._drafts.live
        self.in_group, self.in_channel = facts.in_group, facts.in_channel
        self.account_of, self.name_of = facts.account_of, facts.name_of
        self.named_place = named_place

    @property
    def is_asking(self) -> bool:
        """Whether Slack was asked for something that it gives only once, and that is not kept yet."""
        return self.installations is not None and self.installations.is_asking

    async def close(self) -> None:
        """Disconnect."""
        await self._drafts.close()
        await self._earlier_messages.close()
        await self._files.close()
        await self.facts.close()
        await self.people.close()
        await self.api.close()
        await self.workspaces.close()
        if self.installations:
            await self.installations.close()


def slack_sender(
    settings: Settings,
    key: bytes,
    sign_in_link: SignInLink,
    clock: Clock,
    *,
    exchange: PauseExchange | None,
    changes: PeopleChanges | None,
) -> SlackSender:
    """The sending half that the settings describe. `key`: seals tokens."""
    config = config_from(settings)
    if config.bot_token or not (config.client_id and config.client_secret):
        return SlackSender(config, sign_in_link, clock=clock, exchange=exchange, changes=changes)
    # SQLAlchemy's ORM comes with what keeps installations: 6 MB, imported only where people install it.
    from adapters.slack.web_api.installing import Installations  # noqa: PLC0415

    installations = Installations(settings.records_address, config, Sealer(key), clock=clock)
    return SlackSender(
        config, sign_in_link, installations=installations, clock=clock, exchange=exchange, changes=changes
    )
