"""What a server returned, as it returned it, for a program that takes it in: without secrets, and bounded. Pure;
nothing is raised.

A server's answer is 4 MB at most (`incoming.LARGEST_MESSAGE`), so no more than that is looked at here.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from adapters.tool_servers.text import MaskText, clean, joined_by_secrets, without_known
from graph.json_values import not_kept, storable
from policies.secret_shapes import IN_ERRORS

MOST_BLOCKS = 1_000
"""Content blocks; FastMCP makes one of each element of a list. The others are counted."""
LONGEST_RETURNED = 1_000_000
"""Characters of all texts of the blocks together, and likewise of the structured content as JSON."""
LARGEST_DATA = 4 * 1024 * 1024
"""Characters of base64 in all blocks together."""
MOST_VALUES = 250_000
"""Keys and items of a block or of the structured content; no answer that can be read has more."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}")


def as_returned(
    content: Sequence[Any], structured: Any, mask: MaskText, secrets: Collection[str] = ()
) -> dict[str, Any]:
    """Returns `content` and, where there is some, `structuredContent`.

    What is left out is replaced by a block of text in square brackets that says what, and how much. Blocks of kinds
    that are not known are passed on.

    Args:
        mask: takes out all secrets, these as well.
        secrets: those that are known.
    """
    return _Returned(mask, frozenset(secrets)).made(content, structured)


