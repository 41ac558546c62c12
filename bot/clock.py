"""The present moment, in one place so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

system_clock: Clock = time.time
