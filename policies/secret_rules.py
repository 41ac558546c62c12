"""Secrets of some four hundred services, by a maintained rule set: that of kingfisher (docs/decisions/0019).

The rules are those of the installed package, translated once for RE2 (`kingfisher_rules.py`) and kept in
`secret_rules.json`. `make` writes that file, and so does the first process that finds it missing or of another version.
Each rule is compiled when a text first holds one of its needles, and run by RE2 in linear time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import re2  # type: ignore[import-untyped]  # google-re2 ships no types

from policies.patterns import Needles, compiled

_FILE = Path(__file__).with_name("secret_rules.json")
_TRANSLATOR = Path(__file__).with_name("kingfisher_rules.py")
_ROOT = Path(__file__).parents[1]
_PACKAGE = "kingfisher-secret-scanner"
_TRANSLATING_SECONDS = 120.0
"""Limit; it takes about 5 on a machine that does nothing else."""
_LONGEST_WORD = 11
"""Small letters in a row in a token; what has more of them holds words, so that it may be a text and no token."""
_WORDS = compiled(
    rf"[a-z]{{{_LONGEST_WORD + 1},}}|[A-Z]{{24,}}|(?:[A-Z][a-z]{{2,}}){{5}}"
    r"|(?:(?:[A-Z]?[a-z]{2,}|[A-Z]{3,})[-_./]){3}"
)
"""Words as people read them in a token: `Delete-All-Customers-1`, `DeleteEveryCustomerFromThe1`. Of random tokens of
forty characters one in a thousand has as much."""
Span = tuple[int, int, str, bool]
"""A secret in the UTF-8 of a text: where it begins and ends, its kind in a few lower-case words, and whether it is
certain: recognised by its own shape or value; otherwise by the name before it, or by what surrounds it.

Plain tuples, since a hostile text of 1 MB has a hundred thousand: those of numbers and texts are not walked through
when memory is collected, which holds the interpreter, and sort several times as fast as instances of a class."""


class _Rule:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.needles = tuple(needle.encode() for needle in data["needles"])

    def spans(self, text: bytes) -> Iterator[Span]:
        for found in self._regex.finditer(text):
            start, end = self._secret(found)
            secret = text[start:end]
            if secret and not self._is_harmless(secret):
                yield start, end, self._data["kind"], self._data["certain"] and looks_random(secret)

    def _secret(self, found: Any) -> tuple[int, int]:
        wanted: int = self._data["group"]
        groups = [wanted] if wanted else range(1, self._regex.groups + 1)
        span: tuple[int, int] = next((found.span(group) for group in groups if found.end(group) > 0), found.span())
        return span

    def _is_harmless(self, secret: bytes) -> bool:
        if is_placeholder(secret) or bits_a_character(secret) < self._data["entropy"]:
            return True
        return _common_harmless().search(secret) is not None or any(each.search(secret) for each in self._harmless)

    @cached_property
    def _regex(self) -> Any:
        return _frugal(self._data["regex"])

    @cached_property
    def _harmless(self) -> tuple[Any, ...]:
        return tuple(_frugal(regex) for regex in self._data["harmless"])


def rule_spans(text: bytes) -> Iterator[Span]:
    """What the rules find, in no order; spans may overlap. Linear in time."""
    for rule in _needles().whose_are_in(text):
        yield from rule.spans(text)


def bits_a_character(text: bytes) -> float:
    """Shannon's entropy of a text's bytes, in bits for each."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def looks_random(secret: bytes) -> bool:
    """Whether a token cannot be read as words, with which somebody could hide an instruction."""
    return any(0x30 <= byte <= 0x39 for byte in secret) and _WORDS.search(secret) is None


def load_rules() -> None:
    """Read the rules before they are needed, so that no turn waits for it. Blocks: some 20 ms, and some seconds where
    they have to be translated first. Raises `subprocess.SubprocessError` when that fails."""
    _needles()


