from __future__ import annotations

from pathlib import Path

import pytest

import policies
from policies.judging import Policy, judge
from policies.model import Allow, Annotations, Ask, Tool
from policies.policy_file import load_policy
from tests.policies.builders import READS, WRITES, a_call, a_tool, facts


@pytest.fixture(scope="module")
def default() -> Policy:
    [folder] = policies.__path__
    return load_policy(Path(folder) / "default.yaml")


def test_reading_is_free_on_trusted_servers(default: Policy) -> None:
    assert isinstance(judge(default, a_call(a_tool("list_events", says=READS)), facts()), Allow)


@pytest.mark.parametrize(
    "tool",
    [
        a_tool("list_events", says=READS, trusted=False),
        a_tool("fetch", says=Annotations(read_only=True, open_world=True)),
        a_tool("fetch", says=Annotations(read_only=True)),
        a_tool("create_event", says=WRITES),
        a_tool("update", says=Annotations()),
        a_tool("list_events", says=READS, requires_approval=True),
    ],
)
def test_everything_else_asks_the_requester(default: Policy, tool: Tool) -> None:
    verdict = judge(default, a_call(tool), facts())
    assert isinstance(verdict, Ask)
    assert (verdict.approvers, verdict.self_approval, verdict.quorum) == (("requester",), "confirm", 1)


@pytest.mark.parametrize("name", ["delete_event", "delete", "deleteAll"])
def test_deleting_needs_a_second_pair_of_eyes(default: Policy, name: str) -> None:
    verdict = judge(default, a_call(a_tool(name)), facts())
    assert isinstance(verdict, Ask)
    assert (verdict.approvers, verdict.self_approval) == (("any",), "fourEyes")
