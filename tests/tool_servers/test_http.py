"""Calls over streamable HTTP: a well-behaved server in a process of its own, and one that misbehaves."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.tool_servers.http_client import Endpoint, McpHttpClient
from adapters.tool_servers.incoming import Signals
from adapters.tool_servers.outcomes import FaultKind, Faults
from adapters.tool_servers.servers import ToolServers
from adapters.tool_servers.sessions import Timings
from graph.ports import Failed, OutcomeUnknown, SignInNeeded, Succeeded
from tests.support.forks import Fork

from .conftest import QUICK, Heard, call, listening, running, until, until_found
from .http_odd import odd_http


def friendly_http(port: int = 0, transport: str = "http") -> AbstractAsyncContextManager[tuple[Fork, int]]:
    return listening("friendly.py", transport, str(port))


def state(servers: ToolServers) -> str:
    return servers.status()[0].state


@pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_everything_works_as_over_stdio(tmp_path: Path, transport: str, path: str) -> None:
    async with friendly_http(transport=transport) as (_, port):
        entry = {"type": transport, "url": f"http://127.0.0.1:{port}/{path}"}
        async with running(tmp_path, {"friendly": entry}) as servers:
            assert await call(servers, "friendly__echo", text="a", times=3) == Succeeded("aaa")
            heard = Heard()
            assert await call(servers, "friendly__slow", heard, steps=2) == Succeeded("done")
            assert heard.steps == [("step 1", 0.5), ("step 2", 1.0)]
            link = await call(servers, "friendly__link_needed")
            assert link == SignInNeeded("https://drive.test/connect?e=1", "Connect your drive", "e1")
            assert await call(servers, "friendly__grow") == Succeeded("changed")
            await until_found(servers, "friendly__grown")


async def test_a_server_that_dies_in_mid_call_breaks_it_off_and_is_found_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        _, port = await stack.enter_async_context(friendly_http())
        servers = await stack.enter_async_context(
            running(tmp_path, {"friendly": {"url": f"http://127.0.0.1:{port}/mcp"}})
        )
        assert isinstance(await call(servers, "friendly__die"), OutcomeUnknown)
        await until(lambda: state(servers) == "down", "the notice")
        gone = await call(servers, "friendly__echo", text="x")
        assert gone == Failed("friendly is unavailable: it cannot be reached. Nothing was called.")
        await stack.enter_async_context(friendly_http(port))
        await until(lambda: state(servers) == "up", "the return")
        assert await call(servers, "friendly__echo", text="back") == Succeeded("back")


async def test_an_idle_server_that_dies_is_noticed_without_a_health_check(tmp_path: Path) -> None:
    async with friendly_http() as (process, port):
        entry = {"url": f"http://127.0.0.1:{port}/mcp"}
        async with running(tmp_path, {"friendly": entry}, timings=Timings(ping_every=600)) as servers:
            await process.kill()
            await until(lambda: state(servers) != "up", "the notice")


async def test_a_session_that_an_idle_server_has_forgotten_is_renewed(tmp_path: Path) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        odd.sessions.clear()
        await until(lambda: len(odd.sessions) == 1, "a new session")
        assert await call(servers, "odd__echo") == Succeeded("echo done")


async def test_the_configured_headers_are_sent(tmp_path: Path) -> None:
    async with odd_http() as odd:
        odd.token = "hunter2hunter2"
        headers = {"Authorization": "Bearer ${TOKEN}"}
        entries = {"right": {"url": odd.url, "headers": headers}, "wrong": {"url": odd.url}}
        async with running(tmp_path, entries, environ={"TOKEN": "hunter2hunter2"}) as servers:
            assert await call(servers, "right__echo") == Succeeded("echo done")
            (wrong,) = servers.unavailable()
            assert (wrong.server, wrong.reason) == ("wrong", "did not accept our credentials (HTTP 401)")


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("unauthorized", "odd did not accept our credentials (HTTP 401). Nothing was done."),
    ],
)
async def test_a_refusal_fails_that_call_alone(tmp_path: Path, tool: str, text: str) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        hanging = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: odd.calls == ["hang"], "the call's arrival")
        assert await call(servers, f"odd__{tool}") == Failed(text)
        odd.hanging.set()
        assert await hanging == Succeeded("hang done")
        assert len(odd.sessions) == 1


@pytest.mark.parametrize("tool", ["crash", "page", "no_json", "cut_json", "cut_events", "end_events"])
async def test_no_proper_answer_leaves_that_call_open_at_once_and_no_other(tmp_path: Path, tool: str) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        hanging = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: odd.calls == ["hang"], "the call's arrival")
        async with asyncio.timeout(10):  # far less than a call may take
            assert isinstance(await call(servers, f"odd__{tool}"), OutcomeUnknown)
        odd.hanging.set()
        assert await hanging == Succeeded("hang done")
        assert odd.calls == ["hang", tool]


@pytest.mark.parametrize("status", [400, 402, 404, 408, 409, 410, 422, 425, 429, 499, 500, 502, 503, 504])
async def test_what_a_server_says_by_http_after_a_write_does_not_prove_that_nothing_was_done(
    tmp_path: Path, status: int
) -> None:
    """Rule 4: it is sent once, its outcome is unknown, and what the server said is kept for the requester."""
    said = "half done:\n<b>order 17</b> was created, key sk-abcdefghijklmnop"
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        got = await call(servers, "odd__status", status=status, text=said)
        assert isinstance(got, OutcomeUnknown)
        assert f"HTTP {status}" in got.text
        assert "half done: <b>order 17</b> was created, key [redacted]" in got.text
        assert odd.calls == ["status"]


@pytest.mark.parametrize("status", [401, 403, 405, 413, 415])
async def test_these_alone_say_that_nothing_was_done(tmp_path: Path, status: int) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        got = await call(servers, "odd__status", status=status, text="order 17 was created")
        assert isinstance(got, Failed)
        assert got.text.endswith(f"(HTTP {status}). Nothing was done.")
        assert odd.calls == ["status"]


@pytest.mark.parametrize("code", [-31901, -31902, -31903, -31904, -31905, -32603, -32000])
async def test_no_error_that_a_server_sends_is_taken_for_our_own(tmp_path: Path, code: int) -> None:
    """Rule 4: the codes were private, and any server could send them to have a write made again."""
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        got = await call(servers, "odd__error", code=code, message="order 17 was created")
        assert got == Failed("odd reported an error: order 17 was created")
        assert odd.calls == ["error"]


async def test_an_endless_body_in_place_of_an_answer_is_read_to_its_limit(tmp_path: Path) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        async with asyncio.timeout(10):
            got = await call(servers, "odd__slow_body")
        odd.hanging.set()
        assert isinstance(got, OutcomeUnknown)
        assert len(got.text) < 700


async def test_a_write_after_which_the_server_knows_no_session_is_not_sent_again(tmp_path: Path) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        assert isinstance(await call(servers, "odd__forget"), OutcomeUnknown)
        assert odd.calls == ["forget"]
        assert await call(servers, "odd__echo") == Succeeded("echo done"), "the session is looked after by itself"


async def test_a_repeatable_call_that_the_server_refused_for_a_forgotten_session_goes_over_a_new_one(
    tmp_path: Path,
) -> None:
    entry = {"idempotentTools": ["forget"]}
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url, **entry}}) as servers:
        assert await call(servers, "odd__forget") == Succeeded("forget done")
        assert odd.calls == ["forget", "forget"]


async def test_a_session_that_has_been_idle_is_pinged_before_a_write_so_that_a_restarted_server_gets_it_once(
    tmp_path: Path,
) -> None:
    idle = replace(QUICK, fresh=0, ping_every=600)
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}, timings=idle) as servers:
        odd.sessions.clear()
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        assert odd.calls == ["echo"]


async def test_one_that_has_just_answered_is_not_pinged_and_neither_is_one_for_reading(tmp_path: Path) -> None:
    quiet = replace(QUICK, ping_every=600)
    entry = {"idempotentTools": ["echo"]}
    async with odd_http() as odd:
        async with running(tmp_path, {"odd": {"url": odd.url}}, timings=quiet) as servers:
            await call(servers, "odd__echo")
            await call(servers, "odd__echo")
        async with running(tmp_path, {"odd": {"url": odd.url, **entry}}, timings=replace(quiet, fresh=0)) as servers:
            await call(servers, "odd__echo")
        assert odd.pings == 0


SILENT = replace(QUICK, fresh=0, ping_every=600)
"""Nothing but a ping of its own tells a call whether its session is still there."""


async def test_a_call_that_is_open_does_not_prove_that_the_server_still_knows_the_session(tmp_path: Path) -> None:
    """Rule 4: the outcome of a write that reached nobody is not unknown."""
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}, timings=SILENT) as servers:
        hanging = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: odd.calls == ["hang"], "the call's arrival")
        odd.sessions.clear()
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        odd.hanging.set()
        assert await hanging == Succeeded("hang done")
        assert odd.calls == ["hang", "echo"]


async def test_neither_does_a_call_for_reading_that_leaves_in_the_same_moment(tmp_path: Path) -> None:
    """Rule 4: models read and write in one message."""
    entry = {"idempotentTools": ["parts"]}
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url, **entry}}, timings=SILENT) as servers:
        odd.sessions.clear()
        read, written = await asyncio.gather(call(servers, "odd__parts"), call(servers, "odd__echo"))
        assert (type(read), written) == (Succeeded, Succeeded("echo done"))
        assert sorted(odd.calls) == ["echo", "parts"]


async def test_a_server_that_is_at_a_call_need_not_answer_a_ping_to_get_another(tmp_path: Path) -> None:
    timings = replace(SILENT, ping=0.05)
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}, timings=timings) as servers:
        hanging = asyncio.create_task(call(servers, "odd__hang"))
        await until(lambda: odd.calls == ["hang"], "the call's arrival")
        odd.deaf = True
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        odd.hanging.set()
        await hanging
        assert (odd.pings, len(odd.sessions)) == (2, 1)


async def test_a_call_that_could_not_be_sent_has_failed(tmp_path: Path) -> None:
    async with odd_http() as odd:
        context = running(tmp_path, {"odd": {"url": odd.url}})
        servers = await context.__aenter__()
    try:
        got = await call(servers, "odd__echo")
        assert got == Failed("odd is unavailable: it cannot be reached. Nothing was called.")
    finally:
        await context.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("path", "reason"), [("/mcp", "cannot be reached"), ("/elsewhere", "does not know the session or the address")]
)
async def test_an_address_without_a_server_is_reported(tmp_path: Path, path: str, reason: str) -> None:
    async with odd_http() as odd:
        url = odd.url.replace("/mcp", path) if path != "/mcp" else "http://127.0.0.1:9/mcp"
        async with running(tmp_path, {"odd": {"url": url}}) as servers:
            assert reason in servers.unavailable()[0].reason


async def test_a_call_is_sent_once_although_the_server_sends_it_on(tmp_path: Path) -> None:
    """Rule 4: a redirect says nothing of whether the server has acted."""
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        assert isinstance(await call(servers, "odd__in_circles"), OutcomeUnknown)
        assert odd.calls == ["in_circles"]
        assert await call(servers, "odd__echo") == Succeeded("echo done")


async def test_calls_go_at_once_to_where_a_server_has_moved(tmp_path: Path) -> None:
    async with odd_http() as odd:
        odd.moved = True
        async with running(tmp_path, {"odd": {"url": odd.url}}) as servers:
            assert await call(servers, "odd__echo") == Succeeded("echo done")
            assert odd.sent_on == ["initialize"]


async def test_a_server_that_moves_in_between_is_found_before_a_call_leaves(tmp_path: Path) -> None:
    """Rule 4: the session is asked before a call that must not be made twice."""
    timings = replace(QUICK, fresh=0.0)
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}, timings=timings) as servers:
        odd.moved = True
        assert await call(servers, "odd__echo") == Succeeded("echo done")
        assert (odd.sent_on, odd.calls) == (["ping"], ["echo"])


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"HTTP/1.1 407 No\r\n\r\n", b""])
async def test_a_call_for_which_a_proxy_makes_no_tunnel_was_not_sent(answer: bytes) -> None:
    """Rule 4: the outcome of what never left is not unknown. Without an `answer` the proxy hangs up."""
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    faults: Faults = {}
    signals = Signals(lost=lambda _: None, tools_changed=lambda: None, asked=lambda _: None, completed=lambda _: None)
    url = "https://tools.test/mcp"
    endpoint = Endpoint(url, silence=5.0, patience=5.0, signals=signals, faults=faults)
    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    async with proxy, McpHttpClient(endpoint, proxy=f"http://127.0.0.1:{port}") as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pay", "arguments": {}}}
        response = await client.post(url, content=json.dumps(message))
    assert asked[0].startswith(b"CONNECT tools.test:443 ")
    assert "error" in response.json()
    assert faults[1].kind is FaultKind.NOT_SENT
