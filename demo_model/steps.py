"""From a turn to the next message: which calls to make now, or what to say.

A request is several jobs, each a pure function from its own past calls to its next step. Whose call a past one was is
found by playing the turn again; its arguments and outcome are always those in the messages, never recomputed, so a
turn that waited overnight goes on with what was proposed. Whatever tools or people wrote is quoted on one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from demo_model.sentences import DemoTool, Job, read_event, tidy, understand
from demo_model.times import UNSAID, When, clock_in_words, in_words, local, read_when, span, span_in_words, span_moved
from demo_model.turn import DemoTurn, PastCall, ShownFile, one_line
from graph.calls import CLARIFICATION

MOST_JOBS = 10
"""Things that one message may ask for at once. Our own choice, as are those below."""
MOST_QUESTIONS = 4
"""Times that one job asks for the same thing before it gives up."""
MOST_CHOICES = 20
"""Options of one question."""

_NO_MODEL = "No language model is connected: I am the built-in demo model and follow simple rules."
_EXAMPLES = {
    "calendar": """
- “what is on my calendar this week”
- “schedule something”, or “create a meeting called Standup tomorrow at 9am”
- “create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm”
- “move the meeting at 3pm to 4pm”, “delete the event Standup”""",
    "tasks": """
- “list my tasks”, “add a task to buy milk”
- “complete the task buy milk”, “delete the task buy milk”""",
    "documents": """
