"""Countersign: everything put together, from top to bottom. `python app.py` starts it.

settings → records → senders → tools → graph → services → receivers → one aiohttp server
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # nearly all that is imported stays: to look for garbage in it takes an eighth of the start

import asyncio
import logging
import os
import signal
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa
import structlog
from aiohttp import web
from dotenv import dotenv_values

import translations
from adapters.accounts import AccountsConfig, AccountsError, account_routes, accounts_config, open_accounts
from adapters.files.reader import ChildFileReader
from adapters.identity import jwt_verifier, open_id_sign_in
from adapters.platforms import PlatformSetup, Receivers, make_receivers, make_senders
from adapters.shared.http import ask_this_machine_itself
from adapters.shared.importing import imported
from adapters.shared.outages import OutageAnswers
from adapters.shared.people_changes import PeopleChanges
from adapters.shared.serving import (
    health_check,
    last_answers,
    limits_for,
    metrics_page,
    raise_open_files_limit,
    readiness,
    started_server,
)
from adapters.siem.collector import EventCollector
from adapters.telemetry.opening import Deployment, Telemetry, TelemetryError, telemetry
from adapters.telemetry.pauses import ObservedPauses
from adapters.tool_servers.account_changes import AccountChanges
from adapters.tool_servers.config import ConfigError, ToolServersConfig, keeping_files_here, load_config, source_tools
from adapters.tool_servers.elicitation import CallingRun, OnlyProcess
from adapters.tool_servers.retries import ToolServerRetries
from adapters.tool_servers.servers import ToolServers, look_up
from adapters.tool_servers.sessions import ServerState
from adapters.web.config import DEFAULT_PEOPLE
from adapters.web.sender import SharedPage
from bot.accounts.account_services import make_accounts
from bot.accounts.only_once import LONGEST_SECONDS as LONGEST_ASKING_SECONDS
from bot.accounts.sign_ins import Address, SignInLinks, SignIns
from bot.agent_choices import AgentChoices
from bot.approvals.decisions import Approvals
from bot.approvals.directory import PeopleDirectory
from bot.approvals.requests import ApprovalRequests
from bot.approvals.standing_approvals import StandingApprovals
from bot.audit.log import AuditLog
from bot.audit.ocsf import LogSource
from bot.audit.pushing import AuditPush, destination_of
from bot.budgets import DailyBudget, DailyLimits
from bot.card_masks import log_masker_of, masker_of
from bot.console.access import OperatorAccess
from bot.console.audit import AuditSearch, AuditTerms, AuditVerification
from bot.console.links import ConsoleLinks
from bot.console.parked import ParkedDeliveries
from bot.console.parts import InstallationParts, facts_of, only_process
from bot.console.services import Console
from bot.console.turns import TurnsOfEverybody
from bot.console.waiting import WaitingForAnybody
from bot.conversations import Conversations
from bot.crypto import KeyFileError, Sealer, kept_key, random_id
from bot.data_folder import FolderInUseError, folder_lock
from bot.domain import Clock, Person, system_clock
from bot.files import Files
from bot.first_steps import first_steps
from bot.gateway.calls import GatewayCalls, GatewayLimits
from bot.gateway.changes import CallChanges
from bot.gateway.thread_ids import is_gateway_thread
from bot.halting import HaltSwitch
from bot.health import records_health
from bot.identity.bearers import Bearers, OwnLogins
from bot.identity.operators import Operators, named_by
from bot.identity.page_identity import page_identity
from bot.identity.page_people import PagePeople
from bot.identity.people import SHARED_SECRET
from bot.identity.service_tokens import ServiceTokens
from bot.inbox import Acceptance, Inbox
from bot.ledger import AttemptLedger
from bot.limits import TurnLimit
from bot.logs import configure_logs
from bot.measures import ProcessNow, ServerMeasure, measured
from bot.memory import Memories
from bot.memory_threads import is_memory_thread
from bot.outbox import Outbox
from bot.plans import Plans
from bot.platform import NotConnected, Platform
from bot.policy_in_force import PolicyInForce
from bot.prices import Prices, PricesFileError, load_prices
from bot.queries import Queries
from bot.questions import Questions
from bot.records.database import Database, is_outage
from bot.records.deliveries import Delivery
from bot.records.memory_store import FileMemories, MemoryRows, PostgresMemories, memory_file
from bot.records.startup import (
    DamagedFileError,
    NewerSchemaError,
    Records,
    SettingsDroppedError,
    open_postgres_records,
    open_records,
    told_when_damaged,
)
from bot.rules.counting import RuleCounts
from bot.rules.reports import RuleReports
from bot.services import Services
from bot.settings import DEMO, Settings, SettingsError, load_settings, plain, variable
from bot.settings_comparison import SettingsComparison, settings_facts
from bot.sharing import SharedState, for_one_process, sharing
from bot.turns.engine import DeliveryHandler, EmbeddedEngine, ThreadWorkers
from bot.turns.messages import Introductions
from bot.turns.open_requests import OpenRequests
from bot.usage import UsageReports
from graph.agents import Agents, idle_patterns
from graph.agents_file import AgentsFileError, Installation, load_agents
from graph.models import ModelProblem, ModelSpec, check_configured, close_model, create_model
from graph.observing import NOBODY, Observer
from graph.ports import Ports
from graph.tracing import switch_off_logs_of_prompts, switch_off_tracing
from policies.judging import PolicyError
from policies.masking import Masker, fingerprint_key
from policies.model import Tool, is_group
from policies.secret_rules import load_rules

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from bot.findings import Finding
    from bot.records.notifications import Notifications
    from bot.records.postgresql import PostgresDatabase
    from bot.replicas import ReplicaTable
    from bot.turns.replicas import DistributedEngine


log = structlog.get_logger(__name__)

POLICY = web.AppKey("policy", PolicyInForce)
ADDRESS = web.AppKey("address", Address)
"""Receives the address on which the server listens."""
REPLICAS = web.AppKey["ReplicaTable | None"]("replicas")
"""The processes on the same records, where there may be several."""
ENDING = web.AppKey("ending", asyncio.Event)
"""Set when nothing new is to be sent here any more."""
ASKING = web.AppKey[Callable[[], bool]]("asking")
"""Says whether a service has been asked for something that it gives only once, and that is not kept yet."""
STARTING = web.AppKey("starting", asyncio.Task[None])
"""Ends when turns are handled; raises what keeps them from it."""
THREAD_SECONDS = 0.0005
"""How long a thread that computes keeps the interpreter while another one waits for it. A row that SQLite reads waits
for it once, and with Python's own 5 ms a list waited for half a second while suggestions were computed."""
SHUTDOWN_SECONDS = 5.0
"""Time for running turns to finish; what does not is continued at the next start. All of the shutdown stays under 10
s."""
TURNED_AWAY_SECONDS = 2.0
"""Seconds in which what is sent here nevertheless is accepted, where other processes go on: so long it may take until
nobody does."""
HANDOVER_SECONDS = 3.5
"""The same as `SHUTDOWN_SECONDS`, there."""
LONGEST_END_SECONDS = 8.5
"""Seconds after which the process ends there, whatever is still waited for: ten are left to it, of which the log may
take some. One thing is waited for longer: what a service has been asked for and gives only once."""
KEPT_SECONDS = 3.0
"""Seconds for the rest of the end, when that is kept: a browser is answered, and the other processes are told."""
LONGEST_KEEPING_SECONDS = LONGEST_END_SECONDS + LONGEST_ASKING_SECONDS + KEPT_SECONDS
"""Seconds after which it ends there although that is not kept: what is last asked for is asked for before the process
would end otherwise."""
CONNECTIONS = 20
"""To PostgreSQL, at once, for the records and for the checkpoints each. Procrastinate has four, so have memories, one
listens and one tells."""
FIRST_CONNECTION = 10.0
"""Seconds that the first turn waits for tool servers: a turn without its tools would be told that they are gone."""


