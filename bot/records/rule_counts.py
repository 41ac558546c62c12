"""Rows of `rule_days`, `unapproved_calls` and `log_readers`: what the audit log says of the rules, added up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction, insert_for, insert_new, upsert
from bot.records.statements import Prepared
from bot.records.tables import OUTCOMES, approvals, audit, log_readers, rule_days, unapproved_calls
from bot.rules.outcomes import ApprovalRound, CountKey, OutcomeCounts

MOST_LINES = 500
"""Lines of a list."""
MOST_DAYS_READ = 20_000
"""Rows that one median rests on, of the newest days: a hundred days of two hundred tools."""
_READER = "rules"


@dataclass(frozen=True, slots=True)
class RuleSum:
    """How many calls one rule, or what else decided, has decided."""

    decided_by: str
    rule: str
    of: Mapping[str, int]
    """Outcome → how many."""


@dataclass(frozen=True, slots=True)
class ToolSum:
    """The same, of the calls of one tool that people were asked about."""

    decided_by: str
    rule: str
    server: str
    tool: str
    of: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the audit log, without what proves it."""

    seq: int
    key: str
    at: float
    entry: str


_COUNTED_TO = Prepared(sa.select(log_readers.c.seq).where(log_readers.c.name == sa.bindparam("name")))
_ENTRIES = Prepared(
    sa.select(audit.c.seq, audit.c.key, audit.c.at, audit.c.entry)
    .where(audit.c.seq > sa.bindparam("after"))
    .order_by(audit.c.seq)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_FIRST_AT = Prepared(
    sa.select(audit.c.seq).where(audit.c.at >= sa.bindparam("since")).order_by(audit.c.at, audit.c.seq).limit(1)
)


async def counted_to(tx: Transaction) -> int:
    """Number of the last entry of the audit log that is added up; 0: none is."""
    row = await tx.one(_COUNTED_TO, {"name": _READER})
    return 0 if row is None else int(row.seq)


async def first_entry_since(tx: Transaction, since: float) -> int | None:
    """Number of the first entry of the audit log from a moment on; `None`: there is none yet."""
    row = await tx.one(_FIRST_AT, {"since": since})
    return None if row is None else int(row.seq)


async def entries_after(tx: Transaction, after: int, limit: int) -> Sequence[LogEntry]:
    """Entries of the audit log by number, after one of them."""
    rows = await tx.all(_ENTRIES, {"after": after, "most": limit})
    return [LogEntry(row.seq, row.key, row.at, row.entry) for row in rows]


async def entries_of(tx: Transaction, seqs: Collection[int]) -> Sequence[LogEntry]:
    """Those with these numbers, by number."""
    query = sa.select(audit.c.seq, audit.c.key, audit.c.at, audit.c.entry).where(audit.c.seq.in_(list(seqs)))
    return [LogEntry(row.seq, row.key, row.at, row.entry) for row in await tx.all(query.order_by(audit.c.seq))]


def rounds_query(call_ids: Collection[str]) -> sa.Select[Any]:
    """Selects the rounds of asking about calls."""
    ask = approvals.c.ask
    return (
        sa.select(
            approvals.c.call_id,
            approvals.c.round,
            approvals.c.status,
            ask["rule"].as_string().label("rule"),
            ask["source"].as_string().label("source"),
            approvals.c.edited_by,
            approvals.c.asked_at,
            approvals.c.settled_at,
        )
        .where(approvals.c.call_id.in_(list(call_ids)))
        .order_by(approvals.c.call_id, approvals.c.round)
    )


def rounds_by_call(rows: Sequence[Any]) -> Mapping[str, Sequence[ApprovalRound]]:
    """What such rows say, by call."""
    found: dict[str, list[ApprovalRound]] = {}
    for row in rows:
        found.setdefault(row.call_id, []).append(
            ApprovalRound(
                row.call_id,
                row.round,
                row.status,
                row.rule or "",
                row.source or "",
                row.edited_by is not None,
                row.asked_at,
                row.settled_at,
            )
        )
    return found


async def rounds_of(tx: Transaction, call_ids: Collection[str]) -> Mapping[str, Sequence[ApprovalRound]]:
    """The rounds of asking about calls, by call and in order."""
    return rounds_by_call(await tx.all(rounds_query(call_ids)))


def keys_query(keys: Collection[str]) -> sa.Select[Any]:
    """Selects the numbers of entries with these keys."""
    return sa.select(audit.c.key, audit.c.seq).where(audit.c.key.in_(list(keys)))


async def numbers_of(tx: Transaction, keys: Collection[str]) -> Mapping[str, int]:
    """Key → number, of the entries of the audit log that there are with these keys."""
    return {row.key: row.seq for row in await tx.all(keys_query(keys))}


async def add(
    tx: Transaction,
    after: int,
    last: int,
    counts: Mapping[CountKey, OutcomeCounts],
    unapproved: Sequence[UnapprovedCall],
) -> bool:
    """Adds up what entries say, up to the one with the number `last`; false: another process has counted on from
    `after` meanwhile. `RULE_COUNTS` has to be locked."""
    if await counted_to(tx) != after:
        return False
    for key, of_key in counts.items():
        named = {"day": key.day, "decided_by": key.decided_by, "rule": key.rule, "server": key.server, "tool": key.tool}
        before = await tx.one(_DAY, named)
        waits = {} if before is None else dict(before.waits)
        for step, times in of_key.waits.items():
            waits[str(step)] = waits.get(str(step), 0) + times
        values = {outcome: of_key.of[outcome] for outcome in OUTCOMES}  # type: ignore[index]
        await tx.run(_add_up(), {**named, **values, "waits": waits})
    for each in unapproved:
        await insert_new(tx, unapproved_calls, {"seq": each.seq, "server": each.server, "tool": each.tool})
    await upsert(tx, log_readers, {"name": _READER, "seq": last})
    return True


@dataclass(frozen=True, slots=True)
class UnapprovedCall:
    """A call that people did not approve as it was."""

    seq: int
    server: str
    tool: str


_DAY = Prepared(
    sa.select(rule_days.c.waits).where(
        *(rule_days.c[name] == sa.bindparam(name) for name in ("day", "decided_by", "rule", "server", "tool"))
    )
)


@cache
def _add_up() -> Prepared:
    def statement(dialect: str) -> sa.Executable:
        insert = insert_for(dialect, rule_days)
        added = {name: rule_days.c[name] + insert.excluded[name] for name in OUTCOMES}
        return insert.on_conflict_do_update(
            index_elements=list(rule_days.primary_key), set_={**added, "waits": insert.excluded.waits}
        )

    return Prepared(statement)


_SUMS = [sa.func.sum(rule_days.c[name]).label(name) for name in OUTCOMES]
_ASKED = sum((rule_days.c[name] for name in OUTCOMES if name not in ("allowed", "denied")), sa.literal(0))
_BY_RULE = Prepared(
    sa.select(rule_days.c.decided_by, rule_days.c.rule, *_SUMS)
    .where(rule_days.c.day >= sa.bindparam("since"))
    .group_by(rule_days.c.decided_by, rule_days.c.rule)
)
_LINE = (rule_days.c.decided_by, rule_days.c.rule, rule_days.c.server, rule_days.c.tool)
_BY_TOOL = Prepared(
    sa.select(*_LINE, *_SUMS)
    .where(rule_days.c.day >= sa.bindparam("since"))
    .group_by(*_LINE)
    .having(sa.func.sum(_ASKED) > 0)
    .order_by(sa.func.sum(_ASKED).desc(), *_LINE)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_WAITS = Prepared(
    sa.select(*_LINE, rule_days.c.waits)
    .where(rule_days.c.day >= sa.bindparam("since"), _ASKED > 0)
    .order_by(rule_days.c.day.desc())
    .limit(MOST_DAYS_READ)
)


async def sums_by_rule(tx: Transaction, since: str) -> Sequence[RuleSum]:
    """How many calls each rule, and what else decides, has decided from a day on."""
    rows = await tx.all(_BY_RULE, {"since": since})
    return [RuleSum(row.decided_by, row.rule, _outcomes(row)) for row in rows]


async def sums_by_tool(tx: Transaction, since: str, limit: int) -> Sequence[ToolSum]:
    """What people were asked about from a day on, by rule and tool, the most first."""
    rows = await tx.all(_BY_TOOL, {"since": since, "most": limit})
    return [ToolSum(row.decided_by, row.rule, row.server, row.tool, _outcomes(row)) for row in rows]


async def waits_by_tool(tx: Transaction, since: str) -> Mapping[tuple[str, str, str, str], Mapping[int, int]]:
    """How long it took from a day on until people had decided, by what decided, rule, server and tool: step → how
    many. At most `MOST_DAYS_READ` rows are read."""
    found: dict[tuple[str, str, str, str], dict[int, int]] = {}
    for row in await tx.all(_WAITS, {"since": since}):
        steps = found.setdefault((row.decided_by, row.rule, row.server, row.tool), {})
        for step, times in row.waits.items():
            steps[int(step)] = steps.get(int(step), 0) + times
    return found


async def unapproved_of_tool(tx: Transaction, server: str, tool: str, limit: int) -> Sequence[int]:
    """Numbers of the newest entries about calls of a tool that people did not approve as they were."""
    query = (
        sa.select(unapproved_calls.c.seq)
        .where(unapproved_calls.c.server == server, unapproved_calls.c.tool == tool)
        .order_by(unapproved_calls.c.seq.desc())
        .limit(limit)
    )
    return [row.seq for row in await tx.all(query)]


async def tools_unapproved_since(tx: Transaction, seq: int) -> frozenset[tuple[str, str]]:
    """Servers and tools of the calls that people did not approve as they were, by entries after this number."""
    query = sa.select(unapproved_calls.c.server, unapproved_calls.c.tool).where(unapproved_calls.c.seq > seq)
    return frozenset([(row.server, row.tool) for row in await tx.all(query)])


def _outcomes(row: Any) -> Mapping[str, int]:
    return {name: int(getattr(row, name)) for name in OUTCOMES}
