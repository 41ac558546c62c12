"""Rule 5 when things go wrong: every click, command and form has an answer, for whoever did it alone."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from adapters.slack.actions import Origin
from tests.fakes.slack.server import FakeSlack
from tests.slack.serving import Served, a_card, serving
from tests.slack.stand_in_services import an_approval

pytestmark = pytest.mark.waits
SHOWING = ("reject", "edit", "show_all", "approve_all", "get_link", "answer")


async def clicked_as(house: Served, action_id: str, value: str = "call-1.1", **more: Any) -> int:
    """A click of Ana's on a card of ours, with another button than is on it; the status of the answer."""
    clicked = await house.person().clicks(await a_card(house), "show_all")
    await house.modal()
    action = {**clicked.payload["actions"][0], "action_id": action_id, "value": value}
    return (await house.door.interaction({**clicked.payload, "actions": [action], **more})).status


# ------------------------------------------------------------------------------------------------ something breaks


@pytest.mark.parametrize("action_id", SHOWING)
async def test_whoever_clicks_is_told_when_the_records_cannot_be_read(action_id: str) -> None:
    async with serving() as house:
        house.services.sign_ins.clear()
        clicked = await house.person().clicks(await a_card(house), "approve")
        house.services.unreadable = RuntimeError("the disk is full")
        action = {**clicked.payload["actions"][0], "action_id": action_id}
        assert (await house.door.interaction({**clicked.payload, "actions": [action]})).status == 200
        await house.hears("went wrong on my side")


async def test_whoever_turns_the_page_of_what_is_gone_is_told_so() -> None:
    async with serving() as house:
        house.services.approvals["call-1.1"] = view = an_approval(arguments={"text": "x" * 20_000})
        await house.person().clicks(await house.card(view), "show_all")
        modal = await house.modal()
        house.services.approvals.clear()
        forward = next(e for b in modal["blocks"] for e in b.get("elements", []) if e.get("action_id") == "page")
        await house.person().clicks(modal, "page", forward["value"])
        await house.hears("no such approval")


async def test_whoever_turns_a_page_that_slack_does_not_show_is_told_so() -> None:
    async with serving() as house:
        house.services.approvals["call-1.1"] = view = an_approval(arguments={"text": "x" * 20_000})
        await house.person().clicks(await house.card(view), "show_all")
        modal = await house.modal()
        house.slack.fail("views.update", error="internal_error", times=100)
        forward = next(e for b in modal["blocks"] for e in b.get("elements", []) if e.get("action_id") == "page")
        await house.person().clicks(modal, "page", forward["value"])
        await house.hears("did not open the window")


async def test_a_button_that_is_not_known_any_more_says_so() -> None:
    async with serving() as house:
        assert await clicked_as(house, "launch_rocket") == 200
        await house.hears("not known any more")


async def test_buttons_with_an_address_need_no_words() -> None:
    async with serving() as house:
        assert await clicked_as(house, "open_thread") == 200
        await house.close()
        assert house.told() == []


# ------------------------------------------------------------------------------------------------ not installed


def a_stranger(house: Served) -> None:
    """Zoe, in a workspace that has taken us out."""
    house.slack.add_workspace(team="T2", name="Other", token="", bot_user="UBOT2", bot_id="BBOT2")
    house.slack.add_user("U9", team="T2", name="Zoe")
    house.slack.add_channel("C9", team="T2", members=["U9", "UBOT2"])


async def test_where_we_are_not_installed_a_command_says_so() -> None:
    async with serving() as house:
        a_stranger(house)
        assert (await house.person("U9", "T2").commands("ask hello", "C9")).status == 200
        assert ["not installed" in text for text in house.told("U9")] == [True]


async def test_where_we_are_not_installed_an_old_button_says_so_to_its_clicker_alone() -> None:
    async with serving() as house:
        a_stranger(house)
        old = {
            "type": "message",
            "user": "UBOT2",
            "bot_id": "BBOT2",
            "ts": "1700000000.000300",
            "thread_ts": "1700000000.000100",
            "text": "card",
            "blocks": (await a_card(house))["blocks"],
        }
        house.slack.world.channels["C9"].messages[old["ts"]] = old
        assert (await house.person("U9", "T2").clicks(old, "approve")).status == 200
        await house.hears("not installed", "U9")
        assert house.slack.ephemerals("U9")[0]["thread_ts"] == "1700000000.000100"
        assert house.services.decisions == []


