"""What a conversation is handled with, on real records, with stand-ins for the agent and the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from adapters.files.reader import ChildFileReader
from adapters.tool_servers.sessions import complaint_about
from bot.accounts.account_services import AccountServices, make_accounts
from bot.accounts.codes import Codes
from bot.accounts.connections import Changed
from bot.accounts.flow import SignInFlow
from bot.accounts.sign_ins import SignInLinks, SignIns
from bot.agent_choices import AgentChoices
from bot.approvals.decisions import Approvals, FindTool
from bot.approvals.directory import PeopleDirectory
from bot.approvals.requests import ApprovalRequests
from bot.approvals.standing_approvals import StandingApprovals
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN
from bot.console.access import OperatorAccess
from bot.console.audit import AuditSearch, AuditTerms, AuditVerification
from bot.console.links import ConsoleLinks
from bot.console.parked import ParkedDeliveries
from bot.console.parts import InstallationParts, facts_of, only_process
from bot.console.services import Console
from bot.console.turns import TurnsOfEverybody
from bot.console.waiting import WaitingForAnybody
from bot.conversations import Conversations
from bot.crypto import NewId, Sealer
from bot.domain import Clock, Person
from bot.files import Files
from bot.gateway.calls import GatewayCalls, GatewayLimits
from bot.gateway.changes import CallChanges
from bot.halting import HaltSwitch
from bot.inbox import Acceptance, Inbox
from bot.ledger import AttemptLedger
from bot.limits import NO_LIMIT, Beginnings, BeginningsHere, TurnLimit
from bot.memory import Memories
from bot.outbox import Outbox
from bot.plans import Plans
from bot.platform import Platform
from bot.prices import NO_PRICES
from bot.queries import Queries
from bot.questions import Questions
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.notifications import Notifications
from bot.rules.counting import RuleCounts
from bot.rules.reports import RuleReports
from bot.services import Services
from bot.turns.engine import Engine
from bot.turns.handler import TurnHandler
from bot.turns.messages import Introductions
from bot.turns.open_requests import OpenRequests
from bot.usage import UsageReports
from graph.agents import ONLY_DEFAULT, Agents
from graph.ports import Live, Spoken, Tools, Unfinished
from graph.running import Agent, RunVerb, ThreadStatus
from graph.state import Turn
from policies.judging import Policy
from policies.model import Mode, Tool

KEY = b"A" * 43 + b"="
SECRET = "https://accounts.example.com/start?ticket=top-secret-ticket"
REST = ThreadStatus(delivery=None, verb=None, at_rest=True, interrupts=(), turn=None, spoken=())


@dataclass
class FragileAgent:
    """An agent that answers, except to the messages it cannot take."""

    unable: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    settles: bool = True
    broken_off: bool = False
    """Whether the thread stands where a process died in a decision's run."""
    gone_on: int = 0
    breaking_off: set[str] = field(default_factory=set)
    """Messages whose first run fails in the middle."""

    async def status(self, thread_id: str) -> ThreadStatus:
        # Some turn there was, or nothing could be decided; whose, the records say.
        before = replace(REST, turn=cast("Turn", dict.fromkeys(Turn.__annotations__, "")))
        return replace(before, at_rest=False, delivery="earlier", verb="resume") if self.broken_off else before

    async def go_on(self, thread_id: str, delivery: str, verb: RunVerb, live: Live) -> ThreadStatus:
        self.gone_on += 1
        self.broken_off = False
        return replace(await self.status(thread_id), delivery=delivery, verb=verb)

    async def begin(
        self, turn: Turn, text: str, live: Live, *, background: str = "", files: object = (), call: object = None
    ) -> ThreadStatus:
        self.begun.append(text)
        if text in self.breaking_off:
            self.breaking_off.discard(text)
            self.broken_off = True
            raise RuntimeError("failed in the middle")
        if text in self.unable:
            raise RuntimeError(f"cannot take it, see {SECRET}")
        spoken = Spoken(f"{turn['delivery']}.0", f"You said: {text}")
        return replace(REST, delivery=turn["delivery"], verb="run", turn=turn, spoken=(spoken,))

    async def settle(
        self, thread_id: str, delivery: str, why: str, *, unfinished: Unfinished | None = None, **_: object
    ) -> ThreadStatus:
        self.settled.append(why)
        if not self.settles:
            raise RuntimeError("cannot settle either")
        self.broken_off = False
        return REST

    async def prune(self, thread_id: str, look: ThreadStatus) -> None:
        pass


