"""What a process that died was writing: each half goes to its own post, and what nobody goes on with is taken away."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.recovery import WantedAnswer
from bot.domain import ConversationReference
from bot.records.claims import Claim, Overtaken, under
from tests.slack.stage import QUICK, Stage, human_says, shown_text, staged, streaming
from tests.support.cpu import at_most_cpu


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


async def dies_writing(stage: Stage, *texts: str, place: ConversationReference | None = None) -> list[str]:
    """A process that is killed while it writes these; timestamps of what it leaves."""
    channel = (place or stage.thread).address["channel"]
    for number, text in enumerate(texts):
        stage.live(place).text(f"d.{number}", text)
        await stage.slack.until(lambda n=number: len(stage.answers(channel)) == n + 1)
    before = {ts: dict(m) for ts, m in stage.slack.world.channels[channel].messages.items()}
    await stage.drafts.close()
    stage.slack.world.channels[channel].messages |= before
    stage.again()
    return [m["ts"] for m in stage.answers(channel)]


async def test_of_two_answers_each_goes_to_its_own_post(stage: Stage) -> None:
    left = await dies_writing(stage, "I look it up\n", "I have found it\n")
    live = stage.live()
    live.text("d.1", "I have found it\nand more\n")
    await stage.slack.until(lambda: "more" in shown_text(stage.answers()[-1]))
    parts = []
    for number, text in enumerate(("I look it up", "I have found it\nand more")):
        parts += (await stage.outbound.send(stage.said(f"d.{number}", text)))["parts"]
    assert parts == left
    live.end(waiting=False)
    assert [m["streaming"] for m in stage.answers()] == [False, False]
    assert all(m["metadata"]["event_type"] == "countersign_post" for m in stage.answers())


async def test_an_answer_that_is_there_at_once_takes_the_place_of_its_half(stage: Stage) -> None:
    left = await dies_writing(stage, "I have found\n")
    reference = await stage.outbound.send(stage.said("d.0", "I have found it"))
    assert reference["parts"] == left
    assert [m["streaming"] for m in stage.answers()] == [False]


@pytest.mark.parametrize("streams", [True, False])
async def test_what_is_said_otherwise_now_or_not_at_all_is_taken_away(stage: Stage, *, streams: bool) -> None:
    if not streams:
        stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    left = await dies_writing(stage, "I have found it\n")
    live = stage.live()
    live.text("d.0", "Nothing was found\n")
    reference = await stage.outbound.send(stage.said("d.0", "Nothing was found"))
    live.end(waiting=False)
    await stage.slack.until(lambda: [m["ts"] for m in stage.answers()] == reference["parts"])
    assert reference["parts"] != left


async def test_a_post_that_was_found_again_is_not_taken_away(stage: Stage) -> None:
    left = await dies_writing(stage, "I have found it\n")
    post = stage.said("d.0", "I have found it\nhere")
    reference = await stage.outbound.find(post)
    assert reference is not None
    stage.live().end(waiting=False)
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "slack orphans"))
    await stage.outbound.update(post, reference)
    assert [m["ts"] for m in stage.answers()] == left


async def test_without_threads_it_is_the_same(stage: Stage) -> None:
    place = place_of(SlackLocation("T1", "D1"), direct=True)
    left = await dies_writing(stage, "I have found\n", place=place)
    reference = await stage.outbound.send(stage.said("d.0", "I have found it", place))
    assert reference["parts"] == left


async def test_in_a_thread_that_is_younger_than_the_process_nobody_looks(stage: Stage) -> None:
    stage.now -= 3600.0
    stage.again()
    stage.thread_ts = human_says(stage.slack, "C1", "<@UBOT> hi")
    live = stage.live()
    live.text("d.0", "one\n")
    await stage.slack.until(stage.answers)
    await stage.outbound.send(stage.said("d.0", "one"))
    live.end(waiting=False)
    assert stage.slack.calls_of("conversations.replies") == []


async def sweeps() -> None:
    """Wait until what was left is taken away."""
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "slack orphans"))


def long_after(stage: Stage) -> None:
    """The process began before all that is written from now on."""
    stage.now -= 3600.0
    stage.again()
    stage.thread_ts = human_says(stage.slack, "C1", "<@UBOT> hi")


async def test_where_processes_take_turns_whoever_takes_over_finds_what_was_left(stage: Stage) -> None:
    long_after(stage)
    left = await dies_writing(stage, "I have found\n", "Something else\n")
    with under(Claim("slack:T1:C1", 2, taken_over=True)):
        reference = await stage.outbound.send(stage.said("d.0", "I have found it"))
        stage.live().end(waiting=False)
    assert reference["parts"] == left[:1]
    await sweeps()
    assert [(m["ts"], m["streaming"]) for m in stage.answers()] == [(left[0], False)]


async def test_where_processes_take_turns_nobody_looks_for_what_was_not_left(stage: Stage) -> None:
    """What is written there is another process's, which lives."""
    long_after(stage)
    await dies_writing(stage, "I have found\n")
    with under(Claim("slack:T1:C1", 2)):
        stage.live().end(waiting=False)
        await stage.outbound.send(stage.said("d.0", "I have found it"))
    await sweeps()
    assert stage.slack.calls_of("conversations.replies") == []
    assert len(stage.answers()) == 2


