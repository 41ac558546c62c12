"""Tokens that an operator makes for programs: the records, and the commands."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.data_folder import folder_lock
from bot.identity.page_people import PagePeople
from bot.identity.service_tokens import BadTokenError, ServiceTokens
from bot.records import identity, tables
from bot.records.database import Database
from bot.records.identity import UserRow
from bot.records.locks import UNLOCKED
from tests.bot.conftest import SetClock
from tests.support import postgres_cluster
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

ANA, SLACK = "web:ana", "slack:T1:U2"
PASSWORDS = PagePeople("password")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tokens(database: Database, clock: SetClock) -> ServiceTokens:
    return ServiceTokens(database, PASSWORDS, clock)


async def test_a_token_is_found_while_it_counts(tokens: ServiceTokens, clock: SetClock) -> None:
    token, row = await tokens.create("ci", SLACK, {"run", "read"}, clock() + 3600)
    assert re.fullmatch(r"cs_[A-Za-z0-9_-]{43}", token)
    found = await tokens.find(token)
    assert found is not None
    assert (found.token_id, found.name, found.person_id, found.scopes) == (row.token_id, "ci", SLACK, ["read", "run"])
    for other in ("", "cs_", token[:-1], f"{token}A", f"{token}\n", token.upper(), f"cs_{'A' * 43}"):
        assert await tokens.find(other) is None
    clock.move(3600)
    assert await tokens.find(token) is None, "expired"


async def test_a_revoked_token_counts_no_more(tokens: ServiceTokens) -> None:
    token, row = await tokens.create("ci", SLACK, {"run"}, None)
    assert await tokens.revoke("another") is False
    assert await tokens.revoke(row.token_id) is True
    assert await tokens.find(token) is None
    assert await tokens.revoke(row.token_id) is False


async def test_no_token_can_be_read_from_the_records(tokens: ServiceTokens, database: Database) -> None:
    token, _ = await tokens.create("ci", SLACK, {"run"}, None)
    async with database.reading() as tx:
        (row,) = await tx.all(sa.select(tables.service_tokens))
    assert token not in str(row)
    assert token[3:] not in str(row)


async def test_a_tokens_use_is_noted_once_a_minute(tokens: ServiceTokens, clock: SetClock) -> None:
    token, _ = await tokens.create("ci", SLACK, {"run"}, None)
    noted = []
    for seconds in (0.0, 30.0, 31.0):
        clock.move(seconds)
        assert await tokens.find(token) is not None
        await tokens.close()
        (row,) = await tokens.all()
        noted.append(None if row.used_at is None else clock() - row.used_at)
    assert noted == [0.0, 30.0, 0.0]


async def test_a_users_tokens_end_with_the_user(tokens: ServiceTokens, database: Database, clock: SetClock) -> None:
    with pytest.raises(BadTokenError, match="nobody"):
        await tokens.create("ci", ANA, {"run"}, None)
    async with database.writing(UNLOCKED) as tx:
        await identity.add_user(tx, UserRow("ana", "Ana", "hash", clock()))
    token, _ = await tokens.create("ci", ANA, {"run"}, None)
    assert await tokens.find(token) is not None
    async with database.writing(UNLOCKED) as tx:
        await identity.remove_user(tx, "ana")
    assert await tokens.find(token) is None


# ------------------------------------------------------------------------------------------------ the commands


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs a command on records that are not there yet; its exit code, what it wrote, and its errors."""
    address = f"sqlite:///{tmp_path}/records.db"
    if postgres_cluster.is_used():
        address = postgres_cluster.emptied_database()
    return lambda *arguments, now=1_000_000.0: run_command("token", *arguments, database=address, now=now)


def made(command: Command, **changed: str) -> tuple[int, str, str]:
    """`token create`, with these options changed."""
    options = {"name": "ci", "scopes": "run,read", "for": SLACK, "expires": "30d"} | changed
    return command("create", *(word for name, value in options.items() for word in (f"--{name}", value)))


def test_a_token_is_shown_once_listed_and_revoked(command: Command) -> None:
    code, token, said = made(command)
    assert code == 0
    assert re.fullmatch(r"cs_[A-Za-z0-9_-]{43}\n", token), "nothing else: another program may read it"
    token_id = said.split()[1]
    assert said == (
        f"Token {token_id} for {SLACK} (read, run), until 1970-02-11 13:46 UTC. It is shown only this once:\n"
    )
    assert command("list")[1] == f"{token_id}  expires 1970-02-11 13:46 UTC  ci  {SLACK}  read,run  never used\n"
    assert command("list", now=9_000_000.0)[1].split()[1] == "expired"
    assert command("revoke", token_id) == (0, f"Token {token_id} no longer counts.\n", "")
    assert command("list")[1].startswith(f"{token_id}  revoked 1970-01-12 13:46 UTC  ci  ")
    assert command("revoke", token_id)[0] == 2


@pytest.mark.parametrize(
    ("given", "acts_for"),
    [
        ("slack:T1:U2", "slack:T1:U2"),
        ("teams:2F1D8A3E-0000-4000-8000-000000000001:abc", "teams:2f1d8a3e-0000-4000-8000-000000000001:abc"),
        ("web:ana", "web:ana"),
    ],
)
def test_a_token_acts_for_people_of_every_platform(command: Command, given: str, acts_for: str) -> None:
    code, _, said = made(command, **{"for": given}, expires="never")
    assert code == 0
    assert f"for {acts_for} (read, run), until it is revoked." in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"for": "ana"}, "is no person"),
        ({"for": "slack-group:T1:S1"}, "is no person"),
        ({"for": "slack:T1:"}, "is no person"),
        ({"for": "web:a b"}, "is no person"),
        ({"for": "web:zoe"}, "There is nobody who is web:zoe"),
        ({"for": "web:oidc.0123456789abcdef01234567"}, "There is nobody"),
        ({"expires": "soon"}, "is no end"),
        ({"expires": "1970-01-02"}, "expired already"),
        ({"name": ""}, "A token's name"),
        ({"name": "a\nb"}, "A token's name"),
    ],
)
def test_a_token_that_would_be_of_no_use_is_not_made(command: Command, wrong: dict[str, str], said: str) -> None:
    code, out, error = made(command, **wrong)
    assert (code, out) == (2, "")
    assert said in error
    assert command("list")[1] == "There are no tokens.\n"


def test_a_token_has_only_scopes_that_there_are(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        made(command, scopes="run,fly")
    assert "must be of run, read, approve" in capsys.readouterr().err


@pytest.mark.sqlite
def test_tokens_are_made_while_the_product_runs(tmp_path: Path) -> None:
    file = tmp_path / "records.db"
    empty_database(file)
    with folder_lock(tmp_path):
        code, token, _ = made(
            lambda *words: run_command("token", *words, database=f"sqlite:///{file}"), expires="never"
        )
    assert (code, token[:3]) == (0, "cs_")


@pytest.mark.sqlite
def test_records_of_another_version_are_not_written_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "records.db"
    empty_database(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0011'")
    with folder_lock(tmp_path):
        code, out, error = run_command("token", "list", database=f"sqlite:///{file}")
    assert (code, out) == (2, "")
    assert error.startswith(f"countersign: Another Countersign works with {tmp_path}")
