"""Who sees which buttons of an approval's card."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.teams.ids import TeamsLocation, person_id
from adapters.teams.outbound.audiences import MOST_LISTED, audience_of, listed_deciders
from adapters.teams.render.cards import CardMention
from bot.domain import ApprovalView, Said
from tests.support.examples import examples
from tests.teams.outbound_stage import APPROVAL

ANA, BEN, CHLOE = (person_id("t", name) for name in ("ana", "ben", "chloe"))
CHANNEL = TeamsLocation("t", "19:c@thread.tacv2;messageid=1", "channel")
GROUP = TeamsLocation("t", "19:g@thread.v2", "groupChat")


@dataclass
class Roster:
    """Everybody but those who left."""

    gone: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    async def addresses(self, location: TeamsLocation, person_ids: Collection[str]) -> Mapping[str, str]:
        self.asked += person_ids
        return {person: f"29:{person}" for person in person_ids if person not in self.gone}

    def known_name(self, location: TeamsLocation, person: str) -> str:
        return person.rsplit(":", 1)[-1].capitalize()


def view(*approvers: str, four_eyes: bool = False, requesters: tuple[str, ...] = (ANA,)) -> ApprovalView:
    return replace(APPROVAL, approvers=approvers, four_eyes=four_eyes, requester_ids=requesters)


async def test_those_who_can_be_listed_alone_see_the_buttons() -> None:
    audience = await audience_of(view("requester", BEN), CHANNEL, Roster())
    assert (audience.kind, audience.user_ids) == ("listed", (f"29:{ANA}", f"29:{BEN}"))


async def test_an_editor_is_no_requester() -> None:
    audience = await audience_of(view("requester", requesters=(ANA, CHLOE)), GROUP, Roster())
    assert audience.user_ids == (f"29:{ANA}",)


async def test_nobody_who_asked_or_edited_is_listed_under_four_eyes() -> None:
    both = view("requester", BEN, CHLOE, four_eyes=True, requesters=(ANA, CHLOE))
    assert (await audience_of(both, CHANNEL, Roster())).user_ids == (f"29:{BEN}",)


@pytest.mark.parametrize("approver", ["any", "channel", "entra-group:g1", "slack-group:T1:S1"])
async def test_everybody_sees_the_buttons_where_nobody_can_be_listed(approver: str) -> None:
    roster = Roster()
    audience = await audience_of(view(BEN, approver), CHANNEL, roster)
    assert (audience.kind, audience.user_ids, roster.asked) == ("open", (), [BEN])
    assert audience.mentions == (CardMention(f"29:{BEN}", "Ben"),)


async def test_nobody_sees_the_buttons_where_those_who_may_decide_are_all_elsewhere() -> None:
    audience = await audience_of(view("slack:T1:U1", "teams:other:dave"), GROUP, Roster())
    assert (audience.kind, audience.user_ids) == ("listed", ())


async def test_whoever_is_named_as_an_approver_hears_of_it_but_not_who_has_just_asked() -> None:
    audience = await audience_of(view("requester", ANA, BEN, CHLOE), CHANNEL, Roster(gone=frozenset({CHLOE})))
    assert audience.mentions == (CardMention(f"29:{BEN}", "Ben"),)
    assert (await audience_of(view("requester"), CHANNEL, Roster())).mentions == ()


async def test_the_requester_does_not_see_them_where_somebody_else_has_to_decide() -> None:
    audience = await audience_of(view("any", four_eyes=True), CHANNEL, Roster())
    assert (audience.kind, audience.user_ids) == ("open", (f"29:{ANA}",))


async def test_where_none_of_them_could_be_found_everybody_sees_the_buttons() -> None:
    roster = Roster(gone=frozenset({BEN, CHLOE}))
    audience = await audience_of(view(BEN, CHLOE, four_eyes=True), CHANNEL, roster)
    assert (audience.kind, audience.user_ids) == ("open", (f"29:{ANA}",))


async def test_people_of_other_platforms_and_tenants_are_not_looked_for() -> None:
    roster = Roster()
    await audience_of(view(BEN, "slack:T1:U1", "teams:other:dave"), CHANNEL, roster)
    assert roster.asked == [BEN]


async def test_those_who_are_not_there_are_left_out() -> None:
    audience = await audience_of(view(ANA, BEN), CHANNEL, Roster(gone=frozenset({ANA})))
    assert audience.user_ids == (f"29:{BEN}",)


@pytest.mark.parametrize(("count", "kind"), [(MOST_LISTED, "listed"), (MOST_LISTED + 1, "open")])
async def test_more_than_teams_takes_are_not_listed(count: int, kind: str) -> None:
    many = view(*(person_id("t", f"u{n}") for n in range(count)))
    assert (await audience_of(many, CHANNEL, Roster())).kind == kind


@pytest.mark.parametrize(
    ("approval", "may"),
    [
        (view("requester"), True),
        (view(BEN), False),
        (view("any"), True),
        (view("channel"), True),
        (view("any", four_eyes=True), False),
        (view("requester", requesters=(BEN, ANA)), False),
    ],
)
async def test_in_a_direct_chat_only_whoever_may_decide_sees_buttons(approval: ApprovalView, *, may: bool) -> None:
    audience = await audience_of(approval, TeamsLocation("t", "a:1", "personal", user="ana"), Roster())
    assert (audience.kind, audience.user_ids, audience.may_decide) == ("personal", (), may)


async def test_what_is_settled_and_what_is_no_approval_looks_the_same_for_everybody() -> None:
    roster = Roster()
    settled = replace(view("requester"), status="approved")
    for content in (settled, Said("hello")):
        assert (await audience_of(content, CHANNEL, roster)).kind == "open"
    assert roster.asked == []


names = st.sampled_from(["requester", "any", "channel", "entra-group:x", ANA, BEN, CHLOE, "slack:T1:U1"])


@settings(max_examples=examples(20))
@given(
    st.lists(names, max_size=8),
    st.lists(st.sampled_from([ANA, BEN, CHLOE]), max_size=3),
    st.sampled_from(["fourEyes", "confirm"]),
)
def test_nobody_is_listed_who_surely_may_not_decide(
    approvers: list[str], requesters: list[str], self_approval: str
) -> None:
    four_eyes = self_approval == "fourEyes"
    listed = listed_deciders(view(*approvers, four_eyes=four_eyes, requesters=tuple(requesters)), "t")
    if listed is None:
        assert {"any", "channel", "entra-group:x"} & set(approvers)
        return
    allowed = set(approvers) | (set(requesters[:1]) if "requester" in approvers else set())
    assert set(listed) <= allowed - (set(requesters) if four_eyes else set())
    assert len(set(listed)) == len(listed)
