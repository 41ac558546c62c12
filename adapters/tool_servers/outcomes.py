"""What a server's answer to a call means: results, errors and the lack of both. Pure; nothing is raised.

Content blocks are those of MCP 2025-11-25 (`CallToolResult`); blocks of a kind that is not known yet are named.

A result is a link to sign in with only where the operator said how one looks (`signIn` in `mcp.json`). A server without
it says that somebody must sign in by its protocol (an HTTP challenge, URL elicitation), or not at all: what a tool
returns may be a stranger's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from adapters.tool_servers.config import SignInRule
from adapters.tool_servers.returned import as_returned
from adapters.tool_servers.text import (
    MaskText,
    clean,
    cut_to_bytes,
    joined_by_secrets,
    one_line,
    shorten,
    unchanged,
    without_known,
    without_secrets,
)
from graph.ports import AccountNeeded, Failed, NotSent, OutcomeUnknown, SignInNeeded, Succeeded, ToolOutcome

CONNECTION_CLOSED = -32000
"""The MCP SDK answers open requests with it when the connection ends; servers may use the code for anything."""
URL_ELICITATION_REQUIRED = -32042
"""MCP 2025-11-25: the server did nothing, a person must open a link first."""
LONGEST_MESSAGE = 500
"""Characters of what a server says of a sign-in link, or in place of an answer."""
NOT_LOOKED_UP = "was not asked: the account could not be looked up"
MOST_FAULTS = 1_000
"""Faults of requests that nobody waits for any more."""
RequestId = str | int
LONGEST_ERROR = 1_000
"""Characters of a server's own account of an error."""
MOST_PARTS = 1_000
"""Content blocks that are read; FastMCP makes one of each element of a list. The others are counted."""
LONGEST_WHOLE = 1_000_000
"""Characters of a result that are kept; the model gets far fewer."""
LONGEST_JSON = 65_536
"""Characters of a text that is read as JSON, only to find that it says what the structured content says."""
LONGEST_NAME = 4_096
"""Characters of a name or address that are looked at."""
LONGEST_LINK = 4_096
"""Characters of a link that a browser may be sent to; longer ones are not looked at."""
MOST_LINKS = 100
"""Links of one error that are looked at for one that can be used."""
NOTHING = "Done. The tool returned nothing."
DEEPEST = 20
"""Levels of structured content that are looked into."""
_LINK = re.compile(r"https://[^\s<>\"'`\\|{}^]+", re.IGNORECASE)
_AFTER_A_LINK = ".,;:!?)]*_"


class FaultKind(Enum):
    """What our own HTTP client knows of a request that got no proper answer."""

    NOT_SENT = auto()
    """The request was not written: certainly, the server never got it."""
    NOTHING_DONE = auto()
    """The server answered with an HTTP status that proves that it did nothing (`http_client._NOTHING_DONE`)."""
    NO_ANSWER = auto()
    """The request was written, and no answer of the protocol came: the server may have acted."""
    SESSION_ENDED = auto()
    """HTTP 404. By the specification the server does not know our session (any more); some say it for other things,
    after they have acted."""
    SIGN_IN = auto()
    """The person has no account connected, or the server does not accept it: it did nothing."""


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What became of one request."""

    kind: FaultKind
    reason: str
    """Ends a sentence that begins with the server's name."""
    said: str = ""
    """What the server said in place of an answer, as it came."""
    challenge: str = ""
    """`WWW-Authenticate` of the answer, where there was one."""


Faults = dict[RequestId, RequestFault]
"""The faults of one session by the ids of their requests. The MCP SDK knows no way but an error in the server's place
to end a request; what the error means stands here, where no server can write."""

_OUR_WORDS = -32603
"""Code of the errors that end a request in the server's place (JSON-RPC's "internal error"). It means nothing."""


def ended_by_us(faults: Faults, request_id: RequestId, fault: RequestFault) -> dict[str, Any]:
    """The error that ends a request in the server's place; what it means is put into the table."""
    faults[request_id] = fault
    if len(faults) > MOST_FAULTS:
        del faults[next(iter(faults))]
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": _OUR_WORDS, "message": fault.reason}}


