"""Approvals in Teams, end to end: who clicks what, when, and how often."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.teams.server import ANA, BEN, CHLOE, TENANT, FakeTeams
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.support.tools import Workshop
from tests.teams.product.conftest import as_, opened
from tests.teams.product.talk import Talk, buttons, words

SHORT = """
version: 1
rules:
  - name: quickly or not at all
    match: {tool: make}
    decide: ask
    expiresIn: 1s
"""
BY_BEN = f"""
version: 1
rules:
  - name: by Ben
    match: {{tool: make}}
    decide: ask
    approvers: ["teams:{TENANT}:{BEN}"]
    reasonRequired: true
"""
FOUR_EYES = """
version: 1
rules:
  - name: another pair of eyes
    match: {tool: make}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
"""


@pytest.fixture(params=["personal", "group", "channel"])
def anywhere(request: pytest.FixtureRequest, teams: FakeTeams, ana: TeamsPerson) -> Talk:
    """A conversation of Ana's, once in each kind of place."""
    where = {"personal": ana.chat, "group": teams.group, "channel": teams.channel}
    return Talk(teams, ana, where[request.param])


async def test_a_call_waits_for_a_click_and_its_card_says_what_came_of_it(anywhere: Talk, shop: Workshop) -> None:
    await anywhere.mentions("use make what=lamp count=2")
    card = await anywhere.card("Make it", "workshop › make", "lamp", "Ana")
    assert shop.done == []
    answer = await anywhere.clicks(card, "approve")
    assert "Approved" in words(answer.card)
    assert "approve" not in buttons(answer.card)
    await anywhere.says("Results: made lamp")
    settled = await anywhere.settled(card, "Approved", "made lamp")
    assert buttons(settled) == ["show_all"], "behind “Details”"
    assert shop.done == ["make lamp 2"]
    await anywhere.says("1 step")
    assert len(anywhere.of_the_bot()) == 4


async def test_a_rejection_carries_its_reason(anywhere: Talk, shop: Workshop) -> None:
    await anywhere.mentions("use make what=lamp")
    card = await anywhere.card()
    await anywhere.clicks(card, "reject", {"reason": "no lamps, please"})
    await anywhere.settled(card, "Rejected", "no lamps, please")
    await anywhere.says("Results:", "no lamps, please")
    assert shop.done == []


async def test_an_edit_runs_what_was_typed_into_the_dialog_and_shows_what_was_asked(
    anywhere: Talk, shop: Workshop
) -> None:
    await anywhere.mentions("use make what=lamp count=2")
    card = await anywhere.card()
    dialog = await anywhere.opens(card, "edit_dialog")
    wrong = await anywhere.submits(dialog, "edit", what="chair", count="2.5")
    assert "whole number" in words(wrong.card), "the dialog stays open with what was typed"
    assert shop.done == []
    await anywhere.submits(wrong, "edit", what="chair", count="3")
    await anywhere.settled(card, "Approved", "chair", "lamp")
    await anywhere.says("made chair")
    assert shop.done == ["make chair 3"]


async def test_everything_is_behind_show_all(talk: Talk) -> None:
    await talk.mentions(f"use make what={'x' * 20_000}")
    card = await talk.card("characters hidden")
    dialog = await talk.opens(card, "show_all")
    seen = words(dialog.card).count("x" * 50)
    pages = [dialog]
    while "page" in buttons(pages[-1].card) and len(pages) < 10:
        forward = [d for d in _pages(pages[-1].card) if int(d.partition(":")[0]) == len(pages)]
        if not forward:
            break
        pages.append(await talk.person.submits(pages[-1], name="page", subject=forward[0]))
    everything = "".join(words(page.card) for page in pages)
    assert everything.count("x") >= 20_000
    assert seen


def _pages(node: object) -> list[str]:
    match node:
        case {"countersign": "page", "id": str(subject)}:
            return [subject]
        case dict():
            return [s for value in node.values() for s in _pages(value)]
        case list():
            return [s for value in node for s in _pages(value)]
    return []


