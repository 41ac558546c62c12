"""Secrets that are found by the name or place beside them: `password=…`, `"api_key": "…"`, `--client-secret …`, cookies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from policies.patterns import Needles, compiled
from policies.secret_rules import Span, is_placeholder, is_reference
from policies.secret_shapes import LabelledSpan, SecretPattern

LONGEST_PASSWORD = 16 * 1024
"""Bytes of a quoted value; what is longer is no password."""
FIRST_LOOK = 256
"""Bytes of a value without quotes that are looked at to see whether it is a secret."""
_NAMES = {
    "password": r"passw(?:or)?[dt]s?|pwd|passphrase|passcode|kennwort|contrase(?:ñ|n)a|mot[ _-]?de[ _-]?passe|senha"
    r"|\bpass|[a-z0-9][_.-]pass|[a-z](?-i:Pass)|\bpw|[_-]pw",
    "key": r"(?:api|access|secret|private|account|shared[-_]?access|encryption|signing|master|storage|subscription"
    r"|webhook|auth|client|user|service|deploy|admin|anon|role|license|session|app|application|consumer|ssh|host)"
    r"[-_. ]?key|(?-i:[A-Z0-9]_KEY)|\bsecretkey|(?-i:apikey|APIKEY)",
    "token": r"(?:access|refresh|auth|bearer|api|id|session|bot|app|private|security|oauth|deploy|device|csrf|xsrf"
    r"|webhook|user|login|jwt|personal|push|registration|verification|reset|invite|sas|web)"
    r"[-_. ]?token|(?-i:[A-Z0-9]_TOKEN)|\btoken|\bjwt|\bsession[-_. ]?id|\bsessid|connect\.sid|\botp"
    r"|(?:x-)?amz-signature",
    "secret": r"secret|\bcredential|[_-]credential|\bsalt|[_-](?:signature|salt)|code[_-]?verifier",
}
"""Kind of secret → how names end that stand before it."""
_KINDS = tuple(_NAMES)
_CLOSE, _SEPARATOR = len(_KINDS) + 1, len(_KINDS) + 2
ANY_NAME = "|".join(_NAMES.values())
"""How a name ends that is called like a secret: a part of a regular expression without groups."""
_ANY_NAME = f"(?:{'|'.join(f'({name})' for name in _NAMES.values())})[0-9]?"
_FIELD = rf"{_ANY_NAME}(\\*[\"'`]\]?)?[ \t]*(=>|:=|={{1,3}}|:|\\u003d|%3d)[ \t]*"
_FIND_FIELD = compiled(f"(?i){_FIELD}")
_READ_FIELD = re.compile(f"(?i){_FIELD}".encode())
"""RE2 says where a field is, in linear time over all of a text; what stands where is read faster by `re`."""
_MASKED = re.compile(rb"\\*[\"'`]?\[secret: [a-z][a-z0-9 -]{0,39}\](?:[\s\"'`\\,;&<>(){}\[\]|]|\Z)")
"""A value that is a mask already."""
_OPTION = compiled(rf"(?i)(?:^|[\s\"'`])--[a-z0-9-]*{_ANY_NAME}[ \t]+")
_DEPTHS = (0, 1, 3, 7)
"""Backslashes before a quote that begins or ends something: none, or within one, two or three texts of JSON."""
_BACKSLASH = ord("\\")
_BARE = re.compile(rb"(?:[^\s\"'`\\,;&<>(){}\[\]|]|\\[^\snrtu\"'`])+")
_ENDS_IN_ADDRESS = re.compile(rb"%(?:26|3[Bb]|20|0[AaDd]|22|27)")
_ENDS_TOKEN = re.compile(rb"[#@]")
"""What a password may hold, and a token in an address does not."""
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![^\s,}\]\\])")
_OPENING = re.compile(rb"(?:[bfru]{1,2})?(\\*)([\"'`])")
_AFTER_AN_END = re.compile(rb"\s*(?:[,:}\]]|\Z)")
_BEGINS_LINE = re.compile(rb"(?:\A|[\n\"'`{,]|\\[nrt])[ \t]*(?:-[ \t]+|export[ \t]+)?[A-Za-z0-9_.-]*\Z")
_ENDS_LINE = re.compile(rb"[ \t]*(?:[\r\n\"'`},#]|\Z|\\[nrt])")
_PATH = re.compile(rb"[/~]|[A-Za-z]:\\")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_DIGIT = re.compile(rb"[0-9]")
_NAME_KEYS = frozenset(("name", "key", "id", "variable", "field"))
_VALUE_KEYS = frozenset(("value", "val", "data", "default", "content", "secret"))
_LOOK_BACK = 80
"""Bytes before a name that are looked at to see where it stands."""


def fields(text: bytes) -> Iterator[LabelledSpan]:
    """The values of all fields that are called like secrets. Linear in time."""
    done = 0
    for at in _FIND_FIELD.finditer(text):
        found = _READ_FIELD.match(text, at.start()) if at.start() >= done else None
        if found is not None and not _MASKED.match(text, found.end()):
            kind = _kind_of(found)
            value = _secret(text, _quoted(text, found) or _bare(text, found, kind), kind)
            if value is not None:
                done = value[1]
                yield *value, kind
    for found in _OPTION.finditer(text) if b"--" in text else ():
        value = _secret(text, _argument(text, found.end()), _kind_of(found))
        if value is not None:
            yield *value, _kind_of(found)


def kind_of_field(name: str, value: str) -> str | None:
    """The kind of secret that a field is by its name and value; `None`: none."""
    written = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value)}".encode("utf-8", "surrogatepass")
    return next((kind for start, _, kind in fields(written) if start > len(name)), None)


def name_of_entry(entries: Mapping[str, Any], key: str) -> str:
    """What an object's entry is called: its key, or, in `{"name": "DB_PASSWORD", "value": "…"}`, the name beside it."""
    if key.lower() not in _VALUE_KEYS:
        return key
    names = (str(each) for each in entries if str(each).lower() in _NAME_KEYS)
    return next((entries[each] for each in names if isinstance(entries[each], str)), key)


