#!/usr/bin/env python3
"""Verifies an export of Countersign's audit log, or what was pushed to a SIEM, without Countersign.

    python3 verify_audit.py export.jsonl
    python3 verify_audit.py october.jsonl november.jsonl --anchor 4711:9f86d0818…
    siem-search … | python3 verify_audit.py - --any-order

One file for Python 3.9 or newer. It imports only Python's standard library, reads the named files and nothing else,
and connects to nothing.

Each line is one JSON object: an entry as `audit export` writes it, or an OCSF event as it was pushed. Of an entry, the
hash is SHA-256, in hexadecimal, of the UTF-8 text

    {hash of the entry before, 64 zeros before the first}\\n{number}\\n{the entry as canonical JSON}

where canonical JSON has sorted keys, no blanks between its parts, and characters beyond ASCII as they are. An event has
that JSON in `raw_data`, letter by letter. No key is part of it: whoever can read the log can verify it.

What it cannot find out: whether someone who could write to the database made the whole chain anew, from the first
entry on; and whether the newest entries were cut off. Both show against an anchor, number and hash of an entry that
were kept elsewhere, or against what was pushed earlier.

Exit code 0: as it was written. 1: something is wrong; each fault is a line with the file and the line in it. 2: it was
called in a wrong way, or a file cannot be read.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, TextIO

BEGINNING = "0" * 64
"""What stands for the hash before the first entry."""
LONGEST_LINE = 16_000_000
"""Bytes; an entry has some thousand."""
MOST_FAULTS = 1_000
"""That are told; all are counted."""
OWN = {"seq", "previous", "hash"}
"""What an exported line has besides the entry."""
_HASH = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """An entry of the log, as a line says it."""

    seq: int
    text: str
    """Canonical JSON."""
    previous: str
    hash: str
    event: dict[str, Any] | None = None
    """The OCSF event that it was pushed in; `None`: it was exported."""


class Unreadable(Exception):  # noqa: N818  # what a line is
    """A line is no entry; the message says why."""


class Anchor(NamedTuple):
    """Number and hash of an entry that were kept elsewhere."""

    seq: int
    hash: str


# ------------------------------------------------------------------------------------------------- one line


def entry_in(line: bytes) -> Entry:
    """The entry that a line says. Raises `Unreadable`."""
    if len(line) > LONGEST_LINE:
        raise Unreadable("is longer than an entry can be")
    if line.startswith(b"seq,"):
        raise Unreadable("is the beginning of a CSV export, which has not all that is verified: export JSON Lines")
    try:
        said = _parsed(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8") from None
    if not isinstance(said, dict):
        raise Unreadable("is not a JSON object")
    if "raw_data" in said:
        return _pushed(said)
    text = canonical({name: value for name, value in said.items() if name not in OWN})
    return _checked(said, text, None)


def _pushed(event: dict[str, Any]) -> Entry:
    if {"seq", "previous"} & event.keys():
        raise Unreadable("is an exported entry and an event at once, of which only one can be verified")
    text, unmapped = event["raw_data"], event.get("unmapped")
    chain = unmapped.get("chain") if isinstance(unmapped, dict) else None
    if not isinstance(text, str) or not isinstance(chain, dict):
        raise Unreadable("is an event without an entry of the audit log and its place in the chain")
    return _checked(chain, text, event)


def _checked(said: dict[str, Any], text: str, event: dict[str, Any] | None) -> Entry:
    seq, previous, hash_ = said.get("seq"), said.get("previous"), said.get("hash")
    if type(seq) is not int:
        raise Unreadable("has no number (seq)")
    if not _is_hash(previous) or not _is_hash(hash_):
        raise Unreadable(f"entry {seq} has no hash, or no hash of the entry before (was it exported as CSV?)")
    return Entry(seq, text, previous, hash_, event)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_with_each_key_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Unreadable("is not JSON") from error


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A reader who takes the first of two values would read something else than what is verified here."""
    said = dict(pairs)
    if len(said) != len(pairs):
        raise Unreadable("says something twice (a key that stands two times in one object)")
    return said


def _no_number(name: str) -> Any:
    raise Unreadable(f"has {name}, which JSON has not")


def canonical(value: Any) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def hash_of(entry: Entry) -> str:
    """The hash that an entry has, if it is what was written."""
    return hashlib.sha256(f"{entry.previous}\n{entry.seq}\n{entry.text}".encode("utf-8", "surrogatepass")).hexdigest()


