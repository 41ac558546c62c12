"""Rules 1, 4 and 10: a fault of one call stays within its branch. It cancelled the calls beside it: what another server
had finished ended as unknown."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from bot.records.database import NotOnDisk, is_outage
from graph.call_endings import OUTCOME_UNKNOWN
from graph.interrupts import Approved, OutcomeSettled
from graph.ports import QuestionPut, Succeeded
from graph.running import ThreadStatus
from graph.state import Silent
from tests.graph.parts import Bench, Rig, does, rig, turn
from tests.support.opened_checkpoints import put_to_disk

LIVE = Silent()
OURS = "Failed: something went wrong on our side. Nothing was called. (Reference "
OUTAGES = [
    sa.exc.OperationalError("", {}, sqlite3.OperationalError("disk I/O error")),
    sqlite3.OperationalError("database or disk is full"),
    NotOnDisk("OSError: full"),
]


class Beside:
    """A call of another server that is under way while the other one fails."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: Any) -> Succeeded:
        self.begun.set()
        await self.may_end.wait()
        return Succeeded("written")


async def begun_beside(r: Rig, beside: Beside) -> ThreadStatus:
    """The turn with both calls: the one beside ends when the other one is over, or nothing happens any more."""
    running = asyncio.create_task(r.agent.begin(turn("m1"), "go", LIVE))
    await beside.begun.wait()
    for _ in range(200):
        await asyncio.sleep(0)
    beside.may_end.set()
    return await running


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


async def test_a_fault_before_a_call_leaves_is_its_own_alone(tmp_path: Path) -> None:
    """Nothing was called, the model is told so, and one entry of the log has the cause."""
    beside = Beside()
    bench = Bench(["free", "beside"], {"beside": beside}, unready={"free": failing(KeyError("ours"))})
    with capture_logs() as logs:
        async with rig(tmp_path, does("free", "beside"), bench) as r:
            status = await begun_beside(r, beside)
    told, other = status.spoken[-1].text.split(" | ")
    assert told.startswith(OURS)
    assert other == "written"
    assert bench.attempts == {"m1.0.1": Succeeded("written")}
    assert [(each.call_id, each.status, each.text) for each in bench.unmade] == [("m1.0.0", "failed", told)]
    (entry,) = [each for each in logs if each["event"] == "tool_call_broke"]
    assert isinstance(entry["exc_info"], KeyError)
    assert entry["reference"] in told


async def test_of_a_call_that_may_have_been_made_is_asked_as_after_a_kill(tmp_path: Path) -> None:
    """Rule 4: it is not made again before a person says so."""
    beside = Beside()
    bench = Bench(["free", "beside"], {"beside": beside, "free": failing(RuntimeError("ours"))})
    async with rig(tmp_path, does("free", "beside"), bench) as r:
        status = await begun_beside(r, beside)
        assert [each.asked.kind for each in status.interrupts] == ["outcome"]
        assert bench.attempts == {"m1.0.0": "started", "m1.0.1": Succeeded("written")}
        assert sorted(bench.called) == ["m1.0.0", "m1.0.1"]
        bench.attempts["m1.0.0"] = Succeeded("seen to be done")
        answer = OutcomeSettled(choice="it_was_done", by="Ana")
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: answer}, LIVE)
        assert status.spoken[-1].text == "seen to be done | written"


def no_checkpoint_takes() -> list[dict[str, Any]]:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    return [{"maximum": 2**64}, {"half \ud83d": 1}, {"x": object()}, {"x": deep}]


@pytest.mark.parametrize("schema", no_checkpoint_takes(), ids=["64 bits", "half a name", "no JSON", "deep"])
async def test_what_no_checkpoint_takes_is_the_fault_of_its_call_alone(tmp_path: Path, schema: dict[str, Any]) -> None:
    """It stood in the way of whatever transaction of the thread came next, as of the outcome of the call beside it."""
    beside = Beside()
    put = QuestionPut(1, "which?", (), schema)
    bench = Bench(["free", "beside"], {"beside": beside}, unready={"free": lambda: put})
    async with rig(tmp_path, does("free", "beside"), bench) as r:
        status = await begun_beside(r, beside)
        await put_to_disk(r.checkpoints, "t")
        assert (await r.agent.status("t")).at_rest
    assert status.spoken[-1].text.startswith(OURS)
    assert status.spoken[-1].text.endswith(" | written")


