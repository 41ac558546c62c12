"""`app.py doctor`: a deliberate fault of each kind is found, with what mends it, and nothing is changed."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sqlite3
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import astuple
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from cryptography.fernet import Fernet
from slack_sdk.oauth.installation_store import Installation

from adapters.shared.checkup import certificate_findings
from adapters.slack.config import SCOPES, SlackConfig
from adapters.slack.web_api.installing import Installations
from app import findings
from bot.audit.pushing import destination_of
from bot.commands.doctor import report
from bot.crypto import Sealer
from bot.file_checkup import disk_findings, rights_findings
from bot.findings import Finding, Health, HeardTimes, collected, fine
from bot.records.checkup import record_findings
from bot.settings import load_settings, variable
from tests.fakes.oauth.identity import identity_provider
from tests.fakes.oauth.mcp_server import protected_server
from tests.fakes.openai_server import Reply, fake_openai
from tests.fakes.siem import fake_siem
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.fakes.teams.server import FakeTeams, fake_teams
from tests.support.certificates import certificate_of
from tests.support.empty_database import empty_database
from tests.support.ports import free_port
from tests.support.product import GivenSettings
from tests.support.rights import NOBODY, refused_by_rights

Facts = dict[str, Any]
FINE, DOUBTFUL, WRONG = Health.FINE, Health.DOUBTFUL, Health.WRONG
SECRETS = ("xoxb-1", "xapp-1", "teams-app-password", "sk-a-secret", "a-password")


class Found:
    """What was found, by what was looked at."""

    def __init__(self, all_of: list[Finding]) -> None:
        self.all = all_of
        text = "\n".join(" ".join(astuple(each)) for each in all_of)
        assert not [secret for secret in SECRETS if secret in text], text

    def status(self, what: str) -> Health | None:
        return next((each.status for each in reversed(self.all) if each.what == what), None)

    def the_only_fault(self) -> Finding:
        (fault,) = [each for each in self.all if each.status is not FINE]
        assert fault.remedy
        return fault


@pytest.fixture
def looked(tmp_path: Path) -> Callable[..., Any]:
    """Looks at an installation in a folder of the test, without a tool server."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    aliases = {
        variable(name): str(field.validation_alias or name) for name, field in GivenSettings.model_fields.items()
    }

    async def look(
        *, offline: bool = False, clock: Callable[[], float] = time.time, facts: Facts | None = None, **more: Any
    ) -> Found:
        given = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'data' / 'countersign.db'}",
            "MCP_CONFIG": str(tmp_path / "mcp.json"),
            "PORT": "0",
            **more,
        }
        settings = GivenSettings(**{aliases[name]: value for name, value in given.items()})
        facts = {"env_file": tmp_path / ".env", **(facts or {})}
        return Found([*await findings(lambda: settings, offline=offline, clock=clock, **facts)])

    return look


# ------------------------------------------------------------------------------------ all is well


async def test_before_the_first_start_all_is_fine_and_nothing_is_made(looked: Any, tmp_path: Path) -> None:
    found = await looked()
    assert {each.status for each in found.all} == {FINE}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mcp.json"]


# ------------------------------------------------------------------------------------ settings and files


async def test_each_wrong_setting_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PORT", "WEB_LOGIN"):
        monkeypatch.delenv(name, raising=False)
    env = tmp_path / ".env"
    env.write_text("PORT=a-password\nWEB_LOGIN=nobody\n")
    found = Found([*await findings(partial(load_settings, env))])
    assert [(each.status, each.where.partition(":")[0]) for each in found.all] == [
        (WRONG, "PORT"),
        (WRONG, "WEB_LOGIN"),
    ]


