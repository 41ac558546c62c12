"""From one platform to the other: handed over, escalated, reminded of, expired."""

from __future__ import annotations

import pytest

from tests.both.conftest import Both
from tests.both.people import InSlack, InTeams
from tests.fakes.teams.server import BEN, TENANT

BENS = "ben.baker@example.com"
"""Ben's address in Teams."""
IN_SLACK, IN_TEAMS = "slack:T1:U1", f"teams:{TENANT}:{BEN}"
"""Ana and Ben."""


@pytest.fixture
def both(both: Both) -> Both:
    both.slack.world.users["T1", "U1"]["profile"]["email"] = "ana@example.com"
    return both


def policy(both: Both, *lines: str) -> None:
    rule = "\n".join(f"    {line}" for line in lines)
    both.home.policy(f"version: 1\nrules:\n  - name: by people\n    match: {{tool: make}}\n    decide: ask\n{rule}\n")


async def test_somebody_in_teams_is_asked_from_slack_as_the_rule_names_them(both: Both) -> None:
    policy(both, f'approvers: ["{IN_SLACK}", "{IN_TEAMS}"]')
    async with both.running() as (slack, teams):
        ana, ben = InSlack(slack), InTeams(teams)
        await ben.asks("hello")
        await ben.hears("You said: hello")
        await ana.asks("use make what=lamp")
        await ana.sees("lamp")
        assert "Asked Ben Baker" in await ana.asks_somebody_else(ben.person_id)
        await ben.is_given("lamp", "Ana")


async def test_somebody_in_teams_is_asked_from_slack_by_their_address(both: Both) -> None:
    policy(both, f'approvers: ["channel", "{IN_TEAMS}"]')
    async with both.running() as (slack, teams):
        ana, ben = InSlack(slack), InTeams(teams)
        await ana.asks("use make what=lamp")
        await ana.sees("lamp")
        assert "No Countersign user" in await ana.asks_somebody_else(BENS)
        await ben.asks("hello")
        await ben.hears("You said: hello")
        assert "Asked Ben Baker" in await ana.asks_somebody_else(BENS)
        await ben.is_given("lamp", "Ana")
        await ben.approves()
        await ana.sees_it_end("approved", "Ben Baker")
        await ana.hears("Results: made lamp")
        await ben.sees_it_end("approved")
    assert both.shop.done == ["make lamp 1"]


async def test_somebody_in_slack_is_asked_from_teams_by_their_address(both: Both) -> None:
    policy(both, f'approvers: ["{IN_SLACK}", "{IN_TEAMS}"]')
    async with both.running() as (slack, teams):
        ana, ben = InSlack(slack), InTeams(teams)
        await ana.asks("hello")
        await ana.hears("You said: hello")
        await ben.asks("use make what=lamp")
        await ben.sees("lamp")
        assert "Asked Ana" in await ben.asks_somebody_else("ana@example.com")
        await ana.is_given("lamp", "Ben Baker")
        await ana.approves()
        await ben.sees_it_end("approved", "Ana")
        await ben.hears("Results: made lamp")
    assert both.shop.done == ["make lamp 1"]


async def test_what_nobody_decides_in_slack_is_given_to_somebody_in_teams(both: Both) -> None:
    policy(both, 'approvers: ["slack:T1:U2"]', "escalateAfter: 1s", f'escalateTo: ["{IN_TEAMS}"]')
    async with both.running() as (slack, teams):
        ana, ben = InSlack(slack), InTeams(teams)
        await ana.asks("use make what=lamp")
        await ana.sees("lamp")
        await ben.is_given("lamp", "Ana")
        await ben.approves()
        await ana.sees_it_end("approved", "Ben Baker")
    assert both.shop.done == ["make lamp 1"]


async def test_it_is_reminded_of_beside_each_card_and_expires_on_both(both: Both) -> None:
    place = f'routeTo: ["teams:{TENANT}:{both.teams.group}"]'
    policy(both, "approvers: [any]", "remindAfter: 1s", "expiresIn: 3s", place)
    async with both.running() as (slack, teams):
        ana, ben = InSlack(slack), InTeams(teams)
        await ana.asks("use make what=lamp")
        await ana.sees("lamp")
        await ben.sees("lamp")
        await ana.hears("Reminder", "make")
        await ben.hears("Reminder", "make")
        await ana.sees_it_end("expired")
        await ben.sees_it_end("expired")
        assert "expired" in await ben.approves()
    assert both.shop.done == []
