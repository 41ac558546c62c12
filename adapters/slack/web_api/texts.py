"""What people write in Slack, as plain words: Slack's mrkdwn to text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from adapters.shared.messages import apart, attachment_notes, file_name
from adapters.shared.untrusted_json import parts, words
from adapters.slack.ids import slack_id
from bot.safe_text import shorten

_WRITTEN_BY_PEOPLE = frozenset({"", "file_share", "me_message", "thread_broadcast"})
"""Subtypes of a message that a person wrote; all others are the system's. A reply that was sent to the channel too
(`thread_broadcast`) comes as one event or as two: with the same ts, hence as one message."""
_LONGEST = 40_000
"""Characters of a message, Slack's escapes and all: its own are no longer."""
_TOKEN = re.compile(r"<([^<>]+)>")
_ID_TOKEN = re.compile(r"<([@#])([A-Z0-9]{1,30})>")
_ADDRESS = re.compile(r"[ \t]*[,:]?[ \t]*")
"""What follows a name at the beginning of a sentence that speaks to it."""
_MAIL_OR_PHONE = re.compile(r"mailto:([^\s@]+@[^\s@]+)|tel:([+0-9 ().-]+)")
_EVERYBODY = {"!here": "@here", "!channel": "@channel", "!everyone": "@everyone"}


def text_of(message: Mapping[str, Any], bot_user: str) -> str:
    """What a message says in plain words, its files noted by name and size."""
    said = plain_text(words(message, "text"), bot_user)
    notes = attachment_notes(list(parts(message, "files")), _file)
    return "\n".join(line for line in (said, *notes) if line)


def _file(file: Mapping[str, Any]) -> tuple[str, object]:
    return file_name(words(file, "name") or words(file, "title"), "a file"), file.get("size")


def is_from_a_person(message: Mapping[str, Any], bot_user: str) -> bool:
    """Not our own, no other bot's, not the system's."""
    user = slack_id(message, "user")
    return (
        user not in ("", "USLACKBOT", bot_user)
        and not message.get("bot_id")
        and not message.get("bot_profile")
        and words(message, "subtype") in _WRITTEN_BY_PEOPLE
    )


def mentions(message: Mapping[str, Any], bot_user: str) -> bool:
    """Whether a message names us, with or without a label."""
    text = words(message, "text")
    return f"<@{bot_user}>" in text or f"<@{bot_user}|" in text


def plain_text(text: str, bot_user: str) -> str:
    """The words of a message without the mention of ourselves; code and line breaks stay as they are. Of a longer one
    than Slack's are the beginning, with a count.

    Mentions of others (`<@U123>`) and of channels that Slack does not name (`<#C123>`) stay in place, for `with_names`.
    """
    text = shorten(text, _LONGEST)
    pieces: list[str] = []
    end, at_beginning, last = 0, True, ""
    for token in _TOKEN.finditer(text):
        before = text[end : token.start()]
        end = token.end()
        at_beginning = at_beginning and not before.strip()
        pieces.append(_unescaped(before))
        last = pieces[-1][-1:] or last
        if _is_mention_of(token.group(1), bot_user):
            end += _hole(text, end, at_beginning=at_beginning, after_space=before[-1:].isspace())
        else:
            pieces.append(apart(last, _in_words(token.group(1))))
            last = pieces[-1][-1:] or last
    pieces.append(_unescaped(text[end:]))
    return "".join(pieces).strip()


def mentioned(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The users and the channels whose tokens `plain_text` has left in place."""
    found = _ID_TOKEN.findall(text)
    return frozenset(i for sign, i in found if sign == "@"), frozenset(i for sign, i in found if sign == "#")


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The text with `@name` or `#name` for each id; one without a name stays as `@U123`. A space goes before a
    name that follows a letter: otherwise both together look like an e-mail address."""

    def named(token: re.Match[str]) -> str:
        return apart(
            text[max(token.start() - 1, 0) : token.start()], token.group(1) + names.get(token.group(2), token.group(2))
        )

    return _ID_TOKEN.sub(named, text)


def _is_mention_of(token: str, user: str) -> bool:
    return token == f"@{user}" or token.startswith(f"@{user}|")


def _hole(text: str, end: int, *, at_beginning: bool, after_space: bool) -> int:
    """How many characters after a mention of ourselves go with it."""
    if at_beginning:
        address = _ADDRESS.match(text, end)
        return len(address.group()) if address else 0
    return 1 if after_space and text.startswith(" ", end) else 0


def _in_words(token: str) -> str:
    target, _, label = token.partition("|")
    label = " ".join(_unescaped(label).split())  # in one line with what it is the label of: others may have written it
    match target[:1]:
        case "@":
            return f"<{target}>" if _ID_TOKEN.fullmatch(f"<{target}>") else f"@{label or target[1:]}"
        case "#":
            return f"#{label}" if label else f"<{target}>"
        case "!":
            return _special(target, label)
        case _:
            return _link(_unescaped(target), label)


def _special(target: str, label: str) -> str:
    if target in _EVERYBODY:
        return _EVERYBODY[target]
    kind, *rest = target.split("^")
    if kind == "!subteam" and rest:
        return f"@{label.removeprefix('@') or rest[0]}"
    if kind == "!date" and rest:
        return _date(rest[0])  # as people see it; its label may say anything
    return f"“{label}”" if label else ""


def _date(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def _link(url: str, label: str) -> str:
    if (found := _MAIL_OR_PHONE.fullmatch(url)) and label in ("", found[1] or found[2]):
        return found[1] or found[2]
    shown = url.partition("://")[2]
    return url if label.rstrip("/") in ("", url.rstrip("/"), shown.rstrip("/")) else f"{label} ({url})"


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
