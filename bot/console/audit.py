"""The audit log as operators search it, hand it on, and see whether it is as it was written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from bot.audit import export
from bot.audit.entries import Fault, Link, read_entry
from bot.audit.terms import Term, TermKind, term, terms_of
from bot.audit.verifying import LogCheck, unwritten_fault
from bot.console.access import OperatorAccess
from bot.domain import Person
from bot.records import audit, audit_terms, threads
from bot.records.audit_terms import Indexed, Order, Position
from bot.records.database import Database, Transaction
from bot.records.locks import AUDIT_TERMS
from bot.repeated_failures import RepeatedFailure

MOST_ENTRIES = 100
"""Of one answer."""
AT_A_TIME = 200
"""Entries that are read, looked through, hashed or written at once: some milliseconds."""
AT_ONCE_BEFORE_A_SEARCH = 2
"""So many times `AT_A_TIME` entries that were written meanwhile get their terms before a search."""
INDEX_SECONDS = 5.0
"""Between two looks for entries without terms."""
INDEX_PAUSE = 0.02
"""The same, while there are some."""
FAR = 10_000
"""Entries without terms after which the newest go first: the search is for what has happened lately."""
MOST_ACCOUNTS = 8
"""People of one address that are searched for."""
MOST_FAULTS = 1_000
"""That are told; all are counted."""
_EVER = 1e12
ExportFormat = Literal["jsonl", "csv"]


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """Which entries; empty: whatever it is."""

    person: str = ""
    """Who asked, voted, looked or acted: a person id, the address of their accounts, or the name of a user of the
    page."""
    server: str = ""
    tool: str = ""
    rule: str = ""
    outcome: str = ""
    """Status of an entry."""
    decision: str = ""
    since: float = 0.0
    """Seconds since the epoch."""
    until: float = _EVER
    """Likewise; not included."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, the newest first."""

    links: Sequence[Link]
    following: Position | None
    """Before what the next page begins; `None`: this is the last one. A page may be empty although others follow."""
    is_whole: bool
    """False: older entries are not looked through yet, since what they are found by is still being collected."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How far the log is looked through, and what is wrong with it."""

    checked: int
    """Entries."""
    of: int
    """Entries that there were in the beginning."""
    has_ended: bool
    faults: Sequence[Fault]
    """`MOST_FAULTS` at most, once it has ended."""
    fault_count: int
    last: Link | None
    """The newest entry that was looked at: whoever keeps its number and hash elsewhere sees later that nothing was cut
    off."""


