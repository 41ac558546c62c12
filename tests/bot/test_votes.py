"""One human, one vote: who counts, under which authority, and what settles."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.approvals.directory import REMEMBERED
from bot.approvals.permissions import Known
from bot.domain import AlreadySettled, ConversationReference, Invalid, Person, Refused, Settled
from tests.bot.routing import ANA, ANA_BY_MAIL, BEN, BEN_BY_MAIL, CARA, CHLOE, FAR, Routing
from tests.support.overviews import everywhere

FINANCE = "chat-group:w1:finance"


async def authorities(routing: Routing, approval_id: str) -> list[tuple[str, str]]:
    return [(vote.name, vote.authority) for vote in await routing.votes(approval_id)]


# --------------------------------------------------------------------------------------------------- four eyes


async def test_under_four_eyes_a_second_account_is_no_second_pair_of_eyes(routing: Routing) -> None:
    routing.same_human(ANA, ANA_BY_MAIL)
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    refused = await routing.click(ANA_BY_MAIL, approval_id)
    assert refused == Refused("You requested or edited this; someone else must approve.")
    assert not await routing.services.queries.permitted(approval_id, ANA_BY_MAIL)


async def test_under_four_eyes_somebody_else_may_decide_on_another_platform_once_it_is_known_who_they_are(
    routing: Routing,
) -> None:
    routing.same_human(ANA, ANA_BY_MAIL)
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    assert isinstance(await routing.click(CARA, approval_id), Refused)
    routing.same_human(CARA)
    assert await routing.click(CARA, approval_id) == Settled("Approved.")


async def test_what_a_platform_has_just_said_of_somebody_is_believed(routing: Routing) -> None:
    routing.same_human(ANA)
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    cara = Person(CARA.person_id, CARA.name, email="cara@example.com")
    assert isinstance(await routing.click(cara, approval_id), Settled)
    assert (CARA.person_id, "email") not in routing.mail.asked


async def test_four_eyes_exclude_the_requester_however_they_are_listed(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {ANA.person_id: True}
    routing.chat.channels["chat:w1:room"] = {ANA.person_id}
    listed = ("requester", "any", "channel", FINANCE, ANA.person_id)
    approval_id = await routing.ask(
        approvers=listed, self_approval="fourEyes", escalate_after=10.0, escalate_to=(ANA.person_id,)
    )
    routing.clock.move(10)
    assert isinstance(await routing.hand(BEN, approval_id, ANA), Refused)
    for verb in ("approve", "reject"):
        assert isinstance(await routing.click(ANA, approval_id, verb), Refused)
        assert isinstance(await routing.click(ANA, approval_id, verb, arguments={"what": "chair"}), Refused)
    assert isinstance(await routing.click(BEN, approval_id), Settled)


async def test_four_eyes_exclude_whoever_edited_with_every_account_of_theirs(routing: Routing) -> None:
    for person in (ANA, BEN, CARA):
        routing.same_human(person)
    routing.same_human(BEN, BEN_BY_MAIL)
    approval_id = await routing.ask(FAR, requesters=(ANA.person_id, BEN.person_id), self_approval="fourEyes")
    for person in (ANA, BEN, BEN_BY_MAIL):
        assert isinstance(await routing.click(person, approval_id), Refused)
        assert isinstance(await routing.hand(CHLOE, approval_id, person), Refused)
    assert isinstance(await routing.click(CARA, approval_id), Settled)


async def test_the_vote_of_whoever_is_found_out_to_be_the_requester_later_does_not_count(routing: Routing) -> None:
    """Three accounts, two humans: the second account was somebody else's when it voted, by what was known then."""
    routing.same_human(ANA)
    routing.mail.emails[ANA_BY_MAIL.person_id] = "another@example.com"
    approval_id = await routing.ask(FAR, self_approval="fourEyes", quorum=2)
    assert isinstance(await routing.click(ANA_BY_MAIL, approval_id), Settled)
    routing.clock.move(REMEMBERED)
    routing.chat.emails[ANA.person_id] = "another@example.com"
    routing.same_human(BEN)
    assert await routing.click(BEN, approval_id) == Settled("Recorded: 1 of 2 approvals", final=False)


async def test_under_four_eyes_a_guest_of_the_same_workspace_is_nobody_s_second_pair_of_eyes(routing: Routing) -> None:
    """Rule 9: a member may have a guest account beside their own, with any address."""
    routing.same_human(ANA)
    routing.chat.outsiders.add(BEN.person_id)
    routing.chat.claims[BEN.person_id] = ("ben@private.example",)
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.click(BEN, approval_id) == Refused(
        "This needs a second person, and guest or external accounts don’t count. Ask a full member."
    )
    assert await routing.click(CHLOE, approval_id) == Settled("Approved.")


