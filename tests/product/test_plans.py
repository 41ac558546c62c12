"""Plans in the whole product: a request with several parts, two agents, an approval in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

import aiohttp
import pytest

from tests.api.serving import EventReader
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.support.brain import obedient
from tests.support.finance import AGENTS, ANSWER, REQUEST, TASKS, acts_of, brain, finance_company, offered_to
from tests.support.fixtures import connect
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Json, Thread, visiting

TWO_MAKERS = """
version: 1
agents:
  - {name: breaker, description: Breaks things., systemMessage: You break things., servers: [workshop]}
  - {name: maker, description: Makes things., systemMessage: You make things., servers: [workshop]}
"""
BY_BEN = 'version: 1\nrules: [{name: Ben decides, match: {}, decide: ask, approvers: [requester, "web:ben"]}]\n'
BEN_DECIDES = """
version: 1
rules:
  - {name: looking is free, match: {annotations: {readOnlyHint: true}}, decide: allow}
  - {name: Ben decides, match: {}, decide: ask, approvers: ["web:ben"]}
"""


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


async def test_stop_ends_all_tasks_and_what_they_asked(
    home: ProductFolder, company: Thread, bookkeeping_model: FakeOpenAI
) -> None:
    await company.send(REQUEST)
    flag = await asked_about(company, "flag")
    assert (await company.stop()).status == 200
    await company.card(flag["id"], "superseded")
    await stand(company, find="done", orders="done", check="stopped", mail="stopped")
    assert (await company.approve(flag["id"]))["kind"] == "already_settled"
    await company.send("hey there")
    await company.says("hello there")
    assert acts_of(home) == []
    # The model is told what was done by then, and not that nothing was.
    (told,) = [str(m["content"]) for m in bookkeeping_model.requests[-1]["messages"] if m["role"] == "tool"]
    assert "## find (bookkeeper): done\n> three: INV-7, INV-8, INV-9" in told
    assert "## check (bookkeeper): stopped" in told


@pytest.mark.parametrize(
    ("before", "after", "states_then", "acts"),
    [
        ("[folder, orders]", "[folder]", {"check": "done", "mail": "done"}, ["draft"]),
        ("name: bookkeeper", "name: auditor", {"check": "failed", "mail": "not_run"}, []),
        ("name: writer", "name: auditor", {"check": "done", "mail": "failed"}, ["flag INV-8"]),
    ],
    ids=["without the tool", "without the agent", "without another one's agent"],
)
async def test_a_plan_goes_on_without_what_its_agents_may_not_do_any_more(
    home: ProductFolder,
    bookkeeping_model: FakeOpenAI,
    before: str,
    after: str,
    states_then: dict[str, str],
    acts: list[str],
) -> None:
    """The operator narrows an agent, or takes it out, while a task waits, and starts again."""
    finance_company(home, bookkeeping_model)
    async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        await thread.send(REQUEST)
        flag = await asked_about(thread, "flag")
        thread_id = thread.thread_id
    home.agents(AGENTS.replace(before, after))
    async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread(thread_id) as thread:
        await thread.approve(flag["id"])
        if "draft" in acts:
            await thread.approve((await asked_about(thread, "draft"))["id"])
        await stand(thread, find="done", orders="done", **states_then)
        await thread.until(lambda: len(thread.said) > 1, "an answer")
    assert acts_of(home) == acts
    (told,) = [str(m["content"]) for m in bookkeeping_model.requests[-1]["messages"] if m["role"] == "tool"]
    assert "## find (bookkeeper): done" in told


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
    assert revisions == sorted(set(revisions))
    assert [(task["id"], task["agent"], task["state"]) for task in plan["tasks"]][2:] == [
        ("check", "bookkeeper", "waiting for someone"),
        ("mail", "writer", "waits for check"),
    ]


async def test_whoever_may_decide_what_a_task_asks_sees_its_plan_and_the_message_that_began_it(
    home: ProductFolder, bookkeeping_model: FakeOpenAI
) -> None:
    finance_company(home, bookkeeping_model).policy(BEN_DECIDES)
    async with (
        product_here(home) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
    ):
        await thread.send("hey, between us")
        await thread.says("hello us")
        await thread.send(REQUEST)
        await asked_about(thread, "flag")
        async with ben.thread(thread.thread_id) as seen:
            flag = await asked_about(seen, "flag")
            await stand(seen, find="done", orders="done", check="waiting", mail="blocked")
            assert [entry["text"] for entry in seen.entries.values() if entry["kind"] == "message"] == [REQUEST]
            await seen.approve(flag["id"])
            await stand(seen, find="done", orders="done", check="done", mail="waiting")


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


def splitting(request: Request) -> Reply:
    """Splits what begins with “split” into two tasks, each of one call, and does what any other message says."""
    messages = request["messages"]
    asked = max(n for n, each in enumerate(messages) if each["role"] == "user")
    if not str(messages[asked]["content"]).startswith("split"):
        return obedient(request)
    if messages[-1]["role"] == "tool":
        return Reply(text="All was tried.")
    tasks = [
        {"id": "break", "agent": "breaker", "instruction": "use fail what=lamp"},
        {"id": "make", "agent": "maker", "instruction": "use make what=lamp"},
    ]
    return Reply(calls=[ToolUse("delegate", {"tasks": tasks})])


async def test_what_a_task_has_asked_is_gone_with_its_conversation(home: ProductFolder, shop: Workshop) -> None:
    async with fake_openai(splitting) as model:
        connect(home, shop, model)
        home.policy(BY_BEN)
        agents = home.folder / "agents.yaml"
        agents.write_text(TWO_MAKERS)
        home.variables["AGENTS_FILE"] = str(agents)
        async with (
            product_here(home) as url,
            visiting(url, "ana") as ana,
            visiting(url, "ben") as ben,
            ana.thread() as thread,
        ):
            await thread.send("split the lamp")
            failing, making = await asked_about(thread, "fail"), await asked_about(thread, "make")
            body = {"id": "c1", "approvals": [failing["id"]], "verb": "approve"}
            assert (await ben.post("/api/approvals/decisions", body)).status == 200
            await thread.card(failing["id"], "approved", result="failed: ")
            [decided] = (await ben.get("/api/approvals/decided")).body["decided"]
            assert decided["id"] == failing["id"]

            address = f"/api/threads/{quote(thread.thread_id, safe='')}/deletion"
            assert (await ana.post(address, {"id": "c3"})).status == 200
            for someone in (ana, ben):
                body = {"id": "c4", "approvals": [making["id"]], "verb": "approve"}
                assert (await someone.post("/api/approvals/decisions", body)).status == 404
                assert (await someone.get(f"/api/approvals/{failing['id']}/arguments")).status == 404
            assert (await ben.get("/api/approvals/decided")).body["decided"] == []
            assert shop.done == []


async def test_a_model_that_hands_over_again_and_again_is_stopped_after_three_plans(home: ProductFolder) -> None:
    def insists(request: Request) -> Reply:
        messages = request["messages"]
        last_person = max(n for n, m in enumerate(messages) if m["role"] == "user")
        if str(messages[last_person]["content"]) != REQUEST:
            return Reply(text="Done.")
        results = [str(m["content"]) for m in messages[last_person:] if m["role"] == "tool"]
        if len(results) >= 6:
            return Reply(text=f"{sum('Limited' in each for each in results)} were too many")
        return Reply(calls=[ToolUse("delegate", {"tasks": TASKS}), ToolUse("delegate", {"tasks": TASKS[:2]})])

    async with fake_openai(insists) as model:
        finance_company(home, model)
        async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
            await thread.send(REQUEST)
            assert await thread.says("too many") == "3 were too many"
            assert [len(plan["tasks"]) for plan in thread.contents("plan")] == [4, 2, 4]
