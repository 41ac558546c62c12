from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.approvers import (
    CouldNotFindOut,
    Decider,
    NotPermitted,
    Permitted,
    approval_suffices,
    approvers_at,
    as_of,
    edit_needs_no_new_asking,
    groups_to_look_up,
    judge_decider,
)
from policies.model import Allow, Ask, Deny

ANA, BEN, EVE = "web:ana", "web:ben", "web:eve"
GROUP = "slack-group:T1:S1"
YES, NO, UNKNOWN = Permitted, NotPermitted, CouldNotFindOut


def asking(*approvers: str, eyes: Literal["confirm", "fourEyes"] = "confirm", quorum: int = 1, **more: Any) -> Ask:
    return Ask(rule="r", approvers=approvers, self_approval=eyes, quorum=quorum, **more)


def somebody(person: str, **known: Any) -> Decider:
    return Decider(person=person, requesters=known.pop("requesters", (ANA,)), **known)


TABLE = [
    ("the requester, who is asked", asking("requester"), somebody(ANA), YES),
    ("somebody else where the requester is asked", asking("requester"), somebody(BEN), NO),
    ("the requester where a person is named", asking(BEN), somebody(ANA), NO),
    ("the person who is named", asking(BEN), somebody(BEN), YES),
    ("one of several who are named", asking(EVE, BEN), somebody(BEN), YES),
    ("anybody where any may", asking("any"), somebody(EVE), YES),
    ("the requester where any may", asking("any"), somebody(ANA), YES),
    ("somebody in the channel", asking("channel"), somebody(BEN, in_channel=True), YES),
    ("somebody outside the channel", asking("channel"), somebody(BEN, in_channel=False), NO),
    ("somebody whose channels are unknown", asking("channel"), somebody(BEN), UNKNOWN),
    ("a member of the group", asking(GROUP), somebody(BEN, groups={GROUP: True}), YES),
    ("no member of the group", asking(GROUP), somebody(BEN, groups={GROUP: False}), NO),
    ("somebody whose groups are unknown", asking(GROUP), somebody(BEN, groups={GROUP: None}), UNKNOWN),
    ("somebody whose groups were not looked up", asking(GROUP), somebody(BEN), UNKNOWN),
    ("a named person whose groups are unknown", asking(GROUP, BEN), somebody(BEN), YES),
    ("four eyes: the requester, however listed", asking("requester", "any", ANA, eyes="fourEyes"), somebody(ANA), NO),
    ("four eyes: the requester in the group", asking(GROUP, eyes="fourEyes"), somebody(ANA, groups={GROUP: True}), NO),
    ("four eyes: the requester in the channel", asking("channel", eyes="fourEyes"), somebody(ANA, in_channel=True), NO),
    ("four eyes: somebody else", asking("any", eyes="fourEyes"), somebody(BEN), YES),
    ("four eyes: the editor", asking("any", eyes="fourEyes"), somebody(BEN, requesters=(ANA, BEN)), NO),
    ("four eyes: a third person", asking("any", eyes="fourEyes"), somebody(EVE, requesters=(ANA, BEN)), YES),
    (
        "four eyes: the requester's other account",
        asking("any", eyes="fourEyes"),
        somebody("slack:T1:U9", other_accounts=(ANA,)),
        NO,
    ),
    ("the requester from another account", asking("requester"), somebody("slack:T1:U9", other_accounts=(ANA,)), YES),
    ("a named person from another account", asking(BEN), somebody("slack:T1:U9", other_accounts=(BEN,)), YES),
    ("an editor where the requester is asked", asking("requester"), somebody(BEN, requesters=(ANA, BEN)), NO),
    ("somebody called by the name of a keyword", asking("requester"), somebody("requester"), NO),
    ("the requester of a call without one", asking("requester"), somebody(ANA, requesters=()), NO),
]


@pytest.mark.parametrize(("ask", "decider", "permission"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE])
def test_who_may_decide(ask: Ask, decider: Decider, permission: type) -> None:
    assert isinstance(judge_decider(ask, decider), permission)


def test_a_refusal_says_why() -> None:
    refused = judge_decider(asking("any", eyes="fourEyes"), somebody(ANA))
    assert refused == NotPermitted("You requested or edited this; someone else must approve.")
    unknown = judge_decider(asking("channel", GROUP), somebody(BEN))
    assert isinstance(unknown, CouldNotFindOut)
    assert "in this channel or slack-group:T1:S1" in unknown.reason


