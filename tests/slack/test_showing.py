"""Clicks that show something: a form, the whole arguments, a sign-in's link. And where links lead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.slack.ids import permalink
from bot.domain import ClarificationView, Form, Notice
from graph.interrupts import FormField
from tests.slack.serving import a_card, serving
from tests.slack.stand_in_services import a_sign_in, an_approval, shown_in_c1

LINK = "https://sign.in/acme?state=very-secret"


async def test_reject_opens_a_form() -> None:
    async with serving() as house:
        await house.person().clicks(await a_card(house), "reject")
        assert (await house.modal())["callback_id"] == "reject_form"
        assert house.services.decisions == []


async def test_reject_on_a_settled_card_says_so() -> None:
    async with serving() as house:
        card = await a_card(house)
        house.services.approvals["call-1.1"] = an_approval(status="approved")
        await house.person().clicks(card, "reject")
        await house.hears("settled already")
        assert house.slack.views("U1") == []


async def test_edit_opens_a_form_with_the_values_as_they_are() -> None:
    async with serving() as house:
        await house.person().clicks(await a_card(house), "edit")
        modal = await house.modal()
        inputs = {b["block_id"]: b["element"] for b in modal["blocks"] if b["type"] == "input"}
        assert inputs["input:name"]["initial_value"] == "Team Meeting"


async def test_edit_on_a_settled_card_says_so() -> None:
    async with serving() as house:
        card = await a_card(house)
        house.services.approvals["call-1.1"] = an_approval(status="expired")
        await house.person().clicks(card, "edit")
        await house.hears("settled already")


async def test_show_all_shows_every_argument_over_pages() -> None:
    async with serving() as house:
        card = await a_card(house, arguments={"text": "word " * 6_000 + "the end"})
        ana = house.person()
        await ana.clicks(card, "show_all")
        modal = await house.modal()
        pages = 1
        while "the end" not in str(modal["blocks"]):
            await ana.clicks(modal, "page", f"{pages}:call-1.1")
            modal = await house.modal(but_not=modal["hash"])
            pages += 1
        assert pages > 1


async def test_approve_all_shows_what_it_would_approve() -> None:
    async with serving() as house:
        for number in (1, 2, 3):
            house.services.approvals[f"c{number}"] = an_approval(f"c{number}", together=3)
        card = await house.card(house.services.approvals["c1"])
        await house.person().clicks(card, "approve_all")
        modal = await house.modal()
        assert modal["callback_id"] == "approve_all_form"
        assert house.services.decisions == []


async def test_answer_opens_the_questions_form_for_whom_it_was_put_to() -> None:
    async with serving() as house:
        form = Form("Which one?", (FormField(name="which"),), {})
        house.services.questions["q1"] = ("slack:T1:U1", form)
        view = ClarificationView("q1", "open", "Which one?", "", form.fields, "Ana", "slack:T1:U1")
        card = await house.card(view)
        await house.person("U2").clicks(card, "answer")
        await house.hears("for somebody else", "U2")
        await house.person("U1").clicks(card, "answer")
        assert (await house.modal())["callback_id"] == "answer_form"


async def test_a_trigger_that_has_expired_asks_to_click_again() -> None:
    async with serving() as house:
        held = house.slack.hold("views.open")
        await house.person().clicks(await a_card(house), "edit")
        await held.reached()
        house.slack.clock.move(4)
        held.release()
        await house.hears("Please click again")
        assert house.slack.views("U1") == []


async def test_a_slack_that_opens_no_window_is_told_about() -> None:
    async with serving() as house:
        house.slack.fail("views.open", error="view_too_large")
        await house.person().clicks(await a_card(house), "show_all")
        await house.hears("view_too_large")


# ------------------------------------------------------------------------------------------------ sign-in


async def test_the_owner_gets_a_fresh_link_and_nobody_else_does() -> None:
    async with serving() as house:
        house.services.sign_ins["s1"] = (a_sign_in(), LINK)
        house.slack.fail("chat.postEphemeral", error="user_not_in_channel", times=1)
        card = await house.card(a_sign_in())
        await house.person("U2").clicks(card, "get_link")
        await house.hears("for Ana only", "U2")
        await house.person("U1").clicks(card, "get_link")
        await house.slack.until(lambda: LINK in str(house.slack.ephemerals("U1")))
        assert LINK not in str(house.slack.ephemerals("U2"))
        assert LINK not in str(house.slack.messages("C1"))


async def test_a_link_of_a_sign_in_that_is_over_is_not_given() -> None:
    async with serving() as house:
        card = await house.card(a_sign_in())
        await house.person().clicks(card, "get_link")
        await house.hears("no such sign-in")


@pytest.mark.parametrize("action", ["signed_in", "not_now"])
async def test_the_owner_says_whether_they_have_signed_in(action: str) -> None:
    async with serving() as house:
        house.services.sign_ins["s1"] = (a_sign_in(), LINK)
        await house.card(a_sign_in())
        (private,) = await house.slack.until(lambda: house.slack.ephemerals("U1"))
        assert (await house.person().clicks(private, action)).status == 200
        (reply,) = house.services.replies
        assert (reply.sign_in_id, reply.done) == ("s1", action == "signed_in")


def test_links_lead_to_the_message_in_its_thread() -> None:
    shown = shown_in_c1("p1", an_approval())
    assert permalink("https://acme.slack.com/", shown) == (
        "https://acme.slack.com/archives/C1/p1700000000000200?thread_ts=1700000000.000100&cid=C1"
    )
    assert permalink("https://acme.slack.com/", replace(shown, reference=None)) == (
        "https://acme.slack.com/archives/C1/p1700000000000100?thread_ts=1700000000.000100&cid=C1"
    )
    place = replace(shown.post.place, address={"team": "T1", "channel": "D1", "thread_ts": ""})
    direct = replace(shown, post=replace(shown.post, place=place, content=Notice("x")), reference=None)
    assert permalink("https://acme.slack.com/", direct) == "https://acme.slack.com/archives/D1"


# ------------------------------------------------------------------------------------------------ what is hidden

TOKEN = "ghp_" + "a1B2" * 9
MASK = "[secret: github token, 40 characters, #3fa9c2d1]"


async def test_what_is_hidden_is_shown_in_a_window_to_whoever_may_decide_and_to_nobody_else() -> None:
    """Rule 12, in Slack: privately, and judged by the services at that moment (rule 6)."""
    async with serving() as house:
        house.services.hidden = {MASK: TOKEN}
        house.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        card = await a_card(house, arguments={"what": MASK}, masks=1, fingerprint="#3fa9c2d1e0b4")
        await house.person("U2").clicks(card, "look")
        await house.hears("You may not look at this", "U2")
        await house.person().clicks(card, "look")
        modal = str(await house.modal())
        assert all(words in modal for words in (MASK, TOKEN, "#3fa9c2d1e0b4", "Only you see this"))
        assert house.services.looks == [("call-1.1", "slack:T1:U1")]
        assert house.slack.views("U2") == []
        assert TOKEN not in str([house.slack.messages("C1"), house.slack.ephemerals("U2")])


async def test_each_page_of_what_is_hidden_is_judged_anew() -> None:
    async with serving() as house:
        house.services.hidden = {MASK: "word " * 6_000}
        ana = house.person()
        await ana.clicks(await a_card(house, masks=1), "look")
        modal = await house.modal()
        await ana.clicks(modal, "look_page", "1:call-1.1")
        assert "page 2" in str((await house.modal(but_not=modal["hash"]))["blocks"])
        assert len(house.services.looks) == 2
        house.services.may_decide["call-1.1"] = set()
        await ana.clicks(modal, "look_page", "1:call-1.1")
        await house.hears("You may not look at this")


async def test_where_nothing_is_hidden_there_is_no_such_button() -> None:
    async with serving() as house:
        assert "hidden" not in str(await a_card(house))
