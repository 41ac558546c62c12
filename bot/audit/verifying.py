"""Whether the audit log is as it was written: the chain, and what else an entry must agree with. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bot.audit.entries import (
    ACTED,
    READ,
    ChainCheck,
    Fault,
    Link,
    in_utc,
    key_of,
    key_of_act,
    key_of_reading,
    read_entry,
)


class LogCheck:
    """Follows a log from its beginning.

    Args:
        anchor: number and hash of an entry that were kept elsewhere; `None`: none were.
    """

    def __init__(self, anchor: tuple[int, str] | None = None) -> None:
        self._anchor = anchor
        self._chain = ChainCheck()
        self._anchored = anchor is None
        self.count = 0
        self.last: Link | None = None

    def faults_of(self, dated_links: Iterable[tuple[Link, float]]) -> Iterator[Fault]:
        """What is wrong with the next entries, by number, each with the time under which it is found."""
        for link, at in dated_links:
            self.count, self.last = self.count + 1, link
            self._anchored = self._anchored or (link.seq, link.hash) == self._anchor
            yield from self._chain.faults_of(link)
            if not is_found_under(link, at):
                yield Fault(link.seq, f"entry {link.seq} is kept under another moment or another call than its own")

    def faults_at_the_end(self) -> Iterator[Fault]:
        """What is wrong when no more entries follow."""
        if not self._anchored and self._anchor is not None:
            seq = self._anchor[0]
            yield Fault(seq, f"entry {seq} is not the one whose hash was kept: it is missing or was changed")


def unwritten_fault(key: str) -> Fault:
    """What is wrong where the ledger knows the end of an attempt, `{call_id}:{number}:{status}`, and the log does
    not."""
    return Fault(0, f"the entry of call {key} is missing: the ledger knows how it ended")


def is_found_under(link: Link, at: float) -> bool:
    """Whether a moment and a key are those of the entry; of one that cannot be read, the hash says that already."""
    entry = read_entry(link.entry)
    if entry is None:
        return False
    try:
        settled, then = entry["settled"], entry["at"]
        if entry["status"] == READ:
            key = key_of_reading(entry["thread"], settled, then)
        elif entry["status"] == ACTED:
            key = key_of_act(settled, then)
        else:
            key = key_of(entry["call"], entry["attempt"], entry["status"], settled, then)
        return bool(in_utc(at) == then and link.key == key)
    except (KeyError, TypeError, ValueError, OverflowError):
        return False
