"""The chat platforms that are switched on, put together. Each is imported only when it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.tool_servers.servers import ToolServers
from adapters.web import PageFacts, ToolServerFacts, WebConfig, WebPlatform
from bot.platform import Platform
from bot.secrets import Sealer
from bot.settings import DEMO, Settings, plain

if TYPE_CHECKING:
    from adapters.slack import SlackPlatform
    from adapters.teams import TeamsPlatform

NO_MODEL = (
    "No language model is connected: the built-in demo model answers by rules. "
    "Set OPENAI_API_KEY (see the README) to talk with a real one."
)


class NotConnected(Exception):  # noqa: N818  # a word of the house
    """A chat service did not let us in; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Platforms:
    """Those that are on."""

    page: WebPlatform | None
    slack: SlackPlatform | None
    teams: TeamsPlatform | None

    @property
    def chats(self) -> list[SlackPlatform | TeamsPlatform]:
        """All but the page."""
        return [chat for chat in (self.slack, self.teams) if chat is not None]

    @property
    def by_name(self) -> dict[str, Platform]:
        """All of them."""
        return {platform.name: platform for platform in (self.page, *self.chats) if platform is not None}

    async def start(self) -> None:
        """Connect to the services. Raises `NotConnected`."""
        if self.slack is not None:
            await _start_slack(self.slack)
        if self.teams is not None:
            await _start_teams(self.teams)


def make_platforms(settings: Settings, tools: ToolServers, database: Path, key: bytes) -> Platforms:
    """What the settings switch on; nothing is connected yet."""
    return Platforms(
        _web_platform(settings, tools, key) if settings.web_enabled else None,
        _slack_platform(settings, database, key) if settings.slack_configured else None,
        _teams_platform(settings) if settings.teams_configured else None,
    )


def _web_platform(settings: Settings, tools: ToolServers, key: bytes) -> WebPlatform:
    password = plain(settings.web_password)
    config = WebConfig(settings.host, settings.port, settings.public_url, password, secret=key)
    notice = NO_MODEL if settings.model_name == DEMO else ""

    def facts() -> PageFacts:
        servers = tuple(ToolServerFacts(s.server, s.state, s.tools, s.reason) for s in tools.status())
        return PageFacts(notice, settings.mode.value, servers)

    return WebPlatform(config, facts)


def _slack_platform(settings: Settings, database: Path, key: bytes) -> SlackPlatform:
    from adapters.slack import Installations, SlackPlatform, config_from  # noqa: PLC0415  # half a second of importing

    return SlackPlatform(config_from(settings), installations=Installations(database, Sealer(key)))


def _teams_platform(settings: Settings) -> TeamsPlatform:
    from adapters.teams import TeamsPlatform, config_from  # noqa: PLC0415  # a second and a half of importing

    return TeamsPlatform(config_from(settings))


async def _start_slack(slack: SlackPlatform) -> None:
    from adapters.slack import SlackNotConnected  # noqa: PLC0415  # as above

    try:
        await slack.start()
    except SlackNotConnected as refusal:
        raise NotConnected(refusal.sentence) from refusal


async def _start_teams(teams: TeamsPlatform) -> None:
    from adapters.teams import TeamsNotConnected  # noqa: PLC0415  # as above

    try:
        await teams.start()
    except TeamsNotConnected as refusal:
        raise NotConnected(refusal.sentence) from refusal
