"""Kinds of arguments that the bundled servers share: text with a limit, and values that may be left out."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

TITLE_LIMIT = 200
"""Characters; longer titles break every calendar and list view. Our own choice."""
TEXT_LIMIT = 2000
"""Characters of a location or a note. Our own choice."""

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=TITLE_LIMIT)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=TEXT_LIMIT)]


def described(title: str, description: str) -> Any:
    """Label and help of an argument, as a form shows them.

    An argument that may be left out (`… | None = None`) keeps a plain schema, which a form can be drawn from, rather
    than a choice between something and null; null is accepted all the same, because models send it.
    """
    return Field(title=title, description=description, json_schema_extra=_plain)


def _plain(schema: dict[str, Any]) -> None:
    schema.pop("default", None)
    something, *_ = schema.pop("anyOf", [{}])
    schema.update({**something, **schema})
