"""What the gateway is told of a caller, and what it tells of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from bot.domain import Person


@dataclass(frozen=True, slots=True)
class GatewayCaller:
    """For whom, and by which program, a tool is called."""

    person: Person
    accounts: frozenset[str]
    """All person ids of the same human, this one included, as far as platforms vouch for them."""
    client: str
    """Name of the program, as it calls itself: MCP's `clientInfo.name`, in one line, at most 100 characters."""


@dataclass(frozen=True, slots=True)
class GatewayResult:
    """What came of a call, for the program."""

    is_error: bool
    text: str = ""
    """A sentence of ours, for a model: why the call was not made, or with what changes it was; else empty."""
    content: Sequence[Mapping[str, Any]] = ()
    """MCP content blocks, as the server returned them."""
    structured: Mapping[str, Any] | None = None
    """`structuredContent`, likewise."""
    changed: bool = False
    """Whether somebody approved it with other arguments."""


def result_json(result: GatewayResult) -> dict[str, Any]:
    """Returns a result as JSON, with which `GatewayResult` can be made again."""
    # Not `asdict`: it copies all that was returned.
    return {each.name: getattr(result, each.name) for each in fields(result)}


@dataclass(frozen=True, slots=True)
class GatewayWait:
    """What a call waits for."""

    kind: Literal["approval", "sign_in", "question", "outcome"]
    text: str
    """One sentence for a model: what is waited for, of whom, and where they are asked."""
    subject: str
    """Id of the approval, sign-in, question or attempt."""
    so_far: str = ""
    """How far the call is meanwhile, to follow a semicolon."""


@dataclass(frozen=True, slots=True)
class GatewayCallView:
    """A call as it stands."""

    gateway_call_id: str
    server: str
    tool: str
    status: Literal["running", "waiting", "ended"]
    begun_at: float
    changed_at: float
    handed_at: float | None = None
    """Since when its result is on its way to a client; `None`: it is on its way to none."""
    waits_for: GatewayWait | None = None
    """`None` unless it waits."""
    result: GatewayResult | None = None
    """`None` unless it has ended, and the result is still kept."""
    cancelled: bool = False
    """Whether its caller has taken it back."""
    task_seconds: float | None = None
    """Seconds that its result is kept for as a task; `None`: no task was asked for."""
    is_stopped: bool = False
    """Whether it has not ended, and nothing comes of it until an operator lets everything go on."""


@dataclass(frozen=True, slots=True)
class GatewayRefusal:
    """Why no call was begun; nothing was recorded."""

    text: str
    """One sentence for a model."""
    kind: Literal["bad_arguments", "too_many", "busy", "stopped"]