async def test_what_a_guest_asks_for_nobody_is_known_to_be_somebody_else_for(routing: Routing) -> None:
    """Rule 9: whoever approves may be the guest."""
    routing.same_human(BEN)
    routing.chat.outsiders.add(ANA.person_id)
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.click(BEN, approval_id) == Refused(
        "This needs a second person, and we couldn’t verify who requested or edited it. Try again, or have a full "
        "member request it."
    )


@pytest.mark.parametrize("address", ["ana+2@example.com", "\u0430na@example.com"])
async def test_a_second_account_of_the_requester_s_mailbox_is_the_requester(routing: Routing, address: str) -> None:
    """Rule 9: an address that proves nothing is enough to doubt."""
    routing.same_human(ANA)
    routing.chat.emails[BEN.person_id] = address
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.click(BEN, approval_id) == Refused(
        "Your account shares an email with the person who requested or edited this. Someone else must approve."
    )


async def test_an_address_that_is_only_claimed_grants_nothing(routing: Routing) -> None:
    """Rule 6: whoever may decide is named by an account, or by an address that is vouched for."""
    routing.same_human(BEN)
    routing.mail.claims[CARA.person_id] = ("ben@example.com",)
    approval_id = await routing.ask(FAR, approvers=(BEN.person_id,))
    assert isinstance(await routing.click(CARA, approval_id), Refused)


# --------------------------------------------------------------------------------------------------- quorum


async def test_two_accounts_of_one_mailbox_are_no_quorum_of_two_though_they_click_at_once(routing: Routing) -> None:
    """Rule 9: what an account claims is kept with its vote."""
    routing.same_human(BEN)
    routing.chat.emails[CHLOE.person_id] = "ben+chloe@example.com"
    approval_id = await routing.ask(quorum=2)
    said = await asyncio.gather(routing.click(CHLOE, approval_id), routing.click(BEN, approval_id))
    assert {result.text for result in said} == {"Recorded: 1 of 2 approvals"}
    assert (await routing.row(approval_id)).status == "pending"


async def test_a_guest_is_no_second_voter(routing: Routing) -> None:
    """Rule 9: one human, one vote."""
    routing.same_human(BEN)
    routing.chat.outsiders.add(CHLOE.person_id)
    approval_id = await routing.ask(quorum=2)
    await routing.click(BEN, approval_id)
    assert await routing.click(CHLOE, approval_id) == Refused(
        "This needs a second person, and guest or external accounts don’t count. Ask a full member."
    )


async def test_a_quorum_counts_people_across_platforms(routing: Routing) -> None:
    routing.same_human(BEN)
    routing.same_human(CARA)
    approval_id = await routing.ask(FAR, quorum=2)
    assert await routing.click(BEN, approval_id) == Settled("Recorded: 1 of 2 approvals", final=False)
    assert await routing.click(CARA, approval_id) == Settled("Approved.")
    assert [vote.human for vote in await routing.votes(approval_id)] == ["ben@example.com", "cara@example.com"]
    assert routing.engine.woken == ["chat:w1:room:1"]


async def test_one_human_with_two_accounts_is_no_quorum_of_two(routing: Routing) -> None:
    routing.same_human(BEN, BEN_BY_MAIL)
    approval_id = await routing.ask(FAR, quorum=2)
    await routing.click(BEN, approval_id)
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), AlreadySettled)
    assert (await routing.row(approval_id)).status == "pending"


async def test_an_account_whose_owner_cannot_be_found_out_is_refused_on_the_other_platform(routing: Routing) -> None:
    routing.same_human(BEN)
    approval_id = await routing.ask(FAR, quorum=2)
    refused = await routing.click(CARA, approval_id)
    assert isinstance(refused, Refused)
    assert refused.text.endswith("Approve it in Chat, where it was requested.")
    assert await routing.votes(approval_id) == []


async def test_somebody_may_change_their_mind_with_another_account(routing: Routing) -> None:
    routing.same_human(BEN, BEN_BY_MAIL)
    approval_id = await routing.ask(FAR, quorum=2, rejections=2)
    await routing.click(BEN, approval_id)
    said = await routing.click(BEN_BY_MAIL, approval_id, "reject")
    assert said == Settled("Recorded: 1 of 2 rejections", final=False)
    assert [(vote.person_id, vote.verb) for vote in await routing.votes(approval_id)] == [
        (BEN_BY_MAIL.person_id, "reject")
    ]


