"""What the bench's messages say, and what its model makes of them: one convention for client and model."""

from __future__ import annotations

import re

READ = "read"
"""A message that begins so makes the model call a tool that needs nobody's approval."""
WRITE = "write"
"""A message that begins so makes the model call a tool that waits for an approval."""
RAN_AT = "the tool ran at"
"""Before the moment at which a tool was called (`time.monotonic()`, one clock for all processes), in the answer."""


def mark_of(text: str) -> str:
    """The last word of a message. It comes back in the answer, so that the client knows which answer is which."""
    return text.rsplit(" ", 1)[-1]


def ran_at(answer: str) -> float:
    """When the tool was called that an answer tells about."""
    found = re.search(rf"{RAN_AT} (\d+\.\d+)", answer)
    if found is None:
        raise ValueError(f"it ran no tool: {answer}")
    return float(found[1])
