"""Rule 13: whoever reads the log, or does not, holds up nobody."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHATTY = """
import asyncio, logging, sys
from bot.logs import WrittenByThread

log = logging.getLogger()
log.setLevel("INFO")
log.addHandler(WrittenByThread(sys.stderr, lambda count: f"{count} lines were dropped"))

async def main():
    for number in range(30_000):
        log.info("line %s", number)
    print("went on", flush=True)
    sys.stdin.readline()
    log.info("once more")

asyncio.run(main())
"""


def process(code: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)


MISTAKEN = """
import logging
from bot.logs import configure_logs

configure_logs(form="json")
logging.getLogger("library").warning("%d of them", "ghp_" + 9 * "A1b2")
logging.getLogger("library").warning("and on")
"""


@pytest.mark.imports
async def test_a_log_that_nobody_reads_holds_up_nobody_and_says_later_how_much_was_dropped() -> None:
    """Over a pipe, which takes 64 kB; these are 300 kB."""
    chatty = process(CHATTY)
    assert chatty.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(chatty.stdout.readline) == b"went on\n"
            _, read = await asyncio.to_thread(chatty.communicate, b"\n")
    finally:
        chatty.kill()
    assert chatty.returncode == 0
    lines = read.decode().splitlines()
    numbers = [int(line.split()[1]) for line in lines if line.startswith("line ")]
    dropped = sum(int(line.split()[0]) for line in lines if line.endswith("lines were dropped"))
    assert numbers == sorted(numbers)
    assert len(numbers) + dropped + lines.count("once more") == 30_001
    assert dropped > 0


@pytest.mark.imports
async def test_a_line_that_a_library_gets_wrong_is_told_by_its_place_and_not_printed_as_it_is() -> None:
    _, read = await asyncio.to_thread(process(MISTAKEN).communicate)
    first, second = [json.loads(line) for line in read.decode().splitlines()]
    assert "a line could not be written (TypeError)" in first["message"]
    assert (first["logger"], second["message"]) == ("library", "and on")
    assert "A1b2" not in read.decode()


@pytest.mark.waits
async def test_a_process_whose_log_nobody_reads_ends_all_the_same() -> None:
    chatty = process(CHATTY.replace("sys.stdin.readline()", "pass"))
    try:
        assert await asyncio.to_thread(chatty.wait, 30) == 0
    finally:
        chatty.kill()
        chatty.communicate()


@pytest.mark.imports
def test_what_ends_the_process_is_told_and_what_was_logged_before() -> None:
    crashing = process(
        "from bot.logs import configure_logs\nimport structlog\nconfigure_logs(form='json')\n"
        "structlog.get_logger('here').error('before')\nraise ValueError('the end')"
    )
    _, read = crashing.communicate()
    assert crashing.returncode == 1
    assert b'"before"' in read
    assert b"ValueError: " in read
    assert b"the end" in read  # Python writes its words one by one, and a line of the log may come in between


@pytest.mark.imports
def test_lines_from_before_a_signal_that_is_handled_are_written() -> None:
    code = (
        "import signal, sys, structlog\nfrom bot.logs import configure_logs\nconfigure_logs(form='json')\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "structlog.get_logger('here').info('up'); print('up', flush=True)\n"
        "while True: signal.sigtimedwait([], 0.1)"  # a signal just before a wait without end would wake nobody
    )
    ending = process(code)
    assert ending.stdout is not None
    ending.stdout.readline()
    os.kill(ending.pid, signal.SIGTERM)
    _, read = ending.communicate()
    assert json.loads(read)["message"] == "up"
