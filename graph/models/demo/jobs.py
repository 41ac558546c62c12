"""The jobs that the demo model can do. A request is understood as one or several of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal

from graph.models.demo.drafts import Draft
from graph.models.demo.times import When

LIST_CALENDARS = "calendar__list_calendars"
LIST_EVENTS = "calendar__list_events"
CREATE_EVENT = "calendar__create_event"
UPDATE_EVENT = "calendar__update_event"
DELETE_EVENT = "calendar__delete_event"
ADD_TASK = "tasks__add"
LIST_TASKS = "tasks__list"
COMPLETE_TASK = "tasks__complete"
DELETE_TASK = "tasks__delete"

LOOKUPS = frozenset({LIST_CALENDARS, LIST_EVENTS, LIST_TASKS})
"""Calls that only read. They are made before anything else is asked or proposed."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which event or task is meant."""

    title: str = ""
    when: When = field(default_factory=When)


@dataclass(frozen=True, slots=True)
class ListCalendars:
    """Say which calendars there are."""

    tools: ClassVar[tuple[str, ...]] = (LIST_CALENDARS,)


@dataclass(frozen=True, slots=True)
class ListEvents:
    """Say what is on the calendar."""

    start: datetime
    end: datetime
    span: str
    """In words, such as `today`."""
    tools: ClassVar[tuple[str, ...]] = (LIST_EVENTS,)


@dataclass(frozen=True, slots=True)
class CreateEvent:
    """Create one event, asking for what is missing."""

    draft: Draft
    tools: ClassVar[tuple[str, ...]] = (CREATE_EVENT,)


@dataclass(frozen=True, slots=True)
class MoveEvent:
    """Find an event and move it."""

    target: Target
    to: When
    tools: ClassVar[tuple[str, ...]] = (LIST_EVENTS, UPDATE_EVENT)


@dataclass(frozen=True, slots=True)
class DeleteEvent:
    """Find an event and delete it."""

    target: Target
    tools: ClassVar[tuple[str, ...]] = (LIST_EVENTS, DELETE_EVENT)


@dataclass(frozen=True, slots=True)
class AddTask:
    """Add one task."""

    title: str
    due: str = ""
    """ISO 8601 date; empty: none."""
    tools: ClassVar[tuple[str, ...]] = (ADD_TASK,)


@dataclass(frozen=True, slots=True)
class ListTasks:
    """Say which tasks there are."""

    status: Literal["open", "done", "all"] = "open"
    tools: ClassVar[tuple[str, ...]] = (LIST_TASKS,)


@dataclass(frozen=True, slots=True)
class CompleteTask:
    """Find an open task and complete it."""

    target: Target
    tools: ClassVar[tuple[str, ...]] = (LIST_TASKS, COMPLETE_TASK)


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Find a task and delete it."""

    target: Target
    tools: ClassVar[tuple[str, ...]] = (LIST_TASKS, DELETE_TASK)


Job = (
    ListCalendars | ListEvents | CreateEvent | MoveEvent | DeleteEvent | AddTask | ListTasks | CompleteTask | DeleteTask
)
