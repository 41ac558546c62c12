from __future__ import annotations

import pytest

from policies.model import Allow, Annotations, Ask, Call, Deny, Risk
from policies.trust import WORST, believed, known_to_read, risks, risks_of
from tests.policies.builders import READS, SILENT, WRITES, a_call, a_command, a_tool

SAID = [
    (READS, (Risk.READS,)),
    (Annotations(read_only=True), (Risk.READS, Risk.REACHES_OUTSIDE)),
    (WRITES, (Risk.WRITES,)),
    (Annotations(destructive=False), (Risk.WRITES, Risk.REACHES_OUTSIDE)),
    (Annotations(open_world=False), (Risk.WRITES, Risk.DESTROYS)),
    (Annotations(), (Risk.WRITES, Risk.DESTROYS, Risk.REACHES_OUTSIDE)),
    (Annotations(read_only=True, destructive=True, open_world=False), (Risk.WRITES, Risk.DESTROYS)),
]


@pytest.mark.parametrize(("said", "shown"), SAID)
def test_a_trusted_tool_is_shown_as_it_says_with_the_worst_in_the_gaps(
    said: Annotations, shown: tuple[Risk, ...]
) -> None:
    assert risks(a_tool(says=said)) == shown


@pytest.mark.parametrize("said", [said for said, _ in SAID])
def test_a_tool_that_is_not_trusted_is_shown_as_the_worst_whatever_it_says(said: Annotations) -> None:
    tool = a_tool(says=said, trusted=False)
    assert risks(tool) == (Risk.WRITES, Risk.DESTROYS, Risk.REACHES_OUTSIDE)
    assert believed(tool) == WORST
    assert not known_to_read(tool)


def test_a_trusted_tool_that_says_nothing_is_shown_by_its_name() -> None:
    assert risks(a_tool("list_events", says=SILENT)) == (Risk.READS, Risk.REACHES_OUTSIDE)
    assert risks(a_tool("list_events", says=SILENT, trusted=False))[0] is Risk.WRITES


ASKED, READS_BY_RULE = Ask(rule="r"), Ask(rule="r", reads=True)
TAME = Annotations(destructive=False, open_world=False)
CARDS: list[tuple[Call, Allow | Ask | Deny, tuple[Risk, ...]]] = [
    (a_call(a_tool(says=WRITES)), ASKED, (Risk.WRITES,)),
    (a_call(a_tool(says=WRITES)), READS_BY_RULE, (Risk.READS,)),
    (a_call(a_tool(says=WRITES)), Deny(rule="r", reason="no"), (Risk.WRITES,)),
    (a_call(a_tool(says=Annotations(open_world=False))), ASKED, (Risk.WRITES, Risk.DESTROYS)),
    (a_call(a_tool(says=TAME, trusted=False)), ASKED, (Risk.WRITES, Risk.DESTROYS, Risk.REACHES_OUTSIDE)),
    (a_call(a_tool(trusted=False)), Allow(rule="r", reads=True), (Risk.READS, Risk.REACHES_OUTSIDE)),
    (a_command("m365 team list"), ASKED, (Risk.READS, Risk.REACHES_OUTSIDE)),
    (a_command("m365 team remove"), ASKED, (Risk.WRITES, Risk.DESTROYS, Risk.REACHES_OUTSIDE)),
    (a_command("m365 team list", says=TAME, trusted=True), ASKED, (Risk.READS,)),
    (a_command("m365 team add", says=TAME, trusted=True), ASKED, (Risk.WRITES,)),
    (a_command("m365 team remove", says=TAME, trusted=True), ASKED, (Risk.WRITES, Risk.DESTROYS)),
    (a_command("m365 removeUser", says=TAME, trusted=True), ASKED, (Risk.WRITES, Risk.DESTROYS)),
    (a_command("m365 list --x rm", says=TAME, trusted=True), ASKED, (Risk.WRITES, Risk.DESTROYS)),
    (a_command("m365 list; x", says=TAME, trusted=True), ASKED, (Risk.WRITES, Risk.DESTROYS)),
    (a_command("m365 team list"), READS_BY_RULE, (Risk.READS, Risk.REACHES_OUTSIDE)),
]


@pytest.mark.parametrize(("call", "verdict", "shown"), CARDS)
def test_a_card_warns_of_what_this_very_call_may_do(
    call: Call, verdict: Allow | Ask | Deny, shown: tuple[Risk, ...]
) -> None:
    assert risks_of(call, verdict) == shown
