"""An agent on a real checkpointer, with ports that write down what they are asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from bot.records.database import is_outage
from graph.agents import ONLY_DEFAULT, Agents
from graph.interrupts import ApprovalAsked
from graph.models.streaming import Retry
from graph.nodes.use_tools import making_calls
from graph.ports import (
    AccountNeeded,
    AttemptUnknown,
    Beginning,
    Begun,
    Caller,
    CallRecord,
    Failed,
    Looked,
    NotApproved,
    OutcomeUnknown,
    Picked,
    Ports,
    Prepared,
    Progress,
    Ready,
    Recorded,
    SettledByPerson,
    SignInNeeded,
    Spoken,
    Succeeded,
    ToolOutcome,
    Unmade,
)
from graph.running import Agent
from graph.state import Turn, TurnOptions
from graph.usage import ModelUse, total_tokens
from graph.workflow import build_workflow
from policies.approvers import StandingApproval
from policies.judging import Policy
from policies.masking import Masker
from policies.model import Mode, Tool
from policies.policy_file import parse_policy
from tests.fakes.openai_server import wire_problem
from tests.support.opened_checkpoints import AnyCheckpoints, opened_checkpoints

Answering = Callable[[Sequence[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers by a function of the messages, and keeps what it was shown."""

    answering: Any
    seen: list[list[BaseMessage]]
    bound: list[list[dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.bound.append(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answering(messages))])


def tool(name: str, **more: Any) -> Tool:
    return Tool(server="s", name=name, **({"input_schema": {"type": "object"}} | more))


BLOCKED = "Blocked by policy: not here. Denied because rule “deny” covers deny* on every server."
"""What the model is told of a call of `deny…`."""


