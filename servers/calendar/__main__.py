"""`python -m servers.calendar [--http PORT]`; the file is `CALENDAR_DB`, by default `data/calendar.db`."""

from __future__ import annotations

from servers.calendar.events import Events
from servers.calendar.server import build
from servers.start import start

if __name__ == "__main__":
    start("calendar", database_variable="CALENDAR_DB", build=lambda path: build(Events.open(path)))
