"""What a person is shown of what concerns them, and what they are talking about with the bot."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from bot.domain import (
    AlreadySettled,
    ApprovalView,
    ClarificationView,
    Decision,
    Feedback,
    Form,
    FormAnswer,
    Person,
    Refused,
    Settled,
    Shown,
    Together,
    Unknown,
)
from bot.queries import LISTED, LONGEST_LISTED
from bot.records import approvals, clarifications, threads, waiting
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from bot.sessions import current_thread
from graph.interrupts import ClarificationAsked, FieldType, FormField
from tests.bot.conftest import SetClock, place
from tests.bot.rows import asked
from tests.bot.services_stage import ANA, BEN, THREAD, Stage
from tests.support.overviews import everywhere, nowhere
from tests.support.raw_http import turns_of_others

ELSEWHERE = "other:T9"


async def ask(stage: Stage, approval_id: str, requester: Person = ANA, thread_id: str = THREAD, **how: Any) -> None:
    """An approval with its card."""
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, thread_id, place(thread_id), "hello", stage.clock())
        request = asked(f"call of {approval_id}", requesters=(requester.person_id,), **how)
        await approvals.add(tx, approval_id, thread_id, request, now=stage.clock(), expires_at=None)
        await stage.outbox.say(tx, NewPost(f"approval:{approval_id}", thread_id, "approval", subject=approval_id))


async def question(stage: Stage, clarification_id: str, fields: tuple[FormField, ...] = ()) -> None:
    """A question to Ana with its card."""
    async with stage.database.writing(UNLOCKED) as tx:
        asked_ = ClarificationAsked(
            call_id=f"call of {clarification_id}", question="Which?", fields=fields, requester=ANA.person_id
        )
        await clarifications.add(tx, clarification_id, THREAD, asked_, stage.clock())
        card = NewPost(f"clarification:{clarification_id}", THREAD, "clarification", subject=clarification_id)
        await stage.outbox.say(tx, card)


def ids(shown: tuple[Shown, ...]) -> list[str]:
    """The subjects of cards, from the names of their posts."""
    return [one.post.post_id.split(":", 1)[1] for one in shown]


# --------------------------------------------------------------------------------------------------- overview


async def test_an_overview_has_what_one_may_decide_what_one_waits_for_and_what_came_of_it(
    stage: Stage, clock: SetClock
) -> None:
    await ask(stage, "mine", ANA)
    clock.move(1)
    await ask(stage, "for-ben", ANA, approvers=(BEN.person_id,))
    clock.move(1)
    await ask(stage, "settled", ANA)
    await stage.services.approvals.decide(Decision.alike("click", ANA, ("settled",), "reject"))
    await question(stage, "c1")
    of_ana, of_ben = [await stage.services.queries.overview(person, "chat:", everywhere) for person in (ANA, BEN)]
    assert ids(of_ana.to_decide) == ["mine"]
    assert ids(of_ana.waiting) == ["for-ben", "c1"]
    assert ids(of_ana.recent) == ["settled"]
    assert (ids(of_ben.to_decide), of_ben.waiting, of_ben.recent) == (["for-ben"], (), ())


async def test_what_somebody_decided_is_listed_for_them_the_latest_first(stage: Stage, clock: SetClock) -> None:
    for each in ("first", "second", "open", "forgotten", "of others"):
        await ask(stage, each, ANA, ELSEWHERE if each == "forgotten" else THREAD, approvers=("any",))
    for each, person, verb in (
        ("first", BEN, "approve"),
        ("second", BEN, "reject"),
        ("forgotten", BEN, "reject"),
        ("of others", ANA, "reject"),
    ):
        clock.move(1)
        await stage.services.approvals.decide(Decision.alike(f"click {each}", person, (each,), verb))  # type: ignore[arg-type]
    async with stage.database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("UPDATE threads SET deleted_at = 1 WHERE thread_id = :it"), {"it": ELSEWHERE})
    decided = await stage.services.queries.decided_by(BEN)
    assert ids(decided) == ["second", "first"]
    views = [shown.post.content for shown in decided]
    assert [view.status for view in views if isinstance(view, ApprovalView)] == ["rejected", "approved"]
    assert ids(await stage.services.queries.decided_by(BEN, 1)) == ["second"]
    assert ids(await stage.services.queries.decided_by(ANA)) == ["of others"]


async def test_an_overview_shows_nothing_of_other_workspaces(stage: Stage) -> None:
    await ask(stage, "here", ANA, approvers=("any",))
    await ask(stage, "there", ANA, ELSEWHERE, approvers=("any",))
    await ask(stage, "there-settled", BEN, ELSEWHERE, approvers=("any",))
    zoe = Person("other:zoe", "Zoe")
    results = await stage.services.approvals.decide(Decision.alike("click", zoe, ("there-settled",), "reject"))
    assert isinstance(results["there-settled"], Settled)
    overview = await stage.services.queries.overview(BEN, "chat:", everywhere)
    assert (ids(overview.to_decide), overview.recent) == (["here"], ())


async def test_what_anybody_may_decide_is_shown_only_to_whoever_is_where_it_was_asked(stage: Stage) -> None:
    """That anybody may decide is no reason to show everybody what was asked in a private channel."""
    await ask(stage, "anybodys", ANA, approvers=("any",))
    await ask(stage, "bens", ANA, approvers=(BEN.person_id,))
    queries = stage.services.queries
    assert set(ids((await queries.overview(BEN, "chat:", everywhere)).to_decide)) == {"anybodys", "bens"}
    assert ids((await queries.overview(BEN, "chat:", nowhere)).to_decide) == ["bens"]
    assert ids((await queries.overview(ANA, "chat:", nowhere)).to_decide) == ["anybodys"]


async def test_a_prefix_is_taken_literally(stage: Stage) -> None:
    await ask(stage, "here", ANA)
    assert (await stage.services.queries.overview(ANA, "ch_t:", everywhere)).to_decide == ()


async def test_approvals_of_one_thread_are_found_together_and_counted_on_their_cards(
    stage: Stage, clock: SetClock
) -> None:
    await ask(stage, "one")
    clock.move(1)
    await ask(stage, "two")
    await ask(stage, "elsewhere", thread_id=ELSEWHERE)
    found = await stage.services.queries.together("one", ANA)
    assert [(view.approval_id, view.together) for view in found.listed] == [("one", 2), ("two", 2)]
    assert found.more == 0
    assert await stage.services.queries.together("one", BEN) == Together((), 0)
    assert await stage.services.queries.together("unheard of", ANA) == Together((), 0)
    alone = await stage.services.queries.approval("elsewhere", "other:")
    assert isinstance(alone, ApprovalView)
    assert alone.together == 1
    assert isinstance(await stage.services.queries.approval("elsewhere", "chat:"), Unknown)
    assert isinstance(await stage.services.queries.approval("unheard of", ""), Unknown)


async def test_what_is_given_out_to_be_shown_has_no_secrets_in_it(stage: Stage) -> None:
    secret = "ghp_" + "a1B2" * 9
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        request = asked("call").model_copy(update={"arguments": {"what": secret}})
        await approvals.add(tx, "a1", THREAD, request, now=stage.clock(), expires_at=None)
        await stage.outbox.say(tx, NewPost("approval:a1", THREAD, "approval", subject="a1"))
    given_out = (
        await stage.services.queries.approval("a1", "chat:"),
        await stage.services.queries.together("a1", ANA),
        await stage.services.queries.overview(ANA, "chat:", everywhere),
        await stage.services.queries.shown("a1"),
        await stage.services.queries.thread(THREAD, ANA),
    )
    assert all("workshop" in str(each) for each in given_out)
    assert [each for each in given_out if secret in str(each)] == []


# --------------------------------------------------------------------------------------------------- questions


async def test_only_who_was_asked_gets_the_form_of_a_question_and_only_while_it_is_open(stage: Stage) -> None:
    fields = (FormField(name="size", type=FieldType.NUMBER, default=3), FormField(name="colour"))
    await question(stage, "c1", fields)
    assert await stage.services.questions.form("c1", ANA) == Form("Which?", fields, {"size": 3})
    assert isinstance(await stage.services.questions.form("c1", BEN), Refused)
    assert isinstance(await stage.services.questions.form("unheard of", ANA), Unknown)
    async with stage.database.writing(UNLOCKED) as tx:
        row = await clarifications.get(tx, "c1")
        assert row is not None
        await stage.services.questions.supersede(tx, row, "m2")
    ended = AlreadySettled("Already answered.", gone=True)
    assert await stage.services.questions.form("c1", ANA) == ended
    assert await stage.services.questions.answer(FormAnswer("k", ANA, "c1", {})) == ended


async def test_the_card_of_a_question_is_a_view_of_it(stage: Stage) -> None:
    await question(stage, "c1")
    (shown,) = (await stage.services.queries.overview(ANA, "chat:", everywhere)).waiting
    assert isinstance(shown.post.content, ClarificationView)


async def test_what_was_filled_in_is_on_the_card_of_a_question_in_peoples_words(stage: Stage) -> None:
    fields = (
        FormField(name="title", label="Title"),
        FormField(name="day", label="Date", type=FieldType.DATE),
        FormField(name="all_day", label="All day", type=FieldType.YES_NO),
        FormField(name="note", required=False),
    )
    await question(stage, "c1", fields)
    values = {"title": "Standup", "day": "2026-11-26", "all_day": False}
    assert isinstance(await stage.services.questions.answer(FormAnswer("k", ANA, "c1", values)), Settled)
    (shown,) = await stage.services.queries.shown("c1")
    card = shown.post.content
    assert isinstance(card, ClarificationView)
    filled_in = {label: value for label, value in card.filled_in if value}
    assert filled_in == {"Title": "Standup", "Date": "Thu 26 Nov", "All day": "no"}


# --------------------------------------------------------------------------------------------------- turns


async def test_the_turns_of_a_person_are_those_that_run_and_those_that_wait(stage: Stage) -> None:
    assert await stage.services.queries.turns_of(ANA, "chat:") == ()
    await stage.write(ANA, "m1")
    assert await stage.services.queries.turns_of(ANA, "chat:") == (THREAD,)
    assert await stage.services.queries.turns_of(BEN, "chat:") == ()
    assert await stage.services.queries.turns_of(ANA, "other:") == ()
    await ask(stage, "there", BEN, ELSEWHERE)
    assert await stage.services.queries.turns_of(BEN, "other:") == (ELSEWHERE,)


async def test_a_place_with_threads_is_its_own_thread(stage: Stage) -> None:
    async with stage.database.reading() as tx:
        assert await current_thread(tx, place(THREAD), ANA.person_id) == THREAD


# --------------------------------------------------------------------------------------------------- opinions


async def test_the_last_opinion_of_a_person_on_an_answer_is_kept(stage: Stage) -> None:
    await ask(stage, "a1")
    for person, verdict in ((ANA, "good"), (ANA, "bad"), (BEN, "good")):
        assert isinstance(await stage.services.inbox.feedback(Feedback(person, "approval:a1", verdict)), Settled)  # type: ignore[arg-type]
    async with stage.database.reading() as tx:
        rows = await tx.all(sa.text("SELECT person_id, verdict FROM feedback ORDER BY person_id"))
    assert [tuple(row) for row in rows] == [(ANA.person_id, "bad"), (BEN.person_id, "good")]
    assert isinstance(await stage.services.inbox.feedback(Feedback(ANA, "said:nothing", "good")), Unknown)


# ------------------------------------------------------------------------------- many with long arguments


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_what_waits_is_judged_without_reading_what_it_would_be_called_with(stage: Stage) -> None:
    """Rule 13: twenty calls with a megabyte of arguments each held the event loop for a second whenever anybody looked
    at what waits for them, and after every change where a page is open."""
    for number in range(3):
        await ask(stage, f"a{number}", approvers=(BEN.person_id,))
    async with stage.database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("UPDATE approvals SET arguments = 'cannot be read'"))
    async with stage.database.reading() as tx:
        pending = await approvals.pending_in(tx, THREAD)
        assert len(pending) == len(await waiting.pending_approvals(tx, ["chat:"])) == 3
        assert await waiting.settled_lately(tx, ANA.person_id, "chat:", 10) == []
        with pytest.raises(AttributeError):
            _ = pending[0].asked.arguments
        with pytest.raises(ValueError, match="Expecting value"):
            await approvals.get(tx, "a0")


async def test_others_have_their_turn_between_cards(stage: Stage) -> None:
    """Rule 13: a card with a megabyte of arguments takes 20 ms."""
    for number in range(10):
        await ask(stage, f"a{number}")
    async with turns_of_others() as turns:
        await stage.services.queries.overview(ANA, "chat:", everywhere)
        assert turns[0] >= 10
        turns[0] = 0
        await stage.services.queries.together("a0", ANA)
        assert turns[0] >= 10
        turns[0] = 0
        await stage.services.queries.thread(THREAD, ANA)
        assert turns[0] >= 10


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_a_list_reads_no_long_arguments_and_no_more_calls_than_it_shows(stage: Stage) -> None:
    """Rule 13: whenever anybody opened the App Home, a megabyte of arguments was masked for each call that waits, up to
    200, which takes a second of CPU each."""
    for number in range(LISTED + 4):
        await ask(stage, f"a{number:02}")
    long = json.dumps({"what": "x" * LONGEST_LISTED})
    async with stage.database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("UPDATE approvals SET arguments = :long WHERE approval_id = 'a01'"), {"long": long})
        await tx.run(sa.text("UPDATE approvals SET asked_at = 10000 - rowid"))
        not_listed = "UPDATE approvals SET arguments = 'cannot be read' WHERE asked_at < 10000 - :listed"
        await tx.run(sa.text(not_listed), {"listed": LISTED})
    overview = await stage.services.queries.overview(ANA, "chat:", everywhere)
    assert ids(overview.to_decide) == [f"a{number:02}" for number in range(LISTED)]
    assert overview.more_to_decide == 4
    views = [shown.post.content for shown in overview.to_decide]
    found = {view.approval_id: view for view in views if isinstance(view, ApprovalView)}
    assert (found["a01"].unread, found["a01"].arguments, found["a01"].fingerprint) == (len(long), {}, "")
    assert found["a00"].unread == 0
    assert found["a00"].arguments
    assert found["a00"].fingerprint


async def test_what_is_too_long_for_a_list_is_not_decided_there_but_counted(stage: Stage) -> None:
    """Rule 12: one click approves only calls that it showed."""
    for approval_id in ("short", "long"):
        await ask(stage, approval_id)
    long = json.dumps({"what": "x" * LONGEST_LISTED})
    async with stage.database.writing(UNLOCKED) as tx:
        await tx.run(sa.text("UPDATE approvals SET arguments = :long WHERE approval_id = 'long'"), {"long": long})
    together = await stage.services.queries.together("long", ANA)
    assert ([view.approval_id for view in together.listed], together.more) == (["short"], 1)
    assert set(await stage.services.queries.decidable_with("long", ANA)) == {"short", "long"}