def told_before(text: str, returned: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the same with a text of ours before it; nothing where nothing is kept."""
    return returned and {**returned, "content": [{"type": "text", "text": text}, *returned["content"]]}


class _Returned:
    def __init__(self, mask: MaskText, secrets: frozenset[str]) -> None:
        self._mask = mask
        self._secrets = secrets
        self._text_left = LONGEST_RETURNED
        self._data_left = LARGEST_DATA
        self._with_text: list[dict[str, Any]] = []
        """The blocks, and resources in them, whose text is still to be masked."""

    def made(self, content: Sequence[Any], structured: Any) -> dict[str, Any]:
        blocks = [self._block(block) for block in content[:MOST_BLOCKS]]
        self._mask_texts(self._with_text)
        if (more := len(content) - MOST_BLOCKS) > 0:
            blocks.append(_note(f"… and {more:,} more {'part' if more == 1 else 'parts'}"))
        returned: dict[str, Any] = {"content": blocks}
        if structured is not None:
            kept = self._structured(structured)
            if isinstance(kept, str):
                blocks.append(_note(kept))
            else:
                returned["structuredContent"] = kept
        made: dict[str, Any] = storable(returned)
        return made

    def _structured(self, structured: Any) -> dict[str, Any] | str:
        """The structured content, or what is said in its place."""
        if not isinstance(structured, Mapping):
            return "structured content that is no object, left out"
        if trouble := not_kept(structured, most=MOST_VALUES):
            return f"structured content, left out: it held {trouble}"
        masked, size = self._masked(structured)
        return masked if size <= LONGEST_RETURNED else f"structured content, {_too_much(size, LONGEST_RETURNED)}"

    def _block(self, block: Any) -> dict[str, Any]:
        """A block in which all but its text is masked, or what is said in its place."""
        if not isinstance(block, Mapping):
            return _note("something that is no content block")
        kind = block["type"] if block.get("type") in _APART else "content"
        if trouble := not_kept(block, most=MOST_VALUES):
            return _note(f"{kind}, left out: it held {trouble}")
        rest, apart = _taken_apart(block, kind)
        masked, size = self._masked(rest)
        self._text_left -= size
        if self._text_left < 0:
            return _note(f"{kind}, {_too_much(size, LONGEST_RETURNED)}")
        holder = masked["resource"] if kind == "resource" and apart else masked
        for key, value in apart.items():
            if key == "text":
                holder[key] = value
                self._with_text.append(holder)
                continue
            self._data_left -= len(value)
            if self._data_left < 0:
                return _note(f"{kind}, {_too_much(len(value), LARGEST_DATA)}")
            data = self._data(value)
            if data is None:
                return _note(f"{kind}, {len(value):,} characters, left out: it held a secret")
            holder[key] = data
        return masked

    def _data(self, data: str) -> str | None:
        """Base64 as it came, but what holds a text is masked; `None`: it is not passed on, since in anything else a
        secret cannot be masked without breaking it."""
        raw = _decoded(data)
        if raw is None:
            return self._mask(clean(data))
        try:
            text = raw.decode()
        except ValueError:
            return None if any(secret.encode("utf-8", "replace") in raw for secret in self._secrets) else data
        masked = self._mask(text)
        return data if masked == text else base64.b64encode(masked.encode("utf-8", "replace")).decode()

    def _mask_texts(self, holders: Sequence[dict[str, Any]]) -> None:
        """Mask the texts and cut them to their length. Those that hold a secret between them become one, the first."""
        cleaned = [clean(holder["text"]) for holder in holders]
        for start, end in _runs(joined_by_secrets(cleaned, self._mask)):
            whole = "".join(cleaned[start:end])
            masked = self._mask(whole)
            # What holds no secret stays as it came, with its control characters.
            texts = [h["text"] for h in holders[start:end]] if masked == whole else [masked, *[""] * (end - start - 1)]
            for holder, text in zip(holders[start:end], texts, strict=True):
                holder["text"] = _cut(text, max(self._text_left, 0))
                self._text_left -= len(text)

    def _masked(self, value: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """An object without secrets, and how many characters of JSON it has. It is masked as the text is that a model
        gets of it: what stands in a field that is called like a secret is one, too."""
        bare: dict[str, Any] = self._without_known(value)
        written = json.dumps(bare, ensure_ascii=False)
        masked = self._mask(written)
        if masked == written:
            return bare, len(written)
        try:
            read = json.loads(masked)
        except (ValueError, RecursionError):
            read = None  # what was masked took a quotation mark with it
        return read if isinstance(read, dict) else self._part_by_part(bare), len(masked)

    def _without_known(self, value: Any) -> Any:
        """JSON may write a known secret in another way."""
        match value:
            case str():
                return without_known(value, self._secrets)
            case Mapping():
                return {self._without_known(key): self._without_known(item) for key, item in value.items()}
            case list():
                return [self._without_known(item) for item in value]
            case _:
                return value

    def _part_by_part(self, value: Any) -> Any:
        match value:
            case str():
                return self._mask(value)
            case dict():
                return {self._mask(key): self._entry(key, item) for key, item in value.items()}
            case list():
                return [self._part_by_part(item) for item in value]
            case _:
                return value

    def _entry(self, key: str, item: Any) -> Any:
        if isinstance(item, str | int | float):
            field = json.dumps({key: item}, ensure_ascii=False)
            if self._mask(field) != field:
                return IN_ERRORS
        return self._part_by_part(item)


_APART = {
    "text": ("text",),
    "image": ("data",),
    "audio": ("data",),
    "resource": ("text", "blob"),
    "resource_link": (),
}
"""Kinds of blocks → the fields of theirs (of the resource, where they embed one) that are not masked with the rest."""


def _taken_apart(block: Mapping[str, Any], kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A block without its text or data, and these."""
    rest = dict(block)
    resource = block.get("resource")
    if kind == "resource" and not isinstance(resource, Mapping):
        return rest, {}
    holder = rest
    if kind == "resource":
        holder = rest["resource"] = dict(resource or {})
    return rest, {key: holder.pop(key) for key in _APART.get(kind, ()) if isinstance(holder.get(key), str)}


def _decoded(data: str) -> bytes | None:
    """What base64 stands for; `None`: it is none."""
    bare = "".join(data.split())
    if not _BASE64.fullmatch(bare):
        return None
    try:
        return base64.b64decode(bare.rstrip("=") + "=" * (-len(bare.rstrip("=")) % 4))
    except ValueError:
        return None


def _runs(joined: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where what belongs together begins and ends. `joined`: whether each belongs to the one before."""
    starts = [at for at, is_joined in enumerate(joined) if not is_joined]
    yield from zip(starts, [*starts, len(joined)][1:], strict=True)


def _cut(text: str, longest: int) -> str:
    missing = len(text) - longest
    return text if missing <= 0 else f"{text[:longest]}\n\n[Cut here: {missing:,} characters were left out.]"


def _too_much(characters: int, most: int) -> str:
    return f"{characters:,} characters, left out: no more than {most:,} are passed on in all"


def _note(text: str) -> dict[str, Any]:
    return {"type": "text", "text": f"[{text}]"}
