"""Who is spoken to, who is meant, who may: several people, direct messages, commands, workspaces."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import SECRET, as_, opened
from tests.slack.product.talk import Talk, buttons, words
from tests.support.product import ProductFolder, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport, Transport
from tests.support.tools import Workshop

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


@pytest.mark.usefixtures("both_modes")
async def test_a_mention_is_answered_once_in_a_thread_although_it_arrives_as_two_events(
    talk: Talk, model: FakeOpenAI
) -> None:
    await talk.mentions("hello there")
    answer = await talk.says("You said: hello there")
    assert answer["thread_ts"] == talk.thread_ts
    assert len(model.requests) == 1


async def test_whoever_it_talks_with_needs_no_mention_and_others_do(
    talk: Talk, ben: SlackPerson, model: FakeOpenAI
) -> None:
    await talk.mentions("one")
    await talk.says("You said: one")
    await as_(ben, talk).replies("what is this about?")
    await talk.replies("two")
    await talk.says("You said: two")
    background, request = prompts(model)[-2:]
    assert request == "two"
    assert "Ben: what is this about?" in background
    assert len(model.requests) == 2
    await as_(ben, talk).mentions("three")
    await talk.says("three")


async def test_mentioned_in_the_middle_of_a_thread_it_knows_who_said_what_before(
    talk: Talk, ben: SlackPerson, model: FakeOpenAI
) -> None:
    started = await ben.says("C1", "the blue room is broken &amp; dark, says <@U3>")
    talk.thread_ts = started.ts
    await talk.replies("shall we ask?")
    await talk.mentions("what do we know?")
    await talk.says("what do we know?")
    background, request = prompts(model)
    assert request == "what do we know?"
    assert "Ben: the blue room is broken & dark, says @Chloe" in background
    assert "Ana: shall we ask?" in background


async def test_somebody_who_writes_while_another_is_waited_for_is_told_so_alone(
    talk: Talk, ben: SlackPerson, slack: FakeSlack
) -> None:
    await talk.mentions("use make what=lamp")
    await talk.card()
    theirs = as_(ben, talk)
    await theirs.mentions("and me?")
    await theirs.told("Waiting on someone else: approval (workshop › make).", "Start your own conversation.")
    assert slack.ephemerals("U1") == []
    assert len(talk.waiting()) == 1


@pytest.fixture
def one_a_minute(home: ProductFolder) -> None:
    """One message in a conversation within a minute, whoever writes."""
    home.variables["LIMIT_THREAD_TURNS_PER_MINUTE"] = "1"


@pytest.mark.usefixtures("one_a_minute")
async def test_over_the_turns_of_a_conversation_others_are_told_too(talk: Talk, ben: SlackPerson) -> None:
    await talk.mentions("hello")
    await talk.says("You said: hello")
    theirs = as_(ben, talk)
    await theirs.mentions("hello from Ben")
    await theirs.told("1 message a minute in this conversation")
    elsewhere = Talk(talk.slack, ben, talk.channel)
    await elsewhere.mentions("and here?")
    await elsewhere.says("You said: and here?")


async def test_a_question_is_answered_by_a_modal_or_by_a_plain_reply(talk: Talk, ben: SlackPerson) -> None:
    await talk.mentions("ask lamp")
    question = await talk.says("Which lamp?")
    await as_(ben, talk).clicks(question, "answer")
    await as_(ben, talk).told("is for some")
    await as_(ben, talk).mentions("the small one")
    await as_(ben, talk).told("Waiting on someone else: an answer. Start your own conversation.")
    view = await talk.opens(question, "answer")
    await talk.submits(view, size="3")
    await talk.says("Results:", "3")
    await talk.replies("ask chair")
    await talk.says("Which chair?")
    await talk.replies("the tall one")
    await talk.says("Results:", "the tall one")


async def test_stop_ends_the_turn(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await talk.mentions("stop")
    await talk.settled(card, "Replaced")
    await talk.says("Stopped.")
    assert shop.done == []


async def test_what_is_edited_or_deleted_while_it_waits_is_handled_as_it_is_then(
    talk: Talk, shop: Workshop, model: FakeOpenAI
) -> None:
    await talk.mentions("use make_slowly what=lamp")
    await talk.clicks(await talk.card(), "approve")
    await talk.slack.until(shop.started.is_set)
    edited = await talk.person.says("C1", f"{talk.person.bot} tow", thread_ts=talk.thread_ts)
    deleted = await talk.person.says("C1", f"{talk.person.bot} three", thread_ts=talk.thread_ts)
    await talk.person.edits(edited.ts, f"{talk.person.bot} two")
    await talk.person.deletes(deleted.ts)
    shop.may_end.set()
    await talk.says("You said: two")
    await talk.mentions("four")
    await talk.says("You said: four")
    assert not any("three" in text or "tow" in text for text in prompts(model))


# --------------------------------------------------------------------------------------------------- direct messages


async def test_a_direct_message_begins_a_thread_in_the_agent_view(slack: FakeSlack, ana: SlackPerson) -> None:
    talk = Talk(slack, ana, "D1")
    await talk.mentions("hello")
    answer = await talk.says("You said: hello")
    assert answer["thread_ts"] == talk.thread_ts
    await talk.replies("and again")
    await talk.says("You said: and again")


async def test_whoever_opens_the_conversation_is_shown_how_to_begin(slack: FakeSlack, ana: SlackPerson) -> None:
    await ana.opens_home(tab="messages")
    (call,) = await slack.until(lambda: slack.calls_of("assistant.threads.setSuggestedPrompts"))
    assert call.arguments["channel_id"] == "D1"
    assert "thread_ts" not in call.arguments


async def test_without_the_agent_view_direct_messages_are_one_conversation(
    home: ProductFolder, slack: FakeSlack, model: FakeOpenAI
) -> None:
    home.variables["SLACK_AGENT_VIEW"] = "false"
    async with opened(home, slack) as transport:
        ana = SlackPerson(slack, "T1", "U1", transport)
        for text in ("one", "two"):
            await ana.says("D1", text)
            answer = await slack.until(lambda t=text: [m for m in slack.messages("D1") if f"said: {t}" in words(m)])
            assert "thread_ts" not in answer[0]
        assert prompts(model) == ["one", "two"]
        await ana.says("D1", "new")
        await ana.says("D1", "three")
        await slack.until(lambda: [m for m in slack.messages("D1") if "said: three" in words(m)])
        assert "one" not in prompts(model)


# --------------------------------------------------------------------------------------------------- who may


@pytest.mark.parametrize("facts", [{"is_restricted": True}, {"is_ultra_restricted": True}, {"is_stranger": True}])
async def test_guests_and_strangers_are_refused_alone(
    slack: FakeSlack, transport: Transport, model: FakeOpenAI, facts: dict[str, bool]
) -> None:
    slack.add_user("U9", name="Gus", **facts)
    slack.world.channels["C1"].members.add("U9")
    talk = Talk(slack, SlackPerson(slack, "T1", "U9", transport), "C1")
    await talk.mentions("hello")
    await slack.until(lambda: slack.ephemerals("U9"))
    assert talk.of_the_bot() == []
    assert model.requests == []


async def test_a_guest_may_not_approve(
    slack: FakeSlack, talk: Talk, transport: Transport, shop: Workshop, home: ProductFolder
) -> None:
    slack.add_user("U9", name="Gus", is_restricted=True)
    slack.world.channels["C1"].members.add("U9")
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    gus = as_(SlackPerson(slack, "T1", "U9", transport), talk)
    await gus.clicks(card, "approve")
    await slack.until(lambda: slack.ephemerals("U9"))
    assert shop.done == []


async def test_under_four_eyes_a_guest_does_not_count_even_where_they_are_welcome(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    """Rule 9: whether a guest is somebody else than the requester cannot be known."""
    home.variables["SLACK_ALLOW_GUESTS"] = "true"
    home.policy(FOUR_EYES)
    slack.add_user("U9", name="Gus", is_restricted=True)
    slack.world.channels["C1"].members.add("U9")
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        gus = as_(SlackPerson(slack, "T1", "U9", transport), talk)
        await gus.clicks(card, "approve")
        await gus.told("guest or external accounts", "full member")
        assert shop.done == []
        await as_(SlackPerson(slack, "T1", "U2", transport), talk).clicks(card, "approve")
        await talk.settled(card, "Approved", "Ben")


# --------------------------------------------------------------------------------------------------- commands


@pytest.mark.usefixtures("both_modes")
async def test_the_slash_command_asks_lists_stops_and_helps(slack: FakeSlack, ana: SlackPerson, shop: Workshop) -> None:
    await ana.commands("ask use make what=lamp", "C1")
    opening = next(m for m in slack.messages("C1") if "use make what=lamp" in words(m))
    talk = Talk(slack, ana, "C1", opening["ts"])
    card = await talk.card("workshop › make")
    assert card["thread_ts"] == opening["ts"]
    await ana.commands("approvals", "C1")
    await talk.told("Make it")
    await ana.commands("stop", "C1")
    await talk.settled(card, "Replaced")
    await ana.commands("help", "C1")
    await talk.told("/countersign")
    assert shop.done == []


async def test_where_the_bot_is_not_the_command_says_how_to_invite_it(slack: FakeSlack, ana: SlackPerson) -> None:
    await ana.commands("ask hello", "C2")
    await slack.until(lambda: any("invite" in words(e).lower() for e in slack.ephemerals("U1")))
    assert slack.messages("C2") == []


async def test_the_shortcut_asks_about_a_message_in_its_thread(
    slack: FakeSlack, ana: SlackPerson, ben: SlackPerson, model: FakeOpenAI
) -> None:
    said = await ben.says("C1", "the lamp is broken")
    await ana.asks_about(next(m for m in slack.messages("C1") if m["ts"] == said.ts))
    (view,) = await slack.until(lambda: slack.views("U1"))
    await ana.submits(view, {"question": "what is this?"})
    talk = Talk(slack, ana, "C1", said.ts)
    await talk.says("You said: what is this?")
    assert any("the lamp is broken" in text for text in prompts(model))


async def test_the_home_shows_what_waits_and_its_buttons_work(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await talk.person.opens_home()
    home = await talk.slack.until(lambda: talk.slack.home("U1"))
    assert "workshop › make" in words(home)
    await talk.person.clicks(home, "approve")
    await talk.settled(card, "Approved")
    await talk.slack.until(lambda: "approve" not in buttons(talk.slack.home("U1") or {}))
    await talk.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_an_opinion_on_an_answer_is_recorded(talk: Talk) -> None:
    await talk.mentions("hello")
    answer = await talk.says("You said: hello")
    assert (await talk.person.clicks(answer, "feedback", f"good:said:slack:T1:C1:{talk.thread_ts}.0")).status == 200


# --------------------------------------------------------------------------------------------------- sign-in


async def test_the_link_of_a_sign_in_reaches_its_owner_alone(
    talk: Talk, ben: SlackPerson, slack: FakeSlack, shop: Workshop
) -> None:
    await talk.mentions("use make_with_account what=lamp")
    await talk.clicks(await talk.card(), "approve")
    given = await talk.told("Connect your account")
    assert "top-secret-ticket" in str(given)
    card = await talk.says("Waiting for Ana to sign in")
    await as_(ben, talk).clicks(card, "get_link")
    await as_(ben, talk).told("is for some")
    await talk.clicks(card, "get_link")
    await slack.until(lambda: sum("top-secret-ticket" in str(e) for e in slack.ephemerals("U1")) == 2)
    assert "top-secret-ticket" not in str(slack.messages("C1")) + str(slack.ephemerals("U2"))
    shop.signed_in = True
    await talk.clicks(given, "signed_in")
    await talk.says("made lamp with the account")


# --------------------------------------------------------------------------------------------------- workspaces


async def test_two_workspaces_install_it_and_stay_apart(home: ProductFolder, slack: FakeSlack, shop: Workshop) -> None:
    for name in ("SLACK_BOT_TOKEN",):
        del home.variables[name]
    slack.world.tokens.clear()
    slack.add_workspace(team="T2", name="Bolt & Co", token="", bot_user="UBOT2", bot_id="BBOT2")
    slack.add_user("U8", team="T2", name="Zoe")
    slack.add_channel("C8", team="T2", members=["U8", "UBOT2"])
    home.variables |= {"SLACK_CLIENT_ID": slack.world.client_id, "SLACK_CLIENT_SECRET": slack.world.client_secret}
    home.variables |= {"PUBLIC_URL": "https://bot.example.com", "SLACK_INSTALL_TEAMS": "T1,T2"}
    async with product_here(home) as url:
        transport = HttpTransport(f"{url}/slack/events", SECRET)
        ana, zoe = SlackPerson(slack, "T1", "U1", transport), SlackPerson(slack, "T2", "U8", transport)
        assert (await ana.installs()).answers[-1].status == 200
        assert (await zoe.installs(rotating=True)).answers[-1].status == 200
        here, there = Talk(slack, ana, "C1"), Talk(slack, zoe, "C8")
        await here.mentions("use make what=lamp")
        await there.mentions("use make what=chair")
        card = await there.card("Zoe")
        await here.card("Ana")
        await zoe.opens_home()
        shown = words(await slack.until(lambda: slack.home("U8", team="T2")))
        assert "chair" in shown
        assert "lamp" not in shown
        await there.clicks(card, "approve")
        await there.says("made chair")
        assert shop.done == ["make chair 1"]
        teams = {slack.world.tokens[c.token].team for c in slack.calls_of("chat.postMessage")}
        assert teams == {"T1", "T2"}
        await ana.uninstalls()
        before = len(slack.calls)
        await here.person.says("C1", f"{ana.bot} hello?", thread_ts=here.thread_ts)
        await there.mentions("still there?")
        await there.says("still there?")
        assert all(c.arguments.get("channel") != "C1" for c in slack.calls[before:] if c.method == "chat.postMessage")