@pytest.mark.parametrize(
    ("variable_of_file", "text"),
    [
        ("MCP_CONFIG", '{"mcpServers": {"a": {}}}'),
        ("POLICY_FILE", "version: 1\nrules:\n  - decide: perhaps\n"),
        ("AGENTS_FILE", "version: 1\nagents: 5\n"),
        ("PRICES_FILE", "version: 1\nprices: 5\n"),
    ],
)
async def test_a_mistake_in_a_file_is_found_with_its_line(
    looked: Any, tmp_path: Path, variable_of_file: str, text: str
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    fault = (await looked(offline=True, **{variable_of_file: str(file)})).the_only_fault()
    assert fault.status is WRONG
    assert f"{file}, line " in fault.where, fault


@pytest.mark.parametrize("variable_of_file", ["MCP_CONFIG", "CONNECTIONS_FILE", "AGENTS_FILE", "PRICES_FILE"])
async def test_a_file_that_is_named_and_not_there_is_found(looked: Any, tmp_path: Path, variable_of_file: str) -> None:
    fault = (await looked(offline=True, **{variable_of_file: str(tmp_path / "misspelt")})).the_only_fault()
    assert fault.status is DOUBTFUL
    assert f"{variable_of_file}: {tmp_path / 'misspelt'} is not there" in fault.where, fault


async def test_a_file_that_does_not_answer_is_found(looked: Any, tmp_path: Path) -> None:
    """As on a share whose server is away."""
    silent = tmp_path / "mcp.json"
    silent.unlink()
    os.mkfifo(silent)
    try:
        fault = (await looked(facts={"reading_seconds": 0.1})).the_only_fault()
    finally:
        silent.write_text("{}")  # the thread that still reads it ends
    assert (fault.status, fault.what) == (WRONG, "files")


async def test_what_the_start_refuses_and_what_it_warns_of_is_found(looked: Any, tmp_path: Path) -> None:
    assert (await looked(offline=True, WEB_ENABLED="false")).the_only_fault().status is WRONG
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - name: one\n    match: {server: elsewhere}\n    decide: allow\n")
    fault = (await looked(offline=True, POLICY_FILE=str(policy))).the_only_fault()
    assert (fault.status, fault.what) == (DOUBTFUL, "policy")
    assert "elsewhere" in fault.where


async def test_operators_whom_only_a_platform_knows_are_doubted(looked: Any) -> None:
    """While it cannot be asked, nobody could stop everything."""
    fault = (await looked(offline=True, OPERATORS="slack-group:T1:S1,entra-group:t:g")).the_only_fault()
    assert (fault.status, "nobody can stop everything" in fault.where) == (DOUBTFUL, True)
    assert {each.status for each in (await looked(offline=True, OPERATORS="slack-group:T1:S1,slack:T1:U1")).all} == {
        FINE
    }


# ------------------------------------------------------------------------------------ Slack and Teams, the clock


def slack_variables(slack: FakeSlack, **more: str) -> dict[str, str]:
    given = {"SLACK_API_URL": slack.api_url, "SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    return {**given, **more}


async def test_slack_says_what_is_wrong_with_its_tokens(looked: Any) -> None:
    async with fake_slack() as slack:
        fault = (await looked(**slack_variables(slack))).the_only_fault()
        assert (fault.status, fault.what) == (WRONG, "slack scopes")
        assert "channels:history" in fault.where
        slack.world.workspaces["T1"].scopes = ",".join(SCOPES)
        assert {each.status for each in (await looked(**slack_variables(slack))).all} == {FINE}
        fault = (await looked(**slack_variables(slack, SLACK_BOT_TOKEN="xoxb-another"))).the_only_fault()
        assert (fault.what, "invalid_auth" in fault.where) == ("slack token", True)
        fault = (await looked(**slack_variables(slack, SLACK_APP_TOKEN="xapp-another"))).the_only_fault()
        assert fault.what == "slack app token"


async def test_a_clock_that_is_ten_minutes_off_is_found_by_the_answers_dates(looked: Any) -> None:
    async with fake_slack() as slack:
        slack.world.workspaces["T1"].scopes = ",".join(SCOPES)
        fault = (await looked(clock=lambda: time.time() + 600, **slack_variables(slack))).the_only_fault()
    assert (fault.status, fault.what) == (WRONG, "clock")
    assert "ahead of that of Slack" in fault.where


async def test_offline_nobody_outside_is_asked(looked: Any) -> None:
    async with fake_slack() as slack:
        await looked(offline=True, **slack_variables(slack))
        assert slack.calls == []


def teams_variables(teams: FakeTeams, **more: str) -> dict[str, str]:
    return {
        "MICROSOFT_APP_ID": teams.app_id,
        "MICROSOFT_APP_PASSWORD": teams.app_password,
        "MICROSOFT_APP_TENANT_ID": teams.tenant,
        "TEAMS_LOGIN_URL": teams.login_url,
        "TEAMS_OPENID_METADATA_URL": teams.metadata_url,
        **more,
    }


@pytest.mark.parametrize(
    ("changes", "what", "said"),
    [
        ({"MICROSOFT_APP_PASSWORD": "another"}, "teams token", "MICROSOFT_APP_PASSWORD"),
        ({"MICROSOFT_APP_TENANT_ID": "another"}, "teams token", "MICROSOFT_APP_TENANT_ID"),
        ({"MICROSOFT_APP_ID": "another"}, "teams token", "MICROSOFT_APP_ID"),
        ({"TEAMS_LOGIN_URL": "http://127.0.0.1:1"}, "teams token", "connection"),
        ({"TEAMS_OPENID_METADATA_URL": "http://127.0.0.1:1"}, "teams keys", "connection"),
        ({}, "teams endpoint", "PUBLIC_URL"),
    ],
)
async def test_microsoft_says_what_is_wrong_with_the_app(
    looked: Any, changes: Mapping[str, str], what: str, said: str
) -> None:
    async with fake_teams() as teams:
        found = await looked(**teams_variables(teams, **changes))
    fault = next(each for each in found.all if each.status is not FINE)
    assert (fault.what, said in fault.where) == (what, True), fault
    assert found.status("clock") is not WRONG


async def test_a_machine_without_the_managed_identity_that_it_is_to_have_is_found(
    looked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1/")
    monkeypatch.setenv("IDENTITY_HEADER", "any")
    async with fake_teams() as teams:
        found = await looked(**teams_variables(teams, MICROSOFT_APP_TYPE="UserAssignedMSI"))
    fault = next(each for each in found.all if each.what == "teams token")
    assert (fault.status, fault.where.partition(":")[0]) == (WRONG, "MICROSOFT_APP_TYPE")


# ------------------------------------------------------------------------------------ the address


@asynccontextmanager
async def answering(text: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that answers so to everybody; its port."""

    async def handle(_: web.BaseRequest) -> web.Response:
        return web.Response(text=text, content_type="application/json")

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_a_public_address_that_leads_elsewhere_is_found_while_the_bot_runs(looked: Any) -> None:
    async with answering('{"status": "ok"}') as ours, answering("{}") as other:
        elsewhere = {"PUBLIC_URL": f"http://127.0.0.1:{other}"}
        fault = (await looked(PORT=str(ours), **elsewhere)).the_only_fault()
        assert (fault.status, fault.what) == (WRONG, "public address")
        fault = (await looked(PORT=str(free_port()), **elsewhere)).the_only_fault()
        assert (fault.status, "start it" in fault.remedy) == (DOUBTFUL, True)
        assert (await looked(PUBLIC_URL=f"http://127.0.0.1:{ours}")).status("public address") is FINE


async def test_another_program_on_the_port_is_found_and_a_countersign_is_none(looked: Any) -> None:
    async with answering('{"status": "ok"}') as ours, answering("{}") as other:
        fault = (await looked(offline=True, PORT=str(other))).the_only_fault()
        assert (fault.status, fault.what) == (WRONG, "port")
        assert (await looked(offline=True, PORT=str(ours))).status("port") is None
        assert (await looked(offline=True, PORT=str(free_port()))).status("port") is None


async def test_no_proxy_is_asked_for_what_listens_on_this_machine(looked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the bot itself were taken for another program on its port, which is to be stopped."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    async with answering('{"status": "ok"}') as ours:
        found = await looked(PORT=str(ours), PUBLIC_URL=f"http://127.0.0.1:{ours}")
    assert {each.status for each in found.all} == {FINE}
    assert found.status("public address") is FINE


@pytest.mark.parametrize(
    ("days", "is_trusted", "status", "said"),
    [
        (-1, True, WRONG, "expired"),
        (100, False, WRONG, "self-signed"),
        (3, True, DOUBTFUL, "ends in"),
        (100, True, FINE, "is good for"),
    ],
)
async def test_a_certificate_is_looked_at(
    tmp_path: Path, *, days: float, is_trusted: bool, status: Health, said: str
) -> None:
    file = certificate_of("localhost", tmp_path, days=days)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(file)
    trusted = partial(ssl.create_default_context, cafile=str(file)) if is_trusted else ssl.create_default_context
    async with answering("{}", server) as port:
        (finding,) = await certificate_findings(f"https://localhost:{port}", trusted=trusted)
    assert finding.status is status, finding
    assert said in finding.where


# ------------------------------------------------------------------------------------ records, key, disk


@pytest.fixture
def records(tmp_path: Path) -> Path:
    file = tmp_path / "data" / "countersign.db"
    empty_database(file)
    file.parent.chmod(0o700)
    return file


def change(file: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize(("revision", "status"), [("0009", DOUBTFUL), ("9999", WRONG)])
async def test_another_versions_records_are_found(looked: Any, records: Path, revision: str, status: Health) -> None:
    change(records, "UPDATE alembic_version SET version_num = ?", revision)
    fault = (await looked(offline=True)).the_only_fault()
    assert (fault.status, fault.what) == (status, "schema")


async def test_a_database_that_cannot_be_made_is_found(looked: Any, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    fault = (await looked(offline=True)).the_only_fault()
    assert (fault.status, fault.what, "is not a folder" in fault.where) == (WRONG, "database", True)


async def test_a_database_that_is_a_link_to_itself_is_found(looked: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(0o700)
    (tmp_path / "data" / "countersign.db").symlink_to("countersign.db")
    fault = (await looked(offline=True)).the_only_fault()
    assert (fault.status, fault.what, "a link to itself" in fault.where) == (WRONG, "database", True)


async def test_damaged_records_are_found(looked: Any, records: Path) -> None:
    records.write_bytes(b"nothing that is a database" * 100)
    assert (await looked(offline=True)).the_only_fault().what == "database"


async def test_damage_in_the_middle_of_the_records_is_found(looked: Any, records: Path) -> None:
    """SQLite opens the file, and so does the start."""
    with closing(sqlite3.connect(records)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'audit'")
        ((size,),) = connection.execute("PRAGMA page_size")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with records.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    fault = (await looked(offline=True)).the_only_fault()
    assert (fault.status, fault.what, f"{records} cannot be read" in fault.where) == (WRONG, "database", True)


@pytest.mark.parametrize("beside", ["countersign.checkpoints.db", "countersign.memory.db"])
async def test_damaged_files_beside_them_are_found(looked: Any, records: Path, beside: str) -> None:
    records.with_name(beside).write_bytes(b"nothing that is a database" * 100)
    assert beside in (await looked(offline=True)).the_only_fault().where


async def test_that_an_operator_has_stopped_everything_is_found(looked: Any, records: Path) -> None:
    stopped = ("h1", "web:olga", "Olga", "the password is a-password", 1_795_000_000.0)
    change(records, "INSERT INTO halts (halt_id, person_id, name, why, at) VALUES (?, ?, ?, ?, ?)", *stopped)
    fault = (await looked(offline=True)).the_only_fault()
    assert (fault.status, fault.what) == (DOUBTFUL, "stop")
    assert "web:olga has stopped everything, since 2026-11-18" in fault.where
    assert "a-password" not in str(fault)
    change(records, "UPDATE halts SET ended_at = ?", 1_795_000_001.0)
    assert (await looked(offline=True)).status("stop") is None


async def test_a_siem_that_refuses_the_log_is_found(looked: Any, records: Path) -> None:
    """As the process that pushes has written it down."""
    url = "https://siem.example.com/a-password"
    pushing = {"offline": True, "AUDIT_PUSH_URL": url}
    assert (await looked(**pushing)).status("audit push") is FINE
    row = (destination_of(url), 3, "0" * 64, "", 0.0, 0.0, 1, 1_795_000_000.0, "it refused with 403", None)
    columns = "destination, seq, hash, holder, held_until, next_at, failures, failing_since, problem, pushed_at"
    change(records, f"INSERT INTO audit_pushes ({columns}) VALUES ({','.join('?' * len(row))})", *row)
    fault = (await looked(**pushing)).the_only_fault()
    assert (fault.status, fault.what) == (WRONG, "audit push")
    assert "it refused with 403, since 2026-11-18" in fault.where


async def test_a_siem_that_cannot_be_reached_is_found_and_nothing_is_sent_to_one_that_can(looked: Any) -> None:
    async with fake_siem() as siem:
        assert (await looked(AUDIT_PUSH_URL=siem.url)).status("audit push address") is FINE
        assert siem.sizes == []
    fault = (await looked(AUDIT_PUSH_URL=siem.url)).the_only_fault()
    assert (fault.status, fault.what) == (WRONG, "audit push address")


async def test_a_key_that_does_not_open_what_is_sealed_is_found(looked: Any, records: Path) -> None:
    key, other = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    row = ("c1", "web:ana", "crm", "CRM", "", "[]", "active", 1, Sealer(key.encode()).seal("token"), 0.0)
    columns = "connection_id, person_id, connection, service, account, scopes, status, version, sealed_tokens, since"
    change(records, f"INSERT INTO connections ({columns}) VALUES ({','.join('?' * len(row))})", *row)
    assert (await looked(offline=True, ENCRYPTION_KEY=key)).status("encryption key") is FINE
    assert (await looked(offline=True, ENCRYPTION_KEY=f"{other},{key}")).status("encryption key") is FINE
    fault = (await looked(offline=True, ENCRYPTION_KEY=other)).the_only_fault()
    assert (fault.status, fault.what, fault.where[:22]) == (WRONG, "encryption key", "ENCRYPTION_KEY: 1 of 1")
    assert (await looked(offline=True)).the_only_fault().what == "encryption key", (
        "there is no key file, and none is made"
    )


async def test_a_key_that_does_not_open_the_tokens_of_workspaces_is_found(looked: Any, records: Path) -> None:
    """Without them the app is silent in every workspace that installed it. Those that were replaced do not count."""
    key, other = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    slack = {"SLACK_CLIENT_ID": "CLIENT", "SLACK_CLIENT_SECRET": "client-secret", "SLACK_SIGNING_SECRET": "signing"}
    given = {"offline": True, "PUBLIC_URL": "https://bot.example.com", **slack}
    assert (await looked(ENCRYPTION_KEY=key, **given)).status("encryption key") is FINE, "nobody has installed it yet"
    for at, team, sealed_with in ((1.0, "T1", other), (2.0, "T1", key), (3.0, "T2", key)):
        config = SlackConfig(client_id="CLIENT", client_secret="client-secret", install_teams=frozenset("*"))
        installations = Installations(f"sqlite:///{records}", config, Sealer(sealed_with.encode()))
        await installations.open()
        await installations.async_save(
            Installation(team_id=team, user_id=f"U{at}", app_id="A1", bot_token=f"xoxb-{at}", installed_at=at)
        )
        await installations.close()
    assert (await looked(ENCRYPTION_KEY=key, **given)).status("encryption key") is FINE
    fault = (await looked(ENCRYPTION_KEY=other, **given)).the_only_fault()
    assert (fault.status, fault.what, fault.where[:22]) == (WRONG, "encryption key", "ENCRYPTION_KEY: 2 of 2")


async def test_a_postgresql_that_is_down_is_found(looked: Any) -> None:
    address = f"postgresql://ana:a-password@127.0.0.1:{free_port()}/countersign"
    more = {"ENCRYPTION_KEY": Fernet.generate_key().decode(), "PUBLIC_URL": "https://bot.example.com"}
    fault = (await looked(offline=True, DATABASE_URL=address, **more)).the_only_fault()
    assert (fault.status, fault.what) == (WRONG, "database")


async def test_postgresql_without_what_replicas_share_is_found(looked: Any) -> None:
    address = f"postgresql://ana:a-password@127.0.0.1:{free_port()}/countersign"
    found = await looked(offline=True, DATABASE_URL=address)
    assert next(each for each in found.all if each.status is WRONG).where.startswith("ENCRYPTION_KEY: is not set")


@pytest.mark.parametrize(("free", "status"), [(5_000, WRONG), (500_000_000, DOUBTFUL), (5_000_000_000, FINE)])
async def test_a_full_disk_is_found(looked: Any, free: int, status: Health) -> None:
    assert (await looked(offline=True, facts={"free": lambda _: free})).status("disk space") is status


async def test_files_that_others_can_read_are_found(looked: Any, tmp_path: Path, records: Path) -> None:
    key_file, env = records.with_name("encryption.key"), tmp_path / ".env"
    for path, text in ((key_file, Fernet.generate_key().decode()), (env, "A=1")):
        path.write_text(text)
        path.chmod(0o600)
    assert {each.status for each in (await looked(offline=True)).all} == {FINE}
    for path, what, status in (
        (key_file, "key file", WRONG),
        (env, ".env", DOUBTFUL),
        (records.parent, "data folder", DOUBTFUL),
    ):
        before = path.stat().st_mode
        path.chmod(before | 0o044)
        fault = (await looked(offline=True)).the_only_fault()
        assert (fault.what, fault.status, fault.remedy[:5]) == (what, status, "chmod")
        path.chmod(before)
    key_file.write_text("no key")
    assert (await looked(offline=True)).the_only_fault().what == "key file"


@pytest.mark.parametrize(
    ("of_folder", "of_file", "closed"),
    [(0o555, None, "data"), (0o555, 0o444, "data"), (0o000, 0o600, "data"), (0o777, 0o444, "data/countersign.db")],
)
def test_records_that_the_user_of_the_program_may_not_write_are_found(
    of_folder: int, of_file: int | None, closed: str
) -> None:
    """As after a start as root, or in a container whose volume has another owner."""
    with TemporaryDirectory() as apart:
        Path(apart).chmod(0o755)
        file = Path(apart, "data", "countersign.db")
        file.parent.mkdir()
        if of_file is not None:
            with closing(sqlite3.connect(file)):
                file.touch()
            file.chmod(of_file)
        file.parent.chmod(of_folder)
        with refused_by_rights():
            (found,) = record_findings(f"sqlite:///{file}", None, HeardTimes(time.time))
            disk_findings(file.parent)
            rights_findings(file.parent, Path(apart, ".env"), key_is_set=False)
            named = f"{apart}/{closed}: cannot be written by the user who runs this ({os.geteuid()})"
        file.parent.chmod(0o700)
    assert (found.status, found.what, found.where) == (WRONG, "database", named)
    assert f"chown {os.geteuid() or NOBODY} {apart}/{closed}" in found.remedy


def test_records_on_a_disk_that_is_mounted_read_only_are_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted, access = SimpleNamespace(f_flag=os.statvfs(tmp_path).f_flag | os.ST_RDONLY), os.access
    monkeypatch.setattr(os, "statvfs", lambda _: mounted)
    monkeypatch.setattr(os, "access", lambda path, way, **how: not way & os.W_OK and access(path, way, **how))
    (found,) = record_findings(f"sqlite:///{tmp_path}/countersign.db", None, HeardTimes(time.time))
    assert (found.status, found.where) == (WRONG, f"{tmp_path}: its file system is mounted read-only")
    assert "chown" not in found.remedy


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer a-password"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
    ],
)
async def test_a_variable_of_opentelemetry_for_which_the_start_would_stop_is_found(
    looked: Any, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    assert (await looked(offline=True, **given)).status("telemetry") is FINE
    if name == "OTEL_EXPORTER_OTLP_HEADERS":
        given[name] = text
    else:
        monkeypatch.setenv(name, text)
    fault = (await looked(offline=True, **given)).the_only_fault()
    assert (fault.status, fault.what) == (WRONG, "telemetry")
    assert "OTEL_" in fault.where


# ------------------------------------------------------------------------------------ tools, model, OAuth


async def test_a_tool_server_that_does_not_start_is_found(looked: Any, tmp_path: Path) -> None:
    servers = {
        "gone": {"command": "/there/is/no/such/program"},
        "away": {"url": f"http://127.0.0.1:{free_port()}/mcp", "headers": {"Authorization": "Bearer a-password"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    found = await looked()
    assert (found.status("tool server gone"), found.status("tool server away")) == (WRONG, WRONG)


NEVER_ENDS = """
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
for line in sys.stdin:
    asked = json.loads(line)
    server = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    server["serverInfo"] = {"name": "stubborn", "version": "1"}
    result = server if asked["method"] == "initialize" else {"tools": []}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
while True:
    time.sleep(60)
"""


@pytest.mark.waits
async def test_a_tool_server_that_ends_for_nobody_does_not_outlive_the_look_at_it(looked: Any, tmp_path: Path) -> None:
    process = tmp_path / "process"
    entry = {"stubborn": {"command": sys.executable, "args": ["-c", NEVER_ENDS, str(process)]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entry}))
    assert (await looked()).status("tool server stubborn") is FINE
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)


async def test_a_model_that_refuses_is_found(looked: Any) -> None:
    replies = [Reply(text="ok"), Reply(status=401, error={"message": "sk-a-secret", "code": "invalid_api_key"})]
    async with fake_openai(replies) as server:
        more = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-a-secret", "LLM_MODEL": "m"}
        assert (await looked(**more)).status("model m") is FINE
        fault = (await looked(**more)).the_only_fault()
        assert (fault.status, fault.what) == (WRONG, "model m")
        await looked(offline=True, **more)
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 404])
async def test_a_model_that_takes_no_tools_is_found(looked: Any, status: int) -> None:
    """As behind vLLM and Ollama, where an operator has to see to it; each turn would fail."""

    def answer(body: Facts) -> Reply:
        return Reply(status=status, error={"message": "tools are not supported"}) if body.get("tools") else Reply("ok")

    async with fake_openai(answer) as server:
        more = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-a-secret", "LLM_MODEL": "m"}
        fault = (await looked(**more)).the_only_fault()
    assert (fault.status, fault.what, "refuses a question with tools" in fault.where) == (WRONG, "model m", True)


async def test_the_models_of_agents_are_asked_as_their_agents_ask_them(looked: Any, tmp_path: Path) -> None:
    """Another model may be misspelt, and some take no temperature."""
    agents = "version: 1\nagents:\n" + "".join(
        f"  - {{name: {name}, description: {name}, systemMessage: Be brief., {more}}}\n"
        for name, more in (("clerk", "model: other"), ("poet", "temperature: 0.9"))
    )
    (tmp_path / "agents.yaml").write_text(agents)

    def answer(body: Facts) -> Reply:
        is_refused = body["model"] == "other" or "temperature" in body
        return Reply(status=400, error={"message": "not so"}) if is_refused else Reply("ok")

    async with fake_openai(answer) as server:
        more = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-a-secret", "LLM_MODEL": "m"}
        found = await looked(AGENTS_FILE=str(tmp_path / "agents.yaml"), **more)
    asked = [(each.what, each.status) for each in found.all if each.what.startswith("model ")]
    assert asked == [("model m", FINE), ("model other", WRONG), ("model m, temperature 0.9", WRONG)]


async def test_a_certificate_that_is_not_trusted_is_told_as_the_cause_by_whatever_meets_it(
    looked: Any, tmp_path: Path
) -> None:
    """An authority of one's own, or a proxy that looks into TLS: nothing is wrong with addresses and keys."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate_of("localhost", tmp_path, days=100))
    async with answering("{}", tls) as port, fake_teams() as teams:
        there = f"https://localhost:{port}"
        servers = {"wiki": {"url": f"{there}/mcp"}, "drive": {"url": f"{there}/drive", "auth": "oauth"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        found = await looked(
            PUBLIC_URL=there,
            SLACK_API_URL=f"{there}/api/",
            SLACK_BOT_TOKEN="xoxb-1",
            SLACK_APP_TOKEN="xapp-1",
            **teams_variables(teams, TEAMS_LOGIN_URL=there, TEAMS_OPENID_METADATA_URL=f"{there}/keys"),
            LLM_MODEL="m",
            OPENAI_BASE_URL=f"{there}/v1",
            OPENAI_API_KEY="sk-a-secret",
            AUDIT_PUSH_URL=f"{there}/events",
            API_JWT_ISSUER=there,
            API_JWT_AUDIENCE="us",
        )
    faults = [each for each in found.all if each.status is not FINE]
    assert {each.what for each in faults} >= {
        *("slack token", "slack app token", "teams token", "teams keys", "tool server wiki", "accounts drive"),
        *("model m", "issuer localhost", "audit push address", "public address", "certificate"),
    }
    assert [each for each in faults if "certificate" not in each.where] == []


async def test_an_issuer_that_publishes_no_keys_is_found(looked: Any) -> None:
    async with identity_provider({}) as provider:
        more = {"WEB_LOGIN": "oidc", "OIDC_ISSUER": provider.base, "OIDC_CLIENT_ID": "c"}
        assert (await looked(**more)).status("issuer 127.0.0.1") is FINE
        for path in ("keys", "openid-configuration"):
            provider.faults = {path: (500, "")}
            fault = (await looked(**more)).the_only_fault()
            assert (fault.status, fault.what) == (WRONG, "issuer 127.0.0.1")


async def test_of_a_server_with_accounts_only_the_way_to_sign_in_is_asked(looked: Any, tmp_path: Path) -> None:
    async with protected_server() as server:
        entry = {"crm": {"url": f"{server.base}/mcp", "auth": "oauth"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entry}))
        assert (await looked()).status("accounts crm") is FINE
        server.metadata["code_challenge_methods_supported"] = None
        fault = (await looked()).the_only_fault()
    assert (fault.status, fault.what, "PKCE" in fault.where) == (WRONG, "accounts crm", True)


# ------------------------------------------------------------------------------------ the frame


async def test_what_hangs_and_what_fails_is_a_finding_like_any_other() -> None:
    async def hangs() -> list[Finding]:
        await asyncio.Event().wait()
        return []

    async def fails() -> list[Finding]:
        raise ValueError("a-password")

    async def works() -> list[Finding]:
        return [fine("one", "is fine")]

    found = Found(await collected({"a": hangs, "b": fails, "c": works}, seconds=0.05))
    assert [(each.what, each.status) for each in found.all] == [("a", WRONG), ("b", WRONG), ("one", FINE)]


def test_a_warning_alone_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    warned = [fine("a", "is fine"), Finding(DOUBTFUL, "b", "is odd", "mend it")]
    assert report(warned, sys.stdout, as_json=False) == 0
    assert "→ mend it" in capsys.readouterr().out
    assert report([*warned, Finding(WRONG, "c", "is bad", "mend it")], sys.stdout, as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["counts"] == {"fine": 1, "warning": 1, "wrong": 1}


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_found_is_written_where_there_are_only_letters_of_ascii(*, as_json: bool) -> None:
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    found = [Finding(DOUBTFUL, "b", "rule “ä” is odd \udcff", "mend it")]
    assert report(found, out, as_json=as_json) == 0
    assert rb"rule \u201c" in written.getvalue()
