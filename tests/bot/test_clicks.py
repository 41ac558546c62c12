"""Clicks: each gets its answer, and what it settles goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.domain import (
    AlreadySettled,
    ApprovalView,
    Choice,
    Decision,
    FormAnswer,
    Message,
    Person,
    Refused,
    Settled,
    SignInReply,
    Unknown,
)
from bot.records import approvals, clarifications, deliveries, threads
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.views import sign_in_view
from graph.interrupts import ClarificationAsked
from graph.ports import SignInNeeded
from graph.running import ThreadStatus
from tests.bot.conftest import place
from tests.bot.rows import asked
from tests.bot.services_stage import ANA, BEN, THREAD, Stage
from tests.bot.stubs import SECRET, FragileAgent, make_turn_handler

# --------------------------------------------------------------------------------------------------- going on


async def test_two_clicks_under_one_key_are_both_followed_up(stage: Stage) -> None:
    first, second = await stage.ask("a1"), await stage.ask("a2")
    for approval_id in (first, second):
        results = await stage.services.approvals.decide(
            Decision.alike("the same click", ANA, (approval_id,), "approve")
        )
        assert results[approval_id] == Settled("Approved.")
    assert await stage.waiting() == ["resume:a1", "resume:a2"]


async def test_approving_all_resumes_the_thread_once(stage: Stage) -> None:
    both = (await stage.ask("a1"), await stage.ask("a2"))
    await stage.services.approvals.decide(Decision.alike("click", ANA, both, "approve"))
    assert await stage.waiting() == ["resume:a1"]
    assert stage.engine.woken == [THREAD]


async def test_one_decision_may_approve_one_and_reject_another_each_for_its_own_reason(stage: Stage) -> None:
    here, refused, elsewhere = await stage.ask("a1"), await stage.ask("a2"), await stage.ask("a3", BEN, "chat:T9")
    choices = (Choice(refused, "reject", "not on a Sunday"), Choice(elsewhere, "reject", "too late"))
    decision = Decision("click", ANA, (Choice(here, "approve", "not kept"), *choices, Choice("unheard of", "approve")))
    results = await stage.services.approvals.decide(decision)
    assert list(results) == [here, refused, elsewhere, "unheard of"]
    assert [*map(type, results.values())] == [Settled, Settled, Settled, Unknown]
    views = [await stage.services.queries.approval(each, "chat:") for each in (here, refused, elsewhere)]
    kept = [(view.status, view.reason) for view in views if isinstance(view, ApprovalView)]
    assert kept == [("approved", ""), ("rejected", "not on a Sunday"), ("rejected", "too late")]
    assert sorted(stage.engine.woken) == sorted([THREAD, "chat:T9"])
    assert await stage.services.approvals.decide(decision) == results  # the same one, delivered twice


async def test_of_two_choices_about_one_approval_the_first_counts(stage: Stage) -> None:
    await stage.ask("a1")
    choices = (Choice("a1", "reject"), Choice("a1", "approve"))
    assert await stage.services.approvals.decide(Decision("click", ANA, choices)) == {"a1": Settled("Rejected.")}


async def test_deciding_many_at_once_lets_others_have_their_turn_in_between(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a hundred approvals in one click held the event loop for 0.3 s."""
    many = tuple([await stage.ask(f"a{number}") for number in range(10)])
    turns, turns_at = 0, []
    judge = stage.services.approvals._judge

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def noted(*click: Any) -> Any:
        turns_at.append(turns)
        return await judge(*click)

    monkeypatch.setattr(stage.services.approvals, "_judge", noted)
    at_work = asyncio.create_task(others())
    results = await stage.services.approvals.decide(Decision.alike("click", ANA, many, "approve"))
    at_work.cancel()
    assert set(results.values()) == {Settled("Approved.")}
    assert turns_at == sorted(set(turns_at))
    assert len(turns_at) == len(many)


async def test_a_click_that_changes_nothing_resumes_nothing(stage: Stage) -> None:
    await stage.ask("a1")
    await stage.services.approvals.decide(Decision.alike("one", ANA, ("a1",), "reject"))
    late = await stage.services.approvals.decide(Decision.alike("two", BEN, ("a1", "unheard of"), "approve"))
    assert isinstance(late["a1"], AlreadySettled)
    assert await stage.waiting() == ["resume:a1"]


# --------------------------------------------------------------------------------------------------- twice


async def test_the_same_form_delivered_twice_is_thanked_for_twice_and_another_is_late(stage: Stage) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        question = ClarificationAsked(call_id="c", question="Which?", requester=ANA.person_id)
        await clarifications.add(tx, "c1", THREAD, question, 0.0)
    answers = [
        await stage.services.questions.answer(FormAnswer(key, ANA, "c1", {})) for key in ("form", "form", "other")
    ]
    assert answers == [Settled("Thanks.")] * 2 + [AlreadySettled("Already answered.")]
    assert await stage.waiting() == ["resume:c1"]


