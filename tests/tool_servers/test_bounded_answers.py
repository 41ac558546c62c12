"""Rule 13: what a tool server sends is counted before it is read, and broken off; then the outcome is unknown, and that
call alone is concerned."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers import connection, http_client
from adapters.tool_servers.connection import SHORT_ANSWER
from adapters.tool_servers.http_client import (
    FIRST_PAUSE,
    LONGEST_RECONNECT_PAUSE_SECONDS,
    MOST_RESUMPTIONS,
    SETTLED,
    Endpoint,
    McpHttpClient,
    ReconnectPauses,
)
from adapters.tool_servers.incoming import (
    LARGEST_MESSAGE,
    BoundedEvents,
    Intake,
    Messages,
    Signals,
    Substitutes,
    TooLarge,
    Weight,
    as_event,
    elicitation_in,
)
from adapters.tool_servers.outcomes import LONGEST_WHOLE, MOST_PARTS, outcome_of_result
from adapters.tool_servers.sessions import RelistPauses, Timings
from graph.ports import OutcomeUnknown, Succeeded, ToolOutcome
from tests.support.examples import examples
from tests.support.raw_http import turns_of_others

from .conftest import QUICK, bare_server, call, lines, outcome_of, running, until, until_found
from .http_odd import odd_http

URL = "http://tools.example/mcp"


# ------------------------------------------------------------------------------------------------------ whole sessions


@pytest.mark.parametrize(
    "tool",
    ["endless", "endless_event", "dense", "compressed", "elsewhere", "in_circles", "headers", "cookies"],
)
async def test_an_answer_that_cannot_be_read_is_the_fault_of_that_call_alone(tmp_path: Path, tool: str) -> None:
    """Rule 13, and rule 4: whether it was done is unknown. The session goes on, with the calls that are open on it."""
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        other = asyncio.create_task(call(servers, "odd__hang"))
        while odd.calls != ["hang"]:
            await asyncio.sleep(0)
        broken = await call(servers, f"odd__{tool}")
        odd.hanging.set()
        assert isinstance(broken, OutcomeUnknown), broken
        assert await other == Succeeded("hang done", "")
        assert await call(servers, "odd__echo") == Succeeded("echo done", "")
        assert len(odd.sessions) == 1
        assert odd.written < 4 * LARGEST_MESSAGE  # what the kernel buffers included


async def test_many_parts_are_counted(tmp_path: Path) -> None:
    """Rule 13."""
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}, result_limit=1_000_000) as servers:
        outcome = await call(servers, "odd__parts")
    assert isinstance(outcome, Succeeded)
    assert outcome.text.endswith(f"a\n[… and {5_000 - MOST_PARTS:,} more parts]")


@pytest.mark.parametrize("where", ["first", "last"])
async def test_a_programs_large_answer_is_the_fault_of_that_call_alone(tmp_path: Path, where: str) -> None:
    """Rule 13, and rule 4: whether it was done is unknown."""
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        other = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: lines(tmp_path / "calls") == ["hang"], "the other call")
        broken = await call(servers, "odd__large", id=where)
        assert isinstance(broken, OutcomeUnknown), broken
        assert "larger than can be read" in broken.text
        assert await call(servers, "odd__echo", text="still there") == Succeeded("still there", "")
        assert len(lines(tmp_path / "starts")) == 1
        other.cancel()


async def test_a_program_that_tells_of_other_tools_thousands_of_times_delays_no_answer(tmp_path: Path) -> None:
    """Each counted as a message of 10,000 bytes, and the answer behind them was read half a minute later."""
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        async with asyncio.timeout(15):
            assert await call(servers, "odd__echo", changes=5_000) == Succeeded("changed", "")


@pytest.mark.parametrize("levels", [180, 181, 202, 902])
async def test_a_programs_deep_answer_ends_its_call_at_once(tmp_path: Path, levels: int) -> None:
    """Rule 4: the SDK drops what nests as deeply, and the call waited until its time was up."""
    deep = '{"a":' * (levels - 2) + "1" + "}" * (levels - 2)
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        result = json.dumps({"content": []})[:-1] + f', "structuredContent": {deep}}}'
        outcome = await call(servers, "odd__echo", result=result)
        if levels == 180:
            assert isinstance(outcome, Succeeded), outcome
        else:
            assert isinstance(outcome, OutcomeUnknown) and "nests deeper" in outcome.text, outcome
        assert await call(servers, "odd__echo", text="still there") == Succeeded("still there", "")


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("result", "in_the_loop"),
    [
        (said("x" * 10), True),
        ({**said('{"a": 1}'), "structuredContent": {"a": 1}}, True),
        (said("x" * 2 * SHORT_ANSWER), False),
        ({"content": [{}] * 900}, False),
        ({"content": [None] * 900}, False),
        ({"content": [], "structuredContent": {"a": [10**4_000] * 10}}, False),
        ({"content": [], "structuredContent": {"a": -(10**4_000)}}, False),
    ],
    ids=["a word", "a value", "long", "many blocks", "many that are no blocks", "many digits", "a negative number"],
)
async def test_only_a_short_answer_is_read_in_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], *, in_the_loop: bool
) -> None:
    """Rule 13. 10 integers of 4,000 digits take 2 ms to be written in a text, 900 empty blocks 50 ms."""
    read_here: list[bool] = []

    def noting(*about: Any) -> ToolOutcome:
        read_here.append(threading.current_thread() is threading.main_thread())
        return outcome_of_result(*about)

    monkeypatch.setattr(connection, "outcome_of_result", noting)
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        assert isinstance(await call(servers, "odd__echo", result=json.dumps(result)), Succeeded)
    assert read_here == [in_the_loop]


async def test_a_program_that_does_not_end_its_message_is_given_up_and_started_again(tmp_path: Path) -> None:
    """Rule 13: a line without an end was gathered for as long as there was memory."""
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        broken = await call(servers, "odd__endless")
        assert isinstance(broken, OutcomeUnknown), broken
        assert await call(servers, "odd__echo", text="again") == Succeeded("again", "")
        assert len(lines(tmp_path / "starts")) == 2


def lines_of(*written: bytes) -> list[bytes | TooLarge]:
    read = Messages()
    return [line for piece in written for line in read.feed(piece)]


def test_lines_are_told_however_they_are_cut() -> None:
    assert lines_of(b'{"a"', b": 1}\n\n{", b"}\n") == [b'{"a": 1}', b"{}"]


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":"%s"}}', 7),
        (b'{"id": 7, "result": {"id": 9, "a": "%s"}}', 7),
        (b'{"result":{"id":9,"a":"%s"},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":{"id":9,"a":"%s"},"id":7,"jsonrpc":"2.0"}', 7),
        (b'{"result":{"a":"%s","id":9}}', None),
        (b'{"result":{"id":9,"a":"%s"}}', None),
        (b'["id", 7, "%s"]', None),
    ],
)
def test_a_line_that_is_too_large_tells_whose_answer_it_is(line: bytes, request_id: int | None) -> None:
    """Only outermost members count, not what a tool may have written into its result."""
    large = line.replace(b"%s", b"a" * LARGEST_MESSAGE)
    assert lines_of(large[:100], large[100:] + b"\n{}\n") == [TooLarge(request_id), b"{}"]


def test_nothing_of_a_line_that_is_too_large_is_kept() -> None:
    """Rule 13."""
    read = Messages()
    tracemalloc.start()
    try:
        for _ in range(2_000):
            assert read.feed(b"a" * 16_384) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * LARGEST_MESSAGE
    assert read.skipping
    while not read.endless:
        read.feed(b"a" * 1_000_000)


# ---------------------------------------------------------------------------------------------------------- one client


def endpoint(**more: Any) -> Endpoint:
    signals = Signals(lost=lambda _: None, tools_changed=lambda: None, asked=lambda _: None, completed=lambda _: None)
    about: dict[str, Any] = {"silence": 5.0, "patience": 5.0, "signals": signals, "faults": {}}
    return Endpoint(url=URL, **(about | more))


class Sent(httpx.AsyncByteStream):
    """A body that comes in pieces, and counts what was taken of it."""

    def __init__(self, *pieces: bytes, times: int = 1) -> None:
        self._pieces = pieces
        self._times = times
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._times):
            for piece in self._pieces:
                self.taken += len(piece)
                yield piece


def client_of(answer: Any) -> McpHttpClient:
    return McpHttpClient(endpoint(), transport=httpx.MockTransport(answer))


async def sent(client: McpHttpClient, method: str = "POST", **more: Any) -> httpx.Response:
    body = {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}} if method == "POST" else {}
    return await client.send(client.build_request(method, URL, **body, **more), stream=True)


async def test_no_more_of_a_body_is_kept_than_is_read() -> None:
    """Rule 13: a gigabyte is offered."""
    body = Sent(b"a" * 65_536, times=16_384)
    tracemalloc.start()
    try:
        response = await sent(client_of(lambda _: httpx.Response(200, headers=JSON, stream=body)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body.taken <= LARGEST_MESSAGE + 65_536
    assert peak < 3 * LARGEST_MESSAGE
    assert "larger than" in (await response.aread()).decode()


JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("status", [200, 404, 307])
async def test_a_body_that_nobody_needs_is_not_read(method: str, status: int) -> None:
    """Rule 13: the SDK reads what a redirect, or the answer to its leave, carries to the end."""
    body = Sent(b"a" * 65_536, times=1_000_000)
    headers = {"Content-Type": "text/plain", "Location": "/other"}
    client = client_of(lambda _: httpx.Response(status, headers=headers, stream=body))
    response = await sent(client, method)
    assert await response.aread() == b""
    assert body.taken == 0


async def test_a_redirect_within_the_origin_is_still_followed() -> None:
    client = client_of(lambda _: httpx.Response(307, headers={"Location": "/other"}, stream=Sent(b"a", times=10**9)))
    response = await sent(client, "GET")
    assert response.next_request is not None
    assert str(response.next_request.url) == "http://tools.example/other"
    assert await response.aread() == b""


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long everybody slept, without anybody sleeping."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return pauses


async def test_a_listening_stream_that_closes_at_once_is_opened_ever_more_seldom(slept: list[float]) -> None:
    """Rule 13: `retry: 0` kept a core busy for ever."""
    client = client_of(lambda _: httpx.Response(200, headers=EVENTS, stream=Sent(b"retry: 0\n\n")))
    for _ in range(12):
        await (await sent(client, "GET")).aread()
    assert sum(slept) > 3 * LONGEST_RECONNECT_PAUSE_SECONDS
    assert slept[0] >= FIRST_PAUSE
    assert slept[-1] >= LONGEST_RECONNECT_PAUSE_SECONDS / 2


async def test_an_answer_is_taken_up_again_only_so_often(slept: list[float]) -> None:
    """Rule 13: the SDK takes it up for as long as the server lets it."""
    http_client._for_request.set(7)
    client = client_of(lambda _: httpx.Response(200, headers=EVENTS, stream=Sent(b"id: 1\nretry: 0\ndata:\n\n")))
    answers = [(await sent(client, "GET")).status_code for _ in range(MOST_RESUMPTIONS + 3)]
    assert answers == [200] * MOST_RESUMPTIONS + [503] * 3
    assert sum(slept) > 5 * LONGEST_RECONNECT_PAUSE_SECONDS / 2


def test_the_pauses_grow_between_a_floor_and_a_cap_and_begin_anew_when_it_held() -> None:
    now = 0.0
    reconnecting = ReconnectPauses(now=lambda: now, jitter=lambda: 1.0)
    pauses = []
    for _ in range(9):
        pauses.append(reconnecting.pause())
        now += pauses[-1]
    assert pauses == [0, 2, 4, 8, 16, 32, 60, 60, 60]
    now += SETTLED
    assert reconnecting.pause() == FIRST_PAUSE


def test_changed_tools_are_listed_again_ever_more_seldom_while_they_go_on_changing() -> None:
    """Rule 13: a server may say all the time that it has other tools now."""
    now = 100.0
    listings = RelistPauses(Timings(relist_pause=1.0, longest_pause=60.0), lambda: now)
    assert listings.too_early() == 0
    waited = []
    for _ in range(8):
        listings.listed()
        waited.append(listings.too_early())
        now += waited[-1]
    assert waited == [1, 2, 4, 8, 16, 32, 60, 60]
    now += 61
    listings.listed()
    assert listings.too_early() == 1


async def test_a_change_that_is_announced_too_early_is_not_forgotten(tmp_path: Path) -> None:
    """Rule 13."""
    timings = replace(QUICK, relist_pause=0.05)
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}, timings=timings) as servers:
        for name in ("one", "two", "three"):
            tools = [{"name": each, "inputSchema": {"type": "object"}} for each in ("swap", name)]
            await call(servers, "odd__swap", tools=tools)
        await until_found(servers, "odd__three")


# ------------------------------------------------------------------------------------------------------------- streams


async def read(*chunks: bytes, times: int = 1, intake: Intake | None = None) -> bytes:
    instead = Substitutes(broken=lambda: as_event("broken"), too_large=lambda _: as_event("too large"))
    sent = Sent(*chunks, times=times)
    stream = BoundedEvents(sent, intake or Intake(), instead, lambda _: False, silence=5, patience=5)
    return b"".join([piece async for piece in stream])


async def test_an_event_that_does_not_end_ends_the_stream() -> None:
    """Rule 13."""
    given_on = await read(b"data: " + b"a" * 60_000, times=10_000)
    assert given_on == as_event("too large")


async def test_many_small_events_are_no_large_one() -> None:
    given_on = await read(b"data: " + b"a" * 60_000 + b"\r\n\r\n", times=200)
    assert given_on.endswith(as_event("broken"))
    assert given_on.count(b"\n\n") == 201


async def test_events_that_say_nothing_let_others_have_their_turn() -> None:
    """Rule 13: the SDK does not give way between them, and an empty one is not counted as one."""
    at_once = Sent(b"\n\n" * 30_000)
    stream = BoundedEvents(at_once, Intake(), Substitutes(), lambda _: None, silence=5, patience=5)
    async with turns_of_others() as turns:
        seen = [(len(piece), turns[0]) async for piece in stream]
    assert max(length for length, _ in seen) <= 4_096
    assert [turn for _, turn in seen] == sorted({turn for _, turn in seen})  # a turn of others between any two pieces


async def test_a_flood_of_events_is_read_slowly(slept: list[float]) -> None:
    """Rule 13: progress, log messages and changed lists, as many as a server likes to send."""
    flood = b'data: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n' * 1_000
    await read(flood, times=10, intake=Intake(lambda: 0.0, burst=1_000_000, rate=1_000_000))
    assert slept[-1] > 90  # 10,000 events count as 100 MB


async def test_requests_are_read_more_slowly_since_each_is_answered_with_a_request(slept: list[float]) -> None:
    """Rule 13: pings as fast as they were read took half a core for as long as a server liked."""
    flood = b'data: {"jsonrpc": "2.0", "id": 1, "method": "ping"}\n\n' * 1_000
    await read(flood, intake=Intake(lambda: 0.0, burst=1_000_000, rate=1_000_000))
    assert slept[-1] > 45  # 1,000 requests count as 50 MB


def test_what_was_not_used_of_the_rate_is_there_later() -> None:
    now = 0.0
    intake = Intake(lambda: now, burst=100, rate=10)
    assert intake.pause(100) == 0
    assert intake.pause(50) == 5
    now = 5.0
    assert intake.pause(0) == 0
    now = 1_000.0
    assert intake.pause(100) == 0
    assert intake.pause(10) == 1


def test_a_large_question_is_not_parsed() -> None:
    question = {"id": 1, "method": "elicitation/create", "params": {"a": "a" * 1_000_000}}
    assert elicitation_in(json.dumps(question).encode(), None, AsyncMock()) is None
    for method in ("elicitation/create", r"elicitation\/create"):  # as PHP writes it
        question = b'{"id": 2, "method": "%s"}' % method.encode()
        assert elicitation_in(question, None, AsyncMock()) is not None


# -------------------------------------------------------------------------------------------------------------- counts


def weight(*pieces: bytes) -> int:
    counted = Weight()
    for piece in pieces:
        counted.feed(piece)
    return counted.total


def test_lists_count_for_more_than_their_bytes() -> None:
    """Rule 13: a megabyte of `[],` takes the SDK two seconds, a megabyte of text 3 ms."""
    assert weight(b"[]," * 15_000) > LARGEST_MESSAGE
    assert weight(b'{"a":' * 15_000) > LARGEST_MESSAGE
    assert weight(b'"' + b"[],{}:" * 500_000 + b'"') < LARGEST_MESSAGE


@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_the_depth_is_that_of_what_is_open_at_a_time_however_it_is_cut(piece: int) -> None:
    def is_too_large(message: bytes) -> bool:
        weight = Weight()
        for start in range(0, len(message), piece):
            weight.feed(message[start : start + piece])
        return weight.too_large

    wide = b"[" + b'{"a":["]["]},' * 1_000 + b"0]"
    assert not is_too_large(wide)
    assert not is_too_large(wide[:-1] + b"," + b"[" * 179 + b"]" * 180)
    assert is_too_large(wide[:-1] + b"," + b'{"a":[' * 90 + b"]}" * 90 + b"]")


def test_numbers_of_very_many_digits_count_for_more_than_their_bytes() -> None:
    """Rule 13: 4 MB of integers of 4,000 digits were written out seven times, in 1.5 s of the event loop, where they
    stood in place of the protocol's version; in a server's line of log it took 0.2 s to shorten them."""
    long = b"[" + b",".join([b"9" * 4_000] * 11) + b"]"
    assert weight(long) > LARGEST_MESSAGE
    assert weight(*(long[at : at + 1] for at in range(len(long)))) == weight(long)
    assert weight(b'["' + b"9" * 500_000 + b'"]') < LARGEST_MESSAGE  # a text
    assert weight(b"[" + b",".join([b"9" * 617] * 60) + b"]") < LARGEST_MESSAGE  # moduli of RSA keys


JSON_VALUES = st.recursive(
    st.none()
    | st.integers()
    | st.integers(min_value=10**95, max_value=10**105)
    | st.text(st.sampled_from('a"\\[]{}:,é'), max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"\\:', max_size=3), inner, max_size=4),
)


@settings(max_examples=examples(65))
@given(JSON_VALUES, st.integers(min_value=1, max_value=9), st.randoms(use_true_random=False))
def test_the_count_is_the_same_however_a_message_is_cut(value: Any, longest: int, chance: random.Random) -> None:
    message = json.dumps(value).encode()
    cut, start = [], 0
    while start < len(message):
        end = start + chance.randint(1, longest)
        cut.append(message[start:end])
        start = end
    assert weight(*cut) == weight(message) == len(message) + counted_by_hand(value)


def counted_by_hand(value: Any) -> int:
    match value:
        case list():
            return 300 + 20 * max(len(value) - 1, 0) + sum(map(counted_by_hand, value))
        case dict():
            return 300 + 100 * len(value) + 20 * max(len(value) - 1, 0) + sum(map(counted_by_hand, value.values()))
        case int():
            return 100 * max(len(str(abs(value))) - 99, 0)
        case _:
            return 0


# ------------------------------------------------------------------------------------------------------------- results


def test_the_parts_of_a_result_are_bounded_and_counted() -> None:
    """Rule 13: 50,000 of them took seconds."""
    outcome = outcome_of([{"type": "text", "text": "a"}] * 50_000, None, limit=1_000_000)
    assert outcome.text == "a\n" * MOST_PARTS + f"[… and {50_000 - MOST_PARTS:,} more parts]"


def test_a_result_is_kept_up_to_a_length() -> None:
    """Rule 13."""
    outcome = outcome_of([{"type": "text", "text": "a" * 700_000}] * 5, None, limit=1_000)
    assert len(outcome.whole) < LONGEST_WHOLE + 100
    assert outcome.whole.endswith("\n\n[Cut here: 2,500,001 characters were left out.]")


def test_a_secret_at_the_end_of_what_is_kept_is_masked_whole() -> None:
    secret = "abcdefgh" * 4
    said = "x" * (LONGEST_WHOLE - 16) + secret + "y" * 10_000
    outcome = outcome_of([{"type": "text", "text": said}], None, limit=1_000, secrets=[secret])
    assert "abcdefgh" not in outcome.whole


def test_a_long_text_is_not_read_as_json_to_compare_it() -> None:
    """Rule 13: 3 MB of `[],` in a text took seconds."""
    said = "[" + "[]," * 300_000 + "[]]"
    outcome = outcome_of([{"type": "text", "text": said}], {"a": 1}, limit=1_000)
    assert outcome.whole.endswith('{"a": 1}')
