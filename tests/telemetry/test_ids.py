"""Which trace something belongs to follows from what it is about, in every process."""

from __future__ import annotations

from adapters.telemetry.ids import TraceIds, turn_of_post

IDS = TraceIds(b"a key")


def test_another_process_with_the_same_key_finds_the_same_ids() -> None:
    again = TraceIds(b"a key")
    assert (again.trace("m1"), again.root("m1")) == (IDS.trace("m1"), IDS.root("m1"))
    assert TraceIds(b"another").trace("m1") != IDS.trace("m1")


def test_the_tasks_of_a_plan_are_in_the_trace_of_their_request() -> None:
    task = "m1.0.0/second"
    assert (IDS.trace(task), IDS.root(task)) == (IDS.trace("m1"), IDS.root("m1"))
    assert IDS.handling(task, task) != IDS.root("m1")


def test_a_post_belongs_to_the_turn_that_said_it_or_whose_call_it_shows() -> None:
    assert turn_of_post("said:m1.3", "") == "m1"
    assert turn_of_post("error:m1", "") == "m1"
    assert turn_of_post("approval:a1", "m1.0.0") == "m1"
    assert turn_of_post("budget:2026-11-28:web:ana", "") == ""
