"""What the bench's messages say, and what its model makes of them: one convention for client and model."""

from __future__ import annotations

READ = "read"
"""A message that begins so makes the model call a tool that needs nobody's approval."""
WRITE = "write"
"""A message that begins so makes the model call a tool that waits for an approval."""


def mark_of(text: str) -> str:
    """The last word of a message. It comes back in the answer, so that the client knows which answer is which."""
    return text.rsplit(" ", 1)[-1]
