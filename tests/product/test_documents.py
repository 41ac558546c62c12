"""Documents that people keep and find, with the bundled server, on the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.contract_clients import with_tokens
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.gateway.agents import agent
from tests.gateway.test_protocol import ended
from tests.support.files import pdf
from tests.support.forks import ROOT, quick_python
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting

POLICY = """
version: 1
rules:
  - {name: reading is free, match: {annotations: {readOnlyHint: true, openWorldHint: false}}, decide: allow}
"""


def librarian(request: Request) -> Reply:
    """A model that keeps the newest file for whom it is told to, finds, and says what came of it."""
    said = [m for m in request["messages"] if m["role"] in {"user", "tool"}]
    last = str(said[-1]["content"])
    if said[-1]["role"] == "tool":
        return Reply(last)
    if found := re.fullmatch(r"keep (?P<file>\S+) for (?P<for>\w+)", last):
        ids = re.findall(r"file_[0-9a-f]{32}", str(request["messages"]))
        file = ids[-1] if found["file"] == "it" else found["file"]
        return Reply(calls=[ToolUse("documents__add_document", {"file": file, "keep_for": found["for"]})])
    return Reply(calls=[ToolUse("documents__search_documents", {"query": last})])


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(librarian) as server:
        yield server


@pytest.fixture
def library(home: ProductFolder, model: FakeOpenAI) -> ProductFolder:
    """The product with the documents server alone."""
    command, *arguments = quick_python("-m", "servers.documents")
    entry: dict[str, Any] = {"command": command, "args": arguments, "trustAnnotations": True}
    told: dict[str, Any] = {"tellRequester": True, "tellChannel": True, "fileArguments": {"add_document": "file"}}
    told["sourceTools"] = ["search_documents", "read_document"]
    database = {"env": {"DOCUMENTS_DB": str(home.folder / "documents.db")}}
    home.tool_servers({"documents": entry | told | database | {"cwd": str(ROOT)}})
    home.policy(POLICY)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "scripted"}
    return home


async def test_a_file_is_kept_after_approval_and_found_by_whom_it_is_for(library: ProductFolder) -> None:
    async with (
        product_here(library) as url,
        visiting(url, "ana") as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
        ana.thread() as other,
        ben.thread() as his,
    ):
        uploaded = (await ana.upload("handbook.pdf", pdf(["Travel", "Leave is 28 days."]))).body["id"]
        await thread.send("keep it for me", files=[uploaded])
        (card,) = await thread.waiting()
        assert "handbook.pdf" in card["title"], "which document it is about is still told when it is settled"
        await thread.approve(card["id"])
        await thread.says("handbook.pdf", '"kept_for": "me"')
        await other.send("how many days of leave?")
        answer = await other.says("28 days")
        assert '"page": 2' in answer and "handbook.pdf" in answer
        (said,) = other.contents("said")  # the number by which the model is to cite it is in what it repeats
        assert [each["name"] for each in said["sources"]] == ["handbook.pdf, page 2"]
        await his.send("how many days of leave?")
        assert "28 days" not in await his.says("Nothing. Found by words only")


async def test_a_file_of_another_conversation_is_handed_to_nobody(library: ProductFolder) -> None:
    """Neither by somebody else, nor by its owner elsewhere, nor by another agent; and nobody is asked about it."""
    with_tokens(library)
    async with product_here(library) as url, visiting(url, "ana") as ana, visiting(url, "ben") as ben:
        uploaded = (await ana.upload("plan.txt", b"The plan.")).body["id"]
        async with ana.thread() as thread, ana.thread() as other, ben.thread() as his:
            await thread.send("the plan", files=[uploaded])
            await thread.says("Nothing")
            for elsewhere in (other, his):
                await elsewhere.send(f"keep {uploaded} for everybody")
                assert await elsewhere.says("file names no file of this conversation")
                assert elsewhere.approvals() == []
        async with agent(url) as cursor:
            result = await ended(cursor, "documents__add_document", file=uploaded, keep_for="everybody")
            assert result.isError and "file names no file of this conversation" in str(result.content)
        async with ben.thread() as his:
            await his.send("plan")
            assert "The plan." not in await his.says("Nothing")


async def test_a_file_that_an_approver_puts_in_is_checked_like_the_models(library: ProductFolder) -> None:
    async with product_here(library) as url, visiting(url, "ana") as ana, ana.thread() as thread, ana.thread() as other:
        foreign, own = [(await ana.upload(f"{name}.txt", name.encode())).body["id"] for name in ("foreign", "own")]
        await other.send("read this", files=[foreign])
        await other.says("Nothing")
        await thread.send("keep it for me", files=[own])
        (card,) = await thread.waiting()
        assert "own.txt (3 bytes)" in str(card)
        await thread.approve(card["id"], values={"file": foreign})
        assert await thread.says("file names no file of this conversation")
        await thread.send("foreign")
        assert await thread.says("Nothing")
