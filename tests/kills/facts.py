"""What is on disk when everything is over, and what must be true of it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.kills.people import Sent
from tests.support.product import ProductFolder
from tests.support.visitor import Json, visiting

Row = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """The records and the effects."""

    deliveries: list[Row]
    approvals: list[Row]
    attempts: list[Row]
    effects: Counter[str]

    def acts(self) -> list[Row]:
        """The attempts at acts."""
        return [a for a in self.attempts if a["tool"] == "act"]

    def attempt_at(self, call_id: str) -> Row | None:
        """The newest attempt at a call."""
        return max((a for a in self.attempts if a["call_id"] == call_id), key=lambda a: a["number"], default=None)


def read_facts(home: ProductFolder) -> Facts:
    """Read them from the files; the product may run or not."""
    file = home.folder / "data" / "countersign.db"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        tables = {
            name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")]
            for name in ("deliveries", "approvals", "attempts")
        }
    return Facts(**tables, effects=Counter(lines_of(home.folder / "acts")))


def lines_of(path: Path) -> list[str]:
    """The lines of a file; none when it is not there."""
    return path.read_text().splitlines() if path.exists() else []


def key_of(row: Row) -> str:
    """The key that a call or an approval is about."""
    key = json.loads(row["arguments"])["key"]
    assert isinstance(key, str)
    return key


def check_inbox(facts: Facts, sent: Iterable[Sent]) -> None:
    """Every accepted message is there once, and nothing waits (timers aside) or was given up."""
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert [d for d in facts.deliveries if d["status"] == "waiting" and d["kind"] != "timer"] == []
    kept = Counter(json.loads(d["body"])["text"] for d in facts.deliveries if d["kind"] == "message")
    assert kept == Counter(s.text for s in sent)


def check_calls(facts: Facts, sent: Sequence[Sent]) -> None:
    """Nothing ran twice or without approval; what was approved ran once, or is shown as unknown and settled."""
    assert [key for key, times in facts.effects.items() if times > 1] == []
    assert [a for a in facts.attempts if a["status"] == "started"] == []
    assert [a for a in facts.attempts if a["status"] == "unknown" and a["choice"] is None] == []
    stopped = {s.key for s in sent if s.stopped}
    approved = set()
    for approval in facts.approvals:
        key, attempt = key_of(approval), facts.attempt_at(approval["call_id"])
        if approval["status"] != "approved":
            assert facts.effects[key] == 0 and attempt is None, (approval, attempt)
            continue
        approved.add(key)
        if attempt is None:
            assert key.partition("/")[0] in stopped, f"approved, but never ran: {approval}"
        elif attempt["status"] == "done":
            assert facts.effects[key] == 1, (approval, attempt)
        else:
            assert attempt["status"] == "unknown", (approval, attempt)
    assert set(facts.effects) <= approved
    assert {a["approval_id"] for a in facts.acts()} <= {a["approval_id"] for a in facts.approvals}


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
        timeout = aiohttp.ClientTimeout(total=60)
        async with visitor.http.get(f"{url}/api/events", params={"thread": thread_id}, timeout=timeout) as response:
            async for line in response.content:
                if line.startswith(b"data: ") and b'"entries"' in line:
                    entries: list[Json] = json.loads(line[6:])["entries"]
                    return entries
    raise AssertionError("the stream ended before the conversation came")
