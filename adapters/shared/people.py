"""What chat platforms say of people, and finding it out for policies: an answer, or that there is none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import TypeVar
from zoneinfo import ZoneInfo

import structlog

from adapters.shared.calls import CallFailed
from bot.safe_text import visible_line
from translations import gettext as _

log = structlog.get_logger(__name__)
Found = TypeVar("Found")

EMAIL = re.compile(r"[^\s@\x00-\x20]{1,64}@[^\s@\x00-\x20]{1,255}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
LONGEST_NAME = 80
"""Characters (Slack: display names have 80 at most)."""


def not_a_person() -> str:
    """Returns what a bot is told that speaks to ours."""
    return _("I only talk with people, not with other bots.")


def shown_name(name: str) -> str:
    """Returns a name in one line with nothing invisible in it: people choose their names."""
    return visible_line(name, LONGEST_NAME)


def time_zone_of(name: str) -> str:
    """Returns an IANA time zone, or UTC where it is none that this machine knows."""
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):
        # Not found is a KeyError; a folder of zones, such as "Europe", is an OSError.
        return "UTC"


def locale_of(name: str) -> str:
    """Returns a language tag; `en` where it is none."""
    return name if _LOCALE.fullmatch(name) else "en"


def parts_of_id(reference: str, kind: str) -> tuple[str, str] | None:
    """Returns the team or tenant, and the id, of `{kind}:{team}:{id}`; `None`: it is none of that kind."""
    match reference.split(":"):
        case [begin, team, name] if begin == kind and team and name:
            return team, name
    return None


def user_of(person: str) -> str:
    """Returns the platform's own id of a user, with which a person id ends."""
    return person.rsplit(":", 1)[-1]


class Lookups:
    """Looks things up for a limited time. `None` is "could not find out", which refuses; nothing here raises.

    Args:
        service: For the log.
        within: Seconds.
        forbidden: The service's words for a permission that is missing.
        hint: What the operator has to do then.
    """

    def __init__(self, service: str, within: float, forbidden: frozenset[str], hint: str) -> None:
        self.within = within
        self._event = f"{service}_not_found_out"
        self._forbidden = forbidden
        self._hint = hint
        self._told: set[tuple[str, str]] = set()
        """What was asked for, and where, without permission."""

    async def found(
        self, asking: Awaitable[Found], what: str, team: str = "", *, within: float | None = None
    ) -> Found | None:
        """Returns the answer. Why there is none is logged; a missing permission once for each team and thing."""
        try:
            async with asyncio.timeout(within or self.within):
                return await asking
        except CallFailed as failure:
            self._log(what, team, str(failure), forbidden=failure.error in self._forbidden)
        except TimeoutError:
            self._log(what, team, "timeout", forbidden=False)
        return None

    def _log(self, what: str, team: str, error: str, *, forbidden: bool) -> None:
        if forbidden and (what, team) in self._told:
            return
        if forbidden:
            self._told.add((what, team))
        hint = {"hint": self._hint} if forbidden else {}
        log.warning(self._event, what=what, team=team, error=error, **hint)
