"""Every end of a call is written down once, whatever is killed when; nothing else is."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.audit.entries import LONGEST_INPUT, faults
from bot.audit.log import AuditLog
from bot.domain import ConversationReference, Person
from bot.ledger import AttemptLedger
from bot.outbox import Outbox
from bot.records import attempts, threads
from bot.records.audit import sqlite_audit
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.records.sqlite import sqlite_database
from bot.task_threads import task_thread_id
from graph.ports import AttemptUnknown, Begun, CallRecord, Failed, Judged, NotMade, OutcomeUnknown, Succeeded, Unmade
from policies.masking import Masker
from policies.model import Allow, Call, Deny, Tool, Verdict
from tests.audit.calls import NOON, TOKEN, facts_of, tool
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

THREAD = "web:t1"


class Records:
    """A ledger and an audit log over real records; `again` is the same after a restart."""

    def __init__(self, file: Path, database: Database) -> None:
        numbers = count(1)
        self.file = file
        self.database = database
        self.now = NOON
        self.audit = AuditLog(database, lambda: self.now, Masker())
        outbox = Outbox(database, lambda: NOON, {})
        self.ledger = AttemptLedger(database, outbox, lambda: NOON, lambda: f"id{next(numbers)}", self.audit)

    def entries(self) -> list[dict[str, Any]]:
        with sqlite_audit(self.file) as reader:
            links = list(reader.links())
            assert list(faults(links)) == []
            assert list(reader.unwritten()) == []
        return [json.loads(link.entry) for link in links]

    def statuses(self) -> list[str]:
        return [entry["status"] for entry in self.entries()]


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    file = tmp_path / "records.db"
    empty_database(file)
    database = sqlite_database(file)
    await database.open()
    async with database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, ConversationReference("web", THREAD, channel="C1"), "hello", NOON)
    yield Records(file, database)
    await database.close()


def judged(verdict: Verdict, about: Tool | None = None) -> Judged:
    return Judged(Call(about or tool(), {"what": "lamp"}), facts_of(place="C1"), verdict)


def call(about: Tool | None = None) -> CallRecord:
    return CallRecord(
        thread_id=THREAD,
        call_id="m1.0.0",
        requester="web:ana",
        tool=about or tool(),
        arguments={"what": "lamp"},
        digest="d" * 64,
        approval_round=None,
        judged=judged(Allow(rule="all is allowed", source="policy.yaml:3", version="abc"), about),
    )


def unmade(status: NotMade = "denied") -> Unmade:
    return Unmade(
        call_id="m1.0.0",
        thread_id=THREAD,
        requester="web:ana",
        name="workshop__make",
        tool=tool(),
        arguments={"what": "lamp"},
        status=status,
        text="Blocked by policy: no.",
        judged=judged(Deny(rule="never", reason="no.")),
        approval_round=None,
    )


def lines_in(logged: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [line for line in logged if line["event"] == "tool_call"]


async def test_a_call_is_one_line_in_the_log_named_as_in_traces_and_without_secrets(records: Records) -> None:
    output = "é" * 3_000
    long = replace(call(), arguments={"key": TOKEN, "what": "lamp " * 100}, recalled_at=NOON)
    with capture_logs() as logged:
        await records.ledger.begin(long)
        records.now = NOON + 1.5
        for _ in range(2):
            await records.ledger.finish(long, 1, Succeeded(output))
    (line,) = lines_in(logged)
    arguments = line["gen_ai.tool.call.arguments"]
    assert (len(arguments), TOKEN in arguments, "lamp lamp" in arguments) == (LONGEST_INPUT, False, True)
    assert line == {
        "event": "tool_call",
        "log_level": "info",
        "gen_ai.conversation.id": THREAD,
        "gen_ai.tool.call.id": "m1.0.0",
        "countersign.tool.server": "workshop",
        "gen_ai.tool.name": "make",
        "gen_ai.tool.call.arguments": arguments,
        "countersign.policy.verdict": "allow",
        "countersign.policy.rule": "all is allowed",
        "countersign.outcome": "done",
        "countersign.output.sha256": hashlib.sha256(output.encode()[:4_096]).hexdigest(),
        "countersign.duration_ms": 1_500,
        "user.id": "web:ana",
    }


async def test_so_is_one_that_was_not_made(records: Records) -> None:
    with capture_logs() as logged:
        await records.audit.not_made(unmade())
    (line,) = lines_in(logged)
    assert (line["countersign.outcome"], line["countersign.policy.rule"]) == ("denied", "never")


async def test_the_line_of_a_task_names_the_conversation_of_its_plan(records: Records) -> None:
    with capture_logs() as logged:
        await records.audit.not_made(replace(unmade(), thread_id=task_thread_id(THREAD, "m0.0.0", "find")))
    (line,) = lines_in(logged)
    assert line["gen_ai.conversation.id"] == THREAD
    assert (line["countersign.output.sha256"], line["countersign.duration_ms"]) == (None, None)


async def test_the_name_of_a_tool_that_there_is_not_is_cut_and_without_secrets(records: Records) -> None:
    given = replace(unmade("failed"), tool=None, judged=None, name=f"use {TOKEN} {'x' * 100_000}")
    with capture_logs() as logged:
        await records.audit.not_made(given)
    (line,), (entry,) = lines_in(logged), records.entries()
    for named in (line["gen_ai.tool.name"], entry["tool"]):
        assert named.startswith("use [secret: ")
        assert len(named) == LONGEST_INPUT


@pytest.mark.parametrize(("outcome", "status"), [(Succeeded("made"), "done"), (Failed("broken"), "failed")])
async def test_what_came_of_a_call_is_written_once_though_it_is_told_twice(
    records: Records, outcome: Succeeded | Failed, status: str
) -> None:
    assert await records.ledger.begin(call()) == Begun(1)
    assert records.statuses() == []
    for _ in range(2):
        await records.ledger.finish(call(), 1, outcome)
    (entry,) = records.entries()
    assert (entry["status"], entry["rule"], entry["source"]) == (status, "all is allowed", "policy.yaml:3")
    assert (entry["judged"]["platform"], entry["judged"]["place"]) == ("web", "C1")


async def test_a_call_that_a_crash_cut_off_is_unknown_once(records: Records) -> None:
    await records.ledger.begin(call())
    for _ in range(2):  # taken up again after the crash, and once more after another
        assert await records.ledger.begin(call()) == AttemptUnknown(1)
    await records.ledger.close("m1.0.0", repeatable=False)
    assert records.statuses() == ["unknown"]


async def test_a_crash_and_an_ended_turn_leave_one_entry(records: Records) -> None:
    await records.ledger.begin(call())
    for _ in range(2):
        await records.ledger.close("m1.0.0", repeatable=False)
    assert records.statuses() == ["unknown"]


async def test_each_try_of_a_repeatable_call_that_reached_its_server_is_written(records: Records) -> None:
    repeatable = call(tool(repeatable=True))
    assert await records.ledger.begin(repeatable) == Begun(1)
    assert await records.ledger.begin(repeatable) == Begun(2)
    await records.ledger.finish(repeatable, 2, Succeeded("made"))
    assert [(entry["attempt"], entry["status"]) for entry in records.entries()] == [(1, "unknown"), (2, "done")]


@pytest.mark.parametrize("choice", ["it_was_done", "skip", "try_again"])
async def test_what_a_person_said_of_it_is_written_once(records: Records, choice: str) -> None:
    await records.ledger.begin(call())
    await records.ledger.outcome_unknown(call(), 1, OutcomeUnknown("no answer"))
    async with records.database.writing(UNLOCKED) as tx:
        latest = await attempts.latest(tx, "m1.0.0")
        assert latest is not None
        await attempts.choose(tx, latest.attempt_id, choice, "Ana", key="click")
    for _ in range(2):
        await records.ledger.begin(call())
    second = records.entries()[1]
    assert second["settled"] == {"choice": choice, "by": "Ana"}
    assert second["status"] == ("done" if choice == "it_was_done" else "unknown")


@pytest.mark.parametrize("status", ["denied", "skipped", "limited", "rejected", "expired", "superseded", "failed"])
async def test_a_call_that_was_not_made_is_written_once_though_it_is_told_twice(
    records: Records, status: NotMade
) -> None:
    for _ in range(2):
        await records.audit.not_made(unmade(status))
    (entry,) = records.entries()
    assert (entry["status"], entry["attempt"], entry["note"]) == (status, None, "Blocked by policy: no.")
    assert len(entry["digest"]) == 64


async def test_nothing_is_written_when_the_transaction_fails(records: Records) -> None:
    await records.ledger.begin(call())
    with pytest.raises(RuntimeError):
        async with records.database.writing(UNLOCKED) as tx:
            latest = await attempts.latest(tx, "m1.0.0")
            assert latest is not None
            await records.audit.ended(tx, latest, "done", "made")
            raise RuntimeError("the disk is full")
    assert records.statuses() == []
    await records.ledger.finish(call(), 1, Succeeded("made"))
    assert records.statuses() == ["done"]


async def test_many_ends_at_once_make_one_chain(records: Records) -> None:
    from dataclasses import replace

    await asyncio.gather(*(records.audit.not_made(replace(unmade(), call_id=f"m{n}.0.0")) for n in range(30)))
    assert len(records.entries()) == 30


# --------------------------------------------------------------------------------------------------- what was read


async def test_what_an_operator_reads_is_written_once_in_ten_minutes_by_thing_and_person(records: Records) -> None:
    olga, oleg = (Person(f"web:oidc.{name}", name.capitalize()) for name in ("olga", "oleg"))
    for minutes in (0, 3, 20):
        records.now = NOON + minutes * 60
        await records.audit.read(olga, "a conversation", THREAD)
    await records.audit.read(olga, "a conversation", "web:t2")
    await records.audit.read(olga, "the audit log")
    await asyncio.gather(*(records.audit.read(oleg, "the audit log") for _ in range(2)))
    entries = records.entries()
    assert {entry["status"] for entry in entries} == {"read"}
    assert [(entry["requester"], entry["thread"], entry["settled"]["choice"]) for entry in entries] == [
        (olga.person_id, THREAD, "looked at a conversation"),
        (olga.person_id, THREAD, "looked at a conversation"),
        (olga.person_id, "web:t2", "looked at a conversation"),
        (olga.person_id, "", "looked at the audit log"),
        (oleg.person_id, "", "looked at the audit log"),
    ]
    assert entries[0]["settled"]["by"] == "Olga <web:oidc.olga> (operator)"


async def test_what_an_operator_reads_verifies_can_be_exported_and_is_no_call_to_replay(
    records: Records, tmp_path: Path
) -> None:
    await records.audit.read(Person("web:olga", "=Olga\0"), "a conversation", THREAD)
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    verify, export, replay = ("audit", "verify"), ("audit", "export", "--format", "csv"), ("policy", "replay")
    verified, exported, replayed = (
        run_command(*arguments, database=f"sqlite:///{records.file}")
        for arguments in (verify, export, (*replay, str(policy)))
    )
    assert verified[0] == 0
    assert verified[1].startswith("1 entry, all as they were written.")
    assert "looked at a conversation by =Olga <web:olga> (operator)" in exported[1]
    assert replayed[:2] == (0, f"0 calls, 0 decided differently by {policy}.\n")
