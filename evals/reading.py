"""The set as it is written (YAML), or an error with the file, the line and the reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from evals.conditions import (
    Absent,
    At,
    AtLeast,
    AtMost,
    Condition,
    IdOf,
    Includes,
    Like,
    OnDay,
    OneOf,
    Same,
)
from evals.conversations import (
    Conversation,
    EvalSet,
    ExpectedCall,
    Given,
    GivenDocument,
    GivenEvent,
    GivenFile,
    GivenTask,
    Injection,
    Said,
    Verdict,
    WantedArgument,
    WantedId,
)
from evals.dates import FORMS, Moment, read_moment
from policies.yaml_values import (
    LineError,
    Located,
    child,
    choice,
    flag,
    mapping,
    not_empty,
    only_keys,
    read_yaml,
    text,
    versioned_list,
)

VERSION = 1
"""The only version of the files that there is."""
SET = Path(__file__).parent / "set"
CONVERSATIONS, INJECTIONS, POLICY = "conversations", "injections", "policy.yaml"
"""The folders with files of each kind, and the file of the policy, in the folder of a set."""
SERVERS = ("calendar", "tasks", "documents")
"""The bundled tool servers, which all conversations have."""
VERDICTS: tuple[Verdict, ...] = ("asked", "allowed", "refused")
KINDS = ("event", "task", "document")
PLACEHOLDER = re.compile(r"\{(today|tomorrow|in \d{1,3} days)\}")
"""A day in what people say: it is said as `3 December`."""
INJECTED = "{injection}"
"""Where the text of an injection stands in what is given."""
_TOOL = re.compile(rf"(?:{'|'.join(SERVERS)})\.[a-z_]+")
_T = TypeVar("_T")


class SetError(Exception):
    """Something is wrong with a file of the set."""

    def __init__(self, file: Path, line: int | None, reason: str) -> None:
        super().__init__(f"{file}, line {line}: {reason}" if line else f"{file}: {reason}")


def load_set(folder: Path = SET) -> EvalSet:
    """Everything in the folder of a set. Raises `SetError`."""
    policy = folder / POLICY
    fingerprint = hashlib.sha256(_bytes(policy))
    conversations = _read_files(folder / CONVERSATIONS, "conversations", _conversation, fingerprint.update)
    injections = _read_files(folder / INJECTIONS, "injections", _injection, fingerprint.update)
    return EvalSet(conversations, injections, fingerprint.hexdigest()[:12])


def _read_files(folder: Path, key: str, read: Callable[[Located], _T], count: Callable[[bytes], None]) -> Sequence[_T]:
    found: dict[str, _T] = {}
    for file in sorted(folder.glob("*.yaml")):
        written = _bytes(file)
        count(written)
        try:
            _read_list(written.decode("utf-8-sig"), key, read, found)
        except LineError as fault:
            raise SetError(file, fault.line, fault.reason) from None
        except UnicodeDecodeError:
            raise SetError(file, None, "is not UTF-8 text") from None
    return list(found.values())


def _read_list(written: str, key: str, read: Callable[[Located], _T], found: dict[str, _T]) -> None:
    """Add what stands in one file."""
    root = read_yaml(written)
    if root is None:
        raise LineError(1, f"the file is empty: write at least “version: {VERSION}” and “{key}: []”")
    for node in versioned_list(root, key, VERSION, f"a file of {key}"):
        name = text(child(mapping(node, f"each of {key}"), "name", node), "name")
        if name in found:
            raise LineError(node.line, f"the name “{name}” is taken: results tell {key} by it")
        found[name] = read(node)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SetError(file, None, f"cannot be read: {error.strerror or error}") from error


def _conversation(node: Located) -> Conversation:
    entries = mapping(node, "a conversation")
    only_keys(entries, {"name", "given", "messages"}, "a conversation")
    given = _given(entries.get("given"))
    said = [_said(each) for each in _filled(child(entries, "messages", node), "messages")]
    return Conversation(text(entries["name"], "name"), given, said, _fingerprint(node))


def _injection(node: Located) -> Injection:
    entries = mapping(node, "an injection")
    only_keys(entries, {"name", "text", "given", "say", "files", "tries"}, "an injection")
    injected = text(child(entries, "text", node), "text")
    tries = mapping(child(entries, "tries", node), "tries")
    only_keys(tries, {"tool", "arguments"}, "tries")
    arguments = mapping(child(tries, "arguments", entries["tries"]), "arguments")
    if INJECTED not in json.dumps(node.plain(), ensure_ascii=False):
        raise LineError(node.line, f"{INJECTED} stands nowhere: it says where in “given” or “files” the text is")
    return Injection(
        name=text(entries["name"], "name"),
        text=injected,
        given=_given(entries.get("given"), injected),
        said=Said(_spoken(child(entries, "say", node)), _files(entries.get("files"), injected)),
        tool=_tool(child(tries, "tool", entries["tries"])),
        arguments={name: _wanted_argument(each) for name, each in arguments.items()},
        fingerprint=_fingerprint(node),
    )


def _fingerprint(node: Located) -> str:
    written = json.dumps(node.plain(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()[:12]


# --------------------------------------------------------------------------------------- what there is before


def _given(node: Located | None, injected: str = "") -> Given:
    if node is None:
        return Given()
    entries = not_empty(node, "given")
    only_keys(entries, {"events", "tasks", "documents"}, "given")

    def of_kind(key: str, read: Callable[[Located, str], _T]) -> list[_T]:
        return [read(each, injected) for each in _filled(entries[key], key)] if key in entries else []

    return Given(of_kind("events", _event), of_kind("tasks", _task), of_kind("documents", _document))


def _event(node: Located, injected: str) -> GivenEvent:
    entries = mapping(node, "an event")
    only_keys(entries, {"title", "start", "end", "calendar", "location", "attendees"}, "an event")
    written = _texts_of(entries, injected)
    attendees = [_inject(text(each, "an attendee"), injected) for each in _list(entries.get("attendees"), "attendees")]
    calendar = choice(entries["calendar"], "calendar", ("primary", "team")) if "calendar" in entries else "primary"
    start, end = (_moment(child(entries, key, node), key, with_time=True) for key in ("start", "end"))
    return GivenEvent(
        title=written("title", node), start=start, end=end, calendar=calendar,
        location=written("location"), attendees=tuple(attendees),
    )  # fmt: skip


def _task(node: Located, injected: str) -> GivenTask:
    entries = mapping(node, "a task")
    only_keys(entries, {"title", "due", "notes", "done"}, "a task")
    written = _texts_of(entries, injected)
    due = _moment(entries["due"], "due", with_time=False) if "due" in entries else None
    is_done = flag(entries["done"], "done") if "done" in entries else False
    return GivenTask(title=written("title", node), due=due, notes=written("notes"), is_done=is_done)


def _document(node: Located, injected: str) -> GivenDocument:
    entries = mapping(node, "a document")
    only_keys(entries, {"name", "text"}, "a document")
    written = _texts_of(entries, injected)
    return GivenDocument(written("name", node), written("text", node))


def _files(node: Located | None, injected: str = "") -> Sequence[GivenFile]:
    files = []
    for each in _list(node, "files"):
        entries = mapping(each, "a file")
        only_keys(entries, {"name", "text"}, "a file")
        written = _texts_of(entries, injected)
        files.append(GivenFile(written("name", each), written("text", each)))
    return files


def _texts_of(entries: Mapping[str, Located], injected: str) -> Callable[..., str]:
    def written(key: str, parent: Located | None = None) -> str:
        if parent is None and key not in entries:
            return ""
        node = entries[key] if parent is None else child(entries, key, parent)
        return _inject(text(node, key), injected)

    return written


def _inject(written: str, injected: str) -> str:
    return written.replace(INJECTED, injected)


# --------------------------------------------------------------------------------------- what has to come of it


def _said(node: Located) -> Said:
    entries = mapping(node, "a message")
    only_keys(entries, {"say", "files", "calls", "unclear", "answer", "not_in_answer"}, "a message")
    return Said(
        text=_spoken(child(entries, "say", node)),
        files=_files(entries.get("files")),
        calls=[_call(each) for each in _list(entries.get("calls"), "calls")],
        unclear=_spoken(entries["unclear"]) if "unclear" in entries else "",
        answer=[_pattern(each) for each in _list(entries.get("answer"), "answer")],
        not_in_answer=[_pattern(each) for each in _list(entries.get("not_in_answer"), "not_in_answer")],
    )


def _spoken(node: Located) -> str:
    said = text(node, "what is said")
    unknown = re.search(r"\{[^}]*\}?", PLACEHOLDER.sub("", said))
    if unknown:
        raise LineError(node.line, f"“{unknown[0]}” is no day that is known here: write {{tomorrow}} or {{in 5 days}}")
    return said


def _call(node: Located) -> ExpectedCall:
    entries = mapping(node, "a call")
    only_keys(entries, {"tool", "verdict", "arguments", "rejected"}, "a call")
    verdict: Verdict = choice(child(entries, "verdict", node), "verdict", VERDICTS)
    if "rejected" in entries and verdict != "asked":
        raise LineError(entries["rejected"].line, "only what people are asked about can be rejected")
    arguments = mapping(entries["arguments"], "arguments") if "arguments" in entries else {}
    return ExpectedCall(
        tool=_tool(child(entries, "tool", node)),
        verdict=verdict,
        arguments={name: _condition(each) for name, each in arguments.items()},
        rejected=text(entries["rejected"], "rejected") if "rejected" in entries else "",
    )


def _tool(node: Located) -> str:
    name = text(node, "tool")
    if not _TOOL.fullmatch(name):
        raise LineError(node.line, f"“{name[:60]}” is no tool: write calendar.create_event (of {', '.join(SERVERS)})")
    return name


def _condition(node: Located) -> Condition:
    if isinstance(node.value, str | bool | int | float):
        return Same(node.value)
    entries = mapping(node, "what an argument has to be")
    if len(entries) != 1:
        raise LineError(node.line, f"say one thing of an argument: a value, or one of {', '.join(_CONDITIONS)}")
    only_keys(entries, _CONDITIONS, "what an argument has to be")
    ((key, value),) = entries.items()
    return _CONDITIONS[key](value)


def _absent(node: Located) -> Condition:
    if not flag(node, "absent"):
        raise LineError(node.line, "absent is true, or it is left out")
    return Absent()


_CONDITIONS: Mapping[str, Callable[[Located], Condition]] = {
    "like": lambda node: Like(_pattern(node)),
    "at": lambda node: At(_moment(node, "at", with_time=True)),
    "at_most": lambda node: AtMost(_moment(node, "at_most")),
    "at_least": lambda node: AtLeast(_moment(node, "at_least")),
    "day": lambda node: OnDay(_moment(node, "day", with_time=False)),
    "event": lambda node: IdOf("event", text(node, "event")),
    "task": lambda node: IdOf("task", text(node, "task")),
    "document": lambda node: IdOf("document", text(node, "document")),
    "includes": lambda node: Includes([_pattern(each) for each in _filled(node, "includes")]),
    "absent": _absent,
    "optional": lambda node: OneOf([Absent(), _condition(node)]),
    "any": lambda node: OneOf([_condition(each) for each in _filled(node, "any")]),
}


def _wanted_argument(node: Located) -> WantedArgument:
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, list):
        return tuple(text(each, "each of a list") for each in node.value)
    entries = mapping(node, "an argument that an injection wants")
    only_keys(entries, {"at", *KINDS}, "an argument that an injection wants")
    if len(entries) != 1:
        raise LineError(node.line, f"say one thing of an argument: a text, or one of at, {', '.join(KINDS)}")
    ((key, value),) = entries.items()
    return _moment(value, key, with_time=True) if key == "at" else WantedId(key, text(value, key))


def _pattern(node: Located) -> re.Pattern[str]:
    written = text(node, "a pattern")
    try:
        return re.compile(written, re.IGNORECASE)
    except re.error as error:
        raise LineError(node.line, f"“{written[:60]}” is no regular expression: {error}") from None


def _moment(node: Located, what: str, *, with_time: bool | None = None) -> Moment:
    try:
        moment = read_moment(text(node, what))
    except ValueError as error:
        raise LineError(node.line, str(error)) from None
    if with_time is not None and (moment.at is not None) != with_time:
        wanted = "a day with a time" if with_time else "a day without a time"
        raise LineError(node.line, f"{what} has to be {wanted}: {FORMS}")
    return moment


def _list(node: Located | None, what: str) -> Sequence[Located]:
    return [] if node is None else _filled(node, what)


def _filled(node: Located, what: str) -> Sequence[Located]:
    if not isinstance(node.value, list) or not node.value:
        raise LineError(node.line, f"{what} must be a list with something in it")
    listed: list[Located] = node.value
    return listed


def in_words(said: str, at: Callable[[Moment], str]) -> str:
    """What a person says, with its days. `at`: how a day is said."""
    return PLACEHOLDER.sub(lambda found: at(read_moment(found[1])), said)
