"""The chat platforms that the settings switch on. Each is imported only when it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from aiohttp import web

from adapters.api.agent_to_agent.contract import AgentFacts
from adapters.api.receiver import ApiReceiver
from adapters.api.thread_names import ThreadNames
from adapters.gateway.in_progress import RequestsInProgress
from adapters.gateway.receiver import GatewayConfig, GatewayReceiver
from adapters.gateway.sessions import GatewaySessions
from adapters.gateway.tool_changes import ToolListeners
from adapters.shared.calls import PauseExchange
from adapters.shared.importing import imported
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.program_access import Authenticates, ProgramAccess, ProgramAccessConfig
from adapters.shared.token_watch import TokenWatch
from adapters.tool_servers.servers import ToolServers
from adapters.web.config import DEFAULT_PEOPLE, PageFacts, ToolServerFacts
from adapters.web.config import config_from as web_config
from adapters.web.receiver import WebReceiver
from adapters.web.sender import SharedPage, WebSender
from bot.accounts.sign_ins import SignInLinks
from bot.domain import Clock
from bot.identity.identities import IdentityRecords
from bot.identity.page_identity import PageIdentity
from bot.limits import BeginningsHere
from bot.platform import Platform
from bot.services import Services
from bot.settings import DEMO, Settings
from bot.sharing import SharedState

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from bot.records.notifications import Notifications


class Sender(Platform, Protocol):
    """The sending half of a chat platform: the port, and its end."""

    async def close(self) -> None:
        """Disconnect; nobody posts any more."""
        ...


class Receiver(Protocol):
    """The receiving half of a chat platform: takes what the platform sends and calls the services."""

    name: str

    def routes(self) -> Iterable[web.RouteDef]:
        """Returns the routes for the one aiohttp application."""
        ...

    async def start(self) -> None:
        """Connect, once the routes are there. Raises `NotConnected` when the platform refuses us."""
        ...

    async def stop(self) -> None:
        """Take nothing in any more. Posting goes on."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """How it is, for `/health-check`; JSON."""
        ...


@dataclass(frozen=True, slots=True)
class ChatPlatform:
    """A chat platform that is switched on."""

    sender: Sender
    receiver: Callable[[Services], Receiver]
    """Makes the receiving half, once there are services."""
    is_asking: Callable[[], bool] = lambda: False
    """Says whether the platform was asked for something that it gives only once, and that is not kept yet."""


@dataclass(frozen=True, slots=True)
class PlatformSetup:
    """What the sending half of a platform can be made from."""

    settings: Settings
    key: bytes
    """Seals what is kept, and signs the page's cookies."""
    links: SignInLinks
    """Used by platforms that send people their sign-in links unasked."""
    clock: Clock
    exchange: PauseExchange | None
    """Lets other processes wait when a platform asks this one to; `None`: there are none."""
    page: SharedPage | None = None
    """Where several processes serve the page."""
    changes: PeopleChanges | None = None
    """Lets other processes know when a platform says that people have changed; `None`: there are none."""
    identities: IdentityRecords | None = None
    """What is known of people who sign in on the page, and of those whom programs' tokens name."""


def slack_platform(setup: PlatformSetup) -> ChatPlatform | None:
    """Returns Slack; `None` when its variables are not set."""
    if not setup.settings.slack_configured:
        return None
    from adapters.slack.receiver import SlackReceiver  # noqa: PLC0415  # half a second of importing
    from adapters.slack.sender import slack_sender  # noqa: PLC0415  # as above

    sender = slack_sender(
        setup.settings, setup.key, setup.links.link, setup.clock, exchange=setup.exchange, changes=setup.changes
    )
    return ChatPlatform(sender, partial(SlackReceiver, sender), lambda: sender.is_asking)


def teams_platform(setup: PlatformSetup) -> ChatPlatform | None:
    """Returns Teams; `None` when its variables are not set."""
    if not setup.settings.teams_configured:
        return None
    from adapters.teams.receiver import TeamsReceiver  # noqa: PLC0415  # a second and a half of importing
    from adapters.teams.sender import teams_sender  # noqa: PLC0415  # as above

    sender = teams_sender(setup.settings, setup.links.link, setup.clock, exchange=setup.exchange, changes=setup.changes)
    return ChatPlatform(sender, partial(TeamsReceiver, sender))


CHAT_PLATFORMS = (slack_platform, teams_platform)


@dataclass(frozen=True, slots=True)
class Senders:
    """The sending halves; nothing is connected yet."""

    page: WebSender
    """Also where the page is not served: programs' conversations are shown in the same way."""
    chats: list[ChatPlatform]

    @property
    def by_name(self) -> dict[str, Platform]:
        """Those that are on, by the names of their platforms."""
        return {self.page.name: self.page, **{chat.sender.name: chat.sender for chat in self.chats}}

    @property
    def is_asking(self) -> bool:
        """Whether a platform was asked for something that it gives only once, and that is not kept yet."""
        return any(chat.is_asking() for chat in self.chats)

    async def close(self) -> None:
        """Disconnect, when nobody posts any more."""
        for chat in reversed(self.chats):
            await chat.sender.close()
        await self.page.close()


