"""A model that takes its time once."""

from __future__ import annotations

import asyncio

from tests.fakes.openai_server import Reply, Request
from tests.kills.brain import brain


class HeldOnce:
    """A model that holds back its first answer to what says "hold" until it is told to go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.held = asyncio.Event()

    def __call__(self, request: Request) -> Reply:
        reply = brain(request)
        if "hold" not in reply.text or self.held.is_set():
            return reply
        self.held.set()
        return Reply(text=reply.text, wait_for=self.go_on)
