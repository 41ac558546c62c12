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
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO

from tests.support import quick_python as _script

ROOT = Path(__file__).parents[2]
STARTS_WITHIN = 60.0
"""Seconds for a process to start on a machine that runs many tests at once."""


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


@cache
def _server() -> str:
    """Start the server that forks, once for this process; the path of its socket. It ends with its input."""
    folder = tempfile.mkdtemp(prefix="quick-python-")
    path = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.quick_python_server", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n", "the server that forks did not start"
    return path
