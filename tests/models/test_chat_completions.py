"""Our reader of chat completions does what the OpenAI client's own does, which it is there to be faster than."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from graph.models import close_model
from graph.models.chat_completions import ChatCompletions, events_of
from graph.models.http_client import http_client
from graph.models.openai import OpenAIModel, create_openai_model
from graph.models.streaming import stream_message
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import KEY, ONCE, Connect
from tests.support.raw_http import OK, raw_http

ASK = [HumanMessage("hi")]
LINES = [
    "data: {}",
    "data:1",
    "data: [1,",
    "data: 2]",
    'data: "é€😀"',
    ": a comment",
    "event: x",
    "data",
    "other: 1",
    "",
]


async def read(pieces: Sequence[bytes], *, by_client: bool = False) -> list[object]:
    """What the events say, until the first that cannot be read."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    response = httpx2.Response(200, content=body(), request=httpx2.Request("POST", "http://a"))
    said: list[object] = []
    try:
        if by_client:
            client = openai.AsyncOpenAI(api_key="k")
            events = aiter(openai.AsyncStream[object](cast_to=object, response=response, client=client))
        else:
            events = events_of(response, 5.0)
        while (event := await anext(events, said)) is not said:
            said.append(event)
    except ValueError:
        said.append("unreadable")
    assert response.is_closed
    return said


@given(
    lines=st.lists(st.sampled_from(LINES), max_size=12),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 200), max_size=20),
)
def test_events_are_those_that_the_client_reads_however_they_are_cut(
    lines: list[str], ends: list[str], cuts: list[int]
) -> None:
    whole = [*lines, "data: 7", "", "data: [DONE]", ""]
    text = "".join(line + ends[number % len(ends)] for number, line in enumerate(whole)).encode()
    at = sorted({cut for cut in cuts if cut < len(text)} | {0, len(text)})
    pieces = [text[start:end] for start, end in pairwise(at)]
    assert asyncio.run(read(pieces)) == asyncio.run(read([text], by_client=True))


async def test_a_name_without_data_is_no_event() -> None:
    """The client takes it for one that cannot be read."""
    assert await read([b"event: ping\n\ndata: 1\n\n"]) == [1]


@pytest.mark.parametrize(
    ("error", "text"), [({"message": "no"}, "no"), ("no", "An error occurred during streaming"), ({"a": 1}, None)]
)
async def test_an_error_within_the_stream_is_raised(error: object, text: str | None) -> None:
    with pytest.raises(openai.APIError) as problem:
        await read([b"data: " + json.dumps({"error": error}).encode() + b"\n\n"])
    assert problem.value.message == text or text is None
    assert problem.value.body == error


async def test_a_request_has_the_headers_of_the_client() -> None:
    """But for those that count its own tries."""
    async with fake_openai(lambda _: Reply(text="Hello")) as server, http_client(5.0, 5.0) as http:
        client = openai.AsyncOpenAI(
            api_key=KEY, base_url=server.base_url, http_client=http, organization="o", default_headers={"X-More": "1"}
        )
        body = {"model": "m", "messages": [], "stream": True}
        await (await client.post("/chat/completions", cast_to=httpx2.Response, body=body)).aclose()
        for _ in range(2):
            await (await ChatCompletions(client, http).ask(body | {"user": "é"})).aclose()
    theirs, *ours = [{name.lower(): value for name, value in headers.items()} for headers in server.headers]
    differ = {"x-stainless-retry-count", "x-stainless-read-timeout", "content-length"}
    assert {name for headers in ours for name, value in theirs.items() if headers.get(name) != value} == differ
    assert all(headers.keys() <= theirs.keys() for headers in ours)
    assert server.requests[1]["user"] == "é"


async def test_each_model_asks_with_its_own_key(connect: Connect) -> None:
    async with fake_openai(lambda _: Reply(text="Hello")) as server:
        first = connect(server)
        second = create_openai_model("m", base_url=server.base_url, api_key=SecretStr("another"), timeout=5)
        assert isinstance(second, OpenAIModel)
        for model in (first, second, first):
            await stream_message(model, ASK, lambda _: None, retry=ONCE)
        await second.root_async_client.close()
    assert [h["Authorization"] for h in server.headers] == [f"Bearer {KEY}", "Bearer another", f"Bearer {KEY}"]


async def test_what_comes_after_the_end_of_an_answer_holds_it_up_for_a_moment_only() -> None:
    """The connection is used again where the body ends with the answer, and is closed where it does not."""
    said = b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\n'
    head = OK + b"Content-Type: text/event-stream\r\n\r\n"
    async with raw_http([head + said + b"data: [DONE]\n\n", *[b": still here\n\n" * 5_000] * 1_000]) as raw:
        model = create_openai_model("m", base_url=f"{raw.url}/v1", api_key=SecretStr("k"), timeout=10)
        async with asyncio.timeout(5):
            assert (await stream_message(model, ASK, lambda _: None, retry=ONCE)).text == "Hello"
        await close_model(model)
    assert raw.written < 60_000_000
