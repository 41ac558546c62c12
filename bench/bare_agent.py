"""The agent of an afternoon: what a good engineer puts together from the libraries' documentation, and the product's
measure.

Bolt, a LangGraph loop of model and tools, `AsyncSqliteSaver` and `ChatOpenAI`, each as its documentation shows it; the
tools over stdio from one held MCP session. It answers in the thread and asks before the tool that writes, on a card
with two buttons. It keeps nothing before it acknowledges, takes every click for good, and carries the whole
conversation. `python -m bench.bare_agent`, with the product's variables for Slack and the model, `BARE_AGENT_DB` (a
file) and `BARE_AGENT_TOOLS` (a JSON file: the connection of the tool server).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from aiohttp import web
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Interrupt, interrupt
from mcp.types import CallToolResult, TextContent
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncSay
from slack_sdk.web.async_client import AsyncWebClient

from bench.marks import WRITE
from bench.serving import serve

Json = dict[str, Any]


async def ask_first(
    request: MCPToolCallRequest, handler: Callable[[MCPToolCallRequest], Awaitable[MCPToolCallResult]]
) -> MCPToolCallResult:
    """Interrupt the graph before the tool that writes, until somebody has pressed a button."""
    if request.name == WRITE and not interrupt({"tool": request.name, "arguments": request.args}):
        return CallToolResult(content=[TextContent(type="text", text="The person rejected this call.")])
    return await handler(request)


def build(tools: Sequence[BaseTool], saver: AsyncSqliteSaver) -> Any:
    """Model and tools, in turns."""
    model = ChatOpenAI(model="bench", streaming=True).bind_tools(tools)

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


def make(graph: Any) -> AsyncApp:
    """The app in Slack: a mention begins or continues a run, a click resumes it."""
    client = AsyncWebClient(token=os.environ["SLACK_BOT_TOKEN"], base_url=os.environ["SLACK_API_URL"])
    app = AsyncApp(client=client, signing_secret=os.environ["SLACK_SIGNING_SECRET"])

    async def run(given: Json | Command[Any], channel: str, thread: str, say: AsyncSay) -> None:
        result = await graph.ainvoke(given, {"configurable": {"thread_id": f"{channel}:{thread}"}})
        asked = result.get("__interrupt__", ())
        for each in asked:
            await say(text="May I?", blocks=card(each), thread_ts=thread)
        if not asked:
            await say(text=result["messages"][-1].text, thread_ts=thread)

    @app.event("app_mention")
    async def mentioned(event: Json, say: AsyncSay) -> None:
        text = re.sub(r"<@\w+>\s*", "", event["text"])
        await run({"messages": [("user", text)]}, event["channel"], event.get("thread_ts") or event["ts"], say)

    @app.action(re.compile("approve|reject"))
    async def decided(ack: AsyncAck, body: Json, action: Json, client: AsyncWebClient, say: AsyncSay) -> None:
        await ack()
        approved = action["action_id"] == "approve"
        channel, message = body["channel"]["id"], body["message"]
        words = f"{'Approved' if approved else 'Rejected'} by <@{body['user']['id']}>."
        shown = [*message["blocks"][:-1], _section(words)]
        await client.chat_update(channel=channel, ts=message["ts"], text=words, blocks=shown)
        await run(Command(resume={action["value"]: approved}), channel, message["thread_ts"], say)

    return app


def card(asked: Interrupt) -> list[Json]:
    """What the model wants to do, with the buttons; their value is the interrupt's id."""
    what = f"*{asked.value['tool']}*\n```{json.dumps(asked.value['arguments'], indent=2)}```"
    buttons = [_button("approve", "Approve", "primary", asked.id), _button("reject", "Reject", "danger", asked.id)]
    return [_section(what), {"type": "actions", "elements": buttons}]


def _section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _button(action: str, label: str, style: str, value: str) -> Json:
    text = {"type": "plain_text", "text": label}
    return {"type": "button", "action_id": action, "style": style, "value": value, "text": text}


async def health(_: web.Request) -> web.Response:
    """It runs."""
    return web.json_response({"status": "ok"})


async def main() -> None:
    """Serve until killed; says where in the form of the product's log."""
    servers = MultiServerMCPClient({"bench": json.loads(Path(os.environ["BARE_AGENT_TOOLS"]).read_text())})
    async with (
        AsyncSqliteSaver.from_conn_string(os.environ["BARE_AGENT_DB"]) as saver,
        servers.session("bench") as session,
    ):
        tools = await load_mcp_tools(session, tool_interceptors=[ask_first])
        application = make(build(tools, saver)).web_app()
        application.router.add_get("/health-check", health)
        await serve(application)


if __name__ == "__main__":
    asyncio.run(main())