class ConfigurationError(Exception):
    """Something in the configuration is wrong; the message says what, where, and what to do."""


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[web.Application]:  # noqa: PLR0915  # read from top to bottom
    """Everything, from the records to the routes, while it runs. Raises `ConfigurationError`."""
    switch_off_tracing(os.environ)
    switch_off_logs_of_prompts(os.environ)
    translations.load()
    translations.write_in(settings.language)
    tool_config, account_config, policy, agents, prices = _configuration(settings)
    new_id, address = random_id, Address(settings)
    async with AsyncExitStack() as stack:
        # Records, what several processes on them share, and what has to stay secret.
        records, key = await _open_records(settings, stack)
        database, sealer = records.database, Sealer(key)
        shared, page = for_one_process(), None
        if settings.sqlite_file is None:
            shared = await _share(database, policy, stack)
            page = _shared_page(settings, database)
            stack.push_async_callback(page.notifications.stop)  # after all that has something to tell
            SettingsComparison(_settings_facts(settings, tool_config, key), page.notifications)
        clock = shared.clock
        secrets = {secret for server in tool_config.servers for secret in server.secrets}
        secrets |= {*key.decode().split(","), *account_config.secrets}
        masker = masker_of(settings, secrets, key=fingerprint_key(key))
        observing = await _telemetry(settings, key, masker, secrets, prices=prices, stack=stack)
        observer = observing.observer
        notifications = page.notifications if page else None
        push = await _audit_push(settings, database, clock, stack)
        outside = await stack.enter_async_context(
            open_accounts(account_config, settings, database, key, clock, notifications=notifications)
        )
        links = SignInLinks(
            database,
            outside.services,
            sealer,
            clock,
            new_id,
            address=address,
            beginnings=shared.beginnings,
            links_an_hour=settings.limit_links_per_hour,
        )

        # Senders, and what is shown and looked up through them.
        identity = page_identity(
            database,
            _page_people(settings),
            clock,
            key,
            beginnings=shared.beginnings,
            address=address,
            open_id=open_id_sign_in(settings, clock),
            is_named=named_by({*settings.operators, *_page_people(settings).local}, policy),
        )
        people = PeopleChanges(notifications) if notifications else None
        pauses = shared.pauses if observer is NOBODY else ObservedPauses(observer, shared.pauses)
        senders = make_senders(PlatformSetup(settings, key, links, clock, pauses, page, people, identity.identities))
        platforms = senders.by_name
        stack.push_async_callback(senders.close)  # after the outbox, which may still be posting
        outbox, engine, calling = _outbox_and_engine(
            settings, database, clock, platforms, masker=masker, notifications=notifications, observer=observer
        )
        directory = PeopleDirectory(platforms, database, clock)
        identity.identities.when_said_otherwise(directory.forget)
        stack.push_async_callback(directory.close)
        common = database, engine, outbox, clock
        questions = Questions(*common, new_id)
        sign_ins = SignIns(
            *common, new_id=new_id, services=outside.services, links=links, sealer=sealer, address=address
        )

        memories = Memories(await _memory_store(settings, stack), database, directory, clock)

        # Tools, the accounts that they act with, and the files that people hand over.
        files = Files(database, ChildFileReader(), platforms, outbox, clock, new_id=new_id)
        await stack.enter_async_context(files.forgetting())
        tools = ToolServers(
            tool_config,
            mask=masker.mask,
            tokens=outside.tokens,
            catalogues=outside.catalogues,
            completed=sign_ins.completed,
            calling=calling,
            files=files,
        )
        await tools.start()
        stack.push_async_callback(tools.close)
        changed = tools.forget
        if page is not None:
            changes = AccountChanges(tools, page.notifications)
            stack.push_async_callback(changes.close)
            changed = changes.forget
        connections, codes, flow = make_accounts(
            *common,
            outside=outside,
            sealer=sealer,
            new_id=new_id,
            address=address,
            platforms=platforms,
            changed=changed,
            beginnings=shared.beginnings,
        )
        stack.push_async_callback(connections.close)
        stack.push_async_callback(flow.close)

        # What turns and people's decisions share.
        audit = AuditLog(database, clock, masker, show_call_again=outbox.show_call_again)
        requests = ApprovalRequests(
            database,
            outbox,
            platforms,
            clock,
            new_id,
            learn_names=directory.learn_names,
            timer_set=engine.timer_was_set,
            gateway_place=settings.gateway_place,
        )
        standing_approvals = StandingApprovals(database, clock, new_id)
        ledger = AttemptLedger(database, outbox, clock, new_id, audit)
        plans = Plans(outbox, engine, clock)
        open_requests = OpenRequests(requests, questions, sign_ins, ledger, outbox, plans=plans)
        introductions = Introductions(database, platforms, clock, codes)
        turn_limit = TurnLimit(
            shared.beginnings,
            per_person=settings.limit_turns_per_minute,
            per_thread=settings.limit_thread_turns_per_minute,
        )

        choices = AgentChoices(database, agents, clock)
        operators = Operators(settings.operators, directory)
        halts = HaltSwitch(
            database,
            outbox,
            clock,
            new_id,
            audit=audit,
            ledger=ledger,
            is_operator=operators.includes,
            find_tool=tools.find,
            give_up_calls=tools.give_up_all,
            notifications=notifications,
        )

        # Calls of other agents.
        call_changes = CallChanges(notifications)
        seen = platforms if settings.web_enabled else {chat.sender.name: chat.sender for chat in senders.chats}
        _check_gateway_place(settings, seen)
        gateway_calls = GatewayCalls(
            database,
            engine,
            clock,
            tools=tools,
            complaint_about=tools.complaint_about,
            policy=policy,
            mode=settings.mode,
            directory=directory,
            platforms=seen,
            new_id=new_id,
            beginnings=shared.beginnings,
            limits=GatewayLimits(settings.limit_gateway_calls_per_minute, settings.limit_gateway_calls_waiting),
            place=settings.gateway_place,
            changes=call_changes,
            learn_names=directory.learn_names,
            is_stopped=halts.is_on,
        )

        # The graph, and the turns that run it: made while messages are kept and acknowledged already, since importing
        # its libraries takes longer than starting all the rest.
        models = await stack.enter_async_context(AsyncExitStack())

        async def turn_handler() -> DeliveryHandler:
            await imported("graph.workflow", "bot.turns.handler", "bot.turns.remembering", "bot.gateway.handler")
            from bot.gateway.handler import GatewayCallHandler  # noqa: PLC0415
            from bot.turns.handler import TurnHandler  # noqa: PLC0415
            from bot.turns.remembering import MemoryHandler  # noqa: PLC0415
            from graph.models.streaming import Retry  # noqa: PLC0415
            from graph.nodes.policy_router import create_router  # noqa: PLC0415
            from graph.nodes.use_tools import making_calls  # noqa: PLC0415
            from graph.running import Agent  # noqa: PLC0415
            from graph.single_calls import SingleCalls  # noqa: PLC0415
            from graph.workflow import build_workflow  # noqa: PLC0415

            retry = Retry(times=settings.model_retries)
            model = await asyncio.to_thread(_model, settings.model_spec)
            models.push_async_callback(close_model, model)
            same_model = settings.router_spec == settings.model_spec
            router_model = model if same_model else await asyncio.to_thread(_model, settings.router_spec)
            models.push_async_callback(close_model, router_model)
            budget = DailyBudget(
                database,
                clock,
                DailyLimits(settings.limit_tokens_per_day, settings.limit_cost_per_day),
                of_channel=DailyLimits(settings.limit_channel_tokens_per_day, settings.limit_channel_cost_per_day),
                prices=prices,
            )
            ports = Ports(
                model=model,
                agents=agents,
                models=await _models_of_agents(agents, settings, {settings.model_spec: model}, models),
                router=create_router(router_model, retry, observer, clock, budget),
                tools=tools,
                ledger=ledger,
                approvals=requests,
                sign_ins=sign_ins,
                policy=policy,
                directory=directory,
                grants=standing_approvals,
                budget=budget,
                audit=audit,
                masker=masker,
                mode=settings.mode,
                retry=retry,
                calls_a_turn=settings.limit_calls_per_turn,
                is_outage=is_outage,
                files=files,
                memory=memories if memories.is_on else None,
                source_tools=source_tools(tool_config.servers),
                observer=observer,
            )
            workflow = build_workflow(ports, records.checkpoints)
            agent = Agent(workflow, records.checkpoints, clock, making_calls(ports), ports.masker)
            turns = TurnHandler(
                database,
                agent,
                outbox,
                open_requests,
                questions,
                plans,
                introductions,
                platforms,
                engine,
                clock,
                turn_limit,
                choices,
                files,
                masker,
                begins_turns=settings.agent_enable,
                remembers=memories.is_on,
                budget=budget,
                observer=observer,
            )
            remembering = MemoryHandler(
                database, memories, outbox, budget, clock, router_model, retry, masker=masker, observer=observer
            )
            calls = GatewayCallHandler(
                database, SingleCalls(ports), open_requests, engine, clock, call_changes, masker, observer=observer
            )
            await tools.settled(FIRST_CONNECTION)
            for idle in idle_patterns(agents, await tools.available()):
                log.warning("agent_pattern_fits_no_tool", agent=idle.agent, key=idle.key, pattern=str(idle.pattern))

            def handle(delivery: Delivery) -> Awaitable[None]:
                if is_memory_thread(delivery.thread_id):
                    return remembering.handle(delivery)
                handler = calls if is_gateway_thread(delivery.thread_id) else turns
                return handler.handle(delivery)

            return handle

        # Services: what people may ask for, from now on.
        acceptance = Acceptance(database, clock, quiet_seconds=settings.session_quiet_hours * 3600, kept=halts.tell)
        approvals = Approvals(
            *common,
            requests=requests,
            directory=directory,
            standing_approvals=standing_approvals,
            find_tool=tools.find,
            audit=audit,
            masker=masker,
        )

        queries = Queries(database, directory, clock, masker)
        conversations = Conversations(
            database,
            directory,
            clock,
            masker,
            queries=queries,
            is_operator=operators.includes,
            note_reading=audit.read,
        )
        access, terms = OperatorAccess(operators.includes, audit.read), AuditTerms(database)

        def told() -> Mapping[str, Any]:
            return facts_of([asdict(each) for each in tools.status()], is_stopped=halts.is_on.is_set())

        alone = partial(only_process, _version(), clock())
        if shared.replicas is not None:
            shared.replicas.tells(told)
        services = Services(
            conversations=conversations,
            inbox=Inbox(*common, acceptance=acceptance, codes=codes, open_requests=open_requests, observer=observer),
            approvals=approvals,
            questions=questions,
            connections=connections,
            sign_in_links=links,
            queries=queries,
            agents=choices,
            gateway=gateway_calls,
            files=files,
            memories=memories,
            usage=UsageReports(
                database, directory, clock, prices, is_operator=operators.includes, note_reading=audit.read
            ),
            console=Console(
                waiting=WaitingForAnybody(database, access, clock),
                turns=TurnsOfEverybody(database, access, masker, prices),
                audit=AuditSearch(database, access, terms),
                verification=AuditVerification(database, access),
                halts=halts,
                parts=InstallationParts(
                    database,
                    access,
                    audit,
                    told=shared.replicas.told
                    if shared.replicas is not None
                    else lambda: [(alone(policy().version), told())],
                    tool_servers=ToolServerRetries(tools, notifications),
                ),
                parked=ParkedDeliveries(database, access, audit, engine, clock),
            ),
            console_links=ConsoleLinks(settings.public_url if settings.web_enabled else None, operators.includes),
            rules=RuleReports(
                database,
                access,
                directory,
                clock,
                policy,
                counts=RuleCounts(database),
                agents=agents,
                find_tool=tools.find,
                list_tools=tools.available,
                mode=settings.mode,
            ),
        )
        await stack.enter_async_context(gateway_calls.running())
        if settings.operators:  # nobody else searches, or looks at the rules
            await stack.enter_async_context(terms.collecting())
            await stack.enter_async_context(services.rules.running())
        await outbox.start()
        stack.push_async_callback(outbox.stop, 1.0)
        await connections.start()
        if shared.replicas is not None:
            shared.replicas.when_one_is_gone(connections.tell_left)
        shutdown_seconds = SHUTDOWN_SECONDS if settings.sqlite_file else HANDOVER_SECONDS
        await stack.enter_async_context(halts.stopping(engine))
        handling = await stack.enter_async_context(AsyncExitStack())
        starting = await handling.enter_async_context(engine.running(turn_handler, shutdown_seconds=shutdown_seconds))

        service_tokens = ServiceTokens(database, _page_people(settings), clock)
        stack.push_async_callback(service_tokens.close)
        bearers = Bearers(
            database,
            directory,
            _page_people(settings),
            service_tokens=service_tokens,
            identities=identity.identities,
            verifier=jwt_verifier(settings, clock),
            logins=OwnLogins(identity.tokens, identity.sessions) if settings.web_login == "password" else None,
        )

        # Receivers, in one application.
        receivers = make_receivers(
            senders,
            services,
            settings,
            tools=tools,
            shared=shared,
            bearers=bearers,
            identity=identity,
            key=key,
            version=_version(),
            starting=starting,
            notifications=notifications,
        )
        await senders.page.start(services.queries, lambda: engine.is_ready)
        if page is not None:
            await page.notifications.start()  # everybody has subscribed
        application = web.Application(client_max_size=1024**2, middlewares=[OutageAnswers().middleware])
        application[POLICY], application[ADDRESS], application[STARTING] = policy, address, starting
        application[REPLICAS] = shared.replicas
        ending = application[ENDING] = asyncio.Event()
        application.on_response_prepare.append(last_answers(ending))
        details = partial(
            _health_details,
            settings,
            tools,
            database,
            engine,
            receivers,
            replicas=shared.replicas,
            push=push,
            halts=halts,
        )
        token = settings.health_token.get_secret_value() if settings.health_token else None

        async def is_operator(request: web.Request) -> bool:
            visitor = await receivers.visitor(request)
            return visitor is not None and await operators.includes(Person(visitor, ""))

        application.router.add_get("/health-check", health_check(details, token, is_operator))
        if observing.metrics is not None:
            show = partial(
                observing.metrics.page,
                partial(measured, database, clock, push.destination if push is not None else None),
                partial(_now, tools, engine, shared.replicas),
            )
            handler = metrics_page(show, observing.metrics.content_type, token, is_operator)
            application.router.add_get("/metrics", handler)
        application.router.add_get("/ready", readiness(lambda: engine.is_ready and not ending.is_set()))
        application.add_routes(account_routes(account_config, flow, settings, receivers.visitor))
        application.add_routes(receivers.api.routes())
        if receivers.gateway is not None:
            application.add_routes(receivers.gateway.routes())
            policy.when_put_in_force(receivers.gateway.listeners.all_may_have_changed)
            application.on_shutdown.append(receivers.gateway.end)
        application.on_shutdown.append(senders.page.end_streams)  # while the server waits for what is being served

        async def end_sign_ins(_application: web.Application) -> None:
            """While the server still answers them. What runs does not wait for that: it has no longer than without."""
            ended = [flow.close(), handling.aclose()] if flow.is_asking else [flow.close()]
            await asyncio.gather(*ended)

        application.on_shutdown.append(end_sign_ins)
        tokens = outside.tokens
        application[ASKING] = lambda: senders.is_asking or flow.is_asking or (tokens is not None and tokens.is_asking)
        for receiver in receivers.all:
            application.add_routes(receiver.routes())
            stack.push_async_callback(receiver.stop)
        try:
            for chat in receivers.chats:
                await chat.start()
        except NotConnected as refusal:
            raise ConfigurationError(refusal.sentence) from refusal
        yield application


