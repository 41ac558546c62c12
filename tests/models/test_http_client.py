"""The connections to a model's service: proxies, certificates, redirects, and what becomes of them in the end."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from langchain_core.messages import HumanMessage
from langchain_openai.chat_models import _client_utils
from pydantic import SecretStr

from graph.models import close_model
from graph.models.http_client import http_client
from graph.models.openai import create_openai_model
from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import stream_message
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import ONCE, Connect
from tests.support.certificates import certificate_of
from tests.support.raw_http import in_chunks

ASK = [HumanMessage("hi")]
HELLO = b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = CHUNKED + in_chunks(HELLO, 1_000)


class Service:
    """Answers each request on a connection by the next of `answers`; after the last the connection is closed."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.requests: list[str] = []
        self.connections = 0
        self.port = 0
        self.closed = asyncio.Event()
        """Whether somebody has closed a connection to it."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for answer in self.answers:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = re.search(r"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            self.requests.append(head)
            writer.write(answer)
        else:
            writer.close()
            return
        self.closed.set()
        writer.close()


@asynccontextmanager
async def serving(service: Service, *, certificate: ssl.SSLContext | None = None) -> AsyncIterator[Service]:
    listening = await asyncio.start_server(service.handle, "127.0.0.1", 0, ssl=certificate)
    async with listening:
        service.port = listening.sockets[0].getsockname()[1]
        yield service


async def answer(base_url: str, *, times: int = 1) -> list[str]:
    model = create_openai_model("m", base_url=base_url, api_key=SecretStr("k"), timeout=5)
    said = []
    try:
        for _ in range(times):
            said.append((await stream_message(model, ASK, lambda _: None, retry=ONCE)).text)
            await asyncio.sleep(0.05)
    finally:
        await close_model(model)
    return said


async def test_a_connection_is_used_again_and_closed_with_the_model() -> None:
    async with serving(Service(*[ANSWER] * 3)) as service:
        assert await answer(f"http://127.0.0.1:{service.port}/v1", times=2) == ["Hello", "Hello"]
        await asyncio.wait_for(service.closed.wait(), 5)
    assert service.connections == 1


async def test_one_that_the_service_has_closed_meanwhile_is_no_failure() -> None:
    async with serving(Service(ANSWER)) as service:
        assert await answer(f"http://127.0.0.1:{service.port}/v1", times=3) == ["Hello"] * 3
    assert service.connections == 3


async def test_one_with_more_to_say_is_closed_after_the_answer() -> None:
    more = ANSWER.removesuffix(b"0\r\n\r\n")
    async with serving(Service(more, ANSWER)) as service:
        assert await answer(f"http://127.0.0.1:{service.port}/v1") == ["Hello"]
        await asyncio.wait_for(service.closed.wait(), 5)


@pytest.mark.parametrize("begun", [b"", CHUNKED + b"4\r\n: a\n"])
async def test_cancelling_closes_the_connection(begun: bytes) -> None:
    async with serving(Service(begun, ANSWER)) as service:
        model = create_openai_model("m", base_url=f"http://127.0.0.1:{service.port}/v1", api_key=None, timeout=30)
        asking = asyncio.create_task(stream_message(model, ASK, lambda _: None, retry=ONCE))
        while not service.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(service.closed.wait(), 5)
        await close_model(model)


async def test_a_redirect_is_followed(connect: Connect) -> None:
    async with fake_openai([Reply(text="Hello")]) as server:
        elsewhere = (
            f"HTTP/1.1 307 Elsewhere\r\nLocation: {server.base_url}/chat/completions\r\nContent-Length: 0\r\n\r\n"
        )
        async with serving(Service(elsewhere.encode())) as service:
            assert await answer(f"http://127.0.0.1:{service.port}/v1") == ["Hello"]
    assert server.requests[0]["messages"][0]["content"] == "hi"


async def test_an_account_in_the_address_is_sent() -> None:
    """As a service behind a password is configured, also where it redirects to an address with one."""
    there = b"HTTP/1.1 307 There\r\nLocation: //you:other@127.0.0.1:%d/v1\r\nContent-Length: 0\r\n\r\n"
    async with serving(Service(ANSWER)) as service:
        assert await answer(f"http://me:pass%40word@127.0.0.1:{service.port}/v1") == ["Hello"]
        assert "authorization: Basic bWU6cGFzc0B3b3Jk\r\n" in service.requests[0]
        service.answers = (there % service.port, ANSWER)
        assert await answer(f"http://127.0.0.1:{service.port}/v1") == ["Hello"]


@pytest.mark.parametrize("unasked", [ANSWER, b"HTTP/1.1 204 X\r\n\r\n", b"HTTP/1.1 100 X\r\n\r\n", b"x"])
async def test_a_connection_on_which_more_comes_is_closed(unasked: bytes) -> None:
    """Rule 13: what came while no request was under way was read and kept, as fast as it came. Rule 11: the next
    request got the answer that lay there, which may be meant for somebody else."""
    done, closed = asyncio.Event(), asyncio.Event()

    async def go_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await done.wait()
        writer.write(unasked)
        with suppress(ConnectionError):
            while await reader.read(1_000):
                pass
        closed.set()
        writer.close()

    listening = await asyncio.start_server(go_on, "127.0.0.1", 0)
    async with listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        model = create_openai_model("m", base_url=url, api_key=None, timeout=5)
        assert (await stream_message(model, ASK, lambda _: None, retry=ONCE)).text == "Hello"
        done.set()
        await asyncio.wait_for(closed.wait(), 3)
        await close_model(model)


async def test_an_error_that_trickles_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: each byte came in time, and the turn never ended."""
    monkeypatch.setattr("graph.models.http_client._ERROR_SECONDS", 0.05)

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 90000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"a")
            await asyncio.sleep(0.01)

    listening = await asyncio.start_server(trickle, "127.0.0.1", 0)
    with pytest.raises(ModelProblem) as problem:
        await asyncio.wait_for(answer(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"), 2)
    listening.close()
    assert problem.value.trouble is Trouble.SERVER_FAILED


async def test_a_reason_in_no_encoding_is_not_read() -> None:
    async with serving(Service(ANSWER.replace(b"OK", b"\xff", 1))) as service:
        assert await answer(f"http://127.0.0.1:{service.port}/v1") == ["Hello"]


async def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Service(ANSWER)) as proxy, serving(Service(ANSWER)) as service:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass%40word@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await answer("http://model.example/v1") == ["Hello"]
        assert await answer(f"http://127.0.0.1:{service.port}/v1") == ["Hello"]
    assert proxy.requests[0].startswith("POST http://model.example/v1/chat/completions HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cGFzc0B3b3Jk" in proxy.requests[0]
    assert len(proxy.requests) == len(service.requests) == 1


def test_no_log_line_says_that_the_proxy_of_the_environment_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(_client_utils, "_proxy_env_warning_emitted", False)  # it is said once
    create_openai_model("any", base_url=None, api_key=None, timeout=1.0)
    assert caplog.messages == []


async def test_the_proxy_for_https_is_asked_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Service(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(ModelProblem) as problem:
            await answer("https://model.example/v1")
    assert proxy.requests[0].startswith("CONNECT model.example:443 HTTP/1.1\r\n")
    assert "authorization" not in proxy.requests[0].lower()
    assert problem.value.trouble is Trouble.UNREACHABLE


async def test_a_proxy_of_another_kind_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ValueError, match="does not speak HTTP"):
        http_client(1.0, 1.0)


async def test_certificates_are_checked_with_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = certificate_of("localhost", tmp_path)
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(certificate)
    async with serving(Service(ANSWER), certificate=here) as service:
        with pytest.raises(ModelProblem) as problem:
            await answer(f"https://localhost:{service.port}/v1")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert await answer(f"https://localhost:{service.port}/v1") == ["Hello"]
    assert problem.value.trouble is Trouble.UNREACHABLE


async def test_a_service_that_does_not_take_the_request_is_not_waited_for() -> None:
    async def take_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(10)

    listening = await asyncio.start_server(take_nothing, "127.0.0.1", 0)
    async with http_client(0.2, 0.2) as http:
        with pytest.raises(httpx2.TimeoutException):
            await http.post(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", content=b"a" * 50_000_000)
    listening.close()


async def test_a_service_that_only_tells_of_an_answer_to_come_is_not_waited_for() -> None:
    async def promise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await asyncio.sleep(0.01)

    listening = await asyncio.start_server(promise, "127.0.0.1", 0)
    async with http_client(0.2, 0.2) as http:
        with pytest.raises(httpx2.TimeoutException):
            await http.post(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    listening.close()
