"""`deploy/Caddyfile`, run by a real Caddy before two real replicas."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.replicas.processes import Replica, replicas
from tests.support.ports import free_port
from tests.support.product import ProductFolder
from tests.support.visitor import WITHIN, Thread, Visitor

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.kills,
    pytest.mark.long,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("caddy") is None, reason="there is no caddy (Debian: apt-get install caddy)"),
]
PAUSE = 0.05
"""Seconds between two requests: 20 a second."""


@asynccontextmanager
async def proxy(folder: Path, port: int, upstreams: Iterable[str]) -> AsyncIterator[ssl.SSLContext]:
    """Caddy with the project's own Caddyfile at `https://localhost:{port}`; what its certificate is checked with."""
    addresses = " ".join(each.removeprefix("http://") for each in upstreams)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "DOMAIN": f"localhost:{port}",
        "REPLICAS": addresses,
    }
    adapted = await asyncio.to_thread(
        subprocess.run,
        ["caddy", "adapt", "--config", ROOT / "deploy" / "Caddyfile"],
        env=environment,
        capture_output=True,
        check=True,
    )
    config = json.loads(adapted.stdout)
    # Port 80 and Caddy's own port are the machine's.
    config["admin"] = {"disabled": True}
    (server,) = config["apps"]["http"]["servers"].values()
    server["automatic_https"] = {"disable_redirects": True}
    (folder / "caddy.json").write_text(json.dumps(config))
    with (folder / "caddy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "caddy", "run", "--config", folder / "caddy.json", env=environment, stdout=log, stderr=log
        )
    try:
        authority = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        async with asyncio.timeout(WITHIN):
            while not (authority.exists() and authority.stat().st_size):
                await asyncio.sleep(0.05)
            trust = ssl.create_default_context(cafile=authority)
            while not await has_its_certificate(port, trust):
                await asyncio.sleep(0.05)
        yield trust
    finally:
        process.kill()
        await process.wait()


async def has_its_certificate(port: int, trust: ssl.SSLContext) -> bool:
    """Whether the proxy can be spoken with; it listens before it can."""
    try:
        _, writer = await asyncio.open_connection("localhost", port, ssl=trust)
    except (ssl.SSLError, ConnectionError):
        return False
    writer.close()
    return True


@pytest.fixture
async def pair(
    home: ProductFolder, address: str
) -> AsyncIterator[tuple[Sequence[Replica], str, aiohttp.ClientSession]]:
    """Two replicas that take work, the address of the proxy before them, and a browser that trusts it."""
    port = free_port()
    url = f"https://localhost:{port}"
    async with replicas(home, address, PUBLIC_URL=url) as both, AsyncExitStack() as stack:
        for each in both:
            await each.begin()
        for each in both:
            await each.ready()
        trust = await stack.enter_async_context(proxy(home.folder, port, [each.url for each in both]))
        connector = aiohttp.TCPConnector(ssl=trust)
        http = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=WITHIN))
        yield both, url, await stack.enter_async_context(http)


async def sending(thread: Thread, statuses: list[int], ending: asyncio.Event) -> None:
    """Write a message every now and then; `statuses` gets what came of each."""
    while not ending.is_set():
        answer = await thread.send("hello")
        statuses.append(answer.status)
        await asyncio.sleep(PAUSE)


async def test_people_are_served_over_tls_whichever_replica_goes(
    pair: tuple[Sequence[Replica], str, aiohttp.ClientSession],
) -> None:
    both, url, http = pair
    ana = Visitor(url, http)
    await ana.arrive("web:ana")

    # An event comes while its stream stays open: the proxy keeps nothing back.
    async with ana.thread() as thread:
        statuses: list[int] = []
        ending = asyncio.Event()
        busy = asyncio.create_task(sending(thread, statuses, ending))
        for each in both:
            assert await each.terminate() == 0
            await each.up()
            await asyncio.sleep(2)  # until the proxy asks whether it is back
        ending.set()
        await busy
    assert len(statuses) > 50
    assert set(statuses) == {202}

    # One dies without a word: what nobody can have received goes to the other one.
    await both[0].kill()
    found = [(await ana.get("/api/threads")).status for _ in range(20)]
    assert found == [200] * 20

    # The product itself says what is too large.
    async with http.post(f"{url}/slack/events", data=io.BytesIO(b" " * (1024**2 + 1))) as response:
        assert response.status in {404, 413}, await response.text()
    answer = await ana.post("/api/session", {"person": " " * 1024**2})
    assert answer.status == 413


