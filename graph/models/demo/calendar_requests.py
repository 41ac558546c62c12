"""What a sentence asks of the calendar."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from graph.models.demo.drafts import clean, read_draft
from graph.models.demo.jobs import CreateEvent, DeleteEvent, Job, ListCalendars, ListEvents, MoveEvent, Target
from graph.models.demo.phrases import day_in_words
from graph.models.demo.times import read_when, start_of_day

_NOUN = r"(?:event|meeting|appointment|call|slot|entry)"
_CALENDARS = re.compile(r"^(?:list|show|what|which)\b.*\bcalendars\b", re.IGNORECASE)
_LIST = re.compile(
    r"^(?:(?:what|which|show|list|tell|give|see|check|view|open|look|when|any|anything|do i|am i|is there|are there|my|"
    r"the)\b"
    rf".*\b(?:calendar|schedule|agenda|diary|{_NOUN}s?|planned|free|busy|(?:i|we) have|going on)\b"
    r"|what(?:['’]s| is) (?:on|up)(?: for)? (?:today|tomorrow|this|next|on)\b"
    r"|(?:calendar|agenda|schedule|events|meetings)$)",
    re.IGNORECASE,
)
_MOVE = re.compile(r"^(?:move|reschedule|shift|push|postpone|bring|change)\s+(?P<rest>.+)$", re.IGNORECASE)
_TO = re.compile(r"\s+(?:forward |back )?to\s+", re.IGNORECASE)
_DELETE = re.compile(r"^(?:delete|remove|cancel|drop)\s+(?P<what>.+)$", re.IGNORECASE)
_SURELY_CREATE = re.compile(r"^(?:schedule|book|arrange|set up)\b", re.IGNORECASE)
_MAYBE_CREATE = re.compile(
    rf"^(?:create|add|plan|make|organi[sz]e|put|enter|new|i (?:need|want)|(?:an?|another) (?:new )?{_NOUN})\b",
    re.IGNORECASE,
)
_EVENT_WORDS = re.compile(rf"\b(?:{_NOUN}s?|calendar|called|named)\b", re.IGNORECASE)
_POINTING = re.compile(
    rf"^(?:(?:the|my|our|an?|this|that)\s+)*(?:(?:calendar )?{_NOUN}\b\s*)?(?:called|named|titled)?\s*", re.IGNORECASE
)
_NOUN_AT_END = re.compile(rf"\s+{_NOUN}$", re.IGNORECASE)
_FROM_CALENDAR = re.compile(r"\s+(?:from|on|in) (?:my|the) calendar\b", re.IGNORECASE)

USUAL_DAYS = 7
"""Days that are shown when no time is named. Our own choice."""
MOST_TRIED = 5
"""Places at which "move … to …" may be cut in two. Our own choice."""


def read_calendar_request(said: str, now: datetime) -> Job | None:
    """The job that one sentence asks for; `None` when it is not about the calendar."""
    if _CALENDARS.match(said):
        return ListCalendars()
    if match := _MOVE.match(said):
        return _move(match["rest"], now)
    if match := _DELETE.match(said):
        target = read_target(match["what"], now)
        return DeleteEvent(target) if target != Target() else None
    if _LIST.match(said):
        return _list(said, now)
    draft = read_draft(said, now)
    if _SURELY_CREATE.match(said) or (
        _MAYBE_CREATE.match(said) and (_EVENT_WORDS.search(said) or (draft.when.at and draft.title))
    ):
        return CreateEvent(draft)
    return None


def read_target(text: str, now: datetime) -> Target:
    """The event that words point to, such as `the Standup meeting tomorrow`; equal to `Target()` when to none."""
    when, rest = read_when(_FROM_CALENDAR.sub("", text), now)
    title = _POINTING.sub("", clean(rest), count=1).strip("\"'“”«»‘’ .,:?!")
    title = re.sub(r"^(?:from|at|on)$|\s+(?:from|at|on)$", "", title, flags=re.IGNORECASE)
    return Target(_NOUN_AT_END.sub("", title), when)


def _move(rest: str, now: datetime) -> Job | None:
    for place in reversed(list(_TO.finditer(rest))[-MOST_TRIED:]):
        to, left = read_when(f"at {rest[place.end() :]}", now)
        if (to.day or to.at) and len(clean(left)) <= len("at on"):
            target = read_target(rest[: place.start()], now)
            return MoveEvent(target, to) if target != Target() else None
    return None


def _list(said: str, now: datetime) -> ListEvents:
    today, words = now.date(), said.lower()
    monday = today - timedelta(days=today.weekday())
    if "next week" in words:
        return _span(monday + timedelta(days=7), 7, "next week", now)
    if "this week" in words:
        return _span(monday, 7, "this week", now)
    if day := read_when(said, now)[0].day:
        return _span(day, 1, day_in_words(day, today), now)
    return _span(today, USUAL_DAYS, f"the next {USUAL_DAYS} days", now)


def _span(first: date, days: int, words: str, now: datetime) -> ListEvents:
    return ListEvents(start_of_day(first, now), start_of_day(first + timedelta(days=days), now), words)
