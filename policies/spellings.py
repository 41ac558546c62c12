"""What a text can be taken for: the other texts that a tool may make of it before it acts on it.

A server trims, folds case, drops what cannot be seen, decodes escapes, takes quotes off, splits lists. Nobody here can
know which, so a condition asks of all of them. Everything is linear in the length of the text.
"""

from __future__ import annotations

import html
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from ipaddress import IPv6Address
from itertools import islice
from socket import inet_aton, inet_ntoa
from typing import Any
from urllib.parse import unquote

import re2  # type: ignore[import-untyped]  # google-re2 ships no types

LONGEST_SPELLED = 20_000
"""Characters of a text whose other spellings are looked at; of a longer one that is not plain they are not known."""
_MARKS = 30
"""Combining marks in a row that mean anything (UAX 15, Stream-Safe Text Format); `unicodedata.normalize` takes time by
the square of more."""
MOST_PIECES = 200
"""Parts of a text that are held against a pattern one by one; of more it is not known whether all fit."""
_ROUNDS = 4
"""How often decoding is tried on what was decoded."""
_PHRASES = {"\ufdfa": "\u0635", "\ufdfb": "\u062c"}
"""Single characters that become 18 and 8 in form NFKC (of all others none becomes more than 6), and their first
letters: a text must not grow by that much."""
_MANY_MARKS = re2.compile(rf"(\pM{{{_MARKS}}})\pM+")
_NOT_PLAIN = re2.compile(
    rb"[^ -~]|[%&\\<>()\[\]{}\"'`]|^[ #@]| $|  |(?:^|/)\.{0,2}/|/\.{0,2}$|^[Ff][Ii][Ll][Ee]:|^[Hh][Tt][Tt][Pp][Ss]?:"
)
"""Compiled by RE2, which takes a twentieth of the time, and does not hold the interpreter meanwhile."""
_QUOTES = " \t\r\n\f\v\"'`´‘’‚‛“”„‟«»‹›「」『』()[]{}<>"
_SEPARATORS = ",;|\t\r\n\f\v\0\u2028\u2029，；、｜"
_OF_A_DOCUMENT = "\"'[]{}:"
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""All white space of Unicode."""
_BETWEEN_ADDRESSES = str.maketrans(dict.fromkeys(_SPACE + "<>", "\n"))
_WITHOUT_SEPARATORS = re.compile(r"[^\s,;|<>，；、]+")
_AROUND, _OTHER_SPACE = re.escape(_QUOTES), "".join(sorted(set(_SPACE) - set(_QUOTES)))
_SPACE_IN_A_PIECE = re2.compile(rf"[{_OTHER_SPACE}]|[^{_AROUND},;|][^,;|]*[ \t\r\n\f\v][^,;|]*[^{_AROUND},;|]".encode())
"""White space in what is left of a part between commas when blanks and quotes around it are taken off."""
_LINES = str.maketrans(dict.fromkeys(_SEPARATORS, "\n"))
_LEADING_ELSEWHERE = re.compile(r"[@!%\"]")
_ESCAPE = re.compile(r"\\(?:u(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))|x([0-9A-Fa-f]{2})|([0-7]{3})|(.))", re.DOTALL)
_ALIKE = str.maketrans(
    "аеорсухіјѕԁԛԝһѵАВЕКМНОРСТХУІЈЅαορνικτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıøłđ",
    "aeopcyxijsdqwhvABEKMHOPCTXYIJSaopviktuxABEZHIKMNOPTYXiold",
)
"""Letters of other scripts that look like Latin ones, and Latin ones that do not decompose."""
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))


def composed(text: str) -> str:
    """A text in Unicode's form NFKC, with at most 30 combining marks in a row. Linear, whatever the text."""
    if text.isascii():
        return text
    if len(text) > _MARKS:
        encoded = text.encode("utf-8", "replace")
        if _MANY_MARKS.search(encoded) is not None:
            text = _MANY_MARKS.sub(rb"\1", encoded).decode("utf-8", "replace")
    for phrase, short in _PHRASES.items():
        text = text.replace(phrase, short)
    return unicodedata.normalize("NFKC", text)


