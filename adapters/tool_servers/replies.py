"""What comes back for one request: our own error codes, and how errors become outcomes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from adapters.tool_servers.redaction import Redact, unchanged
from adapters.tool_servers.results import reported
from adapters.tool_servers.text import clean, one_line
from graph.ports import BrokeOff, Failed, SignInNeeded, ToolOutcome

LONGEST_MESSAGE = 500
"""Characters of the sentence that goes with a sign-in link."""

CONNECTION_CLOSED = -32000
"""The MCP SDK answers open requests with it when the connection ends; servers may use the code for anything."""

URL_ELICITATION_REQUIRED = -32042
"""MCP 2025-11-25: the server did nothing, a person must open a link first."""


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


def outcome_of_error(
    server: str,
    code: int,
    message: str,
    data: Any,
    *,
    secrets: Collection[str] = (),
    redact: Redact = unchanged,
) -> ToolOutcome | NotSent:
    """What a JSON-RPC error in reply to a tool call means."""
    match code:
        case Fault.NOT_SENT | Fault.SESSION_ENDED:
            return NotSent(message)
        case Fault.REFUSED:
            return Failed(f"{server} {message}. Nothing was done.")
        case Fault.NO_ANSWER:
            return broke_off(server, message)
        case _ if code == CONNECTION_CLOSED and message == "Connection closed":
            return broke_off(server, "the connection was lost")
        case _ if code == URL_ELICITATION_REQUIRED:
            return _sign_in(server, message, data, redact)
        case _:
            return Failed(reported(server, message, secrets=secrets, redact=redact))


def broke_off(server: str, reason: str) -> BrokeOff:
    """The call was sent and nobody knows what came of it."""
    return BrokeOff(f"{server} gave no answer ({reason}): whether it did it is not known.")


def _sign_in(server: str, message: str, data: Any, redact: Redact) -> SignInNeeded | Failed:
    elicitations = data.get("elicitations") if isinstance(data, Mapping) else None
    for each in elicitations if isinstance(elicitations, Sequence) else ():
        url = each.get("url") if isinstance(each, Mapping) else None
        if not isinstance(url, str) or not _is_web_link(url):
            continue
        said, elicitation_id = each.get("message"), each.get("elicitationId")
        return SignInNeeded(
            url=url,
            message=one_line(redact(clean(said if isinstance(said, str) else message)), LONGEST_MESSAGE),
            elicitation_id=elicitation_id if isinstance(elicitation_id, str) else None,
        )
    return Failed(f"{server} wants somebody to open a link first, but did not give a usable one. Nothing was done.")


def _is_web_link(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    printable = url.isprintable() and not any(c.isspace() for c in url)
    return printable and parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= 4_096
