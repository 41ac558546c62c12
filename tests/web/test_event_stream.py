"""The one event stream: everything there is, then every change, to those who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from adapters.web import events
from bot.domain import ApprovalView, ConversationReference, Notice, Person, Said, ThreadSummary
from tests.support.views import an_approval
from tests.support.waiting import at_most_waiting
from tests.web.serving import Browser, Product
from tests.web.streaming import Event, Stream, eventually, snapshot, stream_of

THREAD = "web:one"
PLACE = ConversationReference("web", THREAD)
MESSAGES = "/api/threads/web%3Aone/messages"


async def test_a_page_that_connects_gets_who_it_is_the_threads_and_the_whole_thread(
    product: Product, ben: Browser
) -> None:
    await ben.post(MESSAGES, {"id": "m", "text": "Hello"})
    await product.services.post(THREAD, Said("Hi Ben"))
    async with stream_of(ben, THREAD) as stream:
        name, session = await stream.next() or ("", {})
        assert (name, session["me"]) == ("session", {"person_id": "web:ben", "name": "Ben"})
        assert not session["is_operator"]
        assert {"step": "model", "done": False} in session["setup"], "who chooses a local name sets the server up"
        name, threads = await stream.next() or ("", {})
        assert name == "threads"
        assert [thread["thread_id"] for thread in threads["threads"]] == [THREAD]
        name, thread = await stream.next() or ("", {})
        assert name == "thread"
        assert [(entry["kind"], entry["id"]) for entry in thread["entries"]] == [
            ("message", "web:one:m"),
            ("post", "post-1"),
        ]
        assert thread["live"] == {"status": "", "drafts": [], "activity": []}


async def test_what_comes_live_is_in_the_language_of_each_page(product: Product, ana: Browser) -> None:
    """What is published is written once for all who watch, in the language of what several people see."""
    german = {"Accept-Language": "de-AT"}
    events_url = f"{product.url}/api/events?thread=web%3Aone"
    await product.services.post(THREAD, Said("Hi"))
    async with stream_of(ana, THREAD) as english, ana.http.get(events_url, headers=german) as response:
        of_german = Stream(response)
        for stream in (english, of_german):
            await snapshot(stream)
        await product.services.post(THREAD, an_approval("a", arguments={"all_day": True}))
        assert value_in((await english.until("post"))["content"]) == "yes"
        anew = await snapshot(of_german)
        assert value_in(anew["entries"][-1]["content"]) == "ja"


def value_in(card: dict[str, Any]) -> str:
    (line,) = card["arguments"]
    return str(line["value"])


async def test_a_conversation_nobody_has_written_in_is_empty(ana: Browser) -> None:
    async with stream_of(ana, "web:new") as stream:
        assert (await snapshot(stream))["entries"] == []


async def test_a_page_gets_the_newest_of_a_thread_that_is_too_large(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: 300 messages of 20,000 emoji were 70 MB, put together in one step of 0.1 s, for each page."""
    monkeypatch.setattr(events, "LARGEST_SNAPSHOT", 100_000)
    for number in range(6):
        await product.services.post(THREAD, Said(f"{number} " + "\U0001f600" * 3_000))
    async with stream_of(ana, THREAD) as stream:
        shown = [entry["content"]["text"][0] for entry in (await snapshot(stream))["entries"]]
    assert shown == ["4", "5"]  # 36 kB each
    monkeypatch.setattr(events, "LARGEST_SNAPSHOT", 1)
    async with stream_of(ana, THREAD) as stream:
        assert len((await snapshot(stream))["entries"]) == 1