def test_only_groups_are_looked_up() -> None:
    assert groups_to_look_up(asking("requester", "any", BEN, GROUP, "entra-group:7")) == {GROUP, "entra-group:7"}


people = st.sampled_from([ANA, BEN, EVE])
references = st.sampled_from(["requester", "channel", "any", ANA, BEN, GROUP])
asks = st.builds(
    asking,
    references,
    references,
    eyes=st.sampled_from(["confirm", "fourEyes"]),
    quorum=st.integers(1, 2),
)
deciders = st.builds(
    Decider,
    person=people,
    requesters=st.lists(people, min_size=1, max_size=2).map(tuple),
    groups=st.dictionaries(st.just(GROUP), st.sampled_from([True, False, None])),
    in_channel=st.sampled_from([True, False, None]),
)


@given(asks, deciders)
def test_under_four_eyes_no_requester_is_ever_permitted(ask: Ask, decider: Decider) -> None:
    if ask.self_approval == "fourEyes" and decider.person in decider.requesters:
        assert isinstance(judge_decider(ask, decider), NotPermitted)


@given(asks, asks, deciders)
def test_whoever_may_approve_an_edit_without_a_new_asking_may_also_decide_the_edited_call(
    given_ask: Ask, needed: Ask, decider: Decider
) -> None:
    if edit_needs_no_new_asking(given_ask, needed, "web") and isinstance(judge_decider(given_ask, decider), Permitted):
        edited = Decider(decider.person, (*decider.requesters, decider.person), decider.groups, decider.in_channel)
        assert isinstance(judge_decider(needed, edited), Permitted)


LATER = asking(BEN, escalate_after=10.0, escalate_to=(EVE,))
EDITS = [
    ("the same demands", asking(BEN), asking(BEN), True),
    ("more people may", asking(BEN), asking(BEN, EVE), True),
    ("anybody may", asking(BEN), asking("any"), True),
    ("fewer people may", asking(BEN, EVE), asking(BEN), False),
    ("other people must", asking("requester"), asking(BEN), False),
    ("nobody needs to be asked", asking(BEN), Allow(rule="a"), True),
    ("it is denied", asking(BEN), Deny(rule="d", reason="no"), False),
    ("the editor is no second pair of eyes", asking("any", eyes="fourEyes"), asking("any", eyes="fourEyes"), False),
    ("now four eyes are needed", asking("any"), asking("any", eyes="fourEyes"), False),
    ("the others have not seen it", asking("any", quorum=2), asking("any", quorum=2), False),
    ("now several are needed", asking("any"), asking("any", quorum=2), False),
    ("the others had seen something else", asking("any", quorum=2), asking("any"), False),
    ("one rejection was not enough then", asking(BEN, rejections=2), asking(BEN), False),
    ("more rejections are needed now", asking(BEN), asking(BEN, rejections=2), True),
    ("it escalates to the same people", LATER, LATER, True),
    ("it escalates sooner", LATER, asking(BEN, escalate_after=5.0, escalate_to=(EVE,)), True),
    ("it escalates later", LATER, asking(BEN, escalate_after=20.0, escalate_to=(EVE,)), False),
    ("it no longer escalates", LATER, asking(BEN), False),
    ("it escalates to others", LATER, asking(BEN, escalate_after=10.0, escalate_to=(ANA,)), False),
    ("who it escalated to may now at once", LATER, asking(BEN, EVE), True),
    ("who could at once may now only later", asking(EVE), LATER, False),
    ("the two have changed places", asking(EVE, escalate_after=10.0, escalate_to=(BEN,)), LATER, False),
    ("a reason and a time do not matter", asking(BEN), asking(BEN, reason_required=True, expires_in=5.0), True),
]


@pytest.mark.parametrize(("given_ask", "needed", "suffices"), [e[1:] for e in EDITS], ids=[e[0] for e in EDITS])
def test_whether_an_approval_covers_the_edit_it_came_with(
    given_ask: Ask, needed: Allow | Ask | Deny, *, suffices: bool
) -> None:
    assert edit_needs_no_new_asking(given_ask, needed, "web") is suffices


SUFFICES = [
    ("the same four eyes", asking("any", eyes="fourEyes"), asking("any", eyes="fourEyes"), True),
    ("the same quorum", asking(BEN, EVE, quorum=2), asking(EVE, BEN, quorum=2), True),
    ("other words on the same demands", asking(BEN), asking(BEN, remind_after=5.0), True),
    ("a larger quorum", asking("any"), asking("any", quorum=2), False),
    ("a veto where two had to reject", asking("any", quorum=2, rejections=2), asking("any", quorum=2), False),
    ("a later escalation", LATER, asking(BEN, escalate_after=20.0, escalate_to=(EVE,)), False),
    ("nobody needs to be asked", asking("any", quorum=2), Allow(rule="a"), True),
    ("it is denied", asking(BEN), Deny(rule="d", reason="no"), False),
]


