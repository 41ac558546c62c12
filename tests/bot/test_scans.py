"""Rule 13: no statement reads through a table that grows, since SQLite's statements run in the event loop.

Every function of `bot.records` is called, and SQLite is asked how it executes what they execute. How long that takes
with a million rows in each table is for `make bench`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.records import deliveries, turns
from bot.records.sqlite import SqliteTransaction
from bot.records.startup import upgrade_sqlite
from tests.support.query_plans import Executed, plan, recording, scans, sorts
from tests.support.record_calls import RecordCall, record_calls

pytestmark = pytest.mark.sqlite
SCANNED = {
    "halts.in_force_since": "each time that an operator has stopped everything",
    "audit.newest": "the one with the highest number",
    "audit_pushes.newest": "the one with the highest number",
    "audit.newest_number": "the one with the highest number",
    "identity.all_users": "what a command lists",
    "identity.all_identities": "what a command lists",
    "service_tokens.all_of_them": "what a command lists",
}
SORTED = {
    "asked.about_calls": "what was asked about the calls that a request names",
    "posts.threads_of_subject": "the cards of one approval",
    "posts.touch_under": "the lines of one standing approval",
    "attempts.activity_of_turn": "the calls of one turn",
    "attempts.in_turn": "the calls of one turn",
    "audit.entries_of_turn": "the calls of one turn",
    "service_tokens.all_of_them": "what a command lists",
    "waiting.decided_lately": "what one person decided of the newest cards",
    "thread_owners.threads_of": "one person's newest conversations",
    "approvals.pending_in": "what waits in one thread",
    "approvals.votes_on": "the votes of one approval",
    "audit.votes_on_call": "the votes on one call",
    "clarifications.open_in": "what is open in one thread",
    "connections.of_person": "one person's accounts",
    "deliveries.first_author": "what waits in one thread",
    "deliveries.head": "what waits in one thread",
    "deliveries.head_and_more": "what waits in one thread",
    "approvals.listed_grants": "the grants in force that end at the same moment",
    "approvals.grants_of": "the grants in force that end at the same moment",
    "sign_ins.open_for": "what is open for one person",
    "threads.with_address": "the accounts of one human",
    "measures.open_approvals": "the rules that ask, of as many as are counted",
    "measures.waiting_deliveries": "the kinds there are, of as many as are counted",
    "audit.newest_of_turn": "the calls of one turn",
    "audit.unwritten": "so many attempts at a time",
    "audit_terms.find": "entries with one term, so many at a time",
    "deliveries.parked": "what is parked",
    "deliveries.threads_with_messages": "what waits for its turn",
    "posts.all_notices_about": "the notices about the deliveries of one turn",
    "turns.approvals_of": "the approvals of one turn",
    "turns.attempts_of": "the calls of one turn",
    "turns.resumes": "the deliveries that a request names",
    "turns.failures": "what people were told of failures, for an operator",
    "turns.of_person": "one person's turns of a day, and those that run or failed",
    "model_usage.of_agents": "the models of one turn",
    "turns.votes_on_all": "the votes on the approvals of one turn",
    "halts.in_force_since": "each time that an operator has stopped everything",
    "waiting.all_open_questions": "what waits for people",
    "waiting.all_pending": "what waits for people",
    "waiting.pending_by_rule": "what waits for people",
    "model_usage.of_message": "the turn of one message",
    "model_usage.of_people": "what one human used in 30 days",
    "model_usage.of_day": "what was used on one day, by model",
    "rule_counts.sums_by_rule": "what an operator asks for, of a range of days: a row for each tool and day",
    "rule_counts.sums_by_tool": "what an operator asks for, of a range of days: a row for each tool and day",
}
"""Few rows each, so that they may be collected before the first is returned."""
KEYS = ("identity:a", "session:a", "token:a", "user:a")
"""One of each kind that there are of principals."""
WANTED = {"person": ("p", "q"), "tool": ("t",), "outcome": ("done",)}
CALLS = list(record_calls({"keys": KEYS, "wanted": WANTED}))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records") / "records.db"
    upgrade_sqlite(made)
    return made


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
async def test_no_statement_reads_through_a_table_that_grows(call: RecordCall, file: Path) -> None:
    engine, executed = recording(file)
    with engine.connect() as connection:
        tx = SqliteTransaction(connection)
        await call.make(tx)
        tx.roll_back()
    assert executed
    name = call.name.split()[0]
    with closing(sqlite3.connect(file)) as plain:
        for statement in executed:
            steps = plan(plain, statement)
            assert name in SCANNED or not scans(steps), statement.sql
            assert name in SORTED or not sorts(steps), statement.sql


async def test_a_list_of_many_turns_reads_what_was_settled_in_them_and_no_more(file: Path) -> None:
    call = next(each for each in CALLS if each.name == "turns.failed_resumes")
    (row,) = call.arguments["of"]
    many = [replace(row, key=f"m{number}") for number in range(100)]
    steps = await steps_of(file, lambda tx: turns.failed_resumes(tx, many))
    assert not scans(steps)


async def test_what_was_given_up_is_found_without_reading_what_was_not(file: Path) -> None:
    (step, *_) = await steps_of(file, lambda tx: deliveries.parked(tx, 1_000_000, 50))
    assert "ix_deliveries_parked" in step


async def steps_of(file: Path, ask: Callable[[SqliteTransaction], Awaitable[object]]) -> list[str]:
    """How SQLite executes what is asked."""
    engine, executed = recording(file)
    with engine.connect() as connection:
        tx = SqliteTransaction(connection)
        await ask(tx)
        tx.roll_back()
    with closing(sqlite3.connect(file)) as plain:
        return [step for statement in executed for step in plan(plain, statement)]


def test_all_there_is_in_the_records_is_called() -> None:
    assert {"approvals", "deliveries", "posts", "waiting", "connections"} <= {c.name.split(".")[0] for c in CALLS}
    assert len(CALLS) > 100


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM approvals WHERE status = 'pending' AND thread_id = 'x'",
        "SELECT * FROM approvals WHERE status = 'pending' ORDER BY asked_at",
        "SELECT * FROM oauth_clients WHERE connection <> 'x'",
    ],
)
def test_reading_what_is_open_or_small_is_no_scan(sql: str, file: Path) -> None:
    assert not scans(plan_of(sql, file))


@pytest.mark.parametrize("sql", ["SELECT * FROM approvals WHERE risk = 'x'", "SELECT count(*) FROM posts"])
def test_reading_through_a_table_is_a_scan(sql: str, file: Path) -> None:
    assert scans(plan_of(sql, file))


def plan_of(sql: str, file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as plain:
        return plan(plain, Executed(sql, ()))
