"""Masks secrets in texts and arguments, before a model, a card, a log or a trace gets them.

Two duties, which want different care (`docs/decisions/0020-masks-on-cards-hide-nothing-else.md`):

- **Logs, traces and what the model reads** (`mask`), and **the audit log** (`for_audit`): whatever may be a secret is
  masked. `[secret: password]` says its kind; names stay, JSON stays JSON, and what is no secret stays byte for byte.
- **What people decide on** (`for_card`): only what is a secret for certain is masked, its own characters and nothing
  else. `[secret: github token, 40 characters, #3fa9c2d1]` says how many they are, and a keyed fingerprint tells
  different ones apart. Text that is written like a mask is shown so that nobody takes it for one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies.secret_fields import kind_of_field, name_of_entry
from policies.secret_rules import Span
from policies.secret_shapes import TOKENS, SecretPattern
from policies.secret_spans import Shapes, in_order, secret_spans, spellings

SHORTEST_VALUE = 8
"""Characters of a known value that is masked; a shorter one stands in ordinary words."""
DEEPEST = 66
"""Levels of a JSON value that are shown, more than arguments may have; what is deeper is masked as a whole."""
NOT_SHOWN = "[not shown: "
"""What the masks of values begin with that are no secrets, but nested too deeply."""
A_TEXT = 50
"""Characters that count for each text and name beside its own: to begin with one takes 0.04 ms on a card, 0.1 ms in the
audit log, however short it is."""
LARGE = 20_000
"""Characters of a value from which on looking for secrets takes long: some 20 ms of CPU."""
_REMEMBERED = 16
"""Large values whose masks are remembered, since a card is drawn again and again."""
_OPENING = "[secret: "
_LARGEST = 1e30
"""What is larger is no number that somebody would keep secret."""
_MOST_PASSES = 8
_DIGITS = 8
"""Hexadecimal digits of a mask's fingerprint."""
_CALL_DIGITS = 12
"""Digits of a whole value's fingerprint: so many that no two calls are made to share one by trying (2^24 cards for a
chance of a half)."""
_MASK = re.compile(r"\[secret: [a-z][a-z0-9 -]{0,39}(?:, [0-9,]+ characters?, #[0-9a-f]{8,64})?\]")
_IN_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_HALF_ESCAPE = re.compile(r"(\\+)(?:u[0-9A-Fa-f]{0,3})?\Z")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LONGEST_RUN = 64
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_QUOTED_KEY = re.compile(r"(\\*[\"'])\s*:\s*\Z")
_LIKE_A_MASK = re.compile(r"[\[\uff3b](?=\s*(?:secret|not\s+shown)\s*[:\uff1a])|⟨(?=U\+)", re.IGNORECASE)
"""Where a text begins something that only we write, or that reads like it: a mask, or an invisible character's mark."""
_MARKED = re.compile(r"⟨U\+(005B|FF3B|27E8)⟩")


@dataclass(frozen=True, slots=True)
class Masked:
    """A JSON value as it may be shown."""

    value: Any
    hidden: Mapping[str, str]
    """What is behind each of its masks, in the order in which they first stand in it. A mask stands for one text."""


