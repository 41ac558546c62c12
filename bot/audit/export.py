"""Entries of the audit log as JSON Lines and as CSV. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from bot.audit.entries import Link, read_entry
from bot.characters import is_suspicious

COLUMNS = (
    *("seq", "at", "thread", "call", "attempt", "requester", "server", "tool", "input", "mode", "decision", "rule"),
    *("source", "version", "votes", "approval", "digest", "duration", "status", "settled", "note", "output", "hash"),
    *("client", "agent", "why"),  # at the end: spreadsheets that were made for the others keep their columns
)
_FORMULA = frozenset("=+-@|%")
"""Spreadsheets calculate cells that begin so (OWASP: CSV injection), also after blanks and where the letters are
full-width or small forms."""
_PARTS = re.compile(r"([;\t\n])")
"""Where a spreadsheet whose separator is another one than ours ends a cell: Excel in German and French wants
semicolons, and does not see our quotes then."""
_ENDS_OF_LINES = {sign: f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}
"""JSON need not escape these, and many readers of lines end one there."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Those of Unicode, but for tab and the end of a line, and halves of characters."""
_UNREADABLE = "this entry was changed and cannot be read"


class UnreadableEntryError(Exception):
    """An entry was changed, so that it says nothing any more. `seq`: its number."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"entry {seq} was changed and cannot be read")
        self.seq = seq


def as_json_line(link: Link) -> str:
    """An entry as one JSON object with all it says, and what proves it. Raises `UnreadableEntryError`."""
    line = {"seq": link.seq, **_entry(link), "previous": link.previous, "hash": link.hash}
    return _as_one_line(line)


def as_csv_row(link: Link) -> str:
    """An entry as one row for a spreadsheet; what replaying needs is left out. Raises `UnreadableEntryError`."""
    return _row({"seq": link.seq, **_entry(link), "hash": link.hash})


def _as_one_line(line: Mapping[str, Any]) -> str:
    text = json.dumps(line, ensure_ascii=False)
    for sign, escape in _ENDS_OF_LINES.items():  # ten times as fast as `translate`
        text = text.replace(sign, escape)
    return text + "\n"


def csv_heading() -> str:
    """The names of the columns."""
    return _written(COLUMNS)


def unreadable_json_line(link: Link) -> str:
    """What stands for an entry that cannot be read."""
    line = {"seq": link.seq, "note": _UNREADABLE, "previous": link.previous, "hash": link.hash}
    return _as_one_line(line)


def unreadable_csv_row(link: Link) -> str:
    """The same for a spreadsheet."""
    return _row({"seq": link.seq, "note": _UNREADABLE, "hash": link.hash})


def _row(entry: Mapping[str, Any]) -> str:
    return _written(tuple(_cell(entry.get(column)) for column in COLUMNS))


def _written(cells: tuple[Any, ...]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _entry(link: Link) -> dict[str, Any]:
    entry = read_entry(link.entry)
    if entry is None:
        raise UnreadableEntryError(link.seq)
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
    """A cell that no spreadsheet calculates and no terminal obeys, whatever separates its cells: control characters are
    written as escapes, and what could begin a formula has an apostrophe before it."""
    shown = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    kept = "".join(f"'{part}" if _begins_a_formula(part) else part for part in _PARTS.split(shown))
    return f"'{kept}" if shown[:1] in {"\n", "\t", "'"} else kept


def _begins_a_formula(part: str) -> bool:
    seen = next((c for c in unicodedata.normalize("NFKC", part) if c != '"' and not _is_blank(c)), "")
    return seen in _FORMULA


def _is_blank(character: str) -> bool:
    """Whether a reader sees nothing there."""
    return (
        character.isspace() or unicodedata.category(character) in {"Cc", "Cf", "Mn", "Me"} or (is_suspicious(character))
    )
