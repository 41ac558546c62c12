"""The event stream of a conversation: nothing is lost when it is read anew, and nothing is sent twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from adapters.api.events import MOST_STREAMS, SentEntries
from adapters.shared.token_watch import ENDED
from bot.domain import Decision
from tests.api.serving import BEN, ApiUser, EventReader, ServedApi, StreamedEvent

THREAD = "web:streamed"


async def shown(events: EventReader) -> list[StreamedEvent]:
    """The entries that a stream begins with."""
    return [event for event in await events.until("status") if event.event_id]


def names(events: list[StreamedEvent]) -> list[tuple[str, str, int]]:
    """What each is, as its id and revision say."""
    return [(event.name, event.data["id"], event.data.get("revision", 0)) for event in events]


async def test_a_stream_begins_with_the_entries_and_goes_on_with_what_happens(served: ServedApi, ana: ApiUser) -> None:
    message = await served.write(THREAD, "Hello")
    async with ana.events(THREAD) as events:
        assert events.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert names(await shown(events)) == [("message", message, 0), ("post", f"said:{message}.0", 1)]
        served.sender.board.set_status(THREAD, "Thinking…")
        served.sender.board.add_text(THREAD, "a", "Go")
        said = await served.say(THREAD, message)
        status, text, post = [await events.next() for _ in range(3)]
        assert status is not None and text is not None and post is not None
        assert (status.data, text.data) == ({"text": "Thinking…"}, {"message_id": "a", "n": 1, "delta": "Go"})
        assert post.data["content"] == {"kind": "said", "text": "Done."}
        assert post.data["id"] == said


async def test_whoever_comes_back_gets_what_they_have_not_and_nothing_else(served: ServedApi, ana: ApiUser) -> None:
    message = await served.write(THREAD)
    first, second = [await served.wait_for(THREAD, message, number) for number in (0, 1)]
    async with ana.events(THREAD) as events:
        before = await shown(events)
    assert [event.name for event in before] == ["message", "post", "post", "post"]

    async def again(last: StreamedEvent) -> list[StreamedEvent]:
        async with ana.events(THREAD, last.event_id) as events:
            return await shown(events)

    assert await again(before[-1]) == []
    assert names(await again(before[1])) == names(before[2:])
    await served.services.approvals.decide(Decision.alike("a click", BEN, [first], "approve"))
    (changed,) = await again(before[-1])
    assert (changed.data["content"]["id"], changed.data["content"]["status"]) == (first, "approved")
    await served.services.approvals.decide(Decision.alike("another", BEN, [second], "reject"))
    (changed,) = await again(changed)
    assert changed.data["content"]["id"] == second
    said = await served.say(THREAD, message)
    (post,) = await again(changed)
    assert post.data["id"] == said
    assert await again(post) == []
    assert len(await again(StreamedEvent("post", None, "nothing of ours"))) == 5


async def test_an_approver_hears_of_the_turns_that_are_theirs_to_decide(served: ServedApi, ben: ApiUser) -> None:
    other = await served.write(THREAD, "Nothing of Ben's")
    message = await served.write(THREAD)
    await served.wait_for(THREAD, message)
    async with ben.events(THREAD) as events:
        # Ben is shown no status line: what was shown is followed by nothing.
        seen = [await events.next() for _ in range(3)]
        assert [each.data["id"] for each in seen if each][:2] == [message, f"said:{message}.0"]
        served.sender.board.set_status(THREAD, "Thinking…")
        last = seen[-1]
        earlier = await served.wait_for(THREAD, other)
        anew = [await events.next() for _ in range(6)]
        assert {each.data["id"] for each in anew if each} >= {other, f"approval:{earlier}", message}
    assert last is not None
    async with ben.events(THREAD, last.event_id) as events:
        caught_up = [await events.next() for _ in range(6)]
        assert {each.data["id"] for each in caught_up if each} >= {other, f"approval:{earlier}"}


async def test_only_so_many_streams_are_open_for_one_person(served: ServedApi, ana: ApiUser) -> None:
    await served.write(THREAD)
    streams = [ana.events(THREAD) for _ in range(MOST_STREAMS)]
    readers = [await stream.__aenter__() for stream in streams]
    assert {reader.response.status for reader in readers} == {200}
    refused = await ana.get(f"threads/{THREAD}/events")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
    served.sender.hub.close()  # as a server that ends does
    assert [await reader.until_end() for reader in readers]
    for stream in streams:
        await stream.__aexit__(None, None, None)
    async with asyncio.timeout(10):
        while (await ana.get(f"threads/{THREAD}/events")).status != 200:
            pass


def test_an_id_says_what_was_sent() -> None:
    sent = SentEntries(12, 3_400_000, 40, {3_399_990: 3, 3_400_000: 40})
    assert SentEntries.of_event_id(sent.event_id()) == sent
    assert SentEntries.of_event_id(SentEntries().event_id()) == SentEntries()
    unlike = ("", "1", "1.2.3", "1.2.3.x", "1.2.3.a-", "1.2.3.1-1_", "-1.2.3.", "٣.2.3.")
    for wrong in (*unlike, "1.2.3." + "1-11" * 100, "1.2.3." + "1-1_" * 4000):
        assert SentEntries.of_event_id(wrong) is None


async def rest_of(events: EventReader) -> list[StreamedEvent]:
    """What comes until the stream ends, in whichever way."""
    seen = []
    with suppress(aiohttp.ClientPayloadError):
        async with asyncio.timeout(10):
            while (event := await events.next()) is not None:
                seen.append(event)
    return seen


async def test_a_stream_ends_with_its_token_and_shows_no_entry_that_comes_after(
    served: ServedApi, ana: ApiUser
) -> None:
    message = await served.write(THREAD)
    async with ana.events(THREAD) as events:
        await shown(events)
        served.tokens.people.clear()
        await served.say(THREAD, message, "Not for whoever was signed out.")
        assert await rest_of(events) == []


async def test_a_stream_on_which_nothing_happens_ends_with_its_token_too(served: ServedApi, ana: ApiUser) -> None:
    await served.write(THREAD)
    async with ana.events(THREAD) as events:
        await shown(events)
        served.tokens.people.clear()
        assert await rest_of(events) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [("/ai/agent/stream", {"prompt": "Hello"}), ("/query/stream", {"query": "Hello"})],
)
async def test_an_answer_that_is_streamed_ends_with_the_token(
    served: ServedApi, ana: ApiUser, path: str, body: dict[str, str]
) -> None:
    async with (
        served.engine.at_work,
        ana.http.post(f"{served.url}{path}", json=body, headers=ana.headers) as response,
    ):
        served.tokens.people.clear()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_waiting_for_an_answer_ends_with_the_token(served: ServedApi, ana: ApiUser) -> None:
    waits = asyncio.Event()
    served.sender.hub.opened = lambda _: waits.set()
    await served.open(THREAD)
    async with served.engine.at_work:
        asked = asyncio.create_task(ana.post(f"threads/{THREAD}/messages?wait=30", {"text": "Hello"}))
        await waits.wait()
        served.tokens.people.clear()
        answer = await asked
    assert (answer.status, answer.body["detail"]) == (401, ENDED)