class Masker:
    """Masks what it was told to look for. May be used from any thread."""

    def __init__(
        self,
        patterns: Sequence[SecretPattern] = TOKENS,
        values: Collection[str] = (),
        *,
        key: bytes | None = None,
    ) -> None:
        """`patterns` are looked for beside fields that are called like secrets (`TOKENS`, perhaps `GUIDS`, `EMAILS`
        and the operator's own); `values` are secrets of this process, from eight characters on. `key` is what the
        fingerprints are made with (`fingerprint_key`); `None`: one that lasts as long as this masker."""
        self._shapes = Shapes(patterns, _all_spellings(values))
        self._key = key or secrets.token_bytes(32)
        self._large: dict[str, Masked] = {}
        """Keyed hash of a value → its masked form, for the last large ones."""
        self._lock = threading.Lock()

    def find(self, text: str, *, certain: bool = False) -> list[Span]:
        """What in a text is or may be a secret, in characters, by where it begins; some may overlap. Linear in time.

        `certain`: only what cannot be ordinary text: a token of a known service, a value of this process, what the
        operator wants masked. What only stands where secrets stand (`password=…`) is not.
        """
        raw = text.encode("utf-8", "surrogatepass")
        found = in_order(secret_spans(raw, self._shapes, certain=certain))
        if len(raw) == len(text):
            return found
        at = _in_characters(raw, (edge for start, end, *_ in found for edge in (start, end)))
        return [(at[start], at[end], kind, certain) for start, end, kind, certain in found]

    def mask(self, text: str) -> str:
        """The text without anything that may be a secret. Linear in time, and doing it twice is doing it once."""
        for _ in range(_MOST_PASSES):
            spans = self._outside_masks(text)
            if not spans:
                break
            text = _without(text, spans)
        return text

    def for_audit(self, value: Any) -> Masked:
        """A JSON value without anything that may be a secret: in its texts, its keys, and its fields that are called
        like secrets. Every entry of an object stays one of its own."""
        masking = _Masking(self._key, self._outside_masks, _kind_of_field)
        return Masked(masking.within(value, DEEPEST), masking.hidden)

    def for_card(self, value: Any) -> Masked:
        """A JSON value as people decide on it: what is a secret for certain is masked, and nothing else."""
        if not exceeds(value):
            return self._for_card(value)
        name = _keyed(self._key, _in_bytes(value))
        with self._lock:
            remembered = self._large.get(name)
        if remembered is not None:
            return remembered
        masked = self._for_card(value)
        with self._lock:
            self._large[name] = masked
            while len(self._large) > _REMEMBERED:
                del self._large[next(iter(self._large))]
        return masked

    def _for_card(self, value: Any) -> Masked:
        masking = _Masking(self._key, lambda text: _merged(self.find(text, certain=True)), _no_kind)
        return Masked(masking.within(value, DEEPEST), masking.hidden)

    def _outside_masks(self, text: str) -> list[Span]:
        """The secrets, in order and without overlaps, as far as they are not masks already."""
        found = self.find(text)
        masks = [mask.span() for mask in _MASK.finditer(text)] if found else []
        return _merged(piece for each in found for piece in _pieces(_with_whole_escapes(each, text), masks))

    def fingerprint_of_call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """A short keyed fingerprint of a call, such as `#3fa9c2d1e0b4`: equal calls have equal ones, and nobody without
        the key can make two that share one. Raises nothing."""
        return f"#{_keyed(self._key, _in_bytes([server, tool, arguments]))[:_CALL_DIGITS]}"


def exceeds(value: Any, characters: int = LARGE) -> bool:
    """Whether a JSON value has more characters than that in its texts and names, `A_TEXT` more for each, and in its
    integers, which may have thousands of digits. Stops counting there."""
    rest = [value]
    while rest and characters >= 0:
        each = rest.pop()
        match each:
            case str():
                characters -= len(each) + A_TEXT
            case Mapping():
                characters -= sum(len(str(key)) + A_TEXT for key in each)
                rest.extend(each.values())
            case list() | tuple():
                characters -= len(each)
                rest.extend(each)
            case int():
                characters -= each.bit_length() // 3  # at least as many as it has digits
    return characters < 0


def fingerprint_key(encryption_key: bytes) -> bytes:
    """The key for fingerprints, made of the key (the first of several) that seals what is kept: constant as long as
    that one stays the first, and useless for opening anything."""
    return hmac.digest(encryption_key.split(b",")[0].strip(), b"countersign: fingerprints of masks", "sha256")


def masks_in(text: str, hidden: Mapping[str, str]) -> set[str]:
    """Which of these masks stand in a text. Linear in the length of the text, however many masks there are."""
    return {found[0] for found in _IN_BRACKETS.finditer(text)} & hidden.keys()


