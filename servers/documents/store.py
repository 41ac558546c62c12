"""What a store of documents keeps and finds, whichever database it is in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol
from uuid import UUID, uuid4

from servers.documents.embeddings import Vector
from servers.documents.passages import Passage, passages_of
from servers.plain_server import CallRefused

KeptFor = Literal["me", "channel", "everybody"]
MOST_DOCUMENTS = 2_000
"""That one person, one channel, or everybody may have. Our own choice."""
MOST_CHARACTERS = 50_000_000
"""Of all documents of one of these. Our own choice: so many are still searched within seconds."""
MOST_LISTED = 200
MOST_WORDS = 32
"""Words of a query that are looked for."""
LONGEST_WORD = 100
"""Characters of one."""
SHORTEST_BEGINNING = 4
"""Letters of a word from which on words that begin with it are found, too: plurals, and parts of German words."""
SHORTEST_STEM, ENDING = 7, 2
"""Letters of a word from which on so many of its last do not count: endings, of German words above all."""
UNUSED_SECONDS = 24 * 3_600.0
"""After which vectors that no process has used are dropped. Our own choice: longer than a change of replicas takes."""
MOST_DROPPED = 1_000
"""Vectors that are dropped in one transaction."""
_WORD = re.compile(r"\w+")


class StoreError(OSError):
    """The database cannot be used. Its text says why, for operators."""


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

    number: int
    document_id: str
    name: str
    page: int | None
    section: str
    text: str


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that is to be kept."""

    kept: Kept
    channel: str
    """Whose it is; empty unless it is kept for a channel."""
    passages: Sequence[Passage]


class DocumentStore(Protocol):
    """All methods block; each is one transaction. They raise `StoreError` where the database cannot be used now."""

    @property
    def has_vectors(self) -> bool:
        """Whether the database can compare vectors."""
        ...

    def add(self, asker: Asker, name: str, text: str, kept_for: KeptFor) -> Kept:
        """Keep a document. Raises `CallRefused`."""
        ...

    def by_words(self, asker: Asker, query: str, most: int) -> list[FoundPassage]:
        """The passages whose words fit a query best, the best first. What the asker may not see has no part in it, nor
        in how rare a word is: who is told that could find out what words others keep."""
        ...

    def by_vector(self, asker: Asker, space: str, wanted: Vector, most: int) -> list[FoundPassage]:
        """The passages whose vectors are nearest in a space (of one model and one length), the nearest first."""
        ...

    def with_vector(self, asker: Asker, space: str) -> tuple[int, int]:
        """How many of the passages that somebody may see have a vector in a space, and how many there are."""
        ...

    def without_vector(self, space: str, most: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Number of passages of anybody that have no vector in a space, but these; and what is to become a vector:
        their headings and text."""
        ...

    def filling(self, space: str) -> AbstractContextManager[bool]:
        """Whether this process may make the vectors of a space within: of several at once only one."""
        ...

    def keep_vectors(self, space: str, vectors: Sequence[tuple[int, str, Vector]]) -> None:
        """Keep the vector of each passage, by number, of which still this was to become one."""
        ...

    def use_space(self, space: str, now: float) -> None:
        """Note that the vectors in a space are used (`now`: seconds since 1970), and drop those in spaces that have not
        been for `UNUSED_SECONDS`: as long, replicas with another model can come and go."""
        ...

    def read(self, asker: Asker, document_id: UUID, start: int, most: int) -> tuple[list[FoundPassage], int]:
        """Passages of a document from one on, in order, and how many there are in all. Raises `CallRefused`."""
        ...

    def place_of_page(self, asker: Asker, document_id: UUID, page: int) -> int:
        """Place of the first passage of a page. Raises `CallRefused`."""
        ...

    def listed(self, asker: Asker) -> tuple[list[Kept], int]:
        """The newest documents that somebody may see, and how many more there are."""
        ...

    def get(self, asker: Asker, document_id: UUID) -> Kept:
        """A document. Raises `CallRefused`."""
        ...

    def delete(self, asker: Asker, document_id: UUID) -> Kept:
        """Delete a document for good; what is kept for everybody, only whoever added it. Raises `CallRefused`."""
        ...


# ------------------------------------------------------------------- what is the same in every database


def new_document(asker: Asker, name: str, text: str, kept_for: KeptFor) -> NewDocument:
    """A document in passages. Raises `CallRefused`."""
    passages = passages_of(text)
    if not passages:
        raise CallRefused("There is no text in it.")
    if kept_for == "channel" and not asker.channel:
        raise CallRefused("There is no channel here. Keep it for yourself or for everybody.")
    added_at = datetime.now(UTC).isoformat(timespec="microseconds")
    kept = Kept(str(uuid4()), name, kept_for, asker.person, len(text), added_at)
    return NewDocument(kept, asker.channel if kept_for == "channel" else "", passages)


def check_space(count: int, characters: int, new: int) -> None:
    """Raises `CallRefused` where one more, of so many new characters, is too much beside what is kept."""
    if count >= MOST_DOCUMENTS:
        raise CallRefused(f"There are {MOST_DOCUMENTS:,} documents already. Delete some first.")
    if characters + new > MOST_CHARACTERS:
        raise CallRefused(
            f"There is no space for more than {MOST_CHARACTERS:,} characters. Delete some documents first."
        )


def check_deletion(asker: Asker, kept: Kept) -> None:
    """Raises `CallRefused` where somebody else has to delete it."""
    if kept.kept_for == "everybody" and kept.person != asker.person:
        raise CallRefused("Only whoever added it for everybody can delete it.")


def not_there() -> CallRefused:
    """What is said of a document that is not there, or not for whoever asks."""
    return CallRefused("There is no such document here. It may have been deleted.")


def no_page(page: int) -> CallRefused:
    """What is said of a page that is not there."""
    return CallRefused(f"There is no page {page} in it.")


def folded(text: str) -> str:
    """A text without diacritics, in which words are compared."""
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))


def words_of(query: str) -> list[str]:
    """The words of a query that are looked for, in lower case, each once."""
    return list(dict.fromkeys(word[:LONGEST_WORD].lower() for word in _WORD.findall(query)))[:MOST_WORDS]
