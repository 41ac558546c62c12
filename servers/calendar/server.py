"""The tools of the calendar server."""

from __future__ import annotations

import asyncio
from typing import Annotated
from uuid import UUID

from mcp.server.fastmcp import FastMCP
from pydantic import Field

from servers.calendar.events import Calendars, Event, EventChange, EventList, Events
from servers.calendar.moments import Moment
from servers.fields import Text, Title, described
from servers.plain_server import ADDS, READS, REPLACES, PlainServer

INSTRUCTIONS = """Calendars and their events. Times are ISO 8601, such as 2026-11-30T09:00:00+01:00; without an offset
they are in the server's local time. Look up an event's id with list_events before changing or deleting it."""

EventTitle = Annotated[Title, described("Title", "What the event is called.")]
Start = Annotated[Moment, described("Start", "When it starts, such as 2026-11-30T09:00:00+01:00.")]
End = Annotated[Moment | None, described("End", "When it ends; by default 60 minutes after the start.")]
EventId = Annotated[UUID, described("Event", "The event's id, as list_events gives it.")]
CalendarId = Annotated[Title, Field(title="Calendar", description="The calendar's id; list_calendars has them.")]
Attendees = Annotated[list[Title], Field(title="Attendees", description="Names or addresses.", max_length=100)]

NewTitle = Annotated[Title | None, described("Title", "A new title.")]
NewStart = Annotated[Moment | None, described("Start", "A new start; alone it moves the event, keeping its length.")]
NewEnd = Annotated[Moment | None, described("End", "A new end.")]
NewLocation = Annotated[Text | None, described("Location", "A new location; empty removes it.")]
NewAttendees = Annotated[Attendees | None, described("Attendees", "All attendees anew; an empty list removes them.")]


def build(events: Events) -> FastMCP:
    """The server over one calendar file."""
    server = PlainServer("calendar", instructions=INSTRUCTIONS, log_level="WARNING")

    @server.tool(title="List calendars", annotations=READS)
    async def list_calendars() -> Calendars:
        """List all calendars with their ids."""
        return await asyncio.to_thread(events.calendars)

    @server.tool(title="List events", annotations=READS)
    async def list_events(
        start: Annotated[Moment, described("From", "Start of the time to look at.")],
        end: Annotated[Moment, described("To", "End of the time to look at; not included.")],
        calendar_id: Annotated[Title | None, described("Calendar", "Only this calendar; by default all.")] = None,
    ) -> EventList:
        """List the events that happen in a span of time, in order."""
        return await asyncio.to_thread(events.between, start, end, calendar_id)

    @server.tool(title="Create event", annotations=ADDS)
    async def create_event(  # noqa: PLR0917 - called by name only
        title: EventTitle,
        start: Start,
        end: End = None,
        calendar_id: CalendarId = "primary",
        location: Annotated[Text, Field(title="Location")] = "",
        attendees: Attendees = [],  # noqa: B006 - pydantic copies defaults
    ) -> Event:
        """Add an event to a calendar."""
        return await asyncio.to_thread(
            events.create,
            title=title,
            start=start,
            end=end,
            calendar_id=calendar_id,
            location=location,
            attendees=attendees,
        )

    @server.tool(title="Update event", annotations=REPLACES)
    async def update_event(  # noqa: PLR0917 - called by name only
        event_id: EventId,
        title: NewTitle = None,
        start: NewStart = None,
        end: NewEnd = None,
        calendar_id: CalendarId = "primary",
        location: NewLocation = None,
        attendees: NewAttendees = None,
    ) -> Event:
        """Change an event, for instance move it; what is left out stays as it is. The calendar is where it is now."""
        change = EventChange(title=title, start=start, end=end, location=location, attendees=attendees)
        return await asyncio.to_thread(events.update, event_id, calendar_id, change)

    @server.tool(title="Delete event", annotations=REPLACES)
    async def delete_event(event_id: EventId, calendar_id: CalendarId = "primary") -> Event:
        """Delete an event for good; the result is the event as it was."""
        return await asyncio.to_thread(events.delete, event_id, calendar_id)

    return server
