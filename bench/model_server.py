"""The model that all contestants talk to: streamed, over HTTP. `python -m bench.model_server [SECONDS]`: it answers at
once, or after so many seconds."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

from bench.marks import RAN_AT, READ, WRITE, mark_of
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai

FORGET_SECONDS = 1.0
"""The fake keeps a journal for tests; here it would only grow."""


def answer(request: Request) -> Reply:
    """A tool call where the message asks for one, else one sentence with the message's mark in it, and with the moment
    at which the tool was called, if one was."""
    messages = request["messages"]
    asked = str(next((m["content"] for m in reversed(messages) if m["role"] == "user"), ""))
    if messages[-1]["role"] == "user":
        for word in (READ, WRITE):
            if asked.startswith(word):
                return Reply(calls=[ToolUse(_full_name(request, word), {"text": mark_of(asked)})])
    return Reply(text=f"This is what I have to say about it, in short: {mark_of(asked)}{_called_at(messages[-1])}")


def _called_at(message: Mapping[str, Any]) -> str:
    """The tools of the bench answer with the time."""
    found = re.search(r"\d+\.\d{6}", str(message["content"])) if message["role"] == "tool" else None
    return f", {RAN_AT} {found[0]}" if found else ""


def _full_name(request: Request, tool: str) -> str:
    """What the contestant calls this tool: the product puts the server's name before it."""
    names = [t["function"]["name"] for t in request.get("tools", ())]
    return next((n for n in names if n.endswith(tool)), tool)


async def _forget(server: FakeOpenAI) -> None:
    while True:
        await asyncio.sleep(FORGET_SECONDS)
        for journal in (server.requests, server.headers, server.times):
            journal.clear()


async def main(seconds: float) -> None:
    """Serve until killed; the first line of the output is the address."""

    async def answer_late(request: Request) -> Reply:
        await asyncio.sleep(seconds)
        return answer(request)

    async with fake_openai(answer_late if seconds else answer) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await _forget(server)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0))
