"""`user add`, `user list` and `user remove`, as somebody with a shell on the server's machine uses them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from bot.data_folder import folder_lock
from bot.identity.ports import Claims
from bot.identity.sessions import PageSessions
from bot.identity.users import Users
from bot.records import identity
from bot.records.locks import UNLOCKED
from bot.records.sqlite import sqlite_database
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

PASSWORD = "correct horse"


class Shell:
    """Somebody's, in which commands are given for one database."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = file
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, typed: str = "") -> tuple[int, str]:
        """Exit code and what is shown."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        database = f"sqlite:///{self.file}"
        code, out, err = run_command("user", *arguments, database=database, now=1_795_000_000.0)
        return code, out + err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "data" / "records.db", monkeypatch)


def test_users_are_added_listed_and_removed(shell: Shell) -> None:
    assert shell("list") == (0, "There are no users.\n")
    assert shell("add", "ana", "--display-name", "Ana Lee", typed=f"{PASSWORD}\n")[0] == 0
    assert shell("list")[1] == "ana  Ana Lee  since 2026-11-18\n"
    assert shell("remove", "ana")[0] == 0
    assert shell("list")[1] == "There are no users.\n"


@pytest.mark.parametrize(
    ("arguments", "typed", "said"),
    [
        (("add", "Ana"), PASSWORD, "lowercase letters"),
        (("add", "ana"), "short", "8 to 1,000"),
        (("add", "ana"), "", "8 to 1,000"),
        (("remove", "ben"), "", "nobody of that name"),
    ],
)
def test_what_cannot_be_done_is_said(shell: Shell, arguments: tuple[str, ...], typed: str, said: str) -> None:
    code, shown = shell(*arguments, typed=typed)
    assert code == 2
    assert said in shown


def test_a_name_is_not_given_twice(shell: Shell) -> None:
    shell("add", "ana", typed=PASSWORD)
    assert shell("add", "ana", typed="another password") == (2, "countersign: there is a user ana already\n")


async def test_a_server_that_runs_on_the_same_file_sees_it_at_once(shell: Shell) -> None:
    def clock() -> float:
        return 1_795_000_000.0

    empty_database(shell.file)
    database = sqlite_database(shell.file)
    await database.open()
    try:
        with folder_lock(shell.file.parent):
            users, sessions = Users(database, clock), PageSessions(database, clock)
            await asyncio.to_thread(shell, "add", "ana", typed=PASSWORD)
            ana = await users.check("ana", PASSWORD)
            assert ana is not None
            session = await sessions.begin(ana.person, "password", password_hash=ana.password_hash)
            async with database.writing(UNLOCKED) as tx:
                claims = Claims("https://issuer.example", "7", "Ben", "ben@example.com")
                await identity.remember_claims(tx, "web:oidc.7", claims, clock())
            listed = (await asyncio.to_thread(shell, "list"))[1]
            assert "web:oidc.7  Ben  ben@example.com  https://issuer.example\n" in listed
            for name in ("ana", "web:oidc.7"):
                assert (await asyncio.to_thread(shell, "remove", name))[0] == 0
            assert await users.check("ana", PASSWORD) is None
            assert await sessions.find(session) is None
    finally:
        await database.close()
