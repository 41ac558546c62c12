"""A recorded call, judged again by other rules: what is decided otherwise, and in which words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.approvers import grant_offered, is_by_grant, may_be_one_human
from policies.judging import Policy, describe_approvers, judge_with_reasons
from policies.model import Allow, Ask, Call, Deny, Facts, Verdict, is_group
from policies.reasons import why
from policies.trust import risks_of

_SAID_ELSEWHERE = {"rule", "source", "version", "reads"}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as it was judged, and what the record lacks."""

    call: Call
    facts: Facts
    then: Verdict
    why: str = ""
    """The sentence of then; empty: an older version kept none."""
    is_cut: bool = False
    """Whether its arguments were too long to be kept whole."""
    is_masked: bool = False
    """Whether secrets were taken out of its arguments."""

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are kept as they were."""
        return not (self.is_cut or self.is_masked)


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """What other rules say of a recorded call."""

    verdict: Verdict
    why: str
    """The sentence that people would be told, in the reader's language."""


def judged_by(policy: Policy, recorded: RecordedCall) -> JudgedAgain:
    """What a policy says of a recorded call. Raises nothing."""
    verdict, reasons = judge_with_reasons(policy, recorded.call, recorded.facts)
    return JudgedAgain(verdict, why(reasons))


def are_the_same(then: Verdict, now: Verdict, call: Call) -> bool:
    """Whether two judgements of a call come to the same: the same verdict, on the same terms."""
    if isinstance(then, Allow) and is_by_grant(then.rule) and isinstance(now, Ask):
        # Somebody's own standing permission: the rules asked, and still let them give it.
        return grant_offered(now, risks_of(call, now))
    return then.model_dump(exclude=_SAID_ELSEWHERE) == now.model_dump(exclude=_SAID_ELSEWHERE)


def doubt_about(policy: Policy, recorded: RecordedCall) -> str:
    """Why the judgement by a policy may not be what it would have been; empty where it is certain."""
    if not_asked := sorted(_not_asked(policy, recorded)):
        return f"nobody asked then whether {recorded.facts.requester} is, or is in, {', '.join(not_asked)}"
    if recorded.is_cut:
        return "its arguments were too long to be kept whole"
    return "its arguments are kept without the secrets in them" if recorded.is_masked else ""


def _not_asked(policy: Policy, recorded: RecordedCall) -> Iterator[str]:
    """The groups, and the accounts of which one may be the requester's too, that the policy asks about for this tool,
    and that nobody asked about then."""
    for named in policy.requesters_about([recorded.call.tool]):
        is_asked_about = is_group(named) or may_be_one_human(recorded.facts.requester, named)
        if is_asked_about and named not in recorded.facts.groups:
            yield named


def in_words(verdict: Verdict, requester: str) -> str:
    """A verdict in one line, with its rule and where that stands."""
    where = f"“{verdict.rule}”" + (f", {verdict.source}" if verdict.source else "")
    match verdict:
        case Allow():
            return f"allow ({where})"
        case Deny(reason=reason):
            return f"deny ({where}): {reason}"
        case Ask() as ask:
            return f"ask {describe_approvers(ask, (requester,), str)}{_demands(ask)} ({where})"


def approvers_in_words(verdict: Verdict, requesters: Sequence[str]) -> str:
    """Who could approve; empty where nobody is asked."""
    return describe_approvers(verdict, requesters, str) if isinstance(verdict, Ask) else ""


def _demands(ask: Ask) -> str:
    """What else changes between rules, where it is not as usual."""
    usual: Mapping[str, Any] = Ask(rule="").model_dump(
        exclude={*_SAID_ELSEWHERE, "verdict", "approvers", "self_approval", "quorum"}
    )
    given = ask.model_dump(include=set(usual))
    return "".join(f", {name} {value}" for name, value in given.items() if value != usual[name])
