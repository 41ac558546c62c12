"""Secrets that give themselves away by how they look: tokens of known services, private keys, addresses with passwords.

Shapes as their issuers document them. Everything is in bytes: a secret is found in the UTF-8 of a text.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policies.patterns import compiled
from policies.secret_rules import Span, is_placeholder, looks_random

LabelledSpan = tuple[int, int, str]
"""Where a secret begins and ends, and its kind."""
_KIND = re.compile(r"[a-z][a-z0-9 -]{0,39}")
_BEFORE = (
    r"(?:^|\\[abefnrtv0]|\\[0-7]{3}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|%[0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4}|[^A-Za-z0-9])"
)
"""What may stand before a token: no letter or digit, unless it ends an escape (JSON's `\\n`, Python's `\\U000e0001`, an
address's `%20`)."""


@dataclass(frozen=True)
class SecretPattern:
    """One kind of secret. Raises `ValueError` with a sentence when the pattern or the kind is none."""

    kind: str
    """What the mask says: a few lower-case words."""
    regex: str
    """RE2. The secret is its first group, or all of it when it has none."""
    needles: tuple[str, ...] = ()
    """One of these, in capitals or not, is in every text that has such a secret: the quick way to see that there is
    none. Whoever looks for many patterns looks for all their needles first (`policies.patterns`)."""
    shortest: int = 1
    """Bytes of the shortest that counts."""
    certain: bool = True
    """Whether ordinary text cannot look like it. What is not certain is masked in logs and for the model, and shown to
    people who decide on it."""

    random: bool = False
    """Whether it is certain only where it looks random: a token's characters may also write words."""

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(self.kind):
            raise ValueError(f"the kind “{self.kind[:40]}” must be a few lower-case words")
        if self._compiled.search(b"") is not None:
            raise ValueError("the pattern fits the empty text, so it would be found everywhere")

    def spans(self, text: bytes) -> Iterator[LabelledSpan]:
        """Where it is found, in linear time."""
        group = min(1, self._compiled.groups)
        for found in self._compiled.finditer(text):
            start, end = found.span(group)
            if end - start >= self.shortest and not is_placeholder(text[start:end]):
                yield start, end, self.kind

    @cached_property
    def _compiled(self) -> Any:
        return compiled(self.regex)


def _token(kind: str, regex: str, *needles: str) -> SecretPattern:
    return SecretPattern(kind, f"{_BEFORE}({regex})", needles, random=True)


_GITLAB = tuple(f"gl{kind}-" for kind in ("pat", "ptt", "dt", "rt", "cbt", "soat", "agent", "imt", "ft", "ffct"))
TOKENS = (
    _token("aws key", r"(?:AKIA|ASIA)[0-9A-Z]{16}\b", "AKIA", "ASIA"),
    _token("github token", r"gh[pousr]_[A-Za-z0-9]{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("github token", r"github_pat_[A-Za-z0-9_]{40,}", "github_pat_"),
    _token("gitlab token", r"gl(?:pat|ptt|dt|rt|cbt|soat|agent|imt|ft|ffct)-[A-Za-z0-9_.-]{20,}", *_GITLAB),
    _token("slack token", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}", "xox"),
    _token("slack token", r"xapp-[0-9]-[A-Za-z0-9-]{10,}", "xapp-"),
    SecretPattern(
        "slack webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
        ("hooks.slack.com",),
        random=True,
    ),
    _token("google key", r"AIza[0-9A-Za-z_-]{35}", "AIza"),
    _token("google token", r"ya29\.[0-9A-Za-z_-]{20,}", "ya29."),
    _token("google token", r"1//0[0-9A-Za-z_-]{30,}", "1//0"),
    _token("google secret", r"GOCSPX-[0-9A-Za-z_-]{20,}", "GOCSPX-"),
    _token("azure secret", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}", "Q~"),
    _token("azure token", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", "AZDO"),
    SecretPattern("azure signature", r"(?:[?&;]|\\u0026)sig=([A-Za-z0-9%+/=_-]{30,})", ("sig=",), certain=False),
    _token("api key", r"sk-(?:proj|svcacct|admin|ant|or|lf|live|test)-[A-Za-z0-9_-]{24,}", "sk-"),
    _token("api key", r"sk-[A-Za-z0-9]{32,}", "sk-"),
    _token("stripe key", r"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}", "k_live_", "k_test_"),
    _token("stripe secret", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    _token("npm token", r"npm_[A-Za-z0-9]{36,}", "npm_"),
    _token("pypi token", r"pypi-[A-Za-z0-9_-]{50,}", "pypi-"),
    _token("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "eyJ"),
    _token(
        "jwt", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "eyJ"
    ),
    SecretPattern(
        "password", r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>\\]*:([^\s/\"'<>\\]+)@[^\s@]", ("://",), certain=False
    ),
    _token("vault token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", "hvs.", "hvb.", "hvr."),
    _token("hugging face token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _token("discord token", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}", "."),
    SecretPattern("telegram token", rf"{_BEFORE}(?:bot)?([0-9]{{8,10}}:AA[A-Za-z0-9_-]{{32,}})", (":AA",), random=True),
    _token("sendgrid key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "SG."),
    SecretPattern(
        "bearer token",
        r"(?i)\bbearer[ \t]+([a-z0-9._~+/-]*[0-9][a-z0-9._~+/-]*=*)",
        ("bearer",),
        shortest=16,
        certain=False,
    ),
    SecretPattern(
        "authorization",
        r"(?i)authorization\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?(?:basic|bearer|token|digest|negotiate|apikey)[ \t]+"
        r"([a-z0-9._~+/=-]{6,})",
        ("authorization",),
        certain=False,
    ),
)
"""What is always masked."""
GUIDS = SecretPattern("guid", rf"{_BEFORE}((?i:[0-9a-f]{{8}}-(?:[0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}})\b)")
"""Masked where the operator wants it."""
EMAILS = SecretPattern(
    "e-mail address",
    rf"{_BEFORE}((?i:[a-z0-9._%+-]{{1,64}}@(?:[a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?\.)+[a-z]{{2,24}})\b)",
    ("@",),
)
"""Masked where the operator wants it."""


# ----------------------------------------------------------------- private keys between their markers
_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?"
_BREAK = r"(?:\s|\\+[nr])"
_BLOCK = compiled(rf"-----BEGIN {_NAME}-----([^\"]*?)-----END {_NAME}-----")
_CUT_OFF = compiled(rf"-----BEGIN {_NAME}-----((?:{_BREAK}*[A-Za-z0-9+/=]{{16,}})+)")
_BREAKS = re.compile(rb"\s+|(?<!\\)\\++[nr]")
_HEADER = re.compile(rb"[A-Za-z-]{3,20}: [^\r\n\\]{1,80}(?:\s|\\+[nr])")
"""Headers of RFC 1421 and of PGP: `Proc-Type`, `DEK-Info`, `Version`, `Comment`."""
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


# -------------------------------------------------------------- what merely looks like a credential
# For texts that nobody needs word for word: lines of logs, and errors. More is taken out than `policies.masking`
# masks, and less care is taken of what is around it: a tool's result belongs to the person who asked for it, and what
# people decide on is shown; neither is guessed at.

IN_LOGS = "***"
"""What stands in logs for what was taken out."""
IN_ERRORS = "[redacted]"
"""What stands in errors of tool servers, and in their results, for what was taken out."""
USER_AND_PASSWORD = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")
Guess = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]
"""What is looked for, and what takes its place, as for `re.sub`."""


def _bearers_and_jwts(mark: str, word: str, more: str = "") -> tuple[Guess, ...]:
    """`word`: what tokens are made of; `more`: what else may stand in one."""
    return (
        (re.compile(rf"\b(bearer|basic)\s+[{word}.~+/={more}-]{{8,}}", re.IGNORECASE), rf"\1 {mark}"),
        (
            re.compile(rf"\b(eyJ[{word}-]{{8,}}+\.[{word}-]++\.[{word}-]*+)|\beyJ[{word}-]*+"),
            lambda found: mark if found[1] else found[0],
        ),
    )


# Each in linear time, since what others say may be made to take long. Where there is nothing in a run of characters, it
# is passed over as a whole (the second alternative); what a name begins with is not looked at, since it stays.
_GUESSES: dict[str, tuple[Guess, ...]] = {
    IN_LOGS: (
        # Queries of addresses carry codes, states and tokens; also those of request lines in access logs.
        (
            re.compile(r"""(\bhttps?://[^\s"'<>?#]++)([?#][^\s"'<>]*+)?"""),
            lambda found: f"{found[1]}?{IN_LOGS}" if found[2] else found[0],
        ),
        (re.compile(r"\b((?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) [^\s?]*)\?\S*"), rf"\1?{IN_LOGS}"),
        (re.compile(r"(?<=[a-z0-9+.-]://)[^\s/@\"']+@"), f"{IN_LOGS}@"),
        *_bearers_and_jwts(IN_LOGS, "A-Za-z0-9_", "*"),
        (re.compile(r"\bsk-[A-Za-z0-9_*-]{6,}"), IN_LOGS),
        (re.compile(r"\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{6,}"), IN_LOGS),
    ),
    IN_ERRORS: (
        (USER_AND_PASSWORD, IN_ERRORS),
        *_bearers_and_jwts(IN_ERRORS, r"\w"),
        (
            re.compile(r"\b(?:sk|pk|rk|xox[abeprs]|xapp|gh[opsur]|github_pat|glpat|AKIA|AIza)[-_]?[A-Za-z0-9_-]{12,}"),
            IN_ERRORS,
        ),
        (
            re.compile(
                r"""(?<!\[)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?)["']?\s*[=:]\s*)"""
                r"""(?!\[redacted\]|\[secret: )("[^"]*"|'[^']*'|[^\s,;&"']+)""",
                re.IGNORECASE,
            ),
            rf"\1{IN_ERRORS}",
        ),
    ),
}


def without_guessed(text: str, mark: str) -> str:
    """The text with `mark` in place of what looks like a credential. `mark`: `IN_LOGS` or `IN_ERRORS`; they differ in
    how much is taken out."""
    for pattern, replacement in _GUESSES[mark]:
        text = pattern.sub(replacement, text)
    return text


def any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    """What finds these values; the longest first, so that no rest of one stays. `None` when there are none."""
    ordered = sorted(values, key=lambda value: (-len(value), value))
    return re.compile("|".join(re.escape(value) for value in ordered)) if ordered else None
