"""Making something new: an event, after asking for what is missing, or a task."""

from __future__ import annotations

from datetime import datetime

from graph.models.demo.corrections import correct_event, correct_task
from graph.models.demo.drafts import Draft
from graph.models.demo.jobs import ADD_TASK, CREATE_EVENT, AddTask, CreateEvent
from graph.models.demo.outcomes import Answered, Rejected, Succeeded
from graph.models.demo.phrases import bold, event_line, not_done, one_line
from graph.models.demo.steps import (
    MOST_QUESTIONS,
    History,
    Next,
    Says,
    Wants,
    ask,
    corrected_because,
    field,
    newest,
    questions_in,
)
from graph.models.demo.turn import Call, Done

_FIELDS = {
    "title": field("title", "Title", "text", hint="What the event is called."),
    "date": field("date", "Date", "date"),
    "time": field("time", "Time", "time", hint="When it starts; it takes 60 minutes."),
}
_QUESTIONS = {
    ("title", "date", "time"): "What shall I schedule, and when?",
    ("title",): "What shall I call the event?",
    ("date",): "On which day shall it be?",
    ("time",): "At what time shall it start?",
    ("date", "time"): "When shall it be?",
}
_STOPS = frozenset({"no", "nothing", "never mind", "nevermind", "cancel", "stop", "forget it", "none"})


def create_event(job: CreateEvent, history: History, now: datetime) -> Next:
    """Ask until nothing is missing, propose the event, and propose it again as a rejection corrects it."""
    made = newest(history, CREATE_EVENT)
    if made is not None:
        return _after_proposal(made, now)
    questions, draft, asked = questions_in(history), job.draft, frozenset[str]()
    for question in questions:
        if not isinstance(question.outcome, Answered):
            return Says(not_done("The event", "created", question.outcome))
        if question.outcome.text.strip().lower().rstrip(".!") in _STOPS:
            return Says("All right, I have not created anything.")
        asked |= {str(entry.get("name")) for entry in _entries(question)}
        draft = draft.with_answer(question.outcome.text, question.outcome.values, now)
    missing = draft.missing(asked)
    if not missing:
        return _proposal(draft, now)
    if len(questions) >= MOST_QUESTIONS:
        return Says(f"I still do not know the {_listed(missing)} of the event, so I have not created it.")
    return _question(draft, missing, again=bool(questions))


def add_task(job: AddTask, history: History, now: datetime) -> Next:
    """Propose the task, and again as a rejection corrects it."""
    made = newest(history, ADD_TASK)
    if made is None:
        return _task_proposal({"title": job.title, **({"due": job.due} if job.due else {})})
    match made.outcome:
        case Succeeded(data=task) if task.get("title"):
            due = f", due {one_line(task['due'])}" if task.get("due") else ""
            return Says(f"Added the task {bold(task['title'])}{due}.")
        case Rejected() as rejected:
            corrected = correct_task(made.call.arguments, rejected.reason, now)
            if corrected:
                return _task_proposal(corrected, corrected_because(rejected))
    return Says(not_done(f"The task {bold(made.call.arguments.get('title', ''))}", "added", made.outcome))


def _after_proposal(made: Done, now: datetime) -> Next:
    match made.outcome:
        case Succeeded(data=event) if event.get("title"):
            return Says(f"Created {event_line(event, now)}.")
        case Rejected() as rejected:
            corrected = correct_event(made.call.arguments, rejected.reason, now)
            if corrected:
                call = Call(CREATE_EVENT, corrected)
                return Wants(call, f"create {event_line(corrected, now)}", corrected_because(rejected))
    return Says(not_done(event_line(made.call.arguments, now), "created", made.outcome))


def _proposal(draft: Draft, now: datetime) -> Wants:
    arguments = draft.arguments(now)
    return Wants(Call(CREATE_EVENT, arguments), f"create {event_line(arguments, now)}")


def _task_proposal(arguments: dict[str, str], because: str = "") -> Wants:
    due = f", due {arguments['due']}" if arguments.get("due") else ""
    return Wants(Call(ADD_TASK, arguments), f"add the task {bold(arguments['title'])}{due}", because)


def _question(draft: Draft, missing: tuple[str, ...], *, again: bool) -> Wants:
    known = f"So far I have the title {bold(draft.title)}. " if draft.title else ""
    hint = "You can also answer in words, such as “Standup tomorrow at 9am”." if "title" in missing else ""
    question = _QUESTIONS.get(missing, f"Please tell me the {_listed(missing)} of the event.")
    if again:
        question = f"I still need the {_listed(missing)}. {question}"
    return ask(question, f"{known}{hint}".strip(), [_FIELDS[name] for name in missing])


def _listed(names: tuple[str, ...]) -> str:
    return " and the ".join(names)


def _entries(question: Done) -> list[dict[str, object]]:
    entries = question.call.arguments.get("fields")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