class FaultError(Exception):
    """A request came to nothing, as our own HTTP client knows."""

    def __init__(self, fault: RequestFault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class SessionLost:
    """A call was answered with HTTP 404. It may be sent over another session if it may be repeated."""

    reason: str
    otherwise: OutcomeUnknown
    """The call's outcome if it may not be repeated."""


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


def outcome_unknown(server: str, reason: str, said: str = "", owner: str | None = None) -> OutcomeUnknown:
    """The call was sent and nobody knows what came of it. `said`: what the server said, safe to show."""
    text = f"{server} gave no answer ({reason}), so it’s unknown whether it was done."
    return OutcomeUnknown(f"{text} It said: {said}" if said else text, owner if said else None)


def is_web_link(url: str) -> bool:
    """Whether a browser may be sent there: http or https, a host, no blanks, at most 4,096 characters."""
    if len(url) > LONGEST_LINK:
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    printable = url.isprintable() and not any(c.isspace() for c in url)
    return printable and parts.scheme in {"http", "https"} and bool(parts.hostname)


LARGEST_RESULT = 16_000
"""Bytes of UTF-8 that the model gets of a result; more is cut with a count."""


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """How the answers of one session are read."""

    server: str
    limit: int = LARGEST_RESULT
    """Bytes of a result that the model gets."""
    secrets: frozenset[str] = frozenset()
    mask: MaskText = unchanged
    owner: str | None = None
    """Person whose account the session uses: what it returns is for them only."""
    connection: str | None = None
    """Name of the connection that the account is of."""
    sign_in: SignInRule | None = None
    """How a result says that somebody must sign in; `None`: no result does."""
    keeps_returned: bool = False
    """Whether results are kept as the server returned them, besides the text for a model."""

    def sentence(self, said: str) -> str:
        """What the server says about a link, as it may be shown."""
        said = said[: 16 * LONGEST_MESSAGE]
        return one_line(self.mask(without_known(clean(said), self.secrets)), LONGEST_MESSAGE)

    def masked(self, text: str) -> str:
        """The text of a result without secrets."""
        return self.mask(without_known(text, self.secrets))

    def masked_in_error(self, text: str) -> str:
        """The text of an error without secrets, and without what looks like a credential."""
        return without_secrets(self.mask(text), self.secrets)

    def reported(self, account: str) -> Failed:
        """The server reported an error. `account`: its own of it, as it came."""
        # Cut to its length after taking secrets out: half a secret is no longer recognised.
        masked = self.masked_in_error(clean(account[: 16 * LONGEST_ERROR]))
        shown = shorten(masked, LONGEST_ERROR) or "it did not say which."
        return Failed(f"{self.server} reported an error: {shown}", owner=self.owner)

    def outcome_unknown(self, reason: str, said: str = "") -> OutcomeUnknown:
        """Nobody knows what came of the call. `said`: what the server said, as it came."""
        beginning = clean(said[: 16 * LONGEST_MESSAGE])
        shown = one_line(without_secrets(self.mask(beginning), self.secrets), LONGEST_MESSAGE)
        return outcome_unknown(self.server, reason, shown, self.owner)


def outcome_of_result(result: CallResult, context: AnswerContext) -> ToolOutcome:
    """What a result of `tools/call` means. Whatever it says, it is a result, unless the operator's rule for signing in
    fits it: then the server may have acted all the same."""
    content, structured = result.content, result.structuredContent
    if context.sign_in and (url := sign_in_link(context.sign_in, content, structured)):
        return SignInNeeded(url, "", did_nothing=False)
    if result.isError:
        failed = context.reported(_text_of(content, structured, context.mask))
        return replace(failed, returned=_returned(result, context, context.masked_in_error))
    # Cut after masking: half a secret is no longer recognised.
    whole = _text_of(content, structured, context.masked)
    text = bounded(whole, context.limit)
    returned = _returned(result, context, context.masked)
    return Succeeded(text=text, whole="" if text == whole else whole, owner=context.owner, returned=returned)


def _returned(result: CallResult, context: AnswerContext, mask: MaskText) -> dict[str, Any] | None:
    if not context.keeps_returned:
        return None
    return as_returned(result.content, result.structuredContent, mask, context.secrets)


def outcome_of_error(code: int, message: str, data: Any, context: AnswerContext) -> ToolOutcome:
    """What a JSON-RPC error of the server in reply to a tool call means: by its protocol, the call failed."""
    if code == CONNECTION_CLOSED and message == "Connection closed":
        return context.outcome_unknown("the connection was lost")
    if code == URL_ELICITATION_REQUIRED:
        return _sign_in(message, data, context)
    return context.reported(message)


def outcome_of_fault(fault: RequestFault, context: AnswerContext) -> ToolOutcome | NotSent | SessionLost:
    """What it means that a tool call got no answer of the protocol."""
    match fault.kind:
        case FaultKind.NOT_SENT:
            return NotSent(fault.reason)
        case FaultKind.SESSION_ENDED:
            return SessionLost(fault.reason, context.outcome_unknown(fault.reason, fault.said))
        case FaultKind.SIGN_IN if context.connection:
            return AccountNeeded(context.connection, fault.challenge)
        case FaultKind.NOTHING_DONE | FaultKind.SIGN_IN:
            return Failed(f"{context.server} {fault.reason}. Nothing was done.")
        case FaultKind.NO_ANSWER:
            return context.outcome_unknown(fault.reason, fault.said)


def _sign_in(message: str, data: Any, context: AnswerContext) -> SignInNeeded | Failed:
    elicitations = data.get("elicitations") if isinstance(data, Mapping) else None
    for each in elicitations[:MOST_LINKS] if isinstance(elicitations, list) else ():
        url = each.get("url") if isinstance(each, Mapping) else None
        if not isinstance(url, str) or not is_web_link(url):
            continue
        said, elicitation_id = each.get("message"), each.get("elicitationId")
        return SignInNeeded(
            url=url,
            message=context.sentence(said if isinstance(said, str) else message),
            elicitation_id=elicitation_id if isinstance(elicitation_id, str) else None,
        )
    server = context.server
    return Failed(f"{server} wanted someone to open a link first but gave no usable one. Nothing was done.")


def bounded(text: str, limit: int) -> str:
    """The text when it is at most `limit` bytes of UTF-8, else its beginning and how much was left out."""
    size = len(text.encode("utf-8", "replace"))
    if size <= limit:
        return text
    space_left = limit - len(_left_out(size, size).encode())
    kept = cut_to_bytes(text, space_left)
    return cut_to_bytes(kept + _left_out(size - len(kept.encode()), size), limit)


def _left_out(missing: int, size: int) -> str:
    return f"\n\n[Cut here: {missing:,} of {size:,} bytes were left out.]"


def _text_of(content: Sequence[Any], structured: Any, mask: MaskText) -> str:
    """What was returned, as one text without secrets, up to `MOST_PARTS` blocks and `LONGEST_WHOLE` characters."""
    read = content[:MOST_PARTS]
    parts = [_block(block, mask) for block in read]
    if len(content) > len(read):
        more = len(content) - len(read)
        parts.append(f"[… and {more:,} more {'part' if more == 1 else 'parts'}]")
    elif structured is not None and not _says_the_same([b["text"] for b in read if _is_text(b)], structured):
        parts.append(_json(structured))
    written, missing = _written(parts)
    # Masked before it is cut to its length: half a secret is no longer recognised.
    text = mask(_lines([clean(part) for part in written if part], mask)) or NOTHING
    missing += max(len(text) - LONGEST_WHOLE, 0)
    return f"{text[:LONGEST_WHOLE]}\n\n[Cut here: {missing:,} characters were left out.]" if missing else text


def _written(parts: Sequence[str]) -> tuple[list[str], int]:
    """The parts for which there is space, and a little more; and how many characters there are beyond them."""
    written: list[str] = []
    space_left = LONGEST_WHOLE + LONGEST_NAME
    for part in parts:
        written.append(part[:space_left])
        space_left -= len(written[-1])
    return written, sum(map(len, parts)) - sum(map(len, written))


def _lines(parts: Sequence[str], mask: MaskText) -> str:
    """Each part on a line of its own, except where several hold a secret between them: that has to be whole to be
    recognised."""
    joined = joined_by_secrets(parts, mask)
    return "".join(part if not at or joined[at] else f"\n{part}" for at, part in enumerate(parts))


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _says_the_same(texts: Sequence[str], structured: Any) -> bool:
    """Whether the text blocks already say what the structured content says.

    Servers repeat structured content as text, by the specification; some put one element of a list into each block,
    and wrap what is no object in one: `{"result": …}`, `{"content": …}`. Some repeat the blocks themselves.
    """
    wrapped = isinstance(structured, Mapping) and len(structured) == 1
    meanings = [structured, *structured.values()] if wrapped else [structured]
    meanings += [
        [block["text"] for block in each] for each in meanings if isinstance(each, list) and all(map(_is_text, each))
    ]
    values = [_value(text) for text in texts]
    said = [values, list(texts), *values[:1], *texts[:1]] if len(texts) == 1 else [values, list(texts)]
    return any(meaning == each for meaning in meanings for each in said)


def _value(text: str) -> Any:
    try:
        return json.loads(text) if len(text) <= LONGEST_JSON else text
    except (ValueError, RecursionError):
        return text


def _block(block: Any, mask: MaskText) -> str:
    if not isinstance(block, Mapping):
        return "[something that is no content block]"
    match block.get("type"):
        case "text":
            return _text(block.get("text"))
        case "image" | "audio" as kind:
            return (
                f"[{kind}: {_name(block.get('mimeType'), 'unknown type', mask)}, {_size(block.get('data'))}, left out]"
            )
        case "resource_link":
            title = _name(block.get("title") or block.get("name"), "resource", mask)
            return f"[link: {title}, {_name(block.get('uri'), 'no address', mask)}]"
        case "resource":
            return _resource(block.get("resource"), mask)
        case kind:
            return f"[{_name(kind, 'unknown content', mask)}, left out]"


def _resource(resource: Any, mask: MaskText) -> str:
    if not isinstance(resource, Mapping):
        return "[resource, left out]"
    uri = _name(resource.get("uri"), "no address", mask)
    if isinstance(resource.get("text"), str):
        return f"[resource: {uri}]\n{resource['text']}"
    kind = _name(resource.get("mimeType"), "unknown type", mask)
    return f"[resource: {uri}, {kind}, {_size(resource.get('blob'))}, left out]"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _name(value: Any, otherwise: str, mask: MaskText) -> str:
    return one_line(mask(clean(value[:LONGEST_NAME])), 200) if isinstance(value, str) and value.strip() else otherwise


def _size(base64_data: Any) -> str:
    if not isinstance(base64_data, str):
        return "unknown size"
    size = len(base64_data.rstrip("=")) * 3 // 4
    return f"{size:,} bytes" if size < 10_000 else f"{size // 1_000:,} kB"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "[something that cannot be shown as JSON]"


def sign_in_link(rule: SignInRule, content: Sequence[Any], structured: Any) -> str | None:
    """The link with which a person signs in; `None`: it is an ordinary result, or an ordinary error.

    The first link to the rule's host, in the first text that its pattern is found in.
    """
    for text in _texts(content, structured):
        if rule.pattern.search(text.encode("utf-8", "replace")):
            found = (match.group().rstrip(_AFTER_A_LINK) for match in _LINK.finditer(text))
            return next((url for url in found if _leads_to(rule.host, url)), None)
    return None


def _leads_to(host: str, url: str) -> bool:
    # The whole authority is compared, so neither a user name nor another port is let through.
    return is_web_link(url) and urlsplit(url).netloc.lower() == host


def _texts(content: Sequence[Any], structured: Any) -> Iterator[str]:
    for block in content:
        if not isinstance(block, Mapping):
            continue
        resource = block.get("resource")
        inner = resource.get("text") if isinstance(resource, Mapping) else None
        for text in (block.get("text"), block.get("uri"), inner):
            if isinstance(text, str):
                yield from _leaves(_read_json(text))
    yield from _leaves(structured)


def _read_json(text: str) -> Any:
    """Text that is JSON says what it means only when it is read: it may write `&` as `\\u0026`."""
    try:
        return json.loads(text) if len(text) <= LONGEST_JSON and text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping() if depth < DEEPEST:
            for each in value.values():
                yield from _leaves(each, depth + 1)
        case list() if depth < DEEPEST:
            for each in value:
                yield from _leaves(each, depth + 1)
        case _:
            return
