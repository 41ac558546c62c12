"""What a call through the gateway costs beside the same call at the tool server itself, and what waiting calls cost.

The client is the MCP SDK's in both cases: over stdio at the server itself, as it is configured, and over streamable
HTTP at the gateway.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import psutil
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from bench.contestants import ROOT, Contestant, Contestants
from bench.cores import AROUND
from bench.figures import Figure, Limit, median_ms
from bench.measures import Sizes

OVERHEAD = 8.0
"""Milliseconds that an allowed call may take longer than at the server itself."""
WARM_UPS = 5
CALLS_OF_A_CLIENT = 10


async def figures(contestants: Contestants, sizes: Sizes) -> list[Figure]:
    """Calls in turns at both, and the CPU of an idle process with many that wait."""
    async with AsyncExitStack() as stack:
        product = await stack.enter_async_context(contestants.product())
        through = await stack.enter_async_context(at_the_gateway(product.url))
        itself = await stack.enter_async_context(_at_the_server())
        pairs: list[tuple[float, float]] = []
        for number in range(sizes.gateway_calls + WARM_UPS):
            pair = await _called(through, number), await _called(itself, number)
            if number >= WARM_UPS:
                pairs.append(pair)
            await asyncio.sleep(sizes.pause_seconds / 10)
        seen, direct = (median_ms([pair[side] for pair in pairs]) for side in (0, 1))
        idle = await _cpu(product, sizes.gateway_wait_seconds)
        async with _waiting(product.url, sizes.gateway_waiting):
            await asyncio.sleep(sizes.settle_seconds)
            waiting = await _cpu(product, sizes.gateway_wait_seconds)
    return [
        Figure("gateway: an allowed call: median (baseline: at the server itself)", seen, "ms", direct),
        Figure("gateway: what it adds to a call", seen - direct, "ms", None, Limit(OVERHEAD)),
        Figure(
            f"gateway: CPU with {sizes.gateway_waiting} calls that wait (baseline: with none)",
            waiting * 1000,
            "ms/s",
            idle * 1000,
            Limit(20),
        ),
    ]


@asynccontextmanager
async def at_the_gateway(url: str, path: str = "/mcp/bench") -> AsyncIterator[ClientSession]:
    """A client of the gateway, on this machine, where it needs no token."""
    async with streamable_http_client(f"{url}{path}") as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def _at_the_server() -> AsyncIterator[ClientSession]:
    variables: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "bench.tool_server", str(AROUND)], env=dict(variables), cwd=ROOT
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def _called(session: ClientSession, number: int) -> float:
    began = time.perf_counter()
    result = await session.call_tool("read", {"text": f"call {number}"})
    took = time.perf_counter() - began
    if result.isError:
        raise RuntimeError(f"a call that reads was not made: {result.content}")
    return took


@asynccontextmanager
async def _waiting(url: str, calls: int) -> AsyncIterator[None]:
    """Within it so many calls wait for people, each with an open request. A client has ten: its pool has 100
    connections, and a hundred requests would leave none for anything else."""
    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(at_the_gateway(url)) for _ in range(0, calls, CALLS_OF_A_CLIENT)]
        waiting = [
            asyncio.create_task(sessions[n // CALLS_OF_A_CLIENT].call_tool("write", {"text": f"waits {n}"}))
            for n in range(calls)
        ]
        try:
            yield
        finally:
            ended = [each for each in waiting if each.done()]
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            if ended:
                raise RuntimeError(f"{len(ended)} of {calls} calls did not wait: {ended[0]}")


async def _cpu(product: Contestant, seconds: float) -> float:
    """Seconds of CPU that the process takes in a second."""
    process = psutil.Process(product.process.pid)
    before, began = process.cpu_times(), time.monotonic()
    await asyncio.sleep(seconds)
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return float(spent) / (time.monotonic() - began)
