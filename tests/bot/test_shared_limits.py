"""Limits on turns, links, sign-ins and passwords, counted by several processes on one PostgreSQL as by one.

Rule 1: a message that is handled again, by whichever process, counts once. Rule 13: nobody gets more by asking another
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.web.access import TRIES, PasswordGate
from adapters.web.bodies import RefusalError
from bot.domain import system_clock
from bot.limits import NO_LIMIT, Beginnings, BeginningsHere, Full, TooMany, TurnLimit, Window
from bot.records import beginnings as rows
from bot.records import tables
from bot.records.beginnings import SharedBeginnings
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase
from tests.support.replicas import two_databases
from tests.support.transactions import Execute, wrap_statements

Databases = tuple[PostgresDatabase, PostgresDatabase]
TURNS = "person:web:ana"
not_shared = pytest.mark.xfail(strict=True, reason="each process counts by itself")


@pytest.fixture
async def databases() -> AsyncIterator[Databases]:
    async with two_databases() as opened:
        yield opened


@pytest.fixture(params=["shared", pytest.param("not shared", marks=not_shared)])
def both(request: pytest.FixtureRequest, databases: Databases) -> tuple[Beginnings, Beginnings]:
    """What two processes count with."""
    if request.param == "shared":
        return SharedBeginnings(databases[0]), SharedBeginnings(databases[1])
    return BeginningsHere(system_clock), BeginningsHere(system_clock)


@pytest.fixture
def shared(databases: Databases) -> tuple[SharedBeginnings, SharedBeginnings]:
    return SharedBeginnings(databases[0]), SharedBeginnings(databases[1])


pytestmark = pytest.mark.postgres


async def pass_seconds(database: PostgresDatabase, seconds: float) -> None:
    """As if all that is counted had begun so much earlier."""
    began = tables.beginnings.c
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.update(tables.beginnings).values(at=began.at - seconds, until=began.until - seconds))


def limits(both: tuple[Beginnings, Beginnings], *, person: int = NO_LIMIT, thread: int = NO_LIMIT) -> list[TurnLimit]:
    return [TurnLimit(each, per_person=person, per_thread=thread) for each in both]


async def test_the_turns_of_a_person_are_counted_by_both(both: tuple[Beginnings, Beginnings]) -> None:
    one, other = limits(both, person=2)
    assert await one.refusal("m1", "web:ana", "t1") is None
    assert await other.refusal("m2", "web:ana", "t2") is None
    for each, key in ((one, "m3"), (other, "m4")):
        refused = await each.refusal(key, "web:ana", f"of {key}")
        assert refused is not None
        assert refused.sentence is not None
        assert refused.sentence.startswith("Limit: 2 messages a minute.")
    assert await other.refusal("m5", "web:ben", "t2") is None, "somebody else"


async def test_the_turns_of_a_conversation_are_counted_by_both(both: tuple[Beginnings, Beginnings]) -> None:
    one, other = limits(both, thread=1)
    assert await one.refusal("m1", "web:ana", "t1") is None
    refused = await other.refusal("m2", "web:ben", "t1")
    assert refused is not None
    assert refused.sentence is not None
    assert "1 message a minute in this conversation" in refused.sentence


async def test_a_message_that_another_process_handles_again_counts_once(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases
) -> None:
    one, other = limits(shared, person=1, thread=1)
    assert await one.refusal("m1", "web:ana", "t1") is None
    assert await other.refusal("m1", "web:ana", "t1") is None
    await pass_seconds(databases[0], 90)
    assert await other.refusal("m1", "web:ana", "t1") is None, "tried again when its minute is over"
    assert await one.refusal("m2", "web:ana", "t1") is None, "which does not count it anew"
    assert await other.refusal("m3", "web:ana", "t1") is not None
    assert await other.refusal("m1", "web:ana", "t1") is None


async def test_a_storm_is_answered_once_whoever_refuses(both: tuple[Beginnings, Beginnings]) -> None:
    one, other = limits(both, person=1)
    assert await one.refusal("m0", "web:ana", "t1") is None
    await other.refusal("m0", "web:ana", "t1")
    refused = [
        await each.refusal(key, "web:ana", "t1")
        for each, key in ((one, "m1"), (other, "m2"), (other, "m1"), (one, "m3"))
    ]
    assert [each is not None and each.sentence is not None for each in refused] == [True, False, True, False]
    elsewhere = await other.refusal("m4", "web:ana", "t2")
    assert elsewhere is not None
    assert elsewhere.sentence is not None, "said in each conversation"


async def test_whoever_was_told_is_told_again_when_the_time_that_was_told_is_over(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases
) -> None:
    one, other = limits(shared, person=1)
    assert await one.refusal("m0", "web:ana", "t1") is None
    assert await other.refusal("m1", "web:ana", "t1") != TooMany(None)
    await pass_seconds(databases[0], 61)
    assert await one.refusal("m2", "web:ana", "t1") is None
    assert await one.refusal("m3", "web:ana", "t1") != TooMany(None)


async def test_whoever_is_refused_for_the_conversation_has_not_used_up_their_own(
    shared: tuple[SharedBeginnings, SharedBeginnings],
) -> None:
    one, other = limits(shared, person=1, thread=1)
    assert await one.refusal("m1", "web:ana", "t1") is None
    assert await other.refusal("m2", "web:ben", "t1") is not None
    assert await other.refusal("m3", "web:ben", "t2") is None


async def test_the_wait_that_is_told_ends_when_one_more_may_begin(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases
) -> None:
    window = Window(TURNS, 2)
    for key in ("m1", "m2"):
        assert await shared[0].count(key, [window]) is None
        await pass_seconds(databases[0], 20)
    full = await shared[1].count("m3", [window])
    assert full is not None
    assert full.window == window
    assert full.wait == pytest.approx(20, abs=1)
    await pass_seconds(databases[0], full.wait)
    assert await shared[1].count("m3", [window]) is None


@pytest.fixture(
    params=["locked", pytest.param("unlocked", marks=pytest.mark.xfail(strict=True, reason="nobody locks anything"))]
)
async def locks(request: pytest.FixtureRequest, databases: Databases) -> AsyncIterator[None]:
    """In one of the two, what counts does not wait for others who count."""
    taken_out = "PERFORM pg_advisory_xact_lock(hash)"
    assert taken_out in rows._MAKE_COUNTER
    made = rows._MAKE_COUNTER if request.param == "locked" else rows._MAKE_COUNTER.replace(taken_out, "PERFORM hash")
    async with databases[0].writing(UNLOCKED) as tx:
        await tx.run(sa.text(made.replace("CREATE", "CREATE OR REPLACE").replace(":=", r"\:=")))
    yield
    async with databases[0].writing(UNLOCKED) as tx:
        await tx.run(sa.text(rows._MAKE_COUNTER.replace("CREATE", "CREATE OR REPLACE").replace(":=", r"\:=")))


async def test_of_many_that_begin_at_once_as_many_may_as_are_allowed(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases, locks: None
) -> None:
    """A transaction that is not committed yet holds what it has counted, and whoever comes then waits for it."""
    window = Window(TURNS, 1)
    async with databases[0].writing(UNLOCKED) as tx:
        assert await shared[0].count("m1", [window], tx=tx) is None
        waiting = asyncio.create_task(shared[1].count("m2", [window]))
        await asyncio.wait([waiting], timeout=0.3)
    assert isinstance(await waiting, Full)


async def test_many_at_once_in_windows_that_overlap_do_not_wait_in_a_circle(
    shared: tuple[SharedBeginnings, SharedBeginnings],
) -> None:
    ones = [Window(f"person:{name}", 5) for name in "abc"]
    threads = [Window(f"thread:{name}", 5) for name in "abc"]
    windows = [[a, b] if turned else [b, a] for a in ones for b in threads for turned in (True, False)]
    counted = await asyncio.gather(
        *(shared[number % 2].count(f"m{number}", each) for number, each in enumerate(windows * 3))
    )
    assert sum(each is None for each in counted) == 15, "five of each person"


async def test_what_is_counted_in_a_transaction_that_fails_is_not_counted(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases
) -> None:
    window = Window("links:web:ana", 1)
    with pytest.raises(ZeroDivisionError):
        async with databases[0].writing(UNLOCKED) as tx:
            assert await shared[0].count("l1", [window], tx=tx) is None
            raise ZeroDivisionError
    assert await shared[1].count("l2", [window]) is None


async def test_one_statement_counts_a_turn(
    shared: tuple[SharedBeginnings, SharedBeginnings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on the way of each message."""
    executed: list[Any] = []

    def noting(execute: Execute) -> Execute:
        async def noted(tx: Any, statement: Any, values: Any = None) -> Any:
            executed.append(statement)
            return await execute(tx, statement, values)

        return noted

    wrap_statements(monkeypatch, noting)
    (one, _) = limits(shared, person=1, thread=1)
    await one.refusal("m1", "web:ana", "t1")
    assert len(executed) == 1
    await one.refusal("m2", "web:ana", "t1")
    assert len(executed) == 2
    (unlimited, _) = limits(shared)
    await unlimited.refusal("m1", "web:ana", "t1")
    assert len(executed) == 2, "without a limit nothing is asked"


