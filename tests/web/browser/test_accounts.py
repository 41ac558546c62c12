"""Accounts in a real browser: signing in, codes, what is connected, and questions that tools put."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from bot.domain import ClarificationView, ConnectionView, ServiceView, SignInView
from graph.interrupts import FieldType, FormField
from tests.support.views import NOW
from tests.web.browsing import Window
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"
CODE = "K7QM-3DZP"
SIGN_IN = SignInView("s", "open", "issues", "127.0.0.1", "", "Ana", "web:ana", service="GitHub")
QUESTION = ClarificationView("c:1", "open", "Which **size**?", "", (), "Ana", "web:ana", server="shop")


async def test_a_link_to_a_service_opens_in_a_new_tab_and_nobody_has_to_say_that_they_are_through(
    product: Product, window: Window
) -> None:
    product.services.links["s"] = f"{product.url}/static/icon.svg?s=secret"
    await product.services.post(THREAD, SIGN_IN)
    await window.open(THREAD)
    await expect(window.log).to_contain_text("This needs your GitHub account.")
    await expect(window.button("I have signed in")).to_have_count(0)
    assert "secret" not in await window.page.content(), "before somebody asks for it"
    await window.button("Sign in").click()
    async with window.page.context.expect_page() as opened:
        await window.log.get_by_role("link", name="Open the sign-in page").click()
    tab = await opened.value
    assert tab.url.endswith("?s=secret")
    assert await tab.evaluate("[window.opener, document.referrer]") == [None, ""]
    await tab.close()
    await product.services.change(replace(SIGN_IN, status="done"))
    await expect(window.log).to_contain_text("Signed in")


async def test_who_opened_the_page_at_another_address_is_sent_to_the_one_that_knows_them(
    product: Product, window: Window
) -> None:
    product.services.links["s"] = "http://bot.example.com:3978/oauth/start?s=secret"
    await product.services.post(THREAD, SIGN_IN)
    await window.open(THREAD)
    await window.button("Sign in").click()
    link = window.log.get_by_role("link", name="Continue at bot.example.com:3978")
    await expect(link).to_have_attribute("href", "http://bot.example.com:3978/#web%3Aone")
    assert "secret" not in await window.page.content()


async def test_what_a_server_says_of_its_link_comes_with_the_link_as_text_after_its_name(
    product: Product, window: Window
) -> None:
    """Rules 7 and 8."""
    product.services.links["s"] = "https://pay.example.com/bill"
    await product.services.post(THREAD, replace(SIGN_IN, service="", message="The <b>bill</b> of Dr. Brown"))
    await window.open(THREAD)
    await expect(window.button("Sign in")).to_be_visible()
    assert "Brown" not in await window.page.content(), "before somebody asks for it"
    await window.button("Sign in").click()
    await expect(window.log).to_contain_text("issues says: The <b>bill</b> of Dr. Brown")


async def test_a_refused_link_says_why_on_the_card(product: Product, window: Window) -> None:
    product.services.links["s"] = "https://accounts.example.com/"
    await product.services.post(THREAD, SIGN_IN)
    await window.open(THREAD)
    product.services.keep(replace(SIGN_IN, owner="Ben", owner_id="web:ben"))  # since the card was drawn
    await window.button("Sign in").click()
    await expect(window.log).to_contain_text("This link is for Ben only.")
    window.complaints.clear()  # the browser's own about the 403


async def test_a_code_is_typed_into_its_form_and_a_wrong_one_may_be_mended(product: Product, window: Window) -> None:
    await product.services.post(THREAD, replace(SIGN_IN, code_wanted=True))
    await window.open(THREAD)
    await window.button("Enter code").click()
    await window.dialog.get_by_label("Code").fill("AAAA-AAAA")
    connect = window.dialog.get_by_role("button", name="Connect", exact=True)
    await connect.click()
    await expect(window.dialog).to_contain_text("not the code that your browser shows")
    window.complaints.clear()  # the browser's own about the 422
    await window.dialog.get_by_label("Code").fill(CODE)
    await connect.click()
    await expect(window.log).to_contain_text("Signed in")
    assert [entry.code for entry in product.services.codes] == ["AAAA-AAAA", CODE]


async def test_a_code_that_is_sent_as_a_message_is_left_nowhere_on_the_page(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await window.say(CODE)
    await window.say("and something else")
    await expect(window.log).to_contain_text("and something else")
    await expect(window.log).not_to_contain_text(CODE)


async def test_accounts_are_listed_and_disconnected_after_a_second_click(product: Product, window: Window) -> None:
    view = ConnectionView("c/1", "GitHub", "ana-gh", ("repo",), NOW, None)
    product.services.accounts["c/1"] = ("web:ana", view)
    product.services.accounts["c/2"] = (
        "web:ana",
        replace(view, connection_id="c/2", service="Google", status="revoked"),
    )
    product.services.accounts["c/3"] = ("web:ben", replace(view, connection_id="c/3", service="Slack"))
    await window.open()
    await window.button("Connected accounts…").click()
    for text in ("GitHub", "ana-gh", "Allowed: repo", "Google", "Access was revoked."):
        await expect(window.dialog).to_contain_text(text)
    await expect(window.dialog).not_to_contain_text("Slack")
    await window.dialog.get_by_role("button", name="Disconnect GitHub").click()
    await window.dialog.get_by_role("button", name="Keep it").click()
    assert "c/1" in product.services.accounts
    await window.dialog.get_by_role("button", name="Disconnect GitHub").click()
    await window.dialog.get_by_role("button", name="Yes, disconnect GitHub").click()
    await expect(window.dialog).to_contain_text("Your account at GitHub is disconnected.")
    await expect(window.dialog.get_by_role("listitem")).to_have_count(1)
    assert set(product.services.accounts) == {"c/2", "c/3"}


async def test_an_account_is_connected_from_the_list(product: Product, window: Window) -> None:
    product.services.address = product.url
    product.services.offered = {
        "github": ServiceView("github", "GitHub", ("repo",)),
        "notes": ServiceView("notes", "<b>Notes</b>"),
    }
    await window.open()
    await window.button("Connected accounts…").click()
    await expect(window.dialog).to_contain_text("No connected accounts.")
    await expect(window.dialog.get_by_role("link")).to_have_count(0)
    await expect(window.dialog.get_by_role("button", name="Connect <b>Notes</b>")).to_be_visible()
    await window.dialog.get_by_role("button", name="Connect GitHub").click()
    link = window.dialog.get_by_role("link", name="Open the sign-in page")
    await expect(link).to_have_attribute("href", f"{product.url}/oauth/start?s=github-of-web:ana")
    await expect(link).to_be_focused()
    # Back from the other tab, whose browser shows a code.
    product.services.shown_codes.add("web:ana")
    await window.page.evaluate("window.dispatchEvent(new Event('focus'))")
    await window.dialog.get_by_label("Your browser shows a code").fill("AAAA-AAAA")
    await window.dialog.get_by_role("button", name="Enter code").click()
    await expect(window.dialog).to_contain_text("not the code that your browser shows")
    await expect(link).to_be_visible()
    await window.dialog.get_by_label("Your browser shows a code").fill(product.services.code)
    product.services.shown_codes.clear()
    product.services.accounts["c"] = (
        "web:ana",
        ConnectionView("c", "GitHub", "ana-gh", (), NOW, None, provider="github"),
    )
    await window.page.keyboard.press("Enter")
    await expect(window.dialog).to_contain_text("your account is connected")
    window.complaints.clear()  # the browser's own about the 403
    await expect(window.dialog.get_by_role("button", name="Disconnect GitHub")).to_be_visible()
    await expect(window.dialog.get_by_role("button", name="Connect GitHub", exact=True)).to_have_count(0)
    await expect(window.dialog.get_by_label("Your browser shows a code")).to_be_hidden()


async def test_a_tools_question_names_its_server_and_its_words_are_no_markup(product: Product, window: Window) -> None:
    await product.services.post(THREAD, QUESTION)
    await window.open(THREAD)
    await expect(window.log).to_contain_text("Question from the tool server shop")
    await expect(window.log).to_contain_text("Which **size**?")
    await window.become("Ben")
    await expect(window.log).to_contain_text("Only Ana can answer.")
    for name in ("Answer", "Decline", "Cancel"):
        await expect(window.button(name)).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "action", "ends"), [("Decline", "decline", "Declined"), ("Cancel", "cancel", "Canceled")]
)
async def test_a_tools_question_need_not_be_answered(
    product: Product, window: Window, name: str, action: str, ends: str
) -> None:
    await product.services.post(THREAD, QUESTION)
    await window.open(THREAD)
    await window.button(name).click()
    await expect(window.log.locator(".chip")).to_have_text(ends)
    [click] = product.services.dismissals
    assert click.action == action


async def test_a_tools_question_without_fields_is_answered_by_the_button(product: Product, window: Window) -> None:
    await product.services.post(THREAD, QUESTION)
    await window.open(THREAD)
    await window.button("Answer").click()
    await expect(window.log).to_contain_text("Answered")
    [click] = product.services.answers
    assert click.values == {}


async def test_a_models_question_cannot_be_declined(product: Product, window: Window) -> None:
    await product.services.post(THREAD, replace(QUESTION, server=""))
    await window.open(THREAD)
    await expect(window.button("Answer")).to_be_visible()
    await expect(window.button("Decline")).to_have_count(0)


async def test_several_options_are_ticked_and_go_back_as_a_list(product: Product, window: Window) -> None:
    options = ("Guitar", "Piano", "Drums")
    fields = (
        FormField(name="a", label="Plays", type=FieldType.JSON, options=options, default='["Guitar"]'),
        FormField(name="b", label="Likes", type=FieldType.JSON, options=options, required=False),
        FormField(name="c", label="Hears", type=FieldType.JSON, options=options, required=False),
    )
    await product.services.post(THREAD, replace(QUESTION, fields=fields))
    await window.open(THREAD)
    await window.button("Answer").click()
    await expect(window.dialog).to_contain_text("The tool server shop asks this")
    plays, likes = (window.dialog.get_by_role("group", name=name) for name in ("Plays", "Likes"))
    await plays.get_by_label("Guitar").uncheck()
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.dialog).to_contain_text("Required")
    await plays.get_by_label("Drums").check()
    await plays.get_by_label("Piano").check()
    await likes.get_by_label("Guitar").check()
    await window.dialog.get_by_role("button", name="Send answer", exact=True).click()
    await expect(window.log).to_contain_text("Answered")
    [click] = product.services.answers
    assert click.values == {"a": ["Piano", "Drums"], "b": ["Guitar"], "c": ""}
