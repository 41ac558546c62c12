"""Who may decide, judged at the click: permitted, not permitted, or could not be found out. The last two refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.model import Allow, Ask, Deny
from policies.references import is_group


@dataclass(frozen=True, slots=True)
class Decider:
    """Somebody who wants to decide, with what was looked up about them just now."""

    person: str
    """Person id of whoever clicked."""
    requesters: tuple[str, ...]
    """The requester of the turn first, then whoever edited the arguments (`ApprovalAsked.requesters`)."""
    groups: Mapping[str, bool | None] = field(default_factory=dict)
    """Group reference → whether they are in it; `None` or absent: could not be found out."""
    in_channel: bool | None = None
    """Whether they are in the channel where it was asked; `None`: could not be found out."""
    other_accounts: tuple[str, ...] = ()
    """Further person ids of the same human: somebody's second account is no second pair of eyes."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """They may decide."""


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """They may not; `reason` is a sentence for them alone."""

    reason: str


@dataclass(frozen=True, slots=True)
class CouldNotFindOut:
    """Whether they may is not known, so they may not now; `reason` is a sentence for them alone."""

    reason: str


Permission = Permitted | NotPermitted | CouldNotFindOut


def may_decide(ask: Ask, decider: Decider) -> Permission:
    """Whether this person may approve or reject what `ask` waits for. Pure; raises nothing.

    One approver entry that fits suffices. `requester` means the author of the turn's message, never an editor. With
    `fourEyes` nobody who asked for the call or edited it may decide, however else they are listed.
    """
    accounts = {decider.person, *decider.other_accounts}
    if ask.self_approval == "fourEyes" and accounts & set(decider.requesters):
        return NotPermitted("You asked for this or changed it, so somebody else has to decide.")
    answers = {approver: _is(approver, accounts, decider) for approver in ask.approvers}
    if any(answer is True for answer in answers.values()):
        return Permitted()
    unknown = [approver for approver, answer in answers.items() if answer is None]
    if unknown:
        return CouldNotFindOut(
            f"Whether you are in {_in_words(unknown)} could not be found out. Try again in a moment."
        )
    return NotPermitted("You are not one of the people who may decide this.")


def several_may_decide(ask: Ask, requesters: Sequence[str]) -> bool:
    """Whether more than one account may decide, as far as the list of approvers tells: only then can somebody who may
    ask another who may. `requesters`: as in `Decider`. Pure; raises nothing."""
    if any(approver in {"any", "channel"} or is_group(approver) for approver in ask.approvers):
        return True
    accounts = {requesters[0] if approver == "requester" and requesters else approver for approver in ask.approvers}
    return len(accounts - set(requesters) if ask.self_approval == "fourEyes" else accounts) > 1


def groups_to_look_up(ask: Ask) -> frozenset[str]:
    """The group references to look up before `may_decide`."""
    return frozenset(filter(is_group, ask.approvers))


def edit_needs_no_new_asking(given: Ask, needed: Allow | Ask | Deny) -> bool:
    """Whether the approval that came with an edit still suffices, now that the edited call was judged as `needed`.

    `given` is what the approver decided under. An edit makes its author a requester of the call, so under `fourEyes`,
    or when several must agree on the same thing, somebody has to look at the edited call afresh. Otherwise whoever may
    decide `given` must also be one who may decide `needed`: its approvers have to include all of `given`'s, those it
    escalates to as well. And fewer rejections must not be needed than then, since one may have been cast.
    """
    match needed:
        case Allow():
            return True
        case Deny():
            return False
        case Ask():
            alone = all(ask.self_approval == "confirm" and ask.quorum == 1 for ask in (given, needed))
            return alone and given.rejections <= needed.rejections and _may_all_decide(given, needed)


def approval_suffices(given: Ask, needed: Allow | Ask | Deny) -> bool:
    """Whether an approval given under `given` suffices for the same call, now that it is judged as `needed`.

    Between asking and running a policy may have become stricter: days can pass, and restarts with them.
    """
    if isinstance(needed, Ask) and _who(needed) == _who(given):
        return True
    return edit_needs_no_new_asking(given, needed)


def approvers_at(ask: Ask, asked_at: float, now: float) -> tuple[str, ...]:
    """Who may decide now: the approvers, and once `escalate_after` has passed those it escalates to. Both times in
    seconds since the epoch."""
    if ask.escalate_after is None or now < asked_at + ask.escalate_after:
        return ask.approvers
    return tuple(dict.fromkeys((*ask.approvers, *ask.escalate_to)))


def as_of(ask: Ask, asked_at: float, now: float) -> Ask:
    """The same demands with the approvers of now, for `may_decide` and the card's words."""
    approvers = approvers_at(ask, asked_at, now)
    return ask if approvers == ask.approvers else ask.model_copy(update={"approvers": approvers})


def _who(ask: Ask) -> tuple[object, ...]:
    escalation = (frozenset(ask.escalate_to), ask.escalate_after)
    return frozenset(ask.approvers), ask.self_approval, ask.quorum, ask.rejections, escalation


def _may_all_decide(given: Ask, needed: Ask) -> bool:
    """Whether everybody who may decide `given`, at any time, may then decide `needed` too."""
    at_once = set(needed.approvers)
    if "any" in at_once:
        return True
    as_early = needed.escalate_after is not None and needed.escalate_after <= (given.escalate_after or 0)
    later = at_once | set(needed.escalate_to) if as_early else at_once
    return set(given.approvers) <= at_once and set(given.escalate_to) <= later


def _is(approver: str, accounts: set[str], decider: Decider) -> bool | None:
    match approver:
        case "any":
            return True
        case "requester":
            return bool(decider.requesters) and decider.requesters[0] in accounts
        case "channel":
            return decider.in_channel
        case group if is_group(group):
            return decider.groups.get(group)
        case person:
            return person in accounts


def _in_words(unknown: list[str]) -> str:
    return " or ".join("this channel" if approver == "channel" else approver for approver in unknown)
