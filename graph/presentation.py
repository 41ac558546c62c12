"""What people need to read a tool call: how its arguments are called, what they are, what its ids stand for.

Made once, when the call is asked for or begun, and kept with it: a card reads the same for everybody, and after the
server has changed its schema. It holds nothing that is needed to make the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from policies.model import Tool
from policies.reasons import Reasons

LONGEST_KNOWN = 200
"""Characters of the title of what an id stands for. Our own choice."""
LONGEST_SAID = 300
"""Characters of a preview tool's refusal that are kept. Our own choice."""
AskedAgain = Literal["", "changed", "not found out"]

MOST_PRESENTED = 100
"""Arguments of a tool of which it is kept how they are shown; further ones are shown as they are. Our own choice."""
LONGEST_TITLE = 60
"""Characters of an argument's title; a longer one is none. Our own choice."""
MOST_CHOICES = 30
"""Values with a title that an argument has at most; of one with more no titles are kept. Our own choice."""
MAIN_ARGUMENTS = (
    "title",
    "name",
    "subject",
    "summary",
    "headline",
    "query",
    "question",
    "filename",
    "path",
    "url",
    "message",
    "text",
    "content",
)
"""Arguments that say best what a call is about, the best first."""
_PLAIN = re.compile(r"[^\W\d_][\w ,.'’()/&%+-]*")
"""A title that reads like one: letters first, and no quotation marks, colons or arrows, which tell values apart."""
_ID = re.compile(r"(?:.*_)?id")
_DEEPEST = 4
"""References and choices that are followed to what an argument is."""
_OUTERMOST = ("title", "type", "format")
_LEADING_ON = ("$ref", "anyOf", "oneOf", "allOf")

ArgumentKind = Literal["text", "date", "time", "date-time", "yes-no", "number", "list", "other"]


class KeptJson(BaseModel):
    """What crosses a restart as plain JSON. Fields that it does not know are left out: another version wrote them."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PresentedArgument(KeptJson):
    """How one argument is shown."""

    title: str = ""
    """The server's own title of it; empty: none, or the server is not trusted."""
    kind: ArgumentKind = "other"
    choices: Mapping[str, str] = Field(default_factory=dict)
    """Value → title of what can be chosen, by the schema of a trusted server; empty: it names none."""


class KnownId(KeptJson):
    """What an id among the arguments stands for, as something that was read says. Its words are a tool's: untrusted."""

    argument: str
    value: str
    """The id itself, as text: an edit to another one is not described by this."""
    title: str
    """Such as "Standup"; as it came, at most `LONGEST_KNOWN` characters."""
    hidden: int = 0
    """Characters of the title beyond these."""
    at: str = ""
    """Its time, a date or a date and time as ISO 8601 writes them, as it came; empty: none."""
    source: str
    """The tool whose result says so, as `{server} › {tool}`."""
    looked_up: bool = False
    """Whether it was looked up for the card; false: it is from a result of the same turn."""
    owner: str | None = None
    """Person id, where the result is that person's alone."""

    @property
    def text(self) -> str:
        """Title and time as they came."""
        return f"{self.title}, {self.at}" if self.at else self.title


PreviewProblem = Literal["", "nothing", "unreadable", "refused", "unavailable"]


class Preview(KeptJson):
    """What the call would change, as a read-only tool that the operator named says. Its words are a tool's."""

    before: Mapping[str, Any] = Field(default_factory=dict)
    after: Mapping[str, Any] = Field(default_factory=dict)
    """Empty: it says only how things are, or nothing is left afterwards."""
    hidden: int = 0
    """Entries that are kept of neither side, since all together were too long on one."""
    digest: str = ""
    """SHA-256, hexadecimal, of all that is there before: when that is another at the time of the call, it is asked
    again. Empty: there is no preview."""
    source: str = ""
    """The tool that said so, as `{server} › {tool}`."""
    problem: PreviewProblem = ""
    """Why there is none: the tool knows of nothing to show, its answer could not be read, it refused (`said`), or it
    gave no answer in time; empty: there is one."""
    said: str = ""
    """The words with which it refused; as they came, at most `LONGEST_SAID` characters."""
    owner: str | None = None
    """Person id, where it is that person's alone."""


class CallPresentation(KeptJson):
    """Everything that is kept to show a call."""

    trusted: bool = False
    """Whether the operator trusts what the server says of its own tools (`trustAnnotations`)."""
    main: str = ""
    """Name of the argument whose value stands in the title; empty: none."""
    time_zone: str = ""
    """IANA name of the zone in which its times are shown, the requester's: the same for all viewers. Empty: UTC."""
    year: int = 0
    """The calendar year there when it was asked: only of dates in other years the year is shown. 0: of all."""
    arguments: Mapping[str, PresentedArgument] = Field(default_factory=dict)
    """By name; those that are not here are shown as they are."""
    known_ids: tuple[KnownId, ...] = ()
    preview: Preview | None = None
    again: AskedAgain = ""
    """Why it was asked again although it had been approved: what the preview showed as before has changed since, or it
    could not be found out; empty: for another reason, or it was not."""
    reasons: Reasons | None = None
    """Why the policy has it asked about; `None`: it was asked by an earlier version, or not at all."""

    def known_in(self, arguments: Mapping[str, Any]) -> dict[str, KnownId]:
        """Returns argument → what its id stands for, of those arguments that are still the ids which were described."""
        return {
            known.argument: known
            for known in self.known_ids
            if known.argument in arguments and _as_text(arguments[known.argument]) == known.value
        }

    def for_later(self) -> CallPresentation:
        """Returns what of it holds for the same call at another time, too: no preview, nothing of why it was asked, and
        nothing that is one person's alone."""
        return self.without_owned().model_copy(update={"preview": None, "again": "", "reasons": None})

    def without_owned(self) -> CallPresentation:
        """Returns what of it may be shown to everybody: nothing that is one person's alone."""
        owned = self.preview is not None and self.preview.owner is not None
        if not owned and all(known.owner is None for known in self.known_ids):
            return self
        kept = tuple(known for known in self.known_ids if known.owner is None)
        return self.model_copy(update={"known_ids": kept, "preview": None if owned else self.preview})


