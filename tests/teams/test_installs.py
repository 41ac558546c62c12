"""Coming to a conversation and leaving it; edits, deletions, reactions and feedback as Teams tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.teams.ids import message_key, person_id
from adapters.teams.render.posts import greeting
from bot.domain import Post, Said
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT
from tests.support.teams_transports import Json
from tests.support.views import NOW
from tests.teams.serving import Served, serving


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


# ------------------------------------------------------------------------------------------------ installs


async def test_an_install_in_a_chat_is_greeted_there(product: Served) -> None:
    answers = await product.person().installs()
    assert [answer.status for answer in answers] == [200, 200]
    chat = f"teams:{TENANT}:{product.teams.personal(ANA)}"
    assert {place.key for _, place, _ in product.services.arrivals} == {chat}
    assert {place.address["user"] for _, place, _ in product.services.arrivals} == {ANA}
    assert {text for _, _, text in product.services.arrivals} == {greeting()}


async def test_an_install_in_a_team_is_greeted_in_its_channel(product: Served) -> None:
    await product.person().installs(product.teams.channel)
    (place, *more) = {place.key: place for _, place, _ in product.services.arrivals}.values()
    assert more == []
    assert place.key == f"teams:{TENANT}:{product.teams.channel}"
    assert place.address["kind"] == "channel"


async def test_an_event_that_teams_sends_twice_has_one_key(product: Served) -> None:
    answers = await product.person().installs(product.teams.group)
    await product.person().again(answers[0])
    keys = [key for key, _, _ in product.services.arrivals]
    assert (len(keys), len(set(keys))) == (3, 2)


async def test_an_upgrade_is_no_arrival(product: Served) -> None:
    assert (await product.person().upgrades()).status == 200
    assert product.services.arrivals == []


async def test_people_who_join_are_not_greeted(product: Served) -> None:
    product.teams.add_user("e0000000-0000-4000-8000-00000000000e", name="Eve")
    await product.person("e0000000-0000-4000-8000-00000000000e").joins(product.teams.group)
    assert product.services.arrivals == []


async def test_who_leaves_is_looked_up_anew(product: Served) -> None:
    await product.person(BEN).says(product.teams.group, "help")
    await product.hears("approvals", BEN)
    asked = len(product.teams.calls_of("member"))
    await product.person(BEN).leaves(product.teams.group)
    product.teams.world.conversations[product.teams.group].members.add(BEN)
    await product.person(BEN).says(product.teams.group, "help")
    await product.teams.until(lambda: len(product.teams.calls_of("member")) > asked)


async def test_an_uninstall_is_passed_on(product: Served) -> None:
    answers = await product.person().uninstalls(product.teams.group)
    assert {answer.status for answer in answers} == {200}
    assert {place.key for place in product.services.departures} == {f"teams:{TENANT}:{product.teams.group}"}


async def test_records_that_fail_have_an_install_sent_again(product: Served) -> None:
    product.services.broken = RuntimeError("the disk is full")
    assert {answer.status for answer in await product.person().installs()} == {503}


# ------------------------------------------------------------------------------------------------ messages


async def test_a_message_is_acknowledged_when_it_is_kept(product: Served) -> None:
    said = await product.person().says(product.teams.channel, "delete the stand-up")
    assert (said.status, said.text) == (200, "")
    (message,) = product.services.messages
    assert message.text == "delete the stand-up"
    assert message.place.key == f"teams:{TENANT}:{product.teams.channel};messageid={said.id}"
    assert message.key == message_key(TENANT, said.conversation, said.id)


async def test_what_cannot_be_kept_is_not_acknowledged(product: Served) -> None:
    product.services.broken = RuntimeError("the disk is full")
    said = await product.person().says(product.teams.channel, "delete the stand-up")
    assert said.status == 503
    assert "disk" not in said.text
    product.services.broken = None
    assert (await product.person().again(said)).status == 200
    assert len(product.services.messages) == 1


async def test_a_message_that_teams_sends_twice_is_one(product: Served) -> None:
    said = await product.person().says(product.teams.personal(ANA), "hello")
    assert (await product.person().again(said)).status == 200
    assert len(product.services.messages) == 1


async def test_a_reply_without_the_mention_is_passed_on_where_the_installation_allows_it(product: Served) -> None:
    thread = await product.thread()
    product.teams.rsc = True
    await product.person(BEN).says(thread, "really?", mention=False)
    assert (product.services.messages[-1].text, product.services.messages[-1].addressed) == ("really?", False)
    assert product.services.messages[-1].place.key == product.services.messages[0].place.key


async def test_an_edit_changes_a_message(product: Served) -> None:
    said = await product.person().says(product.teams.channel, "delete it")
    await product.person().edits(said.id, "keep it")
    assert product.services.amended == [(message_key(TENANT, said.conversation, said.id), "keep it")]
    assert len(product.services.messages) == 1


async def test_an_edit_that_adds_the_mention_is_a_new_message(product: Served) -> None:
    said = await product.person().says(product.teams.channel, "delete it", mention=False)
    await product.person().edits(said.id, "delete it please")
    assert [message.text for message in product.services.messages] == ["delete it please"]
    assert product.services.amended == []


async def test_an_edit_in_a_direct_chat_is_never_a_new_message(product: Served) -> None:
    said = await product.person().says(product.teams.personal(ANA), "delete it")
    product.services.messages.clear()  # as if it had been forgotten
    await product.person().edits(said.id, "keep it")
    assert product.services.messages == []
    assert [text for _, text in product.services.amended] == ["keep it"]


async def test_a_deletion_withdraws_a_message_and_taking_it_back_does_nothing(product: Served) -> None:
    said = await product.person().says(product.teams.channel, "delete it")
    await product.person().deletes(said.id)
    assert product.services.withdrawn == [message_key(TENANT, said.conversation, said.id)]
    assert (await product.person().undeletes(said.id)).status == 200
    assert (len(product.services.messages), product.services.amended) == (1, [])


# ------------------------------------------------------------------------------------------------ opinions


async def an_answer(product: Served, conversation: str = "") -> Json:
    conversation = conversation or await product.thread()
    place = product.place(conversation)
    reference = await product.sender.send(Post("said:m1", "thread-1", place, 1, NOW, Said("It is done.")))
    product.services.spoken["said:m1"] = (place, reference)
    return product.message(conversation, str(reference["parts"][-1]))


@pytest.mark.parametrize(("reaction", "verdict"), [("like", "good"), ("heart", "good"), ("sad", "bad")])
async def test_a_reaction_to_an_answer_is_an_opinion(product: Served, reaction: str, verdict: str) -> None:
    answer = await an_answer(product)
    assert (await product.person(BEN).reacts(answer["id"], reaction)).status == 200
    (opinion,) = product.services.opinions
    assert (opinion.post_id, opinion.verdict, opinion.comment) == ("said:m1", verdict, "")
    assert opinion.person.person_id == person_id(TENANT, BEN)


async def test_taking_a_reaction_back_takes_no_opinion_back(product: Served) -> None:
    answer = await an_answer(product)
    assert (await product.person(BEN).reacts(answer["id"], "like", removed=True)).status == 200
    assert product.services.opinions == []


async def test_feedback_comes_with_its_words(product: Served) -> None:
    answer = await an_answer(product, product.teams.personal(ANA))
    assert (await product.person().feeds_back(answer, "dislike", "too long")).status == 200
    (opinion,) = product.services.opinions
    assert (opinion.post_id, opinion.verdict, opinion.comment) == ("said:m1", "bad", "too long")


@pytest.mark.parametrize(
    "feedback", ['{"feedbackText": "x"}', {"feedbackText": "x"}, '"x"', "x", '{"feedbackText": "x", "more": 1}']
)
async def test_feedback_is_read_in_every_form(product: Served, feedback: object) -> None:
    answer = await an_answer(product)
    value = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": feedback}}
    await product.person().invokes("message/submitAction", value, answer["conversation"], answer["id"])
    assert [opinion.comment for opinion in product.services.opinions] == ["x"]


async def test_what_is_no_answer_of_ours_has_no_opinions(product: Served) -> None:
    thread = await product.thread()
    value = {"actionName": "feedback", "actionValue": {"reaction": "like", "feedback": "{}"}}
    answer = await product.person().invokes("message/submitAction", value, thread, "999")
    other = await product.person().invokes("message/submitAction", {"actionName": "other"}, thread, "999")
    assert (answer.status, other.status, product.services.opinions) == (200, 200, [])


async def test_guests_have_no_say(product: Served) -> None:
    answer = await an_answer(product)
    assert (await product.person(GUS).reacts(answer["id"], "like")).status == 200
    assert product.services.opinions == []
