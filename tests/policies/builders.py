"""Short ways to say a tool, a call, the facts and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from policies.model import Annotations, Call, Facts, Mode, Tool
from policies.reading import parse_policy
from policies.rules import Policy

READS = Annotations(read_only=True, open_world=False)
WRITES = Annotations(read_only=False, destructive=False, open_world=False)


def a_tool(
    name: str = "create_event",
    *,
    server: str = "calendar",
    says: Annotations = WRITES,
    trusted: bool = True,
    requires_approval: bool = False,
) -> Tool:
    return Tool(
        server=server, name=name, annotations=says, annotations_trusted=trusted, requires_approval=requires_approval
    )


def a_call(tool: Tool | None = None, **arguments: Any) -> Call:
    return Call(tool=tool or a_tool(), arguments=arguments)


def facts(
    *,
    mode: Mode = Mode.DEFAULT,
    requester: str = "web:ana",
    platform: str = "web",
    place: str = "",
    groups: Mapping[str, bool | None] | None = None,
) -> Facts:
    return Facts(
        mode=mode,
        requester=requester,
        platform=platform,
        place=place,
        at=datetime(2026, 11, 21, tzinfo=UTC),
        groups=groups or {},
    )


def a_policy(*rules: str) -> Policy:
    """Each rule as the inside of a YAML flow mapping: `match: {}, decide: allow`; named r1, r2, …"""
    lines = [f"  - {{name: r{number}, {rule}}}" for number, rule in enumerate(rules, start=1)]
    return parse_policy("\n".join(["version: 1", "rules:" if lines else "rules: []", *lines]), "test")
