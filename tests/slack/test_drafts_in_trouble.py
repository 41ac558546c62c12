"""Where a stream is not to be had, or goes wrong: people see the answer all the same, and once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from adapters.shared.caches import MEMORY
from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.posting import UNFINISHED
from adapters.slack.outbound.streams import SlackStream, StreamedAnswer
from bot.platform import PostFailed
from bot.records.claims import Claim, Overtaken, under
from tests.slack.stage import QUICK, Stage, feedback_of, shown_text, staged, streaming


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


async def test_a_stream_that_dies_goes_on_as_updates_of_the_same_message(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    ts = await streaming(stage)
    stage.slack.end_stream(ts)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: stage.slack.calls_of("chat.update"))
    live.text("d.1", "three\n")
    await stage.slack.until(lambda: "three" in shown_text(stage.answers()[0]))
    await stage.outbound.send(stage.said("d.1", "one\ntwo\nthree\nfour"))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert "four" in shown_text(message)
    assert feedback_of(message) == ["context_actions"]


async def test_a_stream_that_slack_fails_to_continue_is_stopped_and_updated(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    ts = await streaming(stage)
    stage.slack.fail("chat.appendStream", status=503)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: "two" in shown_text(stage.answers()[0]))
    assert [m["ts"] for m in stage.answers()] == [ts]
    assert not stage.answers()[0]["streaming"]


async def test_calls_are_shown_as_they_stand_though_their_stream_has_died(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    ts = await streaming(stage)
    stage.slack.fail("chat.appendStream", status=500)
    live.task("t2", "tasks: Count", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["in_progress", "complete"])
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["complete", "complete"])
    live.end(waiting=True)
    await stage.slack.until(lambda: not stage.answers()[0].get("metadata"))
    [message] = stage.answers()
    assert (message["ts"], message["streaming"]) == (ts, False)
    assert calls_in(message) == ["complete", "complete"]
    assert "error" not in str([call.arguments for call in stage.slack.calls])


async def test_a_call_without_an_end_is_shown_as_failed_when_the_turn_ends_after_its_stream(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    ts = await streaming(stage)
    stage.slack.end_stream(ts)
    live.task("t2", "tasks: Count", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["in_progress", "complete"])
    live.end(waiting=False)
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["error", "complete"])


async def test_an_answer_takes_the_place_of_calls_whose_stream_has_died(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    ts = await streaming(stage)
    stage.slack.end_stream(ts)
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["complete"])
    live.text("d.2", "Found it.\n")
    await stage.slack.until(lambda: "Found it." in shown_text(stage.answers()[0]))
    await stage.outbound.send(stage.said("d.2", "Found it."))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert shown_text(message).startswith("Found it.")


async def test_a_stream_that_can_neither_go_on_nor_be_stopped_is_updated_all_the_same(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    stage.slack.fail("chat.appendStream", status=500)
    stage.slack.fail("chat.stopStream", status=500)
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["complete"])
    assert not stage.answers()[0]["streaming"]


async def test_a_stream_that_cannot_be_stopped_with_its_turn_shows_no_call_as_running(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    ts = await streaming(stage)
    stage.slack.end_stream(ts)  # as Slack does after some minutes
    live.end(waiting=False)
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["error"])


class Records:
    """What a claim is looked up in; `away` for a while."""

    def __init__(self) -> None:
        self.away = False
        self.asked_in_vain = 0
        self.have_another_claim = False

    def claim(self) -> Claim:
        """A claim that holds until another process has made its own."""
        return Claim("slack:T1:C1", 1, check=self._check)

    async def _check(self) -> None:
        if self.have_another_claim:
            raise Overtaken
        if self.away:
            self.asked_in_vain += 1
            raise sa.exc.OperationalError("SELECT", {}, Exception("server closed the connection"))


async def test_a_call_that_ends_after_the_records_were_away_is_shown_as_done(stage: Stage) -> None:
    records = Records()
    with under(records.claim()):
        live = stage.live()
        live.task("t1", "tasks: Search", "running")
    ts = await streaming(stage)
    records.away = True
    await stage.slack.until(lambda: records.asked_in_vain > 1)
    records.away = False
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["complete"])
    live.end(waiting=False)
    await stage.slack.until(lambda: not stage.answers()[0]["streaming"])
    assert [m["ts"] for m in stage.answers()] == [ts]


async def test_a_draft_that_cannot_be_written_any_more_is_ended_with_its_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    written = asyncio.Event()

    async def write(_stream: SlackStream, _answer: StreamedAnswer) -> None:
        written.set()
        raise ZeroDivisionError

    monkeypatch.setattr(SlackStream, "write", write)
    await written.wait()
    live.end(waiting=False)
    await stage.slack.until(lambda: calls_in(stage.answers()[0]) == ["error"])
    assert not stage.answers()[0]["streaming"]


async def test_a_draft_that_nobody_finished_is_left_to_whoever_has_taken_over(stage: Stage) -> None:
    place = place_of(SlackLocation("T1", "D1"), direct=True)
    stage.drafts.pace = replace(QUICK, grace=0.0)
    records = Records()
    with under(records.claim()):
        live = stage.live(place)
        live.text("d.1", "one and some more words\n")
        await stage.slack.until(lambda: stage.answers("D1"))
        records.have_another_claim = True
        live.end(waiting=False)
    await stage.slack.until(lambda: not stage.drafts.in_use())
    assert [m["metadata"] for m in stage.answers("D1")] == [UNFINISHED]  # nothing was changed


async def test_a_stream_that_was_given_up_is_marked_before_its_message_is_updated(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    stage.slack.fail("chat.appendStream", status=500)
    stage.slack.fail("chat.update", status=429, retry_after=30)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: stage.slack.calls_of("chat.update"))
    assert [m["metadata"] for m in stage.answers()] == [UNFINISHED]


async def test_a_stream_that_slack_does_not_stop_in_time_is_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer's post waits for it."""
    monkeypatch.setattr("adapters.slack.outbound.streams.PIECE_SECONDS", 0.3)
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    stage.slack.fail("chat.appendStream", status=500)
    held = stage.slack.hold("chat.stopStream")
    live.text("d.1", "two\n")
    await held.reached()
    async with asyncio.timeout(3.0):
        await stage.slack.until(lambda: stage.slack.calls_of("chat.update"))
    held.release()
    await stage.outbound.send(stage.said("d.1", "one\ntwo"))
    assert "two" in shown_text(stage.answers()[0])


