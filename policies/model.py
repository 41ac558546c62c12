"""The words of a judgement: the tool, the call, the facts around it, and the verdict.

Everything here is plain data. Verdicts are pydantic models because an `Ask` is kept in the database and in the
graph's state as JSON and must come back as the same thing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from policies.conditions import Condition, Hours
from policies.values import Path, is_path


class Mode(StrEnum):
    """The ceiling on what the rules may allow (`AGENT_MODE`)."""

    READ_ONLY = "readOnly"
    DEFAULT = "default"
    SAFE_WRITE = "safeWrite"


_FROM_STRICT_TO_FREE = (Mode.READ_ONLY, Mode.SAFE_WRITE, Mode.DEFAULT)


def stricter_of(mode: Mode, named: str) -> Mode:
    """The stricter of a mode and of what somebody calls one. What is no mode's name counts as `readOnly`."""
    other = next((each for each in _FROM_STRICT_TO_FREE if each == named), Mode.READ_ONLY)
    return min(mode, other, key=_FROM_STRICT_TO_FREE.index)


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a tool server says of its tool (MCP `ToolAnnotations`); `None` means that it did not say."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """What says what an id stands for."""

    tool: str
    """A tool of the same server that only reads, by the server's name for it."""
    argument: str
    """The argument of that tool that takes the id."""


@dataclass(frozen=True)
class Tool:
    """One tool of one configured server, as the policy, the model and the cards know it."""

    server: str
    """The server's name in `mcp.json`; ours, never the server's own title."""
    name: str
    """The tool's name as its server calls it."""
    title: str = ""
    """The server's own title for people; shown after the configured name, never alone."""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the arguments."""
    annotations: Annotations = field(default_factory=Annotations)
    annotations_trusted: bool = False
    """`trustAnnotations` of the server: whether the operator believes `annotations`."""
    requires_approval: bool = False
    """Listed in the server's `requireApproval`: an allow becomes an ask."""
    reads_only: bool = False
    """The operator lists it as changing nothing (`readOnlyTools`), whatever its server says of it."""
    repeatable: bool = False
    """The operator lists it as idempotent (`idempotentTools`) or reading, or trusts that it only reads: it may be tried
    again without asking anybody."""
    personal: bool = False
    """Uses the account of the person it acts for: its results are that person's alone."""
    category: str = "general"
    """The tool type that the router picks by."""
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    """Argument → what says what an id in it stands for (`lookupTools`)."""
    preview_tool: str = ""
    """Name of the tool of the same server that says what a call would change (`previewTools`); empty: none does."""
    file_argument: str = ""
    """The argument that holds the id of a file of the conversation (`fileArguments`); empty: none does."""
    fingerprint: str = ""
    """Fingerprint of the server's configuration; an approval given for one configuration is void for another."""

    @property
    def full_name(self) -> str:
        """`{server}__{tool}`, at most 64 characters (OpenAI's limit on function names)."""
        return tool_name_for_model(self.server, self.name)

    @cached_property
    def schema_hash(self) -> str:
        """SHA-256 of the canonical input schema, hexadecimal."""
        return hashlib.sha256(canonical_json(dict(self.input_schema)).encode()).hexdigest()


def tool_name_for_model(server: str, tool: str) -> str:
    """The name the model calls a tool by: `{server}__{tool}`, shortened with a hash beyond 64 characters."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in f"{server}__{tool}")
    if len(name) <= 64 and name == f"{server}__{tool}":
        return name
    return f"{name[:55]}_{hashlib.sha256(f'{server}__{tool}'.encode()).hexdigest()[:8]}"


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, non-ASCII kept.

    Raises `TypeError` on non-JSON values, and `ValueError` on numbers that JSON cannot carry: a digest that is shown
    as `Infinity` must not be of a call that arrives as `null`.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to be judged."""

    tool: Tool
    arguments: Mapping[str, Any]
    quote: str = ""
    """The words of the requester that ask for this call, as the model quotes them."""


