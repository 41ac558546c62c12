"""The bare agent beside which the product is measured: what one writes in an afternoon.

One aiohttp application, LangGraph's loop with `AsyncSqliteSaver` and `ChatOpenAI` as they come, two tools in the
process. It verifies nothing, keeps nothing before it acknowledges, asks nobody twice, and carries the whole
conversation. It offers the few addresses of the page that the bench uses, so that one client measures both.
`python -m bench.baseline`, with the variables of the product (`OPENAI_BASE_URL`, `PORT`…) and `BASELINE_DB`.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from typing import Any, Literal

from aiohttp import web
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from bench.serving import serve

Json = dict[str, Any]


@tool
async def read(text: str) -> str:
    """Look something up."""
    return f"{time.monotonic():.6f} {text}"


@tool
async def write(text: str) -> str:
    """Change something."""
    interrupt(text)
    return f"{time.monotonic():.6f} {text}"


def build(saver: AsyncSqliteSaver) -> Any:
    """Model and tools, in turns."""
    tools = [read, write]
    streaming = os.environ.get("BASELINE_STREAMS", "true") == "true"
    model = ChatOpenAI(model="bench", streaming=streaming).bind_tools(tools)

    async def agent(state: MessagesState) -> Json:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def after(state: MessagesState) -> Literal["tools", "__end__"]:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", after)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver)


class Baseline:
    """Its HTTP side: the addresses that the client uses."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._readers: dict[str, list[web.StreamResponse]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[web.RouteDef]:
        """What it answers to."""
        return [
            web.get("/health-check", _ok),
            web.get("/api/session", _ok),
            web.get("/api/events", self.events),
            web.post("/api/threads/{id}/messages", self.message),
            web.post("/api/approvals/decisions", self.click),
        ]

    async def events(self, request: web.Request) -> web.StreamResponse:
        """The answers of one thread, as they come."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        readers = self._readers.setdefault(request.query["thread"], [])
        readers.append(response)
        await response.write(_event("thread", {"entries": []}))
        try:
            await asyncio.Event().wait()
        finally:
            readers.remove(response)
        return response

    async def message(self, request: web.Request) -> web.Response:
        """Acknowledged as soon as there is a task."""
        text = (await request.json())["text"]
        self._start(request.match_info["id"], {"messages": [("user", text)]})
        return web.json_response({}, status=202)

    async def click(self, request: web.Request) -> web.Response:
        """Approved by whoever clicked; a card's id is its thread's."""
        (thread_id,) = (await request.json())["approvals"]
        self._start(thread_id, Command(resume=True))
        return web.json_response({"results": {}})

    def _start(self, thread_id: str, given: Any) -> None:
        task = asyncio.create_task(self._run(thread_id, given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, thread_id: str, given: Any) -> None:
        result = await self._graph.ainvoke(given, RunnableConfig(configurable={"thread_id": thread_id}))
        if "__interrupt__" in result:
            await self._show(thread_id, {"kind": "approval", "id": thread_id, "status": "pending", "result": ""})
            return
        messages = result["messages"]
        if isinstance(given, Command):
            card = {"kind": "approval", "id": thread_id, "status": "approved", "result": f"Done: {messages[-2].text}"}
            await self._show(thread_id, card)
        await self._show(thread_id, {"kind": "said", "text": messages[-1].text})

    async def _show(self, thread_id: str, content: Json) -> None:
        for reader in self._readers.get(thread_id, ()):
            await reader.write(_event("post", {"kind": "post", "content": content}))


async def _ok(_: web.Request) -> web.Response:
    return web.json_response({"csrf": "", "status": "ok"})


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def main() -> None:
    """Serve until killed; says where in the form of the product's log."""
    async with AsyncSqliteSaver.from_conn_string(os.environ["BASELINE_DB"]) as saver:
        application = web.Application()
        application.add_routes(Baseline(build(saver)).routes())
        await serve(application)


if __name__ == "__main__":
    asyncio.run(main())
