"""What a process that reads a file is kept from. Run in the child process alone; imports nothing of the product.

The kernel holds it by limits of memory, time and what is written (everywhere), and on Linux by leaving the network,
by refusing system calls (seccomp), and by refusing files (Landlock). That holds for the native code of libraries, too.
Above that Python's audit hooks refuse the same, which is all there is elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

CLONE_NEWUSER, CLONE_NEWNET, CLONE_THREAD = 0x10000000, 0x40000000, 0x00010000
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 1, 22, 38, 2
SECONDS_AFTER = 5
"""So much later than its parent would the kernel end it, should there be no parent any more."""
LIBRARIES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/nix/store", "/gnu/store"),
)
"""Where the libraries are that Python's packages are linked with, beside Python's own folder."""


def by_the_kernel(limits: dict[str, Any]) -> list[str]:
    """Limit and confine this process, before it is given anything. It may still import.

    Args:
        limits: `memory` (bytes of address space), `cpu_seconds`, `seconds`.

    Returns:
        By what the kernel holds it: "network", "calls", "files".
    """
    with contextlib.suppress(OSError):  # where memory is short, this process is ended, and not one that matters
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    signal.setitimer(signal.ITIMER_REAL, limits["seconds"] + SECONDS_AFTER)
    for what, most, at_last in (
        (resource.RLIMIT_AS, limits["memory"], 0),
        (resource.RLIMIT_CPU, limits["cpu_seconds"], SECONDS_AFTER),  # else it dies without the reason (SIGXCPU)
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS knows no RLIMIT_AS
            resource.setrlimit(what, (most, most + at_last))
    libc = _libc()
    if libc is None:
        return []
    _prctl(libc, PR_SET_PDEATHSIG, signal.SIGKILL)
    if not _prctl(libc, PR_SET_NO_NEW_PRIVS, 1):
        return []
    paths = (*roots(), *LIBRARIES, *(str(Path(each, "lib")) for each in (sys.prefix, sys.base_prefix)))
    return _held(  # before anything starts threads
        {
            "network": lambda: bool(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0),
            "files": lambda: _only_files_below(libc, paths),
            "calls": lambda: _without_calls(libc),
        }
    )


def _held(holds: Mapping[str, Callable[[], bool]]) -> list[str]:
    """Which of these hold this process now. A copy of it tries them first: where the system calls that they take end a
    process (systemd's `SystemCallFilter`), where those are translated for another machine, or where they keep it from
    its libraries, files are read without them."""
    good = holds if _can_live_with(holds.values()) else {}
    if not good:
        good = {name: hold for name, hold in holds.items() if _can_live_with([hold])}
    return [name for name, hold in good.items() if hold()]


def _can_live_with(holds: Iterable[Callable[[], bool]]) -> bool:
    try:
        copy = os.fork()
    except OSError:  # there is no room for one
        return True
    if copy == 0:
        outcome = 1
        try:
            for hold in holds:
                hold()
            importlib.import_module("zlib")  # of a library of the system, as others are
            outcome = 0
        finally:
            os._exit(outcome)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0


def _libc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _prctl(libc: Any, option: int, *arguments: int) -> bool:
    given = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    return bool(libc.prctl(option, *given) == 0)


def roots() -> list[str]:
    """The folders of Python and its packages."""
    return [os.path.realpath(each) for each in sys.path if each and Path(each).exists()]


# ------------------------------------------------------------------------------------------------- Landlock

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILES_BY_VERSION = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many kinds of access to files each version of Landlock knows: the lowest so many bits."""
_CONNECT_AND_BIND, _SIGNALS_AND_SOCKETS = 3, 3


def _only_files_below(libc: Any, paths: Iterable[str]) -> bool:
    """Whether Landlock lets only files below some folders be read, and none be written, from now on. It keeps the
    process from looking into others (`/proc/…/environ`), too. See landlock(7)."""
    version = libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
    files = (1 << max(bits for since, bits in _FILES_BY_VERSION.items() if since <= version)) - 1
    handled = struct.pack("=Q", files)
    if version >= 4:
        handled += struct.pack("=Q", _CONNECT_AND_BIND)
    if version >= 6:
        handled += struct.pack("=Q", _SIGNALS_AND_SOCKETS)
    rules = libc.syscall(LANDLOCK_CREATE, handled, ctypes.c_size_t(len(handled)), ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        for path in paths:
            with contextlib.suppress(OSError):  # not on every system is there all of them
                _allow_reading(libc, rules, path)
        return bool(libc.syscall(LANDLOCK_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0)) == 0)
    finally:
        os.close(rules)


def _allow_reading(libc: Any, rules: int, path: str) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        access = _READ_FILE | (_READ_DIR if Path(path).is_dir() else 0)
        rule = struct.pack("=Qi", access, folder)
        libc.syscall(LANDLOCK_ADD, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(folder)


# -------------------------------------------------------------------------------------------------- seccomp

_X86, _ARM = 0xC000003E, 0xC00000B7
_MACHINES: Final = {"x86_64": (_X86, 0), "aarch64": (_ARM, 1)}
"""What seccomp calls a machine, and the column of its numbers."""
OPEN, OPENAT, CLONE, PRLIMIT = (2, -1), (257, 56), (56, 220), (302, 261)
NOT_THERE: Final = ((435, 435), (437, 437))
"""clone3 and openat2: their arguments cannot be looked at, and what needs them does without where they do not exist."""
DENIED: Final = (
    # sockets
    *((41, 198), (42, 203), (43, 202), (44, 206), (46, 211), (49, 200), (50, 201), (53, 199), (288, 242), (307, 269)),
    # other programs, other processes, and to leave the group in which this one is ended
    *((57, -1), (58, -1), (59, 221), (322, 281), (62, 129), (101, 117), (129, 138), (200, 130), (234, 131)),
    *((297, 240), (310, 270), (311, 271), (424, 424), (434, 434), (438, 438), (109, 154), (112, 157), (141, 140)),
    # other rights, other limits, and what undoes this
    *((160, 164), (165, 40), (166, 39), (155, 41), (161, 51), (272, 97), (308, 268), (321, 280), (298, 241)),
    *((323, 282), (248, 217), (249, 218), (250, 219), (304, 265), (425, 425), (426, 426), (427, 427), (319, 279)),
    # when and where other processes run, and where their memory is
    *((142, 118), (144, 119), (203, 122), (314, 274), (251, 30), (256, 238), (279, 239), (440, 440), (448, 448)),
    # what is the machine's: its clock, its names, its modules, its end
    *((164, 170), (227, 112), (305, 266), (159, 171), (170, 161), (171, 162), (175, 105), (313, 273), (176, 106)),
    *((246, 104), (320, 294), (169, 142), (167, 224), (168, 225), (163, 89), (172, -1), (173, -1)),
    # to outlive its parent (prctl)
    (157, 167),
    # memory and queues that others share
    *((29, 194), (30, 196), (64, 190), (68, 186), (240, 180)),
    # changes to files
    *((82, -1), (83, -1), (84, -1), (85, -1), (86, -1), (87, -1), (88, -1), (90, -1), (92, -1), (94, -1), (132, -1)),
    *((133, -1), (235, -1), (261, -1), (76, 45), (91, 52), (93, 55), (188, 5), (189, 6), (190, 7), (197, 14)),
    *((198, 15), (199, 16), (258, 34), (259, 33), (260, 54), (263, 35), (264, 38), (265, 37), (266, 36), (268, 53)),
    *((280, 88), (316, 276)),
)
"""System calls that reading a file needs none of: their numbers on x86-64 and on ARM (linux/arch/…/syscalls)."""
FIRST_UNKNOWN: Final = 452
"""From here on calls are younger than these lists, and numbered alike everywhere. They do not exist, either: what knows
them does without on older kernels."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_LOAD, _EQUAL, _SET, _AT_LEAST, _ANSWER = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_OTHER_TABLE = 0x40000000
"""x86-64 numbers its calls a second time from here."""


def calls_filter(machine: str) -> bytes:
    """The program by which the kernel refuses system calls (seccomp(2), `struct sock_filter`); empty: none is known
    for such a machine."""
    if machine not in _MACHINES:
        return b""
    name, column = _MACHINES[machine]
    program: list[bytes] = []

    def step(code: int, operand: int, when: int = 0, otherwise: int = 0) -> None:
        program.append(struct.pack("=HBBI", code, when, otherwise, operand))

    def refuse(error: int = errno.EPERM) -> None:
        step(_ANSWER, _ERROR | error)

    def argument(number: int, half: int = 0) -> None:
        step(_LOAD, _ARGUMENTS + 8 * number + 4 * half)

    step(_LOAD, _MACHINE)
    step(_EQUAL, name, 1, 0)
    refuse()
    step(_LOAD, _NUMBER)
    step(_AT_LEAST, _OTHER_TABLE, 0, 1)
    refuse()
    step(_AT_LEAST, FIRST_UNKNOWN, 0, 1)
    refuse(errno.ENOSYS)
    for call in NOT_THERE:
        step(_EQUAL, call[column], 0, 1)
        refuse(errno.ENOSYS)
    for call in DENIED:
        if call[column] >= 0:
            step(_EQUAL, call[column], 0, 1)
            refuse()
    for call, flags in ((OPEN, 1), (OPENAT, 2)):  # to read alone
        if call[column] >= 0:
            step(_EQUAL, call[column], 0, 4)
            argument(flags)
            step(_SET, _WRITING, 0, 1)
            refuse()
            step(_ANSWER, _ALLOW)
    step(_EQUAL, CLONE[column], 0, 4)  # threads alone
    argument(0)
    step(_SET, CLONE_THREAD, 1, 0)
    refuse()
    step(_ANSWER, _ALLOW)
    step(_EQUAL, PRLIMIT[column], 0, 6)  # to ask alone
    argument(2)
    step(_EQUAL, 0, 0, 2)
    argument(2, 1)
    step(_EQUAL, 0, 1, 0)
    refuse()
    step(_ANSWER, _ALLOW)
    step(_ANSWER, _ALLOW)
    return b"".join(program)


def _without_calls(libc: Any) -> bool:
    """Whether the kernel refuses the system calls that this process does not need, from now on."""
    program = calls_filter(platform.machine())
    if not program or struct.calcsize("P") != 8:
        return False
    kept = ctypes.create_string_buffer(program, len(program))
    given = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(kept)))
    return _prctl(libc, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(given))


# --------------------------------------------------------------------------------------------- audit hooks


def by_python() -> None:
    """From now on Python itself refuses all but computing: all that is needed has been imported."""
    below = tuple(each + os.sep for each in roots())

    def refuse(what: str) -> NoReturn:
        raise PermissionError(f"{what} is not for whoever reads files")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & _WRITING
            )
            if writes or not (isinstance(path, str) and os.path.realpath(path).startswith(below)):
                refuse(event)
        elif event.partition(".")[0] in FORBIDDEN or event in FORBIDDEN:
            refuse(event)

    sys.addaudithook(watch)


FORBIDDEN = frozenset(
    (
        *("socket", "subprocess", "pty", "shutil", "tempfile", "ftplib", "smtplib", "urllib", "http", "webbrowser"),
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill", "os.putenv"),
        *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
        *("os.chown", "os.utime", "os.setxattr", "os.removexattr", "os.killpg", "resource", "sqlite3", "ctypes.dlopen"),
    )
)
"""Audit events, or the beginnings of their names."""
