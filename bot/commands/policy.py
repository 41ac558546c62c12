"""`policy check`, `policy explain` and `policy replay`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from bot.audit.entries import judged_again, read_entry
from bot.commands.arguments import CommandError, parse_moment, time_range
from bot.commands.audit import opened_log
from bot.safe_text import visible
from graph.agents import DEFAULT
from policies.approvers import grant_offered
from policies.judging import ONLY_ITS_WORD, Explanation, Policy, PolicyError, Tried, describe_approvers, explain, judge
from policies.matching import Fit
from policies.model import Allow, Ask, Call, Deny, Facts, Mode, Tool, Verdict, canonical_json
from policies.policy_file import load_policy
from policies.trust import risks_of

_FITS = {Fit.YES: "fits", Fit.NO: "does not fit", Fit.UNKNOWN: "not known"}


def check(file: Path, out: TextIO, err: TextIO) -> int:
    """Say whether a policy file can be used, and if not, which line is wrong and why; and what in it is doubtful."""
    try:
        policy = load_policy(file)
    except PolicyError as error:
        err.write(f"{error}\n")
        return 1
    rules = "1 rule" if len(policy.rules) == 1 else f"{len(policy.rules)} rules"
    out.write(f"{file}: {rules}, version {policy.version}.\n")
    for rule in policy.rules:
        if rule.believes_a_client:
            out.write(f"Warning: {rule.source}, “{rule.name}”: {ONLY_ITS_WORD}.\n")
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
        platform=_platform(given),
        place=given.channel,
        at=_when(given.at, now),
        groups={group: group in given.group for group in {*policy.requester_groups, *given.group}},
        client=given.client,
        agent="" if _platform(given) == "mcp" else given.agent,
        said=(given.quote,) if given.quote else (),
    )
    call = Call(tool, given.arguments, quote=given.quote)
    for line in _lines(policy, call, facts, explain(policy, call, facts), known=found is not None):
        out.write(f"{visible(line)}\n")
    return 0


def _platform(given: argparse.Namespace) -> str:
    if given.client and given.platform not in (None, "mcp"):
        raise CommandError(f"only calls on platform mcp have a client, not those on {given.platform}")
    return given.platform or ("mcp" if given.client else given.person.partition(":")[0])


def _when(written: str | None, now: float) -> datetime:
    asked = parse_moment(written, now)
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
    through = f" through {facts.client}" if facts.client else ""
    agent = f" with the {facts.agent} agent" if facts.agent not in ("", DEFAULT) else ""
    where = f"{facts.platform}{place}{through}{agent}"
    yield f"asked for by {facts.requester} on {where}, mode {facts.mode}, {facts.at:%Y-%m-%d %H:%M} UTC"
    if not known:
        yield (
            "The tool's server is out of reach, has everybody sign in, or has no such tool: judged without its "
            "annotations and its schema."
        )
    if outside := sorted(group for group, is_in in facts.groups.items() if not is_in):
        yield f"Taken as not in: {', '.join(outside)}. (--group says otherwise.)"
    yield ""
    decided_by = f"rule “{why.decided_by}”" if why.decided_by else "no rule fits"
    yield f"{verdict.verdict.upper()}: {decided_by} ({policy.source}, version {policy.version})"
    yield f"  {why.why}"
    if isinstance(verdict, Deny):
        yield f"  what people are told: {verdict.reason}"
    if why.server_requirement:
        yield f"  {why.server_requirement}"
    if why.agent_requirement:
        yield f"  {why.agent_requirement}"
    if why.ceiling:
        yield f"  {why.ceiling}"
    if why.approvers:
        yield f"  who could approve: {why.approvers}"
    if why.tried:
        yield ""
        yield "Rules, in order:"
    for tried in why.tried:
        yield from _rule_lines(tried)


def _rule_lines(tried: Tried) -> Iterator[str]:
    yield f"  {_FITS[tried.fit]:>12}  {tried.name}  ({tried.source})"
    yield from (f"{'':14}  {because}" for because in tried.because)


# -------------------------------------------------- replay: the recorded calls, judged by other rules

_SAID_ELSEWHERE = {"rule", "source", "version", "reads"}
BY_GRANT = "always allow by "
"""How the rule's name begins where a grant allowed what the policy asks about."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A recorded call that would have been judged otherwise."""

    at: str
    requester: str
    """And the program through which they asked, where there was one."""
    tool: str
    input: str
    before: str
    after: str
    doubt: str
    """Why the judgement by the new rules may not be what it would have been; empty where it is certain."""


