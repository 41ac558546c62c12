"""How the demo model says things. Whatever comes from tools or people is put on one line and quoted as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from graph.models.demo.days import MONTHS, WEEKDAYS
from graph.models.demo.outcomes import Confirmed, Outcome, Rejected, Trouble, Unreadable

NO_MODEL = "No language model is connected: I am the built-in demo model and follow simple rules."
_CALENDAR_ABILITIES = (
    "“what is on my calendar this week”",
    "“schedule something”, or “create a meeting called Standup tomorrow at 9am”",
    "“create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm”",
    "“move the meeting at 3pm to 4pm”, “delete the event Standup”",
)
_TASK_ABILITIES = (
    "“list my tasks”, “add a task to buy milk”",
    "“complete the task buy milk”, “delete the task buy milk”",
)


def abilities(tools: Iterable[str]) -> str:
    """What can be asked for with these tools, as a Markdown list after a sentence."""
    servers = {tool.partition("__")[0] for tool in tools}
    lines = (_CALENDAR_ABILITIES if "calendar" in servers else ()) + (_TASK_ABILITIES if "tasks" in servers else ())
    if not lines:
        return "Neither the calendar nor the tasks are connected at the moment, so there is nothing I can do for you."
    return "You can ask me, for example:\n\n" + "\n".join(f"- {line}" for line in lines)


def one_line(value: Any) -> str:
    """Text of others on one line, of bounded length."""
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def bold(value: Any) -> str:
    """A name, made to stand out."""
    return f"**{one_line(value).replace('*', '∗')}**"


def day_in_words(day: date, today: date) -> str:
    """`today`, `tomorrow`, or `Fri 27 Nov`."""
    near = {today: "today", today + timedelta(days=1): "tomorrow", today - timedelta(days=1): "yesterday"}
    return near.get(day) or short_day(day)


def short_day(day: date) -> str:
    """`Fri 27 Nov`, in English whatever the locale of the process."""
    return f"{WEEKDAYS[day.weekday()][:3].capitalize()} {day.day} {MONTHS[day.month - 1][:3].capitalize()}"


def clock_time(at: datetime) -> str:
    """`09:00`."""
    return f"{at:%H:%M}"


def local(stamp: Any, now: datetime) -> datetime | None:
    """An ISO 8601 date-time where the present is; without an offset it counts as local. `None`: it is none."""
    try:
        at = datetime.fromisoformat(stamp)
        zone = now.tzinfo or UTC
        return at.astimezone(zone) if at.tzinfo else at.replace(tzinfo=zone)
    except (TypeError, ValueError, OverflowError):
        return None


def span_in_words(event: Mapping[str, Any], now: datetime) -> str:
    """`Sun 22 Nov, 09:00–10:00`; empty when the event has no readable start."""
    start, end = local(event.get("start"), now), local(event.get("end"), now)
    if start is None:
        return ""
    until = ""
    if end is not None:
        until = (
            f"–{clock_time(end)}" if end.date() == start.date() else f" to {short_day(end.date())}, {clock_time(end)}"
        )
    return f"{short_day(start.date())}, {clock_time(start)}{until}"


def event_line(event: Mapping[str, Any], now: datetime) -> str:
    """One event in one line."""
    attendees = event.get("attendees")
    names = ", ".join(one_line(name) for name in attendees) if isinstance(attendees, list) else ""
    extras = [part for part in (one_line(event.get("location") or ""), f"with {names}" if names else "") if part]
    aside = f" ({'; '.join(extras)})" if extras else ""
    span = span_in_words(event, now)
    return f"{bold(event.get('title', 'Untitled'))}{f', {span}' if span else ''}{aside}"


def not_done(subject: str, verb: str, outcome: Outcome) -> str:
    """The truth about a call that did not plainly succeed: `subject` was not `verb`, or nobody knows."""
    match outcome:
        case Rejected(by=by, reason=""):
            return f"{subject} was not {verb}: {one_line(by)} rejected it and gave no reason."
        case Rejected(by=by, reason=reason):
            return f"{subject} was not {verb}: {one_line(by)} rejected it (“{one_line(reason)}”)."
        case Trouble(text=text) if text.startswith(("Outcome unknown", "Skipped by", "No result")):
            return f"It is not known whether {subject} was {verb}. {one_line(text)}"
        case Trouble(text=text):
            return f"{subject} was not {verb}. {one_line(text)}"
        case Confirmed(text=text):
            return f"{subject}: {one_line(text)}"
        case Unreadable(text=text):
            return f"{subject}: the tool answered “{one_line(text)}”, and I cannot read more out of that."
        case _:
            return f"It is not known whether {subject} was {verb}: the answer was not what I expected."
