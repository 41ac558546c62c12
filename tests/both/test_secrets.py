"""A secret in what a tool says reaches neither Slack nor Teams, whatever is shown of the call."""

from __future__ import annotations

import json

import pytest

from tests.both.conftest import Both
from tests.fakes.teams.server import TENANT
from tests.support.planted import COLD, LEAKS, TOKEN, assert_nowhere, plant
from tests.support.product_records import all_that_is_kept

ROUTED = """
version: 1
rules:
  - name: making is asked for
    match: {{tool: leak, args: {{what: "*made*"}}}}
    decide: ask
    approvers: [any]
    routeTo: ["teams:{tenant}:{group}"]
  - {{name: all else is allowed, match: {{}}, decide: allow}}
"""


@pytest.fixture
def leaky(both: Both) -> Both:
    plant(both.home, both.shop)
    both.home.policy(ROUTED.format(tenant=TENANT, group=both.teams.group))
    return both


def assert_sent_nowhere(both: Both) -> None:
    """Neither in what was posted, nor in any request that Slack or Teams ever got."""
    for called in both.slack.calls:
        assert_nowhere(f"Slack's {called.method}", json.dumps(called.arguments, ensure_ascii=False))
    for asked in both.teams.calls:
        assert_nowhere(f"Teams' {asked.verb}", json.dumps(asked.body, ensure_ascii=False))
    for name, text in all_that_is_kept(both.home):
        assert_nowhere(name, text)


async def test_a_seeded_secret_is_in_nothing_that_slack_or_teams_are_sent(leaky: Both) -> None:
    async with leaky.running() as (slack, teams):
        await slack.mentions(LEAKS)
        await teams.mentions(LEAKS)
        await leaky.slack.until(lambda: slack._with(slack.of_the_bot(), ("Results", "github token")), within=COLD)
        await leaky.teams.until(lambda: teams._with(teams.of_the_bot(), ("Results", "github token")), within=COLD)
    assert_sent_nowhere(leaky)


async def test_a_secret_among_the_arguments_is_on_no_card_in_no_dialog_and_in_no_form(leaky: Both) -> None:
    async with leaky.running() as (slack, teams):
        await slack.mentions(f"use leak what=made-{TOKEN}")
        here, there = await slack.card("github token"), await teams.card("github token")
        for name in ("show_all", "edit_dialog"):
            assert_nowhere(f"the dialog {name}", json.dumps((await teams.opens(there, name)).json))
        for name in ("show_all", "edit"):
            assert (await slack.clicks(here, name)).status == 200
        await teams.clicks(there, "approve")
        await slack.settled(here, "Approved", "Ben")
        await slack.says("Results", "github token")
        assert_nowhere("the card", json.dumps([*slack.of_the_bot(), *teams.of_the_bot()]))
    for called in leaky.slack.calls:
        assert_nowhere(f"Slack's {called.method}", json.dumps(called.arguments, ensure_ascii=False))
    for asked in leaky.teams.calls:
        assert_nowhere(f"Teams' {asked.verb}", json.dumps(asked.body, ensure_ascii=False))