- “keep this file for everybody”, “list the documents”
- “what does the handbook say about travel?”""",
}
"""What can be asked for, by server."""
_LISTS = {
    DemoTool.LIST_CALENDARS: ("calendar", "your calendars", "Your calendars", "You have no calendars."),
    DemoTool.LIST_EVENTS: (
        "event",
        "your calendar for {}",
        "On your calendar for {}",
        "There is nothing on your calendar for {}.",
    ),
    DemoTool.LIST_TASKS: ("task", "your {}tasks", "Your {}tasks", "You have no {}tasks."),
    DemoTool.LIST_DOCUMENTS: ("document", "the documents", "Documents", "There are no documents here."),
    DemoTool.SEARCH_DOCUMENTS: (
        "passage",
        "the documents for “{}”",
        "This stands in the documents",
        "I found nothing in the documents about “{}”.",
    ),
}
"""Of each lookup: what it lists, where it looks, the heading of the list, and the sentence when it is empty."""
_CHANGES = {
    DemoTool.CREATE_EVENT: ("create", "created", ""),
    DemoTool.UPDATE_EVENT: ("move", "moved", ""),
    DemoTool.DELETE_EVENT: ("delete", "deleted", "the event "),
    DemoTool.ADD_TASK: ("add", "added", "the task "),
    DemoTool.COMPLETE_TASK: ("complete", "completed", "the task "),
    DemoTool.DELETE_TASK: ("delete", "deleted", "the task "),
    DemoTool.ADD_DOCUMENT: ("keep", "kept", "the file "),
}
"""Of each change: the verb, its past, and what stands before the title."""
_KEPT_FOR = {"me": "for you", "channel": "for this channel", "everybody": "for everybody"}
_FIELDS = {
    "title": {"name": "title", "label": "Title", "type": "text", "help": "What the event is called."},
    "date": {"name": "date", "label": "Date", "type": "date"},
    "time": {"name": "time", "label": "Time", "type": "time", "help": "When it starts; it takes 60 minutes."},
}
_STOPS = frozenset({"no", "nothing", "never mind", "nevermind", "cancel", "stop", "forget it", "none"})

_NEW_TITLE = re.compile(
    r"\b(?:call it|name it|rename (?:it )?to|(?:should|must|has to) be (?:called|named|titled)|"
    r"(?:title|name) (?:should be|is|to))\s*:?\s*(?P<title>.+?)(?=$|,|;|\s+and (?:make|move|start|do|put|have)\b)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|instead of|rather than|no longer|don['’]t)\b[^,;]*?(?=,|;|\bbut\b|\binstead\b(?! of)|$)", re.IGNORECASE
)
_WISH = re.compile(
    r"\b(?:should|instead|make|rather|move|better|change|please|prefer|starts?|until|later|earlier|but|want|needs?|"
    r"do it)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:no|nope|sorry|it|is|be|at|on|the|for|in|and|too|late|early|wrong|time|day|date|[\s,.;:!–-])*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Wants:
    """A call with which a job goes on."""

    tool: str
    arguments: dict[str, Any]
    words: str
    """Completes "I will …"."""
    because: str = ""
    """A sentence that leads to it, such as who rejected what was proposed before."""


_Step = Wants | str
"""What a job comes to next: a call, or what there is to say at its end."""
_Past = Sequence[PastCall]
_Entry = Mapping[str, Any]
"""An event, a task or a calendar, as its server gives it."""


def next_message(turn: DemoTurn, tools: Set[str]) -> tuple[str, list[Wants]]:
    """What to say now, and the calls to make. `tools`: the full names of those that may be called."""
    jobs = [each for job in understand(turn.request, turn.now) for each in _of_files(job, turn.newest_files)]
    if not jobs and turn.files:
        begins = "\n".join(f"- {file.name} begins: “{one_line(file.line)}”" for file in turn.files)
        keeps = "\n\n“Keep this file” keeps it as a document." if DemoTool.ADD_DOCUMENT in tools else ""
        return f"{_NO_MODEL} I can’t read much in files.\n{begins}{keeps}", []
    if not jobs:
        return f"{_NO_MODEL} {_abilities(tools)}", []
    if len(jobs) > MOST_JOBS:
        return f"{_NO_MODEL} That is more than {MOST_JOBS} things at once; please ask for fewer.", []
    played = zip(jobs, _pasts(jobs, turn), strict=True)
    steps = [_available(job, _step(job, past, turn.now), tools) for job, past in played]
    if wanted := _due(steps):
        return _lead(wanted), wanted
    return "\n\n".join(step for step in steps if isinstance(step, str)), []


def _of_files(job: Job, files: Sequence[ShownFile]) -> list[Job]:
    """A job, for each file where it is about files."""
    if job.tools != (DemoTool.ADD_DOCUMENT,) or not files:
        return [job]
    return [replace(job, title=file.name, lookup={"file": file.id, "keep_for": job.scope}) for file in files]


def _abilities(tools: Set[str]) -> str:
    servers = {tool.partition("__")[0] for tool in tools}
    examples = "".join(lines for server, lines in _EXAMPLES.items() if server in servers)
    if not examples:
        return "Neither the calendar nor the tasks are connected at the moment, so there is nothing I can do for you."
    return f"You can ask me, for example:\n{examples}"


def _pasts(jobs: Sequence[Job], turn: DemoTurn) -> list[list[PastCall]]:
    """Each job's own calls, found by playing the turn again."""
    pasts: list[list[PastCall]] = [[] for _ in jobs]
    for calls in turn.steps:
        steps = [_step(job, past, turn.now) for job, past in zip(jobs, pasts, strict=True)]
        due = [step.tool if isinstance(step, Wants) and step in _due(steps) else "" for step in steps]
        free = list(range(len(jobs)))
        for call in calls:
            wanting = [i for i in free if due[i] == call.tool]
            able = [i for i in free if call.tool in (*jobs[i].tools, CLARIFICATION)]  # the clock has moved since
            for owner in (wanting + able)[:1]:
                free.remove(owner)
                pasts[owner].append(call)
    return pasts


def _due(steps: Sequence[_Step]) -> list[Wants]:
    """The calls whose turn it is: first all lookups, then questions before changes."""
    wanted = [step for step in steps if isinstance(step, Wants)]
    lookups = [step for step in wanted if step.tool in _LISTS]
    return lookups or sorted(wanted, key=lambda step: step.tool != CLARIFICATION)


def _available(job: Job, step: _Step, tools: Set[str]) -> _Step:
    if isinstance(step, str):
        return step
    for absent in [tool for tool in job.tools if tool not in tools]:
        server, _, name = absent.partition("__")
        return f"I cannot {step.words}: the tool {name} of {server} is unavailable at the moment."
    return step if step.tool in tools else str(step.arguments["question"])