@dataclass
class Bench:
    """All ports of an agent, in memory. Tools are called `ask…`, `deny…` or anything else, which is allowed."""

    names: Sequence[str]
    outcomes: dict[str, Any] = field(default_factory=dict)
    unready: dict[str, Callable[[], Prepared]] = field(default_factory=dict)
    """What preparing a call comes to, by the names of tools, where it is not ready."""
    called: list[str] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    needed: list[Any] = field(default_factory=list)
    asked: list[ApprovalAsked] = field(default_factory=list)
    attempts: dict[str, Any] = field(default_factory=dict)
    permitted: bool = True
    records: list[CallRecord] = field(default_factory=list)
    unmade: list[Unmade] = field(default_factory=list)
    read_for_cards: list[Looked] = field(default_factory=list)
    groups: dict[str, bool | None] = field(default_factory=dict)
    looked_up: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    given: list[StandingApproval] = field(default_factory=list)
    tokens: int = 0
    used_up: str | None = None
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    down: list[Any] = field(default_factory=list)
    rules: Policy = field(default_factory=Policy)
    """The policy in force; `rig` sets it."""

    # tools
    async def available(self) -> list[Tool]:
        schema = {"type": "object"}
        return [tool(n, **({"input_schema": self.schemas.get(n, schema)} | self.more)) for n in self.names]

    def unavailable(self) -> list[Any]:
        return self.down

    async def settled(self, timeout: float) -> bool:
        return True

    async def find(self, full_name: str) -> Tool | None:
        return next((t for t in await self.available() if t.full_name == full_name), None)

    @asynccontextmanager
    async def prepared(self, tool_: Tool, arguments: dict[str, Any], caller: Caller) -> AsyncIterator[Prepared]:
        known = self.unready.get(tool_.name)
        yield known() if known else Ready(partial(self.send, tool_, arguments, caller), bool(caller.answers))

    async def send(self, tool_: Tool, arguments: dict[str, Any], caller: Caller, progress: Progress) -> ToolOutcome:
        self.called.append(caller.call_id)
        self.callers.append(caller)
        outcome = self.outcomes.get(tool_.name, Succeeded(f"{tool_.name} done"))
        result = outcome(arguments) if callable(outcome) else outcome
        return await result if hasattr(result, "__await__") else result

    async def give_up(self, call_id: str) -> None:
        self.given_up.append(call_id)

    # ledger
    async def recall(
        self, call_id: str, *, repeatable: bool
    ) -> Beginning | Recorded | AttemptUnknown | SettledByPerson:
        before = self.attempts.get(call_id)
        if before == "started":
            return AttemptUnknown(1)
        is_new = before in (None, "nothing", "asking")
        return Beginning(0.0, waits=before == "asking") if is_new else Recorded(before)

    async def unsent(
        self, record: CallRecord, outcome: Failed | None
    ) -> Begun | Recorded | AttemptUnknown | SettledByPerson | NotApproved:
        begun = await self.begin(record)
        if isinstance(begun, Begun):
            self.attempts[record.call_id] = outcome or "nothing"
        return begun

    async def begin(self, record: CallRecord) -> Begun | Recorded | AttemptUnknown | SettledByPerson | NotApproved:
        if not self.permitted:
            self.permitted = True
            return NotApproved()
        self.records.append(record)
        if not record.permitted:
            return NotApproved()
        before = self.attempts.get(record.call_id)
        if before == "started":
            return AttemptUnknown(1)
        if before not in (None, "nothing", "asking"):
            return Recorded(before)
        self.attempts[record.call_id] = "started"
        return Begun(1)

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        self.attempts[record.call_id] = outcome

    async def outcome_unknown(self, record: CallRecord, attempt: int, outcome: OutcomeUnknown) -> AttemptUnknown:
        self.attempts[record.call_id] = "started"
        return AttemptUnknown(attempt, outcome.text, outcome.owner)

    async def unknown_after_question(self, record: CallRecord, outcome: OutcomeUnknown) -> AttemptUnknown:
        return await self.outcome_unknown(record, 1, outcome)

    async def waits(self, record: CallRecord, attempt: int) -> None:
        self.attempts[record.call_id] = "asking"

    async def did_nothing(self, record: CallRecord, attempt: int) -> None:
        self.attempts[record.call_id] = "nothing"

    async def close(self, call_id: str, *, repeatable: bool) -> Recorded | AttemptUnknown | None:
        before = self.attempts.get(call_id)
        if before is None or before == "nothing":
            return None
        return AttemptUnknown(1) if before in ("started", "asking") else Recorded(before)

    # people, limits, audit
    async def groups_of(self, person_id: str, groups: Collection[str]) -> dict[str, bool | None]:
        self.looked_up.append((person_id, frozenset(groups)))
        return {group: self.groups.get(group) for group in groups}

    async def is_also(self, person_id: str, others: Collection[str]) -> dict[str, bool | None]:
        self.looked_up.append((person_id, frozenset(others)))
        return {other: self.groups.get(other) for other in others}

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        return None

    async def grants_of(self, person_id: str) -> list[StandingApproval]:
        return self.given

    async def refusal(self, person_id: str, channel: str = "") -> str | None:
        return self.used_up

    async def spent(self, person_id: str, model: str, use: ModelUse, channel: str = "") -> None:
        self.tokens += total_tokens(use)

    async def lost(self, turn: Turn, model: str, use: ModelUse) -> None:
        self.tokens += total_tokens(use)

    async def not_made(self, call: Unmade) -> None:
        self.unmade.append(call)

    async def read_for_card(self, looked: Looked) -> None:
        self.read_for_cards.append(looked)

    # approvals and sign-ins
    async def not_asked(self, call_id: str, round_: int) -> None:
        """Nothing was asked by a run that broke off."""

    async def ask(self, *given: Any) -> Any:
        if isinstance(given[1], ApprovalAsked):
            assert all(isinstance(said, Spoken) for said in given[2])
            await given[3]()
            self.asked.append(given[1])
            return given[1]
        assert isinstance(given[4], SignInNeeded | AccountNeeded)
        self.needed.append(given[4])
        return "sign-in-1"


POLICY = """
version: 1
rules:
  - {name: four, match: {tool: "ask_four*"}, decide: ask, approvers: [any], selfApproval: fourEyes}
  - {name: ask, match: {tool: "ask*"}, decide: ask}
  - {name: deny, match: {tool: "deny*"}, decide: deny, reason: not here}
  - {name: allow, match: {tool: "*"}, decide: allow}
"""


