"""Which processor core does what: the measured process has one to itself, everything around it shares another; and how
much of a core a process may use, where that is to be the same for several."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

MEASURED = 0
AROUND = 1


def can_pin() -> bool:
    """Whether this machine can bind processes to cores: Linux, two cores or more."""
    return hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > AROUND


def move_to(*cores: int, process: int = 0) -> None:
    """Bind a process (0: this one) to cores, none named: to all; nothing happens where that is not possible."""
    if can_pin():
        os.sched_setaffinity(process, cores or range(os.cpu_count() or 1))


_PERIOD = 20_000
"""Microseconds over which a share of a core is counted."""
_GROUPS = Path("/sys/fs/cgroup")


@contextmanager
def no_more_than(share: float, process: int) -> Iterator[None]:
    """Within it a process, with what it starts, gets this share of a core at most. Does nothing where `can_cap` says
    that this is not possible."""
    make = _way_to_cap()
    if make is None:
        yield
        return
    folder = make(share)
    (folder / "cgroup.procs").write_text(str(process))
    try:
        yield
    finally:
        for each in (folder / "cgroup.procs").read_text().split():  # with what it has started
            with suppress(OSError):  # it has ended
                (folder.parent / "cgroup.procs").write_text(each)
        with suppress(OSError):  # something of it is just ending
            folder.rmdir()


def can_cap() -> bool:
    """Whether processes can be held to a share of a core: Linux, and control groups that may be made here."""
    return _way_to_cap() is not None


@cache
def _way_to_cap() -> Callable[[float], Path] | None:
    for way in (_first_version, _second_version):
        with suppress(OSError):
            way(1.0).rmdir()
            return way
    return None


def _first_version(share: float) -> Path:
    folder = _GROUPS / "cpu" / f"countersign-bench-{uuid.uuid4().hex}"
    folder.mkdir()
    return _with_settings(folder, {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(int(share * _PERIOD))})


def _second_version(share: float) -> Path:
    folder = _GROUPS / f"countersign-bench-{uuid.uuid4().hex}"
    folder.mkdir()
    return _with_settings(folder, {"cpu.max": f"{int(share * _PERIOD)} {_PERIOD}"})


def _with_settings(folder: Path, settings: dict[str, str]) -> Path:
    try:
        for name, value in settings.items():
            (folder / name).write_text(value)
    except OSError:
        folder.rmdir()
        raise
    return folder