LONGEST_CLIENT = 100
"""Characters of the name of a program that calls, as far as it is kept."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when a call is judged. Gathered before; judging looks nothing up."""

    mode: Mode
    requester: str
    """Person id, such as `slack:T1:U2` or `web:ana`."""
    platform: str
    place: str
    """The channel or conversation, opaque; empty in a direct chat."""
    at: datetime
    """Aware, in UTC."""
    groups: Mapping[str, bool | None] = field(default_factory=dict)
    """Group reference → whether the requester is in it, and person id of another platform → whether that is the
    requester too; `None`: could not be found out."""
    client: str = ""
    """Name of the program that calls, as it calls itself (platform `mcp`); empty: our own agent calls."""
    agent: str = ""
    """Name of our own agent that calls, `default` where it is no other one; empty: a program calls."""
    agent_asks: bool = False
    """Whether this agent has to ask about the tool each time (`requireApproval` in `agents.yaml`)."""
    said: tuple[str, ...] = ()
    """What this requester wrote in this turn, without what they quoted (`policies.quoting.own_words`)."""


class _Verdict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    """Name of the rule that decided, or why no rule did."""
    source: str = ""
    """Where that rule stands, `policies/default.yaml:12` (file:line); empty where no rule decided."""
    version: str = ""
    """The first 12 hexadecimal digits of the SHA-256 of the policy's file."""


class Allow(_Verdict):
    """The call may run at once."""

    verdict: Literal["allow"] = "allow"
    reads: bool = False
    """The rule says that what it matches changes nothing."""


class Ask(_Verdict):
    """The call waits for people."""

    verdict: Literal["ask"] = "ask"
    reads: bool = False
    """The rule says that what it matches changes nothing."""
    approvers: tuple[str, ...] = ("requester",)
    """`requester`, `channel`, `any`, a person id, or a group reference; one of these suffices to be an approver."""
    self_approval: Literal["confirm", "fourEyes"] = "confirm"
    """`confirm`: the requester may approve; `fourEyes`: somebody else must."""
    quorum: int = Field(default=1, ge=1)
    """How many different people must approve."""
    expires_in: float | None = 24 * 3600.0
    """Seconds until the approval expires; `None`: never."""
    remind_after: float | None = None
    """Seconds after which those who may decide are reminded, once; `None`: never."""
    escalate_after: float | None = None
    """Seconds after which `escalate_to` may decide too; `None`: never."""
    escalate_to: tuple[str, ...] = ()
    """Person ids."""
    rejections: int = Field(default=1, ge=1)
    """How many different people must reject; 1: anybody's rejection is a veto."""
    always_allow: bool | None = None
    """Whether an approver may grant the same call to themselves for a while; `None`: unless the call destroys."""
    reason_required: bool = False
    """Whether a rejection must say why."""
    editable: tuple[str, ...] | None = None
    """Arguments that an approver may change; `None`: all of them."""
    route_to: tuple[str, ...] = ()
    """Places and people, on any platform, that get the card too: `slack:T1:C2`, `teams:{tenant}:{conversation}`."""


class Deny(_Verdict):
    """The call may not run."""

    verdict: Literal["deny"] = "deny"
    reason: str
    """A sentence for people, which the model can pass on."""


Verdict = Annotated[Allow | Ask | Deny, Field(discriminator="verdict")]


class Risk(StrEnum):
    """What a call may do to the world, in the words shown on a card."""

    READS = "reads"
    WRITES = "writes"
    DESTROYS = "destroys"
    REACHES_OUTSIDE = "reaches outside"


# ----------------------------------------------------------------- match: which calls a rule is about


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, or a path into the arguments, and what must be there."""

    key: str
    """The argument's name, or a JSON path (`$.attendees[*].email`)."""
    condition: Condition
    path: Path | None = None
    """The path that `key` is; `None`: it is a name."""

    @staticmethod
    def of(key: str, condition: Condition) -> Argument:
        """Raises `ValueError` where the key begins like a path and is none."""
        return Argument(key, condition, Path(key) if is_path(key) else None)


