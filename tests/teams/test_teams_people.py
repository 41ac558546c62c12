"""What people do reaches a bot as Teams tells it: the shapes of Microsoft's documentation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.teams.answer_rules import MESSAGE
from tests.fakes.teams.server import ANA, BEN, BOT, GUS, FakeTeams, fake_teams
from tests.support.teams_people import TeamsPerson
from tests.teams.asking import CARD, asking, message, with_card
from tests.teams.card_builders import asks, card, execute, opens, refreshing, submit, text, unfolds
from tests.teams.recording_bot import RecordingBot, recording_bot

Json = dict[str, Any]


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@pytest.fixture
async def bot(teams: FakeTeams) -> AsyncIterator[RecordingBot]:
    async with recording_bot(teams) as running:
        yield running


@pytest.fixture
def ana(teams: FakeTeams, bot: RecordingBot) -> TeamsPerson:
    return TeamsPerson(teams, ANA, bot.transport)


@pytest.fixture
def ben(teams: FakeTeams, bot: RecordingBot) -> TeamsPerson:
    return TeamsPerson(teams, BEN, bot.transport)


async def posted(teams: FakeTeams, activity: Json, conversation: str = "") -> Json:
    """A message of the bot."""
    conversation = conversation or teams.group
    async with asking(teams) as asker:
        status, body = await asker.send(conversation, activity)
    assert status == 201, body
    return next(post for post in teams.posts(conversation) if post["id"] == body["id"])


def next_state(shown: Json) -> Json:
    return {"statusCode": 200, "type": CARD, "value": shown}


def dialog(shown: Json) -> Json:
    return {"task": {"type": "continue", "value": {"title": "Edit", "card": {"contentType": CARD, "content": shown}}}}


# ------------------------------------------------------------------------------------------- messages


async def test_a_message_in_a_personal_chat(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    said = await ana.says(ana.chat, "hello\nyou")
    [heard] = bot.heard
    assert said.status == 200
    assert (heard["type"], heard["id"], heard["text"], heard["textFormat"]) == (
        "message",
        said.id,
        "hello\nyou",
        "plain",
    )
    assert heard["from"] == {"id": teams.address(ANA), "name": "Ana Alvarez", "aadObjectId": ANA}
    assert heard["recipient"] == {"id": BOT, "name": "Countersign"}
    assert heard["conversation"] == {"conversationType": "personal", "tenantId": teams.tenant, "id": ana.chat}
    assert heard["channelData"] == {"tenant": {"id": teams.tenant}}
    assert heard["attachments"] == [{"contentType": "text/html", "content": "<div><p>hello<br>you</p></div>"}]
    assert heard["entities"][0]["timezone"] == heard["localTimezone"] == "Europe/Berlin"
    assert bot.tokens[0]["serviceurl"] == heard["serviceUrl"] == teams.service_url


async def test_a_mention_in_a_channel_begins_a_thread(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    said = await ana.says(teams.channel, "ask <at>Ben Baker</at>")
    reply = await ana.says(said.conversation, "and this")
    first, second = bot.heard
    assert first["text"] == "<at>Countersign</at> ask <at>Ben Baker</at>"
    assert [e["mentioned"]["id"] for e in first["entities"] if e["type"] == "mention"] == [BOT, teams.address(BEN)]
    assert first["conversation"]["id"] == f"{teams.channel};messageid={said.id}" == second["conversation"]["id"]
    assert (first["conversation"]["isGroup"], first["channelData"]["team"]["id"]) == (True, teams.team)
    assert "replyToId" not in first
    assert (second["replyToId"], reply.conversation) == (said.id, said.conversation)
    assert 'itemtype="http://schema.skype.com/Mention"' in first["attachments"][0]["content"]


async def test_teams_tells_only_of_what_is_said_to_the_bot(
    teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson
) -> None:
    assert (await ana.says(teams.group, "among us", mention=False)).status == 0
    teams.add_group("19:without@thread.v2", members=[ANA], has_bot=False)
    assert (await ana.says("19:without@thread.v2", "hello")).status == 0
    assert bot.heard == []
    teams.rsc = True
    assert (await ana.says(teams.group, "among us", mention=False)).status == 200
    assert [entity["type"] for entity in bot.heard[0]["entities"]] == ["clientInfo"]


async def test_quotes_and_files_come_as_attachments(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    first = await ana.says(ana.chat, "a < b")
    await ana.says(ana.chat, "no", quoting=first.id, files=[{"name": "plan.docx"}])
    file, page = bot.heard[1]["attachments"]
    assert (file["contentType"], file["name"], file["content"]["fileType"]) == (
        "application/vnd.microsoft.teams.file.download.info",
        "plan.docx",
        "docx",
    )
    assert page["content"].startswith('<div><blockquote itemscope="" itemtype="http://schema.skype.com/Reply"')
    assert '<p itemprop="preview">a &lt; b</p></blockquote><p>no</p></div>' in page["content"]


async def test_edits_deletions_and_reactions(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    said = await ana.says(ana.chat, "helo")
    await ana.edits(said.id, "hello")
    await ana.deletes(said.id)
    await ana.undeletes(said.id)
    answer = await posted(teams, message("hi"), ana.chat)
    await ana.reacts(answer["id"], "like")
    await ana.reacts(answer["id"], "like", removed=True)
    edited, deleted, undeleted, liked, unliked = bot.heard[1:]
    assert (edited["type"], edited["channelData"]["eventType"]) == ("messageUpdate", "editMessage")
    assert (edited["id"], edited["text"]) == (said.id, "hello")
    assert (deleted["type"], deleted["channelData"]["eventType"]) == ("messageDelete", "softDeleteMessage")
    assert (deleted["id"], "text" in deleted) == (said.id, False)
    assert (undeleted["type"], undeleted["channelData"]["eventType"]) == ("messageUpdate", "undeleteMessage")
    assert (liked["reactionsAdded"], liked["replyToId"]) == ([{"type": "like"}], answer["id"])
    assert (unliked["type"], unliked["reactionsRemoved"]) == ("messageReaction", [{"type": "like"}])


async def test_an_edit_that_adds_a_mention_is_told(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    said = await ana.says(teams.group, "among us", mention=False)
    assert (await ana.edits(said.id, "still among us", mention=False)).status == 0
    assert (await ana.edits(said.id, "hello")).status == 200
    assert bot.heard[0]["type"] == "messageUpdate"


async def test_the_same_activity_can_come_again(bot: RecordingBot, ana: TeamsPerson) -> None:
    said = await ana.says(ana.chat, "hello")
    await ana.again(said)
    assert bot.heard[0] == bot.heard[1]


# ------------------------------------------------------------------------------------------- cards and dialogs


async def test_a_click_is_an_invoke_and_its_answer_what_the_clicker_sees(
    teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson, ben: TeamsPerson
) -> None:
    shown = await posted(teams, with_card(card(actions=[execute(), unfolds(asks())])))
    bot.answer = next_state(card(text("Rejected")))
    answer = await ana.clicks(shown, "reject", {"reason": "no"})
    [heard] = bot.heard
    assert (heard["type"], heard["name"], heard["replyToId"]) == ("invoke", "adaptiveCard/action", shown["id"])
    assert heard["value"] == {
        "action": {
            "type": "Action.Execute",
            "title": "Reject",
            "verb": "reject",
            "data": {"countersign": "reject", "id": "a1", "reason": "no"},
        },
        "trigger": "manual",
    }
    assert answer.card == ana.sees(shown)["attachments"][0]["content"] == card(text("Rejected"))
    assert ben.sees(shown)["attachments"] == shown["attachments"]
    assert teams.product_mistakes == []


async def test_a_refusal_changes_nothing(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    shown = await posted(teams, with_card(card(actions=[execute()])))
    bot.answer = {"statusCode": 200, "type": MESSAGE, "value": "You may not."}
    answer = await ana.clicks(shown, "approve")
    assert answer.message == "You may not."
    assert ana.sees(shown)["attachments"] == shown["attachments"]
    with pytest.raises(AssertionError):
        await ana.clicks(shown, "reject")


async def test_older_clients_send_a_message_instead(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    shown = await posted(teams, with_card(card(actions=[execute()])))
    await ana.clicks(shown, "approve", fallback=True)
    [heard] = bot.heard
    assert (heard["type"], heard["value"]) == ("message", {"countersign": "approve", "id": "a1"})
    assert (heard["replyToId"], "text" in heard) == (shown["id"], False)


async def test_a_card_is_refreshed_for_those_whom_it_names(
    teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson, ben: TeamsPerson
) -> None:
    shown = await posted(teams, with_card(card(refresh=refreshing(teams.address(ANA)))))
    bot.answer = next_state(card(actions=[execute()]))
    assert (await ben.looks_at(shown)).status == 0
    await ana.looks_at(shown)
    assert bot.heard[0]["value"]["trigger"] == "automatic"
    assert bot.heard[0]["value"]["action"]["verb"] == "refresh"
    await ana.clicks(shown, "approve")
    with pytest.raises(AssertionError):
        await ben.clicks(shown, "approve")


async def test_an_update_takes_the_views_away(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    shown = await posted(teams, with_card(card(refresh=refreshing(teams.address(ANA)))))
    bot.answer = next_state(card(actions=[execute()]))
    await ana.refreshes(shown)
    before = ana.sees(shown)
    settled = with_card(card(text("Approved")))
    async with asking(teams) as asker:
        assert (await asker.ask("PUT", f"/{teams.group}/activities/{shown['id']}", settled))[0] == 200
    with pytest.raises(AssertionError):
        await ana.clicks(shown, "approve")
    assert (await ana.clicks(before, "approve")).status == 200


async def test_a_dialog_is_fetched_and_submitted(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    shown = await posted(teams, with_card(card(actions=[opens()])))
    form = card(asks(name="field:title", value="Old"), asks("Number", "field:count", value=3), actions=[submit()])
    bot.answer = dialog(form)
    opened = await ana.opens(shown, "edit_dialog")
    assert (opened.title, opened.card) == ("Edit", form)
    bot.answer = {"task": {"type": "message", "value": "Done."}}
    done = await ana.submits(opened, {"title": "New"})
    assert done.message == "Done."
    fetched, submitted = bot.heard
    carried = {"countersign": "edit_dialog", "id": "a1", "msteams": {"type": "task/fetch"}}
    assert (fetched["name"], fetched["value"]["data"]) == ("task/fetch", carried)
    filled = {"countersign": "edit", "id": "a1", "field:title": "New", "field:count": "3"}
    assert (submitted["name"], submitted["value"]["data"]) == ("task/submit", filled)
    assert submitted["replyToId"] == shown["id"]
    assert teams.product_mistakes == []


async def test_clients_do_not_let_everything_through(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    wanted = asks(isRequired=True, errorMessage="Say why", maxLength=3, regex="^[a-z]+$")
    shown = await posted(teams, with_card(card(wanted, actions=[execute()])))
    bot.answer = next_state(card())
    for values in ({}, {"reason": "abcd"}, {"reason": "12"}, {"reason": "a\nb"}, {"reason": "a", "more": 1}):
        with pytest.raises(AssertionError):
            await ana.clicks(shown, "approve", values)
    assert (await ana.clicks(shown, "approve", {"reason": "abc"})).status == 200


async def test_wrong_answers_are_noted(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    shown = await posted(teams, with_card(card(actions=[execute(), opens()])))
    actions: list[Json] = [{"statusCode": 200}, {"task": {}}, next_state(card(actions=[execute()] * 6))]
    for wrong in (*actions, {"statusCode": 200, "type": MESSAGE}):
        before = len(teams.product_mistakes)
        bot.answer = wrong
        await ana.clicks(shown, "approve")
        assert len(teams.product_mistakes) > before
    dialogs: list[Json] = [next_state(card()), {"task": {"type": "continue"}}, dialog(card(actions=[execute()]))]
    for wrong in dialogs:
        before = len(teams.product_mistakes)
        bot.answer = wrong
        await ana.opens(shown, "edit_dialog")
        assert len(teams.product_mistakes) > before


# ------------------------------------------------------------------------------------------- elsewhere


async def test_feedback_is_json_in_json(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    loop = {"feedbackLoop": {"type": "default"}}
    answer = await posted(teams, message("hi", channelData=loop), ana.chat)
    await ana.feeds_back(answer, "dislike", "too long")
    value = bot.heard[0]["value"]
    assert (bot.heard[0]["name"], value["actionName"]) == ("message/submitAction", "feedback")
    assert value["actionValue"]["reaction"] == "dislike"
    assert json.loads(value["actionValue"]["feedback"]) == {"feedbackText": "too long"}
    with pytest.raises(AssertionError):
        await ana.feeds_back(await posted(teams, message("no buttons")), "like")


async def test_installing_is_told_twice_and_changes_where_the_bot_is(
    teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson
) -> None:
    await ana.uninstalls()
    assert (bot.heard[0]["type"], bot.heard[0]["action"]) == ("installationUpdate", "remove")
    assert (await ana.says(ana.chat, "hello")).status == 0
    bot.heard.clear()
    await ana.installs()
    updated, installed = bot.heard
    assert updated["membersAdded"] == [{"id": BOT}, {"id": teams.address(ANA)}]
    assert (installed["type"], installed["action"]) == ("installationUpdate", "add")
    assert (await ana.says(ana.chat, "hello")).status == 200


async def test_in_a_team_events_are_the_teams(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    await ana.installs(teams.channel)
    updated, installed = bot.heard
    assert (updated["channelData"]["eventType"], updated["conversation"]["id"]) == ("teamMemberAdded", teams.channel)
    assert installed["channelData"]["settings"] == {"selectedChannel": {"id": teams.channel}}
    bot.heard.clear()
    await ana.uninstalls(teams.channel)
    removed = bot.heard[1]
    assert (removed["channelData"]["eventType"], removed["conversation"]["id"]) == ("teamMemberRemoved", teams.team)
    assert removed["membersRemoved"] == [{"id": BOT}]
    await ana.leaves(teams.channel)
    assert bot.heard[-1]["membersRemoved"] == [{"id": teams.address(ANA)}]


async def test_anything_else_can_be_sent(teams: FakeTeams, bot: RecordingBot, ana: TeamsPerson) -> None:
    await ana.verifies("state-1")
    await ana.invokes("composeExtension/query", {"commandId": "x"})
    await ana.sends("typing")
    await ana.sends("event", name="application/vnd.microsoft.readReceipt", value={"lastReadMessageId": "1"})
    assert (bot.heard[0]["name"], bot.heard[0]["value"]) == ("signin/verifyState", {"state": "state-1"})
    assert [heard["type"] for heard in bot.heard[1:]] == ["invoke", "typing", "event"]


async def test_strangers_say_who_they_are_and_local_clients_bring_no_token(teams: FakeTeams, bot: RecordingBot) -> None:
    gus = TeamsPerson(teams, GUS, bot.local_door)
    await gus.says(teams.group, "hello")
    assert bot.tokens == [{}]
    assert bot.heard[0]["from"]["aadObjectId"] == GUS
    teams.add_user("f0000000-0000-4000-8000-00000000000f", role="anonymous")
    nobody = TeamsPerson(teams, "f0000000-0000-4000-8000-00000000000f", bot.transport)
    await nobody.says(nobody.chat, "hello")
    assert "aadObjectId" not in bot.heard[1]["from"]