async def test_requests_that_break_off_keep_nobody_out(
    pair: tuple[Sequence[Replica], str, aiohttp.ClientSession],
) -> None:
    """Rule 13: a request that fails by its client's fault does not make the proxy think that a replica is dead."""
    both, url, http = pair

    host, port = "localhost", int(url.rpartition(":")[2])
    connector = http.connector
    assert isinstance(connector, aiohttp.TCPConnector)
    for _ in range(2 * len(both)):
        reader, writer = await asyncio.open_connection(host, port, ssl=connector._ssl)
        writer.write(f"POST /slack/events HTTP/1.1\r\nHost: {host}:{port}\r\n".encode())
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nno number\r\n")
        assert b" 502 " in await reader.readline()
        writer.close()
    for _ in range(2 * len(both)):
        async with http.post(f"{url}/api/session", json={}) as response:
            assert response.status == 403, "by the product"


@asynccontextmanager
async def breaking_once(arrived: Counter[str]) -> AsyncIterator[str]:
    """A replica that breaks off what comes for the first time, wherever it came; `arrived`: counts it."""

    async def handle(request: web.Request) -> web.Response:
        if request.path != "/ready":
            asked = f"{request.method} {request.path}"
            arrived[asked] += 1
            if arrived[asked] == 1 and request.transport is not None:
                await request.read()
                request.transport.abort()
        return web.Response()

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_only_what_reads_is_sent_to_the_other_replica_when_it_may_have_arrived(tmp_path: Path) -> None:
    """Rule 1: a replica that dies may have done what it was asked, or have used up what somebody came back with."""
    arrived: Counter[str] = Counter()
    port = free_port()
    async with AsyncExitStack() as stack:
        both = [await stack.enter_async_context(breaking_once(arrived)) for _ in range(2)]
        trust = await stack.enter_async_context(proxy(tmp_path, port, both))
        connector = aiohttp.TCPConnector(ssl=trust)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        for method, path, times in (
            ("POST", "/api/messages", 1),
            ("DELETE", "/api/grants/g1", 1),
            ("GET", "/oauth/callback", 1),
            ("GET", "/oauth/callback/github", 1),
            ("GET", "/login/oidc/callback", 1),
            ("GET", "/slack/oauth_redirect", 1),
            ("GET", "/api/threads", 2),
        ):
            async with http.request(method, f"https://localhost:{port}{path}?code=c") as response:
                assert (response.status, arrived[f"{method} {path}"]) == (200 if times > 1 else 502, times), path


async def test_a_replica_hears_at_once_that_the_reader_of_a_stream_has_gone(tmp_path: Path) -> None:
    """A client of `POST /ai/agent/stream` that goes away stops the turn before the next tool starts."""
    gone = asyncio.Event()

    async def ready(request: web.Request) -> web.Response:
        return web.Response()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: a piece\n\n")
        transport = request.transport
        while transport is not None and not transport.is_closing():
            await asyncio.sleep(PAUSE)
        gone.set()
        return response

    application = web.Application()
    application.router.add_get("/ready", ready)
    application.router.add_post("/ai/agent/stream", stream)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, upstream = runner.addresses[0][:2]
        trust = await stack.enter_async_context(proxy(tmp_path, port, [f"http://{host}:{upstream}"]))
        connector = aiohttp.TCPConnector(ssl=trust)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        async with asyncio.timeout(WITHIN):
            response = await http.post(f"https://localhost:{port}/ai/agent/stream", json={})
            assert await response.content.readline() == b"data: a piece\n"
            response.close()
            await gone.wait()
