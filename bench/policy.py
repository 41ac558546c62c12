"""What rules and waiting approvals cost: judging against a thousand rules, and ten thousand approvals that wait."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench import measures
from bench.client import visiting
from bench.contestants import Contestant, Contestants
from bench.figures import Figure, Limit, Ratio, median_ms
from bench.measures import Fifth, Sizes
from bot.records.startup import upgrade_sqlite
from policies.judging import judge
from policies.model import Ask, Call, Facts, Mode, Tool
from policies.policy_file import parse_policy

RULES = 1_000
IDLE_SHARE = 0.5
"""Percent of one core: what psutil cannot tell from nothing over a few seconds."""


def judging(sizes: Sizes) -> list[Figure]:
    """One call against a thousand rules of which only the last fits: as companies have them, a few for each tool, and
    at the worst, all about this one tool, with a regular expression each."""
    usual = [f"{{server: server{n % 50}, tool: tool{n % 200}, args: {_condition(n)}}}" for n in range(RULES - 1)]
    worst = [f'{{tool: "make*", args: {_condition(n)}}}' for n in range(RULES - 1)]
    by_regex = [
        f'{{server: workshop, tool: make, args: {{what: {{regex: ".*thing {n}[0-9]+x"}}}}}}' for n in range(RULES - 1)
    ]
    return [
        Figure(f"judge a call, {RULES:,} rules: median", _judged(usual, sizes), "ms", None, Limit(1)),
        Figure("… all of them about its tool: median", _judged(worst, sizes), "ms", None, Limit(1)),
        Figure("… with a regular expression each: median", _judged(by_regex, sizes), "ms", None, Limit(1)),
    ]


def _condition(number: int) -> str:
    return f"{{what: thing {number}, count: {{min: {number}}}}}"


def _judged(matches: list[str], sizes: Sizes) -> float:
    """Median milliseconds."""
    rules = [
        f"  - {{name: rule {n}, match: {match}, decide: ask, approvers: [any]}}" for n, match in enumerate(matches)
    ]
    last = "  - {name: last, match: {tool: make}, decide: allow}"
    policy = parse_policy("\n".join(["version: 1", "rules:", *rules, last]), "bench.yaml")
    facts = Facts(Mode.DEFAULT, "web:ana", "web", "", datetime(2026, 11, 20, 12, tzinfo=UTC))
    seconds: list[float] = []
    for number in range(10 * sizes.invokes):
        call = Call(Tool("workshop", "make"), {"what": f"lamp {number}", "count": 0})
        began = time.perf_counter()
        verdict = judge(policy, call, facts)
        seconds.append(time.perf_counter() - began)
        assert verdict.rule == "last"
    return median_ms(seconds)


async def many_pending(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Turns and idling where many approvals wait, beside where none does; taken in turns from both."""
    pairs: list[tuple[Fifth, Fifth]] = []
    async with AsyncExitStack() as stack:
        full = await stack.enter_async_context(contestants.product(prepare=partial(keep_pending, sizes.pending)))
        empty = await stack.enter_async_context(contestants.product())
        at_full = await stack.enter_async_context(visiting(full.url))
        at_empty = await stack.enter_async_context(visiting(empty.url))
        for number in range(sizes.warm_ups + sizes.conversations):
            pair = (await measures.fifth_turn(at_full, sizes), await measures.fifth_turn(at_empty, sizes))
            if number >= sizes.warm_ups:
                pairs.append(pair)
        idle, idle_empty = [await _idling(contestant, sizes.idle_seconds) for contestant in (full, empty)]
    ours, theirs = (median_ms([pair[side].with_tool.answered for pair in pairs]) for side in (0, 1))
    waiting = f"{sizes.pending:,} approvals wait"
    return [
        Figure(f"{waiting}: turn with a tool call: median (baseline: none waits)", ours, "ms", theirs, _TENTH_MORE),
        Figure(f"{waiting}: CPU while idle (baseline: none waits)", idle, "%", idle_empty, Limit(IDLE_SHARE)),
    ]


_TENTH_MORE = Ratio(1.1)


async def _idling(contestant: Contestant, seconds: float) -> float:
    """Percent of one core that the process needs while nothing happens."""
    process = psutil.Process(contestant.process.pid)
    shares = []
    for _ in range(3):
        before = process.cpu_times()
        await asyncio.sleep(seconds / 3)
        after = process.cpu_times()
        used = max(0.0, after.user + after.system - before.user - before.system)  # differences of floats
        shares.append(used / (seconds / 3) * 100)
    return statistics.median(shares)


def keep_pending(count: int, folder: Path) -> None:
    """Records in which so many approvals wait, each in a thread of its own, with its card and its timers."""
    file = folder / "countersign.db"
    upgrade_sqlite(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        for table, row in _rows(count, time.time()):
            names, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(row.values()))


def _rows(count: int, now: float) -> Iterator[tuple[str, dict[str, Any]]]:
    ask, nobody = Ask(rule="bench").model_dump_json(), json.dumps(["web:somebody"])
    for n in range(count):
        thread, approval = f"web:waiting-{n}", f"waiting-{n}"
        place = {"platform": "web", "key": thread, "address": {}, "channel": "", "direct": False, "has_threads": True}
        yield (
            "threads",
            {"thread_id": thread, "platform": "web", "place_key": thread, "place": json.dumps(place), "title": "waits"}
            | {"requester": "web:somebody", "created_at": now, "updated_at": now},
        )
        yield (
            "approvals",
            {"approval_id": approval, "call_id": f"{thread}.0.0", "round": 1, "thread_id": thread, "server": "bench"}
            | {"tool": "write", "title": "", "arguments": "{}", "digest": "d", "risk": '["writes"]', "ask": ask}
            | {"requesters": nobody, "status": "pending", "quote": "", "handed_to": "[]", "asked_at": now}
            | {"expires_at": now + 86_400},
        )
        yield (
            "posts",
            {
                "key": f"approval:{approval}",
                "thread_id": thread,
                "lane": thread,
                "kind": "approval",
                "subject": approval,
            }
            | {"revision": 1, "sent_revision": 1, "reference": "{}", "tries": 0, "at": now},
        )
        for number, timer in enumerate(("expire", "remind", "escalate")):
            yield (
                "deliveries",
                {"key": f"{timer}:{approval}", "thread_id": thread, "kind": "timer", "urgent": False, "tries": 0}
                | {"body": json.dumps({"approval": approval}), "accepted_at": now, "status": "waiting"}
                | {"due_at": now + 86_400 - number},
            )