async def test_only_so_many_snapshots_of_one_person_are_kept_at_a_time(
    product: Product, ana: Browser, ben: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a hundred pages that do not read kept a gigabyte for ten seconds. Other people do not wait for them."""
    reading: list[str] = []
    go_on = asyncio.Event()
    thread = product.services.view

    async def slow(thread_id: str, person: Person) -> object:
        reading.append(person.person_id)
        if person.person_id == "web:ana":
            await go_on.wait()
        return await thread(thread_id, person)

    monkeypatch.setattr(product.services, "view", slow)
    pages = [asyncio.create_task(_snapshot_of(ana)) for _ in range(10)]
    await eventually(lambda: len(reading) == events.SNAPSHOTS_AT_A_TIME, "the first pages")
    await _snapshot_of(ben)
    assert reading.count("web:ana") == events.SNAPSHOTS_AT_A_TIME
    go_on.set()
    assert len(await asyncio.gather(*pages)) == 10
    assert reading.count("web:ana") == 10


async def _snapshot_of(browser: Browser) -> dict[str, object]:
    async with stream_of(browser, THREAD) as stream:
        return await snapshot(stream)


async def test_a_post_and_what_becomes_of_it_arrive_live(product: Product, ana: Browser) -> None:
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        post = await product.services.post(THREAD, an_approval("a"))
        first = await stream.until("post")
        assert (first["id"], first["revision"], first["content"]["status"]) == (post.post_id, 1, "pending")
        await ana.post("/api/approvals/decisions", {"id": "c", "approvals": ["a"], "verb": "approve"})
        second = await stream.until("post")
        assert (second["id"], second["revision"], second["content"]["status"]) == (post.post_id, 2, "approved")


async def test_a_message_reaches_the_other_open_pages_of_its_thread_and_no_others(
    product: Product, ana: Browser, ben: Browser
) -> None:
    async with stream_of(ben, THREAD) as same, stream_of(ben, "web:two") as other:
        await snapshot(same)
        await snapshot(other)
        await ana.post(MESSAGES, {"id": "m", "text": "Hello"})
        message = await same.until("message")
        assert (message["id"], message["author"], message["text"]) == ("web:one:m", "Ana", "Hello")
        await product.services.post("web:two", Said("end"))
        seen: list[str] = []
        while not seen or seen[-1] != "post":
            event = await other.next()
            assert event is not None
            seen.append(event[0])
        assert "message" not in seen


async def test_what_only_one_person_may_see_reaches_nobody_else(product: Product, ana: Browser, ben: Browser) -> None:
    async with stream_of(ana, THREAD) as to_ana, stream_of(ben, THREAD) as to_ben:
        await snapshot(to_ana)
        await snapshot(to_ben)
        await product.services.post(THREAD, Notice("For Ana's eyes only"), only_for="web:ana")
        await product.services.post(THREAD, Notice("For everybody"))
        assert (await to_ana.until("post"))["content"]["text"] == "For Ana's eyes only"
        assert (await to_ben.until("post"))["content"]["text"] == "For everybody"
    async with stream_of(ben, THREAD) as again:
        assert "Ana's eyes" not in str(await snapshot(again))


async def test_whoever_is_no_operator_any_more_sees_nothing_that_comes_then(product: Product, ben: Browser) -> None:
    product.services.seen_as["web:ben"] = "operator"
    async with stream_of(ben, THREAD) as stream:
        await snapshot(stream)
        product.sender.live(THREAD, PLACE, "web:ana").text("m1", "live words are the owner's")
        await product.services.post(THREAD, Notice("First"))
        shown = await snapshot(stream)
        assert [entry["content"]["text"] for entry in shown["entries"]] == ["First"]
        product.services.seen_as["web:ben"] = None
        await product.services.post(THREAD, Notice("Second"))
        rest = [event async for event in _until_it_ends(stream)]
        assert "Second" not in str(rest)


async def _until_it_ends(stream: Stream) -> AsyncIterator[Event]:
    while event := await stream.next():
        yield event


async def test_connecting_again_sends_the_same_snapshot_again(product: Product, ana: Browser) -> None:
    await product.services.post(THREAD, Said("One"))
    await product.services.post(THREAD, an_approval("a"))
    async with stream_of(ana, THREAD) as stream:
        first = await snapshot(stream)
    async with stream_of(ana, THREAD) as stream:
        assert await snapshot(stream) == first


async def test_text_and_status_arrive_live_and_a_late_page_gets_the_beginning(product: Product, ana: Browser) -> None:
    live = product.sender.live(THREAD, PLACE, "web:ana")
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        live.status("Looking at your calendar…")
        live.text("m1", "You have ")
        live.text("m1", "two meetings.")
        assert await stream.until("status") == {"text": "Looking at your calendar…"}
        assert await stream.until("text") == {"message_id": "m1", "n": 1, "delta": "You have "}
        assert await stream.until("text") == {"message_id": "m1", "n": 2, "delta": "two meetings."}
    async with stream_of(ana, THREAD) as late:
        assert (await snapshot(late))["live"] == {
            "status": "Looking at your calendar…",
            "drafts": [{"message_id": "m1", "n": 2, "text": "You have two meetings."}],
            "activity": [],
        }


async def test_a_finished_answer_names_the_draft_that_it_replaces(product: Product, ana: Browser) -> None:
    live = product.sender.live(THREAD, PLACE, "web:ana")
    live.text("m1", "The answer.")
    live.text("m2", "The answer.")
    live.end(waiting=False)
    product.sender.live(THREAD, PLACE, "web:ana").text("m3", "Another")
    product.sender.board.rest(THREAD)  # of m1 and m2 nothing is remembered here any more
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        for message_id in ("m2", "m1"):
            await product.services.post(THREAD, Said("The answer, as it is kept."), message_id=message_id)
            assert (await stream.until("post"))["ends_draft"] == message_id


async def test_the_list_of_threads_follows(product: Product, ana: Browser) -> None:
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        post = await product.services.post("web:other", an_approval("a"))
        changed = await stream.until("threads", lambda data: bool(data["threads"]))
        assert changed["threads"][0]["waiting"] == 1
        view = post.content
        assert isinstance(view, ApprovalView)
        await product.services.change(replace(view, status="expired"))
        await stream.until("threads", lambda data: data["threads"][0]["waiting"] == 0)


async def test_many_changes_do_not_read_the_list_of_threads_as_often(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    threads = product.services.owned

    async def counted(platform: str, limit: int = 100) -> object:
        nonlocal reads
        reads += 1
        return await threads(platform, limit)

    monkeypatch.setattr(product.services, "owned", counted)
    began = monotonic()
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        for number in range(200):
            await product.services.post("web:other", Said(str(number)))
            await asyncio.sleep(0)  # lets the stream notice each
        await stream.until("threads")
        assert reads <= 2 + (monotonic() - began) / events.THREADS_EVERY_SECONDS


async def test_a_change_is_read_once_for_all_pages_of_a_person(
    product: Product, ana: Browser, ben: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: two hundred open pages that all read at once held everybody up for 0.3 s."""
    read: list[str] = []
    owned = product.services.owned

    async def counted(person: Person) -> tuple[ThreadSummary, ...]:
        read.append(person.person_id)
        return await owned(person)

    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(stream_of(who, THREAD)) for who in (ana, ana, ana, ben, ben)]
        for stream in streams:
            await snapshot(stream)
        monkeypatch.setattr(product.services, "owned", counted)
        await ben.post(MESSAGES, {"id": "m", "text": "Hello"})
        for stream in streams:
            assert (await stream.until("threads"))["threads"][0]["thread_id"] == THREAD
    assert sorted(read) == ["web:ana", "web:ben"]


