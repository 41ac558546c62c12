"""What comes of what a person does in Slack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.slack_transports import Answer, Json


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of something that a person did."""

    answers: tuple[Answer, ...] = ()
    """What the app answered to each request; empty when Slack had nothing to tell it."""
    events: tuple[Json, ...] = ()
    """The events that told it, to be sent again."""

    @property
    def status(self) -> int:
        """The worst of the answers."""
        return max((answer.status for answer in self.answers), default=0)

    @property
    def json(self) -> Any:
        """The body of the last answer."""
        return self.answers[-1].json if self.answers else None


@dataclass(frozen=True, kw_only=True)
class Said(Done):
    """A message was written, or a thread of the assistant was begun."""

    channel: str
    ts: str
    message: Json


@dataclass(frozen=True, kw_only=True)
class Clicked(Done):
    """Something was clicked, or a command or shortcut was used."""

    payload: Json
    trigger_id: str
    response_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Submitted(Done):
    """A modal was submitted."""

    payload: Json
    view: Json | None = None
    """The modal that is visible afterwards; `None`: it was the last one and has closed."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What the modal shows beside its inputs, by block_id."""
