"""Handing an approval over: to a colleague who may decide it, or withdrawing it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.approvals.directory import REMEMBERED
from bot.approvals.requests import answer_of
from bot.domain import AlreadySettled, ApprovalView, Person, Refused, Settled, Unknown
from bot.records import threads
from graph.interrupts import Withdrawn
from tests.bot.conftest import until
from tests.bot.routing import ANA, ANA_BY_MAIL, BEN, BEN_BY_MAIL, CARA, CHLOE, FAR, STRANGER, THREAD, Routing
from tests.support.overviews import everywhere

FINANCE = "chat-group:w1:finance"


# --------------------------------------------------------------------------------------------------- handing over
async def test_whoever_may_decide_hands_it_to_another_who_may_and_both_may_then(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id, CHLOE.person_id))
    said = await routing.hand(BEN, approval_id, CHLOE)
    assert said == Settled("Asked chloe. You can still approve.", final=False)
    card = await until(lambda: routing.chat.view(CHLOE.person_id))
    assert card.handed_to == ("chloe",)
    await until(lambda: (here := routing.chat.view(THREAD)) and here.handed_to == ("chloe",))
    assert await routing.services.queries.permitted(approval_id, BEN)
    assert isinstance(await routing.click(CHLOE, approval_id), Settled)
    assert isinstance(await routing.click(BEN, approval_id), AlreadySettled)


async def test_handing_over_twice_shows_one_card(routing: Routing) -> None:
    approval_id = await routing.ask()
    said = [await routing.hand(BEN, approval_id, CHLOE) for _ in range(2)]
    assert [type(each) for each in said] == [Settled, Settled]
    await routing.hand(BEN, approval_id, ANA)
    assert (await routing.row(approval_id)).handed_to == (CHLOE.person_id, ANA.person_id)
    assert len(await routing.services.queries.shown(approval_id)) == 3


async def test_only_whoever_may_decide_or_asked_for_it_can_hand_it_over(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id, CHLOE.person_id))
    for nobody in (STRANGER, CARA):
        assert isinstance(await routing.hand(nobody, approval_id, BEN), Refused)
        assert await routing.services.approvals.colleagues(approval_id, nobody) == ()
    assert (await routing.row(approval_id)).handed_to == ()


async def test_under_four_eyes_its_requester_asks_a_colleague_and_still_may_not_decide(routing: Routing) -> None:
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.hand(ANA, approval_id, BEN) == Settled("Asked ben.", final=False)
    assert (await routing.row(approval_id)).handed_to == (BEN.person_id,)
    assert await routing.click(ANA, approval_id) == Refused("You requested or edited this; someone else must approve.")


async def test_colleagues_are_those_who_may_decide_and_were_not_asked_yet(routing: Routing) -> None:
    for person in (ANA, BEN, CHLOE, STRANGER):
        await seen(routing, person)
    approval_id = await routing.ask(approvers=(ANA.person_id, BEN.person_id, CHLOE.person_id))

    async def listed(person: Person) -> list[str]:
        return [each.person_id for each in await routing.services.approvals.colleagues(approval_id, person)]

    assert await listed(ANA) == [BEN.person_id, CHLOE.person_id]
    await routing.hand(ANA, approval_id, BEN)
    assert await listed(ANA) == [CHLOE.person_id]
    await routing.click(CHLOE, approval_id)
    assert await listed(ANA) == []


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
    routing: Routing, ask: dict[str, Any], *, offered: bool
) -> None:
    """Rule 6: the policy says who decides, and nobody becomes an approver by being asked."""
    approval_id = await routing.ask(**ask)
    view = await until(lambda: routing.chat.view(THREAD))
    assert view.handing_offered is offered
    if not offered:
        who = BEN if ask["approvers"] == (BEN.person_id,) or "self_approval" in ask else ANA
        assert await routing.hand(who, approval_id, CHLOE) == Refused("No one else can approve this.")


async def test_it_is_offered_once_the_call_is_escalated(routing: Routing) -> None:
    escalating = {"escalate_after": 10.0, "escalate_to": (BEN.person_id,)}
    approval_id = await routing.ask(approvers=("requester",), **escalating)
    assert await routing.hand(ANA, approval_id, BEN) == Refused("No one else can approve this.")
    routing.clock.move(11)
    assert isinstance(await routing.hand(ANA, approval_id, BEN), Settled)


@pytest.mark.parametrize("to", [ANA, STRANGER, Person("web:zoe", "Zoe"), Person("nonsense", "")])
async def test_nobody_who_may_not_decide_is_handed_it(routing: Routing, to: Person) -> None:
    approval_id = await routing.ask(self_approval="fourEyes")
    refused = await routing.hand(BEN, approval_id, to)
    assert isinstance(refused, Refused)
    assert refused.text.endswith("can’t approve this.")
    assert (await routing.row(approval_id)).handed_to == ()
    assert len(await routing.services.queries.shown(approval_id)) == 1


async def test_of_both_it_is_looked_up_whether_they_may(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(FINANCE,))
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    refused = await routing.hand(BEN, approval_id, CHLOE)
    assert refused == Refused("Couldn’t check whether chloe can approve this. Try again in a moment.")
    routing.chat.groups[FINANCE][CHLOE.person_id] = True
    assert isinstance(await routing.hand(BEN, approval_id, CHLOE), Settled)


async def test_it_may_be_handed_to_somebody_on_another_platform_whom_the_rule_names(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id, CARA.person_id))
    assert isinstance(await routing.services.queries.approval(approval_id, "mail:w2:"), Unknown)
    await routing.hand(BEN, approval_id, CARA)
    await until(lambda: routing.mail.view(CARA.person_id))
    assert isinstance(await routing.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert [
        s.post.place.key for s in (await routing.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    ] == [CARA.person_id]
    assert isinstance(await routing.click(CARA, approval_id), Settled)


async def test_what_is_settled_is_handed_to_nobody(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    approval_id = await routing.ask(approvers=(FINANCE,))
    await routing.click(BEN, approval_id)
    assert isinstance(await routing.hand(BEN, approval_id, CHLOE), AlreadySettled)
    assert isinstance(await routing.hand(BEN, "unheard of", CHLOE), Unknown)


async def test_what_one_may_decide_oneself_one_does_not_hand_to_oneself(routing: Routing) -> None:
    assert isinstance(await routing.hand(BEN, await routing.ask(), BEN), Refused)


async def test_somebody_who_was_never_seen_is_called_what_their_platform_calls_them(routing: Routing) -> None:
    approval_id = await routing.ask()
    said = await routing.hand_to(BEN, approval_id, CHLOE.person_id, "Chloé C.")
    assert said == Settled("Asked Chloé C. You can still approve.", final=False)
    card = await until(lambda: routing.chat.view(CHLOE.person_id))
    assert card.handed_to == ("Chloé C.",)


async def test_what_is_known_of_somebody_is_not_overwritten_by_their_name(routing: Routing) -> None:
    at_home = Person(CHLOE.person_id, "Chloe", time_zone="Europe/Berlin")
    await routing.click(at_home, await routing.ask(call_id="another"))
    await routing.hand_to(BEN, await routing.ask(), CHLOE.person_id, "Somebody else")
    async with routing.database.reading() as tx:
        assert await threads.person(tx, CHLOE.person_id) == at_home


async def seen(routing: Routing, *people: Person) -> None:
    """Each has decided something, so that they are known with their address."""
    routing.same_human(*people)
    address = f"{people[0].name.lower()}@example.com"
    for person in people:
        await routing.click(replace(person, email=address), await routing.ask(FAR, call_id=person.person_id))


async def test_whoever_has_an_address_is_asked_where_they_may_decide(routing: Routing) -> None:
    await seen(routing, CARA)
    approval_id = await routing.ask(approvers=(BEN.person_id, CARA.person_id))
    said = await routing.hand_to(BEN, approval_id, " Cara@Example.com ")
    assert said == Settled("Asked Cara. You can still approve.", final=False)
    await until(lambda: routing.mail.view(CARA.person_id))


async def test_of_several_accounts_the_one_in_the_same_workspace_is_asked(routing: Routing) -> None:
    await seen(routing, BEN_BY_MAIL, BEN)
    approval_id = await routing.ask(FAR)
    await routing.hand_to(ANA, approval_id, "ben@example.com")
    assert (await routing.row(approval_id)).handed_to == (BEN.person_id,)


async def test_of_several_accounts_one_that_may_decide_is_asked(routing: Routing) -> None:
    await seen(routing, BEN_BY_MAIL, BEN)
    approval_id = await routing.ask(approvers=(CARA.person_id, BEN.person_id))
    await routing.hand_to(CARA, approval_id, "ben@example.com")
    assert (await routing.row(approval_id)).handed_to == (BEN.person_id,)


async def test_an_address_of_nobody_who_may_decide_says_so(routing: Routing) -> None:
    approval_id = await routing.ask(self_approval="fourEyes")
    assert await routing.hand_to(BEN, approval_id, "zoe@example.com") == Refused("No Countersign user has that email.")
    await seen(routing, ANA)
    assert "can’t approve this" in (await routing.hand_to(BEN, approval_id, "ana@example.com")).text
    await seen(routing, BEN)
    assert await routing.hand_to(BEN, approval_id, "ben@example.com") == Refused("Choose someone else.")
    assert (await routing.row(approval_id)).handed_to == ()


async def test_an_address_that_is_somebody_elses_by_now_names_nobody(routing: Routing) -> None:
    await seen(routing, CARA)
    approval_id = await routing.ask(approvers=(BEN.person_id, CARA.person_id))
    routing.mail.emails[CARA.person_id] = "cara.new@example.com"
    routing.clock.now += REMEMBERED
    assert await routing.hand_to(BEN, approval_id, "cara@example.com") == Refused("No Countersign user has that email.")


# --------------------------------------------------------------------------------------------------- taking back
async def test_the_requester_withdraws_and_the_model_is_told_who_did(routing: Routing) -> None:
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    await until(lambda: routing.chat.view(THREAD) and routing.mail.view(FAR))
    assert await routing.services.approvals.withdraw_request("k", approval_id, ANA) == Settled("Withdrawn.")
    await until(lambda: (far := routing.mail.view(FAR)) and far.status == "withdrawn")
    async with routing.database.reading() as tx:
        assert await answer_of(tx, await routing.row(approval_id)) == Withdrawn(by="Ana")
    assert routing.engine.woken == [THREAD]
    late = await routing.click(BEN, approval_id)
    assert late == AlreadySettled("This request was withdrawn.", gone=True)


async def test_nobody_else_withdraws_it(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)
    for person in (BEN, CARA, STRANGER):
        assert isinstance(await routing.services.approvals.withdraw_request("k", approval_id, person), Refused)
    assert isinstance(await routing.services.approvals.withdraw_request("k", "unheard of", ANA), Unknown)
    assert (await routing.row(approval_id)).status == "pending"


async def test_the_requester_withdraws_with_another_account_of_theirs(routing: Routing) -> None:
    routing.same_human(ANA, ANA_BY_MAIL)
    approval_id = await routing.ask(FAR)
    await routing.click(Person(ANA.person_id, "Ana", email="ana@example.com"), await routing.ask(call_id="another"))
    assert isinstance(await routing.services.approvals.withdraw_request("k", approval_id, ANA_BY_MAIL), Settled)


async def test_the_same_withdrawal_delivered_twice_resumes_once(routing: Routing) -> None:
    approval_id = await routing.ask()
    said = [await routing.services.approvals.withdraw_request(key, approval_id, ANA) for key in ("k", "k", "other")]
    assert [type(each) for each in said] == [Settled, Settled, AlreadySettled]
    assert routing.engine.woken == [THREAD]


async def test_of_a_withdrawal_and_an_approval_at_once_one_settles(routing: Routing) -> None:
    approval_id = await routing.ask()
    results = await asyncio.gather(
        routing.services.approvals.withdraw_request("k", approval_id, ANA), routing.click(BEN, approval_id)
    )
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]
    assert (await routing.row(approval_id)).status in {"withdrawn", "approved"}
    assert routing.engine.woken == [THREAD]
