"""What the libraries and the disk take by themselves: no turn, no click and no start built from them goes below.

`python -m bench.floor MODEL_URL COUNT` measures in a process of its own, and prints the figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

Json = dict[str, Any]
ASKED = "tell me about something"


async def measured(model_url: str, count: int) -> Json:
    """Milliseconds: of CPU, for the commit of waiting."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        async with (
            aiohttp.ClientSession() as http,
            AsyncSqliteSaver.from_conn_string(f"{folder}/checkpoints.db") as saver,
        ):
            model = ChatOpenAI(model="bench", streaming=True, base_url=model_url, api_key="none")  # type: ignore[arg-type]
            in_memory, on_disk = _loop(InMemorySaver()), _loop(saver)
            return {
                "commit": _commit(Path(folder) / "commits.db", count),
                "sdk": await _cpu(count, lambda _: model.ainvoke(ASKED)),
                "http": await _cpu(count, lambda _: _ask(http, model_url)),
                "loop": await _cpu(count, lambda n: in_memory.ainvoke(*_turn(n))),
                "loop_on_disk": await _cpu(count, lambda n: on_disk.ainvoke(*_turn(n))),
            }


async def _cpu(count: int, act: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds of this process for each, threads included."""
    await act(0)
    before = time.process_time()
    for number in range(1, count + 1):
        await act(number)
    return (time.process_time() - before) / count * 1000


def _commit(file: Path, count: int) -> float:
    """Median milliseconds of a row in SQLite, as durable as the product's."""
    seconds = []
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE rows (body TEXT)")
        for _ in range(count):
            began = time.perf_counter()
            with connection:
                connection.execute("INSERT INTO rows VALUES (?)", ("something" * 50,))
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1000


async def _ask(http: aiohttp.ClientSession, model_url: str) -> None:
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": ASKED}]}
    async with http.post(f"{model_url}/chat/completions", json=body) as response:
        response.raise_for_status()
        await response.read()


def _loop(saver: Any) -> Any:
    """One node, which answers at once."""
    graph = StateGraph(MessagesState)
    graph.add_node("agent", _answer)
    graph.add_edge(START, "agent")
    return graph.compile(checkpointer=saver)


async def _answer(_: MessagesState) -> Json:
    return {"messages": [AIMessage("This is what I have to say about it.")]}


def _turn(number: int) -> tuple[Json, Json]:
    return {"messages": [("user", ASKED)]}, {"configurable": {"thread_id": str(number)}}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measured(sys.argv[1], int(sys.argv[2])))))
