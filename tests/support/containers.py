"""OLE containers, as Office before 2007, Outlook's mails, and documents with a password are. Made here: no library that
the tests have writes them ([MS-CFB], version 3)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_SECTOR, _SMALL_SECTOR, _SMALL = 512, 64, 4_096
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
Streams = Mapping[str, "bytes | Streams"]


def container(streams: Streams) -> bytes:
    """A container of streams (bytes) and folders of them (mappings), by name."""
    sectors = _Sectors()
    small = bytearray()
    small_table: list[int] = []
    entries: list[list[object]] = []  # name, kind, next, child, start, size

    def add(name: str, what: bytes | Streams, kind: int) -> int:
        index = len(entries)
        entry: list[object] = [name, kind, _FREE, _FREE, _END, 0]
        entries.append(entry)
        if isinstance(what, bytes):
            entry[5] = len(what)
            if len(what) >= _SMALL:
                entry[4] = sectors.add(what)
            elif what:
                first, count = len(small_table), -(-len(what) // _SMALL_SECTOR)
                small_table.extend([*range(first + 1, first + count), _END])
                small.extend(what.ljust(count * _SMALL_SECTOR, b"\0"))
                entry[4] = first
            return index
        before = _FREE
        for each in sorted(what, key=lambda name: (len(name), name.upper()), reverse=True):
            inner = what[each]
            at = add(each, inner, 2 if isinstance(inner, bytes) else 1)
            entries[at][2] = before  # its right sibling: a tree that is a list
            before = at
        entry[3] = before
        return index

    add("Root Entry", streams, 5)
    entries[0][4], entries[0][5] = (sectors.add(bytes(small)) if small else _END), len(small)
    folder = b"".join(_entry(*entry) for entry in entries)
    directory = sectors.add(folder.ljust(-(-len(folder) // _SECTOR) * _SECTOR, b"\0"))
    numbers = struct.pack(f"<{len(small_table)}I", *small_table)
    numbers = numbers.ljust(-(-len(numbers) // _SECTOR) * _SECTOR, b"\xff")
    small_at = sectors.add(numbers) if numbers else _END
    tables = 1
    while tables * 128 < len(sectors.next) + tables:
        tables += 1
    first_table = len(sectors.next)
    table = struct.pack(f"<{first_table + tables}I", *sectors.next, *[_TABLE] * tables)
    places = [*range(first_table, first_table + tables)]
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    head += struct.pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<9I", 0, tables, directory, 0, _SMALL, small_at, len(numbers) // _SECTOR, _END, 0)
    head += struct.pack("<109I", *places, *[_FREE] * (109 - tables))
    return head + bytes(sectors.content) + table.ljust(tables * _SECTOR, b"\xff")


class _Sectors:
    def __init__(self) -> None:
        self.content = bytearray()
        self.next: list[int] = []

    def add(self, what: bytes) -> int:
        """The number of the first of its sectors."""
        first, count = len(self.next), -(-len(what) // _SECTOR)
        self.next.extend([*range(first + 1, first + count), _END])
        self.content.extend(what.ljust(count * _SECTOR, b"\0"))
        return first


def _entry(name: object, kind: object, right: object, child: object, start: object, size: object) -> bytes:
    written = str(name).encode("utf-16-le")
    numbers = struct.pack("<HBB3I", len(written) + 2, kind, 1, _FREE, right, child)
    return written.ljust(64, b"\0") + numbers + bytes(36) + struct.pack("<2I4x", start, size)


def xls(rows: Sequence[Sequence[str | float]], *, has_password: bool = False) -> bytes:
    """A workbook of Excel before 2007 with one sheet, "Old"."""

    def record(kind: int, content: bytes = b"") -> bytes:
        return struct.pack("<2H", kind, len(content)) + content

    def begin(kind: int) -> bytes:
        return record(0x809, struct.pack("<4H2I", 0x600, kind, 0, 0, 0, 0))

    first = begin(5) + (record(0x2F, bytes(6)) if has_password else b"")
    named = b"\x03\x00Old"
    sheet = begin(0x10)
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            place = struct.pack("<3H", row, column, 0)
            if isinstance(cell, str):
                sheet += record(0x204, place + struct.pack("<HB", len(cell), 1) + cell.encode("utf-16-le"))
            else:
                sheet += record(0x203, place + struct.pack("<d", cell))
    begins = len(first) + len(record(0x85, bytes(6) + named)) + 4
    book = first + record(0x85, struct.pack("<I2x", begins) + named) + record(0x0A) + sheet + record(0x0A)
    return container({"Workbook": book.ljust(_SMALL, b"\0")})


def msg(subject: str, body: str, attached: Sequence[str] = ()) -> bytes:
    """A mail of Outlook's."""

    def text(words: str) -> bytes:
        return words.encode("utf-16-le")

    streams: dict[str, bytes | Streams] = {
        "__properties_version1.0": bytes(32),
        "__substg1.0_0037001F": text(subject),
        "__substg1.0_0C1F001F": text("bob@example.com"),
        "__substg1.0_0E04001F": text("ana@example.com"),
        "__substg1.0_1000001F": text(body),
    }
    for number, name in enumerate(attached):
        streams[f"__attach_version1.0_#{number:08X}"] = {"__substg1.0_3707001F": text(name)}
    return container(streams)


def with_password() -> bytes:
    """A document of Word with a password."""
    return container({"EncryptionInfo": bytes(64), "EncryptedPackage": bytes(9_000)})
