"""An answer in the making, and how fast it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.teams.api import Activity
from adapters.teams.outbound.streams import Stream

MOST_KEPT = 50_000
"""Characters of an answer that are kept: far more than are ever shown while it is written."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between what is shown."""

    before: float = 0.7
    """Before anything is shown: an answer that is finished earlier is posted at once."""
    chunk: float = 1.2
    """Between two updates of a stream (Teams: one a second)."""
    typing: float = 3.0
    """Between two signs of typing: clients show one for a few seconds."""
    grace: float = 4.0
    """After a turn has come to rest, until a stream that no post has finished is ended."""
    longest_stream: float = 100.0
    """After which a stream is ended, before Teams does it (2 minutes)."""
    longest_turn: float = 900.0
    """After which a turn shows nothing more."""


@dataclass(slots=True, eq=False)
class Manuscript:
    """An answer in the making."""

    message_id: str
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    is_complete: bool = False
    """The model has gone on to something else."""
    is_over: bool = False
    """Its post is being shown, or nothing more can be shown of it before."""
    stream: Stream | None = None
    shown_as: Activity | None = None
    """The message that its stream has become, ahead of the post."""

    @property
    def text(self) -> str:
        """What the model has written so far."""
        return "".join(self.pieces)

    def add(self, delta: str) -> None:
        """More text."""
        if self.length <= MOST_KEPT:
            self.length += len(delta)
            self.pieces.append(delta)
