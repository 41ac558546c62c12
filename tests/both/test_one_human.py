"""Two people, two platforms: one human has one vote, groups are asked for, and what cannot be found out refuses."""

from __future__ import annotations

import pytest

from tests.both.conftest import Both
from tests.fakes.openai_server import fake_openai
from tests.fakes.teams.server import ANA, BEN, TENANT
from tests.slack.product.talk import Talk as SlackTalk
from tests.slack.product.talk import words as slack_words
from tests.support.brain import attentive
from tests.support.slack_people import SlackPerson
from tests.support.teams_people import TeamsPerson
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import words as teams_words

HERS = "ana.alvarez@example.com"
"""Ana's address in Teams."""
DBAS = "e1000000-0000-4000-8000-0000000000e1"


def policy(both: Both, *lines: str) -> None:
    """Calls of `make` are asked for, and routed to the group in Teams."""
    rule = "\n".join(f"    {line}" for line in lines)
    both.home.policy(f"""
version: 1
rules:
  - name: decided by colleagues
    match: {{tool: make}}
    decide: ask
    routeTo: ["teams:{TENANT}:{both.teams.group}"]
{rule}
""")


def in_slack(both: Both, user: str, email: str) -> None:
    """Somebody in Slack has that address."""
    both.slack.world.users["T1", user]["profile"]["email"] = email


def another(talk: TeamsTalk, both: Both, user: str) -> TeamsTalk:
    """The same conversation, as somebody else sees it."""
    return TeamsTalk(both.teams, TeamsPerson(both.teams, user, talk.person.transport), both.teams.group)


async def test_ones_own_account_on_the_other_platform_is_no_second_pair_of_eyes(both: Both) -> None:
    policy(both, "approvers: [any]", "selfApproval: fourEyes")
    in_slack(both, "U1", HERS)
    in_slack(both, "U2", "ben@example.com")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card("lamp"), await teams.card("lamp")
        hers = another(teams, both, ANA)
        refused = await hers.clicks(there, "approve")
        assert "someone else" in refused.message.lower()
        assert both.shop.done == []
        approved = await teams.clicks(there, "approve")
        assert "Approved" in teams_words(approved.card)
        await slack.settled(here, "Approved", "Ben")


async def test_a_quorum_counts_a_human_once_on_both_platforms(both: Both) -> None:
    policy(both, "approvers: [any]", "quorum: 2")
    in_slack(both, "U1", HERS)
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card("lamp"), await teams.card("lamp")
        await slack.clicks(here, "approve")
        await slack.says("1 of 2 approved")
        await another(teams, both, ANA).clicks(there, "approve")
        assert both.shop.done == []
        assert "1 of 2 approved" in slack_words(await slack.card("lamp"))
        await teams.clicks(there, "approve")
        await slack.settled(here, "Approved", "Ben")
        await slack.says("Results: made lamp")
    assert both.shop.done == ["make lamp 1"]


async def test_one_rejection_on_either_platform_is_a_veto(both: Both) -> None:
    policy(both, "approvers: [any]", "quorum: 2")
    in_slack(both, "U1", HERS)
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card("lamp"), await teams.card("lamp")
        await slack.clicks(here, "approve")
        await teams.clicks(there, "reject", {"reason": "not today"})
        await slack.settled(here, "Rejected", "Ben", "not today")
    assert both.shop.done == []


@pytest.mark.parametrize("permitted", [True, False], ids=["found out", "not found out"])
async def test_an_entra_group_decides_where_it_can_be_looked_up(both: Both, *, permitted: bool) -> None:
    policy(both, f'approvers: ["entra-group:{TENANT}:{DBAS}"]')
    both.teams.world.entra_groups[DBAS] = {BEN}
    if not permitted:
        both.teams.world.graph_permissions.clear()
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        there = await teams.card("lamp")
        stranger = await another(teams, both, ANA).clicks(there, "approve")
        assert stranger.message
        answer = await teams.clicks(there, "approve")
        if permitted:
            await slack.says("Results: made lamp")
        else:
            assert "couldn’t check" in answer.message.lower()
    assert both.shop.done == (["make lamp 1"] if permitted else [])


async def test_a_slack_group_decides_and_lets_nobody_else_in(both: Both) -> None:
    policy(both, 'approvers: ["slack-group:T1:S1"]')
    both.slack.world.user_groups["T1", "S1"] = {"U2"}
    async with both.running() as (slack, _):
        await slack.mentions("use make what=lamp")
        here = await slack.card("lamp")
        await slack.clicks(here, "approve")
        await slack.told()
        assert both.shop.done == []
        ben = SlackPerson(both.slack, "T1", "U2", slack.person.transport)
        await ben.clicks(here, "approve")
        await slack.says("Results: made lamp")


