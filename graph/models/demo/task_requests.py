"""What a sentence asks of the task list."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from graph.models.demo.days import read_day
from graph.models.demo.drafts import clean
from graph.models.demo.jobs import AddTask, CompleteTask, DeleteTask, Job, ListTasks, Target

_TASK = r"(?:tasks?|to-?dos?|to do)(?: item)?"
_LIST = re.compile(
    rf"^(?:(?:show|list|what|which|give|tell|see|check|view|do i|are there|my|all|open|the)\b.*\b{_TASK}\b(?: list)?"
    rf"|{_TASK}(?: list)?|what do i (?:have|need) to do)\b(?!:| to )",
    re.IGNORECASE,
)
_COMPLETE = re.compile(
    rf"^(?:complete|finish|close|tick off|check off|mark)\s+(?:(?:the|my|a)\s+)?{_TASK}\s+"
    r"(?:called |named |to )?(?P<title>.+)$",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"^(?:mark|tick|check|set)\s+(?P<title>.+?)\s+(?:as |to |off)?(?:done|complete|completed|finished)$", re.IGNORECASE
)
_DELETE = re.compile(
    rf"^(?:delete|remove|drop|cancel)\s+(?:(?:the|my|a)\s+)?(?:{_TASK}\s+(?:called |named |to )?(?P<title>.+)"
    rf"|(?P<from>.+?)\s+(?:from (?:my |the )?{_TASK}(?: list)?|task))$",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"^(?:(?:add|create|make|new|put|note)\s+(?:me\s+)?(?:(?:an?|another|the|one)\s+)?(?:new\s+)?)?{_TASK}\b\s*"
    rf"(?::|to\b|called\b|named\b|for\b|that says\b|-)?\s*(?P<title>.+)$",
    re.IGNORECASE,
)
_ADD_TO = re.compile(
    rf"^(?:add|put|write)\s+(?P<title>.+?)\s+(?:to|on|in)\s+(?:my |the |our )?{_TASK}(?: list)?$", re.IGNORECASE
)
_REMIND = re.compile(r"^remind me (?P<when>.*?)\s*\bto\s+(?P<title>.+)$", re.IGNORECASE)
_DONE_AT_END = re.compile(r"\s+(?:as |to )?(?:done|complete|completed|finished)$", re.IGNORECASE)
_DUE = re.compile(r"\b(?:due|by|until|before|on)\b|\b(?:tomorrow|today)$", re.IGNORECASE)
_QUOTES = "\"'“”«»‘’ .,:"


def read_task_request(said: str, now: datetime) -> Job | None:
    """The job that one sentence asks for; `None` when it is not about tasks."""
    if match := _COMPLETE.match(said):
        return _on(CompleteTask, _DONE_AT_END.sub("", match["title"]))
    if match := _MARK.match(said):
        return _on(CompleteTask, match["title"])
    if match := _DELETE.match(said):
        return _on(DeleteTask, match["title"] or match["from"])
    if match := _ADD_TO.match(said):
        return add_task(match["title"], now)
    if match := _REMIND.match(said):
        return add_task(f"{match['title']} {match['when']}", now)
    if _LIST.match(said):
        return ListTasks(_status(said))
    if match := _ADD.match(said):
        return add_task(match["title"], now)
    return None


def add_task(text: str, now: datetime) -> AddTask | None:
    """The task that a text describes, such as `buy milk by Friday`; `None` when it says nothing."""
    due, rest = read_day(text, now.date()) if _DUE.search(text) else (None, text)
    title = clean(rest).strip(_QUOTES) or clean(text).strip(_QUOTES)
    return AddTask(title, due.isoformat() if due and title != clean(text) else "") if title else None


def _on(job: type[CompleteTask | DeleteTask], title: str) -> Job | None:
    title = clean(title).strip(_QUOTES)
    return job(Target(title)) if title else None


def _status(said: str) -> Literal["open", "done", "all"]:
    words = said.lower()
    if re.search(r"\ball\b", words):
        return "all"
    return "done" if re.search(r"\b(?:done|completed|finished)\b", words) else "open"
