"""Reads each file in a child process (`adapters.files.child`), which ends whatever the file does to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from bot.files import LARGEST_FILE, LONGEST_TEXT, FileText, FileUnreadable, too_large
from translations import gettext as _

log = structlog.get_logger(__name__)
CHILD = Path(__file__).with_name("child.py")
MOST_CHILDREN = 2
"""Files that are read at a time; others wait."""
LARGEST_ANSWER = 4 * LONGEST_TEXT + 65_536
"""Bytes that a child may answer: each character takes four at most."""
LONGEST_HEAD = 4_096
"""Bytes before the text, which say what it is."""
MOST_MISSING = 2**31 - 1
"""Characters that are counted as missing; of more, so many."""
_HELD_BY = frozenset({"network", "files", "calls"})
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How much the reading of one file may take."""

    seconds: float = 30.0
    """Until the child is killed, its start included."""
    cpu_seconds: int = 25
    memory: int = 1024 * 1024 * 1024
    """Bytes of address space, of which Python and the libraries take 120 MB."""
    characters: int = LONGEST_TEXT


class ChildFileReader:
    """`bot.files.FileReader` with a child process for each file."""

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self._limits = limits or ReadingLimits()
        self._children = asyncio.Semaphore(MOST_CHILDREN)
        self._is_known = False

    async def read(self, name: str, media_type: str, content: bytes) -> FileText | FileUnreadable:
        """What is in a file."""
        if len(content) > LARGEST_FILE:
            return FileUnreadable(too_large())
        async with self._children:
            return await self._read(name, media_type, content)

    async def _read(self, name: str, media_type: str, content: bytes) -> FileText | FileUnreadable:
        given = {"name": name, "media_type": media_type, "limits": self._given_limits()}
        with tempfile.TemporaryDirectory(prefix="file-") as empty:
            try:
                child = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-I",
                    str(CHILD),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    env={"LC_ALL": "C.UTF-8"},
                    cwd=empty,
                    start_new_session=True,
                )
            except OSError as error:
                log.exception("file_reader_not_started", cause=str(error))
                return FileUnreadable(_("it can’t be read now"))
            try:
                async with asyncio.timeout(self._limits.seconds):
                    answer = await _asked(child, json.dumps(given).encode() + b"\n", content)
                    code = await child.wait()
            except TimeoutError:
                return FileUnreadable(_("reading it takes too long"))
            except OSError:  # it died while it was given the file
                answer, code = b"", -1
            finally:
                await _end(child)
        return self._read_answer(answer, code)

    def _given_limits(self) -> dict[str, float]:
        limits = self._limits
        return {
            "seconds": limits.seconds,
            "cpu_seconds": limits.cpu_seconds,
            "memory": limits.memory,
            "characters": limits.characters,
        }

    def _read_answer(self, answer: bytes | None, code: int) -> FileText | FileUnreadable:
        """What a child has said, who may say anything: what it read may have taken it over."""
        if answer is None:
            return FileUnreadable(_("there is too much in it"))
        end = answer.find(b"\n", 0, LONGEST_HEAD)
        try:
            said: Any = json.loads(answer[: max(end, 0)])
        except (ValueError, RecursionError):
            log.warning("file_reader_died", code=code)
            if code in {-signal.SIGXCPU, -signal.SIGALRM}:
                return FileUnreadable(_("reading it takes too long"))
            return FileUnreadable(_("there is too much in it, or it is damaged"))
        if not isinstance(said, dict):
            return FileUnreadable(_in_words("damaged"))
        self._say_what_holds_it(said.get("held"))
        if reason := said.get("reason"):
            return FileUnreadable(_in_words(reason))
        missing = said.get("missing")
        counted = min(max(missing, 0), MOST_MISSING) if type(missing) is int else 0
        return FileText(answer[end + 1 :].decode("utf-8", "replace"), counted)

    def _say_what_holds_it(self, held: object) -> None:
        """Log once where the kernel confines what reads files less than it could."""
        if self._is_known or not isinstance(held, list):
            return
        self._is_known = True
        lacking = _HELD_BY.difference(each for each in held if isinstance(each, str))
        if "calls" not in lacking:  # which keep it from the network, too
            lacking -= {"network"}
        if lacking:
            log.warning("file_reader_less_confined", lacking=sorted(lacking))


def _in_words(reason: Any) -> str:
    match reason:
        case "encrypted":
            return _("it is encrypted")
        case "unsupported":
            return _("this kind of file can’t be read")
        case "not_installed":
            return _("what reads this kind of file isn’t installed")
        case "too_much":
            return _("there is too much in it")
        case _:
            return _("it is damaged")


async def _asked(child: asyncio.subprocess.Process, head: bytes, content: bytes) -> bytes | None:
    """What a child answers; `None`: more than it may."""
    assert child.stdin is not None and child.stdout is not None  # noqa: S101  # as it was started
    given = asyncio.create_task(_give(child.stdin, head, content))
    try:
        answer = bytearray()
        while chunk := await child.stdout.read(_CHUNK):
            answer += chunk
            if len(answer) > LARGEST_ANSWER:
                return None
        return bytes(answer)
    finally:
        given.cancel()
        await asyncio.gather(given, return_exceptions=True)


async def _give(stdin: asyncio.StreamWriter, head: bytes, content: bytes) -> None:
    with contextlib.suppress(OSError):  # a child that has ended says so by its answer
        stdin.write(head)
        for start in range(0, len(content), _CHUNK):
            stdin.write(content[start : start + _CHUNK])
            await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _end(child: asyncio.subprocess.Process) -> None:
    """Kill it with everything that it may have started, and wait until it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    await asyncio.shield(child.wait())
