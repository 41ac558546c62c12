"""Turns what a server lists into tools. Pure: nothing that a server lists makes it fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.text import MaskText, clean, one_line, shorten, unchanged, without_known
from bot.schemas.measuring import problem_of
from graph.json_values import not_kept
from policies.model import Annotations, Lookup, Tool
from policies.trust import believed

MOST_TOOLS = 128
"""Tools of one server. More would not fit into a request to a model (OpenAI takes 128 functions)."""
LONGEST_DESCRIPTION = 1_024
"""Characters, OpenAI's limit on a function's description."""
LONGEST_TITLE = 100
"""Characters."""
LARGEST_SCHEMA = 65_536
"""Bytes of JSON. The schema goes to the model with every request."""
LARGEST_LISTING = 2 * 1024 * 1024
"""Bytes of JSON, of all that is read of one server's tools: 128 tools of 16 kB. Large servers list 0.2 MB."""
MOST_LISTED = 4 * MOST_TOOLS
"""Entries that are looked at: `tools` in mcp.json may choose among them."""
LONGEST_READ = 16_384
"""Characters of a title or description that are read; it is masked before it is cut to its length."""
MOST_REPORTED = 20
"""Withheld tools that are named with their reason; the others are counted."""
LARGEST_PASSED_ON = 1024 * 1024
"""Bytes of JSON, of all that of one server's tools is not read, but passed on. It costs no tool its place."""
_READ = ("name", "title", "description", "inputSchema", "annotations")
_PASSED_ON = ("outputSchema", "icons", "_meta", "execution")
"""What other agents are told of a tool besides."""
_TOO_LARGE = "tooLarge"
"""Our own key in an entry whose schema is not kept."""
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,128}")
"""SEP-986, with the slash that its first version had."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A server's tools as they are offered."""

    tools: tuple[Tool, ...]
    """The tools in the order of their names."""
    skipped: tuple[str, ...]
    """Sentences for the log and the health check: what was left out and why, and what is not there."""
    problem: str | None
    """Why none of them may be used; `None`: they may."""
    declared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Full name → the tool's entry in the server's list, as it was, without secrets."""


NOTHING_LISTED = ToolListing((), (), None)


def read_listing(server: ServerConfig, listed: Sequence[Any], *, mask: MaskText = unchanged) -> ToolListing:
    """Read the result of `tools/list`, as plain JSON. Nothing that is secret stays in them.

    Measures each schema, up to 30 ms of CPU: to be called in a thread.
    """

    def mask_all(text: str) -> str:
        return mask(without_known(clean(text), server.secrets))

    tools: dict[str, Tool] = {}
    declared: dict[str, Mapping[str, Any]] = {}
    skipped = []
    for entry in listed[:MOST_LISTED]:
        named = ascii(entry.get("name"))[:128] if isinstance(entry, Mapping) else "something"
        reason = _reason_to_skip(entry)
        if reason is None and server.tools is not None and entry["name"] not in server.tools:
            continue  # the operator left it out: nothing to report
        if reason is None and len(tools) == MOST_TOOLS:
            reason = f"a server may have {MOST_TOOLS} tools; choose some with `tools` in mcp.json"
        tool = None if reason else _tool(server, entry, mask_all)
        if tool and tool.full_name in tools:
            reason = "there is another one of that name"
        if tool is None or reason:
            skipped.append(f"{named} was left out: {reason}")
        else:
            tools[tool.full_name] = tool
            declared[tool.full_name] = _declared(tool, entry, mask_all)
    names = {tool.name for tool in tools.values()}
    skipped += [f"{name} is in `{key}`, but the server has no such tool" for key, name in _missing(server, names)]
    skipped += _not_reading(server, tools.values())
    if len(listed) > MOST_LISTED:
        skipped.append(f"{len(listed) - MOST_LISTED:,} tools after the first {MOST_LISTED} were not looked at")
    return ToolListing(
        tools=tuple(sorted(tools.values(), key=lambda tool: tool.name)),
        skipped=_first(skipped),
        problem=_problem(server.require_approval - names),
        declared=declared,
    )


def _declared(tool: Tool, entry: Mapping[str, Any], mask: MaskText) -> Mapping[str, Any]:
    said = {key: entry[key] for key in (*_READ, *_PASSED_ON) if key in entry}
    return {**masked_schema(said, mask), "name": tool.name, "inputSchema": tool.input_schema}


def _first(skipped: Sequence[str]) -> tuple[str, ...]:
    more = len(skipped) - MOST_REPORTED
    return (*skipped[:MOST_REPORTED], f"and {more:,} more") if more > 0 else tuple(skipped)


@dataclass(slots=True)
class ListingSpace:
    """How much more is kept of what a server lists, in bytes of JSON."""

    read: int = LARGEST_LISTING
    passed_on: int = LARGEST_PASSED_ON


def masked(listed: Sequence[Any], mask: MaskText, space: ListingSpace) -> list[Any]:
    """What a server lists without secrets, still to be read; the names stay, by which its tools are called.

    Only what is read of an entry, or passed on, is kept, and no more than there is `space` for, which is taken up.
    """
    kept: list[Any] = []
    for entry in listed:
        one = _masked_entry(entry, mask, space.read) if len(kept) < MOST_LISTED else None
        space.read -= size_of(one)
        if one is not None and _TOO_LARGE not in one:
            one |= _passed_on(entry, mask, space)
        kept.append(one)
    return kept


def _masked_entry(entry: Any, mask: MaskText, space_left: int) -> dict[str, Any] | None:
    if not isinstance(entry, Mapping):
        return None
    read = {key: entry[key] for key in _READ if key in entry}
    for key in ("title", "description"):
        if isinstance(read.get(key), str):
            read[key] = read[key][:LONGEST_READ]
    if isinstance(read.get("name"), str):
        read["name"] = read["name"][:LONGEST_READ]
    if size_of(read) > min(space_left, 2 * LARGEST_SCHEMA):
        return {"name": read.get("name") if isinstance(read.get("name"), str) else None, _TOO_LARGE: True}
    try:
        return {key: value if key == "name" else masked_schema(value, mask) for key, value in read.items()}
    except RecursionError:
        return {"name": read.get("name"), _TOO_LARGE: True}


def _passed_on(entry: Mapping[str, Any], mask: MaskText, space: ListingSpace) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key in _PASSED_ON:
        size = size_of(entry[key]) if key in entry else 0
        if size and size <= min(space.passed_on, LARGEST_SCHEMA) and not not_kept(entry[key]):
            space.passed_on -= size
            kept[key] = masked_schema(entry[key], mask)
    return kept


def _bare(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry without what is only passed on."""
    return {key: value for key, value in entry.items() if key not in _PASSED_ON}


