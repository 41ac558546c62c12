"""Countersign: settings → records → tools → graph → platforms → one aiohttp server. `python app.py` starts it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from dotenv import dotenv_values

from adapters.tool_servers import ConfigError, ToolServers, load_config, look_up
from adapters.web import PageFacts, ToolServerFacts, WebConfig, WebPlatform
from bot.clock import system_clock
from bot.house import House, HouseParts, open_house
from bot.inbox.lock import FolderInUseError, folder_lock
from bot.logs import configure_logs
from bot.platform import Platform
from bot.policy_in_force import PolicyInForce
from bot.records.schema import NewerSchemaError
from bot.redacting import log_redactor_of, redactor_of
from bot.secrets import Sealer, kept_key
from bot.settings import Settings, SettingsError, load_settings, plain
from graph.models import DEMO, ModelProblem
from policies.model import Tool
from policies.rules import PolicyError

if TYPE_CHECKING:
    from adapters.slack import SlackPlatform
    from adapters.teams import TeamsPlatform

log = structlog.get_logger(__name__)


POLICY = web.AppKey("policy", PolicyInForce)
SHUTDOWN_SECONDS = 5.0
"""For running turns to finish; what does not is taken up at the next start. All of the shutdown stays under 10 s."""
NO_MODEL = (
    "No language model is connected: the built-in demo model answers by rules. "
    "Set OPENAI_API_KEY (see the README) to talk with a real one."
)


class ConfigurationError(Exception):
    """Something in the configuration is wrong; the message says what, where, and what to do."""


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[web.Application]:
    """Everything, from the records to the routes, while it runs. Raises `ConfigurationError`."""
    database = database_file(settings)
    folder = database.parent
    try:
        tool_config = load_config(settings.mcp_config, _variables())
        policy = PolicyInForce(settings.policy_file)
    except (ConfigError, PolicyError) as error:
        raise ConfigurationError(str(error)) from error
    if not (settings.web_enabled or settings.slack_configured or settings.teams_configured):
        raise ConfigurationError(
            "No platform is on: set the variables of Slack or of Teams, or take out WEB_ENABLED=false for the web page."
        )
    if settings.langfuse_public_key:
        log.warning("tracing_not_supported", note="this version does not send traces to Langfuse yet")
    async with AsyncExitStack() as stack:
        try:
            stack.enter_context(folder_lock(folder))
        except FolderInUseError as error:
            raise ConfigurationError(str(error)) from error
        key = settings.encryption_key.get_secret_value().encode() if settings.encryption_key else kept_key(folder)
        # What we hand to tool servers is secret too.
        values = {key.decode(), *(secret for server in tool_config.servers for secret in server.secrets)}
        redactor = redactor_of(settings, values)
        tools = ToolServers(tool_config, redact=redactor.redact)
        await tools.start()
        stack.push_async_callback(tools.close)
        page = _web_platform(settings, tools, key) if settings.web_enabled else None
        slack = _slack_platform(settings, database, key) if settings.slack_configured else None
        teams = _teams_platform(settings) if settings.teams_configured else None
        chats = [chat for chat in (slack, teams) if chat is not None]
        for chat in chats:
            stack.push_async_callback(chat.close)  # after the house, which may still be posting
        platforms: dict[str, Platform] = {platform.name: platform for platform in (page, *chats) if platform}
        parts = HouseParts(settings, database, key, tools, policy, platforms, system_clock, redactor)
        try:
            house = await stack.enter_async_context(open_house(parts, shutdown_seconds=SHUTDOWN_SECONDS))
        except NewerSchemaError as error:
            raise ConfigurationError(str(error)) from error
        application = web.Application(client_max_size=1024**2)
        application[POLICY] = policy
        application.router.add_get(
            "/health-check", partial(_health, house=house, tools=tools, settings=settings, chats=chats)
        )
        if page is not None:
            application.add_routes(page.routes(house.desk))
            stack.push_async_callback(page.close)
        for chat in chats:
            chat.connect(house.desk)
            application.add_routes(chat.routes())
            stack.push_async_callback(chat.stop)
        if slack is not None:
            await _start_slack(slack)
        if teams is not None:
            await _start_teams(teams)
        yield application


def database_file(settings: Settings) -> Path:
    """The file of the embedded engine's records. Raises `ConfigurationError` for a database it cannot run on."""
    if settings.sqlite_file is None:
        raise ConfigurationError(
            "DATABASE_URL: PostgreSQL is not supported by this version yet. Use sqlite:///data/countersign.db."
        )
    return settings.sqlite_file


