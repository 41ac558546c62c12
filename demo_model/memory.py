"""What the demo model remembers: what people ask it to, and how they like to be called and answered."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from graph.memory import MEMORY_REQUEST

_SENTENCE = re.compile(r"[^.!?\n]+")
_POLITE = r"(?:(?:please|and|also|hi|hello|hey|ok|okay)\b[\s,]*)*"
_REMEMBER = re.compile(
    rf"{_POLITE}(?:(?:remember|note|keep in mind)(?: that|:|,)?\s+(?P<asked>.+)"
    r"|(?P<said>(?:call me|i prefer|i always want|my name is|i work (?:on|with|in|for|from)|i am called)\b.+))",
    re.IGNORECASE,
)
_FORGET = re.compile(rf"{_POLITE}forget\b(?: (?:about|that))?\s*(?P<what>.*)", re.IGNORECASE)
_EVERYTHING = re.compile(r"(?:everything|it all|all of (?:it|that))\b", re.IGNORECASE)
_NEWEST = re.compile(r"(?:that|it|this)?(?: again)?", re.IGNORECASE)
_OF_A_CHANNEL = re.compile(r"\b(?:this channel|(?:our|the) team|we)\b", re.IGNORECASE)
_WHAT_IS_KNOWN = re.compile(r"what do you (?:know|remember) (?:about|of) (?:me|this channel)\b", re.IGNORECASE)
_RECALLED = re.compile(r"^\[What (?!people of)|^\[What people of this channel", re.MULTILINE)


def is_memory_request(first_line: str) -> bool:
    """Whether a prompt that begins so asks what is worth remembering."""
    return first_line.startswith(MEMORY_REQUEST)


def memory_answer(messages: Sequence[BaseMessage]) -> str:
    """What is worth remembering, as the prompt wants it."""
    try:
        asked = json.loads(messages[-1].text)
        words, known = "\n".join(map(str, asked["words"])), list(asked["remembered"])
    except (ValueError, KeyError, TypeError, IndexError):
        return json.dumps({"remember": [], "forget": []})
    remember: list[dict[str, str]] = []
    forget: list[dict[str, str]] = []
    for sentence in _SENTENCE.findall(words):
        said = sentence.strip()
        if found := _FORGET.fullmatch(said):
            forget += [{"id": str(each["id"]), "quote": said} for each in _meant(found["what"], known)]
        elif found := _REMEMBER.fullmatch(said):
            quote = (found["asked"] or found["said"]).strip()
            about = "channel" if _OF_A_CHANNEL.search(quote) else "person"
            remember.append({"about": about, "quote": quote})
    return json.dumps({"remember": remember, "forget": forget}, ensure_ascii=False)


def _meant(what: str, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if _EVERYTHING.match(what):
        return known
    if _NEWEST.fullmatch(what.strip()):
        return known[:1]
    wanted = what.strip().casefold()
    return [each for each in known if str(each["text"]).casefold() in wanted or wanted in str(each["text"]).casefold()]


def small_talk(request: str, messages: Sequence[BaseMessage]) -> str:
    """The answer to a message that only wants something remembered or forgotten, or asks what is; empty: it is another.

    Args:
        request: without its author's name before it.
    """
    said = request.strip().rstrip(".!?")
    if _WHAT_IS_KNOWN.fullmatch(said):
        return _what_is_known(messages)
    sentences = [each.strip() for each in _SENTENCE.findall(request) if each.strip()]
    is_only_that = sentences and all(_REMEMBER.fullmatch(each) or _FORGET.fullmatch(each) for each in sentences)
    return "All right." if is_only_that else ""


def _what_is_known(messages: Sequence[BaseMessage]) -> str:
    told = [m.text for m in messages if isinstance(m, HumanMessage) and _RECALLED.match(m.text)]
    lines = [line for text in told for line in text.splitlines() if line.startswith("- ")]
    if not lines:
        return "Nothing from earlier conversations."
    return "\n".join(["You told me in earlier conversations:", *lines])