def size_of(value: Any) -> int:
    """Bytes of JSON; more than the limit when it is no JSON."""
    try:
        return len(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return LARGEST_LISTING + 1


def _reason_to_skip(entry: Any) -> str | None:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        return "it has no name"
    if not _NAME.fullmatch(entry["name"]):
        return "its name holds more than letters, digits, . _ / and -"
    if entry.get(_TOO_LARGE) is True:
        return f"its input schema is larger than {LARGEST_SCHEMA:,} bytes or too deep, or all together are too large"
    schema = entry.get("inputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "its input schema does not describe an object"
    try:
        size = len(json.dumps(schema, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        return "its input schema is no JSON"
    if size > LARGEST_SCHEMA:
        return f"its input schema is larger than {LARGEST_SCHEMA:,} bytes"
    problem = problem_of(schema)
    return problem and f"its input schema {problem}"


def _tool(server: ServerConfig, entry: Mapping[str, Any], mask: MaskText) -> Tool:
    said = entry.get("annotations")
    said = said if isinstance(said, Mapping) else {}
    annotations = Annotations(
        read_only=_hint(said, "readOnlyHint"),
        destructive=_hint(said, "destructiveHint"),
        idempotent=_hint(said, "idempotentHint"),
        open_world=_hint(said, "openWorldHint"),
    )
    name = entry["name"]
    reads = name in server.read_only_tools or (server.trust_annotations and annotations.read_only is True)
    return Tool(
        server=server.name,
        name=name,
        title=one_line(mask(_text(said.get("title")) or _text(entry.get("title"))), LONGEST_TITLE),
        description=shorten(mask(_text(entry.get("description"))), LONGEST_DESCRIPTION),
        input_schema=masked_schema(entry["inputSchema"], mask),
        annotations=annotations,
        annotations_trusted=server.trust_annotations,
        requires_approval=name in server.require_approval,
        reads_only=name in server.read_only_tools,
        repeatable=name in server.idempotent_tools or reads,
        personal=server.auth == "oauth",
        category=server.category,
        lookups=_lookups(server, entry["inputSchema"]),
        preview_tool=server.preview_tools.get(name, ""),
        file_argument=server.file_arguments.get(name, ""),
        fingerprint=server.fingerprint,
    )


def _lookups(server: ServerConfig, schema: Mapping[str, Any]) -> dict[str, Lookup]:
    """Those of the arguments that the tool has."""
    properties = schema.get("properties")
    names = properties if isinstance(properties, Mapping) else {}
    return {argument: lookup for argument, lookup in server.lookups.items() if argument in names}


def masked_schema(schema: Any, mask: MaskText) -> Any:
    """A schema without secrets: in its texts, and in what it proposes for arguments that are called like secrets."""
    match schema:
        case str():
            masked = mask(schema)
            return masked if masked != clean(schema) else schema
        case Mapping():
            return {key: masked_schema(_proposing(key, part, mask), mask) for key, part in schema.items()}
        case list():
            return [masked_schema(part, mask) for part in schema]
        case _:
            return schema


def _proposing(key: str, part: Any, mask: MaskText) -> Any:
    """The arguments in `properties`, each with its default as it may be shown."""
    if key != "properties" or not isinstance(part, Mapping):
        return part
    return {name: _with_default(name, about, mask) for name, about in part.items()}


def _with_default(name: str, about: Any, mask: MaskText) -> Any:
    default = about.get("default") if isinstance(about, Mapping) else None
    if not isinstance(default, str | int | float):
        return about
    field = json.dumps({name: default}, ensure_ascii=False)
    if mask(field) == clean(field):
        return about
    return {key: value for key, value in about.items() if key != "default"}


def _hint(said: Mapping[str, Any], name: str) -> bool | None:
    value = said.get(name)
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _missing(server: ServerConfig, names: set[str]) -> Iterable[tuple[str, str]]:
    for key, wanted in (
        ("tools", server.tools or frozenset()),
        ("idempotentTools", server.idempotent_tools),
        ("readOnlyTools", server.read_only_tools),
        ("lookupTools", {lookup.tool for lookup in server.lookups.values()}),
        ("previewTools", {*server.preview_tools, *server.preview_tools.values()}),
        ("sourceTools", server.source_tools),
    ):
        for name in sorted(wanted - names):
            yield key, name


def _not_reading(server: ServerConfig, tools: Iterable[Tool]) -> Iterable[str]:
    """What is named to be called for cards, and may do more than read: there it is never called."""
    named = {
        **{lookup.tool: "lookupTools" for lookup in server.lookups.values()},
        **dict.fromkeys(server.preview_tools.values(), "previewTools"),
    }
    for tool in tools:
        if tool.name in named and not (tool.reads_only or believed(tool).read_only):
            yield f"{tool.name} is in `{named[tool.name]}`, but the server does not say that it only reads"


def _problem(unknown: Iterable[str]) -> str | None:
    # A misspelt name would leave a tool without the approval that the operator wants for it: so none may be used.
    names = ", ".join(sorted(unknown))
    return f"`requireApproval` in mcp.json names tools that it does not have: {names}" if names else None


REMEMBERED = ""
"""Stands for a person: listed for somebody before the last restart."""


@dataclass(slots=True)
class Catalogue:
    """What the people of one server were shown of its tools, together: each of them may see others.

    Whoever is shown fewer takes none away from the others.

    Kept is as much as is read of one listing (`MOST_LISTED` tools, `LARGEST_LISTING` bytes): a server may show each
    person others. Beyond that those are forgotten that were listed longest ago.
    """

    _entries: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _holders: dict[str, set[str]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """Returns the tools as they were listed last; those of whoever listed last come first."""
        return list(self._entries.values())

    def listed(self, person: str, listed: Sequence[Any]) -> None:
        """These are the tools that the person has now."""
        own: dict[str, Mapping[str, Any]] = {}
        for entry in listed:
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                own.setdefault(entry["name"], entry)
        for name in [name for name in self._entries if name not in own]:
            self.lacks(person, name)
        for name in own:
            self._holders.setdefault(name, set()).add(person)
        self._entries = own | {name: entry for name, entry in self._entries.items() if name not in own}
        space = ListingSpace()
        for number, (name, entry) in enumerate(list(self._entries.items())):
            bare = _bare(entry)
            space.read -= size_of(bare)
            space.passed_on -= size_of(entry) - size_of(bare)
            if number >= MOST_LISTED or space.read < 0:
                del self._entries[name], self._holders[name]
            elif space.passed_on < 0:
                self._entries[name] = bare

    def lacks(self, person: str, name: str) -> None:
        """The person does not have this tool; it is forgotten when nobody else has it."""
        holders = self._holders.get(name, set())
        holders.discard(person)
        if not holders and name in self._entries:
            del self._entries[name], self._holders[name]
