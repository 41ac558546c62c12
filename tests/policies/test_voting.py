"""One human, one vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.approvers import UNKNOWN, CountedVote, Identity, Tally, are_two_humans, tally, vote_counts
from policies.model import Ask, realm_of

ANA, BEN, EVE = "slack:T1:ANA", "slack:T1:BEN", "slack:T1:EVE"
ANA_TEAMS, BEN_TEAMS, EVE_TEAMS = "teams:tenant:ana", "teams:tenant:ben", "teams:tenant:eve"
BEN_ELSEWHERE = "slack:T2:BEN"
HUMANS: dict[str, str | None] = {
    person: person.rpartition(":")[2].lower()
    for person in (ANA, BEN, EVE, ANA_TEAMS, BEN_TEAMS, EVE_TEAMS, BEN_ELSEWHERE)
}


def member(human: str | None = None, *claimed: str) -> Identity:
    return Identity(human, frozenset(claimed), is_member=True)


def guest(*claimed: str) -> Identity:
    return Identity(None, frozenset(claimed), is_member=False)


def by(people: Mapping[str, str | None]) -> dict[str, Identity]:
    return {person: member(human) for person, human in people.items()}


BY_ANA = by({ANA: "ana"})
UNKNOWN_ANA: dict[str, str | None] = {ANA: None}


def asking(quorum: int = 1, rejections: int = 1, eyes: Literal["confirm", "fourEyes"] = "confirm") -> Ask:
    return Ask(rule="r", approvers=("any",), quorum=quorum, rejections=rejections, self_approval=eyes)


def yes(person: str, **known: Any) -> CountedVote:
    return CountedVote(person, member(known.get("human", HUMANS[person])), "approve")


def no(person: str, **known: Any) -> CountedVote:
    return CountedVote(person, member(known.get("human", HUMANS[person])), "reject")


def unknown(person: str) -> CountedVote:
    return yes(person, human=None)


TALLIES = [
    ("nobody", asking(), [], Tally(0, 0, None)),
    ("one of one", asking(), [yes(BEN)], Tally(1, 0, "approved")),
    ("one of two", asking(2), [yes(BEN)], Tally(1, 0, None)),
    ("two of two", asking(2), [yes(BEN), yes(EVE)], Tally(2, 0, "approved")),
    ("two across platforms", asking(2), [yes(BEN), yes(EVE_TEAMS)], Tally(2, 0, "approved")),
    ("one human, two platforms", asking(2), [yes(BEN), yes(BEN_TEAMS)], Tally(1, 0, None)),
    ("one human, two workspaces", asking(2), [yes(BEN), yes(BEN_ELSEWHERE)], Tally(1, 0, None)),
    ("the requester among two", asking(2), [yes(ANA), yes(BEN)], Tally(2, 0, "approved")),
    ("a veto", asking(2), [yes(BEN), no(EVE)], Tally(1, 1, "rejected")),
    ("a veto after the quorum", asking(), [yes(BEN), no(EVE)], Tally(1, 1, "rejected")),
    ("one of two rejections", asking(2, 2), [no(EVE), yes(BEN)], Tally(1, 1, None)),
    ("two of two rejections", asking(2, 2), [no(EVE), no(BEN)], Tally(0, 2, "rejected")),
    ("one human rejects twice", asking(2, 2), [no(EVE), no(EVE_TEAMS)], Tally(0, 1, None)),
    ("a change of mind", asking(2, 2), [no(EVE), yes(EVE_TEAMS), yes(BEN)], Tally(2, 0, "approved")),
    ("a change of mind back", asking(2, 2), [yes(EVE), no(EVE), yes(BEN)], Tally(1, 1, None)),
    ("unknown, alone is enough", asking(), [unknown(EVE_TEAMS)], Tally(1, 0, "approved")),
    ("unknown, from elsewhere", asking(2), [yes(BEN), unknown(EVE_TEAMS)], Tally(1, 0, None)),
    ("unknown, from another workspace", asking(2), [yes(BEN), unknown(BEN_ELSEWHERE)], Tally(1, 0, None)),
    ("unknown, from the requester's place", asking(2), [yes(BEN), unknown(EVE)], Tally(2, 0, "approved")),
    ("two unknown from there", asking(2), [unknown(BEN), unknown(EVE)], Tally(2, 0, "approved")),
    ("unknown, and perhaps the same", asking(2), [unknown(EVE), yes(EVE_TEAMS)], Tally(1, 0, None)),
    (
        "unknown, and another's two accounts",
        asking(2),
        [unknown(EVE), yes(BEN_TEAMS), yes(BEN)],
        Tally(2, 0, "approved"),
    ),
    ("unknown, two from elsewhere", asking(2), [unknown(EVE_TEAMS), unknown(BEN_TEAMS)], Tally(0, 0, None)),
    ("unknown, two from elsewhere, for three", asking(3), [unknown(EVE_TEAMS), unknown(BEN_TEAMS)], Tally(0, 0, None)),
    ("one account, recognised later", asking(2), [unknown(BEN), yes(BEN)], Tally(1, 0, None)),
    (
        "unknown rejections from elsewhere",
        asking(1, 2),
        [no(EVE_TEAMS, human=None), no(BEN_ELSEWHERE, human=None)],
        Tally(0, 0, None),
    ),
]


@pytest.mark.parametrize(("ask", "votes", "result"), [t[1:] for t in TALLIES], ids=[t[0] for t in TALLIES])
def test_what_votes_come_to(ask: Ask, votes: list[CountedVote], result: Tally) -> None:
    assert tally(ask, votes, BY_ANA) == result


FOUR_EYES: list[tuple[str, CountedVote, dict[str, str | None], bool]] = [
    ("the requester", yes(ANA), {ANA: "ana"}, False),
    ("the requester's other account", yes(ANA_TEAMS), {ANA: "ana"}, False),
    ("the requester, whose human is unknown", yes(ANA), UNKNOWN_ANA, False),
    ("somebody else", yes(BEN), {ANA: "ana"}, True),
    ("somebody else, on another platform", yes(BEN_TEAMS), {ANA: "ana"}, True),
    ("somebody unknown in the same place", unknown(BEN), {ANA: "ana"}, True),
    ("somebody unknown elsewhere", unknown(BEN_TEAMS), {ANA: "ana"}, False),
    ("somebody known in the place of an unknown requester", yes(BEN), UNKNOWN_ANA, True),
    ("somebody known elsewhere, the requester unknown", yes(BEN_TEAMS), UNKNOWN_ANA, False),
    ("an editor", yes(BEN), {ANA: "ana", BEN_TEAMS: "ben"}, False),
    ("somebody unknown, with an editor elsewhere", unknown(EVE), {ANA: "ana", BEN_TEAMS: "ben"}, False),
    ("somebody known, with an unknown editor elsewhere", yes(EVE), {ANA: "ana", BEN_TEAMS: None}, False),
    ("somebody known, with a known editor elsewhere", yes(EVE), {ANA: "ana", BEN_TEAMS: "ben"}, True),
]


@pytest.mark.parametrize(("vote", "requesters", "counts"), [f[1:] for f in FOUR_EYES], ids=[f[0] for f in FOUR_EYES])
def test_under_four_eyes_only_somebody_certainly_else_counts(
    vote: CountedVote, requesters: dict[str, str | None], *, counts: bool
) -> None:
    ask = asking(eyes="fourEyes")
    assert (vote_counts(ask, vote, by(requesters)) is True) is counts
    assert tally(ask, [vote], by(requesters)) == (Tally(1, 0, "approved") if counts else Tally(0, 0, None))


def test_an_unknown_account_in_the_place_of_an_editor_alone_does_not_count_towards_a_quorum() -> None:
    by_two = by({ANA: "ana", BEN_TEAMS: "ben"})
    assert not vote_counts(asking(2), unknown(EVE_TEAMS), by_two)
    assert vote_counts(asking(2), unknown(EVE), by_two)


def test_under_four_eyes_an_unknown_account_does_not_count_where_nobody_is_known_to_have_asked() -> None:
    assert not vote_counts(asking(eyes="fourEyes"), unknown(BEN), {})
    assert vote_counts(asking(eyes="fourEyes"), yes(BEN), {})


GUS = "slack:T1:GUS"
USER = "web:ana"
OF_AN_ISSUER, COLLEAGUE = (f"web:oidc.01234567.{digit * 24}" for digit in "ab")
OF_ANOTHER = f"web:oidc.76543210.{'a' * 24}"
TWO_HUMANS: list[tuple[str, str, Identity, str, Identity, bool | None]] = [
    ("two members", ANA, member("ana"), BEN, member("ben"), True),
    ("two members of whom no address is known", ANA, member(), BEN, member(), True),
    ("a member beside one without an address", ANA, member("ana"), BEN, member(), True),
    ("a member's second mailbox address", ANA, member("ana"), BEN, member(None, "ana"), False),
    ("the same, the other way round", ANA, member(None, "ben", "ana"), BEN, member("ben"), False),
    ("a guest with the member's address", ANA, member("ana"), GUS, guest("ana"), False),
    ("a guest with another address", ANA, member("ana"), GUS, guest("gus"), None),
    ("a guest of whom nothing is known", ANA, member(), GUS, guest(), None),
    ("a guest who asked", GUS, guest("gus"), ANA, member("ana"), None),
    ("an account that could not be looked up", ANA, member("ana"), BEN, UNKNOWN, None),
    ("the requester could not be looked up", ANA, UNKNOWN, BEN, member("ben"), None),
    ("a member elsewhere, unknown", ANA, member("ana"), BEN_TEAMS, member(), None),
    ("known on both platforms", ANA, member("ana"), BEN_TEAMS, member("ben"), True),
    ("the address there is another name of the one here", ANA, member("ana"), ANA_TEAMS, member("a", "ana"), False),
    ("one account", ANA, member("ana"), ANA, member("else"), False),
    ("two users whom an operator has made", USER, member(), "web:ben", member(), True),
    ("two people of one issuer", OF_AN_ISSUER, member(), COLLEAGUE, member(), True),
    ("a user, and somebody of an issuer without an address", USER, member(), OF_AN_ISSUER, member(), None),
    ("people of two issuers without addresses", OF_AN_ISSUER, member(), OF_ANOTHER, member(), None),
    ("people of two issuers with one address", OF_AN_ISSUER, member("ana"), OF_ANOTHER, member("ana"), False),
    ("two accounts that anybody could make", USER, guest(), "web:eve", guest(), None),
]


def test_a_human_has_one_account_in_a_workspace_at_an_issuer_and_among_the_users() -> None:
    realms = list(map(realm_of, (ANA, ANA_TEAMS, USER, OF_AN_ISSUER, COLLEAGUE, "web:oidc.ana", "web:sub.0123")))
    issuers = ["web:oidc.01234567"] * 2
    assert realms == ["slack:T1", "teams:tenant", "web", *issuers, "web", "web"]


def test_votes_of_people_of_two_issuers_are_not_two_peoples_unless_addresses_say_so() -> None:
    votes = [CountedVote(person, member(), "approve") for person in (OF_AN_ISSUER, OF_ANOTHER)]
    assert tally(asking(2), votes, {USER: member()}).approvals == 0
    assert tally(asking(2), votes, {COLLEAGUE: member()}).approvals == 1


@pytest.mark.parametrize(
    ("person", "one", "other_person", "other", "answer"), [t[1:] for t in TWO_HUMANS], ids=[t[0] for t in TWO_HUMANS]
)
def test_whether_two_accounts_are_two_humans(
    person: str,
    one: Identity,
    other_person: str,
    other: Identity,
    answer: bool | None,  # noqa: FBT001
) -> None:
    """Rule 9: an address in common, vouched for or not, is one human; of guests nothing is taken for granted."""
    assert are_two_humans(person, one, other_person, other) is answer
    assert are_two_humans(other_person, other, person, one) is answer
    vote = CountedVote(other_person, other, "approve")
    assert vote_counts(asking(eyes="fourEyes"), vote, {person: one}) is answer
    assert tally(asking(eyes="fourEyes"), [vote], {person: one}).approvals == (answer is True)


def test_a_guest_without_a_vouched_address_does_not_count_towards_a_quorum() -> None:
    """Rule 9: a member may have a guest account beside their own."""
    vote = CountedVote(GUS, guest("gus"), "approve")
    assert vote_counts(asking(2), vote, BY_ANA) is None
    assert vote_counts(asking(), vote, BY_ANA) is True
    assert tally(asking(2), [yes(BEN), vote], BY_ANA) == Tally(1, 0, None)


def test_two_accounts_with_an_address_in_common_are_one_vote_of_a_quorum() -> None:
    """Rule 9: one human, one vote; also by way of a third account."""
    second = CountedVote(EVE, member(None, "ben"), "approve")
    third = CountedVote("slack:T1:BEN3", member("ben3", "ben"), "approve")
    assert tally(asking(2), [yes(BEN), second, third], BY_ANA) == Tally(1, 0, None)
    assert tally(asking(2), [second, yes(ANA)], BY_ANA) == Tally(2, 0, "approved")


def test_a_claimed_address_takes_nobody_s_vote_away() -> None:
    """Rule 9: only a vouched address speaks for a human."""
    claims_to_be_eve = CountedVote(BEN, member(None, "eve"), "approve")
    assert tally(asking(2, 2), [no(EVE), claims_to_be_eve], BY_ANA) == Tally(1, 1, None)


accounts = st.sampled_from(list(HUMANS))
ballots = st.lists(st.tuples(accounts, st.booleans(), st.sampled_from(["approve", "reject"])), max_size=6)
asks = st.builds(asking, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["confirm", "fourEyes"]))


@given(asks, ballots, st.lists(st.tuples(accounts, st.booleans()), max_size=2))
def test_never_more_humans_are_counted_than_there_are(
    ask: Ask, cast: list[tuple[str, bool, Literal["approve", "reject"]]], asked_by: list[tuple[str, bool]]
) -> None:
    """Whoever an account of unknown owner belongs to, here it is known to the test alone."""
    votes = [CountedVote(person, member(HUMANS[person] if known else None), verb) for person, known, verb in cast]
    requesters = by({person: HUMANS[person] if known else None for person, known in asked_by})
    result = tally(ask, votes, requesters)
    if ask.quorum == ask.rejections == 1 and ask.self_approval == "confirm":
        return
    barred = {HUMANS[person] for person in requesters} if ask.self_approval == "fourEyes" else set()
    assert result.approvals <= len({HUMANS[v.person] for v in votes if v.verb == "approve"} - barred)
    assert result.rejections <= len({HUMANS[v.person] for v in votes if v.verb == "reject"} - barred)