@dataclass(frozen=True, slots=True)
class Match:
    """Which calls a rule is about. A field that is `None` (or empty) fits every call; all given fields must fit."""

    server: str | None = None
    """The server's name in `mcp.json`."""
    tool: str | None = None
    """Glob over the tool's name as its server calls it (`*`, `?`, `[abc]`; case counts)."""
    command: str | None = None
    """Glob over the words, in lower case, of a command-shaped tool's command before its first option."""
    args: tuple[Argument, ...] = ()
    reads: bool | None = None
    """Whether the call is known to change nothing: by the operator's list, a trusted server, or its command."""
    annotations: Mapping[str, bool] = field(default_factory=dict)
    """MCP hint → its value; fits nothing on servers whose annotations the operator does not trust."""
    mode: Mode | None = None
    platform: str | None = None
    channel: str | None = None
    """Glob over the place's channel (`slack:T1:C2`, `teams:{tenant}:{conversation}`); a direct chat is no channel."""
    client: tuple[str, ...] = ()
    """Globs over the name of the program that calls, in any case; one must fit. Our own agent's calls fit none."""
    agent: tuple[str, ...] = ()
    """Globs over the name of our own agent that calls; one must fit. A program's calls fit none."""
    requester: tuple[str, ...] = ()
    """Person ids and group references; the requester must be or belong to one of them."""
    time: Hours | None = None

    @property
    def names_tools(self) -> bool:
        """Whether it picks calls by server, tool or command, rather than taking any tool that happens to come along."""
        return (
            self.server is not None
            or (self.tool is not None and self.tool.strip("*?") != "")
            or (self.command is not None and self.command.strip("*? ") != "")
        )


# ------------------------------------------------------------ references to people, groups and places

SERVER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
"""What a server may be called in `mcp.json`; never with `__` in it, which makes `{server}__{tool}` unmistakable."""
_SLACK = re.compile(r"[A-Z0-9]+:[A-Z0-9]+")
_ENTRA = re.compile(r"[0-9A-Za-z._-]+:[0-9A-Za-z._-]+")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
PERSON_ID_FORMS: Mapping[str, re.Pattern[str]] = {"slack": _SLACK, "teams": _ENTRA, "web": re.compile(r"[^\s:]+")}
"""Platform → what follows it in a person id: workspace and user, tenant and object id, name."""
PLATFORMS = (*PERSON_ID_FORMS, "api", "mcp")
"""Where a turn may be begun (`Facts.platform`). People of programs are `web` people: their turns alone are `api`, and
the calls of other agents are `mcp`."""
GROUP_ID_FORMS: Mapping[str, re.Pattern[str]] = {"slack-group": _SLACK, "entra-group": _ENTRA}
"""Directory → what follows it in a group reference: workspace or tenant, and the group's id."""
PLACE_ID_FORMS: Mapping[str, re.Pattern[str]] = {"slack": _SLACK, "teams": re.compile(r"[0-9A-Za-z._-]+:\S+")}
"""Platform → what follows it in the reference of a channel, a chat or somebody's direct messages."""


def normal(reference: str, forms: Mapping[str, re.Pattern[str]]) -> str | None:
    """A reference as platforms write it; `None`: it has none of these forms.

    GUIDs are in lower case there, while some of Microsoft's tools write them in upper case.
    """
    kind, _, rest = reference.partition(":")
    if kind not in forms or not forms[kind].fullmatch(rest):
        return None
    return f"{kind}:{with_guids_as_platforms_write_them(rest)}"


def with_guids_as_platforms_write_them(text: str) -> str:
    """A text with its GUIDs in lower case."""
    return _GUID.sub(lambda guid: guid[0].lower(), text)


def is_group(reference: str) -> bool:
    """Whether a reference names a group (`slack-group:T1:S1`, `entra-group:…`) rather than a person."""
    kind, colon, _ = reference.partition(":")
    return bool(colon) and kind.endswith("-group")


def home_of(person: str) -> str:
    """Where a person is: the workspace of `slack:T1:U2`, the tenant of a Teams person, `web`."""
    return person.rpartition(":")[0]


_OF_AN_ISSUER = re.compile(r"(web:oidc\.[0-9a-f]{8})\.[0-9a-f]{24}")


def realm_of(person: str) -> str:
    """Within what somebody vouches that a human has one account: the workspace, the tenant, the issuer at which people
    of the page sign in (`web:oidc.0123abcd`); `web` for users and local people.

    Of two accounts on the page that two of these have given out nobody knows whether they are one human's.
    """
    found = _OF_AN_ISSUER.fullmatch(person)
    return found[1] if found else home_of(person)
