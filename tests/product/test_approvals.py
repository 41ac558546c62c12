"""Approve, reject, edit, approve all: what a click does, and what it does not."""

from __future__ import annotations

import asyncio

from tests.fakes.openai_server import FakeOpenAI
from tests.support.tools import Workshop
from tests.support.visitor import Thread


def value(card: dict, name: str) -> str:
    return next(a["value"] for a in card["arguments"] if a["name"].lower() == name)


async def test_a_card_shows_everything_needed_to_decide(at_work: Thread) -> None:
    await at_work.send("use make what=lamp count=2")
    (card,) = await at_work.waiting()
    assert (card["server"], card["tool"], card["title"]) == ("workshop", "make", "Make it")
    assert card["requester"] == "Ana"
    assert card["may_decide"] == "Ana"
    assert (value(card, "what"), value(card, "count")) == ("lamp", "2")
    assert set(card["risk"]) == {"destroys", "reaches outside"}, "what deletes also changes"
    assert card["expires_at"] - card["asked_at"] == 24 * 3600


async def test_what_the_model_says_with_its_calls_stands_before_their_cards(at_work: Thread) -> None:
    await at_work.send("use make what=lamp; make what=chair")
    await at_work.waiting(2)
    await at_work.says("on it")
    kinds = [e["content"]["kind"] for e in at_work.entries.values() if e["kind"] == "post"]
    assert kinds == ["said", "approval", "approval"]


async def test_the_cards_of_calls_that_are_made_at_once_stand_in_the_order_of_the_calls(at_work: Thread) -> None:
    whats = ["lamp", "chair", "desk", "shelf", "door", "vase", "stool", "clock"]
    await at_work.send(f"use {'; '.join(f'make what={what}' for what in whats)}")
    cards = await at_work.waiting(len(whats))
    assert [value(card, "what") for card in cards] == whats
    assert sorted(cards, key=lambda card: card["asked_at"]) == cards  # as lists and overviews have them


async def test_what_was_said_before_a_card_stands_before_it_step_after_step(thread: Thread) -> None:
    await thread.send("create a meeting called Standup tomorrow at 9am")
    (card,) = await thread.waiting()
    await thread.approve(card["id"])
    await thread.says("created")
    await thread.send("delete the event Standup")
    await thread.waiting()
    await thread.until(lambda: len(thread.contents("said")) == 4, "both sayings of the second turn")
    kinds = [e["content"]["kind"] for e in thread.entries.values() if e["kind"] == "post"]
    assert kinds == ["said", "approval", "said", "said", "said", "approval"]


async def test_nothing_runs_before_it_is_approved_and_reads_run_at_once(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp; look what=lamp")
    (card,) = await at_work.waiting()
    await at_work.until(lambda: shop.looked == ["lamp"])
    assert shop.done == []
    await at_work.approve(card["id"])
    await at_work.says("made lamp", "lamp looks fine")
    assert shop.done == ["make lamp 1"]


async def test_an_approved_call_runs_while_its_sibling_still_waits(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp; make what=chair")
    first, second = await at_work.waiting(2)
    await at_work.approve(second["id"])
    await at_work.card(second["id"], "approved", result="made chair")
    assert shop.done == ["make chair 1"]
    assert [c["id"] for c in at_work.approvals("pending")] == [first["id"]]


async def test_a_settled_card_says_who_decided_and_what_came_of_it(at_work: Thread) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    shown = await at_work.card(card["id"], "approved", result="made lamp")
    assert shown["decided_by"] == ["Ana"]
    assert shown["decided_at"] >= shown["asked_at"]


async def test_a_rejected_call_never_runs_and_the_model_is_told_why(
    at_work: Thread, shop: Workshop, model: FakeOpenAI
) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.reject(card["id"], "too bright")
    await at_work.says("rejected by ana", "too bright")
    shown = await at_work.card(card["id"], "rejected")
    assert (shown["reason"], shown["decided_by"]) == ("too bright", ["Ana"])
    assert shop.done == []


async def test_approve_all_decides_exactly_what_was_shown(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=a; make what=b; make what=c")
    cards = await at_work.waiting(3)
    results = await at_work.approve(*(c["id"] for c in cards[:2]))
    assert {r["kind"] for r in results.values()} == {"settled"}
    for card in cards[:2]:
        await at_work.card(card["id"], "approved", result="made")
    assert sorted(shop.done) == ["make a 1", "make b 1"]


async def test_a_double_click_runs_the_call_once(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    same, again = await asyncio.gather(
        at_work.approve(card["id"], click="one"), at_work.approve(card["id"], click="one")
    )
    assert {same["kind"], again["kind"]} == {"settled"}
    other = await at_work.approve(card["id"], click="two")
    assert other["kind"] == "already_settled"
    await at_work.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_of_two_contradicting_clicks_one_wins_and_the_other_is_told(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    approve, reject = await asyncio.gather(at_work.approve(card["id"]), at_work.reject(card["id"], "no"))
    assert sorted([approve["kind"], reject["kind"]]) == ["already_settled", "settled"]
    await at_work.says("results")
    assert len(shop.done) == (approve["kind"] == "settled")


async def test_a_foreign_click_is_refused_to_the_clicker_alone(
    at_work: Thread, ben_at_work: Thread, shop: Workshop
) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    refused = await ben_at_work.approve(card["id"])
    assert refused["kind"] == "refused"
    assert refused["text"]
    assert at_work.approvals("pending")
    assert at_work.notices == []
    assert shop.done == []


async def test_a_click_on_something_that_does_not_exist_gets_an_answer(at_work: Thread) -> None:
    assert (await at_work.approve("no-such-approval"))["kind"] == "unknown"


async def test_an_edited_call_runs_with_the_edited_arguments(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    form = (await at_work.visitor.get(f"/api/approvals/{card['id']}/form")).body
    assert form["values"]["what"] == "lamp"
    await at_work.approve(card["id"], values={**form["values"], "what": "chair", "count": "3"})
    shown = await at_work.card(card["id"], "approved", result="made chair")
    assert value(shown, "what") == "chair"
    assert shop.done == ["make chair 3"]


async def test_a_form_with_mistakes_changes_nothing_and_says_where_they_are(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    result = await at_work.approve(card["id"], values={"what": "", "count": "many"})
    assert result["kind"] == "invalid"
    assert "count" in result["errors"]
    assert at_work.approvals("pending")
    assert shop.done == []


async def test_the_form_is_not_for_people_who_may_not_decide(at_work: Thread, ben_at_work: Thread) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    assert (await ben_at_work.visitor.get(f"/api/approvals/{card['id']}/form")).status == 403
