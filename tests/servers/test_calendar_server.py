"""Over a real stdio session with a real process. Each test starts one, so each test says much."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

from tests.servers.conftest import Serving

MORNING = {"start": "2026-11-22T09:00:00+01:00"}
WEEK = {"start": "2026-11-22T00:00:00+01:00", "end": "2026-11-29T00:00:00+01:00"}


async def test_it_says_what_its_tools_are_and_what_they_may_do(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        tools = await calendar.tools()

    hints: dict[str, Any] = {
        name: (a.readOnlyHint, a.destructiveHint, a.idempotentHint, a.openWorldHint)
        for name, tool in tools.items()
        if (a := tool.annotations)
    }
    assert hints == {
        "list_calendars": (True, False, True, False),
        "list_events": (True, False, True, False),
        "create_event": (False, False, False, False),
        "update_event": (False, True, True, False),
        "delete_event": (False, True, True, False),
        "get_event": (True, False, True, False),
        "preview_update_event": (True, False, True, False),
        "preview_delete_event": (True, False, True, False),
    }
    assert tools["create_event"].title == "Create event"
    assert all(tool.description and not tool.inputSchema["additionalProperties"] for tool in tools.values())


async def test_its_times_are_date_times_in_the_schema_so_that_a_form_can_be_drawn(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        tools = await calendar.tools()

    for name in ("list_events", "create_event", "update_event"):
        for argument in ("start", "end"):
            schema = tools[name].inputSchema["properties"][argument]
            assert (schema["type"], schema["format"]) == ("string", "date-time")
            assert schema["description"]
    assert tools["create_event"].inputSchema["required"] == ["title", "start"]
    assert tools["create_event"].inputSchema["properties"]["calendar_id"]["default"] == "primary"


async def test_an_event_lives_from_its_creation_to_its_deletion(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        created = await calendar.call("create_event", title=" Standup ", **MORNING, attendees=["Ana", "Bob"])
        assert UUID(created["id"])
        assert created | {"id": ""} == {
            "id": "",
            "title": "Standup",
            "start": "2026-11-22T09:00:00+01:00",
            "end": "2026-11-22T10:00:00+01:00",
            "calendar_id": "primary",
            "location": "",
            "attendees": ["Ana", "Bob"],
        }
        assert (await calendar.call("list_events", **WEEK)) == {"events": [created], "left_out": 0}

        moved = await calendar.call("update_event", event_id=created["id"], start="2026-11-23T15:00:00+01:00", end=None)
        assert (moved["start"], moved["end"]) == ("2026-11-23T15:00:00+01:00", "2026-11-23T16:00:00+01:00")
        changed = await calendar.call("update_event", event_id=created["id"], title="Daily", attendees=[], location="A")
        assert changed == {**moved, "title": "Daily", "attendees": [], "location": "A"}

        assert await calendar.call("delete_event", event_id=created["id"], calendar_id="primary") == changed
        assert (await calendar.call("list_events", **WEEK))["events"] == []


async def test_what_a_change_would_do_is_told_without_doing_it(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        event = await calendar.call("create_event", title="Standup", **MORNING)
        before = {name: value for name, value in event.items() if name != "id"}
        change: dict[str, Any] = {"event_id": event["id"], "start": "2026-11-23T15:00:00+01:00"}
        previewed = await calendar.call("preview_update_event", **change)
        deleted = await calendar.call("preview_delete_event", event_id=event["id"])

        assert await calendar.call("get_event", event_id=event["id"]) == event
        changed = await calendar.call("update_event", **change)
        assert previewed == {"before": before, "after": {n: v for n, v in changed.items() if n != "id"}}
        assert deleted == {"before": before, "after": None}
        assert await calendar.refusal("preview_update_event", event_id=event["id"]) == "Nothing to change was given."


async def test_the_text_of_a_result_is_its_json(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        text = await calendar.text("list_calendars")
    assert [entry["calendar_id"] for entry in json.loads(text)["calendars"]] == ["primary", "team"]


async def test_events_are_listed_when_they_touch_the_time_in_order_and_by_calendar(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        for title, start, end, where in (
            ("late", "2026-11-28T23:00:00+01:00", "2026-11-29T01:00:00+01:00", "primary"),
            ("early", "2026-11-21T23:00:00+01:00", "2026-11-22T00:30:00+01:00", "team"),
            ("before", "2026-11-21T23:00:00+01:00", "2026-11-22T00:00:00+01:00", "primary"),
            ("after", "2026-11-29T00:00:00+01:00", "2026-11-29T01:00:00+01:00", "primary"),
            ("local", "2026-11-22T00:00", "2026-11-22T01:00", "primary"),
            ("far away", "2026-11-28T17:30:00-05:00", "2026-11-28T18:30:00-05:00", "primary"),
        ):
            await calendar.call("create_event", title=title, start=start, end=end, calendar_id=where)
        everywhere = await calendar.call("list_events", **WEEK)
        team = await calendar.call("list_events", **WEEK, calendar_id="team")
    assert [event["title"] for event in everywhere["events"]] == ["early", "local", "late", "far away"]
    assert [event["title"] for event in team["events"]] == ["early"]


async def test_what_makes_no_sense_is_refused_in_a_sentence_and_changes_nothing(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        event = await calendar.call("create_event", title="Standup", **MORNING)
        known = {"event_id": event["id"]}
        for name, arguments, sentence in (
            ("create_event", {"title": "  ", **MORNING}, "“title” is empty"),
            ("create_event", {"title": "x" * 201, **MORNING}, "“title” is too long: 201 characters, at most 200 fit."),
            ("create_event", {**MORNING}, "“title” is missing"),
            ("create_event", {"title": "x", "start": "tomorrow"}, "'tomorrow' is not a date and time; write it like"),
            ("create_event", {"title": "x", "start": "2026-11-22"}, "is not a date and time"),
            ("create_event", {"title": "x", "start": 1764000000}, "is not a date and time"),
            ("create_event", {"title": "x", "start": "9999-12-31T23:59"}, "the years 1971 to 9998"),
            ("create_event", {"title": "x", **MORNING, "end": "2026-11-22T08:00:00+01:00"}, "must be after the start"),
            ("create_event", {"title": "x", **MORNING, "end": MORNING["start"]}, "must be after the start"),
            (
                "create_event",
                {"title": "x", **MORNING, "calendar_id": "nope"},
                "no calendar “nope”; there are: primary",
            ),
            ("create_event", {"title": "x", **MORNING, "attendees": ["a"] * 101}, "“attendees” has too many entries"),
            ("create_event", {"title": "x", **MORNING, "duration": 5}, "Unknown argument “duration”: this tool takes"),
            ("list_events", {"start": WEEK["end"], "end": WEEK["start"]}, "must be after the start"),
            ("list_events", {**WEEK, "calendar_id": "nope"}, "There is no calendar “nope”"),
            ("update_event", {"event_id": "1", "title": "x"}, "“event_id” is not an id"),
            ("update_event", {"event_id": str(UUID(int=7)), "title": "x"}, "There is no such event."),
            ("update_event", known, "Nothing to change was given."),
            ("update_event", {**known, "end": "2026-11-22T08:00:00+01:00"}, "must be after the start"),
            (
                "update_event",
                {**known, "title": "x", "calendar_id": "team"},
                "in the calendar “primary”, not in “team”",
            ),
            ("delete_event", {"event_id": str(UUID(int=7))}, "There is no such event."),
            ("delete_event", {**known, "calendar_id": "team"}, "in the calendar “primary”, not in “team”"),
        ):
            refusal = await calendar.refusal(name, **arguments)
            assert sentence in refusal
            assert "\n" not in refusal
            assert "pydantic" not in refusal
        assert (await calendar.call("list_events", **WEEK))["events"] == [event]


async def test_many_calls_at_once_all_take_effect(stdio: Serving) -> None:
    async with stdio("calendar") as calendar, stdio("calendar") as another:
        await asyncio.gather(
            *(server.call("create_event", title=f"{n}", **MORNING) for n in range(20) for server in (calendar, another))
        )
        listed = await calendar.call("list_events", **WEEK)
    assert len({event["id"] for event in listed["events"]}) == 40


async def test_what_was_created_outlives_the_process(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        event = await calendar.call("create_event", title="Standup", **MORNING)
    async with stdio("calendar") as calendar:
        assert (await calendar.call("list_events", **WEEK))["events"] == [event]


async def test_every_way_of_writing_a_time_is_kept_as_it_was_meant(stdio: Serving) -> None:
    async with stdio("calendar") as calendar:
        for written, kept in (("+01:00", "+01:00"), ("Z", "+00:00"), ("", ""), ("-11:30", "-11:30")):
            event = await calendar.call("create_event", title="x", start=f"2026-11-24T09:00:00{written}")
            assert event["start"] == f"2026-11-24T09:00:00{kept}"
            assert event["end"] == f"2026-11-24T10:00:00{kept}"