def _as_text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


NOTHING_KNOWN = CallPresentation()
"""Of a call of which nothing was kept: its arguments are shown as they are."""


def presentation_of(tool: Tool, time_zone: str, now: float) -> CallPresentation:
    """Returns how calls of a tool are shown: what its arguments are, by its schema; what they are called, where its
    server is trusted. Raises nothing, whatever the schema is.

    Args:
        time_zone: IANA name of the requester's zone.
        now: seconds since the epoch.
    """
    trusted = tool.annotations_trusted
    properties = list(islice(_mapping(tool.input_schema.get("properties")).items(), MOST_PRESENTED))
    schemas = {str(name): _resolved(schema, tool.input_schema) for name, schema in properties}
    shown = {name: _presented(schema, trusted=trusted) for name, schema in schemas.items()}
    return CallPresentation(
        trusted=trusted,
        main=_main_of(shown, tool.input_schema.get("required")),
        time_zone=time_zone,
        year=_year(time_zone, now),
        arguments=shown,
    )


def zone_of(name: str) -> ZoneInfo | None:
    """Returns a time zone; `None` where there is none of that name. Empty: UTC."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):  # no name of a zone, a path, or a folder's
        return None


def is_id(name: str) -> bool:
    """Returns whether an argument of this name is an id: `id`, `event_id`, `eventId`."""
    return bool(_ID.fullmatch(name)) or name.endswith(("Id", "ID", "uuid"))


def _year(time_zone: str, now: float) -> int:
    try:
        return datetime.fromtimestamp(now, zone_of(time_zone) or UTC).year
    except (OverflowError, ValueError, OSError):
        return 0


def _main_of(arguments: Mapping[str, PresentedArgument], required: Any) -> str:
    """The argument whose value stands in the title: the first of `MAIN_ARGUMENTS` that is needed; else an id that is,
    which is shown by what is known of it; else the first that can be given. Deterministic."""
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    texts = [name for name in MAIN_ARGUMENTS if name in arguments and arguments[name].kind == "text"]
    ids = [name for name in arguments if name in needed and is_id(name)]
    return next(iter([*(name for name in texts if name in needed), *ids, *texts]), "")


def _presented(schema: Mapping[str, Any], *, trusted: bool) -> PresentedArgument:
    return PresentedArgument(
        title=_title(schema.get("title")) if trusted else "",
        kind=_kind_of(schema),
        choices=_choices(schema) if trusted else {},
    )


def _title(given: Any) -> str:
    """A title that can stand before a value; empty where it is none, or could be taken for something else."""
    if not isinstance(given, str) or len(given) > LONGEST_TITLE:
        return ""
    title = given.strip()
    return title if _PLAIN.fullmatch(title) and "  " not in title else ""


def _choices(schema: Mapping[str, Any]) -> dict[str, str]:
    """Value → title, where every value has one of its own."""
    options = next((each for key in ("oneOf", "anyOf") if isinstance(each := schema.get(key), list)), [])
    if not 0 < len(options) <= MOST_CHOICES:
        return {}
    named = [(_mapping(one).get("const"), _title(_mapping(one).get("title"))) for one in options]
    titles = {value: title for value, title in named if isinstance(value, str) and len(value) <= LONGEST_TITLE}
    different = {title.casefold() for title in titles.values()}
    return titles if len(titles) == len(options) == len(different) and "" not in different else {}


def _kind_of(schema: Mapping[str, Any]) -> ArgumentKind:
    match schema.get("type"), schema.get("format"):
        case "string", "date-time":
            return "date-time"
        case "string", "date":
            return "date"
        case "string", "time":
            return "time"
        case "string", _:
            return "text"
        case "boolean", _:
            return "yes-no"
        case (("integer" | "number"), _):
            return "number"
        case "array", _:
            return "list"
        case _:
            return "text" if _choices(schema) else "other"


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an argument: what a reference leads to, and the one thing that may stand beside null. The words
    that stand outermost count."""
    resolved = _read_of(_mapping(schema))
    for _ in range(_DEEPEST):
        inner = next(_inner(resolved, root), None)
        if inner is None:
            break
        outside = {key: value for key, value in resolved.items() if key in _OUTERMOST}
        resolved = {**_read_of(inner), **outside}
    kinds = resolved.get("type")
    if isinstance(kinds, list):
        beside_null = [kind for kind in kinds if kind != "null"]
        resolved = {**resolved, "type": beside_null[0] if len(beside_null) == 1 else None}
    return resolved


def _read_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schema says how its value is shown: the rest, which may be long, is not copied for every argument."""
    return {key: schema[key] for key in (*_OUTERMOST, *_LEADING_ON) if key in schema}


def _inner(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    match schema.get("$ref"):
        case str() as reference if reference.startswith(("#/$defs/", "#/definitions/")):
            _, group, *rest = reference.split("/", 2)
            yield _mapping(_mapping(root.get(group)).get("/".join(rest)))
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        if isinstance(options, list) and len(options) <= MOST_CHOICES:
            something = [one for one in map(_mapping, options) if one.get("type") != "null"]
            if len(something) == 1 and "const" not in something[0]:
                yield something[0]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