def unmasked(value: Any, hidden: Mapping[str, str]) -> Any:
    """What `Masker.for_card` was given, of what it made of it: each mask becomes what is behind it, wherever it
    stands by now. Raises `ValueError` when something is written like a mask and is none of these."""
    if isinstance(value, str):
        return _unmasked_text(value, hidden)
    if isinstance(value, Mapping):
        entries = {_unmasked_text(key, hidden): unmasked(item, hidden) for key, item in value.items()}
        if len(entries) < len(value):
            raise ValueError("two entries of an object would have the same name")
        return entries
    if isinstance(value, list | tuple):
        return [unmasked(item, hidden) for item in value]
    return value


def _unmasked_text(text: str, hidden: Mapping[str, str]) -> str:
    pieces: list[str] = []
    done = 0
    for found in _LIKE_A_MASK.finditer(text):
        if found[0] != "[":
            continue
        end = text.find("]", found.start()) + 1
        behind = hidden.get(text[found.start() : end])
        if behind is None:
            raise ValueError("this is written like a mask, and is none")
        pieces += [_unmarked(text[done : found.start()]), behind]
        done = end
    return "".join([*pieces, _unmarked(text[done:])])


def _unmarked(text: str) -> str:
    return _MARKED.sub(lambda found: chr(int(found[1], 16)), text)


