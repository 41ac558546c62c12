"""Who of a conversation sees which buttons of an approval's card."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import TeamsLocation, person_id, within_tenant
from adapters.teams.render.cards import MOST_MENTIONED, CardMention, has_asked
from adapters.teams.render.posts import Audience
from bot.domain import ApprovalView, ChangeView, Content
from policies.model import is_group

MOST_LISTED = 60
"""People for whom a card looks different (Teams: `refresh.userIds`)."""


async def audience_of(content: Content, location: TeamsLocation, people: TeamsPeople) -> Audience:
    """Returns for whom a post is drawn. Raises nothing."""
    if location.kind == "personal":
        may = not isinstance(content, ApprovalView) or may_decide_alone(content, location)
        asked = bool(location.user) and has_asked(content, _owner(location))
        return Audience("personal", (), may_decide=may, asked=asked)
    if asker := _who_may_do_more(content):
        known = await _known(people, location, [asker])
        return Audience("open", tuple(known.values()), asked=not known)
    if not isinstance(content, ApprovalView) or content.status != "pending":
        return Audience("open")
    listed, named = listed_deciders(content, location.tenant), named_others(content, location.tenant)
    known = await _known(people, location, [*(listed or ()), *named])
    mentions = tuple(
        CardMention(known[p], name) for p in named if p in known and (name := people.known_name(location, p))
    )
    addresses = tuple(known[person] for person in listed or () if person in known)
    if addresses or listed == ():
        return Audience("listed", addresses, mentions=mentions)
    # They cannot be listed, or could not be found: nobody may be left without a way to decide.
    barred = _here(content.requester_ids if content.four_eyes else (), location.tenant)
    not_they = await _known(people, location, barred)
    return Audience("open", tuple(not_they.values())[:MOST_LISTED], mentions=mentions)


def _who_may_do_more(content: Content) -> str:
    """Person id of whoever asked for what is over, where they alone may do something about it: retry a call that
    failed, revoke what allowed one; empty: nobody may."""
    if isinstance(content, ChangeView) and content.grant_id:
        return content.requester_id
    if isinstance(content, ApprovalView) and content.status != "pending" and content.retry_offered:
        return next(iter(content.requester_ids), "")
    return ""


def listed_deciders(view: ApprovalView, tenant: str) -> tuple[str, ...] | None:
    """Person ids of all in this tenant who may decide, none where they are all elsewhere; `None`: they cannot be listed
    (`any`, `channel`, groups, more than a card can be different for)."""
    named: list[str] = []
    for approver in view.approvers:
        if approver == "requester":
            named += view.requester_ids[:1]
        elif ":" in approver and not is_group(approver):
            named.append(approver)
        else:
            return None
    barred = view.requester_ids if view.four_eyes else ()
    listed = _here([person for person in named if person not in barred], tenant)
    return listed if len(listed) <= MOST_LISTED else None


def named_others(view: ApprovalView, tenant: str) -> tuple[str, ...]:
    """Person ids of this tenant's people who are named as approvers: they are notified of the card. The requester has
    just asked for it and knows."""
    named = [each for each in view.approvers if ":" in each and not is_group(each)]
    return _here([person for person in named if person not in view.requester_ids], tenant)[:MOST_MENTIONED]


def may_decide_alone(view: ApprovalView, location: TeamsLocation) -> bool:
    """Whether the one person of a personal chat may decide, as far as the card can know: the click is judged anyway."""
    if not location.user:
        return True
    person = _owner(location)
    if view.four_eyes and person in view.requester_ids:
        return False
    listed = listed_deciders(view, location.tenant)
    return listed is None or person in listed


def _owner(location: TeamsLocation) -> str:
    """Returns whose personal chat it is."""
    return person_id(location.tenant, location.user)


def _here(person_ids: Collection[str], tenant: str) -> tuple[str, ...]:
    """Those of them whom this tenant can have in its conversations."""
    return tuple(dict.fromkeys(person for person in person_ids if person.startswith(within_tenant(tenant))))


async def _known(people: TeamsPeople, location: TeamsLocation, person_ids: Sequence[str]) -> Mapping[str, str]:
    """The addresses of those who could be found, in this order."""
    known = await people.addresses(location, list(dict.fromkeys(person_ids))) if person_ids else {}
    return {person: known[person] for person in person_ids if person in known}