class AuditTerms:
    """Collects what entries are found by, some seconds after they were written: so that nothing which waits for an
    entry waits for that."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def collecting(self) -> AsyncIterator[None]:
        """Within it they are collected."""
        task = asyncio.create_task(self._keep_collecting(), name="audit terms")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep_collecting(self) -> None:
        failure = RepeatedFailure("audit_terms_not_collected")
        while True:
            has_more = False
            try:
                has_more = await self.collect()
                failure.worked()
            except Exception as error:  # noqa: BLE001  # only the records can fail here, and may be back any time
                failure.failed(error)
            await asyncio.sleep(INDEX_PAUSE if has_more else INDEX_SECONDS)

    async def collect(self) -> bool:
        """Those of the next `AT_A_TIME` entries, newer ones first. Returns whether there may be more."""
        async with self._database.reading() as tx:
            if await self._next(tx) is None:
                return False
        async with self._database.writing_apart(AUDIT_TERMS) as tx:
            following = await self._next(tx)
            if following is None:
                return False
            first, last, indexed = following
            links = await audit_terms.links_between(tx, first, last)
            await audit_terms.add(tx, {link.seq: _terms_in(link) for link in links}, indexed)
        return True

    async def collect_all(self) -> None:
        """Those of all entries: of a million after an upgrade, some minutes."""
        has_more = True
        while has_more:
            has_more = await self.collect()
            await asyncio.sleep(0)  # others get their turn, also where the records answer without waiting

    async def is_whole(self, tx: Transaction) -> bool:
        """Whether there are terms of the oldest entries, too."""
        indexed = await audit_terms.indexed(tx)
        return indexed.first == 1 if indexed is not None else await audit.newest_number(tx) == 0

    async def _next(self, tx: Transaction) -> tuple[int, int, Indexed] | None:
        newest, indexed = await audit.newest_number(tx), await audit_terms.indexed(tx)
        return next_to_index(newest, indexed)


def next_to_index(newest: int, indexed: Indexed | None) -> tuple[int, int, Indexed] | None:
    """Which entries get their terms next, from the first to the last, and of which there are some then; `None`: of
    all. Newer ones go first, and then older ones.

    Args:
        newest: number of the newest entry; 0: there is none.
        indexed: of which entries there are terms; `None`: of none.
    """
    if newest == 0:
        return None
    if indexed is None or newest - indexed.last > FAR:
        first = max(1, newest - AT_A_TIME + 1)
        return first, newest, Indexed(first, newest)
    if indexed.last < newest:
        last = min(indexed.last + AT_A_TIME, newest)
        return indexed.last + 1, last, Indexed(indexed.first, last)
    if indexed.first > 1:
        first = max(1, indexed.first - AT_A_TIME)
        return first, indexed.first - 1, Indexed(first, indexed.last)
    return None


def _terms_in(link: Link) -> Sequence[Term]:
    """What an entry is found by; one that was changed and cannot be read is found by its number and its time only."""
    entry = read_entry(link.entry)
    return () if entry is None else terms_of(entry)


class AuditSearch:
    """Searches the log, for operators."""

    def __init__(self, database: Database, access: OperatorAccess, terms: AuditTerms) -> None:
        self._database = database
        self._access = access
        self._terms = terms

    async def page(
        self, operator: Person, question: AuditQuestion, before: Position | None = None, limit: int = MOST_ENTRIES
    ) -> AuditPage | None:
        """The newest entries; `None`: this is no operator.

        Args:
            before: `AuditPage.following` of the page before.
        """
        if not await self._access.looks(operator, "the audit log"):
            return None
        return await self._found(question, before, limit, "newest")

    async def exported(
        self, operator: Person, question: AuditQuestion, form: ExportFormat
    ) -> AsyncGenerator[str, None] | None:
        """The text of all these entries, oldest first, piece by piece; `None`: this is no operator."""
        if not await self._access.looks(operator, "the audit log"):
            return None
        return self._pieces(question, form)

    async def _pieces(self, question: AuditQuestion, form: ExportFormat) -> AsyncGenerator[str, None]:
        written, unreadable = _WRITING[form]
        if form == "csv":
            yield export.csv_heading()
        async with aclosing(await self._links(question)) as parts:
            async for links in parts:  # in a thread: long entries take a tenth of a second
                yield await asyncio.to_thread(_in_texts, links, written, unreadable)

    async def _links(self, question: AuditQuestion) -> AsyncGenerator[Sequence[Link], None]:
        """All these entries, oldest first, some at a time."""
        if any((question.person, question.server, question.tool, question.rule, question.outcome, question.decision)):
            await self._terms.collect_all()  # else what cannot be found yet would be missing, and nobody be told
            return self._links_found(question)
        return self._links_between(question.since or None, None if question.until == _EVER else question.until)

    async def _links_found(self, question: AuditQuestion) -> AsyncGenerator[Sequence[Link], None]:
        after: Position | None = None
        while True:
            page = await self._found(question, after, AT_A_TIME, "oldest")
            if page.links:
                yield page.links
            if page.following is None:
                return
            after = page.following

    async def _links_between(self, since: float | None, until: float | None) -> AsyncGenerator[Sequence[Link], None]:
        """By number, from the first of the time range to its last: when it was, a process says before it knows which
        number it will be, and what is left out or stands elsewhere looks like something that was tampered with."""
        async with self._database.reading() as tx:
            first, last = await audit.numbers_within(tx, since, until)
        while first <= last:
            async with self._database.reading() as tx:
                links = await audit_terms.links_between(tx, first, min(first + AT_A_TIME - 1, last))
            if links:
                yield links
            first += AT_A_TIME

    async def _found(self, question: AuditQuestion, after: Position | None, limit: int, order: Order) -> AuditPage:
        for _ in range(AT_ONCE_BEFORE_A_SEARCH):
            if after is not None or not await self._terms.collect():
                break
        async with self._database.reading() as tx:
            wanted = await self._wanted(tx, question)
            is_whole = not wanted or await self._terms.is_whole(tx)
            found = await audit_terms.find(
                tx, wanted, question.since, question.until, after=after, order=order, limit=limit
            )
            links = await audit_terms.with_numbers(tx, [seq for _, seq in found.positions])
        return AuditPage(links, found.following, is_whole)

    async def _wanted(self, tx: Transaction, question: AuditQuestion) -> Mapping[TermKind, Sequence[str]]:
        named: Mapping[TermKind, str] = {
            "server": question.server,
            "tool": question.tool,
            "rule": question.rule,
            "outcome": question.outcome,
            "decision": question.decision,
        }
        wanted = {kind: [term(kind, text).text] for kind, text in named.items() if text}
        if question.person:
            wanted["person"] = [term("person", each).text for each in await self._accounts(tx, question.person)]
        return wanted

    async def _accounts(self, tx: Transaction, person: str) -> Sequence[str]:
        """Person ids of whoever is meant; what is none is looked for all the same, and not found."""
        if "@" in person and ":" not in person:
            return (await threads.with_address(tx, person.casefold()))[:MOST_ACCOUNTS] or [person]
        return [person if ":" in person else f"web:{person}"]


def _in_texts(links: Sequence[Link], written: Callable[[Link], str], unreadable: Callable[[Link], str]) -> str:
    return "".join(_in_text(link, written, unreadable) for link in links)


def _in_text(link: Link, written: Callable[[Link], str], unreadable: Callable[[Link], str]) -> str:
    try:
        return written(link)
    except export.UnreadableEntryError:
        return unreadable(link)


_WRITING: Mapping[ExportFormat, tuple[Callable[[Link], str], Callable[[Link], str]]] = {
    "jsonl": (export.as_json_line, export.unreadable_json_line),
    "csv": (export.as_csv_row, export.unreadable_csv_row),
}


@dataclass(slots=True)
class _FaultsFound:
    """What is wrong so far."""

    faults: list[Fault] = field(default_factory=list)
    count: int = 0

    def add(self, faults: Sequence[Fault]) -> None:
        self.count += len(faults)
        self.faults += faults[: MOST_FAULTS - len(self.faults)]


class AuditVerification:
    """Follows the chain from its beginning, for operators, and holds the ledger against it, as `audit verify` does."""

    def __init__(self, database: Database, access: OperatorAccess) -> None:
        self._database = database
        self._access = access

    async def verified(
        self, operator: Person, anchor: tuple[int, str] | None = None
    ) -> AsyncGenerator[Verification, None] | None:
        """How far it is, again and again; the last says what is wrong. `None`: this is no operator.

        Args:
            anchor: number and hash of an entry that were kept elsewhere.
        """
        if not await self._access.looks(operator, "whether the audit log is whole"):
            return None
        return self._steps(anchor)

    async def _steps(self, anchor: tuple[int, str] | None) -> AsyncGenerator[Verification, None]:
        async with self._database.reading() as tx:
            count = await audit.newest_number(tx)
        check, found = LogCheck(anchor), _FaultsFound()
        while True:
            async with self._database.reading() as tx:
                after = check.last.seq if check.last is not None else -1
                links = await audit.dated_links(tx, after, AT_A_TIME)
            if not links:
                break
            found.add(await asyncio.to_thread(lambda some=links: list(check.faults_of(some))))  # type: ignore[misc]
            yield Verification(check.count, count, False, (), found.count, check.last)
        found.add(list(check.faults_at_the_end()))
        attempt = ""
        while True:
            await asyncio.sleep(0)  # SQLite's statements run in the event loop, and neither they nor the reader waits
            async with self._database.reading() as tx:
                keys, attempt = await audit.unwritten(tx, attempt, AT_A_TIME)
            found.add([unwritten_fault(key) for key in keys])
            if not attempt:
                break
            yield Verification(check.count, count, False, (), found.count, check.last)
        yield Verification(check.count, max(count, check.count), True, found.faults, found.count, check.last)
