"""The fake's HTTP: the Bot Connector, and where tokens and keys come from."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.faults import Fault, Faults
from tests.fakes.teams import connector, graph, login
from tests.fakes.teams.calls import ApiCall, bearer, read_body
from tests.fakes.teams.refused import CODES, Refused
from tests.fakes.teams.streams import Streams
from tests.fakes.teams.tokens import Issuer
from tests.fakes.teams.world import GROUP_OF_TEAM, World

TEMPORARY = "temporary-secret"
"""What a link to a file has to say."""
SERVICE = "/teams"
"""Where the Bot Connector begins; real ones have a path, too."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Services:
    """What the routes work on."""

    world: World
    issuer: Issuer
    streams: Streams
    faults: Faults
    secret: str
    identity_secret: str
    asks_for_token: bool = True
    """Off: calls without a token are taken, as by a local client."""
    calls: list[ApiCall] = field(default_factory=list)
    login_calls: list[ApiCall] = field(default_factory=list)


def routes(services: Services) -> list[web.RouteDef]:
    """Everything that Microsoft answers."""

    def connector_route(verb: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await _connector(services, verb, request)

        return handle

    def login_route(verb: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await _login(services, verb, request)

        return handle

    async def download(request: web.Request) -> web.StreamResponse:
        """For whoever has the link, which is good for some minutes; without what opens it, it leads to a sign-in."""
        content = services.world.files.get(request.match_info["name"])
        fault = services.faults.of("download", {"name": request.match_info["name"]})
        if fault is not None:
            return _failure(fault)
        if "tempauth" not in request.query:
            return web.Response(text="<!doctype html><title>Sign in to your account</title>", content_type="text/html")
        if content is None or request.query["tempauth"] != TEMPORARY:
            return web.Response(status=404 if content is None else 401)
        media_type = mimetypes.guess_type(request.match_info["name"])[0] or "application/octet-stream"
        return web.Response(body=content, content_type=media_type, headers={"Content-Disposition": "attachment"})

    def graph_route(verb: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await _graph(services, verb, request)

        return handle

    conversations = f"{SERVICE}/v3/conversations"
    one = f"{conversations}/{{conversation}}"
    return [
        web.post(conversations, connector_route("open")),
        web.post(f"{one}/activities", connector_route("send")),
        web.post(f"{one}/activities/", connector_route("send")),
        web.post(f"{one}/activities/{{activity}}", connector_route("send")),
        web.put(f"{one}/activities/{{activity}}", connector_route("update")),
        web.delete(f"{one}/activities/{{activity}}", connector_route("delete")),
        web.get(f"{one}/members/{{user}}", connector_route("member")),
        web.get(f"{one}/pagedmembers", connector_route("members")),
        web.post("/login/{tenant}/oauth2/v2.0/token", login_route("token")),
        web.get("/v1/.well-known/openidconfiguration", login_route("metadata")),
        web.get("/v1/.well-known/keys", login_route("keys")),
        web.get("/msi/token", login_route("managed_identity")),
        web.post("/graph/v1.0/users/{user}/checkMemberGroups", graph_route("member_groups")),
        web.get("/graph/v1.0/users/{user}", graph_route("account")),
        web.get("/graph/v1.0/chats/{place}/messages/{root}", graph_route("message")),
        web.get("/graph/v1.0/teams/{team}/channels/{place}/messages/{root}", graph_route("message")),
        web.get("/graph/v1.0/teams/{team}/channels/{place}/messages/{root}/replies/{reply}", graph_route("message")),
        web.get("/graph/v1.0/shares/{share}/driveItem", graph_route("file_facts")),
        web.get("/graph/v1.0/shares/{share}/driveItem/content", graph_route("file")),
        web.get("/download/{name}", download),
    ]


async def _connector(services: Services, verb: str, request: web.Request) -> web.StreamResponse:
    try:
        body = await read_body(request)
    except Refused as refused:
        return _refusal(refused)
    if verb == "open":
        verb = "open_thread" if body.get("isGroup") else "open_chat"
    parts = dict(request.match_info)
    path = request.path.removeprefix(SERVICE)
    token = bearer(request)
    call = ApiCall(request.method, path, dict(request.query), body, token, verb, parts.get("conversation", ""))
    services.calls.append(call)
    await services.faults.held(verb)
    fault = services.faults.of(verb, body)
    if fault is not None and not fault.drop:
        return _failure(fault)
    if services.asks_for_token and not services.issuer.is_good(token):
        return _refusal(Refused("Unauthorized", "Authorization has been denied for this request."))
    services.streams.expire()
    try:
        status, answered = connector.answer(services.world, services.streams, call, parts)
    except Refused as refused:
        return _refusal(refused)
    if fault is not None:
        return _cut(request)
    return web.Response(status=status) if answered is None else web.json_response(answered, status=status)


async def _graph(services: Services, verb: str, request: web.Request) -> web.StreamResponse:
    body = await request.json() if request.method == "POST" else {}
    token = bearer(request)
    services.login_calls.append(ApiCall(request.method, request.path, dict(request.query), body, token, verb))
    await services.faults.held(verb)
    fault = services.faults.of(verb, body)
    if fault is not None:
        return _failure(fault)
    if not services.issuer.is_good(token):
        return _refusal(Refused("InvalidAuthenticationToken", "Access token is empty.", status=401))
    if verb in {"file", "file_facts"}:
        return _shared_file(services.world, verb, request)
    if verb == "message":
        return _message(services.world, request.match_info)
    user = request.match_info["user"]
    try:
        answered = (
            graph.member_groups(services.world, user, body)
            if verb == "member_groups"
            else graph.account(services.world, user)
        )
    except Refused as refused:
        return _refusal(refused)
    return web.json_response(answered)


def _message(world: World, named: Mapping[str, str]) -> web.StreamResponse:
    """A message with all that is attached to it."""
    wanted = "ChannelMessage.Read.Group" if "team" in named else "ChatMessage.Read.Chat"
    if wanted not in world.graph_permissions:
        return _refusal(Refused("Forbidden", "Missing role permissions on the request.", status=403))
    place = world.conversations.get(named["place"])
    message = place.messages.get(named.get("reply", named["root"])) if place is not None else None
    thread = f"{named['place']};messageid={named['root']}" if "team" in named else named["place"]
    if message is None or message.conversation != thread or named.get("team", GROUP_OF_TEAM) != GROUP_OF_TEAM:
        return _refusal(Refused("NotFound", "NotFound", status=404))
    return web.json_response({"id": message.id, "attachments": world.unsaid_files.get(message.id, [])})


def _shared_file(world: World, verb: str, request: web.Request) -> web.StreamResponse:
    """Graph sends whoever asks for the content of a file to a link that is good for some minutes."""
    if not {"Files.Read.All", "Sites.Selected"} & world.graph_permissions:
        return _refusal(Refused("accessDenied", "Access denied", status=403))
    encoded = request.match_info["share"].removeprefix("u!")
    address = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    name = address.rpartition("/")[2]
    if name not in world.files:
        return _refusal(Refused("itemNotFound", "The resource could not be found.", status=404))
    if verb == "file_facts":
        people = {who: {"user": {"id": user}} for who, user in world.file_people.get(name, {}).items()}
        return web.json_response({"name": name, "size": len(world.files[name]), **people})
    link = f"{request.url.origin()}/download/{name}?tempauth={TEMPORARY}"
    return web.Response(status=302, headers={"Location": link})


async def _login(services: Services, verb: str, request: web.Request) -> web.StreamResponse:
    fields = dict(await request.post()) if request.method == "POST" else {}
    body: dict[str, Any] = {name: str(value) for name, value in fields.items()}
    call = ApiCall(request.method, request.path, dict(request.query), body, bearer(request), verb)
    services.login_calls.append(call)
    await services.faults.held(verb)
    fault = services.faults.of(verb, body)
    if fault is not None and not fault.drop:
        return _failure(fault)
    status, answered = _login_answer(services, verb, request, body)
    return _cut(request) if fault is not None else web.json_response(answered, status=status)


def _login_answer(
    services: Services, verb: str, request: web.Request, body: Mapping[str, str]
) -> tuple[int, dict[str, Any]]:
    world, issuer = services.world, services.issuer
    if verb == "token":
        tenants = {world.tenant, "botframework.com"}
        return login.token(issuer, tenants, services.secret, request.match_info["tenant"], body)
    if verb == "managed_identity":
        return login.managed_identity(issuer, services.identity_secret, request.headers, request.query)
    if verb == "keys":
        return 200, issuer.keys()
    return 200, login.metadata(f"{request.scheme}://{request.host}")


def _refusal(refused: Refused) -> web.Response:
    headers = {"Retry-After": "1"} if refused.status == 429 else {}
    return web.json_response(refused.body, status=refused.status, headers=headers)


def _failure(fault: Fault) -> web.Response:
    headers = {"Retry-After": f"{fault.retry_after:g}"} if fault.retry_after is not None else {}
    if fault.status in (502, 503, 504) and fault.error == CODES[fault.status]:
        page = "<html>Server Error</html>"
        return web.Response(status=fault.status, text=page, content_type="text/html", headers=headers)
    body = Refused(fault.error, "The test wants it so.", status=fault.status).body
    return web.Response(status=fault.status, text=json.dumps(body), content_type="application/json", headers=headers)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
