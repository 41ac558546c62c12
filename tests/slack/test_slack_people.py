"""People in the fake Slack reach an app as Slack's people do: through Bolt, over HTTP and over Socket Mode alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.asking import QUIET, client_with
from tests.slack.recording_app import RecordingApp, recording_app
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport, Transport, signed

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def button(value: str) -> Json:
    return {"type": "button", "action_id": "approve", "text": plain("Approve"), "value": value}


def asked(name: str, element: Json, **more: Any) -> Json:
    whole = {"action_id": "value", **element}
    return {"type": "input", "block_id": f"input:{name}", "label": plain(name), "element": whole, **more}


CARD = [{"type": "actions", "elements": [button("a1")]}]
DAY = [{"text": plain("Monday"), "value": "mon"}, {"text": plain("Tuesday"), "value": "tue"}]
FORM = {
    "type": "modal",
    "callback_id": "form",
    "private_metadata": "{}",
    "title": plain("Edit"),
    "submit": plain("Approve"),
    "notify_on_close": True,
    "blocks": [
        asked("title", {"type": "plain_text_input", "initial_value": "Stand-up"}),
        asked("day", {"type": "static_select", "options": DAY}),
        asked("at", {"type": "datetimepicker"}, optional=True),
        asked("loud", {"type": "checkboxes", "options": DAY[:1]}, optional=True),
        asked("who", {"type": "users_select", "initial_user": "U2"}),
    ],
}


@dataclass
class Stage:
    slack: FakeSlack
    client: AsyncWebClient
    app: RecordingApp
    transport: Transport
    ana: SlackPerson

    async def card(self) -> Json:
        await self.client.chat_postMessage(channel="C1", text="Approve?", blocks=CARD, **QUIET)
        return self.slack.messages("C1")[-1]

    async def form(self) -> Json:
        await self.client.views_open(trigger_id=self.slack.issue_trigger("U1"), view=FORM)
        return self.slack.views("U1")[-1]


@pytest.fixture(params=["http", "socket"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    mode: Literal["http", "socket"] = request.param
    async with fake_slack() as slack, recording_app(slack, mode) as (app, transport):
        yield Stage(slack, client_with(slack, "xoxb-1"), app, transport, SlackPerson(slack, "T1", "U1", transport))


# ------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("first", ["app_mention", "message"])
async def test_a_mention_arrives_as_two_events(stage: Stage, first: Literal["app_mention", "message"]) -> None:
    said = await stage.ana.says("C1", f"{stage.ana.bot} hello", first=first)
    one, two = stage.app.events
    assert (one["event"]["type"], {one["event"]["type"], two["event"]["type"]}) == (first, {"app_mention", "message"})
    assert one["event"]["ts"] == two["event"]["ts"] == said.ts == stage.slack.messages("C1")[0]["ts"]
    assert one["event_id"] != two["event_id"]
    assert one["authorizations"][0]["user_id"] == "UBOT"
    assert said.status == 200


async def test_direct_messages_and_replies_are_one_event(stage: Stage) -> None:
    await stage.ana.says("D1", f"{stage.ana.bot} hello")
    parent = await stage.ana.says("C1", "look")
    await stage.ana.says("C1", "well", thread_ts=parent.ts, files=[{"name": "report.pdf", "size": 12_000}])
    direct, top, reply = (envelope["event"] for envelope in stage.app.events)
    assert (direct["channel_type"], top["channel_type"], reply["channel_type"]) == ("im", "channel", "channel")
    assert (reply["thread_ts"], reply["parent_user_id"], reply["subtype"]) == (parent.ts, "U1", "file_share")
    assert (reply["files"][0]["name"], reply["files"][0]["size"]) == ("report.pdf", 12_000)


async def test_nothing_is_told_of_a_channel_without_the_bot(stage: Stage) -> None:
    said = await stage.ana.says("C2", f"{stage.ana.bot} hello")
    assert (said.answers, stage.app.events) == ((), [])


async def test_edits_unfurls_and_deletions_are_told_apart(stage: Stage) -> None:
    said = await stage.ana.says("C1", "one")
    await stage.ana.edits(said.ts, "two")
    await stage.ana.unfurls(said.ts)
    await stage.ana.says("C1", "reply", thread_ts=said.ts)
    await stage.ana.deletes(said.ts)
    await stage.ana.deletes(stage.slack.messages("C1")[-1]["ts"])
    events = [e["event"] for e in stage.app.events if "subtype" in e["event"]]
    edit, unfurl, tombstone, deletion = events
    assert (edit["message"]["text"], edit["previous_message"]["text"]) == ("two", "one")
    assert "edited" in edit["message"] and "edited" not in edit["previous_message"]
    assert unfurl["message"]["edited"] == unfurl["previous_message"]["edited"]  # nobody has edited it again
    assert unfurl["message"]["attachments"]
    assert (tombstone["subtype"], tombstone["message"]["subtype"]) == ("message_changed", "tombstone")
    assert (deletion["subtype"], deletion["previous_message"]["text"]) == ("message_deleted", "reply")


async def test_somebody_from_outside_says_where_they_are_from(stage: Stage) -> None:
    stage.slack.add_user("U9", name="Zoe", team_id="T9", is_stranger=True)
    stage.slack.add_channel("C3", members=["U9", "UBOT"], is_ext_shared=True)
    await SlackPerson(stage.slack, "T1", "U9", stage.transport).says("C3", "hello")
    [envelope] = stage.app.events
    assert (envelope["team_id"], envelope["is_ext_shared_channel"]) == ("T1", True)
    assert (envelope["event"]["user_team"], envelope["event"]["source_team"]) == ("T9", "T9")


async def test_events_are_sent_again_with_the_same_id(stage: Stage) -> None:
    said = await stage.ana.says("D1", "hello")
    await stage.ana.again(said)
    assert [e["event_id"] for e in stage.app.events] == [said.events[0]["event_id"]] * 2


# ------------------------------------------------------------------------------------------- clicks and forms


async def test_a_click_names_the_message_the_button_and_a_way_to_answer(stage: Stage) -> None:
    card = await stage.card()
    clicked = await stage.ana.clicks(card, "approve")
    [body] = stage.app.bodies
    assert (body["type"], body["user"]["id"], body["channel"]["id"]) == ("block_actions", "U1", "C1")
    assert body["container"]["message_ts"] == body["message"]["ts"] == card["ts"]
    assert (body["actions"][0]["value"], body["actions"][0]["block_id"]) == ("a1", card["blocks"][0]["block_id"])
    async with aiohttp.ClientSession() as session:
        for _ in range(5):
            await (await session.post(clicked.response_url, json={"text": "thanks"})).read()
        assert (await session.post(clicked.response_url, json={"text": "thanks"})).status == 404
    assert [e["text"] for e in stage.slack.ephemerals("U1")] == ["thanks"] * 5
    await stage.client.views_open(trigger_id=clicked.trigger_id, view=FORM)
    assert stage.slack.views("U1")


async def test_a_click_on_an_ephemeral_can_replace_it(stage: Stage) -> None:
    await stage.client.chat_postEphemeral(channel="C1", user="U1", text="x", blocks=CARD)
    clicked = await stage.ana.clicks(stage.slack.ephemerals("U1")[0], "approve", "a1")
    assert clicked.payload["container"]["is_ephemeral"] and "message" not in clicked.payload
    async with aiohttp.ClientSession() as session:
        await session.post(clicked.response_url, json={"text": "new", "replace_original": True})
        assert [e["text"] for e in stage.slack.ephemerals("U1")] == ["new"]
        await session.post(clicked.response_url, json={"delete_original": True})
    assert stage.slack.ephemerals("U1") == []


async def test_a_click_says_which_of_several(stage: Stage) -> None:
    blocks = [{"type": "actions", "elements": [button(value)]} for value in ("a1", "a2")]
    await stage.client.views_publish(user_id="U1", view={"type": "home", "blocks": blocks})
    home = stage.slack.home("U1")
    assert home is not None
    with pytest.raises(AssertionError, match="several"):
        await stage.ana.clicks(home, "approve")
    await stage.ana.clicks(home, "approve", "a2")
    assert stage.app.bodies[0]["container"] == {"type": "view", "view_id": home["id"]}
    assert stage.app.bodies[0]["actions"][0]["value"] == "a2"


async def test_a_form_is_sent_as_it_was_filled_in_and_closes(stage: Stage) -> None:
    form = await stage.form()
    values = {"day": "Tuesday", "at": 1_795_000_000, "loud": ["mon"]}
    submitted = await stage.ana.submits(form, values)
    state = stage.app.bodies[0]["view"]["state"]["values"]
    assert state["input:title"]["value"] == {"type": "plain_text_input", "value": "Stand-up"}
    assert state["input:day"]["value"]["selected_option"]["value"] == "tue"
    assert state["input:at"]["value"]["selected_date_time"] == 1_795_000_000
    assert [option["value"] for option in state["input:loud"]["value"]["selected_options"]] == ["mon"]
    assert state["input:who"]["value"]["selected_user"] == "U2"
    assert (submitted.view, stage.slack.views("U1")) == (None, [])


async def test_slacks_client_does_not_submit_what_is_incomplete(stage: Stage) -> None:
    form = await stage.form()
    for values in ({}, {"day": "Friday"}, {"day": "mon", "colour": "red"}):
        with pytest.raises(AssertionError):
            await stage.ana.submits(form, values)
    assert stage.app.bodies == []


async def test_a_form_shows_errors_another_view_or_one_on_top(stage: Stage) -> None:
    form = await stage.form()
    note = {"type": "modal", "title": plain("Note"), "blocks": []}
    stage.app.view_answer = lambda _view: {"response_action": "errors", "errors": {"input:day": "Not on Mondays."}}
    assert (await stage.ana.submits(form, {"day": "mon"})).errors == {"input:day": "Not on Mondays."}
    stage.app.view_answer = lambda _view: {"response_action": "push", "view": note}
    pushed = (await stage.ana.submits(form, {"day": "mon"})).view
    assert pushed is not None and pushed["previous_view_id"] == form["id"]
    stage.app.view_answer = lambda _view: {"response_action": "update", "view": note}
    await stage.ana.submits(form, {"day": "mon"})
    assert [view["title"]["text"] for view in stage.slack.views("U1")] == ["Note", "Note"]
    stage.app.view_answer = lambda _view: {"response_action": "update", "view": {"type": "modal"}}
    with pytest.raises(AssertionError, match="does not take this view"):
        await stage.ana.submits(form, {"day": "mon"})


async def test_an_app_hears_of_a_closed_form_if_it_asked_to(stage: Stage) -> None:
    await stage.ana.closes(await stage.form())
    assert (stage.app.bodies[0]["type"], stage.slack.views("U1")) == ("view_closed", [])


# ------------------------------------------------------------------------------------------- elsewhere


async def test_a_command_is_answered_only_to_the_one_who_asked(stage: Stage) -> None:
    stage.app.command_answer = "These wait: none."
    await stage.ana.commands("approvals", "C2")
    assert (stage.app.bodies[0]["text"], stage.app.bodies[0]["channel_id"]) == ("approvals", "C2")
    assert [(e["channel"], e["text"]) for e in stage.slack.ephemerals("U1")] == [("C2", "These wait: none.")]
    assert stage.slack.messages("C2") == []


async def test_a_shortcut_brings_the_message_along(stage: Stage) -> None:
    said = await stage.ana.says("C1", "what about this")
    await stage.ana.asks_about(said.message)
    [body] = stage.app.bodies
    assert (body["callback_id"], body["message"]["text"]) == ("ask_about_message", "what about this")


async def test_the_app_hears_of_its_home_its_container_and_its_end(stage: Stage) -> None:
    await stage.ana.opens_home()
    begun = await stage.ana.opens_assistant("C1")
    await stage.ana.renames("Anna")
    await stage.ana.uninstalls()
    home, container, renamed, *ends = (envelope["event"] for envelope in stage.app.events)
    assert (home["tab"], home["user"]) == ("home", "U1")
    assert container["assistant_thread"]["thread_ts"] == begun.ts
    assert container["assistant_thread"]["context"]["channel_id"] == "C1"
    assert renamed["user"]["profile"]["display_name"] == "Anna"
    assert [end["type"] for end in ends] == ["tokens_revoked", "app_uninstalled"]
    assert stage.slack.world.tokens["xoxb-1"].revoked


async def test_a_request_is_signed_and_a_spoilt_one_is_not_taken() -> None:
    async with fake_slack() as slack, recording_app(slack, "http") as (app, transport):
        assert isinstance(transport, HttpTransport)
        body = '{"type": "url_verification", "challenge": "abc"}'
        good = await transport.post(body, "application/json")
        assert (good.status, good.json or good.text) == (200, {"challenge": "abc"})
        assert (await transport.post(body, "application/json", signed("another", body, 0))).status == 401
        assert app.events == []
