from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from graph.models import close_model
from graph.models.openai import create_openai_model
from graph.models.streaming import Retry
from graph.state import Turn
from graph.usage import ModelUse
from tests.fakes.openai_server import FakeOpenAI

KEY = "sk-secret-key-of-this-test"

Connect = Callable[..., BaseChatModel]

QUICK = Retry(times=3, first_pause=0.001, longest_pause=0.002)
ONCE = Retry(times=0)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes a model that talks to a fake server; its connections are closed in the end."""
    made: list[BaseChatModel] = []

    def connect(server: FakeOpenAI, *, timeout: float = 10.0) -> BaseChatModel:
        model = create_openai_model("gpt-test", base_url=server.base_url, api_key=SecretStr(KEY), timeout=timeout)
        made.append(model)
        return model

    yield connect
    for model in made:
        await close_model(model)


class Spent:
    """A budget without an end, and what was counted: of whom, in which channel, tokens of questions."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str, int]] = []

    async def refusal(self, person_id: str, channel: str = "") -> str | None:
        return None

    async def spent(self, person_id: str, model: str, use: ModelUse, channel: str = "") -> None:
        self.counted.append((person_id, channel, use["input_tokens"]))

    async def lost(self, turn: Turn, model: str, use: ModelUse) -> None:
        await self.spent(turn["requester"], model, use, turn["channel"])
