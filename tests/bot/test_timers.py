"""While nobody decides: reminders, escalation, expiry, once each, whatever is restarted when."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.requests import answer_of, timer_kind, timers_of
from bot.crypto import NewId
from bot.domain import AlreadySettled, ApprovalView, Refused, Settled
from bot.records import deliveries
from bot.records.database import Database
from graph.interrupts import Expired
from policies.model import Ask
from tests.bot.conftest import SetClock, until
from tests.bot.desks import ANA, BEN, CARA, CHLOE, FAR, NEAR, THREAD, Desks
from tests.bot.stubs import FragileAgent, make_turn_handler
from tests.support.overviews import everywhere


async def ring(desks: Desks, *, dying: bool = False) -> list[str]:
    """Handle every timer that is due, as the engine would; their keys. `dying`: only as far as its transaction."""
    handler = make_turn_handler(desks.database, desks.outbox, desks.clock, desks.parts, FragileAgent(), desks.engine)
    rung: list[str] = []
    while True:
        async with desks.database.reading() as tx:
            head = await deliveries.head(tx, THREAD, desks.clock())
        if head is None or head.kind != "timer":
            return rung
        rung.append(head.key)
        if dying:
            async with desks.database.writing() as tx:
                await desks.parts.requests.on_timer(tx, head)
            return rung
        await handler.handle(head)


async def test_after_a_while_those_who_may_decide_are_reminded_once_beside_every_card(desks: Desks) -> None:
    approval_id = await desks.ask(FAR, NEAR, remind_after=60.0)
    assert await ring(desks) == []
    desks.clock.move(60)
    assert await ring(desks) == [f"remind:{approval_id}"]
    desks.clock.move(3600)
    assert await ring(desks) == []
    await until(lambda: desks.chat.notices(THREAD) and desks.chat.notices(NEAR) and desks.mail.notices(FAR))
    (said,) = desks.chat.notices(THREAD)
    assert said == ("Reminder: workshop: make, which Ana asked for, still waits for a decision. May decide: anyone.")
    assert (desks.chat.notices(NEAR), desks.mail.notices(FAR)) == ([said], [said])


async def test_a_reminder_whose_process_died_is_not_repeated(desks: Desks) -> None:
    await desks.ask(remind_after=60.0)
    desks.clock.move(60)
    await ring(desks, dying=True)
    await ring(desks)
    await until(lambda: desks.chat.notices(THREAD))
    await desks.outbox.stop(1.0)
    assert len(desks.chat.notices(THREAD)) == 1


@pytest.mark.parametrize("how", ["decided", "withdrawn"])
async def test_of_what_is_settled_nobody_is_reminded_and_nothing_is_escalated(desks: Desks, how: str) -> None:
    approval_id = await desks.ask(remind_after=60.0, escalate_after=120.0, escalate_to=(CARA.person_id,))
    if how == "decided":
        await desks.click(BEN, approval_id)
    else:
        await desks.services.approvals.withdraw_request("k", approval_id, ANA)
    async with desks.database.writing() as tx:
        await deliveries.done(tx, f"resume:{approval_id}")
    desks.clock.move(3600)
    assert await ring(desks) == [f"remind:{approval_id}", f"escalate:{approval_id}"]
    await desks.outbox.stop(1.0)
    assert desks.chat.notices(THREAD) == []
    assert desks.mail.shown == {}


async def test_in_time_others_may_decide_and_get_the_card_which_says_so_everywhere(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CARA.person_id,))
    assert isinstance(await desks.click(CARA, approval_id), Refused)
    before = await desks.view(approval_id)
    assert (before.may_decide, before.escalates_at) == (BEN.person_id, desks.clock() + 120)
    desks.clock.move(120)
    assert await ring(desks) == [f"escalate:{approval_id}"]
    card = await until(lambda: desks.mail.view(CARA.person_id))
    assert (card.may_decide, card.escalates_at) == (f"{BEN.person_id} or Cara", None)
    assert CARA.person_id in card.approvers
    await until(lambda: (here := desks.chat.view(THREAD)) and here.may_decide == f"{BEN.person_id} or Cara")
    assert isinstance(await desks.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert [
        s.post.place.key for s in (await desks.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    ] == [CARA.person_id]
    assert await desks.click(CARA, approval_id) == Settled("Approved.")
    assert [vote.authority for vote in await desks.votes(approval_id)] == ["escalation"]


async def test_others_may_decide_from_that_moment_on_even_before_the_timer_was_handled(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CHLOE.person_id,))
    desks.clock.move(119)
    assert not await desks.services.queries.permitted(approval_id, CHLOE)
    desks.clock.move(1)
    assert await desks.services.queries.permitted(approval_id, CHLOE)


async def test_after_a_restart_the_timers_are_still_set(
    desks: Desks, database: Database, clock: SetClock, new_id: NewId
) -> None:
    approval_id = await desks.ask(
        approvers=(BEN.person_id,), remind_after=60.0, escalate_after=120.0, escalate_to=(CARA.person_id,)
    )
    await until(lambda: desks.chat.view(THREAD))
    await desks.outbox.stop(1.0)
    clock.move(200)
    after = Desks(database, clock, new_id)
    assert await ring(after) == [f"remind:{approval_id}", f"escalate:{approval_id}"]
    await until(lambda: after.chat.notices(THREAD) and after.mail.view(CARA.person_id))
    await after.outbox.stop(1.0)


async def test_a_settled_card_names_those_who_might_have_decided_then(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CARA.person_id,))
    await desks.click(BEN, approval_id)
    desks.clock.move(3600)
    view = await desks.view(approval_id)
    assert (view.may_decide, view.escalates_at) == ("Ben", None)


async def test_what_has_expired_is_neither_escalated_nor_decided(desks: Desks) -> None:
    approval_id = await desks.ask(
        expires_in=100.0, remind_after=99.0, escalate_after=100.0, escalate_to=(CARA.person_id,)
    )
    desks.clock.move(100)
    assert isinstance(await desks.click(BEN, approval_id), AlreadySettled)
    assert await ring(desks) == [f"remind:{approval_id}", f"expire:{approval_id}"]
    assert (await desks.row(approval_id)).status == "expired"
    await desks.outbox.stop(1.0)
    assert desks.chat.notices(THREAD) == []
    assert desks.mail.shown == {}


async def test_whoever_it_escalates_to_may_decide_though_no_platform_knows_where_they_are(desks: Desks) -> None:
    nobody = "pigeon:w9:zoe"
    approval_id = await desks.ask(
        approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(nobody, CHLOE.person_id)
    )
    desks.clock.move(120)
    assert await ring(desks) == [f"escalate:{approval_id}"]
    assert len(await desks.services.queries.shown(approval_id)) == 2
    assert isinstance(await desks.click(CHLOE, approval_id), Settled)


@pytest.mark.parametrize(
    ("how", "bells"),
    [
        ({"expires_in": 60.0, "remind_after": 60.0}, ["expire"]),
        (
            {"expires_in": 60.0, "remind_after": 61.0, "escalate_after": 59.0, "escalate_to": ("p",)},
            ["escalate", "expire"],
        ),
        ({"expires_in": None, "remind_after": 1e15}, ["remind"]),
        ({"expires_in": None, "escalate_after": 1.0}, []),
    ],
)
def test_only_what_can_still_happen_gets_a_timer(how: dict[str, Any], bells: list[str]) -> None:
    timers = timers_of("a", "t", Ask(rule="a rule", **how), 1_000.0)
    assert [timer_kind(timer) for timer in timers] == bells
    assert all(timer.due_at > 1_000.0 for timer in timers)


async def test_whoever_waits_for_timers_is_told_that_one_was_set(desks: Desks) -> None:
    await desks.ask(expires_in=None)
    assert desks.engine.timers_set == 0
    await desks.ask(call_id="another", expires_in=60.0, remind_after=30.0)
    assert desks.engine.timers_set == 2


async def test_the_clock_may_go_back_and_nothing_rings_early(desks: Desks) -> None:
    approval_id = await desks.ask(expires_in=100.0)
    desks.clock.move(-3600)
    assert await ring(desks) == []
    desks.clock.move(3600 + 99)
    assert await ring(desks) == []
    desks.clock.move(1)
    assert await ring(desks) == [f"expire:{approval_id}"]


async def test_an_expiry_whose_process_died_goes_on_and_tells_the_model_once(desks: Desks) -> None:
    approval_id = await desks.ask(expires_in=100.0)
    desks.clock.move(100)
    assert await ring(desks, dying=True) == await ring(desks) == [f"expire:{approval_id}"]
    async with desks.database.reading() as tx:
        assert await answer_of(tx, await desks.row(approval_id)) == Expired()
    assert await ring(desks) == []
    await until(lambda: (card := desks.chat.view(THREAD)) and card.status == "expired")
