"""What a server's answer to a call means: results and errors as outcomes. Pure, and nothing is raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.tool_servers.config import SignInRule
from adapters.tool_servers.redaction import Redact, unchanged, without_known
from adapters.tool_servers.replies import LONGEST_MESSAGE, CallResult, Fault, NotSent, broke_off, is_web_link
from adapters.tool_servers.results import failed, reported, succeeded
from adapters.tool_servers.sign_in_links import sign_in_link
from adapters.tool_servers.text import clean, one_line
from graph.ports import AccountNeeded, Failed, SignInNeeded, ToolOutcome

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
        return one_line(self.redact(without_known(clean(said), self.secrets)), LONGEST_MESSAGE)


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


def outcome_of_error(code: int, message: str, data: Any, reading: Reading) -> ToolOutcome | NotSent:
    """What a JSON-RPC error in reply to a tool call means."""
    server = reading.server
    match code:
        case Fault.NOT_SENT | Fault.SESSION_ENDED:
            return NotSent(message)
        case Fault.SIGN_IN if reading.connection:
            return account_needed(reading.connection, data)
        case Fault.REFUSED | Fault.SIGN_IN:
            return Failed(f"{server} {message}. Nothing was done.")
        case Fault.NO_ANSWER:
            return broke_off(server, message)
        case _ if code == CONNECTION_CLOSED and message == "Connection closed":
            return broke_off(server, "the connection was lost")
        case _ if code == URL_ELICITATION_REQUIRED:
            return _sign_in(message, data, reading)
    return Failed(reported(server, message, secrets=reading.secrets, redact=reading.redact), owner=reading.owner)


def account_needed(connection: str, data: Any) -> AccountNeeded:
    """What `Fault.SIGN_IN` means for whoever wanted to use the connection."""
    challenge = data.get("challenge") if isinstance(data, Mapping) else None
    return AccountNeeded(connection, challenge if isinstance(challenge, str) else "")


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