# ------------------------------------------------------------------------------------------------ all of them


class Verification:
    """Follows entries in the order in which they come.

    Args:
        anchors: what was kept elsewhere.
        selection: whether entries may be left out between others, as where only some were searched for.
        whole: whether they have to begin with the first entry of the log.
    """

    def __init__(self, anchors: Sequence[Anchor] = (), *, selection: bool = False, whole: bool = False) -> None:
        self._anchors = anchors
        self._selection, self._whole = selection, whole
        self._seen: dict[int, str] = {}
        self._before: dict[int, str] = {}
        """Of entries that are not there, the hash, as the entries after them say it."""
        self.first: Entry | None = None
        self.last: Entry | None = None
        self.repeated = 0
        """Entries that came more than once, the same each time: events are pushed at least once, and the ranges of two
        exports may overlap."""

    @property
    def count(self) -> int:
        """How many entries there are, each once."""
        return len(self._seen)

    def faults_of(self, entry: Entry, *, may_repeat: bool = False) -> Iterator[str]:
        """What is wrong with the next entry. After a fault the chain is followed on from what is there.

        Args:
            may_repeat: whether it may be one that another file has, too.
        """
        if hash_of(entry) != entry.hash:
            yield f"entry {entry.seq} was changed, or was not written under this number"
        elif entry.event is not None:
            yield from _disagreements(entry)
        if entry.seq in self._seen:
            yield from self._second(entry, may_repeat=may_repeat)
            return
        yield from self._place(entry)
        self._seen[entry.seq] = entry.hash
        self._before[entry.seq - 1] = entry.previous
        self.first, self.last = self.first or entry, entry

    def _second(self, entry: Entry, *, may_repeat: bool) -> Iterator[str]:
        if self._seen[entry.seq] != entry.hash:
            yield f"entry {entry.seq} stands a second time, and is another one"
        elif entry.event is None and not may_repeat:
            yield f"entry {entry.seq} stands a second time"
        else:
            self.repeated += 1

    def _place(self, entry: Entry) -> Iterator[str]:
        if self.last is None:
            if entry.seq == 1 and entry.previous != BEGINNING:
                yield "entry 1 does not say that it is the first: something was before it"
            elif entry.seq < 1:
                yield f"entry {entry.seq} has a number that no entry has"
            elif entry.seq != 1 and self._whole:
                yield f"entries 1 to {entry.seq - 1} are missing"
        elif entry.seq < self.last.seq:
            yield f"entry {entry.seq} is out of order: it stands after entry {self.last.seq}"
        elif entry.seq > self.last.seq + 1:
            if not self._selection:
                yield _missing(self.last.seq + 1, entry.seq - 1)
        elif entry.previous != self.last.hash:
            yield f"entry {entry.seq} does not follow entry {self.last.seq} as it stands here: one of them was changed"

    def faults_at_the_end(self) -> Iterator[str]:
        """What is wrong when no more entries come."""
        if self._whole and self.last is None:
            yield "there is no entry, not even the first one"
        for seq, hash_ in self._anchors:
            known = self._seen.get(seq) or self._before.get(seq)
            if known is not None and known != hash_:
                yield f"entry {seq} is not the one whose hash was kept: it was changed, or the chain was made anew"
            elif known is None and (self.last is None or seq > self.last.seq):
                yield f"entry {seq}, whose hash was kept, is missing: the newest entries were cut off"
            elif known is None:
                yield f"entry {seq}, whose hash was kept, is not here: nothing can be said of it"


def _missing(first: int, last: int) -> str:
    return f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"


def _disagreements(entry: Entry) -> Iterator[str]:
    """What an event says besides the entry is for searching; whoever reads only that must not read something else."""
    event = entry.event or {}
    try:
        inside = _parsed(entry.text)
        always, if_there = _told_always(entry, inside), _told_if_there(entry, inside)
    except (Unreadable, AttributeError, KeyError, TypeError, ValueError):
        yield f"entry {entry.seq} cannot be read, so nothing that is said of it can be verified"
        return
    said = [(name, _at(event, name), there) for name, there in always.items()]
    said += [(name, here, there) for name, there in if_there.items() if (here := _at(event, name)) is not None]
    decision = inside["decision"]
    authorizations = event.get("authorizations", [])
    authorizations = authorizations if isinstance(authorizations, list) else [None]
    said.append(("authorizations", [_at(each, "decision") for each in authorizations], [decision] if decision else []))
    for name, field in _OF_A_POLICY.items():
        policies = [here for each in authorizations if (here := _at(each, f"policy.{name}")) is not None]
        said += [(f"authorizations.policy.{name}", here, inside.get(field)) for here in policies]
    copied = _at(event, "unmapped.entry")
    if isinstance(copied, dict):
        said += [(f"unmapped.entry.{name}", here, inside.get(name)) for name, here in copied.items()]
    for name, here, there in said:
        if here != there or isinstance(here, bool) != isinstance(there, bool):
            shown = name.encode("unicode_escape").decode()  # a terminal must not obey it
            yield f"entry {entry.seq}: {shown} is not what the entry itself says"


