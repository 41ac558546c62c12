"""Who may run what waits in a place, where several processes could.

A place is what one process at a time looks after: a thread, the sessions of one direct chat, or a channel in which
cards are shown. Whoever runs it claims it first, which raises its epoch in the records; what belongs to an older epoch
changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field


def place_of(thread_id: str) -> str:
    """The place of a thread: the sessions of one direct chat share it."""
    return thread_id.partition("#")[0]


class Overtaken(Exception):  # noqa: N818 (what became of the run)
    """Another process has taken over the place: nothing that belongs to the run before changes anything any more."""


@dataclass(slots=True, eq=False)
class Claim:
    """The right to run what waits in a place, until somebody else claims it."""

    place: str
    epoch: int
    taken_over: bool = False
    """Whether who had it before never released it: what that process began, it may have left in the middle."""
    lost: bool = False
    """Whether it is known that somebody else has claimed the place since."""
    when_lost: Callable[[], None] | None = field(default=None, repr=False)

    def lose(self) -> None:
        """Somebody else has claimed the place."""
        if not self.lost:
            self.lost = True
            if self.when_lost is not None:
                self.when_lost()


_claim: ContextVar[Claim | None] = ContextVar("claim", default=None)


def current_claim() -> Claim | None:
    """The claim under which this task runs."""
    return _claim.get()


@contextmanager
def under(claim: Claim) -> Iterator[None]:
    """Within it, and in the tasks made there, transactions of the place are made under this claim."""
    token = _claim.set(claim)
    try:
        yield
    finally:
        _claim.reset(token)


def context_under(claim: Claim) -> Context:
    """Returns a context of its own in which transactions of the place are made under this claim. Tasks made in a copy
    of it take nothing else along from where they are made."""
    context = Context()
    context.run(_claim.set, claim)
    return context
