"""The receiving half of Slack: routes or a socket, verified, parsed, and given to the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from aiohttp import web

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.connecting import ConnectionCheck
from adapters.slack.ids import PLATFORM
from adapters.slack.inbound.answers import SlackAnswers
from adapters.slack.inbound.clicks import SlackClickHandler
from adapters.slack.inbound.commands import QuestionStarter, SlackCommandHandler
from adapters.slack.inbound.events import SlackMessageHandler
from adapters.slack.inbound.home_tab import SlackOverviews
from adapters.slack.inbound.requests import Handlers, SlackPayloadHandler, SlackRequestVerifier
from adapters.slack.inbound.socket_mode import SocketMode
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.workspaces import Bot
from bot.services import Services

log = structlog.get_logger(__name__)

EVENTS_PATH = "/slack/events"
INSTALLS_CLOSED = (
    "SLACK_INSTALL_TEAMS is not set: no workspace can install the app or is served. Set it to the ids of yours, or to *"
)
DRAIN_SECONDS = 3.0
"""Time for answers to people's clicks, when the process ends."""


class SlackReceiver:
    """Takes what Slack sends. `start` it when its routes are there, and `stop` it before the services stop."""

    def __init__(self, sender: SlackSender, services: Services) -> None:
        self.name = sender.name
        self._config = config = sender.config
        self._clock = sender.clock
        self._installations = sender.installations
        self._background = background = BackgroundTasks(PLATFORM)
        answers = SlackAnswers(sender)
        overviews = SlackOverviews(services, sender)
        self._questions = questions = QuestionStarter(services.inbox, sender, background)
        handlers = Handlers(
            SlackMessageHandler(services.inbox, sender, overviews, background),
            SlackClickHandler(
                services, answers=answers, overviews=overviews, questions=questions, background=background
            ),
            SlackCommandHandler(services, sender, answers=answers, overviews=overviews, questions=questions),
            background,
        )
        self._workspaces = workspaces = sender.workspaces
        self._inbound = SlackPayloadHandler(
            handlers, workspaces.authorize, config.api_url, agent_view=config.agent_view
        )
        self._socket = (
            SocketMode(self._inbound, config.app_token, config.api_url, background) if config.app_token else None
        )
        self._mode = "socket" if config.socket_mode else "http"
        self._bots: tuple[Bot, ...] | None = None
        self._connecting = ConnectionCheck(PLATFORM, self._connect)

    def routes(self) -> list[web.RouteDef]:
        """Returns the routes for the one aiohttp application. In Socket Mode Slack sends no events here."""
        routes: list[web.RouteDef] = []
        if self._installations:
            from adapters.slack.web_api.installing import InstallPages  # noqa: PLC0415  # as `slack_sender` does

            routes += InstallPages(self._config, self._installations).routes()
        if self._config.signing_secret and not self._config.socket_mode:
            verifier = SlackRequestVerifier(self._inbound, self._config.signing_secret, self._clock)
            routes.append(web.post(EVENTS_PATH, verifier.handle))
        return routes

    async def start(self) -> None:
        """Find out which workspaces we are in, and open the socket. Raises `NotConnected` when Slack refuses us; when
        it cannot be reached, this goes on trying in the background."""
        if self._installations:
            await self._installations.open()
            if not self._config.install_teams:
                log.warning("slack_installs_closed", note=INSTALLS_CLOSED)
        await self._connecting.start()
        if self._socket:
            await self._socket.start()

    def facts(self) -> Mapping[str, Any]:
        """Returns facts for `/health-check`."""
        return {
            "mode": self._mode,
            "connected": self._bots is not None and (self._socket is None or self._socket.connected),
            "workspaces": len(self._bots or ()),
        }

    async def stop(self) -> None:
        """Take nothing in any more, and give the answers that are still to be given. Posting goes on."""
        await self._connecting.close()
        await self._background.drain(DRAIN_SECONDS)
        await self._questions.close()
        if self._socket:
            await self._socket.close()
            await self._background.drain(0.0)  # what came in meanwhile was not acknowledged: Slack sends it again

    async def _connect(self) -> None:
        self._bots = await self._workspaces.connect()
        log.info("slack_connected", workspaces=[bot.name for bot in self._bots], mode=self._mode)
