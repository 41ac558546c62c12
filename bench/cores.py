"""Which processor core does what: the measured process has one to itself, everything around it shares another."""

from __future__ import annotations

import os

MEASURED = 0
AROUND = 1


def can_pin() -> bool:
    """Whether this machine can bind processes to cores: Linux, two cores or more."""
    return hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > AROUND


def move_to(*cores: int, process: int = 0) -> None:
    """Bind a process (0: this one) to cores, none named: to all; nothing happens where that is not possible."""
    if can_pin():
        os.sched_setaffinity(process, cores or range(os.cpu_count() or 1))
