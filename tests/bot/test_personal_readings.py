"""What was read over one person's account for a card is on nobody else's, and why a call is asked about again is."""

from __future__ import annotations

import pytest

from bot.domain import ApprovalView, ConversationReference
from bot.records import approvals, threads
from bot.records.locks import UNLOCKED
from bot.records.posts import PostRow
from bot.views import post_of
from graph.presentation import AskedAgain, CallPresentation, KnownId, Preview
from tests.bot.conftest import place
from tests.bot.rows import asked
from tests.bot.services_stage import ANA, BEN, THREAD, Stage

THEIRS = CallPresentation(
    known_ids=(KnownId(argument="what", value="lamp", title="Severance", source="mail › get", owner=ANA.person_id),),
    preview=Preview(before={"subject": "Severance"}, digest="d", source="mail › preview", owner=ANA.person_id),
)
CHAT_WITH_ONE = place(THREAD, platform="slack", direct=True)
ELSEWHERE = place("slack:T1:C2", platform="slack")


async def asked_for(stage: Stage, requester: str = ANA.person_id) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", stage.clock())
        request = asked(requesters=(requester,)).model_copy(update={"presentation": THEIRS})
        await approvals.add(tx, "a1", THREAD, request, now=stage.clock(), expires_at=None)


async def shown(stage: Stage, where: ConversationReference, *, routed_to: ConversationReference | None = None) -> str:
    row = PostRow("approval:a1", THREAD, THREAD, routed_to, "approval", "a1", None, None, 1, 0, None, 0, 0.0)
    async with stage.database.reading() as tx:
        post = await post_of(tx, row, where, stage.clock())
    assert post is not None
    return repr(post)


async def test_a_person_sees_what_is_theirs_in_their_own_chat_with_the_bot(stage: Stage) -> None:
    await asked_for(stage)
    assert "Severance" in await shown(stage, CHAT_WITH_ONE)


@pytest.mark.parametrize("where", [ELSEWHERE, place(THREAD, platform="web", direct=True)])
async def test_others_who_read_a_conversation_do_not(stage: Stage, where: ConversationReference) -> None:
    await asked_for(stage)
    assert "Severance" not in await shown(stage, where)


async def test_whoever_a_card_is_sent_to_does_not(stage: Stage) -> None:
    await asked_for(stage)
    assert "Severance" not in await shown(stage, CHAT_WITH_ONE, routed_to=CHAT_WITH_ONE)


async def test_what_is_anothers_is_not_shown_in_somebodys_chat(stage: Stage) -> None:
    await asked_for(stage, requester=BEN.person_id)
    assert "Severance" not in await shown(stage, CHAT_WITH_ONE)


async def test_a_card_that_is_fetched_shows_nothing_of_it(stage: Stage) -> None:
    await asked_for(stage)
    assert "Severance" not in repr(await stage.services.queries.approval("a1", "chat:"))


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ("changed", "Asked again: workshop has changed since"),
        ("not found out", "Asked again: workshop could not be checked"),
    ],
)
async def test_both_cards_say_why_it_is_asked_again(stage: Stage, again: AskedAgain, told: str) -> None:
    await asked_for(stage)
    second = asked(requesters=(ANA.person_id,)).model_copy(
        update={"round": 2, "presentation": CallPresentation(again=again)}
    )
    async with stage.database.writing(UNLOCKED) as tx:
        await approvals.add(tx, "a2", THREAD, second, now=stage.clock(), expires_at=None)
        await approvals.void_unused(tx, second.call_id, 2)
    old, new = [await stage.services.queries.approval(each, "chat:") for each in ("a1", "a2")]
    assert isinstance(old, ApprovalView)
    assert isinstance(new, ApprovalView)
    assert (old.status, old.result, old.again) == ("void", told, "")
    assert (new.status, new.result, new.again) == ("pending", "", told)
