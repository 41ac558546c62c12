"""Starts the house in milliseconds: everything is imported once here, and every house is a fork.

`python -m tests.kills.fork_server LOG` reads the variables of a house as one line of JSON, forks a child that runs
`app.main()` with them, and answers with two lines: its pid, and, when it has ended, its exit code (-9: killed).

A fork copies only the thread that forks, so this program must have no other thread and no event loop.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

COSTLY = (
    "app",
    "graph.models.openai",
    "adapters.tool_servers.connection",
    "adapters.tool_servers.transports",
    "alembic.command",
    "alembic.config",
    "adapters.tool_servers.reasons",
    "anyio._backends._asyncio",
    "httpcore",
    "openai.lib.streaming.chat",
    "openai.resources.chat",
)
"""What a starting house imports, at once or when it first needs it."""
COUNTDOWN = "KILLS_COUNTDOWN"
"""Variable of the file by which a child is made to die at a durable write: see `crash_points`."""


def main() -> None:
    """Start one house after the other until standard input ends."""
    log = Path(sys.argv[1])
    for name in COSTLY:
        importlib.import_module(name)
    create_model: Any = importlib.import_module("graph.models.openai").create_openai_model
    # The first one made fills caches for a second; every child inherits them.
    create_model("rehearsal", base_url="http://127.0.0.1:9/v1", api_key=None, timeout=1.0)
    threads = threading.enumerate()
    if len(threads) != 1:
        raise RuntimeError(f"a fork would lose these threads: {threads}")
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        child = _fork(log, json.loads(line))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _fork(log: Path, variables: dict[str, str]) -> int:
    pid = os.fork()
    if pid == 0:
        _be_the_house(log, variables)
    return pid


def _be_the_house(log: Path, variables: dict[str, str]) -> NoReturn:
    code = 70
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(variables)
        code = _run()
    except BaseException:
        traceback.print_exc()  # nobody else would: the process ends below, whatever happens
        raise
    finally:
        sys.stderr.flush()
        # Not `sys.exit`: the parent's loop must not go on in the child.
        os._exit(code)


def _run() -> int:
    if COUNTDOWN in os.environ:
        crash_points: Any = importlib.import_module("tests.kills.crash_points")
        crash_points.install(Path(os.environ[COUNTDOWN]))
    app: Any = importlib.import_module("app")
    return int(app.main())


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    main()