async def test_the_same_word_on_a_sign_in_delivered_twice_is_noted_twice(stage: Stage) -> None:
    sign_in_id = await stage.parts.sign_ins.ask(THREAD, "call", ANA.person_id, "files", SignInNeeded(SECRET, ""))
    replies = [
        await stage.services.connections.sign_in_reply(SignInReply(key, ANA, sign_in_id, done=True))
        for key in ("a", "a", "b")
    ]
    assert [type(reply) for reply in replies] == [Settled, Settled, AlreadySettled]


# --------------------------------------------------------------------------------------------------- the local page


async def test_whoever_somebody_says_to_be_on_the_local_page_counts_for_no_other_platform(stage: Stage) -> None:
    pretender = Person("web:ana", "Ana")
    await stage.ask("a1")
    results = await stage.services.approvals.decide(Decision.alike("click", pretender, ("a1",), "approve"))
    assert isinstance(results["a1"], Refused)
    assert isinstance(await stage.services.approvals.edit_form("a1", pretender), Refused)

    await stage.ask("a2", pretender, "web:T1")
    results = await stage.services.approvals.decide(Decision.alike("click", pretender, ("a2",), "approve"))
    assert results["a2"] == Settled("Approved.")


# --------------------------------------------------------------------------------------------------- links


async def test_a_link_that_a_server_repeats_in_its_message_is_on_no_card(stage: Stage) -> None:
    needed = SignInNeeded(SECRET, f"Please open {SECRET} (or HTTPS://x.example/?t=top-secret-ticket) to go on")
    sign_in_id = await stage.parts.sign_ins.ask(THREAD, "call", ANA.person_id, "files", needed)
    async with stage.database.reading() as tx:
        view = await sign_in_view(tx, sign_in_id, stage.clock())
    assert view is not None
    assert view.message == "Please open (link) (or (link) to go on"
    assert await stage.services.sign_in_links.link(sign_in_id, ANA.person_id) == SECRET


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://good.example\\@evil.example/", "https://a\u202eb.example"]
)
async def test_a_link_whose_host_cannot_be_told_is_given_to_nobody(stage: Stage, url: str) -> None:
    sign_in_id = await stage.parts.sign_ins.ask(THREAD, "call", ANA.person_id, "files", SignInNeeded(url, ""))
    assert isinstance(await stage.services.sign_in_links.link(sign_in_id, ANA.person_id), Refused)


# --------------------------------------------------------------------------------------------------- stop


async def test_whoever_only_waits_their_turn_cannot_stop_somebody_elses(stage: Stage) -> None:
    await stage.write(ANA, "m1")
    await stage.write(BEN, "m2")
    assert isinstance(await stage.services.inbox.stop("stop", THREAD, BEN), Settled)
    assert stage.engine.interrupted == []
    assert await stage.waiting() == ["m1"]


async def test_stop_breaks_off_ones_own_turn_and_leaves_other_peoples_messages(stage: Stage) -> None:
    await stage.write(ANA, "m1")
    await stage.write(BEN, "m2")
    await stage.write(ANA, "m3")
    assert await stage.services.inbox.stop("stop", THREAD, ANA) == Settled("Stopped.")
    assert stage.engine.interrupted == [THREAD]
    assert await stage.waiting() == ["stop", "m2"]


async def test_only_whoever_asked_can_stop_what_waits_for_people_whoevers_turn_was_first(stage: Stage) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.set_turn(tx, THREAD, ANA.person_id, "m1")
    await stage.ask("a1", BEN)
    assert isinstance(await stage.services.inbox.stop("one", THREAD, ANA), Refused)
    assert await stage.services.inbox.stop("two", THREAD, BEN) == Settled("Stopped.")


async def test_who_stops_the_turn_of_a_message_stops_no_other_that_runs_before_it(stage: Stage) -> None:
    await stage.write(ANA, "m1")
    await stage.write(ANA, "m2")
    assert isinstance(await stage.services.inbox.stop("one", THREAD, ANA, newest="m2"), Refused)
    assert stage.engine.interrupted == []
    assert await stage.waiting() == ["m1", "m2"]


async def test_who_stops_the_turn_of_a_message_stops_no_other_that_waits(stage: Stage) -> None:
    await stage.write(ANA, "m2")
    await stage.ask("a1")
    async with stage.database.writing(UNLOCKED) as tx:
        await deliveries.done(tx, "m2")
        await threads.set_turn(tx, THREAD, ANA.person_id, "m1")
    assert isinstance(await stage.services.inbox.stop("one", THREAD, ANA, newest="m2"), Refused)
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.set_turn(tx, THREAD, ANA.person_id, "m2")
    assert await stage.services.inbox.stop("two", THREAD, ANA, newest="m2") == Settled("Stopped.")


