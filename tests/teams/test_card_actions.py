"""Clicks on cards: judged at once, answered to the clicker, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import not_known, went_wrong
from adapters.teams.ids import person_id
from adapters.teams.inbound.answers import not_counted, not_found_out
from adapters.teams.inbound.clicks import needs_a_window, sent
from adapters.teams.inbound.invokes import still_at_it
from adapters.teams.receiver import Patience
from bot.domain import Choice
from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, TENANT
from tests.support.teams_transports import Json
from tests.support.views import an_outcome
from tests.teams.serving import ANA_ID, Served, a_card, a_question, a_sign_in, an_approval, serving, text_in


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


def only(product: Served, *people: str, approval_id: str = "call-1.1") -> None:
    """Let only these people decide."""
    product.services.may_decide[approval_id] = {person_id(TENANT, person) for person in people}


def names(card: Json) -> set[str]:
    """The names of the actions on a card, those within others included."""
    found: set[str] = set()

    def collect(part: object) -> None:
        if isinstance(part, dict):
            if str(part.get("type", "")).startswith("Action."):
                found.add(str(part.get("data", {}).get("countersign", "")))
            for value in part.values():
                collect(value)
        elif isinstance(part, list):
            for value in part:
                collect(value)

    collect([card.get("body"), card.get("actions")])
    return found - {""}


# ------------------------------------------------------------------------------------------------ deciding


async def test_an_approval_is_decided_with_one_click(product: Served) -> None:
    card = await a_card(product)
    answer = await product.person(BEN).clicks(card, "approve")
    (decision,) = product.services.decisions
    assert decision.choices == (Choice("call-1.1", "approve"),)
    assert (decision.person.person_id, decision.person.name) == (person_id(TENANT, BEN), "Ben Baker")
    assert decision.person.time_zone == "Europe/Berlin"
    assert "approve" not in names(answer.card)
    assert "Ben Baker" in str(answer.card)


async def test_a_rejection_takes_its_reason_along(product: Served) -> None:
    card = await a_card(product)
    answer = await product.person(BEN).clicks(card, "reject", {"reason": "  not now "})
    assert product.services.decisions[0].choices == (Choice("call-1.1", "reject", "not now"),)
    assert "not now" in str(answer.card)


async def test_a_reason_that_is_needed_is_asked_for_without_losing_the_card(product: Served) -> None:
    product.services.mistakes = {"reason": "Please say why."}
    answer = await product.person(BEN).clicks(await a_card(product), "reject")
    assert answer.message == "Please say why."


async def test_a_refusal_is_seen_by_the_clicker_only(product: Served) -> None:
    card = await a_card(product, may_decide="Ana Alvarez")
    only(product, ANA)
    answer = await product.person(BEN).clicks(card, "approve")
    assert answer.message == "You may not decide this: Ana Alvarez may."
    assert product.services.approvals["call-1.1"].status == "pending"
    assert len(product.teams.posts(card["conversation"])) == 1


async def test_who_comes_second_is_told_who_was_first(product: Served) -> None:
    card = await a_card(product)
    await product.person(BEN).clicks(card, "approve")
    answer = await product.person(CHLOE).clicks(card, "reject")
    assert answer.message == "Ben Baker was earlier."


async def test_a_double_click_is_told_so(product: Served) -> None:
    card = await a_card(product)
    await product.person(BEN).clicks(card, "approve")
    assert (await product.person(BEN).clicks(card, "approve")).message == "Ben Baker was earlier."
    assert len({decision.key for decision in product.services.decisions}) == 2


async def test_a_click_that_teams_sends_twice_is_one_click(product: Served) -> None:
    card = await a_card(product)
    first = await product.person(BEN).clicks(card, "approve")
    second = await product.person(BEN).again(first)
    assert (first.status, second.status) == (200, 200)
    assert len({decision.key for decision in product.services.decisions}) == 1
    assert second.card == first.card


async def test_a_vote_that_does_not_settle_shows_on_the_card(product: Served) -> None:
    product.services.quorum = 2
    answer = await product.person(BEN).clicks(await a_card(product, quorum=2), "approve")
    assert "approve" in names(answer.card)


async def test_what_is_not_there_any_more_is_said(product: Served) -> None:
    card = await a_card(product)
    product.services.approvals.clear()
    assert (await product.person().clicks(card, "approve")).message == "There is no such approval."


async def test_an_approval_of_another_tenant_is_not_shown(product: Served) -> None:
    card = await a_card(product)
    product.services.within = "teams:another:"
    answer = await product.person().invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert answer.message == "There is no such approval."


def execute(name: str, subject: str = "call-1.1", **more: object) -> Json:
    """What Teams sends for a button that we may not have drawn."""
    data = {"countersign": name, "id": subject, **more}
    return {"action": {"type": "Action.Execute", "verb": name, "data": data}, "trigger": "manual"}


async def test_a_button_of_somebody_elses_is_not_known(product: Served) -> None:
    for value in (execute("launch_rocket"), execute("edit_dialog"), {"action": {"verb": "approve", "data": {}}}):
        assert (await product.person().invokes("adaptiveCard/action", value)).message == not_known().text
    assert product.services.decisions == []


async def test_guests_may_not_click(product: Served) -> None:
    answer = await product.person(GUS).clicks(await a_card(product), "approve")
    assert "Guests can’t use me" in answer.message
    assert product.services.decisions == []


@pytest.mark.waits
async def test_whoever_cannot_be_looked_up_is_not_let_in(product: Served) -> None:
    card = await a_card(product)
    product.teams.fail("member", status=500, times=9)
    answer = await product.person(CHLOE).clicks(card, "approve")
    assert answer.message == not_found_out()
    assert product.services.decisions == []


async def test_records_that_fail_are_said_to_the_clicker(product: Served) -> None:
    card = await a_card(product)
    product.services.broken = RuntimeError("the disk is full")
    answer = await product.person().clicks(card, "approve")
    assert (answer.status, answer.message) == (200, went_wrong())


@pytest.mark.waits
async def test_what_takes_too_long_goes_on_without_the_clicker() -> None:
    async with serving(patience=Patience(answer=0.3)) as product:
        card = await a_card(product)
        await product.person(BEN).says(product.teams.group, "help")  # so that it is known who he is
        await product.hears("approvals", BEN)
        product.services.hold = asyncio.Event()
        assert (await product.person(BEN).clicks(card, "approve")).message == still_at_it()
        dialog = await product.person(BEN).invokes(
            "task/submit", {"data": {"countersign": "approve", "id": "call-1.1"}}
        )
        assert still_at_it() in str(dialog.card)
        product.services.hold.set()
        await product.teams.until(lambda: product.services.approvals["call-1.1"].status == "approved")


# ------------------------------------------------------------------------------------------------ refreshing


async def test_those_who_may_decide_see_buttons_when_it_refreshes(product: Served) -> None:
    approver = person_id(TENANT, BEN)
    card = await a_card(product, approvers=(approver,), may_decide="Ben Baker")
    only(product, BEN)
    assert "approve" not in names(card["attachments"][0]["content"])
    assert "approve" in names((await product.person(BEN).looks_at(card)).card)
    assert product.services.decisions == []


async def test_those_who_may_not_see_none(product: Served) -> None:
    card = await a_card(product)
    only(product, BEN)
    answer = await product.person(CHLOE).invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert "approve" not in names(answer.card)


async def test_a_settled_card_refreshes_without_buttons(product: Served) -> None:
    card = await a_card(product)
    product.services.approvals["call-1.1"] = an_approval(status="expired")
    answer = await product.person().invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert "approve" not in names(answer.card)


# ------------------------------------------------------------------------------------------------ other cards


async def test_a_question_is_answered_on_its_card(product: Served) -> None:
    card = await product.card(a_question(), await product.thread())
    answer = await product.person(ANA).clicks(card, "answer", {"name": "Retro"})
    (given,) = product.services.answers
    assert (given.clarification_id, dict(given.values)) == ("q1", {"name": "Retro"})
    assert "Retro" in str(answer.card)


async def test_a_mistake_in_an_answer_is_said_and_the_inputs_stay(product: Served) -> None:
    product.services.mistakes = {"name": "There is one already."}
    card = await product.card(a_question(), await product.thread())
    answer = await product.person(ANA).clicks(card, "answer", {"name": "Retro"})
    assert answer.message == "There is one already."


async def test_a_question_is_for_one_person(product: Served) -> None:
    card = await product.card(a_question(), await product.thread())
    answer = await product.person(BEN).clicks(card, "answer", {"name": "Retro"})
    assert answer.message == "This question is for somebody else."
    assert product.services.answers == []


async def test_what_came_of_a_broken_call_is_recorded(product: Served) -> None:
    thread = await product.thread()
    product.services.keep(an_outcome(requester_id=ANA_ID))
    product.services.references["o1"] = []  # it is shown nowhere here
    for choice in ("it_was_done", "try_again", "skip"):
        answer = await product.person().invokes("adaptiveCard/action", execute(choice, "o1"), thread)
        assert answer.message == "Noted."
    assert [choice.choice for choice in product.services.choices] == ["it_was_done", "try_again", "skip"]


@pytest.mark.parametrize(("name", "done"), [("signed_in", True), ("not_now", False)])
async def test_a_sign_in_is_reported(product: Served, name: str, done: bool) -> None:  # noqa: FBT001
    await product.card(a_sign_in(), product.teams.personal(ANA))
    answer = await product.person().invokes("adaptiveCard/action", execute(name, "s1"))
    assert answer.status == 200
    assert [(reply.sign_in_id, reply.done) for reply in product.services.replies] == [("s1", done)]


async def test_a_fresh_link_goes_to_its_owner_alone(product: Served) -> None:
    card = await product.card(a_sign_in(), await product.thread())
    before = len(product.told(ANA))
    answer = await product.person(ANA).clicks(card, "get_link")
    assert answer.message == sent()
    await product.teams.until(lambda: len(product.told(ANA)) > before)
    for call in product.teams.calls:
        if "very-secret" in str(call.body):
            assert "isTargetedActivity" in str(call.query) or product.teams.personal(ANA) in call.path


async def test_nobody_else_gets_the_link(product: Served) -> None:
    card = await product.card(a_sign_in(), await product.thread())
    answer = await product.person(BEN).clicks(card, "get_link")
    assert answer.message == "This link is for Ana Alvarez only."
    assert "very-secret" not in "\n".join(product.told(BEN))


async def test_a_finished_sign_in_may_come_back_by_itself(product: Served) -> None:
    product.services.keep(a_sign_in())
    assert (await product.person(ANA).verifies("s1")).status == 200
    assert [(reply.sign_in_id, reply.done) for reply in product.services.replies] == [("s1", True)]
    assert product.services.sign_ins["s1"].status == "done"


async def test_the_state_of_anybody_elses_sign_in_changes_nothing(product: Served) -> None:
    product.services.keep(a_sign_in())
    assert (await product.person(BEN).verifies("s1")).status == 200
    assert (await product.person(ANA).verifies("123456")).status == 200
    assert product.services.sign_ins["s1"].status == "open"


# ------------------------------------------------------------------------------------------------ the fallback


async def test_clients_without_execute_send_a_message(product: Served) -> None:
    card = await a_card(product)
    answer = await product.person(BEN).clicks(card, "approve", fallback=True)
    assert answer.status == 200
    assert product.services.approvals["call-1.1"].status == "approved"
    assert [m for m in product.services.messages if m.author.name == "Ben Baker"] == []


async def test_a_refusal_of_it_is_told_to_the_clicker_alone(product: Served) -> None:
    card = await a_card(product, may_decide="Ana Alvarez")
    only(product, ANA)
    await product.person(BEN).clicks(card, "approve", fallback=True)
    await product.hears("You may not decide this", BEN)


async def test_a_counted_vote_is_told_too(product: Served) -> None:
    product.services.quorum = 2
    await product.person(BEN).clicks(await a_card(product, quorum=2), "approve", fallback=True)
    await product.hears("Recorded: 1 of 2 approvals", BEN)


async def test_where_nobody_can_be_reached_alone_the_conversation_learns_only_that_it_was_not_counted(
    product: Served,
) -> None:
    card = await a_card(product, may_decide="Ana Alvarez")
    only(product, ANA)
    product.teams.targeted = False
    product.teams.world.users[BEN].has_app = False
    await product.person(BEN).clicks(card, "approve", fallback=True)
    await product.teams.until(lambda: len(product.teams.posts(card["conversation"])) == 2)
    said = text_in(product.teams.posts(card["conversation"])[-1])
    assert not_counted() in said
    assert "Ana Alvarez may" not in said


async def test_a_window_that_was_not_opened_is_explained(product: Served) -> None:
    value = {"countersign": "edit_dialog", "id": "call-1.1"}
    await product.person().sends("message", value=value)
    await product.hears(needs_a_window()[:40])


async def test_records_that_fail_have_it_sent_again(product: Served) -> None:
    card = await a_card(product)
    product.services.broken = RuntimeError("the disk is full")
    assert (await product.person().clicks(card, "approve", fallback=True)).status == 503


# ------------------------------------------------------------------------------------------------ duplicates


async def test_a_card_that_was_posted_twice_is_taken_away_when_it_is_clicked() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as product:
        thread = await product.thread()
        lost, kept = await a_card(product, thread), await a_card(product, thread)
        answer = await product.person(BEN).clicks(lost, "approve")
        assert "Ben Baker" in str(answer.card)
        await product.teams.until(lambda: product.message(thread, lost["id"])["deleted"])
        assert not product.message(thread, kept["id"])["deleted"]


async def test_a_recorded_card_stays() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as product:
        card = await a_card(product)
        await product.person(BEN).clicks(card, "approve")
        await product.receiver.stop()
        assert not product.message(card["conversation"], card["id"])["deleted"]


async def test_a_card_whose_posting_is_not_recorded_yet_stays() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as product:
        card = await a_card(product)
        elsewhere = {"conversation": product.teams.group, "parts": ["1"]}
        (place, _), *_ = product.services.references["call-1.1"]
        product.services.references["call-1.1"] = [(place, None), (product.place(product.teams.group), elsewhere)]
        await product.person(BEN).clicks(card, "approve")
        await product.receiver.stop()
        assert not product.message(card["conversation"], card["id"])["deleted"]


async def test_a_card_that_is_recorded_meanwhile_stays() -> None:
    async with serving(patience=Patience(duplicate=0.5)) as product:
        card = await a_card(product)
        (place, reference), *_ = product.services.references["call-1.1"]
        product.services.references["call-1.1"] = [(place, {**(reference or {}), "parts": ["1"]})]
        await product.person(BEN).clicks(card, "approve")
        product.services.references["call-1.1"] = [(place, reference)]
        await product.receiver.stop()
        assert not product.message(card["conversation"], card["id"])["deleted"]
