"""What one person alone may see, by the first way that is open; links to sign in above all."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from adapters.teams.ids import location_of
from adapters.teams.outbound.posting import TeamsPrivateMessages
from adapters.teams.render.posts import note
from bot.domain import Refused
from bot.platform import PostFailed
from tests.fakes.teams.calls import ApiCall
from tests.fakes.teams.server import ANA, BEN
from tests.teams.outbound_stage import BENS_SIGN_IN, DONE, LINK, SIGN_IN, Stage, staged, teams_person

SECRET = "only for you: very-secret"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


def calls_with(stage: Stage, text: str) -> list[ApiCall]:
    """Everything that Teams was told with this in it."""
    return [call for call in stage.teams.calls if text in str(call.body)]


def readers(stage: Stage, call: ApiCall) -> set[str]:
    """The addresses of those who can read what this call posted."""
    if call.query.get("isTargetedActivity") == "true":
        return {call.body["recipient"]["id"]}
    members = stage.teams.world.conversation(call.conversation).members
    return {stage.teams.address(user) for user in members}


# ------------------------------------------------------------------------------------------- ways


async def test_in_a_conversation_with_others_it_is_a_targeted_message(stage: Stage) -> None:
    for place in (stage.thread, stage.group):
        told = await stage.private.tell(location_of(place), teams_person(BEN), note(SECRET))
        [message] = [m for m in stage.seen(place) if SECRET in m["text"]]
        assert message["only_for"] == stage.teams.address(BEN)
        assert told is not None
        assert told["private"] is True
        assert told["parts"] == [message["id"]]


async def test_the_address_that_came_with_a_click_needs_no_looking_up(stage: Stage) -> None:
    address = stage.teams.address(BEN)
    assert await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET), address=address)
    assert stage.teams.calls_of("member") == []


async def test_where_they_talk_with_the_bot_alone_it_is_a_message(stage: Stage) -> None:
    assert await stage.private.tell(location_of(stage.chat(ANA)), teams_person(ANA), note(SECRET))
    [message] = stage.seen(stage.chat(ANA))
    assert message["only_for"] == ""
    assert stage.teams.calls_of("open_chat") == []


async def test_in_somebody_elses_chat_nothing_is_said(stage: Stage) -> None:
    assert await stage.private.tell(location_of(stage.chat(ANA)), teams_person(BEN), note(SECRET))
    assert stage.seen(stage.chat(ANA)) == []
    assert len(stage.seen(stage.chat(BEN))) == 1


async def test_where_a_tenant_has_no_targeted_messages_it_is_the_chat_and_it_is_not_tried_again(stage: Stage) -> None:
    stage.teams.targeted = False
    for _ in range(3):
        assert await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    assert len(stage.seen(stage.chat(BEN))) == 3
    assert stage.seen(stage.thread) == []
    assert len(targeted(stage)) == 1


async def test_where_targeted_messages_are_switched_off_it_is_always_the_chat(stage: Stage) -> None:
    private = TeamsPrivateMessages(stage.connector, stage.people, stage.teams.config(targeted_messages=False))
    assert await private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    await private.close()
    assert [readers(stage, call) for call in calls_with(stage, SECRET)] == [{stage.teams.address(BEN)}]
    assert targeted(stage) == []


async def test_it_is_tried_again_after_an_hour(stage: Stage) -> None:
    stage.teams.targeted = False
    await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    stage.teams.targeted = True
    stage.now += 3_601
    await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    assert [m["only_for"] for m in stage.seen(stage.thread)] == [stage.teams.address(BEN)]


@pytest.mark.parametrize(
    ("status", "code"), [(503, ""), (403, "BotNotInConversationRoster"), (0, "MemberNotFoundInConversation")]
)
async def test_a_passing_trouble_is_not_taken_for_a_tenant_without_them(stage: Stage, status: int, code: str) -> None:
    stage.teams.fail("send", status=status, code=code, when=lambda body: "recipient" in body)
    await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    assert len(stage.seen(stage.chat(BEN))) == 1
    await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    assert len(targeted(stage)) == 2


async def test_somebody_who_is_not_there_gets_it_in_their_chat(stage: Stage) -> None:
    stage.teams.world.conversations[stage.teams.group].members.discard(BEN)
    assert await stage.private.tell(location_of(stage.group), teams_person(BEN), note(SECRET))
    assert len(stage.seen(stage.chat(BEN))) == 1


async def test_somebody_who_cannot_be_told_is_logged_without_what_they_were_to_be_told(stage: Stage) -> None:
    stage.teams.targeted = False
    stage.teams.world.users[BEN].has_app = False
    with capture_logs() as logs:
        assert await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET)) is None
    assert "teams_person_not_told" in [entry["event"] for entry in logs]
    assert "very-secret" not in str(logs)
    assert stage.teams.posts(stage.teams.channel) == []


@pytest.mark.parametrize("is_targeted", [True, False])
async def test_what_was_told_can_be_taken_back(stage: Stage, *, is_targeted: bool) -> None:
    stage.teams.targeted = is_targeted
    told = await stage.private.tell(location_of(stage.thread), teams_person(BEN), note(SECRET))
    assert told is not None
    await stage.private.take_back(location_of(stage.thread), told)
    assert stage.seen(stage.thread) == stage.seen(stage.chat(BEN)) == []
    await stage.private.take_back(location_of(stage.thread), told)  # it is gone already: nothing happens


# ------------------------------------------------------------------------------------------- posts for one person


async def test_a_notice_for_one_person_is_seen_by_nobody_else(stage: Stage) -> None:
    post = stage.notice("wait:1", "Please wait.", only_for=teams_person(BEN))
    reference = await stage.outbound.send(post)
    [message] = stage.seen(stage.thread)
    assert message["only_for"] == stage.teams.address(BEN)
    assert reference["private"] is True
    assert await stage.outbound.update(post, reference) == reference


async def test_in_their_own_chat_it_is_a_post_like_any_other(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.notice("n", "Hello.", stage.chat(BEN), only_for=teams_person(BEN)))
    assert set(reference) == {"conversation", "parts"}
    assert stage.texts(stage.chat(BEN)) == ["Hello."]


async def test_a_notice_for_somebody_who_cannot_be_reached_is_given_up(stage: Stage) -> None:
    stage.teams.targeted = False
    stage.teams.world.users[BEN].has_app = False
    post = stage.notice("wait:1", "Please wait.", only_for=teams_person(BEN))
    assert await stage.outbound.send(post) == {"private": True}


async def test_a_notice_for_somebody_who_cannot_be_reached_now_is_for_later(stage: Stage) -> None:
    stage.teams.targeted = False
    stage.teams.fail("open_chat", status=503, times=math.inf)
    with pytest.raises(PostFailed) as failed:
        await stage.outbound.send(stage.notice("wait:1", "Please wait.", only_for=teams_person(BEN)))
    assert not failed.value.permanent


# ------------------------------------------------------------------------------------------- links


async def test_the_link_is_its_owners_alone(stage: Stage) -> None:
    stage.links[teams_person(ANA)] = LINK
    reference = await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    card, link = stage.seen(stage.thread)
    assert (card["only_for"], link["only_for"]) == ("", stage.teams.address(ANA))
    assert LINK not in str(card)
    assert LINK in str(link)
    assert reference["parts"] == [card["id"]]
    assert reference["link"]["parts"] == [link["id"]]


async def test_without_targeted_messages_it_is_in_the_chat(stage: Stage) -> None:
    stage.teams.targeted = False
    stage.links[teams_person(ANA)] = LINK
    await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    assert LINK not in str(stage.seen(stage.thread))
    assert LINK in str(stage.seen(stage.chat(ANA)))


async def test_in_the_owners_chat_it_is_a_message_of_its_own(stage: Stage) -> None:
    stage.links[teams_person(ANA)] = LINK
    await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN, stage.chat(ANA)))
    card, link = stage.seen(stage.chat(ANA))
    assert LINK not in str(card)
    assert LINK in str(link)


async def test_where_its_owner_cannot_be_reached_they_are_told_what_to_do_without_it(stage: Stage) -> None:
    stage.teams.targeted = False
    stage.teams.world.users[ANA].has_app = False
    stage.links[teams_person(ANA)] = LINK
    with capture_logs() as logs:
        reference = await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    card, told = stage.seen(stage.thread)
    assert "Ana" in told["text"]
    assert [call for call in calls_with(stage, "very-secret") if call.conversation == card["conversation"]] == [
        *targeted(stage)
    ]
    assert "very-secret" not in str(logs)
    await stage.outbound.update(stage.post("sign_in:s1", DONE), reference)
    assert [message["id"] for message in stage.seen(stage.thread)] == [card["id"]]


@pytest.mark.parametrize("answer", [Refused("not yours"), RuntimeError(LINK)])
async def test_a_link_that_cannot_be_had_is_no_failure_of_the_card(stage: Stage, answer: Refused | Exception) -> None:
    stage.links[teams_person(ANA)] = answer
    with capture_logs() as logs:
        reference = await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    assert len(stage.seen(stage.thread)) == 1
    assert "very-secret" not in str(logs)
    await stage.outbound.update(stage.post("sign_in:s1", SIGN_IN), reference)
    assert len(stage.seen(stage.thread)) == 1


@pytest.mark.parametrize("status", ["done", "declined", "expired", "superseded"])
@pytest.mark.parametrize("is_targeted", [True, False])
async def test_a_settled_sign_in_takes_its_link_back(stage: Stage, status: str, *, is_targeted: bool) -> None:
    stage.teams.targeted = is_targeted
    stage.links[teams_person(ANA)] = LINK
    reference = await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    settled = replace(SIGN_IN, status=status)  # type: ignore[arg-type]  # one of the words above
    after = await stage.outbound.update(stage.post("sign_in:s1", settled), reference)
    [card] = [*stage.seen(stage.thread), *stage.seen(stage.chat(ANA))]
    assert card["edited"]
    assert "link" not in after


async def test_a_link_is_given_once(stage: Stage) -> None:
    stage.links[teams_person(ANA)] = LINK
    reference = await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    assert await stage.outbound.update(stage.post("sign_in:s1", SIGN_IN), reference) == reference
    assert len(targeted(stage)) == 1


async def test_a_card_that_was_sent_without_its_link_gets_it_at_the_next_try(stage: Stage) -> None:
    stage.links[teams_person(ANA)] = LINK
    await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    begun = await stage.outbound.find(stage.post("sign_in:s1", SIGN_IN))
    assert begun is not None
    assert "link" not in begun  # its sender did not come that far
    reference = await stage.outbound.update(stage.post("sign_in:s1", SIGN_IN), begun)
    assert reference["link"]["private"] is True


async def test_each_of_ten_people_gets_nothing_but_their_own_link(stage: Stage) -> None:
    users = [f"e0000000-0000-4000-8000-0000000000{n:02}" for n in range(10)]
    for number, user in enumerate(users):
        stage.teams.add_user(user, name=f"P{number}", has_app=number % 3 == 0)
        if number % 2:
            stage.teams.world.conversations[stage.teams.group].members.add(user)
        stage.links[teams_person(user)] = f"https://sign.in/secret-{user}"
    for number, user in enumerate(users):
        view = replace(SIGN_IN, sign_in_id=f"s{number}", owner=f"P{number}", owner_id=teams_person(user))
        await stage.outbound.send(stage.post(f"sign_in:s{number}", view, stage.group))
    for user in users:
        told = [call for call in calls_with(stage, f"secret-{user}") if call.verb == "send"]
        assert {reader for call in told for reader in readers(stage, call)} <= {stage.teams.address(user)}
    reached = [n for n, user in enumerate(users) if calls_with(stage, f"secret-{user}")]
    assert reached == [n for n in range(10) if n % 2 or n % 3 == 0]


async def test_two_owners_in_one_thread_do_not_see_each_others_links(stage: Stage) -> None:
    stage.links = {teams_person(ANA): LINK, teams_person(BEN): "https://sign.in/bens"}
    await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN))
    await stage.outbound.send(stage.post("sign_in:s2", BENS_SIGN_IN))
    private = {m["only_for"]: m for m in stage.seen(stage.thread) if m["only_for"]}
    assert LINK in str(private[stage.teams.address(ANA)])
    assert "bens" in str(private[stage.teams.address(BEN)])
    assert "bens" not in str(private[stage.teams.address(ANA)])


def targeted(stage: Stage) -> list[ApiCall]:
    return [call for call in stage.teams.calls_of("send") if call.query.get("isTargetedActivity") == "true"]
