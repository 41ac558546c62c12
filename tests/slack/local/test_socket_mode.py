"""The same Slack over Socket Mode: a message, a click, a form and a command arrive differently there. What is done with
them is the same (`test_conversations.py`)."""

from __future__ import annotations

import pytest

from tests.slack.local.person import LocalPerson, shown
from tests.slack.local.values import inputs_of

pytestmark = [
    pytest.mark.node,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("workspace", ["socket"], indirect=True),
]


async def test_a_task_is_added_after_a_click_on_approve(ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to buy milk")
    (card,) = await thread.cards()
    await thread.clicks(card, "Approve")
    await thread.shows(card, "Approved", "Ana")
    await thread.says("added", "buy milk")


async def test_a_mistake_in_the_form_is_said_in_the_form(ana: LocalPerson) -> None:
    thread = await ana.mentions("create a meeting called Review tomorrow at 9am")
    (card,) = await thread.cards()
    modal = await thread.opens(card, "Edit…")
    errors = await thread.submits(Attendees="[not JSON")
    assert set(errors) == {inputs_of(modal)["Attendees"]["block_id"]}
    assert await thread.submits(Attendees='["ben@example.org"]') == {}
    await thread.shows(card, "Approved", "ben@example.org")


async def test_the_slash_command_begins_a_thread(ana: LocalPerson) -> None:
    await ana.commands("ask list my tasks")
    begun = await ana.workspace.until(
        lambda: next((m for m in ana.workspace.messages() if "list my tasks" in shown(m) and m.get("bot_id")), None),
        "the opening post",
    )
    await ana.workspace.until(
        lambda: [m for m in ana.workspace.messages() if m.get("thread_ts") == begun["ts"]], "an answer in its thread"
    )
