"""What differs from one installation to the other, read from the environment and checked before anything is made."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bot.settings import public_address, service_address

_PROJECT = Path(__file__).parents[3] / "pyproject.toml"

LONGEST_NAME = 30
"""Characters (manifest schema: `name.short`)."""
LONGEST_DEVELOPER = 32
"""Characters (manifest schema: `developer.name`)."""

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class PackageError(Exception):
    """The package cannot be made. `problems`: one line each, with the variable, what is wrong and what to do."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class AppFacts:
    """One installation of the app."""

    app_id: str
    """Id of the bot, and of the Teams app as well: there is one bot to an app."""
    public_url: str
    """Where people reach the server, for sign-ins."""
    name: str
    developer: str
    website: str
    """Address of whoever runs the bot; Teams wants one, and shows it in the app's details."""
    version: str
    """Version of the Teams app, `1.2.3`: Teams takes a changed package only with a higher one."""


def facts_of(variables: Mapping[str, str], version: str | None = None) -> AppFacts:
    """What the environment says. `version`: `None` for the project's. Raises `PackageError` with all that is wrong."""
    given = {name: value.strip() for name, value in variables.items()}
    public_url = given.get("PUBLIC_URL", "")
    facts = AppFacts(
        app_id=given.get("MICROSOFT_APP_ID", "").lower(),
        public_url=public_url,
        name=given.get("TEAMS_APP_NAME") or "Countersign",
        developer=given.get("TEAMS_APP_DEVELOPER") or "Countersign",
        website=given.get("TEAMS_APP_WEBSITE") or public_url,
        version=version if version is not None else project_version(),
    )
    if problems := _problems(facts):
        raise PackageError(problems)
    return facts


def project_version() -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads(_PROJECT.read_text())["project"]["version"])


def _problems(facts: AppFacts) -> list[str]:
    found = {
        "MICROSOFT_APP_ID": _app_id(facts.app_id),
        "PUBLIC_URL": _public_url(facts.public_url),
        "TEAMS_APP_NAME": _too_long(facts.name, LONGEST_NAME),
        "TEAMS_APP_DEVELOPER": _too_long(facts.developer, LONGEST_DEVELOPER),
        "TEAMS_APP_WEBSITE": _website(facts.website) if facts.website != facts.public_url else None,
        "--version": None if _VERSION.fullmatch(facts.version) else "is no version. Write it like 1.0.1.",
    }
    return [f"{name}: {problem}" for name, problem in found.items() if problem]


def _app_id(value: str) -> str | None:
    if not value:
        return "is not set. Set it to the bot's app id (in Azure: Application (client) ID)."
    return None if _GUID.fullmatch(value) else "is no GUID. Write it like 11111111-2222-3333-4444-555555555555."


def _public_url(value: str) -> str | None:
    if not value:
        return "is not set. Set it to where people reach this server, like https://bot.example.com."
    try:
        public_address(value)
    except ValueError as error:
        return str(error)
    return None if urlsplit(value).scheme == "https" else "is not https, which Teams requires."


def _website(value: str) -> str | None:
    try:
        service_address(value)
    except ValueError as error:
        return str(error)
    return None if urlsplit(value).scheme == "https" else "is not https, which Teams requires."


def _too_long(value: str, most: int) -> str | None:
    return f"is too long. Teams allows {most} characters." if len(value) > most else None
