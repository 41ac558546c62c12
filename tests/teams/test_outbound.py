"""What the bot says in Teams: shown, updated in place, and not lost when Teams is not well."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from adapters.teams.ids import TeamsLocation, named_place, place_of
from bot.domain import ConversationReference, Notice, Said
from bot.platform import PostFailed
from tests.fakes.teams.server import ANA, BEN, TENANT
from tests.teams.outbound_stage import APPROVAL, LINK, LONG, REJECTED, SIGN_IN, Stage, staged, teams_person


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


def place(stage: Stage, name: str) -> ConversationReference:
    return {"thread": stage.thread, "group": stage.group, "chat": stage.chat()}[name]


@pytest.mark.parametrize("name", ["thread", "group", "chat"])
async def test_a_post_is_one_message_where_it_belongs(stage: Stage, name: str) -> None:
    where = place(stage, name)
    reference = await stage.outbound.send(stage.post("said:d.1", Said("Hello there."), where))
    [message] = stage.seen(where)
    assert reference == {"conversation": where.address["conversation"], "parts": [message["id"]]}
    assert message["text"] == "Hello there."
    assert message["conversation"] == where.address["conversation"]


async def test_the_parts_of_a_long_answer_stand_in_order(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.post("said:d.1", Said(LONG)))
    assert len(reference["parts"]) > 1
    assert [message["id"] for message in stage.seen(stage.thread)] == list(reference["parts"])
    whole = "".join("".join(stage.texts(stage.thread)).split())
    positions = [whole.index(f"Paragraph{n}:") for n in range(60)]
    assert positions == sorted(positions)


async def test_an_update_replaces_the_messages_there_are(stage: Stage) -> None:
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL))
    again = await stage.outbound.update(stage.post("approval:a1", REJECTED), card)
    [message] = stage.seen(stage.thread)
    assert again == card
    assert message["edited"]
    assert "not now" in str(message["attachments"])


async def test_an_update_posts_what_is_missing_and_deletes_what_is_too_much(stage: Stage) -> None:
    short = await stage.outbound.send(stage.post("said:d.1", Said("Hello.")))
    longer = await stage.outbound.update(stage.post("said:d.1", Said(LONG)), short)
    assert len(longer["parts"]) > 1
    assert longer["parts"][0] == short["parts"][0]
    assert [m["id"] for m in stage.seen(stage.thread)] == list(longer["parts"])
    shorter = await stage.outbound.update(stage.post("said:d.1", Said("Hello.")), longer)
    assert shorter == short
    assert stage.texts(stage.thread) == ["Hello."]


async def test_a_card_that_still_waits_comes_back_when_somebody_has_deleted_it(stage: Stage) -> None:
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL))
    _delete(stage)
    again = await stage.outbound.update(stage.post("approval:a1", APPROVAL), card)
    [message] = stage.seen(stage.thread)
    assert again["parts"] == [message["id"]] != card["parts"]


async def test_anything_else_stays_gone(stage: Stage) -> None:
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL))
    _delete(stage)
    assert await stage.outbound.update(stage.post("approval:a1", REJECTED), card) == card
    assert stage.seen(stage.thread) == []


def _delete(stage: Stage) -> None:
    """Somebody deletes all that the bot has posted in the thread."""
    for message in stage.seen(stage.thread):
        stage.teams.world.conversations[stage.teams.channel].messages[message["id"]].deleted = True


# ------------------------------------------------------------------------------------------- places that rules name


async def test_a_channel_that_a_rule_names_gets_a_thread_of_its_own(stage: Stage) -> None:
    where = named_place(f"teams:{TENANT}:{stage.teams.channel}")
    assert where is not None
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL, where))
    [message] = stage.teams.posts(stage.teams.channel)
    assert card == {"conversation": message["conversation"], "parts": [message["id"]]}
    assert card["conversation"] == f"{stage.teams.channel};messageid={message['id']}"
    await stage.outbound.update(stage.post("approval:a1", REJECTED, where), card)
    assert [m["edited"] for m in stage.teams.posts(stage.teams.channel)] == [True]


async def test_the_rest_of_a_long_post_stands_in_the_thread_that_it_began(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.post("said:d.1", Said(LONG), stage.channel))
    messages = stage.teams.posts(reference["conversation"])
    assert [m["id"] for m in messages] == list(reference["parts"])
    assert len(stage.teams.calls_of("open_thread")) == 1


async def test_a_person_whom_a_rule_names_gets_it_in_their_chat(stage: Stage) -> None:
    where = named_place(teams_person(BEN).replace(BEN, BEN.upper()))
    assert where is not None
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL, where))
    [message] = stage.seen(stage.chat(BEN))
    assert card == {"conversation": stage.teams.personal(BEN), "parts": [message["id"]]}
    await stage.outbound.send(stage.post("approval:a2", replace(APPROVAL, approval_id="a2"), where))
    assert len(stage.teams.calls_of("open_chat")) == 1


async def test_what_is_asked_of_a_person_outside_of_conversations_is_in_their_chat(stage: Stage) -> None:
    """The calls of their other agents have no conversation: cards, notices and links go to them."""
    where = named_place(teams_person(BEN))
    stage.links[teams_person(BEN)] = LINK
    wanted = replace(SIGN_IN, owner_id=teams_person(BEN), client="claude-code")
    card = await stage.outbound.send(stage.post("approval:a1", replace(APPROVAL, client="claude-code"), where))
    await stage.outbound.send(stage.post("sign_in:s1", wanted, where))
    await stage.outbound.send(stage.post("n1", Notice("It went wrong."), where, only_for=teams_person(BEN)))
    expired = replace(APPROVAL, client="claude-code", status="expired")
    await stage.outbound.update(stage.post("approval:a1", expired, where), card)
    asked, public, private, told = map(json.dumps, stage.seen(stage.chat(BEN)))
    assert "Expired" in asked and "Requested by Ana, through claude" in asked
    assert "Waiting for" in public and LINK not in public and LINK in private
    assert "It went wrong." in told


async def test_a_person_without_the_app_cannot_be_reached(stage: Stage) -> None:
    stage.teams.world.users[BEN].has_app = False
    where = named_place(teams_person(BEN))
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.post("approval:a1", APPROVAL, where))
    assert failed.value.permanent


# ------------------------------------------------------------------------------------------- in trouble


@pytest.mark.parametrize("status", [412, 429, 502, 504])
async def test_a_storm_that_passes_leaves_one_message(stage: Stage, status: int) -> None:
    stage.teams.fail("send", status=status, times=3)
    await stage.outbound.send(stage.notice("n1", "Hello."))
    assert stage.texts(stage.thread) == ["Hello."]


async def test_a_storm_that_lasts_is_for_later(stage: Stage) -> None:
    stage.teams.fail("send", status=429, retry_after=40, times=math.inf)
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.notice("n1", "Hello."))
    assert not failed.value.permanent
    assert failed.value.retry_after is not None
    assert failed.value.retry_after >= 30


async def test_a_conversation_that_is_gone_is_gone_for_good(stage: Stage) -> None:
    where = place_of(TeamsLocation(TENANT, "19:gone@thread.v2", "groupChat", stage.teams.service_url))
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.notice("n1", "Hello.", where))
    assert failed.value.permanent


async def test_another_try_goes_on_where_the_first_one_failed(stage: Stage) -> None:
    post = stage.post("said:d.1", Said(LONG))
    stage.teams.fail("send", status=503, when=lambda body: "Paragraph 59" in body["text"])
    with pytest.raises(PostFailed):
        await stage.outbound.send(post)
    begun = await stage.outbound.find(post)
    assert begun is not None
    reference = await stage.outbound.update(post, begun)
    assert [m["id"] for m in stage.seen(stage.thread)] == list(reference["parts"])
    assert "".join(stage.texts(stage.thread)).count("Paragraph 0:") == 1


async def test_a_thread_that_was_begun_is_not_begun_again(stage: Stage) -> None:
    post = stage.post("said:d.1", Said(LONG), stage.channel)
    stage.teams.fail("send", status=503)
    with pytest.raises(PostFailed):
        await stage.outbound.send(post)
    begun = await stage.outbound.find(post)
    assert begun is not None
    reference = await stage.outbound.update(post, begun)
    assert len(stage.teams.posts(stage.teams.channel)) == len(reference["parts"])


async def test_a_post_whose_answer_got_lost_is_made_again(stage: Stage) -> None:
    stage.teams.fail("send", drop=True)
    post = stage.notice("n1", "Hello.")
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(post)
    assert not failed.value.permanent
    assert await stage.outbound.find(post) is None
    await stage.outbound.send(post)
    assert stage.texts(stage.thread) == ["Hello.", "Hello."]  # at least once: Teams lets nobody look


async def test_a_new_process_knows_of_nothing_that_was_sent(stage: Stage) -> None:
    post = stage.notice("n1", "Hello.")
    await stage.outbound.send(post)
    stage.again()
    assert await stage.outbound.find(post) is None


@pytest.mark.parametrize("code", ["BadSyntax", "MessageSizeTooBig"])
async def test_of_a_card_that_teams_refuses_people_get_the_words(stage: Stage, code: str) -> None:
    stage.teams.fail("send", code=code, when=lambda body: bool(body.get("attachments")))
    with capture_logs() as logs:
        reference = await stage.outbound.send(stage.post("approval:a1", APPROVAL))
    [message] = stage.seen(stage.thread)
    assert reference["parts"] == [message["id"]]
    assert message["text"]
    assert message["attachments"] == []
    assert "Buy paint" not in str(logs)
    assert [entry["error"] for entry in logs if entry["event"] == "teams_card_refused"] == [code]


async def test_the_same_holds_for_updates_and_for_threads(stage: Stage) -> None:
    card = await stage.outbound.send(stage.post("approval:a1", APPROVAL))
    stage.teams.fail("update", code="BadSyntax", when=lambda body: bool(body.get("attachments")))
    await stage.outbound.update(stage.post("approval:a1", REJECTED), card)
    assert stage.seen(stage.thread)[0]["attachments"] == []
    stage.teams.fail("open_thread", code="BadSyntax")
    await stage.outbound.send(stage.post("approval:a1@x", APPROVAL, stage.channel))
    assert stage.teams.posts(stage.teams.channel)[-1]["attachments"] == []


async def test_a_text_that_teams_refuses_is_a_failure(stage: Stage) -> None:
    stage.teams.fail("send", code="BadSyntax")
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.notice("n1", "Hello."))
    assert failed.value.permanent


# ------------------------------------------------------------------------------------------- who sees the buttons


async def test_the_card_names_those_for_whom_it_looks_different(stage: Stage) -> None:
    await stage.outbound.send(stage.post("approval:a1", replace(APPROVAL, approvers=(teams_person(BEN),))))
    [message] = stage.seen(stage.thread)
    assert message["attachments"][0]["content"]["refresh"]["userIds"] == [stage.teams.address(BEN)]


async def test_in_a_direct_chat_nobody_is_named(stage: Stage) -> None:
    await stage.outbound.send(stage.post("approval:a1", APPROVAL, stage.chat(ANA)))
    [message] = stage.seen(stage.chat(ANA))
    assert "refresh" not in message["attachments"][0]["content"]
