"""Typed inputs of a form: what a clarification may ask for, and what an edited call is made of."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class FieldType(StrEnum):
    """The kinds of input that every platform can draw."""

    TEXT = "text"
    CHOICE = "choice"
    DATE = "date"
    """ISO 8601 date, `2026-11-21`."""
    TIME = "time"
    """24-hour `HH:MM`."""
    DATE_TIME = "date-time"
    """ISO 8601 local date and time, `2026-11-21T09:00`, or with an offset where the schema wants one."""
    NUMBER = "number"
    INTEGER = "integer"
    YES_NO = "yes-no"
    PERSON = "person"
    """A user of the chat platform, by the platform's own id; a text input where there is no picker."""
    CHANNEL = "channel"
    """A channel of the chat platform, likewise."""
    JSON = "json"
    """Anything nested, typed as JSON text."""


class FormField(BaseModel):
    """One input of a form."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = Field(min_length=1, max_length=100)
    label: str = ""
    type: FieldType = FieldType.TEXT
    required: bool = True
    options: tuple[str, ...] = ()
    """For `choice`: what may be chosen; a `choice` without options is a text input. For `json`: the value is a list of
    some of these, and a platform that can draw that may send the list itself."""
    help: str = ""
    multiline: bool = False
    default: Any = None