_OF_A_POLICY = {"name": "rule", "uid": "source", "version": "version", "desc": "why"}
_STATUS = ("Unknown", "Success", "Failure")
_SEVERITY = ("Unknown", "Informational", "Low", "Medium", "High")
_ACTION = ("Unknown", "Allowed", "Denied", "Observed")
_DISPOSITION = {0: "Unknown", 1: "Allowed", 2: "Blocked", 17: "Logged", 25: "Rejected", 27: "Error"}
_ACTIVITY = {2: "Read", 99: "Other"}
_NOT_MADE, _SEEN, _ACT, _FAILED_UNMADE = (2, 2, 2, 2), (1, 1, 3, 17), (1, 2, 3, 17), (2, 2, 2, 27)
_MEANINGS = {
    "done": (1, 1, 1, 1),
    "failed": (2, 2, 1, 27),
    "unknown": (0, 3, 1, 0),
    "rejected": (2, 2, 2, 25),
    **dict.fromkeys(("denied", "expired", "superseded", "withdrawn", "limited", "skipped"), _NOT_MADE),
    **dict.fromkeys(("looked", "looked up", "read"), _SEEN),
}
"""What a status is in OCSF 1.8.0: the numbers of status, severity, action and disposition. Another one is an act."""


def _told_always(entry: Entry, inside: dict[str, Any]) -> dict[str, Any]:
    """What every event says of its entry, by the path of the field."""
    return {
        "metadata.sequence": entry.seq,
        "metadata.uid": entry.hash,
        "time": _milliseconds(inside["at"]),
        "status_code": inside["status"],
        "actor.user.uid": _who(inside),
        "api.request.uid": inside["call"],
        "api.operation": _operation(inside),
    }


def _told_if_there(entry: Entry, inside: dict[str, Any]) -> dict[str, Any]:
    """The same of what only some events say, or a SIEM may leave out."""
    server, judged = inside["server"], inside.get("judged") or {}
    status, severity, action, disposition = (
        _FAILED_UNMADE
        if inside["status"] == "failed" and inside["attempt"] is None
        else _MEANINGS.get(inside["status"], _ACT)
    )
    activity = 2 if _reads_only(inside["status"], judged.get("tool", {})) else 99
    return {
        "class_uid": 6003,
        "class_name": "API Activity",
        "category_uid": 6,
        "category_name": "Application Activity",
        "activity_id": activity,
        "activity_name": _ACTIVITY[activity],
        "type_uid": 600300 + activity,
        "type_name": f"API Activity: {_ACTIVITY[activity]}",
        "message": f"{server} {_operation(inside)}".strip() + f": {inside['status']}",
        "is_alert": False,
        "status_id": status,
        "status": _STATUS[status],
        "status_detail": inside["note"],
        "severity_id": severity,
        "severity": _SEVERITY[severity],
        "action_id": action,
        "action": _ACTION[action],
        "disposition_id": disposition,
        "disposition": _DISPOSITION[disposition],
        "actor.app_name": inside.get("client") or inside.get("agent"),
        "api.service.name": server,
        "src_endpoint.name": judged.get("platform", ""),
        "metadata.log_name": "audit",
        "metadata.original_event_uid": str(entry.seq),
    }


_LOOKER = re.compile(r"<([^<>]+)>(?: \([^<>]*\))?")


def _who(inside: dict[str, Any]) -> Any:
    """Who did it: who looked at what is hidden in a call ("Eva <slack:T1:U2> (requester)"), else who asked for it."""
    words = str(inside.get("settled", {}).get("by")) if inside["status"] == "looked" else ""
    found = _LOOKER.fullmatch(words, words.rfind("<")) if "<" in words else None
    return found[1] if found is not None else inside["requester"]


def _operation(inside: dict[str, Any]) -> Any:
    return inside["tool"] or inside.get("settled", {}).get("choice", "")


