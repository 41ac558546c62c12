"""What a person's message asks for: the jobs in it, in the order in which they are said.

A message is cut where a new command begins. The words of a sentence choose the tool; a time in it is read and taken
out, and what is left is the title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

from demo_model.times import UNSAID, When, day_in_words, moment, read_when, whole_days
from translations import NAMES, SOURCE, catalogue

USUAL_DAYS = 7
"""Days of the calendar that are shown when no time is named. Our own choice, as are those below."""
SEARCHED_DAYS = 30
"""How far ahead an event is looked for when no day is named."""
LONGEST_TITLE = 200
"""Characters."""

EXAMPLES = (
    "What is on my calendar?",
    "Create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm",
    "Add a task to buy milk",
    "Schedule something",
)
"""What the page suggests, in its own language. Nothing else is understood but English."""


class DemoTool(StrEnum):
    """The tools that it knows."""

    LIST_CALENDARS = "calendar__list_calendars"
    LIST_EVENTS = "calendar__list_events"
    CREATE_EVENT = "calendar__create_event"
    UPDATE_EVENT = "calendar__update_event"
    DELETE_EVENT = "calendar__delete_event"
    ADD_TASK = "tasks__add_task"
    LIST_TASKS = "tasks__list_tasks"
    COMPLETE_TASK = "tasks__complete_task"
    DELETE_TASK = "tasks__delete_task"
    ADD_DOCUMENT = "documents__add_document"
    LIST_DOCUMENTS = "documents__list_documents"
    SEARCH_DOCUMENTS = "documents__search_documents"


@dataclass(frozen=True, slots=True)
class Job:
    """One thing that a message asks for."""

    tools: tuple[DemoTool, ...]
    """All that it needs, in their order; what it changes has to be looked up first."""
    title: str = ""
    """Of the event or task that is wanted or meant; empty when it was not said."""
    when: When = UNSAID
    """When the event is or is to be; the day by which a new task is due."""
    to: When = UNSAID
    """Where an event is moved."""
    lookup: dict[str, str] = field(default_factory=dict)
    """The arguments of the lookup."""
    scope: str = ""
    """What is looked up, in words, such as `tomorrow` or `finished `; for whom a file is kept, as the tool names it."""


_CREATE_EVENT = (DemoTool.CREATE_EVENT,)


def _start(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:{pattern})", re.IGNORECASE | re.DOTALL)


def _anywhere(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_THE = r"(?:(?:me|an?|the|my|our|another|one|some|this|that|new|second)\s+)*"
_TASK = r"(?:tasks?|to-?dos?|to do)(?: item)?"
_EVENT = r"(?:event|meeting|appointment|call|slot|entry)"
_VERBS = {
    "new": r"schedule|book|arrange|set up|create|add|plan|make|organi[sz]e|put|enter|new|note|write|i (?:need|want)",
    "move": r"move|reschedule|shift|push|postpone|bring|change",
    "delete": r"delete|remove|cancel|drop",
    "complete": r"complete|finish|close|tick off|check off|mark|tick|check|set",
}
_VERB = _start(rf"(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _VERBS.items())})(?:\s+(?P<rest>.+)|$)")
_TASK_FIRST = _start(rf"{_THE}{_TASK}\b\s*(?P<sure>:|to\b|-|called\b|named\b|for\b|that says\b)?\s*(?P<title>.+)$")
_TASK_LAST = _start(rf"(?P<title>.+?)\s+(?:to|on|in|from)\s+{_THE}{_TASK}(?: list)?$")
_DONE = _anywhere(r"\s+(?:as |to |off )?(?:done|complete|completed|finished)$")
_ASK = r"(?:what|which|show|list|tell|give|see|check|view|open|look|when|any|(?:do|am) i|(?:is|are) there|my|the)\b.*\b"
_ASK_TASKS = _start(rf"(?:{_ASK}{_TASK}(?: list)?|{_TASK}(?: list)?|what do i (?:have|need) to do)\b(?!:| to | ?-)")
_ASK_CALENDARS = _start(r"(?:list|show|what|which)\b.*\bcalendars\b")
_ASK_EVENTS = _start(
    rf"{_ASK}(?:calendar|schedule|agenda|diary|{_EVENT}s?|planned|free|busy|(?:i|we) have|going on)\b"
    r"|what(?:['’]s| is) (?:on|up)(?: for)? (?:today|tomorrow|this|next|on)\b"
    r"|(?:calendar|agenda|schedule|events|meetings)$"
)
_DOCUMENT = r"(?:documents?|files?|handbooks?|manuals?|polic(?:y|ies)|guides?|pdfs?|contracts?)"
_KEEP_FILES = _start(
    rf"(?:keep|save|store)\s+(?:(?:it|them)(?=$|\s+for\b)|(?:these\s+)?{_THE}{_DOCUMENT}\b)(?P<whom>.*)$"
)
_FOR_CHANNEL = _anywhere(r"\b(?:channel|group|team|here)\b")
_FOR_EVERYBODY = _anywhere(r"\b(?:every(?:body|one)|all|company)\b")
_ASK_DOCUMENTS = _start(r"(?:list|show|what|which)\b.*\bdocuments\b|documents$")
_SEARCH_DOCUMENTS = _start(
    rf"(?:(?:search|look (?:through|in|into)|find in)\s+(?:all\s+)?{_THE}{_DOCUMENT}\s+(?:for|about|on)"
    rf"|what\s+(?:do|does)\s+{_THE}{_DOCUMENT}\s+says?\s+(?:about|on))\s+(?P<query>.+)$"
)
_NAME_IN_FRONT = _start(r"[^\s:]{1,40}(?: [^\s:]{1,40}){0,2}: (?P<said>.+)$")
_POLITE = _start(
    r"(?:(?:please|ok|okay|yes|hi|hello|hey|and|then|also|now|just|thanks|it is|it['’]s|let['’]?s(?: do| say)?|let us|"
    r"(?:can|could|would|will) you|i(?: want| need| would like|['’]d like)(?: you)? to)\b[\s,!.]*)+"
)
_REMIND = _start(r"remind me (?P<when>.*?)\s*\bto\s+(?P<title>.+)$")
_DUE = _anywhere(r"\b(?:due|by|until|before|on)\b|\b(?:tomorrow|today)$")
_MOVED_TO = _start(r"(?P<event>.+?)\s+(?:forward |back )?to\s+(?P<to>(?:(?!\sto\s).)+)$")
_AN_EVENT = _start(rf"(?=(?:an?|another) (?:new )?{_EVENT}\b)")
_SURELY_EVENT = _anywhere(rf"^(?:schedule|book|arrange|set up)\b|\b(?:{_EVENT}s?|calendar|called|named)\b")
_COMMAND = _start(
    rf"(?:please |also )?(?:{'|'.join(_VERBS.values())}|list|show|what|which|remind)\b"
    rf"|(?:an?|another) (?:new )?(?:{_EVENT}|task)\b.*(?:\d|\bcalled\b|\bto\b|\bnoon\b|\btomorrow\b)"
)
_BETWEEN = _anywhere(r"(\s*(?:;|\.\s|\n|,?\s+and\s+(?:then\s+|also\s+)?|,\s*(?:then\s+)?)\s*)")
_SEVERAL = _start(
    rf"(?:{_VERBS['new']})\s+(?:me\s+)?"
    r"(?:(?P<count>\d{1,2}|two|three|four|five|six|some|these|the following|a few|the)\s+)?"
    r"(?:new\s+|more\s+)?(?:(?P<tasks>tasks|to-?dos)|events|meetings|appointments)\b"
    r"(?P<shared>[^:]{0,60}?)(?::|\bcalled\b|\bnamed\b|(?<=s)\s)\s*(?P<items>.+)$"
)
_COMMA = _anywhere(r"\s*[;,\n]\s*(?:and\s+)?")
_COMMA_OR_AND = _anywhere(r"(\s*[;,\n]\s*(?:and\s+)?|\s+and\s+)")
_BULLET = _start(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")
_QUOTED = _anywhere(r"[\"“”«‘]([^\"“”»’]{1,150})[\"“”»’]")
_CALLED = _anywhere(r"\b(?:called|named|titled|entitled|with the title|call it|name it)\s+(?P<title>.+)$")
_A_NEW = _start(
    rf"{_THE}(?:calendar\s+)?(?:event|appointment|entry|something|anything)s?\b"
    r"(?:\s+(?:for me|for us|in|on|to) (?:my |the )?calendar)?[\s:]*"
)
_ONLY_A_NOUN = _start(rf"{_THE}(?:meeting|call|slot|time)s?$")
_CREATE = _start(rf"(?:{_VERBS['new']})\b")
_ARTICLE = _start(r"(?:an?|the|another)\s+")
_POINTING = _anywhere(rf"^{_THE}(?:(?:calendar )?{_EVENT}\b\s*)?(?:called|named|titled)?\s*|\s+{_EVENT}$")
_DANGLING = _anywhere(
    r"^[\s,.;:!?–-]+|^(?:at|on|for|from|and|by)(?=$|[,.;])|[\s,;:!?–-]+$|(?<!\.)\.$"
    r"|\b(?:at|on|for|from|and|by|please|thanks|thank you|instead|for me|for us|(?:in|on|to|from) (?:my|the) calendar)$"
)
"""What remains at the ends when a time is cut out of a sentence, and what politeness adds."""


def understand(text: str, now: datetime) -> list[Job]:
    """The jobs in a message; none when it is not understood. A name in front (`Ana: …`) is skipped."""
    text = _in_english("\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines()))))
    named = _NAME_IN_FRONT.match(text)
    for said in ([named["said"]] if named else []) + [text]:
        if jobs := _listed_jobs(_bare(said), now) or _said_jobs(said, now):
            return jobs
    return []


def read_event(text: str, now: datetime) -> tuple[str, When]:
    """The title and the time that a text gives an event, such as `Lunch with Bob tomorrow at noon`."""
    if quoted := _QUOTED.search(text):
        return tidy(quoted[1]), read_when(f"{text[: quoted.start()]} {text[quoted.end() :]}", now)[0]
    when, title = read_when(text, now)
    if called := _CALLED.search(title):
        return _trimmed(called["title"]), when
    for opening in (_POLITE, _CREATE, _A_NEW, _ONLY_A_NOUN, _ARTICLE):
        title = _trimmed(opening.sub("", _trimmed(title)))
    return title[:1].upper() + title[1:], when


def tidy(text: str) -> str:
    """A title on one line, of bounded length, without the quotes and stops around it."""
    return " ".join(text.split())[:LONGEST_TITLE].strip("\"'“”«»‘’ .,:")


def _in_english(text: str) -> str:
    for language in NAMES:
        if language != SOURCE:
            for example in EXAMPLES:
                text = text.replace(catalogue(language).gettext(example), example)
    return text


def _bare(sentence: str) -> str:
    return _POLITE.sub("", sentence.strip()).strip().rstrip("?!")


def _trimmed(text: str) -> str:
    text = " ".join(text.split())[:LONGEST_TITLE]
    while (shorter := _DANGLING.sub("", text)) != text:
        text = shorter
    return text


def _said_jobs(text: str, now: datetime) -> list[Job]:
    """The jobs of a message cut where a new command begins; an "and" inside a title is not such a place."""
    first, *rest = _BETWEEN.split(text)
    sentences = [first]
    for between, piece in zip(rest[::2], rest[1::2], strict=True):
        if _COMMAND.match(piece) and _job(piece, now) and (_job(sentences[-1], now) or not _bare(sentences[-1])):
            sentences.append(piece)
        else:
            sentences[-1] += between + piece
    return _dated([job for sentence in sentences if (job := _job(sentence, now))], None, now)


def _listed_jobs(said: str, now: datetime) -> list[Job]:
    """The jobs of a message such as `create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm`."""
    match = _SEVERAL.match(said)
    if match is None:
        return []
    by_comma, parts = _COMMA.split(match["items"]), _COMMA_OR_AND.split(match["items"])
    items = by_comma if match["count"] == str(len(by_comma)) else parts[::2]
    timed = [not match["tasks"] and read_when(piece, now)[0] != UNSAID for piece in parts[::2]]
    if any(timed):  # an event ends with its time: an "and" before that belongs to its title
        items = [""]
        for piece, between, ends in zip(parts[::2], [*parts[1::2], ""], timed, strict=True):
            items[-1] += piece if ends else piece + between
            if ends:
                items.append("")
    items = [_BULLET.sub("", item) for item in items if item.strip()]
    if match["tasks"]:
        return [job for item in items if (job := _new_task(item, now))]
    events = [Job(_CREATE_EVENT, *read_event(item, now)) for item in items]
    return _dated(events, read_when(match["shared"], now)[0].day, now)


def _dated(jobs: list[Job], day: date | None, now: datetime) -> list[Job]:
    """The jobs, with the days of new events: one without is on `day`, or on that of the event before it.

    Where neither is said, it is the first day on which all of their times are still to come.
    """
    times = [job.when.at for job in jobs if job.tools == _CREATE_EVENT and job.when.at and not job.when.day]
    if day is None and times:
        over = any(moment(now.date(), at, now) <= now for at in times)
        day = now.date() + timedelta(days=1 if over else 0)
    dated = []
    for job in jobs:
        if job.tools == _CREATE_EVENT:
            day = job.when.day or day
            dated.append(replace(job, when=job.when.filled_from(When(day))))
        else:
            dated.append(job)
    return dated


def _job(sentence: str, now: datetime) -> Job | None:
    """What one sentence asks for; `None` when it is not understood."""
    if job := _on_documents(_bare(sentence)):
        return job
    said = _AN_EVENT.sub("create ", _REMIND.sub(r"add a task to \g<title> \g<when>", _bare(sentence)))
    match = _VERB.match(said)
    verb = next((name for name in _VERBS if match and match[name]), "")
    rest = (match["rest"] or "") if match else ""
    what = _DONE.sub("", rest) if verb == "complete" else rest
    task = _TASK_FIRST.match(what) or _TASK_LAST.match(what)
    title = tidy(task["title"] if task else what)
    if verb == "complete" and title and (task or what != rest):
        tools = (DemoTool.LIST_TASKS, DemoTool.COMPLETE_TASK)
        return Job(tools, title, lookup={"status": "open"}, scope="open ")
    if _ASK_TASKS.match(said):
        return _list_tasks(said)
    if _ASK_CALENDARS.match(said):
        return Job((DemoTool.LIST_CALENDARS,))
    if _ASK_EVENTS.match(said):
        return _list_events(said, now)
    if verb == "delete" and (task or title.endswith(" task")):
        tools = (DemoTool.LIST_TASKS, DemoTool.DELETE_TASK)
        return Job(tools, re.sub(rf"^{_THE}", "", title).removesuffix(" task"), lookup={"status": "all"})
    if verb == "delete":
        return _on_event(DemoTool.DELETE_EVENT, rest, UNSAID, now)
    if verb == "move":
        return _move(rest, now)
    if verb == "new":
        return _new_task(title, now) if task and title else _new_event(said, now)
    task = _TASK_FIRST.match(said)
    return _new_task(task["title"], now) if task and task["sure"] else None


def _on_documents(said: str) -> Job | None:
    if searched := _SEARCH_DOCUMENTS.match(said):
        query = tidy(searched["query"])
        return Job((DemoTool.SEARCH_DOCUMENTS,), lookup={"query": query}, scope=query) if query else None
    if kept := _KEEP_FILES.match(said):
        is_for_channel, is_for_everybody = _FOR_CHANNEL.search(kept["whom"]), _FOR_EVERYBODY.search(kept["whom"])
        return Job(
            (DemoTool.ADD_DOCUMENT,), scope="channel" if is_for_channel else "everybody" if is_for_everybody else "me"
        )
    return Job((DemoTool.LIST_DOCUMENTS,)) if _ASK_DOCUMENTS.match(said) else None


def _new_task(text: str, now: datetime) -> Job | None:
    due, rest = read_when(text, now, only_day=True) if _DUE.search(text) else (UNSAID, text)
    if not tidy(rest):
        due, rest = UNSAID, text
    return Job((DemoTool.ADD_TASK,), tidy(rest), due) if tidy(rest) else None


def _list_tasks(said: str) -> Job:
    words = re.findall(r"\b(?:all|done|completed?|finished)\b", said.lower())
    status, scope = ("all", "") if "all" in words else ("done", "finished ") if words else ("open", "open ")
    return Job((DemoTool.LIST_TASKS,), lookup={"status": status}, scope=scope)


def _list_events(said: str, now: datetime) -> Job:
    today, words = now.date(), said.lower()
    monday = today - timedelta(days=today.weekday())
    first, days, scope = today, USUAL_DAYS, f"the next {USUAL_DAYS} days"
    if "next week" in words:
        first, scope = monday + timedelta(days=7), "next week"
    elif "this week" in words:
        first, scope = monday, "this week"
    elif day := read_when(said, now)[0].day:
        first, days, scope = day, 1, day_in_words(day, today)
    return Job((DemoTool.LIST_EVENTS,), lookup=whole_days(first, days, now), scope=scope)


def _move(said: str, now: datetime) -> Job | None:
    match = _MOVED_TO.match(said)
    to, left = read_when(f"at {match['to']}", now) if match else (UNSAID, "")
    if match is None or not (to.day or to.at) or _trimmed(left):
        return None
    return _on_event(DemoTool.UPDATE_EVENT, match["event"], to, now)


def _on_event(tool: DemoTool, said: str, to: When, now: datetime) -> Job | None:
    """The job on the event that words point to, such as `the Standup meeting tomorrow`."""
    when, rest = read_when(said, now)
    title = tidy(_POINTING.sub("", _trimmed(rest)))
    if not title and when == UNSAID:
        return None
    first, days, scope = now.date(), SEARCHED_DAYS, f"the next {SEARCHED_DAYS} days"
    if when.day:
        first, days, scope = when.day, 1, day_in_words(when.day, first)
    return Job((DemoTool.LIST_EVENTS, tool), title, when, to, whole_days(first, days, now), scope)


def _new_event(said: str, now: datetime) -> Job | None:
    title, when = read_event(said, now)
    return Job(_CREATE_EVENT, title, when) if _SURELY_EVENT.search(said) or (title and when.at) else None
