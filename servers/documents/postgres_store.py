"""Documents in PostgreSQL, for several replicas of the server: in a schema of their own, `documents`.

Words are found by its full-text search, which is no BM25: it does not know how rare a word is, so each word's rank is
weighed here with that, among the passages that may be seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg_pool import ConnectionPool

from servers.documents.embeddings import Vector
from servers.documents.store import (
    MOST_LISTED,
    SHORTEST_BEGINNING,
    Asker,
    FoundPassage,
    Kept,
    KeptFor,
    StoreError,
    check_count,
    check_deletion,
    folded,
    new_document,
    no_page,
    not_there,
    words_of,
)

CONNECTIONS = 8
SHORTEST_STEM = 7
"""Letters of a word from which on its last two do not count: endings, of German words above all."""
CONNECTING_SECONDS = 10.0
_STATEMENT_MILLISECONDS = 30_000
_MAKING = 7_215_048_119_325_600
"""Of the lock under which the tables are made: of several replicas that start at once one makes them."""
SCHEMA = """
CREATE SCHEMA IF NOT EXISTS documents;
CREATE TABLE IF NOT EXISTS documents.documents (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    kept_for text NOT NULL,
    person text NOT NULL,
    channel text NOT NULL,
    characters integer NOT NULL,
    added_at text NOT NULL
);
CREATE INDEX IF NOT EXISTS documents_by_person ON documents.documents (person) WHERE kept_for = 'me';
CREATE INDEX IF NOT EXISTS documents_by_channel ON documents.documents (channel) WHERE kept_for = 'channel';
CREATE TABLE IF NOT EXISTS documents.passages (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES documents.documents (id) ON DELETE CASCADE,
    place integer NOT NULL,
    page integer,
    section text NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL
);
CREATE INDEX IF NOT EXISTS passages_by_document ON documents.passages (document_id, place);
CREATE INDEX IF NOT EXISTS passages_by_words ON documents.passages USING gin (words);
"""
VECTORS = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS documents.vectors (
    passage bigint PRIMARY KEY REFERENCES documents.passages (number) ON DELETE CASCADE,
    model text NOT NULL,
    vector vector NOT NULL
);
"""
_VISIBLE = """(
    kept_for = 'everybody'
    OR (kept_for = 'channel' AND %(channel)s != '' AND channel = %(channel)s)
    OR (kept_for = 'me' AND %(channel)s = '' AND person = %(person)s)
)"""
"""What somebody may see where they ask. Their own only where nobody reads along."""
_KEPT = "id::text, name, kept_for, person, characters, added_at"
_FOUND = "number, document_id::text, name, page, section, text"
_BY_WORDS = f"""
WITH seen AS (
    SELECT number, document_id, name, page, section, text, words
    FROM documents.passages JOIN documents.documents ON id = document_id WHERE {_VISIBLE}
), wanted AS (
    SELECT to_tsquery('simple', word) AS word FROM unnest(%(wanted)s::text[]) AS word
), fitting AS (
    SELECT {_FOUND}, word, ts_rank_cd(words, word, 1) AS rank FROM seen JOIN wanted ON words @@ word
), rare AS (
    SELECT word, ln(1 + (SELECT count(*) FROM seen)::float / count(*)) AS rarity FROM fitting GROUP BY word
)
SELECT number, document_id, name, page, section, text FROM fitting JOIN rare USING (word)
GROUP BY number, document_id, name, page, section, text ORDER BY sum(rank * rarity) DESC, number LIMIT %(most)s
"""  # noqa: S608 - constants


