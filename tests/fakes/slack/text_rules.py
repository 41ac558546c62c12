"""What Slack, and our product, allow in text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Mistakes = Iterator[str]

ALLOWED_TOKENS = re.compile(
    r"<(?:@(?P<user>[UW][A-Z0-9]*)|#C[A-Z0-9]*|!subteam\^S[A-Z0-9]*|!date\^\d+\^[^<>|]*\|[^<>|]*"
    r"|(?:https?://|mailto:)[^<>|]*(?:\|[^<>|]*)?)>"
)
"""What may stand behind a `<`: mentions built from ids, dates, links. Nothing that pings a channel."""


@dataclass(frozen=True)
class Scope:
    """Where blocks are checked."""

    surface: str = "message"
    """`message`, `modal` or `home`."""
    users: Collection[str] | None = None
    """Ids that may be mentioned; `None`: any."""


def text_mistakes(text: str, *, users: Collection[str] | None = None) -> list[str]:
    """What is wrong with text that Slack reads as mrkdwn or Markdown: a `<` that is not a token of ours."""
    wrong = []
    position = text.find("<")
    while position >= 0:
        token = ALLOWED_TOKENS.match(text, position)
        user = token and token["user"]
        if token is None:
            wrong.append(f"unescaped {text[position : position + 20]!r}")
        elif user and users is not None and user not in users:
            wrong.append(f"mentions nobody we know: {user}")
        position = text.find("<", token.end() if token else position + 1)
    return wrong


def string(value: Any, where: str, longest: int, shortest: int = 1) -> Mistakes:
    """A string of so many characters."""
    if not isinstance(value, str):
        yield f"{where}: not a string"
    elif not shortest <= len(value) <= longest:
        yield f"{where}: {len(value):,} characters, allowed are {shortest} to {longest:,}"
    elif any("\ud800" <= character <= "\udfff" for character in value):
        yield f"{where}: half a surrogate pair, which is no text"


def text_object(
    value: Any, where: str, scope: Scope, longest: int, kinds: Collection[str] = ("plain_text", "mrkdwn")
) -> Mistakes:
    """A text object of Block Kit. plain_text is literal, so that anything may stand in it."""
    if kind_of(value) not in kinds:
        yield f"{where}: not a text object of {' or '.join(kinds)}"
        return
    yield from keys(value, where, {"type", "text"}, {"emoji" if value["type"] == "plain_text" else "verbatim"})
    yield from flags(value, where, "emoji", "verbatim")
    yield from string(value.get("text"), f"{where}/text", longest)
    if value["type"] == "mrkdwn" and isinstance(value.get("text"), str):
        yield from (f"{where}/text: {mistake}" for mistake in text_mistakes(value["text"], users=scope.users))


def plain(value: Any, where: str, scope: Scope, longest: int) -> Mistakes:
    """A plain_text object."""
    yield from text_object(value, where, scope, longest, ("plain_text",))


def kind_of(value: Any) -> str:
    """The `type` of an object of Block Kit, whatever was sent instead of one."""
    return str(value.get("type")) if isinstance(value, dict) else ""


def keys(value: Mapping[str, Any], where: str, required: Collection[str], optional: Collection[str] = ()) -> Mistakes:
    """Slack refuses what it does not know."""
    yield from (f"{where}: {name} is missing" for name in sorted(set(required) - set(value)))
    yield from (f"{where}: invalid additional property {name}" for name in sorted(set(value) - {*required, *optional}))


def flags(value: Mapping[str, Any], where: str, *names: str) -> Mistakes:
    """Booleans, if they are there."""
    yield from (f"{where}/{name}: not a boolean" for name in names if not isinstance(value.get(name, True), bool))


def listed(value: Any, where: str, most: int, least: int = 1) -> Mistakes:
    """A list of so many."""
    if not isinstance(value, list):
        yield f"{where}: not a list"
    elif not least <= len(value) <= most:
        yield f"{where}: {len(value)} items, allowed are {least} to {most}"


def url(value: Any, where: str, schemes: Collection[str] = ("http", "https", "mailto")) -> Mistakes:
    """An address (Slack: 3,000 characters). Our product links to nothing but the web and mail."""
    yield from string(value, where, 3000)
    if isinstance(value, str) and value.partition(":")[0].lower() not in schemes:
        yield f"{where}: scheme is not one of {', '.join(schemes)}"
