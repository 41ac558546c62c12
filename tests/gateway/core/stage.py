"""Calls of other agents on real records: the product's own parts, but the tool servers, the chats and the engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from adapters.slack.ids import named_place
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN
from bot.crypto import NewId
from bot.domain import Choice, ClickResult, ConversationReference, Decision, OutcomeChoice, Person
from bot.gateway.calls import GatewayCalls, GatewayLimits
from bot.gateway.changes import CallChanges
from bot.gateway.handler import GatewayCallHandler
from bot.gateway.views import GatewayCaller, GatewayCallView, GatewayRefusal
from bot.ledger import AttemptLedger
from bot.limits import NO_LIMIT, BeginningsHere
from bot.outbox import Outbox
from bot.records import deliveries, posts, waiting
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.posts import PostRow
from graph.observing import DeliveryHandled, Happening
from graph.ports import Ports
from graph.single_calls import SingleCalls
from policies.policy_file import parse_policy
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.stubs import NotedEngine, make_gateway_calls, make_parts
from tests.graph.parts import Bench, ports_of

ANA, BEN = Person("slack:T1:UANA", "Ana"), Person("slack:T1:UBEN", "Ben")
OPS = "slack:T1:COPS"
POLICY = """
version: 1
rules:
  - {name: elsewhere, match: {tool: "ask_there"}, decide: ask, approvers: [channel], routeTo: ["slack:T1:COPS"]}
  - {name: soon, match: {tool: "ask_soon"}, decide: ask, approvers: [any], expiresIn: 1h}
  - {name: again, match: {tool: "ask_again"}, decide: ask, approvers: [any], alwaysAllow: true}
  - {name: ask, match: {tool: "ask*"}, decide: ask, approvers: [any]}
  - {name: deny, match: {tool: "deny*"}, decide: deny, reason: not here}
  - {name: allow, match: {tool: "*"}, decide: allow}
"""


@dataclass
class Chat(RecordingPlatform):
    """Its places are named as Slack's are."""

    def named_place(self, reference: str) -> ConversationReference | None:
        return named_place(reference)


@dataclass
class HandEngine(NotedEngine):
    """Hands out nothing by itself: `GatewayStage.work` does."""