@dataclass(slots=True)
class _Masking:
    """Masks one value. Of two different secrets whose masks would read alike the second gets a longer fingerprint."""

    key: bytes
    secrets_in: Callable[[str], list[Span]]
    """What of a text is masked, in order and without overlaps."""
    kind_of_field: Callable[[str, Any], str | None]
    """The kind of secret that a field is by its name, if it is masked whole for that."""
    hidden: dict[str, str] = field(default_factory=dict)

    def within(self, value: Any, levels: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, Mapping | list | tuple):
            return value
        if levels == 0:
            return self._too_deep(value)
        if isinstance(value, Mapping):
            return self._entries(value, levels - 1)
        return [self.within(item, levels - 1) for item in value]

    def text(self, text: str) -> str:
        pieces: list[str] = []
        done = 0
        for start, end, kind, _ in self.secrets_in(text):
            pieces.append(_marked(text[done:start]))
            pieces.append(self._mask(_OPENING, kind, text[start:end]))
            done = end
        return "".join([*pieces, _marked(text[done:])])

    def _entries(self, entries: Mapping[Any, Any], levels: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, item in entries.items():
            name = self.text(str(key))
            kind = self.kind_of_field(name_of_entry(entries, str(key)), item)
            shown[name] = self.within(item, levels) if kind is None else self._mask(_OPENING, kind, str(item))
        return shown

    def _too_deep(self, value: Any) -> str:
        written = _in_bytes(value).decode("utf-8", "surrogatepass")
        return self._mask(NOT_SHOWN, "nested too deeply", written)

    def _mask(self, opening: str, kind: str, text: str) -> str:
        number, unit = len(text), "character" if len(text) == 1 else "characters"
        whole = _keyed(self.key, text.encode("utf-8", "surrogatepass"))
        for digits in (_DIGITS, len(whole)):
            mask = f"{opening}{kind}, {number:,} {unit}, #{whole[:digits]}]"
            if self.hidden.setdefault(mask, text) == text:
                break
        return mask


def _kind_of_field(name: str, value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return kind_of_field(name, str(value)) if is_number or isinstance(value, str) else None


def _no_kind(name: str, value: Any) -> None:
    """A name says nothing about what stands under it."""


def _marked(text: str) -> str:
    """The text with whatever only we write made visible as such: `[secret: x]` becomes `⟨U+005B⟩secret: x]`."""
    return _LIKE_A_MASK.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def _keyed(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _in_bytes(value: Any) -> bytes:
    """A JSON value in bytes that no other has, however deep or large it is; the order of an object's entries does not
    count. Near to JSON, since people may look at it."""
    pieces: list[str] = []
    rest: list[Any] = [value]
    while rest:
        each = rest.pop()
        match each:
            case _Written():
                pieces.append(each)
            case str():
                pieces.append(_quoted(each))
            case Mapping():
                items = sorted(((str(key), item) for key, item in each.items()), key=lambda pair: pair[0])
                pieces.append("{")
                rest.append(_Written("}"))
                for number in range(len(items) - 1, -1, -1):
                    key, item = items[number]
                    rest += [item, _Written(f"{', ' if number else ''}{_quoted(key)}: ")]
            case list() | tuple():
                pieces.append("[")
                rest.append(_Written("]"))
                for number in range(len(each) - 1, -1, -1):
                    rest += [each[number], _Written(", " if number else "")]
            case bool() | None:
                pieces.append({True: "true", False: "false", None: "null"}[each])
            case int():
                pieces.append(str(each) if abs(each) < _LARGEST else hex(each))
            case _:
                pieces.append(repr(each))
    return "".join(pieces).encode("utf-8", "surrogatepass")


class _Written(str):
    """Text that stands in bytes as it is."""

    __slots__ = ()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _all_spellings(values: Collection[str]) -> tuple[bytes, ...]:
    long_enough = {value for value in values if len(value) >= SHORTEST_VALUE and not value.isspace()}
    return tuple(sorted({spelling for value in long_enough for spelling in spellings(value)}))


def _in_characters(raw: bytes, edges: Iterable[int]) -> Mapping[int, int]:
    """Where these bytes of a text in UTF-8 are in its characters; an edge within one counts as before it."""
    found: dict[int, int] = {}
    characters = done = 0
    for (edge,) in in_order((edge,) for edge in edges):
        whole = edge
        while 0 < whole < len(raw) and raw[whole] & 0xC0 == 0x80:
            whole -= 1
        characters += len(raw[done:whole].decode("utf-8", "surrogatepass"))
        done = whole
        found[edge] = characters
    return found


def _merged(found: Iterable[Span]) -> list[Span]:
    """Returns the spans in order and without overlaps; of those that overlap the first says the kind."""
    merged: list[Span] = []
    for each in found:
        if merged and each[0] < merged[-1][1]:
            start, end, kind, certain = merged[-1]
            merged[-1] = (start, max(end, each[1]), kind, certain)
        else:
            merged.append(each)
    return merged


def _with_whole_escapes(secret: Span, text: str) -> Span:
    """A secret that begins or ends within one of JSON's escapes takes in all of it: half of it would be none."""
    start, end, kind, certain = secret
    before = _HALF_ESCAPE.search(text, max(0, start - _LONGEST_RUN), start)
    if before and len(before[1]) % 2:
        start = before.end(1) - 1
    within = _HALF_ESCAPE.search(text, max(start, end - _LONGEST_RUN), end)
    if within and len(within[1]) % 2:
        whole = _ESCAPE.match(text, within.end(1) - 1)
        end = whole.end() if whole else end
    return start, end, kind, certain


def _pieces(secret: Span, masks: Sequence[tuple[int, int]]) -> Iterator[Span]:
    start, end, kind, certain = secret
    at = bisect_right(masks, start, key=lambda mask: mask[1])
    while at < len(masks) and masks[at][0] < end:
        if start < masks[at][0]:
            yield start, masks[at][0], kind, certain
        start, at = masks[at][1], at + 1
    if start < end:
        yield start, end, kind, certain


def _without(text: str, found: Sequence[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, kind, _ in found:
        around = _quotes_for(text, start, end)
        pieces += [text[done:start], around, f"[secret: {kind}]", around]
        done = end
    return "".join([*pieces, text[done:]])


def _quotes_for(text: str, start: int, end: int) -> str:
    """A number behind a quoted name becomes a text, quoted like its name."""
    if not _NUMBER.fullmatch(text, start, end):
        return ""
    key = _QUOTED_KEY.search(text, max(0, start - 32), start)
    return key[1] if key else ""