def _configuration(settings: Settings) -> tuple[ToolServersConfig, AccountsConfig, PolicyInForce, Agents, Prices]:
    """What the settings and the files say, checked before anything is opened. Raises `ModelProblem`, too."""
    try:
        tool_config = load_config(settings.mcp_config, _variables())
        accounts = accounts_config(tool_config, settings, _variables())
        servers = {server.name for server in tool_config.servers}
        policy = PolicyInForce(settings.policy_file, servers)
        agents = load_agents(settings.agents_file, Installation(servers, settings.objection_to))
        prices = load_prices(settings.prices_file)
    except (ConfigError, AccountsError, PolicyError, AgentsFileError, PricesFileError) as error:
        raise ConfigurationError(str(error)) from error
    if not (settings.web_enabled or settings.slack_configured or settings.teams_configured):
        raise ConfigurationError(
            "No platform is on: set the variables of Slack or of Teams, or take out WEB_ENABLED=false for the web page."
        )
    for spec in {settings.model_spec, settings.router_spec}:
        if spec.name != DEMO:
            check_configured(spec)
    if settings.limits_cost:
        _check_prices(prices, settings, agents)
    for event, facts in configuration_doubts(settings, tool_config):
        log.warning(event, **facts)
    return tool_config, accounts, policy, agents, prices


