"""What waits for the calls of other agents: in no list of conversations, theirs whose agent it is, and named so."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from bot.accounts.codes import none_waits
from bot.conversations import no_conversation
from bot.domain import (
    ApprovalView,
    CodeEntry,
    ConversationReference,
    Message,
    Person,
    Refused,
    Shown,
    ThreadView,
    Unknown,
)
from bot.gateway.thread_ids import gateway_thread_id
from bot.queries import no_approval
from bot.records import approvals, attempts, clarifications, sign_ins, thread_owners, threads
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from bot.records.sign_ins import SignInRow
from bot.records.tables import gateway_calls
from bot.views import unnamed
from graph.interrupts import ElicitationAsked
from graph.ports import CallRecord
from tests.audit.calls import tool
from tests.bot.rows import DIGEST, asked
from tests.bot.services_stage import Stage
from tests.support.overviews import nowhere

ANA, BEN, CHLOE = (Person(f"web:{name}", name.capitalize()) for name in ("ana", "ben", "chloe"))
CALL = gateway_thread_id(ANA.person_id, "g1")


async def begun(stage: Stage, thread_id: str = CALL, client: str = "claude-code") -> None:
    """A call of Ana's other agent."""
    place = ConversationReference("web", ANA.person_id, {"person": ANA.person_id}, direct=True)
    call = {"gateway_call_id": thread_id.rpartition(".")[2], "thread_id": thread_id, "person_id": ANA.person_id}
    about = {"server": "workshop", "tool": "make", "digest": thread_id, "status": "waiting", "step": "asked"}
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, thread_id, place, "", stage.clock(), requester=ANA.person_id)
        await threads.remember(tx, ANA, stage.clock())
        await tx.run(sa.insert(gateway_calls).values(**call, **about, client=client, begun_at=0.0, changed_at=0.0))


async def approval(stage: Stage, *approvers: str, thread_id: str = CALL) -> None:
    """It waits for a decision."""
    async with stage.database.writing(UNLOCKED) as tx:
        request = asked(f"mcp:{thread_id}.0.0", requesters=(ANA.person_id,), client="claude-code", approvers=approvers)
        await approvals.add(tx, "a1", thread_id, request, now=stage.clock(), expires_at=None)
        await stage.outbox.say(tx, NewPost("approval:a1", thread_id, "approval", subject="a1"))


async def everything_but_approvals(stage: Stage) -> None:
    """A question, a sign-in and an unknown outcome in the call's thread."""
    call_id, ana = "mcp:g1.0.0", ANA.person_id
    question = ElicitationAsked(call_id=call_id, number=1, server="workshop", message="Which?", requester=ana)
    record = CallRecord(
        thread_id=CALL,
        call_id=call_id,
        requester=ana,
        tool=tool(),
        arguments={"what": "lamp"},
        digest=DIGEST,
        approval_round=None,
    )
    async with stage.database.writing(UNLOCKED) as tx:
        await clarifications.add(tx, "q1", CALL, question, stage.clock())
        await sign_ins.add(
            tx, SignInRow("s1", call_id, CALL, ana, "workshop", "id.example", "", "sealed", "open", 0.0, None)
        )
        await attempts.add(tx, "o1", 1, record, approval_id=None, judged=None, now=stage.clock())
        await attempts.move(tx, "o1", "started", "unknown")
        for kind, subject in (("clarification", "q1"), ("sign_in", "s1"), ("outcome", "o1")):
            await stage.outbox.say(tx, NewPost(f"{kind}:{subject}", CALL, kind, subject=subject))


def named(shown: tuple[Shown, ...]) -> list[tuple[str, str]]:
    """What is shown, and through which program it was asked for."""
    return [(type(one.post.content).__name__, one.post.content.client) for one in shown]  # type: ignore[union-attr]


