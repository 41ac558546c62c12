"""Counting votes: each human once, whatever account they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from policies.model import Ask
from policies.references import home_of

Verb = Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What is known of whose an account is."""

    human: str | None = None
    """The address that its platform vouches for, the same for all accounts of one human; `None`: none is known."""
    claimed: frozenset[str] = frozenset()
    """Addresses that it has without anybody vouching for them: enough to doubt that two accounts are two humans, and
    never enough to grant anything."""
    is_member: bool | None = None
    """Whether it is a full member's of its own workspace or tenant, where a human has one account; false: a guest's, or
    another company's. `None`: could not be found out."""

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
    verb: Verb


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
    a full member's of the workspace or tenant where the requester is.
    """
    if ask.self_approval == "fourEyes":
        apart = [are_two_humans(vote.person, vote.identity, *requester) for requester in requesters.items()]
        if False in apart:
            return False
        return None if None in apart or not (apart or vote.identity.human) else True
    if vote.identity.human is None and (ask.quorum > 1 or ask.rejections > 1):
        here = any(home_of(vote.person) == home_of(person) for person in list(requesters)[:1])
        return True if here and vote.identity.is_member else None
    return True


def are_two_humans(person: str, one: Identity, other_person: str, other: Identity) -> bool | None:
    """Whether two accounts belong to two humans; `None`: nobody knows.

    Any address in common, vouched for or not, makes them one human's. Different ones that are vouched for make them
    two; so does being full members of one workspace or tenant, which gives each human one account. Of guests and other
    companies' people nothing is taken for granted: a member may well have such an account too.
    """
    if person == other_person or one.addresses & other.addresses:
        return False
    if one.human is not None and other.human is not None:
        return True
    return True if home_of(person) == home_of(other_person) and one.is_member and other.is_member else None


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
    place; any of them may be one of the known humans who have not been seen there.
    """
    humans = _humans(votes)
    unknown = [human for human in humans if not human.is_vouched_for]
    known = [human for human in humans if human.is_vouched_for]
    homes = {home_of(vote.person) for human in unknown for vote in human.votes}
    there = [vote.identity.addresses for vote in all_votes if vote.identity.is_member and home_of(vote.person) in homes]
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
