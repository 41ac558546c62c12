"""`${VAR}` in configured values, filled in from the process environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapters.tool_servers.redaction import secret_parts

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BadReferenceError(Exception):
    """A reference that cannot be filled in; the text says why."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A value with its references filled in."""

    text: str
    secrets: frozenset[str]
    """The parts of it that must never be shown, judged by the names of the variables."""


def fill(template: str, environ: Mapping[str, str]) -> Filled:
    """Replace every `${VAR}`. What a variable contains is not looked at again. Raises `BadReferenceError`."""
    secrets: set[str] = set()

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if not _NAME.fullmatch(name):
            raise BadReferenceError(f"${{{name}}} is not a reference to a variable: write ${{NAME}}")
        if name not in environ:
            raise BadReferenceError(f"the environment variable {name} is not set")
        secrets.update(secret_parts(name, environ[name]))
        return environ[name]

    return Filled(_REFERENCE.sub(value_of, template), frozenset(secrets))
