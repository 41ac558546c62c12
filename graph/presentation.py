"""What people need to read a tool call: how its arguments are called, what they are, what its ids stand for.

Made once, when the call is asked for or begun, and kept with it: a card reads the same for everybody, and after the
server has changed its schema. It holds nothing that is needed to make the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ArgumentKind = Literal["text", "date", "time", "date-time", "yes-no", "number", "list", "other"]


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PresentedArgument(_Json):
    """How one argument is shown."""

    title: str = ""
    """The server's own title of it; empty: none, or the server is not trusted."""
    kind: ArgumentKind = "other"


class KnownId(_Json):
    """What an id among the arguments stands for, as something that was read says."""

    argument: str
    value: str
    """The id itself: an edit to another one is not described by this."""
    text: str
    """Such as "Standup, Sun 22 Nov, 9:00"."""
    source: str
    """The tool whose result says so, as `{server}: {tool}`."""
    looked_up: bool = False
    """Whether it was looked up for the card; false: it is from a result of the same turn."""
    owner: str | None = None
    """Person id, where the result is that person's alone."""


class Preview(_Json):
    """What the call would change, as a read-only tool that the operator named says."""

    before: Mapping[str, Any] = Field(default_factory=dict)
    after: Mapping[str, Any] = Field(default_factory=dict)
    digest: str = ""
    """Of what was shown as before: when that is another at the time of the call, it is asked again."""
    source: str = ""
    """The tool that said so, as `{server}: {tool}`."""
    problem: str = ""
    """Why there is none, in words; empty: there is one."""
    owner: str | None = None
    """Person id, where it is that person's alone."""


class CallPresentation(_Json):
    """Everything that is kept to show a call."""

    trusted: bool = False
    """Whether the operator trusts what the server says of its own tools (`trustAnnotations`)."""
    main: str = ""
    """Name of the argument whose value stands in the title; empty: none."""
    time_zone: str = ""
    """IANA name of the zone in which its times are shown, the requester's: the same for all viewers. Empty: UTC."""
    arguments: Mapping[str, PresentedArgument] = Field(default_factory=dict)
    """By name; those that are not here are shown as they are."""
    known_ids: tuple[KnownId, ...] = ()
    preview: Preview | None = None


NOTHING_KNOWN = CallPresentation()
"""Of a call of which nothing was kept: its arguments are shown as they are."""
