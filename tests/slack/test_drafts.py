"""An answer while it is written: streamed, with the tool calls, and always ended by its post."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.streams import MOST_STREAMED
from bot.domain import CallActivity, Said
from graph.citations import Source
from tests.slack.stage import NEVER, QUICK, Stage, feedback_of, human_says, shown_text, staged, streaming

STREAMS = ("chat.startStream", "chat.appendStream", "chat.stopStream")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


async def test_an_answer_that_is_finished_fast_is_one_message_and_nothing_else() -> None:
    async with staged(NEVER) as stage:
        stage.live().text("d.1", "Hello there.\n")
        await stage.outbound.send(stage.notice("n1", "Something else, which takes a moment."))
        assert [call.method for call in stage.slack.calls] == ["chat.postMessage"]
        await stage.outbound.send(stage.said("d.1", "Hello there."))
        assert stage.methods() == ["chat.postMessage"] * 2


async def test_an_answer_streams_and_its_post_ends_the_stream_in_place(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "**First** line\nthe second ")
    ts = await streaming(stage)
    live.text("d.1", "one\n\n- a third")
    await stage.slack.until(lambda: stage.slack.calls_of("chat.appendStream"))
    whole = "**First** line\nthe second one\n\n- a third line"
    reference = await stage.outbound.send(stage.said("d.1", whole))
    [message] = stage.answers()
    assert reference == {"team": "T1", "channel": "C1", "parts": [ts]}
    assert (message["text"], message["streaming"]) == (whole, False)
    assert message["metadata"]["event_payload"] == {"post": "said:d.1", "part": 0}
    assert feedback_of(message) == ["context_actions"]
    assert set(stage.methods()) == set(STREAMS)


async def test_what_is_not_certain_yet_is_not_streamed(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "It is **certain**\nand this [is](http")
    await streaming(stage)
    [message] = stage.answers()
    assert message["text"] == "It is **certain**\n"


async def test_a_stream_in_a_channel_is_for_the_person_who_asked(stage: Stage) -> None:
    stage.live().text("d.1", "Hello there you\n")
    await streaming(stage)
    [call] = stage.slack.calls_of("chat.startStream")
    wanted = {"thread_ts": stage.thread_ts, "recipient_team_id": "T1", "recipient_user_id": "U1"}
    assert call.arguments.items() >= wanted.items()


async def test_in_the_agent_container_a_stream_needs_no_recipient(stage: Stage) -> None:
    place = place_of(SlackLocation("T1", "D1", human_says(stage.slack, "D1", "hi")), direct=True)
    stage.live(place).text("d.1", "Hello there you\n")
    await stage.slack.until(lambda: stage.answers("D1"))
    [call] = stage.slack.calls_of("chat.startStream")
    assert "recipient_user_id" not in call.arguments


async def test_white_space_at_the_end_makes_no_difference(stage: Stage) -> None:
    stage.live().text("d.1", "one line\n\n")
    await streaming(stage)
    await stage.outbound.send(stage.said("d.1", "one line"))
    assert "chat.update" not in stage.methods()
    assert len(stage.answers()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "See [the page](https://example.com/x) for more.\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "Hidden\u202e text\n",
    ],
)
async def test_what_a_stream_cannot_show_as_it_should_be_is_replaced(stage: Stage, text: str) -> None:
    stage.live().text("d.1", text)
    ts = await streaming(stage)
    await stage.outbound.send(stage.said("d.1", text))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert "markdown" not in [block["type"] for block in message["blocks"]]
    assert message["metadata"]["event_payload"]["post"] == "said:d.1"


async def test_nobody_is_pinged_while_an_answer_is_written(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "<!channel> <@U1> @here &lt;!here&gt; <https://evil.example|good.example>\n")
    await streaming(stage)
    [message] = stage.answers()
    assert "<" not in message["text"]
    assert "@here" not in message["text"]
    assert stage.slack.product_mistakes == []


async def test_tool_calls_open_a_message_that_the_answer_continues(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: <Search>", "running")
    ts = await streaming(stage)
    live.task("t1", "tasks: <Search>", "done")
    await stage.slack.until(lambda: stage.answers()[0]["blocks"][0]["status"] == "complete")
    live.status("")
    live.text("d.2", "Found it.")
    await stage.outbound.send(stage.said("d.2", "Found it."))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert [block["type"] for block in message["blocks"]] == ["task_card", "markdown", "context_actions"]
    assert message["blocks"][0]["title"] == "tasks: ‹Search›"


@pytest.mark.parametrize("ends", ["as it streamed", "replaced"])
async def test_an_answer_says_what_was_looked_up_for_it_once(stage: Stage, ends: str) -> None:
    """As task cards while it streams; else in a line below, which costs no call."""
    looked = CallActivity("t1", "tasks", "search", "Search", "done", 1.0, 2.0)
    text = "Found it." if ends == "as it streamed" else "See setup.py, all of it."
    live = stage.live()
    live.text("d.2", f"{text}\n")
    await streaming(stage)
    await stage.outbound.send(stage.post("said:d.2", Said(text, activity=(looked,))))
    [message] = stage.answers()
    shown = "markdown" if ends == "as it streamed" else "rich_text"
    assert [block["type"] for block in message["blocks"]] == [shown, "context", "context_actions"]
    assert "✓ tasks › search" in str(message["blocks"][1])
    update = [] if ends == "as it streamed" else ["chat.update"]
    assert stage.methods() == ["chat.startStream", "chat.stopStream", *update]


async def test_an_answer_whose_stream_shows_the_calls_has_no_line_of_them_below(stage: Stage) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: stage.answers()[0]["blocks"][0]["status"] == "complete")
    live.text("d.2", "Found it.")
    looked = CallActivity("t1", "tasks", "search", "Search", "done", 1.0, 2.0)
    await stage.outbound.send(stage.post("said:d.2", Said("Found it.", activity=(looked,))))
    [message] = stage.answers()
    assert [block["type"] for block in message["blocks"]] == ["task_card", "markdown", "context_actions"]


async def test_what_an_answer_cites_stands_below_its_stream(stage: Stage) -> None:
    """Also where the stream shows the calls itself."""
    live = stage.live()
    live.task("t1", "documents: Search", "running")
    await streaming(stage)
    live.task("t1", "documents: Search", "done")
    await stage.slack.until(lambda: stage.answers()[0]["blocks"][0]["status"] == "complete")
    live.text("d.2", "It is 28 days [1].")
    looked = CallActivity("t1", "documents", "search", "Search", "done", 1.0, 2.0)
    cited = Said("It is 28 days [1].", activity=(looked,), sources=(Source(1, "Handbook.pdf", 3),))
    await stage.outbound.send(stage.post("said:d.2", cited))
    [message] = stage.answers()
    assert [block["type"] for block in message["blocks"]] == ["task_card", "markdown", "context", "context_actions"]
    assert message["blocks"][2]["elements"][0]["text"] == "Sources:\n[1] Handbook.pdf, page 3"


async def test_an_answer_names_no_call_that_a_message_above_shows(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up.")
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    live.task("t1", "tasks: Search", "done")
    await stage.slack.until(lambda: stage.answers()[0]["blocks"][-1].get("status") == "complete")
    await stage.outbound.send(stage.post("said:d.1", Said("I look it up.", final=False)))
    looked = CallActivity("t1", "tasks", "search", "Search", "done", 1.0, 2.0)
    added = CallActivity("t2", "tasks", "add_task", "Add task", "done", 3.0, 4.0)
    await stage.outbound.send(stage.post("said:d.2", Said("Found it.", activity=(looked,), earlier_calls=1)))
    await stage.outbound.send(stage.post("said:d.3", Said("Added it.", activity=(looked, added))))
    above, found, added_it = stage.answers()
    assert [block["type"] for block in above["blocks"]] == ["markdown", "task_card"]
    assert [block["type"] for block in found["blocks"]] == ["rich_text", "context_actions"]
    assert added_it["blocks"][1]["elements"][0]["text"] == "✓ tasks › add_task"


async def test_after_a_crash_the_calls_stand_below_the_answer(stage: Stage) -> None:
    live = stage.live()
    live.text("d.2", "Found it, and more of it.\n")
    ts = await streaming(stage)
    stage.again()
    looked = CallActivity("t1", "tasks", "search", "Search", "done", 1.0, 2.0)
    await stage.outbound.send(stage.post("said:d.2", Said("Found it, and more of it.", activity=(looked,))))
    [message] = stage.answers()
    assert message["ts"] == ts
    assert [block["type"] for block in message["blocks"]] == ["rich_text", "context", "context_actions"]


async def test_tool_calls_stand_below_the_text_that_announced_them(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up.")
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    live.task("t1", "tasks: Search", "failed")
    await stage.slack.until(lambda: stage.answers()[0]["blocks"][-1].get("status") == "error")
    [message] = stage.answers()
    assert [block["type"] for block in message["blocks"]] == ["markdown", "task_card"]
    assert message["text"] == "I look it up."
    live.text("d.2", "It failed\n")
    await stage.slack.until(lambda: len(stage.answers()) == 2)


async def test_calls_that_ended_before_anything_was_shown_stand_above_the_answer_and_not_in_its_middle(
    stage: Stage,
) -> None:
    live = stage.live()
    live.task("t1", "tasks: Search", "running")
    live.task("t1", "tasks: Search", "done")
    live.text("d.2", "Found it in ")
    await streaming(stage)
    live.text("d.2", "the list.")
    await stage.outbound.send(stage.said("d.2", "Found it in the list."))
    [message] = stage.answers()
    assert [block["type"] for block in message["blocks"]] == ["task_card", "markdown", "context_actions"]
    assert message["blocks"][1]["text"] == "Found it in the list."


async def test_a_tool_call_that_still_runs_does_not_stay_behind_for_ever(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "I look it up.")
    live.task("t1", "tasks: Search", "running")
    await streaming(stage)
    await stage.outbound.send(stage.said("d.1", "I look it up."))
    [message] = stage.answers()
    assert "task_card" not in [block["type"] for block in message["blocks"]]
    live.task("t1", "tasks: Search", "done")
    assert len(stage.answers()) == 1


async def test_an_answer_waits_until_what_was_said_before_is_posted(stage: Stage) -> None:
    held = stage.slack.hold("chat.postMessage")
    earlier = asyncio.create_task(stage.outbound.send(stage.notice("n1", "Before that.")))
    await held.reached()
    stage.live().text("d.1", "one\n")
    await stage.outbound.find(stage.notice("n2", "Something else, which takes a moment."))
    await asyncio.sleep(4 * QUICK.before)  # nothing is to happen, and there is nothing to wait for
    assert stage.slack.calls_of("chat.startStream") == []
    held.release()
    await earlier
    await streaming(stage)
    assert [m["text"] for m in stage.answers()] == ["Before that.", "one\n"]


async def test_nothing_is_appended_after_the_post(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    held = stage.slack.hold("chat.appendStream")
    live.text("d.1", "two\n")
    await held.reached()
    held_post = stage.slack.hold("chat.stopStream")
    held.release()
    live.text("d.1", "three\n")
    held_post.release()
    await stage.outbound.send(stage.said("d.1", "one\ntwo\nthree"))
    live.text("d.1", "four\n")
    assert not stage.drafts.in_use()
    await stage.drafts.close()
    [message] = stage.answers()
    assert message["text"] == "one\ntwo\nthree"
    writing = [method for method in stage.methods() if method in STREAMS]
    assert writing.index("chat.stopStream") == len(writing) - 1


async def test_a_draft_that_no_post_finishes_is_closed_when_the_bot_rests(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "half an answ\n")
    await streaming(stage)
    live.end(waiting=False)
    await stage.slack.until(lambda: not stage.answers()[0]["streaming"])
    reference = await stage.outbound.send(stage.said("d.1", "half an answer"))
    [message] = stage.answers()
    assert reference["parts"] == [message["ts"]]
    assert "half an answer" in shown_text(message)


async def test_the_post_may_come_a_little_later_than_the_end_of_its_turn() -> None:
    async with staged(replace(QUICK, append=0.001, grace=60.0)) as stage:
        live = stage.live()
        live.text("d.1", "one\n")
        await streaming(stage)
        live.end(waiting=False)
        for number in range(3):
            await stage.outbound.send(stage.notice(f"n{number}", "Something else, which takes a moment."))
        assert stage.answers()[0]["streaming"]


async def test_a_call_that_ends_with_its_turn_is_shown_as_it_ended() -> None:
    async with staged(replace(QUICK, grace=60.0)) as stage:
        live = stage.live()
        live.task("t1", "tasks: Search", "running")
        await streaming(stage)
        live.task("t1", "tasks: Search", "done")
        live.task("t2", "tasks: Count", "done")
        live.end(waiting=False)
        await stage.slack.until(lambda: not stage.answers()[0]["streaming"])
        assert [block["status"] for block in stage.answers()[0]["blocks"]] == ["complete", "complete"]


async def test_calls_that_no_answer_follows_do_not_seem_to_run_for_ever() -> None:
    async with staged(replace(QUICK, grace=60.0)) as stage:
        live = stage.live()
        live.task("t1", "tasks: Search", "done")
        live.task("t2", "tasks: Search", "running")
        await streaming(stage)
        live.end(waiting=False)
        await stage.slack.until(lambda: not stage.answers()[0]["streaming"])
        assert [block["status"] for block in stage.answers()[0]["blocks"]] == ["complete", "error"]


async def test_a_long_answer_streams_as_far_as_one_message_goes(stage: Stage) -> None:
    text = "".join(f"line {n} of a long answer\n" for n in range(1_000))
    stage.live().text("d.1", text)
    await streaming(stage)
    assert len(stage.answers()[0]["text"]) <= MOST_STREAMED
    await stage.outbound.send(stage.said("d.1", text))
    shown = "".join("".join(shown_text(message) for message in stage.answers()).split())
    assert all(f"line{n}of" in shown for n in range(1_000))


async def test_closing_ends_what_is_open_and_shows_nothing_more(stage: Stage) -> None:
    live = stage.live()
    live.text("d.1", "one\n")
    await streaming(stage)
    await stage.drafts.close()
    assert not stage.answers()[0]["streaming"]
    live.text("d.2", "two\n")
    live.task("t9", "late", "running")
    live.status("late")
    assert not stage.drafts.in_use()
    assert len(stage.answers()) == 1
