"""An aiohttp handler that only answers: beside it the product's answers to invokes are measured.
`python -m bench.bare_handler`."""

from __future__ import annotations

import asyncio

from aiohttp import web

from bench.serving import serve


async def answer(request: web.Request) -> web.Response:
    """Read the activity, and answer as an invoke is answered; nothing is checked, looked up or kept."""
    await request.json()
    body = {"statusCode": 200, "type": "application/vnd.microsoft.activity.message", "value": "Done."}
    return web.json_response(body)


async def health(_: web.Request) -> web.Response:
    """It runs."""
    return web.json_response({"status": "ok"})


async def main() -> None:
    """Serve until killed; says where in the form of the product's log."""
    application = web.Application()
    application.add_routes([web.post("/api/messages", answer), web.get("/health-check", health)])
    await serve(application)


if __name__ == "__main__":
    asyncio.run(main())
