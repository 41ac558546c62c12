"""Countersign: settings → records → tools → graph → platforms → one aiohttp server. `python app.py` starts it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web
from dotenv import dotenv_values

from adapters.tool_servers.config import ConfigError, ToolServersConfig, load_config
from adapters.tool_servers.servers import ToolServers, look_up
from bot.accounts.office import Outside
from bot.accounts.sign_ins import Address
from bot.clock import system_clock
from bot.house import House, HouseParts, open_house
from bot.inbox.lock import FolderInUseError, folder_lock
from bot.logs import configure_logs
from bot.masking import log_redactor_of, redactor_of
from bot.policy_in_force import PolicyInForce
from bot.records.opening import DamagedFileError, NewerSchemaError, open_records
from bot.secrets import KeyFileError, kept_key
from bot.settings import DEMO, Settings, SettingsError, load_settings
from composition.accounts import AccountsConfig, AccountsError, account_routes, accounts_config, open_accounts
from composition.health import health_check
from composition.platforms import NotConnected, make_platforms
from composition.serving import limits_for, listening, raise_open_files_limit
from composition.tracing import switch_off_logs_of_prompts, switch_off_tracing
from graph.models import ModelProblem, ModelSpec, create_model
from policies.model import Tool
from policies.redaction import fingerprint_key
from policies.rules import PolicyError
from policies.secret_rules import load_rules

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from adapters.slack import SlackPlatform
    from adapters.teams import TeamsPlatform

log = structlog.get_logger(__name__)


POLICY = web.AppKey("policy", PolicyInForce)
ADDRESS = web.AppKey("address", Address)
"""To be told on which port it listens."""
SHUTDOWN_SECONDS = 5.0
"""For running turns to finish; what does not is taken up at the next start. All of the shutdown stays under 10 s."""


class ConfigurationError(Exception):
    """Something in the configuration is wrong; the message says what, where, and what to do."""


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[web.Application]:
    """Everything, from the records to the routes, while it runs. Raises `ConfigurationError`."""
    switch_off_tracing(os.environ)
    switch_off_logs_of_prompts(os.environ)
    database = database_file(settings)
    folder = database.parent
    tool_config, account_config, policy = _configuration(settings)
    async with AsyncExitStack() as stack:
        try:
            stack.enter_context(folder_lock(database.resolve().parent))  # the records may be a link to a file elsewhere
            records = await stack.enter_async_context(open_records(database))
            given = settings.encryption_key
            key = given.get_secret_value().encode() if given else kept_key(folder)
        except (FolderInUseError, KeyFileError, NewerSchemaError, DamagedFileError) as error:
            raise ConfigurationError(str(error)) from error
        # What we hand to tool servers is secret too.
        handed = (secret for server in tool_config.servers for secret in server.secrets)
        values = {*key.decode().split(","), *handed, *account_config.secrets}
        redactor = redactor_of(settings, values, key=fingerprint_key(key))
        opened = open_accounts(account_config, settings, records.database, key, system_clock)
        accounts = await stack.enter_async_context(opened)
        masked = redactor.redact
        tools = ToolServers(tool_config, redact=masked, tokens=accounts.tokens, catalogues=accounts.catalogues)
        await tools.start()
        stack.push_async_callback(tools.close)
        platforms = make_platforms(settings, tools, database, key)
        for chat in platforms.chats:
            stack.push_async_callback(chat.close)  # after the house, which may still be posting
        address = Address(settings)
        outside = Outside(accounts.services, accounts.proofs, address, tools.forget)
        parts = HouseParts(
            settings,
            records,
            key,
            tools,
            policy,
            platforms.by_name,
            system_clock,
            redactor,
            create_model=_model,
            outside=outside,
        )
        house = await stack.enter_async_context(open_house(parts, shutdown_seconds=SHUTDOWN_SECONDS))
        tools.connect(house.sign_ins.completed)
        application = web.Application(client_max_size=1024**2)
        application[POLICY], application[ADDRESS] = policy, address
        details = partial(_details, house=house, tools=tools, settings=settings, chats=platforms.chats)
        token = settings.health_token.get_secret_value() if settings.health_token else None
        application.router.add_get("/health-check", health_check(details, token))
        page = platforms.page
        if page is not None:
            application.add_routes(page.routes(house.desk))
            stack.push_async_callback(page.close)
        application.add_routes(account_routes(account_config, house, settings, page.visitor if page else None))
        for chat in platforms.chats:
            chat.connect(house.desk)
            application.add_routes(chat.routes())
            stack.push_async_callback(chat.stop)
        try:
            await platforms.start()
        except NotConnected as refusal:
            raise ConfigurationError(str(refusal)) from refusal
        yield application


def _configuration(settings: Settings) -> tuple[ToolServersConfig, AccountsConfig, PolicyInForce]:
    """What the files say, checked before anything is opened."""
    try:
        tool_config = load_config(settings.mcp_config, _variables())
        account_config = accounts_config(tool_config, settings, _variables())
        policy = PolicyInForce(settings.policy_file)
    except (ConfigError, AccountsError, PolicyError) as error:
        raise ConfigurationError(str(error)) from error
    if not (settings.web_enabled or settings.slack_configured or settings.teams_configured):
        raise ConfigurationError(
            "No platform is on: set the variables of Slack or of Teams, or take out WEB_ENABLED=false for the web page."
        )
    if settings.langfuse_public_key:
        log.warning("tracing_not_supported", note="this version does not send traces to Langfuse yet")
    return tool_config, account_config, policy


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


def _model(spec: ModelSpec) -> BaseChatModel:
    """The model that a setting names. Raises `ModelProblem` when it is not configured."""
    if spec.name != DEMO:
        return create_model(spec)
    from demo_model.model import DemoChatModel  # noqa: PLC0415  # imported only when chosen

    return DemoChatModel()


async def _details(
    *, house: House, tools: ToolServers, settings: Settings, chats: Sequence[SlackPlatform | TeamsPlatform]
) -> Mapping[str, Any]:
    """How it is, for operators."""
    servers = {
        s.server: {"state": s.state, "tools": s.tools, "reason": s.reason, "withheld": s.withheld}
        for s in tools.status()
    }
    body = {
        "platforms": [*(["web"] if settings.web_enabled else []), *(chat.name for chat in chats)],
        "model": settings.model_name,
        "mode": settings.mode.value,
        "tool_servers": servers,
        "deliveries": await house.health(),
        "connections": await house.connections(),
    }
    return body | {chat.name: chat.facts() for chat in chats}


async def serve(settings: Settings) -> None:
    """Run until SIGINT or SIGTERM; SIGHUP reads the policy again. Raises `ConfigurationError`."""
    stopping, reloading = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    limits = limits_for(raise_open_files_limit())
    async with AsyncExitStack() as stack:
        application = await stack.enter_async_context(running(settings))
        await stack.enter_async_context(application[POLICY].reloading_whenever(reloading))
        server = listening(application, settings.host, settings.port, limits)
        try:
            host, port = await stack.enter_async_context(server)
        except OSError as error:
            raise ConfigurationError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror}"
            ) from error
        application[ADDRESS].listens_on(port)
        # What was imported stays: searching it for garbage again and again would hold up everybody for 0.1 s each
        # time.
        gc.collect()
        gc.freeze()
        log.info("listening", url=settings.public_url or f"http://{host}:{port}", model=settings.model_name)
        await stopping.wait()
        log.info("stopping")


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
        load_rules()
        asyncio.run(serve(settings))
    except SubprocessError as error:
        sys.stderr.write(f"countersign: the rules for secrets could not be read from their package: {error}\n")
        return 2
    except (SettingsError, ConfigurationError, ModelProblem) as error:
        sys.stderr.write(f"countersign: {getattr(error, 'sentence', error)}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
