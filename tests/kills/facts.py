"""What is on disk when everything is over, and what must be true of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import sqlalchemy as sa

from bot.records import tables
from tests.kills.people import Sent
from tests.support.installations import connected
from tests.support.product import ProductFolder
from tests.support.visitor import LONGEST_EVENT, Json, visiting

Row = dict[str, Any]
CHANGING = frozenset({"act", "attempt", "change"})
"""Tools of the server whose calls need approval."""
MOST_RETRIED = 2
"""Calls that are proposed of what fails the first time: as the model asks for it, and once more by its requester."""
AT_REST_WITHIN = 30.0
"""Seconds in which all that waits is handled once people have heard all there is to hear, on a machine that runs many
tests."""


@dataclass(frozen=True)
class Facts:
    """The records and the effects."""

    deliveries: list[Row]
    approvals: list[Row]
    attempts: list[Row]
    gateway_calls: list[Row]
    posts: list[Row]
    model_usage: list[Row]
    effects: Counter[str]
    tries: Counter[str]
    """Of what fails the first time, how often it was tried."""

    def acts(self) -> list[Row]:
        """The attempts at what needs approval, by call and number."""
        acts = (a for a in self.attempts if a["tool"] in CHANGING)
        return sorted(acts, key=lambda a: (a["call_id"], a["number"]))

    def waiting(self) -> list[Row]:
        """The deliveries that are not handled yet, timers aside."""
        return [d for d in self.deliveries if d["status"] == "waiting" and d["kind"] != "timer"]

    def attempt_at(self, call_id: str) -> Row | None:
        """The newest attempt at a call."""
        return max((a for a in self.attempts if a["call_id"] == call_id), key=lambda a: a["number"], default=None)


def read_facts(home: ProductFolder, address: str | None = None) -> Facts:
    """Read them; the product may run or not. `address`: of its records, if not where a product in tests has them."""
    with connected(address or home.database) as connection:
        found = {
            name: _rows(connection, name)
            for name in ("deliveries", "approvals", "attempts", "gateway_calls", "posts", "model_usage")
        }
    effects, tries = (Counter(lines_of(home.folder / name)) for name in ("acts", "tries"))
    return Facts(**found, effects=effects, tries=tries)


def rows_of(home: ProductFolder, table: str) -> list[Row]:
    """One table: reading all of them takes long for a test that polls."""
    with connected(home.database) as connection:
        return _rows(connection, table)


def broke_off(home: ProductFolder) -> set[str]:
    """Ids of the attempts whose outcome is unknown, and of which nobody has said yet what came of them."""
    attempts = tables.attempts.c
    with connected(home.database) as connection:
        open_ = sa.select(attempts.attempt_id).where(attempts.status == "unknown", attempts.choice.is_(None))
        return set(connection.execute(open_).scalars())


def _rows(connection: sa.Connection, table: str) -> list[Row]:
    return [dict(row) for row in connection.execute(sa.select(tables.metadata.tables[table])).mappings()]


def check_usage(facts: Facts) -> None:
    """Of each turn, as many calls of the model are counted as it has messages of the model: none twice, and none that
    came of what was lost. A message is seen by what was said in it, or by the calls that it asked for."""
    steps: dict[str, int] = {}
    said = (post["key"].removeprefix("said:") for post in facts.posts if post["kind"] == "said")
    asked = (each["call_id"].rpartition(".")[0] for each in (*facts.attempts, *facts.approvals))
    for message in (*said, *asked):
        turn, _, step = message.rpartition(".")
        steps[turn] = max(steps.get(turn, 0), int(step) + 1)
    counted = {row["turn"]: row["calls"] for row in facts.model_usage}
    assert len(counted) == len(facts.model_usage), "each turn once, with one model"
    assert counted == {turn: steps.get(turn) for turn in counted}
    assert len(counted) > 0


async def facts_at_rest(home: ProductFolder, address: str | None = None) -> Facts:
    """Read them once nothing waits any more, or after `AT_REST_WITHIN`, while the product runs. An answer is heard
    before all has been handled: of two decisions one may already go on with both, and that there is nothing left for
    the other one is found out afterwards."""
    loop = asyncio.get_running_loop()
    end = loop.time() + AT_REST_WITHIN
    while True:
        facts = await asyncio.to_thread(read_facts, home, address)
        if not facts.waiting() or loop.time() > end:
            return facts
        await asyncio.sleep(0.02)


def lines_of(path: Path) -> list[str]:
    """The lines of a file; none when it is not there."""
    return path.read_text().splitlines() if path.exists() else []


def key_of(row: Row) -> str:
    """The key that a call or an approval is about."""
    key = row["arguments"]["key"]
    assert isinstance(key, str)
    return key


def check_inbox(facts: Facts, sent: Iterable[Sent]) -> None:
    """Every accepted message is there once, and nothing waits (timers aside) or was given up."""
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert facts.waiting() == []
    kept = Counter(d["body"]["text"] for d in facts.deliveries if d["kind"] == "message")
    assert kept == Counter(s.text for s in sent)


def check_calls(facts: Facts, sent: Sequence[Sent]) -> None:
    """Nothing ran twice or without approval; what was approved ran once, or is shown as unknown and settled."""
    assert [key for key, times in facts.effects.items() if times > 1] == []
    assert [a for a in facts.attempts if a["status"] == "started"] == []
    assert [a for a in facts.attempts if a["status"] == "unknown" and a["choice"] is None] == []
    stopped = {s.key for s in sent if s.stopped}
    approved = {a["approval_id"]: key_of(a) for a in facts.approvals if a["status"] == "approved"}
    for approval in facts.approvals:
        key, attempt = key_of(approval), facts.attempt_at(approval["call_id"])
        if approval["status"] != "approved":
            assert facts.effects[key] == 0 or key in approved.values(), approval
            assert attempt is None or attempt["approval_id"] != approval["approval_id"], (approval, attempt)
        elif attempt is None:
            assert key.partition("/")[0] in stopped, f"approved, but never ran: {approval}"
        elif attempt["status"] == "done":
            assert facts.effects[key] == 1, (approval, attempt)
        elif attempt["status"] == "failed":
            assert (approval["tool"], attempt["approval_id"]) == ("attempt", approval["approval_id"])
        else:
            assert attempt["status"] == "unknown", (approval, attempt)
    assert set(facts.effects) <= set(approved.values())
    assert {a["approval_id"] for a in facts.acts()} <= approved.keys()
    check_retries(facts)


def check_retries(facts: Facts) -> None:
    """What failed was proposed once more at most, and each call of it was made once at most."""
    attempts = Counter(key_of(a) for a in facts.attempts if a["tool"] == "attempt")
    assert [key for key, times in facts.tries.items() if times > attempts[key]] == []
    proposed = Counter(key_of(a) for a in facts.approvals if a["tool"] == "attempt")
    assert [key for key, times in proposed.items() if times > MOST_RETRIED] == []


def check_endings(facts: Facts, sent: Iterable[Sent], said: Iterable[str]) -> None:
    """Every message was answered, or stopped, or given up for a newer one."""
    heard = {text.partition(":")[0] for text in said}
    given_up = {key_of(a).partition("/")[0] for a in facts.approvals if a["status"] == "superseded"}
    given_up |= {key_of(a).partition("/")[0] for a in facts.acts() if a["choice"] == "superseded"}
    for message in sent:
        answers = {f"{word} {message.key}" for word in ("done", "hello", "noted")}
        assert answers & heard or message.stopped or message.key in given_up, f"no ending: {message}"


def check_shown(entries: Sequence[Json], sent: Iterable[Sent]) -> None:
    """A conversation as a newly opened page gets it: everything once."""
    assert [i for i, times in Counter(e["id"] for e in entries).items() if times > 1] == []
    said = Counter(e["content"]["text"] for e in entries if e["kind"] == "post" and e["content"]["kind"] == "said")
    assert [text for text, times in said.items() if times > 1] == []
    messages = Counter(e["text"] for e in entries if e["kind"] == "message")
    for message in sent:
        assert messages[message.text] == 1, message


async def opened_anew(url: str, thread_id: str) -> list[Json]:
    """The entries of a conversation as the first event of a newly opened page has them."""
    async with visiting(url) as visitor:
        return await opened_at(visitor.http, url, thread_id)


async def opened_at(http: aiohttp.ClientSession, url: str, thread_id: str) -> list[Json]:
    """The same, in a browser that is known there."""
    timeout = aiohttp.ClientTimeout(total=60)
    query = {"thread": thread_id}
    async with http.get(f"{url}/api/events", params=query, timeout=timeout, read_bufsize=LONGEST_EVENT) as response:
        async for line in response.content:
            if line.startswith(b"data: ") and b'"entries"' in line:
                entries: list[Json] = json.loads(line[6:])["entries"]
                return entries
    raise AssertionError("the stream ended before the conversation came")
