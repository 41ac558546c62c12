"""An answer while it is written: streamed in 1:1 chats, and always ended by its post; elsewhere the bot is typing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest

from bot.domain import Said
from graph.citations import Source
from tests.fakes.teams.calls import ApiCall
from tests.fakes.teams.server import ANA
from tests.teams.outbound_stage import APPROVAL, IMPATIENT, LONG, NEVER, QUICK, Stage, staged


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


def live_calls(stage: Stage) -> list[ApiCall]:
    """What showed a turn while it ran."""
    return [call for call in stage.teams.calls_of("send") if call.body["type"] == "typing"]


# ------------------------------------------------------------------------------------------- in a 1:1 chat


async def test_an_answer_that_is_finished_fast_is_one_message_and_nothing_else() -> None:
    async with staged(NEVER) as stage:
        live = stage.live()
        live.status("Thinking…")
        live.text("d.1", "Hello there.\n")
        live.end(waiting=False)
        await stage.outbound.send(stage.said("d.1", "Hello there."))
        assert [call.body["type"] for call in stage.teams.calls_of("send")] == ["message"]


async def test_an_answer_streams_and_its_post_ends_the_stream_in_place(stage: Stage) -> None:
    live = stage.live()
    live.status("Thinking…")
    stream = await stage.streaming("Thinking…")
    live.text("d.1", "**First** paragraph.\n\nThe second ")
    await stage.streaming("First")
    live.text("d.1", "one, which goes on\n\n- a list")
    await stage.streaming("goes on")
    whole = "**First** paragraph.\n\nThe second one, which goes on\n\n- a list item"
    reference = await stage.outbound.send(stage.said("d.1", whole))
    [message] = stage.seen(stage.chat())
    assert reference == {"conversation": stage.teams.personal(ANA), "parts": [stream]}
    assert message["id"] == stream
    assert not message["streaming"]
    assert "a list item" in message["text"]
    assert not message["edited"]
    kinds = [kind for kind, _ in stage.streamed()]
    assert kinds == sorted(kinds, key=["informative", "streaming", "final"].index)


async def test_each_update_begins_with_the_one_before(stage: Stage) -> None:
    live = stage.live()
    for number in range(12):
        live.text("d.1", f"Paragraph **{number}** with some `code` in it.\n\n")
        await stage.teams.until(lambda number=number: f"**{number}**" in str(stage.streamed()))  # type: ignore[misc]
    shown = [text for kind, text in stage.streamed() if kind == "streaming"]
    assert len(shown) == 12
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


async def test_only_the_final_message_is_labelled_and_asks_for_an_opinion(stage: Stage) -> None:
    stage.live().text("d.1", "Hello there you\n\nand more\n\n")
    await stage.streaming()
    await stage.outbound.send(stage.said("d.1", "Hello there you\n\nand more"))
    [message] = stage.seen(stage.chat())
    assert message["channelData"]["feedbackLoop"]
    assert "AIGeneratedContent" in str(message["entities"])
    assert all("feedbackLoop" not in str(call.body) for call in live_calls(stage))


async def test_an_answer_that_cites_ends_its_stream_with_its_sources(stage: Stage) -> None:
    stage.live().text("d.1", "It is 28 days [1] there, see [a](https://a.example/x)\n\nand more\n\n")
    stream = await stage.streaming("28 days [1] there")
    whole = "It is 28 days [1] there, see [a](https://a.example/x)\n\nand more"
    said = Said(whole, sources=(Source(1, "Handbook.pdf", 3),))
    await stage.outbound.send(stage.post("said:d.1", said, stage.chat()))
    [message] = stage.seen(stage.chat())
    assert (message["id"], message["edited"]) == (stream, False)
    assert message["text"].endswith("and more\n\n**Sources**\n\n\\[1\\] Handbook.pdf, page 3")
    [claim] = message["entities"][0]["citation"]
    assert (claim["position"], claim["appearance"]["name"]) == (1, "Handbook.pdf")


async def test_a_stream_is_paced() -> None:
    async with staged(replace(QUICK, chunk=0.2)) as stage:
        live = stage.live()
        began = asyncio.get_running_loop().time()
        for number in range(40):
            live.text("d.1", f"Paragraph {number}.\n\n")
            await asyncio.sleep(0.02)
        took = asyncio.get_running_loop().time() - began
        assert 1 <= len(stage.streamed()) <= took / 0.2 + 1


async def test_the_status_is_one_safe_line(stage: Stage) -> None:
    stage.live().status("Using <at>everyone</at>\n\u202e [x](https://evil.example) " + "long " * 300)
    await stage.streaming()
    [(kind, text)] = stage.streamed()
    assert kind == "informative"
    assert len(text) <= 1_000
    assert len(text.encode()) <= 1_000
    assert not set(text) & set("<>[]\n\u202e")


async def test_what_was_said_before_a_tool_call_is_finished_and_what_follows_stands_below(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up in your tasks.")
    first = await stage.streaming("I look it up")
    live.status("Using tasks: Search…")
    live.task("t1", "tasks: Search", "running")
    second = await stage.streaming("Using tasks: Search…")
    assert second != first
    live.task("t1", "tasks: Search", "done")
    live.text("d.2", "There are three of them, all of them open\n\n")
    await stage.streaming("three of them")
    live.end(waiting=False)
    early = await stage.outbound.send(
        stage.post("said:d.1", Said("I look it up in your tasks.", final=False), stage.chat())
    )
    late = await stage.outbound.send(stage.said("d.2", "There are three of them, all of them open"))
    assert (early["parts"], late["parts"]) == ([first], [second])
    assert [m["edited"] for m in stage.seen(stage.chat())] == [False, False]


async def test_a_word_on_the_way_stands_above_what_follows_however_short_it_is(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "Hm…")
    live.text("d.2", "\n")
    live.text("d.3", "There are three of them.\n\n")
    await stage.streaming("three of them")
    live.end(waiting=False)
    await stage.outbound.send(stage.post("said:d.1", Said("Hm…", final=False), stage.chat()))
    await stage.outbound.send(stage.said("d.3", "There are three of them."))
    assert stage.texts(stage.chat()) == ["Hm…", "There are three of them."]


async def test_a_word_on_the_way_that_turns_out_otherwise_is_set_right(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up.\n\n")
    first = await stage.streaming("I look it up.")
    live.task("t1", "tasks: Search", "running")
    await stage.teams.until(lambda: not [s for s in stage.open_streams() if s["id"] == first])
    await stage.outbound.send(stage.said("d.1", "I look it up, and more."))
    [message] = [m for m in stage.seen(stage.chat()) if m["id"] == first]
    assert message["edited"]
    assert "and more" in message["text"]


async def test_a_card_takes_the_place_of_the_status_before_it(stage: Stage) -> None:
    stage.live().status("Thinking…")
    stream = await stage.streaming("Thinking…")
    reference = await stage.outbound.send(stage.post("approval:a1", APPROVAL, stage.chat()))
    [message] = stage.seen(stage.chat())
    assert reference["parts"] == [stream] == [message["id"]]
    assert message["attachments"]
    await stage.outbound.update(
        stage.post("approval:a1", replace(APPROVAL, status="approved"), stage.chat()), reference
    )
    assert stage.seen(stage.chat())[0]["edited"]


async def test_a_status_that_nothing_follows_does_not_stay() -> None:
    async with staged(IMPATIENT) as stage:
        live = stage.live()
        live.status("Using tasks: Search…")
        await stage.streaming("Using tasks")
        live.end(waiting=True)
        await stage.teams.until(lambda: not stage.open_streams() and not stage.seen(stage.chat()))


async def test_what_no_post_finishes_does_not_stay() -> None:
    async with staged(IMPATIENT) as stage:
        live = stage.live()
        live.text("d.1", "half an answer of the model\n\n")
        await stage.streaming("half an answer")
        live.end(waiting=False)
        await stage.teams.until(lambda: not stage.open_streams() and not stage.seen(stage.chat()))
        await stage.outbound.send(stage.said("d.1", "half an answer of the model, and the other half"))
        assert stage.texts(stage.chat()) == ["half an answer of the model, and the other half"]


async def test_the_post_may_come_a_little_later_than_the_end_of_its_turn() -> None:
    async with staged(QUICK) as stage:
        live = stage.live()
        live.text("d.1", "one and two\n\n")
        stream = await stage.streaming("one and two")
        live.end(waiting=False)
        for number in range(3):
            await stage.outbound.send(stage.notice(f"n{number}", "Something else.", stage.group))
        assert stage.open_streams()
        reference = await stage.outbound.send(stage.said("d.1", "one and two"))
        assert reference["parts"] == [stream]


async def test_nothing_is_streamed_after_the_post(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one is there\n\n")
    await stage.streaming("one is there")
    held = stage.teams.hold("send")
    live.text("d.1", "two is there\n\n")
    await held.reached()
    posting = asyncio.create_task(stage.outbound.send(stage.said("d.1", "one is there\n\ntwo is there\n\nthree")))
    live.text("d.1", "three is there\n\n")
    held.release()
    await posting
    live.text("d.1", "four is there\n\n")
    live.end(waiting=False)
    await stage.drafts.close()
    assert [call.body["type"] for call in stage.teams.calls_of("send")][-1] == "message"
    [message] = stage.seen(stage.chat())
    assert message["text"].endswith("three")


async def test_a_long_answer_streams_as_far_as_one_message_goes(stage: Stage) -> None:
    stage.live().text("d.1", LONG + "\n\n")
    stream = await stage.streaming("Paragraph 1:")
    reference = await stage.outbound.send(stage.said("d.1", LONG))
    assert reference["parts"][0] == stream
    assert len(reference["parts"]) > 1
    whole = "".join(stage.texts(stage.chat()))
    assert all(whole.count(f"Paragraph {n}:") == 1 for n in range(60))


async def test_one_stream_at_a_time_in_a_chat(stage: Stage) -> None:
    stage.live(thread_id="older").text("d.1", "An older thread is answered.\n\n")
    await stage.streaming("older")
    newer = stage.live(thread_id="newer")
    newer.text("e.1", "A newer one too.\n\n")
    await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
    assert len(stage.open_streams()) == 1
    await stage.outbound.send(stage.said("e.1", "A newer one too."))
    assert len(stage.open_streams()) == 1


async def test_another_threads_post_does_not_take_its_stream(stage: Stage) -> None:
    stage.live(thread_id="other").status("Thinking…")
    stream = await stage.streaming("Thinking…")
    reference = await stage.outbound.send(stage.notice("n1", "Hello.", stage.chat()))
    assert stream not in reference["parts"]


# ------------------------------------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("name", ["thread", "group"])
async def test_elsewhere_the_bot_is_typing_while_it_works(stage: Stage, name: str) -> None:
    place = stage.thread if name == "thread" else stage.group
    live = stage.live(place)
    live.status("Thinking…")
    live.text("d.1", "Hello there you\n\n")
    await stage.teams.until(lambda: len(live_calls(stage)) >= 3)
    assert all(set(call.body) <= {"type", "from", "conversation", "channelId"} for call in live_calls(stage))
    assert all(call.conversation == place.address["conversation"] for call in live_calls(stage))


async def test_nothing_is_shown_of_what_the_bot_does_not_answer(stage: Stage) -> None:
    stage.live(stage.group).end(waiting=False)
    stage.live().end(waiting=True)
    await asyncio.sleep(3 * QUICK.before)  # nothing is to happen, and there is nothing to wait for
    assert stage.teams.calls == []


async def test_it_does_not_type_after_its_answer_until_there_is_something_new(stage: Stage) -> None:
    live = stage.live(stage.group)
    live.status("Thinking…")
    await stage.teams.until(lambda: live_calls(stage))
    await stage.outbound.send(stage.said("d.1", "Hello.", stage.group))
    typed = len(live_calls(stage))
    await asyncio.sleep(4 * QUICK.typing)  # nothing is to happen, and there is nothing to wait for
    assert len(live_calls(stage)) == typed
    live.status("Using tasks: Search…")
    await stage.teams.until(lambda: len(live_calls(stage)) > typed)


async def test_a_card_that_is_shown_elsewhere_does_not_stop_the_typing(stage: Stage) -> None:
    stage.live(stage.group).status("Thinking…")
    await stage.teams.until(lambda: live_calls(stage))
    await stage.outbound.send(stage.post("approval:a1@x", APPROVAL, stage.chat()))
    typed = len(live_calls(stage))
    await stage.teams.until(lambda: len(live_calls(stage)) > typed)


async def test_it_does_not_type_while_people_are_waited_for(stage: Stage) -> None:
    live = stage.live(stage.group)
    live.status("Thinking…")
    await stage.teams.until(lambda: live_calls(stage))
    live.end(waiting=True)
    typed = len(live_calls(stage))
    live.status("late")
    await asyncio.sleep(4 * QUICK.typing)  # nothing is to happen, and there is nothing to wait for
    assert len(live_calls(stage)) - typed <= 1  # one may have been on its way


async def test_it_does_not_type_for_ever() -> None:
    async with staged(replace(QUICK, longest_turn=0.2)) as stage:
        stage.live(stage.group).status("Thinking…")
        await stage.teams.until(lambda: live_calls(stage))
        await asyncio.sleep(0.4)
        typed = len(live_calls(stage))
        await asyncio.sleep(4 * QUICK.typing)
        assert len(live_calls(stage)) == typed


# ------------------------------------------------------------------------------------------- the end of the process


async def test_closing_takes_away_what_will_be_posted_at_the_next_start(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up.\n\n")
    await stage.streaming("I look it up.")
    live.task("t1", "tasks: Search", "running")
    live.text("d.2", "There are three of them, and half of\n\n")
    await stage.streaming("three of them")
    await stage.drafts.close()
    assert stage.seen(stage.chat()) == []
    assert stage.open_streams() == []
    live.text("d.3", "late is this one\n\n")
    live.status("late")
    late = stage.live()
    late.status("later")
    called = len(stage.teams.calls)
    await asyncio.sleep(4 * QUICK.before)  # nothing is to happen, and there is nothing to wait for
    assert len(stage.teams.calls) == called