async def test_calls_that_nobody_finished_are_ended_though_the_next_turn_has_the_place(stage: Stage) -> None:
    """Each claim replaces the one before, also of the same process, which releases a place when its posts are out."""
    records = Records()
    with under(records.claim()):
        live = stage.live()
        live.task("t1", "tasks: Search", "running")
        await streaming(stage)
        live.task("t1", "tasks: Search", "done")
        live.end(waiting=True)
        records.have_another_claim = True
    await stage.slack.until(lambda: not stage.drafts.in_use())
    (message,) = stage.answers()
    assert not message["streaming"]
    assert calls_in(message) == ["complete"]


async def test_calls_that_no_post_finishes_are_ended_with_the_process(stage: Stage) -> None:
    """Their turn waits for somebody, who is answered by the next process; that has no reason to look for them."""
    stage.drafts.pace = replace(QUICK, append=60.0)
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    live.task("t1", "tasks: Search", "done")
    live.end(waiting=True)
    await stage.drafts.close()
    (message,) = stage.answers()
    assert not message["streaming"]
    assert calls_in(message) == ["complete"]
    assert not message.get("metadata")


def calls_in(message: Mapping[str, Any]) -> list[str]:
    """How the tool calls stand that a message shows."""
    return [block["status"] for block in message["blocks"] if block["type"] == "task_card"]


async def test_a_stream_that_cannot_be_stopped_is_stopped_before_it_is_replaced(stage: Stage) -> None:
    stage.live().text("d.1", "one\n")
    await streaming(stage)
    stage.slack.fail("chat.stopStream", status=503)
    await stage.outbound.send(stage.said("d.1", "one\ntwo"))
    [message] = stage.answers()
    assert not message["streaming"]
    assert "two" in shown_text(message)


async def test_without_streaming_one_message_is_updated(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    live = stage.live()
    live.text("d.1", "**one**\n")
    await stage.slack.until(stage.answers)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: "two" in shown_text(stage.answers()[0]))
    await stage.outbound.send(stage.said("d.1", "**one**\ntwo\nthree"))
    [message] = stage.answers()
    assert "three" in shown_text(message)
    assert feedback_of(message) == ["context_actions"]
    assert message["metadata"]["event_payload"]["post"] == "said:d.1"


