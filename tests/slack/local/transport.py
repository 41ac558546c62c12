"""The request URL that local-slack is told before the product has an address: passes everything on, byte for byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

_PASSED_ON = ("Content-Type", "X-Slack-Signature", "X-Slack-Request-Timestamp")


class Transport:
    """An address that leads to the product as soon as it is known where the product is."""

    def __init__(self) -> None:
        self.url = ""
        self.leads_to = ""
        self.statuses: list[int] = []
        """What the product answered, request by request."""


@asynccontextmanager
async def transport() -> AsyncIterator[Transport]:
    """A transport on a free port."""
    opened = Transport()
    async with aiohttp.ClientSession() as session:

        async def pass_on(request: web.Request) -> web.Response:
            headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
            async with session.post(opened.leads_to, data=await request.read(), headers=headers) as answer:
                opened.statuses.append(answer.status)
                return web.Response(status=answer.status, body=await answer.read(), content_type=answer.content_type)

        application = web.Application()
        application.router.add_post("/slack/events", pass_on)
        runner = web.AppRunner(application, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        opened.url = f"http://{host}:{port}/slack/events"
        try:
            yield opened
        finally:
            await runner.cleanup()
