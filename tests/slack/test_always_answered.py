"""Rule 5 when things go wrong: every click, command and form has an answer, for whoever did it alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from adapters.slack.actions import Origin
from tests.fakes.slack.server import FakeSlack
from tests.slack.serving import Served, a_card, serving
from tests.slack.shown import an_approval
from tests.support.waiting import at_most_waiting

pytestmark = pytest.mark.waits
SHOWING = ("reject", "edit", "show_all", "approve_all", "get_link", "answer")


async def clicked_as(product: Served, action_id: str, value: str = "call-1.1", **more: Any) -> int:
    """A click of Ana's on a card of ours, with another button than is on it; the status of the answer."""
    clicked = await product.person().clicks(await a_card(product), "show_all")
    await product.modal()
    action = {**clicked.payload["actions"][0], "action_id": action_id, "value": value}
    return (await product.transport.interaction({**clicked.payload, "actions": [action], **more})).status


# ------------------------------------------------------------------------------------------------ something breaks


@pytest.mark.parametrize("action_id", SHOWING)
async def test_whoever_clicks_is_told_when_the_records_cannot_be_read(action_id: str) -> None:
    async with serving() as product:
        product.services.sign_ins.clear()
        clicked = await product.person().clicks(await a_card(product), "approve")
        product.services.unreadable = RuntimeError("the disk is full")
        action = {**clicked.payload["actions"][0], "action_id": action_id}
        assert (await product.transport.interaction({**clicked.payload, "actions": [action]})).status == 200
        await product.hears("Something went wrong")


async def test_whoever_turns_the_page_of_what_is_gone_is_told_so() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = view = an_approval(arguments={"text": "x" * 20_000})
        await product.person().clicks(await product.card(view), "show_all")
        modal = await product.modal()
        product.services.approvals.clear()
        forward = next(e for b in modal["blocks"] for e in b.get("elements", []) if e.get("action_id") == "page")
        await product.person().clicks(modal, "page", forward["value"])
        await product.hears("no such approval")


async def test_whoever_turns_a_page_that_slack_does_not_show_is_told_so() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = view = an_approval(arguments={"text": "x" * 20_000})
        await product.person().clicks(await product.card(view), "show_all")
        modal = await product.modal()
        product.slack.fail("views.update", error="internal_error", times=100)
        forward = next(e for b in modal["blocks"] for e in b.get("elements", []) if e.get("action_id") == "page")
        await product.person().clicks(modal, "page", forward["value"])
        await product.hears("open the window")


async def test_a_button_that_is_not_known_any_more_says_so() -> None:
    async with serving() as product:
        assert await clicked_as(product, "launch_rocket") == 200
        await product.hears("no longer works")


async def test_buttons_with_an_address_need_no_words() -> None:
    async with serving() as product:
        assert await clicked_as(product, "open_thread") == 200
        await product.close()
        assert product.told() == []


# ------------------------------------------------------------------------------------------------ not installed


def a_stranger(product: Served) -> None:
    """Zoe, in a workspace that has taken us out."""
    product.slack.add_workspace(team="T2", name="Other", token="", bot_user="UBOT2", bot_id="BBOT2")
    product.slack.add_user("U9", team="T2", name="Zoe")
    product.slack.add_channel("C9", team="T2", members=["U9", "UBOT2"])


async def test_where_we_are_not_installed_a_command_says_so() -> None:
    async with serving() as product:
        a_stranger(product)
        assert (await product.person("U9", "T2").commands("ask hello", "C9")).status == 200
        assert ["no longer installed" in text for text in product.told("U9")] == [True]


async def test_where_we_are_not_installed_an_old_button_says_so_to_its_clicker_alone() -> None:
    async with serving() as product:
        a_stranger(product)
        old = {
            "type": "message",
            "user": "UBOT2",
            "bot_id": "BBOT2",
            "ts": "1700000000.000300",
            "thread_ts": "1700000000.000100",
            "text": "card",
            "blocks": (await a_card(product))["blocks"],
        }
        product.slack.world.channels["C9"].messages[old["ts"]] = old
        assert (await product.person("U9", "T2").clicks(old, "approve")).status == 200
        await product.hears("no longer installed", "U9")
        assert product.slack.ephemerals("U9")[0]["thread_ts"] == "1700000000.000100"
        assert product.services.decisions == []


