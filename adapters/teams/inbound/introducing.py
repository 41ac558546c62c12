"""Who wrote a message, when its turn has come, and what they quoted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.shared.untrusted_json import parts, words
from adapters.teams.api import ConnectorFailed
from adapters.teams.connector.people import People
from adapters.teams.ids import Caller, location_of, user_of
from bot.domain import Arrival, Introduction, Quote, Unwelcome
from bot.platform import PostFailed

PATIENCE = 10.0
"""Seconds for finding out who it is: nobody waits at a button."""


async def introduce(people: People, arrival: Arrival) -> Introduction | Unwelcome:
    """Fills `bot.platform.Platform.introduce`. Raises `PostFailed` when the author cannot be found out.

    What others said in the thread before is not among it: Teams gives that only to apps with Graph permissions.
    """
    message = arrival.message
    location, author = location_of(message.place), message.author
    caller = Caller(
        location.tenant,
        user_of(author.person_id),
        words(message.origin, "address"),
        author.name,
        author.time_zone,
        words(message.origin, "locale") or author.locale,
    )
    try:
        person = await people.admitted(location, caller, patience=PATIENCE)
    except ConnectorFailed as failure:
        raise PostFailed(
            f"cannot find out who wrote: {failure}", permanent=failure.permanent, retry_after=failure.retry_after
        ) from failure
    if isinstance(person, Unwelcome):
        return person
    quotes = tuple(_quote(quote, message.at) for quote in parts(message.origin, "quotes"))
    return Introduction(person, message.text, quotes)


def _quote(quote: Mapping[str, Any], otherwise: float) -> Quote:
    at = quote.get("at")
    return Quote(
        words(quote, "author"), words(quote, "text"), float(at) if isinstance(at, int | float) and at else otherwise
    )
