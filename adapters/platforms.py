"""The chat platforms that the settings switch on. Each is imported only when it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from adapters.tool_servers.servers import ToolServers
from adapters.web.config import NO_MODEL, PageFacts, ToolServerFacts
from adapters.web.config import config_from as web_config
from adapters.web.receiver import WebReceiver
from adapters.web.sender import WebSender
from bot.accounts.sign_ins import SignInLinks
from bot.platform import Platform
from bot.services import Services
from bot.settings import DEMO, Settings

if TYPE_CHECKING:
    from adapters.slack.receiver import SlackReceiver
    from adapters.slack.sender import SlackSender
    from adapters.teams.receiver import TeamsReceiver
    from adapters.teams.sender import TeamsSender


@dataclass(frozen=True, slots=True)
class Senders:
    """The sending halves; nothing is connected yet."""

    page: WebSender | None
    slack: SlackSender | None
    teams: TeamsSender | None

    @property
    def by_name(self) -> dict[str, Platform]:
        """Those that are on, by the names of their platforms."""
        return {sender.name: sender for sender in (self.page, self.slack, self.teams) if sender is not None}

    async def close(self) -> None:
        """Disconnect, when nobody posts any more."""
        for sender in (self.teams, self.slack):
            if sender is not None:
                await sender.close()


def make_senders(settings: Settings, database: Path, key: bytes, links: SignInLinks) -> Senders:
    """The sending halves.

    `database`: SQLite file of the records. `key`: seals what is kept, and signs the page's cookies.
    """
    page = WebSender(web_config(settings, key)) if settings.web_enabled else None
    slack = teams = None
    if settings.slack_configured:
        from adapters.slack.sender import slack_sender  # noqa: PLC0415  # half a second of importing

        slack = slack_sender(settings, database, key, links.link)
    if settings.teams_configured:
        from adapters.teams.sender import teams_sender  # noqa: PLC0415  # a second and a half of importing

        teams = teams_sender(settings, links.link)
    return Senders(page, slack, teams)


@dataclass(frozen=True, slots=True)
class Receivers:
    """The receiving halves."""

    page: WebReceiver | None
    chats: list[SlackReceiver | TeamsReceiver]

    @property
    def all(self) -> list[WebReceiver | SlackReceiver | TeamsReceiver]:
        """The page, where it is on, and the chats."""
        return [*([self.page] if self.page is not None else []), *self.chats]

    def visitor(self, request: web.Request) -> str | None:
        """The person id that the page's session proves; `None`: nobody's, or there is no page."""
        return self.page.visitor(request) if self.page is not None else None


def make_receivers(senders: Senders, services: Services, settings: Settings, tools: ToolServers) -> Receivers:
    """The receiving halves. `tools`: whose state the page tells."""
    facts = partial(_page_facts, settings, tools)
    page = WebReceiver(senders.page, services, facts) if senders.page is not None else None
    chats: list[SlackReceiver | TeamsReceiver] = []
    if senders.slack is not None:
        from adapters.slack.receiver import SlackReceiver  # noqa: PLC0415  # as above

        chats.append(SlackReceiver(senders.slack, services))
    if senders.teams is not None:
        from adapters.teams.receiver import TeamsReceiver  # noqa: PLC0415  # as above

        chats.append(TeamsReceiver(senders.teams, services))
    return Receivers(page, chats)


def _page_facts(settings: Settings, tools: ToolServers) -> PageFacts:
    servers = tuple(ToolServerFacts(s.server, s.state, s.tools, s.reason) for s in tools.status())
    return PageFacts(NO_MODEL if settings.model_name == DEMO else "", settings.mode.value, servers)
