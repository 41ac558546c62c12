"""How a contestant of the bench serves: until it is killed, after saying where in the form of the product's log."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from aiohttp import web


async def serve(application: web.Application) -> None:
    """Listen on `PORT` of loopback; 0 or none: a free one."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(os.environ.get("PORT", "0"))).start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(json.dumps({"event": "listening", "url": f"http://{host}:{port}"}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
