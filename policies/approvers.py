"""What a rule of the policy says about deciding, without any database. Pure functions, in three parts:

- `judge_decider`: whether the rule lets one person decide, and the sentence of its refusal;
- `tally`: what the votes come to when several people must agree, each human counted once;
- `under_grants`: when a standing approval lets a call run without asking.

Reasons that depend on the approval's thread and on whose account it is are in `bot.approvals.permissions`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from policies.model import Allow, Ask, Call, Deny, Risk, Tool, Verdict, canonical_json, home_of, is_group, realm_of
from policies.trust import risks_of, warned_of
from translations import gettext as _

ANYBODY = "any"
"""The approvers of a rule that anybody may decide under."""


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


def judge_decider(ask: Ask, decider: Decider) -> Permission:
    """Whether this person may approve or reject what `ask` waits for. Pure; raises nothing.

    One approver entry that fits suffices. `requester` means the author of the turn's message, never an editor. With
    `fourEyes` nobody who asked for the call or edited it may decide, however else they are listed.
    """
    accounts = {decider.person, *decider.other_accounts}
    if ask.self_approval == "fourEyes" and accounts & set(decider.requesters):
        return NotPermitted(_("You requested or edited this; someone else must approve."))
    answers = {approver: _is(approver, accounts, decider) for approver in ask.approvers}
    if any(answer is True for answer in answers.values()):
        return Permitted()
    unknown = [approver for approver, answer in answers.items() if answer is None]
    if unknown:
        text = _("Couldn’t check whether you’re in {group}. Try again in a moment.")
        return CouldNotFindOut(text.format(group=_in_words(unknown)))
    return NotPermitted(_("You can’t approve this."))


def several_may_decide(ask: Ask, requesters: Sequence[str]) -> bool:
    """Whether more than one account may decide, as far as the list of approvers tells: only then can somebody who may
    ask another who may. `requesters`: as in `Decider`. Pure; raises nothing."""
    if any(approver in {ANYBODY, "channel"} or is_group(approver) for approver in ask.approvers):
        return True
    accounts = {requesters[0] if approver == "requester" and requesters else approver for approver in ask.approvers}
    return len(accounts - set(requesters) if ask.self_approval == "fourEyes" else accounts) > 1


def groups_to_look_up(ask: Ask) -> frozenset[str]:
    """The group references to look up before `judge_decider`."""
    return frozenset(filter(is_group, ask.approvers))


def edit_needs_no_new_asking(given: Ask, needed: Allow | Ask | Deny, asked_in: str) -> bool:
    """Whether the approval that came with an edit still suffices, now that the edited call was judged as `needed`.

    `given` is what the approver decided under. An edit makes its author a requester of the call, so under `fourEyes`,
    or when several must agree on the same thing, somebody has to look at the edited call afresh. Otherwise whoever may
    decide `given` must also be one who may decide `needed`: its approvers have to include all of `given`'s, those it
    escalates to as well. And fewer rejections must not be needed than then, since one may have been cast.

    `asked_in`: the workspace or tenant where it was asked (`home_of` its requester).
    """
    match needed:
        case Allow():
            return True
        case Deny():
            return False
        case Ask():
            alone = all(ask.self_approval == "confirm" and ask.quorum == 1 for ask in (given, needed))
            return alone and given.rejections <= needed.rejections and _may_all_decide(given, needed, asked_in)


def approval_suffices(given: Ask, needed: Allow | Ask | Deny, asked_in: str) -> bool:
    """Whether an approval given under `given` suffices for the same call, now that it is judged as `needed`.
    `asked_in` as for `edit_needs_no_new_asking`.

    Between asking and running a policy may have become stricter: days can pass, and restarts with them.
    """
    if isinstance(needed, Ask) and _who(needed) == _who(given):
        return ANYBODY not in given.approvers or _places(given, asked_in) <= _places(needed, asked_in)
    return edit_needs_no_new_asking(given, needed, asked_in)


def approvers_at(ask: Ask, asked_at: float, now: float) -> tuple[str, ...]:
    """Who may decide now: the approvers, and once `escalate_after` has passed those it escalates to. Both times in
    seconds since the epoch."""
    if ask.escalate_after is None or now < asked_at + ask.escalate_after:
        return ask.approvers
    return tuple(dict.fromkeys((*ask.approvers, *ask.escalate_to)))


def as_of(ask: Ask, asked_at: float, now: float) -> Ask:
    """Returns the same demands with those who may decide now, for `judge_decider` and the card's words."""
    approvers = approvers_at(ask, asked_at, now)
    return ask if approvers == ask.approvers else ask.model_copy(update={"approvers": approvers})


