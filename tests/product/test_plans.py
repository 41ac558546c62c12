"""Plans in the whole product: a request with several parts, two agents, an approval in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.api.serving import EventReader
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.support.finance import ANSWER, REQUEST, acts_of, brain, finance_company, offered_to
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import Json, Thread, visiting


@pytest.fixture
async def bookkeeping_model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
async def company(home: ProductFolder, bookkeeping_model: FakeOpenAI) -> AsyncIterator[Thread]:
    """A new conversation of Ana's in a company with agents."""
    finance_company(home, bookkeeping_model)
    async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        yield thread


def states(thread: Thread) -> dict[str, str]:
    """How far the tasks of the newest plan are, as the page shows them."""
    plans = thread.contents("plan")
    return {task["id"]: task["status"] for task in plans[-1]["tasks"]} if plans else {}


async def stand(thread: Thread, **expected: str) -> None:
    """Wait until the tasks stand so."""
    await thread.until(lambda: states(thread) == expected, str(expected))


async def asked_about(thread: Thread, tool: str) -> Json:
    """Wait for the card of a call of this tool."""
    card: Json = await thread.until(
        lambda: next((card for card in thread.approvals("pending") if card["tool"] == tool), None), f"a card of {tool}"
    )
    return card


async def test_a_request_with_several_parts_is_done_by_two_agents_with_their_approvals_in_one_thread(
    home: ProductFolder, company: Thread, bookkeeping_model: FakeOpenAI
) -> None:
    await company.send(REQUEST)
    flag = await asked_about(company, "flag")
    await stand(company, find="done", orders="done", check="waiting", mail="blocked")
    assert acts_of(home) == []
    await company.approve(flag["id"])
    draft = await asked_about(company, "draft")
    await stand(company, find="done", orders="done", check="done", mail="waiting")
    await company.approve(draft["id"])
    assert await company.says("INV-8") == ANSWER
    await stand(company, find="done", orders="done", check="done", mail="done")
    assert acts_of(home) == ["flag INV-8", "draft"]
    # What the agents said is no answer to Ana.
    assert company.said == ["I’ll split this up.", ANSWER]
    by_agent = {
        str(r["messages"][0]["content"]).split("You are the ")[-1].split(".")[0]: offered_to(r)
        for r in bookkeeping_model.requests
    }
    assert by_agent["writer"] == {"mail__draft", "request_clarification"}
    assert by_agent["bookkeeper"] == {"folder__list_invoices", "orders__order", "orders__flag", "request_clarification"}


async def test_stop_ends_all_tasks_and_what_they_asked(home: ProductFolder, company: Thread) -> None:
    await company.send(REQUEST)
    flag = await asked_about(company, "flag")
    assert (await company.stop()).status == 200
    await company.card(flag["id"], "superseded")
    await stand(company, find="done", orders="done", check="stopped", mail="stopped")
    assert (await company.approve(flag["id"]))["kind"] == "already_settled"
    await company.send("hey there")
    await company.says("hello there")
    assert acts_of(home) == []


async def test_a_rejection_is_told_to_the_agent_that_asked_and_the_others_go_on(
    home: ProductFolder, company: Thread, bookkeeping_model: FakeOpenAI
) -> None:
    await company.send(REQUEST)
    await company.reject((await asked_about(company, "flag"))["id"], "they know")
    draft = await asked_about(company, "draft")
    (told,) = [r for r in bookkeeping_model.requests if r["messages"][-1]["role"] == "tool" and "they know" in str(r)][
        :1
    ]
    assert "You are the bookkeeper" in str(told["messages"][0]["content"])
    await company.approve(draft["id"])
    assert await company.says("INV-8") == ANSWER
    assert acts_of(home) == ["draft"]


@pytest.mark.sqlite  # with PostgreSQL programs need a token; what they read is read in the same way
async def test_a_program_reads_the_plan_as_a_post_and_hears_how_its_tasks_get_on(
    home: ProductFolder, bookkeeping_model: FakeOpenAI
) -> None:
    finance_company(home, bookkeeping_model)
    async with product_here(home) as url, aiohttp.ClientSession() as http:
        async with http.post(f"{url}/api/v1/threads") as made:
            thread = f"{url}/api/v1/threads/{(await made.json())['id']}"
        async with http.get(f"{thread}/events") as response:
            events = EventReader(response)
            async with http.post(f"{thread}/messages", json={"text": REQUEST}) as sent:
                assert sent.status < 300
            plan: Json = {}
            seen = []
            while [task["status"] for task in plan.get("tasks", [])] != ["done", "done", "waiting", "blocked"]:
                event = await events.next()
                assert event is not None
                if event.name == "post" and event.data["content"]["kind"] == "plan":
                    plan = event.data["content"]
                    seen.append((event.data["id"], event.data["revision"]))
    assert {post for post, _revision in seen} == {f"plan:{plan['id']}"}
    revisions = [revision for _post, revision in seen]
    assert len(revisions) > 1 and revisions == sorted(set(revisions))
    assert [(task["id"], task["agent"], task["state"]) for task in plan["tasks"]][2:] == [
        ("check", "bookkeeper", "waiting for someone"),
        ("mail", "writer", "waits for check"),
    ]


def asking_brain(request: Request) -> Reply:
    """As `brain`, but whoever drafts the mail asks for its tone first."""
    messages = request["messages"]
    if not str(messages[-1]["content"]).startswith("Draft a mail"):
        return brain(request)
    tone = {"name": "tone", "label": "Tone", "type": "text"}
    return Reply(calls=[ToolUse("request_clarification", {"question": "Which tone?", "fields": [tone]})])


async def test_a_question_of_a_task_names_its_agent_and_is_answered_in_the_conversation(home: ProductFolder) -> None:
    async with fake_openai(asking_brain) as model:
        finance_company(home, model)
        async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
            await thread.send(REQUEST)
            await thread.approve((await asked_about(thread, "flag"))["id"])
            question = await thread.question()
            assert (question["question"], question["agent"]) == ("Which tone?", "writer")
            await stand(thread, find="done", orders="done", check="done", mail="waiting")
            assert (await thread.answer_form(question["id"], {"tone": "friendly"})).status == 200
            await stand(thread, find="done", orders="done", check="done", mail="done")
            assert await thread.says("INV-8") == ANSWER


async def test_while_agents_work_a_message_waits_and_while_they_ask_it_ends_the_plan(
    home: ProductFolder, company: Thread
) -> None:
    await company.send(REQUEST)
    flag = await asked_about(company, "flag")
    await stand(company, find="done", orders="done", check="waiting", mail="blocked")
    await company.send("hey instead")
    await company.says("hello instead")
    await company.card(flag["id"], "superseded")
    await stand(company, find="done", orders="done", check="stopped", mail="stopped")
    assert acts_of(home) == []
