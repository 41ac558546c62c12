"""What came of a judged call, as its entry and its approvals say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.rules.outcomes import ApprovalRound, LoggedEnd, counted, counts, median_of, outcome_of, step_of

NOON = 1_795_000_000.0


def end(*, attempt: int | None = 1, settled: dict[str, str] | None = None, **entry: Any) -> LoggedEnd:
    about = {"server": "bank", "tool": "pay", "rule": "large ones", "source": "p.yaml:3", "decision": "ask"}
    whole = {**about, "call": "m1.0.0", "judged": {"x": 1}, "attempt": attempt, "settled": settled or {}, "votes": []}
    return LoggedEnd(7, f"m1.0.0:{attempt}:done", NOON, {**whole, **entry})


def asked(status: str = "approved", number: int = 1, *, edited: bool = False) -> ApprovalRound:
    return ApprovalRound("m1.0.0", number, status, "large ones", "p.yaml:3", edited, NOON - 60 / number, NOON)


REJECTED = [{"verb": "reject"}]


@pytest.mark.parametrize(
    ("rounds", "votes", "outcome"),
    [
        ([asked()], [], "unchanged"),
        ([asked(edited=True)], [], "edited"),
        ([asked(edited=True), asked(number=2)], [], "edited"),
        ([asked()], REJECTED, "contested"),
        ([asked("rejected")], REJECTED, "rejected"),
        ([asked("expired")], REJECTED, "rejected"),
        ([asked("expired")], [], "expired"),
        ([asked("withdrawn")], [], "withdrawn"),
        ([asked("superseded")], [], "other"),
        ([asked("void")], [], "other"),
        ([], [], "other"),
    ],
)
def test_what_people_said_is_the_outcome(rounds: list[ApprovalRound], votes: list[Any], outcome: str) -> None:
    assert outcome_of(end(votes=votes), rounds).outcome == outcome


@pytest.mark.parametrize(("decision", "outcome"), [("allow", "allowed"), ("deny", "denied")])
def test_without_people_the_verdict_is_the_outcome(decision: str, outcome: str) -> None:
    assert outcome_of(end(decision=decision), []).outcome == outcome


@pytest.mark.parametrize("status", ["rejected", "withdrawn"])
def test_what_was_rejected_stays_so_where_the_approvals_were_erased(status: str) -> None:
    assert outcome_of(end(decision="ask", status=status), []).outcome == status


@pytest.mark.parametrize(
    ("rule", "source", "by", "name"),
    [
        ("large ones", "p.yaml:3", "rule", "large ones"),
        ("no rule matched", "", "none", ""),
        ("no rule matched", "p.yaml:3", "rule", "no rule matched"),
        ("mode readOnly", "", "mode", ""),
        ("always allow by web:ana until 2026-11-21 10:30 UTC", "p.yaml:3", "standing", ""),
        ("large ones; bank requires approval for pay", "p.yaml:3", "server", "large ones"),
        (
            "large ones; bank requires approval for get",
            "p.yaml:3",
            "rule",
            "large ones; bank requires approval for get",
        ),
        ("large ones; the default agent requires approval for pay of bank", "p.yaml:3", "agent", "large ones"),
    ],
)
def test_what_decided_is_told_from_the_name_of_a_rule(rule: str, source: str, by: str, name: str) -> None:
    found = outcome_of(end(rule=rule, source=source, decision="allow"), [])
    assert (found.decided_by, found.rule) == (by, name)


def test_what_asked_people_decided_although_the_edited_call_was_judged_by_another_rule() -> None:
    found = outcome_of(end(rule="small ones", decision="allow"), [asked(edited=True)])
    assert (found.rule, found.outcome, found.waited) == ("large ones", "edited", 60.0)


@pytest.mark.parametrize(
    ("entry", "does"),
    [
        (end().entry, True),
        (end(attempt=None).entry, True),
        (end(attempt=2).entry, True),
        (end(settled={"choice": "skip"}).entry, False),
        (end(judged={}).entry, False),
        (end(judged=7).entry, False),
        (end(call=None).entry, False),
        ({}, False),
    ],
)
def test_only_ends_of_judged_calls_count(entry: dict[str, Any], does: bool) -> None:  # noqa: FBT001 - a case
    assert counts(entry) is does


@pytest.mark.parametrize("entry", [{}, {"votes": 7}, {"votes": [7]}, {"rule": None, "server": 3, "decision": []}])
def test_an_entry_that_was_changed_still_has_some_outcome(entry: dict[str, Any]) -> None:
    assert outcome_of(end(**entry), []).day == "2026-11-18"


@given(st.lists(st.floats(1, 1e7), min_size=1))
def test_a_median_is_right_to_a_tenth(waits: list[float]) -> None:
    steps: dict[int, int] = {}
    for each in waits:
        steps[step_of(each)] = steps.get(step_of(each), 0) + 1
    exact = sorted(waits)[(len(waits) - 1) // 2]
    assert median_of(steps) == pytest.approx(exact, rel=0.1)
    assert median_of({}) is None


def test_outcomes_are_added_up_by_day_rule_and_tool() -> None:
    outcomes = [outcome_of(end(), [asked()]), outcome_of(end(), [asked()]), outcome_of(end(tool="get"), [asked()])]
    found = counted(outcomes)
    assert {key.tool: dict(each.of) for key, each in found.items()} == {
        "pay": {"unchanged": 2},
        "get": {"unchanged": 1},
    }
    assert [sum(each.waits.values()) for each in found.values()] == [2, 1]
