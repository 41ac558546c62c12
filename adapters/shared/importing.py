"""Libraries that take long to import, imported beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from types import ModuleType

_ONE_AT_A_TIME = threading.Lock()
"""Of two threads that import parts of one package which import each other, Python lets one have half a module."""


async def imported(*modules: str) -> ModuleType:
    """Returns the last of these modules, imported one after the other in a thread. Raises what importing them does."""
    return await asyncio.to_thread(_import, modules)


def _import(modules: tuple[str, ...]) -> ModuleType:
    with _ONE_AT_A_TIME:
        return [import_module(module) for module in modules][-1]
