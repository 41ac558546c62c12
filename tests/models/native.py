"""Services with an API of their own, each with its stand-in: what holds for one has to hold for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from tests.fakes.anthropic_server import fake_anthropic
from tests.fakes.google_server import fake_google
from tests.fakes.model_service import ModelService


@dataclass(frozen=True)
class Native:
    """A service, and how a test uses it."""

    prefix: str
    model: str
    """As `LLM_MODEL` names it."""
    key_header: str
    """Which the key comes in; after `Bearer` where that is `authorization`."""
    cut: str
    """What it says of an answer that became too long."""
    filtered: str
    """What it says of one that its filter stopped."""
    fake: Callable[..., AbstractAsyncContextManager[ModelService]]

    def key_of(self, headers: Mapping[str, str]) -> str:
        """The key that came with a request."""
        return headers[self.key_header].removeprefix("Bearer ")

    def __str__(self) -> str:
        return self.prefix


ANTHROPIC = Native("anthropic", "anthropic:claude-test", "authorization", "max_tokens", "refusal", fake_anthropic)
GOOGLE = Native("google", "google:gemini-3-test", "x-goog-api-key", "MAX_TOKENS", "SAFETY", fake_google)
NATIVE = [ANTHROPIC, GOOGLE]


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    """A definition as the graph binds it."""
    schema = {"type": "object", "properties": {}, **parameters}
    return {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": schema}}
