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
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests.support import quick_python as _script

ROOT = Path(__file__).parents[2]
STARTS_WITHIN = 180.0
"""Seconds for the server to import everything on a machine that runs many tests at once."""
_SOCKET = "COUNTERSIGN_TEST_FORKS"
"""Variable that names the socket of a server which processes of the tests share."""
_LOOK_EVERY = 0.02
"""Seconds."""


def quick_python(*command: str | Path) -> list[str]:
    """A command line that does what `python …` does, in a process that is forked."""
    return [*_command(_server()), *map(str, command)]


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
    server = _begun([sys.executable], "tests.support.quick_python_server")
    os.environ[_SOCKET] = server.path

    def stop() -> None:
        del os.environ[_SOCKET]
        server.end()

    return stop


def collected(arguments: Sequence[str]) -> ForkServer:
    """Start a server whose forks have imported every module of the tests already: doing that takes most of the seconds
    that each worker needs to collect them, and twice as many where nothing is compiled yet. It is itself a fork, so
    that ours are imported once.

    Args:
        arguments: Those of pytest.
    """
    return _begun(quick_python(), "tests.support.collected_server", *arguments)


class ForkServer:
    """A process that imports, and then forks. It is ended by `end`, and its forks with it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: str) -> None:
        self.path = f"{folder}/socket"
        """Where it listens once it is ready."""
        self._process = process
        self._folder = folder

    def python(self) -> list[str]:
        """The beginning of a command line that does what `python …` does, in a fork. Waits until it is ready."""
        while not _listens(self.path):
            if self._process.poll() is not None:
                raise RuntimeError(f"the server that forks has ended with {self._process.returncode}")
            time.sleep(_LOOK_EVERY)
        return _command(self.path)

    def end(self) -> None:
        """End it: its input ends."""
        self._process.communicate()
        shutil.rmtree(self._folder)


@cache
def _server() -> str:
    """The path of the socket of a server that is ready: the one that is shared, or else one of this process."""
    path = os.environ.get(_SOCKET)
    if path is None:
        server = _begun([sys.executable], "tests.support.quick_python_server")
        atexit.register(server.end)
        path = server.path
    deadline = time.monotonic() + STARTS_WITHIN
    while not _listens(path):
        if time.monotonic() > deadline:
            raise TimeoutError("the server that forks did not start")
        time.sleep(_LOOK_EVERY)
    return path


def _command(server: str) -> list[str]:
    return [sys.executable, "-I", "-S", _script.__file__, server]


def _begun(python: Sequence[str], module: str, *arguments: str) -> ForkServer:
    folder = tempfile.mkdtemp(prefix="quick-python-")
    process = subprocess.Popen(
        [*python, "-m", module, f"{folder}/socket", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # nothing is written there: Python looks once whether it is a file, and so do forks
        start_new_session=True,
    )
    return ForkServer(process, folder)


def _listens(path: str) -> bool:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as connection, suppress(OSError):
        connection.connect(path)
        return True
    return False
