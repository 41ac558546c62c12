"""Sign in with Slack for a Slack on loopback: the same address serves its Web API and its OpenID Connect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.fakes.oauth.identity import IdentityFake, User

_ASIDE = {"host", "content-length", "transfer-encoding", "connection"}


@asynccontextmanager
async def slack_with_login(api_url: str, users: Mapping[str, User]) -> AsyncIterator[IdentityFake]:
    """Passes `/api/…` on to the Slack at `api_url`; the rest is the identity provider."""
    login = IdentityFake("C1.client", "secret-of-the-slack-client-0123456789", dict(users))
    async with aiohttp.ClientSession() as session:

        async def pass_on(request: web.Request) -> web.Response:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _ASIDE}
            url = f"{api_url}{request.match_info['method']}"
            async with session.request(
                request.method, url, params=request.query, data=await request.read(), headers=headers
            ) as answer:
                kept = {
                    name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers
                }
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)

        application = web.Application()
        application.router.add_route("*", "/api/{method}", pass_on)
        application.add_routes(login.routes())
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            login.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield login
        finally:
            await runner.cleanup()


def variables_of(login: IdentityFake) -> dict[str, str]:
    """What switches it on."""
    return {
        "SLACK_API_URL": f"{login.base}/api/",
        "SLACK_CLIENT_ID": login.client_id,
        "SLACK_CLIENT_SECRET": login.client_secret,
    }
