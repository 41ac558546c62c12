"""Who is spoken to, who is meant, who may, in Teams: chats, threads, sessions, guests, commands, sign-ins."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.teams.server import ANA, BEN, GUS, FakeTeams
from tests.support.product import ProductFolder
from tests.support.product_records import is_recorded, rows_in_records
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.support.tools import Workshop
from tests.teams.product.conftest import as_, opened
from tests.teams.product.talk import Talk, buttons, words

FOUR_EYES = """
version: 1
rules:
  - name: a second pair of eyes
    match: {tool: make}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
"""


def prompts(model: FakeOpenAI) -> list[str]:
    """What people said, as the model was last shown it."""
    return [str(m["content"]) for m in model.requests[-1]["messages"] if m["role"] == "user"]


# --------------------------------------------------------------------------------------------------- threads


async def test_a_mention_begins_a_thread_and_is_answered_in_it(talk: Talk, model: FakeOpenAI) -> None:
    await talk.mentions("hello there")
    answer = await talk.says("You said: hello there")
    assert answer["conversation"] == talk.conversation
    assert prompts(model) == ["hello there"]


async def test_every_thread_of_a_channel_is_a_conversation_of_its_own(
    talk: Talk, ana: TeamsPerson, teams: FakeTeams, model: FakeOpenAI
) -> None:
    await talk.mentions("one")
    await talk.says("You said: one")
    other = Talk(teams, ana, teams.channel)
    await other.mentions("two")
    await other.says("You said: two")
    assert prompts(model) == ["two"]
    await talk.mentions("three")
    await talk.says("You said: three")
    assert prompts(model) == ["one", "three"]


async def test_with_the_installation_s_consent_whoever_it_talks_with_needs_no_mention(
    talk: Talk, ben: TeamsPerson, teams: FakeTeams, model: FakeOpenAI
) -> None:
    teams.rsc = True
    await talk.mentions("one")
    await talk.says("You said: one")
    await as_(ben, talk).replies("what is this about?")
    await talk.replies("two")
    await talk.says("You said: two")
    assert len(model.requests) == 2


async def test_somebody_who_writes_while_another_is_waited_for_is_told_so_alone(talk: Talk, ben: TeamsPerson) -> None:
    await talk.mentions("use make what=lamp")
    await talk.card()
    theirs = as_(ben, talk)
    await theirs.mentions("and me?")
    await theirs.told("Waiting on someone else", "workshop › make")
    assert not any("Waiting on someone else" in words(m) for m in talk.of_the_bot())
    assert len(talk.waiting()) == 1


async def test_a_quoted_message_is_background_and_not_the_words_of_who_quotes_it(
    chat: Talk, teams: FakeTeams, model: FakeOpenAI
) -> None:
    await chat.mentions("hello")
    answer = await chat.says("You said: hello")
    await chat.person.says(chat.conversation, "what is that?", quoting=answer["id"])
    await chat.says("what is that?")
    assert prompts(model)[-1] == "what is that?"
    assert any("You said: hello" in text for text in prompts(model)[:-1])


async def test_what_is_edited_or_deleted_while_it_waits_is_handled_as_it_is_then(
    talk: Talk, shop: Workshop, model: FakeOpenAI
) -> None:
    await talk.mentions("use make_slowly what=lamp")
    await talk.clicks(await talk.card(), "approve")
    await talk.teams.until(shop.started.is_set)
    edited = await talk.person.says(talk.conversation, "tow")
    deleted = await talk.person.says(talk.conversation, "three")
    await talk.person.edits(edited.id, "two")
    await talk.person.deletes(deleted.id)
    shop.may_end.set()
    await talk.says("You said: two")
    await talk.mentions("four")
    await talk.says("You said: four")
    assert not any("three" in text or "tow" in text for text in prompts(model))


# --------------------------------------------------------------------------------------------------- questions


async def test_a_question_is_answered_on_its_card_in_a_dialog_or_by_a_plain_reply(talk: Talk, ben: TeamsPerson) -> None:
    await talk.mentions("ask lamp")
    question = await talk.says("Which lamp?")
    assert "someone else" in (await as_(ben, talk).clicks(question, "answer", {"size": "3"})).message
    await talk.clicks(question, "answer", {"size": "3"})
    await talk.says("Results:", "3")
    await talk.mentions("survey chairs")
    question = await talk.says("What is there to know of chairs?")
    dialog = await talk.opens(question, "answer_dialog")
    await talk.submits(dialog, "answer", part1="they have four legs")
    await talk.says("Results:", "four legs")
    await talk.mentions("ask desk")
    await talk.says("Which desk?")
    await talk.mentions("the tall one")
    await talk.says("Results:", "the tall one")


async def test_stop_ends_the_turn(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await talk.mentions("stop")
    await talk.settled(card, "Replaced")
    await talk.says("Stopped.")
    assert shop.done == []


# --------------------------------------------------------------------------------------------------- chats


async def test_a_chat_goes_on_until_somebody_says_new_and_the_bot_says_so(chat: Talk, model: FakeOpenAI) -> None:
    for text in ("one", "two"):
        await chat.mentions(text)
        await chat.says(f"You said: {text}")
    assert prompts(model) == ["one", "two"]
    await chat.mentions("New")
    await chat.says("New conversation. Earlier messages are not part of it.")
    await chat.mentions("three")
    await chat.says("You said: three")
    assert prompts(model) == ["three"]


async def test_in_a_group_chat_two_people_wait_for_their_own_cards(
    teams: FakeTeams, ana: TeamsPerson, ben: TeamsPerson, shop: Workshop
) -> None:
    hers, his = Talk(teams, ana, teams.group), Talk(teams, ben, teams.group)
    await hers.mentions("use make what=lamp")
    lamp = await hers.card("lamp")
    await his.mentions("use make what=chair")
    chair = await his.card("chair")
    assert "can’t approve this" in (await his.clicks(lamp, "approve")).message
    await his.clicks(chair, "approve")
    await hers.clicks(lamp, "approve")
    await hers.says("made lamp")
    await his.says("made chair")
    assert sorted(shop.done) == ["make chair 1", "make lamp 1"]


async def test_people_s_own_time_zone_counts(home: ProductFolder, teams: FakeTeams, talk: Talk) -> None:
    await talk.mentions("hello")
    await talk.says("You said: hello")
    assert rows_in_records(home, "SELECT name, time_zone FROM people") == [("Ana Alvarez", "Europe/Berlin")]


# --------------------------------------------------------------------------------------------------- who may


async def test_a_guest_is_refused_alone(teams: FakeTeams, transport: HttpTransport, model: FakeOpenAI) -> None:
    gus = Talk(teams, TeamsPerson(teams, GUS, transport), teams.channel)
    await gus.mentions("hello")
    await gus.told("guest")
    assert [m for m in teams.posts(gus.conversation) if not m["only_for"]] == []
    assert model.requests == []


async def test_a_guest_may_talk_where_that_is_allowed(home: ProductFolder, teams: FakeTeams, model: FakeOpenAI) -> None:
    home.variables["TEAMS_ALLOW_GUESTS"] = "true"
    async with opened(home, teams) as transport:
        gus = Talk(teams, TeamsPerson(teams, GUS, transport), teams.channel)
        await gus.mentions("hello")
        await gus.says("You said: hello")


async def test_a_guest_may_not_approve(talk: Talk, teams: FakeTeams, transport: HttpTransport, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    gus = as_(TeamsPerson(teams, GUS, transport), talk)
    assert "guest" in (await gus.clicks(card, "approve")).message.lower()
    assert shop.done == []


async def test_under_four_eyes_a_guest_does_not_count_even_where_they_are_welcome(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    """Rule 9: whether a guest is somebody else than the requester cannot be known."""
    home.variables["TEAMS_ALLOW_GUESTS"] = "true"
    home.policy(FOUR_EYES)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.group)
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        answer = await as_(TeamsPerson(teams, GUS, transport), talk).clicks(card, "approve")
        assert "guest or external accounts don’t count" in answer.message
        assert shop.done == []
        await as_(TeamsPerson(teams, BEN, transport), talk).clicks(card, "approve")
        await talk.settled(card, "Approved", "Ben")


# --------------------------------------------------------------------------------------------------- around it


async def test_it_greets_once_where_it_is_installed(teams: FakeTeams, ana: TeamsPerson) -> None:
    assert all(answer.status == 200 for answer in await ana.installs())
    await teams.until(lambda: teams.posts(ana.chat))
    await ana.upgrades()
    await ana.installs(teams.group)
    await teams.until(lambda: teams.posts(teams.group))
    assert len(teams.posts(ana.chat)) == 1


async def test_removed_from_a_chat_it_gives_up_what_waits_there(
    teams: FakeTeams, chat: Talk, shop: Workshop, home: ProductFolder
) -> None:
    await chat.mentions("use make what=lamp")
    await chat.card()
    await chat.person.uninstalls()
    assert rows_in_records(home, "SELECT status FROM approvals") == [("superseded",)]
    await chat.person.installs()
    await chat.mentions("hello again")
    await chat.says("hello again")
    assert shop.done == []


async def test_commands_list_what_waits_and_help(talk: Talk, chat: Talk, teams: FakeTeams) -> None:
    await talk.mentions("use make what=lamp")
    await talk.card()
    await chat.mentions("approvals")
    listed = await chat.says("Make it", "workshop › make")
    assert listed["conversation"] == chat.conversation
    await talk.mentions("approvals")
    await teams.until(lambda: [m for m in teams.posts(talk.conversation) if m["only_for"] == talk.person.address])
    await chat.mentions("Help")
    await chat.says("approvals")


async def test_an_opinion_with_a_comment_and_a_reaction_are_recorded(
    chat: Talk, home: ProductFolder, ana: TeamsPerson
) -> None:
    await chat.mentions("hello")
    answer = await chat.says("You said: hello")
    await chat.teams.until(lambda: is_recorded(home, answer["id"]))
    assert (await ana.feeds_back(answer, "dislike", "too short")).status == 200
    assert _feedback(home) == [("bad", "too short")]
    await ana.reacts(answer["id"], "heart")
    assert [verdict for verdict, _ in _feedback(home)] == ["good"]


def _feedback(home: ProductFolder) -> list[tuple[str, str]]:
    return [(row.verdict, row.comment) for row in rows_in_records(home, "SELECT verdict, comment FROM feedback")]


# --------------------------------------------------------------------------------------------------- sign-in


@pytest.mark.parametrize("targeted", [True, False])
async def test_the_link_of_a_sign_in_reaches_its_owner_alone(
    talk: Talk, ben: TeamsPerson, teams: FakeTeams, shop: Workshop, *, targeted: bool
) -> None:
    teams.targeted = targeted
    await talk.mentions("use make_with_account what=lamp")
    await talk.clicks(await talk.card(), "approve")
    given = await talk.told("Connect your account")
    card = await talk.says("Waiting for Ana")
    assert "someone else" in (await as_(ben, talk).clicks(card, "get_link")).message
    await talk.clicks(card, "get_link")
    public = [m for m in teams.messages(talk.conversation) if not m["only_for"]]
    assert "top-secret-ticket" not in str(public) + str(teams.messages(ben.chat))
    assert "top-secret-ticket" in str(teams.messages(talk.conversation if targeted else talk.person.chat))
    shop.signed_in = True
    await talk.clicks(given, "signed_in")
    await talk.says("made lamp with the account")
    await talk.teams.until(lambda: "get_link" not in buttons(talk.of_the_bot()))


async def test_whoever_has_no_chat_with_the_bot_is_told_to_open_one_and_the_link_goes_nowhere(
    talk: Talk, teams: FakeTeams, shop: Workshop
) -> None:
    teams.targeted = False
    teams.world.users[talk.person.user].has_app = False
    await talk.mentions("use make_with_account what=lamp")
    await talk.clicks(await talk.card(), "approve")
    await talk.says("chat with me")
    everywhere = [teams.messages(c) for c in (teams.channel, teams.group, talk.person.chat)]
    assert "top-secret-ticket" not in str(everywhere)
