"""Doing something to one event or task that has to be found first: none found is said, several are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph.models.demo.jobs import Target
from graph.models.demo.listing import entries
from graph.models.demo.outcomes import Answered
from graph.models.demo.phrases import local, not_done, one_line
from graph.models.demo.steps import MOST_QUESTIONS, History, Next, Says, Wants, ask, field, newest, questions_in

Entry = dict[str, Any]
MOST_CHOICES = 20
"""Options of one question. Our own choice."""


@dataclass(frozen=True, slots=True)
class Search:
    """How one entry is found."""

    lookup: Wants
    name: str
    """Under which the entries are in the listing: `events` or `tasks`."""
    matching: Callable[[list[Entry]], list[Entry]]
    label: Callable[[Entry], str]
    """One entry in plain words, to choose by."""
    noun: str
    nothing: str
    """The sentence when there is no match."""


def find(search: Search, history: History) -> Entry | Next:
    """The entry, or the next step towards it, or the sentence with which the search ends."""
    found = newest(history, search.lookup.call.tool)
    if found is None:
        return search.lookup
    listed = entries(found.outcome, search.name)
    if listed is None:
        return Says(not_done(f"The list of {search.name}", "read", found.outcome))
    matches = search.matching(listed)[:MOST_CHOICES]
    if not matches:
        return Says(search.nothing)
    return matches[0] if len(matches) == 1 else _choice(search, matches, history)


def by_title(listed: Sequence[Entry], title: str) -> list[Entry]:
    """The entries with this title, or else those whose title contains it; upper and lower case are the same."""
    wanted = title.casefold()
    exact = [entry for entry in listed if one_line(entry.get("title", "")).casefold() == wanted]
    return exact or [entry for entry in listed if wanted in one_line(entry.get("title", "")).casefold()]


def by_target(listed: Sequence[Entry], target: Target, now: datetime) -> list[Entry]:
    """The events that a target means. A time without a title means the next event that begins then."""
    titled = by_title(listed, target.title) if target.title else list(listed)
    timed = [(start, event) for event in titled if (start := local(event.get("start"), now)) and _fits(start, target)]
    if target.title or not timed:
        return [event for _, event in timed]
    coming = [(start, event) for start, event in timed if start >= now] or timed
    first = min(start for start, _ in coming)
    return [event for start, event in coming if start == first]


def _fits(start: datetime, target: Target) -> bool:
    day, at = target.when.day, target.when.at
    return (day is None or start.date() == day) and (at is None or (start.hour, start.minute) == (at.hour, at.minute))


def _choice(search: Search, matches: list[Entry], history: History) -> Entry | Next:
    labels = _distinct([search.label(entry) for entry in matches])
    questions = questions_in(history)
    for question in questions:
        if not isinstance(question.outcome, Answered):
            return Says(not_done(f"The {search.noun}", "chosen, so nothing was changed", question.outcome))
        said = one_line(question.outcome.values.get("which", question.outcome.text)).casefold()
        for test in (said.__eq__, said.__contains__):
            chosen = [entry for entry, label in zip(matches, labels, strict=True) if said and test(label.casefold())]
            if len(chosen) == 1:
                return chosen[0]
    if len(questions) >= MOST_QUESTIONS:
        return Says(f"I could not find out which {search.noun} you mean, so I have changed nothing.")
    options = field("which", f"Which {search.noun}", "choice", options=labels)
    return ask(f"There are several. Which {search.noun} do you mean?", "", [options])


def _distinct(labels: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    result = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        result.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return tuple(result)
