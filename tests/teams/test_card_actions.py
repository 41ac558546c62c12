"""Clicks on cards: judged at once, answered to the clicker, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import NOT_KNOWN, WENT_WRONG
from adapters.teams.ids import person_id
from adapters.teams.inbound.answers import NOT_COUNTED, NOT_FOUND_OUT
from adapters.teams.inbound.clicks import NEEDS_A_WINDOW, SENT
from adapters.teams.inbound.invokes import STILL_AT_IT
from adapters.teams.receiver import Patience
from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, TENANT
from tests.support.teams_doors import Json
from tests.teams.serving import Served, a_card, serving, text_in
from tests.teams.stand_in_services import a_question, a_sign_in, an_approval


@pytest.fixture
async def house() -> AsyncIterator[Served]:
    async with serving() as house:
        yield house


def only(house: Served, *people: str, approval_id: str = "call-1.1") -> None:
    """Let only these people decide."""
    house.services.may_decide[approval_id] = {person_id(TENANT, person) for person in people}


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


async def test_an_approval_is_decided_with_one_click(house: Served) -> None:
    card = await a_card(house)
    answer = await house.person(BEN).clicks(card, "approve")
    (decision,) = house.services.decisions
    assert (decision.verb, decision.approval_ids) == ("approve", ("call-1.1",))
    assert (decision.person.person_id, decision.person.name) == (person_id(TENANT, BEN), "Ben Baker")
    assert decision.person.time_zone == "Europe/Berlin"
    assert "approve" not in names(answer.card)
    assert "Ben Baker" in str(answer.card)


async def test_a_rejection_takes_its_reason_along(house: Served) -> None:
    card = await a_card(house)
    answer = await house.person(BEN).clicks(card, "reject", {"reason": "  not now "})
    assert (house.services.decisions[0].verb, house.services.decisions[0].reason) == ("reject", "not now")
    assert "not now" in str(answer.card)


async def test_a_reason_that_is_needed_is_asked_for_without_losing_the_card(house: Served) -> None:
    house.services.mistakes = {"reason": "Please say why."}
    answer = await house.person(BEN).clicks(await a_card(house), "reject")
    assert answer.message == "Please say why."


async def test_a_refusal_is_seen_by_the_clicker_only(house: Served) -> None:
    card = await a_card(house, may_decide="Ana Alvarez")
    only(house, ANA)
    answer = await house.person(BEN).clicks(card, "approve")
    assert answer.message == "You may not decide this: Ana Alvarez may."
    assert house.services.approvals["call-1.1"].status == "pending"
    assert len(house.teams.posts(card["conversation"])) == 1


async def test_who_comes_second_is_told_who_was_first(house: Served) -> None:
    card = await a_card(house)
    await house.person(BEN).clicks(card, "approve")
    answer = await house.person(CHLOE).clicks(card, "reject")
    assert answer.message == "Ben Baker was earlier."


async def test_a_double_click_is_told_so(house: Served) -> None:
    card = await a_card(house)
    await house.person(BEN).clicks(card, "approve")
    assert (await house.person(BEN).clicks(card, "approve")).message == "Ben Baker was earlier."
    assert len({decision.key for decision in house.services.decisions}) == 2


async def test_a_click_that_teams_sends_twice_is_one_click(house: Served) -> None:
    card = await a_card(house)
    first = await house.person(BEN).clicks(card, "approve")
    second = await house.person(BEN).again(first)
    assert (first.status, second.status) == (200, 200)
    assert len({decision.key for decision in house.services.decisions}) == 1
    assert second.card == first.card


async def test_a_vote_that_does_not_settle_shows_on_the_card(house: Served) -> None:
    house.services.quorum = 2
    answer = await house.person(BEN).clicks(await a_card(house, quorum=2), "approve")
    assert "approve" in names(answer.card)


async def test_what_is_not_there_any_more_is_said(house: Served) -> None:
    card = await a_card(house)
    house.services.approvals.clear()
    assert (await house.person().clicks(card, "approve")).message == "There is no such approval."


async def test_an_approval_of_another_tenant_is_not_shown(house: Served) -> None:
    card = await a_card(house)
    house.services.tenant = "another"
    answer = await house.person().invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert answer.message == "There is no such approval."


def execute(name: str, subject: str = "call-1.1", **more: object) -> Json:
    """What Teams sends for a button that we may not have drawn."""
    data = {"countersign": name, "id": subject, **more}
    return {"action": {"type": "Action.Execute", "verb": name, "data": data}, "trigger": "manual"}


async def test_a_button_of_somebody_elses_is_not_known(house: Served) -> None:
    for value in (execute("launch_rocket"), execute("edit_dialog"), {"action": {"verb": "approve", "data": {}}}):
        assert (await house.person().invokes("adaptiveCard/action", value)).message == NOT_KNOWN.text
    assert house.services.decisions == []


async def test_guests_may_not_click(house: Served) -> None:
    answer = await house.person(GUS).clicks(await a_card(house), "approve")
    assert "cannot use me" in answer.message
    assert house.services.decisions == []


@pytest.mark.waits
async def test_whoever_cannot_be_looked_up_is_not_let_in(house: Served) -> None:
    card = await a_card(house)
    house.teams.fail("member", status=500, times=9)
    answer = await house.person(CHLOE).clicks(card, "approve")
    assert answer.message == NOT_FOUND_OUT
    assert house.services.decisions == []


async def test_records_that_fail_are_said_to_the_clicker(house: Served) -> None:
    card = await a_card(house)
    house.services.broken = RuntimeError("the disk is full")
    answer = await house.person().clicks(card, "approve")
    assert (answer.status, answer.message) == (200, WENT_WRONG)


@pytest.mark.waits
async def test_what_takes_too_long_goes_on_without_the_clicker() -> None:
    async with serving(patience=Patience(answer=0.3)) as house:
        card = await a_card(house)
        await house.person(BEN).says(house.teams.group, "help")  # so that it is known who he is
        await house.hears("approvals", BEN)
        house.services.hold = asyncio.Event()
        assert (await house.person(BEN).clicks(card, "approve")).message == STILL_AT_IT
        dialog = await house.person(BEN).invokes("task/submit", {"data": {"countersign": "approve", "id": "call-1.1"}})
        assert STILL_AT_IT in str(dialog.card)
        house.services.hold.set()
        await house.teams.until(lambda: house.services.approvals["call-1.1"].status == "approved")


# ------------------------------------------------------------------------------------------------ refreshing


async def test_those_who_may_decide_see_buttons_when_it_refreshes(house: Served) -> None:
    approver = person_id(TENANT, BEN)
    card = await a_card(house, approvers=(approver,), may_decide="Ben Baker")
    only(house, BEN)
    assert "approve" not in names(card["attachments"][0]["content"])
    assert "approve" in names((await house.person(BEN).looks_at(card)).card)
    assert house.services.decisions == []


async def test_those_who_may_not_see_none(house: Served) -> None:
    card = await a_card(house)
    only(house, BEN)
    answer = await house.person(CHLOE).invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert "approve" not in names(answer.card)


async def test_a_settled_card_refreshes_without_buttons(house: Served) -> None:
    card = await a_card(house)
    house.services.approvals["call-1.1"] = an_approval(status="expired")
    answer = await house.person().invokes("adaptiveCard/action", execute("refresh"), card["conversation"])
    assert "approve" not in names(answer.card)


# ------------------------------------------------------------------------------------------------ other cards


async def test_a_question_is_answered_on_its_card(house: Served) -> None:
    card = await house.card(a_question(), await house.thread())
    answer = await house.person(ANA).clicks(card, "answer", {"name": "Retro"})
    (given,) = house.services.answers
    assert (given.clarification_id, dict(given.values)) == ("q1", {"name": "Retro"})
    assert "Retro" in str(answer.card)


async def test_a_mistake_in_an_answer_is_said_and_the_inputs_stay(house: Served) -> None:
    house.services.mistakes = {"name": "There is one already."}
    card = await house.card(a_question(), await house.thread())
    answer = await house.person(ANA).clicks(card, "answer", {"name": "Retro"})
    assert answer.message == "There is one already."


async def test_a_question_is_for_one_person(house: Served) -> None:
    card = await house.card(a_question(), await house.thread())
    answer = await house.person(BEN).clicks(card, "answer", {"name": "Retro"})
    assert answer.message == "This question is for somebody else."
    assert house.services.answers == []


async def test_what_came_of_a_broken_call_is_recorded(house: Served) -> None:
    thread = await house.thread()
    for choice in ("it_was_done", "try_again", "skip"):
        answer = await house.person().invokes("adaptiveCard/action", execute(choice, "o1"), thread)
        assert answer.message == "Noted."  # it is shown nowhere here
    assert [choice.choice for choice in house.services.choices] == ["it_was_done", "try_again", "skip"]


@pytest.mark.parametrize(("name", "done"), [("signed_in", True), ("not_now", False)])
async def test_a_sign_in_is_reported(house: Served, name: str, done: bool) -> None:  # noqa: FBT001
    await house.card(a_sign_in(), house.teams.personal(ANA))
    answer = await house.person().invokes("adaptiveCard/action", execute(name, "s1"))
    assert answer.status == 200
    assert [(reply.sign_in_id, reply.done) for reply in house.services.replies] == [("s1", done)]


async def test_a_fresh_link_goes_to_its_owner_alone(house: Served) -> None:
    card = await house.card(a_sign_in(), await house.thread())
    before = len(house.told(ANA))
    answer = await house.person(ANA).clicks(card, "get_link")
    assert answer.message == SENT
    await house.teams.until(lambda: len(house.told(ANA)) > before)
    for call in house.teams.calls:
        if "very-secret" in str(call.body):
            assert "isTargetedActivity" in str(call.query) or house.teams.personal(ANA) in call.path


async def test_nobody_else_gets_the_link(house: Served) -> None:
    card = await house.card(a_sign_in(), await house.thread())
    answer = await house.person(BEN).clicks(card, "get_link")
    assert answer.message == "This link is for Ana Alvarez only."
    assert "very-secret" not in "\n".join(house.told(BEN))


async def test_a_finished_sign_in_may_come_back_by_itself(house: Served) -> None:
    house.services.sign_ins["s1"] = (a_sign_in(), "https://sign.in")
    assert (await house.person(ANA).verifies("s1")).status == 200
    assert [(reply.sign_in_id, reply.done) for reply in house.services.replies] == [("s1", True)]
    assert house.services.sign_ins["s1"][0].status == "done"


async def test_the_state_of_anybody_elses_sign_in_changes_nothing(house: Served) -> None:
    house.services.sign_ins["s1"] = (a_sign_in(), "https://sign.in")
    assert (await house.person(BEN).verifies("s1")).status == 200
    assert (await house.person(ANA).verifies("123456")).status == 200
    assert house.services.sign_ins["s1"][0].status == "open"


# ------------------------------------------------------------------------------------------------ the fallback


async def test_clients_without_execute_send_a_message(house: Served) -> None:
    card = await a_card(house)
    answer = await house.person(BEN).clicks(card, "approve", fallback=True)
    assert answer.status == 200
    assert house.services.approvals["call-1.1"].status == "approved"
    assert [m for m in house.services.messages if m.author.name == "Ben Baker"] == []


async def test_a_refusal_of_it_is_told_to_the_clicker_alone(house: Served) -> None:
    card = await a_card(house, may_decide="Ana Alvarez")
    only(house, ANA)
    await house.person(BEN).clicks(card, "approve", fallback=True)
    await house.hears("You may not decide this", BEN)


async def test_a_counted_vote_is_told_too(house: Served) -> None:
    house.services.quorum = 2
    await house.person(BEN).clicks(await a_card(house, quorum=2), "approve", fallback=True)
    await house.hears("Counted: 1 of 2.", BEN)


async def test_where_nobody_can_be_reached_alone_the_conversation_learns_only_that_it_was_not_counted(
    house: Served,
) -> None:
    card = await a_card(house, may_decide="Ana Alvarez")
    only(house, ANA)
    house.teams.targeted = False
    house.teams.world.users[BEN].has_app = False
    await house.person(BEN).clicks(card, "approve", fallback=True)
    await house.teams.until(lambda: len(house.teams.posts(card["conversation"])) == 2)
    said = text_in(house.teams.posts(card["conversation"])[-1])
    assert NOT_COUNTED in said
    assert "Ana Alvarez may" not in said


async def test_a_window_that_was_not_opened_is_explained(house: Served) -> None:
    value = {"countersign": "edit_dialog", "id": "call-1.1"}
    await house.person().sends("message", value=value)
    await house.hears(NEEDS_A_WINDOW[:40])


async def test_records_that_fail_have_it_sent_again(house: Served) -> None:
    card = await a_card(house)
    house.services.broken = RuntimeError("the disk is full")
    assert (await house.person().clicks(card, "approve", fallback=True)).status == 503


# ------------------------------------------------------------------------------------------------ duplicates


async def test_a_card_that_was_posted_twice_is_taken_away_when_it_is_clicked() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as house:
        thread = await house.thread()
        lost, kept = await a_card(house, thread), await a_card(house, thread)
        answer = await house.person(BEN).clicks(lost, "approve")
        assert "Ben Baker" in str(answer.card)
        await house.teams.until(lambda: house.message(thread, lost["id"])["deleted"])
        assert not house.message(thread, kept["id"])["deleted"]


async def test_a_recorded_card_stays() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as house:
        card = await a_card(house)
        await house.person(BEN).clicks(card, "approve")
        await house.receiver.stop()
        assert not house.message(card["conversation"], card["id"])["deleted"]


async def test_a_card_whose_posting_is_not_recorded_yet_stays() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as house:
        card = await a_card(house)
        elsewhere = {"conversation": house.teams.group, "parts": ["1"]}
        (place, _), *_ = house.services.references["call-1.1"]
        house.services.references["call-1.1"] = [(place, None), (house.place(house.teams.group), elsewhere)]
        await house.person(BEN).clicks(card, "approve")
        await house.receiver.stop()
        assert not house.message(card["conversation"], card["id"])["deleted"]


async def test_a_card_that_is_recorded_meanwhile_stays() -> None:
    async with serving(patience=Patience(duplicate=0.5)) as house:
        card = await a_card(house)
        (place, reference), *_ = house.services.references["call-1.1"]
        house.services.references["call-1.1"] = [(place, {**(reference or {}), "parts": ["1"]})]
        await house.person(BEN).clicks(card, "approve")
        house.services.references["call-1.1"] = [(place, reference)]
        await house.receiver.stop()
        assert not house.message(card["conversation"], card["id"])["deleted"]
