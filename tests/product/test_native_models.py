"""A whole turn with Anthropic's and with Google's API: the product, a tool server, a person, and a strict stand-in for
the service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.fakes.model_service import ModelService
from tests.fakes.openai_server import Reply, Request, ToolUse
from tests.models.native import NATIVE, Native
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry
from tests.support.visitor import Thread, visiting

KEY = "key-that-nobody-may-read"
LAMP = ToolUse("workshop__make", {"what": "lamp", "count": 2})
CHAIR = ToolUse("workshop__make", {"what": "chair"})


def answer(request: Request) -> Reply:
    """Makes a lamp and a chair and looks at the lamp; then says what came of it."""
    sent = json.dumps(request)
    if "made lamp" in sent:
        return Reply(text="That is what came of it.")
    return Reply(text="On it.", calls=[LAMP, CHAIR, ToolUse("workshop__look", {"what": "lamp"})])


@pytest.fixture(params=NATIVE, ids=str)
def native(request: pytest.FixtureRequest) -> Native:
    """Each service."""
    found: Native = request.param
    return found


@pytest.fixture
async def service(native: Native) -> AsyncIterator[ModelService]:
    """Its stand-in, running."""
    async with native.fake(answer) as server:
        yield server
        assert server.refused == [], "the service would have refused this"


@pytest.fixture
async def conversation(
    home: ProductFolder, shop: Workshop, native: Native, service: ModelService
) -> AsyncIterator[Thread]:
    """A new conversation of Ana's in a product with that model."""
    home.tool_servers({"workshop": entry(shop)})
    prefix = native.prefix.upper()
    home.variables |= {"LLM_MODEL": native.model, f"{prefix}_API_KEY": KEY, f"{prefix}_BASE_URL": service.base_url}
    async with product_here(home) as url, visiting(url, "ana") as ana, ana.thread() as thread:
        yield thread


async def test_a_call_waits_for_its_approval_and_the_model_is_told_what_came_of_each(
    conversation: Thread, shop: Workshop, service: ModelService, native: Native
) -> None:
    await conversation.send("make a lamp and a chair, please")
    lamp, chair = await conversation.waiting(2)
    await conversation.until(lambda: shop.looked == ["lamp"])
    assert shop.done == [], "nothing is made before it is approved"
    await conversation.approve(lamp["id"])
    await conversation.card(lamp["id"], "approved", result="made lamp")
    await conversation.reject(chair["id"], "no more chairs")
    await conversation.says("On it.")
    await conversation.says("That is what came of it.")
    assert shop.done == ["make lamp 2"]
    first, second = service.requests
    sent = json.dumps(second)
    assert len(json.dumps(first)) < len(sent)
    assert all(words in sent for words in ("make a lamp and a chair", "made lamp", "no more chairs", "lamp looks fine"))
    assert [native.key_of(headers) for headers in service.headers] == [KEY, KEY]


async def test_a_failing_service_is_told_in_one_sentence_without_the_key(
    conversation: Thread, service: ModelService, capsys: pytest.CaptureFixture[str]
) -> None:
    service.replies_with(lambda _: Reply(status=401, error={"message": "the key is not valid"}))
    await conversation.send("make a lamp")
    await conversation.notice("Model key rejected")
    assert KEY not in json.dumps(list(conversation.entries.values()))
    assert len(service.requests) == 1
    logged = capsys.readouterr().out
    assert logged.count("turn_failed") == 1
    assert "status 401: the key is not valid" in logged
    assert KEY not in logged