@dataclass
class GatewayStage:
    """Tools are called `ask…`, `deny…` or anything else, which is allowed; all are of the server `s`."""

    database: Database
    clock: SetClock
    new_id: NewId
    limits: GatewayLimits = GatewayLimits(NO_LIMIT, 100)  # noqa: RUF009  # frozen
    place: str | None = None
    bench: Bench = field(
        default_factory=lambda: Bench(["free", "ask", "ask_again", "ask_there", "ask_soon", "deny_it"])
    )
    engine: Any = field(default_factory=HandEngine)
    handled: list[DeliveryHandled] = field(default_factory=list)
    """What the observer was told."""

    def __post_init__(self) -> None:
        self.chat = Chat("slack", channels={OPS: {BEN.person_id}})
        platforms = {self.chat.name: self.chat}
        self.outbox = Outbox(self.database, self.clock, platforms, pause=lambda *_: 0.0)
        self.parts = make_parts(
            self.database,
            self.outbox,
            self.clock,
            self.new_id,
            platforms=platforms,
            find_tool=self.bench.find,
            engine=self.engine,
            gateway_place=OPS,
        )
        self.changes = CallChanges()
        self.restart()

    def restart(self, **how: Any) -> None:
        """A process that remembers nothing; `how`: its limits, and where it asks."""
        self.limits, self.place = how.get("limits", self.limits), how.get("place", self.place)
        self.calls: GatewayCalls = make_gateway_calls(
            self.database,
            self.engine,
            self.clock,
            self.new_id,
            directory=self.parts.directory,
            platforms={self.chat.name: self.chat},
            beginnings=BeginningsHere(self.clock),
            policy=parse_policy(POLICY, "policy.yaml"),
            tools=self.bench,
            limits=self.limits,
            place=self.place,
            changes=self.changes,
        )
        self.handler = GatewayCallHandler(
            self.database,
            SingleCalls(self.ports()),
            self.parts.open_requests,
            self.engine,
            self.clock,
            self.changes,
            PLAIN,
            observer=self,
        )

    def note(self, happening: Happening) -> None:
        """As an observer."""
        if isinstance(happening, DeliveryHandled):
            self.handled.append(happening)

    def ports(self) -> Ports:
        parts, audit = self.parts, AuditLog(self.database, self.clock, PLAIN)
        return replace(
            ports_of(self.bench, policy=POLICY),
            ledger=AttemptLedger(self.database, self.outbox, self.clock, self.new_id, audit),
            approvals=parts.requests,
            sign_ins=parts.sign_ins,
            directory=parts.directory,
            grants=parts.standing_approvals,
            audit=audit,
        )

    # ------------------------------------------------------------------------------------------- the program

    async def begin(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        by: Person = ANA,
        client: str = "editor",
        **how: Any,
    ) -> GatewayCallView | GatewayRefusal:
        """A program calls a tool."""
        found = await self.bench.find(f"s__{tool}")
        assert found is not None
        caller = GatewayCaller(by, frozenset({by.person_id}), client)
        return await self.calls.call(caller, found, arguments or {"k": 1}, **how)

    async def called(self, tool: str, arguments: dict[str, Any] | None = None, **how: Any) -> GatewayCallView:
        """It calls one, and waits until there is something to tell."""
        begun = await self.begin(tool, arguments, **how)
        assert isinstance(begun, GatewayCallView), begun
        await self.work()
        return await self.now(begun)

    async def now(self, view: GatewayCallView) -> GatewayCallView:
        """How the call stands."""
        found = await self.calls.wait(view.gateway_call_id, view.changed_at, 0.0)
        assert found is not None
        return found

    async def fetched(self, view: GatewayCallView) -> None:
        """The result has reached the program."""
        await self.calls.delivered(view.gateway_call_id)

    # ------------------------------------------------------------------------------------------- the engine

    async def work(self) -> None:
        """Handle all that is due, until nothing is."""
        for _ in range(50):
            head = await self.head()
            if head is None:
                return
            await self.handler.handle(head)
        raise AssertionError("it comes to no end")

    async def head(self) -> Delivery | None:
        """What is to be handled next."""
        async with self.database.reading() as tx:
            for thread_id in await deliveries.threads_with_work(tx, self.clock()):
                if (head := await deliveries.head(tx, thread_id, self.clock())) is not None:
                    return head
        return None

    # ------------------------------------------------------------------------------------------- people

    async def decides(
        self, person: Person, view: GatewayCallView, verb: Any = "approve", *, via: Any = "", **how: Any
    ) -> ClickResult:
        """Somebody decides about what a call waits for."""
        assert view.waits_for is not None
        decision = Decision(self.new_id(), person, (Choice(view.waits_for.subject, verb, **how),), via=via)
        (result,) = (await self.parts.services.approvals.decide(decision)).values()
        return result

    async def says(self, person: Person, view: GatewayCallView, choice: Any, *, via: Any = "") -> ClickResult:
        """Somebody says what came of a call."""
        assert view.waits_for is not None
        said = OutcomeChoice(self.new_id(), person, view.waits_for.subject, choice, via=via)
        return await self.parts.services.approvals.settle_outcome(said)

    async def cards(self, view: GatewayCallView) -> list[PostRow]:
        """The cards of what a call waits for."""
        assert view.waits_for is not None
        async with self.database.reading() as tx:
            return list((await posts.of_subjects(tx, [view.waits_for.subject]))[view.waits_for.subject])

    async def is_anything_asked(self) -> bool:
        """Whether any approval waits."""
        async with self.database.reading() as tx:
            return await waiting.is_anything_asked(tx)
