"""The calendar MCP server: calendars and their events in one SQLite file.

`python -m servers.calendar [--http PORT [--host HOST]]`; the file is `CALENDAR_DB`, by default `data/calendar.db`.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from servers import database
from servers.plain_server import ADDS, READS, REPLACES, CallRefused, PlainServer, Text, Title, described
from servers.start import start_server

INSTRUCTIONS = """Calendars and their events. Times are ISO 8601, such as 2026-11-30T09:00:00+01:00; without an offset
they are in the server's local time. Look up an event's id with list_events before changing or deleting it."""

DEFAULT_LENGTH = timedelta(hours=1)
"""What an event takes when no end is given."""
MOST_LISTED = 200
"""Events in one listing, so that it fits a model's context. Our own choice."""
YEARS = range(1971, 9999)
"""What fits whatever the offset. Our own choice."""

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


def read_moment(given: Any) -> datetime:
    """The moment that an ISO 8601 text names, with an offset or in the local time of this process.

    Raises `ValueError` with a sentence.
    """
    mistake = (
        f"{str(given)[:60]!r} is not a date and time; write it like 2026-11-30T09:00 or 2026-11-30T09:00:00+01:00."
    )
    if not isinstance(given, str) or "T" not in given.upper():
        raise ValueError(mistake)
    try:
        moment = datetime.fromisoformat(given.strip().upper())
    except ValueError as error:
        raise ValueError(mistake) from error
    if moment.year not in YEARS:
        raise ValueError(f"{given!r} is outside of what this calendar holds, the years {YEARS[0]} to {YEARS[-1]}.")
    return moment


