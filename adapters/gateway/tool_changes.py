"""Tells the event streams of programs that the tools have changed, each process its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class ToolListeners:
    """Who wants to hear of it."""

    def __init__(self) -> None:
        self._listening: dict[asyncio.Event, str | None] = {}

    def changed(self, server: str) -> None:
        """The tools of a server are not what they were."""
        for heard, only in self._listening.items():
            if only is None or only == server:
                heard.set()

    def all_may_have_changed(self) -> None:
        """Which tools are listed may be others: by other rules, more or fewer are denied anyway."""
        for heard in self._listening:
            heard.set()

    @contextmanager
    def listening(self, server: str | None) -> Iterator[asyncio.Event]:
        """An event that is set when the tools of a server change; `None`: of any."""
        heard = asyncio.Event()
        self._listening[heard] = server
        try:
            yield heard
        finally:
            del self._listening[heard]
