"""Everything that needs somebody, of all conversations, in one list; and how they are told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from graph.interrupts import FormField
from tests.support.views import NOW, a_question, a_sign_in, an_approval, an_outcome
from tests.web.browsing import Window

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
IN_SLACK = "slack:T1:C1:1"


async def open_inbox(window: Window) -> None:
    await window.page.get_by_role("link", name="Inbox").click()
    await expect(window.page.get_by_role("main", name="Inbox")).to_be_visible()


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


async def test_a_request_that_is_asked_again_says_why_and_not_what_the_click_before_got(window: Window) -> None:
    services = window.product.services
    services.of["web:other"] = "web:ben"
    await services.post("web:other", an_approval("a/1", requester="Ben", handed_to=("web:ana",)))
    services.sender.hub.threads_changed()
    await open_inbox(window)
    await window.button("Approve").click()
    answer = window.page.locator("#inbox-answer")
    await expect(answer).to_have_text("Approved.")
    why = "Asked again: calendar has changed since"
    await services.change(an_approval("a/1", requester="Ben", status="void", result=why, decided_by=("Ana",)))
    await services.post("web:other", an_approval("a/2", requester="Ben", handed_to=("web:ana",), again=why))
    services.sender.hub.threads_changed()
    decide = window.page.get_by_role("list", name="Needs your approval")
    await expect(decide).to_contain_text(why)
    await expect(answer).to_be_empty()
    await expect(window.page.get_by_role("list", name="You decided").get_by_text("Asked again")).to_have_count(1)


async def test_what_one_decided_lately_says_who_asked_how_it_ended_and_whether_it_ran(window: Window) -> None:
    services = window.product.services
    decided = {"requester": "Ben", "requester_ids": ("web:ben",), "decided_by": ("Ana",), "decided_at": NOW}
    for number, (status, result, tone) in enumerate(
        [
            ("approved", "Done: Standup", "success"),
            ("approved", "Failed: no such calendar", "error"),
            ("approved", "Running…", "info"),
            ("approved", "", "info"),
            ("rejected", "", "info"),
        ]
    ):
        services.of[f"web:{number}"] = "web:ben"
        view = an_approval(f"a/{number}", status=status, result=result, result_tone=tone, **decided)
        await services.post(f"web:{number}", view)
    await open_inbox(window)
    listed = window.page.get_by_role("list", name="You decided").locator("> li")
    await expect(listed).to_have_count(5)
    await expect(listed.locator(".inbox-line > :first-child")).to_have_text(["Requested by Ben"] * 5)
    await expect(listed.locator(".ran")).to_have_text(["Ran", "Failed", "Running…", "Not run yet"])
    await expect(listed.last).to_contain_text("Rejected by Ana")
    await expect(window.page.get_by_text("You’re all caught up")).to_be_visible()
    running = an_approval("a/2", status="approved", result="Done: Standup", result_tone="success", **decided)
    await services.change(running)
    services.sender.hub.threads_changed()
    await expect(listed.locator(".ran")).to_have_text(["Ran", "Failed", "Ran", "Not run yet"])


async def test_after_a_form_in_the_inbox_the_focus_is_on_what_is_next(window: Window) -> None:
    services = window.product.services
    for each in "ab":
        services.of[f"web:{each}"] = "web:ben"
        view = an_approval(each, requester="Ben", handed_to=("web:ana",), arguments={"name": f"Event {each}"})
        await services.post(f"web:{each}", view)
    services.sender.hub.threads_changed()
    await open_inbox(window)
    waiting = window.page.get_by_role("list", name="Needs your approval").get_by_role("article")
    for left in (1, 0):
        await waiting.first.get_by_role("button", name="Reject…").click()
        await window.dialog.get_by_label("Reason").press("Control+Enter")
        await expect(waiting).to_have_count(left)
        if left:
            await expect(waiting.first).to_be_focused()
    await expect(window.page.locator("#inbox-lists :focus, #inbox-title:focus")).to_have_count(1)


async def test_whoever_asked_waits_for_someone_other_than_themselves(window: Window) -> None:
    services = window.product.services
    how = {"four_eyes": True, "approvers": ("any",), "may_decide": "someone other than Ana"}
    services.may_decide["a"] = {"web:ben"}
    await services.post("web:one", an_approval("a", requester_ids=("web:ana",), **how))
    await services.post("web:two", an_approval("b", requester_ids=("web:chloe",), requester="Chloe", **how))
    services.sender.hub.threads_changed()
    await open_inbox(window)
    await expect(window.page.get_by_text("Waiting for someone other than you:")).to_be_visible()
    await window.open("web:one")
    await expect(window.log).to_contain_text("Waiting for someone other than you")
    await window.open("web:two")
    await expect(window.log).to_contain_text("Approver: someone other than Chloe")


async def test_the_heading_stands_once_and_counts_what_its_lists_show(window: Window) -> None:
    services = window.product.services
    await services.post("web:one", an_approval("a", handed_to=("web:ana",)))
    await services.post("web:two", a_question("q1", requester_id="web:ana"))
    services.sender.hub.threads_changed()
    await expect(window.page.get_by_role("link", name="Inbox, 2 need you")).to_be_visible()
    await open_inbox(window)
    await expect(window.page.locator("h1, h2").get_by_text("Inbox")).to_have_count(1)
    shown = [window.page.get_by_role("list", name=name) for name in ("Needs your approval", "Needs your answer")]
    for each in shown:
        await expect(each.locator("> li")).to_have_count(1)


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