async def test_their_threads_are_in_no_list_and_belong_to_whose_agent_it_is(stage: Stage) -> None:
    conversations = stage.services.conversations
    await begun(stage)
    async with stage.database.writing(UNLOCKED) as tx:  # whatever was once kept of one
        await threads.ensure(tx, CALL, ConversationReference("web", CALL), "a title", stage.clock())
        await thread_owners.begin(tx, CALL, ANA.person_id, stage.clock())
    assert await conversations.owned(ANA) == ()
    async with stage.database.reading() as tx:
        assert await threads.newest(tx, "web", 10) == ()
    mine = await conversations.view(CALL, ANA)
    assert isinstance(mine, ThreadView) and mine.seen_as == "owner"
    assert await conversations.view(CALL, BEN) == no_conversation()
    assert await conversations.owners_for(CALL, BEN) is None


async def test_nobody_begins_such_a_thread_by_naming_it(stage: Stage) -> None:
    conversations = stage.services.conversations
    unknown = gateway_thread_id(ANA.person_id, "g9")
    assert await conversations.owners_for(unknown, ANA) is None
    assert await conversations.view(unknown, ANA) == no_conversation()


async def test_nothing_is_said_or_stopped_in_such_a_thread(stage: Stage) -> None:
    await begun(stage)
    await approval(stage, BEN.person_id)
    inbox, place = stage.services.inbox, ConversationReference("web", CALL, direct=True, has_threads=True)
    for text in ("Make another lamp", "stop"):
        assert not await inbox.accept(Message(f"{CALL}:{text}", place, ANA, text, stage.clock()))
    assert await inbox.stop("k1", CALL, ANA) == Unknown("Nothing to stop here.")
    async with stage.database.reading() as tx:
        row = await approvals.get(tx, "a1")
        thread = await threads.get(tx, CALL)
    assert row is not None and row.status == "pending"
    assert thread is not None and thread.title == ""


async def test_the_code_of_a_sign_in_is_told_by_a_person_and_no_program(stage: Stage) -> None:
    await begun(stage)
    await everything_but_approvals(stage)
    enter, told = stage.services.connections.enter_code, CodeEntry("k1", ANA, "ABCD-EFGH", "s1")
    assert await enter(replace(told, via="api")) == Refused(
        "Requested through /mcp: only a person can decide it, in Slack, Teams or on the page."
    )
    assert await enter(told) == none_waits()


async def test_whoever_may_decide_sees_the_card_and_its_requester_that_it_waits(stage: Stage) -> None:
    services = stage.services
    await begun(stage)
    await approval(stage, BEN.person_id)
    assert named((await services.queries.pending(BEN)).to_decide) == [("ApprovalView", "claude-code")]
    assert (await services.queries.pending(ANA)).to_decide == ()
    assert named((await services.queries.pending(ANA)).asked_for) == [("ApprovalView", "claude-code")]
    of_ana, of_ben = [await services.queries.overview(person, "web:", nowhere) for person in (ANA, BEN)]
    assert named(of_ana.waiting) == named(of_ben.to_decide) == [("ApprovalView", "claude-code")]
    for person in (ANA, BEN):
        assert isinstance(await services.conversations.card("a1", person), ApprovalView)
    assert await services.conversations.card("a1", CHLOE) == no_approval()


async def test_what_waits_for_ones_own_other_agents_is_listed_for_nobody_else(stage: Stage) -> None:
    await begun(stage)
    await everything_but_approvals(stage)
    listed = await stage.services.queries.asked_through_programs(ANA)
    assert named(listed) == [
        ("ClarificationView", "claude-code"),
        ("SignInView", "claude-code"),
        ("OutcomeView", "claude-code"),
    ]
    assert await stage.services.queries.asked_through_programs(BEN) == ()


async def test_of_a_program_that_has_told_no_name_this_is_said(stage: Stage) -> None:
    await begun(stage, client=" ")
    await everything_but_approvals(stage)
    listed = await stage.services.queries.asked_through_programs(ANA)
    assert {client for _, client in named(listed)} == {unnamed()}
