"""Who may see and decide what: other workspaces, other channels, people who have become guests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.slack.actions import Origin
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import SECRET, as_, opened
from tests.slack.product.talk import Talk, buttons, words
from tests.support.product import ProductFolder, ProductProcess, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport, SocketTransport, Transport
from tests.support.tools import Workshop

BY_ANYBODY = """
version: 1
rules:
  - name: anybody else
    match: {tool: "make"}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
  - name: the rest
    match: {}
    decide: ask
"""


@asynccontextmanager
async def two_workspaces(home: ProductFolder, slack: FakeSlack) -> AsyncIterator[tuple[Talk, Talk]]:
    """Ana's thread in T1, and Zoe's in T2."""
    del home.variables["SLACK_BOT_TOKEN"]
    slack.world.tokens.clear()
    slack.add_workspace(team="T2", name="Bolt & Co", token="", bot_user="UBOT2", bot_id="BBOT2")
    slack.add_user("U8", team="T2", name="Zoe")
    slack.add_channel("C8", team="T2", members=["U8", "UBOT2"])
    home.variables |= {"SLACK_CLIENT_ID": slack.world.client_id, "SLACK_CLIENT_SECRET": slack.world.client_secret}
    home.variables |= {"PUBLIC_URL": "https://bot.example.com", "SLACK_INSTALL_TEAMS": "T1,T2"}
    async with product_here(home) as url:
        transport = HttpTransport(f"{url}/slack/events", SECRET)
        ana, zoe = SlackPerson(slack, "T1", "U1", transport), SlackPerson(slack, "T2", "U8", transport)
        await ana.installs()
        await zoe.installs()
        yield Talk(slack, ana, "C1"), Talk(slack, zoe, "C8")


def value_of(message: dict[str, Any], action_id: str) -> str:
    """What a button says it is about."""
    elements = [e for block in message["blocks"] for e in block.get("elements", []) if isinstance(e, dict)]
    return str(next(e["value"] for e in elements if e.get("action_id") == action_id))


async def forged(slack: FakeSlack, person: SlackPerson, message: dict[str, Any], action_id: str, value: str) -> int:
    """A click on a message of one's own, with the button of another; the status of the answer."""
    clicked = await person.clicks(message, "show_all")
    action = {**clicked.payload["actions"][0], "action_id": action_id, "value": value, "action_ts": "1.1"}
    trigger = slack.issue_trigger(person.user, team=person.team)
    return (await person.transport.interaction({**clicked.payload, "actions": [action], "trigger_id": trigger})).status


async def told_more(slack: FakeSlack, user: str, before: int) -> None:
    """Wait until this person alone was told something more than so many things."""
    await slack.until(lambda: len(slack.ephemerals(user)) > before)


async def test_nobody_decides_or_sees_what_was_asked_in_another_workspace(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    home.policy(BY_ANYBODY)
    async with two_workspaces(home, slack) as (here, there):
        await here.mentions("use make what=secretlamp")
        await there.mentions("use make what=chair")
        card, theirs = await here.card("secretlamp"), await there.card("chair")
        target, zoe = value_of(card, "approve"), there.person
        await forged(slack, zoe, theirs, "approve", target)
        await slack.until(lambda: "another workspace" in str(slack.ephemerals("U8")))
        form = {"type": "modal", "id": "V99", "hash": "h", "callback_id": "approve_all_form", "blocks": []}
        form["private_metadata"] = Origin(target, "C8").dump()
        who = {"user": {"id": "U8", "team_id": "T2"}, "team": {"id": "T2"}}
        answer = await zoe.transport.interaction({"type": "view_submission", "view": form, **who})
        assert "another workspace" in str(answer.json)
        for action_id in ("show_all", "approve_all", "reject", "edit", "page"):
            before = len(slack.ephemerals("U8"))
            await forged(slack, zoe, theirs, action_id, f"0:{target}" if action_id == "page" else target)
            await told_more(slack, "U8", before)
        assert "secretlamp" not in str([c.arguments for c in slack.calls if c.arguments.get("trigger_id")])
        assert "secretlamp" not in str(slack.ephemerals("U8"))
        assert shop.done == []
        assert len(here.waiting()) == 1


# --------------------------------------------------------------------------------------------------- channels


@pytest.mark.parametrize(("user", "sees"), [("U2", False), ("U3", True)])
async def test_what_anybody_may_decide_is_shown_to_those_in_the_channel_only(
    home: ProductFolder, slack: FakeSlack, user: str, *, sees: bool
) -> None:
    home.policy(BY_ANYBODY)
    slack.add_channel("G1", kind="group", members=["U1", "U3", "UBOT"])
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "G1")
        await talk.mentions("use make what=secretlamp")
        await talk.card()
        other = SlackPerson(slack, "T1", user, transport)
        await other.opens_home()
        shown = words(await slack.until(lambda: slack.home(user)))
        assert ("secretlamp" in shown) is sees
        await other.commands("approvals", "C1")
        (listed,) = slack.ephemerals(user)
        assert ("Make it" in words(listed)) is sees


