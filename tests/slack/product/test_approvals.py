"""Approvals in Slack, end to end: who clicks what, when, and how often."""

from __future__ import annotations

import asyncio

import pytest

from bot import ledger
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import as_, opened
from tests.slack.product.talk import Talk, buttons, words
from tests.support.product import ProductFolder
from tests.support.slack_people import SlackPerson
from tests.support.tools import Workshop

SHORT = """
version: 1
rules:
  - name: quickly or not at all
    match: {tool: make}
    decide: ask
    expiresIn: 1s
"""
ALWAYS = """
version: 1
rules:
  - name: making may be allowed for a while
    match: {tool: make}
    decide: ask
    approvers: [requester]
    alwaysAllow: true
"""
BY_BEN = """
version: 1
rules:
  - name: by Ben
    match: {tool: make}
    decide: ask
    approvers: ["slack:T1:U2"]
    reasonRequired: true
"""


@pytest.mark.usefixtures("both_modes")
async def test_a_call_waits_for_a_click_and_its_card_says_what_came_of_it(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp count=2")
    card = await talk.card("workshop › make", "lamp", "Ana")
    assert shop.done == []
    await talk.clicks(card, "approve")
    await talk.says("Results: made lamp")
    settled = await talk.settled(card, "Approved")
    assert buttons(settled) == ["show_all"]
    assert shop.done == ["make lamp 2"]
    assert len(talk.of_the_bot()) == 3


async def test_the_card_of_a_quick_call_is_updated_twice_at_most(
    talk: Talk, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was approved, and what came of it: that it runs would be news for a moment only."""
    monkeypatch.setattr(ledger, "OUTCOME_FIRST", 60.0)
    await talk.mentions("use make what=lamp count=2")
    card = await talk.card("workshop › make")
    await talk.clicks(card, "approve")
    await talk.says("Results: made lamp")
    await talk.settled(card, "Approved")
    assert len([call for call in slack.calls_of("chat.update") if call.arguments["ts"] == card["ts"]]) <= 2


async def test_the_card_of_a_slow_call_says_that_it_runs(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make_slowly what=lamp")
    card = await talk.card("workshop › make_slowly")
    await talk.clicks(card, "approve")
    await talk.settled(card, "Approved", "Running…")
    shop.may_end.set()
    await talk.settled(card, "Approved")


@pytest.mark.usefixtures("both_modes")
async def test_a_rejection_has_its_reason_from_a_modal(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    submitted = await talk.submits(await talk.opens(card, "reject"), reason="no lamps, please")
    assert submitted.view is None
    await talk.settled(card, "Rejected", "no lamps, please")
    await talk.says("Results:", "no lamps, please")
    assert shop.done == []


@pytest.mark.usefixtures("both_modes")
async def test_an_edit_runs_what_was_typed_into_the_modal_and_shows_what_was_asked(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp count=2")
    card = await talk.card()
    view = await talk.opens(card, "edit")
    wrong = await talk.submits(view, count="2.5")
    assert wrong.view is not None, "the modal stays open with what was typed"
    assert any("whole number" in error for error in wrong.errors.values())
    assert shop.done == []
    await talk.submits(wrong.view, what="chair", count="3")
    await talk.settled(card, "Approved", "chair", "lamp")
    await talk.says("made chair")
    assert shop.done == ["make chair 3"]


async def test_everything_is_behind_show_all(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions(f"use make what={'x' * 20_000}")
    card = await talk.card("more characters")
    view = await talk.opens(card, "show_all")
    first = words(view)
    forward = next(e for b in view["blocks"] for e in b.get("elements", []) if e.get("action_id") == "page")
    await talk.person.clicks(view, "page", forward["value"])
    second = words(await slack.until(lambda: next((v for v in slack.views("U1") if words(v) != first), None)))
    assert first.count("x") + second.count("x") >= 20_000


async def test_approve_all_decides_exactly_what_it_showed(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp; make what=chair; make what=desk")
    card = await talk.card(number=3)
    await talk.slack.until(lambda: any("approve_all" in buttons(c) for c in talk.waiting()))
    card = next(c for c in talk.waiting() if "approve_all" in buttons(c))
    view = await talk.opens(card, "approve_all")
    assert all(what in words(view) for what in ("lamp", "chair", "desk"))
    await talk.submits(view)
    await talk.says("made lamp", "made chair", "made desk")
    assert sorted(shop.done) == ["make chair 1", "make desk 1", "make lamp 1"]
    assert talk.waiting() == []


# --------------------------------------------------------------------------------------------------- in vain


@pytest.mark.usefixtures("both_modes")
async def test_somebody_else_is_refused_and_nobody_but_them_sees_it(
    talk: Talk, ben: SlackPerson, shop: Workshop, slack: FakeSlack
) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    before = len(slack.messages("C1"))
    theirs = as_(ben, talk)
    await theirs.clicks(card, "approve")
    await theirs.told("You can’t approve this")
    assert slack.ephemerals("U1") == []
    assert len(slack.messages("C1")) == before
    assert len(talk.waiting()) == 1
    assert shop.done == []
    await talk.clicks(card, "approve")
    await talk.says("made lamp")


async def test_what_was_approved_and_failed_looks_failed_and_is_asked_about_again_by_retry(
    talk: Talk, ben: SlackPerson, slack: FakeSlack
) -> None:
    await talk.mentions("use fail what=lamp")
    card = await talk.card("workshop › fail")
    await talk.clicks(card, "approve")
    failed = await talk.settled(card, "❌", "lamp is broken", "Approved by Ana")
    await slack.until(lambda: "retry" in buttons(talk.now(card)))
    assert "✓" not in words(failed)
    await ben.clicks(talk.now(card), "retry")
    await as_(ben, talk).told("Only")
    await talk.says("Results:", "lamp is broken")
    await talk.clicks(talk.now(card), "retry")
    again = await talk.card("workshop › fail", "lamp")
    assert again["ts"] != card["ts"]
    await slack.until(lambda: buttons(talk.now(card)) == ["show_all"])


async def test_a_call_under_a_standing_approval_leaves_one_quiet_line_that_revokes_it(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    home.policy(ALWAYS)
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        await talk.mentions("use make what=lamp")
        await talk.submits(await talk.opens(await talk.card("lamp"), "always"), duration="1 h")
        await talk.says("Results: made lamp")
        await talk.mentions("use make what=lamp")
        line = await talk.says("Standing approval of Ana", "lamp")
        assert talk.waiting() == []
        (block,) = line["blocks"]
        assert buttons(line) == ["revoke"]
        assert block["text"]["type"] == "plain_text"
        await slack.until(lambda: len(shop.done) == 2)
        await talk.clicks(line, "revoke")
        await slack.until(lambda: buttons(talk.now(line)) == [])
        await talk.mentions("use make what=lamp")
        await talk.card("lamp")
    assert shop.done == ["make lamp 1"] * 2


async def test_two_clicks_at_once_run_it_once(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await asyncio.gather(*(talk.clicks(card, "approve") for _ in range(4)))
    await talk.says("made lamp")
    await talk.told("already")
    assert shop.done == ["make lamp 1"]


async def test_the_same_click_delivered_twice_counts_once(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    clicked = await talk.clicks(await talk.card(), "approve")
    assert (await talk.person.clicks_again(clicked)).status == 200
    await talk.says("made lamp")
    assert shop.done == ["make lamp 1"]
    assert talk.slack.ephemerals("U1") == []


async def test_a_click_on_a_card_that_is_settled_is_told_so(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await talk.clicks(card, "approve")
    await talk.settled(card, "Approved")
    await talk.clicks(card, "approve")
    await talk.told("Already approved by Ana")
    await talk.clicks(card, "reject")
    late = await talk.slack.until(lambda: talk.slack.views("U1") or len(talk.slack.ephemerals("U1")) > 1)
    assert late
    assert shop.done == ["make lamp 1"]


async def test_a_click_after_the_deadline_is_told_so(home: ProductFolder, slack: FakeSlack, shop: Workshop) -> None:
    home.policy(SHORT)
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        await talk.settled(card, "Expired")
        await talk.clicks(card, "approve")
        await talk.told("expired")
        await talk.says("Results:", "expired")
    assert shop.done == []


async def test_a_trigger_that_came_too_late_is_answered_with_click_again(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    slack.fail("views.open", error="expired_trigger_id")
    await talk.clicks(card, "reject")
    await talk.told("again")
    assert slack.views("U1") == []
    await talk.opens(card, "reject")


async def test_only_the_approver_may_reject_and_has_to_say_why(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    home.policy(BY_BEN)
    async with opened(home, slack) as transport:
        talk = Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        await talk.mentions("use make what=lamp")
        card = await talk.card("<@U2>")
        ben = as_(SlackPerson(slack, "T1", "U2", transport), talk)
        view = await ben.opens(card, "reject")
        await ben.submits(view, reason="we have enough")
        await talk.settled(card, "Rejected", "Ben", "we have enough")
    assert shop.done == []