def _who(ask: Ask) -> tuple[object, ...]:
    escalation = (frozenset(ask.escalate_to), ask.escalate_after)
    return frozenset(ask.approvers), ask.self_approval, ask.quorum, ask.rejections, escalation


def _may_all_decide(given: Ask, needed: Ask, asked_in: str) -> bool:
    """Whether everybody who may decide `given`, at any time, may then decide `needed` too."""
    at_once = set(needed.approvers)
    as_early = needed.escalate_after is not None and needed.escalate_after <= (given.escalate_after or 0)
    later = at_once | set(needed.escalate_to) if as_early else at_once
    left = (set(given.approvers) - at_once) | (set(given.escalate_to) - later)
    if ANYBODY not in at_once:
        return not left
    named = {who for who in left if ":" in who and not is_group(who)}
    places = _places(needed, asked_in)
    decided_in = set(map(home_of, named))
    if left - named or ANYBODY in given.approvers:
        decided_in |= _places(given, asked_in)
    return decided_in <= places


def _places(ask: Ask, asked_in: str) -> set[str]:
    """The workspaces and tenants of which "any" is anybody: where it was asked, and where it was routed to. Whom a
    group or a channel permits decides there too."""
    return {asked_in, *map(_home_of_place, ask.route_to)}


def _home_of_place(place: str) -> str:
    """The workspace or tenant of `slack:T1:C2` and `teams:{tenant}:{conversation}`."""
    return ":".join(place.split(":", 2)[:2])


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
    return either_of([_("this channel") if approver == "channel" else approver for approver in unknown])


def either_of(names: Sequence[str]) -> str:
    """Returns some names, one at least, as people read them: "Ana, Ben or Chloe"."""
    if len(names) == 1:
        return names[0]
    return _("{names} or {last}").format(names=", ".join(names[:-1]), last=names[-1])


# ------------------------------------------ votes: each human counts once, whatever account they used

VoteVerb = Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of whose an account is."""

    human: str | None = None
    """The address that its platform vouches for, the same for all accounts of one human; `None`: none is known."""
    claimed: frozenset[str] = frozenset()
    """Addresses that it has without anybody vouching for them: enough to doubt that two accounts are two humans, and
    never enough to grant anything."""
    is_member: bool | None = None
    """Whether it is a full member's of its own realm (`realm_of`), where a human has one account; false: a guest's,
    another company's, or one that anybody can make. `None`: could not be found out."""

    @property
    def addresses(self) -> frozenset[str]:
        """All of them, vouched for or not."""
        return self.claimed if self.human is None else self.claimed | {self.human}


UNKNOWN = Identity()


@dataclass(frozen=True, slots=True)
class CountedVote:
    """A vote of somebody who was permitted to cast it, with who that is."""

    person: str
    """Person id of the account."""
    identity: Identity
    verb: VoteVerb


@dataclass(frozen=True, slots=True)
class Tally:
    """What the votes come to."""

    approvals: int
    rejections: int
    settled: Literal["approved", "rejected"] | None
    """`None`: it still waits. When both are reached, it is rejected."""


def tally(ask: Ask, votes: Sequence[CountedVote], requesters: Mapping[str, Identity]) -> Tally:
    """What the votes (oldest first; somebody's newest counts) come to. Pure; raises nothing.

    `requesters` are the requester of the turn and then whoever edited, person id → whose that is. Where it matters who
    is who, votes that `vote_counts` does not count are left out, and of two accounts that may belong to one human only
    one counts.
    """
    known = _recognised(votes)
    counting = [vote for vote in known if vote_counts(ask, vote, requesters)]
    newest = {vote.identity.human or vote.person: vote for vote in counting}.values()
    approvals = _people([vote for vote in newest if vote.verb == "approve"], counting)
    rejections = _people([vote for vote in newest if vote.verb == "reject"], counting)
    if rejections >= ask.rejections:
        return Tally(approvals, rejections, "rejected")
    return Tally(approvals, rejections, "approved" if approvals >= ask.quorum else None)


