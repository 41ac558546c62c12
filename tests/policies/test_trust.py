from __future__ import annotations

import pytest

from policies.model import Annotations, Risk
from policies.trust import WORST, believed, known_to_read, risks
from tests.policies.builders import READS, WRITES, a_tool

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
