"""Calls of the past, made short."""

from __future__ import annotations

from typing import Any

from policies.judging import Policy, judge
from policies.model import Annotations, Call, Tool
from policies.replaying import RecordedCall
from policies.suggestions import HistoricCall, Outcome
from tests.policies.builders import WRITES, a_policy, a_tool, facts


def past(
    outcome: Outcome = "unchanged",
    *,
    tool: str = "create_event",
    says: Annotations = WRITES,
    of: Tool | None = None,
    policy: Policy | None = None,
    is_masked: bool = False,
    requester: str = "web:ana",
    agent: str = "default",
    place: str = "",
    **arguments: Any,
) -> HistoricCall:
    """A call to a trusted calendar that wrote and deleted nothing, unless `says` says otherwise."""
    call = Call(of or a_tool(tool, says=says), arguments)
    around = facts(requester=requester, agent=agent, place=place)
    recorded = RecordedCall(call, around, judge(policy or a_policy(), call, around), is_masked=is_masked)
    return HistoricCall(recorded, outcome, call_id=f"m{len(arguments)}.0.0", at="2026-11-21T10:30:00.250Z", input="{}")
