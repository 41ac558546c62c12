"""Counting votes: each human once, whatever account they used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from policies.model import Ask
from policies.references import home_of

Verb = Literal["approve", "reject"]


@dataclass(frozen=True, slots=True)
class CountedVote:
    """A vote of somebody who was permitted to cast it, with who that is."""

    person: str
    """Person id of the account."""
    human: str | None
    """Whoever it belongs to, the same for all accounts of one human; `None`: could not be found out."""
    verb: Verb


@dataclass(frozen=True, slots=True)
class Tally:
    """What the votes come to."""

    approvals: int
    rejections: int
    settled: Literal["approved", "rejected"] | None
    """`None`: it still waits. When both are reached, it is rejected."""


def tally(ask: Ask, votes: Sequence[CountedVote], requesters: Mapping[str, str | None]) -> Tally:
    """What the votes (oldest first; somebody's newest counts) come to. Pure; raises nothing.

    `requesters` are the requester of the turn and then whoever edited, person id → human. Where it matters who is who,
    votes that `vote_counts` refuses are left out, and of two accounts that may belong to one human only one counts.
    """
    owners = {vote.person: vote.human for vote in votes if vote.human is not None}
    known = [replace(vote, human=owners.get(vote.person)) for vote in votes]
    counting = [vote for vote in known if vote_counts(ask, vote, requesters)]
    newest = {vote.human or vote.person: vote for vote in counting}.values()
    approvals = _people([vote for vote in newest if vote.verb == "approve"], counting)
    rejections = _people([vote for vote in newest if vote.verb == "reject"], counting)
    if rejections >= ask.rejections:
        return Tally(approvals, rejections, "rejected")
    return Tally(approvals, rejections, "approved" if approvals >= ask.quorum else None)


def vote_counts(ask: Ask, vote: CountedVote, requesters: Mapping[str, str | None]) -> bool:
    """Whether a vote can count: to be asked before it is taken, too, so that nobody votes in vain.

    Under `fourEyes` nobody who requested or edited counts, whatever account they use. There and where several people
    are needed, an account of which it could not be found out whose it is counts only where the requester is: in the
    same workspace or tenant, where a human has one account. The same holds for everybody else's votes under
    `fourEyes` when it could not be found out who the requester is.
    """
    if ask.self_approval == "fourEyes":
        if vote.person in requesters or (vote.human is not None and vote.human in requesters.values()):
            return False
        doubted = [person for person, human in requesters.items() if vote.human is None or human is None]
        if vote.human is None and not doubted:
            return False
        return all(home_of(vote.person) == home_of(person) for person in doubted)
    if vote.human is None and (ask.quorum > 1 or ask.rejections > 1):
        return any(home_of(vote.person) == home_of(person) for person in list(requesters)[:1])
    return True


def _people(votes: Sequence[CountedVote], all_votes: Sequence[CountedVote]) -> int:
    """How many humans cast these votes at the least.

    Accounts of unknown owners are different people among themselves, and from those with an account in the same
    place; any of them may be one of the known humans who have not been seen there.
    """
    unknown = [vote for vote in votes if vote.human is None]
    known = {vote.human for vote in votes if vote.human is not None}
    homes = {home_of(vote.person) for vote in unknown}
    seen_there = {vote.human for vote in all_votes if vote.human in known and home_of(vote.person) in homes}
    return len(seen_there) + max(len(unknown), len(known - seen_there))