@dataclass
class NotedEngine:
    """An engine that handles nothing and notes what it is told."""

    woken: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)
    timers_set: int = 0
    begun: set[str] = field(default_factory=set)

    def wake(self, thread_id: str) -> None:
        self.woken.append(thread_id)

    def resume(self, thread_id: str) -> None:
        self.wake(thread_id)

    async def kept(self, tx: Transaction, thread_id: str) -> None:
        pass

    def wake_when_idle(self, thread_id: str) -> None:
        self.wake(thread_id)

    def timer_was_set(self) -> None:
        self.timers_set += 1

    def interrupt(self, thread_id: str) -> None:
        self.interrupted.append(thread_id)

    @asynccontextmanager
    async def held_back(self, thread_id: str) -> AsyncIterator[None]:
        yield

    def has_begun(self, delivery: Delivery) -> bool:
        return delivery.key in self.begun


@dataclass(frozen=True)
class Parts:
    """What the services are made of, and the services."""

    services: Services
    requests: ApprovalRequests
    standing_approvals: StandingApprovals
    directory: PeopleDirectory
    sign_ins: SignIns
    codes: Codes
    flow: SignInFlow
    open_requests: OpenRequests


async def nobody(person_id: str, connection: str) -> None:
    """Holds nothing open with anybody's account."""


def no_calls() -> None:
    """None wait."""


async def no_tool(full_name: str) -> None:
    """Finds none."""


async def no_tools() -> list[Tool]:
    """Lists none."""
    return []


def make_parts(
    database: Database,
    outbox: Outbox,
    clock: Clock,
    new_id: NewId,
    *,
    platforms: Mapping[str, Platform] | None = None,
    find_tool: FindTool = no_tool,
    engine: Engine | None = None,
    outside: AccountServices | None = None,
    sealer: Sealer | None = None,
    address: Callable[[], str] = lambda: "http://127.0.0.1",
    changed: Changed = nobody,
    links_an_hour: int = NO_LIMIT,
    beginnings: Beginnings | None = None,
    gateway_place: str | None = None,
) -> Parts:
    """The services on real records; `platforms` are asked about people."""
    platforms, engine, outside = platforms or {}, engine or NotedEngine(), outside or AccountServices()
    sealer = sealer or Sealer(KEY)
    common = database, engine, outbox, clock
    beginnings = beginnings or BeginningsHere(clock)
    links = SignInLinks(
        database,
        outside.services,
        sealer,
        clock,
        new_id,
        address=address,
        beginnings=beginnings,
        links_an_hour=links_an_hour,
    )
    directory = PeopleDirectory(platforms, database, clock)
    requests = ApprovalRequests(
        database,
        outbox,
        platforms,
        clock,
        new_id,
        learn_names=directory.learn_names,
        timer_set=engine.timer_was_set,
        gateway_place=gateway_place,
    )
    standing_approvals, audit = StandingApprovals(database, clock, new_id), AuditLog(database, clock, PLAIN)
    questions = Questions(*common, new_id)
    sign_ins = SignIns(*common, new_id=new_id, services=outside.services, links=links, sealer=sealer, address=address)
    connections, codes, flow = make_accounts(
        *common,
        outside=outside,
        sealer=sealer,
        new_id=new_id,
        address=address,
        platforms=platforms,
        changed=changed,
        beginnings=beginnings,
    )
    ledger = AttemptLedger(database, outbox, clock, new_id, audit)
    open_requests = OpenRequests(requests, questions, sign_ins, ledger, outbox, plans=Plans(outbox, engine, clock))
    acceptance = Acceptance(database, clock)
    approvals = Approvals(
        *common,
        requests=requests,
        directory=directory,
        standing_approvals=standing_approvals,
        find_tool=find_tool,
        audit=audit,
    )
    queries = Queries(database, directory, clock, PLAIN)
    services = Services(
        inbox=Inbox(*common, acceptance=acceptance, codes=codes, open_requests=open_requests),
        approvals=approvals,
        questions=questions,
        connections=connections,
        sign_in_links=links,
        conversations=Conversations(
            database, directory, clock, PLAIN, queries=queries, is_operator=is_no_operator, note_reading=note_nothing
        ),
        queries=queries,
        agents=AgentChoices(database, ONLY_DEFAULT, clock),
        gateway=make_gateway_calls(
            database, engine, clock, new_id, directory=directory, platforms=platforms, beginnings=beginnings
        ),
        files=Files(database, ChildFileReader(), platforms, outbox, clock, new_id=new_id),
        memories=Memories(None, database, directory, clock),
        usage=UsageReports(
            database, directory, clock, NO_PRICES, is_operator=is_no_operator, note_reading=note_nothing
        ),
        console=make_console(database, outbox, clock, new_id, engine=engine, is_operator=is_no_operator),
        console_links=ConsoleLinks(None, is_no_operator),
        rules=RuleReports(
            database,
            OperatorAccess(is_no_operator, note_nothing),
            directory,
            clock,
            Policy,
            counts=RuleCounts(database),
            agents=ONLY_DEFAULT,
            find_tool=find_tool,
            list_tools=no_tools,
            mode=Mode.DEFAULT,
        ),
    )
    return Parts(services, requests, standing_approvals, directory, sign_ins, codes, flow, open_requests)


