"""Makes text from tool servers safe to pass on: without control characters, terminal codes and secrets, and bounded.

Bidirectional and invisible characters stay: the renderers make them visible, and a model may need to see them.

Three kinds of secrets are masked. Those that we ourselves handed to the server are known exactly, and masked
everywhere. What `policies.masking` finds (`MaskText`) is masked everywhere too: in results before the model reads them,
in errors, in log lines. What `without_guessed` finds besides is masked in errors and log lines only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from bot.certificates import untrusted_certificate
from policies.secret_shapes import IN_ERRORS, USER_AND_PASSWORD, without_guessed

_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")
_LINK = re.compile(r"[a-z][a-z0-9+.-]{0,40}://[^\s<>\"'`\\|{}^]+", re.IGNORECASE)
"""The length of a scheme is bounded (the longest that is registered has 30 characters), so that looking is linear."""


def clean(text: str) -> str:
    """The text without terminal codes and control characters; line feeds and tabs stay, and it always encodes."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    bare = _CONTROLS.sub("", _TERMINAL_CODES.sub("", unified))
    return _LONE_SURROGATES.sub("\ufffd", bare)


def without_links(text: str) -> str:
    """The text without any link: for what everybody sees, where a link may be for one person."""
    return _LINK.sub("(link)", text)


UNTRUSTED = "has a certificate that is not trusted here"
"""How `why_unreachable` begins where that is the cause."""


def why_unreachable(error: BaseException) -> str:
    """Why no connection to a server could be made, as the end of a sentence that begins with its name."""
    why = untrusted_certificate(error)
    return one_line(f"{UNTRUSTED}: {why}", 200) if why else "cannot be reached"


def one_line(text: str, limit: int) -> str:
    """The text cleaned and on one line, at most `limit` characters; an ellipsis ends what was cut."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def shorten(text: str, limit: int) -> str:
    """The text cleaned, its lines kept, at most `limit` characters; an ellipsis ends what was cut."""
    whole = clean(text).strip()
    return whole if len(whole) <= limit else whole[: max(limit - 1, 0)].rstrip() + "…"


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest beginning of `text` that is at most `limit` bytes of UTF-8; cuts between characters."""
    return text.encode("utf-8", "replace")[: max(limit, 0)].decode("utf-8", "ignore")


MaskText = Callable[[str], str]
"""Masks in one text what `policies.masking.Masker.mask` finds: known tokens, fields named like secrets, REDACT_*."""
SHORTEST_SECRET = 8
"""Characters. Shorter values would turn up in ordinary words, and taking those out would break results."""
_SECRET_NAMES = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|cookie|signature|(?:^|[_-])pat(?:$|[_-])", re.IGNORECASE
)


def unchanged(text: str) -> str:
    """The `MaskText` that masks nothing."""
    return text


def names_a_secret(name: str) -> bool:
    """Whether the name of a header or variable suggests that its value is a credential."""
    return _SECRET_NAMES.search(name) is not None


def secret_parts(name: str, value: str) -> frozenset[str]:
    """What of a named value must never be shown: all of it when the name says so, or the user part of a URL in it."""
    parts = {match.group() for match in USER_AND_PASSWORD.finditer(value)}
    parts |= {userinfo.partition(":")[2] for userinfo in parts}
    if names_a_secret(name):
        # "Bearer abc": the scheme is no secret, and the token alone must be found as well
        parts |= {value.strip(), value.strip().rpartition(" ")[2]}
    return frozenset(part for part in parts if len(part) >= SHORTEST_SECRET)


def without_known(text: str, secrets: Iterable[str]) -> str:
    """The text with every one of `secrets` replaced; the longest first, so that no rest of one stays."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, IN_ERRORS)
    return text


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with the known secrets and whatever looks like a credential replaced."""
    return without_guessed(without_known(text, secrets), IN_ERRORS)


LONGEST_SPLIT = 512
"""Characters on either side of the border between two content blocks in which a secret is looked for that was cut in
two there."""


def joined_by_secrets(parts: Sequence[str], mask: MaskText) -> list[bool]:
    """Of each part whether it holds a secret together with those before: that has to be whole to be recognised."""
    joined: list[bool] = []
    before = ""
    for at, part in enumerate(parts):
        after = _beginning(parts, at)
        joined.append(at > 0 and mask(before + after) != mask(before) + mask(after))
        before = (before + (part if joined[-1] or not at else f"\n{part}"))[-LONGEST_SPLIT:]
    return joined


def _beginning(parts: Sequence[str], at: int) -> str:
    text = ""
    for index in range(at, len(parts)):
        text += parts[index][:LONGEST_SPLIT]
        if len(text) >= LONGEST_SPLIT:
            break
    return text[:LONGEST_SPLIT]
