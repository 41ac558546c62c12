"""Limits of CPU time that hold on a machine that is slow or busy, and in a process that collects garbage."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = Callable[[], float]
"""Seconds of CPU time since some moment."""

USUAL = 0.003
"""Seconds that the piece of work takes on the machine where the limits of the tests were chosen."""
LONGEST_LOOK = 0.3
"""Seconds that finding out how slow the machine is may take."""


@contextmanager
def at_most_cpu(seconds: float, clock: Clock = time.thread_time) -> Iterator[None]:
    """Fail when the block takes more CPU time: `seconds` of this thread, or of whatever `clock` counts.

    A full collection of the objects of ten thousand tests takes longer than most limits, so none falls into the block.
    Where the limit is exceeded, it is multiplied by how much slower than usual the machine is at that moment. Nothing
    is tried twice: what the first try left in a cache would make the second one quick.
    """
    with without_collections():
        began = clock()
        yield
        taken = clock() - began
    hold_to(seconds, taken, clock)


def hold_to(seconds: float, taken: float, clock: Clock = time.thread_time) -> None:
    """Fail when `taken` is more than `seconds` on a machine that is as slow as this one is now."""
    if taken <= seconds:
        return
    slower = how_much_slower(clock, during=taken)
    if taken > seconds * slower:
        times = f"{slower:.1f} times as slow as usual"
        raise AssertionError(f"took {taken:.3f} s of CPU, and may take {seconds} s; the machine is {times}")


@contextmanager
def without_collections() -> Iterator[None]:
    """No garbage is collected in the block, whichever thread makes it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def how_much_slower(clock: Clock, during: float) -> float:
    """How many times as long as usual a piece of work takes now, 1 or more: the slowest in `during` seconds."""
    slowest = total = 0.0
    while total <= min(during, LONGEST_LOOK):
        began = clock()
        _piece_of_work()
        taken = clock() - began
        slowest, total = max(slowest, taken), total + taken
    return max(1.0, slowest / USUAL)


def _piece_of_work() -> int:
    """What Python does most: texts, numbers and a dictionary."""
    lengths: dict[str, int] = {}
    for number in range(20_000):
        word = f"word {number % 1_000}"
        lengths[word] = lengths.get(word, 0) + len(word)
    return len(lengths)


def quickest(work: Callable[[], object], tries: int = 3) -> float:
    """Seconds of CPU of the quickest of several tries, to be compared with those of other work. The caller sees to it
    that nothing of the first try makes the next one quick."""
    with without_collections():
        return min(_taken(work) for _ in range(tries))


def _taken(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
