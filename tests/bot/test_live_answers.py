"""What is happening in a thread, kept for pages of other processes: only for as long as it is true."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.records import live_answers as module
from bot.records import places
from bot.records.claims import Claim
from bot.records.live_answers import LiveAnswer, LiveAnswers
from bot.records.postgresql import PostgresDatabase
from tests.support.cpu import at_most_cpu
from tests.support.replicas import two_databases

pytestmark = pytest.mark.postgres
THREAD = "web:one"


@pytest.fixture
async def database() -> AsyncIterator[PostgresDatabase]:
    async with two_databases() as (first, _):
        yield first


def answer(claim: Claim, text: str = "Hel\0lo \ud800") -> LiveAnswer:
    return LiveAnswer(claim.epoch, "Thinking…", {"m1": text})


async def test_what_is_written_is_read(database: PostgresDatabase) -> None:
    answers, claim = LiveAnswers(database), await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    assert await answers.read([THREAD, "web:two"]) == {THREAD: answer(claim)}
    await answers.write({THREAD: answer(claim, "Hello")}, {})
    assert await answers.read([THREAD]) == {THREAD: answer(claim, "Hello")}
    await answers.write({}, {THREAD: claim.epoch})
    assert await answers.read([THREAD]) == {}


async def test_what_is_written_holds_nobody_up_whatever_its_characters(database: PostgresDatabase) -> None:
    """Rule 13: JSON writes a backslash for each of these, and all turns wait while it is sent."""
    answers, threads = LiveAnswers(database), [f"web:{number}" for number in range(5)]
    happening = {each: answer(await database.claim(each), '\u0434"\\' * 15_000) for each in threads}
    with at_most_cpu(0.05):
        await answers.write(happening, {})
    assert await answers.read(threads) == happening


async def test_what_was_written_under_an_earlier_claim_is_not_read(database: PostgresDatabase) -> None:
    answers, claim = LiveAnswers(database), await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    await database.claim(THREAD)
    assert await answers.read([THREAD]) == {}


async def test_who_was_overtaken_writes_and_clears_nothing(database: PostgresDatabase) -> None:
    answers, old = LiveAnswers(database), await database.claim(THREAD)
    claim = await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    await answers.write({THREAD: answer(old, "late")}, {})
    await answers.write({}, {THREAD: old.epoch})
    assert await answers.read([THREAD]) == {THREAD: answer(claim)}


async def test_nothing_is_happening_where_the_place_was_released(database: PostgresDatabase) -> None:
    answers, claim = LiveAnswers(database), await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    async with database.writing(THREAD) as tx:
        await places.release(tx, claim)
    assert await answers.read([THREAD]) == {}


async def test_what_is_not_renewed_is_a_dead_processs(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, claim = LiveAnswers(database), await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    monkeypatch.setattr(module, "DEAD_SECONDS", -1.0)
    assert await answers.read([THREAD]) == {}


async def test_what_dead_processes_left_is_forgotten(database: PostgresDatabase) -> None:
    answers, claim = LiveAnswers(database), await database.claim(THREAD)
    await answers.write({THREAD: answer(claim)}, {})
    await answers.forget()
    assert await answers.read([THREAD])
    async with database.writing_apart(THREAD) as tx:
        await tx.execute("UPDATE live_answers SET at = at - interval '2 minutes'")
    await answers.forget()
    async with database.reading() as tx:
        cursor = await tx.execute("SELECT count(*) FROM live_answers")
        assert await cursor.fetchone() == (0,)
