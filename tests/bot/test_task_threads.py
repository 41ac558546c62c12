"""Which turn a call belongs to, by its id."""

from __future__ import annotations

import pytest

from bot.plans import task_key
from bot.task_threads import turn_of_call


@pytest.mark.parametrize("turn", ["web:t:m", "T1:C2:1.2", "teams:19:a/b.0@thread.tacv2:1", "retry:1"])
def test_a_call_of_a_task_is_one_of_the_turn_that_made_the_plan(turn: str) -> None:
    call = f"{turn}.0.2"
    assert turn_of_call(call) == turn
    assert turn_of_call(f"{task_key(call, 'a-B_9')}.11.0") == turn
