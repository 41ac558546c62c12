"""Two things at once, the same thing twice, and what changed in between: each approval is settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from bot.approvals.decisions import BEGUN, TOOL_CHANGED
from bot.domain import AlreadySettled, ApprovalView, Decision, Invalid, Person, Refused, Settled, Unknown
from bot.records import attempts, deliveries
from bot.records.deliveries import Delivery
from graph.calls import digest_of
from graph.ports import CallRecord
from policies.approvers import DURATIONS
from tests.bot.conftest import until
from tests.bot.desks import ANA, BEN, CARA, CHLOE, LAMP, MAKE, THREAD, Desks

FINANCE = "chat-group:w1:finance"
BROKEN = "a\0b\ud800c"
"""What JSON can say and no database keeps."""

Act = Callable[[Desks, str], Awaitable[Any]]


async def approve(desks: Desks, approval_id: str) -> Any:
    return await desks.click(BEN, approval_id)


async def reject(desks: Desks, approval_id: str) -> Any:
    return await desks.click(CHLOE, approval_id, "reject")


async def edit(desks: Desks, approval_id: str) -> Any:
    return await desks.edit(CHLOE, approval_id, {"what": "chair"})


async def withdraw(desks: Desks, approval_id: str) -> Any:
    return await desks.services.approvals.withdraw_request("withdrawal", approval_id, ANA)


async def expire(desks: Desks, approval_id: str) -> Any:
    """As the timer does, once it is due."""
    async with desks.database.writing() as tx:
        timer = Delivery(f"expire:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, 0.0, 0.0)
        settled = await desks.parts.requests.on_timer(tx, timer)
    return Settled("Expired.") if settled else AlreadySettled("")


SETTLING = [approve, reject, edit, withdraw, expire]


@pytest.mark.parametrize("second", SETTLING)
@pytest.mark.parametrize("first", SETTLING)
async def test_of_two_who_settle_at_once_one_does(desks: Desks, first: Act, second: Act) -> None:
    approval_id = await desks.ask()
    results = await asyncio.gather(first(desks, approval_id), second(desks, approval_id))
    kinds = sorted(type(result).__name__ for result in results)
    assert kinds == ["Settled", "Settled"] if first is second else ["AlreadySettled", "Settled"]  # the same key twice
    row = await desks.row(approval_id)
    assert row.settled_key is not None
    assert row.status != "pending"
    assert len(await desks.votes(approval_id)) <= 1


@pytest.mark.parametrize("settle", SETTLING)
async def test_what_is_settled_is_handed_to_nobody_and_escalated_to_nobody(desks: Desks, settle: Act) -> None:
    approval_id = await desks.ask(escalate_after=10.0, escalate_to=(CARA.person_id,))
    await asyncio.gather(settle(desks, approval_id), desks.hand(BEN, approval_id, CHLOE))
    assert (await desks.row(approval_id)).handed_to == ()
    desks.clock.move(10)
    async with desks.database.writing() as tx:
        timer = Delivery(f"escalate:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, 0.0, 0.0)
        assert not await desks.parts.requests.on_timer(tx, timer)
    assert len(await desks.services.queries.shown(approval_id)) == 1


async def test_a_vote_and_a_hand_over_at_once_both_count(desks: Desks) -> None:
    approval_id = await desks.ask(quorum=2)
    await asyncio.gather(approve(desks, approval_id), desks.hand(CHLOE, approval_id, ANA))
    assert (await desks.row(approval_id)).handed_to == (ANA.person_id,)
    assert [vote.name for vote in await desks.votes(approval_id)] == ["Ben"]


async def test_of_two_who_hand_over_at_once_both_are_heard(desks: Desks) -> None:
    approval_id = await desks.ask()
    await asyncio.gather(desks.hand(BEN, approval_id, CHLOE), desks.hand(CHLOE, approval_id, ANA))
    assert (await desks.row(approval_id)).handed_to == (CHLOE.person_id, ANA.person_id)


async def test_handing_on_in_a_circle_widens_nothing(desks: Desks) -> None:
    approval_id = await desks.ask(approvers=(BEN.person_id, CHLOE.person_id), self_approval="fourEyes")
    for giver, taker in ((BEN, CHLOE), (CHLOE, BEN), (BEN, ANA), (CHLOE, CARA)):
        await desks.hand(giver, approval_id, taker)
    row = await desks.row(approval_id)
    assert set(row.handed_to) == {CHLOE.person_id, BEN.person_id}
    assert row.asked.ask.approvers == (BEN.person_id, CHLOE.person_id)
    for person in (ANA, CARA):
        assert isinstance(await desks.click(person, approval_id), Refused)


async def test_a_grant_that_is_revoked_while_it_is_given_again_is_the_new_one(desks: Desks) -> None:
    await desks.click(ANA, await desks.ask(call_id="c1"), always_for=DURATIONS["1 h"])
    (old,) = await desks.services.queries.standing_approvals(ANA)
    again = await desks.ask(call_id="c2")
    await asyncio.gather(
        desks.click(ANA, again, always_for=DURATIONS["8 h"]),
        desks.services.approvals.revoke_standing_approval(old.grant_id, ANA),
    )
    assert [view.until for view in await desks.services.queries.standing_approvals(ANA)] == [
        desks.clock() + DURATIONS["8 h"]
    ]


# --------------------------------------------------------------------------------------------------- once more


async def test_a_click_that_is_delivered_again_lets_go_on_what_only_now_was_settled(desks: Desks) -> None:
    """The first time one of the two could not be looked up; the thread has gone on with the other since."""
    decided, refused = await desks.ask(call_id="c1"), await desks.ask(call_id="c2", approvers=(FINANCE,))
    click = Decision("the very click", BEN, (decided, refused), "approve")
    first = await desks.services.approvals.decide(click)
    assert (type(first[decided]), type(first[refused])) == (Settled, Refused)
    async with desks.database.writing() as tx:
        await deliveries.done(tx, f"resume:{decided}")
    desks.chat.groups[FINANCE] = {BEN.person_id: True}
    second = await desks.services.approvals.decide(click)
    assert (type(second[decided]), type(second[refused])) == (Settled, Settled)
    async with desks.database.reading() as tx:
        head = await deliveries.head(tx, THREAD, desks.clock())
    assert head is not None
    assert head.key == f"resume:{refused}"


async def test_what_is_decided_together_lets_its_thread_go_on_once(desks: Desks) -> None:
    ids = tuple([await desks.ask(call_id=f"c{number}") for number in range(3)])
    results = await desks.services.approvals.decide(Decision("k", BEN, ids[::-1], "approve"))
    assert list(results) == list(ids[::-1])
    async with desks.database.reading() as tx:
        rows = await tx.all(sa.text("SELECT key FROM deliveries WHERE kind = 'resume'"))
    assert len(rows) == 1


@pytest.mark.parametrize("act", [approve, reject, edit, withdraw])
async def test_what_has_expired_is_decided_by_nobody_though_its_timer_is_late(desks: Desks, act: Act) -> None:
    approval_id = await desks.ask(expires_in=60.0)
    desks.clock.move(60)
    assert await act(desks, approval_id) == AlreadySettled("This approval has expired.")
    assert await desks.services.approvals.edit_form(approval_id, BEN) == Refused("This has been settled already.")
    assert isinstance(await desks.hand(BEN, approval_id, CHLOE), AlreadySettled)
    assert (await desks.row(approval_id)).status == "pending"
    assert await expire(desks, approval_id) == Settled("Expired.")


async def begun(desks: Desks, approval_id: str, status: str) -> None:
    """An attempt at its call, which is by now in this status."""
    call = CallRecord(
        thread_id=THREAD,
        call_id=(await desks.row(approval_id)).asked.call_id,
        requester=ANA.person_id,
        tool=MAKE,
        arguments={"what": "lamp"},
        digest=LAMP,
        approval_round=None,
    )
    async with desks.database.writing() as tx:
        await attempts.add(tx, "t1", 1, call, approval_id=None, judged=None, now=desks.clock())
        await attempts.move(tx, "t1", "started", status)


async def test_a_call_that_waits_in_the_middle_is_approved_or_rejected_as_it_is(desks: Desks) -> None:
    """Rule 12: it is asked about again when the rules change while it waits for somebody. Changed then, what its server
    has begun with would be asked about ("try again?") while other arguments run."""
    approval_id = await desks.ask()
    await begun(desks, approval_id, "asking")
    assert await desks.edit(BEN, approval_id, {"what": "chair"}) == BEGUN
    assert await desks.services.approvals.edit_form(approval_id, BEN) == BEGUN
    assert await desks.edit(BEN, approval_id, {"what": "lamp"}) == Settled("Approved.")


async def test_a_call_that_did_nothing_yet_may_be_changed(desks: Desks) -> None:
    """Its server said so by its protocol, as when somebody has to sign in first."""
    approval_id = await desks.ask()
    await begun(desks, approval_id, "nothing")
    assert isinstance(await desks.edit(BEN, approval_id, {"what": "chair"}), Settled)


# --------------------------------------------------------------------------------------------------- authority


async def test_a_vote_counts_by_who_may_decide_when_it_is_cast(desks: Desks) -> None:
    """Not when it is settled: whoever leaves the group later has voted for good (docs/decisions)."""
    desks.chat.groups[FINANCE] = {BEN.person_id: True, CHLOE.person_id: True}
    approval_id = await desks.ask(approvers=(FINANCE,), quorum=2)
    await desks.click(BEN, approval_id)
    desks.chat.groups[FINANCE][BEN.person_id] = False
    assert isinstance(await desks.click(BEN, approval_id, "reject"), Refused)
    assert await desks.click(CHLOE, approval_id) == Settled("Approved.")
    assert [(vote.name, vote.authority) for vote in await desks.votes(approval_id)] == [
        ("Ben", f"member of {FINANCE}"),
        ("Chloe", f"member of {FINANCE}"),
    ]


async def test_what_was_handed_to_somebody_who_left_the_group_is_not_theirs_to_decide(desks: Desks) -> None:
    desks.chat.groups[FINANCE] = {BEN.person_id: True, CHLOE.person_id: True}
    approval_id = await desks.ask(approvers=(FINANCE,))
    assert isinstance(await desks.hand(BEN, approval_id, CHLOE), Settled)
    desks.chat.groups[FINANCE][CHLOE.person_id] = False
    assert isinstance(await desks.click(CHLOE, approval_id), Refused)


# --------------------------------------------------------------------------------------------------- editing


async def test_an_edit_of_a_call_whose_tool_has_changed_since_is_asked_about_once_more(desks: Desks) -> None:
    approval_id = await desks.ask(digest=digest_of(replace(MAKE, input_schema={}), {"what": "lamp"}))
    said = await desks.edit(BEN, approval_id, {"what": "chair"}, always_for=DURATIONS["1 h"])
    assert said == Settled(f"Changed. {TOOL_CHANGED}")
    row = await desks.row(approval_id)
    assert (row.status, row.approved_digest) == ("approved", None)
    assert await desks.services.queries.standing_approvals(BEN) == ()


async def test_an_edit_of_a_call_whose_tool_is_as_it_was_runs(desks: Desks) -> None:
    approval_id = await desks.ask()
    assert await desks.edit(BEN, approval_id, {"what": "chair"}) == Settled("Approved with changes.")
    assert (await desks.row(approval_id)).approved_digest == digest_of(MAKE, {"what": "chair"})


async def test_the_card_of_an_edited_call_says_that_votes_before_do_not_count(desks: Desks) -> None:
    approval_id = await desks.ask(quorum=2)
    await desks.click(BEN, approval_id)
    await desks.edit(CHLOE, approval_id, {"what": "chair"})
    await until(lambda: (card := desks.chat.view(THREAD)) and card.status == "approved")
    (reference,) = desks.chat.shown
    anew = (await desks.row(approval_id)).asked.model_copy(update={"round": 2})
    async with desks.database.writing() as tx:
        await desks.parts.requests.record(tx, THREAD, anew)
    why = "Asked anew, since Chloe changed the call: what was voted on it before does not count."

    def card() -> ApprovalView | None:
        content = desks.chat.shown[reference].content
        return content if isinstance(content, ApprovalView) and content.status == "void" else None

    assert (await until(card)).result == why


async def test_asking_anew_voids_nothing_that_ended_otherwise(desks: Desks) -> None:
    approval_id = await desks.ask()
    await withdraw(desks, approval_id)
    anew = (await desks.row(approval_id)).asked.model_copy(update={"round": 2})
    async with desks.database.writing() as tx:
        await desks.parts.requests.record(tx, THREAD, anew)
    assert (await desks.row(approval_id)).status == "withdrawn"


# --------------------------------------------------------------------------------------------------- bad input


async def test_texts_that_no_database_keeps_make_no_defect(desks: Desks) -> None:
    person = Person(BEN.person_id, BROKEN)
    approval_id = await desks.ask(rejections=2)
    assert isinstance(await desks.click(person, approval_id, "reject", reason=BROKEN), Settled)
    (vote,) = await desks.votes(approval_id)
    assert (vote.name, vote.reason) == ("ab?c", "ab?c")
    assert isinstance(await desks.edit(BEN, await desks.ask(call_id="c2"), {"what": BROKEN}), Settled)
    assert isinstance(await desks.edit(BEN, await desks.ask(call_id="c3"), {BROKEN: "x"}), Invalid)
    assert isinstance(
        await desks.hand_to(BEN, await desks.ask(call_id="c4", approvers=(BEN.person_id,)), BROKEN), Refused
    )


@pytest.mark.parametrize("nobody", ["", BROKEN, "x" * 100_000, "'; DROP TABLE approvals; --"])
async def test_an_approval_that_does_not_exist_is_unknown(desks: Desks, nobody: str) -> None:
    assert isinstance(await desks.click(BEN, nobody), Unknown)
    assert isinstance(await desks.hand(BEN, nobody, CHLOE), Unknown)
    assert isinstance(await desks.services.approvals.withdraw_request("k", nobody, ANA), Unknown)
    assert isinstance(await desks.services.approvals.edit_form(nobody, BEN), Unknown)
    assert isinstance(await desks.services.approvals.revoke_standing_approval(nobody, BEN), Unknown)
    assert not await desks.services.queries.permitted(nobody, BEN)


# --------------------------------------------------------------------------------------------------- locks


async def test_whoever_compares_before_they_write_holds_the_row(desks: Desks) -> None:
    """Where there is more than one writer; and in the order of their ids, whatever order a click names them in."""
    held: list[str] = []

    def note(_connection: Any, statement: Any, *_: Any) -> None:
        if isinstance(statement, sa.Select):
            compiled = statement.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's
            if compiled.string.endswith("FOR UPDATE"):
                held.append(str(compiled.params["approval_id_1"]))

    ids = [await desks.ask(call_id=f"c{number}", quorum=2) for number in range(3)]
    async with desks.database.writing() as tx:
        sa.event.listen(tx.connection, "before_execute", note)
    await desks.services.approvals.decide(Decision("k", BEN, tuple(reversed(ids)), "approve"))
    assert held == sorted(ids)
    await desks.hand(BEN, ids[0], CHLOE)
    await desks.services.approvals.withdraw_request("k2", ids[1], ANA)
    async with desks.database.writing() as tx:
        timer = Delivery(f"remind:{ids[2]}", THREAD, "timer", {"approval": ids[2]}, False, 0.0, 0.0)
        await desks.parts.requests.on_timer(tx, timer)
    assert held[3:] == ids