def _lead(wanted: Sequence[Wants]) -> str:
    """The text that goes with the calls."""
    deeds = [step for step in wanted if step.tool != CLARIFICATION]
    if not deeds:
        return "I need to know a little more first."
    if deeds[0].tool in _LISTS:
        return f"Let me {' and '.join(dict.fromkeys(step.words for step in deeds))}."
    lead = "I have a question first, and then I will" if len(deeds) < len(wanted) else "I will"
    if len(deeds) == 1:
        return f"{deeds[0].because} {lead} {deeds[0].words}.".strip()
    lines = [f"{step.because} {step.words[:1].upper()}{step.words[1:]}".strip() for step in deeds]
    return f"{lead} do {len(deeds)} things:\n\n" + "\n".join(f"- {line}" for line in lines)


def _step(job: Job, past: _Past, now: datetime) -> _Step:
    """What a job comes to next, after its own past calls: look, ask, propose, and tell what came of it."""
    tool = job.tools[-1]
    made = _latest(past, tool)
    if tool in _LISTS:
        return _told(job, made, now) if made else _lookup(job)
    if made is None:
        return _proposal(job, past, now)
    _, done, noun = _CHANGES[tool]
    if made.data and (made.data.get("title") or made.data.get("document_id")):
        return f"{done.capitalize()} {noun}{_described(made.data, now)}."
    if corrected := _corrected(made, now):
        moved = f"it to {span_in_words(corrected, now)}" if tool == DemoTool.UPDATE_EVENT else ""
        by, reason = made.rejected
        because = f"{one_line(by)} rejected this (“{one_line(reason)}”). A corrected proposal:"
        return _change(job, corrected, moved or _described(corrected, now), because)
    return made.not_done(_subject(job, made, past, now), done)


def _lookup(job: Job) -> Wants:
    return Wants(job.tools[0], job.lookup, f"look at {_LISTS[job.tools[0]][1].format(job.scope)}")


def _told(job: Job, made: PastCall, now: datetime) -> str:
    """What was found, as a list."""
    kind, _, heading, nothing = (words.format(job.scope) for words in _LISTS[job.tools[-1]])
    entries = made.listed(f"{kind}s")
    if entries is None:
        return made.not_done(f"The list of {kind}s", "read")
    if kind == "passage":
        lines = [f"- “{one_line(entry.get('text', ''))}” {entry.get('cite') or _title(entry)}" for entry in entries]
    else:
        lines = [f"- {_described(entry, now)}{', done' if entry.get('status') == 'done' else ''}" for entry in entries]
    left_out = (made.data or {}).get("left_out")
    more = f"\n\nThere are {left_out} more." if isinstance(left_out, int) and left_out > 0 else ""
    return f"{heading}:\n\n" + "\n".join(lines) + more if lines else nothing


def _change(job: Job, arguments: dict[str, Any], thing: str, because: str = "") -> Wants:
    verb, _, noun = _CHANGES[job.tools[-1]]
    return Wants(job.tools[-1], arguments, f"{verb} {noun}{thing}", because)


def _proposal(job: Job, past: _Past, now: datetime) -> _Step:
    """The change that a job asks for, or a question that has to be answered before, or why there will be none."""
    _, done, noun = _CHANGES[job.tools[-1]]
    questions = [call for call in past if call.tool == CLARIFICATION]
    replies = []
    for question in questions:
        reply = question.replied()
        if reply is None:
            return question.not_done((noun or "the event ").strip().capitalize(), done)
        if str(reply.get("answer", "")).strip().lower().rstrip(".!") in _STOPS:
            return f"All right, I have not {done} anything."
        replies.append(reply)
    if job.tools == (DemoTool.CREATE_EVENT,):
        step: _Step = _new_event(job, replies, now)
    elif job.tools == (DemoTool.ADD_TASK,):
        task = {"title": job.title} | ({"due": job.when.day.isoformat()} if job.when.day else {})
        step = _change(job, task, _described(task, now))
    elif job.tools == (DemoTool.ADD_DOCUMENT,):
        named = f"{_title({'title': job.title})} {_KEPT_FOR[job.scope]}"
        step = _change(job, job.lookup, named) if job.lookup else "Hand over a file first; then I can keep it."
    else:
        step = _change_found(job, past, replies, now)
    if isinstance(step, Wants) and step.tool == CLARIFICATION and len(replies) >= MOST_QUESTIONS:
        return f"I still do not know enough, so I have not {done} it."
    return step


