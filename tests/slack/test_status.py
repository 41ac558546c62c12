"""Where an app has no sessions, the line that says what the bot is doing: in threads only, newest wins, silent where
Slack does not have it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.shared.caches import MEMORY
from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.status import StatusPace
from tests.slack import stage as stages
from tests.slack.stage import Stage

METHOD = "assistant.threads.setStatus"


@asynccontextmanager
async def staged(status_pace: StatusPace | None = None) -> AsyncIterator[Stage]:
    """A workspace in which the app is no agent."""
    async with stages.staged(status_pace=status_pace) as stage:
        stage.slack.fail("agents.sessions.setStatus", error="not_agent_app", times=math.inf)
        yield stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


def statuses(stage: Stage) -> list[str]:
    return [call.arguments["status"] for call in stage.slack.calls_of(METHOD)]


async def test_a_status_is_shown_and_cleared_when_the_bot_rests(stage: Stage) -> None:
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: statuses(stage) == ["Thinking…"])
    live.end(waiting=False)
    await stage.slack.until(lambda: statuses(stage) == ["Thinking…", ""])


async def test_a_post_clears_the_status_by_itself(stage: Stage) -> None:
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: statuses(stage))
    live.status("")
    await stage.outbound.send(stage.said("d.1", "Hello."))
    await stage.drafts.close()
    assert statuses(stage) == ["Thinking…"]


async def test_of_many_statuses_the_newest_wins(stage: Stage) -> None:
    live = stage.live()
    held = stage.slack.hold(METHOD)
    live.status("one")
    await held.reached()
    for number in range(50):
        live.status(f"step {number}")
    held.release()
    await stage.slack.until(lambda: "step 49" in statuses(stage))
    assert statuses(stage) == ["one", "step 49"]


async def test_statuses_do_not_follow_each_other_too_fast() -> None:
    async with staged(status_pace=StatusPace(between=60.0)) as stage:
        live = stage.live()
        live.status("one")
        await stage.slack.until(lambda: statuses(stage))
        live.status("two")
        for number in range(3):
            await stage.outbound.send(stage.notice(f"n{number}", "Something that takes a moment."))
        assert statuses(stage) == ["one"]


async def test_a_status_is_one_short_visible_line(stage: Stage) -> None:
    stage.live().status("Using <!here>\n\u202e" + "very " * 40)
    [text] = await stage.slack.until(lambda: statuses(stage))
    assert len(text) <= 50
    assert text.startswith("Using ‹!here› ⟨U+202E⟩")


async def test_where_there_is_no_thread_there_is_no_status(stage: Stage) -> None:
    live = stage.live(place_of(SlackLocation("T1", "D1"), direct=True))
    live.status("Thinking…")
    live.text("d.1", "one\n")
    await stage.slack.until(lambda: stage.answers("D1"))
    assert statuses(stage) == []


@pytest.mark.parametrize("error", ["missing_scope", "unknown_method", "channel_type_not_supported"])
async def test_where_slack_has_no_status_it_is_asked_once_an_hour(stage: Stage, error: str) -> None:
    stage.slack.fail(METHOD, error=error, times=math.inf)
    stage.live().status("Thinking…")
    await stage.slack.until(lambda: statuses(stage))
    await asyncio.gather(*(t for t in asyncio.all_tasks() if t.get_name() == "slack status"))
    stage.live().status("Thinking again…")
    await stage.outbound.send(stage.notice("n1", "Something that takes a moment."))
    stage.now += MEMORY + 1
    stage.live().status("Thinking later…")
    await stage.slack.until(lambda: len(statuses(stage)) == 2)
    assert statuses(stage) == ["Thinking…", "Thinking later…"]


async def test_a_status_that_holds_long_is_set_again() -> None:
    async with staged(status_pace=StatusPace(0.01, 0.01, refresh=0.1)) as stage:
        stage.live().status("Working…")
        await stage.slack.until(lambda: len(statuses(stage)) >= 3)
        assert set(statuses(stage)) == {"Working…"}


async def test_closing_clears_what_is_shown_without_waiting() -> None:
    async with staged(status_pace=StatusPace(between=60.0, clear=60.0)) as stage:
        live = stage.live()
        live.status("Thinking…")
        await stage.slack.until(lambda: statuses(stage))
        await stage.drafts.close()
        live.status("late")
        await stage.drafts.close()
        assert statuses(stage) == ["Thinking…", ""]


async def test_closing_does_not_wait_for_the_pause_before_a_status_is_cleared() -> None:
    async with staged(status_pace=StatusPace(between=0.0, clear=60.0)) as stage:
        live = stage.live()
        live.status("Thinking…")
        await stage.slack.until(lambda: statuses(stage))
        live.end(waiting=False)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(15):
            await stage.drafts.close()
        assert statuses(stage) == ["Thinking…", ""]


async def test_a_hanging_status_delays_no_post(stage: Stage) -> None:
    held = stage.slack.hold(METHOD)
    stage.live().status("Thinking…")
    await held.reached()
    await stage.outbound.send(stage.said("d.1", "Hello."))
    assert len(stage.answers()) == 1
    held.release()
