"""The hub: bounded queues, each change to those who may see it, nobody kept waiting."""

from __future__ import annotations

import asyncio

import pytest

from adapters.shared.live.hub import MOST_QUEUED, SHOW_ANEW, THREADS_CHANGED, EndedError, Hub, frame


async def test_events_arrive_in_order_and_only_for_their_thread() -> None:
    hub = Hub()
    with hub.reading("t", "ana", "s", sees_all=True) as reader:
        hub.publish("t", "text", {"n": 1})
        hub.publish("other", "text", {"n": 9})
        hub.publish("t", "text", {"n": 2})
        assert await reader.next(1) == frame("text", {"n": 1})
        assert await reader.next(1) == frame("text", {"n": 2})
        assert await reader.next(0.001) is None


async def test_a_full_queue_ends_the_reader_instead_of_growing() -> None:
    hub = Hub()
    with hub.reading("t", "ana", "s", sees_all=True) as slow, hub.reading("t", "ben", "s2", sees_all=True) as quick:
        for number in range(MOST_QUEUED + 1):
            hub.publish("t", "text", {"n": number})
            assert await quick.next(1) == frame("text", {"n": number})
        for _ in range(2):
            with pytest.raises(EndedError):
                await slow.next(1)


async def test_noting_many_times_that_threads_changed_is_noting_it_once() -> None:
    hub = Hub()
    with hub.reading("t", "ana", "s", sees_all=True) as reader:
        for _ in range(MOST_QUEUED * 2):
            hub.threads_changed()
        assert await reader.next(1) == THREADS_CHANGED
        assert await reader.next(0.001) is None
        hub.threads_changed()
        assert await reader.next(1) == THREADS_CHANGED


async def test_a_waiting_reader_is_woken_when_its_session_ends() -> None:
    hub = Hub()
    with (
        hub.reading("t", "ana", "s", sees_all=True) as reader,
        hub.reading("t", "ana", "other", sees_all=True) as other,
    ):
        waiting = asyncio.create_task(reader.next(60))
        await asyncio.sleep(0)
        hub.end_session("s")
        with pytest.raises(EndedError):
            await waiting
        assert await other.next(0.001) is None


async def test_a_reader_that_left_is_gone() -> None:
    hub = Hub()
    with hub.reading("t", "ana", "s", sees_all=True):
        assert hub.has_readers("t")
    assert not hub.has_readers("t")


def test_an_event_is_always_one_line_of_data() -> None:
    lines = frame("text", {"delta": "a\nb\r\n\u2028c"}).decode().splitlines()
    assert lines[0] == "event: text"
    assert lines[1].startswith("data: ")
    assert len(lines) == 3


async def test_for_a_reader_that_was_ended_nothing_more_is_kept() -> None:
    """Rule 13: thousands of pieces of an answer can come before the reader notices that it was ended."""
    hub = Hub()
    with hub.reading("t", "ana", "s", sees_all=True) as reader:
        for number in range(MOST_QUEUED * 3):
            hub.publish("t", "text", {"n": number})
        assert reader._queue.qsize() <= MOST_QUEUED + 1


async def test_what_came_before_the_message_that_begins_a_conversation_is_sent_again_to_its_author_alone() -> None:
    hub = Hub()
    with hub.reading("t", "ana", "s") as ana, hub.reading("t", "ben", "s2") as ben:
        hub.publish("t", "text", {"n": 1})  # of another process, where she wrote it
        hub.publish("t", "message", {"author_id": "ana"})
        hub.publish("t", "text", {"n": 2})
        assert await ana.next(1) == SHOW_ANEW
        assert await ana.next(1) == frame("message", {"author_id": "ana"})
        assert await ana.next(1) == frame("text", {"n": 2})
        assert await ben.next(1) == SHOW_ANEW  # of which there is nothing for him
        assert await ben.next(0.001) is None