async def test_where_we_are_not_installed_a_form_says_so_in_its_place() -> None:
    async with serving() as product:
        view = {"type": "modal", "id": "V1", "hash": "h", "callback_id": "reject_form", "blocks": []}
        view["private_metadata"] = Origin("call-1.1", "C9").dump()
        who = {"user": {"id": "U9", "team_id": "T2"}, "team": {"id": "T2"}}
        answer = await product.transport.interaction({"type": "view_submission", "view": view, **who})
        assert answer.json["response_action"] == "update"
        assert "no longer installed" in json.dumps(answer.json)


# ------------------------------------------------------------------------------------------------ within three seconds


def slow(product: Served, method: str, seconds: float) -> None:
    """Slack takes that long for it, once and for all calls meanwhile."""
    asyncio.get_running_loop().call_later(seconds, product.slack.hold(method).release)


async def test_a_slow_slack_is_not_waited_for_twice() -> None:
    async with serving() as product:
        slow(product, "users.info", 1.0)
        held = product.slack.hold("chat.postMessage")
        async with at_most_waiting(2.9):
            assert (await product.person().commands("ask hello", "C1")).status == 200
        held.release()


@pytest.mark.parametrize("slow", ["users.info", "chat.postMessage", "conversations.replies", "conversations.members"])
async def test_commands_are_answered_before_slack_gives_them_up(slow: str) -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval(approvers=("any",))
        held = product.slack.hold(slow)
        for text in ("ask hello", "approvals"):
            async with at_most_waiting(2.9):
                assert (await product.person().commands(text, "C1")).status == 200
        held.release()


async def test_the_shortcuts_form_is_answered_before_slack_gives_it_up() -> None:
    async with serving() as product:
        said = await product.person("U2").says("C1", "the lamp is broken")
        await product.person().asks_about(said.message)
        modal = await product.modal()
        await product.person().renames("Anna")
        slow(product, "users.info", 1.0)
        held = [product.slack.hold(method) for method in ("conversations.replies", "chat.postMessage")]
        async with at_most_waiting(2.9):
            await product.person().submits(modal, {"question": "why?"})
        for each in held:
            each.release()


# ------------------------------------------------------------------------------------------------ asked once


def openings(slack: FakeSlack) -> list[Any]:
    """The bot's own posts in C1."""
    return [message for message in slack.messages("C1") if message.get("bot_id")]


async def test_a_command_that_is_delivered_again_is_asked_once() -> None:
    async with serving() as product:
        done = await product.person().commands("ask hello", "C1")
        fields = {name: str(value) for name, value in done.payload.items()}
        again = await asyncio.gather(*(product.transport.command(fields) for _ in range(3)))
        assert {answer.status for answer in again} == {200}
        assert len(openings(product.slack)) == len(product.services.messages) == 1


async def test_the_same_question_asked_anew_is_asked_again() -> None:
    async with serving() as product:
        await product.person().commands("ask hello", "C1")
        await product.person().commands("ask hello", "C1")
        assert len(openings(product.slack)) == len(product.services.messages) == 2


async def test_a_question_that_could_not_be_kept_can_be_asked_again() -> None:
    async with serving() as product:
        product.services.broken = RuntimeError("the disk is full")
        done = await product.person().commands("ask hello", "C1")
        assert done.status == 503
        product.services.broken = None
        fields = {name: str(value) for name, value in done.payload.items()}
        assert (await product.transport.command(fields)).status == 200
        assert len(product.services.messages) == 1
        await product.slack.until(lambda: len(openings(product.slack)) == 1)


@pytest.mark.parametrize("thread", [False, True])
async def test_a_post_that_slack_did_not_confirm_does_not_stand_there_unanswered(*, thread: bool) -> None:
    async with serving() as product:
        if thread:
            said = await product.person("U2").says("C1", "the lamp is broken")
            await product.person().asks_about(said.message)
            modal = await product.modal()
        product.slack.fail("chat.postMessage", drop=True)
        if thread:
            await product.person().submits(modal, {"question": "why?"})
        else:
            await product.person().commands("ask hello", "C1")
        assert len(openings(product.slack)) == 1
        await product.slack.until(lambda: openings(product.slack) == [])
        assert product.services.messages == []