async def test_withdrawing_settles_it_on_both_platforms(both: Both) -> None:
    policy(both, "approvers: [any]")
    async with both.running() as (slack, teams):
        await slack.mentions("use make what=lamp")
        here, there = await slack.card("lamp"), await teams.card("lamp")
        await slack.submits(await slack.opens(here, "ask_to_withdraw"))
        await slack.settled(here, "Withdrawn")
        await teams.settled(there, "Withdrawn")
    assert both.shop.done == []


async def test_a_colleague_who_is_asked_gets_the_card_directly(both: Both) -> None:
    policy(both, "approvers: [any]")
    async with both.running() as (slack, _):
        await slack.mentions("use make what=lamp")
        here = await slack.card("lamp")
        modal = await slack.opens(here, "hand_over")
        await slack.submits(modal, colleague="U2")
        await both.slack.until(lambda: [m for m in both.slack.messages("D2") if "lamp" in slack_words(m)])
        ben = SlackTalk(both.slack, SlackPerson(both.slack, "T1", "U2", slack.person.transport), "D2")
        card = next(m for m in both.slack.messages("D2") if "lamp" in slack_words(m))
        await ben.person.clicks(card, "approve")
        await slack.settled(here, "Approved", "Ben")


async def test_what_was_always_allowed_is_not_asked_again_until_it_is_revoked(both: Both) -> None:
    policy(both, "approvers: [requester]", "alwaysAllow: true")
    async with both.running() as (slack, _):
        await slack.mentions("use make what=lamp")
        modal = await slack.opens(await slack.card("lamp"), "always")
        await slack.submits(modal, duration="1 h")
        await both.slack.until(lambda: len(both.shop.done) == 1)
        await slack.mentions("use make what=lamp")
        await both.slack.until(lambda: len(both.shop.done) == 2)
        await slack.mentions("use make what=chair")
        await slack.card("chair")
        await slack.person.opens_home()
        home = await both.slack.until(lambda: both.slack.home("U1"))
        await slack.person.clicks(home, "revoke")
        await both.slack.until(lambda: "You always allow" not in slack_words(both.slack.home("U1")))
        await slack.mentions("use make what=lamp")
        await slack.card("lamp")
    assert len(both.shop.done) == 2


async def test_a_rule_about_somebody_is_about_their_account_on_the_other_platform_too(both: Both) -> None:
    """Rule 9: who is denied something in Teams does not get it by asking in Slack."""
    both.home.policy(f"""
version: 1
rules:
  - name: Ana makes nothing
    match: {{tool: make, requester: "teams:{TENANT}:{ANA}"}}
    decide: deny
  - name: others do
    match: {{tool: make}}
    decide: allow
""")
    in_slack(both, "U1", HERS)
    in_slack(both, "U2", "ben@example.com")
    async with both.running() as (slack, _):
        await slack.mentions("use make what=lamp")
        await slack.says("Ana makes nothing")
        assert both.shop.done == []


async def test_what_is_remembered_of_a_human_is_theirs_on_both_platforms_and_nobody_elses(both: Both) -> None:
    in_slack(both, "U1", HERS)
    in_slack(both, "U2", "ben@example.com")
    async with fake_openai(attentive) as model:
        both.home.variables |= {"MEMORY": "true", "OPENAI_BASE_URL": model.base_url}
        async with both.running() as (slack, teams):
            direct = SlackTalk(both.slack, slack.person, slack.person.dm)
            await direct.mentions("I prefer tea")
            await direct.says("I’ll remember: “I prefer tea”.")
            ana = another(teams, both, ANA)
            chat = TeamsTalk(both.teams, ana.person, ana.person.chat)
            await chat.mentions("hello from Ana")
            await chat.says("You said: hello from Ana")
            await teams.mentions("hello from Ben")
            await teams.says("You said: hello from Ben")
            told = {str(r["messages"][-1]["content"]): str(r["messages"]) for r in model.requests}
            assert "I prefer tea" in told["hello from Ana"]
            assert "I prefer tea" not in told["hello from Ben"]
            await chat.mentions("memory")
            listed = await chat.says("I prefer tea", "Forget")
            await chat.clicks(listed, "forget")
            await slack.person.commands("memory", slack.person.dm)
            assert "I prefer tea" not in slack_words(both.slack.ephemerals("U1")[-1])
