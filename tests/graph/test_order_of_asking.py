"""People are asked about calls that the model makes at once in the order of the calls, whichever is judged first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.ports import Failed
from graph.state import AskingOrder, Silent
from policies.approvers import StandingApproval
from tests.graph.parts import Bench, does, rig, turn

NAMES = ["ask_a", "ask_b", "deny_c", "ask_d", "e", "ask_f"]
ROUNDS = 20
"""Of the event loop, in which whoever does not wait for its turn is asked about."""


@dataclass
class JudgedLastFirst(Bench):
    """Judges the calls that wait for people last first."""

    judging: list[asyncio.Event] = field(default_factory=list)
    asks: int = 4

    async def grants_of(self, person_id: str) -> list[StandingApproval]:
        judged = asyncio.Event()
        self.judging.append(judged)
        if len(self.judging) == self.asks:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, self._let_go())
        await judged.wait()
        return []

    async def _let_go(self) -> None:
        for each in reversed(self.judging):
            each.set()
            for _ in range(ROUNDS):
                await asyncio.sleep(0)


async def test_people_are_asked_in_the_order_of_the_calls(tmp_path: Path) -> None:
    bench = JudgedLastFirst(NAMES)
    async with rig(tmp_path, does(*NAMES), bench) as r:
        async with asyncio.timeout(20):
            await r.agent.begin(turn("m1"), "go", Silent())
    assert [asked.tool for asked in bench.asked] == ["ask_a", "ask_b", "ask_d", "ask_f"]


async def test_nobody_waits_for_a_call_that_is_asked_about_by_nobody(tmp_path: Path) -> None:
    """One whose judging fails lets those after it pass, too."""

    class Breaks(Bench):
        async def grants_of(self, person_id: str) -> list[StandingApproval]:
            if not self.given_up:
                self.given_up.append("the first")
                await asyncio.sleep(0)
                raise RuntimeError("a defect")
            return []

        async def close(self, call_id: str, *, repeatable: bool) -> Any:
            return None

    bench = Breaks(["ask_a", "ask_b"])
    async with rig(tmp_path, does("ask_a", "ask_b"), bench) as r:
        async with asyncio.timeout(20):
            await r.agent.begin(turn("m1"), "go", Silent())
    assert [asked.tool for asked in bench.asked] == ["ask_b"]
    assert not isinstance(bench.attempts.get("m1.0.0"), Failed)


async def test_it_is_the_next_ones_turn_when_one_has_waited_for_something() -> None:
    """Their transactions then wait beside each other, and may share a commit."""
    order, came = AskingOrder(), []
    over = asyncio.Event()

    async def ask(number: int) -> None:
        with order.judging(f"call-{number}", number) as in_turn:
            await asyncio.sleep(0)  # all of them are judged
            await in_turn()
            came.append(number)
            await over.wait()

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for number in (0, 2, 1, 3):
            group.create_task(ask(number))
        while len(came) < 4:
            await asyncio.sleep(0)
        over.set()
    assert came == [0, 1, 2, 3]
