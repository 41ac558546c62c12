"""Two things at once, the same thing twice, and what changed in between: each approval is settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from bot.domain import (
    AlreadySettled,
    ApprovalView,
    Decision,
    Invalid,
    OutcomeChoice,
    Person,
    Refused,
    Settled,
    Unknown,
)
from bot.records import approvals, attempts, deliveries
from bot.records.database import NotLocked
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from graph.ports import CallRecord
from policies.approvers import DURATIONS, digest_of
from tests.bot.conftest import until
from tests.bot.routing import ANA, BEN, CARA, CHLOE, LAMP, MAKE, THREAD, Routing
from tests.support import postgres_cluster

FINANCE = "chat-group:w1:finance"
BROKEN = "a\0b\ud800c"
"""What JSON can say and no database keeps."""

Act = Callable[[Routing, str], Awaitable[Any]]


async def approve(routing: Routing, approval_id: str) -> Any:
    return await routing.click(BEN, approval_id)


async def reject(routing: Routing, approval_id: str) -> Any:
    return await routing.click(CHLOE, approval_id, "reject")


async def edit(routing: Routing, approval_id: str) -> Any:
    return await routing.edit(CHLOE, approval_id, {"what": "chair"})


async def withdraw(routing: Routing, approval_id: str) -> Any:
    return await routing.services.approvals.withdraw_request("withdrawal", approval_id, ANA)


async def expire(routing: Routing, approval_id: str) -> Any:
    """As the timer does, once it is due; but urgently, so that the order is that of the test's."""
    async with routing.database.writing_urgently(THREAD) as tx:
        timer = Delivery(f"expire:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, 0.0, 0.0)
        settled = await routing.parts.requests.on_timer(tx, timer)
    return Settled("Expired.") if settled else AlreadySettled("")


SETTLING = [approve, reject, edit, withdraw, expire]


@pytest.mark.parametrize("second", SETTLING)
@pytest.mark.parametrize("first", SETTLING)
async def test_of_two_who_settle_at_once_one_does(routing: Routing, first: Act, second: Act) -> None:
    approval_id = await routing.ask()
    results = await asyncio.gather(first(routing, approval_id), second(routing, approval_id))
    kinds = sorted(type(result).__name__ for result in results)
    assert kinds == ["Settled", "Settled"] if first is second else ["AlreadySettled", "Settled"]  # the same key twice
    row = await routing.row(approval_id)
    assert row.settled_key is not None
    assert row.status != "pending"
    assert len(await routing.votes(approval_id)) <= 1


@pytest.mark.parametrize("settle", SETTLING)
async def test_what_is_settled_is_handed_to_nobody_and_escalated_to_nobody(routing: Routing, settle: Act) -> None:
    approval_id = await routing.ask(escalate_after=10.0, escalate_to=(CARA.person_id,))
    await until(lambda: routing.chat.view(THREAD))
    await routing.outbox.stop(5.0)  # while it writes, whoever hands over would go before a timer that came first
    _, handed = await asyncio.gather(settle(routing, approval_id), routing.hand(BEN, approval_id, CHLOE))
    # Where several write, whoever hands over may be first.
    before = (CHLOE.person_id,) if isinstance(handed, Settled) and postgres_cluster.is_used() else ()
    assert (await routing.row(approval_id)).handed_to == before
    routing.clock.move(10)
    async with routing.database.writing(THREAD) as tx:
        timer = Delivery(f"escalate:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, 0.0, 0.0)
        assert not await routing.parts.requests.on_timer(tx, timer)
    assert len(await routing.services.queries.shown(approval_id)) == 1 + len(before)


async def test_a_vote_and_a_hand_over_at_once_both_count(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2)
    await asyncio.gather(approve(routing, approval_id), routing.hand(CHLOE, approval_id, ANA))
    assert (await routing.row(approval_id)).handed_to == (ANA.person_id,)
    assert [vote.name for vote in await routing.votes(approval_id)] == ["Ben"]


async def test_of_two_who_hand_over_at_once_both_are_heard(routing: Routing) -> None:
    approval_id = await routing.ask()
    await asyncio.gather(routing.hand(BEN, approval_id, CHLOE), routing.hand(CHLOE, approval_id, ANA))
    assert sorted((await routing.row(approval_id)).handed_to) == sorted((CHLOE.person_id, ANA.person_id))


async def test_handing_on_in_a_circle_widens_nothing(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=(BEN.person_id, CHLOE.person_id), self_approval="fourEyes")
    for giver, taker in ((BEN, CHLOE), (CHLOE, BEN), (BEN, ANA), (CHLOE, CARA)):
        await routing.hand(giver, approval_id, taker)
    row = await routing.row(approval_id)
    assert set(row.handed_to) == {CHLOE.person_id, BEN.person_id}
    assert row.asked.ask.approvers == (BEN.person_id, CHLOE.person_id)
    for person in (ANA, CARA):
        assert isinstance(await routing.click(person, approval_id), Refused)


async def test_a_grant_that_is_revoked_while_it_is_given_again_is_the_new_one(routing: Routing) -> None:
    await routing.click(ANA, await routing.ask(call_id="c1"), always_for=DURATIONS["1 h"])
    (old,) = await routing.services.queries.standing_approvals(ANA)
    again = await routing.ask(call_id="c2")
    await asyncio.gather(
        routing.click(ANA, again, always_for=DURATIONS["8 h"]),
        routing.services.approvals.revoke_standing_approval(old.grant_id, ANA),
    )
    assert [view.until for view in await routing.services.queries.standing_approvals(ANA)] == [
        routing.clock() + DURATIONS["8 h"]
    ]


# --------------------------------------------------------------------------------------------------- once more


async def test_a_click_that_is_delivered_again_lets_go_on_what_only_now_was_settled(routing: Routing) -> None:
    """The first time one of the two could not be looked up; the thread has gone on with the other since."""
    decided, refused = await routing.ask(call_id="c1"), await routing.ask(call_id="c2", approvers=(FINANCE,))
    click = Decision.alike("the very click", BEN, (decided, refused), "approve")
    first = await routing.services.approvals.decide(click)
    assert (type(first[decided]), type(first[refused])) == (Settled, Refused)
    async with routing.database.writing(UNLOCKED) as tx:
        await deliveries.done(tx, f"resume:{decided}")
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    second = await routing.services.approvals.decide(click)
    assert (type(second[decided]), type(second[refused])) == (Settled, Settled)
    async with routing.database.reading() as tx:
        head = await deliveries.head(tx, THREAD, routing.clock())
    assert head is not None
    assert head.key == f"resume:{refused}"


async def test_what_is_decided_together_lets_its_thread_go_on_once(routing: Routing) -> None:
    ids = tuple([await routing.ask(call_id=f"c{number}") for number in range(3)])
    results = await routing.services.approvals.decide(Decision.alike("k", BEN, ids[::-1], "approve"))
    assert list(results) == list(ids[::-1])
    async with routing.database.reading() as tx:
        rows = await tx.all(sa.text("SELECT key FROM deliveries WHERE kind = 'resume'"))
    assert len(rows) == 1


@pytest.mark.parametrize("act", [approve, reject, edit, withdraw])
async def test_what_has_expired_is_decided_by_nobody_though_its_timer_is_late(routing: Routing, act: Act) -> None:
    approval_id = await routing.ask(expires_in=60.0)
    routing.clock.move(60)
    assert await act(routing, approval_id) == AlreadySettled("This request has expired.", gone=True)
    assert await routing.services.approvals.edit_form(approval_id, BEN) == AlreadySettled("Already decided.", gone=True)
    assert isinstance(await routing.hand(BEN, approval_id, CHLOE), AlreadySettled)
    assert (await routing.row(approval_id)).status == "pending"
    assert await expire(routing, approval_id) == Settled("Expired.")


@pytest.mark.parametrize("status", ["approved", "rejected", "expired", "superseded", "withdrawn", "void"])
async def test_who_is_late_is_told_whether_somebody_was_faster_or_it_is_gone(routing: Routing, status: str) -> None:
    approval_id = await routing.ask()
    async with routing.database.writing(UNLOCKED) as tx:
        await approvals.settle(tx, approval_id, status, key="earlier", now=routing.clock())
    late = [await act(routing, approval_id) for act in (approve, reject, edit, withdraw)]
    late += [await routing.services.approvals.edit_form(approval_id, BEN), await routing.hand(BEN, approval_id, CHLOE)]
    gone = status not in {"approved", "rejected"}
    assert [(type(told), told.gone) for told in late] == [(AlreadySettled, gone)] * len(late)


@pytest.mark.parametrize("choice", ["it_was_done", "superseded"])
async def test_who_says_too_late_what_came_of_a_call_is_told_so_too(routing: Routing, choice: str) -> None:
    await begun(routing, await routing.ask(), "unknown")
    async with routing.database.writing(UNLOCKED) as tx:
        await attempts.choose(tx, "t1", choice, None, key="earlier")
    told = await routing.services.approvals.settle_outcome(OutcomeChoice("k", ANA, "t1", "skip"))
    assert told == AlreadySettled("Already answered.", gone=choice == "superseded")


async def begun(routing: Routing, approval_id: str, status: str) -> None:
    """An attempt at its call, which is by now in this status."""
    call = CallRecord(
        thread_id=THREAD,
        call_id=(await routing.row(approval_id)).asked.call_id,
        requester=ANA.person_id,
        tool=MAKE,
        arguments={"what": "lamp"},
        digest=LAMP,
        approval_round=None,
    )
    async with routing.database.writing(UNLOCKED) as tx:
        await attempts.add(tx, "t1", 1, call, approval_id=None, judged=None, now=routing.clock())
        await attempts.move(tx, "t1", "started", status)


async def test_a_call_that_waits_in_the_middle_is_approved_or_rejected_as_it_is(routing: Routing) -> None:
    """Rule 12: it is asked about again when the rules change while it waits for somebody. Changed then, what its server
    has begun with would be asked about ("try again?") while other arguments run."""
    approval_id = await routing.ask()
    await begun(routing, approval_id, "asking")
    already_begun = Refused("This has already started, so you can’t edit it. Approve it as it is, or reject it.")
    assert await routing.edit(BEN, approval_id, {"what": "chair"}) == already_begun
    assert await routing.services.approvals.edit_form(approval_id, BEN) == already_begun
    assert await routing.edit(BEN, approval_id, {"what": "lamp"}) == Settled("Approved.")


async def test_a_call_that_did_nothing_yet_may_be_changed(routing: Routing) -> None:
    """Its server said so by its protocol, as when somebody has to sign in first."""
    approval_id = await routing.ask()
    await begun(routing, approval_id, "nothing")
    assert isinstance(await routing.edit(BEN, approval_id, {"what": "chair"}), Settled)


# --------------------------------------------------------------------------------------------------- authority


async def test_a_vote_counts_by_who_may_decide_when_it_is_cast(routing: Routing) -> None:
    """Not when it is settled: whoever leaves the group later has voted for good (docs/decisions)."""
    routing.chat.groups[FINANCE] = {BEN.person_id: True, CHLOE.person_id: True}
    approval_id = await routing.ask(approvers=(FINANCE,), quorum=2)
    await routing.click(BEN, approval_id)
    routing.chat.groups[FINANCE][BEN.person_id] = False
    assert isinstance(await routing.click(BEN, approval_id, "reject"), Refused)
    assert await routing.click(CHLOE, approval_id) == Settled("Approved.")
    assert [(vote.name, vote.authority) for vote in await routing.votes(approval_id)] == [
        ("Ben", f"member of {FINANCE}"),
        ("Chloe", f"member of {FINANCE}"),
    ]


async def test_what_was_handed_to_somebody_who_left_the_group_is_not_theirs_to_decide(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True, CHLOE.person_id: True}
    approval_id = await routing.ask(approvers=(FINANCE,))
    assert isinstance(await routing.hand(BEN, approval_id, CHLOE), Settled)
    routing.chat.groups[FINANCE][CHLOE.person_id] = False
    assert isinstance(await routing.click(CHLOE, approval_id), Refused)


# --------------------------------------------------------------------------------------------------- editing


async def test_an_edit_of_a_call_whose_tool_has_changed_since_is_asked_about_once_more(routing: Routing) -> None:
    approval_id = await routing.ask(digest=digest_of(replace(MAKE, input_schema={}), {"what": "lamp"}))
    said = await routing.edit(BEN, approval_id, {"what": "chair"}, always_for=DURATIONS["1 h"])
    assert said == Settled("Edited. The tool changed, so approval is needed again.")
    row = await routing.row(approval_id)
    assert (row.status, row.approved_digest) == ("approved", None)
    view = await routing.view(approval_id)
    assert (view.status, view.result) == ("void", "The tool changed, so approval is needed again.")
    assert await routing.services.queries.standing_approvals(BEN) == ()


async def test_an_edit_of_a_call_whose_tool_is_as_it_was_runs(routing: Routing) -> None:
    approval_id = await routing.ask()
    assert await routing.edit(BEN, approval_id, {"what": "chair"}) == Settled("Approved with edits.")
    assert (await routing.row(approval_id)).approved_digest == digest_of(MAKE, {"what": "chair"})


@pytest.mark.parametrize("rule", [{"quorum": 2}, {"self_approval": "fourEyes"}])
async def test_until_an_edited_call_is_asked_anew_nobody_is_told_that_it_was_approved(
    routing: Routing, rule: dict[str, Any]
) -> None:
    """Rule 12. The run may be busy with another call of the turn for minutes."""
    approval_id = await routing.ask(**rule)
    by_editor = Settled("Edited. Someone else must approve your edits.")
    assert await routing.edit(BEN, approval_id, {"what": "chair"}) == by_editor
    others = "Ben edited it, so someone else must approve."
    view = await routing.view(approval_id)
    assert (view.status, view.result, view.arguments) == ("void", others, {"what": "chair"})
    assert await routing.services.approvals.decide(Decision.alike("another click", BEN, (approval_id,), "approve")) == {
        approval_id: AlreadySettled("You already edited this. Someone else must approve your edits.")
    }
    too_late = AlreadySettled(others)
    assert await reject(routing, approval_id) == too_late
    assert await withdraw(routing, approval_id) == too_late


async def test_an_edit_that_is_delivered_twice_gets_the_same_answer_also_once_it_is_asked_anew(
    routing: Routing,
) -> None:
    approval_id = await routing.ask(quorum=2)
    first = await edit(routing, approval_id)
    assert await edit(routing, approval_id) == first
    await ask_anew(routing, approval_id)
    assert (await routing.row(approval_id)).status == "void"
    assert await edit(routing, approval_id) == first


async def test_an_edited_call_that_the_rules_let_run_without_asking_is_not_shown_as_asked_anew(
    routing: Routing,
) -> None:
    approval_id = await routing.ask(quorum=2)
    await edit(routing, approval_id)
    await begun(routing, approval_id, "done")
    view = await routing.view(approval_id)
    assert (view.status, view.result_tone) == ("approved", "success")
    assert await reject(routing, approval_id) == AlreadySettled("Already approved by Chloe.")


async def test_an_earlier_attempt_at_a_call_does_not_make_an_edit_an_approval(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2)
    await begun(routing, approval_id, "nothing")
    routing.clock.move(1)
    await edit(routing, approval_id)
    assert (await routing.view(approval_id)).status == "void"


async def ask_anew(routing: Routing, approval_id: str) -> None:
    """As the run does, once it comes to it."""
    anew = (await routing.row(approval_id)).asked.model_copy(update={"round": 2})
    async with routing.database.writing(UNLOCKED) as tx:
        await routing.parts.requests.record(tx, THREAD, anew)


async def test_the_card_of_an_edited_call_says_that_votes_before_do_not_count(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2)
    await routing.click(BEN, approval_id)
    await routing.edit(CHLOE, approval_id, {"what": "chair"})
    await until(lambda: (card := routing.chat.view(THREAD)) and card.status == "void")
    (reference,) = routing.chat.shown
    await ask_anew(routing, approval_id)
    why = "Asked again: Chloe edited the request. Earlier votes don’t count."

    def card() -> ApprovalView | None:
        content = routing.chat.shown[reference].content
        return content if isinstance(content, ApprovalView) and content.result == why else None

    assert (await until(card)).status == "void"


async def test_asking_anew_voids_nothing_that_ended_otherwise(routing: Routing) -> None:
    approval_id = await routing.ask()
    await withdraw(routing, approval_id)
    await ask_anew(routing, approval_id)
    assert (await routing.row(approval_id)).status == "withdrawn"


# --------------------------------------------------------------------------------------------------- bad input


async def test_texts_that_no_database_keeps_make_no_defect(routing: Routing) -> None:
    person = Person(BEN.person_id, BROKEN)
    approval_id = await routing.ask(rejections=2)
    assert isinstance(await routing.click(person, approval_id, "reject", reason=BROKEN), Settled)
    (vote,) = await routing.votes(approval_id)
    assert (vote.name, vote.reason) == ("ab?c", "ab?c")
    assert isinstance(await routing.edit(BEN, await routing.ask(call_id="c2"), {"what": BROKEN}), Settled)
    assert isinstance(await routing.edit(BEN, await routing.ask(call_id="c3"), {BROKEN: "x"}), Invalid)
    assert isinstance(
        await routing.hand_to(BEN, await routing.ask(call_id="c4", approvers=(BEN.person_id,)), BROKEN), Refused
    )


@pytest.mark.parametrize("nobody", ["", BROKEN, "x" * 100_000, "'; DROP TABLE approvals; --"])
async def test_an_approval_that_does_not_exist_is_unknown(routing: Routing, nobody: str) -> None:
    assert isinstance(await routing.click(BEN, nobody), Unknown)
    assert isinstance(await routing.hand(BEN, nobody, CHLOE), Unknown)
    assert isinstance(await routing.services.approvals.withdraw_request("k", nobody, ANA), Unknown)
    assert isinstance(await routing.services.approvals.edit_form(nobody, BEN), Unknown)
    assert isinstance(await routing.services.approvals.revoke_standing_approval(nobody, BEN), Unknown)
    assert not await routing.services.queries.permitted(nobody, BEN)


# --------------------------------------------------------------------------------------------------- locks


@pytest.mark.postgres
async def test_whoever_compares_before_they_write_has_locked_the_thread(routing: Routing) -> None:
    approval_id = await routing.ask()
    async with routing.database.writing_urgently(UNLOCKED) as tx:
        with pytest.raises(NotLocked):
            await approvals.hold(tx, approval_id)
    async with routing.database.writing_urgently(THREAD) as tx:
        assert await approvals.hold(tx, approval_id) is not None
