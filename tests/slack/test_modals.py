"""Submitted modals: what was typed is judged at once; mistakes show in the form, with the input kept."""

from __future__ import annotations

import json
from gettext import NullTranslations
from typing import Any

import pytest

import translations
from bot.domain import Choice, ClarificationView
from graph.interrupts import FieldType, FormField
from tests.slack.serving import Served, serving
from tests.slack.shown import an_approval


async def opened(product: Served, action: str, user: str = "U1", **changes: Any) -> dict[str, Any]:
    """The modal behind a button of an approval's card."""
    view = an_approval(**changes)
    product.services.approvals.setdefault(view.approval_id, view)
    await product.person(user).clicks(await product.card(view), action)
    return await product.modal(user)


async def test_a_rejection_carries_its_reason() -> None:
    async with serving() as product:
        modal = await opened(product, "reject")
        submitted = await product.person().submits(modal, {"reason": "not on a Sunday"})
        assert (submitted.status, submitted.view) == (200, None)
        (decision,) = product.services.decisions
        assert decision.choices == (Choice("call-1.1", "reject", "not on a Sunday"),)
        assert decision.key == f"slack:T1:{modal['id']}:{modal['hash']}"


async def test_the_same_form_delivered_twice_has_the_same_key() -> None:
    async with serving() as product:
        submitted = await product.person().submits(await opened(product, "reject"), {"reason": "no"})
        await product.person().submits_again(submitted)
        first, second = product.services.decisions
        assert first.key == second.key


async def test_an_edited_call_is_approved_with_what_was_typed() -> None:
    async with serving() as product:
        modal = await opened(product, "edit")
        values = {"name": "Retro", "duration": "45", "calendar": "team"}
        assert (await product.person().submits(modal, values)).view is None
        (decision,) = product.services.decisions
        assert decision.choices[0].verb == "approve"
        assert decision.choices[0].arguments is not None
        assert decision.choices[0].arguments["name"] == "Retro"
        assert str(decision.choices[0].arguments["duration"]) == "45"
        assert decision.choices[0].arguments["calendar"] == "team"


async def test_an_edit_that_changes_nothing_is_said_and_approves_nothing() -> None:
    async with serving() as product:
        modal = await opened(product, "edit")
        submitted = await product.person().submits(modal)
        assert "Nothing changed" in str(submitted.errors) and submitted.view is not None
        assert product.services.decisions == []


async def test_who_may_decide_approves_with_a_note_where_everything_is_shown() -> None:
    async with serving() as product:
        modal = await opened(product, "show_all")
        assert modal["submit"]["text"] == "Approve"
        assert (await product.person().submits(modal, {"note": "keep it short"})).view is None
        (decision,) = product.services.decisions
        assert decision.choices == (Choice("call-1.1", "approve", note="keep it short"),)


async def test_who_may_not_decide_reads_everything_and_approves_nothing() -> None:
    async with serving() as product:
        product.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        modal = await opened(product, "show_all", user="U2")
        assert modal["submit"] is None
        assert all(block["type"] != "input" for block in modal["blocks"])


async def test_operators_have_a_link_to_the_turn_and_nobody_else_has() -> None:
    async with serving() as product:
        product.services.operator = "slack:T1:U2"
        link = "https://bot.example.com/#console/turns?card=call-1.1"
        assert link in str(await opened(product, "show_all", user="U2"))
        assert link not in str(await opened(product, "show_all", user="U1"))


class Marked(NullTranslations):
    """A language that anybody can tell from English."""

    def gettext(self, message: str) -> str:
        return f"‹{message}›"


async def test_a_form_is_in_the_language_of_whoever_reads_it_and_its_card_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translations, "catalogue", lambda _name: Marked())
    async with serving() as product:
        product.slack.add_user("U5", name="Eva", locale="de-DE")
        product.slack.world.channels["C1"].members.add("U5")
        assert (await opened(product, "reject", user="U5"))["title"]["text"] == "‹Reject›"
        assert (await opened(product, "reject", user="U1"))["title"]["text"] == "Reject"
        assert "Requested by Ana" in str(product.slack.messages("C1"))


async def test_mistakes_show_at_their_inputs_and_nothing_is_lost() -> None:
    async with serving() as product:
        modal = await opened(product, "edit")
        product.services.mistakes = {"duration": "At most 480 minutes.", "": "Something else."}
        submitted = await product.person().submits(modal, {"duration": "900"})
        assert submitted.errors["input:duration"] == "At most 480 minutes."
        assert "Something else." in str(submitted.errors)
        assert submitted.view is not None
        product.services.mistakes = {}
        assert (await product.person().submits(modal, {"duration": "45"})).view is None


async def test_who_may_not_is_told_in_the_forms_place() -> None:
    async with serving() as product:
        modal = await opened(product, "reject", user="U2")
        product.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        submitted = await product.person("U2").submits(modal, {"reason": "no"})
        assert submitted.view is not None
        assert "You may not decide this" in json.dumps(submitted.view)


@pytest.mark.parametrize("action", ["reject", "edit"])
async def test_who_comes_late_is_told_so(action: str) -> None:
    async with serving() as product:
        modal = await opened(product, action)
        product.services.approvals["call-1.1"] = an_approval(status="approved", decided_by=("Ben",))
        submitted = await product.person().submits(modal, {"reason": "no"} if action == "reject" else {})
        assert submitted.view is not None
        assert "earlier" in json.dumps(submitted.view) or "settled already" in json.dumps(submitted.view)


async def test_a_vote_that_is_counted_is_said_in_the_forms_place() -> None:
    async with serving() as product:
        product.services.quorum = 2
        submitted = await product.person().submits(await opened(product, "edit"), {"name": "Retro"})
        assert "Recorded: 1 of 2" in json.dumps(submitted.view)


