"""One-time codes such as `K7QM-3DZP`: shown by a browser, told to the bot by whoever the sign-in is for."""

from __future__ import annotations

import re
import secrets

ALPHABET = "CDFGHJKMNPQRTVWXYZ34679"
"""Without what is mistaken for something else (0 O, 1 I L, 2 Z, 5 S, 8 B, U V: one of each, or none), and without
vowels, so that no code is a word. Eight of them are 36 bits: with `MOST_TRIES`, nobody guesses one."""
MINUTES = 10
"""How long a code can be told."""
MOST_TRIES = 5
"""Wrong codes until the right one is of no use any more."""

_GROUP = f"[{ALPHABET}{ALPHABET.lower()}]{{4}}"
_DASH = "[-‐‑‒–—−]"
_WRITTEN = re.compile(rf"[\s`*_\"'“”‘’(\[]*({_GROUP})\s?{_DASH}\s?({_GROUP})[\s`*_\"'“”‘’)\].!]*")
"""As people type it or paste it: in either case, with what chat programs and phones make of the dash and around it."""
_STANDING = re.compile(rf"(?<![^\W_])(?=({_GROUP})(?:\s?{_DASH}\s?|\s{{0,2}})({_GROUP})(?![^\W_]))")
"""The same amid other words, also where the dash was left out. A lookahead: two that overlap are both found."""


def new_code() -> str:
    """A random code."""
    first, second = ("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(2))
    return f"{first}-{second}"


def code_in(text: str) -> str | None:
    """The code that a whole message consists of, in its proper spelling; `None`: it is no code."""
    written = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    return f"{written[1]}-{written[2]}".upper() if written else None


def codes_among(text: str) -> frozenset[str]:
    """Everything in a text that might be a code, in its proper spelling: words, mostly, until it is compared."""
    return frozenset(f"{first}-{second}".upper() for first, second in _STANDING.findall(text))


def entered(text: str) -> str:
    """What was typed into a form that asks for a code: also without its dash, or in pieces."""
    letters = re.sub(r"[^0-9A-Za-z]", "", text[:_LONGEST]).upper()
    return f"{letters[:4]}-{letters[4:]}"


_LONGEST = 60
"""Characters of a message that may be a code: looking is for every message, so it has to cost nothing."""