async def test_approve_all_decides_exactly_what_it_showed(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp; make what=chair; make what=desk")
    await talk.card(number=3)
    await talk.teams.until(lambda: any("approve_all_dialog" in buttons(c) for c in talk.waiting()))
    card = next(c for c in talk.waiting() if "approve_all_dialog" in buttons(c))
    dialog = await talk.opens(card, "approve_all_dialog")
    assert all(what in words(dialog.card) for what in ("lamp", "chair", "desk"))
    await talk.submits(dialog, "approve_all")
    await talk.says("made lamp", "made chair", "made desk")
    assert sorted(shop.done) == ["make chair 1", "make desk 1", "make lamp 1"]
    await talk.teams.until(lambda: talk.waiting() == [])


# --------------------------------------------------------------------------------------------------- in vain


async def test_somebody_else_is_refused_and_nobody_but_them_sees_it(
    talk: Talk, ben: TeamsPerson, shop: Workshop, teams: FakeTeams
) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    before = len(teams.messages(talk.conversation))
    answer = await as_(ben, talk).clicks(card, "approve")
    assert "can’t approve this" in answer.message
    assert len(teams.messages(talk.conversation)) == before
    assert shop.done == []
    await talk.clicks(card, "approve")
    await talk.says("made lamp")


async def test_only_those_who_may_decide_are_shown_the_buttons(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    home.policy(BY_BEN)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("use make what=lamp")
        hers = await talk.card("Ben")
        assert "approve" not in buttons(hers)
        assert "<at>Ben Baker</at>" in words(hers)
        theirs = as_(TeamsPerson(teams, BEN, transport), talk)
        his = await theirs.card("Ben")
        assert "approve" in buttons(his)
        assert "can’t approve this" in (await talk.clicks(his, "approve")).message
        missing = await theirs.clicks(his, "reject", {"reason": "  "})
        assert "reason" in (missing.message or words(missing.card)).lower()
        assert shop.done == []
        await theirs.clicks(his, "reject", {"reason": "we have enough"})
        await talk.settled(his, "Rejected", "Ben", "we have enough")
    assert shop.done == []


async def test_under_four_eyes_whoever_asked_has_no_buttons_and_may_not(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    home.policy(FOUR_EYES)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("use make what=lamp")
        hers = await talk.card()
        base = next(m for m in teams.posts(talk.conversation) if "approve" in buttons(m))
        assert "approve" not in buttons(hers)
        assert "someone else" in (await talk.clicks(base, "approve")).message
        theirs = as_(TeamsPerson(teams, CHLOE, transport), talk)
        await theirs.clicks(await theirs.card(), "approve")
        await talk.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_two_clicks_at_once_run_it_once(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    answers = await asyncio.gather(*(talk.clicks(card, "approve") for _ in range(4)))
    await talk.says("made lamp")
    assert sum("already" in answer.message.lower() for answer in answers) == 3
    assert shop.done == ["make lamp 1"]


async def test_the_same_click_delivered_twice_counts_once(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    clicked = await talk.clicks(await talk.card(), "approve")
    again = await talk.person.again(clicked)
    assert again.status == 200
    assert "already" not in again.message.lower()
    await talk.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_a_click_on_a_card_that_is_settled_is_told_so(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await talk.clicks(card, "approve")
    await talk.settled(card, "Approved", "made lamp")
    late = await talk.clicks(card, "approve")
    assert "already approved" in (late.message or words(late.card)).lower()
    assert shop.done == ["make lamp 1"]


async def test_a_click_after_the_deadline_is_told_so(home: ProductFolder, teams: FakeTeams, shop: Workshop) -> None:
    home.policy(SHORT)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        await talk.settled(card, "Expired")
        late = await talk.clicks(card, "approve")
        assert "expired" in (late.message or words(late.card)).lower()
        await talk.says("Results:", "expired")
    assert shop.done == []


async def test_a_client_without_universal_actions_decides_by_a_message(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    await talk.clicks(await talk.card(), "approve", fallback=True)
    await talk.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_whoever_may_not_is_told_so_alone_also_without_universal_actions(
    talk: Talk, ben: TeamsPerson, shop: Workshop
) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    theirs = as_(ben, talk)
    await theirs.clicks(card, "approve", fallback=True)
    await theirs.told("can’t approve this")
    assert not any("can’t approve this" in words(m) for m in talk.of_the_bot())
    assert shop.done == []
