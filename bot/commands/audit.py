"""`audit verify` and `audit export`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

from bot.audit.entries import Link
from bot.audit.export import UnreadableEntryError, as_csv_row, as_json_line, csv_heading
from bot.audit.verifying import LogCheck, unwritten_fault
from bot.commands.arguments import CommandError, time_range
from bot.data_folder import private_opener
from bot.records.addresses import sqlite_file
from bot.records.audit import AuditReader, UnreadableLogError, audit_at


def verify(database: str, anchor: tuple[int, str] | None, out: TextIO) -> int:
    """Follow the chain in the records at an address from its beginning; 1 when anything is wrong with it."""
    wrong = 0
    with opened_log(database) as reader:
        check = LogCheck(anchor)
        faults = chain(
            check.faults_of(reader.dated_links()),
            check.faults_at_the_end(),
            map(unwritten_fault, reader.unwritten()),
        )
        for fault in faults:
            out.write(f"{fault.what}\n")
            wrong += 1
    if wrong:
        out.write(f"{_counted(check.count)}, {wrong} {'fault' if wrong == 1 else 'faults'}.\n")
        return 1
    out.write(f"{_counted(check.count)}, all as they were written.\n")
    if check.last is not None:
        out.write(f"To see later that none of them was cut off: --anchor {check.last.seq}:{check.last.hash}\n")
    return 0


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
        try:
            write(reader.links(since, until), target)
        except UnreadableEntryError as error:
            raise CommandError(f"{error}: see `audit verify`") from error
    return 0


def _write_lines(links: Iterator[Link], target: TextIO) -> None:
    target.writelines(map(as_json_line, links))


def _write_csv(links: Iterator[Link], target: TextIO) -> None:
    target.write(csv_heading())
    target.writelines(map(as_csv_row, links))


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
        if isinstance(out, TextIOWrapper):
            out.reconfigure(encoding="utf-8")  # JSON is, and what was kept is verified byte by byte
        yield out
        return
    try:
        with open(path, "w", encoding="utf-8", newline="", opener=private_opener) as target:
            yield target
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