Moment = Annotated[datetime, BeforeValidator(read_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
EventTitle = Annotated[Title, described("Title", "What the event is called")]
Start = Annotated[Moment, described("Start", "When it starts", example="2026-11-30T09:00:00+01:00")]
End = Annotated[Moment | None, described("End", "When it ends; an hour after the start if left out")]
EventId = Annotated[UUID, described("Event", "Which event; its id is in list_events")]
CalendarId = Annotated[Title, Field(title="Calendar", description="Which calendar to use")]
Attendees = Annotated[list[Title], Field(title="Attendees", description="Names or email addresses", max_length=100)]

NewTitle = Annotated[Title | None, described("Title", "New title")]
NewStart = Annotated[Moment | None, described("Start", "New start; without an end, the event keeps its length")]
NewEnd = Annotated[Moment | None, described("End", "New end")]
NewLocation = Annotated[Text | None, described("Location", "New location; leave empty to remove it")]
NewAttendees = Annotated[Attendees | None, described("Attendees", "The whole new list; leave empty to remove everyone")]


class Calendar(BaseModel):
    """One calendar."""

    calendar_id: str
    name: str


class EventDetails(BaseModel):
    """What people know of an event."""

    title: str
    start: str
    end: str
    calendar_id: str
    location: str
    attendees: list[str]


class Event(EventDetails):
    """One event."""

    id: str


class Calendars(BaseModel):
    """All calendars."""

    calendars: list[Calendar]


class EventChange(BaseModel):
    """An event as it is, and as it would be."""

    before: EventDetails
    after: EventDetails | None
    """`None`: it would be gone."""


class EventList(BaseModel):
    """Events in order of their start."""

    events: list[Event]
    left_out: int
    """How many more there are, when there are too many for one listing."""


def build(address: str) -> PlainServer:
    """The server over one calendar file, which is made if it is missing. Raises `OSError` or `sqlite3.Error`."""
    path = Path(address)
    database.create(path, SCHEMA)
    server = PlainServer("calendar", instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool(title="List calendars", annotations=READS)
    def list_calendars() -> Calendars:
        """List all calendars with their ids."""
        with database.reading(path) as connection:
            rows = connection.execute("SELECT calendar_id, name FROM calendars ORDER BY calendar_id")
            return Calendars(calendars=[Calendar(**dict(row)) for row in rows])

    @server.tool(title="List events", annotations=READS)
    def list_events(
        start: Annotated[Moment, described("From", "First moment to look at")],
        end: Annotated[Moment, described("To", "End of the time to look at, not included")],
        calendar_id: Annotated[Title | None, described("Calendar", "Only this calendar; all if left out")] = None,
    ) -> EventList:
        """List the events that happen in a span of time, in order."""
        _check_order(start, end)
        with database.reading(path) as connection:
            if calendar_id is not None:
                _check_calendar(connection, calendar_id)
            rows = connection.execute(
                "SELECT * FROM events WHERE starts_at < ? AND ends_at > ? AND (? IS NULL OR calendar_id = ?)"
                " ORDER BY starts_at, title",
                (end.timestamp(), start.timestamp(), calendar_id, calendar_id),
            ).fetchall()
        return EventList(events=[_event(row) for row in rows[:MOST_LISTED]], left_out=max(0, len(rows) - MOST_LISTED))

    @server.tool(title="Create event", annotations=ADDS)
    def create_event(  # noqa: PLR0917 - called by name only
        title: EventTitle,
        start: Start,
        end: End = None,
        calendar_id: CalendarId = "primary",
        location: Annotated[Text, Field(title="Location", description="Where it takes place")] = "",
        attendees: Attendees = [],  # noqa: B006 - pydantic copies defaults
    ) -> Event:
        """Add an event to a calendar."""
        end = end if end is not None else start + DEFAULT_LENGTH
        event = Event(
            id=str(uuid4()),
            title=title,
            start=start.isoformat(),
            end=end.isoformat(),
            calendar_id=calendar_id,
            location=location,
            attendees=attendees,
        )
        _check_order(start, end)
        with database.writing(path) as connection:
            _check_calendar(connection, calendar_id)
            _save(connection, event)
        return event

    @server.tool(title="Update event", annotations=REPLACES)
    def update_event(  # noqa: PLR0917 - called by name only
        event_id: EventId,
        title: NewTitle = None,
        start: NewStart = None,
        end: NewEnd = None,
        calendar_id: CalendarId = "primary",
        location: NewLocation = None,
        attendees: NewAttendees = None,
    ) -> Event:
        """Change an event, for instance move it; what is left out stays as it is. The calendar is where it is now."""
        given = {"title": title, "start": start, "end": end, "location": location, "attendees": attendees}
        with database.writing(path) as connection:
            changed = _changed(_find(connection, event_id, calendar_id), given)
            _save(connection, changed)
        return changed

    @server.tool(title="Preview an update", annotations=READS)
    def preview_update_event(  # noqa: PLR0917 - called by name only
        event_id: EventId,
        title: NewTitle = None,
        start: NewStart = None,
        end: NewEnd = None,
        calendar_id: CalendarId = "primary",
        location: NewLocation = None,
        attendees: NewAttendees = None,
    ) -> EventChange:
        """What update_event would change, without changing it."""
        given = {"title": title, "start": start, "end": end, "location": location, "attendees": attendees}
        with database.reading(path) as connection:
            event = _find(connection, event_id, calendar_id)
        return EventChange(before=_details(event), after=_details(_changed(event, given)))

    @server.tool(title="Delete event", annotations=REPLACES)
    def delete_event(event_id: EventId, calendar_id: CalendarId = "primary") -> Event:
        """Delete an event for good; the result is the event as it was."""
        with database.writing(path) as connection:
            event = _find(connection, event_id, calendar_id)
            connection.execute("DELETE FROM events WHERE id = ?", (event.id,))
        return event

    @server.tool(title="Preview a deletion", annotations=READS)
    def preview_delete_event(event_id: EventId, calendar_id: CalendarId = "primary") -> EventChange:
        """What delete_event would delete, without deleting it."""
        with database.reading(path) as connection:
            return EventChange(before=_details(_find(connection, event_id, calendar_id)), after=None)

    @server.tool(title="Get event", annotations=READS)
    def get_event(event_id: EventId) -> Event:
        """Get one event, whichever calendar it is in."""
        with database.reading(path) as connection:
            return _event_of(connection, event_id)

    return server


def _details(event: Event) -> EventDetails:
    return EventDetails(**event.model_dump(exclude={"id"}))


def _changed(event: Event, given: dict[str, Any]) -> Event:
    """The event with what was given; a new start alone moves it. Raises `CallRefused`."""
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise CallRefused("Nothing to change was given.")
    old_start, old_end = datetime.fromisoformat(event.start), datetime.fromisoformat(event.end)
    start, end = given["start"], given["end"]
    if start is not None and end is None:
        end = start + timedelta(seconds=old_end.timestamp() - old_start.timestamp())
    start, end = start or old_start, end or old_end
    _check_order(start, end)
    return event.model_copy(update={**changes, "start": start.isoformat(), "end": end.isoformat()})


def _check_order(start: datetime, end: datetime) -> None:
    if end.timestamp() <= start.timestamp():
        raise CallRefused(f"The end ({end.isoformat()}) must be after the start ({start.isoformat()}).")


def _check_calendar(connection: sqlite3.Connection, calendar_id: str) -> None:
    known = [row["calendar_id"] for row in connection.execute("SELECT calendar_id FROM calendars ORDER BY 1")]
    if calendar_id not in known:
        raise CallRefused(f"There is no calendar “{calendar_id[:60]}”; there are: {', '.join(known)}.")


def _find(connection: sqlite3.Connection, event_id: UUID, calendar_id: str) -> Event:
    _check_calendar(connection, calendar_id)
    event = _event_of(connection, event_id)
    if event.calendar_id != calendar_id:
        raise CallRefused(
            f"The event is in the calendar “{event.calendar_id}”, not in “{calendar_id}”: give that calendar_id."
        )
    return event


def _event_of(connection: sqlite3.Connection, event_id: UUID) -> Event:
    row = connection.execute("SELECT * FROM events WHERE id = ?", (str(event_id),)).fetchone()
    if row is None:
        raise CallRefused("There is no such event. It may have been deleted.")
    return _event(row)


def _event(row: sqlite3.Row) -> Event:
    values: dict[str, Any] = {name: row[name] for name in ("id", "title", "calendar_id", "location")}
    return Event(**values, start=row["starts"], end=row["ends"], attendees=json.loads(row["attendees"]))


def _save(connection: sqlite3.Connection, event: Event) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO events VALUES (:id, :calendar_id, :title, :start, :end, :starts_at, :ends_at,"
        " :location, :attendees)",
        {
            **event.model_dump(exclude={"attendees"}),
            # A moment without an offset is in the local time of this process.
            "starts_at": datetime.fromisoformat(event.start).timestamp(),
            "ends_at": datetime.fromisoformat(event.end).timestamp(),
            "attendees": json.dumps(event.attendees, ensure_ascii=False),
        },
    )


if __name__ == "__main__":
    start_server("calendar", database_variable="CALENDAR_DB", build=build)
