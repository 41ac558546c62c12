"""Turns what a server lists into the house's tools. Pure: nothing that a server lists makes it fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from adapters.tool_servers.config import ServerConfig
from adapters.tool_servers.redaction import Redact, unchanged, without_known
from adapters.tool_servers.text import clean, one_line, shorten
from policies.model import Annotations, Tool

MOST_TOOLS = 128
"""Tools of one server. More would not fit into a request to a model (OpenAI takes 128 functions)."""

LONGEST_DESCRIPTION = 1_024
"""Characters, OpenAI's limit on a function's description."""

LONGEST_TITLE = 100
"""Characters."""

LARGEST_SCHEMA = 65_536
"""Bytes of JSON. The schema goes to the model with every request."""

_NAME = re.compile(r"[A-Za-z0-9._/-]{1,128}")
"""SEP-986, with the slash that its first version had."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools as the house uses them."""

    tools: tuple[Tool, ...]
    """In the order of their names."""
    skipped: tuple[str, ...]
    """Sentences for the log: what was left out and why."""
    problem: str | None
    """Why none of them may be used; `None`: they may."""


def read_listing(server: ServerConfig, listed: Sequence[Any], *, redact: Redact = unchanged) -> Listing:
    """Read the result of `tools/list`, as plain JSON. Nothing that is secret stays in what the house is told."""
    mask = partial(_without_secrets, server, redact)
    tools: dict[str, Tool] = {}
    skipped = []
    for entry in listed:
        named = ascii(entry.get("name"))[:128] if isinstance(entry, Mapping) else "something"
        reason = _reason_to_skip(entry)
        if reason is None and server.tools is not None and entry["name"] not in server.tools:
            continue  # the operator left it out: nothing to report
        if reason is None and len(tools) == MOST_TOOLS:
            reason = f"a server may have {MOST_TOOLS} tools; choose some with `tools` in mcp.json"
        tool = None if reason else _tool(server, entry, mask)
        if tool and tool.full_name in tools:
            reason = "there is another one of that name"
        if tool is None or reason:
            skipped.append(f"{named} was left out: {reason}")
        else:
            tools[tool.full_name] = tool
    names = {tool.name for tool in tools.values()}
    skipped += [f"{name} is in `{key}`, but the server has no such tool" for key, name in _missing(server, names)]
    return Listing(
        tools=tuple(sorted(tools.values(), key=lambda tool: tool.name)),
        skipped=tuple(skipped),
        problem=_problem(server.require_approval - names),
    )


def masked(listed: Sequence[Any], mask: Redact) -> list[Any]:
    """What a server lists without secrets, still to be read; the names stay, by which its tools are called."""
    return [_masked_entry(entry, mask) for entry in listed]


def _masked_entry(entry: Any, mask: Redact) -> Any:
    if not isinstance(entry, Mapping):
        return None
    try:
        return {key: value if key == "name" else masked_schema(value, mask) for key, value in entry.items()}
    except RecursionError:
        return {"name": entry.get("name")}  # without a schema it is left out


def _reason_to_skip(entry: Any) -> str | None:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        return "it has no name"
    if not _NAME.fullmatch(entry["name"]):
        return "its name holds more than letters, digits, . _ / and -"
    schema = entry.get("inputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "its input schema does not describe an object"
    try:
        size = len(json.dumps(schema).encode())
    except (TypeError, ValueError, RecursionError):
        return "its input schema is no JSON"
    if size > LARGEST_SCHEMA:
        return f"its input schema is larger than {LARGEST_SCHEMA:,} bytes"
    from adapters.tool_servers.arguments import schema_problem  # noqa: PLC0415 - it brings jsonschema, see `life`

    return schema_problem(schema)


def _without_secrets(server: ServerConfig, redact: Redact, text: str) -> str:
    return redact(without_known(clean(text), server.secrets))


def _tool(server: ServerConfig, entry: Mapping[str, Any], mask: Redact) -> Tool:
    said = entry.get("annotations")
    said = said if isinstance(said, Mapping) else {}
    annotations = Annotations(
        read_only=_hint(said, "readOnlyHint"),
        destructive=_hint(said, "destructiveHint"),
        idempotent=_hint(said, "idempotentHint"),
        open_world=_hint(said, "openWorldHint"),
    )
    name = entry["name"]
    only_reads = server.trust_annotations and annotations.read_only is True
    return Tool(
        server=server.name,
        name=name,
        title=one_line(mask(_text(said.get("title")) or _text(entry.get("title"))), LONGEST_TITLE),
        description=shorten(mask(_text(entry.get("description"))), LONGEST_DESCRIPTION),
        input_schema=masked_schema(entry["inputSchema"], mask),
        annotations=annotations,
        annotations_trusted=server.trust_annotations,
        requires_approval=name in server.require_approval,
        repeatable=name in server.idempotent_tools or only_reads,
        personal=server.auth == "oauth",
        category=server.category,
        fingerprint=server.fingerprint,
    )


def masked_schema(schema: Any, mask: Redact) -> Any:
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


def _proposing(key: str, part: Any, mask: Redact) -> Any:
    """The arguments in `properties`, each with its default as it may be shown."""
    if key != "properties" or not isinstance(part, Mapping):
        return part
    return {name: _with_default(name, about, mask) for name, about in part.items()}


def _with_default(name: str, about: Any, mask: Redact) -> Any:
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
    for key, wanted in (("tools", server.tools or frozenset()), ("idempotentTools", server.idempotent_tools)):
        for name in sorted(wanted - names):
            yield key, name


def _problem(unknown: Iterable[str]) -> str | None:
    # A misspelt name would leave a tool without the approval that the operator wants for it: so none may be used.
    names = ", ".join(sorted(unknown))
    return f"`requireApproval` in mcp.json names tools that it does not have: {names}" if names else None
