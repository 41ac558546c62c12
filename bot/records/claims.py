"""Who may run what waits in a place, where several processes could.

A place is what one process at a time looks after: a thread, the sessions of one direct chat, or a channel in which
cards are shown. Whoever runs it claims it first, which raises its epoch in the records; what belongs to an older epoch
changes nothing any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from uuid import UUID


def place_of(thread_id: str) -> str:
    """The place of a thread: the sessions of one direct chat share it."""
    return thread_id.partition("#")[0]


class Overtaken(Exception):  # noqa: N818 (what became of the run)
    """Another process has taken over the place, or is about to: nothing that belongs to the run before changes anything
    any more."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Claim:
    """The right to run what waits in a place, until another process claims it."""

    place: str
    epoch: int
    marker: UUID | None = None
    """What the database has kept since before the claim and forgets in a crash, with checkpoints that were not on disk
    yet. What was done before on their account must not go on."""
    taken_over: bool = False
    """Whether who had it before never released it: what that process began, it may have left in the middle."""
    lost: bool = False
    """Whether it is known that another process has claimed the place since."""
    handed_over: bool = False
    """Whether this process ends, so that another one goes on with what is broken off now."""
    stays_for: dict[object, Callable[[], None]] = field(default_factory=dict, repr=False)
    """What only this process can go on with, and that is not done yet → what gives it up."""
    when_changed: Callable[[], None] | None = field(default=None, repr=False)
    """Called when it was lost, or something is done for which the place was kept."""
    check: Callable[[], Awaitable[None]] | None = field(default=None, repr=False)
    """Raises `Overtaken` where the records say that another process has claimed the place since."""

    @property
    def is_left(self) -> bool:
        """Whether another process goes on with what is under way."""
        return self.lost or self.handed_over

    def follows(self, earlier: Claim) -> bool:
        """Whether nobody else has had the place since an earlier claim of this process, which ended as it should."""
        in_order = self.place == earlier.place and self.epoch == earlier.epoch + 1
        return in_order and self.marker == earlier.marker and not self.taken_over and not earlier.lost

    def lose(self) -> None:
        """Another process has claimed the place."""
        if not self.lost:
            self.lost = True
            self._tell()

    def stay(self, give_up: Callable[[], None]) -> Callable[[], None]:
        """Keeps the place although nothing is left to do there, until what is returned is called.

        Args:
            give_up: called when another process has claimed the place, or this one ends.
        """
        what = object()
        self.stays_for[what] = give_up

        def leave() -> None:
            if self.stays_for.pop(what, None) is not None:
                self._tell()

        return leave

    def _tell(self) -> None:
        if self.when_changed is not None:
            self.when_changed()


_claim: ContextVar[Claim | None] = ContextVar("claim", default=None)


def current_claim() -> Claim | None:
    """The claim under which this task runs."""
    return _claim.get()


async def check_claim() -> None:
    """Raises `Overtaken` when this task runs under a claim and another process has claimed the place since."""
    claim = _claim.get()
    if claim is not None and claim.check is not None:
        await claim.check()


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
