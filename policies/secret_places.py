"""Secrets by where they stand: beside their name in a record, in an element, in a cookie, after an option, in an address.

Nothing here is certain: whatever stands in such a place is taken for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial

from policies.needles import Needles
from policies.patterns import compiled
from policies.placeholders import is_placeholder, is_reference
from policies.secret_fields import ANY_NAME, is_mixed
from policies.secret_rules import Span
from policies.secret_shapes import SecretPattern

_NAMED = rf"[^\"'<>\n]{{0,80}}(?:{ANY_NAME}|credentials?)[0-9]?"
_TEXT = r"((?:[^\"'\\\n]|\\[^\n]){3,})"
_VALUE_NAMES = ("value", "val", "data", "default", "content", "secret")
_VALUE = rf"[\"'](?:{'|'.join(_VALUE_NAMES)})[\"']"
_VALUES = tuple(f"{quote}{name}" for name in _VALUE_NAMES for quote in "\"'")


def _place(kind: str, regex: str, *needles: str, shortest: int = 3) -> SecretPattern:
    return SecretPattern(kind, f"(?i){regex}", needles, shortest, certain=False)


@cache
def _places() -> tuple[SecretPattern, ...]:
    return (
        _place("value", rf"[\"'](?:name|key|id|variable|field)[\"']\s*:\s*[\"']{_NAMED}[\"']\s*,\s*{_VALUE}\s*:\s*[\"']{_TEXT}", *_VALUES),
        _place("value", rf"{_VALUE}\s*:\s*[\"']{_TEXT}[\"']\s*,\s*[\"'](?:name|key|id|variable|field)[\"']\s*:\s*[\"']{_NAMED}[\"']", *_VALUES),
        _place("value", rf"\bname:[ \t]*[\"']?{_NAMED}[\"']?[ \t]*\r?\n[ \t]+value:[ \t]*[\"']?([^\s\"'{{$|>][^\n\"']*)", "value:"),
        _place("value", rf"\b(?:name|key|parameterkey)={_NAMED},(?:value|parametervalue)=([^\s,\"']+)", "value="),
        _place("value", rf"<(?:[a-z0-9]+:)?[a-z0-9_.-]{{0,60}}(?:{ANY_NAME})[0-9]?(?:\s[^<>]*)?>\s*(?:<!\[CDATA\[)?([^<>\s][^<>]*?)\s*(?:\]\]>)?\s*</", "</"),
        _place("value", rf"\b(?:key|name|id)\s*=\s*[\"']{_NAMED}[\"']\s+(?:value|content)\s*=\s*[\"']([^\"'<>\n]{{3,}})", "value", "content"),
        _place("value", rf"<key>{_NAMED}</key>\s*<string>\s*([^<>\s][^<>]*?)\s*</string>", "<string>"),
        _place("value", rf"\|\s*[*`]*[a-z0-9_ .-]{{0,40}}(?:{ANY_NAME})[*`]*\s*\|\s*`?([^\s|`]{{6,}})`?\s*\|", "|"),
        _place("password", r"\blogin\s+\S+\s+password\s+(\S{3,})", "password"),
        _place("password", r"\bmachine\s+\S+\s+password\s+(\S{3,})", "password"),
        _place("password", r"(?:^|\n)[ \t]*(?:requirepass|masterauth)[ \t]+[\"']?([^\s\"']+)", "requirepass", "masterauth"),
        _place("password", r"\bcurl\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user)[ =]*[\"']?[^\s:\"'$]+:([^\s\"']{3,})", "curl"),
        _place("password", r"\bhttps?[ \t][^\n]{0,200}?\s-a[ =]*[\"']?[^\s:\"'$]+:([^\s\"']{3,})", "http ", "http\t", "https ", "https\t"),
        _place("password", r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,400}?\s-p[\"']?([^\s\"'$-][^\s\"']{2,})", "mysql", "mariadb"),
        _place("password", r"\b(?:sshpass|docker[ \t]+login|podman[ \t]+login|helm[ \t]+registry[ \t]+login)\b[^\n]{0,400}?\s-p[ =]?[\"']?([^\s\"'$-][^\s\"']{2,})", "sshpass", "docker", "podman", "helm"),
        _place("password", r"\b(?:redis-cli|ldapsearch|ldapmodify)\b[^\n]{0,400}?\s-[aw][ ]+[\"']?([^\s\"'$-][^\s\"']{2,})", "redis-cli", "ldapsearch", "ldapmodify"),
        _place("password", r"\b(?:identified[ \t]+by|with[ \t]+(?:encrypted[ \t]+)?password)[ \t]*=?[ \t]*'([^'\n]{3,})'", "identified", "password"),
        _place("password", r"\bpassword[ \t]+'([^'\n]{3,})'", "password"),
        _place("password", r"(?:^|\s)[a-z0-9.*-]+:(?:[0-9]{2,5}|\*):[^\s:]+:[^\s:/]+:([^\s:/]{6,})(?:\s|$)", ":"),
        _place("password hash", r"(\$(?:apr1|1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d)|pbkdf2[a-z0-9-]*|scrypt)\$[a-z0-9./$=,+-]{20,})", "$"),
        _place("token", r"[?&;#](?:key|sig|signature|code|auth|jwt|ticket|sid|session|pass|pw|x-amz-signature|x-amz-credential|x-goog-signature|hmac|hash)=([a-z0-9._~%+/=-]*[0-9][a-z0-9._~%+/=-]*)", "=", shortest=16),
        _place("token", r"https?://([a-z0-9_-]{20,})@", "@"),
        _place("token", r"(?:^|[\s/])(?:_auth|_authtoken|:_password|//[^\s:]+:_authtoken)[ \t]*=[ \t]*[\"']?([^\s\"'$]{6,})", "_auth", "_password"),
        _place("credentials", r"[\"']auth[\"']\s*:\s*[\"']([a-z0-9+/]{12,}={0,2})[\"']", 'auth"', "auth'"),
        _place("webhook", r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/([a-z0-9_-]{50,})", "discord"),
    )  # fmt: skip


_COOKIES = compiled(r"(?i)\b(set-)?cookie2?\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?([^\r\n\"'\\]+)")
_COOKIE = re.compile(rb"([^=;\s]++)(?:=([^;\s]++))?")
"""A cookie, or a word that is none: it is passed over as a whole, so that looking is linear."""
_SESSION = re.compile(rb"sess|sid|auth|token|jwt|csrf|xsrf|remember|login|secret|key", re.IGNORECASE)
_ATTRIBUTES = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"version", b"priority"))
_BLOCK = compiled(
    rf"(?im)^([ \t]*)(?:- +)?[\"']?[a-z0-9_.-]{{0,60}}(?:{ANY_NAME})[0-9]?[\"']?:[ \t]*[|>][-+0-9]*[ \t]*\r?$"
)
_SAID = compiled(
    rf"(?i)(?:\b(?:password|passphrase|passcode|passwort|kennwort)\b(?:[ \t]+[a-zäöüß]+){{0,5}}[ \t]*:?[ \t]+"
    rf"|(?:{ANY_NAME})[0-9]?(?::\*{{1,2}}|\*{{1,2}}:)[ \t]*"
    rf"|(?:{ANY_NAME})[0-9]?:[ \t]*!{{1,2}}[a-z]+[ \t]+"
    rf"|\bsetx?[ \t]+[a-z0-9_]*(?:{ANY_NAME})[0-9]?[ \t]+)[\"'`“„]?([^\s\"'`”“<>(){{}}\[\]]{{5,}}[^\s\"'`”“<>(){{}}\[\].,;:!?*])"
)
"""Said in a sentence, or after a name in bold type: only what looks made up is a secret there."""
_SAID_NEEDLES = (
    *(b"password", b"passphrase", b"passcode", b"passwort", b"kennwort"),
    *(b":*", b"*:", b"!", b"set ", b"set\t", b"setx"),
)
_LINE = re.compile(rb"[ \t]*[^\r\n]*")


def place_spans(text: bytes) -> Iterator[Span]:
    """What stands where secrets stand, in no order. Linear in time."""
    for look in _needles().whose_are_in(text):
        yield from look(text)


@cache
def _needles() -> Needles[Callable[[bytes], Iterator[Span]]]:
    placed = ((partial(_at_place, each), [needle.encode() for needle in each.needles]) for each in _places())
    return Needles([*placed, (_said, _SAID_NEEDLES), (_cookies, (b"cookie",)), (_blocks, (b"|", b">"))])


def _at_place(pattern: SecretPattern, text: bytes) -> Iterator[Span]:
    for start, end, kind in pattern.spans(text):
        if not is_reference(text[start:end]):
            yield start, end, kind, False


def _said(text: bytes) -> Iterator[Span]:
    for found in _SAID.finditer(text):
        if (
            is_mixed(found[1])
            and not is_placeholder(found[1])
            and not is_reference(found[1])
            and b"://" not in found[1]
        ):
            yield found.start(1), found.end(1), "password", False


def _cookies(text: bytes) -> Iterator[Span]:
    for found in _COOKIES.finditer(text):
        for cookie in _COOKIE.finditer(text, *found.span(2)):
            if cookie[2] is None:
                continue
            name, value = cookie[1].lower(), cookie[2]
            secret = len(value) >= 16 or (len(value) >= 6 and _SESSION.search(name) is not None)
            if secret and name not in _ATTRIBUTES and not is_placeholder(value):
                yield cookie.start(2), cookie.end(2), "cookie", False
            if found[1]:
                break  # the rest are attributes


def _blocks(text: bytes) -> Iterator[Span]:
    """The text of a YAML block whose key is called like a secret: the lines that are further in than the key."""
    for found in _BLOCK.finditer(text):
        depth = len(found[1])
        start = end = None
        at = found.end() + 1
        while at < len(text):
            line = _LINE.match(text, at)
            stripped = line[0].strip() if line else b""
            inner = len(line[0]) - len(line[0].lstrip()) if line else 0
            if line is None or (stripped and inner <= depth):
                break
            if stripped:
                start = line.start() + inner if start is None else start
                end = line.start() + len(line[0].rstrip())
            at = line.end() + 1 + (text[line.end() : line.end() + 2] == b"\r\n")
        if start is not None and end is not None and not is_placeholder(text[start:end]):
            yield start, end, "value", False