def make_senders(setup: PlatformSetup) -> Senders:
    """Returns the sending halves of the platforms that are switched on."""
    page = WebSender(web_config(setup.settings, setup.key), setup.page, setup.identities)
    return Senders(page, [chat for make in CHAT_PLATFORMS if (chat := make(setup)) is not None])


@dataclass(frozen=True, slots=True)
class Receivers:
    """The receiving halves."""

    page: WebReceiver | None
    api: ApiReceiver
    gateway: GatewayReceiver | None
    chats: list[Receiver]

    @property
    def all(self) -> list[WebReceiver | Receiver]:
        """The page, where it is on, and the chats."""
        return [*([self.page] if self.page is not None else []), *self.chats]

    async def visitor(self, request: web.Request) -> str | None:
        """The person id that the page's session proves; `None`: nobody's, or there is no page."""
        return await self.page.visitor(request) if self.page is not None else None


def make_receivers(
    senders: Senders,
    services: Services,
    settings: Settings,
    *,
    tools: ToolServers,
    shared: SharedState,
    bearers: Authenticates,
    identity: PageIdentity,
    key: bytes,
    version: str,
    starting: asyncio.Task[None],
    notifications: Notifications | None,
) -> Receivers:
    """Returns the receiving halves. `tools`: whose state the page tells; `identity`: who its people are; `key`: what
    seals the records; `version`: of this program, for others; `starting`: ends when turns, and calls, are handled;
    `notifications`: by which processes tell each other, where there may be several."""
    facts = partial(_page_facts, settings, tools)
    guesses = shared.beginnings if shared.replicas is not None else None
    api = ApiReceiver(
        _program_access(settings),
        services,
        bearers,
        shared.clock,
        names=ThreadNames(key, services.conversations),
        hub=senders.page.hub,
        board=senders.page.board,
        show_message=senders.page.show_message,
        messages_a_minute=settings.limit_turns_per_minute,
        hitl_timeout_seconds=settings.hitl_timeout_seconds,
        agent=AgentFacts(tools.categories, settings.api_jwt_issuer or ""),
    )
    page = None
    if settings.web_enabled:
        page = WebReceiver(
            senders.page,
            services,
            facts,
            clock=shared.clock,
            guesses=guesses,
            identity=identity,
            console=api.for_operators,
            is_stopped=services.console.halts.is_on.is_set,
        )
    gateway = None
    if settings.gateway_enable:
        gateway = _gateway_receiver(
            settings,
            services,
            tools,
            bearers,
            shared,
            in_progress=RequestsInProgress(notifications),
            key=key,
            version=version,
            starting=starting,
        )
    return Receivers(page, api, gateway, [chat.receiver(services) for chat in senders.chats])


def _gateway_receiver(
    settings: Settings,
    services: Services,
    tools: ToolServers,
    bearers: Authenticates,
    shared: SharedState,
    *,
    in_progress: RequestsInProgress,
    key: bytes,
    version: str,
    starting: asyncio.Task[None],
) -> GatewayReceiver:
    async def server() -> Server[Any, Any]:
        await asyncio.wait([starting])
        module = await imported("adapters.gateway.server")  # half a second
        made: Server[Any, Any] = module.make_server(
            services.gateway,
            services.sign_in_links,
            tools.find,
            tools.declared,
            wait_seconds=settings.gateway_wait,
            version=version,
        )
        return made

    listeners = ToolListeners()
    tools.when_tools_change(listeners.changed)
    names = frozenset(each.server for each in tools.status())
    return GatewayReceiver(
        GatewayConfig(names, settings.public_url, settings.api_jwt_issuer),
        ProgramAccess(_program_access(settings), bearers, BeginningsHere(monotonic)),
        GatewaySessions(key, shared.clock),
        TokenWatch(bearers, shared.clock),
        make_server=server,
        handed=services.gateway,
        listeners=listeners,
        in_progress=in_progress,
    )


def _program_access(settings: Settings) -> ProgramAccessConfig:
    """Without a token, programs on this machine are the local person of the page: where that needs no password."""
    is_local = settings.web_login == "local" and settings.on_loopback and settings.web_password is None
    return ProgramAccessConfig(DEFAULT_PEOPLE[0] if is_local else None, settings.public_url, settings.api_cors_origins)


def _page_facts(settings: Settings, tools: ToolServers) -> PageFacts:
    servers = tuple(ToolServerFacts(s.server, s.state, s.tools, s.reason) for s in tools.status())
    return PageFacts(
        is_demo=settings.model_name == DEMO,
        slack=settings.slack_configured,
        teams=settings.teams_configured,
        mode=settings.mode.value,
        tool_servers=servers,
    )
