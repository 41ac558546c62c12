"""Asking somebody else to decide: whom a dialog names, by the people picker or in writing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.shared.untrusted_json import words
from adapters.teams import actions
from adapters.teams.ids import TeamsLocation, is_object_id
from adapters.teams.inbound.gestures import Click
from bot.approvals.decisions import Approvals
from bot.domain import ClickResult, Handover, Invalid, Person, Unwelcome

CHOOSE_SOMEBODY = "Please choose somebody, or write their e-mail address."
CHOOSE_ONE = "Please either choose somebody or write an e-mail address."

FindColleague = Callable[[TeamsLocation, str], Awaitable[Person | Unwelcome]]
"""Who the account of an object id is, as far as it can be found out."""


async def hand_over(approvals: Approvals, click: Click, person: Person, colleague: FindColleague) -> ClickResult:
    """Ask whom the dialog names to decide."""
    picked, typed = words(click.data, actions.COLLEAGUE).strip(), words(click.data, actions.ADDRESS).strip()
    if picked and typed:
        return Invalid({"": CHOOSE_ONE})
    named = picked or typed
    if not is_object_id(named):
        if not typed or "@" not in typed:
            return Invalid({"": CHOOSE_SOMEBODY})
        return await approvals.hand_over(Handover(click.key, person, click.subject, typed))
    found = await colleague(click.visitor.location, named.lower())
    if isinstance(found, Unwelcome):
        return Invalid({"": found.text})
    return await approvals.hand_over(Handover(click.key, person, click.subject, found.person_id, found.name))