def vote_counts(ask: Ask, vote: CountedVote, requesters: Mapping[str, Identity]) -> bool | None:
    """Whether a vote counts: to be asked before it is taken, too, so that nobody votes in vain. `None`: that cannot be
    known, so it does not.

    Under `fourEyes` only somebody counts who is another human than everybody who requested or edited
    (`are_two_humans`). Where several people are needed, an account of which it is not known whose it is counts only as
    a full member's of the requester's realm.
    """
    if ask.self_approval == "fourEyes":
        apart = [are_two_humans(vote.person, vote.identity, *requester) for requester in requesters.items()]
        if False in apart:
            return False
        return None if None in apart or not (apart or vote.identity.human) else True
    if vote.identity.human is None and (ask.quorum > 1 or ask.rejections > 1):
        here = any(realm_of(vote.person) == realm_of(person) for person in list(requesters)[:1])
        return True if here and vote.identity.is_member else None
    return True


def are_two_humans(person: str, one: Identity, other_person: str, other: Identity) -> bool | None:
    """Whether two accounts belong to two humans; `None`: nobody knows.

    Any address in common, vouched for or not, makes them one human's. Different ones that are vouched for make them
    two; so does being full members of one realm (`realm_of`), which gives each human one account. Of guests and other
    companies' people nothing is taken for granted: a member may well have such an account too.
    """
    if person == other_person or one.addresses & other.addresses:
        return False
    if one.human is not None and other.human is not None:
        return True
    return True if realm_of(person) == realm_of(other_person) and one.is_member and other.is_member else None


def may_be_one_human(person: str, other: str) -> bool:
    """Whether two references may be two accounts of one human: persons of two realms."""
    return not is_group(other) and realm_of(person) != realm_of(other)


def _recognised(votes: Sequence[CountedVote]) -> list[CountedVote]:
    """The votes with all that was known of each account at any of them."""
    known: dict[str, Identity] = {}
    for vote in votes:
        was, now = known.get(vote.person, UNKNOWN), vote.identity
        human = was.human if now.human is None else now.human
        is_member = was.is_member if now.is_member is None else now.is_member
        known[vote.person] = Identity(human, was.claimed | now.claimed, is_member)
    return [replace(vote, identity=known[vote.person]) for vote in votes]


@dataclass(slots=True)
class _Human:
    """Accounts that have addresses in common, directly or by way of others."""

    votes: list[CountedVote] = field(default_factory=list)
    addresses: frozenset[str] = frozenset()

    @property
    def is_vouched_for(self) -> bool:
        return any(vote.identity.human is not None for vote in self.votes)


def _people(votes: Sequence[CountedVote], all_votes: Sequence[CountedVote]) -> int:
    """How many humans cast these votes at the least.

    Accounts of unknown owners are different people among themselves, and from those with an account in the same
    realm; any of them may be one of the known humans who have not been seen there.
    """
    humans = _humans(votes)
    unknown = [human for human in humans if not human.is_vouched_for]
    known = [human for human in humans if human.is_vouched_for]
    realms = {realm_of(vote.person) for human in unknown for vote in human.votes}
    there = [v.identity.addresses for v in all_votes if v.identity.is_member and realm_of(v.person) in realms]
    seen_there = sum(any(human.addresses & addresses for addresses in there) for human in known)
    return seen_there + max(len(unknown), len(known) - seen_there)


def _humans(votes: Sequence[CountedVote]) -> list[_Human]:
    humans: list[_Human] = []
    for vote in votes:
        addresses = vote.identity.addresses
        same = [human for human in humans if human.addresses & addresses]
        humans = [human for human in humans if not human.addresses & addresses]
        together = [earlier for human in same for earlier in human.votes]
        humans.append(_Human([*together, vote], addresses.union(*(human.addresses for human in same))))
    return humans


