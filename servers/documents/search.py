"""Finds passages by words and, where an embedding service is configured, by meaning; and puts them in order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from servers.documents.embeddings import MOST_AT_ONCE, EmbeddingFailed, Embeddings
from servers.documents.ranking import MOST_RERANKED, Reranker, RerankFailed, fused
from servers.documents.store import Asker, DocumentStore, FoundPassage, StoreError

BY_WORDS = "Found by words only, not by meaning. Try other words if nothing fits."
BY_BOTH = "Found by words and by meaning."
NOT_YET = "Found by words and by meaning; some passages are not looked at by meaning yet."
MOST_CANDIDATES = MOST_RERANKED
"""Passages of each search that are put together."""
LOOK_AGAIN_SECONDS = 60.0
"""How often it is looked whether another process has kept documents."""
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds until a service that has failed is asked again; doubled each time."""

log = logging.getLogger(__name__)


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
        if embeddings is not None and self._embeddings is None:
            log.warning("there are no vectors: the database has no extension for them; found by words only")

    def start(self) -> None:
        """Make the vectors that are missing, from now on, in a thread that ends with the process."""
        if self._filling is not None:
            threading.Thread(target=self._filling.run, name="vectors", daemon=True).start()

    def was_added(self) -> None:
        """A document has come; its vectors are missing."""
        if self._filling is not None:
            self._filling.was_added()

    def search(self, asker: Asker, query: str, most: int) -> tuple[list[FoundPassage], str]:
        """The passages that fit best, the best first, and a note about how they were found. Raises `StoreError`."""
        by_words = self._store.by_words(asker, query, MOST_CANDIDATES)
        by_meaning, note = self._by_meaning(asker, query)
        found = self._in_order(query, fused(by_words, by_meaning)[:MOST_CANDIDATES])
        return found[:most], note

    def _by_meaning(self, asker: Asker, query: str) -> tuple[list[FoundPassage], str]:
        if self._embeddings is None or self._filling is None:
            return [], BY_WORDS
        try:
            wanted = self._embeddings.of_query(query)
        except EmbeddingFailed as failed:
            log.warning("found by words only: the embedding service gave nothing (%s)", failed)
            return [], BY_WORDS
        found = self._store.by_vector(asker, self._embeddings.model, wanted, MOST_CANDIDATES)
        return found, BY_BOTH if self._filling.is_done else NOT_YET

    def _in_order(self, query: str, found: Sequence[FoundPassage]) -> list[FoundPassage]:
        if self._reranker is None or len(found) < 2:  # one is in order
            return list(found)
        try:
            return [found[place] for place in self._reranker.order(query, [each.text for each in found])]
        except RerankFailed as failed:
            log.warning("passages are not put in order: the model gave no order (%s)", failed)
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
        self.is_done = False
        """Whether none was missing when it was looked last."""

    def was_added(self) -> None:
        """Look now."""
        self.is_done = False
        self._added.set()

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
        """Make some vectors. Returns False when none is missing. Raises `EmbeddingFailed`, `StoreError`."""
        missing = self._store.without_vector(self._embeddings.model, self._size, self._refused)
        self.is_done = not missing
        if not missing:
            return False
        try:
            vectors = self._embeddings.of_passages([text for _number, text in missing])
        except EmbeddingFailed as failed:
            if not failed.is_refusal:
                raise
            if len(missing) == 1:
                log.warning("a passage is not found by meaning: the embedding service does not take it (%s)", failed)
                self._refused.add(missing[0][0])
            self._size = max(1, len(missing) // 2)
            return True
        self._size = min(2 * self._size, MOST_AT_ONCE)
        kept = [(number, text, vector) for (number, text), vector in zip(missing, vectors, strict=True)]
        self._store.keep_vectors(self._embeddings.model, kept)
        return True
