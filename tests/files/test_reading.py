"""Files are read in a process of their own, whatever is in them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import sys
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.files import confinement, conversion, kinds
from adapters.files.reader import CHILD, MOST_CHILDREN, MOST_MISSING, ChildFileReader, ReadingLimits
from bot.files import FileText, FileUnreadable
from tests.support.containers import xls
from tests.support.cpu import hold_to, without_collections
from tests.support.files import (
    HandedOver,
    archive,
    docx,
    hostile_files,
    laughs,
    ordinary_files,
    pdf,
    unreadable_files,
    xlsx,
)


@pytest.mark.parametrize("file", [*ordinary_files(), *unreadable_files()], ids=lambda file: file.name)
async def test_what_can_be_read_is_read_and_of_the_rest_is_said_why_not(file: HandedOver) -> None:
    read = await ChildFileReader().read(file.name, "", file.content)
    if file.refused and isinstance(read, FileText):  # a PDF without words, which only who keeps it can tell
        assert not read.text.strip()
    elif file.refused:
        assert isinstance(read, FileUnreadable) and file.refused in read.reason, read
    else:
        assert isinstance(read, FileText), read
        assert file.holds in read.text


@pytest.mark.parametrize("file", hostile_files(), ids=lambda file: file.name)
def test_what_stands_where_people_do_not_look_is_read_too(file: HandedOver, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: that each kind can be read in one that may do nothing else is tried above."""
    monkeypatch.setattr(conversion, "SECONDS", float("inf"))  # this process has used up more already
    monkeypatch.setattr(conversion, "CAREFUL_SECONDS", float("inf"))
    read = conversion.reader_for(file.name, "", file.content)()
    assert file.holds in read.replace("\u200b", "⟨U+200B⟩")


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


HTML_MAIL = b"""From: a@example.com
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html; charset=x-nobody-knows

<style>p {}</style><p>At <b>noon</b>?</p>
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="menu.pdf"

x
--b--
"""


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("german.csv", "Name;Betrag\r\nMüller;1,50\r\n".encode("cp1252"), "| Müller | 1,50 |"),
        ("tabs.tsv", b"a\tb\n1\t2|3\n", "| 1 | 2\\|3 |"),
        ("a.kt", b"fun main() = println(1)\n", "fun main()"),  # an ending that nobody has listed
        ("page", b"\n<!DOCTYPE html><title>t</title><p>words", "words"),
        ("about.py", b"start = b'%PDF-1.4 begins a PDF'", "begins a PDF"),
        ("mail.eml", HTML_MAIL, "**Subject:** Grüße\n\nAt **noon**?\n\nAttached, not opened:\n- menu.pdf"),
        ("deep.html", b"<div>" * 20_000 + b"the bottom", "the bottom"),
        ("wrong ending.xlsx", xls([["kept", 1.0]]), "| kept | 1 |"),
        ("wrong ending.txt", docx("kept"), "kept"),
        ("gaps.xlsx", xlsx(["a", None, "c"], [None, None, True]), "| a |  | c |\n| --- | --- | --- |\n|  |  | TRUE |"),
        ("hidden.xlsx", xlsx(["a"], comment="unseen"), "## hidden (a hidden sheet)\n\n| unseen |"),
    ],
    ids=lambda given: given if isinstance(given, str) and "." in given[-5:] else "",
)
async def test_kinds_are_told_by_what_is_in_them_and_read_as_they_are(name: str, content: bytes, text: str) -> None:
    read = await ChildFileReader().read(name, "application/octet-stream", content)
    assert isinstance(read, FileText) and text in read.text, read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.rtf", b"{\\rtf1 hello}"),
        ("a.bin", bytes(range(256))),
        ("a.docx", b"not an archive"),
        ("a.pdf", b"nor a PDF"),
    ],
)
async def test_what_is_no_text_is_not_shown_as_text(name: str, content: bytes) -> None:
    assert isinstance(await ChildFileReader().read(name, "text/plain", content), FileUnreadable)


