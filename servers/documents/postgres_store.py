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
    folded,
    new_document,
    no_page,
    not_there,
    words_of,
)

CONNECTIONS = 8
CONNECTING_SECONDS = 10.0
_STATEMENT_MILLISECONDS = 15_000
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
CREATE TABLE IF NOT EXISTS documents.embeddings (
    passage bigint NOT NULL REFERENCES documents.passages (number) ON DELETE CASCADE,
    space text NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (passage, space)
);
CREATE TABLE IF NOT EXISTS documents.spaces (
    space text PRIMARY KEY,
    used_at double precision NOT NULL
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
_MEANT = "CASE section WHEN '' THEN text ELSE section || chr(10) || text END"
"""What becomes a vector."""
_LEAST_RARITY = 1e-6
"""Of a word that is in half of the passages or more, as FTS5 of SQLite takes it."""
MOST_RANKED_WORDS = 12
"""Of a query: the rarest. The others say little, and ranking costs most where a word is in many passages."""
MOST_RANKED = 2_000
"""Passages whose rank is looked for: those with the most and rarest words."""
_BY_WORDS = f"""
WITH seen AS MATERIALIZED (
    SELECT id, name FROM documents.documents WHERE {_VISIBLE}
), wanted AS MATERIALIZED (
    SELECT nth, to_tsquery('simple', word) AS word
    FROM unnest(%(wanted)s::text[]) WITH ORDINALITY AS given (word, nth)
), fitting AS MATERIALIZED (
    SELECT number, nth FROM wanted JOIN documents.passages ON words @@ word
    WHERE document_id IN (SELECT id FROM seen)
), rare AS MATERIALIZED (
    SELECT nth, greatest({_LEAST_RARITY}, ln((passages - count(*) + 0.5) / (count(*) + 0.5))) AS rarity
    FROM fitting CROSS JOIN (
        SELECT count(*) AS passages FROM documents.passages WHERE document_id IN (SELECT id FROM seen)
    ) AS among GROUP BY nth, passages ORDER BY count(*), nth LIMIT {MOST_RANKED_WORDS}
), ranked AS MATERIALIZED (
    SELECT number FROM fitting JOIN rare USING (nth) GROUP BY number ORDER BY sum(rarity) DESC, number
    LIMIT {MOST_RANKED}
), best AS MATERIALIZED (
    SELECT number, sum(ts_rank_cd(words, word, 1) * rarity) AS worth
    FROM ranked JOIN documents.passages USING (number) JOIN wanted ON words @@ word JOIN rare USING (nth)
    GROUP BY number ORDER BY worth DESC, number LIMIT %(most)s
)
SELECT {_FOUND} FROM best JOIN documents.passages USING (number) JOIN seen ON id = document_id
ORDER BY worth DESC, number
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
        new = new_document(asker, _storable(name), _storable(text), kept_for)
        kept = new.kept
        whose = "kept_for = %(for)s AND channel = %(of)s AND (%(for)s != 'me' OR person = %(person)s)"
        given = {"for": kept_for, "person": asker.person, "of": new.channel}
        with self._transaction() as connection:
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%(for)s || ' ' || %(of)s || ' ' || %(person)s, 0))",
                given,
            )
            statement = f"SELECT count(*), coalesce(sum(characters), 0) FROM documents.documents WHERE {whose}"  # noqa: S608
            row = connection.execute(statement, given).fetchone() or (0, 0)
            check_space(row[0], row[1], kept.characters)
            connection.execute(
                "INSERT INTO documents.documents VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (kept.id, kept.name, kept_for, asker.person, new.channel, kept.characters, kept.added_at),
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

    def by_vector(self, asker: Asker, space: str, wanted: Vector, most: int) -> list[FoundPassage]:
        """The passages whose vectors are nearest in a space (of one model and one length), the nearest first: each one
        that may be seen is looked at."""
        statement = f"""
            SELECT {_FOUND} FROM documents.embeddings JOIN documents.passages ON number = passage
            JOIN documents.documents ON id = document_id
            WHERE space = %(space)s AND vector_dims(vector) = %(length)s AND {_VISIBLE}
            ORDER BY vector <=> %(wanted)s::vector, number LIMIT %(most)s
        """  # noqa: S608 - constants
        given = {**asker.named, "space": space, "length": len(wanted), "wanted": _written(wanted), "most": most}
        return self._found(statement, given)

    def with_vector(self, asker: Asker, space: str) -> tuple[int, int]:
        """How many of the passages that somebody may see have a vector in a space, and how many there are."""
        statement = f"""
            SELECT count(passage), count(*) FROM documents.documents JOIN documents.passages ON document_id = id
            LEFT JOIN documents.embeddings ON passage = number AND space = %(space)s WHERE {_VISIBLE}
        """  # noqa: S608 - constants
        with self._transaction() as connection:
            row = connection.execute(statement, {**asker.named, "space": space}).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def without_vector(self, space: str, most: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Number of passages of anybody that have no vector in a space, but these; and what is to become a vector."""
        statement = f"""
            SELECT number, {_MEANT} FROM documents.passages
            LEFT JOIN documents.embeddings ON passage = number AND space = %(space)s
            WHERE passage IS NULL AND number != ALL (%(but)s) ORDER BY number LIMIT %(most)s
        """  # noqa: S608 - constants
        with self._transaction() as connection:
            rows = connection.execute(statement, {"space": space, "most": most, "but": list(but)}).fetchall()
        return [(int(number), str(text)) for number, text in rows]

    @contextmanager
    def filling(self, space: str) -> Iterator[bool]:
        """Whether this process may make the vectors of a space within: of several at once only one. Its lock ends with
        its connection."""
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT pg_try_advisory_xact_lock(hashtextextended('documents ' || %s, 0))", (space,)
            ).fetchone()
            yield bool(row and row[0])

    def keep_vectors(self, space: str, vectors: Sequence[tuple[int, str, Vector]]) -> None:
        """Keep the vector of each passage, by number, of which still this was to become one."""
        statement = f"""
            INSERT INTO documents.embeddings SELECT number, %(space)s, %(vector)s::vector FROM documents.passages
            WHERE number = %(number)s AND {_MEANT} = %(text)s
            ON CONFLICT (passage, space) DO UPDATE SET vector = excluded.vector
        """  # noqa: S608 - constants
        given = [
            {"space": space, "number": number, "text": text, "vector": _written(vector)}
            for number, text, vector in vectors
        ]
        with self._transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(statement, given)

    def use_space(self, space: str, now: float) -> None:
        """Note that the vectors in a space are used (`now`: seconds since 1970), and drop those of unused ones."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO documents.spaces VALUES (%s, %s) "
                "ON CONFLICT (space) DO UPDATE SET used_at = excluded.used_at",
                (space, now),
            )
        statement = """
            DELETE FROM documents.embeddings WHERE (passage, space) IN (
                SELECT passage, space FROM documents.embeddings JOIN documents.spaces USING (space)
                WHERE used_at < %s LIMIT %s
            )
        """
        dropped = MOST_DROPPED
        while dropped == MOST_DROPPED:
            with self._transaction() as connection:
                dropped = connection.execute(statement, (now - UNUSED_SECONDS, MOST_DROPPED)).rowcount

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
    return f"{word[:-ENDING] if len(word) >= SHORTEST_STEM else word}:*"


def _storable(text: str) -> str:
    """PostgreSQL keeps no NUL."""
    return text.replace("\0", " ")


def _written(vector: Vector) -> str:
    return "[" + ",".join(map(repr, vector)) + "]"
