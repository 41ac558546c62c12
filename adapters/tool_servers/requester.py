"""Tells a server for whom a call is made, where `mcp.json` says so (`tellRequester`), and signs it.

The servers' half, which says how it is written, is `servers/requester.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from policies.model import canonical_json

KEY = "countersign/requester"
"""Under which it stands in the call's `_meta`."""
SECRET_VARIABLE = "COUNTERSIGN_REQUESTER_SECRET"  # noqa: S105 - the variable's name
NAME_VARIABLE = "COUNTERSIGN_REQUESTER_SERVER"
"""The variables by which a program that we start knows the secret, and its name in `mcp.json`."""
SHORTEST_SECRET = 32
"""Bytes of a secret that is shared with a server."""


def new_secret() -> str:
    """One for a program that we start ourselves."""
    return secrets.token_hex(SHORTEST_SECRET)


def told_requester(
    person: str, server: str, tool: str, arguments: dict[str, Any], *, secret: str, at: int
) -> dict[str, Any]:
    """What `_meta` says of a call. `server`: its name in `mcp.json`; `at`: seconds since 1970."""
    digest = hashlib.sha256(_written(arguments)).hexdigest()
    signed = {"arguments": digest, "at": at, "person": person, "server": server, "tool": tool}
    signature = hmac.new(secret.encode(), _written(signed), hashlib.sha256).hexdigest()
    return {KEY: {"person": person, "server": server, "at": at, "signature": signature}}


def _written(value: dict[str, Any]) -> bytes:
    # Half of a surrogate pair cannot be sent as it is: what arrives may not be what was signed, and is refused then.
    return canonical_json(value).encode("utf-8", "replace")