async def test_of_two_at_once_who_are_one_human_one_counts(routing: Routing) -> None:
    routing.same_human(BEN, BEN_BY_MAIL)
    approval_id = await routing.ask(FAR, quorum=2)
    results = await asyncio.gather(*(routing.click(person, approval_id) for person in (BEN, BEN_BY_MAIL)))
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]
    assert (await routing.row(approval_id)).status == "pending"


@pytest.mark.parametrize("verbs", [("approve", "approve"), ("approve", "reject"), ("reject", "reject")])
async def test_of_two_deciders_at_once_one_settles(routing: Routing, verbs: tuple[Any, Any]) -> None:
    approval_id = await routing.ask()
    clicks = zip((BEN, CHLOE), verbs, strict=True)
    results = await asyncio.gather(*(routing.click(person, approval_id, verb) for person, verb in clicks))
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]
    assert routing.engine.woken == ["chat:w1:room:1"]


# --------------------------------------------------------------------------------------------------- rejections


async def test_one_rejection_is_a_veto(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=3)
    await routing.click(BEN, approval_id)
    assert await routing.click(CHLOE, approval_id, "reject", reason="no") == Settled("Rejected.")
    row = await routing.row(approval_id)
    assert (row.status, row.reason) == ("rejected", "no")


async def test_where_the_policy_says_so_several_must_reject(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2, rejections=2)
    assert await routing.click(BEN, approval_id, "reject", reason="too dear") == Settled(
        "Recorded: 1 of 2 rejections", final=False
    )
    routing.clock.move(1)
    assert isinstance(await routing.click(BEN, approval_id, "reject"), AlreadySettled)
    assert await routing.click(ANA, approval_id) == Settled("Recorded: 1 of 2 approvals", final=False)
    routing.clock.move(1)
    assert await routing.click(CHLOE, approval_id, "reject", reason="too late") == Settled("Rejected.")
    assert (await routing.row(approval_id)).reason == "Ben: too dear; Chloe: too late"
    view = await routing.view(approval_id)
    assert (view.rejections, view.decided_by) == (2, ("Ben", "Chloe"))


async def test_a_vote_that_is_delivered_twice_counts_once_and_gets_the_same_answer(routing: Routing) -> None:
    """As when a platform got no answer in time, and sends the click again to another replica."""
    approval_id = await routing.ask(quorum=2)
    counted = Settled("Recorded: 1 of 2 approvals", final=False)
    assert [await routing.click(BEN, approval_id) for _ in range(2)] == [counted, counted]
    assert await authorities(routing, approval_id) == [("Ben", "any")]
    routing.clock.move(1)
    again = AlreadySettled("You already approved this. Waiting for others.")
    assert await routing.click(BEN, approval_id) == again


async def test_a_rejection_without_a_reason_counts_for_nothing_where_one_is_needed(routing: Routing) -> None:
    approval_id = await routing.ask(reason_required=True, rejections=2)
    assert isinstance(await routing.click(BEN, approval_id, "reject", reason="  "), Invalid)
    assert await routing.votes(approval_id) == []


# --------------------------------------------------------------------------------------------------- approvers


async def test_members_of_a_group_may_decide_and_others_may_not(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True, CHLOE.person_id: False}
    approval_id = await routing.ask(approvers=(FINANCE,))
    assert await routing.click(CHLOE, approval_id) == Refused("You can’t approve this.")
    assert await routing.click(BEN, approval_id) == Settled("Approved.")
    assert await authorities(routing, approval_id) == [("Ben", f"member of {FINANCE}")]


async def test_a_group_that_cannot_be_looked_up_refuses_and_says_so(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(FINANCE,))
    refused = await routing.click(BEN, approval_id)
    assert refused == Refused(f"Couldn’t check whether you’re in {FINANCE}. Try again in a moment.")
    assert isinstance(await routing.services.approvals.edit_form(approval_id, BEN), Refused)
    assert (await routing.services.queries.overview(BEN, "chat:w1:", everywhere)).to_decide == ()
    assert await routing.services.queries.decidable_with(approval_id, BEN) == ()
    assert await routing.votes(approval_id) == []


