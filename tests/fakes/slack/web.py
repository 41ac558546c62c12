"""The fake's HTTP: the Web API, response URLs, the WebSocket."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.fakes.faults import Fault, Faults
from tests.fakes.slack import response_urls
from tests.fakes.slack.calls import ApiCall, read_call
from tests.fakes.slack.methods import answer
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.world import Json, World


def routes(world: World, faults: Faults, sockets: Sockets, calls: list[ApiCall]) -> list[web.RouteDef]:
    """Everything that Slack answers."""

    async def api(request: web.Request) -> web.StreamResponse:
        try:
            call = await read_call(request)
        except Refused as refused:
            return _refusal(refused)
        calls.append(call)
        await faults.held(call.method)
        fault = faults.of(call.method, call.arguments)
        if fault is not None and not fault.drop:
            return _failure(fault)
        try:
            body: Json = {"ok": True, **answer(world, call)}
        except Refused as refused:
            return _refusal(refused)
        if fault is not None:
            return _cut(request)
        token = world.tokens.get(call.token)
        scopes = world.workspaces[token.team].scopes if token else ""
        return web.json_response(body, headers={"x-oauth-scopes": scopes})

    async def respond(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        calls.append(ApiCall("response_url", body, ""))
        await faults.held("response_url")
        fault = faults.of("response_url", body)
        if fault is not None and not fault.drop:
            return _failure(fault)
        try:
            response_urls.respond(world, request.match_info["name"], body)
        except Refused as refused:
            return web.json_response({"ok": False, "error": refused.error}, status=404)
        return _cut(request) if fault is not None else web.Response(text="ok")

    async def download(request: web.Request) -> web.StreamResponse:
        """As Slack does: whoever may not see a file is shown where one signs in."""
        token = world.tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        file = world.files.get(request.match_info["file"])
        fault = faults.of("download", {"file": request.match_info["file"]})
        if fault is not None:
            return _failure(fault)
        if request.match_info["file"] in world.moved:
            return web.Response(status=302, headers={"Location": world.moved[request.match_info["file"]]})
        if file is None:
            return web.Response(status=404)
        if token is None or "files:read" not in world.workspaces[token.team].scopes.split(","):
            return web.Response(text="<html>Sign in to Acme</html>", content_type="text/html")
        return web.Response(body=file[0], content_type=file[1].get("mimetype") or "application/octet-stream")

    return [
        web.get("/files-pri/{file}", download),
        web.route("*", "/api/{method}", api),
        web.post("/response/{name}", respond),
        web.get("/link", sockets.serve),
    ]


def _refusal(refused: Refused) -> web.Response:
    detail: dict[str, Any] = {"response_metadata": {"messages": list(refused.messages)}} if refused.messages else {}
    return web.json_response({"ok": False, "error": refused.error, **detail})


def _failure(fault: Fault) -> web.Response:
    if fault.error:
        return _refusal(Refused(fault.error))
    headers = {"Retry-After": f"{fault.retry_after:g}"} if fault.retry_after is not None else {}
    if fault.status == 429:
        return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
    return web.Response(
        status=fault.status, text="<html>Server Error</html>", content_type="text/html", headers=headers
    )


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
