"""One approval on two platforms: asked for on one, routed to the other, settled by the first valid click on either."""

from __future__ import annotations

import asyncio

from tests.both.conftest import Both
from tests.fakes.teams.server import ANA, TENANT
from tests.slack.product.talk import buttons as slack_buttons
from tests.slack.product.talk import words as slack_words
from tests.support.product import ProductProcess
from tests.support.slack_people import SlackPerson
from tests.support.teams_people import TeamsPerson
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import buttons as teams_buttons
from tests.teams.product.talk import words as teams_words


async def test_asked_in_slack_and_decided_in_teams(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card("lamp"), await teams.card("Make it", "workshop › make", "lamp", "Ana")
        answer = await teams.clicks(there, "approve")
        assert "Approved" in teams_words(answer.card)
        await slack.settled(here, "Approved", "Ben")
        await teams.settled(there, "Approved", "made lamp")
        await slack.says("Results: made lamp")
        await slack.clicks(here, "approve")
        await slack.told("already approved", "Ben")
    assert both.shop.done == ["make lamp 1"]


async def test_asked_in_teams_and_decided_in_slack(both: Both) -> None:
    both.policy("slack:T1:C1")
    async with both.running() as (slack, teams):
        await teams.mentions("use make what=lamp")
        here = await teams.card("lamp")
        there = await both.slack.until(
            lambda: [m for m in both.slack.messages("C1") if "approve" in slack_buttons(m)], within=20
        )
        assert "Ben Baker" in slack_words(there[0])
        assert (await slack.person.clicks(there[0], "approve")).status == 200
        await teams.settled(here, "Approved", "Ana")
        await both.slack.until(lambda: not any("approve" in slack_buttons(m) for m in both.slack.messages("C1")))
        await teams.says("Results: made lamp")
        late = await teams.clicks(here, "approve")
        assert "already approved" in (late.message or teams_words(late.card)).lower()
    assert both.shop.done == ["make lamp 1"]


async def test_two_clicks_at_once_on_both_platforms_run_it_once(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card(), await teams.card()
        await asyncio.gather(slack.clicks(here, "approve"), teams.clicks(there, "approve"))
        await slack.says("Results: made lamp")
        await slack.settled(here, "Approved")
        await teams.settled(there, "Approved")
    assert both.shop.done == ["make lamp 1"]


async def test_a_person_on_the_other_platform_gets_the_card_in_their_direct_chat(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{ANA}")
    async with both.running() as (slack, teams):
        hers = TeamsTalk(both.teams, TeamsPerson(both.teams, ANA, teams.person.transport), both.teams.personal(ANA))
        await slack.mentions("use make what=lamp")
        card = await hers.card("lamp")
        await hers.clicks(card, "approve")
        await slack.says("Results: made lamp")
        await hers.settled(card, "Approved")


async def test_a_person_in_slack_gets_it_in_their_direct_messages(both: Both) -> None:
    both.policy("slack:T1:U2")
    async with both.running() as (slack, teams):
        await teams.mentions("use make what=lamp")
        cards = await both.slack.until(lambda: [m for m in both.slack.messages("D2") if "approve" in slack_buttons(m)])
        colleague = SlackPerson(both.slack, "T1", "U2", slack.person.transport)
        assert (await colleague.clicks(cards[0], "approve")).status == 200
        await teams.says("Results: made lamp")
        await both.slack.until(lambda: not any("approve" in slack_buttons(m) for m in both.slack.messages("D2")))


async def test_show_all_works_where_it_was_routed_to(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    async with both.running() as (slack, teams):
        await slack.mentions(f"use make what={'x' * 9_000}")
        dialog = await teams.opens(await teams.card(), "show_all")
        assert "xxx" in teams_words(dialog.card)
        edit = await teams.opens(await teams.card(), "edit_dialog")
        await teams.submits(edit, "edit", what="chair", count="2")
        await slack.says("made chair")


async def test_one_platform_that_is_down_holds_up_nobody_on_the_other(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    held = both.teams.hold("send")
    async with both.running() as (slack, _):
        await slack.mentions("use make what=lamp")
        card = await slack.card()
        await slack.clicks(card, "approve")
        await slack.settled(card, "Approved")
        await slack.says("Results: made lamp")
        held.release()
        await both.teams.until(lambda: "Approved" in teams_words(both.teams.posts(both.teams.group)), within=30)
        assert "approve" not in teams_buttons(both.teams.posts(both.teams.group))


async def test_killed_after_the_click_both_cards_change_all_the_same(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    process = ProductProcess(both.home)
    try:
        slack, teams = both.at(await process.start())
        await slack.mentions("use make what=lamp")
        here, there = await slack.card(), await teams.card()
        updates = [both.teams.hold("update"), both.slack.hold("chat.update")]
        await teams.clicks(there, "approve")
        await both.model.asked(2)  # else it dies in the middle of the call, of which then nobody knows what came
        await process.kill()
        for held in updates:
            held.release()
        await process.start()
        await slack.settled(here, "Approved", "Ben")
        await teams.settled(there, "Approved", "Ben")
        await slack.says("Results: made lamp")
        assert both.shop.done == ["make lamp 1"]
    finally:
        await process.kill()