async def test_a_silent_stream_says_now_and_then_that_it_lives(ana: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        async with asyncio.timeout(5):
            while not (await stream.response.content.readline()).startswith(b": "):
                pass


async def test_who_becomes_somebody_else_is_disconnected_and_comes_back_as_them(ana: Browser) -> None:
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        await ana.post("/api/session", {"person": "web:chloe"})
        assert await stream.next() is None
    async with stream_of(ana, THREAD) as stream:
        assert (await stream.until("session"))["me"]["name"] == "Chloe"


async def test_closing_ends_every_stream_at_once(product: Product, ana: Browser, ben: Browser) -> None:
    async with stream_of(ana, THREAD) as one, stream_of(ben, THREAD) as two:
        await snapshot(one)
        await snapshot(two)
        async with at_most_waiting(2):
            await product.receiver.stop()
            assert await one.next() is None
            assert await two.next() is None
    async with stream_of(ana, THREAD) as late:
        await snapshot(late)
        assert await late.next() is None


async def test_a_page_that_goes_away_is_forgotten(product: Product, ana: Browser) -> None:
    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        assert product.sender.hub.has_readers(THREAD)
        stream.response.close()

    async def write() -> None:
        while product.sender.hub.has_readers(THREAD):
            await product.services.post(THREAD, Said("Anybody there?"))
            await asyncio.sleep(0.01)

    async with asyncio.timeout(10):
        await write()


async def test_a_reader_that_does_not_read_is_disconnected_and_the_product_goes_on(
    product: Product, ana: Browser, ben: Browser
) -> None:
    async with stream_of(ana, THREAD) as stuck, stream_of(ben, "web:two") as other:
        await snapshot(stuck)
        await snapshot(other)
        text = "x" * 100_000

        def flooded() -> bool:
            for _ in range(20):
                product.sender.hub.publish(THREAD, "status", {"text": text})
            return any(reader._ended for reader in product.sender.hub._readers)

        await eventually(flooded, "the stuck reader is disconnected")
        await product.services.post("web:two", Said("Still here"))
        assert (await other.until("post"))["content"]["text"] == "Still here"
