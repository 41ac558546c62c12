"""What a person's message asks for: the jobs in it, in the order in which they are said."""

from __future__ import annotations

import re
from datetime import datetime

from graph.models.demo.calendar_requests import read_calendar_request
from graph.models.demo.item_lists import on_common_days, read_item_list
from graph.models.demo.jobs import CreateEvent, Job
from graph.models.demo.task_requests import read_task_request
from graph.models.demo.times import When

_NAME_IN_FRONT = re.compile(r"^[^\s:]{1,40}(?: [^\s:]{1,40}){0,2}: (?P<said>.+)$", re.DOTALL)
_POLITE = re.compile(
    r"^(?:(?:please|ok|okay|yes|hi|hello|hey|and|then|also|now|thanks|can you|could you|would you|will you|let['’]?s|"
    r"i(?: want| need| would like|['’]d like)(?: you)? to)\b[\s,!.]*)+",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"(\s*(?:;|\.\s|\n|,?\s+and\s+(?:then\s+|also\s+)?|,\s*(?:then\s+)?)\s*)", re.IGNORECASE)
_COMMAND = re.compile(
    r"^(?:please |also )?(?:create|schedule|add|set up|book|plan|make|move|reschedule|shift|push|postpone|delete|"
    r"remove|cancel|complete|finish|mark|list|show|what|which|remind)\b",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"^(?:an?|another) (?:new )?(?:meeting|event|appointment|call|task)\b"
    r".*(?:\d|\bcalled\b|\bto\b|\bnoon\b|\btomorrow\b)",
    re.IGNORECASE,
)


def understand(text: str, now: datetime) -> tuple[Job, ...]:
    """The jobs in a message; none when it is not understood. A name in front (`Ana: …`) is skipped."""
    named = _NAME_IN_FRONT.match(text)
    for said in ([named["said"]] if named else []) + [text]:
        if jobs := _jobs(said.strip(), now):
            return jobs
    return ()


def _jobs(text: str, now: datetime) -> tuple[Job, ...]:
    if several := read_item_list(_bare(text), now):
        return several
    jobs = [job for clause in _clauses(text, now) if (job := _job(clause, now))]
    drafts = iter(on_common_days([job.draft for job in jobs if isinstance(job, CreateEvent)], now, shared=When()))
    return tuple(CreateEvent(next(drafts)) if isinstance(job, CreateEvent) else job for job in jobs)


def _clauses(text: str, now: datetime) -> list[str]:
    """The message cut where a new command begins; an "and" inside a title is not such a place."""
    first, *rest = _BETWEEN.split(text)
    clauses = [first]
    for between, piece in zip(rest[::2], rest[1::2], strict=True):
        begins = _COMMAND.match(piece) or _ANOTHER.match(piece)
        if begins and _job(piece, now) and (_job(clauses[-1], now) or not _bare(clauses[-1])):
            clauses.append(piece)
        else:
            clauses[-1] += between + piece
    return clauses


def _job(clause: str, now: datetime) -> Job | None:
    said = _bare(clause)
    return read_task_request(said, now) or read_calendar_request(said, now)


def _bare(clause: str) -> str:
    return _POLITE.sub("", clause.strip()).strip().rstrip("?!")
