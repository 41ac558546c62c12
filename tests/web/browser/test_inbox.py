"""Everything that needs somebody, of all conversations, in one list; and how they are told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from graph.interrupts import FormField
from tests.support.views import a_question, a_sign_in, an_approval, an_outcome
from tests.web.browsing import Window

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
IN_SLACK = "slack:T1:C1:1"


async def open_inbox(window: Window) -> None:
    await window.page.get_by_role("link", name="Needs your approval").click()
    await expect(window.page.get_by_role("main", name="Needs your approval")).to_be_visible()


async def test_requests_of_others_are_decided_in_the_inbox_wherever_they_were_made(window: Window) -> None:
    services = window.product.services
    services.of[IN_SLACK] = "slack:T1:U2"
    services.of["web:other"] = "web:chloe"
    await services.post(IN_SLACK, an_approval("s/1", requester="Ben", handed_to=("web:ana",)))
    await services.post("web:other", an_approval("a/2", requester="Chloe", handed_to=("web:ana",)))
    services.sender.hub.threads_changed()
    await expect(window.page).to_have_title("(2) Countersign")
    await open_inbox(window)
    decide = window.page.get_by_role("list", name="Needs your approval")
    await expect(decide.locator("> li")).to_have_count(2)
    await expect(decide.get_by_text("Ben needs your approval")).to_be_visible()
    await expect(decide.get_by_text("in Slack")).to_be_visible()
    await expect(decide.get_by_role("link", name="Open conversation")).to_have_attribute("href", "#web%3Aother")
    await decide.locator("li").filter(has_text="Ben needs").get_by_role("button", name="Approve", exact=True).click()
    await expect(decide.locator("> li")).to_have_count(1)
    await expect(window.page.locator("#inbox-answer")).to_have_text("Approved.")
    await expect(window.page).to_have_title("(1) Countersign")
    assert services.approvals["s/1"].status == "approved"
    await decide.get_by_role("button", name="Approve", exact=True).click()
    await expect(window.page.get_by_text("You’re all caught up")).to_be_visible()
    await expect(window.page).to_have_title("Countersign")


async def test_what_one_asked_for_oneself_says_whom_it_waits_for_and_counts_for_nobody(window: Window) -> None:
    services = window.product.services
    await services.post(
        "web:one", an_approval("a", requester="Ana", requester_ids=("web:ana",), may_decide="Ben", handed_to=())
    )
    services.sender.hub.threads_changed()
    await open_inbox(window)
    await expect(window.page.get_by_text("Waiting for Ben:")).to_be_visible()
    await expect(window.page.get_by_text("Ana needs your approval")).to_have_count(0)
    await expect(window.page).to_have_title("Countersign")


async def test_what_waits_for_ones_own_other_agents_is_answered_in_the_inbox(window: Window) -> None:
    """No conversation shows it."""
    services, ana = window.product.services, "web:ana"
    question = a_question("q/1", requester_id=ana, server="cinema", fields=(FormField(name="seat", label="Seat"),))
    contents = (
        replace(question, client="claude-code"),
        a_sign_in("s/1", owner_id=ana, client="claude-code"),
        an_outcome("o/1", requester_id=ana, client="claude-code"),
    )
    for number, content in enumerate(contents):
        services.of[f"web:mcp.{number}"] = ana
        await services.post(f"web:mcp.{number}", content)
    await open_inbox(window)
    answer = window.page.get_by_role("list", name="Needs your answer")
    await expect(answer.get_by_text("mail needs you to sign in for your request through claude-code")).to_be_visible()
    await expect(answer.get_by_text("Did this go through?").first).to_be_visible()
    cinema = answer.locator("li").filter(has_text="cinema has a question")
    await cinema.get_by_role("button", name="Answer").click()
    await window.page.get_by_label("Seat").fill("7a")
    await window.dialog.locator("button[type=submit]").click()
    await expect(cinema).to_have_count(0)
    assert [given.values for given in services.answers] == [{"seat": "7a"}]


async def test_what_a_program_calls_itself_is_literal_text(window: Window) -> None:
    services = window.product.services
    services.of[IN_SLACK] = "slack:T1:U2"
    name = "<b>cursor</b>\u202e"
    await services.post(IN_SLACK, an_approval("s/1", requester="Ben", client=name, handed_to=("web:ana",)))
    await open_inbox(window)
    await expect(window.page.get_by_text("through <b>cursor</b>⟨U+202E⟩").first).to_be_visible()


async def test_a_badge_counts_what_needs_its_reader_and_not_what_others_decide(window: Window) -> None:
    services = window.product.services
    await services.post("web:one", an_approval("a", requester_ids=("web:ana",), may_decide="Ben"))
    await services.post("web:two", an_approval("b", requester_ids=("web:ana",), handed_to=("web:ana",)))
    services.sender.hub.threads_changed()
    badges = window.page.locator("#threads .badge")
    await expect(badges).to_have_count(1)
    await expect(window.page.locator('#threads a[href="#web%3Atwo"] .badge')).to_have_text("11 needs you")


async def test_a_notification_says_who_asks_for_what_without_arguments_and_only_while_nobody_looks(
    window: Window,
) -> None:
    services = window.product.services
    services.of["web:other"] = "web:ben"
    await window.page.evaluate(
        """() => {
          window.told = [];
          window.Notification = class { static permission = "granted"; constructor(text) { window.told.push(text); } };
          localStorage.setItem("countersign-notifications", "on");
        }"""
    )
    await services.post("web:other", an_approval("a", requester="Ben", handed_to=("web:ana",)))
    services.sender.hub.threads_changed()
    await expect(window.page).to_have_title("(1) Countersign")
    assert await window.page.evaluate("window.told") == []
    await window.page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })")
    secret = {"name": "secret merger"}
    await services.post("web:other", an_approval("b", requester="Ben", handed_to=("web:ana",), arguments=secret))
    services.sender.hub.threads_changed()
    await expect(window.page).to_have_title("(2) Countersign")
    assert await window.page.evaluate("window.told") == ["Ben needs your approval: Create event"]
    await window.page.evaluate("localStorage.clear()")
