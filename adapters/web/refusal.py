"""A request that is refused: a status and one sentence that says what is wrong and what to do."""

from __future__ import annotations


class RefusalError(Exception):
    """Ends a request with `status` and `{"error": sentence}`; nothing has been changed."""

    def __init__(self, status: int, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after
        """Seconds after which trying again makes sense; `None`: at no particular time."""
