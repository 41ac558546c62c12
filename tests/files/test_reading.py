"""Files are read in a process of their own, whatever is in them."""

from __future__ import annotations

import asyncio
import json
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.files import child
from adapters.files.reader import CHILD, ChildFileReader, ReadingLimits
from bot.files import FileText, FileUnreadable
from tests.support.files import HandedOver, archive, docx, laughs, pdf, thirty_files


@pytest.mark.parametrize("file", thirty_files(), ids=lambda file: file.name)
async def test_what_can_be_read_is_read_and_of_the_rest_is_said_why_not(file: HandedOver) -> None:
    read = await ChildFileReader().read(file.name, "", file.content)
    if file.refused and isinstance(read, FileText):  # a PDF without words, which only who keeps it can tell
        assert not read.text.strip()
    elif file.refused:
        assert isinstance(read, FileUnreadable) and file.refused in read.reason, read
    else:
        assert isinstance(read, FileText), read
        seen = read.text if file.holds != "⟨U+200B⟩" else read.text.replace("\u200b", "⟨U+200B⟩")
        assert file.holds in seen


async def test_pages_are_numbered_and_what_is_too_long_is_counted() -> None:
    read = await ChildFileReader().read("a.pdf", "", pdf(["one", "two", "three"]))
    assert isinstance(read, FileText)
    assert [line for line in read.text.splitlines() if line] == [
        "<!-- page 1 -->",
        "one",
        "<!-- page 2 -->",
        "two",
        "<!-- page 3 -->",
        "three",
    ]
    read = await ChildFileReader(ReadingLimits(characters=10)).read("a.txt", "", b"0123456789abc")
    assert read == FileText("0123456789", 3)


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; socket.socket()",
        "import socket; socket.getaddrinfo('example.com', 80)",
        "open('/etc/passwd').read()",
        "open('here', 'w').write('x')",
        "import os; os.open('/tmp/x', os.O_WRONLY | os.O_CREAT)",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.remove('child.py')",
        "import ctypes; ctypes.CDLL(None)",
        "import sqlite3; sqlite3.connect('/etc/passwd')",
        "import os; os.killpg(os.getpgid(os.getppid()), 0)",
        "import os; os.utime(sys.executable)",
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)",
        "bytearray(3_000_000_000)",
    ],
)
async def test_whatever_breaks_out_of_what_reads_a_file_can_do_nothing(attempt: str) -> None:
    """The process is confined as for a file; then it does what a file would have it do."""
    program = f"""
import sys; sys.path.insert(0, {str(CHILD.parent)!r})
import child, socket, subprocess
child.without_network()
child.limit({{"memory": 1_000_000_000, "cpu_seconds": 5, "characters": 10}})
child.confine()
try:
    exec({attempt!r})
except (PermissionError, MemoryError) as error:
    print(type(error).__name__)
else:
    print("did it")
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert said.decode().strip() in {"PermissionError", "MemoryError"}, attempt


async def test_the_process_knows_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENCRYPTION_KEY", "a secret of ours")
    started: list[psutil.Process] = []
    reading = asyncio.create_task(ChildFileReader().read("a.pdf", "", pdf(["x"] * 50)))
    while not started:
        await asyncio.sleep(0)
        started = [each for each in psutil.Process().children() if str(CHILD) in " ".join(each.cmdline())]
    environment = started[0].environ()
    await reading
    assert "ENCRYPTION_KEY" not in environment


async def test_who_takes_too_long_is_killed_and_nothing_is_left() -> None:
    endless = archive(**{"word/document.xml": b"x"})
    read = await ChildFileReader(ReadingLimits(seconds=0.05)).read("a.docx", "", endless)
    assert read == FileUnreadable("reading it takes too long")
    reading = asyncio.create_task(ChildFileReader().read("a.pdf", "", pdf(["x"] * 200)))
    while not (children := [each for each in psutil.Process().children() if str(CHILD) in " ".join(each.cmdline())]):
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in children)


async def test_memory_and_computing_are_limited_by_the_kernel() -> None:
    hungry = ReadingLimits(memory=100_000_000)
    assert isinstance(await ChildFileReader(hungry).read("a.docx", "", docx("word " * 3_000_000)), FileUnreadable)
    slow = ReadingLimits(cpu_seconds=1)
    read = await ChildFileReader(slow).read("a.pdf", "", pdf(["word " * 50] * 3_000))
    assert isinstance(read, FileUnreadable), read


async def test_xml_that_grows_without_end_ends() -> None:
    assert isinstance(await ChildFileReader().read("a.xml", "", laughs()), FileText)  # as text, nothing is expanded


@given(st.binary(max_size=300), st.sampled_from(["pdf", "docx", "csv", "eml", "html", "txt", "xls", "", "???"]))
def test_no_content_makes_the_kind_of_a_file_fail(content: bytes, ending: str) -> None:
    for start in (b"", b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        assert isinstance(child._kind(start + content, ending, ""), str)
    assert isinstance(child._decoded(content), str)


@pytest.mark.parametrize(
    "answer", [b"", b"{", b"[]\n", b'"x"\n', b'{"missing": "many"}\nx', b'{"reason": 5}\n', b"\xff"]
)
def test_whatever_the_process_answers_is_an_outcome(answer: bytes) -> None:
    read = ChildFileReader()._read_answer(answer, 0)
    assert isinstance(read, FileText | FileUnreadable)
    json.dumps([getattr(read, "text", ""), getattr(read, "reason", "")])
