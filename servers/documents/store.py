"""Documents and their passages in one SQLite file, and which of them somebody may see."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID, uuid4

from servers import database
from servers.documents.passages import passages_of
from servers.plain_server import CallRefused

KeptFor = Literal["me", "channel", "everybody"]
MOST_DOCUMENTS = 2_000
"""That one person, one channel, or everybody may have. Our own choice."""
MOST_LISTED = 200
MOST_WORDS = 32
"""Words of a query that are looked for."""
SHORTEST_BEGINNING = 4
"""Letters of a word from which on words that begin with it are found, too: plurals, and parts of German words."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    kept_for TEXT NOT NULL,  -- me, channel or everybody
    person TEXT NOT NULL,    -- who added it
    channel TEXT NOT NULL,   -- whose it is; empty unless it is kept for a channel
    characters INTEGER NOT NULL,
    added_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS documents_by_person ON documents (person) WHERE kept_for = 'me';
CREATE INDEX IF NOT EXISTS documents_by_channel ON documents (channel) WHERE kept_for = 'channel';
CREATE TABLE IF NOT EXISTS passages (
    number INTEGER PRIMARY KEY,
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,  -- among those of its document, from 0
    page INTEGER,
    section TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS passages_by_document ON passages (document_id, place);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    text, section, content = 'passages', content_rowid = 'number', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER IF NOT EXISTS passage_added AFTER INSERT ON passages BEGIN
    INSERT INTO words (rowid, text, section) VALUES (new.number, new.text, new.section);
END;
CREATE TRIGGER IF NOT EXISTS passage_deleted AFTER DELETE ON passages BEGIN
    INSERT INTO words (words, rowid, text, section) VALUES ('delete', old.number, old.text, old.section);
END;
"""
_VISIBLE = """(
    kept_for = 'everybody'
    OR (kept_for = 'channel' AND :channel != '' AND channel = :channel)
    OR (kept_for = 'me' AND :channel = '' AND person = :person)
)"""
"""What somebody may see where they ask. Their own only where nobody reads along."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and where."""

    person: str
    channel: str
    """Empty: nobody reads along."""

    @property
    def named(self) -> dict[str, str]:
        """As parameters of a statement."""
        return {"person": self.person, "channel": self.channel}


@dataclass(frozen=True, slots=True)
class Kept:
    """A document, without its text."""

    id: str
    name: str
    kept_for: KeptFor
    person: str
    characters: int
    added_at: str


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage of a document."""

    document_id: str
    name: str
    page: int | None
    section: str
    text: str


class DocumentStore:
    """All methods block; each is one transaction."""

    def __init__(self, path: Path) -> None:
        """Makes the file if it is missing. Raises `OSError` or `sqlite3.Error`."""
        database.create(path, SCHEMA)
        self._path = path

    def add(self, asker: Asker, name: str, text: str, kept_for: KeptFor) -> Kept:
        """Keep a document. Raises `CallRefused`."""
        passages = passages_of(text)
        if not passages:
            raise CallRefused("There is no text in it.")
        if kept_for == "channel" and not asker.channel:
            raise CallRefused("There is no channel here. Keep it for yourself or for everybody.")
        kept = Kept(str(uuid4()), name, kept_for, asker.person, len(text), _now())
        channel = asker.channel if kept_for == "channel" else ""
        with database.writing(self._path) as connection:
            whose = "kept_for = :for AND channel = :of AND (:for != 'me' OR person = :person)"
            given = {"for": kept_for, "person": asker.person, "of": channel}
            (count,) = connection.execute(f"SELECT count(*) FROM documents WHERE {whose}", given).fetchone()  # noqa: S608
            if count >= MOST_DOCUMENTS:
                raise CallRefused(f"There are {MOST_DOCUMENTS:,} documents already. Delete some first.")
            connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
                (kept.id, name, kept_for, asker.person, channel, kept.characters, kept.added_at),
            )
            connection.executemany(
                "INSERT INTO passages (document_id, place, page, section, text) VALUES (?, ?, ?, ?, ?)",
                [(kept.id, place, each.page, each.section, each.text) for place, each in enumerate(passages)],
            )
        return kept

    def search(self, asker: Asker, query: str, most: int) -> list[FoundPassage]:
        """The passages that fit a query best, the best first (BM25)."""
        words = list(dict.fromkeys(_WORD.findall(query)))[:MOST_WORDS]
        if not words:
            return []
        wanted = " OR ".join(f'"{word}"*' if len(word) >= SHORTEST_BEGINNING else f'"{word}"' for word in words)
        statement = f"""
            SELECT document_id, name, page, passages.section AS section, passages.text AS text
            FROM words JOIN passages ON passages.number = words.rowid JOIN documents ON documents.id = document_id
            WHERE words MATCH :wanted AND {_VISIBLE} ORDER BY bm25(words), passages.number LIMIT :most
        """  # noqa: S608 - constants
        with database.reading(self._path) as connection:
            rows = connection.execute(statement, {**asker.named, "wanted": wanted, "most": most}).fetchall()
        return [FoundPassage(**dict(row)) for row in rows]

    def read(self, asker: Asker, document_id: UUID, start: int, most: int) -> tuple[list[FoundPassage], int]:
        """Passages of a document from one on, in order, and how many there are in all. Raises `CallRefused`."""
        with database.reading(self._path) as connection:
            kept = _find(connection, asker, document_id)
            (count,) = connection.execute("SELECT count(*) FROM passages WHERE document_id = ?", (kept.id,)).fetchone()
            rows = connection.execute(
                "SELECT page, section, text FROM passages WHERE document_id = ? AND place >= ? ORDER BY place LIMIT ?",
                (kept.id, start, most),
            ).fetchall()
        return [FoundPassage(kept.id, kept.name, **dict(row)) for row in rows], count

    def place_of_page(self, asker: Asker, document_id: UUID, page: int) -> int:
        """Place of the first passage of a page. Raises `CallRefused`."""
        with database.reading(self._path) as connection:
            kept = _find(connection, asker, document_id)
            row = connection.execute(
                "SELECT min(place) AS place FROM passages WHERE document_id = ? AND page = ?", (kept.id, page)
            ).fetchone()
        if row["place"] is None:
            raise CallRefused(f"There is no page {page} in it.")
        return int(row["place"])

    def listed(self, asker: Asker) -> tuple[list[Kept], int]:
        """The newest documents that somebody may see, and how many more there are."""
        with database.reading(self._path) as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM documents WHERE {_VISIBLE} ORDER BY added_at DESC, id",  # noqa: S608
                asker.named,
            ).fetchall()
        return [Kept(**dict(row)) for row in rows[:MOST_LISTED]], max(0, len(rows) - MOST_LISTED)

    def get(self, asker: Asker, document_id: UUID) -> Kept:
        """A document. Raises `CallRefused`."""
        with database.reading(self._path) as connection:
            return _find(connection, asker, document_id)

    def delete(self, asker: Asker, document_id: UUID) -> Kept:
        """Delete a document for good; what is kept for everybody, only whoever added it. Raises `CallRefused`."""
        with database.writing(self._path) as connection:
            kept = _find(connection, asker, document_id)
            if kept.kept_for == "everybody" and kept.person != asker.person:
                raise CallRefused("Only whoever added it for everybody can delete it.")
            # The passages first, and not by the foreign key: their words are taken out by a trigger.
            connection.execute("DELETE FROM passages WHERE document_id = ?", (kept.id,))
            connection.execute("DELETE FROM documents WHERE id = ?", (kept.id,))
        return kept


_COLUMNS = "id, name, kept_for, person, characters, added_at"


def _find(connection: sqlite3.Connection, asker: Asker, document_id: UUID) -> Kept:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM documents WHERE id = :id AND {_VISIBLE}",  # noqa: S608 - constants
        {**asker.named, "id": str(document_id)},
    ).fetchone()
    if row is None:
        raise CallRefused("There is no such document here. It may have been deleted.")
    return Kept(**dict(row))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
