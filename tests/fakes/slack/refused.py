"""How a method of the fake says no."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):  # noqa: N818  # Slack refuses, nothing went wrong
    """`{"ok": false, "error": …}`, with what is wrong in detail as `response_metadata.messages`."""

    def __init__(self, error: str, messages: Sequence[str] = ()) -> None:
        super().__init__(": ".join([error, *messages]))
        self.error = error
        self.messages = tuple(messages)
