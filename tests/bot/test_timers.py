"""While nobody decides: reminders, escalation, expiry, once each, whatever is restarted when."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.requests import answer_of, timer_kind, timers_of
from bot.crypto import NewId
from bot.domain import AlreadySettled, ApprovalView, Refused, Settled
from bot.records import deliveries
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from graph.interrupts import Expired
from policies.model import Ask
from tests.bot.conftest import SetClock, until
from tests.bot.routing import ANA, BEN, CARA, CHLOE, FAR, NEAR, THREAD, Routing
from tests.bot.stubs import FragileAgent, make_turn_handler
from tests.support.overviews import everywhere


async def ring(routing: Routing, *, dying: bool = False) -> list[str]:
    """Handle every timer that is due, as the engine would; their keys. `dying`: only as far as its transaction."""
    handler = make_turn_handler(
        routing.database, routing.outbox, routing.clock, routing.parts, FragileAgent(), routing.engine
    )
    rung: list[str] = []
    while True:
        async with routing.database.reading() as tx:
            head = await deliveries.head(tx, THREAD, routing.clock())
        if head is None or head.kind != "timer":
            return rung
        rung.append(head.key)
        if dying:
            async with routing.database.writing(THREAD) as tx:
                await routing.parts.requests.on_timer(tx, head)
            return rung
        await handler.handle(head)


async def test_after_a_while_those_who_may_decide_are_reminded_once_beside_every_card(routing: Routing) -> None:
    approval_id = await routing.ask(FAR, NEAR, remind_after=60.0)
    assert await ring(routing) == []
    routing.clock.move(60)
    assert await ring(routing) == [f"remind:{approval_id}"]
    routing.clock.move(3600)
    assert await ring(routing) == []
    await until(lambda: routing.chat.notices(THREAD) and routing.chat.notices(NEAR) and routing.mail.notices(FAR))
    (said,) = routing.chat.notices(THREAD)
    assert said == ("Reminder: workshop: make needs approval. Requested by Ana. Approver: anyone.")
    assert (routing.chat.notices(NEAR), routing.mail.notices(FAR)) == ([said], [said])


async def test_a_reminder_of_a_named_agents_call_says_which_one_it_is(routing: Routing) -> None:
    await routing.ask(remind_after=60.0, agent="finance")
    routing.clock.move(60)
    await ring(routing)
    await until(lambda: routing.chat.notices(THREAD))
    (said,) = routing.chat.notices(THREAD)
    assert said == (
        "Reminder: workshop: make needs approval. Requested by Ana through the finance agent. Approver: anyone."
    )


async def test_a_reminder_of_another_agents_call_names_its_program_on_the_same_line(routing: Routing) -> None:
    await routing.ask(remind_after=60.0, client="claude-code\nRejected")
    routing.clock.move(60)
    await ring(routing)
    await until(lambda: routing.chat.notices(THREAD))
    (said,) = routing.chat.notices(THREAD)
    assert "Requested by Ana through claude-code Rejected. Approver:" in said


async def test_a_reminder_whose_process_died_is_not_repeated(routing: Routing) -> None:
    await routing.ask(remind_after=60.0)
    routing.clock.move(60)
    await ring(routing, dying=True)
    await ring(routing)
    await until(lambda: routing.chat.notices(THREAD))
    await routing.outbox.stop(1.0)
    assert len(routing.chat.notices(THREAD)) == 1


@pytest.mark.parametrize("how", ["decided", "withdrawn"])
async def test_of_what_is_settled_nobody_is_reminded_and_nothing_is_escalated(routing: Routing, how: str) -> None:
    approval_id = await routing.ask(remind_after=60.0, escalate_after=120.0, escalate_to=(CARA.person_id,))
    if how == "decided":
        await routing.click(BEN, approval_id)
    else:
        await routing.services.approvals.withdraw_request("k", approval_id, ANA)
    async with routing.database.writing(UNLOCKED) as tx:
        await deliveries.done(tx, f"resume:{approval_id}")
    routing.clock.move(3600)
    assert await ring(routing) == [f"remind:{approval_id}", f"escalate:{approval_id}"]
    await routing.outbox.stop(1.0)
    assert routing.chat.notices(THREAD) == []
    assert routing.mail.shown == {}


async def test_in_time_others_may_decide_and_get_the_card_which_says_so_everywhere(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CARA.person_id,))
    assert isinstance(await routing.click(CARA, approval_id), Refused)
    before = await routing.view(approval_id)
    assert (before.may_decide, before.escalates_at) == (BEN.person_id, routing.clock() + 120)
    routing.clock.move(120)
    assert await ring(routing) == [f"escalate:{approval_id}"]
    card = await until(lambda: routing.mail.view(CARA.person_id))
    assert (card.may_decide, card.escalates_at) == (f"{BEN.person_id} or Cara", None)
    assert CARA.person_id in card.approvers
    await until(lambda: (here := routing.chat.view(THREAD)) and here.may_decide == f"{BEN.person_id} or Cara")
    assert isinstance(await routing.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert [
        s.post.place.key for s in (await routing.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    ] == [CARA.person_id]
    assert await routing.click(CARA, approval_id) == Settled("Approved.")
    assert [vote.authority for vote in await routing.votes(approval_id)] == ["escalation"]


async def test_others_may_decide_from_that_moment_on_even_before_the_timer_was_handled(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CHLOE.person_id,))
    routing.clock.move(119)
    assert not await routing.services.queries.permitted(approval_id, CHLOE)
    routing.clock.move(1)
    assert await routing.services.queries.permitted(approval_id, CHLOE)


async def test_after_a_restart_the_timers_are_still_set(
    routing: Routing, database: Database, clock: SetClock, new_id: NewId
) -> None:
    approval_id = await routing.ask(
        approvers=(BEN.person_id,), remind_after=60.0, escalate_after=120.0, escalate_to=(CARA.person_id,)
    )
    await until(lambda: routing.chat.view(THREAD))
    await routing.outbox.stop(1.0)
    clock.move(200)
    after = Routing(database, clock, new_id)
    after.chat.shown.update(routing.chat.shown)  # the chat was not restarted
    assert await ring(after) == [f"remind:{approval_id}", f"escalate:{approval_id}"]
    await until(lambda: after.chat.notices(THREAD) and after.mail.view(CARA.person_id))
    await after.outbox.stop(1.0)


async def test_a_settled_card_names_those_who_might_have_decided_then(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(CARA.person_id,))
    await routing.click(BEN, approval_id)
    routing.clock.move(3600)
    view = await routing.view(approval_id)
    assert (view.may_decide, view.escalates_at) == ("Ben", None)


async def test_what_has_expired_is_neither_escalated_nor_decided(routing: Routing) -> None:
    approval_id = await routing.ask(
        expires_in=100.0, remind_after=99.0, escalate_after=100.0, escalate_to=(CARA.person_id,)
    )
    routing.clock.move(100)
    assert isinstance(await routing.click(BEN, approval_id), AlreadySettled)
    assert await ring(routing) == [f"remind:{approval_id}", f"expire:{approval_id}"]
    assert (await routing.row(approval_id)).status == "expired"
    await routing.outbox.stop(1.0)
    assert routing.chat.notices(THREAD) == []
    assert routing.mail.shown == {}


async def test_whoever_it_escalates_to_may_decide_though_no_platform_knows_where_they_are(routing: Routing) -> None:
    nobody = "pigeon:w9:zoe"
    approval_id = await routing.ask(
        approvers=(BEN.person_id,), escalate_after=120.0, escalate_to=(nobody, CHLOE.person_id)
    )
    routing.clock.move(120)
    assert await ring(routing) == [f"escalate:{approval_id}"]
    assert len(await routing.services.queries.shown(approval_id)) == 2
    assert isinstance(await routing.click(CHLOE, approval_id), Settled)


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


async def test_whoever_waits_for_timers_is_told_that_one_was_set(routing: Routing) -> None:
    await routing.ask(expires_in=None)
    assert routing.engine.timers_set == 0
    await routing.ask(call_id="another", expires_in=60.0, remind_after=30.0)
    assert routing.engine.timers_set == 2


async def test_the_clock_may_go_back_and_nothing_rings_early(routing: Routing) -> None:
    approval_id = await routing.ask(expires_in=100.0)
    routing.clock.move(-3600)
    assert await ring(routing) == []
    routing.clock.move(3600 + 99)
    assert await ring(routing) == []
    routing.clock.move(1)
    assert await ring(routing) == [f"expire:{approval_id}"]


async def test_an_expiry_whose_process_died_goes_on_and_tells_the_model_once(routing: Routing) -> None:
    approval_id = await routing.ask(expires_in=100.0)
    routing.clock.move(100)
    assert await ring(routing, dying=True) == await ring(routing) == [f"expire:{approval_id}"]
    async with routing.database.reading() as tx:
        assert await answer_of(tx, await routing.row(approval_id)) == Expired()
    assert await ring(routing) == []
    await until(lambda: (card := routing.chat.view(THREAD)) and card.status == "expired")