def _reads_only(status: str, tool: dict[str, Any]) -> bool:
    trusted = tool.get("trusted") and tool.get("annotations", {}).get("read_only")
    return status in {"looked", "looked up", "read"} or bool(tool.get("reads_only") or trusted)


def _at(event: Any, path: str) -> Any:
    value = event
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000)


# ------------------------------------------------------------------------------------------------ the command


def lines_of(source: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each bounded, without those that are empty."""
    while line := source.readline(LONGEST_LINE + 2):
        yield line


def _read(names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in names:
        with contextlib.ExitStack() as stack:
            source = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))  # noqa: PTH123
            for number, line in enumerate(lines_of(source), start=1):
                said = line[len(BOM_UTF8) :] if number == 1 and line.startswith(BOM_UTF8) else line
                if said.strip():
                    yield f"{name}:{number}", said


def verify(lines: Iterable[tuple[str, bytes]], verification: Verification, out: TextIO, *, any_order: bool) -> int:
    """Follows the lines, each with where it stands, and writes what is wrong. Returns how many faults there are."""
    faults = 0
    entries: list[tuple[str, Entry]] = []
    file_before, overlaps = "", False  # at its beginning, a file may have what the one before ended with

    def tell(where: str, fault: str) -> None:
        nonlocal faults
        faults += 1
        if faults <= MOST_FAULTS:
            out.write(f"{where}: {fault}\n")

    def follow(where: str, entry: Entry) -> None:
        nonlocal file_before, overlaps
        file, repeated = where.rpartition(":")[0], verification.repeated
        overlaps = overlaps or file != file_before
        for fault in verification.faults_of(entry, may_repeat=overlaps):
            tell(where, fault)
        file_before, overlaps = file, verification.repeated > repeated

    for where, line in lines:
        try:
            entry = entry_in(line)
        except Unreadable as error:
            tell(where, str(error))
            continue
        if any_order:
            entries.append((where, entry))
        else:
            follow(where, entry)
    for where, entry in sorted(entries, key=lambda each: each[1].seq):
        follow(where, entry)
    for fault in verification.faults_at_the_end():
        tell("at the end", fault)
    return faults


def _report(verification: Verification, faults: int, out: TextIO) -> None:
    first, last, count = verification.first, verification.last, verification.count
    entries = "1 entry" if count == 1 else f"{count:,} entries"
    if verification.repeated:
        out.write(f"{verification.repeated:,} came more than once, the same each time.\n")
    if faults:
        out.write(f"{entries}, {faults} {'fault' if faults == 1 else 'faults'}.\n")
        return
    if first is None or last is None:
        out.write("There is no entry.\n")
        return
    out.write(f"{entries}, from {first.seq} to {last.seq}, all as they were written.\n")
    if first.seq != 1:
        out.write(f"What is before is not here. It is the right one if it ends with {first.seq - 1}:{first.previous}\n")
    out.write(f"To see later that none of them was cut off: --anchor {last.seq}:{last.hash}\n")


def _anchor(text: str) -> Anchor:
    seq, _, hash_ = text.partition(":")
    if not seq.isdecimal() or not _HASH.fullmatch(hash_):
        raise argparse.ArgumentTypeError("write it as NUMBER:HASH, with a hash of 64 hexadecimal digits")
    return Anchor(int(seq), hash_)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    about, _, further = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="verify_audit.py",
        description=about,
        epilog=further,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON Lines, one after the other; - : what comes in")
    parser.add_argument(
        "--anchor",
        action="append",
        default=[],
        type=_anchor,
        metavar="NUMBER:HASH",
        help="of an entry, kept elsewhere; may be given several times",
    )
    parser.add_argument("--whole", action="store_true", help="the first entry of the log has to be there")
    parser.add_argument(
        "--selection", action="store_true", help="entries may be left out, as where only some were searched for"
    )
    parser.add_argument(
        "--any-order", action="store_true", help="sort the entries first, as where a SIEM gives the newest first"
    )
    given = parser.parse_args(arguments)
    verification = Verification(given.anchor, selection=given.selection, whole=given.whole)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files have letters that not every terminal has
    try:
        faults = verify(_read(given.files), verification, sys.stdout, any_order=given.any_order)
    except OSError as error:
        sys.stderr.write(f"{error.filename or 'it was interrupted'}: {error.strerror}\n")
        return 2
    _report(verification, faults, sys.stdout)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
