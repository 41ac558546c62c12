"""Starting a bundled server: over stdio as MCP clients do it, or over HTTP, beyond this machine only with a token."""

from __future__ import annotations

import argparse
import gc
import hmac
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from mcp.server.fastmcp import FastMCP

from servers import requester
from servers.plain_server import PlainServer

TOKEN = "TOOL_SERVER_TOKEN"  # noqa: S105  # the variable's name
"""The variable with what clients have to send as `Authorization: Bearer`, over HTTP."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
STOPPING_SECONDS = 3
"""How long calls under way may take once it is told to end. Clients keep an event stream open for as long as they run.
"""
SHORTEST_TOKEN = 16
"""Characters. Our own choice: it is made by a program, and nobody types it."""


def start_server(name: str, *, database_variable: str, build: Callable[[str], PlainServer]) -> None:
    """Serve until the client goes away.

    `build` makes the server over a database, whose address (a file's path; some take a URL) comes from the environment
    variable `database_variable` (default `data/{name}.db`). One that cannot be used (`OSError`, `sqlite3.Error`), or a
    setting that makes no sense (`ValueError`), ends the process with one sentence.
    """
    options, given = _parser(name).parse_args(), without_last_line_breaks(os.environ)
    token = given.get(TOKEN, "")
    if options.http is not None and (mistake := _mistake(options.host, token)):
        sys.exit(f"{name}: {mistake}")
    try:
        known_as = given.get(requester.NAME) or name
        requesters = requester.Requesters(known_as, given.get(requester.SECRET))
    except ValueError as error:
        sys.exit(f"{name}: {error}")
    address = given.get(database_variable) or f"data/{name}.db"
    try:
        server = build(address)
    except (OSError, sqlite3.Error) as error:
        if "://" in address:  # which may hold a password
            sys.exit(f"{name}: the database cannot be used ({error}). Look at {database_variable}.")
        sys.exit(
            f"{name}: the database {address} cannot be used ({error}). Set {database_variable} to a writable file."
        )
    except ValueError as error:
        sys.exit(f"{name}: {error}")
    server.requesters = requesters
    gc.freeze()  # what is imported stays: it need not be looked through for garbage, not even at the end
    try:
        if options.http is None:
            server.run(transport="stdio")
        else:
            _serve_over_http(server, options.host, options.http, token)
    except KeyboardInterrupt:
        return


def without_last_line_breaks(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without the line break at the end, which files with secrets have: no client could send it."""
    return {variable: value.rstrip("\r\n") for variable, value in environment.items()}


def _mistake(host: str, token: str) -> str:
    if token and len(token) < SHORTEST_TOKEN:
        return f"{TOKEN} is too short. Use at least {SHORTEST_TOKEN} characters."
    if host not in LOOPBACK and not token:
        return f"{host} can be reached by others. Set {TOKEN}, which they then have to send, or leave out --host."
    return ""


def _serve_over_http(server: FastMCP, host: str, port: int, token: str) -> None:
    """`/mcp`, for whoever has the token if there is one; and `/health` for everybody, which says that it serves."""
    import uvicorn  # noqa: PLC0415  # stdio has no use for it
    from starlette.requests import Request  # noqa: PLC0415  # the same
    from starlette.responses import PlainTextResponse, Response  # noqa: PLC0415  # the same

    if host not in LOOPBACK:
        # Pages of strangers, against which the Host header is looked at on loopback, do not know the token.
        server.settings.transport_security = None

    async def health(_request: Request) -> Response:
        return PlainTextResponse("ok")

    server.custom_route(HEALTH, methods=["GET"])(health)
    application = server.streamable_http_app()
    uvicorn.run(
        WithToken(application, token) if token else application,
        host=host,
        port=port,
        log_level="info",  # says on stderr which port it got
        timeout_graceful_shutdown=STOPPING_SECONDS,
    )


HEALTH = "/health"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class WithToken:
    """An ASGI application for those who send a token; others get 401."""

    def __init__(self, application: Application, token: str) -> None:
        self._application = application
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "http" and scope["path"] != HEALTH:
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(given) != 1 or not hmac.compare_digest(given[0], self._wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body"})
                return
        await self._application(scope, receive, send)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m servers.{name}", description=f"The {name} MCP server.")
    parser.add_argument(
        "--http",
        type=_port,
        metavar="PORT",
        help="serve streamable HTTP at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes a free port",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help=f"with --http: the address to listen on (default: 127.0.0.1). Beyond this machine it needs {TOKEN}",
    )
    return parser


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 0 to 65535")
    return int(text)
