"""The embedded house put together: records, books, graph, engine, desk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.accounts.flow import SignInFlow
from bot.accounts.office import Inside, Office, Outside, make_office
from bot.accounts.sign_ins import SignInBook
from bot.approvals.directory import Directory, Facts
from bot.approvals.requests import ApprovalBook
from bot.audit.log import AuditLog
from bot.books import Books
from bot.cards import Cards
from bot.clarifications import ClarificationBook
from bot.clock import Clock
from bot.conversation import Conversation, Surroundings
from bot.desk import FrontDesk
from bot.domain import Place
from bot.grants import GrantBook
from bot.handing import Handing
from bot.ids import random_id
from bot.inbox.accept import Acceptance
from bot.inbox.embedded import EmbeddedEngine
from bot.inbox.sessions import Sessions
from bot.introductions import Introductions
from bot.ledger import AttemptLedger
from bot.limits import TokenBudget, TurnLimit
from bot.platform import Platform
from bot.posts import Posts
from bot.presence import Presence
from bot.records import deliveries
from bot.records.database import Database
from bot.records.opening import Records
from bot.secrets import Sealer
from bot.settings import Settings
from bot.voting import Voting
from bot.waits import Waits
from graph.models import ModelSpec, close_model
from graph.models.router import create_router
from graph.models.streaming import Retry
from graph.ports import Ports, Tools
from graph.running import Agent
from graph.workflow import build_workflow
from policies.redaction import Redactor
from policies.rules import Policy

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HouseParts:
    """What a house is made of."""

    settings: Settings
    records: Records
    """What is kept on disk, open."""
    key: bytes
    """Fernet key, or several separated by commas."""
    tools: Tools
    policy: Callable[[], Policy]
    """The policy in force; another one after a reload."""
    platforms: Mapping[str, Platform]
    clock: Clock
    redactor: Redactor
    """Masks what must not be shown."""
    create_model: Callable[[ModelSpec], BaseChatModel]
    """Makes the model that a setting names. Raises `ModelProblem` when it is not configured."""
    outside: Outside = field(default_factory=Outside)
    """Services at which people have accounts."""


class House:
    """A running house: its desk, the way of sign-ins, and how it is."""

    def __init__(self, desk: FrontDesk, office: Office, engine: EmbeddedEngine, database: Database) -> None:
        self.desk = desk
        self.flow: SignInFlow = office.flow
        self.sign_ins: SignInBook = office.sign_ins
        self._connections = office.connections
        self._engine = engine
        self._database = database

    async def connections(self) -> Mapping[str, int]:
        """How many people's accounts work, by connection: all that an operator may see of them."""
        return await self._connections.counts()

    async def health(self) -> Mapping[str, int]:
        """How many deliveries wait or are parked, and how many threads are being handled."""
        async with self._database.reading() as tx:
            counts = await deliveries.counts(tx)
        return {"waiting": counts.get("waiting", 0), "parked": counts.get("parked", 0), "running": self._engine.busy}


@asynccontextmanager
async def open_house(parts: HouseParts, *, shutdown_seconds: float) -> AsyncIterator[House]:
    """Everything between the adapters and the policies, while it runs. Raises `ModelProblem` when the model is not
    configured."""
    settings, clock = parts.settings, parts.clock
    database, checkpoints = parts.records.database, parts.records.checkpoints
    async with AsyncExitStack() as stack:
        posts = Posts(database, clock, parts.platforms, redactor=parts.redactor)
        audit = AuditLog(database, clock, parts.redactor)
        engine = EmbeddedEngine(database, clock, concurrency=settings.turn_concurrency)
        cards = Cards(posts, partial(find_place, parts.platforms))
        directory = Directory(parts.platforms, database, clock)
        stack.push_async_callback(directory.close)
        facts = Facts(database, directory, clock)
        approvals = ApprovalBook(
            database, posts, cards, clock, random_id, introduce=facts.introduce, timer_set=engine.look_again
        )
        grants = GrantBook(database, clock, random_id, redactor=parts.redactor)
        questions = ClarificationBook(posts, clock, random_id)
        inside = Inside(database, posts, engine, clock, random_id, Sealer(parts.key), parts.platforms)
        office = make_office(inside, parts.outside, links_an_hour=settings.limit_links_per_hour)
        stack.push_async_callback(office.connections.close)
        sign_ins = office.sign_ins
        retry = Retry(times=settings.model_retries)
        model = parts.create_model(settings.model_spec)
        same = settings.router_spec == settings.model_spec
        router_model = model if same else parts.create_model(settings.router_spec)
        stack.push_async_callback(close_model, model)
        stack.push_async_callback(close_model, router_model)
        ports = Ports(
            model=model,
            router=create_router(router_model, retry),
            tools=parts.tools,
            ledger=AttemptLedger(database, posts, clock, random_id, audit),
            approvals=approvals,
            sign_ins=sign_ins,
            policy=parts.policy,
            directory=directory,
            grants=grants,
            budget=TokenBudget(database, clock, settings.limit_tokens_per_day),
            audit=audit,
            mode=settings.mode,
            retry=retry,
            calls_a_turn=settings.limit_calls_per_turn,
        )
        agent = Agent(build_workflow(ports, checkpoints), checkpoints, clock)
        waits = Waits(approvals, questions, sign_ins, posts)
        introductions = Introductions(database, parts.platforms, clock, office.codes)
        turn_limit = TurnLimit(
            clock,
            per_person=settings.limit_turns_per_minute,
            per_thread=settings.limit_thread_turns_per_minute,
        )
        surroundings = Surroundings(
            database, agent, posts, waits, questions, introductions, parts.platforms, clock, turn_limit
        )
        conversation = Conversation(surroundings, engine)
        desk = FrontDesk(
            database,
            engine,
            Books(
                Acceptance(database, Sessions(settings.session_quiet_hours * 3600), clock),
                approvals,
                Voting(
                    database,
                    posts,
                    facts,
                    grants,
                    clock,
                    find_tool=parts.tools.find,
                    audit=audit,
                    redactor=parts.redactor,
                ),
                Handing(database, posts, cards, facts, clock),
                grants,
                facts,
                questions,
                sign_ins,
                office.codes,
                office.connections,
                Presence(database, posts, waits, clock),
            ),
            posts,
            clock,
            redactor=parts.redactor,
        )
        await posts.start()
        await office.connections.start()
        starting = asyncio.create_task(_start(engine, conversation, parts.tools), name="engine start")
        try:
            yield House(desk, office, engine, database)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await engine.stop(shutdown_seconds)
            await posts.stop(1.0)


def find_place(platforms: Mapping[str, Platform], reference: str) -> Place | None:
    """The place that a policy names, on whichever platform that knows it."""
    return next((place for p in platforms.values() if (place := p.named_place(reference)) is not None), None)


START_PAUSE = 1.0
"""Seconds before the inbox is taken up again when it could not be read."""
FIRST_CONNECTION = 10.0
"""Seconds that the first turn waits for tool servers: a turn without its tools would be told that they are gone."""


async def _start(engine: EmbeddedEngine, conversation: Conversation, tools: Tools) -> None:
    await tools.settled(FIRST_CONNECTION)
    while True:
        try:
            await engine.start(conversation.handle)
        except Exception:
            # Nobody awaits this task while the house is open: without another try it would stay mute.
            log.exception("engine_not_started")
            await asyncio.sleep(START_PAUSE)
        else:
            return