async def test_leaving_a_group_counts_at_once(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    approval_id = await routing.ask(approvers=(FINANCE,))
    assert await routing.services.queries.permitted(approval_id, BEN)
    routing.chat.groups[FINANCE] = {BEN.person_id: False}
    assert isinstance(await routing.click(BEN, approval_id), Refused)


async def test_a_member_may_decide_with_their_account_on_another_platform(routing: Routing) -> None:
    routing.same_human(BEN, BEN_BY_MAIL)
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    approval_id = await routing.ask(FAR, approvers=(FINANCE,))
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), Refused)  # Ben was never seen in chat
    await routing.click(Person(BEN.person_id, "Ben", email="ben@example.com"), await routing.ask(call_id="another"))
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), Settled)


async def test_somebody_named_may_decide_with_another_account_of_theirs(routing: Routing) -> None:
    approval_id = await routing.ask(FAR, approvers=(BEN.person_id,))
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), Refused)
    routing.same_human(BEN, BEN_BY_MAIL)
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), Settled)
    assert await authorities(routing, approval_id) == [("Ben", "named")]


async def test_members_of_the_channel_may_decide(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=("channel",))
    assert isinstance(await routing.click(BEN, approval_id), Refused)
    routing.chat.channels["chat:w1:room"] = {BEN.person_id}
    assert isinstance(await routing.click(CHLOE, approval_id), Refused)
    assert isinstance(await routing.click(BEN, approval_id), Settled)
    assert await authorities(routing, approval_id) == [("Ben", "in the channel")]


async def test_in_a_direct_chat_nobody_but_the_requester_is_in_the_channel(routing: Routing) -> None:
    chat = ConversationReference("chat", "chat:w1:dm", {}, direct=True)
    approval_id = await routing.ask(place=chat, approvers=("channel",))
    assert isinstance(await routing.click(BEN, approval_id), Refused)
    assert isinstance(await routing.click(ANA, approval_id), Settled)
    assert routing.chat.asked == []


@pytest.mark.parametrize(
    ("approvers", "person", "authority"), [(("requester",), ANA, "requester"), (("any",), BEN, "any")]
)
async def test_a_vote_says_under_which_authority_it_was_cast(
    routing: Routing, approvers: tuple[str, ...], person: Person, authority: str
) -> None:
    approval_id = await routing.ask(approvers=approvers)
    await routing.click(person, approval_id)
    assert await authorities(routing, approval_id) == [(person.name, authority)]


# --------------------------------------------------------------------------------------------------- looking up


async def test_where_nothing_has_to_be_known_nothing_is_looked_up(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(FINANCE, "any"))
    await routing.services.queries.overview(BEN, "chat:w1:", everywhere)
    await routing.click(BEN, approval_id)
    assert routing.chat.asked == []


async def test_members_of_one_workspace_are_told_apart_though_no_address_is_known(routing: Routing) -> None:
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.services.queries.permitted(approval_id, BEN)
    assert not await routing.services.queries.permitted(approval_id, ANA)


async def test_an_overview_asks_about_a_group_once_however_many_approvals_need_it(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    for number in range(5):
        await routing.ask(approvers=(FINANCE,), call_id=f"c{number}")
    assert len((await routing.services.queries.overview(BEN, "chat:w1:", everywhere)).to_decide) == 5
    assert routing.chat.asked == [(BEN.person_id, FINANCE)]


async def test_what_changed_while_it_was_looked_up_is_judged_with_what_is_known(
    routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked of nobody's groups when the click came: the row is read again in the transaction, and refuses."""
    approval_id = await routing.ask(approvers=(FINANCE,))
    known = await routing.parts.directory.for_voting(BEN.person_id, [])

    async def looked_up_before(*_: object) -> Known:
        return known

    monkeypatch.setattr(routing.parts.directory, "for_voting", looked_up_before)
    assert isinstance(await routing.click(BEN, approval_id), Refused)


# --------------------------------------------------------------------------------------------------- editing


async def test_an_edit_voids_what_others_said_and_its_author_requests_the_edited_call(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2)
    await routing.click(BEN, approval_id)
    changed = await routing.edit(CHLOE, approval_id, {"what": "chair"})
    assert isinstance(changed, Settled)
    assert "Someone else" in changed.text
    row = await routing.row(approval_id)
    assert (row.edited_by, row.approved_digest, row.approved_arguments) == (CHLOE.person_id, None, {"what": "chair"})
    assert [vote.name for vote in await routing.votes(approval_id)] == ["Chloe"]


async def test_of_an_edit_and_an_approval_at_once_one_counts(routing: Routing) -> None:
    approval_id = await routing.ask()
    results = await asyncio.gather(routing.edit(BEN, approval_id, {"what": "chair"}), routing.click(CHLOE, approval_id))
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]
