"""Private keys between their markers, and whether what stands there is one."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator

from policies.patterns import compiled
from policies.secret_rules import Span, looks_random

_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?"
_BREAK = r"(?:\s|\\+[nr])"
_BLOCK = compiled(rf"-----BEGIN {_NAME}-----([^\"]*?)-----END {_NAME}-----")
_CUT_OFF = compiled(rf"-----BEGIN {_NAME}-----((?:{_BREAK}*[A-Za-z0-9+/=]{{16,}})+)")
_BREAKS = re.compile(rb"\s+|(?<!\\)\\++[nr]")
_HEADER = re.compile(rb"[A-Za-z-]{3,20}: [^\r\n\\]{1,80}(?:\s|\\+[nr])")
"""Of RFC 1421 and of PGP: `Proc-Type`, `DEK-Info`, `Version`, `Comment`."""
_OPENSSH = b"openssh-key-v1\0"
_SEQUENCE = 0x30
_SHORTEST = 24


def key_spans(text: bytes) -> Iterator[Span]:
    """The blocks of private keys, markers and all. One is certain when a key's own encoding stands in it: between
    such markers anything could be written. Linear in time."""
    if b"PRIVATE KEY" not in text:
        return
    whole: set[int] = set()
    for pattern in (_BLOCK, _CUT_OFF):
        for found in pattern.finditer(text):
            if found[1].strip() and found.start() not in whole:
                whole.add(found.start())
                yield found.start(), found.end(), "private key", _is_key(found[1])


def _is_key(body: bytes) -> bool:
    if _HEADER.match(body.lstrip()):
        return False
    written = _without_breaks(body)
    try:
        raw = b64decode(written[: len(written) // 4 * 4], validate=True)
    except (Error, ValueError):
        return False
    if len(raw) < _SHORTEST:
        return False
    return (raw[0] == _SEQUENCE or raw.startswith(_OPENSSH)) and looks_random(written)


def _without_breaks(body: bytes) -> bytes:
    """One by one: to replace half a million at once holds the interpreter, and with it the event loop."""
    written, done = bytearray(), 0
    for found in _BREAKS.finditer(body):
        written += body[done : found.start()]
        done = found.end()
    return bytes(written + body[done:])
