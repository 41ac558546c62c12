"""What a server's answer to a call means: results and errors as outcomes. Pure, and nothing is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.tool_servers.config import SignInRule
from adapters.tool_servers.redaction import Redact, unchanged, without_known, without_secrets
from adapters.tool_servers.replies import (
    LONGEST_MESSAGE,
    CallResult,
    Fault,
    FaultKind,
    SessionLost,
    broke_off,
    is_web_link,
)
from adapters.tool_servers.results import failed, reported, succeeded
from adapters.tool_servers.sign_in_links import sign_in_link
from adapters.tool_servers.text import clean, one_line
from graph.ports import AccountNeeded, BrokeOff, Failed, NotSent, SignInNeeded, ToolOutcome

CONNECTION_CLOSED = -32000
"""The MCP SDK answers open requests with it when the connection ends; servers may use the code for anything."""

URL_ELICITATION_REQUIRED = -32042
"""MCP 2025-11-25: the server did nothing, a person must open a link first."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the answers of one session are read."""

    server: str
    limit: int = 16_000
    """Bytes of UTF-8 that the model gets of a result."""
    secrets: frozenset[str] = frozenset()
    redact: Redact = unchanged
    owner: str | None = None
    """Whose account the session uses: what it says is for that person only."""
    connection: str | None = None
    """Name of the connection that the account is of."""
    sign_in: SignInRule | None = None
    """How a result says that somebody must sign in; `None`: no result does."""

    def sentence(self, said: str) -> str:
        """What the server says about a link, as it may be shown."""
        said = said[: 16 * LONGEST_MESSAGE]
        return one_line(self.redact(without_known(clean(said), self.secrets)), LONGEST_MESSAGE)

    def broke_off(self, reason: str, said: str = "") -> BrokeOff:
        """Nobody knows what came of the call. `said`: what the server said, as it came."""
        # Cut to its length after taking secrets out: half a secret is no longer recognised.
        beginning = clean(said[: 16 * LONGEST_MESSAGE])
        shown = one_line(without_secrets(self.redact(beginning), self.secrets), LONGEST_MESSAGE)
        return broke_off(self.server, reason, shown, self.owner)


def outcome_of_result(result: CallResult, reading: Reading) -> ToolOutcome:
    """What a result of `tools/call` means. Whatever it says, it is a result, unless the operator's rule for signing in
    fits it: then the server may have acted all the same."""
    content, structured = result.content, result.structuredContent
    if reading.sign_in and (url := sign_in_link(reading.sign_in, content, structured)):
        return SignInNeeded(url, "", did_nothing=False)
    if result.isError:
        said = failed(reading.server, content, structured, secrets=reading.secrets, redact=reading.redact)
        return Failed(said.text, owner=reading.owner)
    return succeeded(
        content,
        structured,
        limit=reading.limit,
        secrets=reading.secrets,
        owner=reading.owner,
        redact=reading.redact,
    )


def outcome_of_error(code: int, message: str, data: Any, reading: Reading) -> ToolOutcome:
    """What a JSON-RPC error of the server in reply to a tool call means: by its protocol, the call failed."""
    if code == CONNECTION_CLOSED and message == "Connection closed":
        return reading.broke_off("the connection was lost")
    if code == URL_ELICITATION_REQUIRED:
        return _sign_in(message, data, reading)
    return Failed(
        reported(reading.server, message, secrets=reading.secrets, redact=reading.redact), owner=reading.owner
    )


def outcome_of_fault(fault: Fault, reading: Reading) -> ToolOutcome | NotSent | SessionLost:
    """What it means that a tool call got no answer of the protocol."""
    match fault.kind:
        case FaultKind.NOT_SENT:
            return NotSent(fault.reason)
        case FaultKind.SESSION_ENDED:
            return SessionLost(fault.reason, reading.broke_off(fault.reason, fault.said))
        case FaultKind.SIGN_IN if reading.connection:
            return AccountNeeded(reading.connection, fault.challenge)
        case FaultKind.REFUSED | FaultKind.SIGN_IN:
            return Failed(f"{reading.server} {fault.reason}. Nothing was done.")
        case FaultKind.NO_ANSWER:
            return reading.broke_off(fault.reason, fault.said)


def _sign_in(message: str, data: Any, reading: Reading) -> SignInNeeded | Failed:
    elicitations = data.get("elicitations") if isinstance(data, Mapping) else None
    for each in elicitations if isinstance(elicitations, Sequence) else ():
        url = each.get("url") if isinstance(each, Mapping) else None
        if not isinstance(url, str) or not is_web_link(url):
            continue
        said, elicitation_id = each.get("message"), each.get("elicitationId")
        return SignInNeeded(
            url=url,
            message=reading.sentence(said if isinstance(said, str) else message),
            elicitation_id=elicitation_id if isinstance(elicitation_id, str) else None,
        )
    server = reading.server
    return Failed(f"{server} wants somebody to open a link first, but did not give a usable one. Nothing was done.")
