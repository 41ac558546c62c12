"""Clicks: judged at once, each with an answer, and nobody but the clicker sees a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.slack.inbound.payloads import read_click
from bot.domain import Choice, OutcomeView, Said
from tests.slack.serving import a_card, serving

LINK = "https://sign.in/acme?state=very-secret"


# ------------------------------------------------------------------------------------------------ deciding


async def test_approve_is_recorded_before_slack_is_answered() -> None:
    async with serving() as product:
        card = await a_card(product)
        clicked = await product.person().clicks(card, "approve")
        assert clicked.status == 200
        (decision,) = product.services.decisions
        assert decision.choices == (Choice("call-1.1", "approve"),)
        assert (decision.person.person_id, decision.person.name) == ("slack:T1:U1", "Ana")
        assert decision.person.time_zone == "Europe/Berlin"
        action_ts = clicked.payload["actions"][0]["action_ts"]
        assert decision.key == f"slack:T1:{card['ts']}:{action_ts}:U1"


async def test_the_card_shows_what_a_click_did_so_nothing_more_is_said() -> None:
    async with serving() as product:
        await product.person().clicks(await a_card(product), "approve")
        await product.close()
        assert product.told() == []


async def test_the_same_click_delivered_twice_has_the_same_key() -> None:
    async with serving() as product:
        clicked = await product.person().clicks(await a_card(product), "approve")
        await product.person().clicks_again(clicked)
        first, second = product.services.decisions
        assert first.key == second.key


async def test_a_double_click_is_told_so() -> None:
    async with serving() as product:
        card = await a_card(product)
        await product.person().clicks(card, "approve")
        assert (await product.person().clicks(card, "approve")).status == 200
        await product.hears("Ana was earlier")


async def test_somebody_else_is_refused_and_nobody_sees_it() -> None:
    async with serving() as product:
        product.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        card = await a_card(product)
        assert (await product.person("U2").clicks(card, "approve")).status == 200
        await product.hears("You may not decide this", "U2")
        assert product.told("U1") == []
        assert [m["ts"] for m in product.slack.messages("C1") if m.get("bot_id")] == [card["ts"]]
        assert product.slack.ephemerals("U2")[0]["thread_ts"] == card["thread_ts"]


async def test_a_vote_that_is_counted_is_told_so() -> None:
    async with serving() as product:
        product.services.quorum = 2
        await product.person().clicks(await a_card(product), "approve")
        await product.hears("Recorded: 1 of 2")


async def test_a_click_on_something_that_is_gone_is_told_so() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.approvals.clear()
        await product.person().clicks(card, "approve")
        await product.hears("no such approval")


@pytest.mark.waits
async def test_who_cannot_be_looked_up_decides_nothing() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.slack.fail("users.info", status=500, times=100)
        clicked = await product.person().clicks(card, "approve")
        assert clicked.status == 200
        await product.hears("confirm who you are")
        assert product.services.decisions == []


@pytest.mark.waits
async def test_a_slow_slack_does_not_hold_up_the_answer_to_a_click() -> None:
    async with serving() as product:
        card = await a_card(product)
        held = product.slack.hold("users.info")
        clicked = await product.person().clicks(card, "approve")
        assert clicked.status == 200
        await product.hears("confirm who you are")
        held.release()
        assert product.services.decisions == []


@pytest.mark.parametrize(
    ("facts", "words"), [({"is_restricted": True}, "Guests"), ({"team_id": "T9", "is_stranger": True}, "Only members")]
)
async def test_guests_and_strangers_decide_nothing(facts: dict[str, Any], words: str) -> None:
    async with serving() as product:
        product.slack.add_user("U7", name="Gus", **facts)
        product.slack.world.channels["C1"].members.add("U7")
        await product.person("U7").clicks(await a_card(product), "approve")
        await product.hears(words, "U7")
        assert product.services.decisions == []


async def test_when_a_decision_cannot_be_kept_slack_shows_that_it_did_not_work() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.broken = RuntimeError("the disk is full")
        assert (await product.person().clicks(card, "approve")).status == 503


async def test_a_refusal_finds_its_person_when_slacks_address_for_answers_fails() -> None:
    async with serving() as product:
        product.services.may_decide["call-1.1"] = set()
        card = await a_card(product)
        clicked = await product.person("U2").clicks(card, "approve")
        await product.hears("You may not decide this", "U2")
        product.slack.world.response_urls.clear()
        payload = {**clicked.payload, "response_url": clicked.payload["response_url"] + "x"}
        await product.transport.interaction(payload)
        await product.slack.until(lambda: product.slack.calls_of("chat.postEphemeral"))


@pytest.mark.parametrize("action", ["it_was_done", "try_again", "skip"])
async def test_what_came_of_a_call_whose_outcome_was_unknown_is_recorded(action: str) -> None:
    async with serving() as product:
        view = OutcomeView("o1", "open", "calendar", "create_event", "Create event", {"a": 1}, "Ana", "slack:T1:U1")
        assert (await product.person().clicks(await product.card(view), action)).status == 200
        (choice,) = product.services.choices
        assert (choice.outcome_id, choice.choice) == ("o1", action)


@pytest.mark.parametrize("verdict", ["good", "bad"])
async def test_an_opinion_is_recorded_and_thanked_for(verdict: str) -> None:
    async with serving() as product:
        card = await product.card(Said("Here you are."), post_id="said:m1")
        await product.person().clicks(card, "feedback", f"{verdict}:said:m1")
        (opinion,) = product.services.opinions
        assert (opinion.post_id, opinion.verdict) == ("said:m1", verdict)
        await product.hears("Thank you for telling")


# ------------------------------------------------------------------------------------------------ the rest


@pytest.mark.parametrize(("team", "clicked_in"), [(None, "T1"), ({"id": "T2"}, "T2")])
def test_a_card_of_an_organisation_belongs_to_the_workspace_that_it_was_posted_in(team: Any, clicked_in: str) -> None:
    """Slack names no workspace where the whole organisation has installed us; Bolt then takes the clicker's."""
    message = {"ts": "1700000000.000100", "team": "T1"}
    user = {"id": "W1", "team_id": "T2"}
    action = {"action_id": "approve", "value": "a1", "action_ts": "1.1"}
    click = read_click({"team": team, "user": user, "message": message, "actions": [action]}, "T2")
    assert click is not None
    assert (click.visitor.team, click.visitor.home_team) == (clicked_in, "T2")


async def test_a_button_nobody_knows_is_answered() -> None:
    async with serving() as product:
        card = await a_card(product)
        clicked = await product.person().clicks(card, "approve")
        action = {**clicked.payload["actions"][0], "action_id": "launch_rocket"}
        answer = await product.transport.interaction({**clicked.payload, "actions": [action]})
        assert answer.status == 200
        assert len(product.services.decisions) == 1


async def test_what_is_being_told_is_told_before_the_end() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.quorum = 2
        await product.person().clicks(card, "approve")
        await product.close()
        assert any("Recorded" in text for text in product.told())
