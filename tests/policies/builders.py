"""Short ways to say a tool, a call, the facts and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from policies.judging import Policy, judge
from policies.masking import Masker
from policies.matching import Fit, Subject, checks_of, fit_all
from policies.model import Allow, Annotations, Ask, Call, Deny, Facts, Match, Mode, Tool
from policies.policy_file import parse_policy

READS = Annotations(read_only=True, open_world=False)
SILENT = Annotations()
WRITES = Annotations(read_only=False, destructive=False, open_world=False)


def a_tool(
    name: str = "create_event",
    *,
    server: str = "calendar",
    says: Annotations = WRITES,
    trusted: bool = True,
    requires_approval: bool = False,
    schema: Mapping[str, Any] | None = None,
) -> Tool:
    return Tool(
        server=server,
        name=name,
        annotations=says,
        annotations_trusted=trusted,
        requires_approval=requires_approval,
        input_schema=schema or {},
    )


def a_call(tool: Tool | None = None, **arguments: Any) -> Call:
    return Call(tool=tool or a_tool(), arguments=arguments)


def a_command(written: Any, *, says: Annotations = SILENT, trusted: bool = False, quote: str = "") -> Call:
    """A call to a tool that takes one command line."""
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    tool = a_tool("run_command", server="m365", says=says, trusted=trusted, schema=schema)
    return Call(tool, {"command": written}, quote)


def facts(
    *,
    mode: Mode = Mode.DEFAULT,
    requester: str = "web:ana",
    platform: str = "web",
    place: str = "",
    groups: Mapping[str, bool | None] | None = None,
    at: datetime = datetime(2026, 11, 21, tzinfo=UTC),
    client: str = "",
    agent: str = "",
    said: tuple[str, ...] = (),
) -> Facts:
    return Facts(
        mode=mode,
        requester=requester,
        platform=platform,
        place=place,
        at=at,
        groups=groups or {},
        client=client,
        agent=agent,
        said=said,
    )


@cache
def a_policy(*rules: str) -> Policy:
    """Each rule as the inside of a YAML flow mapping: `match: {}, decide: allow`; named r1, r2, …"""
    lines = [f"  - {{name: r{number}, {rule}}}" for number, rule in enumerate(rules, start=1)]
    return parse_policy("\n".join(["version: 1", "rules:" if lines else "rules: []", *lines]), "test")


def judged(policy: Policy, call: Call, around: Facts) -> Allow | Ask | Deny:
    """What `judge` says, without where the rule stands."""
    return judge(policy, call, around).model_copy(update={"source": "", "version": ""})


def fit(match: Match, call: Call, around: Facts) -> Fit:
    """How one match relates to a call."""
    return fit_all([check.fits for check in checks_of(match)], Subject(call, around))


class Secret(NamedTuple):
    """Something in a text that is, or may be, a secret."""

    start: int
    end: int
    kind: str
    certain: bool


def secrets_in(masker: Masker, text: str) -> list[Secret]:
    return [Secret(*span) for span in masker.find(text)]
