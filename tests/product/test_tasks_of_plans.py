"""Tasks of plans that fail, ask, are stopped, or belong to one person: what becomes of them and of the others."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.product.accounts import AccountStage, stage
from tests.product.test_plans import stand
from tests.support.notes import asked_to_sign_in, signs_in
from tests.support.planning import SURPRISE, planning, with_agents, with_worker
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Json, Thread, visiting

__all__ = ["stage"]

BY_BEN = """
version: 1
rules:
  - name: looking is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: by Ben
    match: {tool: make}
    decide: ask
    approvers: ["web:ben"]
"""
NAMED = """
version: 1
rules:
  - name: looking is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: making
    match: {server: workshop, tool: make}
    decide: ask
"""
SHORT = """
version: 1
rules:
  - name: looking is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: quickly or not at all
    match: {tool: make}
    decide: ask
    expiresIn: 1s
"""


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(planning) as server:
        yield server


@pytest.fixture
def workshop_home(home: ProductFolder, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A company with one agent that can be given tasks."""
    return with_worker(home, shop, model)


def shown(card: Json) -> str:
    """The path of what a card shows."""
    return f"/api/approvals/{quote(card['id'], safe='')}/arguments?page=0"


async def test_a_task_whose_model_fails_is_told_and_what_depends_on_it_is_not_run(
    at_work: Thread, shop: Workshop
) -> None:
    await at_work.send("plan bad: unlucky, after(bad): use make what=lamp, good: use look what=chair")
    await stand(at_work, bad="failed", after="not_run", good="done")
    told = await at_work.says("results")
    assert "bad (worker): failed" in told
    assert "after (worker): not run" in told
    assert "good (worker): done" in told
    assert shop.done == []


