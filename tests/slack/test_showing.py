"""Clicks that show something: a form, the whole arguments, a sign-in's link. And where links lead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.slack.ids import permalink
from bot.domain import Notice
from tests.slack.serving import a_card, serving
from tests.slack.shown import a_question, a_sign_in, an_approval, in_c1

LINK = "https://sign.in/acme?state=very-secret"


async def test_reject_opens_a_form() -> None:
    async with serving() as product:
        await product.person().clicks(await a_card(product), "reject")
        assert (await product.modal())["callback_id"] == "reject_form"
        assert product.services.decisions == []


async def test_reject_on_a_settled_card_says_so() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.approvals["call-1.1"] = an_approval(status="approved")
        await product.person().clicks(card, "reject")
        await product.hears("Already settled")
        assert product.slack.views("U1") == []


async def test_edit_opens_a_form_with_the_values_as_they_are() -> None:
    async with serving() as product:
        await product.person().clicks(await a_card(product), "edit")
        modal = await product.modal()
        inputs = {b["block_id"]: b["element"] for b in modal["blocks"] if b["type"] == "input"}
        assert inputs["input:name"]["initial_value"] == "Team Meeting"


async def test_edit_on_a_settled_card_says_so() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.approvals["call-1.1"] = an_approval(status="expired")
        await product.person().clicks(card, "edit")
        await product.hears("settled already")


async def test_show_all_shows_every_argument_over_pages() -> None:
    async with serving() as product:
        card = await a_card(product, arguments={"text": "word " * 6_000 + "the end"})
        ana = product.person()
        await ana.clicks(card, "show_all")
        modal = await product.modal()
        pages = 1
        while "the end" not in str(modal["blocks"]):
            await ana.clicks(modal, "page", f"{pages}:call-1.1")
            modal = await product.modal(but_not=modal["hash"])
            pages += 1
        assert pages > 1


async def test_approve_all_shows_what_it_would_approve() -> None:
    async with serving() as product:
        for number in (1, 2, 3):
            product.services.approvals[f"c{number}"] = an_approval(f"c{number}", together=3)
        card = await product.card(product.services.approvals["c1"])
        await product.person().clicks(card, "approve_all")
        modal = await product.modal()
        assert modal["callback_id"] == "approve_all_form"
        assert product.services.decisions == []


async def test_answer_opens_the_questions_form_for_whom_it_was_put_to() -> None:
    async with serving() as product:
        view = a_question()
        product.services.keep(view)
        card = await product.card(view)
        await product.person("U2").clicks(card, "answer")
        await product.hears("for somebody else", "U2")
        await product.person("U1").clicks(card, "answer")
        assert (await product.modal())["callback_id"] == "answer_form"


async def test_a_trigger_that_has_expired_asks_to_click_again() -> None:
    async with serving() as product:
        held = product.slack.hold("views.open")
        await product.person().clicks(await a_card(product), "edit")
        await held.reached()
        product.slack.clock.move(4)
        held.release()
        await product.hears("Click again")
        assert product.slack.views("U1") == []


async def test_a_slack_that_opens_no_window_is_told_about() -> None:
    async with serving() as product:
        product.slack.fail("views.open", error="view_too_large")
        await product.person().clicks(await a_card(product), "show_all")
        await product.hears("view_too_large")


# ------------------------------------------------------------------------------------------------ sign-in


async def test_the_owner_gets_a_fresh_link_and_nobody_else_does() -> None:
    async with serving() as product:
        product.services.keep(a_sign_in())
        product.services.links["s1"] = LINK
        product.slack.fail("chat.postEphemeral", error="user_not_in_channel", times=1)
        card = await product.card(a_sign_in())
        await product.person("U2").clicks(card, "get_link")
        await product.hears("for Ana only", "U2")
        await product.person("U1").clicks(card, "get_link")
        await product.slack.until(lambda: LINK in str(product.slack.ephemerals("U1")))
        assert LINK not in str(product.slack.ephemerals("U2"))
        assert LINK not in str(product.slack.messages("C1"))


async def test_a_link_of_a_sign_in_that_is_over_is_not_given() -> None:
    async with serving() as product:
        card = await product.card(a_sign_in())
        await product.person().clicks(card, "get_link")
        await product.hears("no such sign-in")


@pytest.mark.parametrize("action", ["signed_in", "not_now"])
async def test_the_owner_says_whether_they_have_signed_in(action: str) -> None:
    async with serving() as product:
        product.services.keep(a_sign_in())
        product.services.links["s1"] = LINK
        await product.card(a_sign_in())
        (private,) = await product.slack.until(lambda: product.slack.ephemerals("U1"))
        assert (await product.person().clicks(private, action)).status == 200
        (reply,) = product.services.replies
        assert (reply.sign_in_id, reply.done) == ("s1", action == "signed_in")


def test_links_lead_to_the_message_in_its_thread() -> None:
    shown = in_c1("p1", an_approval())
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
    async with serving() as product:
        product.services.hidden = {MASK: TOKEN}
        product.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        card = await a_card(product, arguments={"what": MASK}, masks=1, fingerprint="#3fa9c2d1e0b4")
        await product.person("U2").clicks(card, "look")
        await product.hears("You may not look at this", "U2")
        await product.person().clicks(card, "look")
        modal = str(await product.modal())
        assert all(words in modal for words in (MASK, TOKEN, "#3fa9c2d1e0b4", "Only you see this"))
        assert product.services.looks == [("call-1.1", "slack:T1:U1")]
        assert product.slack.views("U2") == []
        assert TOKEN not in str([product.slack.messages("C1"), product.slack.ephemerals("U2")])


async def test_each_page_of_what_is_hidden_is_judged_anew() -> None:
    async with serving() as product:
        product.services.hidden = {MASK: "word " * 6_000}
        ana = product.person()
        await ana.clicks(await a_card(product, masks=1), "look")
        modal = await product.modal()
        await ana.clicks(modal, "look_page", "1:call-1.1")
        assert "page 2" in str((await product.modal(but_not=modal["hash"]))["blocks"])
        assert len(product.services.looks) == 2
        product.services.may_decide["call-1.1"] = set()
        await ana.clicks(modal, "look_page", "1:call-1.1")
        await product.hears("You may not look at this")


async def test_where_nothing_is_hidden_there_is_no_such_button() -> None:
    async with serving() as product:
        assert "hidden" not in str(await a_card(product))