def _variables() -> dict[str, str]:
    """What `${…}` in `mcp.json` stands for: `.env` and the environment, which wins."""
    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return {**kept, **os.environ}


async def _health(
    _: web.Request,
    *,
    house: House,
    tools: ToolServers,
    settings: Settings,
    chats: Sequence[SlackPlatform | TeamsPlatform],
) -> web.Response:
    servers = {s.server: {"state": s.state, "tools": s.tools, "reason": s.reason} for s in tools.status()}
    body = {
        "status": "ok",
        "platforms": [*(["web"] if settings.web_enabled else []), *(chat.name for chat in chats)],
        "model": settings.model_name,
        "mode": settings.mode.value,
        "tool_servers": servers,
        "deliveries": await house.health(),
    }
    return web.json_response(body | {chat.name: chat.facts() for chat in chats})


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
        raise ConfigurationError(refusal.sentence) from refusal


async def _start_teams(teams: TeamsPlatform) -> None:
    from adapters.teams import TeamsNotConnected  # noqa: PLC0415  # as above

    try:
        await teams.start()
    except TeamsNotConnected as refusal:
        raise ConfigurationError(refusal.sentence) from refusal


async def serve(settings: Settings) -> None:
    """Run until SIGINT or SIGTERM; SIGHUP reads the policy again. Raises `ConfigurationError`."""
    stopping, reloading = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    async with running(settings) as application, application[POLICY].reloading_whenever(reloading):
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, settings.host, settings.port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigurationError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror}"
            ) from error
        host, port = runner.addresses[0][:2]
        # What was imported stays: searching it for garbage again and again would hold up everybody for 0.1 s each time.
        gc.collect()
        gc.freeze()
        log.info("listening", url=settings.public_url or f"http://{host}:{port}", model=settings.model_name)
        try:
            await stopping.wait()
            log.info("stopping")
        finally:
            await site.stop()
            await runner.cleanup()


def command(arguments: Sequence[str]) -> int:
    """`audit …` and `policy …`; see `bot/commands`. Nothing is started but the server of a tool that is asked about."""
    from bot.commands import Surroundings, run  # noqa: PLC0415  # serving has no use for them

    settings = cache(load_settings)
    around = Surroundings(
        database=lambda: database_file(settings()),
        policy_file=lambda: settings().policy_file,
        mode=lambda: settings().mode,
        find_tool=lambda name: _find_tool(name, settings().mcp_config),
        clock=system_clock,
    )
    return run(arguments, around)


def _find_tool(name: str, file: Path) -> Tool | None:
    try:
        return asyncio.run(look_up(name, load_config(file, _variables())))
    except ConfigError as error:
        raise ConfigurationError(str(error)) from error


def main(arguments: Sequence[str] = ()) -> int:
    """The command. Exits with 2 when the configuration is wrong."""
    try:
        if arguments:
            configure_logs(level="error")
            return command(arguments)
        settings = load_settings()
        configure_logs(
            level=settings.log_level,
            form=settings.log_format,
            secrets=settings.secret_values,
            redactor=log_redactor_of(settings),
        )
        asyncio.run(serve(settings))
    except (SettingsError, ConfigurationError, ModelProblem) as error:
        sys.stderr.write(f"countersign: {getattr(error, 'sentence', error)}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