async def test_a_task_that_reaches_a_limit_has_failed_and_what_depends_on_it_is_not_run(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.variables["LIMIT_TOKENS_PER_DAY"] = "20"
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        await thread.send("plan look: use look what=lamp, after(look): use make what=lamp, last(after): hello")
        await stand(thread, look="failed", after="not_run", last="not_run")
        await thread.until(lambda: thread.said, "an answer")
    assert shop.done == []


async def test_the_tasks_of_a_plan_share_the_calls_that_they_may_make(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.variables["LIMIT_CALLS_PER_TURN"] = "2"
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        await thread.send("plan a: use look what=lamp; look what=chair, b: use look what=desk; look what=bed")
        await thread.says("lamp looks fine", "chair looks fine", "desk looks fine", "bed looks fine")
        shop.looked.clear()
        tasks = ", ".join(f"{each}: use look what={each}; look what=more" for each in "abcdef")
        await thread.send(f"plan {tasks}")
        await thread.says("Limited: one turn may make 1 tool calls", "f looks fine")
    assert sorted(shop.looked) == list("abcdef")


async def test_a_question_of_a_task_is_answered_by_its_form(at_work: Thread) -> None:
    await at_work.send("plan ask: ask lamp, look: use look what=chair")
    question = await at_work.question()
    await stand(at_work, ask="waiting", look="done")
    assert (await at_work.answer_form(question["id"], {"size": 4})).status == 200
    await stand(at_work, ask="done", look="done")
    assert '"size": 4' in await at_work.says("results")


async def test_a_question_of_a_task_is_answered_by_a_plain_reply(at_work: Thread) -> None:
    await at_work.send("plan ask: ask lamp, look: use look what=chair")
    await at_work.question()
    await at_work.send("size is 4")
    await stand(at_work, ask="done", look="done")
    await at_work.says("results", "size is 4")
    assert len(at_work.said) == 1, "it began no turn"


async def test_an_approval_of_a_task_expires_and_the_plan_goes_on(workshop_home: ProductFolder, shop: Workshop) -> None:
    workshop_home.policy(SHORT)
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        await thread.send("plan make: use make what=lamp, look: use look what=chair")
        (card,) = await thread.waiting()
        await thread.card(card["id"], "expired")
        await stand(thread, make="done", look="done")
        await thread.says("results", "expired")
    assert shop.done == []


async def test_what_failed_in_a_task_is_tried_again_in_the_conversation(at_work: Thread, model: FakeOpenAI) -> None:
    await at_work.send("plan fail: use fail what=lamp, look: use look what=chair")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    failed = await at_work.card(card["id"], "approved", result="failed: ")
    await at_work.says("results")
    assert failed["retry_offered"]
    path = f"/api/approvals/{quote(card['id'], safe='')}/retry"
    assert (await at_work.visitor.post(path, {"id": "c1"})).status == 200
    again = await at_work.until(lambda: at_work.approvals("pending"))
    await at_work.approve(again[0]["id"])
    await at_work.until(lambda: len(at_work.said) == 2, "the answer to the retry")
    assert "lamp is broken" in at_work.said[-1]
    assert "You are the worker" in str(model.requests[-1]["messages"][0]["content"])


async def test_stop_breaks_off_the_call_of_a_task_and_says_that_nobody_knows_what_came_of_it(
    at_work: Thread, shop: Workshop, model: FakeOpenAI
) -> None:
    await at_work.send("plan slow: use make_slowly what=lamp, after(slow): use make what=chair")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await _begun(at_work, card["id"])
    assert (await at_work.stop()).status == 200
    await stand(at_work, slow="stopped", after="stopped")
    await at_work.card(card["id"], "approved", result="unknown")
    await at_work.notice("stopped")
    assert shop.done == ["make_slowly lamp"]
    await at_work.send("hello")
    await at_work.says("hello")
    (told,) = [str(m["content"]) for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert "Called all the same: workshop › make_slowly (outcome unknown)" in told


async def _begun(thread: Thread, card: str) -> None:
    await thread.until(
        lambda: any(c["id"] == card and "running" in str(c).lower() for c in thread.approvals("approved")), "it runs"
    )


async def test_whoever_writes_while_agents_work_is_told_to_wait(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("plan slow: use make_slowly what=lamp, look: use look what=chair")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await _begun(at_work, card["id"])
    await at_work.send("hello")
    await at_work.notice("still working on your plan")
    shop.may_end.set()
    await at_work.says("results", "lamp")
    await stand(at_work, slow="done", look="done")


async def test_two_plans_and_a_call_of_one_message_go_on_side_by_side(at_work: Thread, shop: Workshop) -> None:
    await at_work.send(
        "plan a: use look what=lamp, b: use look what=chair and plan c: use make what=bed, d: use look what=sofa "
        "and plan use make what=door"
    )
    cards = await at_work.waiting(2)
    for card in cards:
        await at_work.approve(card["id"])
    told = await at_work.says("results")
    assert [name in told for name in ("a (worker)", "b (worker)", "c (worker)", "d (worker)")] == [True] * 4
    assert sorted(shop.done) == ["make bed 1", "make door 1"]
    assert len(at_work.contents("plan")) == 2


async def test_deleting_the_conversation_ends_its_plan_and_nobody_sees_its_cards(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(BY_BEN)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
        ben.thread() as elsewhere,
    ):
        await thread.send("plan make: use make what=lamp, look: use look what=chair")
        (card,) = await thread.waiting()
        await elsewhere.until(lambda: elsewhere.asked, "Ben is asked")
        path = f"/api/threads/{quote(thread.thread_id, safe='')}"
        assert (await ana.post(f"{path}/deletion", {"id": uuid.uuid4().hex})).status == 200
        await elsewhere.until(lambda: not elsewhere.asked, "Ben is asked no more")
        assert (await ben.get(shown(card))).status == 404
        assert (await elsewhere.approve(card["id"]))["kind"] != "settled"
    assert shop.done == []


async def test_an_approver_of_a_task_sees_its_turn_and_its_card_and_others_see_nothing(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(BY_BEN)
    async with (
        product_here(workshop_home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        visiting(url, "chloe") as chloe,
        ana.thread() as thread,
    ):
        await thread.send("plan make: use make what=lamp, look: use look what=chair")
        (card,) = await thread.waiting()
        assert (await chloe.get(shown(card))).status == 404
        assert (await ben.get(shown(card))).status == 200
        async with ben.thread(thread.thread_id) as seen:
            assert [e["text"] for e in seen.entries.values() if e["kind"] == "message"] == [
                "plan make: use make what=lamp, look: use look what=chair"
            ]
            assert [each["id"] for each in seen.approvals()] == [card["id"]]
            assert (await thread.approve(card["id"]))["kind"] == "refused"
            assert (await seen.approve(card["id"]))["kind"] == "settled"
            await seen.says("results")
    assert shop.done == ["make lamp 1"]


@pytest.mark.parametrize("asked_for", ["use make what=lamp", ""])
async def test_in_safe_write_a_task_needs_the_requesters_own_words_and_those_of_the_plan_do_not_count(
    workshop_home: ProductFolder, shop: Workshop, asked_for: str
) -> None:
    workshop_home.variables["AGENT_MODE"] = "safeWrite"
    workshop_home.policy(NAMED)
    async with product_here(workshop_home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        # The worker quotes its instruction: it is in Ana's message, or the plan alone has it.
        await thread.send(f"plan make: {asked_for or SURPRISE}, look: use look what=chair")
        if asked_for:
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
        told = await thread.says("results")
    assert ("needs a quote" in told) is not bool(asked_for)
    assert shop.done == (["make lamp 1"] if asked_for else [])


async def test_what_a_task_found_over_an_account_is_its_owners_alone_and_so_is_what_follows_from_it(
    stage: AccountStage,
) -> None:
    with_agents(stage.home, "notes")
    async with product_here(stage.home) as url:
        await stage.learn_the_tools(url)
        async with stage.writing(url, "ana") as ana:
            await ana.send("plan write: use notes__write what=milk, after(write): what of it, other: hello")
            await asked_to_sign_in(ana)
            await stand(ana, write="waiting", after="blocked", other="done")
            await signs_in(stage.notes, ana, "ana-at-notes")
            await stand(ana, write="done", after="done", other="done")
            await ana.says("results", "ana-at-notes wrote milk")
            (plan,) = ana.contents("plan")
            assert {task["id"]: task["result"] for task in plan["tasks"]} == {
                "write": "",
                "after": "",
                "other": "You said: hello",
            }
    assert stage.notes.written == [("ana-at-notes", "milk")]
