"""What a message means while something is pending in its thread."""

from __future__ import annotations

from typing import Any

import pytest

from bot.records import waiting
from bot.records.database import Transaction
from tests.fakes.openai_server import FakeOpenAI
from tests.support.tools import Workshop
from tests.support.visitor import Thread


async def test_a_new_message_of_the_requester_supersedes_what_waits(
    at_work: Thread, shop: Workshop, model: FakeOpenAI
) -> None:
    await at_work.send("use make what=lamp; look what=lamp")
    (card,) = await at_work.waiting()
    await at_work.send("forget it")
    await at_work.says("you said: forget it")
    await at_work.card(card["id"], "superseded")
    told = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert any("Superseded" in t and "Ana" in t for t in told)
    assert "lamp looks fine" in told
    assert (await at_work.approve(card["id"]))["kind"] == "already_settled"
    assert shop.done == []


async def test_a_superseded_turn_is_ended_without_asking_the_model_again(at_work: Thread, model: FakeOpenAI) -> None:
    await at_work.send("use make what=lamp")
    await at_work.waiting()
    await at_work.send("something else")
    await at_work.says("you said: something else")
    assert len(model.requests) == 2


async def test_text_is_never_an_approval(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.send("approve")
    await at_work.card(card["id"], "superseded")
    assert shop.done == []


async def test_a_plain_reply_answers_the_question(at_work: Thread, model: FakeOpenAI) -> None:
    await at_work.send("ask lamp")
    assert (await at_work.question())["question"] == "Which lamp?"
    await at_work.send("the tall one")
    assert (await at_work.question("answered"))["answer"] == "the tall one"
    await at_work.says("the tall one")


async def test_a_form_answers_the_question_with_typed_values(at_work: Thread, model: FakeOpenAI) -> None:
    await at_work.send("ask lamp")
    question = await at_work.question()
    wrong = await at_work.answer_form(question["id"], {"size": "very"})
    assert (wrong.status, list(wrong.body["errors"])) == (422, ["size"])
    assert (await at_work.answer_form(question["id"], {"size": "42"})).status == 200
    await at_work.says('"size": 42')
    assert (await at_work.answer_form(question["id"], {"size": "43"})).status == 409


async def test_stop_ends_the_turn_that_waits(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    await at_work.send("Stop!")
    await at_work.notice("stopped")
    await at_work.card(card["id"], "superseded")
    await at_work.send("still there?")
    await at_work.says("still there")
    assert shop.done == []


async def test_stop_does_not_queue_behind_a_running_call_and_says_that_its_outcome_is_unknown(
    at_work: Thread, shop: Workshop, model: FakeOpenAI
) -> None:
    await at_work.send("use make_slowly what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await shop.started.wait()
    assert (await at_work.stop()).status == 200
    await at_work.notice("stopped")
    await at_work.card(card["id"], "approved", result="outcome unknown")
    await at_work.send("and now?")
    await at_work.says("and now?")
    told = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert any(t.startswith("Outcome unknown") for t in told)


async def test_what_was_approved_and_not_begun_when_the_turn_was_stopped_is_given_up(
    at_work: Thread, shop: Workshop
) -> None:
    await at_work.send("use make_slowly what=lamp; make what=chair")
    slow, other = await at_work.waiting(2)
    await at_work.approve(slow["id"])
    await shop.started.wait()
    await at_work.card(slow["id"], "approved", result="running")
    await at_work.approve(other["id"])
    await at_work.stop()
    await at_work.card(other["id"], "superseded")
    await at_work.notice("stopped")
    assert shop.done == ["make_slowly lamp"]


async def test_there_is_nothing_to_stop_in_a_quiet_conversation(at_work: Thread) -> None:
    await at_work.send("hello")
    await at_work.says("hello")
    assert (await at_work.stop()).status == 403


async def test_the_same_message_delivered_twice_is_answered_once(at_work: Thread, model: FakeOpenAI) -> None:
    first, second = await at_work.send("hello", "same"), await at_work.send("hello", "same")
    assert (first.body["accepted"], second.body["accepted"]) == (True, False)
    await at_work.says("you said: hello")
    await at_work.send("next")
    await at_work.says("you said: next")
    assert len(model.requests) == 2


async def test_conversations_do_not_wait_for_each_other(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make_slowly what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await shop.started.wait()
    async with at_work.visitor.thread() as other:
        await other.send("hello")
        await other.says("you said: hello")
    assert at_work.approvals()[0]["result"] == "Running…" or not shop.may_end.is_set()
    shop.may_end.set()  # the product would wait for it when it ends


async def test_messages_of_one_conversation_are_handled_in_order(at_work: Thread, model: FakeOpenAI) -> None:
    for number in range(5):
        await at_work.send(f"number {number}")
    await at_work.says("you said: number 4")
    assert at_work.said == [f"You said: number {n}" for n in range(5)]


async def test_an_approval_at_the_very_moment_that_a_message_is_read_runs_first(
    at_work: Thread, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2: a turn does not begin over one that waits; rule 5: who was told "Approved" has approved it."""
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    look, clicked = waiting.in_thread, list[Any]()

    async def clicked_before(tx: Transaction, thread_id: str) -> waiting.Waiting:
        if not clicked:
            clicked.append("now")
            clicked.append(await at_work.approve(card["id"]))
        return await look(tx, thread_id)

    monkeypatch.setattr(waiting, "in_thread", clicked_before)
    await at_work.send("hello")
    await at_work.says("you said: hello")
    assert clicked[-1]["kind"] == "settled"
    assert shop.done == ["make lamp 1"]
    assert at_work.said[-2:] == ["Results: made lamp", "You said: hello"]
