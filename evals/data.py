"""What there is before a conversation, put into the bundled tool servers the way any client would: over MCP.

The servers run a second time here, on the files of the product's own.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from adapters.tool_servers.requester import NAME_VARIABLE, SECRET_VARIABLE, told_requester
from evals.conversations import Given
from evals.reading import SERVERS

ROOT = Path(__file__).parents[1]
Ids = dict[tuple[str, str], frozenset[str]]
"""Kind and title → ids of what has this title."""
_YEARS = timedelta(days=3 * 365)
"""Around now, in which all events are."""


class DataError(Exception):
    """A tool server does not take what a conversation needs."""


class Data:
    """What is in the tool servers."""

    def __init__(self, sessions: Mapping[str, ClientSession], secret: str) -> None:
        self._sessions = sessions
        self._secret = secret

    async def prepare(self, given: Given, person: str, now: datetime) -> Ids:
        """Have only this there, for a person who has nothing yet. Raises `DataError`.

        Args:
            person: whose tasks and documents they are; the calendar is everybody's, and is emptied before.
            now: from which days are counted.
        """
        await self._empty_calendar(now)
        ids: dict[tuple[str, str], set[str]] = {}

        def note(kind: str, title: str, made: Mapping[str, Any], key: str = "id") -> str:
            ids.setdefault((kind, title), set()).add(str(made[key]))
            return str(made[key])

        for event in given.events:
            times = {"start": event.start.moment(now).isoformat(), "end": event.end.moment(now).isoformat()}
            more = {"calendar_id": event.calendar, "location": event.location, "attendees": list(event.attendees)}
            note(
                "event",
                event.title,
                await self._call("calendar", "create_event", {"title": event.title, **times, **more}),
            )
        for task in given.tasks:
            due = {"due": task.due.day(now).isoformat()} if task.due else {}
            made = await self._call("tasks", "add_task", {"title": task.title, "notes": task.notes, **due}, person)
            task_id = note("task", task.title, made)
            if task.is_done:
                await self._call("tasks", "complete_task", {"task_id": task_id}, person)
        for document in given.documents:
            arguments = {"keep_for": "me", "text": document.text, "name": document.name}
            made = await self._call("documents", "add_document", arguments, person)
            note("document", document.name, made, "document_id")
        return {key: frozenset(found) for key, found in ids.items()}

    async def _empty_calendar(self, now: datetime) -> None:
        span = {"start": (now - _YEARS).isoformat(), "end": (now + _YEARS).isoformat()}
        while events := (await self._call("calendar", "list_events", span))["events"]:
            for event in events:
                arguments = {"event_id": event["id"], "calendar_id": event["calendar_id"]}
                await self._call("calendar", "delete_event", arguments)

    async def _call(self, server: str, tool: str, arguments: dict[str, Any], person: str = "") -> dict[str, Any]:
        told = None
        if person:
            channel = "" if server == "documents" else None
            told = told_requester(
                person, server, tool, arguments, secret=self._secret, at=int(time.time()), channel=channel
            )
        result = await self._sessions[server].call_tool(tool, arguments, meta=told)
        said = "".join(block.text for block in result.content if isinstance(block, TextContent))
        if result.isError:
            raise DataError(f"{server}.{tool}: {said}")
        made: dict[str, Any] = result.structuredContent or json.loads(said)
        return made


def database_variables(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """By tool server the variables with which it runs on the files in a folder, in UTC."""
    return {name: {f"{name.upper()}_DB": str(folder / f"{name}.db"), "TZ": "UTC"} for name in SERVERS}


@asynccontextmanager
async def opened_data(folder: Path, python: Sequence[str]) -> AsyncIterator[Data]:
    """The tool servers on the files in a folder, until the end; `python` begins their command lines."""
    secret = secrets.token_hex(32)
    with Path(os.devnull).open("w") as quiet:  # noqa: ASYNC230  # the null device never waits
        async with AsyncExitStack() as stack:
            sessions = {}
            for name, variables in database_variables(folder).items():
                told = {} if name == "calendar" else {SECRET_VARIABLE: secret, NAME_VARIABLE: name}
                command = StdioServerParameters(
                    command=python[0], args=[*python[1:], "-m", f"servers.{name}"], cwd=ROOT, env={**variables, **told}
                )
                streams = await stack.enter_async_context(stdio_client(command, errlog=quiet))
                sessions[name] = await stack.enter_async_context(ClientSession(*streams))
                await sessions[name].initialize()
            yield Data(sessions, secret)
