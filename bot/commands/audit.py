"""`audit verify` and `audit export`."""

from __future__ import annotations

import argparse
import csv
import json
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from bot.audit.entries import READ, Link, faults, in_utc, key_of, key_of_reading
from bot.characters import is_suspicious
from bot.commands.arguments import CommandError, time_range
from bot.data_folder import private_opener
from bot.records.addresses import sqlite_file
from bot.records.audit import AuditReader, UnreadableLogError, audit_at

COLUMNS = (
    *("seq", "at", "thread", "call", "attempt", "requester", "server", "tool", "input", "mode", "decision", "rule"),
    *("source", "version", "votes", "approval", "digest", "duration", "status", "settled", "note", "output", "hash"),
    *("client", "agent", "why"),  # at the end: spreadsheets that were made for the others keep their columns
)
_FORMULA = frozenset("=+-@|%")
"""Spreadsheets calculate cells that begin so (OWASP: CSV injection), also after blanks and where the letters are
full-width or small forms."""


def verify(database: str, anchor: tuple[int, str] | None, out: TextIO) -> int:
    """Follow the chain in the records at an address from its beginning; 1 when anything is wrong with it."""
    wrong = 0
    with opened_log(database) as reader:
        seen = _Seen(anchor)
        for fault in faults(seen.all_of(reader.dated_links())):
            out.write(f"{fault.what}\n")
            wrong += 1
        for seq in seen.misfiled:
            out.write(f"entry {seq} is kept under another moment or another call than its own\n")
            wrong += 1
        if anchor and not seen.anchored:
            out.write(f"entry {anchor[0]} is not the one whose hash was kept: it is missing or was changed\n")
            wrong += 1
        for key in reader.unwritten():
            out.write(f"the entry of call {key} is missing: the ledger knows how it ended\n")
            wrong += 1
    if wrong:
        out.write(f"{_counted(seen.count)}, {wrong} {'fault' if wrong == 1 else 'faults'}.\n")
        return 1
    out.write(f"{_counted(seen.count)}, all as they were written.\n")
    if seen.last is not None:
        out.write(f"To see later that none of them was cut off: --anchor {seen.last.seq}:{seen.last.hash}\n")
    return 0


class _Seen:
    """What went by while the chain was followed."""

    def __init__(self, anchor: tuple[int, str] | None) -> None:
        self._anchor = anchor
        self.anchored = False
        self.count = 0
        self.last: Link | None = None
        self.misfiled: list[int] = []
        """Entries that a time range or a search for their call would not find."""

    def all_of(self, links: Iterator[tuple[Link, float]]) -> Iterator[Link]:
        for link, at in links:
            self.count, self.last = self.count + 1, link
            if not _is_found_under(link, at):
                self.misfiled.append(link.seq)
            self.anchored = self.anchored or (link.seq, link.hash) == self._anchor
            yield link


def _is_found_under(link: Link, at: float) -> bool:
    """Whether a moment and a key are those of the entry; of one that cannot be read, the hash says that already."""
    try:
        entry = json.loads(link.entry)
        settled, then = entry["settled"], entry["at"]
        if entry["status"] == READ:
            key = key_of_reading(entry["thread"], settled, then)
        else:
            key = key_of(entry["call"], entry["attempt"], entry["status"], settled, then)
        return bool(in_utc(at) == then and link.key == key)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return False


def _counted(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def export(database: str, given: argparse.Namespace, now: float, out: TextIO) -> int:
    """Write the entries of a time range, one after the other."""
    since, until = time_range(given, now)
    write = _write_csv if given.format == "csv" else _write_lines
    file = sqlite_file(database)
    if given.output is not None and file is not None and given.output.resolve() == file.resolve():
        raise CommandError(f"{given.output} is the log itself: write to another file")
    with opened_log(database) as reader, _target(given.output, out) as target:
        write(reader.links(since, until), target)
    return 0


def _write_lines(links: Iterator[Link], target: TextIO) -> None:
    """Each entry as one JSON object with all it says, and what proves it."""
    for link in links:
        line = {"seq": link.seq, **_entry(link), "previous": link.previous, "hash": link.hash}
        target.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_csv(links: Iterator[Link], target: TextIO) -> None:
    """Each entry as one row for a spreadsheet; what replaying needs is left out."""
    rows = csv.writer(target)
    rows.writerow(COLUMNS)
    for link in links:
        entry = {"seq": link.seq, **_entry(link), "hash": link.hash}
        rows.writerow([_cell(entry.get(column)) for column in COLUMNS])


def entry_in(link: Link) -> dict[str, Any] | None:
    """What an entry says; `None`: it was changed and cannot be read."""
    try:
        entry = json.loads(link.entry)
    except (TypeError, ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _entry(link: Link) -> dict[str, Any]:
    entry = entry_in(link)
    if entry is None:
        raise CommandError(f"entry {link.seq} was changed and cannot be read: see `audit verify`")
    return entry


def _cell(value: Any) -> str | int | float:
    match value:
        case None:
            return ""
        case int() | float():
            return value
        case list():
            return cell("; ".join(map(_vote_in_words, value)))
        case dict():
            return cell(f"{value['choice']} by {value['by']}" if value else "")
        case _:
            return cell(str(value))


def _vote_in_words(vote: dict[str, Any]) -> str:
    authority = f" ({vote['authority']})" if vote["authority"] else ""
    return f"{vote['verb']} by {vote['name']} <{vote['person']}>{authority} at {vote['at']}"


def cell(text: str) -> str:
    """A cell that no spreadsheet calculates and no terminal obeys: control characters are written as escapes, and what
    could begin a formula has an apostrophe before it."""
    shown = "".join(c if c in "\n\t" or not _controls(c) else f"\\u{ord(c):04x}" for c in text)
    seen = next((c for c in unicodedata.normalize("NFKC", shown) if not _is_blank(c)), "")
    return f"'{shown}" if seen in _FORMULA or shown[:1] in {"\n", "\t", "'"} else shown


def _controls(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"}


def _is_blank(character: str) -> bool:
    """Whether a reader sees nothing there."""
    return (
        character.isspace() or unicodedata.category(character) in {"Cc", "Cf", "Mn", "Me"} or (is_suspicious(character))
    )


@contextmanager
def opened_log(database: str) -> Iterator[AuditReader]:
    """The log, for reading. Raises `CommandError`, also within, when it cannot be read."""
    try:
        with audit_at(database) as reader:
            yield reader
    except UnreadableLogError as error:
        raise CommandError(str(error)) from error


@contextmanager
def _target(path: Path | None, out: TextIO) -> Iterator[TextIO]:
    if path is None:
        yield out
        return
    try:
        with open(path, "w", encoding="utf-8", newline="", opener=private_opener) as target:
            yield target
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