def turn(delivery: str, requester: str = "web:ana", options: TurnOptions | None = None) -> Turn:
    begun = Turn(
        delivery=delivery,
        requester=requester,
        requester_name=requester.rsplit(":", 1)[-1].capitalize(),
        time_zone="UTC",
        platform="web",
        channel="",
        thread_id="t",
    )
    return begun if options is None else {**begun, "options": options}


@dataclass
class Rig:
    """An agent, its model and its ports."""

    agent: Agent
    model: ScriptedModel
    bench: Bench
    checkpoints: AnyCheckpoints
    ports: Ports

    def with_agents(self, agents: Agents, models: Mapping[str, BaseChatModel] | None = None) -> Agent:
        """The same after a restart with other agents."""
        ports = replace(self.ports, agents=agents, models=models or {})
        workflow = build_workflow(ports, self.checkpoints)
        return Agent(workflow, self.checkpoints, lambda: 0.0, making_calls(ports), ports.masker)

    def problems(self) -> list[str]:
        """What an OpenAI-compatible service would refuse in what the model was shown."""
        return [p for seen in self.model.seen if (p := wire_problem([_wire(m) for m in seen]))]


def _wire(message: BaseMessage) -> dict[str, Any]:
    roles = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
    body: dict[str, Any] = {"role": roles[message.type], "content": message.text}
    if isinstance(message, AIMessage) and message.tool_calls:
        body["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": "{}"}}
            for c in message.tool_calls
        ]
    if message.type == "tool":
        body["tool_call_id"] = message.tool_call_id  # type: ignore[attr-defined]
    return body


def ports_of(
    bench: Bench,
    model: Any = None,
    *,
    policy: str = POLICY,
    mode: Mode = Mode.DEFAULT,
    calls_a_turn: int = 50,
    agents: Agents = ONLY_DEFAULT,
) -> Ports:
    """The ports of a bench, under this policy."""
    bench.rules = parse_policy(policy, "policy.yaml")

    async def route(messages: Any, categories: Any, run: Any) -> Picked:
        return Picked(categories)

    port: Any = bench
    return Ports(
        model=model,
        router=route,
        tools=port,
        ledger=port,
        approvals=port,
        sign_ins=port,
        policy=lambda: bench.rules,
        directory=port,
        grants=port,
        budget=port,
        audit=port,
        masker=Masker(),
        mode=mode,
        retry=Retry(times=0),
        calls_a_turn=calls_a_turn,
        is_outage=is_outage,
        agents=agents,
    )


@asynccontextmanager
async def rig(
    tmp_path: Path,
    answering: Answering,
    bench: Bench,
    *,
    policy: str = POLICY,
    mode: Mode = Mode.DEFAULT,
    calls_a_turn: int = 50,
    clock: Callable[[], float] = lambda: 0.0,
    agents: Agents = ONLY_DEFAULT,
) -> AsyncIterator[Rig]:
    model = ScriptedModel(answering=answering, seen=[], bound=[])
    ports = ports_of(bench, model, policy=policy, mode=mode, calls_a_turn=calls_a_turn, agents=agents)
    async with opened_checkpoints(tmp_path) as checkpoints:
        yield Rig(
            Agent(build_workflow(ports, checkpoints), checkpoints, clock, making_calls(ports), ports.masker),
            model,
            bench,
            checkpoints,
            ports,
        )


def calls(*names: str) -> AIMessage:
    """The model's message with these calls; ids as careless models give them."""
    return AIMessage(
        "calling",
        tool_calls=[
            {"name": n if n == "request_clarification" else f"s__{n}", "args": _args(n), "id": f"call_{i}"}
            for i, n in enumerate(names)
        ],
    )


def _args(name: str) -> dict[str, Any]:
    return {"question": "which?"} if name == "request_clarification" else {"k": 1}


def does(*names: str) -> Answering:
    """A model that makes these calls once a turn, and then repeats their results."""

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        last_person = max(i for i, m in enumerate(messages) if m.type == "human")
        results = [m.text for m in messages[last_person:] if m.type == "tool"]
        if results:
            return AIMessage(" | ".join(results))
        return calls(*names) if messages[last_person].text.endswith("go") else AIMessage("hello")

    return answering