class LongText(str):
    """A text that is longer than `LONGEST_SPELLED`, and remembers what takes its length to find out: many rules ask for
    it."""

    @cached_property
    def plain(self) -> bool:
        """See `is_plain`."""
        return is_plain(str(self))

    @cached_property
    def encoded(self) -> bytes:
        """See `encoded`."""
        return encoded(str(self))

    @cached_property
    def in_pieces(self) -> str | None:
        """See `in_pieces`."""
        return in_pieces(str(self))

    @cached_property
    def certain_pieces(self) -> Sequence[str]:
        """See `certain_pieces`."""
        return certain_pieces(str(self))


def encoded(text: str) -> bytes:
    """A text in UTF-8, as RE2 takes it, with question marks for halves of characters."""
    return text.encoded if isinstance(text, LongText) else text.encode("utf-8", "replace")


def is_plain(text: str) -> bool:
    """Whether a text has no other spelling than in upper and lower case: printable ASCII without escapes, quotes,
    brackets, or spaces at its ends or two in a row, and no identifier in groups."""
    if isinstance(text, LongText):
        return text.plain
    return (
        text.isascii()
        and _NOT_PLAIN.search(encoded(text)) is None
        and not _is_address_written_otherwise(text)
        and not _is_in_groups(text)
    )


def spellings(text: str) -> tuple[str, ...] | None:
    """A text and what a tool may make of it; `None` when it is too long to say (`LONGEST_SPELLED`)."""
    if is_plain(text):
        return (text,)
    return _remembered(text) if len(text) <= LONGEST_SPELLED else None


def decoded(text: str) -> tuple[str, ...] | None:
    """A text as it reads once its escapes are decoded and what cannot be seen is dropped; `None` when it is too long to
    say (`LONGEST_SPELLED`)."""
    if is_plain(text):
        return ()
    if len(text) > LONGEST_SPELLED:
        return None
    singly = [make(text) for make in _DECODERS]
    made = text
    for make in _DECODERS * 2:
        made = make(made)
        singly.append(made)
    return tuple(reading for reading in dict.fromkeys(singly) if reading != text)


def in_pieces(text: str) -> str | None:
    """A text that may be several (`a, b`), a line for each; `None` when it is one.

    Of addresses, spaces part them too; of JSON, its own signs.
    """
    if isinstance(text, LongText):
        return text.in_pieces
    lines = text.translate(_LINES)
    if "@" in text:
        lines = lines.translate(_BETWEEN_ADDRESSES)
    if text.lstrip()[:1] in ("[", "{", '"'):
        lines = lines.translate(dict.fromkeys(map(ord, _OF_A_DOCUMENT), "\n"))
    return lines if "\n" in lines else None


def certain_pieces(text: str) -> Sequence[str]:
    """What a text surely would be several of, were it read as a list: words with commas between them, or several
    addresses; of more than `MOST_PIECES` only the first, but more than that. Empty when it is one text."""
    if isinstance(text, LongText):
        return text.certain_pieces
    if text.count("@") > 1:
        addresses = (found[0] for found in _WITHOUT_SEPARATORS.finditer(text) if "@" in found[0])
        return [address.strip(_QUOTES) for address in islice(addresses, MOST_PIECES + 1)]
    pieces = [piece.strip(_QUOTES) for piece in re.split("[,;|]", text, maxsplit=MOST_PIECES + 1)]
    if len(pieces) > MOST_PIECES:
        return [] if _SPACE_IN_A_PIECE.search(encoded(text)) is not None else pieces
    return pieces if len(pieces) > 1 and not any(re.search(r"\s", piece) for piece in pieces) else []


def may_lead_elsewhere(text: str) -> bool:
    """Whether mail to an address may go to another host than the one after its last `@`: there is one before it, as in
    `x@evil.example#@acme.example`, or a route (`x%evil.example@…`, `evil.example!x@…`, RFC 5321, appendix C)."""
    before, at, _ = text.rpartition("@")
    return bool(at) and _LEADING_ELSEWHERE.search(before) is not None and re.search(r"\s", text) is None


