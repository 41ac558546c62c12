"""The chain: each entry's hash covers its number, its text and the hash before it, so that none can be changed, taken
out or moved without showing. Pure.

What the chain alone cannot show is that its newest entries were cut off: whoever wants that keeps the newest number
and hash elsewhere (`python app.py audit verify --anchor`). The ledger shows it for calls that were made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

BEGINNING = "0" * 64
"""What stands for the hash before the first entry."""

FURTHEST = 10_000
"""Places that a moved entry is looked for in, on either side of where it stands."""


@dataclass(frozen=True, slots=True)
class Link:
    """One entry as it is recorded."""

    seq: int
    """Counts from 1 without gaps."""
    key: str
    entry: str
    """Canonical JSON."""
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with the chain."""

    seq: int
    what: str
    """A sentence about it."""


def hash_of(previous: str, seq: int, entry: str) -> str:
    """SHA-256, hexadecimal, of the hash before, the number and the text."""
    return hashlib.sha256(f"{previous}\n{seq}\n{entry}".encode("utf-8", "surrogatepass")).hexdigest()


def link(before: Link | None, key: str, entry: str) -> Link:
    """The next link after `before`; `None`: the first."""
    previous, seq = (before.hash, before.seq + 1) if before else (BEGINNING, 1)
    return Link(seq, key, entry, previous, hash_of(previous, seq, entry))


def faults(links: Iterable[Link]) -> Iterator[Fault]:
    """What is wrong, in the order in which it stands; `links` as recorded, by number. Each fault is told once: after
    it the chain is followed on from what is recorded."""
    expected, previous = 1, BEGINNING
    for each in links:
        if each.seq != expected:
            yield Fault(expected, _missing(expected, each.seq))
        if hash_of(each.previous, each.seq, each.entry) != each.hash:
            yield Fault(each.seq, _changed_or_moved(each))
        elif each.seq == expected and each.previous != previous:
            yield Fault(
                each.seq,
                f"entry {each.seq} does not follow the one before it: that one was changed, or the log was cut and "
                "continued here",
            )
        expected, previous = each.seq + 1, each.hash


def _missing(first: int, found: int) -> str:
    if found < first:
        return f"entry {found} stands a second time"
    return f"entry {first} is missing" if found == first + 1 else f"entries {first} to {found - 1} are missing"


def _changed_or_moved(each: Link) -> str:
    own = _own_number(each)
    if own is not None:
        return f"entry {each.seq} is out of order: it was entry {own}"
    return f"entry {each.seq} was changed"


def _own_number(each: Link) -> int | None:
    """The number under which an entry was written, if it is only its number that was changed."""
    around = range(max(1, each.seq - FURTHEST), each.seq + FURTHEST)
    return next((seq for seq in around if hash_of(each.previous, seq, each.entry) == each.hash), None)