def _new_event(job: Job, replies: Sequence[Mapping[str, Any]], now: datetime) -> Wants:
    """The event, as soon as nothing is missing."""
    title, when = job.title, job.when
    for reply in replies:
        if "answer" in reply:
            named, said = _event_in(str(reply["answer"]), now)
            title = title or named
        else:
            title = tidy(str(reply.get("title") or "")) or title
            said, _ = read_when(f"{reply.get('date')} at {reply.get('time')}", now)
        when = said.filled_from(when)
    if title and when.day and when.at:
        event = {"title": title, **span(when.day, when.at, when, now), "calendar_id": "primary"}
        return _change(job, event, _described(event, now))
    missing = [name for name, known in (("title", title), ("date", when.day), ("time", when.at)) if not known]
    question = f"I still need the {' and the '.join(missing)} of the event."
    if len(missing) == len(_FIELDS):
        question = "What shall I schedule, and when?"
    hint = f"So far I have the title {_title({'title': title})}."
    if not title:
        hint = "You can also answer in words, such as “Standup tomorrow at 9am”."
    return _question(question, hint, [_FIELDS[name] for name in missing])


def _event_in(reply: str, now: datetime) -> tuple[str, When]:
    """The title and the time of a reply; a whole command (`create a meeting called Sync at 3pm`) means what it always
    means, its usual day included."""
    jobs = understand(reply, now)
    if len(jobs) == 1 and jobs[0].tools == (DemoTool.CREATE_EVENT,):
        return jobs[0].title, jobs[0].when
    return read_event(reply, now)


def _change_found(job: Job, past: _Past, replies: Sequence[Mapping[str, Any]], now: datetime) -> _Step:
    """The change of what was looked up: none found is said, several are asked about."""
    looked = _latest(past, job.tools[0])
    if looked is None:
        return _lookup(job)
    kind, place, *_ = (words.format(job.scope) for words in _LISTS[job.tools[0]])
    entries = looked.listed(f"{kind}s")
    if entries is None:
        return looked.not_done(f"The list of {kind}s", "read")
    matches = _meant(job, entries, now)[:MOST_CHOICES]
    if not matches:
        called = f" called {_title({'title': job.title})}" if job.title else ""
        if kind == "task":
            return f"I found no {job.scope}task{called}, so I have changed nothing."
        at = f" at {clock_in_words(job.when.at)}" if job.when.at else ""
        return f"I found no event{called}{at} on {place}, so I have changed nothing there."
    labels = _labels(matches, now)
    chosen = matches
    for reply in replies:
        said = one_line(reply.get("which", reply.get("answer", ""))).casefold()
        for fits in (said.__eq__, said.__contains__):
            fitting = [entry for entry, label in zip(matches, labels, strict=True) if said and fits(label.casefold())]
            chosen = fitting if len(fitting) == 1 else chosen
    if len(chosen) > 1:
        which = {"name": "which", "label": f"Which {kind}", "type": "choice", "options": labels}
        return _question(f"There are several. Which {kind} do you mean?", "", [which])
    found, named = chosen[0], _described(chosen[0], now)
    if kind == "task":
        return _change(job, {"task_id": found.get("id", "")}, named)
    calendar, start = found.get("calendar_id"), local(found.get("start"), now) or now
    event = {"event_id": found.get("id", "")} | ({"calendar_id": calendar} if isinstance(calendar, str) else {})
    if job.tools[-1] == DemoTool.DELETE_EVENT:
        return _change(job, event, named)
    times = span_moved(found, job.to, now)
    if times == span_moved(found, UNSAID, now):
        return f"{named} is already then, so there is nothing to move."
    return _change(job, event | times, f"{_title(found)} from {in_words(start)}, to {span_in_words(times, now)}")