class PostgresDocumentStore:
    """Fills `DocumentStore`."""

    def __init__(self, url: str) -> None:
        """Makes the tables if they are missing. Raises `StoreError`."""
        options = f"-c statement_timeout={_STATEMENT_MILLISECONDS}"
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=CONNECTING_SECONDS,
            kwargs={"options": options, "connect_timeout": int(CONNECTING_SECONDS)},
            check=ConnectionPool.check_connection,
            open=False,
        )
        try:
            # Once by itself: the pool would only say that it has waited in vain, and not for what.
            with psycopg.connect(url, connect_timeout=int(CONNECTING_SECONDS)) as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                connection.execute(SCHEMA)
            self.has_vectors = _makes_vectors(url)
        except psycopg.Error as error:
            raise StoreError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        self._pool.open()

    def close(self) -> None:
        """End its connections."""
        self._pool.close()

    def add(self, asker: Asker, name: str, text: str, kept_for: KeptFor) -> Kept:
        """Keep a document. Raises `CallRefused`."""
        new = new_document(asker, name, _storable(text), kept_for)
        kept = new.kept
        whose = "kept_for = %(for)s AND channel = %(of)s AND (%(for)s != 'me' OR person = %(person)s)"
        given = {"for": kept_for, "person": asker.person, "of": new.channel}
        with self._transaction() as connection:
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%(for)s || ' ' || %(of)s || ' ' || %(person)s, 0))",
                given,
            )
            count = connection.execute(f"SELECT count(*) FROM documents.documents WHERE {whose}", given).fetchone()  # noqa: S608
            check_count(count[0] if count else 0)
            connection.execute(
                "INSERT INTO documents.documents VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (kept.id, name, kept_for, asker.person, new.channel, kept.characters, kept.added_at),
            )
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO documents.passages (document_id, place, page, section, text, words) "
                    "VALUES (%s, %s, %s, %s, %s, to_tsvector('simple', %s))",
                    [
                        (kept.id, place, each.page, each.section, each.text, folded(f"{each.section}\n{each.text}"))
                        for place, each in enumerate(new.passages)
                    ],
                )
        return kept

    def by_words(self, asker: Asker, query: str, most: int) -> list[FoundPassage]:
        """The passages whose words fit a query best, the best first."""
        wanted = list(map(_beginning, words_of(folded(query))))
        if not wanted:
            return []
        return self._found(_BY_WORDS, {**asker.named, "wanted": wanted, "most": most})

    def by_vector(self, asker: Asker, model: str, wanted: Vector, most: int) -> list[FoundPassage]:
        """The passages whose vectors of this model are nearest, the nearest first: each one that may be seen is looked
        at."""
        statement = f"""
            SELECT {_FOUND} FROM documents.vectors JOIN documents.passages ON number = passage
            JOIN documents.documents ON id = document_id
            WHERE model = %(model)s AND vector_dims(vector) = %(length)s AND {_VISIBLE}
            ORDER BY vector <=> %(wanted)s::vector, number LIMIT %(most)s
        """  # noqa: S608 - constants
        given = {**asker.named, "model": model, "length": len(wanted), "wanted": _written(wanted), "most": most}
        return self._found(statement, given)

    def without_vector(self, model: str, most: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Number and text of passages of anybody that have no vector of this model, but these."""
        statement = """
            SELECT number, text FROM documents.passages
            LEFT JOIN documents.vectors ON passage = number AND model = %(model)s
            WHERE passage IS NULL AND number != ALL (%(but)s) ORDER BY number LIMIT %(most)s
        """
        with self._transaction() as connection:
            rows = connection.execute(statement, {"model": model, "most": most, "but": list(but)}).fetchall()
        return [(int(number), str(text)) for number, text in rows]

    def keep_vectors(self, model: str, vectors: Sequence[tuple[int, str, Vector]]) -> None:
        """Keep the vector of each passage, by number, that still has this text."""
        statement = """
            INSERT INTO documents.vectors SELECT number, %(model)s, %(vector)s::vector FROM documents.passages
            WHERE number = %(number)s AND text = %(text)s
            ON CONFLICT (passage) DO UPDATE SET model = excluded.model, vector = excluded.vector
        """
        given = [
            {"model": model, "number": number, "text": text, "vector": _written(vector)}
            for number, text, vector in vectors
        ]
        with self._transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(statement, given)

    def read(self, asker: Asker, document_id: UUID, start: int, most: int) -> tuple[list[FoundPassage], int]:
        """Passages of a document from one on, in order, and how many there are in all. Raises `CallRefused`."""
        given = {"id": document_id, "start": start, "most": most}
        with self._transaction() as connection:
            kept = _find(connection, asker, document_id)
            counted = connection.execute(
                "SELECT count(*) FROM documents.passages WHERE document_id = %(id)s", given
            ).fetchone()
            rows = connection.execute(
                "SELECT number, page, section, text FROM documents.passages "
                "WHERE document_id = %(id)s AND place >= %(start)s ORDER BY place LIMIT %(most)s",
                given,
            ).fetchall()
        found = [FoundPassage(number, kept.id, kept.name, page, section, text) for number, page, section, text in rows]
        return found, counted[0] if counted else 0

    def place_of_page(self, asker: Asker, document_id: UUID, page: int) -> int:
        """Place of the first passage of a page. Raises `CallRefused`."""
        statement = "SELECT min(place) FROM documents.passages WHERE document_id = %s AND page = %s"
        with self._transaction() as connection:
            _find(connection, asker, document_id)
            row = connection.execute(statement, (document_id, page)).fetchone()
        if row is None or row[0] is None:
            raise no_page(page)
        return int(row[0])

    def listed(self, asker: Asker) -> tuple[list[Kept], int]:
        """The newest documents that somebody may see, and how many more there are."""
        statement = f"SELECT {_KEPT} FROM documents.documents WHERE {_VISIBLE} ORDER BY added_at DESC, id"  # noqa: S608
        with self._transaction() as connection:
            rows = connection.execute(statement, asker.named).fetchall()
        return [Kept(*row) for row in rows[:MOST_LISTED]], max(0, len(rows) - MOST_LISTED)

    def get(self, asker: Asker, document_id: UUID) -> Kept:
        """A document. Raises `CallRefused`."""
        with self._transaction() as connection:
            return _find(connection, asker, document_id)

    def delete(self, asker: Asker, document_id: UUID) -> Kept:
        """Delete a document for good; what is kept for everybody, only whoever added it. Raises `CallRefused`."""
        with self._transaction() as connection:
            kept = _find(connection, asker, document_id)
            check_deletion(asker, kept)
            connection.execute("DELETE FROM documents.documents WHERE id = %s", (document_id,))
        return kept

    def _found(self, statement: str, given: dict[str, Any]) -> list[FoundPassage]:
        with self._transaction() as connection:
            rows = connection.execute(statement, given).fetchall()
        return [FoundPassage(*row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        try:
            with self._pool.connection() as connection:
                yield connection
        except psycopg.Error as error:
            raise StoreError(type(error).__name__) from error


def _makes_vectors(url: str) -> bool:
    """Whether `pgvector` is there, or can be put there."""
    try:
        with psycopg.connect(url, connect_timeout=int(CONNECTING_SECONDS)) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            connection.execute(VECTORS)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile, psycopg.errors.InsufficientPrivilege):
        return False
    return True


def _find(connection: psycopg.Connection[Any], asker: Asker, document_id: UUID) -> Kept:
    statement = f"SELECT {_KEPT} FROM documents.documents WHERE id = %(id)s AND {_VISIBLE}"  # noqa: S608 - constants
    row = connection.execute(statement, {**asker.named, "id": document_id}).fetchone()
    if row is None:
        raise not_there()
    return Kept(*row)


def _beginning(word: str) -> str:
    """What is looked for: without endings, which "simple" leaves on."""
    if len(word) < SHORTEST_BEGINNING:
        return word
    return f"{word[:-2] if len(word) >= SHORTEST_STEM else word}:*"


def _storable(text: str) -> str:
    """PostgreSQL keeps no NUL."""
    return text.replace("\0", " ")


def _written(vector: Vector) -> str:
    return "[" + ",".join(map(repr, vector)) + "]"