def replay(file: Path, database: str, given: argparse.Namespace, *, now: float, out: TextIO) -> int:
    """Print what the rules in `file` would have decided otherwise. Raises `PolicyError`, `CommandError`."""
    policy = load_policy(file)
    counts: Counter[str] = Counter()
    since, until = time_range(given, now)
    for entry in _judged_calls(database, since, until):
        counts["calls"] += 1
        try:
            difference = _difference(policy, entry)
            counts["doubtful"] += bool(_doubt(policy, entry))
        except (KeyError, TypeError, ValueError, AttributeError):
            counts["unreadable"] += 1
            continue
        if difference is not None:
            counts["different"] += 1
            _print(difference, out)
    out.write(f"{counts['calls']} calls, {counts['different']} decided differently by {file}.\n")
    if counts["doubtful"]:
        out.write(f"Of {counts['doubtful']} calls not all is kept that rules look at: they may judge otherwise.\n")
    if counts["unreadable"]:
        out.write(f"{counts['unreadable']} calls could not be read.\n")
    return 0


def _judged_calls(database: str, since: float | None, until: float | None) -> Iterator[dict[str, Any]]:
    """Each call that was judged, once: what else came of it is in further entries."""
    known: set[Any] = set()
    with opened_log(database) as reader:
        for link in reader.links(since, until):
            entry = read_entry(link.entry)
            if entry is None:
                yield {}  # counted as unreadable
            elif entry.get("judged") and entry.get("call") not in known:
                known.add(entry.get("call"))
                yield entry


def _difference(policy: Policy, entry: dict[str, Any]) -> Difference | None:
    call, facts, then = judged_again(entry["judged"], entry["arguments"] or {})
    now = judge(policy, call, facts)
    if _is_the_same(then, now, call):
        return None
    through = f" through {facts.client}" if facts.client else ""
    through += f" with the {facts.agent} agent" if facts.agent not in ("", DEFAULT) else ""
    return Difference(
        at=entry["at"],
        requester=f"{entry['requester']}{through}",
        tool=f"{entry['server']}: {entry['tool']}",
        input=entry["input"],
        before=_in_words(then, facts.requester),
        after=_in_words(now, facts.requester),
        doubt=_doubt(policy, entry),
    )


def _is_the_same(then: Verdict, now: Verdict, call: Call) -> bool:
    if then.rule.startswith(BY_GRANT) and isinstance(now, Ask):
        # Somebody's own standing permission: the rules asked, and still let them give it.
        return grant_offered(now, risks_of(call, now))
    return then.model_dump(exclude=_SAID_ELSEWHERE) == now.model_dump(exclude=_SAID_ELSEWHERE)


def _doubt(policy: Policy, entry: dict[str, Any]) -> str:
    if not_asked := sorted(policy.requester_groups - set(entry["judged"]["groups"])):
        return f"nobody asked then whether {entry['requester']} is in {', '.join(not_asked)}"
    if entry["arguments_cut"]:
        return "its arguments were too long to be kept whole"
    return "its arguments are kept without the secrets in them" if entry["arguments_masked"] else ""


def _in_words(verdict: Verdict, requester: str) -> str:
    where = f"“{verdict.rule}”" + (f", {verdict.source}" if verdict.source else "")
    match verdict:
        case Allow():
            return f"allow ({where})"
        case Deny(reason=reason):
            return f"deny ({where}): {reason}"
        case Ask() as ask:
            return f"ask {describe_approvers(ask, (requester,), str)}{_demands(ask)} ({where})"


def _demands(ask: Ask) -> str:
    """What else changes between rules, where it is not as usual."""
    usual = Ask(rule="").model_dump(exclude={*_SAID_ELSEWHERE, "verdict", "approvers", "self_approval", "quorum"})
    given = ask.model_dump(include=set(usual))
    return "".join(f", {name} {value}" for name, value in given.items() if value != usual[name])


def _print(difference: Difference, out: TextIO) -> None:
    lines = [
        f"{difference.at}  {difference.requester}  {difference.tool}  {difference.input}",
        f"    was: {difference.before}",
        f"    now: {difference.after}",
        *([f"    perhaps: {difference.doubt}"] if difference.doubt else []),
    ]
    out.writelines(f"{visible(line)}\n" for line in lines)