def _labels(entries: Sequence[_Entry], now: datetime) -> list[str]:
    """What to choose an entry by."""
    plain = [_described(entry, now).replace("**", "") for entry in entries]
    return [f"{label} ({plain[:i].count(label) + 1})" if label in plain[:i] else label for i, label in enumerate(plain)]


def _meant(job: Job, entries: Sequence[_Entry], now: datetime) -> list[_Entry]:
    """The entries with the very title, else with it in theirs. A time alone means the next event that begins then."""
    title, day, at = job.title.casefold(), job.when.day, job.when.at
    titles = [one_line(entry.get("title", "")).casefold() for entry in entries]
    fits = title.__eq__ if title in titles else lambda its: title in its
    named = [entry for entry, its in zip(entries, titles, strict=True) if fits(its)]
    if job.tools[0] == DemoTool.LIST_TASKS:
        return named
    timed = [(start, entry) for entry in named if (start := local(entry.get("start"), now))]
    timed = [(start, e) for start, e in timed if day in (None, start.date()) and at in (None, start.time())]
    if not title and timed:
        first = min([start for start, _ in timed if start >= now] or [start for start, _ in timed])
        timed = [(start, entry) for start, entry in timed if start == first]
    return [entry for _, entry in timed]


def _corrected(made: PastCall, now: datetime) -> dict[str, Any] | None:
    """The arguments as the reason of a rejection wants them; `None` when it changes nothing."""
    _, reason = made.rejected
    if made.tool not in (DemoTool.CREATE_EVENT, DemoTool.UPDATE_EVENT, DemoTool.ADD_TASK) or not reason:
        return None
    changed = dict(made.arguments)
    if titled := _NEW_TITLE.search(reason):
        changed["title"] = tidy(titled["title"])
        reason = f"{reason[: titled.start()]} {reason[titled.end() :]}"
    when, rest = read_when(_NEGATED.sub(" ", reason), now)
    if _WISH.search(reason) or _FILLER.fullmatch(rest):  # `Bob is away on Friday` merely mentions a time
        if made.tool == DemoTool.ADD_TASK:
            changed |= {"due": when.day.isoformat()} if when.day else {}
        elif when != UNSAID:
            changed |= span_moved(changed, when, now)
    return changed if changed != made.arguments else None


def _subject(job: Job, made: PastCall, past: _Past, now: datetime) -> str:
    """What a call was to act on: by the title that it has in the listing, or else as it was proposed."""
    wanted = made.arguments.get("event_id") or made.arguments.get("task_id")
    for call in past:
        for entry in [*(call.listed("events") or ()), *(call.listed("tasks") or ())]:
            if wanted and entry.get("id") == wanted:
                return _title(entry)
    return _described({"title": job.title or "The event"} | made.arguments, now)


def _latest(past: _Past, tool: str) -> PastCall | None:
    return next((call for call in reversed(past) if call.tool == tool), None)


def _title(entry: _Entry) -> str:
    return f"**{one_line(entry.get('title', entry.get('name', 'Untitled'))).replace('*', '∗')}**"


def _described(entry: _Entry, now: datetime) -> str:
    """`**Standup**, Sun 22 Nov, 09:00–10:00 (Room 1; with Bob)`."""
    due = f"due {one_line(entry['due'])}" if entry.get("due") else ""
    people = entry.get("attendees")
    others = f"with {', '.join(map(one_line, people))}" if isinstance(people, list) and people else ""
    calendar = entry.get("calendar_id") if "name" in entry else ""
    asides = [*(one_line(entry.get(name) or "") for name in ("location", "notes")), others, one_line(calendar or "")]
    aside = "; ".join(filter(None, asides))
    line = ", ".join(filter(None, (_title(entry), span_in_words(entry, now), due)))
    return f"{line} ({aside})" if aside else line


def _question(question: str, context: str, fields: Sequence[_Entry]) -> Wants:
    """A question to the requester; the fields are those of `graph.interrupts.FormField`."""
    return Wants(CLARIFICATION, {"question": question, "context": context, "fields": fields}, "ask you something")
