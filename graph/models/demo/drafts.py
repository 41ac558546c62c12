"""An event in the making: what is known of it, what is missing, and what an answer adds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any

from graph.models.demo.times import When, end_of, first_day_for, moment, read_when, stamp

_QUOTED = re.compile(r"[\"“”«‘]([^\"“”»’]{1,150})[\"“”»’]")
_CALLED = re.compile(
    r"\b(?:called|named|titled|entitled|with the title|call it|name it)\s+(?P<title>.+)$", re.IGNORECASE
)
_OPENING = re.compile(
    r"^(?:(?:please|ok|okay|yes|hi|hello|hey|and|then|also|just|now|it is|it['’]s|let['’]s (?:do|say)|let us|"
    r"can you|could you|would you|i(?: want| need| would like|['’]d like)(?: you)?(?: to)?|"
    r"schedule|create|add|set up|book|plan|make|organi[sz]e|arrange|put|enter|new)\b[\s,:]*)*",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"^(?:(?:me|us)\s+)?(?:(?:an?|the|another|one|some|my|new|second)\s+)*"
    r"(?:calendar\s+)?(?:event|appointment|entry|something|anything)s?\b"
    r"(?:\s+(?:for me|for us|in|on|to) (?:my |the )?calendar)?[\s:]*",
    re.IGNORECASE,
)
_BARE_NOUN = re.compile(r"^(?:(?:an?|the|another|my|new)\s+)*(?:meeting|call|slot|time)s?$", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:(?:an?|the|another)\s+)", re.IGNORECASE)
_DANGLING = re.compile(
    r"^[\s,.;:!?–-]+|^(?:at|on|for|from|and|by)(?=$|[,.;])|[\s,;:!?–-]+$|(?<!\.)\.$"
    r"|\b(?:at|on|for|from|and|by|please|thanks|thank you|instead|for me|for us|(?:in|on|to) (?:my|the) calendar)$",
    re.IGNORECASE,
)
"""What remains at the ends when a time is cut out of a sentence, and what politeness adds."""

LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of an event that is to be created."""

    title: str = ""
    when: When = field(default_factory=When)

    def missing(self, asked: frozenset[str]) -> tuple[str, ...]:
        """What has to be asked. A day goes without saying beside a time, unless it was asked for already."""
        day_needed = self.when.day is None and (self.when.at is None or "date" in asked)
        lacks = {"title": not self.title, "date": day_needed, "time": self.when.at is None}
        return tuple(name for name, missing in lacks.items() if missing)

    def with_answer(self, text: str, values: dict[str, Any], now: datetime) -> Draft:
        """This, with what an answer adds or changes."""
        if values:
            said = When(_day(values.get("date"), now), _time(values.get("time"), now))
            return Draft(_title_value(values.get("title")) or self.title, said.filled_from(self.when))
        answer = read_draft(text, now)
        return Draft(self.title or answer.title, answer.when.filled_from(self.when))

    def arguments(self, now: datetime) -> dict[str, Any]:
        """Arguments for `calendar__create_event`; needs a draft in which nothing is missing."""
        at = self.when.at or time(0)
        start = moment(self.when.day or first_day_for([at], now), at, now)
        return {
            "title": self.title,
            "start": stamp(start),
            "end": stamp(end_of(start, self.when, now)),
            "calendar_id": "primary",
        }


def read_draft(text: str, now: datetime) -> Draft:
    """The event that a text describes, such as `Lunch with Bob tomorrow at noon`."""
    quoted = _QUOTED.search(text)
    around = f"{text[: quoted.start()]} {text[quoted.end() :]}" if quoted else text
    when, rest = read_when(around, now)
    return Draft(clean(quoted[1]) if quoted else title_of(rest), when)


def title_of(text: str) -> str:
    """The title in a text from which the times have been taken; empty when there is none."""
    if called := _CALLED.search(text):
        return _trimmed(called["title"])
    text = _trimmed(_OPENING.sub("", _trimmed(text), count=1))
    text = _trimmed(_NOUN.sub("", text, count=1))
    if _BARE_NOUN.match(text):
        return ""
    return _capital(_ARTICLE.sub("", text, count=1))


def clean(text: str) -> str:
    """One line without superfluous spaces, of bounded length."""
    return " ".join(text.split())[:LONGEST_TITLE].strip()


def _trimmed(text: str) -> str:
    text = clean(text)
    while (shorter := _DANGLING.sub("", text)) != text:
        text = shorter
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _title_value(value: Any) -> str:
    return clean(value) if isinstance(value, str) else ""


def _day(value: Any, now: datetime) -> date | None:
    return read_when(value, now)[0].day if isinstance(value, str) else None


def _time(value: Any, now: datetime) -> time | None:
    return read_when(f"at {value}", now)[0].at if isinstance(value, str) else None