async def test_whoever_the_policy_names_is_shown_it_wherever_it_was_asked(
    home: ProductFolder, slack: FakeSlack
) -> None:
    home.policy(BY_ANYBODY.replace("[any]", '["slack:T1:U2"]'))
    slack.add_channel("G1", kind="group", members=["U1", "U3", "UBOT"])
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "G1")
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        ben = SlackPerson(slack, "T1", "U2", transport)
        await ben.opens_home()
        await ben.clicks(await slack.until(lambda: slack.home("U2")), "approve")
        await talk.settled(card, "Approved")


async def test_what_waits_in_a_direct_chat_can_be_decided_by_somebody_else(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    """Nobody but the requester sees the card there, and the requester may not decide."""
    home.policy(BY_ANYBODY)
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "D1")
        await talk.mentions("use make what=lamp; make_slowly what=private")
        await talk.card(number=2)
        ben = SlackPerson(slack, "T1", "U2", transport)
        await ben.opens_home()
        home_tab = await slack.until(lambda: slack.home("U2"))
        assert "private" not in words(home_tab)
        if "approve_all" in buttons(home_tab):
            await ben.clicks(home_tab, "approve_all")
            assert "private" not in words((await slack.until(lambda: slack.views("U2")))[-1])
        await ben.clicks(home_tab, "approve")
        await slack.until(lambda: shop.done == ["make lamp 1"])


# --------------------------------------------------------------------------------------------------- guests, strangers


async def test_a_form_that_was_opened_before_somebody_became_a_guest_decides_nothing(
    talk: Talk, slack: FakeSlack, shop: Workshop
) -> None:
    await talk.mentions("use make what=lamp")
    view = await talk.opens(await talk.card(), "edit")
    slack.world.user("T1", "U1")["is_restricted"] = True
    await talk.person.renames("Ana (guest)")
    submitted = await talk.submits(view)
    assert "Guests" in str(submitted.errors) + words(submitted.view)
    assert shop.done == []
    assert len(talk.waiting()) == 1


async def test_somebody_of_another_company_in_a_shared_channel_decides_and_sees_nothing(
    slack: FakeSlack, talk: Talk, transport: Transport, shop: Workshop
) -> None:
    slack.add_user("U7", name="Sam", team_id="T7")
    slack.world.channels["C1"].members.add("U7")
    await talk.mentions("use make what=lamp; make what=chair")
    card = await talk.card(number=2)
    sam = as_(SlackPerson(slack, "T1", "U7", transport), talk)
    for number, action_id in enumerate(("approve", "reject", "edit", "show_all")):
        await sam.clicks(card, action_id)
        await told_more(slack, "U7", number)
    assert slack.views("U7") == []
    assert shop.done == []
    assert slack.ephemerals("U1") == []


# --------------------------------------------------------------------------------------------------- logs


@pytest.mark.parametrize("mode", ["events", "socket"])
async def test_no_level_of_the_log_has_words_links_or_tokens(
    home: ProductFolder, slack: FakeSlack, shop: Workshop, mode: str
) -> None:
    home.variables["LOG_LEVEL"] = "debug"
    if mode == "socket":
        home.variables["SLACK_APP_TOKEN"] = slack.world.app_token
    process = ProductProcess(home)
    try:
        url = await process.start()
        transport: Transport = HttpTransport(f"{url}/slack/events", SECRET)
        if mode == "socket":
            await slack.until(lambda: slack.sockets.connected)
            transport = SocketTransport(slack)
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        slack.fail("chat.postMessage", status=500)
        slack.fail("users.info", status=500)
        slack.fail("chat.update", error="invalid_blocks")
        await talk.mentions("use make_with_account what=zebrafish")
        await talk.clicks(await talk.card(), "approve")
        given = await talk.told("Sign in to")
        await talk.clicks(await talk.says("Waiting for Ana to sign in"), "get_link")
        await talk.person.commands("ask zebrafish?", "C1")
        shop.signed_in = True
        await talk.clicks(given, "signed_in")
        await talk.says("zebrafish with the account")
        await talk.person.opens_home()
        await slack.until(lambda: slack.home("U1"))
        await process.terminate()
        log = process.log_beside_arguments()
        assert "slack_connected" in log
        for secret in ("zebrafish", "top-secret", "xoxb-1", slack.world.app_token, SECRET, "/response/", "Which"):
            assert secret not in log, secret
    finally:
        await process.kill()
