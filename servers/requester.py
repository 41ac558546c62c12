"""Who asks, as a host tells a server in the `_meta` of a call, and signs with a secret that both know.

    "_meta": {"countersign/requester": {"person": "slack:T1:U2", "server": "tasks", "at": 1795000000, "signature": "…"}}

`signature` is the HMAC-SHA256, hexadecimal, of one line of JSON (keys sorted, no spaces, not escaped, UTF-8) with
`arguments` (the SHA-256, hexadecimal, of the call's arguments in the same form), `at` (seconds since 1970), `person`,
`server` and `tool`. A server that was started without a secret serves whoever it is, as long as nobody says who asks.

Where the host says in which channel they ask (`tellChannel` in its `mcp.json`), there is `channel` beside `person`, and
in the signed line; empty: nobody reads along. Where it hands files over, they stand under `FILES` in `_meta`, and the
signed line has `files`, the SHA-256 of that object in the same form.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

KEY = "countersign/requester"
"""Under which it stands in `_meta`."""
SECRET = "COUNTERSIGN_REQUESTER_SECRET"  # noqa: S105  # the variable's name
"""The variable with the secret; where it is set, calls that do not say who asks are refused."""
NAME = "COUNTERSIGN_REQUESTER_SERVER"
"""The variable with the name that the host knows the server by; without it, it is the server's own."""
SHORTEST_SECRET = 32
"""Bytes: as many as the digest has (RFC 2104)."""
VALID_SECONDS = 300
"""How far its clock and ours may be apart, the call's way included."""

FILES = "countersign/files"
"""Under which `_meta` holds the files that a call names, by their ids: `{"name": …, "mediaType": …, "text": …}`."""

asking: ContextVar[str] = ContextVar("asking", default="")
"""The person for whom the call is made that is being answered; empty: nobody said."""
asking_in: ContextVar[str | None] = ContextVar("asking_in", default=None)
"""The channel in which they ask; empty: nobody reads along; `None`: nobody said."""
handed_over: ContextVar[Mapping[str, Any]] = ContextVar("handed_over", default=MappingProxyType({}))
"""The files that the call names, by their ids."""


class RequesterUnknown(Exception):  # noqa: N818 - it is an answer, not a defect
    """It is not certain who asks. Its text is one sentence for people."""


class _Statement(BaseModel):
    """What the host says."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    person: str
    server: str
    at: int
    signature: str
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, and where."""

    person: str
    """Empty: nobody in particular."""
    channel: str | None = None
    """As `asking_in`."""


class Requesters:
    """Tells who asks. `server`: the name that the host knows the server by; `now`: seconds since 1970.

    Without a secret it is nobody in particular. Raises `ValueError`, with a sentence, for one that is too short.
    """

    def __init__(self, server: str, secret: str | None = None, now: Callable[[], float] = time.time) -> None:
        if secret is not None and len(secret.encode()) < SHORTEST_SECRET:
            raise ValueError(f"{SECRET} is too short. Use at least {SHORTEST_SECRET} characters.")
        self._server = server
        self._secret = None if secret is None else secret.encode()
        self._now = now

    def requester_of(
        self, said: Any, tool: str, arguments: Mapping[str, Any], files: Mapping[str, Any] | None = None
    ) -> Requester:
        """Who makes a call, from what stands under `KEY` in its `_meta` (`None`: nothing). `files`: what stands under
        `FILES`. Raises `RequesterUnknown`."""
        if self._secret is None:
            if said is None and not files:
                return Requester("")
            raise RequesterUnknown(f"It cannot be checked who asks: this server was started without {SECRET}.")
        if said is None:
            raise RequesterUnknown("The call does not say who asks, and everybody has something of their own here.")
        try:
            statement = _Statement.model_validate(said)
        except ValidationError:
            raise RequesterUnknown("What the call says of who asks is not of the kind that is known here.") from None
        wanted = _signature(statement, tool, arguments, files, secret=self._secret)
        if not statement.person or not hmac.compare_digest(statement.signature.encode(), wanted.encode()):
            raise RequesterUnknown("Who asks is not signed with this server's secret, or not for this call.")
        if statement.server != self._server:
            raise RequesterUnknown("Who asks was said to another server.")
        if abs(self._now() - statement.at) > VALID_SECONDS:
            raise RequesterUnknown(
                f"Who asks was said more than {VALID_SECONDS // 60} minutes from now: compare the two clocks."
            )
        return Requester(statement.person, statement.channel)


def _signature(
    statement: _Statement,
    tool: str,
    arguments: Mapping[str, Any],
    files: Mapping[str, Any] | None,
    *,
    secret: bytes,
) -> str:
    signed = {
        "arguments": hashlib.sha256(_written(arguments)).hexdigest(),
        "at": statement.at,
        "person": statement.person,
        "server": statement.server,
        "tool": tool,
    }
    if statement.channel is not None:
        signed["channel"] = statement.channel
    if files:
        signed["files"] = hashlib.sha256(_written(files)).hexdigest()
    return hmac.new(secret, _written(signed), hashlib.sha256).hexdigest()


def _written(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
