"""The state of an agent's session beside its thread: at work, waiting for somebody, at rest."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest

from adapters.shared.caches import MEMORY
from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.status import StatusPace
from bot.records.claims import Claim, under
from tests.slack.stage import Stage, human_says, staged

METHOD = "agents.sessions.setStatus"
LINE = "assistant.threads.setStatus"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


def states(stage: Stage) -> list[str]:
    return stage.slack.sessions("C1", stage.thread_ts)


async def new_thread(stage: Stage) -> None:
    """A thread that is younger than the process."""
    stage.now -= 3600.0
    stage.again()
    stage.thread_ts = human_says(stage.slack, "C1", "<@UBOT> hi")


@pytest.mark.parametrize(("waiting", "state"), [(True, "suspended"), (False, "active")])
async def test_a_session_is_at_work_and_then_at_rest_or_waits(stage: Stage, *, waiting: bool, state: str) -> None:
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: states(stage) == ["processing"])
    live.end(waiting=waiting)
    await stage.slack.until(lambda: states(stage) == ["processing", state])
    assert stage.slack.calls_of(LINE) == []


async def test_what_the_bot_does_at_work_changes_nothing(stage: Stage) -> None:
    live = stage.live()
    for text in ("Thinking…", "Using tasks: Search…", "", "Thinking…"):
        live.status(text)
        await stage.outbound.send(stage.notice(f"n{text}", "Something that takes a moment."))
    live.end(waiting=False)
    await stage.slack.until(lambda: "active" in states(stage))
    assert states(stage) == ["processing", "active"]


async def test_a_turn_that_is_over_at_once_needs_no_call() -> None:
    async with staged(status_pace=StatusPace(0.0, 0.0, before=60.0)) as stage:
        await new_thread(stage)
        live = stage.live()
        live.status("Thinking…")
        live.status("Using tasks: Search…")
        live.end(waiting=False)
        await stage.outbound.send(stage.notice("n1", "Something that takes a moment."))
        await stage.drafts.close()
        assert stage.slack.calls_of(METHOD) == []


async def test_turns_that_follow_each_other_at_once_need_no_call_either_in_a_thread_that_is_being_put_right() -> None:
    async with staged(status_pace=StatusPace(0.0, clear=0.3, before=60.0)) as stage:
        for _ in range(5):
            live = stage.live()
            live.status("Thinking…")
            await asyncio.sleep(0.02)
            live.end(waiting=False)
            await asyncio.sleep(0.02)
        await stage.slack.until(lambda: states(stage))
        await stage.drafts.close()
        assert states(stage) == ["active"]


async def test_a_card_that_is_there_at_once_shows_that_the_thread_waits_and_what_follows_ends_that() -> None:
    async with staged(status_pace=StatusPace(0.0, 0.0, before=60.0)) as stage:
        await new_thread(stage)
        asks, told_to_wait, goes_on, answers = (stage.live() for _ in range(4))
        asks.status("Thinking…")
        asks.end(waiting=True)
        await stage.slack.until(lambda: states(stage) == ["suspended"])
        told_to_wait.status("Thinking…")
        told_to_wait.end(waiting=True)
        goes_on.status("Using tasks: Create…")
        goes_on.end(waiting=False)
        await stage.slack.until(lambda: states(stage) == ["suspended", "active"])
        answers.status("Thinking…")
        answers.end(waiting=False)
        await stage.drafts.close()
        assert states(stage) == ["suspended", "active"]


async def test_a_rejection_without_further_work_ends_that_the_thread_waits(stage: Stage) -> None:
    await new_thread(stage)
    live = stage.live()
    live.status("Thinking…")
    live.end(waiting=True)
    await stage.slack.until(lambda: "suspended" in states(stage))
    await stage.slack.until(lambda: not [t for t in asyncio.all_tasks() if t.get_name() == "slack status"])
    stage.live().end(waiting=False)
    await stage.slack.until(lambda: states(stage)[-1] == "active")


async def test_what_a_dead_process_left_is_put_right_by_a_turn_that_is_over_at_once_too() -> None:
    async with staged(status_pace=StatusPace(0.0, 0.0, before=60.0)) as stage:
        for _ in range(2):
            live = stage.live()
            live.status("Thinking…")
            live.end(waiting=False)
            await stage.slack.until(lambda: states(stage))
        await stage.drafts.close()
        assert states(stage) == ["active"]


async def test_the_next_delivery_at_once_leaves_it_at_work() -> None:
    async with staged(status_pace=StatusPace(0.01, clear=60.0)) as stage:
        live = stage.live()
        live.status("Thinking…")
        await stage.slack.until(lambda: states(stage))
        live.end(waiting=False)
        stage.live().status("Thinking…")
        await stage.outbound.send(stage.notice("n1", "Something that takes a moment."))
        assert states(stage) == ["processing"]


async def test_whoever_is_told_something_without_any_work_begins_no_session(stage: Stage) -> None:
    await new_thread(stage)
    stage.live().end(waiting=False)
    await stage.outbound.send(stage.notice("n1", "Something that takes a moment."))
    await stage.drafts.close()
    assert stage.slack.calls_of(METHOD) == []


async def test_a_session_that_a_dead_process_left_at_work_is_put_right_once(stage: Stage) -> None:
    for _ in range(2):
        stage.live().end(waiting=True)
        await stage.slack.until(lambda: states(stage))
    await stage.drafts.close()
    assert states(stage) == ["suspended"]


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [([1], []), ([2], ["active"]), ([2, 3], ["active"]), ([2, 4], ["active", "active"]), ([1, 2], [])],
    ids=["first", "another had it", "nobody in between", "another in between", "never another"],
)
async def test_where_processes_take_turns_what_another_may_have_set_is_put_right(
    epochs: list[int], expected: list[str]
) -> None:
    async with staged(status_pace=StatusPace(0.0, 0.0, before=60.0)) as stage:
        await new_thread(stage)
        for count, epoch in enumerate(epochs, 1):
            with under(Claim("slack:T1:C1", epoch)):
                live = stage.live()
                live.status("Thinking…")
                live.end(waiting=False)
            await stage.slack.until(lambda n=count: states(stage) == expected[:n] and not stage.drafts.status._lines)
        assert states(stage) == expected


async def test_who_leaves_a_thread_to_another_process_shows_nothing_more_of_it() -> None:
    """Else it would be shown as at work for ever, or as at rest while the other one works."""
    async with staged(status_pace=StatusPace(0.0, 0.0, refresh=0.01, before=0.0)) as stage:
        await new_thread(stage)
        live = stage.live()
        live.status("Thinking…")
        await stage.slack.until(lambda: len(states(stage)) > 1)
        live.leave()
        told = len(states(stage))
        await stage.drafts.close()
        assert len(states(stage)) == told


async def test_a_state_that_slack_does_not_take_now_is_set_later(stage: Stage) -> None:
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: states(stage))
    stage.slack.fail(METHOD, status=503, times=2)
    live.end(waiting=False)
    await stage.slack.until(lambda: states(stage) == ["processing", "active"])


@pytest.mark.parametrize("error", ["unknown_method", "not_agent_app"])
async def test_where_there_are_no_sessions_a_line_says_it_and_that_is_remembered(stage: Stage, error: str) -> None:
    stage.slack.fail(METHOD, error=error, times=math.inf)
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: stage.slack.statuses("C1", stage.thread_ts) == ["Thinking…"])
    live.end(waiting=True)
    await stage.slack.until(lambda: stage.slack.statuses("C1", stage.thread_ts) == ["Thinking…", ""])
    root = human_says(stage.slack, "D1", "hi")
    stage.live(place_of(SlackLocation("T1", "D1", root), direct=True)).status("Elsewhere…")
    await stage.slack.until(lambda: stage.slack.statuses("D1", root) == ["Elsewhere…"])
    assert len(stage.slack.calls_of(METHOD)) == 1
    stage.now += MEMORY + 1
    stage.live().status("Later…")
    # The line in the direct message is kept up too, and tries anew at the same moment.
    await stage.slack.until(lambda: len(stage.slack.calls_of(METHOD)) >= 2)


async def test_where_there_is_neither_nothing_is_said(stage: Stage) -> None:
    for method in (METHOD, LINE):
        stage.slack.fail(method, error="unknown_method", times=math.inf)
    live = stage.live()
    live.status("Thinking…")
    await stage.slack.until(lambda: stage.slack.calls_of(LINE))
    live.status("Still thinking…")
    live.end(waiting=False)
    await stage.drafts.close()
    assert [len(stage.slack.calls_of(method)) for method in (METHOD, LINE)] == [1, 1]


async def test_when_the_process_ends_nothing_seems_to_be_at_work() -> None:
    async with staged(status_pace=StatusPace(between=60.0, clear=60.0)) as stage:
        stage.live().status("Thinking…")
        await stage.slack.until(lambda: states(stage))
        await stage.drafts.close()
        assert states(stage) == ["processing", "active"]
