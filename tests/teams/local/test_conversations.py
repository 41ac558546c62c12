"""The first conversations, in a Teams client that nobody here wrote: Microsoft's Agents Playground, in its own page."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.teams.local.playground import CHANNEL, GROUP, Client

pytestmark = [pytest.mark.node, pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_help_says_what_can_be_written(ana: Client) -> None:
    await ana.says("help")
    await ana.sees("your open requests")


async def test_reading_needs_nobody_and_the_answer_says_that_a_machine_wrote_it(ana: Client) -> None:
    await ana.says("what is on my calendar")
    await ana.sees("calendar", "AI generated")
    await ana.waiting(0)


async def test_a_task_is_added_after_a_click_on_approve(ana: Client) -> None:
    await ana.says("add a task to buy milk")
    await ana.waiting(1)
    await ana.presses("Approve", await ana.card("tasks"))
    await ana.waiting(0)
    await ana.card("Approved", "Ana Almeida")
    await ana.sees("Added the task")


async def test_a_rejection_says_why_on_the_card_and_is_followed_by_a_corrected_proposal(ana: Client) -> None:
    await ana.says("create a meeting called Review tomorrow at 9am")
    await ana.waiting(1)
    card = await ana.card("Review")
    await ana.presses("Reject…", card)
    await card.get_by_role("textbox").fill("should be 10am")
    await card.get_by_role("button", name="Reject", exact=True).last.click()
    await ana.card("Rejected", "should be 10am")
    await ana.waiting(1)
    await ana.presses("Approve", await ana.card("10:00", "Approve"))
    await ana.sees("Created")


async def test_a_question_is_answered_with_a_plain_reply(ana: Client) -> None:
    await ana.says("schedule something")
    await ana.card("Answer")
    await ana.says("Planning tomorrow at 3pm")
    await ana.waiting(1)


async def test_a_mention_in_a_channel_is_answered_in_its_thread(ana: Client) -> None:
    await ana.opens(CHANNEL)
    await ana.says("add a task to buy bread", mention=True)
    await ana.waiting(1)
    await ana.presses("Approve", await ana.card("buy bread"))
    await ana.card("Approved", "Ana Almeida")
    await ana.replies("list my tasks", mention=True)
    await ana.sees("buy bread")
    await ana.waiting(0)


async def test_in_a_group_chat_it_listens_to_mentions_only(ana: Client) -> None:
    await ana.opens(GROUP)
    await ana.says("add a task to buy salt")
    await ana.says("add a task to buy pepper", mention=True)
    card = await ana.waiting(1)
    await expect(card).to_contain_text("buy pepper")