async def test_of_a_pdf_that_takes_too_long_the_words_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "CAREFUL_SECONDS", 0.0)
    monkeypatch.setattr(conversion, "SECONDS", float("inf"))  # this process has used up more already
    words = conversion.reader_for("a.pdf", "", pdf(["one", "two"]))
    assert words() == "<!-- page 1 -->\n\none\n\n<!-- page 2 -->\n\ntwo"
    monkeypatch.setattr(conversion, "SECONDS", 0.0)
    assert words() == "<!-- page 1 -->\n\n(Pages 1 to 2 were not read: that takes too long.)"


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
import sys; sys.path.insert(0, {str(CHILD.parents[2])!r})
import socket, subprocess
from adapters.files import confinement
sys.path.pop(0)
confinement.by_the_kernel({{"memory": 1_000_000_000, "cpu_seconds": 5, "seconds": 30}})
confinement.by_python()
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


AS_NATIVE_CODE = {
    "calls": {
        "a socket": "libc.socket(2, 1, 0)",
        "another program": "libc.execve(b'/bin/true', None, None)",
        "another process": "libc.fork()",
        "a signal": "libc.kill(os.getppid(), 0)",
        "a file to write": "libc.open(b'written', os.O_WRONLY | os.O_CREAT, 0o600)",
        "another name": "libc.rename(b'a', b'b')",
        "a group of its own": "libc.setsid()",
        "more memory": "libc.setrlimit(9, ctypes.create_string_buffer(16))",
        "a namespace": "libc.unshare(0x10000000)",
        "another processor for our process": "libc.sched_setaffinity(os.getppid(), 8, b'\\1'.ljust(8, b'\\0'))",
        "the last turn for our process": "libc.sched_setscheduler(os.getppid(), 5, ctypes.create_string_buffer(8))",
        "a life after ours": "libc.prctl(1, 0, 0, 0, 0)",
        "a call younger than the filter": "libc.syscall(463, -100, b'here', 0, b'user.x', None, 0)",
    },
    "files": {
        "a file of ours": "libc.open(README, os.O_RDONLY)",
        "our environment": "libc.open(b'/proc/%d/environ' % os.getppid(), os.O_RDONLY)",
        "its own environment": "libc.open(b'/proc/self/environ', os.O_RDONLY)",
    },
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has seccomp and Landlock")
async def test_native_code_that_a_file_takes_over_can_do_nothing_either() -> None:
    """Around Python, as the code of a library would. What this kernel does not have is not asked of it."""
    readme = bytes(CHILD.parents[2] / "README.md")
    attempts = {name: f"({held!r}, {call!r})" for held, calls in AS_NATIVE_CODE.items() for name, call in calls.items()}
    program = f"""
import sys; sys.path.insert(0, {str(CHILD.parents[2])!r})
import ctypes, json, os
from adapters.files import confinement
sys.path.pop(0)
libc = ctypes.CDLL(None)
README = {readme!r}
assert libc.open(README, os.O_RDONLY) > 0
held = confinement.by_the_kernel({{"memory": 1_000_000_000, "cpu_seconds": 5, "seconds": 30}})
confinement.by_python()
attempts = {{{", ".join(f"{name!r}: {attempt}" for name, attempt in attempts.items())}}}
done = [name for name, (by, call) in attempts.items() if by in held and eval(call) != -1]
print(json.dumps([held, done]))
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    held, done = json.loads(said)
    assert done == []
    if missing := {"calls", "files"}.difference(held):
        pytest.skip(f"this kernel has nothing to hold {missing} with")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these")
async def test_what_this_machine_cannot_be_held_by_is_left_out_and_files_are_read() -> None:
    """One that ends whoever asks for it, one that keeps a process from its libraries, and one that is not there."""
    program = f"""
import sys; sys.path.insert(0, {str(CHILD.parents[2])!r})
import os, signal
from adapters.files import confinement
def ends_it(): os.kill(os.getpid(), signal.SIGKILL)
def keeps_it_from_libraries():
    sys.modules["zlib"] = None
    return True
print(confinement._held({{
    "a": ends_it, "b": keeps_it_from_libraries, "c": lambda: False, "d": lambda: True
}}))
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert said.decode().strip() == "['d']"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_of_system_calls_ends_at_an_answer(machine: str) -> None:
    steps = list(struct.iter_unpack("=HBBI", confinement.calls_filter(machine)))
    assert steps[-1][0] == confinement._ANSWER
    for at, (code, when, otherwise, _operand) in enumerate(steps):
        assert at + 1 + max(when, otherwise) < len(steps) or code == confinement._ANSWER
    assert confinement.calls_filter("another") == b""


async def test_two_files_are_read_at_a_time_and_meanwhile_everything_else_goes_on() -> None:
    reader, most, longest = ChildFileReader(), 0, 0.0
    large = b"words \xe2\x80\x8b and more\n" * 800_000
    reading = asyncio.gather(
        *(reader.read("a.pdf", "", pdf(["x"] * 20)) for _ in range(4)), reader.read("a.txt", "", large)
    )
    with without_collections():
        while not reading.done():
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)
            most = max(most, len(children()))
    assert all(isinstance(each, FileText) for each in await reading)
    assert most == MOST_CHILDREN
    hold_to(0.05, longest)


