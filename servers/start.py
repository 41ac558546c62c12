"""Starting a bundled server: over stdio as MCP clients do it, or over HTTP on this machine only."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

from mcp.server.fastmcp import FastMCP


def start_server(name: str, *, database_variable: str, build: Callable[[Path], FastMCP]) -> None:
    """Serve until the client goes away.

    `build` makes the server over a database file, whose path comes from the environment variable
    `database_variable` (default `data/{name}.db`). A file that cannot be used ends the process with one sentence.
    """
    options = _parser(name).parse_args()
    path = Path(os.environ.get(database_variable) or f"data/{name}.db")
    try:
        server = build(path)
    except (OSError, sqlite3.Error) as error:
        sys.exit(f"{name}: the database {path} cannot be used ({error}). Set {database_variable} to a writable file.")
    try:
        if options.http is None:
            server.run(transport="stdio")
        else:
            server.settings.port = options.http
            server.settings.log_level = "INFO"  # says on stderr which port it got
            server.run(transport="streamable-http")
    except KeyboardInterrupt:
        return


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m servers.{name}", description=f"The {name} MCP server.")
    parser.add_argument(
        "--http",
        type=_port,
        metavar="PORT",
        help="serve streamable HTTP at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes a free port",
    )
    return parser


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 0 to 65535")
    return int(text)
