"""After a crash: what was posted is found again, and what was left half done is completed."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest

from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.posting import mark
from bot.platform import PostFailed
from tests.slack.stage import (
    APPROVAL,
    LONG,
    NEVER,
    Stage,
    human_says,
    numbers,
    shown_text,
    staged,
)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged(NEVER) as made:
        yield made


async def test_what_was_posted_without_an_answer_is_found_and_not_posted_twice(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", drop=True)
    post = stage.post("card:a1", APPROVAL)
    with pytest.raises(PostFailed) as caught:
        await stage.outbound.send(post)
    assert not caught.value.permanent
    stage.again()
    reference = await stage.outbound.find(post)
    assert reference is not None
    await stage.outbound.update(post, reference)
    assert [message["ts"] for message in stage.answers()] == reference["parts"]


async def test_what_slack_failed_to_post_is_not_found(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", status=503)
    post = stage.post("card:a1", APPROVAL)
    with pytest.raises(PostFailed):
        await stage.outbound.send(post)
    assert await stage.outbound.find(post) is None


async def test_a_half_posted_answer_is_completed(stage: Stage) -> None:
    post = stage.said("d.1", LONG)
    stage.slack.fail("chat.postMessage", drop=True, when=lambda arguments: arguments["metadata"] == mark("said:d.1", 1))
    with pytest.raises(PostFailed):
        await stage.outbound.send(post)
    stage.again()
    reference = await stage.outbound.find(post)
    assert reference is not None
    assert len(reference["parts"]) == 2
    await stage.outbound.update(post, reference)
    messages = stage.answers()
    assert numbers(messages) == list(range(len(messages)))
    assert "Paragraph 59" in shown_text(messages[-1])


async def test_a_message_that_was_posted_twice_is_one_in_the_end(stage: Stage) -> None:
    post = stage.post("card:a1", APPROVAL)
    await stage.outbound.send(post)
    await stage.outbound.send(post)
    reference = await stage.outbound.find(post)
    assert reference is not None
    await stage.outbound.update(post, reference)
    assert len(stage.answers()) == 1


async def test_a_post_is_found_in_a_direct_message_without_threads(stage: Stage) -> None:
    post = stage.notice("n1", "Hello.", place=place_of(SlackLocation("T1", "D1"), direct=True))
    reference = await stage.outbound.send(post)
    assert await stage.outbound.find(post) == reference


async def test_a_post_is_found_on_a_later_page(stage: Stage) -> None:
    for number in range(250):
        human_says(stage.slack, "C1", f"message {number}", thread_ts=stage.thread_ts)
    post = stage.notice("n1", "Hello.")
    reference = await stage.outbound.send(post)
    assert await stage.outbound.find(post) == reference
    assert len(stage.slack.calls_of("conversations.replies")) == 2


async def test_only_our_own_messages_are_taken_for_ours(stage: Stage) -> None:
    for author in ({"user": "U2"}, {"user": "UOTHER", "bot_id": "BOTHER"}):
        human_says(stage.slack, "C1", "Hello.", thread_ts=stage.thread_ts, metadata=mark("n1", 0), **author)
    assert await stage.outbound.find(stage.notice("n1", "Hello.")) is None


async def test_when_slack_cannot_say_now_it_is_asked_again_later(stage: Stage) -> None:
    stage.slack.fail("conversations.replies", status=429, retry_after=300)
    with pytest.raises(PostFailed) as caught:
        await stage.outbound.find(stage.notice("n1", "Hello."))
    assert not caught.value.permanent


async def test_where_we_may_not_read_a_post_is_sent_again_rather_than_never(stage: Stage) -> None:
    stage.slack.fail("conversations.replies", error="missing_scope", times=math.inf)
    assert await stage.outbound.find(stage.notice("n1", "Hello.")) is None


@pytest.mark.parametrize("left", ["streaming", "stopped by Slack", "unfinished"])
async def test_the_draft_that_a_crash_left_behind_becomes_the_post(left: str) -> None:
    async with staged() as stage:
        stage.live().text("d.1", "**Half** an answ\n")
        [ts] = await stage.slack.until(lambda: [m["ts"] for m in stage.answers()])
        await stage.drafts.close()
        message = stage.slack.world.channels["C1"].messages[ts]
        if left != "unfinished":
            del message["metadata"]
            message["streaming_state"] = "in_progress" if left == "streaming" else "completed"
        stage.again()
        post = stage.said("d.1", "**Half** an answ\ner, and its end")
        reference = await stage.outbound.find(post)
        assert reference is not None
        await stage.outbound.update(post, reference)
        [message] = stage.answers()
        assert message["ts"] == ts
        assert "and its end" in shown_text(message)
        assert not message["streaming"]


async def test_a_draft_that_was_not_streamed_becomes_the_post_too() -> None:
    async with staged() as stage:
        stage.slack.fail("chat.startStream", error="unknown_method")
        stage.live().text("d.1", "**Half** an answ\n")
        [ts] = await stage.slack.until(lambda: [m["ts"] for m in stage.answers()])
        await stage.drafts.close()
        stage.again()
        reference = await stage.outbound.find(stage.said("d.1", "**Half** an answ\ner, and its end"))
        assert reference is not None
        assert reference["parts"] == [ts]


async def test_the_draft_of_another_answer_is_left_alone() -> None:
    async with staged() as stage:
        live = stage.live()
        live.text("d.2", "The second answer\n")
        await stage.slack.until(stage.answers)
        post = stage.said("d.1", "The first answer")
        assert await stage.outbound.find(post) is None
        await stage.outbound.send(post)
        live.text("d.2", "goes on\n")
        await stage.slack.until(lambda: stage.answers()[0]["text"] == "The second answer\ngoes on\n")


async def test_a_post_whose_draft_could_not_be_replaced_is_found_there() -> None:
    async with staged() as stage:
        stage.slack.fail("chat.startStream", error="unknown_method")
        stage.live().text("d.1", "What was written at first\n")
        [ts] = await stage.slack.until(lambda: [m["ts"] for m in stage.answers()])
        stage.slack.fail("chat.update", status=429, retry_after=60)
        post = stage.said("d.1", "What it is to be in the end")
        with pytest.raises(PostFailed):
            await stage.outbound.send(post)
        reference = await stage.outbound.find(post)
        assert reference is not None
        assert reference["parts"] == [ts]
