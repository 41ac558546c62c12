"""Looking things up and telling what was found."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from graph.models.demo.jobs import LIST_CALENDARS, LIST_EVENTS, LIST_TASKS, ListCalendars, ListEvents, ListTasks
from graph.models.demo.outcomes import Outcome, Succeeded
from graph.models.demo.phrases import bold, event_line, not_done, one_line
from graph.models.demo.steps import History, Next, Says, Wants, newest
from graph.models.demo.times import stamp
from graph.models.demo.turn import Call


def list_calendars(job: ListCalendars, history: History, now: datetime) -> Next:
    """Which calendars there are."""
    found = newest(history, LIST_CALENDARS)
    if found is None:
        return Wants(Call(LIST_CALENDARS, {}), "look at your calendars")
    calendars = entries(found.outcome, "calendars")
    if calendars is None:
        return Says(not_done("The list of calendars", "read", found.outcome))
    lines = [f"- {bold(entry.get('name', ''))} ({one_line(entry.get('calendar_id', ''))})" for entry in calendars]
    return Says("Your calendars:\n\n" + "\n".join(lines) if lines else "There are no calendars.")


def list_events(job: ListEvents, history: History, now: datetime) -> Next:
    """What is on the calendar in a span of time."""
    found = newest(history, LIST_EVENTS)
    if found is None:
        call = Call(LIST_EVENTS, {"start": stamp(job.start), "end": stamp(job.end)})
        return Wants(call, f"look at your calendar for {job.span}")
    events = entries(found.outcome, "events")
    if events is None:
        return Says(not_done("Your calendar", "read", found.outcome))
    if not events:
        return Says(f"There is nothing on your calendar for {job.span}.")
    lines = [f"- {event_line(event, now)}" for event in events]
    return Says(f"On your calendar for {job.span}:\n\n" + "\n".join(lines) + _more(found.outcome))


def list_tasks(job: ListTasks, history: History, now: datetime) -> Next:
    """Which tasks there are."""
    which = {"open": "open ", "done": "finished ", "all": ""}[job.status]
    found = newest(history, LIST_TASKS)
    if found is None:
        return Wants(Call(LIST_TASKS, {"status": job.status}), f"look at your {which}tasks")
    tasks = entries(found.outcome, "tasks")
    if tasks is None:
        return Says(not_done("Your task list", "read", found.outcome))
    if not tasks:
        return Says(f"You have no {which}tasks.")
    lines = [f"- {_task_line(task)}" for task in tasks]
    return Says(f"Your {which}tasks:\n\n" + "\n".join(lines) + _more(found.outcome))


def entries(outcome: Outcome, name: str) -> list[dict[str, Any]] | None:
    """The entries of a listing; `None` when it is none."""
    if not isinstance(outcome, Succeeded) or not isinstance(outcome.data.get(name), list):
        return None
    return [entry for entry in outcome.data[name] if isinstance(entry, dict)]


def _task_line(task: dict[str, Any]) -> str:
    due = f", due {one_line(task['due'])}" if task.get("due") else ""
    notes = f" ({one_line(task['notes'])})" if task.get("notes") else ""
    return f"{bold(task.get('title', 'Untitled'))}{due}{notes}{', done' if task.get('status') == 'done' else ''}"


def _more(outcome: Outcome) -> str:
    left_out = outcome.data.get("left_out") if isinstance(outcome, Succeeded) else None
    return f"\n\nThere are {left_out} more." if isinstance(left_out, int) and left_out > 0 else ""
