"""Plans through `/run`: approvals of tasks are pending like any others, and there is one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.api.contract_clients import Runs, response_of, token, with_tokens
from tests.api.stream_clients import program, querying, respond
from tests.fakes.openai_server import FakeOpenAI, Request, fake_openai
from tests.support.finance import ANSWER, REQUEST, acts_of, asking_first, brain, finance_company
from tests.support.product import ProductFolder, product_here


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(lambda request: (asking_first if asks(request) else brain)(request)) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, model: FakeOpenAI) -> ProductFolder:
    """A company with agents that programs can use."""
    return finance_company(with_tokens(ProductFolder(tmp_path)), model)


def asks(request: Request) -> bool:
    """Whether the agent that is asked was told to ask first."""
    return "Ask first" in str(request["messages"][0])


def asks_first(home: ProductFolder) -> None:
    """Have the writer ask something before it drafts."""
    agents = home.folder / "agents.yaml"
    agents.write_text(agents.read_text().replace("You are the writer.", "You are the writer. Ask first."))


async def waits_for(runs: Runs, home: ProductFolder, question: str = "") -> None:
    """Go through the plan as a program does that only knows the contract, until its answer."""
    (flag,) = (await runs.asked("t", REQUEST, "confirmation"))["tool_calls"]
    assert (flag["server"], flag["tool_name"], flag["arguments"]) == ("orders", "flag", {"invoice": "INV-8"})
    assert acts_of(home) == []
    after = await runs.approve("t", flag["call_id"])
    if question:
        assert after.body["status"] == "clarification_required", after
        (asked,) = after.body["pending_action"]["clarifications"]
        assert asked["question"] == question
        reply = {"call_id": asked["call_id"], "response": "to Klee"}
        after = await runs.post("/resume", {"thread_id": "t", "clarification_responses": [reply]})
    assert after.status == 202, after
    (draft,) = after.body["pending_action"]["tool_calls"]
    assert acts_of(home) == ["flag INV-8"]
    assert response_of(await runs.approve("t", draft["call_id"])) == ANSWER
    assert acts_of(home) == ["flag INV-8", "draft"]


@pytest.mark.parametrize("question", ["", "To whom?"])
async def test_a_plan_pends_with_the_approvals_and_questions_of_its_tasks_and_ends_with_one_answer(
    home: ProductFolder, http: aiohttp.ClientSession, question: str
) -> None:
    if question:
        asks_first(home)
    async with product_here(home) as url:
        await waits_for(Runs(url, http, token("ana")), home, question)


async def test_without_people_what_they_would_be_asked_is_left_out_and_told(
    home: ProductFolder, http: aiohttp.ClientSession
) -> None:
    async with product_here(home) as url:
        answered = await Runs(url, http, token("ana")).post("/query", {"query": REQUEST})
    assert answered.status == 200, answered
    assert [(call["server"], call["tool_name"]) for call in answered.body["hitl_skipped_non_streaming"]] == [
        ("orders", "flag"),
        ("mail", "draft"),
    ], answered
    assert acts_of(home) == []


async def test_a_stream_asks_for_each_task_and_ends_with_the_one_answer(home: ProductFolder) -> None:
    """Approvals of tasks are asked and answered as those of the conversation are, by name of the agent that asks."""
    async with product_here(home) as url, program(url) as ana, querying(ana, REQUEST) as query:
        asked = await query.until("hitl_required", "done")
        assert (asked["tool_names"], asked["agent_name"]) == (["flag"], "bookkeeper"), asked
        assert await respond(ana, asked["request_id"], "approved") == 200
        asked = await query.until("hitl_required", "done")
        assert asked["tool_names"] == ["draft"], asked
        assert await respond(ana, asked["request_id"], "approved") == 200
        await query.until("done")
    assert query.text.endswith(ANSWER)
    assert acts_of(home) == ["flag INV-8", "draft"]
