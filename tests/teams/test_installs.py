"""Coming to a conversation and leaving it; edits, deletions, reactions and feedback as Teams tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.teams.ids import message_key, person_id
from adapters.teams.render.posts import greeting
from bot.domain import Post, Said
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT
from tests.support.teams_doors import Json
from tests.teams.serving import Served, serving
from tests.teams.stand_in_services import NOW


@pytest.fixture
async def house() -> AsyncIterator[Served]:
    async with serving() as house:
        yield house


# ------------------------------------------------------------------------------------------------ installs


async def test_an_install_in_a_chat_is_greeted_there(house: Served) -> None:
    answers = await house.person().installs()
    assert [answer.status for answer in answers] == [200, 200]
    chat = f"teams:{TENANT}:{house.teams.personal(ANA)}"
    assert {place.key for _, place, _ in house.services.arrivals} == {chat}
    assert {place.address["user"] for _, place, _ in house.services.arrivals} == {ANA}
    assert {text for _, _, text in house.services.arrivals} == {greeting()}


async def test_an_install_in_a_team_is_greeted_in_its_channel(house: Served) -> None:
    await house.person().installs(house.teams.channel)
    (place, *more) = {place.key: place for _, place, _ in house.services.arrivals}.values()
    assert more == []
    assert place.key == f"teams:{TENANT}:{house.teams.channel}"
    assert place.address["kind"] == "channel"


async def test_an_event_that_teams_sends_twice_has_one_key(house: Served) -> None:
    answers = await house.person().installs(house.teams.group)
    await house.person().again(answers[0])
    keys = [key for key, _, _ in house.services.arrivals]
    assert (len(keys), len(set(keys))) == (3, 2)


async def test_an_upgrade_is_no_arrival(house: Served) -> None:
    assert (await house.person().upgrades()).status == 200
    assert house.services.arrivals == []


async def test_people_who_join_are_not_greeted(house: Served) -> None:
    house.teams.add_user("e0000000-0000-4000-8000-00000000000e", name="Eve")
    await house.person("e0000000-0000-4000-8000-00000000000e").joins(house.teams.group)
    assert house.services.arrivals == []


async def test_who_leaves_is_looked_up_anew(house: Served) -> None:
    await house.person(BEN).says(house.teams.group, "help")
    await house.hears("approvals", BEN)
    asked = len(house.teams.calls_of("member"))
    await house.person(BEN).leaves(house.teams.group)
    house.teams.world.conversations[house.teams.group].members.add(BEN)
    await house.person(BEN).says(house.teams.group, "help")
    await house.teams.until(lambda: len(house.teams.calls_of("member")) > asked)


async def test_an_uninstall_is_passed_on(house: Served) -> None:
    answers = await house.person().uninstalls(house.teams.group)
    assert {answer.status for answer in answers} == {200}
    assert {place.key for place in house.services.departures} == {f"teams:{TENANT}:{house.teams.group}"}


async def test_records_that_fail_have_an_install_sent_again(house: Served) -> None:
    house.services.broken = RuntimeError("the disk is full")
    assert {answer.status for answer in await house.person().installs()} == {503}


# ------------------------------------------------------------------------------------------------ messages


async def test_a_message_is_acknowledged_when_it_is_kept(house: Served) -> None:
    said = await house.person().says(house.teams.channel, "delete the stand-up")
    assert (said.status, said.text) == (200, "")
    (message,) = house.services.messages
    assert message.text == "delete the stand-up"
    assert message.place.key == f"teams:{TENANT}:{house.teams.channel};messageid={said.id}"
    assert message.key == message_key(TENANT, said.conversation, said.id)


async def test_what_cannot_be_kept_is_not_acknowledged(house: Served) -> None:
    house.services.broken = RuntimeError("the disk is full")
    said = await house.person().says(house.teams.channel, "delete the stand-up")
    assert said.status == 503
    assert "disk" not in said.text
    house.services.broken = None
    assert (await house.person().again(said)).status == 200
    assert len(house.services.messages) == 1


async def test_a_message_that_teams_sends_twice_is_one(house: Served) -> None:
    said = await house.person().says(house.teams.personal(ANA), "hello")
    assert (await house.person().again(said)).status == 200
    assert len(house.services.messages) == 1


async def test_a_reply_without_the_mention_is_passed_on_where_the_installation_allows_it(house: Served) -> None:
    thread = await house.thread()
    house.teams.rsc = True
    await house.person(BEN).says(thread, "really?", mention=False)
    assert (house.services.messages[-1].text, house.services.messages[-1].addressed) == ("really?", False)
    assert house.services.messages[-1].place.key == house.services.messages[0].place.key


async def test_an_edit_changes_a_message(house: Served) -> None:
    said = await house.person().says(house.teams.channel, "delete it")
    await house.person().edits(said.id, "keep it")
    assert house.services.amended == [(message_key(TENANT, said.conversation, said.id), "keep it")]
    assert len(house.services.messages) == 1


async def test_an_edit_that_adds_the_mention_is_a_new_message(house: Served) -> None:
    said = await house.person().says(house.teams.channel, "delete it", mention=False)
    await house.person().edits(said.id, "delete it please")
    assert [message.text for message in house.services.messages] == ["delete it please"]
    assert house.services.amended == []


async def test_an_edit_in_a_direct_chat_is_never_a_new_message(house: Served) -> None:
    said = await house.person().says(house.teams.personal(ANA), "delete it")
    house.services.messages.clear()  # as if it had been forgotten
    await house.person().edits(said.id, "keep it")
    assert house.services.messages == []
    assert [text for _, text in house.services.amended] == ["keep it"]


async def test_a_deletion_withdraws_a_message_and_taking_it_back_does_nothing(house: Served) -> None:
    said = await house.person().says(house.teams.channel, "delete it")
    await house.person().deletes(said.id)
    assert house.services.withdrawn == [message_key(TENANT, said.conversation, said.id)]
    assert (await house.person().undeletes(said.id)).status == 200
    assert (len(house.services.messages), house.services.amended) == (1, [])


# ------------------------------------------------------------------------------------------------ opinions


async def an_answer(house: Served, conversation: str = "") -> Json:
    conversation = conversation or await house.thread()
    place = house.place(conversation)
    reference = await house.sender.send(Post("said:m1", "thread-1", place, 1, NOW, Said("It is done.")))
    house.services.spoken["said:m1"] = (place, reference)
    return house.message(conversation, str(reference["parts"][-1]))


@pytest.mark.parametrize(("reaction", "verdict"), [("like", "good"), ("heart", "good"), ("sad", "bad")])
async def test_a_reaction_to_an_answer_is_an_opinion(house: Served, reaction: str, verdict: str) -> None:
    answer = await an_answer(house)
    assert (await house.person(BEN).reacts(answer["id"], reaction)).status == 200
    (opinion,) = house.services.opinions
    assert (opinion.post_id, opinion.verdict, opinion.comment) == ("said:m1", verdict, "")
    assert opinion.person.person_id == person_id(TENANT, BEN)


async def test_taking_a_reaction_back_takes_no_opinion_back(house: Served) -> None:
    answer = await an_answer(house)
    assert (await house.person(BEN).reacts(answer["id"], "like", removed=True)).status == 200
    assert house.services.opinions == []


async def test_feedback_comes_with_its_words(house: Served) -> None:
    answer = await an_answer(house, house.teams.personal(ANA))
    assert (await house.person().feeds_back(answer, "dislike", "too long")).status == 200
    (opinion,) = house.services.opinions
    assert (opinion.post_id, opinion.verdict, opinion.comment) == ("said:m1", "bad", "too long")


@pytest.mark.parametrize(
    "feedback", ['{"feedbackText": "x"}', {"feedbackText": "x"}, '"x"', "x", '{"feedbackText": "x", "more": 1}']
)
async def test_feedback_is_read_in_every_form(house: Served, feedback: object) -> None:
    answer = await an_answer(house)
    value = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": feedback}}
    await house.person().invokes("message/submitAction", value, answer["conversation"], answer["id"])
    assert [opinion.comment for opinion in house.services.opinions] == ["x"]


async def test_what_is_no_answer_of_ours_has_no_opinions(house: Served) -> None:
    thread = await house.thread()
    value = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": "{}"}}
    answer = await house.person().invokes("message/submitAction", value, thread, "999")
    other = await house.person().invokes("message/submitAction", {"actionName": "other"}, thread, "999")
    assert (answer.status, other.status, house.services.opinions) == (200, 200, [])


async def test_guests_have_no_say(house: Served) -> None:
    answer = await an_answer(house)
    assert (await house.person(GUS).reacts(answer["id"], "like")).status == 200
    assert house.services.opinions == []
