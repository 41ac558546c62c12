"""What comes back for one request: results as they arrive, and our own error codes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from graph.ports import BrokeOff

LONGEST_MESSAGE = 500
"""Characters of the sentence that goes with a sign-in link."""


class Fault(IntEnum):
    """JSON-RPC error codes with which `http_client` answers a request in the server's place.

    Outside the ranges that JSON-RPC and MCP reserve.
    """

    NOT_SENT = -31901
    """The server never got the request."""
    REFUSED = -31902
    """The server did nothing: it answered with an HTTP status that says so, or could not be reached in time."""
    NO_ANSWER = -31903
    """The request was sent, and no proper answer came."""
    SESSION_ENDED = -31904
    """The server does not know our session (any more) and did nothing."""
    SIGN_IN = -31905
    """The person has no account connected, or the server does not accept it; `data` holds its challenge."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """The server certainly never saw the call: it may be sent again over a new connection."""

    reason: str


class ToolPage(BaseModel):
    """A page of `tools/list`, its tools unread: one bad tool must not cost the others."""

    model_config = ConfigDict(extra="ignore")

    tools: list[Any]
    nextCursor: str | None = None  # noqa: N815 - the name in the protocol


class CallResult(BaseModel):
    """The result of `tools/call`, its content unread."""

    model_config = ConfigDict(extra="ignore")

    content: list[Any] = []
    structuredContent: Any = None  # noqa: N815
    isError: bool = False  # noqa: N815


def broke_off(server: str, reason: str) -> BrokeOff:
    """The call was sent and nobody knows what came of it."""
    return BrokeOff(f"{server} gave no answer ({reason}): whether it did it is not known.")


def is_web_link(url: str) -> bool:
    """Whether a browser may be sent there: http or https, a host, no blanks, at most 4,096 characters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    printable = url.isprintable() and not any(c.isspace() for c in url)
    return printable and parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= 4_096