# ------------------------------ standing approvals: an approver's own, for one very call, for a while

DURATIONS: Mapping[str, float] = {"1 h": 3600.0, "8 h": 8 * 3600.0, "7 days": 7 * 86400.0}
"""How long a grant can be given for, as shown → seconds."""


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """Somebody's permission to themselves."""

    person: str
    """Person id of who gave it: it covers calls that they request."""
    server: str
    tool: str
    """The server's own name for the tool."""
    digest: str
    """`digest_of` the call: the server's configuration, the tool, its schema and the arguments."""
    until: float
    """Seconds since the epoch."""
    risks: tuple[Risk, ...]
    """What the card warned of with which it was given."""
    client: str = ""
    """What the program calls itself through which that call was asked for, and through which alone it covers any;
    empty: our own agent."""


def digest_of(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """SHA-256, hexadecimal, over what an approval or a grant is about: server and its configuration, tool, schema and
    canonical arguments. Raises `TypeError`, `ValueError` or `RecursionError` on arguments that are no JSON."""
    parts = [tool.server, tool.fingerprint, tool.name, tool.schema_hash, dict(arguments)]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def grant_offered(ask: Ask, risks: Collection[Risk]) -> bool:
    """Whether an approver may tick “always allow” on this card; `risks` are the card's (`trust.risks_of`).

    Never where one person must not decide alone; for what destroys only where the policy says so (`alwaysAllow`).
    """
    if ask.self_approval == "fourEyes" or ask.quorum > 1:
        return False
    return Risk.DESTROYS not in risks if ask.always_allow is None else ask.always_allow


def covered(
    grants: Iterable[StandingApproval], call: Call, requester: str, now: float, *, client: str = ""
) -> StandingApproval | None:
    """The grant, the longest there is, that this person gave themselves for exactly this call. Raises nothing.

    Args:
        client: through which program it is asked for, as in `Facts`; empty: by our own agent.
    """
    about = [
        grant
        for grant in grants
        if (grant.person, grant.client, grant.server, grant.tool)
        == (requester, client, call.tool.server, call.tool.name)
        and now < grant.until
    ]
    if not about:
        return None
    try:
        digest = digest_of(call.tool, call.arguments)
    except (TypeError, ValueError, RecursionError):
        return None  # what has no digest was granted by nobody
    return max((grant for grant in about if grant.digest == digest), key=lambda grant: grant.until, default=None)


_BY_GRANT = re.compile(r"always allow by .+ until [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC", re.DOTALL)
"""What `under_grants` writes in the place of a rule's name."""


def is_by_grant(rule: str) -> bool:
    """Whether that stands in the place of a rule's name, since somebody's own standing approval allowed a call."""
    return _BY_GRANT.fullmatch(rule) is not None


def under_grants(
    verdict: Verdict,
    call: Call,
    grants: Iterable[StandingApproval],
    requester: Decider,
    now: float,
    *,
    client: str = "",
) -> Verdict:
    """An ask that the requester has answered for themselves becomes an allow; everything else stays as it is.

    `verdict` is what `judge` said of the call. The grant counts as long as the requester could still give it: the
    policy may have changed, and so may the groups they are in; and as long as the call may do no more than the card
    warned of with which it was given. `requester` has themselves as its only requester, and
    what was looked up about them; `client` as for `covered`. Raises nothing.
    """
    if not isinstance(verdict, Ask):
        return verdict
    may = risks_of(call, verdict)
    if not grant_offered(verdict, may):
        return verdict
    if not isinstance(judge_decider(verdict, requester), Permitted):
        return verdict
    warned = [each for each in grants if warned_of(each.risks, may)]
    grant = covered(warned, call, requester.person, now, client=client)
    if grant is None:
        return verdict
    until = datetime.fromtimestamp(grant.until, UTC)
    return Allow(
        rule=f"always allow by {grant.person} until {until:%Y-%m-%d %H:%M} UTC",
        source=verdict.source,
        version=verdict.version,
        reads=verdict.reads,
    )
