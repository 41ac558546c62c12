"""`policy replay`: the recorded calls, judged by other rules."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bot.audit.chain import Link
from bot.audit.judgement import judged_again
from bot.commands.arguments import CommandError, time_range
from bot.records.audit import UnreadableLogError, sqlite_audit
from policies.approvers import grant_offered
from policies.judging import describe_approvers, judge
from policies.model import Allow, Ask, Call, Deny, Verdict
from policies.policy_file import load_policy
from policies.rules import Policy
from policies.trust import risks_of

_SAID_ELSEWHERE = {"rule", "source", "version", "reads"}
BY_GRANT = "always allow by "
"""How the rule's name begins where a grant allowed what the policy asks about."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A recorded call that would have been judged otherwise."""

    at: str
    requester: str
    tool: str
    input: str
    before: str
    after: str
    doubt: str
    """Why the judgement by the new rules may not be what it would have been; empty where it is certain."""


def replay(file: Path, database: Path, given: argparse.Namespace, *, now: float, out: TextIO) -> int:
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


def _judged_calls(database: Path, since: float | None, until: float | None) -> Iterator[dict[str, Any]]:
    """Each call that was judged, once: what else came of it is in further entries."""
    known: set[Any] = set()
    try:
        with sqlite_audit(database) as reader:
            for link in reader.links(since, until):
                entry = _read(link)
                if entry is None:
                    yield {}  # counted as unreadable
                elif entry.get("judged") and entry.get("call") not in known:
                    known.add(entry.get("call"))
                    yield entry
    except UnreadableLogError as error:
        raise CommandError(str(error)) from error


def _read(link: Link) -> dict[str, Any] | None:
    try:
        entry = json.loads(link.entry)
    except (TypeError, ValueError):
        return None
    return entry if isinstance(entry, dict) else None


def _difference(policy: Policy, entry: dict[str, Any]) -> Difference | None:
    call, facts, then = judged_again(entry["judged"], entry["arguments"] or {})
    now = judge(policy, call, facts)
    if _is_the_same(then, now, call):
        return None
    return Difference(
        at=entry["at"],
        requester=entry["requester"],
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
    out.write(f"{difference.at}  {difference.requester}  {difference.tool}  {difference.input}\n")
    out.write(f"    was: {difference.before}\n    now: {difference.after}\n")
    if difference.doubt:
        out.write(f"    perhaps: {difference.doubt}\n")
