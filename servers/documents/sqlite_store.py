"""Documents in one SQLite file.

Through `apsw`, which brings an SQLite of its own: Python's may be built without full-text search, and mostly is without
extensions, as `sqlite-vec` is one. A connection for each piece of work, as in `servers.database`.
"""

from __future__ import annotations

import array
import json
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw

from servers.database import LOCK_TIMEOUT, begin_log
from servers.documents.embeddings import Vector
from servers.documents.store import (
    ENDING,
    MOST_DROPPED,
    MOST_LISTED,
    SHORTEST_BEGINNING,
    SHORTEST_STEM,
    UNUSED_SECONDS,
    Asker,
    FoundPassage,
    Kept,
    KeptFor,
    StoreError,
    check_deletion,
    check_space,
    new_document,
    no_page,
    not_there,
    words_of,
)

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
CREATE TABLE IF NOT EXISTS embeddings (
    passage INTEGER NOT NULL REFERENCES passages (number) ON DELETE CASCADE,
    space TEXT NOT NULL,   -- the model and the length of its vectors
    vector BLOB NOT NULL,  -- numbers of four bytes, as sqlite-vec reads them
    PRIMARY KEY (passage, space)
);
CREATE TABLE IF NOT EXISTS spaces (
    space TEXT PRIMARY KEY,
    used_at REAL NOT NULL  -- seconds since 1970
);
"""
_VISIBLE = """(
    kept_for = 'everybody'
    OR (kept_for = 'channel' AND :channel != '' AND channel = :channel)
    OR (kept_for = 'me' AND :channel = '' AND person = :person)
)"""
"""What somebody may see where they ask. Their own only where nobody reads along."""
_KEPT = "id, name, kept_for, person, characters, added_at"
_FOUND = "number, document_id, name, page, passages.section, passages.text"
_MEANT = "CASE section WHEN '' THEN text ELSE section || char(10) || text END"
"""What becomes a vector."""
_LEAST_RARITY = 1e-6
"""What FTS5 takes for the rarity of a word that is in half of all passages or more."""


class SqliteDocumentStore:
    """Fills `DocumentStore`. Words are found by BM25."""

    def __init__(self, path: Path) -> None:
        """Makes the file if it is missing. Raises `OSError` or `StoreError`."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)  # SQLite makes what it puts beside it as private
        self._path = str(path)
        with self._reading() as connection:
            begin_log(connection.execute, lambda error: isinstance(error, apsw.BusyError))
            connection.execute(SCHEMA)
            self._extension = _extension(connection)

    @property
    def has_vectors(self) -> bool:
        """Whether `sqlite-vec` is there for this machine."""
        return bool(self._extension)

    def add(self, asker: Asker, name: str, text: str, kept_for: KeptFor) -> Kept:
        """Keep a document. Raises `CallRefused`."""
        new = new_document(asker, name, text, kept_for)
        kept = new.kept
        with self._writing() as connection:
            whose = "kept_for = :for AND channel = :of AND (:for != 'me' OR person = :person)"
            given = {"for": kept_for, "person": asker.person, "of": new.channel}
            statement = f"SELECT count(*), coalesce(sum(characters), 0) FROM documents WHERE {whose}"  # noqa: S608
            row: Any = connection.execute(statement, given).fetchone()
            check_space(row[0], row[1], kept.characters)
            connection.execute(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
                (kept.id, name, kept_for, asker.person, new.channel, kept.characters, kept.added_at),
            )
            connection.executemany(
                "INSERT INTO passages (document_id, place, page, section, text) VALUES (?, ?, ?, ?, ?)",
                [(kept.id, place, each.page, each.section, each.text) for place, each in enumerate(new.passages)],
            )
        return kept

    def by_words(self, asker: Asker, query: str, most: int) -> list[FoundPassage]:
        """The passages whose words fit a query best, the best first: by BM25 of FTS5, which knows how rare a word is
        among all passages. That is taken out again, and how rare it is among those that may be seen put in."""
        wanted = [(nth, form) for nth, word in enumerate(words_of(query)) for form in _forms(word)]
        if not wanted:
            return []
        fitting = " UNION ALL ".join(
            f"""
            SELECT {place}, words.rowid, -bm25(words)
            FROM words JOIN passages ON number = words.rowid JOIN documents ON documents.id = document_id
            WHERE words MATCH :form{place} AND {_VISIBLE}
            """  # noqa: S608 - constants
            for place in range(len(wanted))
        )
        forms = ", ".join(f"({place}, {nth}, :rarity{place})" for place, (nth, _form) in enumerate(wanted))
        statement = f"""
            WITH fitting (form, number, score) AS MATERIALIZED ({fitting}),
            forms (form, word, rarity) AS (VALUES {forms}),
            seen (passages) AS (
                SELECT count(*) FROM documents JOIN passages ON document_id = documents.id WHERE {_VISIBLE}
            ),
            rare (form, word, factor) AS (
                SELECT form, word,
                    max({_LEAST_RARITY}, ln((passages - count(*) + 0.5) / (count(*) + 0.5))) / rarity
                FROM fitting JOIN forms USING (form) JOIN seen GROUP BY form
            ),
            worth (number, worth) AS (
                SELECT number, max(score * factor) FROM fitting JOIN rare USING (form) GROUP BY number, word
            ),
            best (number, worth) AS (
                SELECT number, sum(worth) AS worth FROM worth GROUP BY number ORDER BY worth DESC, number LIMIT :most
            )
            SELECT {_FOUND} FROM best JOIN passages USING (number) JOIN documents ON documents.id = document_id
            ORDER BY worth DESC, number
        """  # noqa: S608 - constants
        given: dict[str, Any] = {**asker.named, "most": most}
        with self._reading() as connection:
            connection.execute("BEGIN")  # the counts are those of the search
            count: int = connection.execute("SELECT count(*) FROM passages").get
            for place, (_nth, form) in enumerate(wanted):
                among: int = connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (form,)).get
                rarity = max(_LEAST_RARITY, math.log((count - among + 0.5) / (among + 0.5)))
                given |= {f"form{place}": form, f"rarity{place}": rarity}
            rows: list[Any] = connection.execute(statement, given).fetchall()
        return [FoundPassage(*row) for row in rows]

    def by_vector(self, asker: Asker, space: str, wanted: Vector, most: int) -> list[FoundPassage]:
        """The passages whose vectors are nearest in a space (of one model and one length), the nearest first: each one
        that may be seen is looked at."""
        sought = array.array("f", wanted).tobytes()
        statement = f"""
            SELECT {_FOUND} FROM embeddings JOIN passages ON number = passage
            JOIN documents ON documents.id = document_id
            WHERE space = :space AND length(vector) = :bytes AND {_VISIBLE}
            ORDER BY vec_distance_cosine(vector, :wanted), number LIMIT :most
        """  # noqa: S608 - constants
        given = {**asker.named, "space": space, "wanted": sought, "bytes": len(sought), "most": most}
        with self._reading() as connection:
            connection.enable_load_extension(True)
            connection.load_extension(self._extension)
            connection.enable_load_extension(False)
            rows: list[Any] = connection.execute(statement, given).fetchall()
        return [FoundPassage(*row) for row in rows]

    def with_vector(self, asker: Asker, space: str) -> tuple[int, int]:
        """How many of the passages that somebody may see have a vector in a space, and how many there are."""
        statement = f"""
            SELECT count(passage), count(*) FROM documents JOIN passages ON document_id = documents.id
            LEFT JOIN embeddings ON passage = number AND space = :space WHERE {_VISIBLE}
        """  # noqa: S608 - constants
        with self._reading() as connection:
            row: Any = connection.execute(statement, {**asker.named, "space": space}).fetchone()
        return row[0], row[1]

    def without_vector(self, space: str, most: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Number of passages of anybody that have no vector in a space, but these; and what is to become a vector."""
        statement = f"""
            SELECT number, {_MEANT} FROM passages LEFT JOIN embeddings ON passage = number AND space = :space
            WHERE passage IS NULL AND number NOT IN (SELECT value FROM json_each(:but)) ORDER BY number LIMIT :most
        """  # noqa: S608 - constants
        given = {"space": space, "most": most, "but": json.dumps(sorted(but))}
        with self._reading() as connection:
            rows: list[Any] = connection.execute(statement, given).fetchall()
        return [(number, text) for number, text in rows]

    def filling(self, space: str) -> AbstractContextManager[bool]:
        """Whether this process may make the vectors of a space within: always, since one server has the file."""
        return nullcontext(True)

    def keep_vectors(self, space: str, vectors: Sequence[tuple[int, str, Vector]]) -> None:
        """Keep the vector of each passage, by number, of which still this was to become one."""
        statement = f"""
            INSERT INTO embeddings SELECT number, :space, :vector FROM passages
            WHERE number = :number AND {_MEANT} = :text
            ON CONFLICT (passage, space) DO UPDATE SET vector = excluded.vector
        """  # noqa: S608 - constants
        given = [
            {"space": space, "number": number, "text": text, "vector": array.array("f", vector).tobytes()}
            for number, text, vector in vectors
        ]
        with self._writing() as connection:
            connection.executemany(statement, given)

    def use_space(self, space: str, now: float) -> None:
        """Note that the vectors in a space are used (`now`: seconds since 1970), and drop those of unused ones."""
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?)", (space, now))
        statement = """
            DELETE FROM embeddings WHERE rowid IN (
                SELECT embeddings.rowid FROM embeddings JOIN spaces USING (space) WHERE used_at < ? LIMIT ?
            )
        """
        dropped = MOST_DROPPED
        while dropped == MOST_DROPPED:
            with self._writing() as connection:
                connection.execute(statement, (now - UNUSED_SECONDS, MOST_DROPPED))
                dropped = connection.changes()

    def read(self, asker: Asker, document_id: UUID, start: int, most: int) -> tuple[list[FoundPassage], int]:
        """Passages of a document from one on, in order, and how many there are in all. Raises `CallRefused`."""
        with self._reading() as connection:
            kept = _find(connection, asker, document_id)
            count = connection.execute("SELECT count(*) FROM passages WHERE document_id = ?", (kept.id,)).get
            rows: list[Any] = connection.execute(
                "SELECT number, page, section, text FROM passages WHERE document_id = ? AND place >= ? ORDER BY place "
                "LIMIT ?",
                (kept.id, start, most),
            ).fetchall()
        found = [FoundPassage(number, kept.id, kept.name, page, section, text) for number, page, section, text in rows]
        return found, count

    def place_of_page(self, asker: Asker, document_id: UUID, page: int) -> int:
        """Place of the first passage of a page. Raises `CallRefused`."""
        statement = "SELECT min(place) FROM passages WHERE document_id = ? AND page = ?"
        with self._reading() as connection:
            kept = _find(connection, asker, document_id)
            place = connection.execute(statement, (kept.id, page)).get
        if place is None:
            raise no_page(page)
        return int(place)

    def listed(self, asker: Asker) -> tuple[list[Kept], int]:
        """The newest documents that somebody may see, and how many more there are."""
        with self._reading() as connection:
            rows: list[Any] = connection.execute(
                f"SELECT {_KEPT} FROM documents WHERE {_VISIBLE} ORDER BY added_at DESC, id",  # noqa: S608
                asker.named,
            ).fetchall()
        return [Kept(*row) for row in rows[:MOST_LISTED]], max(0, len(rows) - MOST_LISTED)

    def get(self, asker: Asker, document_id: UUID) -> Kept:
        """A document. Raises `CallRefused`."""
        with self._reading() as connection:
            return _find(connection, asker, document_id)

    def delete(self, asker: Asker, document_id: UUID) -> Kept:
        """Delete a document so that nothing of it is left in the file; what is kept for everybody, only whoever added
        it. Raises `CallRefused`."""
        with self._writing() as connection:
            kept = _find(connection, asker, document_id)
            check_deletion(asker, kept)
            # The passages first, and not by the foreign key: their words are taken out by a trigger.
            connection.execute("DELETE FROM passages WHERE document_id = ?", (kept.id,))
            connection.execute("DELETE FROM documents WHERE id = ?", (kept.id,))
            connection.execute(
                "INSERT INTO words (words) VALUES ('optimize')"
            )  # the index keeps deleted words till then
        with self._reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # as does the log; while others read, later
        return kept

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """A connection of one piece of work."""
        try:
            connection = apsw.Connection(self._path)
            try:
                connection.set_busy_timeout(int(LOCK_TIMEOUT * 1000))
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
                yield connection
            finally:
                connection.close()
        except apsw.Error as error:
            raise StoreError(str(error)) from error

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """One transaction that holds the write lock from its start: what it reads cannot change before it writes."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _forms(word: str) -> list[str]:
    """What is looked for: a word as it is, the endings of English words aside, which the index does without; and a long
    one without its last letters, as endings of German words are."""
    if len(word) < SHORTEST_BEGINNING:
        return [f'"{word}"']
    return [f'"{word}"*'] + ([f'"{word[:-ENDING]}"*'] if len(word) >= SHORTEST_STEM else [])


def _extension(connection: apsw.Connection) -> str:
    """Where the extension is that compares vectors; empty where there is none for this machine."""
    try:
        import sqlite_vec  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no packages for some machines

        path = str(sqlite_vec.loadable_path())
        connection.enable_load_extension(True)
        connection.load_extension(path)
        connection.enable_load_extension(False)
    except (ImportError, OSError, apsw.Error):
        return ""
    return path


def _find(connection: apsw.Connection, asker: Asker, document_id: UUID) -> Kept:
    given: dict[str, Any] = {**asker.named, "id": str(document_id)}
    row: Any = connection.execute(f"SELECT {_KEPT} FROM documents WHERE id = :id AND {_VISIBLE}", given).fetchone()  # noqa: S608
    if row is None:
        raise not_there()
    return Kept(*row)
