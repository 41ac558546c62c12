"""`policy check`, `policy explain`, `policy replay` and `policy suggest`."""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from bot.audit.entries import Link, read_entry, recorded_call
from bot.commands.arguments import CommandError, parse_moment, time_range
from bot.commands.audit import opened_log
from bot.records.audit import AT_A_TIME, AuditReader
from bot.rules.counting import ends_in, outcomes_of
from bot.rules.outcomes import MOST_UNAPPROVED, UNAPPROVED, CallOutcome, LoggedEnd
from bot.rules.past import past_calls
from bot.safe_text import visible
from graph.agents import DEFAULT
from policies.judging import ONLY_ITS_WORD, Explanation, Policy, PolicyError, Tried, explain, judge
from policies.matching import Fit
from policies.model import Call, Deny, Facts, Mode, Tool, canonical_json
from policies.policy_file import load_policy
from policies.replaying import RecordedCall, are_the_same, doubt_about, in_words
from policies.suggestions import HistoricCall, Kind, Suggestion, suggestions

_FITS = {Fit.YES: "fits", Fit.NO: "does not fit", Fit.UNKNOWN: "not known"}


def check(file: Path, out: TextIO, err: TextIO) -> int:
    """Say whether a policy file can be used, and if not, which line is wrong and why; and what in it is doubtful."""
    try:
        policy = load_policy(file)
    except PolicyError as error:
        err.write(f"{error}\n")
        return 1
    rules = _counted(len(policy.rules), "rule")
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
            recorded = recorded_call(entry)
            difference = _difference(policy, entry, recorded)
        except (KeyError, TypeError, ValueError, AttributeError):
            counts["unreadable"] += 1
            continue
        counts["doubtful"] += bool(doubt_about(policy, recorded))
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


def _difference(policy: Policy, entry: dict[str, Any], recorded: RecordedCall) -> Difference | None:
    now = judge(policy, recorded.call, recorded.facts)
    if are_the_same(recorded.then, now, recorded.call):
        return None
    facts = recorded.facts
    through = f" through {facts.client}" if facts.client else ""
    through += f" with the {facts.agent} agent" if facts.agent not in ("", DEFAULT) else ""
    return Difference(
        at=entry["at"],
        requester=f"{entry['requester']}{through}",
        tool=f"{entry['server']}: {entry['tool']}",
        input=entry["input"],
        before=in_words(recorded.then, facts.requester),
        after=in_words(now, facts.requester),
        doubt=doubt_about(policy, recorded),
    )


def _print(difference: Difference, out: TextIO) -> None:
    lines = [
        f"{difference.at}  {difference.requester}  {difference.tool}  {difference.input}",
        f"    was: {difference.before}",
        f"    now: {difference.after}",
        *([f"    perhaps: {difference.doubt}"] if difference.doubt else []),
    ]
    out.writelines(f"{visible(line)}\n" for line in lines)


# ------------------------------------------- suggest: rules that the recorded calls speak for, each with its replay

MOST_KEPT = 50_000
"""Calls that suggestions are made from, the newest; those that people did not approve as they were count beyond them.
They take some 200 MB."""
_MOST_SHOWN = 10
"""Calls of a proof."""
_SPEAKS: Mapping[Kind, str] = {
    "allow": "approved unchanged {}, never edited, rejected or withdrawn",
    "deny": "rejected {}, never approved",
    "ask": "ran {} without anyone being asked, though it may delete data",
}


def suggest(file: Path, database: str, out: TextIO) -> int:
    """Print looser and stricter rules that the recorded calls speak for, each with its replay. Raises `PolicyError`,
    `CommandError`."""
    policy = load_policy(file)
    with opened_log(database) as reader:
        history, not_whole = _past(reader)
    found = suggestions(policy, history, not_whole=not_whole)
    for each in found:
        out.writelines(f"{visible(line)}\n" for line in _suggestion_lines(each))
    why = "too many calls were not approved as they were, or one of them cannot be read"
    for server, tool in sorted(not_whole):
        out.write(f"{visible(server)}: {visible(tool)}: {why}: none.\n")
    told = f"{_counted(len(history), 'call')} looked at, {_counted(len(found), 'rule')} to consider."
    out.write(f"{told} Nothing was changed: put one into {file} where it says so.\n" if found else f"{told}\n")
    return 0


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _suggestion_lines(found: Suggestion) -> Iterator[str]:
    times = "once" if found.decided == 1 else f"{found.decided} times"
    kind = "LOOSER" if found.is_looser else "STRICTER"
    yield f"{kind}: {found.server}: {found.tool}: {_SPEAKS[found.kind].format(times)}"
    yield f"  before “{found.before}”:" if found.before else "  as the last rule:"
    yield from found.rule.rstrip("\n").split("\n")
    if found.open_arguments:
        yield f"  It does not limit {', '.join(found.open_arguments)}."
    before = "allow" if found.kind == "ask" else "ask"
    changed = len(found.changed)
    yield f"  Replay of {found.replayed} calls of the tool: {changed} would be {found.kind} instead of {before}."
    shown = found.changed[-_MOST_SHOWN:]
    for past in shown:
        yield f"    {past.at}  {past.recorded.facts.requester}  {past.input}  ({past.outcome})"
    if more := len(found.changed) - len(shown):
        yield f"    and {more} before that"
    yield ""


def _parts(links: Iterator[tuple[Link, float]]) -> Iterator[list[tuple[Link, float]]]:
    while part := list(islice(links, AT_A_TIME)):
        yield part


def _past(reader: AuditReader) -> tuple[list[HistoricCall], set[tuple[str, str]]]:
    """The newest calls, and of those before them the ones that people did not approve as they were; and the tools of
    which there are too many of these, or some that cannot be read."""
    newest: deque[tuple[LoggedEnd, CallOutcome]] = deque()
    before: list[tuple[LoggedEnd, CallOutcome]] = []
    of_tool: Counter[tuple[str, str]] = Counter()
    for part in _parts(reader.dated_links()):
        ends = ends_in([(link.seq, link.key, at, link.entry) for link, at in part])
        keys = {key for end in ends for key in end.earlier_keys}
        rounds = reader.rounds_of({end.call_id for end in ends})
        by_number = {end.seq: end for end in ends}
        for outcome in outcomes_of(ends, reader.numbers_of(keys), rounds):
            newest.append((by_number[outcome.seq], outcome))
            of_tool[outcome.server, outcome.tool] += outcome.outcome in UNAPPROVED
        while len(newest) > MOST_KEPT:
            end, outcome = newest.popleft()
            if outcome.outcome in UNAPPROVED and of_tool[outcome.server, outcome.tool] <= MOST_UNAPPROVED:
                before.append((end, outcome))
    kept = [*before, *newest]
    history, not_whole = past_calls([end for end, _ in kept], {outcome.seq: outcome for _, outcome in kept})
    return history, not_whole | {tool for tool, times in of_tool.items() if times > MOST_UNAPPROVED}
