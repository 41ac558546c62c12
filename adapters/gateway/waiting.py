"""Waiting for what comes of a call: one place, which knows nothing of how a client is told, or goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bot.gateway.calls import GatewayCalls
from bot.gateway.views import GatewayCallView

TOLD_EVERY = 10.0
"""Seconds after which whoever waits is told again, so that clients and proxies do not take the silence for an end."""
Tell = Callable[[GatewayCallView], Awaitable[None]]


async def outcome(
    calls: GatewayCalls, view: GatewayCallView, seconds: float, tell: Tell, *, ending: asyncio.Event
) -> GatewayCallView | None:
    """Returns the call as it stands when it has ended, after so many seconds, when this process ends, or when an
    operator has stopped everything; `None` when nothing is known of it any more.

    Args:
        view: the call as it stands now.
        tell: is awaited with the call, while it has not ended: at once, whenever it has changed, and every
            `TOLD_EVERY` seconds. What it raises ends the waiting; the call itself goes on.
        ending: set when this process ends.

    Raises what the records raise.
    """
    until = time.monotonic() + seconds
    known: GatewayCallView | None = view
    while known is not None and known.status != "ended" and (left := until - time.monotonic()) > 0:
        await tell(known)
        newer = asyncio.create_task(calls.wait(known.gateway_call_id, known.changed_at, min(left, TOLD_EVERY)))
        others = [asyncio.create_task(each.wait()) for each in (ending, calls.is_stopped)]
        try:
            await asyncio.wait((newer, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (newer, *others):
                each.cancel()
            await asyncio.wait((newer, *others))
        if newer.cancelled() and calls.is_stopped.is_set():
            return await calls.wait(known.gateway_call_id, known.changed_at, 0)
        if newer.cancelled():
            break
        known = newer.result()
    return known