@lru_cache(maxsize=32)  # many rules ask about one value
def _remembered(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_spellings(text)))


def _spellings(text: str) -> Iterator[str]:
    yield text
    yield _unwrapped(text)
    for make in _MAKERS:
        yield make(text)
    made = text
    for _ in range(_ROUNDS):
        before = made
        for make in _MAKERS:
            made = make(made)
            yield made
            yield _unwrapped(made)
        if made == before:
            break


def _unescaped(text: str) -> str:
    """Returns the text without backslashes: `\\u0061` → a, `\\/` → /."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    number = match[1] or match[2] or match[3]
    code = int(number, 16) if number else int(match[4], 8) if match[4] else None
    if code is None:
        return {"n": "\n", "t": "\t", "r": "\r"}.get(match[5], str(match[5]))
    return chr(code) if code < 0x110000 else ""


def _visible(text: str) -> str:
    """Returns the text without characters that cannot be seen: format, control, private, unassigned, and variation
    selectors."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or not _is_invisible(c))


def _spaced(text: str) -> str:
    """Returns the text with a space for each character that cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if _is_invisible(c) else c for c in text)


def _is_invisible(c: str) -> bool:
    return (
        unicodedata.category(c)[0] == "C"
        or c in "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
        or "\ufe00" <= c <= "\ufe0f"
    )


def with_plain_dashes(text: str) -> str:
    """A text with a hyphen for each dash: word processors and models put other ones into numbers of phones."""
    return text if text.isascii() else text.translate(_DASHES)


def unmarked(text: str) -> str:
    """A text without accents, and with Latin letters for those of other scripts that look the same."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", composed(text)).translate(_ALIKE)
    return "".join(c for c in apart if unicodedata.category(c)[0] != "M")


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _unquoted(text: str) -> str:
    return text.strip(_QUOTES)


def _unwrapped(text: str) -> str:
    return text.strip(_QUOTES).strip("/").strip(_QUOTES)


def _without_sign(text: str) -> str:
    """`#general` → general, `@ben` → ben: chats and trackers take both."""
    return text[1:] if text[:1] in ("#", "@") and text[1:2].isalnum() else text


def _is_in_groups(text: str) -> bool:
    """Whether there may be long identifiers in groups in it."""
    return (
        len(text) <= _LONGEST_IN_GROUPS
        and not _BETWEEN_GROUPS.isdisjoint(text)
        and _IDENTIFIERS.search(encoded(text)) is not None
    )


def in_one_group(text: str) -> str:
    """`DE89 3704 0044 0532 0130 00` → DE89370400440532013000: long identifiers (of accounts, cards, phones, UUIDs)
    without what parts their groups, also in a list. Other texts as they are.

    Full stops and slashes part only groups of digits (`0171/234.56.78`), and not those of an address (`10.120.30.140`).
    """
    return _BETWEEN_SEPARATORS.sub(_identifier_in_one_group, text) if _is_in_groups(text) else text


def _identifier_in_one_group(match: re.Match[str]) -> str:
    written = match[0].strip(" ")
    identifier = (written[9:] if written[:9].lower() == "urn:uuid:" else written).translate(_WITHOUT_GROUPS)
    if (number := identifier.translate(_WITHOUT_STOPS)).isdigit() and not _HOST_ADDRESS.fullmatch(written):
        identifier = number
    is_one = identifier.isascii() and identifier.isalnum() and len(identifier) <= _LONGEST_IDENTIFIER
    return identifier if is_one and sum(map(str.isdigit, identifier)) >= _FEWEST_DIGITS else match[0]


