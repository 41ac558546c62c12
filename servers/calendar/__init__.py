"""The calendar MCP server: calendars and their events in one SQLite file."""
