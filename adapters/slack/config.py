"""What the Slack platform has to be told, and what it asks of a workspace."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.settings import Settings, plain

SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "groups:history",
    "groups:read",
    "im:history",
    "im:write",
    "mpim:history",
    "usergroups:read",
    "users:read",
    "users:read.email",
)
"""Bot scopes, each explained in docs/slack.md; a test keeps them equal to `manifest.yml`."""
ALL_TEAMS = "*"
"""In `SLACK_INSTALL_TEAMS`: every workspace may install the app."""


@dataclass(frozen=True, slots=True)
class SlackConfig:
    """How this process is connected to Slack."""

    bot_token: str | None = field(default=None, repr=False)
    """`SLACK_BOT_TOKEN`, for one workspace."""
    signing_secret: str | None = field(default=None, repr=False)
    """`SLACK_SIGNING_SECRET`, for the Events API."""
    app_token: str | None = field(default=None, repr=False)
    """`SLACK_APP_TOKEN`, for Socket Mode."""
    client_id: str | None = None
    """`SLACK_CLIENT_ID`, for installs into many workspaces."""
    client_secret: str | None = field(default=None, repr=False)
    install_teams: frozenset[str] = frozenset()
    """`SLACK_INSTALL_TEAMS`: ids of the workspaces and organisations that may install it; `*`: all of them."""
    api_url: str = "https://slack.com/api/"
    public_url: str | None = None
    """`PUBLIC_URL`, where Slack sends people back to after an install."""
    agent_view: bool = True
    """Whether the app has Slack's agent view, in which each direct message begins a thread."""
    allow_guests: bool = False
    """Whether guests of a workspace may use the bot."""
    allowed_teams: frozenset[str] = frozenset()
    """Ids of other workspaces and organisations whose people may use it in shared (Slack Connect) channels."""

    def may_install(self, team: str, enterprise: str) -> bool:
        """Whether a workspace, or a whole organisation (`team` empty), may install the app and be served.

        A listed organisation stands for its workspaces; a listed workspace does not stand for its organisation.
        """
        return not self.install_teams.isdisjoint({ALL_TEAMS, team, enterprise} - {""})

    @property
    def socket_mode(self) -> bool:
        """Whether events come through a WebSocket that we open."""
        return self.app_token is not None


def config_from(settings: Settings) -> SlackConfig:
    """What the environment says of Slack."""
    return SlackConfig(
        bot_token=plain(settings.slack_bot_token),
        signing_secret=plain(settings.slack_signing_secret),
        app_token=plain(settings.slack_app_token),
        client_id=settings.slack_client_id,
        client_secret=plain(settings.slack_client_secret),
        install_teams=frozenset(settings.slack_install_teams),
        api_url=settings.slack_api_url,
        public_url=settings.public_url,
        agent_view=settings.slack_agent_view,
        allow_guests=settings.slack_allow_guests,
        allowed_teams=frozenset(settings.slack_allowed_teams),
    )
