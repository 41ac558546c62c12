"""What somebody may decide in conversations of others, above whichever conversation is open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import expect

from graph.interrupts import FormField
from tests.support.views import a_question, a_sign_in, an_approval, an_outcome
from tests.web.browsing import Window

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
IN_SLACK = "slack:T1:C1:1"


async def test_what_was_asked_elsewhere_is_decided_in_the_list(window: Window) -> None:
    services = window.product.services
    services.of[IN_SLACK] = "slack:T1:U2"
    await services.post(IN_SLACK, an_approval("s/1", requester="Ben", handed_to=("web:ana",)))
    asked = window.page.get_by_role("list", name="Asked of you")
    await asked.get_by_text("You may decide what Ben asks for in Slack").click()
    await services.post("web:other", an_approval("a/2", requester="Chloe", handed_to=("web:ana",)))
    services.of["web:other"] = "web:chloe"
    services.sender.hub.threads_changed()
    await expect(asked.get_by_role("link")).to_have_attribute("href", "#web%3Aother")
    await asked.get_by_role("button", name="Approve", exact=True).click()  # it stays open when the list changes
    await expect(asked.get_by_role("article")).to_have_count(0)
    assert services.approvals["s/1"].status == "approved"


async def test_what_waits_for_ones_own_other_agents_is_answered_in_the_list(window: Window) -> None:
    """No conversation shows it: whoever is asked finds it beside whichever one is open."""
    services, ana = window.product.services, "web:ana"
    asked = window.page.get_by_role("list", name="Asked of you")
    question = a_question("q/1", requester_id=ana, server="cinema", fields=(FormField(name="seat", label="Seat"),))
    contents = (
        replace(question, client="claude-code"),
        a_sign_in("s/1", owner_id=ana, client="claude-code"),
        an_outcome("o/1", requester_id=ana, client="claude-code"),
        an_approval("a/1", requester_ids=(ana,), client="claude-code"),
    )
    services.links["s/1"] = "https://accounts.example.com/authorize"
    for number, content in enumerate(contents):
        services.of[f"web:mcp.{number}"] = ana
        await services.post(f"web:mcp.{number}", content)

    await asked.get_by_text("cinema has a question about what you asked through claude-code").click()
    await asked.get_by_role("button", name="Answer").click()
    await window.page.get_by_label("Seat").fill("7a")
    await window.page.get_by_role("button", name="Send answer").click()
    await expect(asked.get_by_text("cinema has a question")).to_have_count(0)
    assert [answer.values for answer in services.answers] == [{"seat": "7a"}]

    await asked.get_by_text("mail needs you to sign in for what you asked through claude-code").click()
    await asked.get_by_role("button", name="Get my link").click()
    link = asked.get_by_role("link", name="Open the sign-in page")
    await expect(link).to_have_attribute("href", "https://accounts.example.com/authorize")
    await asked.get_by_role("button", name="I have signed in").click()
    await expect(asked.get_by_text("mail needs you")).to_have_count(0)

    await asked.get_by_text("Nobody knows what came of what you asked through claude-code").click()
    await asked.get_by_role("button", name="It was done").click()
    await expect(asked.get_by_text("Nobody knows what came of what")).to_have_count(0)

    await asked.get_by_text("You asked through claude-code, and it waits for a decision").click()
    await expect(asked.get_by_text("Requested by")).to_be_visible()
    await expect(asked.get_by_text("Ana, through claude-code")).to_be_visible()
    await expect(asked.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    await asked.get_by_role("button", name="Withdraw").click()
    await expect(asked.get_by_role("listitem")).to_have_count(0)


async def test_what_a_program_calls_itself_is_literal_text(window: Window) -> None:
    services = window.product.services
    services.of[IN_SLACK] = "slack:T1:U2"
    name = "<b>cursor</b>\u202e"
    await services.post(IN_SLACK, an_approval("s/1", requester="Ben", client=name, handed_to=("web:ana",)))
    asked = window.page.get_by_role("list", name="Asked of you")
    await asked.get_by_text("You may decide what Ben asks for through <b>cursor</b>⟨U+202E⟩: ").click()
    await expect(asked.get_by_text("Ben, through <b>cursor</b>⟨U+202E⟩ ·")).to_be_visible()
