"""Finds passages by words and, where an embedding service is configured, by meaning; and puts them in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from servers.documents.embeddings import MOST_AT_ONCE, EmbeddingFailed, Embeddings, Vector, space_of
from servers.documents.ranking import MOST_RERANKED, Reranker, RerankFailed, fused
from servers.documents.store import Asker, DocumentStore, FoundPassage, StoreError

BY_WORDS = "Found by words only, not by meaning. Try other words if nothing fits."
BY_BOTH = "Found by words and by meaning."
MOST_CANDIDATES = MOST_RERANKED
"""Passages of each search that are put together."""
LOOK_AGAIN_SECONDS = 60.0
"""How often it is looked whether another process has kept documents."""
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds until a service that has failed is asked again; doubled each time."""
MOST_REFUSED = 3
"""Passages that a service may refuse one after the other before that counts as a failure of the service."""
REFUSED_SECONDS = 3_600.0
"""How long a passage that was refused is not tried again."""
USED_SECONDS = 3_600.0
"""How often it is noted in which space the vectors are that are used."""
SPARED_SECONDS = 30.0
"""How long nobody who searches waits for a service that has failed. Our own choice."""

log = logging.getLogger(__name__)


def by_both(with_vector: int, passages: int) -> str:
    """The note of a search by words and by meaning, of so many passages that may be found. Pure."""
    if with_vector >= passages:
        return BY_BOTH
    return f"Found by words, and {with_vector:,} of {passages:,} passages by meaning, too; the others by words only."


class PassageSearch:
    """Finds passages. Its methods block.

    Args:
        embeddings: `None`: words only.
        reranker: `None`: the order of the searches is the order.
    """

    def __init__(
        self, store: DocumentStore, embeddings: Embeddings | None = None, reranker: Reranker | None = None
    ) -> None:
        self._store = store
        self._embeddings = embeddings if store.has_vectors else None
        self._reranker = reranker
        self._filling = _Filling(store, self._embeddings) if self._embeddings is not None else None
        self._embeddings_spared_until = self._reranker_spared_until = 0.0  # as `time.monotonic`
        if embeddings is not None and self._embeddings is None:
            log.warning("there are no vectors: the database has no extension for them; found by words only")

    def start(self) -> None:
        """Make the vectors that are missing, from now on, in a thread that ends with the process."""
        if self._filling is not None:
            threading.Thread(target=self._filling.run, name="vectors", daemon=True).start()

    def was_added(self) -> None:
        """A document has come; its vectors are missing."""
        if self._filling is not None:
            self._filling.look_now()

    def search(self, asker: Asker, query: str, most: int) -> tuple[list[FoundPassage], str]:
        """The passages that fit best, the best first, and a note about how they were found. Raises `StoreError`."""
        by_words = self._store.by_words(asker, query, MOST_CANDIDATES)
        by_meaning, note = self._by_meaning(asker, query)
        found = self._in_order(query, fused(by_words, by_meaning)[:MOST_CANDIDATES])
        return found[:most], note

    def _by_meaning(self, asker: Asker, query: str) -> tuple[list[FoundPassage], str]:
        if self._embeddings is None or self._filling is None or time.monotonic() < self._embeddings_spared_until:
            return [], BY_WORDS
        try:
            wanted = self._embeddings.of_query(query)
        except EmbeddingFailed as failed:
            log.warning("found by words only: the embedding service gave nothing (%s)", failed)
            if not failed.is_refusal:
                self._embeddings_spared_until = time.monotonic() + SPARED_SECONDS
            return [], BY_WORDS
        space = self._filling.space_now(wanted)
        try:
            found = self._store.by_vector(asker, space, wanted, MOST_CANDIDATES)
            return found, by_both(*self._store.with_vector(asker, space))
        except StoreError as error:  # there may be too many of them for the time that a statement has
            log.warning("found by words only: the vectors cannot be compared (%s)", error)
            return [], BY_WORDS

    def _in_order(self, query: str, found: Sequence[FoundPassage]) -> list[FoundPassage]:
        is_spared = time.monotonic() < self._reranker_spared_until
        if self._reranker is None or is_spared or len(found) < 2:  # one is in order
            return list(found)
        try:
            return [found[place] for place in self._reranker.order(query, [each.text for each in found])]
        except RerankFailed as failed:
            log.warning("passages are not put in order: the model gave no order (%s)", failed)
            if failed.is_of_service:
                self._reranker_spared_until = time.monotonic() + SPARED_SECONDS
            return list(found)


class _Filling:
    """Makes the vectors that are missing, a batch at a time."""

    def __init__(self, store: DocumentStore, embeddings: Embeddings) -> None:
        self._store = store
        self._embeddings = embeddings
        self._added = threading.Event()
        self._size = MOST_AT_ONCE
        self._refused: set[int] = set()
        """Passages that the service does not take."""
        self._forgiven_at = 0.0
        self._refused_in_a_row = 0
        self._space = ""
        """In which vectors are made; empty: not known before the service has given one."""
        self._noted = ("", 0.0)
        """The space that was noted as used last, and when."""

    def look_now(self) -> None:
        """A vector may be missing."""
        self._added.set()

    def space_now(self, vector: Vector) -> str:
        """The space that a vector of the service is in. Where it is another than before, its vectors are missing."""
        space = space_of(self._embeddings.model, vector)
        if space != self._space:
            self._space = space
            self.look_now()
        return space

    def run(self) -> None:
        """Never returns."""
        pause = SHORTEST_PAUSE
        while True:
            self._added.clear()
            try:
                if self._made_some():
                    pause = SHORTEST_PAUSE
                else:
                    self._added.wait(LOOK_AGAIN_SECONDS)
            except (EmbeddingFailed, StoreError) as failed:
                log.warning("vectors are not made now (%s); next try in %d s", failed, pause)
                threading.Event().wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _made_some(self) -> bool:
        """Make some vectors. Returns False when none is missing, or another process makes them. Raises
        `EmbeddingFailed`, `StoreError`."""
        if not self._space:
            if not self._store.without_vector("", 1):  # nothing is kept, so nobody is asked
                return False
            self.space_now(self._embeddings.of_query("length"))
        space = self._space
        if self._noted[0] != space or time.monotonic() - self._noted[1] > USED_SECONDS:
            self._store.use_space(space, time.time())
            self._noted = space, time.monotonic()
        if time.monotonic() - self._forgiven_at > REFUSED_SECONDS:
            self._refused.clear()
            self._forgiven_at = time.monotonic()
        with self._store.filling(space) as is_ours:
            return is_ours and self._filled(space)

    def _filled(self, space: str) -> bool:
        missing = self._store.without_vector(space, self._size, self._refused)
        if not missing:
            return False
        try:
            vectors = self._embeddings.of_passages([text for _number, text in missing])
        except EmbeddingFailed as failed:
            if not failed.is_refusal:
                raise
            self._size = max(1, len(missing) // 2)
            if len(missing) == 1:
                log.warning("a passage is not found by meaning: the embedding service does not take it (%s)", failed)
                self._refused.add(missing[0][0])
                self._refused_in_a_row += 1
            if self._refused_in_a_row > MOST_REFUSED:
                raise
            return True
        if self.space_now(vectors[0]) != space:
            raise EmbeddingFailed("its vectors have another length than before")
        self._size = min(2 * self._size, MOST_AT_ONCE)
        self._refused_in_a_row = 0
        kept = [(number, text, vector) for (number, text), vector in zip(missing, vectors, strict=True)]
        self._store.keep_vectors(space, kept)
        return True
