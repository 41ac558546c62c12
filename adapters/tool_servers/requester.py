"""Tells a server for whom a call is made, where `mcp.json` says so (`tellRequester`), and signs it.

The servers' half, which says how it is written, is `servers/requester.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from policies.model import canonical_json

KEY = "countersign/requester"
"""Under which it stands in the call's `_meta`."""
FILES = "countersign/files"
"""Under which the files stand there that the call names."""
SECRET_VARIABLE = "COUNTERSIGN_REQUESTER_SECRET"  # noqa: S105 - the variable's name
NAME_VARIABLE = "COUNTERSIGN_REQUESTER_SERVER"
"""The variables by which a program that we start knows the secret, and its name in `mcp.json`."""
SHORTEST_SECRET = 32
"""Bytes of a secret that is shared with a server."""


def new_secret() -> str:
    """One for a program that we start ourselves."""
    return secrets.token_hex(SHORTEST_SECRET)


def told_requester(
    person: str,
    server: str,
    tool: str,
    arguments: dict[str, Any],
    *,
    secret: str,
    at: int,
    channel: str | None = None,
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `_meta` says of a call.

    Args:
        server: its name in `mcp.json`.
        at: seconds since 1970.
        channel: in which they ask; empty: nobody reads along; `None`: the server is not told.
        files: that the call names, by their ids.
    """
    signed: dict[str, Any] = {
        "arguments": _digest(arguments),
        "at": at,
        "person": person,
        "server": server,
        "tool": tool,
    }
    told: dict[str, Any] = {"person": person, "server": server, "at": at}
    if channel is not None:
        signed["channel"] = told["channel"] = channel
    if files:
        signed["files"] = _digest(dict(files))
    signature = hmac.new(secret.encode(), _written(signed), hashlib.sha256).hexdigest()
    return {KEY: {**told, "signature": signature}} | ({FILES: dict(files)} if files else {})


def _digest(value: dict[str, Any]) -> str:
    return hashlib.sha256(_written(value)).hexdigest()


def _written(value: dict[str, Any]) -> bytes:
    # Half of a surrogate pair cannot be sent as it is: what arrives may not be what was signed, and is refused then.
    return canonical_json(value).encode("utf-8", "replace")
