"""Rows of `audit_terms`, by which entries of the audit log are found, and of `audit_indexed`, which says of which
entries there are any. Nothing here changes the log: what was found is lost with these rows, and made anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from bot.audit.entries import Link
from bot.audit.terms import Term, TermKind
from bot.records.audit import read_link
from bot.records.database import Transaction, upsert
from bot.records.statements import Prepared
from bot.records.tables import audit, audit_indexed, audit_terms

MOST_LOOKED_AT = 5_000
"""Entries with one term that are looked through for the others at once; each takes 2 µs."""
_LOG = "audit"
_END = 1e12
"""Seconds since the epoch; nothing happens later."""
Order = Literal["newest", "oldest"]
Position = tuple[float, int]
"""Of an entry in the order of time: when it was written, and its number."""


class Indexed(NamedTuple):
    """Of which entries there are terms."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """Entries, in the order of time."""

    positions: Sequence[Position]
    following: Position | None
    """After which the search goes on; `None`: there are no more."""


async def indexed(tx: Transaction) -> Indexed | None:
    """Of which entries there are terms; `None`: of none."""
    row = await tx.one(_INDEXED, {"log": _LOG})
    return None if row is None else Indexed(int(row.first), int(row.last))


async def links_between(tx: Transaction, first: int, last: int) -> Sequence[Link]:
    """The entries with these numbers, and those between."""
    return [read_link(row) for row in await tx.all(_BETWEEN, {"first": first, "last": last})]


async def add(tx: Transaction, found_by: Mapping[int, Sequence[Term]], now_indexed: Indexed) -> None:
    """Keep what entries, by their numbers, are found by, and of which entries that is kept now."""
    rows = [[kind, text, seq] for seq, terms in found_by.items() for kind, text in terms]
    if rows:
        await tx.run(_ADD, {"rows": json.dumps(rows)})
    await upsert(tx, audit_indexed, {"log": _LOG, "first": now_indexed.first, "last": now_indexed.last})


async def find(
    tx: Transaction,
    wanted: Mapping[TermKind, Sequence[str]],
    since: float,
    until: float,
    *,
    after: Position | None,
    order: Order,
    limit: int,
) -> FoundEntries:
    """Entries by what they are about, in the order of time.

    The rarest term is looked up, and what has it is looked through for the others: `MOST_LOOKED_AT` at once, so that
    an answer may have less than `limit` entries although there are more.

    Args:
        wanted: by kind, the terms of which an entry has to have one. None: all entries.
        since: seconds since the epoch.
        until: likewise; not included.
        after: `FoundEntries.following` of the search before.
    """
    between: dict[str, Any] = {"since": since, "until": until, **_position(after, order)}
    if not wanted:
        rows = await tx.all(_all_entries(order), {**between, "most": limit + 1})
        return _page([(row.at, row.seq) for row in rows], limit)
    texts = {f"{kind}{number}": text for kind, terms in wanted.items() for number, text in enumerate(terms)}
    sizes = {kind: len(terms) for kind, terms in wanted.items()}
    lead, looked_at = await _rarest(tx, wanted, between, order)
    values = {**between, **texts, "looked_at": MOST_LOOKED_AT, "most": limit + 1}
    rows = await tx.all(_searching(lead, tuple(sorted(sizes.items())), order), values)
    found = _page([(row.at, row.seq) for row in rows], limit)
    if found.following is not None or looked_at <= MOST_LOOKED_AT:
        return found
    terms = {name: text for name, text in texts.items() if name.startswith(lead)}
    last = await tx.one(_last_looked_at(lead, sizes[lead], order), {**between, **terms, "looked_at": MOST_LOOKED_AT})
    return FoundEntries(found.positions, None if last is None else (last.at, last.seq))


async def with_numbers(tx: Transaction, numbers: Sequence[int]) -> Sequence[Link]:
    """The entries with these numbers, in this order."""
    if not numbers:
        return ()
    rows = {row.seq: read_link(row) for row in await tx.all(sa.select(audit).where(audit.c.seq.in_(list(numbers))))}
    return [rows[number] for number in numbers if number in rows]


def _page(positions: Sequence[Position], limit: int) -> FoundEntries:
    shown = positions[:limit]
    return FoundEntries(shown, shown[-1] if len(positions) > limit else None)


def _position(after: Position | None, order: Order) -> dict[str, Any]:
    if after is None:
        after = (_END, 0) if order == "newest" else (-1.0, 0)
    return {"after_at": after[0], "after_seq": after[1]}


async def _rarest(
    tx: Transaction, wanted: Mapping[TermKind, Sequence[str]], between: Mapping[str, Any], order: Order
) -> tuple[TermKind, int]:
    """The kind whose terms the fewest entries have, and how many have them: `MOST_LOOKED_AT` and one at most."""
    counts: dict[TermKind, int] = {}
    for kind, terms in wanted.items():
        texts = {f"{kind}{number}": text for number, text in enumerate(terms)}
        row = await tx.one(_counting(kind, len(terms), order), {**between, **texts, "looked_at": MOST_LOOKED_AT + 1})
        counts[kind] = int(row.n) if row is not None else 0
    rarest = min(counts, key=lambda kind: counts[kind])
    return rarest, counts[rarest]


# ------------------------------------------------------------------------------------------------ statements

_INDEXED = Prepared(sa.select(audit_indexed).where(audit_indexed.c.log == sa.bindparam("log")))
_BETWEEN = Prepared(
    sa.select(audit)
    .where(audit.c.seq >= sa.bindparam("first"), audit.c.seq <= sa.bindparam("last"))
    .order_by(audit.c.seq)
)
_ADDING = {
    "sqlite": """
