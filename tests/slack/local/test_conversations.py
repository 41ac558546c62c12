"""The first conversations, in a Slack that nobody here wrote, over signed requests."""

from __future__ import annotations

import pytest

from tests.slack.local.person import LocalPerson, buttons, shown
from tests.slack.local.values import inputs_of

pytestmark = [
    pytest.mark.node,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("workspace", ["events"], indirect=True),
]


async def test_a_mention_is_answered_in_its_thread_and_reading_needs_nobody(ana: LocalPerson) -> None:
    thread = await ana.mentions("what is on my calendar")
    answer = await thread.says("calendar")
    assert answer["thread_ts"] == thread.thread_ts
    assert thread.waiting() == []


async def test_a_task_is_added_after_a_click_on_approve(ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to buy milk")
    (card,) = await thread.cards()
    assert "tasks" in shown(card)
    await thread.clicks(card, "Approve")
    settled = await thread.shows(card, "Approved", "Ana")
    assert list(buttons(settled["blocks"])) == ["Details"]
    await thread.says("added", "buy milk")


async def test_a_rejection_says_why_in_a_modal_and_is_followed_by_a_corrected_proposal(ana: LocalPerson) -> None:
    thread = await ana.mentions("create a meeting called Standup tomorrow at 9am")
    (card,) = await thread.cards()
    modal = await thread.opens(card, "Reject…")
    (label,) = inputs_of(modal)
    assert await thread.submits(**{label: "should be 10am"}) == {}
    await thread.shows(card, "Rejected", "should be 10am")
    (corrected,) = await thread.cards()
    assert "10:00" in shown(corrected)
    await thread.clicks(corrected, "Approve")
    await thread.says("created", "standup")


async def test_a_call_is_edited_and_approved_in_one_modal(ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to buy bread")
    (card,) = await thread.cards()
    modal = await thread.opens(card, "Edit…")
    title = next(label for label, block in inputs_of(modal).items() if block["element"].get("initial_value"))
    assert await thread.submits(**{title: "buy rye bread"}) == {}
    await thread.shows(card, "Approved", "buy rye bread")
    await thread.says("added", "buy rye bread")


async def test_a_mistake_in_the_form_is_said_in_the_form_and_changes_nothing(ana: LocalPerson) -> None:
    thread = await ana.mentions("create a meeting called Review tomorrow at 9am")
    (card,) = await thread.cards()
    modal = await thread.opens(card, "Edit…")
    errors = await thread.submits(Attendees="[not JSON")
    assert set(errors) == {inputs_of(modal)["Attendees"]["block_id"]}
    assert thread.workspace.modals, "the form stays open"
    assert thread.waiting() == [card]
    assert await thread.submits(Attendees='["ben@example.org"]') == {}
    await thread.shows(card, "Approved", "ben@example.org")


async def test_all_that_wait_are_approved_in_one_go(ana: LocalPerson) -> None:
    thread = await ana.mentions("create 2 events: Breakfast at 8am and Dinner at 7pm")
    _, second = await thread.cards(2)
    modal = await thread.opens(second, "Approve all 2…")
    assert "Breakfast" in shown(modal)
    assert await thread.submits() == {}
    await thread.says("created", "breakfast", "dinner")
    await thread.cards(0)


async def test_a_new_message_takes_the_place_of_what_waits(ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to buy salt")
    (card,) = await thread.cards()
    await thread.writes("add a task to buy pepper")
    await thread.shows(card, "Replaced")
    (newer,) = await thread.cards()
    assert "pepper" in shown(newer)


async def test_something_unclear_is_asked_with_a_form(ana: LocalPerson) -> None:
    thread = await ana.mentions("schedule something")
    question = await thread.asks()
    modal = await thread.opens(question, "Answer…")
    by_type = {block["element"]["type"]: label for label, block in inputs_of(modal).items()}
    entered = {
        by_type["plain_text_input"]: "Planning",
        by_type["datepicker"]: "2030-01-07",
        by_type["timepicker"]: "14:00",
    }
    assert await thread.submits(**entered) == {}
    (card,) = await thread.cards()
    assert "Planning" in shown(card)
    await thread.clicks(card, "Approve")
    await thread.says("created", "planning")


async def test_a_plain_reply_answers_it_as_well(ana: LocalPerson) -> None:
    thread = await ana.mentions("schedule something")
    question = await thread.asks()
    await thread.writes("Retro tomorrow at 11am")
    (card,) = await thread.cards()
    assert "Retro" in shown(card)
    assert buttons((await thread.shows(question, "Retro"))["blocks"]) == {}
    await thread.clicks(card, "Approve")
    await thread.says("created", "retro")


async def test_one_of_two_events_is_approved_and_the_other_rejected(ana: LocalPerson) -> None:
    thread = await ana.mentions("create 2 events: Team Meeting at 10am and Lunch with Ben at 12pm")
    # Calls are judged side by side: whichever is asked first.
    second, first = sorted(await thread.cards(2), key=lambda card: "Team Meeting" in shown(card))
    await thread.clicks(first, "Approve")
    await thread.shows(first, "Approved", "Team Meeting")
    await thread.opens(second, "Reject…")
    assert await thread.submits() == {}
    await thread.shows(second, "Rejected")
    await thread.says("team meeting", "rejected")


async def test_somebody_else_may_not_approve_and_only_they_are_told(ana: LocalPerson, ben: LocalPerson) -> None:
    thread = await ana.mentions("add a task to water the plants")
    (card,) = await thread.cards()
    await thread.clicks(card, "Approve", user=ben.user)
    refusal = await thread.workspace.until(
        lambda: next((m for m in thread.workspace.messages() if m.get("ephemeral_to") == ben.user), None),
        "a refusal for Ben",
    )
    assert "You can’t approve this" in shown(refusal)
    assert thread.waiting() == [card]


async def test_stop_ends_what_waits(ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to call the bank")
    (card,) = await thread.cards()
    await thread.writes("stop")
    stopped = await thread.shows(card, "call the bank")
    await thread.cards(0)
    assert stopped["ts"] == card["ts"]


async def test_the_slash_command_begins_a_thread(ana: LocalPerson) -> None:
    await ana.commands("ask list my tasks")
    begun = await ana.workspace.until(
        lambda: next((m for m in ana.workspace.messages() if "list my tasks" in shown(m) and m.get("bot_id")), None),
        "the opening post",
    )
    assert "Ana" in shown(begun)
    await ana.workspace.until(
        lambda: [m for m in ana.workspace.messages() if m.get("thread_ts") == begun["ts"]], "an answer in its thread"
    )


async def test_a_direct_message_needs_no_mention(ben: LocalPerson) -> None:
    chat = await ben.writes_directly("add a task to learn Portuguese")
    (card,) = await chat.cards()
    await chat.clicks(card, "Approve")
    await chat.shows(card, "Approved", "Ben")
    await chat.says("added", "learn portuguese")


async def test_what_waits_is_on_the_home_tab_and_can_be_approved_there(ben: LocalPerson) -> None:
    thread = await ben.mentions("add a task to feed the cat")
    (card,) = await thread.cards()
    home = await ben.opens_home()
    assert "feed the cat" in shown(home)
    await ben.clicks_home("Approve", about="feed the cat")
    await thread.shows(card, "Approved", "Ben")
    await ben.workspace.until(lambda: "Approved" in shown(ben.workspace.homes[ben.user]), "a new Home")
