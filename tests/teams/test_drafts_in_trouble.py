"""Streams that break: their posts come all the same, once, and whole."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from bot.domain import Said
from bot.platform import PostFailed
from tests.fakes.teams.server import ANA
from tests.teams.outbound_stage import APPROVAL, IMPATIENT, QUICK, Stage, staged

TEXT = "One paragraph of the answer.\n\nAnd another one of it."


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


async def begun(stage: Stage) -> str:
    """A stream that shows the first half of `TEXT`; its id."""
    stage.live().text("d.1", "One paragraph of the answer.\n\n")
    return await stage.streaming("One paragraph")


def is_final(body: dict[str, Any]) -> bool:
    return any(entity.get("streamType") == "final" for entity in body.get("entities", ()))


def is_update(body: dict[str, Any]) -> bool:
    return body.get("type") == "typing"


async def test_a_stream_that_a_person_stopped_is_left_alone_and_the_post_is_a_message(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "One paragraph of the answer.\n\n")
    stream = await stage.streaming("One paragraph")
    stage.teams.cancel_stream(stream)
    stage.teams.fail("update", code="ForbiddenOperationException", times=math.inf)
    live.text("d.1", "And another one of it.\n\n")
    await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
    reference = await stage.outbound.send(stage.said("d.1", TEXT))
    assert reference["parts"] != [stream]
    assert [m["text"] for m in stage.seen(stage.chat()) if m["id"] in reference["parts"]] == [TEXT]


async def test_a_stream_that_teams_ended_becomes_the_post(stage: Stage) -> None:
    stream = await begun(stage)
    stage.teams.clock.move(121)
    reference = await stage.outbound.send(stage.said("d.1", TEXT))
    assert reference["parts"] == [stream]
    assert stage.texts(stage.chat()) == [TEXT]


async def test_a_turn_that_takes_too_long_for_a_stream_goes_on_without() -> None:
    async with staged(replace(QUICK, longest_stream=0.2)) as stage:
        live = stage.live()
        live.text("d.1", "One paragraph of the answer.\n\n")
        stream = await stage.streaming("One paragraph")
        await stage.teams.until(lambda: not stage.open_streams())
        live.text("d.1", "And another one of it.\n\n")
        await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
        reference = await stage.outbound.send(stage.said("d.1", TEXT))
        assert reference["parts"] == [stream]
        assert stage.texts(stage.chat()) == [TEXT]
        assert len(stage.teams.streams(stage.teams.personal(ANA))) == 1


async def test_of_a_turn_that_took_too_long_and_failed_nothing_stays() -> None:
    async with staged(replace(IMPATIENT, longest_stream=0.2)) as stage:
        live = stage.live()
        live.text("d.1", "One paragraph of the answer.\n\n")
        await stage.streaming("One paragraph")
        await stage.teams.until(lambda: not stage.open_streams())
        assert len(stage.seen(stage.chat())) == 1
        live.end(waiting=False)
        await stage.teams.until(lambda: not stage.seen(stage.chat()))


async def test_a_status_that_takes_too_long_vanishes_and_the_bot_types() -> None:
    async with staged(replace(QUICK, longest_stream=0.2)) as stage:
        stage.live().status("Using tasks: Search…")
        await stage.streaming("Using tasks")
        await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
        assert stage.seen(stage.chat()) == []
        await stage.outbound.send(stage.said("d.1", TEXT))
        assert stage.texts(stage.chat()) == [TEXT]


async def test_where_streams_are_refused_the_bot_types_and_they_are_not_tried_again_for_a_while(stage: Stage) -> None:
    stage.teams.fail(
        "send", code="ContentStreamNotAllowed", times=math.inf, when=lambda body: "streaminfo" in str(body)
    )
    for number in range(3):
        live = stage.live()
        live.text(f"d.{number}", "One paragraph of the answer.\n\n")
        await stage.teams.until(lambda number=number: stage.teams.typings(stage.teams.personal(ANA)) > number)  # type: ignore[misc]
        live.end(waiting=False)
        await stage.outbound.send(stage.said(f"d.{number}", TEXT))
    assert stage.texts(stage.chat()) == [TEXT] * 3
    assert len([call for call in stage.teams.calls_of("send") if "streaminfo" in str(call.body)]) == 1


@pytest.mark.waits
@pytest.mark.parametrize("status", [429, 502, 503])
async def test_updates_that_fail_for_a_while_are_made_up_for(stage: Stage, status: int) -> None:
    live = stage.live()
    live.text("d.1", "One paragraph of the answer.\n\n")
    stream = await stage.streaming("One paragraph")
    stage.teams.fail("send", status=status, times=6, when=is_update)
    live.text("d.1", "And another one of it.\n\n")
    await stage.streaming("another one")
    reference = await stage.outbound.send(stage.said("d.1", TEXT))
    assert reference["parts"] == [stream]
    assert stage.texts(stage.chat()) == [TEXT]


async def test_an_update_whose_answer_got_lost_does_no_harm(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "One paragraph of the answer.\n\n")
    stream = await stage.streaming("One paragraph")
    stage.teams.fail("send", drop=True, when=is_update)
    live.text("d.1", "And another one of it.\n\n")
    await stage.streaming("another one")
    live.text("d.1", "And a third.\n\n")
    await stage.streaming("a third")
    assert (await stage.outbound.send(stage.said("d.1", f"{TEXT}\n\nAnd a third.")))["parts"] == [stream]


async def test_a_stream_whose_beginning_got_lost_is_not_begun_again(stage: Stage) -> None:
    stage.teams.fail("send", drop=True, when=is_update)
    live = stage.live()
    live.text("d.1", "One paragraph of the answer.\n\n")
    await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
    reference = await stage.outbound.send(stage.said("d.1", TEXT))
    assert len([call for call in stage.teams.calls_of("send") if "streaminfo" in str(call.body)]) == 1
    assert [m["text"] for m in stage.seen(stage.chat()) if m["id"] in reference["parts"]] == [TEXT]


async def test_a_final_message_that_cannot_be_sent_now_is_sent_later_into_the_same_stream(stage: Stage) -> None:
    stream = await begun(stage)
    stage.teams.fail("send", status=503, when=is_final)
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.said("d.1", TEXT))
    assert not failed.value.permanent
    assert await stage.outbound.find(stage.said("d.1", TEXT)) is None
    assert (await stage.outbound.send(stage.said("d.1", TEXT)))["parts"] == [stream]
    assert stage.texts(stage.chat()) == [TEXT]


async def test_the_next_answer_does_not_get_into_a_stream_whose_post_is_still_to_come(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "One paragraph of the answer.\n\n")
    first = await stage.streaming("One paragraph")
    stage.teams.fail("send", status=503, when=is_final)
    with pytest.raises(PostFailed):
        await stage.outbound.send(stage.said("d.1", TEXT))
    live.text("d.2", "There are three of them.\n\n")
    await stage.teams.until(lambda: stage.teams.typings(stage.teams.personal(ANA)))
    early = await stage.outbound.send(stage.said("d.1", TEXT))
    late = await stage.outbound.send(stage.said("d.2", "There are three of them."))
    assert early["parts"] == [first]
    assert [m["id"] for m in stage.seen(stage.chat())] == [*early["parts"], *late["parts"]]
    assert stage.texts(stage.chat()) == [TEXT, "There are three of them."]


@pytest.mark.parametrize("what", ["answer", "card"])
async def test_a_final_message_whose_answer_got_lost_is_not_posted_twice(stage: Stage, what: str) -> None:
    live = stage.live()
    if what == "answer":
        live.text("d.1", "One paragraph of the answer.\n\n")
        post = stage.said("d.1", TEXT)
    else:
        live.status("Thinking…")
        post = stage.post("approval:a1", APPROVAL, stage.chat())
    stream = await stage.streaming()
    stage.teams.fail("send", drop=True, when=is_final)
    with pytest.raises(PostFailed):
        await stage.outbound.send(post)
    assert (await stage.outbound.send(post))["parts"] == [stream]
    assert len(stage.seen(stage.chat())) == 1


async def test_a_card_that_cannot_end_a_stream_ends_it_as_words(stage: Stage) -> None:
    stage.live().status("Thinking…")
    stream = await stage.streaming()
    stage.teams.fail("send", code="BadSyntax", when=lambda body: bool(body.get("attachments")))
    reference = await stage.outbound.send(stage.post("approval:a1", APPROVAL, stage.chat()))
    assert reference["parts"] == [stream]
    [message] = stage.seen(stage.chat())
    assert message["text"]


async def test_an_answer_that_turns_out_otherwise_than_it_was_streamed_is_set_right(stage: Stage) -> None:
    stream = await begun(stage)
    reference = await stage.outbound.send(stage.said("d.1", "Something else altogether."))
    assert reference["parts"] == [stream]
    assert stage.texts(stage.chat()) == ["Something else altogether."]
    finals = [text for kind, text in stage.streamed() if kind == "final"]
    assert finals == ["One paragraph of the answer."]  # Teams refuses one that does not hold what it has shown


async def test_another_try_at_an_answer_leaves_nothing_of_the_first() -> None:
    async with staged(IMPATIENT) as stage:
        live = stage.live()
        live.text("d.1", "I look it up, wait a moment.\n\n")
        await stage.streaming("I look it up")
        live.task("t1", "tasks: Search", "running")
        await stage.teams.until(lambda: len(stage.teams.streams(stage.teams.personal(ANA))) == 2)
        live.end(waiting=False)
        await stage.teams.until(lambda: not stage.open_streams())
        again = stage.live()
        again.text("d.1", "I look it up again.\n\n")
        await stage.streaming("again")
        await stage.outbound.send(stage.post("said:d.1", Said("I look it up again.", final=False), stage.chat()))
        await stage.teams.until(lambda: stage.texts(stage.chat()) == ["I look it up again."])


async def test_typing_that_teams_does_not_take_is_left_for_a_while(stage: Stage) -> None:
    stage.teams.fail("send", status=503, times=math.inf, when=is_update)
    stage.live(stage.group).status("Thinking…")
    await stage.teams.until(lambda: stage.teams.calls_of("send"))
    await asyncio.sleep(6 * QUICK.typing)  # nothing is to happen, and there is nothing to wait for
    assert len(stage.teams.calls_of("send")) == 1


async def test_a_turn_that_ends_while_something_else_is_posted_shows_nothing_more(stage: Stage) -> None:
    held = stage.teams.hold("send")
    posting = asyncio.create_task(stage.outbound.send(stage.notice("n1", "Hello.", stage.group)))
    await held.reached()
    live = stage.live(stage.group, thread_id="other")
    live.status("Thinking…")
    await asyncio.sleep(4 * QUICK.before)  # it is to wait for its turn in the conversation by now
    live.end(waiting=False)
    held.release()
    await posting
    await stage.drafts.close()
    assert [call.body["type"] for call in stage.teams.calls_of("send")] == ["message"]
