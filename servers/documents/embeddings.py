"""What a text means, as a vector: by any service that speaks OpenAI's `/embeddings`."""

from __future__ import annotations

import array
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Vector = tuple[float, ...]
MOST_AT_ONCE = 64
"""Texts of one request. Our own choice: services take 100 to 2,048, small ones of one's own less."""
MOST_DIMENSIONS = 4_096
"""Numbers of a vector. Our own choice: the largest models in use have as many."""
QUERY_SECONDS = 8.0
"""How long whoever searches waits for the meaning of their words."""
BATCH_SECONDS = 60.0
"""How long the passages of a document may take, of one request."""


class EmbeddingFailed(Exception):  # noqa: N818 - an answer, no defect
    """There are no vectors now. Its text says why, for the log; nothing of the texts is in it.

    Args:
        is_refusal: whether the service does not take these very texts, so that asking again is of no use.
    """

    def __init__(self, why: str, *, is_refusal: bool = False) -> None:
        super().__init__(why)
        self.is_refusal = is_refusal


_REFUSALS = frozenset({400, 413, 422})
"""HTTP statuses that say so."""


@dataclass(frozen=True, slots=True)
class EmbeddingService:
    """Where vectors come from."""

    model: str
    base_url: str
    """Empty: OpenAI."""
    key: str

    @staticmethod
    def configured(environment: Mapping[str, str]) -> EmbeddingService | None:
        """The one that `EMBEDDING_MODEL` names, at `EMBEDDING_BASE_URL` with `EMBEDDING_API_KEY`, by default those of
        the language model (`OPENAI_…`), whose key goes to no other address; `None`: there is none."""
        model = environment.get("EMBEDDING_MODEL", "").strip()
        if not model:
            return None
        base_url = environment.get("EMBEDDING_BASE_URL") or environment.get("OPENAI_BASE_URL", "")
        key = environment.get("EMBEDDING_API_KEY", "")
        if not key and base_url == environment.get("OPENAI_BASE_URL", ""):
            key = environment.get("OPENAI_API_KEY", "")
        return EmbeddingService(model, base_url, key)


def space_of(model: str, vector: Vector) -> str:
    """The space that vectors are in: those of one model and of one length can be compared."""
    return f"{model} ({len(vector)})"


class Embeddings:
    """Asks the service. Its methods block."""

    def __init__(self, service: EmbeddingService, *, query_seconds: float = QUERY_SECONDS) -> None:
        from servers.documents.openai_client import client_of  # noqa: PLC0415  # it takes half a second

        self.model = service.model
        self._query_seconds = query_seconds
        self._client = client_of(service.base_url, service.key)

    def of_query(self, text: str) -> Vector:
        """The vector of what somebody searches for. Raises `EmbeddingFailed`."""
        return self._of([text], self._query_seconds)[0]

    def of_passages(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of up to `MOST_AT_ONCE` texts, in their order. Raises `EmbeddingFailed`."""
        return self._of(texts, BATCH_SECONDS)

    def _of(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        from openai import OpenAIError  # noqa: PLC0415  # with EMBEDDING_MODEL only

        try:
            answer = self._client.embeddings.create(
                model=self.model, input=list(texts), encoding_format="float", timeout=seconds
            )
            vectors = [_checked(each.embedding) for each in sorted(answer.data, key=lambda each: each.index)]
        except OpenAIError as error:
            status = getattr(error, "status_code", None)
            why = f"{type(error).__name__} {status or ''}".strip()
            raise EmbeddingFailed(why, is_refusal=status in _REFUSALS) from error
        except (TypeError, ValueError, OverflowError, AttributeError) as error:  # the library looks at no answer
            raise EmbeddingFailed("its answer is no list of vectors") from error
        if len(vectors) != len(texts) or len({len(each) for each in vectors}) != 1:
            raise EmbeddingFailed("its answer has not one vector, of one length, for each text")
        return vectors


def _checked(given: Sequence[float]) -> Vector:
    """With the precision in which it is kept. Raises `ValueError`, `TypeError` or `OverflowError` for what
    has no direction in it."""
    vector = tuple(array.array("f", given))
    if not 0 < len(vector) <= MOST_DIMENSIONS or not all(map(math.isfinite, vector)) or not any(vector):
        raise ValueError("no vector")
    return vector
