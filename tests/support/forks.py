"""Processes of our own programs that start in milliseconds: see `quick_python`."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests.support import quick_python as _script

ROOT = Path(__file__).parents[2]
STARTS_WITHIN = 60.0
"""Seconds for a process to start on a machine that runs many tests at once."""
_SOCKET = "COUNTERSIGN_TEST_FORKS"
"""Variable that names the socket of a server which processes of the tests share."""


def quick_python(*command: str | Path) -> list[str]:
    """A command line that does what `python …` does, in a process that is forked."""
    return [sys.executable, "-I", "-S", _script.__file__, _server(), *map(str, command)]


class Fork:
    """A running program. Used in the event loop that it was forked in."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.code: int | None = None
        """The exit code once it has ended; negative: the signal."""
        self._connection = connection
        self._ended = asyncio.create_task(self._end(), name=f"end of process {pid}")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.code is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        return await asyncio.shield(self._ended)  # whoever waits may be cancelled

    async def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self.send(signal.SIGKILL)
        await self.wait()

    async def _end(self) -> int:
        number = await asyncio.get_running_loop().sock_recv(self._connection, 100)
        self._connection.close()
        self.code = int(number)
        return self.code


async def forked(
    *command: str | Path, environment: Mapping[str, str] | None = None, output: int, errors: int, folder: Path = ROOT
) -> Fork:
    """Start `python …` as a fork without any input.

    Args:
        environment: All its variables; as here when not given.
        output: The file descriptor of its standard output; the caller closes its own.
        errors: The same of its standard error.
        folder: Where it runs.
    """
    server = await asyncio.to_thread(_server)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        variables = dict(os.environ if environment is None else environment)
        connection = _script.ask(server, [*map(str, command)], str(folder), variables, [nothing, output, errors])
    finally:
        os.close(nothing)
    connection.setblocking(False)
    pid = int(await asyncio.get_running_loop().sock_recv(connection, 100))
    return Fork(pid, connection)


async def forked_with_output(*command: str | Path) -> tuple[Fork, IO[str]]:
    """The same, with what it writes to its standard output."""
    reading, writing = os.pipe()
    try:
        process = await forked(*command, output=writing, errors=2)
    finally:
        os.close(writing)
    return process, os.fdopen(reading)


def share() -> Callable[[], None]:
    """Start a server for the processes that this one starts: importing everything once for each of them would take some
    seconds of each. Returns what stops it; does not wait until it is ready."""
    path, end = _begun()
    os.environ[_SOCKET] = path

    def stop() -> None:
        del os.environ[_SOCKET]
        end()

    return stop


@cache
def _server() -> str:
    """The path of the socket of a server that is ready: the one that is shared, or else one of this process."""
    path = os.environ.get(_SOCKET)
    if path is None:
        path, end = _begun()
        atexit.register(end)
    deadline = time.monotonic() + STARTS_WITHIN
    while not _listens(path):
        if time.monotonic() > deadline:
            raise TimeoutError("the server that forks did not start")
        time.sleep(0.02)
    return path


def _begun() -> tuple[str, Callable[[], None]]:
    """Start a server. Returns the path of its socket, and what ends it: its input ends."""
    folder = tempfile.mkdtemp(prefix="quick-python-")
    path = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.quick_python_server", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # nothing is written there: Python looks once whether it is a file, and so do forks
        start_new_session=True,
    )

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    return path, end


def _listens(path: str) -> bool:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as connection, suppress(OSError):
        connection.connect(path)
        return True
    return False
