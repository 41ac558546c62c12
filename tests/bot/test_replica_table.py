"""What processes on one PostgreSQL know of each other, and follow: here two in one, each with a database of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from adapters.shared.calls import CallFailed, Calls
from adapters.slack.web_api import client as slack
from adapters.teams.connector import client as teams
from bot import replicas
from bot.policy_in_force import PolicyInForce
from bot.records import tables
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase
from bot.records.replicas import FORGOTTEN_SECONDS, GONE_SECONDS, ReplicaRow
from bot.replicas import DIFFERS_SECONDS, STAGGER_SECONDS, ReplicaTable, SharedPauses
from tests.bot.conftest import until
from tests.support.moments import Moments
from tests.support.replicas import two_databases
from tests.support.waiting import at_most_waiting

pytestmark = pytest.mark.postgres
DENIED = 'version: 1\nrules:\n  - {name: no making, match: {tool: "make*"}, decide: deny}\n'
ALLOWED = 'version: 1\nrules:\n  - {name: making, match: {tool: "make*"}, decide: allow}\n'
BAD = "version: 1\nrules:\n  - {name: making, match: {tool: make}, decide: perhaps}\n"
LINE = ("T1", "chat.postMessage", "C1")


@dataclass
class Process:
    """One process, as far as the others are concerned."""

    database: PostgresDatabase
    file: Path
    policy: PolicyInForce
    pauses: SharedPauses
    table: ReplicaTable

    def rule(self) -> str:
        return self.policy().rules[0].name

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """What it tells of the others, by their ids."""
        return {each["id"]: each for each in self.table.facts() if not each["here"]}


def process(database: PostgresDatabase, folder: Path, name: str, started_at: float) -> Process:
    file = folder / f"{name}.yaml"
    file.write_text(DENIED)
    policy, pauses = PolicyInForce(file, []), SharedPauses(database)
    me = ReplicaRow(name, f"host-of-{name}", 7, "0.1.0", "", 0, started_at)
    return Process(database, file, policy, pauses, ReplicaTable(database, me, policy, pauses))


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Process, Process]]:
    async with two_databases() as (one, other):
        yield process(one, tmp_path, "one", 1_795_000_000.0), process(other, tmp_path, "other", 1_795_000_060.0)


@pytest.fixture
async def running(two: tuple[Process, Process]) -> AsyncIterator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        for each in two:
            await stack.enter_async_context(each.table.kept())
        yield two


async def unseen_for(database: PostgresDatabase, seconds: float) -> None:
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.update(tables.replicas).values(seen_at=tables.replicas.c.seen_at - seconds))


# ------------------------------------------------------------------------------------------- who is there


@pytest.fixture
async def with_a_column_more(two: tuple[Process, Process]) -> AsyncIterator[None]:
    """The next version has added one to the table, after this one has looked."""
    await two[0].table.look()
    async with two[1].database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("ALTER TABLE replicas ADD COLUMN of_the_next text"))
    yield
    async with two[1].database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("ALTER TABLE replicas DROP COLUMN of_the_next"))


@pytest.mark.usefixtures("with_a_column_more")
async def test_each_is_seen_although_the_next_version_has_added_a_column(two: tuple[Process, Process]) -> None:
    """Without that, no program of this version could be started in the middle of a rollout."""
    one, other = two
    await other.table.look()
    await one.table.look()
    assert list(one.others()) == ["other"]


async def test_each_is_seen_by_the_other(two: tuple[Process, Process]) -> None:
    one, other = two
    await one.table.look()
    await other.table.look()
    await one.table.look()
    seen = dict(one.others()["other"])
    assert 0 <= seen.pop("seen_seconds_ago") < 2
    assert seen == {
        "id": "other",
        "host": "host-of-other",
        "process": 7,
        "here": False,
        "version": "0.1.0",
        "started": "2026-11-18T11:07:40+00:00",
        "policy": other.policy().version,
        "policy_differs": False,
    }
    assert [each["here"] for each in one.table.facts()] == [True, False]
    assert other.others().keys() == {"one"}


async def test_whoever_ends_is_gone_at_once(two: tuple[Process, Process]) -> None:
    one, other = two
    async with other.table.kept():
        await one.table.look()
        assert one.others().keys() == {"other"}
    await one.table.look()
    assert one.others() == {}


async def test_whoever_dies_is_gone_after_some_seconds_and_then_forgotten(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    await other.table.look()
    await one.table.look()
    await unseen_for(one.database, GONE_SECONDS)
    await one.table.look()
    assert one.others() == {}
    await unseen_for(one.database, FORGOTTEN_SECONDS)
    monkeypatch.setattr(replicas, "SWEPT_EVERY", 0.0)
    await one.table.look()
    async with one.database.reading() as tx:
        kept = await tx.all(sa.select(tables.replicas.c.replica_id))
    assert [each.replica_id for each in kept] == ["one"]


async def test_while_the_database_is_away_nobody_is_said_to_be_there(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    await other.table.look()
    await one.table.look()
    later = time.monotonic() + GONE_SECONDS
    monkeypatch.setattr(replicas.time, "monotonic", lambda: later)
    assert one.others() == {}


async def test_what_the_dead_have_left_is_taken_up(two: tuple[Process, Process]) -> None:
    one, other = two
    taken_up = 0

    async def take_up() -> None:
        nonlocal taken_up
        taken_up += 1
        raise ConnectionError  # which ends nothing

    one.table.when_one_is_gone(take_up)
    for each in (one, other, one, one):
        await each.table.look()
    assert taken_up == 0
    await unseen_for(one.database, GONE_SECONDS)
    for _ in range(3):
        await one.table.look()
    await until(lambda: taken_up == 1)


# ------------------------------------------------------------------------------------------- the policy


async def test_a_policy_that_one_was_asked_to_read_again_is_read_again_by_all(
    running: tuple[Process, Process],
) -> None:
    """Rule 9. Each reads its own file, within about two seconds."""
    one, other = running
    for each in running:
        each.file.write_text(ALLOWED)
    asked = asyncio.Event()
    async with at_most_waiting(2), one.policy.reloading_whenever(asked, one.table.reload_asked):
        asked.set()
        await until(lambda: one.rule() == "making" and other.rule() == "making")


async def test_a_file_that_cannot_be_used_changes_nothing_where_it_is(
    running: tuple[Process, Process],
) -> None:
    one, other = running
    one.file.write_text(ALLOWED)
    other.file.write_text(BAD)
    asked = asyncio.Event()
    with capture_logs() as logged:
        async with one.policy.reloading_whenever(asked, one.table.reload_asked):
            asked.set()
            await until(lambda: one.rule() == "making" and any(each["event"] == "policy_refused" for each in logged))
    assert other.rule() == "no making"
    await until(lambda: one.others()["other"]["policy_differs"] and other.others()["one"]["policy_differs"])


async def test_it_is_read_again_once_for_each_time(two: tuple[Process, Process]) -> None:
    one, other = two
    for each in (one, other, one):
        await each.table.look()
    for _ in range(2):
        other.table.reload_asked()
        await other.table.look()
        await one.table.look()
        assert one.table._reloading.is_set()
        one.table._reloading.clear()
        for each in (one, other, one):
            await each.table.look()
            assert not each.table._reloading.is_set()


async def test_who_starts_does_not_read_it_again_for_what_was_asked_before(two: tuple[Process, Process]) -> None:
    one, other = two
    one.table.reload_asked()
    await one.table.look()
    await other.table.look()
    assert not other.table._reloading.is_set()


async def test_who_starts_while_it_is_replaced_reads_it_again(two: tuple[Process, Process]) -> None:
    """It may have read the old one just before, and not have been there yet when the others were asked."""
    one, other = two
    one.file.write_text(ALLOWED)
    await one.policy.reload()
    await one.table.look()
    await other.table.look()
    assert other.table._reloading.is_set()


async def test_that_policies_differ_is_said_once(two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two
    now = time.monotonic()
    monkeypatch.setattr(replicas.time, "monotonic", lambda: now)
    one.file.write_text(ALLOWED)

    async def logged() -> list[tuple[str, Any]]:
        nonlocal now
        with capture_logs() as entries:
            for _ in range(4):
                for each in (other, one):
                    await each.table.look()
                now += DIFFERS_SECONDS / 2
        return [
            (entry["event"], entry.get("elsewhere"))
            for entry in entries
            if entry.get("version") == one.policy().version
        ]

    assert await logged() == []
    before = one.policy().version
    await one.policy.reload()
    assert await logged() == [("policy_differs", {"host-of-other:7": before})]
    assert await logged() == []
    other.file.write_text(ALLOWED)
    await other.policy.reload()
    assert ("policy_differs_no_more", None) in await logged()


# ------------------------------------------------------------------------------------------- pauses


@dataclass
class Caller:
    """Calls of one process to a service that refuses the first so many."""

    calls: Calls
    moments: Moments
    sent: int = 0
    refused: int = 0
    retry_after: float = 30.0

    async def call(self, line: Any = LINE, patience: float = 60.0) -> float:
        """Returns how long it took until the call went out that was taken."""
        began = self.moments.now

        async def send(_token: str, _seconds: float) -> float:
            self.sent += 1
            if self.refused:
                self.refused -= 1
                raise CallFailed("post", "ratelimited", retry_after=self.retry_after)
            return self.moments.now - began

        async def token() -> str:
            return "token"

        async def renewed(_failure: CallFailed, _token: str) -> bool:
            return False

        deadline = self.moments.now + patience
        return await self.calls.run("post", line, deadline, send, token=token, renewed=renewed)


def caller(of: Process, *, exchange: bool = True, service: str = "slack") -> Caller:
    moments = Moments()
    pace_of = {"slack": slack.pace_of, "teams": teams.pace_of}[service]
    calls = Calls(
        service,
        pace_of,
        repeatable=frozenset(),
        pauses=(0.25, 5.0),
        exchange=of.pauses if exchange else None,
        clock=moments.clock,
        sleep=moments.sleep,
        jitter=lambda: 0.0,
    )
    return Caller(calls, moments)


@pytest.mark.parametrize(
    "how", ["shared", pytest.param("not shared", marks=pytest.mark.xfail(strict=True, reason="each waits by itself"))]
)
async def test_what_slack_asks_one_to_wait_all_wait(two: tuple[Process, Process], how: str) -> None:
    one, other = two
    here, there = (caller(each, exchange=how == "shared") for each in two)
    here.refused = 1
    assert await here.call() == pytest.approx(30, abs=0.1)
    await one.pauses.close()
    await one.table.look()
    await other.table.look()
    with pytest.raises(CallFailed) as failure:
        await there.call(patience=20)
    assert (failure.value.error, there.sent) == ("ratelimited", 0)
    assert failure.value.retry_after == pytest.approx(30, abs=2)
    assert await there.call(("T1", "chat.postMessage", "C2")) == 0, "another channel"
    assert await there.call(("T1", "users.info", "")) == 0, "another method"
    assert await there.call() == pytest.approx(30 + STAGGER_SECONDS, abs=2)


async def test_what_teams_asks_one_to_wait_all_wait(two: tuple[Process, Process]) -> None:
    one, other = two
    here, there = (caller(each, service="teams") for each in two)
    line = teams.Line("sending", "19:meeting")
    here.refused = 1
    await here.call(line)
    await one.pauses.close()
    await other.table.look()
    assert await there.call(line) == pytest.approx(30, abs=2)
    assert await there.call(teams.Line("sending", "19:other")) == 0


async def test_processes_go_on_one_after_the_other_when_a_pause_is_over(two: tuple[Process, Process]) -> None:
    one, other = two
    for each in (one, other, one):
        await each.table.look()
    heard: dict[str, float] = {}
    one.pauses.hears("slack", lambda _line, seconds: heard.update(one=seconds))
    other.pauses.hears("slack", lambda _line, seconds: heard.update(other=seconds))
    third = SharedPauses(one.database)
    third.asked("slack", '["T1"]', 30.0)
    await third.close()
    await one.table.look()
    await other.table.look()
    assert heard["other"] - heard["one"] == pytest.approx(STAGGER_SECONDS, abs=STAGGER_SECONDS / 2)


async def test_a_pause_is_heard_once_and_a_longer_one_again(two: tuple[Process, Process]) -> None:
    one, other = two
    heard: list[tuple[str, float]] = []
    one.pauses.hears("slack", lambda line, seconds: heard.append((line, round(seconds))))
    other.pauses.hears("slack", lambda line, seconds: heard.append((line, round(seconds))))

    async def asked(seconds: float) -> None:
        one.pauses.asked("slack", "C1", seconds)
        one.pauses.asked("teams", "C1", seconds)  # which nobody calls here
        await one.pauses.close()
        for _ in range(3):
            for each in two:
                await each.table.look()

    await asked(30)
    assert heard == [("C1", 30)], "and not by who told it"
    await asked(10)
    assert len(heard) == 1, "a shorter pause does not end a longer one"
    await asked(60)
    assert heard == [("C1", 30), ("C1", 60)]


async def test_a_longer_pause_of_another_is_heard_by_who_is_asked_for_a_shorter_one(
    two: tuple[Process, Process],
) -> None:
    one, other = two
    heard: list[tuple[str, float]] = []
    one.pauses.hears("slack", lambda line, seconds: heard.append((line, round(seconds))))
    for process, seconds in ((other, 60.0), (one, 5.0)):
        process.pauses.asked("slack", "C1", seconds)
        await process.pauses.close()
    await one.table.look()
    assert heard == [("C1", 60)]


async def test_a_pause_that_cannot_be_told_holds_nobody_up(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two

    def away() -> Any:
        raise sa.exc.OperationalError("", {}, Exception())

    monkeypatch.setattr(one.database, "at_once", away)
    here = caller(one)
    here.refused = 1
    with capture_logs() as logged:
        assert await here.call() == pytest.approx(30, abs=0.1)
        await one.pauses.close()
    assert [each["event"] for each in logged] == ["rate_limited", "pause_not_told"]


async def test_a_pause_that_is_over_is_forgotten(two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    one.pauses.asked("slack", "C1", -FORGOTTEN_SECONDS - 1)
    await one.pauses.close()
    monkeypatch.setattr(replicas, "SWEPT_EVERY", 0.0)
    await one.table.look()
    async with one.database.reading() as tx:
        assert await tx.all(sa.select(tables.pauses)) == []


# ------------------------------------------------------------------------------------------- trouble


async def test_it_goes_on_when_the_database_was_away_and_says_so_once(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(replicas, "LOOK_SECONDS", 0.01)
    at_once, tries = one.database.at_once, 0

    def away() -> Any:
        nonlocal tries
        tries += 1
        raise sa.exc.OperationalError("", {}, Exception())

    with capture_logs() as logged:
        async with one.table.kept():
            monkeypatch.setattr(one.database, "at_once", away)
            await until(lambda: tries >= 3)
            monkeypatch.setattr(one.database, "at_once", at_once)
            await other.table.look()
            await until(lambda: one.others().keys() == {"other"})
    assert [each["event"] for each in logged if each["log_level"] == "warning"] == ["replicas_not_seen"]


async def test_who_ends_while_the_database_is_away_is_not_held_up(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two

    @asynccontextmanager
    async def silent() -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(replicas, "LEAVING_SECONDS", 0.05)
    async with asyncio.timeout(5), one.table.kept():
        monkeypatch.setattr(one.database, "at_once", silent)
        one.pauses.asked("slack", "C1", 30.0)
