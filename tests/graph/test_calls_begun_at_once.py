"""Calls that are approved as they were asked are begun before the run makes its way to them: nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from graph.call_endings import OUTCOME_UNKNOWN
from graph.interrupts import Approved, InterruptAnswer, Rejected
from graph.ports import OutcomeUnknown, QuestionPut, Succeeded
from graph.running import PendingInterrupt, ThreadStatus
from graph.state import Silent
from tests.graph.parts import Bench, Rig, does, rig, turn

LIVE = Silent()
APPROVED = Approved(by=("Ana",))
EDITED = Approved(by=("Ana",), arguments={"k": 2}, edited_by="web:ana")


def unknown(interrupts: tuple[PendingInterrupt, ...]) -> tuple[PendingInterrupt, ...]:
    """What waits, as another process reads it."""
    return tuple(replace(each, call=None) for each in interrupts)


async def answered(
    r: Rig, status: ThreadStatus, answers: Mapping[str, InterruptAnswer], *, at_once: bool
) -> ThreadStatus:
    interrupts = status.interrupts if at_once else unknown(status.interrupts)
    return await r.agent.resume("t", "r1", answers, LIVE, interrupts=interrupts)


async def tool_texts(r: Rig) -> list[str]:
    found = await r.checkpoints.aget_tuple({"configurable": {"thread_id": "t"}})
    assert found is not None
    return [m.text for m in found.checkpoint["channel_values"]["messages"] if isinstance(m, ToolMessage)]


def ids(status: ThreadStatus) -> list[str]:
    return [each.interrupt_id for each in status.interrupts]


@pytest.mark.parametrize("outcome", [Succeeded("fine"), OutcomeUnknown("no answer")])
@pytest.mark.parametrize("answer", [APPROVED, EDITED, Rejected(by="Ben")])
@pytest.mark.parametrize("holds", ["the approval holds", ""])
async def test_it_comes_to_the_same(tmp_path: Path, outcome: object, answer: InterruptAnswer, holds: str) -> None:
    found: list[Any] = []
    for at_once in (True, False):
        bench = Bench(["ask_a", "ask_b"], outcomes={"ask_a": outcome})
        async with rig(tmp_path / str(at_once), does("ask_a", "ask_b"), bench) as r:
            status = await r.agent.begin(turn("m1"), "go", LIVE)
            assert [each.call is not None for each in status.interrupts] == [True, True]
            bench.permitted = bool(holds)
            status = await answered(r, status, {ids(status)[0]: answer}, at_once=at_once)
            assert await r.agent.status("t") == status
            found.append(([each.asked for each in status.interrupts], bench.called, bench.attempts))
            await r.agent.settle("t", "m2", "something new")
            # Branches side by side come to this in any order; people are asked in that of the calls.
            bench.unmade.sort(key=lambda each: each.call_id)
            found[-1] += (bench.asked, bench.unmade, await tool_texts(r))
    assert found[0] == found[1]


async def test_several_are_made_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def together(_: object) -> Succeeded:
        await both.wait()
        return Succeeded("fine")

    bench = Bench(["ask_a", "ask_b"], outcomes={"ask_a": together, "ask_b": together})
    async with rig(tmp_path, does("ask_a", "ask_b"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await answered(r, status, dict.fromkeys(ids(status), APPROVED), at_once=True)
        assert (status.interrupts, sorted(bench.called)) == ((), ["m1.0.0", "m1.0.1"])
        assert status.spoken[-1].text == "fine | fine"


async def test_one_that_takes_long_to_prepare_does_not_hold_up_the_others(tmp_path: Path) -> None:
    asked = QuestionPut(1, "Which?", (), {})
    answering = asyncio.Event()

    async def slow(_: object) -> QuestionPut:
        await answering.wait()
        return asked

    bench = Bench(["ask_a", "ask_b"], outcomes={"ask_a": slow})
    async with rig(tmp_path, does("ask_a", "ask_b"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        resumed = asyncio.create_task(answered(r, status, dict.fromkeys(ids(status), APPROVED), at_once=True))
        while not isinstance(bench.attempts.get("m1.0.1"), Succeeded):
            await asyncio.sleep(0.001)
        answering.set()
        assert [each.asked.kind for each in (await resumed).interrupts] == ["elicitation"]
        assert bench.attempts["m1.0.0"] == "asking"


async def test_a_run_that_is_broken_off_breaks_off_the_call_whose_outcome_is_then_unknown(tmp_path: Path) -> None:
    began, left = asyncio.Event(), asyncio.Event()

    async def forever(_: object) -> Succeeded:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        raise AssertionError

    bench = Bench(["ask_a"], outcomes={"ask_a": forever})
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        resumed = asyncio.create_task(answered(r, status, {ids(status)[0]: APPROVED}, at_once=True))
        await began.wait()
        resumed.cancel()
        await asyncio.gather(resumed, return_exceptions=True)
        assert left.is_set(), "the call went on after its run"
        await r.agent.settle("t", "stop", "stopped")
        assert (await tool_texts(r)) == [OUTCOME_UNKNOWN]
        assert bench.called == ["m1.0.0"]


async def test_what_was_begun_by_a_run_that_failed_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        read = r.checkpoints.aget_tuple

        async def failing(_: object) -> None:
            raise OSError("the disk")

        monkeypatch.setattr(r.checkpoints, "aget_tuple", failing)
        with pytest.raises(OSError, match="the disk"):
            await answered(r, status, {ids(status)[0]: APPROVED}, at_once=True)
        assert bench.called == ["m1.0.0"]
        monkeypatch.setattr(r.checkpoints, "aget_tuple", read)
        status = await r.agent.status("t")
        assert [each.call for each in status.interrupts] == [None]
        status = await r.agent.resume("t", "r1", {ids(status)[0]: APPROVED}, LIVE, interrupts=status.interrupts)
        assert (status.spoken[-1].text, bench.called) == ("ask_a done", ["m1.0.0"])
