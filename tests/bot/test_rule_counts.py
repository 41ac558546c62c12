"""What the audit log says of the rules is added up once, whoever does it and however often it is begun."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from bot.records import rule_counts
from bot.records.database import Database
from bot.records.tables import audit
from bot.rules.counting import RuleCounts
from policies.policy_file import parse_policy
from tests.bot.conftest import SetClock
from tests.bot.logbook import Logbook
from tests.policies.builders import READS

POLICY = parse_policy(
    """
version: 1
rules:
  - name: reading
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: never
    match: {tool: wipe}
    decide: deny
  - name: making
    match: {tool: make}
    decide: ask
    approvers: [any]
""",
    "then.yaml",
)
LONG_AGO = "2000-01-01"


@pytest.fixture
def logbook(database: Database, clock: SetClock) -> Logbook:
    return Logbook(database, clock, POLICY)


async def sums(database: Database) -> dict[tuple[str, str], dict[str, int]]:
    """What decided and the rule → outcome → how many, without those that there are none of."""
    async with database.reading() as tx:
        found = await rule_counts.sums_by_rule(tx, LONG_AGO)
    return {(each.decided_by, each.rule): {name: n for name, n in each.of.items() if n} for each in found}


async def test_calls_are_counted_by_what_decided_and_what_became_of_them(database: Database, logbook: Logbook) -> None:
    await logbook.end("look", says=READS)
    await logbook.end("wipe")
    await logbook.end(said="approved", waited=60)
    await logbook.end(said="approved", edited_by="web:ben")
    await logbook.end(said="approved", rejected_by="web:ben")
    await logbook.end(said="rejected", rejected_by="web:ben", waited=240)
    await logbook.end("other", said="expired")
    await RuleCounts(database).count_all()
    assert await sums(database) == {
        ("rule", "reading"): {"allowed": 1},
        ("rule", "never"): {"denied": 1},
        ("rule", "making"): {"unchanged": 1, "edited": 1, "contested": 1, "rejected": 1},
        ("none", ""): {"expired": 1},
    }


async def test_a_call_counts_once_by_its_first_end(database: Database, logbook: Logbook) -> None:
    call = await logbook.end(said="approved", status="unknown")
    await logbook.look(call)
    counts = RuleCounts(database)
    await counts.count_all()
    await logbook.end(call_id=call, status="done")
    await logbook.end(call_id=call, attempt=2, status="failed")
    await counts.count_all()
    assert await sums(database) == {("rule", "making"): {"unchanged": 1}}


async def test_a_call_whose_first_attempt_never_left_counts_too(database: Database, logbook: Logbook) -> None:
    await logbook.end(said="approved", attempt=2)
    await RuleCounts(database).count_all()
    assert await sums(database) == {("rule", "making"): {"unchanged": 1}}


async def test_two_that_count_at_a_time_count_each_call_once(database: Database, logbook: Logbook) -> None:
    for _ in range(30):
        await logbook.end(said="approved")
    await asyncio.gather(*(RuleCounts(database, at_once=7).count_all() for _ in range(3)))
    assert await sums(database) == {("rule", "making"): {"unchanged": 30}}


async def test_what_comes_later_is_added_to_what_was_counted(database: Database, logbook: Logbook) -> None:
    counts = RuleCounts(database)
    for _ in range(3):
        await logbook.end(said="approved", waited=100)
        assert await counts.up_to_date()
    async with database.reading() as tx:
        waits = await rule_counts.waits_by_tool(tx, LONG_AGO)
    assert [sum(each.values()) for each in waits.values()] == [3]


async def test_whoever_looks_counts_a_part_and_is_told_whether_that_was_all(
    database: Database, logbook: Logbook
) -> None:
    for _ in range(3):
        await logbook.end(said="approved")
    counts = RuleCounts(database, at_once=2)
    assert not await counts.up_to_date()
    assert await counts.up_to_date()


async def test_an_entry_that_cannot_be_read_is_passed_over(database: Database, logbook: Logbook) -> None:
    await logbook.end(said="approved")
    await logbook.end(said="approved")
    async with database.writing("web:t1") as tx:
        await tx.run(sa.update(audit).where(audit.c.seq == 1).values(entry="no"))
    await RuleCounts(database).count_all()
    assert await sums(database) == {("rule", "making"): {"unchanged": 1}}


async def test_calls_that_were_not_approved_as_they_were_are_listed_by_tool(
    database: Database, logbook: Logbook
) -> None:
    await logbook.end(said="approved")
    await logbook.end(said="rejected")
    await logbook.end("other", said="withdrawn")
    await RuleCounts(database).count_all()
    async with database.reading() as tx:
        assert await rule_counts.unapproved_of_tool(tx, "workshop", "make", 10) == [2]
        assert await rule_counts.unapproved_of_tool(tx, "workshop", "other", 10) == [3]


async def test_it_goes_on_by_itself_while_the_process_runs(database: Database, logbook: Logbook) -> None:
    await logbook.end(said="approved")
    counts = RuleCounts(database)
    async with counts.running(), asyncio.timeout(20):
        while await sums(database) == {}:
            await asyncio.sleep(0)
    assert await sums(database) == {("rule", "making"): {"unchanged": 1}}
