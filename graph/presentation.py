"""What people need to read a tool call: how its arguments are called, what they are, what its ids stand for.

Made once, when the call is asked for or begun, and kept with it: a card reads the same for everybody, and after the
server has changed its schema. It holds nothing that is needed to make the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_KNOWN = 200
"""Characters of the title of what an id stands for. Our own choice."""
LONGEST_SAID = 300
"""Characters of a preview tool's refusal that are kept. Our own choice."""
AskedAgain = Literal["", "changed", "not found out"]
ArgumentKind = Literal["text", "date", "time", "date-time", "yes-no", "number", "list", "other"]


class _Json(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PresentedArgument(_Json):
    """How one argument is shown."""

    title: str = ""
    """The server's own title of it; empty: none, or the server is not trusted."""
    kind: ArgumentKind = "other"


class KnownId(_Json):
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


PreviewProblem = Literal["", "nothing", "refused", "unavailable"]


class Preview(_Json):
    """What the call would change, as a read-only tool that the operator named says. Its words are a tool's."""

    before: Mapping[str, Any] = Field(default_factory=dict)
    after: Mapping[str, Any] = Field(default_factory=dict)
    """Empty: it says only how things are, or nothing is left afterwards."""
    hidden: int = 0
    """Entries of both that are not kept, since all together were too long."""
    digest: str = ""
    """SHA-256, hexadecimal, of all that is there before: when that is another at the time of the call, it is asked
    again. Empty: there is no preview."""
    source: str = ""
    """The tool that said so, as `{server} › {tool}`."""
    problem: PreviewProblem = ""
    """Why there is none: the tool knows of nothing to show, it refused (`said`), or it gave no answer in time; empty:
    there is one."""
    said: str = ""
    """The words with which it refused; as they came, at most `LONGEST_SAID` characters."""
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
    again: AskedAgain = ""
    """Why it was asked again although it had been approved: what the preview showed as before has changed since, or it
    could not be found out; empty: for another reason, or it was not."""

    def known_in(self, arguments: Mapping[str, Any]) -> dict[str, KnownId]:
        """Returns argument → what its id stands for, of those arguments that are still the ids which were described."""
        return {
            known.argument: known
            for known in self.known_ids
            if known.argument in arguments and _as_text(arguments[known.argument]) == known.value
        }

    def for_later(self) -> CallPresentation:
        """Returns what of it holds for the same call at another time, too: no preview, and nothing that is one
        person's alone."""
        return self.without_owned().model_copy(update={"preview": None, "again": ""})

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