@pytest.mark.waits
async def test_who_cannot_be_looked_up_keeps_their_input() -> None:
    async with serving() as product:
        view = an_approval()
        product.services.approvals["call-1.1"] = view
        await product.person("U1").clicks(await product.card(view), "reject")
        modal = await product.modal()
        product.slack.world.modals["T1", "U2"] = [modal]
        product.slack.fail("users.info", status=500, times=100)
        submitted = await product.person("U2").submits(modal, {"reason": "no"})
        assert "confirm who you are" in str(submitted.errors)
        assert product.services.decisions == []


async def test_a_clarification_is_answered_with_typed_values() -> None:
    async with serving() as product:
        fields = (FormField(name="which", type=FieldType.CHOICE, options=("red", "blue")), FormField(name="why"))
        view = ClarificationView("q1", "open", "Which one?", "", fields, "Ana", "slack:T1:U1")
        product.services.keep(view)
        await product.person().clicks(await product.card(view), "answer")
        submitted = await product.person().submits(await product.modal(), {"which": "blue", "why": "the sea"})
        assert submitted.view is None
        (answer,) = product.services.answers
        assert (answer.clarification_id, dict(answer.values)) == ("q1", {"which": "blue", "why": "the sea"})


async def test_approve_all_approves_exactly_what_was_shown() -> None:
    async with serving() as product:
        for number in (1, 2):
            product.services.approvals[f"c{number}"] = an_approval(f"c{number}", together=2)
        await product.person().clicks(await product.card(product.services.approvals["c1"]), "approve_all")
        modal = await product.modal()
        product.services.approvals["c3"] = an_approval("c3")
        assert (await product.person().submits(modal, {})).view is None
        assert [d.approval_ids for d in product.services.decisions] == [("c1", "c2")]
        assert product.services.approvals["c3"].status == "pending"


async def test_approve_all_says_what_it_could_not_approve() -> None:
    async with serving() as product:
        for number in (1, 2, 3):
            product.services.approvals[f"c{number}"] = an_approval(f"c{number}", together=3)
        await product.person().clicks(await product.card(product.services.approvals["c1"]), "approve_all")
        modal = await product.modal()
        product.services.may_decide = {"c2": set(), "c3": set()}
        submitted = await product.person().submits(modal, {})
        shown = json.dumps(submitted.view)
        assert "Approved 1 of 3." in shown
        assert "You may not decide this: Ana may. (2 times)" in shown


async def test_a_modal_that_is_not_ours_says_that_it_is_not_known() -> None:
    async with serving() as product:
        modal = await opened(product, "reject")
        for spoiled in ({"private_metadata": "[]"}, {"private_metadata": '{"subject": 7}'}, {"callback_id": "x"}):
            submitted = await product.person().submits({**modal, **spoiled}, {"reason": "no"})
            assert "This form has expired" in json.dumps(submitted.json)
        assert product.services.decisions == []


async def test_when_it_cannot_be_kept_the_form_stays_open() -> None:
    async with serving() as product:
        modal = await opened(product, "reject")
        product.services.broken = RuntimeError("the disk is full")
        submitted = await product.person().submits(modal, {"reason": "no"})
        assert submitted.status == 503
        assert submitted.view is not None


# ------------------------------------------------------------------------------------------------ the shortcut


async def test_the_shortcut_asks_about_a_message_in_its_thread() -> None:
    async with serving() as product:
        said = await product.person("U2").says("C1", "the build is red again <https://ci.example.com|log>")
        ana = product.person()
        assert (await ana.asks_about(said.message)).status == 200
        modal = await product.modal()
        assert "the build is red again" in json.dumps(modal)
        submitted = await ana.submits(modal, {"question": "whose fault is it?"})
        assert submitted.view is None
        (opening,) = [m for m in product.slack.messages("C1") if m.get("bot_id")]
        assert opening["thread_ts"] == said.ts
        assert "Ana" in opening["text"]
        (message,) = product.services.messages
        assert message.key == f"slack:T1:C1:{opening['ts']}"
        assert message.place.key == f"slack:T1:C1:{said.ts}"
        assert message.author.person_id == "slack:T1:U1"
        assert message.text.startswith("whose fault is it?")
        assert "> the build is red again log (https://ci.example.com)" in message.text


async def test_the_shortcut_works_without_the_quote() -> None:
    async with serving() as product:
        said = await product.person("U2").says("C1", "the build is red")
        await product.person().asks_about(said.message)
        product.slack.fail("conversations.replies", error="internal_error", times=100)
        await product.person().submits(await product.modal(), {"question": "why?"})
        assert [m.text for m in product.services.messages] == ["why?"]


async def test_the_shortcut_where_we_are_not_asks_to_be_invited() -> None:
    async with serving() as product:
        product.slack.world.channels["C2"].messages["1700000000.000100"] = said = {
            "type": "message",
            "user": "U1",
            "ts": "1700000000.000100",
            "text": "hello",
        }
        await product.person().asks_about({**said, "channel": "C2"})
        submitted = await product.person().submits(await product.modal(), {"question": "why?"})
        assert "/invite" in json.dumps(submitted.view)
        assert product.services.messages == []


async def test_a_guest_cannot_use_the_shortcut() -> None:
    async with serving() as product:
        product.slack.add_user("U7", name="Gus", is_restricted=True)
        product.slack.world.channels["C1"].members.add("U7")
        said = await product.person("U7").says("C1", "hello")
        await product.person("U7").asks_about(said.message)
        await product.hears("Guests", "U7")
        assert product.slack.views("U7") == []
