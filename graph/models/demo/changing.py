"""Changing what is there: moving and deleting events, completing and deleting tasks."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from graph.models.demo.corrections import correct_event
from graph.models.demo.finding import Entry, Search, by_target, by_title, find
from graph.models.demo.jobs import (
    COMPLETE_TASK,
    DELETE_EVENT,
    DELETE_TASK,
    LIST_EVENTS,
    LIST_TASKS,
    UPDATE_EVENT,
    CompleteTask,
    DeleteEvent,
    DeleteTask,
    MoveEvent,
    Target,
)
from graph.models.demo.outcomes import Rejected, Succeeded
from graph.models.demo.phrases import (
    bold,
    clock_time,
    day_in_words,
    event_line,
    local,
    not_done,
    one_line,
    short_day,
    span_in_words,
)
from graph.models.demo.steps import History, Next, Says, Wants, corrected_because, newest
from graph.models.demo.times import DEFAULT_LENGTH, end_of, moment, stamp, start_of_day
from graph.models.demo.turn import Call

SEARCHED_DAYS = 30
"""How far ahead an event is looked for when no day is named. Our own choice."""


def move_event(job: MoveEvent, history: History, now: datetime) -> Next:
    """Find the event and propose its new time, and again as a rejection corrects it."""
    made = newest(history, UPDATE_EVENT)
    if made is None:
        found = find(_event_search(job.target, now), history)
        return found if isinstance(found, Wants | Says) else _move(found, job, now)
    match made.outcome:
        case Succeeded(data=event) if event.get("title"):
            return Says(f"Moved {event_line(event, now)}.")
        case Rejected() as rejected:
            corrected = correct_event(made.call.arguments, rejected.reason, now)
            if corrected:
                words = f"move it to {span_in_words(corrected, now)}"
                return Wants(Call(UPDATE_EVENT, corrected), words, corrected_because(rejected))
    subject = f"The event for {span_in_words(made.call.arguments, now)}" if made.call.arguments.get("start") else "It"
    return Says(not_done(_titled(history, made.call.arguments) or subject, "moved", made.outcome))


def delete_event(job: DeleteEvent, history: History, now: datetime) -> Next:
    """Find the event and propose to delete it."""
    made = newest(history, DELETE_EVENT)
    if made is None:
        found = find(_event_search(job.target, now), history)
        if isinstance(found, Wants | Says):
            return found
        return Wants(Call(DELETE_EVENT, _identity(found)), f"delete the event {event_line(found, now)}")
    if isinstance(made.outcome, Succeeded) and made.outcome.data.get("title"):
        return Says(f"Deleted the event {event_line(made.outcome.data, now)}.")
    return Says(not_done(_titled(history, made.call.arguments) or "The event", "deleted", made.outcome))


def complete_task(job: CompleteTask, history: History, now: datetime) -> Next:
    """Find the open task and propose to complete it."""
    return _change_task(job, history, tool=COMPLETE_TASK, verb="complete", done="completed", status="open")


def delete_task(job: DeleteTask, history: History, now: datetime) -> Next:
    """Find the task and propose to delete it."""
    return _change_task(job, history, tool=DELETE_TASK, verb="delete", done="deleted", status="all")


def _change_task(
    job: CompleteTask | DeleteTask, history: History, *, tool: str, verb: str, done: str, status: str
) -> Next:
    made = newest(history, tool)
    if made is None:
        found = find(_task_search(job.target, status), history)
        if isinstance(found, Wants | Says):
            return found
        return Wants(Call(tool, {"task_id": found.get("id", "")}), f"{verb} the task {bold(found.get('title', ''))}")
    if isinstance(made.outcome, Succeeded) and made.outcome.data.get("title"):
        return Says(f"{done.capitalize()} the task {bold(made.outcome.data['title'])}.")
    return Says(
        not_done(_titled(history, made.call.arguments) or f"The task {bold(job.target.title)}", done, made.outcome)
    )


def _move(event: Entry, job: MoveEvent, now: datetime) -> Next:
    start = local(event.get("start"), now) or now  # the search finds only events with a start
    end = local(event.get("end"), now)
    at = moment(job.to.day or start.date(), job.to.at or start.timetz().replace(tzinfo=None), now)
    ends = end_of(at, job.to, now) if job.to.until or job.to.length else at + ((end - start) if end else DEFAULT_LENGTH)
    if at == start and ends == end:
        return Says(f"{event_line(event, now)} is already then, so there is nothing to move.")
    words = f"move {bold(event.get('title', ''))} from {short_day(start.date())}, {clock_time(start)}, to "
    arguments = {**_identity(event), "start": stamp(at), "end": stamp(ends)}
    return Wants(Call(UPDATE_EVENT, arguments), words + span_in_words(arguments, now))


def _event_search(target: Target, now: datetime) -> Search:
    day: date = target.when.day or now.date()
    days = 1 if target.when.day else SEARCHED_DAYS
    window = {
        "start": stamp(start_of_day(day, now)),
        "end": stamp(start_of_day(day + timedelta(days=days), now)),
    }
    span = day_in_words(day, now.date()) if target.when.day else f"the next {SEARCHED_DAYS} days"
    named = f" called {bold(target.title)}" if target.title else ""
    timed = f" at {target.when.at:%H:%M}" if target.when.at else ""
    return Search(
        lookup=Wants(Call(LIST_EVENTS, window), "look at your calendar"),
        name="events",
        matching=lambda listed: by_target(listed, target, now),
        label=lambda event: f"{one_line(event.get('title', ''))}, {span_in_words(event, now)}",
        noun="event",
        nothing=f"I found no event{named}{timed} on your calendar for {span}, so I have changed nothing there.",
    )


def _task_search(target: Target, status: str) -> Search:
    which = "open task" if status == "open" else "task"
    return Search(
        lookup=Wants(Call(LIST_TASKS, {"status": status}), "look at your tasks"),
        name="tasks",
        matching=lambda listed: by_title(listed, target.title),
        label=lambda task: one_line(task.get("title", "")) + (f", due {task['due']}" if task.get("due") else ""),
        noun="task",
        nothing=f"I found no {which} called {bold(target.title)}, so I have changed nothing.",
    )


def _identity(event: Entry) -> dict[str, Any]:
    calendar = event.get("calendar_id")
    return {"event_id": event.get("id", ""), **({"calendar_id": calendar} if isinstance(calendar, str) else {})}


def _titled(history: History, arguments: dict[str, Any]) -> str:
    """The title that the listing gave the event or task of a call; empty when it is not known."""
    wanted = arguments.get("event_id") or arguments.get("task_id")
    for done in history:
        data = done.outcome.data if isinstance(done.outcome, Succeeded) else {}
        for listed in (data.get("events"), data.get("tasks")):
            for entry in listed if isinstance(listed, list) else []:
                if isinstance(entry, dict) and entry.get("id") == wanted:
                    return bold(entry.get("title", ""))
    return ""