INSERT INTO audit_terms (kind, term, at, seq)
SELECT json_extract(each.value, '$[0]'), json_extract(each.value, '$[1]'), audit.at, audit.seq
FROM json_each(:rows) AS each JOIN audit ON audit.seq = json_extract(each.value, '$[2]')
WHERE true ON CONFLICT DO NOTHING
""",
    "postgresql": """
INSERT INTO audit_terms (kind, term, at, seq)
SELECT each.value ->> 0, each.value ->> 1, audit.at, audit.seq
FROM json_array_elements(CAST(:rows AS json)) AS each JOIN audit ON audit.seq = CAST(each.value ->> 2 AS bigint)
ON CONFLICT DO NOTHING
""",
}
_ADD = Prepared(lambda dialect: sa.text(_ADDING[dialect]))
"""The moment is that of the log, to the last digit."""


def _ordered(query: sa.Select[Any], at: sa.ColumnElement[float], seq: sa.ColumnElement[int], order: Order) -> Any:
    return query.order_by(at.desc(), seq.desc()) if order == "newest" else query.order_by(at, seq)


def _within(at: sa.ColumnElement[float], seq: sa.ColumnElement[int], order: Order) -> tuple[Any, ...]:
    here, after = sa.tuple_(at, seq), sa.tuple_(sa.bindparam("after_at"), sa.bindparam("after_seq"))
    beyond = here < after if order == "newest" else here > after
    return at >= sa.bindparam("since"), at < sa.bindparam("until"), beyond


@cache
def _all_entries(order: Order) -> Prepared:
    query = sa.select(audit.c.at, audit.c.seq).where(*_within(audit.c.at, audit.c.seq, order))
    return Prepared(_ordered(query, audit.c.at, audit.c.seq, order).limit(sa.bindparam("most")))


def _with_terms(kind: TermKind, count: int, order: Order) -> sa.Select[Any]:
    """The entries with one of so many terms of a kind, `looked_at` at most: each term has an index range of its own,
    which is in order."""

    def of_term(number: int) -> sa.Select[Any]:
        terms = audit_terms.alias(f"of_{kind}{number}")
        query = sa.select(terms.c.at, terms.c.seq).where(
            terms.c.kind == sa.literal_column(f"'{kind}'"),
            terms.c.term == sa.bindparam(f"{kind}{number}"),
            *_within(terms.c.at, terms.c.seq, order),
        )
        limited: sa.Select[Any] = _ordered(query, terms.c.at, terms.c.seq, order).limit(sa.bindparam("looked_at"))
        return limited

    if count == 1:
        return of_term(0)
    both = sa.union(*(sa.select(of_term(number).subquery()) for number in range(count))).subquery()
    merged: sa.Select[Any] = _ordered(sa.select(both.c.at, both.c.seq), both.c.at, both.c.seq, order)
    return merged.limit(sa.bindparam("looked_at"))


@cache
def _counting(kind: TermKind, count: int, order: Order) -> Prepared:
    some = _with_terms(kind, count, order).subquery()
    return Prepared(sa.select(sa.func.count().label("n")).select_from(some))


@cache
def _last_looked_at(kind: TermKind, count: int, order: Order) -> Prepared:
    some = _with_terms(kind, count, order).subquery()
    reverse: Order = "oldest" if order == "newest" else "newest"
    return Prepared(_ordered(sa.select(some.c.at, some.c.seq), some.c.at, some.c.seq, reverse).limit(1))


@cache
def _searching(lead: TermKind, sizes: tuple[tuple[TermKind, int], ...], order: Order) -> Prepared:
    counts = dict(sizes)
    some = _with_terms(lead, counts[lead], order).subquery("some")
    query = sa.select(some.c.at, some.c.seq)
    for kind, count in sizes:
        if kind == lead:
            continue
        other = audit_terms.alias(f"is_{kind}")
        query = query.where(
            sa.exists().where(
                other.c.kind == sa.literal_column(f"'{kind}'"),
                other.c.term.in_([sa.bindparam(f"{kind}{number}") for number in range(count)]),
                other.c.at == some.c.at,
                other.c.seq == some.c.seq,
            )
        )
    return Prepared(_ordered(query, some.c.at, some.c.seq, order).limit(sa.bindparam("most")))
