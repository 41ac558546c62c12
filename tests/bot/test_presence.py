"""Where the bot is brought to, it greets once; where it is removed from, nothing waits or is said any more."""

from __future__ import annotations

import asyncio

from bot.domain import ApprovalView, ConversationReference, Feedback, Notice
from bot.platform import PostFailed
from bot.records import approvals, tables, threads
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from tests.bot.conftest import RecordingPlatform, place, until
from tests.bot.rows import asked
from tests.bot.services_stage import ANA, BEN, HERE, THREAD, Stage

ROOM = place("chat:room", has_threads=False)
HELLO = "Hello, I am new here."


def said(platform: RecordingPlatform, where: ConversationReference) -> list[str]:
    """The sentences that were said at a place."""
    contents = [post.content for post in platform.shown.values() if post.place == where]
    return [content.text for content in contents if isinstance(content, Notice)]


async def test_it_greets_where_it_is_brought_to(stage: Stage, platform: RecordingPlatform) -> None:
    assert await stage.services.inbox.arrived("e1", ROOM, HELLO)
    await until(lambda: said(platform, ROOM) == [HELLO])


async def test_being_told_twice_of_one_arrival_it_greets_once(stage: Stage, platform: RecordingPlatform) -> None:
    assert await stage.services.inbox.arrived("e1", ROOM, HELLO)
    assert not await stage.services.inbox.arrived("e2", ROOM, HELLO)
    await until(lambda: said(platform, ROOM))
    assert len(said(platform, ROOM)) == 1


async def test_brought_back_it_greets_again(stage: Stage, platform: RecordingPlatform) -> None:
    await stage.services.inbox.arrived("e1", ROOM, HELLO)
    await until(lambda: said(platform, ROOM))
    await stage.services.inbox.left(ROOM)
    assert await stage.services.inbox.arrived("e2", ROOM, HELLO)
    await until(lambda: len(said(platform, ROOM)) == 2)


async def test_what_waits_where_it_is_removed_from_is_given_up(stage: Stage, platform: RecordingPlatform) -> None:
    await stage.ask("a1")
    await stage.services.inbox.left(HERE)
    async with stage.database.reading() as tx:
        row = await approvals.get(tx, "a1")
    assert row is not None
    assert (row.status, row.reason) == ("superseded", "Countersign was removed from this conversation")


async def test_the_threads_of_a_channel_go_with_it_and_others_stay(stage: Stage) -> None:
    channel = ConversationReference("chat", "chat:ch", {}, channel="chat:ch")
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(
            tx, "chat:ch:1", ConversationReference("chat", "chat:ch:1", {}, channel="chat:ch"), "hi", 0.0
        )
    await stage.ask("a1", thread_id="chat:ch:1")
    await stage.ask("a2")
    await stage.services.inbox.left(channel)
    async with stage.database.reading() as tx:
        statuses = [row.status for name in ("a1", "a2") if (row := await approvals.get(tx, name))]
    assert statuses == ["superseded", "pending"]


async def test_nothing_more_is_shown_there_but_cards_elsewhere_say_what_became_of_it(
    stage: Stage, platform: RecordingPlatform
) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        request = asked("c", requesters=(ANA.person_id,))
        await approvals.add(tx, "a1", THREAD, request, now=0.0, expires_at=None)
        for key, where in (("own", None), ("far", place("chat:far"))):
            await stage.outbox.say(tx, NewPost(key, THREAD, "approval", subject="a1", place=where))
    await until(lambda: len(platform.done) == 2)
    await stage.services.inbox.left(HERE)
    await until(lambda: ("update", "far", 2) in platform.done)
    assert ("update", "own", 2) not in platform.done
    view = next(post for post in platform.shown.values() if post.post_id == "far").content
    assert isinstance(view, ApprovalView)
    assert view.status == "superseded"


async def test_what_could_not_be_shown_yet_is_not_tried_again_where_it_was_removed_from(
    stage: Stage, platform: RecordingPlatform
) -> None:
    platform.held[ROOM.key], platform.failures = asyncio.Event(), [PostFailed("away for a moment")]
    await stage.services.inbox.arrived("e1", ROOM, HELLO)
    await until(lambda: platform.begun)
    await stage.services.inbox.left(ROOM)
    platform.held[ROOM.key].set()
    await stage.outbox.stop(5.0)
    assert said(platform, ROOM) == []


# --------------------------------------------------------------------------------------------------- reactions


async def test_an_answer_is_found_by_where_it_is_shown(stage: Stage, platform: RecordingPlatform) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        for number in (1, 2):
            await stage.outbox.say(tx, NewPost(f"said:{number}", THREAD, "said", content={"text": f"answer {number}"}))
    await until(lambda: len(platform.done) == 2)
    await stage.outbox.stop(1.0)  # the records know now what was shown
    second = next(number for number, post in platform.shown.items() if post.post_id == "said:2")
    assert await stage.services.queries.answer_at(HERE, lambda reference: reference["number"] == second) == "said:2"
    assert await stage.services.queries.answer_at(ROOM, lambda reference: reference["number"] == second) is None


async def test_a_comment_is_kept_with_the_opinion(stage: Stage) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.keep_feedback(tx, Feedback(BEN, "said:1", "bad", "too long"), 1.0)
        await threads.keep_feedback(tx, Feedback(BEN, "said:1", "good", "ah, no"), 2.0)
        rows = [(r.verdict, r.comment) for r in await tx.all(tables.feedback.select())]
    assert rows == [("good", "ah, no")]
