"""Handing an approval over: to a colleague who may decide it, or withdrawing it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.approvals.decisions import NOBODY, ONLY_YOU
from bot.approvals.directory import REMEMBERED
from bot.approvals.requests import answer_of
from bot.domain import AlreadySettled, ApprovalView, Person, Refused, Settled, Unknown
from bot.records import threads
from graph.interrupts import Withdrawn
from tests.bot.conftest import until
from tests.bot.desks import ANA, ANA_BY_MAIL, BEN, BEN_BY_MAIL, CARA, CHLOE, FAR, STRANGER, THREAD, Desks
from tests.support.overviews import everywhere

FINANCE = "chat-group:w1:finance"


# --------------------------------------------------------------------------------------------------- handing over
async def test_whoever_may_decide_hands_it_to_another_who_may_and_both_may_then(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id, CHLOE.person_id))
    said = await desks.hand(BEN, approval_id, CHLOE)
    assert said == Settled("chloe was asked to decide. You still may, too.", final=False)
    card = await until(lambda: desks.chat.view(CHLOE.person_id))
    assert card.handed_to == ("chloe",)
    await until(lambda: (here := desks.chat.view(THREAD)) and here.handed_to == ("chloe",))
    assert await desks.services.queries.permitted(approval_id, BEN)
    assert isinstance(await desks.click(CHLOE, approval_id), Settled)
    assert isinstance(await desks.click(BEN, approval_id), AlreadySettled)


async def test_handing_over_twice_shows_one_card(desks: Desks) -> None:
    approval_id = await desks.ask()
    said = [await desks.hand(BEN, approval_id, CHLOE) for _ in range(2)]
    assert [type(each) for each in said] == [Settled, Settled]
    await desks.hand(BEN, approval_id, ANA)
    assert (await desks.row(approval_id)).handed_to == (CHLOE.person_id, ANA.person_id)
    assert len(await desks.services.queries.shown(approval_id)) == 3


async def test_only_whoever_may_decide_can_hand_it_over(desks: Desks) -> None:
    approval_id = await desks.ask(self_approval="fourEyes")
    assert isinstance(await desks.hand(ANA, approval_id, BEN), Refused)
    assert isinstance(await desks.hand(STRANGER, approval_id, BEN), Refused)
    assert (await desks.row(approval_id)).handed_to == ()


@pytest.mark.parametrize(
    ("ask", "offered"),
    [
        ({"approvers": ("requester",)}, False),
        ({"approvers": ("requester", ANA.person_id)}, False),
        ({"approvers": (BEN.person_id,)}, False),
        ({"approvers": ("requester", BEN.person_id), "self_approval": "fourEyes"}, False),
        ({"approvers": ("requester", BEN.person_id)}, True),
        ({"approvers": (BEN.person_id, CHLOE.person_id), "self_approval": "fourEyes"}, True),
        ({"approvers": (FINANCE,)}, True),
        ({"approvers": ("channel",)}, True),
        ({"approvers": ("any",), "self_approval": "fourEyes"}, True),
    ],
)
async def test_it_is_offered_where_the_rule_lets_others_decide(
    desks: Desks, ask: dict[str, Any], *, offered: bool
) -> None:
    """Rule 6: the policy says who decides, and nobody becomes an approver by being asked."""
    approval_id = await desks.ask(**ask)
    view = await until(lambda: desks.chat.view(THREAD))
    assert view.handing_offered is offered
    if not offered:
        who = BEN if ask["approvers"] == (BEN.person_id,) or "self_approval" in ask else ANA
        assert await desks.hand(who, approval_id, CHLOE) == ONLY_YOU


async def test_it_is_offered_once_the_call_is_escalated(desks: Desks) -> None:
    escalating = {"escalate_after": 10.0, "escalate_to": (BEN.person_id,)}
    approval_id = await desks.ask(approvers=("requester",), **escalating)
    assert await desks.hand(ANA, approval_id, BEN) == ONLY_YOU
    desks.clock.move(11)
    assert isinstance(await desks.hand(ANA, approval_id, BEN), Settled)


@pytest.mark.parametrize("to", [ANA, STRANGER, Person("web:zoe", "Zoe"), Person("nonsense", "")])
async def test_nobody_who_may_not_decide_is_handed_it(desks: Desks, to: Person) -> None:
    approval_id = await desks.ask(self_approval="fourEyes")
    refused = await desks.hand(BEN, approval_id, to)
    assert isinstance(refused, Refused)
    assert refused.text.endswith("is not one of the people who may decide this.")
    assert (await desks.row(approval_id)).handed_to == ()
    assert len(await desks.services.queries.shown(approval_id)) == 1


async def test_of_both_it_is_looked_up_whether_they_may(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(FINANCE,))
    desks.chat.groups[FINANCE] = {BEN.person_id: True}
    refused = await desks.hand(BEN, approval_id, CHLOE)
    assert refused == Refused("Whether chloe may decide this could not be found out. Try again in a moment.")
    desks.chat.groups[FINANCE][CHLOE.person_id] = True
    assert isinstance(await desks.hand(BEN, approval_id, CHLOE), Settled)


async def test_it_may_be_handed_to_somebody_on_another_platform_whom_the_rule_names(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id, CARA.person_id))
    assert isinstance(await desks.services.queries.approval(approval_id, "mail:w2:"), Unknown)
    await desks.hand(BEN, approval_id, CARA)
    await until(lambda: desks.mail.view(CARA.person_id))
    assert isinstance(await desks.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert [
        s.post.place.key for s in (await desks.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    ] == [CARA.person_id]
    assert isinstance(await desks.click(CARA, approval_id), Settled)


async def test_what_is_settled_is_handed_to_nobody(desks: Desks) -> None:
    desks.chat.groups[FINANCE] = {BEN.person_id: True}
    approval_id = await desks.ask(approvers=(FINANCE,))
    await desks.click(BEN, approval_id)
    assert isinstance(await desks.hand(BEN, approval_id, CHLOE), AlreadySettled)
    assert isinstance(await desks.hand(BEN, "unheard of", CHLOE), Unknown)


async def test_what_one_may_decide_oneself_one_does_not_hand_to_oneself(desks: Desks) -> None:
    assert isinstance(await desks.hand(BEN, await desks.ask(), BEN), Refused)


async def test_somebody_who_was_never_seen_is_called_what_their_platform_calls_them(desks: Desks) -> None:
    approval_id = await desks.ask()
    said = await desks.hand_to(BEN, approval_id, CHLOE.person_id, "Chloé C.")
    assert said == Settled("Chloé C. was asked to decide. You still may, too.", final=False)
    card = await until(lambda: desks.chat.view(CHLOE.person_id))
    assert card.handed_to == ("Chloé C.",)


async def test_what_is_known_of_somebody_is_not_overwritten_by_their_name(desks: Desks) -> None:
    at_home = Person(CHLOE.person_id, "Chloe", time_zone="Europe/Berlin")
    await desks.click(at_home, await desks.ask(call_id="another"))
    await desks.hand_to(BEN, await desks.ask(), CHLOE.person_id, "Somebody else")
    async with desks.database.reading() as tx:
        assert await threads.person(tx, CHLOE.person_id) == at_home


async def seen(desks: Desks, *people: Person) -> None:
    """Each has decided something, so that they are known with their address."""
    desks.same_human(*people)
    address = f"{people[0].name.lower()}@example.com"
    for person in people:
        await desks.click(replace(person, email=address), await desks.ask(FAR, call_id=person.person_id))


async def test_whoever_has_an_address_is_asked_where_they_may_decide(desks: Desks) -> None:
    await seen(desks, CARA)
    approval_id = await desks.ask(approvers=(BEN.person_id, CARA.person_id))
    said = await desks.hand_to(BEN, approval_id, " Cara@Example.com ")
    assert said == Settled("Cara was asked to decide. You still may, too.", final=False)
    await until(lambda: desks.mail.view(CARA.person_id))


async def test_of_several_accounts_the_one_in_the_same_workspace_is_asked(desks: Desks) -> None:
    await seen(desks, BEN_BY_MAIL, BEN)
    approval_id = await desks.ask(FAR)
    await desks.hand_to(ANA, approval_id, "ben@example.com")
    assert (await desks.row(approval_id)).handed_to == (BEN.person_id,)


async def test_of_several_accounts_one_that_may_decide_is_asked(desks: Desks) -> None:
    await seen(desks, BEN_BY_MAIL, BEN)
    approval_id = await desks.ask(approvers=(CARA.person_id, BEN.person_id))
    await desks.hand_to(CARA, approval_id, "ben@example.com")
    assert (await desks.row(approval_id)).handed_to == (BEN.person_id,)


async def test_an_address_of_nobody_who_may_decide_says_so(desks: Desks) -> None:
    approval_id = await desks.ask(self_approval="fourEyes")
    assert await desks.hand_to(BEN, approval_id, "zoe@example.com") == NOBODY
    await seen(desks, ANA)
    assert "is not one of the people" in (await desks.hand_to(BEN, approval_id, "ana@example.com")).text
    await seen(desks, BEN)
    assert await desks.hand_to(BEN, approval_id, "ben@example.com") == Refused("You may decide this yourself.")
    assert (await desks.row(approval_id)).handed_to == ()


async def test_an_address_that_is_somebody_elses_by_now_names_nobody(desks: Desks) -> None:
    await seen(desks, CARA)
    approval_id = await desks.ask(approvers=(BEN.person_id, CARA.person_id))
    desks.mail.emails[CARA.person_id] = "cara.new@example.com"
    desks.clock.now += REMEMBERED
    assert await desks.hand_to(BEN, approval_id, "cara@example.com") == NOBODY


# --------------------------------------------------------------------------------------------------- taking back
async def test_the_requester_withdraws_and_the_model_is_told_who_did(desks: Desks) -> None:
    approval_id = await desks.ask(FAR, self_approval="fourEyes")
    await until(lambda: desks.chat.view(THREAD) and desks.mail.view(FAR))
    assert await desks.services.approvals.withdraw_request("k", approval_id, ANA) == Settled("Withdrawn.")
    await until(lambda: (far := desks.mail.view(FAR)) and far.status == "withdrawn")
    async with desks.database.reading() as tx:
        assert await answer_of(tx, await desks.row(approval_id)) == Withdrawn(by="Ana")
    assert desks.engine.woken == [THREAD]
    late = await desks.click(BEN, approval_id)
    assert late == AlreadySettled("This was withdrawn already.")


async def test_nobody_else_withdraws_it(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)
    for person in (BEN, CARA, STRANGER):
        assert isinstance(await desks.services.approvals.withdraw_request("k", approval_id, person), Refused)
    assert isinstance(await desks.services.approvals.withdraw_request("k", "unheard of", ANA), Unknown)
    assert (await desks.row(approval_id)).status == "pending"


async def test_the_requester_withdraws_with_another_account_of_theirs(desks: Desks) -> None:
    desks.same_human(ANA, ANA_BY_MAIL)
    approval_id = await desks.ask(FAR)
    await desks.click(Person(ANA.person_id, "Ana", email="ana@example.com"), await desks.ask(call_id="another"))
    assert isinstance(await desks.services.approvals.withdraw_request("k", approval_id, ANA_BY_MAIL), Settled)


async def test_the_same_withdrawal_delivered_twice_resumes_once(desks: Desks) -> None:
    approval_id = await desks.ask()
    said = [await desks.services.approvals.withdraw_request(key, approval_id, ANA) for key in ("k", "k", "other")]
    assert [type(each) for each in said] == [Settled, Settled, AlreadySettled]
    assert desks.engine.woken == [THREAD]


async def test_of_a_withdrawal_and_an_approval_at_once_one_settles(desks: Desks) -> None:
    approval_id = await desks.ask()
    results = await asyncio.gather(
        desks.services.approvals.withdraw_request("k", approval_id, ANA), desks.click(BEN, approval_id)
    )
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]
    assert (await desks.row(approval_id)).status in {"withdrawn", "approved"}
    assert desks.engine.woken == [THREAD]
