"""A Python that starts programs of ours in milliseconds: a server has imported everything, and forks.

Importing what the product needs takes two seconds of processor time. Tests that start it, or one of its tool servers,
as a process of its own do so by `forked` (a process to watch and to kill) or by the command line `quick_python(…)` (for
what the product itself starts), both of `forks.py`. Each process is what `python …` would be: its own pid, environment,
folder and files.

Run as a script, this file is the command: `quick_python.py SOCKET [-m] PROGRAM ARGUMENT…`, or `… SOCKET -u -c TEXT`,
with which pytest-xdist begins its workers. It imports little and stays until the fork has ended; when it is killed, so
is the fork. The server is `quick_python_server.py`, that of workers `collected_server.py`.
"""

from __future__ import annotations

import json
import os
import socket
import sys

LONGEST = 150_000
"""Bytes of a request. Linux takes some 200,000 in one packet."""


def ask(path: str, command: list[str], cwd: str, environment: dict[str, str], files: list[int]) -> socket.socket:
    """Ask the server at `path` for a fork with these three files as its standard input, output and error.

    Returns the connection: it brings the fork's pid, then its exit code (negative: the signal), each as a packet.
    Closing it earlier kills the fork.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    request = json.dumps({"command": command, "cwd": cwd, "environment": environment}).encode()
    if len(request) > LONGEST:
        raise ValueError(f"an environment of {len(request)} bytes is too much")
    socket.send_fds(connection, [request], files)
    return connection


def main() -> int:
    """The command. Ends as the fork does."""
    connection = ask(sys.argv[1], sys.argv[2:], os.curdir, dict(os.environ), [0, 1, 2])
    # The fork's reader must see the end of its input as soon as the other end is closed, and so must its writer.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    connection.recv(100)
    code = int(connection.recv(100) or b"70")
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(main())
