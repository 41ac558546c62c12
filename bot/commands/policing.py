"""`policy check` and `policy explain`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from bot.commands.arguments import CommandError, moment
from policies.judging import Explanation, Tried, explain
from policies.matching import Fit
from policies.model import Call, Deny, Facts, Mode, Tool, canonical_json
from policies.policy_file import load_policy
from policies.rules import Policy, PolicyError

_FITS = {Fit.YES: "fits", Fit.NO: "does not fit", Fit.UNKNOWN: "not known"}


def check(file: Path, out: TextIO, err: TextIO) -> int:
    """Say whether a policy file can be used, and if not, which line is wrong and why."""
    try:
        policy = load_policy(file)
    except PolicyError as error:
        err.write(f"{error}\n")
        return 1
    rules = "1 rule" if len(policy.rules) == 1 else f"{len(policy.rules)} rules"
    out.write(f"{file}: {rules}, version {policy.version}.\n")
    return 0


def explain_call(
    file: Path,
    mode: Mode,
    given: argparse.Namespace,
    *,
    find_tool: Callable[[str], Tool | None],
    now: float,
    out: TextIO,
) -> int:
    """Say how a call would be judged, rule by rule, and who could approve it. Raises `PolicyError`, `CommandError`."""
    policy = load_policy(file)
    found = find_tool(given.tool)
    tool = found or _unknown_tool(given.tool)
    facts = Facts(
        mode=mode,
        requester=given.person,
        platform=given.platform or given.person.partition(":")[0],
        place=given.channel,
        at=_when(given.at, now),
        groups={group: group in given.group for group in {*policy.requester_groups, *given.group}},
        said=(given.quote,) if given.quote else (),
    )
    call = Call(tool, given.arguments, quote=given.quote)
    for line in _lines(policy, call, facts, explain(policy, call, facts), known=found is not None):
        out.write(f"{line}\n")
    return 0


def _when(written: str | None, now: float) -> datetime:
    asked = moment(written, now)
    try:
        return datetime.fromtimestamp(now if asked is None else asked, UTC)
    except (ValueError, OverflowError, OSError):
        raise CommandError(f"“{written}” is too far away") from None


def _unknown_tool(name: str) -> Tool:
    server, separator, tool = name.partition("__")
    if not separator or not server or not tool:
        raise CommandError(f"“{name}” is no tool's name: write it as the model does, like calendar__create_event")
    return Tool(server, tool)


def _lines(policy: Policy, call: Call, facts: Facts, why: Explanation, *, known: bool) -> Iterator[str]:
    verdict = why.verdict
    yield f"{call.tool.server}: {call.tool.name} {canonical_json(dict(call.arguments))}"
    place = f" in {facts.place}" if facts.place else ""
    yield f"asked for by {facts.requester} on {facts.platform}{place}, mode {facts.mode}, {facts.at:%Y-%m-%d %H:%M} UTC"
    if not known:
        yield (
            "The tool's server is out of reach, has everybody sign in, or has no such tool: judged without its "
            "annotations and its schema."
        )
    if outside := sorted(group for group, is_in in facts.groups.items() if not is_in):
        yield f"Taken as not in: {', '.join(outside)}. (--group says otherwise.)"
    yield ""
    yield f"{verdict.verdict.upper()}: {_decided_by(why)} ({policy.source}, version {policy.version})"
    if isinstance(verdict, Deny):
        yield f"  what people are told: {verdict.reason}"
    if why.floor:
        yield f"  {why.floor}"
    if why.ceiling:
        yield f"  {why.ceiling}"
    if why.approvers:
        yield f"  who could approve: {why.approvers}"
    if why.tried:
        yield ""
        yield "Rules, in order:"
    for tried in why.tried:
        yield from _rule_lines(tried)


def _decided_by(why: Explanation) -> str:
    return f"rule “{why.decided_by}”" if why.decided_by else "no rule fits"


def _rule_lines(tried: Tried) -> Iterator[str]:
    yield f"  {_FITS[tried.fit]:>12}  {tried.name}  ({tried.source})"
    yield from (f"{'':14}  {because}" for because in tried.because)