def make_switch(
    database: Database,
    outbox: Outbox,
    clock: Clock,
    new_id: NewId,
    is_operator: Callable[[Person], Awaitable[bool]],
    notifications: Notifications | None = None,
) -> HaltSwitch:
    """The switch that stops everything, for these operators."""
    audit = AuditLog(database, clock, PLAIN)
    return HaltSwitch(
        database,
        outbox,
        clock,
        new_id,
        audit=audit,
        ledger=AttemptLedger(database, outbox, clock, new_id, audit),
        is_operator=is_operator,
        find_tool=no_tool,
        give_up_calls=no_calls,
        notifications=notifications,
    )


def make_console(
    database: Database,
    outbox: Outbox,
    clock: Clock,
    new_id: NewId,
    *,
    engine: Engine,
    is_operator: Callable[[Person], Awaitable[bool]],
) -> Console:
    """The console for these operators."""
    audit = AuditLog(database, clock, PLAIN)
    access = OperatorAccess(is_operator, audit.read)
    halts = make_switch(database, outbox, clock, new_id, is_operator)
    return Console(
        waiting=WaitingForAnybody(database, access, clock),
        turns=TurnsOfEverybody(database, access, PLAIN, NO_PRICES),
        audit=AuditSearch(database, access, AuditTerms(database)),
        verification=AuditVerification(database, access),
        halts=halts,
        parts=InstallationParts(
            database,
            access,
            audit,
            told=lambda: [(only_process("1", clock(), "p1"), facts_of([], is_stopped=halts.is_on.is_set()))],
            tool_servers=NoToolServers(),
        ),
        parked=ParkedDeliveries(database, access, audit, engine, clock),
    )


class NoToolServers:
    """There is none to be connected to. Fills `bot.console.parts.RetriesToolServers`."""

    def retry(self, name: str) -> bool:
        return False


def make_gateway_calls(
    database: Database,
    engine: Engine,
    clock: Clock,
    new_id: NewId,
    *,
    directory: PeopleDirectory,
    platforms: Mapping[str, Platform],
    beginnings: Beginnings,
    tools: object = None,
    policy: Policy | None = None,
    limits: GatewayLimits = GatewayLimits(NO_LIMIT, 100),  # noqa: B008  # frozen
    place: str | None = None,
    changes: CallChanges | None = None,
    is_stopped: asyncio.Event | None = None,
) -> GatewayCalls:
    """Calls of other agents; `tools`: their port, where any are listed."""
    return GatewayCalls(
        database,
        engine,
        clock,
        tools=cast("Tools", tools),
        complaint_about=lambda tool, arguments: complaint_about(arguments, tool.input_schema),
        policy=lambda: policy or Policy(),
        mode=Mode.DEFAULT,
        directory=directory,
        platforms=platforms,
        new_id=new_id,
        beginnings=beginnings,
        limits=limits,
        place=place,
        changes=changes or CallChanges(),
        learn_names=directory.learn_names,
        is_stopped=is_stopped or asyncio.Event(),
    )


async def no_tool(_: str) -> Tool | None:
    return None


async def is_no_operator(_: Person) -> bool:
    return False


async def note_nothing(_: Person, __: str, ___: str = "") -> None:
    return


def make_turn_handler(
    database: Database,
    outbox: Outbox,
    clock: Clock,
    parts: Parts,
    agent: FragileAgent,
    engine: Engine,
    platforms: Mapping[str, Platform] | None = None,
    turn_limit: TurnLimit | None = None,
    *,
    begins_turns: bool = True,
    agents: Agents = ONLY_DEFAULT,
) -> TurnHandler:
    """A handler with this agent; its live view goes to nobody."""
    return TurnHandler(
        database,
        cast("Agent", agent),
        outbox,
        parts.open_requests,
        parts.services.questions,
        Plans(outbox, engine, clock),
        Introductions(database, platforms or {}, clock, parts.codes),
        platforms or {},
        engine,
        clock,
        turn_limit or TurnLimit(BeginningsHere(clock), per_person=NO_LIMIT, per_thread=NO_LIMIT),
        AgentChoices(database, agents, clock),
        parts.services.files,
        PLAIN,
        begins_turns=begins_turns,
    )
