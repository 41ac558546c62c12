"""Imports everything once, then forks a child for each request: see `quick_python`.

`python -m tests.support.quick_python_server SOCKET` listens when it is ready, and ends with its standard input.
A fork copies only the thread that forks, so this program must have no other thread and no event loop.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

from graph.models.openai import create_openai_model
from tests.support.quick_python import LONGEST

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

Children = dict[int, socket.socket]
"""Who wants to know of its end, by pid."""


def main() -> None:
    """Fork until standard input ends."""
    prepare()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        children: Children = {}
        try:
            serve(listening, children)
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)


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
    threads = threading.enumerate()
    if len(threads) != 1:
        raise RuntimeError(f"a fork would lose these threads: {threads}")
    gc.freeze()


def serve(listening: socket.socket, children: Children) -> None:
    """Answer requests, tell of ends, and kill what nobody wants any more."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)  # the number is written to `waker`
    with selectors.DefaultSelector() as selector:
        for each in (listening, woken, sys.stdin):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listening:
                    connection, _ = listening.accept()
                    request, files, _, _ = socket.recv_fds(connection, LONGEST, 3)
                    if not request:  # somebody asked whether this is ready
                        connection.close()
                        continue
                    pid = os.fork()
                    if pid == 0:
                        for each in (selector, listening, woken, waker, connection, *children.values()):
                            each.close()
                        become(json.loads(request), files)
                    for file in files:
                        os.close(file)
                    children[pid] = connection
                    selector.register(connection, selectors.EVENT_READ, pid)
                    tell(connection, pid)
                elif key.fileobj is woken:
                    woken.recv(1000)
                    for pid, code in ended():
                        connection = children.pop(pid)
                        if connection in selector.get_map():
                            selector.unregister(connection)
                        tell(connection, code)
                        connection.close()
                elif key.fileobj is sys.stdin:
                    return
                elif key.data in children:  # nothing more is asked for: the other end was closed
                    os.kill(key.data, signal.SIGKILL)
                    selector.unregister(key.fileobj)


def ended() -> list[tuple[int, int]]:
    """The children that have ended since, each with its exit code."""
    found = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, os.waitstatus_to_exitcode(status)))


def tell(connection: socket.socket, number: int) -> None:
    """Say a number to somebody who may have gone."""
    try:
        connection.send(str(number).encode())
    except OSError:
        return


def become(request: dict[str, Any], files: list[int]) -> NoReturn:
    """Be what `python` with this command line would be, to its end."""
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        code = run(request["command"])
    except BaseException:
        traceback.print_exc()  # nobody else would: the process ends below, whatever happens
        raise
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            # Not `sys.exit`, and whatever was raised: the parent's loop must not go on in the child.
            os._exit(code)


def run(command: list[str]) -> int:
    """Run a program or (`-m`) a module, as Python does. Returns its exit code."""
    try:
        if command[0] == "-m":
            sys.argv = command[1:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = command
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.filterwarnings("ignore", module="runpy")  # of modules that were imported before they are run
    main()
