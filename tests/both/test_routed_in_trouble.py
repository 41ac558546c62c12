"""Cards on the other platform when the process dies, when the request is given up, and of what else waits beside it."""

from __future__ import annotations

import math

from tests.both.conftest import Both
from tests.fakes.teams.server import TENANT
from tests.slack.product.talk import buttons as slack_buttons
from tests.slack.product.talk import words as slack_words
from tests.support.hurried import HURRIED
from tests.support.product import ProductProcess, product_here
from tests.support.product_records import is_recorded
from tests.support.visitor import visiting
from tests.teams.product.talk import Json
from tests.teams.product.talk import buttons as teams_buttons
from tests.teams.product.talk import words as teams_words

ONE_OF_TWO = """
version: 1
rules:
  - name: decided by colleagues elsewhere
    match: {{tool: make, args: {{what: lamp}}}}
    decide: ask
    approvers: [any]
    routeTo: ["{place}"]
  - name: decided here
    match: {{tool: make}}
    decide: ask
    approvers: [any]
"""


async def test_a_second_card_in_a_thread_of_its_own_is_removed_when_it_is_clicked(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.channel}")
    process = ProductProcess(both.home, HURRIED)
    try:
        slack, teams = both.at(await process.start())
        teams.conversation = both.teams.channel
        both.teams.fail("open_thread", drop=True)
        both.teams.fail("open_thread", status=503, times=math.inf)
        await slack.mentions("use make what=lamp")
        orphan = (await both.teams.until(teams.waiting, within=20))[0]
        await process.kill()
        both.teams.faults.clear()
        slack.person.transport, teams.person.transport = both.transports(await process.start())
        await both.teams.until(lambda: len(teams.waiting()) == 2, within=40)
        await both.teams.until(lambda: is_recorded(both.home, teams.waiting()[-1]["id"]), within=20)
        assert orphan["conversation"] != teams.waiting()[-1]["conversation"]
        await teams.clicks(orphan, "approve")
        await both.teams.until(lambda: orphan["id"] not in {m["id"] for m in teams.of_the_bot()}, within=30)
        await slack.says("Results: made lamp")
        assert "Approved" in teams_words(teams.of_the_bot())
        assert both.shop.done == ["make lamp 1"]
    finally:
        await process.kill()


async def test_in_slack_the_card_of_a_dead_process_is_found_again_in_direct_messages_and_in_the_channel(
    both: Both,
) -> None:
    both.home.policy(ONE_OF_TWO.format(place='slack:T1:U2", "slack:T1:C1'))
    process = ProductProcess(both.home)
    try:
        _, teams = both.at(await process.start())
        both.slack.fail("chat.postMessage", drop=True, times=2)
        both.slack.fail("chat.postMessage", status=503, times=math.inf)
        await teams.mentions("use make what=lamp")
        await both.slack.until(lambda: len(_open_in_slack(both)) == 2, within=20)
        await process.kill()
        both.slack.faults.clear()
        _, teams = both.at(await process.start())
        await teams.clicks(await teams.card("lamp"), "approve")
        await both.slack.until(lambda: not _open_in_slack(both), within=30)
        assert sum("lamp" in slack_words(m) for m in _in_slack(both)) == 2
    finally:
        await process.kill()


async def test_what_is_given_up_for_something_new_is_so_on_every_card(both: Both) -> None:
    both.policy(f"teams:{TENANT}:{both.teams.group}")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card(), await teams.card()
        await slack.mentions("hello")
        await slack.settled(here, "sent a new message")
        await teams.settled(there, "sent a new message")
        late = await teams.clicks(there, "approve")
        assert "replaced" in (late.message or teams_words(late.card)).lower()
    assert both.shop.done == []


async def test_a_routed_card_shows_and_offers_nothing_else_that_waits_in_its_thread(both: Both) -> None:
    both.home.policy(ONE_OF_TWO.format(place=f"teams:{TENANT}:{both.teams.group}"))
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp; make what=secret-chair")
        await slack.card(number=2)
        card = await teams.card("lamp")
        assert teams.waiting(("secret-chair",)) == []
        assert "approve_all_dialog" not in teams_buttons(card)
        await teams.clicks(card, "approve")
        await both.slack.until(lambda: both.shop.done == ["make lamp 1"])
        assert slack.waiting(("secret-chair",))


async def test_what_was_asked_on_the_web_page_is_decided_where_it_was_routed_to(both: Both) -> None:
    both.home.policy(ONE_OF_TWO.format(place=f'slack:T1:C1", "teams:{TENANT}:{both.teams.group}'))
    both.home.variables["WEB_ENABLED"] = "true"
    async with product_here(both.home) as url, visiting(url) as visitor, visitor.thread() as page:
        _, teams = both.at(url)
        await page.send("use make what=lamp")
        [card] = await page.waiting()
        there = await teams.card("lamp")
        await both.slack.until(lambda: _open_in_slack(both))
        await teams.clicks(there, "approve")
        await page.card(card["id"], "approved")
        await teams.settled(there, "Approved", "Ben")
        await both.slack.until(lambda: not _open_in_slack(both))
        await page.says("made lamp")


def _in_slack(both: Both) -> list[Json]:
    """What stands in the channel and in the direct messages of U2."""
    return [*both.slack.messages("C1"), *both.slack.messages("D2")]


def _open_in_slack(both: Both) -> list[Json]:
    return [m for m in _in_slack(both) if "approve" in slack_buttons(m)]
