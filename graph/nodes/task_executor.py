"""Asks the model what to say or do next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime

from graph.agents import AgentConfig, name_in
from graph.calls import (
    TakingOut,
    calls_made,
    carrying,
    current_turn,
    gave_up,
    given_call,
    message_of_given,
    next_step,
    own_ids,
)
from graph.citations import TurnSources, citing, filtered, sources_in
from graph.files import READ_FILE_TOOL, can_be_read
from graph.json_values import storable
from graph.judging import taken_out
from graph.memory import Recalled
from graph.models.asking import Asking, ask
from graph.models.tool_calls import MOST_CALLS
from graph.nodes import Node
from graph.nodes.delegate import delegates
from graph.observing import TurnHandling
from graph.options import has_tools, may_ask, mode_of
from graph.plans import delegate_tool, most_calls
from graph.ports import Ports, Unfinished
from graph.prompts import conversation, tool_definitions
from graph.state import RunContext, State, Turn, turn_of
from graph.usage import NO_USAGE, name_of, with_use
from policies.model import Annotations, Mode, Tool
from translations import gettext as _


def task_executor(ports: Ports) -> Node:
    """The node. Its message is under our ids before it is checkpointed. Raises `ModelProblem`."""
    bound = _Bound(ports)

    async def task_executor(state: State, runtime: Runtime[RunContext]) -> dict[str, Any]:
        turn, step = turn_of(state), next_step(state["messages"])
        if runtime.context.settling:
            unfinished = runtime.context.unfinished
            is_this = unfinished is not None and unfinished.said.message_id == f"{turn['delivery']}.{step}"
            if unfinished is None or not is_this:
                return {}
            return {"messages": [_left(unfinished, sources_in(current_turn(state["messages"]), ports.source_tools))]}
        agent = ports.agents.of(turn)
        if agent is None:
            text = _("The agent “{name}” doesn’t exist anymore. Ask again to use another one.").format(
                name=name_in(turn)
            )
            return {"messages": [gave_up(text, f"{turn['delivery']}.{step}")]}
        if step >= agent.max_steps:
            text = _("I stopped after {count} steps. Try a smaller request.").format(count=agent.max_steps)
            return {"messages": [gave_up(text, f"{turn['delivery']}.{step}")]}
        made, most = calls_made(current_turn(state["messages"])), most_calls(turn, ports.calls_a_turn)
        if made >= most + MOST_CALLS:
            told = _("I stopped after {count} tool calls; one request may make {most}. Try a smaller request.")
            text = told.format(count=made, most=most)
            return {"messages": [gave_up(text, f"{turn['delivery']}.{step}")]}
        if refused := await ports.budget.refusal(turn["requester"], turn["channel"]):
            return {"messages": [gave_up(refused, f"{turn['delivery']}.{step}")]}
        if step == 0 and (call := given_call(current_turn(state["messages"])[0])) is not None:
            return {"messages": [message_of_given(call, turn["delivery"])]}
        mode, categories = mode_of(turn, ports.mode), state.get("categories")
        available = agent.offered(await ports.tools.available()) if has_tools(turn) else ()
        tools = [tool for tool in available if not categories or tool.category in categories]
        sources = _sources(ports, state, tools)
        prompt = conversation(
            state,
            turn,
            agent=agent,
            sources=sources,
            now=runtime.context.now,
            mode=mode,
            unavailable=ports.tools.unavailable(),
            offers_tools=bool(tools),
            recalled=await _recalled(ports, turn, runtime.context),
        )
        live, message_id = runtime.context.live, f"{turn['delivery']}.{step}"
        model = bound.to(tools, turn, agent, has_files=_has_files(state, turn))
        citations = citing(sources) if sources is not None else None

        def show(delta: str) -> None:
            if text := citations.add(delta) if citations is not None else delta:
                live.text(message_id, text)

        name, run = name_of(ports.model_of(turn)), TurnHandling(turn, runtime.context.delivery)
        lost = partial(ports.budget.lost, turn, name)
        asking = Asking(ports.observer, run, "answer", name, runtime.context.clock, keep_lost=lost)
        message, use = await ask(model, prompt, show, retry=ports.retry, asking=asking)
        usage = with_use(state.get("usage", NO_USAGE), name, use)
        if citations is not None and (held := citations.rest()):
            live.text(message_id, held)
        await ports.budget.spent(turn["requester"], name, use, turn["channel"])
        take_out = await _taking_out(ports, tools, message) if mode is Mode.SAFE_WRITE else None
        if sources is None:
            return {"messages": [own_ids(message, turn["delivery"], step, take_out)], "usage": usage}
        text, cited = filtered(message.text, sources)
        message = message.model_copy(update={"content": text})
        return {"messages": [own_ids(message, turn["delivery"], step, take_out, cited)], "usage": usage}

    return task_executor


def _has_files(state: State, turn: Turn) -> bool:
    """Whether there is anything in the conversation that `read_file` could read."""
    return bool(state.get("files") or turn.get("files")) or can_be_read(state["messages"])


async def _recalled(ports: Ports, turn: Turn, context: RunContext) -> Recalled | None:
    """What is remembered for a turn, read once in a run. Agents that work on a task of a plan are told what to do by
    the one that made it, and nothing of people."""
    if ports.memory is None or "said" in turn:
        return None
    if turn["delivery"] not in context.recalled:
        context.recalled[turn["delivery"]] = await ports.memory.recalled(turn["requester"], turn["channel"])
    return context.recalled[turn["delivery"]]


def _sources(ports: Ports, state: State, tools: Sequence[Tool]) -> TurnSources | None:
    """What the turn can cite; `None`: it is none in which anything could be."""
    if not ports.source_tools:
        return None
    known = sources_in(current_turn(state["messages"]), ports.source_tools)
    is_offered = any(tool.full_name in ports.source_tools for tool in tools)
    return known if known.sources or is_offered else None


def _left(unfinished: Unfinished, known: TurnSources) -> AIMessage:
    """The message of an answer that has no end: its reader keeps what was there, and the model knows of both."""
    text = storable(unfinished.said.text)
    _text, cited = filtered(text, known)
    fence = "\n```" if text.count("```") % 2 else ""  # or the note would stand within the code
    note = _("stopped here") if unfinished.note == "stopped here" else _("broken off here")
    said = f"{text}{fence}\n\n*({note})*"
    return AIMessage(said, id=unfinished.said.message_id, additional_kwargs=carrying(cited))


async def _taking_out(ports: Ports, offered: Sequence[Tool], message: AIMessage) -> TakingOut:
    """Takes quotes out of a message's calls, by the schemas that the model was given."""
    by_name: dict[str, Tool | None] = {tool.full_name: tool for tool in offered}
    for call in message.tool_calls:
        if call["name"] not in by_name:
            by_name[call["name"]] = await ports.tools.find(call["name"])

    def take_out(name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        return taken_out(by_name.get(name), arguments)

    return take_out


_Offered = tuple[tuple[str, str, Annotations], ...]


class _Way(NamedTuple):
    """What differs between the tools of turns besides the servers'."""

    agent: str
    quoted: bool
    """Whether tools ask for a quote."""
    with_clarification: bool
    with_plans: bool
    with_files: bool


class _Bound:
    """The model with tools bound to it, made anew only when the tools change: binding costs milliseconds. Kept for each
    way in which turns have them."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._bound: dict[_Way, tuple[_Offered, Runnable[LanguageModelInput, AIMessage]]] = {}
        """In which way → what was bound last, and the model."""

    def to(
        self, tools: Sequence[Tool], turn: Turn, agent: AgentConfig, *, has_files: bool
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model as it is asked in a turn. `has_files`: whether there are files in its conversation to be read."""
        quoted, with_clarification = (
            mode_of(turn, self._ports.mode) is Mode.SAFE_WRITE,
            has_tools(turn) and may_ask(turn),
        )
        agents = delegates(self._ports, turn)
        has_files = has_files and has_tools(turn)
        way, model = _Way(agent.name, quoted, with_clarification, bool(agents), has_files), self._ports.model_of(turn)
        offered = tuple((t.full_name, t.schema_hash, t.annotations) for t in tools)
        if not offered and not with_clarification and not agents and not has_files:
            return model  # services refuse an empty list
        known = self._bound.get(way)
        if known is None or known[0] != offered:
            definitions = tool_definitions(tools, quoted=quoted, with_clarification=with_clarification)
            definitions += [delegate_tool(agents)] if agents else []
            definitions += [READ_FILE_TOOL] if has_files else []
            known = self._bound[way] = offered, model.bind_tools(definitions)
        return known[1]
