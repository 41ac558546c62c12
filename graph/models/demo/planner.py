"""From a turn to the next message: which calls to make now, or what to say.

A request is several jobs, each a pure function from its own calls to its next step. Whose call a past one was is
found by playing the turn again; the arguments and outcomes are always those in the messages, never recomputed, so a
turn that waited overnight goes on with what was proposed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from graph.models.demo import adding, changing, listing
from graph.models.demo.jobs import (
    LOOKUPS,
    AddTask,
    CompleteTask,
    CreateEvent,
    DeleteEvent,
    DeleteTask,
    Job,
    ListCalendars,
    ListEvents,
    ListTasks,
    MoveEvent,
)
from graph.models.demo.phrases import NO_MODEL, abilities
from graph.models.demo.requests import understand
from graph.models.demo.steps import History, Next, Says, Wants
from graph.models.demo.turn import CLARIFY, Call, Done, Turn

MOST_JOBS = 10
"""Things that one message may ask for at once. Our own choice."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The next message of the model."""

    text: str
    calls: tuple[Call, ...] = ()


def reply(turn: Turn, tools: Set[str]) -> Reply:
    """What to answer now. `tools`: the full names of those that may be called."""
    jobs = understand(turn.request, turn.now)
    if not jobs:
        return Reply(f"{NO_MODEL} {abilities(tools)}")
    if len(jobs) > MOST_JOBS:
        return Reply(f"{NO_MODEL} That is more than {MOST_JOBS} things at once; please ask for fewer.")
    histories = _histories(jobs, turn)
    nexts = [_next(job, history, turn.now, tools) for job, history in zip(jobs, histories, strict=True)]
    wanted = [step for _, step in _now(nexts)]
    if wanted:
        return Reply(_lead(wanted), tuple(step.call for step in wanted))
    return Reply("\n\n".join(step.text for step in nexts if isinstance(step, Says)))


def _next(job: Job, history: History, now: datetime, tools: Set[str]) -> Next:
    step = _advance(job, history, now)
    if isinstance(step, Says):
        return step
    if absent := [tool for tool in job.tools if tool not in tools]:
        server, _, name = absent[0].partition("__")
        return Says(f"I cannot {step.words}: the tool {name} of {server} is unavailable at the moment.")
    if step.call.tool not in tools:  # only the question itself can be absent now
        return Says(str(step.call.arguments["question"]))
    return step


def _advance(job: Job, history: History, now: datetime) -> Next:
    match job:
        case ListCalendars():
            return listing.list_calendars(job, history, now)
        case ListEvents():
            return listing.list_events(job, history, now)
        case ListTasks():
            return listing.list_tasks(job, history, now)
        case CreateEvent():
            return adding.create_event(job, history, now)
        case AddTask():
            return adding.add_task(job, history, now)
        case MoveEvent():
            return changing.move_event(job, history, now)
        case DeleteEvent():
            return changing.delete_event(job, history, now)
        case CompleteTask():
            return changing.complete_task(job, history, now)
        case DeleteTask():
            return changing.delete_task(job, history, now)


def _now(nexts: list[Next]) -> list[tuple[int, Wants]]:
    """The steps whose turn it is, with the number of their job: first all lookups, then questions before changes."""
    wanted = [(number, step) for number, step in enumerate(nexts) if isinstance(step, Wants)]
    lookups = [(number, step) for number, step in wanted if step.call.tool in LOOKUPS]
    return lookups or sorted(wanted, key=lambda pair: pair[1].call.tool != CLARIFY)


def _histories(jobs: tuple[Job, ...], turn: Turn) -> list[History]:
    """Each job's own calls, found by playing the turn again."""
    histories: list[History] = [()] * len(jobs)
    for step in turn.steps:
        expected = _now([_advance(job, history, turn.now) for job, history in zip(jobs, histories, strict=True)])
        free = set(range(len(jobs)))
        for done in step:
            owner = _owner(done, [(n, w.call.tool) for n, w in expected if n in free], jobs, free)
            if owner is not None:
                free.discard(owner)
                histories[owner] = (*histories[owner], done)
    return histories


def _owner(done: Done, expected: list[tuple[int, str]], jobs: tuple[Job, ...], free: set[int]) -> int | None:
    """The job that wants this call now, or else (the clock has moved since) one that may make such calls at all."""
    wanting = [number for number, tool in expected if tool == done.call.tool]
    able = [number for number in sorted(free) if done.call.tool in (*jobs[number].tools, CLARIFY)]
    return next(iter(wanting + able), None)


def _lead(wanted: list[Wants]) -> str:
    """The text that goes with the calls."""
    questions = [step for step in wanted if step.call.tool == CLARIFY]
    deeds = [step for step in wanted if step.call.tool != CLARIFY]
    if not deeds:
        return "I need to know a little more first."
    if all(step.call.tool in LOOKUPS for step in deeds):
        return f"Let me {' and '.join(dict.fromkeys(step.words for step in deeds))}."
    lead = "I have a question first, and then I" if questions else "I"
    if len(deeds) == 1:
        return " ".join(filter(None, (deeds[0].because, f"{lead} will {deeds[0].words}.")))
    lines = [" ".join(filter(None, (step.because, step.words[:1].upper() + step.words[1:]))) for step in deeds]
    return f"{lead} will do {len(deeds)} things:\n\n" + "\n".join(f"- {line}" for line in lines)
