"""Rule 13: whatever a model's service sends, and however, it holds nobody up and does not grow without bound."""

from __future__ import annotations

import asyncio
import json
import zlib

import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from graph.models import close_model, http_client, openai
from graph.models.openai import create_openai_model
from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import stream_message
from graph.usage import ServiceCount, total_tokens, use_of
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import ONCE, Connect
from tests.support.raw_http import OK, RawHttp, in_chunks, raw_http

ASK = [HumanMessage("hi")]
EVENTS = OK + b"Content-Type: text/event-stream\r\n"
HELLO = b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
LONG = [b"a" * 65_536] * 400


async def asked(server: RawHttp) -> str:
    model = create_openai_model("m", base_url=f"{server.url}/v1", api_key=SecretStr("k"), timeout=10)
    try:
        return str((await stream_message(model, ASK, lambda _: None, retry=ONCE)).content)
    finally:
        await close_model(model)


@pytest.mark.parametrize("line", [b"a:\r\n", b"Set-Cookie: a=b\r\n"])
@pytest.mark.parametrize("informational", [b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
async def test_a_head_of_thousands_of_lines_is_no_answer(line: bytes, informational: bytes) -> None:
    head = informational + EVENTS + line * (40_000 // len(line)) + b"\r\n"
    async with raw_http([head + HELLO]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.BROKE_OFF


@pytest.mark.parametrize("together", [False, True])
async def test_trailers_of_thousands_of_lines_are_not_read(*, together: bool) -> None:
    """The answer before them is whole, unless they come in the same breath: then none of it is taken."""
    head, trailers = EVENTS + b"Transfer-Encoding: chunked\r\n\r\n", b"a:\r\n" * 10_000 + b"\r\n"
    body, read = in_chunks(HELLO, 1_000).removesuffix(b"\r\n"), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + body + (trailers if together else b""))
        if not together:
            await read.wait()
            writer.write(trailers)
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        model = create_openai_model("m", base_url=url, api_key=SecretStr("k"), timeout=10)
        try:
            answer = await stream_message(model, ASK, lambda _: read.set(), retry=ONCE)
        except ModelProblem as problem:
            assert together
            assert problem.trouble is Trouble.BROKE_OFF
        else:
            assert not together
            assert answer.text == "Hello"
        await close_model(model)


@pytest.mark.parametrize("status", [b"500 Oops", b"307 Elsewhere\r\nLocation: http://127.0.0.1:9/"])
async def test_of_an_error_without_an_end_the_beginning_is_read(status: bytes) -> None:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\n\r\n"
    async with raw_http([head, *LONG]) as raw:
        with pytest.raises(ModelProblem):
            await asked(raw)
    assert raw.written < 10_000_000  # what the kernel buffers included


async def test_a_line_without_an_end_ends_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "LONGEST_EVENT", 100_000)
    async with raw_http([EVENTS + b"\r\ndata: ", *LONG]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.BROKE_OFF
    assert raw.written < 10_000_000


async def test_nor_does_an_event_of_lines_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB of them were kept, and parsed in one go."""
    monkeypatch.setattr(http_client, "LONGEST_EVENT", 100_000)
    async with raw_http([EVENTS + b"\r\n", *[b'data: "a",\r\n' * 1_000] * 1_000]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.BROKE_OFF
    assert raw.written < 10_000_000


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_events_that_end_are_many_events(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    monkeypatch.setattr(http_client, "LONGEST_EVENT", 10_000)
    said = HELLO.replace(b"\n\n", end)
    async with raw_http([EVENTS + b"\r\n", *[b": still here" + end] * 3_000, said]) as raw:
        assert await asked(raw) == "Hello"


@pytest.mark.parametrize("within", [b"[],", b'{"a":1},', b'"",', b"1,"])
async def test_an_event_of_very_many_values_is_not_parsed(within: bytes) -> None:
    """8 MB of empty lists held the event loop for half a second, in the arguments of a call for longer."""
    values = b'"text": "\\\\", "more": [' + within * 60_000 + b"0]"
    text = b'"text": "' + within.replace(b'"', b'\\"') * 60_000 + b'"'
    events = [HELLO.replace(b'"index": 0', b'"index": 0, ' + inside) for inside in (values, text)]
    async with raw_http([EVENTS + b"\r\n", events[0]]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.TOO_MUCH
    async with raw_http([EVENTS + b"\r\n", events[1]]) as raw:
        assert await asked(raw) == "Hello"


@pytest.mark.parametrize("digits", [150, 4_200])
async def test_nor_is_one_with_numbers_of_very_many_digits(digits: int) -> None:
    """8 MB of them as the arguments of a call, which are no text then, held the event loop for half a second."""
    number = b"9" * digits
    numbers, text = (within % b", ".join([number] * (100_000 // digits)) for within in (b"[%s]", b'"%s"'))
    events = [HELLO.replace(b'"index": 0', b'"index": 0, "more": ' + inside) for inside in (numbers, text)]
    async with raw_http([EVENTS + b"\r\n", events[0]]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.TOO_MUCH
    async with raw_http([EVENTS + b"\r\n", events[1]]) as raw:
        assert await asked(raw) == "Hello"


def said_with(text: str, finish_reason: str, tokens: int) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"


async def test_what_is_said_with_each_piece_keeps_no_pieces_apart() -> None:
    """LangChain's own way joins all pieces in the end: 60,000 that each say why the answer ended held the event loop
    for 0.6 s. Services that count tokens in each piece count from the beginning: added up, a person's day was soon
    over."""
    pieces = b"".join(said_with("a", "stop", number) for number in range(1, 3_001))
    async with raw_http([EVENTS + b"\r\n", pieces]) as raw:
        model = create_openai_model("m", base_url=f"{raw.url}/v1", api_key=SecretStr("k"), timeout=10)
        shown: list[str] = []
        answer = await stream_message(model, ASK, shown.append, retry=ONCE)
        assert isinstance(model, openai.OpenAIModel)
        beside = [piece async for piece in model.stream_answer(ASK, lambda _: None, ServiceCount())]
        await close_model(model)
    assert (len(answer.text), total_tokens(use_of(answer, 0.0))) == (3_000, 3_010)
    assert len(shown) < 1_100
    assert "".join(shown) == answer.text
    assert len(beside) == 2, "what it says of the end, and that it is one"


async def test_an_answer_that_ends_again_and_again_is_none() -> None:
    async with raw_http([EVENTS + b"\r\n", *[said_with("a", f"stop {n}", n) for n in range(200)]]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.MALFORMED


async def test_an_answer_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "LONGEST_ANSWER", 100_000)
    async with raw_http([EVENTS + b"\r\n", *[b": still here\n\n" * 1_000] * 1_000]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.BROKE_OFF
    assert raw.written < 10_000_000


async def test_a_compressed_answer_is_not_unpacked() -> None:
    async with raw_http([EVENTS + b"Content-Encoding: gzip\r\n\r\n" + zlib.compress(HELLO, wbits=31)]) as raw:
        with pytest.raises(ModelProblem) as problem:
            await asked(raw)
    assert problem.value.trouble is Trouble.BROKE_OFF
    assert b"accept-encoding: identity" in raw.requests[0].lower()


async def test_no_cookie_is_kept(connect: Connect) -> None:
    async with fake_openai([Reply(text="One", headers={"Set-Cookie": "a=b"}), Reply(text="Two")]) as server:
        model = connect(server)
        for _ in range(2):
            await stream_message(model, ASK, lambda _: None, retry=ONCE)
    assert "Cookie" not in server.headers[1]