async def test_an_answer_that_has_difficulties_to_begin_still_stands_above_the_next(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    held = stage.slack.hold("chat.postMessage")
    live = stage.live()
    live.text("d.1", "one\n")
    await held.reached()
    live.text("d.2", "two\n")
    await asyncio.sleep(4 * QUICK.before)  # nothing is to happen, and there is nothing to wait for
    assert len(stage.slack.calls_of("chat.postMessage")) == 1
    held.release()
    await stage.slack.until(lambda: len(stage.answers()) == 2)
    assert [m["text"].strip() for m in stage.answers()] == ["one", "two"]


async def test_that_there_is_no_streaming_is_remembered_for_a_while(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    stage.live().text("d.1", "one\n")
    await stage.slack.until(lambda: len(stage.answers()) == 1)
    stage.live().text("d.2", "one\n")
    await stage.slack.until(lambda: len(stage.answers()) == 2)
    assert len(stage.slack.calls_of("chat.startStream")) == 1
    stage.now += MEMORY + 1
    stage.live().text("d.3", "one\n")
    await stage.slack.until(lambda: len(stage.answers()) == 3)
    assert len(stage.slack.calls_of("chat.startStream")) == 2


async def test_a_direct_message_without_thread_is_updated_rather_than_streamed(stage: Stage) -> None:
    place = place_of(SlackLocation("T1", "D1"), direct=True)
    stage.live(place).text("d.1", "one\n")
    await stage.slack.until(lambda: stage.answers("D1"))
    await stage.outbound.send(stage.said("d.1", "one\ntwo", place))
    [message] = stage.answers("D1")
    assert "two" in shown_text(message)
    assert not stage.slack.calls_of("chat.startStream")


async def test_a_reader_who_is_not_in_slack_gets_updates_too(stage: Stage) -> None:
    stage.live(reader="web:ana").text("d.1", "one\n")
    await stage.slack.until(stage.answers)
    assert not stage.slack.calls_of("chat.startStream")


async def test_a_stream_whose_beginning_got_no_answer_is_found_by_its_post(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", drop=True)
    stage.live().text("d.1", "one\n")
    await stage.slack.until(stage.answers)
    await stage.outbound.send(stage.said("d.1", "one\ntwo"))
    [message] = stage.answers()
    assert "two" in shown_text(message)


async def test_a_draft_that_somebody_deleted_is_posted_anew(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    ts = await streaming(stage)
    del stage.slack.world.channels["C1"].messages[ts]
    await stage.outbound.send(stage.said("d.1", "one\ntwo"))
    [message] = stage.answers()
    assert message["ts"] != ts
    assert "two" in shown_text(message)


async def test_a_draft_that_somebody_deleted_is_not_taken_for_its_post(stage: Stage) -> None:
    stage.live().text("d.1", "one\n")
    ts = await streaming(stage)
    del stage.slack.world.channels["C1"].messages[ts]
    stage.slack.fail("chat.postMessage", status=503)
    with pytest.raises(PostFailed):
        await stage.outbound.send(stage.said("d.1", "one\ntwo"))
    assert await stage.outbound.find(stage.said("d.1", "one\ntwo")) is None


async def test_a_stream_that_is_asked_to_wait_waits(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    stage.slack.fail("chat.appendStream", status=429, retry_after=0.1, times=3)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: stage.answers()[0]["text"] == "one\ntwo\n")
    assert stage.answers()[0]["streaming"]


async def test_a_stream_that_has_to_wait_long_is_completed_by_its_post(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    stage.slack.fail("chat.appendStream", status=429, retry_after=60)
    live.text("d.1", "two\n")
    await stage.slack.until(lambda: stage.slack.calls_of("chat.appendStream"))
    await stage.outbound.send(stage.said("d.1", "one\ntwo\nthree"))
    assert stage.answers()[0]["text"] == "one\ntwo\nthree"
    assert "chat.update" not in stage.methods()


async def test_an_answer_that_is_tried_again_is_written_into_the_same_message(stage: Stage) -> None:
    stage.live().text("d.1", "a try that fai\n")
    ts = await streaming(stage)
    stage.live().text("d.1", "a better\n")
    await stage.slack.until(lambda: "a better" in shown_text(stage.answers()[0]))
    await stage.outbound.send(stage.said("d.1", "a better try"))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert "a better try" in shown_text(message)


async def test_an_answer_that_is_tried_again_and_there_at_once_takes_the_place_of_the_first_try(stage: Stage) -> None:
    stage.live().text("d.1", "a try that fai\n")
    ts = await streaming(stage)
    stage.live().text("d.1", "a better\n")
    await stage.outbound.send(stage.said("d.1", "a better try"))
    [message] = stage.answers()
    assert (message["ts"], message["streaming"]) == (ts, False)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_draft_that_the_last_process_did_not_finish_is_written_anew(stage: Stage, *, killed: bool) -> None:
    stage.live().text("d.1", "half an answ\n")
    ts = await streaming(stage)
    await stage.drafts.close()
    if killed:
        stage.slack.world.channels["C1"].messages[ts]["streaming_state"] = "in_progress"
        del stage.slack.world.channels["C1"].messages[ts]["metadata"]
    stage.again()
    stage.live().text("d.1", "half an answer\n")
    await stage.slack.until(lambda: "answer" in shown_text(stage.answers()[0]))
    await stage.outbound.send(stage.said("d.1", "half an answer\nand its end"))
    [message] = stage.answers()
    assert (message["ts"], message["streaming"]) == (ts, False)
    assert "and its end" in shown_text(message)


async def test_live_never_waits_for_slack_and_never_fails(stage: Stage) -> None:
    stage.slack.fail("chat.startStream", error="is_archived", times=math.inf)
    stage.slack.fail("chat.postMessage", error="is_archived", times=math.inf)
    stage.slack.fail("assistant.threads.setStatus", error="is_archived", times=math.inf)
    live = stage.live()
    live.status("Thinking…")
    live.text("d.1", "one\n")
    live.task("t1", "a task", "running")
    await stage.slack.until(lambda: stage.slack.calls_of("chat.postMessage"))
    live.text("d.1", "two\n")
    live.end(waiting=False)
    await stage.drafts.close()
    assert stage.answers() == []