_LONGEST_IN_GROUPS = 4_000
"""Characters of a text, perhaps a list of a hundred, in which they are looked for."""
_LONGEST_IDENTIFIER, _FEWEST_DIGITS = 40, 9
"""An IBAN has up to 34 characters, a UUID 32, a number of a phone mostly 9 or more; a date has 8 digits, and stays."""
_BETWEEN_GROUPS = frozenset(" -()+:./")
_WITHOUT_GROUPS, _WITHOUT_STOPS = dict.fromkeys(map(ord, " -()+")), dict.fromkeys(map(ord, "./"))
_HOST_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]+)?")
_BETWEEN_SEPARATORS = re.compile(rf"(?<![^,;|\n])[^,;|\n]{{{_FEWEST_DIGITS + 1},}}")
"""The parts of a list that are long enough."""
_IDENTIFIERS = re2.compile(
    rb"(?:^|[,;|\n])(?:(?i: *urn:uuid:)?[ A-Za-z()+-]*(?:[0-9][ A-Za-z()+-]*)%b|[ ()+./-]*(?:[0-9][ ()+./-]*)%b)"
    rb"(?:[,;|\n]|$)" % ((b"{%d,%d}" % (_FEWEST_DIGITS, _LONGEST_IDENTIFIER),) * 2)
)


def _is_address_written_otherwise(text: str) -> bool:
    return "@" in text and (" " in text or "?" in text or text.endswith(".") or text[:7].lower() == "mailto:")


def _as_address(text: str) -> str:
    """`mailto:a @ b.example.?cc=c` → a@b.example, with a plain full stop for the ideographic one."""
    if "@" not in text:
        return text
    address = "".join(text.split()).replace("\u3002", ".")
    address = address[7:] if address[:7].lower() == "mailto:" else address
    return address.partition("?")[0].rstrip(".")


def _from_root(text: str) -> str:
    """`file:///etc/x` and `../../etc/x` → /etc/x: where a relative path begins is not known."""
    path = text.replace("\\", "/")
    if path[:5].lower() == "file:":
        path = path[5:]
        if path.startswith("//"):
            path = path[2:].partition("/")[2]
    elif ".." not in path:
        return text
    return "/" + re.sub(r"^(?:\.\./)+|^/+", "", posixpath.normpath(path))


# ------------------------------------- character references (`&amp;`, `&#65;`), as browsers read them

_ZEROS = re.compile(r"&#([xX]?)0{9,}")
_TOO_LARGE = re.compile(r"&#(?:[0-9]{18,}|[xX][0-9A-Fa-f]{18,});?")
"""No character has such a number, not even with nine zeros before it."""
_NO_CHARACTER = "\ufffd"


def unescaped(text: str) -> str:
    """A text with the characters that its references name. Raises nothing, and is linear in the length of the text."""
    return html.unescape(with_readable_numbers(text)) if "&" in text else text


def with_readable_numbers(text: str) -> str:
    """A text whose numeric references mean the same and are short: Python reads no number of more than 4,300 digits,
    and its HTML parser raises `ValueError` at one. A number of no character is U+FFFD, as in browsers."""
    return _TOO_LARGE.sub(_NO_CHARACTER, _ZEROS.sub(r"&#\g<1>0", text)) if "&#" in text else text


def _web_address(text: str) -> str:
    """`https:\\\\me@evil。example.:0443?#b` → https://evil.example/: what browsers and their like ask for."""
    found = _WEB_ADDRESS.match(text.translate(_NOT_IN_ADDRESSES))
    if found is None:
        return text
    scheme, host, port, path = found.groups(default="")
    number = port.lstrip("0")
    port = "" if number in ("", _USUAL_PORT[scheme.lower()]) else f":{number}"
    path = path.partition("#")[0].removesuffix("?").replace("\\", "/")
    return f"{scheme}://{_host(host)}{port}{path if path.startswith('/') else f'/{path}'}"


