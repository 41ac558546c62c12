"""The agent's graph: the conversation with one branch for each tool call, and the edges between the steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from graph.branch import FIRST_STEP, branch_nodes
from graph.calls import (
    CLARIFICATION,
    as_given,
    as_kept,
    calls_before,
    current_turn,
    given_call,
    known_of_given,
    open_calls,
    plans_before,
    spoken_in,
)
from graph.files import READ_FILE, listed
from graph.judging import said_by_requester
from graph.known_ids import looked_through
from graph.nodes import BranchStep
from graph.nodes.delegate import DelegateState, delegate, delegates
from graph.nodes.fold_history import fold_history
from graph.nodes.human_clarification import human_clarification
from graph.nodes.oauth_needed import server_of
from graph.nodes.policy_router import needs_routing, policy_router
from graph.nodes.read_file import ReadFileState, read_file
from graph.nodes.task_executor import task_executor
from graph.options import has_tools
from graph.plans import DELEGATE
from graph.ports import Ports
from graph.prompts import to_fold
from graph.state import RunContext, State, ToolCallResult, ToolCallState, Turn, turn_of


def at_start(ports: Ports) -> Callable[[State], Awaitable[str]]:
    """Route only where there is something to pick."""

    async def at_start(state: State) -> str:
        if given_call(state["messages"][-1]) is not None:
            return "task_executor"  # there is nothing to pick: the call is known
        turn = turn_of(state)
        agent = ports.agents.of(turn)
        if agent is None or not has_tools(turn):
            return "task_executor"
        return "policy_router" if needs_routing(agent.offered(await ports.tools.available())) else "task_executor"

    return at_start


def after_model(ports: Ports) -> Callable[[State], Awaitable[str | list[Send]]]:
    """Clarifications first, then every call in its own branch; nothing open: the turn is over."""

    async def after_model(state: State) -> str | list[Send]:
        calls = open_calls(state["messages"])
        if not calls:
            return "fold_history" if to_fold(state["messages"]) else END
        return await _calls(ports, state, calls)

    return after_model


def after_clarification(ports: Ports) -> Callable[[State], Awaitable[str | list[Send]]]:
    """The other calls of the same message proceed without asking the model again."""

    async def after_clarification(state: State) -> str | list[Send]:
        calls = open_calls(state["messages"])
        return await _calls(ports, state, calls) if calls else "task_executor"

    return after_clarification


async def _calls(ports: Ports, state: State, calls: list[dict[str, Any]]) -> str | list[Send]:
    if any(c["name"] == CLARIFICATION for c in calls):
        return "human_clarification"
    turn, messages = turn_of(state), current_turn(state["messages"])
    said = list(await said_by_requester(messages, turn))
    common = {
        "turn": turn,
        "requesters": [turn["requester"]],
        "spoken": [as_kept(spoken) for spoken in spoken_in(messages, turn)],
        "said": said,
    }
    return [
        Send("delegate", _plan(ports, state, c, turn, said))
        if c["name"] == DELEGATE
        else Send("read_file", {"call": c, "turn": turn})
        if c["name"] == READ_FILE
        else Send("tool_call", await _branch(c, messages) | common)
        for c in calls
    ]


def _plan(ports: Ports, state: State, call: dict[str, Any], turn: Turn, said: list[str]) -> DelegateState:
    """What the branch of a plan begins with."""
    before = plans_before(current_turn(state["messages"]), call["id"])
    agents = list(delegates(ports, turn))
    plan: DelegateState = {"call": call, "turn": turn, "said": said, "before": before, "agents": agents}
    if files := listed(state.get("files", ()), state["messages"]):
        plan["files"] = files
    return plan


async def _branch(call: dict[str, Any], messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """What only this call's branch begins with."""
    call = as_given(call, messages)
    known = await looked_through(server_of(call["name"]), call["args"], messages)
    before = calls_before(messages, call["id"])
    return {
        "call": call,
        "before": before,
        "known_ids": [each.model_dump(mode="json") for each in known],
        "known_before": known_of_given(call, messages),
    }


# ------------------------------------------------------------------------------------------ the graph

_CALLS = ("human_clarification", "tool_call", "delegate", "read_file")
"""Where calls lead."""
Workflow = CompiledStateGraph[State, RunContext, Any, Any]


def build_workflow(ports: Ports, checkpointer: BaseCheckpointSaver[Any] | None) -> Workflow:
    """The compiled graph whose picture is in `docs/graph.md`.

    Its steps stand in partials, here and in the branch: LangGraph looks through the byte code of a plain function for
    graphs that it may call, which takes as long as all the rest, and none of ours calls one.
    """
    graph = StateGraph(State, context_schema=RunContext)
    graph.add_node("policy_router", partial(policy_router(ports)))
    graph.add_node("task_executor", partial(task_executor(ports)))
    graph.add_node("human_clarification", partial(human_clarification))
    graph.add_node("tool_call", build_tool_call(ports))
    graph.add_node("delegate", partial(delegate(ports)), input_schema=DelegateState)
    graph.add_node("read_file", partial(read_file(ports)), input_schema=ReadFileState)
    graph.add_node("fold_history", partial(fold_history(ports)))
    graph.add_conditional_edges(START, at_start(ports), ["policy_router", "task_executor"])
    graph.add_edge("policy_router", "task_executor")
    graph.add_conditional_edges("task_executor", after_model(ports), [*_CALLS, "fold_history", END])
    graph.add_conditional_edges("human_clarification", after_clarification(ports), [*_CALLS, "task_executor"])
    graph.add_edge("tool_call", "task_executor")
    graph.add_edge("delegate", "task_executor")
    graph.add_edge("read_file", "task_executor")
    graph.add_edge("fold_history", END)
    return graph.compile(checkpointer=checkpointer)


def build_tool_call(ports: Ports) -> CompiledStateGraph[ToolCallState, RunContext, Any, Any]:
    """The branch of one tool call. Its output is its ToolMessage alone: branches finish side by side."""
    branch = StateGraph(ToolCallState, context_schema=RunContext, output_schema=ToolCallResult)

    for name, node in branch_nodes(ports, interrupt).items():
        branch.add_node(name, partial(_in_graph(node.step)), destinations=node.destinations)
    branch.add_edge(START, FIRST_STEP)
    return branch.compile()


def _in_graph(step: BranchStep) -> Callable[..., Awaitable[Command[str]]]:
    async def node(state: ToolCallState, runtime: Runtime[RunContext]) -> Command[str]:
        return await step(state, runtime.context)

    return node