async def test_what_is_long_over_is_forgotten(
    shared: tuple[SharedBeginnings, SharedBeginnings], databases: Databases
) -> None:
    async def sweep() -> None:
        async with databases[1].at_once() as tx:
            await rows.sweep(tx)

    async def kept() -> int:
        async with databases[1].reading() as tx:
            return len(await tx.all(sa.select(tables.beginnings)))

    (one, _) = limits(shared, person=1, thread=1)
    for key in ("m1", "m2"):
        await one.refusal(key, "web:ana", "t1")
    await pass_seconds(databases[0], 61)
    await sweep()
    assert await kept() == 3, "it may be tried again"
    await pass_seconds(databases[0], rows.KEPT_SECONDS)
    await sweep()
    assert await kept() == 0


async def test_wrong_passwords_are_counted_by_both_until_a_right_one(both: tuple[Beginnings, Beginnings]) -> None:
    one, other = (PasswordGate("right", each) for each in both)
    for gate in (one, other) * (TRIES // 2):
        with pytest.raises(RefusalError, match="Wrong password"):
            await gate.check("wrong", "1.1.1.1")
    for gate in (one, other):
        with pytest.raises(RefusalError, match="Too many"):
            await gate.check("right", "1.1.1.1")
        await gate.check("right", "2.2.2.2")


async def test_a_right_password_is_the_end_of_the_wrong_ones(
    shared: tuple[SharedBeginnings, SharedBeginnings],
) -> None:
    one, other = (PasswordGate("right", each) for each in shared)
    for _ in range(TRIES - 1):
        with pytest.raises(RefusalError):
            await one.check("wrong", "1.1.1.1")
    await other.check("right", "1.1.1.1")
    with pytest.raises(RefusalError, match="Wrong password"):
        await one.check("wrong", "1.1.1.1")