@pytest.mark.parametrize(("given_ask", "needed", "suffices"), [c[1:] for c in SUFFICES], ids=[c[0] for c in SUFFICES])
def test_whether_an_approval_holds_under_the_policy_of_now(
    given_ask: Ask, needed: Allow | Ask | Deny, *, suffices: bool
) -> None:
    assert approval_suffices(given_ask, needed, "web") is suffices


ELSEWHERE = "slack:T2:C9"
ANYBODYS = [
    ("it went to another workspace too", asking("any", route_to=(ELSEWHERE,)), asking("any"), False),
    ("a group's members were asked there", asking("slack-group:T1:S1", route_to=(ELSEWHERE,)), asking("any"), False),
    ("somebody elsewhere was named", asking("slack:T2:U9"), asking("any"), False),
    (
        "it escalated to somebody elsewhere",
        asking("any", escalate_after=1.0, escalate_to=("web:eve",)),
        asking("any"),
        False,
    ),
    ("it goes there now as well", asking("any", route_to=(ELSEWHERE,)), asking("any", route_to=("slack:T2:C1",)), True),
    ("it went to another channel here", asking("any", route_to=("slack:T1:C9",)), asking("any"), True),
    ("it went elsewhere to somebody named here", asking("slack:T1:U2", route_to=(ELSEWHERE,)), asking("any"), True),
    ("a group of here", asking("slack-group:T1:S1", "channel", "requester"), asking("any"), True),
    (
        "a chat of the same tenant",
        asking("any", route_to=("teams:t:19:a@b",)),
        asking("any", route_to=("teams:t:1",)),
        True,
    ),
]


@pytest.mark.parametrize(("given_ask", "needed", "suffices"), [c[1:] for c in ANYBODYS], ids=[c[0] for c in ANYBODYS])
def test_anybody_is_of_the_places_where_it_is_asked_and_nobody_else(
    given_ask: Ask, needed: Ask, *, suffices: bool
) -> None:
    """Rule 6: an edit, or a changed policy, gets nobody a decision that the rule of now does not give them."""
    assert edit_needs_no_new_asking(given_ask, needed, "slack:T1") is suffices
    assert approval_suffices(given_ask, needed, "slack:T1") is suffices


def test_the_same_four_eyes_in_fewer_places_are_asked_anew() -> None:
    wide, narrow = (asking("any", eyes="fourEyes", route_to=routed) for routed in ((ELSEWHERE,), ()))
    assert not approval_suffices(wide, narrow, "slack:T1")
    assert approval_suffices(narrow, wide, "slack:T1")


def test_an_unchanged_rule_is_satisfied_by_whom_it_names_elsewhere() -> None:
    mixed = asking("any", "slack:T2:U9", eyes="fourEyes", escalate_after=9.0, escalate_to=("teams:t:u",))
    assert approval_suffices(mixed, mixed, "slack:T1")
    alone = mixed.model_copy(update={"self_approval": "confirm"})
    assert edit_needs_no_new_asking(alone, alone, "slack:T1")


def test_who_it_escalates_to_may_decide_once_the_time_has_passed() -> None:
    assert approvers_at(LATER, asked_at=1000.0, now=1009.9) == (BEN,)
    assert approvers_at(LATER, asked_at=1000.0, now=1010.0) == (BEN, EVE)
    assert approvers_at(asking(BEN), asked_at=1000.0, now=9e9) == (BEN,)
    twice = asking(EVE, escalate_after=10.0, escalate_to=(EVE, ANA))
    assert approvers_at(twice, asked_at=0.0, now=10.0) == (EVE, ANA)


def test_an_escalated_ask_is_decided_like_any_other() -> None:
    early, late = as_of(LATER, 0.0, 9.0), as_of(LATER, 0.0, 10.0)
    assert early is LATER
    assert isinstance(judge_decider(early, somebody(EVE)), NotPermitted)
    assert isinstance(judge_decider(late, somebody(EVE)), Permitted)
    four_eyes = as_of(asking(BEN, eyes="fourEyes", escalate_after=10.0, escalate_to=(ANA,)), 0.0, 10.0)
    assert isinstance(judge_decider(four_eyes, somebody(ANA)), NotPermitted)
