"""Messages are kept in batches, and one that cannot be kept costs nobody else theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.domain import Message, Person
from bot.inbox import Acceptance
from bot.records import deliveries, threads
from bot.records.database import Database, NotOnDisk
from bot.records.sqlite import sqlite_database
from tests.bot.conftest import SetClock, place

ANA = Person("chat:ana", "Ana")
NOT_A_KEY = "half of a pair: \ud800"
"""No database takes it."""


def message(key: str, text: str = "hello", author: Person = ANA) -> Message:
    return Message(key, place(), author, text, 0.0)


async def test_one_message_that_cannot_be_kept_costs_the_others_of_its_batch_nothing(
    database: Database, clock: SetClock
) -> None:
    acceptance = Acceptance(database, clock)
    keys = ["m1", NOT_A_KEY, "m2", "m3"]
    results = await asyncio.gather(*(acceptance.accept(message(k)) for k in keys), return_exceptions=True)
    assert [isinstance(result, UnicodeError) for result in results] == [False, True, False, False]
    async with database.reading() as tx:
        assert {key for key, _ in await deliveries.waiting_messages(tx, "chat:T1")} == {"m1", "m2", "m3"}
    assert (await acceptance.accept(message("m4"))).is_new


async def test_the_same_message_twice_in_one_batch_is_new_once(database: Database, clock: SetClock) -> None:
    acceptance = Acceptance(database, clock)
    results = await asyncio.gather(*(acceptance.accept(message("same")) for _ in range(3)))
    assert sorted(result.is_new for result in results) == [False, False, True]


async def test_when_the_database_is_gone_everybody_who_waits_is_told(tmp_path: Path, clock: SetClock) -> None:
    acceptance = Acceptance(sqlite_database(tmp_path / "never opened.db"), clock)
    async with asyncio.timeout(10):
        results = await asyncio.gather(*(acceptance.accept(message(k)) for k in "ab"), return_exceptions=True)
    assert all(isinstance(result, NotOnDisk) for result in results)


@pytest.mark.parametrize("odd", ["\0", "\ud800", "\udfff"])
async def test_what_no_database_and_no_model_takes_is_left_out_of_a_message(
    database: Database, clock: SetClock, odd: str
) -> None:
    author = Person("chat:ana", f"A{odd}na")
    await Acceptance(database, clock).accept(message("m1", f"he{odd}llo", author))
    async with database.reading() as tx:
        (kept,) = await deliveries.messages_of(tx, "chat:T1", 10)
        thread = await threads.get(tx, "chat:T1")
    assert thread is not None
    for text in (kept.text, kept.author, thread.title):
        assert odd not in text
        text.encode()


async def test_of_what_waits_in_a_conversation_all_but_the_first_is_queued(database: Database, clock: SetClock) -> None:
    acceptance = Acceptance(database, clock)
    for key in ("m1", "m2", "m3"):
        await acceptance.accept(message(key))
    async with database.reading() as tx:
        waiting = await deliveries.messages_of(tx, "chat:T1", 10)
    assert [(each.key, each.queued) for each in waiting] == [("m1", False), ("m2", True), ("m3", True)]
    async with database.writing("chat:T1") as tx:
        await deliveries.drop(tx, ["m1", "m2"])
    async with database.reading() as tx:
        left = await deliveries.messages_of(tx, "chat:T1", 10)
    assert not any(each.queued for each in left)
