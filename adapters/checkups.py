"""`app.py doctor`: everything that an installation needs, looked at side by side. The settings and files are read by
what the start reads them with, so that the two cannot disagree."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adapters.accounts import AccountsConfig, AccountsError, accounts_config
from adapters.shared.checkup import address_findings, certificate_findings, port_findings
from adapters.siem.checkup import collector_findings
from adapters.telemetry.checkup import telemetry_findings
from adapters.tool_servers.checkup import reached_from_here, tool_server_findings
from adapters.tool_servers.config import ConfigError, ToolServersConfig, load_config
from bot.audit.pushing import destination_of
from bot.domain import Clock
from bot.file_checkup import disk_findings, free_bytes, rights_findings, sealer_of
from bot.findings import LONGEST_CHECK_SECONDS, Check, Finding, Health, HeardTimes, collected, doubtful, fine, wrong
from bot.model_checkup import model_findings, name_of
from bot.policy_in_force import PolicyInForce
from bot.prices import PricesFileError, load_prices
from bot.records.checkup import SealedColumn, push_findings, record_findings
from bot.settings import DEMO, Settings, SettingsError, is_loopback
from graph.agents import Agents
from graph.agents_file import AgentsFileError, Installation, load_agents
from policies.judging import PolicyError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graph.models import ModelSpec

_SETTINGS, _POLICY, _AGENTS = "settings", "policy", "agents"
_FILES = "Look whether .env, and the files that it names, can be read: one may be on a share that does not answer."
_EXAMPLE = ".env.example says what each variable is for; docs/operations.md#settings"
Doubts = Iterable[tuple[str, Mapping[str, Any]]]
_DOUBTS = {
    "policy_rule_fits_no_server": "{at}: rule “{rule}” is about server {server}, which is not in mcp.json",
    "policy_rule_fits_no_tool": "{at}: rule “{rule}” names {tool}, which fits no tool: write server and tool apart",
    "policy_rule_believes_a_client": "{at}: rule “{rule}”: {reason}",
    "file_not_there": "{variable}: {file} is not there; {note}",
    "tool_servers_not_shared": "DATABASE_URL: tool servers {servers}: {note}",
    "operators_not_proven": "OPERATORS: {note}",
    "operators_only_in_groups": "OPERATORS names only groups: {note}",
}
"""What the log says at the start, as sentences."""


@dataclass(frozen=True, slots=True)
class _Files:
    """What stands in files; nothing where one cannot be read."""

    tools: ToolServersConfig = field(default_factory=ToolServersConfig)
    accounts: AccountsConfig = field(default_factory=AccountsConfig)
    agents: Agents = field(default_factory=Agents)


async def checkup(
    load: Callable[[], Settings],
    *,
    offline: bool,
    variables: Callable[[], Mapping[str, str]],
    make_model: Callable[[ModelSpec], BaseChatModel],
    check_rest: Callable[[Settings], object],
    doubts: Callable[[Settings, ToolServersConfig], Doubts],
    clock: Clock,
    environment: MutableMapping[str, str],
    free: Callable[[Path], int] = free_bytes,
    env_file: Path = Path(".env"),
    reading_seconds: float = LONGEST_CHECK_SECONDS,
) -> list[Finding]:
    """What is found, in the order in which it would be mended.

    Args:
        load: reads the settings. Raises `SettingsError`.
        offline: whether nobody outside this machine may be asked, but the database.
        variables: what `${…}` stands for in files.
        make_model: makes a language model.
        check_rest: what the start checks besides. Its exceptions say what is wrong.
        doubts: what the start warns of.
        environment: of this process, where libraries look for their own settings.
        free: says how much of the disk is.
        env_file: where the settings may stand.
        reading_seconds: how long reading the settings and files may take.
    """
    reading = asyncio.create_task(asyncio.to_thread(_read, load, variables, check_rest, doubts))
    await asyncio.wait({reading}, timeout=reading_seconds)
    if not reading.done():
        return [wrong("files", "could not be read in time", _FILES)]
    settings, files, found = reading.result()
    if settings is None:
        return found
    times = HeardTimes(clock)
    checks: dict[str, Check] = {
        "telemetry": partial(telemetry_findings, settings, variables(), environment),
        **_here(settings, times, free, env_file),
        **_outside(settings, files, times, make_model, offline=offline),
    }
    return [*found, *await collected(checks), *times.findings()]


def _read(
    load: Callable[[], Settings],
    variables: Callable[[], Mapping[str, str]],
    check_rest: Callable[[Settings], object],
    doubts: Callable[[Settings, ToolServersConfig], Doubts],
) -> tuple[Settings | None, _Files, list[Finding]]:
    """The settings and files, and what is wrong with them; `None`: nothing else can be looked at. Blocks: a file may be
    on a share that does not answer."""
    try:
        settings = load()
    except SettingsError as error:
        found = [wrong(_SETTINGS, problem, _EXAMPLE) for problem in error.problems]
        return None, _Files(), found
    files, found = _files(settings, variables())
    if all(each.status is not Health.WRONG for each in found):
        try:
            check_rest(settings)
            found = [fine(_SETTINGS, "can be used"), *found]
        except Exception as error:  # noqa: BLE001  # as the start would say it, before anything is opened
            found = [wrong(_SETTINGS, str(getattr(error, "sentence", error)), _EXAMPLE), *found]
    found += [doubtful(_SETTINGS, *_in_words(each)) for each in doubts(settings, files.tools)]
    return settings, files, found


def _files(settings: Settings, variables: Mapping[str, str]) -> tuple[_Files, list[Finding]]:
    """The files that the start reads, each for itself."""
    tools, accounts, agents, found = ToolServersConfig(), AccountsConfig(), Agents(), list[Finding]()
    try:
        tools = load_config(settings.mcp_config, variables)
    except ConfigError as error:
        found.append(wrong("tool servers", str(error), "Mend that line: docs/tool-servers.md"))
    try:
        accounts = accounts_config(tools, settings, variables)
    except AccountsError as error:
        found.append(wrong("accounts", str(error), "See docs/accounts.md"))
    servers = {server.name for server in tools.servers}
    try:
        policy = PolicyInForce(settings.policy_file, servers)
        found.append(fine(_POLICY, f"{settings.policy_file}: can be used"))
        found += [doubtful(_POLICY, *_in_words(each)) for each in policy.doubts]
    except PolicyError as error:
        remedy = f".venv/bin/python app.py policy check {settings.policy_file}, and docs/policies.md"
        found.append(wrong(_POLICY, str(error), remedy))
    try:
        agents = load_agents(settings.agents_file, Installation(servers, settings.objection_to))
        found.append(fine(_AGENTS, f"{settings.agents_file}: can be used, or there is none"))
    except AgentsFileError as error:
        found.append(wrong(_AGENTS, str(error), "Mend that line: docs/agents.md"))
    try:
        load_prices(settings.prices_file)
    except PricesFileError as error:
        found.append(wrong("prices", str(error), "Mend that line: docs/operations.md#usage-prices-and-budgets"))
    return _Files(tools, accounts, agents), found


def _in_words(doubt: tuple[str, Mapping[str, Any]]) -> tuple[str, str]:
    event, facts = doubt
    return _DOUBTS[event].format(**facts), "Mend it if it is not meant so; docs/operations.md#logs has the event."


def _here(settings: Settings, times: HeardTimes, free: Callable[[Path], int], env_file: Path) -> dict[str, Check]:
    """What is on this machine, and the database."""
    file, given = settings.sqlite_file, settings.encryption_key
    folder = Path(os.path.realpath(file)).parent if file is not None else None  # `resolve` fails for a link to itself
    key = given.get_secret_value().encode() if given else None

    def records() -> Sequence[Finding]:
        sealer = sealer_of(file.parent if file is not None else None, key)
        unseal = sealer.unseal if sealer is not None else None
        return record_findings(settings.records_address, unseal, times, _sealed_beside(settings))

    def files() -> Sequence[Finding]:
        at = folder or Path.cwd()
        return [*disk_findings(at, free), *rights_findings(folder, env_file, key_is_set=given is not None)]

    checks: dict[str, Check] = {
        "database": partial(asyncio.to_thread, records),
        "files": partial(asyncio.to_thread, files),
    }
    if settings.audit_push_url is not None:
        destination = destination_of(settings.audit_push_url.get_secret_value())
        checks["audit push"] = partial(asyncio.to_thread, push_findings, settings.records_address, destination)
    return checks


def _sealed_beside(settings: Settings) -> Sequence[SealedColumn]:
    """What platforms keep sealed in tables of their own."""
    if not settings.slack_client_id:
        return ()
    from adapters.slack.web_api.installing import sealed_tokens  # noqa: PLC0415  # half a second of importing

    return [sealed_tokens(settings.slack_client_id)]


def _outside(
    settings: Settings,
    files: _Files,
    times: HeardTimes,
    make_model: Callable[[ModelSpec], BaseChatModel],
    *,
    offline: bool,
) -> dict[str, Check]:
    """What is asked: tool servers, and without `offline` everybody else."""
    servers = reached_from_here(files.tools.servers) if offline else files.tools.servers
    url = settings.public_url
    checks: dict[str, Check] = {
        "port": partial(port_findings, settings.host, settings.port),
        "tool servers": partial(tool_server_findings, servers),
    }
    if not offline or is_loopback(urlsplit(url or "").hostname or ""):
        checks["public address"] = partial(address_findings, url, settings.host, settings.port)
    if offline:
        return checks
    checks["certificate"] = partial(certificate_findings, url)
    if settings.audit_push_url is not None:
        checks["audit push address"] = partial(collector_findings, settings.audit_push_url.get_secret_value())
    checks |= {name_of(spec): partial(model_findings, spec, make_model) for spec in _models(settings, files.agents)}
    if settings.slack_configured:
        from adapters.slack.checkup import slack_findings  # noqa: PLC0415  # half a second of importing
        from adapters.slack.config import config_from as slack_config  # noqa: PLC0415  # as above

        checks["slack"] = partial(slack_findings, slack_config(settings), times)
    if settings.teams_configured:
        from adapters.teams.checkup import teams_findings  # noqa: PLC0415  # as above
        from adapters.teams.config import config_from as teams_config  # noqa: PLC0415  # as above

        checks["teams"] = partial(teams_findings, teams_config(settings), url, times)
    return checks | _issuers(settings, files.accounts, times)


def _models(settings: Settings, agents: Agents) -> Sequence[ModelSpec]:
    """All that are asked, each as it is asked: some take no temperature."""
    specs = [settings.model_spec, settings.router_spec]
    specs += [settings.spec_of(each.model or settings.model_name, each.temperature) for each in agents.all]
    return [spec for spec in dict.fromkeys(specs) if spec.name != DEMO]


def _issuers(settings: Settings, accounts: AccountsConfig, times: HeardTimes) -> dict[str, Check]:
    issuers = {"OIDC_ISSUER": settings.oidc_issuer, "API_JWT_ISSUER": settings.api_jwt_issuer}
    named = {name: issuer for name, issuer in issuers.items() if issuer}
    if not named and not accounts.connections:
        return {}
    from adapters.oauth.checkup import account_findings, issuer_findings  # noqa: PLC0415  # a second of importing

    checks: dict[str, Check] = {
        name: partial(issuer_findings, name, issuer, times, signs_in=name == "OIDC_ISSUER")
        for name, issuer in named.items()
    }
    return checks | {"accounts": partial(account_findings, accounts.connections.values())}
