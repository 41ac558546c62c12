"""A Bolt app that only acknowledges: what ours is measured beside. `python -m bench.bare_bolt`."""

from __future__ import annotations

import asyncio
import os

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bench.serving import serve


def make(api_url: str, token: str, signing_secret: str) -> AsyncApp:
    """The app."""
    app = AsyncApp(client=AsyncWebClient(token=token, base_url=api_url), signing_secret=signing_secret)

    @app.event("app_mention")
    async def mentioned() -> None:
        """Bolt has acknowledged already."""

    return app


async def main() -> None:
    """Serve until killed; says where in the form of the product's log."""
    app = make(os.environ["SLACK_API_URL"], os.environ["SLACK_BOT_TOKEN"], os.environ["SLACK_SIGNING_SECRET"])

    async def events(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    application = web.Application()
    application.add_routes([web.post("/slack/events", events), web.get("/health-check", health)])
    await serve(application)


if __name__ == "__main__":
    asyncio.run(main())
