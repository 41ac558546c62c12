"""What a message says in plain words: mentions by name, ours taken out where it stands, quotes apart. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.shared.untrusted_json import part, parts, words
from adapters.teams.ids import token
from adapters.teams.inbound.files import file_notes
from adapters.teams.inbound.html import MOST_QUOTES, MOST_TEXT, OURSELVES, Quoted, Written, moment, quoted, read_html
from bot.safe_text import shorten, visible_line
from policies.spellings import unescaped

Activity = Mapping[str, Any]

WORDLESS = "[mentioned you without a word]"
"""What a bare mention says, in the middle of a thread for instance: models take no empty messages."""

_MOST_MENTIONS = 100
_AT = re.compile(r"<at(?:\s[^<>]*)?>([^<]*)</at>")
"""Names have no tags in them (Teams writes `&lt;`), so that a text full of openings is read in one go."""
_QUOTED = re.compile(r'<quoted messageId="[^"<>]*"\s*/>')
"""Stands in the text where a message is quoted; what it says is in an entity."""
_ADDRESS = re.compile(r"[ \t]*[,:]?[ \t]*")
"""What follows a name at the beginning of a sentence that speaks to it."""
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Mention:
    """Somebody who is mentioned in a message, in the order of Teams' entities."""

    words: str
    """How the message writes it."""
    is_us: bool


def mentions_us(activity: Activity) -> bool:
    """Whether the message speaks to the bot."""
    return any(mention.is_us for mention in mentions_in(activity))


def mentions_in(activity: Activity) -> tuple[Mention, ...]:
    """Who is mentioned."""
    us = token(activity, "recipient", "id")
    entities = [entity for entity in parts(activity, "entities") if words(entity, "type").lower() == "mention"]
    return tuple(_mention(entity, us) for entity in entities[:_MOST_MENTIONS])


def _mention(entity: Activity, us: str) -> Mention:
    written = _TAG.sub("", words(entity, "text")) or words(entity, "mentioned", "name")
    return Mention(" ".join(unescaped(written).split()), us != "" and token(entity, "mentioned", "id") == us)


def written_in(activity: Activity) -> Written:
    """The words of a message without the mention of ourselves, its files noted by name and size, and what it quotes.

    A message without words but with a mention or a file says so; the text of one without anything is empty.
    """
    mentions = mentions_in(activity)
    rich = _rich(activity, mentions)
    written = rich or Written(_plain(activity, mentions))
    notes = file_notes(activity, pictures=rich is None)
    text = "\n".join(line for line in (_without_us(written.text), *notes) if line)
    if not text and any(mention.is_us for mention in mentions):
        text = WORDLESS
    return Written(text, (*written.quotes, *_quotes_beside(activity))[:MOST_QUOTES])


def _rich(activity: Activity, mentions: Sequence[Mention]) -> Written | None:
    for attached in parts(activity, "attachments"):
        html = words(attached, "content")
        if words(attached, "contentType") == "text/html" and html.strip():
            return read_html(html, lambda number, text: _in_words(number, text, mentions))
    return None


def _plain(activity: Activity, mentions: Sequence[Mention]) -> str:
    """The plain text, in which mentions are tags. What somebody typed that looks like one is in no entity."""
    text = _QUOTED.sub("", words(activity, "text").replace(OURSELVES, "")).replace("\u00a0", " ")
    count, known = 0, {mention.words for mention in mentions}

    def replaced(tag: re.Match[str]) -> str:
        nonlocal count
        said = " ".join(unescaped(tag.group(1)).split())
        if said not in known:
            return tag.group()
        count += 1
        return _in_words(str(count - 1), said, mentions)

    return shorten(_AT.sub(replaced, text), MOST_TEXT)


def _in_words(number: str, text: str, mentions: Sequence[Mention]) -> str:
    """A mention by its number where its words agree, else by its words: two may bear the same name."""
    index = int(number) if number.isascii() and number.isdigit() and len(number) <= 3 else len(mentions)
    if index < len(mentions) and mentions[index].words == text:
        is_us = mentions[index].is_us
    else:
        alike = [mention.is_us for mention in mentions if mention.words == text]
        is_us = bool(alike) and all(alike)
    return OURSELVES if is_us else f"@{visible_line(text.removeprefix('@'), 80)}"


def _without_us(text: str) -> str:
    said: list[str] = []
    end, opening = 0, True
    for found in re.finditer(OURSELVES, text):
        before = text[end : found.start()]
        end = found.end()
        opening = opening and not before.strip()
        said.append(before)
        end += _hole(text, end, opening=opening, after_space=before[-1:].isspace())
    said.append(text[end:])
    return "".join(said).strip()


def _hole(text: str, end: int, *, opening: bool, after_space: bool) -> int:
    """How many characters after a mention of ourselves go with it."""
    if opening:
        address = _ADDRESS.match(text, end)
        return len(address.group()) if address else 0
    return 1 if after_space and text.startswith(" ", end) else 0


def _quotes_beside(activity: Activity) -> list[Quoted]:
    """Quotes that Teams' newer clients send as entities."""
    found = (part(e, "quotedReply") for e in parts(activity, "entities") if words(e, "type") == "quotedReply")
    quotes = (quoted(words(q, "senderName"), words(q, "preview"), moment(words(q, "time"))) for q in found)
    return [quote for quote in quotes if quote.text]
