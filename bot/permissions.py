"""Who may decide an approval, judged at the click: what the policy says, and where the person belongs."""

from __future__ import annotations

from bot.records.approvals import ApprovalRow
from bot.vocabulary import Person
from policies.deciding import CouldNotFindOut, Decider, NotPermitted, Permission, may_decide
from policies.model import Ask

_LOCAL_PAGE = "web:"


def is_within(row: ApprovalRow, within: str) -> bool:
    """Whether an approval's thread, or a place that it was routed to, is in a platform or one workspace of it."""
    return any(where.startswith(within) for where in (row.thread_id, *row.asked.ask.route_to))


def permission_of(row: ApprovalRow, person: Person) -> Permission:
    """Whether they may decide."""
    outside = stranger(row, person)
    if outside is not None:
        return outside
    if _needs_to_know_who_is_who(row.asked.ask) and not row.thread_id.startswith(_home_of(person)):
        here = _platform_of(row.thread_id)
        where = "the workspace" if here == _platform_of(person.person_id) else f"{here.capitalize()},"
        return CouldNotFindOut(
            "Whether you are somebody else than those who count already could not be found out: "
            f"please decide it in {where} where it was asked."
        )
    return may_decide(row.asked.ask, Decider(person.person_id, row.asked.requesters))


def stranger(row: ApprovalRow, person: Person) -> NotPermitted | None:
    """Why it is none of this person's business, also when it is settled; `None`: it may be theirs.

    On the local page everybody says for themselves who they are, so its people count in its own threads only. "any"
    means anybody of the workspaces where it was asked or that it was routed to, not of all that have installed us.
    """
    if person.person_id.startswith(_LOCAL_PAGE):
        if not row.thread_id.startswith(_LOCAL_PAGE):
            return NotPermitted("On the web page you can only decide what was asked for on the web page.")
    elif not is_within(row, _home_of(person)) and person.person_id not in row.asked.ask.approvers:
        return NotPermitted("This was asked in another workspace than yours.")
    return None


def _needs_to_know_who_is_who(ask: Ask) -> bool:
    """Whether two accounts of one human, on two platforms or in two workspaces, must not count as two people."""
    return ask.self_approval == "fourEyes" or ask.quorum > 1


def _platform_of(thing: str) -> str:
    return thing.partition(":")[0]


def _home_of(person: Person) -> str:
    """What the ids of all threads of their workspace begin with: `slack:{team}:`, `teams:{tenant}:`."""
    return person.person_id.rpartition(":")[0] + ":"
