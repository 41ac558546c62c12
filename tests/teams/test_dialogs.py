"""Dialogs: opened for whoever may, submitted once, kept open with what was typed when something is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import not_known, nothing_to_approve, settled_already, went_wrong
from adapters.teams.ids import person_id
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT
from tests.support.teams_transports import Answer, Json
from tests.teams.serving import Served, a_card, a_question, an_approval, serving

FETCH, SUBMIT = "task/fetch", "task/submit"


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        yield product


def carries(name: str, subject: str = "call-1.1", **inputs: object) -> Json:
    return {"data": {"countersign": name, "id": subject, **inputs}, "context": {"theme": "default"}}


async def fetched(product: Served, name: str, subject: str = "call-1.1", user: str = ANA) -> Answer:
    answer = await product.person(user).invokes(FETCH, carries(name, subject), product.teams.group)
    assert answer.status == 200
    return answer


def says(answer: Answer, words: str) -> bool:
    return words in str(answer.card)


def closes(answer: Answer) -> bool:
    return answer.status == 200 and not answer.json


# ------------------------------------------------------------------------------------------------ opening


async def test_all_arguments_are_shown_with_buttons_to_whoever_may_decide(product: Served) -> None:
    product.services.may_decide["call-1.1"] = {person_id(TENANT, BEN)}
    assert "'approve'" in str((await fetched(product, "show_all", user=BEN)).card)
    shown = await fetched(product, "show_all", user=ANA)
    assert "'approve'" not in str(shown.card)
    assert says(shown, "Team Meeting")


async def test_operators_have_a_link_to_the_turn_and_nobody_else_has(product: Served) -> None:
    product.services.operator = person_id(TENANT, BEN)
    link = "https://bot.example.com/#console/turns?card=call-1.1"
    assert link in str((await fetched(product, "show_all", user=BEN)).card)
    assert link not in str((await fetched(product, "show_all", user=ANA)).card)


async def test_a_card_opens_them(product: Served) -> None:
    card = await a_card(product)
    answer = await product.person(BEN).opens(card, "show_all")
    assert says(answer, "Team Meeting")


async def test_pages_are_turned_within_the_dialog(product: Served) -> None:
    answer = await product.person().invokes(SUBMIT, carries("page", "1:call-1.1"), product.teams.group)
    assert says(answer, "Team Meeting") or answer.title
    for subject in ("x:call-1.1", "-1:call-1.1", "9999999999:call-1.1", "", ":"):
        odd = await product.person().invokes(SUBMIT, carries("page", subject), product.teams.group)
        assert says(odd, not_known().text)


@pytest.mark.parametrize("name", ["show_all", "edit_dialog", "reject_dialog"])
async def test_what_is_not_there_is_said(product: Served, name: str) -> None:
    assert says(await fetched(product, name, "call-9.9"), "There is no such approval.")


@pytest.mark.parametrize(
    ("name", "sentence"), [("reject_dialog", settled_already()), ("edit_dialog", "This is settled already.")]
)
async def test_what_is_settled_is_said(product: Served, name: str, sentence: str) -> None:
    product.services.approvals["call-1.1"] = an_approval(status="rejected")
    assert says(await fetched(product, name), sentence)


async def test_nothing_to_approve_is_said(product: Served) -> None:
    product.services.approvals.clear()
    assert says(await fetched(product, "approve_all_dialog"), nothing_to_approve())


async def test_a_question_is_for_one_person(product: Served) -> None:
    product.services.questions["q1"] = a_question()
    assert says(await fetched(product, "answer_dialog", "q1", ANA), "Name")
    assert says(await fetched(product, "answer_dialog", "q1", BEN), "for somebody else")


@pytest.mark.parametrize("name", ["launch_rocket", "approve", "", "task/fetch"])
async def test_a_dialog_of_somebody_elses_is_not_known(product: Served, name: str) -> None:
    assert says(await fetched(product, name), not_known().text)
    assert product.services.decisions == []


async def test_guests_are_refused_in_the_dialog(product: Served) -> None:
    assert says(await fetched(product, "show_all", user=GUS), "Guests can’t use me")
    answer = await product.person(GUS).invokes(SUBMIT, carries("approve"), product.teams.group)
    assert says(answer, "Guests can’t use me")
    assert product.services.decisions == []


async def test_records_that_fail_are_said_in_the_dialog(product: Served) -> None:
    product.services.unreadable = RuntimeError("the disk is full")
    assert says(await fetched(product, "show_all"), went_wrong())


# ------------------------------------------------------------------------------------------------ submitting


async def test_a_call_is_edited_and_approved(product: Served) -> None:
    dialog = await fetched(product, "edit_dialog")
    values = {"name": "Retro", "duration": 30, "calendar": "team"}
    answer = await product.person().submits(dialog, values, name="edit")
    assert closes(answer)
    (decision,) = product.services.decisions
    assert decision.choices[0].verb == "approve"
    assert decision.choices[0].arguments is not None
    assert decision.choices[0].arguments["name"] == "Retro"
    assert decision.choices[0].arguments["calendar"] == "team"
    assert str(decision.choices[0].arguments["duration"]) == "30"


async def test_mistakes_keep_the_dialog_open_with_what_was_typed(product: Served) -> None:
    dialog = await fetched(product, "edit_dialog")
    product.services.mistakes = {"duration": "At most 8 hours."}
    answer = await product.person().submits(dialog, {"name": "Retro", "duration": 9000}, name="edit")
    assert says(answer, "At most 8 hours.")
    assert says(answer, "Retro")
    assert says(answer, "9000")
    assert answer.title


async def test_an_answer_is_given_in_a_dialog(product: Served) -> None:
    product.services.questions["q1"] = a_question()
    dialog = await fetched(product, "answer_dialog", "q1")
    product.services.mistakes = {"name": "Taken."}
    again = await product.person().submits(dialog, {"name": "Retro"}, name="answer")
    assert says(again, "Taken.")
    assert says(again, "Retro")
    product.services.mistakes = {}
    assert closes(await product.person().submits(again, {"name": "Review"}, name="answer"))
    assert [dict(answer.values) for answer in product.services.answers] == [{"name": "Retro"}, {"name": "Review"}]


async def test_a_rejection_without_its_reason_is_asked_again(product: Served) -> None:
    dialog = await fetched(product, "reject_dialog")
    product.services.mistakes = {"reason": "Please say why."}
    again = await product.person().submits(dialog, {"reason": "no"}, name="reject")
    assert says(again, "Please say why.")
    product.services.mistakes = {}
    assert closes(await product.person().submits(again, {"reason": "too early"}, name="reject"))
    assert product.services.decisions[-1].choices[0].reason == "too early"


async def test_an_approval_may_be_given_where_all_is_shown(product: Served) -> None:
    dialog = await fetched(product, "show_all")
    assert closes(await product.person().submits(dialog, name="approve"))
    assert product.services.approvals["call-1.1"].status == "approved"


async def test_a_refusal_is_said_in_the_dialog(product: Served) -> None:
    dialog = await fetched(product, "show_all")
    product.services.may_decide["call-1.1"] = set()
    answer = await product.person().submits(dialog, name="approve")
    assert says(answer, "You may not decide this")


async def test_a_vote_that_does_not_settle_is_said(product: Served) -> None:
    product.services.quorum = 2
    dialog = await fetched(product, "show_all")
    assert says(await product.person().submits(dialog, name="approve"), "Recorded: 1 of 2 approvals")


async def test_exactly_what_was_shown_is_approved_together(product: Served) -> None:
    product.services.approvals["call-1.2"] = an_approval("call-1.2")
    dialog = await fetched(product, "approve_all_dialog")
    product.services.approvals["call-1.3"] = an_approval("call-1.3")
    assert closes(await product.person().submits(dialog, name="approve_all"))
    assert [view.status for view in product.services.approvals.values()] == ["approved", "approved", "pending"]


async def test_what_was_not_approved_together_is_counted(product: Served) -> None:
    product.services.approvals["call-1.2"] = an_approval("call-1.2")
    dialog = await fetched(product, "approve_all_dialog")
    product.services.approvals["call-1.1"] = an_approval(status="expired", decided_by=("nobody",))
    answer = await product.person().submits(dialog, name="approve_all")
    assert says(answer, "Approved 1 of 2.")
    assert says(answer, "nobody was earlier.")


async def test_a_submission_that_teams_sends_twice_is_one(product: Served) -> None:
    dialog = await fetched(product, "show_all")
    first = await product.person().submits(dialog, name="approve")
    second = await product.person().again(first)
    assert closes(second)
    assert len({decision.key for decision in product.services.decisions}) == 1


async def test_a_dialog_that_only_shows_is_closed(product: Served) -> None:
    assert closes(await product.person().invokes(SUBMIT, carries("close"), product.teams.group))
    assert product.services.decisions == []


async def test_a_dialog_leads_on_to_another(product: Served) -> None:
    answer = await product.person().invokes(SUBMIT, carries("reject_dialog"), product.teams.group)
    assert says(answer, "reason")


# ------------------------------------------------------------------------------------------------ what is hidden

TOKEN = "ghp_" + "a1B2" * 9
MASK = "[secret: github token, 40 characters, #3fa9c2d1]"


async def test_what_is_hidden_is_shown_to_whoever_may_decide_and_to_nobody_else(product: Served) -> None:
    """Rule 12, in Teams: privately, and judged by the services at that moment (rule 6)."""
    product.services.hidden = {MASK: TOKEN}
    product.services.may_decide["call-1.1"] = {person_id(TENANT, BEN)}
    refused = await fetched(product, "look_dialog", user=ANA)
    assert says(refused, "You may not look at this.")
    assert not says(refused, TOKEN)
    answer = await fetched(product, "look_dialog", user=BEN)
    assert all(says(answer, words) for words in (MASK, TOKEN, "#3fa9c2d1e0b4", "Only you see this"))
    assert product.services.looks == [("call-1.1", person_id(TENANT, BEN))]


async def test_it_can_be_had_from_where_everything_is_shown(product: Served) -> None:
    product.services.hidden = {MASK: "word " * 9_000}
    product.services.approvals["call-1.1"] = an_approval(arguments={"what": MASK}, masks=1)
    assert says(await fetched(product, "show_all"), "look_dialog")
    first = await product.person().invokes(SUBMIT, carries("look_dialog"), product.teams.group)
    assert says(first, "page 1 of")
    second = await product.person().invokes(SUBMIT, carries("look_page", "1:call-1.1"), product.teams.group)
    assert says(second, "page 2 of")
    assert len(product.services.looks) == 2
    for subject in ("x:call-1.1", "-1:call-1.1", "", ":"):
        odd = await product.person().invokes(SUBMIT, carries("look_page", subject), product.teams.group)
        assert says(odd, not_known().text)


async def test_where_nothing_is_hidden_there_is_no_such_button(product: Served) -> None:
    assert not says(await fetched(product, "show_all"), "look_dialog")
