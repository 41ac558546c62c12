"""The outbox: kept first, shown in order, at least once, and updated in place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from bot import outbox
from bot.domain import Clock, Notice
from bot.outbox import Outbox, notice
from bot.platform import PostFailed
from bot.records import posts, tables, threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost, PostRow
from tests.bot.conftest import RecordingPlatform, SetClock, place, until

THREAD = "chat:T1"


@pytest.fixture
def pauses() -> list[tuple[int, float | None]]:
    """The pauses that were made between tries, none of which takes any time."""
    return []


@pytest.fixture
def make_outbox(
    database: Database,
    clock: SetClock,
    platforms: Mapping[str, RecordingPlatform],
    pauses: list[tuple[int, float | None]],
) -> Callable[[], Outbox]:
    def pause(attempt: int, retry_after: float | None) -> float:
        pauses.append((attempt, retry_after))
        return 0.0

    return lambda: Outbox(database, clock, platforms, pause=pause)


@pytest.fixture
async def box(make_outbox: Callable[[], Outbox], database: Database, clock: Clock) -> AsyncIterator[Outbox]:
    async with database.writing(UNLOCKED) as tx:
        for thread_id in (THREAD, "chat:T2"):
            await threads.ensure(tx, thread_id, place(thread_id), "hello", clock())
    made = make_outbox()
    yield made
    await made.stop(1.0)


async def say(database: Database, box: Outbox, *keys: str, thread_id: str = THREAD) -> None:
    async with database.writing(UNLOCKED) as tx:
        for key in keys:
            await box.say(tx, notice(key, thread_id, Notice(key)))


async def row_of(database: Database, key: str, thread_id: str = THREAD) -> PostRow:
    async with database.reading() as tx:
        return next(row for row in await posts.of_thread(tx, thread_id, 100) if row.key == key)


async def unsent(database: Database) -> list[str]:
    async with database.reading() as tx:
        return list(await posts.lanes_with_unsent(tx))


async def until_nothing_is_unsent(database: Database) -> None:
    """That a post was shown is noted after the platform has it."""
    async with asyncio.timeout(10):
        while await unsent(database):
            await asyncio.sleep(0.002)


async def test_posts_of_one_thread_are_shown_in_the_order_they_were_said(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say(database, box, "one", "two")
    await say(database, box, "three")
    await until(lambda: len(platform.done) == 3)
    assert platform.done == [("send", "one", 1), ("send", "two", 1), ("send", "three", 1)]


async def test_the_same_thing_is_said_once(database: Database, box: Outbox, platform: RecordingPlatform) -> None:
    await say(database, box, "one")
    await say(database, box, "one", "two")
    await until(lambda: len(platform.done) == 2)
    assert [key for _, key, _ in platform.done] == ["one", "two"]


async def test_nothing_is_said_when_the_transaction_fails(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.writing(UNLOCKED) as tx:
            await box.say(tx, notice("never", THREAD, Notice("never")))
            raise ZeroDivisionError
    await say(database, box, "one")
    await until(lambda: platform.done)
    assert platform.done == [("send", "one", 1)]


async def test_a_refused_post_is_tried_again_after_what_the_platform_asks_and_holds_back_those_after_it(
    database: Database, box: Outbox, platform: RecordingPlatform, pauses: list[tuple[int, float | None]]
) -> None:
    platform.failures = [PostFailed("too fast", retry_after=30.0), PostFailed("busy")]
    await say(database, box, "one", "two")
    await until(lambda: len(platform.done) == 2)
    assert platform.done == [("send", "one", 1), ("send", "two", 1)]
    assert pauses == [(0, 30.0), (1, None)]


@pytest.mark.parametrize(
    ("retry_after", "least", "most"), [(None, 0.5, 1.0), (7.0, 7.0, 7.0), (1e9, 600, 600), (-5, 0, 0)]
)
def test_a_pause_is_what_the_platform_asks_for_within_bounds(
    retry_after: float | None, least: float, most: float
) -> None:
    assert least <= outbox.pause_between(0, retry_after) <= most


def test_pauses_grow_up_to_a_minute() -> None:
    assert (
        0.5 * outbox.LONGEST_POST_PAUSE_SECONDS <= outbox.pause_between(100, None) <= outbox.LONGEST_POST_PAUSE_SECONDS
    )


async def test_a_platform_that_is_down_for_an_hour_costs_no_post(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.failures = [PostFailed("down")] * 90
    await say(database, box, "one")
    await until(lambda: platform.done)
    assert platform.done == [("send", "one", 1)]


async def test_what_can_never_be_shown_is_given_up_with_a_log_and_the_next_is_shown(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.failures = [PostFailed("the room is gone", permanent=True)]
    with capture_logs() as logs:
        await say(database, box, "one", "two")
        await until(lambda: platform.done)
    assert platform.done == [("send", "two", 1)]
    given_up = [line for line in logs if line["event"] == "post_given_up"]
    assert [(line["post"], line["cause"], line["log_level"]) for line in given_up] == [
        ("one", "the room is gone", "error")
    ]
    await until_nothing_is_unsent(database)


async def test_a_card_that_was_given_up_is_sent_whole_when_it_changes(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.failures = [PostFailed("not now", permanent=True)]
    async with database.writing(UNLOCKED) as tx:
        await box.say(tx, NewPost("card", THREAD, "notice", subject="s1", content={"text": "a", "tone": "info"}))
        await box.say(tx, notice("after", THREAD, Notice("after")))
    await until(lambda: platform.done)
    async with database.writing(UNLOCKED) as tx:
        await box.show_again(tx, ["s1"])
    await until(lambda: len(platform.done) == 2)
    assert platform.done[1] == ("send", "card", 2)


async def test_an_adapter_that_fails_on_one_post_does_not_silence_the_thread(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.failures = [KeyError("blocks")] * outbox.MOST_DEFECTS
    await say(database, box, "one", "two")
    await until(lambda: platform.done, within=60)
    assert platform.done == [("send", "two", 1)]
    await until_nothing_is_unsent(database)


async def test_a_post_that_cannot_be_understood_does_not_silence_the_thread(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    async with database.writing(UNLOCKED) as tx:
        await box.say(tx, NewPost("odd", THREAD, "of a later release"))
        await box.say(tx, notice("two", THREAD, Notice("two")))
    await until(lambda: platform.done)
    assert platform.done == [("send", "two", 1)]


async def test_a_thread_that_has_to_wait_holds_up_no_other(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.held[THREAD] = asyncio.Event()
    await say(database, box, "one")
    await until(lambda: platform.begun)
    await say(database, box, "two", thread_id="chat:T2")
    await until(lambda: platform.done)
    assert platform.done == [("send", "two", 1)]
    platform.held[THREAD].set()
    await until(lambda: len(platform.done) == 2)


async def test_what_was_sent_just_before_a_crash_is_found_again_and_not_sent_twice(
    make_outbox: Callable[[], Outbox], database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say(database, box, "one")
    await until(lambda: platform.done)
    await until_sent(database, "one")
    await forget(database, "one")
    after = make_outbox()
    await after.start()
    await until_sent(database, "one")
    await after.stop(1.0)
    assert platform.done == [("send", "one", 1), ("update", "one", 1)]
    assert len(platform.shown) == 1


async def test_what_was_kept_and_not_sent_before_a_crash_is_sent_at_the_start(
    make_outbox: Callable[[], Outbox], database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    async with database.writing(UNLOCKED) as tx:
        await posts.add(tx, notice("one", THREAD, Notice("one")), 0.0)
    after = make_outbox()
    await after.start()
    await until(lambda: platform.done)
    await after.stop(1.0)
    assert platform.done == [("send", "one", 1)]


async def test_a_post_whose_answer_was_lost_is_looked_for_before_it_is_sent_again(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    platform.lost_answers = 1
    await say(database, box, "one")
    await until(lambda: platform.done)
    assert platform.done == [("update", "one", 1)]
    assert len(platform.shown) == 1


async def test_a_newer_revision_wins_over_one_that_is_still_on_its_way(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    async with database.writing(UNLOCKED) as tx:
        await box.say(tx, NewPost("card", THREAD, "notice", subject="s1", content={"text": "a", "tone": "info"}))
    await until(lambda: platform.done)
    platform.held[THREAD] = asyncio.Event()
    await show_again(database, box)
    await until(lambda: ("card", 2) in platform.begun)
    await show_again(database, box)
    platform.held[THREAD].set()
    await until_sent(database, "card", 3)
    assert platform.done == [("send", "card", 1), ("update", "card", 2), ("update", "card", 3)]
    assert [shown.revision for shown in platform.shown.values()] == [3]


async def test_a_late_word_of_an_older_revision_changes_nothing(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say(database, box, "one")
    await until_sent(database, "one")
    async with database.writing(UNLOCKED) as tx:
        await posts.sent(tx, "one", 1, {"number": "wrong"}, before=None)
    assert (await row_of(database, "one")).reference == {"number": "1", "messages": ["1"]}


async def test_a_change_that_may_wait_is_overtaken_by_a_newer_one(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say_card(database, box)
    await until(lambda: platform.done)
    await show_again(database, box, within=0.25)
    await show_again(database, box)
    await until_sent(database, "card", 3)
    assert platform.done == [("send", "card", 1), ("update", "card", 3)]
    await show_again(database, box)
    await until_sent(database, "card", 4)
    assert platform.done == [("send", "card", 1), ("update", "card", 3), ("update", "card", 4)]


async def test_a_change_that_may_wait_is_shown_also_when_nothing_newer_comes(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say_card(database, box)
    await until(lambda: platform.done)
    await show_again(database, box, within=0.25)
    await until_sent(database, "card", 2)
    assert platform.done == [("send", "card", 1), ("update", "card", 2)]


async def test_a_change_that_may_wait_longer_lets_what_waits_be_shown_first(
    database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say_card(database, box)
    await until_sent(database, "card")
    async with database.writing(UNLOCKED) as tx:
        await box.show_again(tx, ["s1"], within=30.0)
    async with database.writing(UNLOCKED) as tx:
        await box.show_again(tx, ["s1"], within=60.0)
        await until(lambda: len(platform.done) == 2)
    await show_again(database, box)
    await until_sent(database, "card", 4)
    assert platform.done == [("send", "card", 1), ("update", "card", 2), ("update", "card", 4)]


async def test_a_change_that_waited_when_the_process_died_is_shown_at_the_start(
    make_outbox: Callable[[], Outbox], database: Database, box: Outbox, platform: RecordingPlatform
) -> None:
    await say_card(database, box)
    await until_sent(database, "card")
    async with database.writing(UNLOCKED) as tx:
        await box.show_again(tx, ["s1"], within=0.25)
    await box.stop(1.0)
    after = make_outbox()
    await after.start()
    await until_sent(database, "card", 2)
    await after.stop(1.0)
    assert platform.done == [("send", "card", 1), ("update", "card", 2)]


async def test_an_update_that_was_shown_and_not_marked_when_the_process_died_is_shown_once_more(
    make_outbox: Callable[[], Outbox],
    database: Database,
    box: Outbox,
    platform: RecordingPlatform,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "MARKED_AFTER", 60.0)
    await say_card(database, box)
    await until_sent(database, "card")
    await show_again(database, box)
    await until(lambda: len(platform.done) == 2)
    after = make_outbox()
    await after.start()
    await until(lambda: len(platform.done) == 3)
    await after.stop(1.0)
    assert platform.done == [("send", "card", 1), ("update", "card", 2), ("update", "card", 2)]
    assert len(platform.shown) == 1


async def test_an_update_that_is_not_marked_yet_is_not_shown_twice_nor_waited_for(
    database: Database, box: Outbox, platform: RecordingPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MARKED_AFTER", 60.0)
    await say_card(database, box)
    await until_sent(database, "card")
    await show_again(database, box)
    await until(lambda: len(platform.done) == 2)
    await say(database, box, "answer")
    await until_sent(database, "answer")
    await show_again(database, box)
    await until(lambda: len(platform.done) == 4)
    assert platform.done[2:] == [("send", "answer", 1), ("update", "card", 3)]
    assert await unsent(database) == [THREAD]
    await box.stop(1.0)
    assert await unsent(database) == []


async def test_updates_are_marked_together_also_when_the_database_has_failed_before(
    database: Database, box: Outbox, platform: RecordingPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError("the disk is full")]
    mark = posts.sent

    async def failing(*args: Any, **named: Any) -> None:
        if failures:
            raise failures.pop()
        await mark(*args, **named)

    await say_card(database, box)
    await until_sent(database, "card")
    monkeypatch.setattr(posts, "sent", failing)
    with capture_logs() as logs:
        await show_again(database, box)
        await until_sent(database, "card", 2)
    assert [entry["event"] for entry in logs] == ["posts_not_marked"]
    assert platform.done == [("send", "card", 1), ("update", "card", 2)]


async def say_card(database: Database, box: Outbox) -> None:
    async with database.writing(UNLOCKED) as tx:
        await box.say(tx, NewPost("card", THREAD, "notice", subject="s1", content={"text": "a", "tone": "info"}))


async def show_again(database: Database, box: Outbox, *, within: float = 0.0) -> None:
    async with database.writing(UNLOCKED) as tx:
        await box.show_again(tx, ["s1"], within=within)


async def until_sent(database: Database, key: str, revision: int = 1) -> None:
    async with asyncio.timeout(10):
        while (await row_of(database, key)).sent_revision != revision:
            await asyncio.sleep(0.002)


async def forget(database: Database, key: str) -> None:
    """As if the process had died after the platform took the post and before that was noted."""
    values = {"sent_revision": 0, "reference": sa.null()}
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.update(tables.posts).where(tables.posts.c.key == key).values(values))