def _host(written: str) -> str:
    """A host in letters, or the four numbers of its address: `xn--bcher-kva.example` → bücher.example, `0x7f000001`
    and `[::ffff:7f00:1]` → 127.0.0.1. Looks nothing up."""
    host = written.rpartition("@")[2].translate(_FULL_STOPS).rstrip(".")
    try:
        if host.startswith("["):
            address = IPv6Address(host.strip("[]"))
            return str(address.ipv4_mapped or f"[{address}]")
        if _NUMERIC.fullmatch(host):
            return inet_ntoa(inet_aton(host))
    except (ValueError, OSError):
        return host
    is_encoded = len(host) <= _LONGEST_HOST and "xn--" in host.lower()
    return ".".join(map(_in_letters, host.split("."))) if is_encoded else host


def _in_letters(label: str) -> str:
    """A label of a host: `xn--bcher-kva` → bücher (RFC 3492)."""
    if label[:4].lower() != "xn--" or len(label) > _LONGEST_LABEL:
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _in_punycode(text: str) -> str:
    """`https://bücher.example/a` → https://xn--bcher-kva.example/a, as a rule may write it."""
    found = None if text.isascii() else _WEB_ADDRESS.match(text)
    if found is None or found[2].isascii() or len(found[2]) > _LONGEST_HOST:
        return text
    try:
        return text[: found.start(2)] + found[2].encode("idna").decode() + text[found.end(2) :]
    except UnicodeError:
        return text


_WEB_ADDRESS = re.compile(r"(https?):[/\\]*([^/\\?#]+?)(?::([0-9]*))?((?:[/\\?#].*)?)\Z", re.IGNORECASE | re.DOTALL)
_USUAL_PORT = {"http": "80", "https": "443"}
_NOT_IN_ADDRESSES = dict.fromkeys(map(ord, "\t\r\n"))
"""Browsers, and Python, leave them out wherever they stand."""
_FULL_STOPS = str.maketrans(dict.fromkeys("。．｡", "."))
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)
_LONGEST_LABEL, _LONGEST_HOST = 63, 253
"""RFC 1035, 2.3.4."""


def _without_last_slash(text: str) -> str:
    """`/srv/data/` → /srv/data: the same folder."""
    return _normal_path(text).rstrip("/") or text


def _normal_path(text: str) -> str:
    """`/tmp/../etc//x` → /etc/x; the scheme of an address stays."""
    if "/" not in text and "\\" not in text:
        return text
    scheme, sign, rest = text.partition("://")
    path = (rest if sign else text).replace("\\", "/")
    normal = posixpath.normpath(re.sub(r"^/+", "/", path)) + "/" * (len(path) > 1 and path.endswith("/"))
    return f"{scheme}://{normal}" if sign else normal


_MAKERS = (
    unquote,
    unescaped,
    composed,
    _visible,
    _spaced,
    unmarked,
    str.casefold,
    _unescaped,
    _unquoted,
    _normal_path,
    _from_root,
    _without_last_slash,
    _web_address,
    _in_punycode,
    _as_address,
    _one_space,
    _unquoted,
    _without_sign,
    with_plain_dashes,
    in_one_group,
)
"""What servers do to a text; what one of them leaves, the next may do more to."""
_DECODERS = (unquote, unescaped, composed, _visible, _normal_path)
"""What servers do without being asked: after these a text may have another meaning than it shows."""


# --------------------------------------------------------------------------------- names of arguments
# Many tools take `Amount` and `AMOUNT` for `amount` (Go's JSON does).


LONGEST_NAME = 200
"""Characters of a name that are compared."""


def other_spellings(name: str, given: Mapping[str, Any], own: Set[str] = frozenset()) -> bool:
    """Whether a mapping holds the name written otherwise: in other case, with other signs between its words. `own` are
    names that the tool has itself."""
    wanted = folded_name(name)
    return any(other != name and other not in own and folded_name(other) == wanted for other in given)


def folded_name(name: str) -> str:
    """A name in lower case without signs between its words: the same for `calendar_id`, `calendarId`, `Calendar-ID`,
    and for `calendar_id[]`, which many servers take for a list of that name."""
    return unmarked(name[:LONGEST_NAME]).casefold().translate(_BETWEEN)


_BETWEEN = dict.fromkeys(map(ord, "_-. \t\r\n\0[]\u200b\u200c\u200d\u2060\ufeff\xad"))