@cache
def _data() -> Mapping[str, Any]:
    # The translator counts as well: another one makes other rules of the same package.
    source = f"{_PACKAGE} {version(_PACKAGE)} {hashlib.sha256(_TRANSLATOR.read_bytes()).hexdigest()[:12]}"
    kept: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # missing, or not whole: it is made again
        kept = json.loads(_FILE.read_text(encoding="utf-8"))
    return kept if kept.get("source") == source else _translated(source)


def _translated(source: str) -> Mapping[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "policies.kingfisher_rules"],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
        timeout=_TRANSLATING_SECONDS,
    )
    data: dict[str, Any] = {"source": source, **json.loads(done.stdout)}
    written = _FILE.with_name(f"{_FILE.name}.{os.getpid()}")
    with suppress(OSError):  # a folder that cannot be written to: the next process translates them again
        written.write_text(json.dumps(data), encoding="utf-8")
        written.replace(_FILE)
    return data


@cache
def _needles() -> Needles[_Rule]:
    return Needles((rule, rule.needles) for rule in map(_Rule, _data()["rules"]))


@cache
def _common_harmless() -> Any:
    words = [re2.escape(word) for word in _data()["harmless_words"]]
    return _frugal("|".join(f"(?:{regex})" for regex in [*_data()["harmless"], *words]))


def _frugal(regex: str) -> Any:
    """Compiled with a memory limit of 1 MB, so that no text makes all rules large; slower beyond it, still linear."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return re2.compile(regex, options)


if __name__ == "__main__":
    load_rules()


# ------------------------------------------------ placeholders: words, references to elsewhere, masks
_PLACEHOLDER_WORDS = """
    none null nil true false yes no ok on off empty string str text bytes int any object undefined optional required
    missing invalid incorrect correct wrong expired expires changed reset unknown unset set hidden redacted masked
    protected encrypted hashed enabled disabled updated failed weak strong length min max the a an is was must should
    input prompt example placeholder unchanged n/a not and or to of for in
"""
_HARMLESS = frozenset(_PLACEHOLDER_WORDS.encode().split())
_TEMPLATE = compiled(
    r"\$\{.*\}|\$\(.*\)?|\$[A-Z_][A-Z0-9_]*|%[A-Za-z_]+%|\{+[^{}]*\}+|<[A-Za-z][^<>]*>|\.*|…|[*•xX#]+|https?://.*"
    r"|\[[A-Za-z][A-Za-z0-9 :_-]*\]"
)
_BEGINS_TEMPLATE = frozenset(byte for begins in ("$%{<.*xX#hH[", "…", "•") for byte in begins.encode())
"""How a template can begin: looked at first, since most values are none."""
_NAME_OF_ONE = "[A-Za-z_]*(?:passw|secret|token|key|pwd)[A-Za-z_]*"
_REFERENCE = compiled(
    r"(?:self|this|os|process|env|config|settings|options|args|props|data|request|req|secrets|var|local)\.[\w.\[\]]*"
    rf"|[\w.]+\.{_NAME_OF_ONE}|[A-Za-z]*_{_NAME_OF_ONE}|(?:passw|secret|token|key|pwd)[A-Za-z]*_[A-Za-z_]*"
)


def is_placeholder(value: bytes) -> bool:
    """Whether a value (UTF-8) is no secret although it stands where one would."""
    bare = _without_signs_around(value)
    if bare.lower() in _HARMLESS or not bare:
        return True
    return bare[0] in _BEGINS_TEMPLATE and _TEMPLATE.fullmatch(bare) is not None


def is_reference(value: bytes) -> bool:
    """Whether a value without quotes is, in code, the name of where the secret is (`settings.api_key`)."""
    return (b"." in value or b"_" in value) and _REFERENCE.fullmatch(_without_signs_around(value)) is not None


def _without_signs_around(value: bytes) -> bytes:
    return value.strip().rstrip(b".:!?")
