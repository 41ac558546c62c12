"""What forks a child of this process for each request: see `quick_python`.

A fork copies only the thread that forks, so the process must have no other thread and no event loop.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
from types import ModuleType
from typing import Any, NoReturn

from tests.support.quick_python import LONGEST

Children = dict[int, socket.socket]
"""Who wants to know of its end, by pid."""


def fork_until_input_ends(path: str) -> None:
    """Listen on a socket at `path`, and fork what this process is until standard input ends."""
    threads = threading.enumerate()
    if len(threads) != 1:
        raise RuntimeError(f"a fork would lose these threads: {threads}")
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen(64)
        children: Children = {}
        try:
            serve(listening, children)
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)


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
    found: list[tuple[int, int]] = []
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
    """Run a program, (`-m`) a module or (`-u -c`) a text, as Python does. Returns its exit code."""
    try:
        if command[:2] == ["-u", "-c"]:
            sys.argv = command[1:2] + command[3:]
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(command[2], main.__dict__)
        elif command[0] == "-m":
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
