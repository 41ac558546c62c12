"""Answers cite passages of documents: on the page, to programs, and from one agent to another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from adapters.api.terminal import chat
from tests.api.contract_clients import Runs, token, with_tokens
from tests.api.test_terminal import ScriptedTerminal, said
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.support.planning import with_agents
from tests.support.product import ProductFolder, product_here
from tests.support.shelf import shelf
from tests.support.visitor import visiting

FIND = "say "
"""How a message begins after which the model searches, and then says the rest of the message."""
POLICY = "version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n"


def scholar(request: Request) -> Reply:
    """A model that searches where it is told to, and says word for word what it is told to."""
    said = [m for m in request["messages"] if m["role"] in {"user", "tool"}]
    last = str(said[-1]["content"])
    person = next(str(m["content"]) for m in reversed(said) if m["role"] == "user")
    if said[-1]["role"] == "tool" and "search again" in person and len(said) < 4:
        return Reply(calls=[ToolUse("documents__search_documents", {"query": "pay"})])
    if said[-1]["role"] == "tool" or not person.startswith(FIND):
        return Reply(person.removeprefix(FIND))
    if last.startswith("repeat"):
        return Reply(last)
    return Reply(calls=[ToolUse("documents__search_documents", {"query": "leave"})])


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(scholar) as server:
        yield server


@pytest.fixture
async def library(home: ProductFolder, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """The product with a server of documents whose passages answers cite."""
    async with shelf() as url:
        home.tool_servers({"documents": {"url": url, "trustAnnotations": True, "sourceTools": ["search_documents"]}})
        home.policy(POLICY)
        home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "scripted"}
        yield home


def sources_of(entries: Any) -> list[Any]:
    said = [e["content"] for e in entries.values() if e["kind"] == "post" and e["content"]["kind"] == "said"]
    return [each.get("sources") for each in said]


async def test_an_answer_cites_what_was_found_and_nothing_else(library: ProductFolder, model: FakeOpenAI) -> None:
    async with product_here(library) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("say 28 days [2], not 30 [9]; see `list[9]` and [1](https://example.com).")
        answer = await thread.says("28 days")
        assert answer == "28 days [2], not 30; see `list[9]` and [1](https://example.com)."
        assert "".join(thread.live_texts) == answer
        assert sources_of(thread.entries) == [[{"number": 2, "name": "Hand⟨U+202E⟩book [1].pdf, page 3, Leave"}]]
        async with ana.thread(thread.thread_id) as again:  # as it is kept
            assert sources_of(again.entries) == sources_of(thread.entries)
    told = model.requests[-1]["messages"]
    (result,) = [json.loads(m["content"]) for m in told if m["role"] == "tool"]
    assert [each["cite"] for each in result["passages"]] == ["[1]", "[2]"]
    assert "Cite no other numbers" in told[0]["content"]


async def test_numbers_mean_the_passages_of_their_own_turn(library: ProductFolder, model: FakeOpenAI) -> None:
    """What is met again in a turn keeps its number; the next turn knows nothing of them."""
    async with product_here(library) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("say search again: [1] [2] [3] [4]")
        await thread.says("search again: [1] [2] [3]")
        (listed,) = sources_of(thread.entries)
        assert [each["number"] for each in listed] == [1, 2, 3]
        await thread.send("from memory [1]")
        assert await thread.says("from memory") == "from memory"
        assert "cite" not in str([m for m in model.requests[-1]["messages"] if m["role"] == "tool"])


async def test_turns_without_such_tools_are_left_as_they_are(home: ProductFolder, model: FakeOpenAI) -> None:
    home.tool_servers({})
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "scripted"}
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("the list is [7] and [1, 2]")
        assert await thread.says("the list") == "the list is [7] and [1, 2]"
        assert "cite" not in str(model.requests[-1]["messages"][0]).lower()


async def test_programs_get_the_sources_beside_the_answer(library: ProductFolder) -> None:
    with_tokens(library)
    async with product_here(library) as url, aiohttp.ClientSession() as http:
        ana = Runs(url, http, token("ana"))
        run = (await ana.run("t1", "say 28 days [2]")).body
        source = {"number": 2, "name": "Hand⟨U+202E⟩book [1].pdf", "page": 3, "section": "Leave"}
        assert (run["response"], run["sources"]) == ("28 days [2]", [source])
        asked = (await ana.post("/query", {"query": "say 28 days [2]"})).body
        assert (asked["response"], asked["sources"]) == ("28 days [2]", [source])
        here = f"/api/v1/threads/{(await ana.post('/api/v1/threads', {})).body['id']}/messages"
        sent = (await ana.post(here, {"text": "say 28 days [2]"})).body["message_id"]
        turn = (await ana.get(f"{here}/{sent}?wait=60")).body
        assert (turn["answer"], turn["sources"]) == ("28 days [2]", [source])
        plain = (await ana.post("/query", {"query": "hello"})).body
        assert "sources" not in plain


async def test_what_an_agent_cites_in_its_task_is_named_to_the_one_that_answers(
    library: ProductFolder,
) -> None:
    """The numbers of a task's turn mean nothing in another: there they are names, and no citations."""
    with_agents(library, "documents")

    def brain(request: Request) -> Reply:
        messages = request["messages"]
        if "You are the worker" in messages[0]["content"]:
            return scholar(request)
        if messages[-1]["role"] == "tool":
            return Reply(f"It found: {messages[-1]['content']}")
        tasks = [{"id": name, "agent": "worker", "instruction": f"say {name} 28 days [2]."} for name in ("a", "b")]
        return Reply(calls=[ToolUse("delegate", {"tasks": tasks})])

    async with fake_openai(brain) as planner:
        library.variables |= {"OPENAI_BASE_URL": planner.base_url}
        async with product_here(library) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("ask the worker")
            answer = await thread.says("It found")
            assert answer.count("28 days (Hand⟨U+202E⟩book.pdf, page 3, Leave).") == 2
            assert sources_of(thread.entries) == [None]


async def test_a_task_of_another_system_has_the_sources_in_its_artifact(library: ProductFolder) -> None:
    with_tokens(library)
    async with product_here(library) as url, aiohttp.ClientSession() as http:
        ana = Runs(url, http, token("ana"))
        parts = [{"kind": "text", "text": "say 28 days [2]"}]
        message = {"role": "user", "messageId": "m1", "kind": "message", "parts": parts}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
        task = (await ana.post("/a2a", asked)).body["result"]
        (artifact,) = task["artifacts"]
        assert artifact["parts"][0]["text"] == "28 days [2]"
        assert [(each["number"], each["page"]) for each in artifact["metadata"]["sources"]] == [(2, 3)]


async def test_the_terminal_shows_the_sources_below_the_answer(library: ProductFolder) -> None:
    with_tokens(library)
    async with product_here(library) as url:
        terminal = ScriptedTerminal([said("say 28 days [2]")])
        await chat(url, token("ana"), terminal)
        assert "28 days [2]\n[2] Hand⟨U+202E⟩book [1].pdf, page 3, Leave\n" in terminal.shown
