"""People who need accounts for tools. In the end of each test their secrets are looked for everywhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import structlog

from tests.fakes.openai_server import FakeOpenAI
from tests.support.notes import ALLOWED, SERVER, Notes, assert_kept_secret, entry, notes_server, shown_to, signs_in
from tests.support.planted import COLD
from tests.support.product import ProductFolder
from tests.support.visitor import Thread, visiting


@dataclass
class AccountStage:
    """What a test of accounts needs."""

    home: ProductFolder
    notes: Notes
    model: FakeOpenAI
    told: list[tuple[str, str]] = field(default_factory=list)
    """What else was told to anybody, by where."""
    threads: list[Thread] = field(default_factory=list)

    @asynccontextmanager
    async def writing(self, url: str, person: str) -> AsyncIterator[Thread]:
        """A new conversation of somebody at the page."""
        async with visiting(url, person) as visitor, visitor.thread(within=COLD) as thread:
            self.threads.append(thread)
            yield thread

    def look_into_the_records(self) -> None:
        """Scan what is on disk while things are on their way; the end of the test looks everywhere."""
        assert self.notes.all_secrets()
        assert_kept_secret(self.notes, self.home, [])

    async def learn_the_tools(self, url: str) -> None:
        """Chloe signs in first of all: before anybody has, nobody knows what tools there are."""
        async with self.writing(url, "chloe") as thread:
            await thread.send(f"use {SERVER}__sign_in")
            await signs_in(self.notes, thread, "chloe")
            await thread.says("signed in", f"{SERVER}__write")


@pytest.fixture
async def stage(
    home: ProductFolder, model: FakeOpenAI, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[AccountStage]:
    async with notes_server() as notes:
        home.tool_servers({SERVER: entry(notes)})
        home.policy(ALLOWED)
        home.variables |= {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "sk-test-key-of-nobody",
            "LLM_MODEL": "any",
            "LOG_LEVEL": "debug",
        }
        made = AccountStage(home, notes, model)
        yield made
        assert notes.all_secrets()
        logged = capfd.readouterr()
        log = home.folder / "product.log"
        told = [
            ("what the model was sent", json.dumps(model.requests, ensure_ascii=False)),
            ("a conversation", shown_to(made.threads)),
            ("the log of the process", log.read_text() if log.exists() else ""),
            ("the log", logged.out + logged.err),
        ]
        assert_kept_secret(notes, home, [*told, *made.told])
        structlog.reset_defaults()