async def test_what_was_decided_a_moment_ago_is_not_resumed_after_a_stop(stage: Stage) -> None:
    await stage.ask("a1")
    await stage.ask("a2")
    await stage.services.approvals.decide(Decision.alike("click", ANA, ("a1",), "approve"))
    await stage.services.inbox.stop("stop", THREAD, ANA)
    assert await stage.waiting() == ["stop"]


async def test_the_same_stop_delivered_twice_stops_once(stage: Stage) -> None:
    await stage.write(ANA, "m1")
    assert [await stage.write(ANA, "m2", "stop") for _ in range(2)] == [True, False]
    assert stage.engine.interrupted == [THREAD]
    assert await stage.waiting() == ["m2"]


async def test_who_stops_is_named_where_this_process_has_not_heard_their_name(stage: Stage) -> None:
    """Slack tells an app no more than the id of who writes; another process may have asked for the name."""
    await stage.write(ANA, "m1")
    await stage.write(Person(ANA.person_id, ""), "m2", "stop")
    async with stage.database.reading() as tx:
        stopped = await deliveries.head(tx, THREAD, stage.clock())
    assert stopped is not None
    assert stopped.body["name"] == ANA.name


async def test_stop_finds_the_session_that_waits_for_whoever_says_it(stage: Stage) -> None:
    room = place("chat:room", has_threads=False)
    for key, person in (("m1", ANA), ("m2", BEN)):
        await stage.services.inbox.accept(Message(key, room, person, "hello", 0.0))
        session = {"m1": "chat:room#1", "m2": "chat:room#2"}[key]
        await stage.ask(f"a of {key}", person, session)
    await stage.services.inbox.accept(Message("m3", room, ANA, "stop", 0.0))
    assert stage.engine.interrupted == ["chat:room#1"]


# --------------------------------------------------------------------------------------------------- timers


class WatchedAgent(FragileAgent):
    """Notes the threads that are looked at."""

    def __init__(self) -> None:
        FragileAgent.__init__(self)
        self.looked: list[str] = []

    async def status(self, thread_id: str) -> ThreadStatus:
        self.looked.append(thread_id)
        return await FragileAgent.status(self, thread_id)


async def due_timer(stage: Stage, approval_id: str) -> Delivery:
    now = stage.clock()
    timer = Delivery(f"expire:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, now, now)
    async with stage.database.writing(UNLOCKED) as tx:
        await deliveries.add(tx, timer)
    return timer


async def handle(stage: Stage, agent: FragileAgent, delivery: Delivery) -> None:
    await make_turn_handler(stage.database, stage.outbox, stage.clock, stage.parts, agent, stage.engine).handle(
        delivery
    )


async def test_the_timer_of_what_was_settled_long_ago_does_not_touch_what_runs_now(stage: Stage) -> None:
    await stage.ask("a1")
    await stage.services.approvals.decide(Decision.alike("click", ANA, ("a1",), "reject"))
    agent, timer = WatchedAgent(), await due_timer(stage, "a1")
    await handle(stage, agent, timer)
    assert agent.looked == []
    assert await stage.waiting() == ["resume:a1"]


async def test_a_timer_whose_process_died_after_it_expired_something_still_resumes_it(stage: Stage) -> None:
    await stage.ask("a1")
    agent, timer = WatchedAgent(), await due_timer(stage, "a1")
    async with stage.database.writing(UNLOCKED) as tx:
        assert await stage.parts.requests.on_timer(tx, timer)
    await handle(stage, agent, timer)
    assert agent.looked == [THREAD]
    assert await stage.waiting() == []


# --------------------------------------------------------------------------------------------------- other workspaces


@pytest.mark.parametrize("verb", ["approve", "reject"])
async def test_anybody_means_anybody_of_the_workspace_where_it_was_asked(stage: Stage, verb: Any) -> None:
    await stage.ask("a1", Person("slack:T1:U1", "Ana"), "slack:T1:C1:1.1")
    for number, elsewhere in enumerate(("slack:T2:U1", "slack:T12:U1", "teams:T1:U1", "web:ana")):
        results = await stage.services.approvals.decide(
            Decision.alike(f"click {number}", Person(elsewhere, "Zoe"), ("a1",), verb)
        )
        assert isinstance(results["a1"], Refused), elsewhere
    results = await stage.services.approvals.decide(
        Decision.alike("click", Person("slack:T1:U2", "Ben"), ("a1",), verb)
    )
    assert isinstance(results["a1"], Settled)


async def test_whoever_a_rule_names_may_come_from_elsewhere(stage: Stage) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        request = asked("c1", requesters=("slack:T1:U1",), approvers=("slack:T2:U8",))
        await approvals.add(tx, "a1", "slack:T1:C1:1.1", request, now=0.0, expires_at=None)
    results = await stage.services.approvals.decide(
        Decision.alike("click", Person("slack:T2:U8", "Zoe"), ("a1",), "approve")
    )
    assert isinstance(results["a1"], Settled)