async def test_where_we_are_not_installed_a_form_says_so_in_its_place() -> None:
    async with serving() as house:
        view = {"type": "modal", "id": "V1", "hash": "h", "callback_id": "reject_form", "blocks": []}
        view["private_metadata"] = Origin("call-1.1", "C9").dump()
        who = {"user": {"id": "U9", "team_id": "T2"}, "team": {"id": "T2"}}
        answer = await house.door.interaction({"type": "view_submission", "view": view, **who})
        assert answer.json["response_action"] == "update"
        assert "not installed" in json.dumps(answer.json)


# ------------------------------------------------------------------------------------------------ within three seconds


def slow(house: Served, method: str, seconds: float) -> None:
    """Slack takes that long for it, once and for all calls meanwhile."""
    asyncio.get_running_loop().call_later(seconds, house.slack.hold(method).release)


async def test_a_slow_slack_is_not_waited_for_twice() -> None:
    async with serving() as house:
        slow(house, "users.info", 1.0)
        held = house.slack.hold("chat.postMessage")
        began = time.monotonic()
        assert (await house.person().commands("ask hello", "C1")).status == 200
        assert time.monotonic() - began < 2.9
        held.release()


@pytest.mark.parametrize("slow", ["users.info", "chat.postMessage", "conversations.replies", "conversations.members"])
async def test_commands_are_answered_before_slack_gives_them_up(slow: str) -> None:
    async with serving() as house:
        house.services.approvals["call-1.1"] = an_approval(approvers=("any",))
        held = house.slack.hold(slow)
        for text in ("ask hello", "approvals"):
            began = time.monotonic()
            assert (await house.person().commands(text, "C1")).status == 200
            assert time.monotonic() - began < 2.9
        held.release()


async def test_the_shortcuts_form_is_answered_before_slack_gives_it_up() -> None:
    async with serving() as house:
        said = await house.person("U2").says("C1", "the lamp is broken")
        await house.person().asks_about(said.message)
        modal = await house.modal()
        await house.person().renames("Anna")
        slow(house, "users.info", 1.0)
        held = [house.slack.hold(method) for method in ("conversations.replies", "chat.postMessage")]
        began = time.monotonic()
        await house.person().submits(modal, {"question": "why?"})
        assert time.monotonic() - began < 2.9
        for each in held:
            each.release()


# ------------------------------------------------------------------------------------------------ asked once


def openings(slack: FakeSlack) -> list[Any]:
    """The bot's own posts in C1."""
    return [message for message in slack.messages("C1") if message.get("bot_id")]


async def test_a_command_that_is_delivered_again_is_asked_once() -> None:
    async with serving() as house:
        done = await house.person().commands("ask hello", "C1")
        fields = {name: str(value) for name, value in done.payload.items()}
        again = await asyncio.gather(*(house.door.command(fields) for _ in range(3)))
        assert {answer.status for answer in again} == {200}
        assert len(openings(house.slack)) == len(house.services.messages) == 1


async def test_the_same_question_asked_anew_is_asked_again() -> None:
    async with serving() as house:
        await house.person().commands("ask hello", "C1")
        await house.person().commands("ask hello", "C1")
        assert len(openings(house.slack)) == len(house.services.messages) == 2


async def test_a_question_that_could_not_be_kept_can_be_asked_again() -> None:
    async with serving() as house:
        house.services.broken = RuntimeError("the disk is full")
        done = await house.person().commands("ask hello", "C1")
        assert done.status == 503
        house.services.broken = None
        fields = {name: str(value) for name, value in done.payload.items()}
        assert (await house.door.command(fields)).status == 200
        assert len(house.services.messages) == 1
        await house.slack.until(lambda: len(openings(house.slack)) == 1)


@pytest.mark.parametrize("thread", [False, True])
async def test_a_post_that_slack_did_not_confirm_does_not_stand_there_unanswered(*, thread: bool) -> None:
    async with serving() as house:
        if thread:
            said = await house.person("U2").says("C1", "the lamp is broken")
            await house.person().asks_about(said.message)
            modal = await house.modal()
        house.slack.fail("chat.postMessage", drop=True)
        if thread:
            await house.person().submits(modal, {"question": "why?"})
        else:
            await house.person().commands("ask hello", "C1")
        assert len(openings(house.slack)) == 1
        await house.slack.until(lambda: openings(house.slack) == [])
        assert house.services.messages == []
