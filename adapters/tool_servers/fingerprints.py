"""What makes a server the same server: the fingerprint that approvals and remembered tools go by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from adapters.tool_servers.entries import AccountEntry, Entry
from adapters.tool_servers.redaction import names_a_secret
from policies.model import canonical_json


def fingerprint_of(entry: Entry, filled: Mapping[str, Any]) -> str:
    """The fingerprint of what determines what runs: an approval given under one is void under another.

    Command, arguments, folder and URL count with their values; so do variables and headers, except those whose names
    say that they are credentials: of these only the name counts, so that renewing a token voids nothing.
    """

    def telling(named: Mapping[str, str]) -> dict[str, str | None]:
        return {name: None if names_a_secret(name) else value for name, value in named.items()}

    parts = {
        "command": entry.command,
        "args": list(filled["args"]),
        "env": telling(filled["env"]),
        "cwd": entry.cwd,  # as written: the same setup in another folder is the same server
        "url": filled["url"],
        "headers": telling({name.lower(): value for name, value in filled["headers"].items()}),
        "auth": entry.auth
        if not isinstance(entry.auth, AccountEntry)
        else entry.auth.model_dump(exclude={"clientSecret"}),
    }
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()
