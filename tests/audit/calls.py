"""Calls and their ends, made short."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.audit.entries import CallEnd, Link, entry_of, judgement, link
from policies.judging import Policy, judge
from policies.masking import Masker
from policies.model import Annotations, Call, Facts, Mode, Tool
from policies.policy_file import parse_policy

NOON = 1_795_000_000.0
"""Seconds since the epoch: some day in 2026."""
TOKEN = "ghp_" + "a1B2" * 9
"""Looks like a token of GitHub's."""

POLICY = parse_policy(
    """
version: 1
rules:
  - name: reading is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: never on fridays
    match: {tool: wipe}
    decide: deny
    reason: Nothing may be wiped.
""",
    "then.yaml",
)


def tool(name: str = "make", **more: Any) -> Tool:
    """A tool of the workshop."""
    return Tool("workshop", name, **more)


def facts_of(**more: Any) -> Facts:
    """What a call of Ana's was judged on at noon."""
    about = {"mode": Mode.DEFAULT, "requester": "web:ana", "platform": "web", "place": ""}
    return Facts(**{**about, "at": datetime.fromtimestamp(NOON, UTC), **more})


READING = tool("look", annotations=Annotations(read_only=True), annotations_trusted=True)


def judged(about: Tool, arguments: dict[str, Any], policy: Policy = POLICY, **more: Any) -> dict[str, Any]:
    """How a call of Ana's was judged at noon."""
    facts = facts_of(**more)
    call = Call(about, arguments, quote=facts.said[0] if facts.said else "")
    return judgement(call, facts, judge(policy, call, facts))


def ended(number: int = 1, about: Tool | None = None, arguments: dict[str, Any] | None = None, **more: Any) -> CallEnd:
    """A call that was made and went well."""
    about, arguments = about or tool(), {"what": "lamp"} if arguments is None else arguments
    given: dict[str, Any] = {
        "at": NOON + number,
        "thread_id": "web:t1",
        "call_id": f"m{number}.0.0",
        "requester": "web:ana",
        "server": about.server,
        "tool": about.name,
        "arguments": arguments,
        "status": "done",
        "attempt": 1,
        "judged": judged(about, arguments),
        "digest": "d" * 64,
        "duration": 0.25,
        "output": "made lamp",
    }
    return CallEnd(**{**given, **more})


def chain(*ends: CallEnd, masker: Masker | None = None) -> list[Link]:
    """Their entries, as a log."""
    links: list[Link] = []
    for end in ends:
        key = f"{end.call_id}:{end.attempt}:{end.status}"
        links.append(link(links[-1] if links else None, key, entry_of(end, masker or Masker())))
    return links