async def test_a_card_of_a_call_that_broke_is_superseded(tmp_path: Path) -> None:
    """Rule 5: nobody is left with a card that asks for nothing."""
    over: list[tuple[str, int]] = []
    bench = Bench(["ask_a"])

    async def asks(*_: Any) -> Any:
        raise ValueError("half-way")

    async def not_asked(call_id: str, round_: int) -> None:
        over.append((call_id, round_))

    bench.ask, bench.not_asked = asks, not_asked  # type: ignore[method-assign]
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
    assert status.spoken[-1].text.startswith(OURS)
    assert over == [("m1.0.0", 1)]


async def test_an_approved_call_that_breaks_is_not_made(tmp_path: Path) -> None:
    bench = Bench(["ask_a"], unready={"ask_a": failing(KeyError("ours"))})
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        approved = {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}
        status = await r.agent.resume("t", "r1", approved, LIVE)
    assert status.spoken[-1].text.startswith(OURS)
    assert [each.approval_round for each in bench.unmade] == [1]


async def test_nothing_is_claimed_of_a_call_whose_end_cannot_be_recorded_either(tmp_path: Path) -> None:
    beside = Beside()
    bench = Bench(["free", "beside"], {"beside": beside}, unready={"free": failing(KeyError("ours"))})
    bench.close = failing(TypeError("ours, too"))  # type: ignore[method-assign]
    async with rig(tmp_path, does("free", "beside"), bench) as r:
        status = await begun_beside(r, beside)
    assert status.spoken[-1].text.startswith(OUTCOME_UNKNOWN)
    assert status.spoken[-1].text.endswith(" | written")


@pytest.mark.parametrize("outage", OUTAGES, ids=["records", "checkpoints", "disk"])
@pytest.mark.parametrize("verb", ["recall", "begin", "finish", "close"])
async def test_a_failure_of_the_records_is_no_fault_of_the_call(tmp_path: Path, verb: str, outage: Exception) -> None:
    """Rule 1: the turn is tried again, as before."""
    bench = Bench(["free"], unready={"free": failing(KeyError("ours"))} if verb == "close" else {})
    setattr(bench, verb, failing(outage))
    async with rig(tmp_path, does("free"), bench) as r:
        with pytest.raises(type(outage)):
            await r.agent.begin(turn("m1"), "go", LIVE)
        assert not (await r.agent.status("t")).at_rest
        delattr(bench, verb)
        bench.unready = {}
        bench.attempts.clear()
        status = await r.agent.go_on("t", "m1", "run", LIVE)
    assert status.spoken[-1].text == "free done"


async def test_a_run_that_is_cancelled_ends_at_once(tmp_path: Path) -> None:
    """Stop cancels the run: that is no fault of a call, and nothing is recorded of it here."""
    beside = Beside()
    bench = Bench(["beside"], {"beside": beside})
    async with rig(tmp_path, does("beside"), bench) as r:
        running = asyncio.create_task(r.agent.begin(turn("m1"), "go", LIVE))
        await beside.begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert bench.attempts == {"m1.0.0": "started"}
    assert bench.unmade == []


@pytest.mark.parametrize("outage", OUTAGES)
def test_what_says_that_the_records_cannot_be_used(outage: Exception) -> None:
    assert is_outage(outage)


@pytest.mark.parametrize(
    "fault",
    [
        OverflowError("Python int too large to convert to SQLite INTEGER"),
        UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed"),
        sa.exc.DataError("", {}, sqlite3.DataError("string or blob too big")),
        sa.exc.IntegrityError("", {}, sqlite3.IntegrityError("NOT NULL")),
        sqlite3.ProgrammingError("type 'object' is not supported"),
        ConnectionResetError(),
        TimeoutError(),
        TypeError("not serialisable"),
    ],
)
def test_what_does_not_fit_into_the_records_is_a_fault_of_the_call(fault: Exception) -> None:
    assert not is_outage(fault)
