"""Imports everything once, then forks a child for each request: see `quick_python`.

`python -m tests.support.quick_python_server SOCKET` listens when it is ready, and ends with its standard input.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

from bot.safe_text import visible
from graph.models.openai import create_openai_model
from tests.support.fork_server import fork_until_input_ends

PACKAGES = ("bot", "demo_model", "graph", "policies", "adapters", "servers")
"""Ours. Every module of theirs is imported, whatever needs it when."""
LIBRARIES = (
    "alembic.command",
    "alembic.config",
    "anyio._backends._asyncio",
    "httpcore",
    "mcp.server.fastmcp",
    "mcp.server.streamable_http_manager",
    "openai.lib.streaming.chat",
    "openai.resources.chat",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)
"""What is imported by a function, at the moment of need."""

ROOT = Path(__file__).parents[2]


def prepare() -> None:
    """Import, and fill the caches that every child inherits."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if module.name.rpartition(".")[2] not in {"__main__", "env"} and ".versions." not in module.name:
                with contextlib.suppress(ModuleNotFoundError):  # an extra that is not installed
                    importlib.import_module(module.name)
    for name in ("app", *LIBRARIES):
        importlib.import_module(name)
    create_openai_model("rehearsal", base_url="http://127.0.0.1:9/v1", api_key=None, timeout=1.0)  # the first is slow
    visible("é")  # the patterns of what nobody sees take 0.1 s, of the first text that needs them


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.filterwarnings("ignore", module="runpy")  # of modules that were imported before they are run
    prepare()
    fork_until_input_ends(sys.argv[1])