async def test_the_place_is_kept_until_what_was_left_is_taken_away(stage: Stage) -> None:
    """Else another process might begin to write there, and that would be taken away."""
    long_after(stage)
    await dies_writing(stage, "I have found\n")
    claim = Claim("slack:T1:C1", 2, taken_over=True)
    with under(claim):
        stage.live().end(waiting=False)
    assert claim.stays_for
    await sweeps()
    assert not stage.answers()
    assert not claim.stays_for


async def test_who_was_overtaken_in_turn_takes_nothing_away(stage: Stage) -> None:
    """Whoever has taken over may have made posts of it."""
    long_after(stage)
    left = await dies_writing(stage, "I have found\n")

    async def overtaken() -> None:
        raise Overtaken

    with under(Claim("slack:T1:C1", 2, taken_over=True, check=overtaken)):
        stage.live().end(waiting=False)
    await sweeps()
    assert [m["ts"] for m in stage.answers()] == left


async def test_what_was_left_is_taken_away_when_the_records_are_there_again(stage: Stage) -> None:
    long_after(stage)
    await dies_writing(stage, "I have found\n")
    asked = 0

    async def away_once() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise sa.exc.OperationalError("SELECT", {}, Exception("server closed the connection"))

    with under(Claim("slack:T1:C1", 2, taken_over=True, check=away_once)):
        stage.live().end(waiting=False)
    await sweeps()
    assert stage.answers() == []


async def test_calls_whose_stream_slack_has_ended_before_the_process_died_are_taken_away(stage: Stage) -> None:
    """They seemed to run for ever: Slack ends a stream after some minutes, and a call may take longer."""
    long_after(stage)
    stage.live().task("t1", "tasks: Search", "running")
    stage.slack.end_stream(await streaming(stage))
    await stage.drafts.close()
    stage.again()
    with under(Claim("slack:T1:C1", 2, taken_over=True)):
        stage.live().end(waiting=False)
    await sweeps()
    assert stage.answers() == []


@pytest.mark.parametrize("streams", [True, False])
async def test_who_leaves_an_answer_to_another_process_writes_nothing_more(stage: Stage, *, streams: bool) -> None:
    if not streams:
        stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    live = stage.live()
    live.text("d.0", "I have found\n")
    await stage.slack.until(stage.answers)
    live.leave()
    told = len(stage.slack.calls)
    live.text("d.0", "it\n")
    await stage.drafts.close()
    assert len(stage.slack.calls) == told


async def test_who_was_overtaken_while_it_writes_writes_nothing_more(stage: Stage) -> None:
    """Rule 1: whoever has taken over may have made the post of this message."""
    stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    is_overtaken = False

    async def check() -> None:
        if is_overtaken:
            raise Overtaken

    with under(Claim("slack:T1:C1", 1, check=check)):
        live = stage.live()
        live.text("d.0", "I have found\n")
    await stage.slack.until(stage.answers)
    is_overtaken = True
    live.text("d.0", "what was wrong\n")
    await stage.slack.until(lambda: not stage.drafts.in_use())
    assert "what was wrong" not in shown_text(stage.answers()[-1])


async def test_where_nobody_can_look_the_answer_is_posted_all_the_same(stage: Stage) -> None:
    await dies_writing(stage, "I have found\n")
    stage.slack.fail("conversations.replies", error="missing_scope", times=math.inf)
    await stage.outbound.send(stage.said("d.0", "I have found it"))
    assert "I have found it" in shown_text(stage.answers()[-1])


async def test_what_was_stopped_by_people_stays(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    live = stage.live()
    live.text("d.0", "I was about to say\n")
    await stage.slack.until(stage.answers)
    live.end(waiting=False)
    await stage.slack.until(lambda: not stage.answers()[0].get("metadata"))
    await stage.drafts.close()
    stage.again()
    stage.live().end(waiting=False)
    await stage.outbound.send(stage.said("d.1", "Something else"))
    assert len(stage.answers()) == 2
    assert QUICK.grace < 1


async def test_a_very_long_answer_is_compared_with_many_messages_in_no_time() -> None:
    """Rule 13: after a crash each of our messages cost as much as the whole answer, 1.4 s for a million characters."""
    answer = WantedAnswer("a\n" * 500_000)
    with at_most_cpu(0.3):
        begins = [answer.begins_like(written) for written in ("hello", "a a a", *["aab"] * 100)]
    assert begins[:3] == [False, True, False]