def _kind_of(found: Any) -> str:
    return _KINDS[next(group for group in range(len(_KINDS)) if found.start(group + 1) >= 0)]


def _secret(text: bytes, value: tuple[int, int] | None, kind: str) -> tuple[int, int] | None:
    """The value, to its end, if it is a secret."""
    if value is None:
        return None
    start, end = value
    written = text[start:end]
    if len(written) < (3 if kind == "password" else 8) or is_placeholder(written):
        return None
    if kind == "token" and len(written) < 16 and not is_mixed(written):
        return None
    if len(written) < FIRST_LOOK - 1:  # one less: the first look may have ended within an escape
        return value
    return value if text[end : end + 1] in (b"#", b"@") else (start, _end_of_bare(text, end))


def _end_of_bare(text: bytes, at: int) -> int:
    """Where a value without quotes ends. Looked for step by step: one match of 1 MB holds the interpreter for 0.1 s."""
    while (step := _BARE.match(text, at, at + LONGEST_PASSWORD)) is not None:
        at = step.end()
    return at


def _quoted(text: bytes, found: Any) -> tuple[int, int] | None:
    """A value in quotes, which may be escaped themselves (JSON within JSON): `\\"…\\"`."""
    opening = _OPENING.match(text, found.end())
    if opening is None or len(opening[1]) not in _DEPTHS:
        return None
    if not found.group(_CLOSE) and _AFTER_AN_END.match(text, opening.end()):
        return None  # this quote ends the text in which the name stands
    end = _end_of_quoted(text, opening.end(), len(opening[1]), opening[2])
    return None if end is None else (opening.end(), end)


def _end_of_quoted(text: bytes, start: int, depth: int, quote: bytes) -> int | None:
    """Where a value ends that was opened by a quote behind `depth` backslashes: where the quote is closed, or one
    further out, or the line ends. `None`: too far away."""
    limit = start + LONGEST_PASSWORD
    for at in _positions(text, quote, start, limit):
        escapes = _backslashes_before(text, at, start)
        outer = next((out for out in _DEPTHS if out <= depth and escapes % (2 * (out + 1)) == out), None)
        if outer is not None:
            return _within_line(text, start, at - outer, quote)
    return _within_line(text, start, len(text), quote) if len(text) <= limit or b"\n" in text[start:limit] else None


def _positions(text: bytes, quote: bytes, start: int, limit: int) -> Iterator[int]:
    at = text.find(quote, start, limit)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1, limit)


def _backslashes_before(text: bytes, at: int, start: int) -> int:
    first = at
    while first > start and text[first - 1] == _BACKSLASH:
        first -= 1
    return at - first


def _within_line(text: bytes, start: int, end: int, quote: bytes) -> int:
    line = text.find(b"\n", start, end)
    end = line if line >= 0 else end
    if quote == b'"':
        return end
    # Single quotes and backticks may stand in a JSON text: its own quotes end them too.
    outside = text.find(b'"', start, end)
    return end if outside < 0 else outside - _backslashes_before(text, outside, start)


def _bare(text: bytes, found: Any, kind: str) -> tuple[int, int] | None:
    """A value without quotes."""
    at, separator = found.end(), found.group(_SEPARATOR)
    if found.group(_CLOSE) and separator == b":":
        number = _NUMBER.match(text, at)
        return number.span() if number else None
    value = _bare_value(text, at, kind, separator)
    if value is None or text[value.end() : value.end() + 1] in (b"(", b"["):
        return None  # a call, or a part of something, in code
    if is_reference(value[0]):
        return None
    if kind == "password" and found.group(1).lower() == b"pwd" and _PATH.match(value[0]):
        return None  # the working directory
    if separator == b":" and not is_mixed(value[0]):
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
        alone = kind == "password" and _BEGINS_LINE.search(before) and _ENDS_LINE.match(text, value.end())
        return (value.start(), value.end()) if alone else None
    return value.start(), value.end()


def _bare_value(text: bytes, at: int, kind: str, separator: bytes) -> Any:
    value = _BARE.match(text, at, at + FIRST_LOOK)
    if value is None:
        return None
    if separator.lower() == b"%3d":
        ends = _ENDS_IN_ADDRESS
    elif kind != "password":
        ends = _ENDS_TOKEN
    else:
        return value
    end = ends.search(text, at + 1, value.end())
    return _BARE.match(text, at, end.start()) if end else value


def _argument(text: bytes, at: int) -> tuple[int, int] | None:
    """What follows `--password`; a plain word goes on with the sentence about it."""
    opening = _OPENING.match(text, at)
    if opening is not None and len(opening[1]) in _DEPTHS:
        end = _end_of_quoted(text, opening.end(), len(opening[1]), opening[2])
        return None if end is None else (opening.end(), end)
    value = _BARE.match(text, at, at + FIRST_LOOK)
    return None if value is None or value[0].isalpha() else value.span()


def is_mixed(value: bytes) -> bool:
    """Whether it looks made up: letters and digits, six characters at least."""
    return len(value) >= 6 and _LETTER.search(value) is not None and _DIGIT.search(value) is not None


# ------------------------ by place: in a record, an element, a cookie, after an option, in an address
# Nothing here is certain: whatever stands in such a place is taken for a secret.

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
