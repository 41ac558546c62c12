"""The events and calendars of one SQLite file. Blocking: to be called from a worker thread."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel

from servers import database
from servers.calendar.moments import later, seconds_of
from servers.refusal import Refused

DEFAULT_LENGTH = 3600.0
"""Seconds an event takes when no end is given."""
MOST_LISTED = 200
"""Events in one listing, so that it fits a model's context. Our own choice."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS calendars (calendar_id TEXT PRIMARY KEY, name TEXT NOT NULL);
INSERT OR IGNORE INTO calendars VALUES ('primary', 'My calendar'), ('team', 'Team calendar');
CREATE TABLE IF NOT EXISTS events (
    id TEXT PRIMARY KEY,
    calendar_id TEXT NOT NULL REFERENCES calendars,
    title TEXT NOT NULL,
    starts TEXT NOT NULL,    -- as it was given, ISO 8601
    ends TEXT NOT NULL,
    starts_at REAL NOT NULL, -- the same in seconds since the epoch, to sort and search by
    ends_at REAL NOT NULL,
    location TEXT NOT NULL,
    attendees TEXT NOT NULL  -- JSON list
);
CREATE INDEX IF NOT EXISTS events_by_start ON events (starts_at);
"""


class Calendar(BaseModel):
    """One calendar."""

    calendar_id: str
    name: str


class Event(BaseModel):
    """One event."""

    id: str
    title: str
    start: str
    end: str
    calendar_id: str
    location: str
    attendees: list[str]


class Calendars(BaseModel):
    """All calendars."""

    calendars: list[Calendar]


class EventList(BaseModel):
    """Events in order of their start."""

    events: list[Event]
    left_out: int
    """How many more there are, when there are too many for one listing."""


@dataclass(frozen=True, kw_only=True)
class EventChange:
    """New values of an event; `None` leaves a value as it is."""

    title: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    location: str | None = None
    attendees: list[str] | None = None


@dataclass(frozen=True)
class Events:
    """The calendar file; safe to use from many threads and processes at once."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> Events:
        """Make the file if it is missing. Raises `OSError` or `sqlite3.Error`."""
        database.create(path, SCHEMA)
        return cls(path)

    def calendars(self) -> Calendars:
        """All calendars."""
        with database.reading(self.path) as connection:
            rows = connection.execute("SELECT calendar_id, name FROM calendars ORDER BY calendar_id")
            return Calendars(calendars=[Calendar(**dict(row)) for row in rows])

    def between(self, start: datetime, end: datetime, calendar_id: str | None) -> EventList:
        """Events that overlap the time from `start` to before `end`, in one calendar or in all (`None`)."""
        _check_order(start, end)
        with database.reading(self.path) as connection:
            if calendar_id is not None:
                _check_calendar(connection, calendar_id)
            rows = connection.execute(
                "SELECT * FROM events WHERE starts_at < ? AND ends_at > ? AND (? IS NULL OR calendar_id = ?)"
                " ORDER BY starts_at, title",
                (seconds_of(end), seconds_of(start), calendar_id, calendar_id),
            ).fetchall()
        return EventList(events=[_event(row) for row in rows[:MOST_LISTED]], left_out=max(0, len(rows) - MOST_LISTED))

    def create(
        self,
        *,
        title: str,
        start: datetime,
        end: datetime | None,
        calendar_id: str,
        location: str,
        attendees: list[str],
    ) -> Event:
        """Add an event and return it."""
        end = end if end is not None else later(start, DEFAULT_LENGTH)
        _check_order(start, end)
        event = Event(
            id=str(uuid4()),
            title=title,
            start=start.isoformat(),
            end=end.isoformat(),
            calendar_id=calendar_id,
            location=location,
            attendees=attendees,
        )
        with database.writing(self.path) as connection:
            _check_calendar(connection, calendar_id)
            _save(connection, event, start, end)
        return event

    def update(self, event_id: UUID, calendar_id: str, change: EventChange) -> Event:
        """Change an event and return it as it is now; moving only its start keeps its length."""
        if change == EventChange():
            raise Refused("Nothing to change was given.")
        with database.writing(self.path) as connection:
            event = _find(connection, event_id, calendar_id)
            old_start, old_end = datetime.fromisoformat(event.start), datetime.fromisoformat(event.end)
            start = change.start or old_start
            end = change.end or (later(start, seconds_of(old_end) - seconds_of(old_start)) if change.start else old_end)
            _check_order(start, end)
            changed = event.model_copy(
                update={
                    "title": event.title if change.title is None else change.title,
                    "start": start.isoformat(),
                    "end": end.isoformat(),
                    "location": event.location if change.location is None else change.location,
                    "attendees": event.attendees if change.attendees is None else change.attendees,
                }
            )
            _save(connection, changed, start, end)
        return changed

    def delete(self, event_id: UUID, calendar_id: str) -> Event:
        """Remove an event and return it as it was."""
        with database.writing(self.path) as connection:
            event = _find(connection, event_id, calendar_id)
            connection.execute("DELETE FROM events WHERE id = ?", (event.id,))
        return event


def _check_order(start: datetime, end: datetime) -> None:
    if seconds_of(end) <= seconds_of(start):
        raise Refused(f"The end ({end.isoformat()}) must be after the start ({start.isoformat()}).")


def _check_calendar(connection: sqlite3.Connection, calendar_id: str) -> None:
    known = [row["calendar_id"] for row in connection.execute("SELECT calendar_id FROM calendars ORDER BY 1")]
    if calendar_id not in known:
        raise Refused(f"There is no calendar “{calendar_id[:60]}”; there are: {', '.join(known)}.")


def _find(connection: sqlite3.Connection, event_id: UUID, calendar_id: str) -> Event:
    _check_calendar(connection, calendar_id)
    row = connection.execute("SELECT * FROM events WHERE id = ?", (str(event_id),)).fetchone()
    if row is None:
        raise Refused(f"There is no event with the id {event_id}.")
    event = _event(row)
    if event.calendar_id != calendar_id:
        raise Refused(
            f"The event is in the calendar “{event.calendar_id}”, not in “{calendar_id}”: give that calendar_id."
        )
    return event


def _event(row: sqlite3.Row) -> Event:
    values: dict[str, Any] = {name: row[name] for name in ("id", "title", "calendar_id", "location")}
    return Event(**values, start=row["starts"], end=row["ends"], attendees=json.loads(row["attendees"]))


def _save(connection: sqlite3.Connection, event: Event, start: datetime, end: datetime) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO events VALUES (:id, :calendar_id, :title, :start, :end, :starts_at, :ends_at,"
        " :location, :attendees)",
        {
            **event.model_dump(exclude={"attendees"}),
            "starts_at": seconds_of(start),
            "ends_at": seconds_of(end),
            "attendees": json.dumps(event.attendees, ensure_ascii=False),
        },
    )