def children() -> list[psutil.Process]:
    """The processes that read files for this one."""
    found = []
    for each in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            found += [each] if str(CHILD) in " ".join(each.cmdline()) else []
    return found


async def test_the_process_knows_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENCRYPTION_KEY", "a secret of ours")
    reading = asyncio.create_task(ChildFileReader().read("a.pdf", "", pdf(["x"] * 50)))
    while not (started := children()):
        await asyncio.sleep(0)
    environment = started[0].environ()
    await reading
    assert "ENCRYPTION_KEY" not in environment


async def test_who_takes_too_long_is_killed_and_nothing_is_left() -> None:
    endless = archive(**{"word/document.xml": b"x"})
    read = await ChildFileReader(ReadingLimits(seconds=0.05)).read("a.docx", "", endless)
    assert read == FileUnreadable("reading it takes too long")
    reading = asyncio.create_task(ChildFileReader().read("a.pdf", "", pdf(["x"] * 200)))
    while not (started := children()):
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in started)


async def test_memory_and_computing_are_limited_by_the_kernel() -> None:
    content = docx("word " * 100_000)
    assert isinstance(await ChildFileReader().read("a.docx", "", content), FileText)
    hungry = ReadingLimits(memory=60_000_000)
    assert isinstance(await ChildFileReader(hungry).read("a.docx", "", content), FileUnreadable)
    slow = ReadingLimits(cpu_seconds=1, seconds=300)
    async with asyncio.timeout(100):  # nothing else ends it before
        read = await ChildFileReader(slow).read("a.html", "", b"<a" * 1_000_000)
    assert read == FileUnreadable("reading it takes too long")


async def test_xml_that_grows_without_end_ends() -> None:
    assert isinstance(await ChildFileReader().read("a.xml", "", laughs()), FileText)  # as text, nothing is expanded


@given(st.binary(max_size=300), st.sampled_from(["pdf", "docx", "csv", "eml", "html", "txt", "xls", "", "???"]))
def test_no_content_makes_the_kind_of_a_file_fail(content: bytes, ending: str) -> None:
    for start in (b"", b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        kind, refusal = kinds.kind_of(start + content, f"a.{ending}", "")
        assert (kind is None) != (refusal is None)
    assert isinstance(conversion._decoded(content), str)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"[" * 1_000_000, b"[" * 4_000 + b"\n", b'{"missing": -1}\nx', b'{"missing": 1e9}\nx', b'{"held": 5}\nx'),
        *(b'{"missing": ' + b"9" * 4_000 + b"}\nx", b'{"reason": []}\nx', b'{"held": [[]], "reason": {"a": 1}}\nx'),
        *(b"", b"{", b"[]\n", b'"x"\n', b'{"missing": "many"}\nx', b'{"reason": 5}\n', b"\xff"),
    ],
)
def test_whatever_the_process_answers_is_an_outcome(answer: bytes) -> None:
    read = ChildFileReader()._read_answer(answer, 0)
    assert isinstance(read, FileText | FileUnreadable)
    assert not isinstance(read, FileText) or 0 <= read.missing <= MOST_MISSING
    json.dumps([getattr(read, "text", ""), getattr(read, "reason", "")])
