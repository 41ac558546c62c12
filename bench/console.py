"""What each answer of the operators' console takes with a million entries in the audit log.

`python -m bench.console`: on SQLite, by itself; `… --postgres`: on PostgreSQL. `--rows N`: with so many entries.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app import THREAD_SECONDS
from bench.cluster import cluster
from bench.figures import Figure, Limit, Section, table
from bot.approvals.directory import PeopleDirectory
from bot.audit.entries import BEGINNING, hash_of, judgement
from bot.card_masks import PLAIN
from bot.console.access import OperatorAccess
from bot.console.audit import AuditQuestion, AuditSearch, AuditTerms, AuditVerification
from bot.console.parked import ParkedDeliveries
from bot.console.turns import TurnsOfEverybody
from bot.console.waiting import WaitingForAnybody
from bot.domain import Person
from bot.prices import NO_PRICES
from bot.records.database import Database
from bot.records.postgresql import postgres_database
from bot.records.sqlite import sqlite_database
from bot.records.startup import upgrade_postgres, upgrade_sqlite
from bot.records.tables import approvals, audit, deliveries, model_usage, posts, threads
from bot.rules.counting import RuleCounts
from bot.rules.reports import MOST_DAYS, MOST_REPLAYED, RuleQuestion, RuleReports
from bot.usage import UsageReports
from graph.agents import ONLY_DEFAULT
from policies.judging import judge_with_reasons
from policies.model import Annotations, Call, Facts, Mode, Tool
from policies.policy_file import parse_policy

MOST_MS = 100.0
"""Each answer."""
TIMES = 15
AT_ONCE = 2_000
"""Rows of one statement."""
OF_TURN = 5
"""Entries of the audit log."""
WAITING, PARKED = 1_000, 20
"""Approvals that wait, and deliveries that were given up: less than a page, as where all is well."""
PEOPLE, TOOLS, RULES = 500, 200, 40
"""Some of each are in half of all entries, and some in hardly any."""
NOON = 1_795_000_000.0
MONTH = (date(2026, 11, 1), date(2026, 11, 28))
"""In which all turns are."""
OLGA = Person("web:olga", "Olga")
_ARGUMENTS = {"what": "a lamp", "note": "x" * 300}
_POLICY = parse_policy(
    "version: 1\nrules:\n"
    + "".join(f'  - {{name: rule{n}, match: {{tool: "*{n}"}}, decide: ask}}\n' for n in range(RULES)),
    "policy.yaml",
)
_CHANGED = _POLICY.text.replace("decide: ask", "decide: deny", 5)


async def console(rows: int, *, postgres: bool = False) -> list[Figure]:
    """How long each answer takes."""
    sys.setswitchinterval(THREAD_SECONDS)
    where = "PostgreSQL" if postgres else "SQLite"
    async with _records(rows, postgres=postgres) as database:
        access = OperatorAccess(_everybody, _nothing)
        terms = AuditTerms(database)
        began = time.perf_counter()
        await terms.collect_all()
        seconds = time.perf_counter() - began
        counts = RuleCounts(database)
        began = time.perf_counter()
        await counts.count_all()
        counting = time.perf_counter() - began
        rules = _reports(database, access, counts, rows)
        answers = {**_answers(database, access, terms, rows), **_of_rules(rules)}
        taken = {what: await _timed(ask) for what, ask in answers.items()}
        gc.collect()
        gc.freeze()  # as the product does when it listens
        beside = [await _timed_once(answers["turns, of a person"])]
        while (await answers["rules, suggestions"]()).state != "ready":  # they are computed in a thread meanwhile
            beside.append(await _timed_once(answers["turns, of a person"]))
            await asyncio.sleep(0.01)  # what reads SQLite does not pause
        replay, held = await _beside(lambda: rules.replay(OLGA, _CHANGED))
    what = f"{where}, {rows:,} entries"
    return [
        Figure(f"{what}: what they are found by, collected", rows / seconds, "/s"),
        Figure(f"{what}: what rules decided, counted", rows / counting, "/s"),
        Figure(f"… rules, replay of {MOST_REPLAYED:,}", replay, "s"),
        Figure("… rules, replay: CPU for which others wait at once", held, "ms", None, Limit(MOST_MS)),
        Figure("… turns, of a person, while suggestions are computed: median", statistics.median(beside), "ms"),
        Figure("… turns, of a person, while suggestions are computed: longest", max(beside), "ms"),
        *(Figure(f"… {name}: median of {TIMES}", ms, "ms", None, Limit(MOST_MS)) for name, ms in taken.items()),
    ]


def _answers(
    database: Database, access: OperatorAccess, terms: AuditTerms, rows: int
) -> Mapping[str, Callable[[], Awaitable[Any]]]:
    search = AuditSearch(database, access, terms)
    turns = TurnsOfEverybody(database, access, PLAIN, NO_PRICES)
    waiting = WaitingForAnybody(database, access, lambda: NOON)
    verification = AuditVerification(database, access)
    usage = UsageReports(
        database,
        PeopleDirectory({}, database, lambda: NOON),
        lambda: NOON,
        NO_PRICES,
        is_operator=_everybody,
        note_reading=_nothing,
    )
    parked = ParkedDeliveries(database, access, None, None, lambda: NOON)  # type: ignore[arg-type]  # only listed
    middle = NOON + rows / 2

    async def first_step() -> None:
        steps = await verification.verified(OLGA)
        assert steps is not None
        await anext(steps)
        await steps.aclose()

    async def first_piece() -> None:
        pieces = await search.exported(OLGA, AuditQuestion(since=NOON + 0.9 * rows), "jsonl")
        assert pieces is not None
        await anext(pieces)
        await pieces.aclose()

    questions = {
        "audit, newest": AuditQuestion(),
        "audit, of a time": AuditQuestion(since=middle, until=middle + 3600),
        "audit, a common tool": AuditQuestion(tool="tool0"),
        "audit, a rare tool": AuditQuestion(tool=f"tool{TOOLS - 1}"),
        "audit, a common person and tool": AuditQuestion(person="web:p0", tool="tool0"),
        "audit, common, and together never": AuditQuestion(rule="rule0", decision="deny", outcome="done"),
        "audit, of a time by outcome and server": AuditQuestion(outcome="done", server="server0", until=middle),
        "audit, nobody": AuditQuestion(person="web:nobody"),
    }
    return {
        **{what: _page(search, question) for what, question in questions.items()},
        "audit, exported from a time on: the first piece": first_piece,
        "audit, verified for a step": first_step,
        "turns, newest": lambda: turns.newest(OLGA),
        "turns, of a person": lambda: turns.of_person(OLGA, "web:p0"),
        "turns, by reference": lambda: turns.with_reference(OLGA, "00000000"),
        "turn, whole": lambda: turns.whole(OLGA, f"m{rows // 2 // OF_TURN}"),
        "waiting": lambda: waiting.everything(OLGA),
        "parked": lambda: parked.listed(OLGA),
        "usage, a month by person": lambda: usage.of_everybody(OLGA, "person", *MONTH),
        "usage, a month by day": lambda: usage.of_everybody(OLGA, "day", *MONTH),
    }


def _reports(database: Database, access: OperatorAccess, counts: RuleCounts, rows: int) -> RuleReports:
    def clock() -> float:
        return NOON + rows

    return RuleReports(
        database,
        access,
        PeopleDirectory({}, database, clock),
        clock,
        lambda: _POLICY,
        counts=counts,
        agents=ONLY_DEFAULT,
        find_tool=_no_tool,
        list_tools=_no_tools,
        mode=Mode.DEFAULT,
    )


def _of_rules(rules: RuleReports) -> Mapping[str, Callable[[], Awaitable[Any]]]:
    question = RuleQuestion("server0__tool7", "web:p0", {"what": "a lamp"})
    return {
        "rules, 30 days": lambda: rules.in_force(OLGA),
        "rules, a year": lambda: rules.in_force(OLGA, MOST_DAYS),
        "rules, what would happen if": lambda: rules.ask(OLGA, question),
        "rules, fatigue in 30 days": lambda: rules.fatigue(OLGA),
        "rules, suggestions": lambda: rules.suggested(OLGA),
    }


async def _beside(ask: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """Seconds that an answer takes, and milliseconds of CPU for which the event loop was held up at most: on a busy
    machine others take the rest."""
    began = time.perf_counter()
    answer = asyncio.ensure_future(ask())
    held = 0.0
    while not answer.done():
        at = time.process_time()
        await asyncio.sleep(0.001)
        held = max(held, time.process_time() - at)
    await answer
    return time.perf_counter() - began, held * 1000


def _page(search: AuditSearch, question: AuditQuestion) -> Callable[[], Awaitable[Any]]:
    return lambda: search.page(OLGA, question)


async def _timed(ask: Callable[[], Awaitable[Any]]) -> float:
    """Milliseconds of the one in the middle, the first aside."""
    taken = [await _timed_once(ask) for _ in range(TIMES + 1)]
    return statistics.median(taken[1:])


async def _timed_once(ask: Callable[[], Awaitable[Any]]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await ask()
    return (time.perf_counter() - began) * 1000


@asynccontextmanager
async def _records(rows: int, *, postgres: bool) -> AsyncIterator[Database]:
    if postgres:
        async with cluster() as server:
            address = await asyncio.to_thread(server.new_database)
            await asyncio.to_thread(upgrade_postgres, address)
            engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
            await asyncio.to_thread(_fill, engine, rows)
            made = postgres_database(address, most_connections=4)
            await made.open()
            yield made
            await made.close()
        return
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        file = Path(folder) / "countersign.db"
        await asyncio.to_thread(upgrade_sqlite, file)
        await asyncio.to_thread(_fill, sa.create_engine(f"sqlite:///{file}"), rows)
        database = sqlite_database(file)
        await database.open()
        yield database
        await database.close()


def _fill(engine: sa.Engine, rows: int) -> None:
    """A log of so many entries, five to a turn, and what else the console reads. PostgreSQL keeps statistics of it, as
    it does of itself; SQLite has none, as in a running product."""
    draw = random.Random(0)  # nothing secret
    turns = max(rows // OF_TURN, 1)
    place = {"platform": "web", "key": "k", "address": {}, "channel": "", "direct": False, "has_threads": True}
    with engine.begin() as connection:
        previous = BEGINNING
        for first in range(1, rows + 1, AT_ONCE):
            batch = []
            for seq in range(first, min(first + AT_ONCE, rows + 1)):
                entry = _entry(seq, draw)
                link = hash_of(previous, seq, entry)
                key = f"m{seq // OF_TURN}.{seq % OF_TURN}.0:1:done"
                batch.append(
                    {"seq": seq, "key": key, "at": NOON + seq, "entry": entry, "previous": previous, "hash": link}
                )
                previous = link
            connection.execute(sa.insert(audit), batch)
        for first in range(0, turns, AT_ONCE):
            some = range(first, min(first + AT_ONCE, turns))
            connection.execute(sa.insert(threads), [_thread(n, place) for n in some])
            connection.execute(sa.insert(deliveries), [_delivery(n) for n in some])
            connection.execute(sa.insert(model_usage), [_usage(n, turns, draw) for n in some])
            connection.execute(sa.insert(posts), [_failure(n) if n % 10 == 0 else _answer(n) for n in some])
            connection.execute(sa.insert(approvals), [_approval(n) for n in some])
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def _some(draw: random.Random, count: int) -> int:
    """Half of the time the first, a quarter of the time the second, and so on."""
    number = 0
    while number < count - 1 and draw.random() < 0.5:
        number += 1
    return draw.randrange(count) if number > 10 else number


@cache
def _judged(server: str, tool: str) -> Mapping[str, Any]:
    hints = Annotations(read_only=False, destructive=False, open_world=False)
    call = Call(Tool(server, tool, annotations=hints, annotations_trusted=True), _ARGUMENTS)
    facts = Facts(Mode.DEFAULT, "web:p0", "web", "", datetime.fromtimestamp(NOON, UTC), {}, agent="default")
    return judgement(call, facts, *judge_with_reasons(_POLICY, call, facts))


def _entry(seq: int, draw: random.Random) -> str:
    server, number = f"server{_some(draw, 9)}", _some(draw, TOOLS)
    tool, rule = f"tool{number}", f"rule{number % RULES}"
    return json.dumps(
        {
            "at": "2026-11-21T10:30:00.000Z", "thread": f"web:t{seq // OF_TURN}",
            "call": f"m{seq // OF_TURN}.{seq % OF_TURN}.0",
            "attempt": 1, "requester": f"web:p{_some(draw, PEOPLE)}", "server": server, "tool": tool,
            "input": "{}", "mode": "default",
            "decision": "allow" if seq % 3 else "ask", "rule": rule, "source": "policy.yaml:4",
            "version": "p1", "votes": [] if seq % 3 else [{"person": f"web:p{_some(draw, PEOPLE)}", "name": "Ben"}],
            "approval": None, "digest": "d" * 64, "fingerprint": "f" * 8, "duration": 0.25,
            "status": "done" if seq % 7 else "failed", "note": "", "settled": {}, "output": "o" * 64,
            "arguments": _ARGUMENTS, "arguments_cut": False, "arguments_masked": False, "judged": _judged(server, tool),
        },
        separators=(",", ":"),
    )  # fmt: skip


def _thread(n: int, place: Mapping[str, Any]) -> dict[str, Any]:
    at = {"created_at": NOON, "updated_at": NOON + n}
    owner = f"web:p{n % PEOPLE}"
    return {"thread_id": f"web:t{n}", "platform": "web", "place_key": "k", "place": place, "title": "", **at} | {
        "requester": owner
    }


def _delivery(n: int) -> dict[str, Any]:
    body = {"person": f"web:p{n % PEOPLE}", "name": "Ana", "text": "make a lamp " * 20}
    at = {"accepted_at": NOON + n, "due_at": NOON + n}
    state = {"status": "parked" if n < PARKED else "done", "tries": 0, "urgent": False}
    return {"key": f"m{n}", "thread_id": f"web:t{n}", "kind": "message", "body": body, **at, **state}


def _usage(n: int, turns: int, draw: random.Random) -> dict[str, Any]:
    counts = {"calls": 2, "input_tokens": 900, "cached_tokens": 0, "output_tokens": 90, "seconds": 1.5}
    whose = {
        "person_id": f"web:p{_some(draw, PEOPLE)}",
        "channel": "",
        "day": f"2026-11-{1 + n * 28 // turns:02}",
        "at": NOON + n,
    }
    return {"turn": f"m{n}", "agent": "default", "model": "large", "message": f"m{n}", "thread_id": f"web:t{n}"} | (
        whose | counts
    )


def _failure(n: int) -> dict[str, Any]:
    state = {"revision": 1, "sent_revision": 1, "tries": 0, "at": NOON + n}
    content = {"text": "It failed.", "tone": "error"}
    return {"key": f"error:m{n}", "thread_id": f"web:t{n}", "lane": f"web:t{n}", "kind": "notice"} | (
        {"content": content} | state
    )


def _answer(n: int) -> dict[str, Any]:
    content = {"text": "The lamp is made. " * 10, "final": True}
    return {**_failure(n), "key": f"said:m{n}.0", "kind": "said", "content": content}


def _approval(n: int) -> dict[str, Any]:
    ask = {"verdict": "ask", "rule": f"rule{n % RULES}", "approvers": ["requester"]}
    texts = {"server": "server0", "tool": "tool0", "title": "Make", "digest": "d", "quote": ""}
    whose = {"requesters": [f"web:p{n % PEOPLE}"], "requester": f"web:p{n % PEOPLE}", "handed_to": []}
    call = {"approval_id": f"a{n}", "call_id": f"m{n}.0.0", "round": 1, "thread_id": f"web:t{n}"}
    waits = n < WAITING
    became = {"status": "pending" if waits else "approved", "settled_at": None if waits else NOON + n + 60}
    return {**call, **texts, **whose, "arguments": _ARGUMENTS, "risk": ["writes"], "ask": ask, "asked_at": NOON + n} | (
        became
    )


async def _no_tool(_: str) -> None:
    return


async def _no_tools() -> list[Tool]:
    return []


async def _everybody(_: Person) -> bool:
    return True


async def _nothing(_: Person, __: str, ___: str = "") -> None:
    return


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="entries of the audit log")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL")
    given = parser.parse_args()
    print(table(Section("The console", asyncio.run(console(given.rows, postgres=given.postgres)))))


if __name__ == "__main__":
    main()