def _check_prices(prices: Prices, settings: Settings, agents: Agents) -> None:
    """What costs are limited by. Raises `ConfigurationError` when a model has no price."""
    used = {settings.model_name, settings.router_spec.name, *(agent.model for agent in agents.all if agent.model)}
    if unpriced := sorted(used - prices.models.keys()):
        raise ConfigurationError(
            f"LIMIT_COST_PER_DAY, LIMIT_CHANNEL_COST_PER_DAY: {settings.prices_file} has no price of "
            f"{', '.join(unpriced)}. Add it (docs/operations.md#usage-prices-and-budgets), or limit tokens."
        )


def configuration_doubts(settings: Settings, tools: ToolServersConfig) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is no mistake in the settings, and perhaps not meant: the event of the log, and its facts."""
    for field in ("mcp_config", "connections_file", "agents_file", "prices_file"):
        path = getattr(settings, field)
        if field in settings.model_fields_set and not path.exists():
            yield (
                "file_not_there",
                {"variable": variable(field), "file": str(path), "note": "it is as if it said nothing"},
            )
    if settings.sqlite_file is None and (kept := sorted(keeping_files_here(tools.servers))):
        yield "tool_servers_not_shared", {"servers": kept, "note": "each replica has its own files: run them over HTTP"}
    names_people = any(each.startswith("web:") for each in settings.operators)
    if settings.web_login == "local" and settings.web_password and names_people:
        note = "with WEB_LOGIN=local, anyone who knows WEB_PASSWORD can be anyone there"
        yield "operators_not_proven", {"note": note}
    if settings.operators and all(map(is_group, settings.operators)):
        note = "while their platform can’t be asked who is in them, nobody can stop everything: name a person, too"
        yield "operators_only_in_groups", {"groups": list(settings.operators), "note": note}


async def _telemetry(
    settings: Settings, key: bytes, masker: Masker, secrets: set[str], *, prices: Prices, stack: AsyncExitStack
) -> Telemetry:
    """Whoever measures and traces. The oldest of the keys is the last to go, and ids of traces are to stay."""
    oldest = key.rpartition(b",")[2]
    of = Deployment(_version(), oldest, masker, settings.secret_values | secrets, prices)
    try:
        return await stack.enter_async_context(telemetry(settings, of, _variables(), os.environ))
    except TelemetryError as error:
        raise ConfigurationError(str(error)) from error


async def _open_records(settings: Settings, stack: AsyncExitStack) -> tuple[Records, bytes]:
    """The records, and the key to what is sealed in them: Fernet keys, separated by commas."""
    file, given = settings.sqlite_file, settings.encryption_key
    try:
        if file is None:
            return await _open_shared_records(settings, stack)
        stack.enter_context(folder_lock(file.resolve().parent))  # the records may be a link to a file elsewhere
        records = await stack.enter_async_context(open_records(file))
        return records, given.get_secret_value().encode() if given else kept_key(file.parent)
    except (FolderInUseError, KeyFileError, NewerSchemaError, DamagedFileError) as error:
        raise ConfigurationError(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise ConfigurationError(f"{error.filename}: {error.strerror}. What mends it says: app.py doctor") from error


async def _audit_push(settings: Settings, database: Database, clock: Clock, stack: AsyncExitStack) -> AuditPush | None:
    """What pushes the audit log; `None`: nothing does. Ends after all that writes to the log."""
    if settings.audit_push_url is None:
        return None
    url = settings.audit_push_url.get_secret_value()
    collector = EventCollector(url, plain(settings.audit_push_token))
    stack.push_async_callback(collector.close)
    push = AuditPush(
        database,
        clock,
        collector,
        LogSource(_version(), settings.public_url),
        destination=destination_of(url),
        me="the only process" if settings.sqlite_file else random_id(),
    )
    await stack.enter_async_context(push.running())
    return push


async def _memory_store(settings: Settings, stack: AsyncExitStack) -> MemoryRows | None:
    """Where memories are kept; `None`: there are to be none."""
    if not settings.memory:
        return None
    file = settings.sqlite_file
    if file is None:
        store: MemoryRows = PostgresMemories(settings.records_address)
    else:
        beside = memory_file(file)
        store = of_file = FileMemories(beside)
        try:
            with told_when_damaged(beside, moved_away="Without it nothing is remembered of anybody."):
                await asyncio.to_thread(of_file.check)
        except DamagedFileError as error:
            raise ConfigurationError(str(error)) from error
    stack.push_async_callback(store.close)
    return store


_NO_RIGHT = "42501"
"""SQLSTATE of what the role of DATABASE_URL has no right to."""


async def _open_shared_records(settings: Settings, stack: AsyncExitStack) -> tuple[Records, bytes]:
    """The same in PostgreSQL, where several processes use them."""
    key = shared_key(settings)
    opening = open_postgres_records(settings.records_address, most_connections=CONNECTIONS)
    try:
        records = await stack.enter_async_context(opening)
    except sa.exc.OperationalError as error:
        raise ConfigurationError(f"DATABASE_URL: PostgreSQL cannot be used: {error.orig}") from error
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != _NO_RIGHT:
            raise
        said = str(error.orig).partition("\n")[0]
        raise ConfigurationError(f"DATABASE_URL: {said}. What mends it says: app.py doctor") from error
    except TimeoutError as error:
        raise ConfigurationError(f"DATABASE_URL: {error}") from error
    except SettingsDroppedError as error:
        raise ConfigurationError(str(error)) from error
    return records, key


def shared_key(settings: Settings) -> bytes:
    """The key that several processes have. Raises `ConfigurationError`, also without what else they need."""
    if settings.encryption_key is None:
        raise ConfigurationError(
            "ENCRYPTION_KEY: is not set. With PostgreSQL every process needs the same one, to open what another sealed."
        )
    if settings.public_url is None:
        raise ConfigurationError(
            "PUBLIC_URL: is not set. With PostgreSQL links lead to whichever process is reached at one address."
        )
    return settings.encryption_key.get_secret_value().encode()


async def _share(database: Database, policy: PolicyInForce, stack: AsyncExitStack) -> SharedState:
    """What several processes on these records share."""
    try:
        return await stack.enter_async_context(sharing(database, policy, _version()))
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        raise ConfigurationError(
            "DATABASE_URL: PostgreSQL cannot be used now. Start again when it is back and no `migrate copy` runs: "
            f"{getattr(error, 'orig', error)}"
        ) from error


def _shared_page(settings: Settings, database: Database) -> SharedPage:
    """By which the processes on one PostgreSQL tell each other what has changed, and show what is being written."""
    from bot.records.live_answers import LiveAnswers  # noqa: PLC0415  # SQLite has no use for it
    from bot.records.notifications import Notifications  # noqa: PLC0415  # the same

    return SharedPage(Notifications(settings.records_address), LiveAnswers(cast("PostgresDatabase", database)))


def _check_gateway_place(settings: Settings, platforms: Mapping[str, Platform]) -> None:
    """Raises `ConfigurationError` where nobody could be asked at GATEWAY_PLACE.

    Args:
        platforms: those that people see.
    """
    place = settings.gateway_place
    if place is None or not settings.gateway_enable or any(each.named_place(place) for each in platforms.values()):
        return
    match place.partition(":")[0]:
        case "web" if not settings.web_enabled:
            why = "the page is off. Take out WEB_ENABLED=false"
        case "web":
            why = "no one signs in on the page under that id. Name someone who does"
        case "slack" if "slack" not in platforms:
            why = "Slack is not connected. Connect it"
        case "teams" if "teams" not in platforms:
            why = "Teams is not connected. Connect it"
        case _:
            why = "no such place is known. Name another one"
    raise ConfigurationError(
        f"GATEWAY_PLACE: nobody can be asked at {place}: {why}, or leave GATEWAY_PLACE out, so that people are asked "
        "where the caller is."
    )


def _settings_facts(settings: Settings, tools: ToolServersConfig, key: bytes) -> Mapping[str, str]:
    """By which processes find out whether they are configured in the same way."""
    said = {
        "MCP_CONFIG": [tools.said, *(each.fingerprint for each in tools.servers)],
        "CONNECTIONS_FILE": _said_in(settings.connections_file),
        "AGENTS_FILE": _said_in(settings.agents_file),
        "PRICES_FILE": _said_in(settings.prices_file),
    }
    return settings_facts(settings, key, said)


def _said_in(file: Path) -> list[str]:
    return [file.read_text(errors="replace")] if file.exists() else []


@cache
def _version() -> str:
    """Version of the program, to tell processes of two versions apart; empty where its file was left out."""
    try:
        return str(tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())["project"]["version"])
    except (OSError, LookupError, ValueError):
        return ""


def _outbox_and_engine(
    settings: Settings,
    database: Database,
    clock: Clock,
    platforms: Mapping[str, Platform],
    *,
    masker: Masker,
    notifications: Notifications | None,
    observer: Observer,
) -> tuple[Outbox, EmbeddedEngine | DistributedEngine, CallingRun]:
    """What sends, what handles, and in what calls are made; where several processes do, each what it has claimed."""
    if notifications is None:
        outbox = Outbox(database, clock, platforms, masker=masker, observer=observer)
        return outbox, EmbeddedEngine(database, clock, concurrency=settings.turn_concurrency), OnlyProcess()
    from bot.turns.replicas import DistributedEngine, PlacesHere  # noqa: PLC0415  # SQLite has no use for it

    shared = cast("PostgresDatabase", database)
    here = PlacesHere(shared)
    outbox = Outbox(database, clock, platforms, masker=masker, lanes_here=here, observer=observer)
    address, concurrency = settings.records_address, settings.turn_concurrency
    engine = DistributedEngine(
        shared, outbox, here, clock, notifications=notifications, address=address, concurrency=concurrency
    )
    return outbox, engine, here


def _variables() -> dict[str, str]:
    """What `${…}` in `mcp.json` stands for: `.env` and the environment, which wins."""
    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return {**kept, **os.environ}


def _model(spec: ModelSpec) -> BaseChatModel:
    """The model that a setting names. Raises `ModelProblem` when it is not configured."""
    if spec.name != DEMO:
        model = create_model(spec)
    else:
        from demo_model.model import DemoChatModel  # noqa: PLC0415  # imported only when chosen

        model = DemoChatModel()
    model.name = spec.name  # under which its usage is counted, and prices are written
    return model


async def _models_of_agents(
    agents: Agents, settings: Settings, made: Mapping[ModelSpec, BaseChatModel], closing: AsyncExitStack
) -> Mapping[str, BaseChatModel]:
    """The models of those agents that have another one, by their names; each is made once, and closed by `closing`.

    Args:
        made: the models that there are already.
    """
    known = dict(made)
    of_agents: dict[str, BaseChatModel] = {}
    for agent in agents.all:
        spec = settings.spec_of(agent.model or settings.model_name, agent.temperature)
        if spec not in known:
            known[spec] = await asyncio.to_thread(_model, spec)
            closing.push_async_callback(close_model, known[spec])
        of_agents[agent.name] = known[spec]
    return of_agents


async def _health_details(
    settings: Settings,
    tools: ToolServers,
    database: Database,
    engine: ThreadWorkers,
    receivers: Receivers,
    *,
    replicas: ReplicaTable | None,
    push: AuditPush | None,
    halts: HaltSwitch,
) -> Mapping[str, Any]:
    """How it is, for operators."""
    servers = {
        s.server: {"state": s.state, "tools": s.tools, "reason": s.reason, "withheld": s.withheld}
        for s in tools.status()
    }
    records = dict(await records_health(database))
    body = {
        "platforms": [receiver.name for receiver in receivers.all],
        "model": settings.model_name,
        "mode": settings.mode.value,
        "tool_servers": servers,
        "deliveries": records.pop("deliveries", {}) | {"running": engine.busy},
    }
    others: dict[str, Any] = {"replicas": replicas.facts()} if replicas is not None else {}
    others |= {"audit_push": await push.health()} if push is not None else {}
    if (halt := halts.current) is not None:
        body["stopped"] = {"by": halt.person_id, "why": halt.why, "since": halt.at}
    return body | records | others | {chat.name: chat.facts() for chat in receivers.chats}


def _now(tools: ToolServers, engine: ThreadWorkers, replicas: ReplicaTable | None) -> ProcessNow:
    """How this process is, for its metrics."""
    servers = [ServerMeasure(each.server, each.state == ServerState.UP, each.tools) for each in tools.status()]
    return ProcessNow(engine.busy, engine.places, servers, len(replicas.facts()) if replicas is not None else 1)


async def serve(settings: Settings) -> None:
    """Run until SIGINT or SIGTERM; SIGHUP reads the policy again. Raises `ConfigurationError`."""
    sys.setswitchinterval(THREAD_SECONDS)
    stopping, reloading = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    limits = limits_for(raise_open_files_limit())
    async with AsyncExitStack() as stack:
        application = await stack.enter_async_context(running(settings))
        replicas = application[REPLICAS]
        also = (replicas.reload_asked,) if replicas is not None else ()
        await stack.enter_async_context(application[POLICY].reloading_whenever(reloading, *also))
        server = started_server(application, settings.host, settings.port, limits)
        try:
            host, port = await stack.enter_async_context(server)
        except OSError as error:
            raise ConfigurationError(
                f"HOST, PORT: cannot listen on {settings.host}:{settings.port}: {error.strerror}"
            ) from error
        application[ADDRESS].listens_on(port)
        url = settings.public_url or f"http://{host}:{port}"
        log.info("listening", url=url, model=settings.model_name)
        starting = application[STARTING]
        starting.add_done_callback(lambda done: stopping.set() if _has_failed(done) else _is_ready(settings, url))
        await stopping.wait()
        if _has_failed(starting):
            starting.result()
        log.info("stopping")
        application[ENDING].set()
        if settings.sqlite_file is None:
            until = loop.time() + LONGEST_KEEPING_SECONDS - KEPT_SECONDS
            loop.call_later(LONGEST_END_SECONDS, _end_in_time, application[ASKING], until)
            await asyncio.sleep(TURNED_AWAY_SECONDS)


def _end_in_time(asking: Callable[[], bool], until: float, *, waited: bool = False, last: bool = False) -> None:
    """End it although something is still waited for, but for what cannot be had again: also when a service is asked
    for that in the last seconds after something else was kept (`last`)."""
    loop = asyncio.get_running_loop()
    if asking() and loop.time() < until:
        if not waited:
            log.warning("end_put_off", note="a service was asked for what it gives only once, and that is not kept yet")
        loop.call_later(KEPT_SECONDS / 10, partial(_end_in_time, asking, until, waited=True))
    elif waited and not last:
        loop.call_later(KEPT_SECONDS, partial(_end_in_time, asking, until, waited=True, last=True))
    else:
        _end_now()


def _end_now() -> None:
    """What is not over by now waits for something that does not answer. Others take over, as after a kill."""
    log.warning("ended_unfinished")
    logging.shutdown()
    os._exit(0)


def _has_failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _is_ready(settings: Settings, url: str) -> None:
    """Turns are handled from now on. A person at a terminal is told where to go; programs read the log."""
    if sys.stdout.isatty() and settings.log_format == "console":
        sys.stdout.write(first_steps(settings, url))
        sys.stdout.flush()
    _keep_what_is_there()


def _keep_what_is_there() -> None:
    """What was imported stays: searching it for garbage again and again would hold up everybody for 0.1 s each time."""
    gc.collect()
    gc.freeze()


def command(arguments: Sequence[str]) -> int:
    """`doctor`, `audit …`, `policy …`, `migrate …`, `token …`; see `bot/commands`. Of tool servers, what explains a
    policy starts only the one that is asked about."""
    from bot.commands import Surroundings, run  # noqa: PLC0415  # serving has no use for them

    settings = cache(load_settings)
    around = Surroundings(
        database=lambda: settings().records_address,
        policy_file=lambda: settings().policy_file,
        mode=lambda: settings().mode,
        further_tables=_installation_tables,
        key_is_set=lambda: settings().encryption_key is not None,
        find_tool=lambda name: _find_tool(name, settings().mcp_config),
        page_people=lambda: _page_people(settings()),
        clock=system_clock,
        findings=lambda offline: asyncio.new_event_loop().run_until_complete(findings(settings, offline=offline)),
        chat=lambda url, thread_id: _chat(url or Address(settings())(), thread_id),
    )
    code = run(arguments, around)
    if arguments[0] == "doctor":  # whatever still waits for an answer would hold up the end, as `asyncio.run` would
        sys.stdout.flush()
        os._exit(code)
    return code


async def findings(
    load: Callable[[], Settings], *, offline: bool = False, clock: Clock = system_clock, **facts: Any
) -> Sequence[Finding]:
    """What `doctor` finds. `facts`: of `checkup`, for who knows better than the machine."""
    from adapters.checkups import checkup  # noqa: PLC0415  # serving has no use for it

    def rest(settings: Settings) -> None:
        _configuration(settings)
        if settings.sqlite_file is None:
            shared_key(settings)

    return await checkup(
        load,
        offline=offline,
        variables=_variables,
        make_model=_model,
        check_rest=rest,
        doubts=configuration_doubts,
        clock=clock,
        environment=os.environ,
        **facts,
    )


def _page_people(settings: Settings) -> PagePeople:
    issuers = frozenset(filter(None, (settings.oidc_issuer, settings.api_jwt_issuer)))
    issuers |= {SHARED_SECRET} if settings.api_jwt_secret else set()
    domains = frozenset(settings.oidc_allowed_domains)
    return PagePeople(settings.web_login, frozenset(person.person_id for person in DEFAULT_PEOPLE), issuers, domains)


def _installation_tables() -> Sequence[Any]:
    from adapters.slack.web_api.installing import installation_tables  # noqa: PLC0415  # half a second of importing

    return installation_tables()


def _chat(url: str, thread_id: str) -> int:
    from adapters.api.terminal import chat_here  # noqa: PLC0415  # serving has no use for it

    return chat_here(url, thread_id)


def _find_tool(name: str, file: Path) -> Tool | None:
    try:
        return asyncio.run(look_up(name, load_config(file, _variables())))
    except ConfigError as error:
        raise ConfigurationError(str(error)) from error


def main(arguments: Sequence[str] = ()) -> int:
    """The command. Exits with 2 when the configuration is wrong."""
    ask_this_machine_itself(os.environ)
    try:
        if arguments:
            configure_logs(level="error")
            return command(arguments)
        settings = load_settings()
        configure_logs(
            level=settings.log_level,
            form=settings.log_format,
            secrets=settings.secret_values,
            masker=log_masker_of(settings),
        )
        load_rules()
        asyncio.run(serve(settings))
    except SubprocessError as error:
        sys.stderr.write(f"countersign: the rules for secrets could not be read from their package: {error}\n")
        return 2
    except (SettingsError, ConfigurationError, ModelProblem) as error:
        sys.stderr.write(f"countersign: {getattr(error, 'sentence', error)}\n")
        return 2
    return 0


if __name__ == "__main__":
    gc.freeze()  # nor is it looked through later, and a command ends the sooner
    gc.enable()
    sys.exit(main(sys.argv[1:]))
