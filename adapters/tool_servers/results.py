"""What a tool returned, as text for the model. Pure: plain JSON in, text out; whatever comes, nothing is raised.

Content blocks are those of MCP 2025-11-25 (`CallToolResult`); blocks of a kind that is not known yet are named.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from adapters.tool_servers.redaction import Redact, unchanged, without_known, without_secrets
from adapters.tool_servers.text import clean, cut_to_bytes, one_line, shorten
from graph.ports import Failed, Succeeded

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

LONGEST_SPLIT = 512
"""Characters on either side of the border between two content blocks in which a secret is looked for that was cut in
two there."""

NOTHING = "Done. The tool returned nothing."


def succeeded(
    content: Sequence[Any],
    structured: Any,
    *,
    limit: int,
    secrets: Collection[str] = (),
    owner: str | None = None,
    redact: Redact = unchanged,
) -> Succeeded:
    """The outcome of a call that went well; `limit`: bytes of UTF-8 that the model gets."""
    # Cut after masking: half a secret is no longer recognised.
    whole = _text_of(content, structured, lambda text: redact(without_known(text, secrets)))
    text = bounded(whole, limit)
    return Succeeded(text=text, whole="" if text == whole else whole, owner=owner)


def failed(
    server: str,
    content: Sequence[Any],
    structured: Any,
    *,
    secrets: Collection[str] = (),
    redact: Redact = unchanged,
) -> Failed:
    """The outcome of a call that the server reported as failed (`isError`)."""
    return Failed(reported(server, _text_of(content, structured, redact), secrets=secrets, redact=redact))


def reported(server: str, account: str, *, secrets: Collection[str] = (), redact: Redact = unchanged) -> str:
    """A server's own account of an error as a sentence that is safe to show."""
    # Cut to its length after taking secrets out: half a secret is no longer recognised.
    account = shorten(without_secrets(redact(clean(account[: 16 * LONGEST_ERROR])), secrets), LONGEST_ERROR)
    return f"{server} reported an error: {account or 'it did not say which.'}"


def bounded(text: str, limit: int) -> str:
    """The text when it is at most `limit` bytes of UTF-8, else its beginning and how much was left out."""
    size = len(text.encode("utf-8", "replace"))
    if size <= limit:
        return text
    room = limit - len(_left_out(size, size).encode())
    kept = cut_to_bytes(text, room)
    return cut_to_bytes(kept + _left_out(size - len(kept.encode()), size), limit)


def _left_out(missing: int, size: int) -> str:
    return f"\n\n[Cut here: {missing:,} of {size:,} bytes were left out.]"


def _text_of(content: Sequence[Any], structured: Any, mask: Redact) -> str:
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
    """The parts for which there is room, and a little more; and how many characters there are beyond them."""
    written: list[str] = []
    room = LONGEST_WHOLE + LONGEST_NAME
    for part in parts:
        written.append(part[:room])
        room -= len(written[-1])
    return written, sum(map(len, parts)) - sum(map(len, written))


def _lines(parts: Sequence[str], mask: Redact) -> str:
    """Each part on a line of its own, except where several hold a secret between them: that has to be whole to be
    recognised."""
    written: list[str] = []
    before = ""
    for at, part in enumerate(parts):
        after = _beginning(parts, at)
        together = mask(before + after) != mask(before) + mask(after)
        written.append(part if together or not written else f"\n{part}")
        before = (before + written[-1])[-LONGEST_SPLIT:]
    return "".join(written)


def _beginning(parts: Sequence[str], at: int) -> str:
    text = ""
    for index in range(at, len(parts)):
        text += parts[index][:LONGEST_SPLIT]
        if len(text) >= LONGEST_SPLIT:
            break
    return text[:LONGEST_SPLIT]


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _says_the_same(texts: Sequence[str], structured: Any) -> bool:
    """Whether the text blocks already say what the structured content says.

    Servers repeat structured content as text, by the specification; some put one element of a list into each block,
    and wrap what is no object in one: `{"result": …}`, `{"content": …}`. Some repeat the blocks themselves.
    """
    wrapped = isinstance(structured, Mapping) and len(structured) == 1
    meanings = [structured, *structured.values()] if wrapped else [structured]
    meanings += [[block["text"] for block in each] for each in meanings if _are_texts(each)]
    values = [_value(text) for text in texts]
    said = [values, list(texts), *values[:1], *texts[:1]] if len(texts) == 1 else [values, list(texts)]
    return any(meaning == each for meaning in meanings for each in said)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _value(text: str) -> Any:
    try:
        return json.loads(text) if len(text) <= LONGEST_JSON else text
    except (ValueError, RecursionError):
        return text


def _block(block: Any, mask: Redact) -> str:
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


def _resource(resource: Any, mask: Redact) -> str:
    if not isinstance(resource, Mapping):
        return "[resource, left out]"
    uri = _name(resource.get("uri"), "no address", mask)
    if isinstance(resource.get("text"), str):
        return f"[resource: {uri}]\n{resource['text']}"
    kind = _name(resource.get("mimeType"), "unknown type", mask)
    return f"[resource: {uri}, {kind}, {_size(resource.get('blob'))}, left out]"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _name(value: Any, otherwise: str, mask: Redact) -> str:
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
