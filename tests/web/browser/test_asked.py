"""What somebody may decide in conversations of others, above whichever conversation is open."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.views import an_approval
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
