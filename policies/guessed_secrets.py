"""What merely looks like a credential, out of texts that nobody needs word for word: lines of logs, and errors.

More is taken out than `policies.redaction` masks, and less care is taken of what is around it: a tool's result belongs
to the person who asked for it, and what people decide on is shown; neither is guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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
