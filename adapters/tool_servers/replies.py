"""What comes back for one request: results as they arrive, and what we know ourselves when none does. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from graph.ports import BrokeOff

LONGEST_MESSAGE = 500
"""Characters of what a server says of a sign-in link, or in place of an answer."""

NOT_LOOKED_UP = "was not asked: the account could not be looked up"

MOST_FAULTS = 1_000
"""Faults of requests that nobody waits for any more."""

RequestId = str | int


class FaultKind(Enum):
    """What our own HTTP client knows of a request that got no proper answer."""

    NOT_SENT = auto()
    """The request was not written: certainly, the server never got it."""
    REFUSED = auto()
    """The server did nothing: it answered with an HTTP status that can mean nothing else."""
    NO_ANSWER = auto()
    """The request was written, and no answer of the protocol came: the server may have acted."""
    SESSION_ENDED = auto()
    """HTTP 404. By the specification the server does not know our session (any more); some say it for other things,
    after they have acted."""
    SIGN_IN = auto()
    """The person has no account connected, or the server does not accept it: it did nothing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What became of one request."""

    kind: FaultKind
    reason: str
    """Ends a sentence that begins with the server's name."""
    said: str = ""
    """What the server said in place of an answer, as it came."""
    challenge: str = ""
    """`WWW-Authenticate` of the answer, where there was one."""


Faults = dict[RequestId, Fault]
"""The faults of one session by the ids of their requests. The MCP SDK knows no way but an error in the server's place
to end a request; what the error means stands here, where no server can write."""


_OUR_WORDS = -32603
"""Code of the errors that end a request in the server's place (JSON-RPC's "internal error"). It means nothing."""


def ended_by_us(faults: Faults, request_id: RequestId, fault: Fault) -> dict[str, Any]:
    """The error that ends a request in the server's place; what it means is put into the table."""
    faults[request_id] = fault
    if len(faults) > MOST_FAULTS:
        del faults[next(iter(faults))]
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": _OUR_WORDS, "message": fault.reason}}


class FaultError(Exception):
    """A request came to nothing, as our own HTTP client knows."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class SessionLost:
    """A call was answered with HTTP 404. It may be sent over another session if it may be repeated."""

    reason: str
    otherwise: BrokeOff
    """Its outcome if it may not."""


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


def broke_off(server: str, reason: str, said: str = "", owner: str | None = None) -> BrokeOff:
    """The call was sent and nobody knows what came of it. `said`: what the server said, safe to show."""
    text = f"{server} gave no answer ({reason}): whether it did it is not known."
    return BrokeOff(f"{text} It said: {said}" if said else text, owner if said else None)


def is_web_link(url: str) -> bool:
    """Whether a browser may be sent there: http or https, a host, no blanks, at most 4,096 characters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    printable = url.isprintable() and not any(c.isspace() for c in url)
    return printable and parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= 4_096
