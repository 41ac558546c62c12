"""Microsoft Graph, as far as a bot asks it: membership in groups, and accounts."""

from __future__ import annotations

from typing import Any

from tests.fakes.teams.refused import Refused
from tests.fakes.teams.roster import mail_of, name_of
from tests.fakes.teams.world import World

MOST_GROUPS = 20
"""In one request (Graph)."""


def member_groups(world: World, user: str, body: dict[str, Any]) -> dict[str, Any]:
    """checkMemberGroups: those of the groups asked for that somebody is in. Raises `Refused`."""
    _permitted(world, "GroupMember.Read.All", "User.Read.All")
    _account(world, user)
    asked = body.get("groupIds")
    if not isinstance(asked, list) or not 1 <= len(asked) <= MOST_GROUPS:
        raise Refused("Request_BadRequest", "Invalid groupIds.", status=400)
    if unknown := [group for group in asked if group not in world.entra_groups]:
        raise Refused("Request_ResourceNotFound", f"Resource '{unknown[0]}' does not exist.", status=404)
    return {"value": [group for group in asked if user in world.entra_groups[group]]}


def account(world: World, user: str) -> dict[str, Any]:
    """An account's `displayName`, `mail`, `userPrincipalName` and `userType`. Raises `Refused`."""
    _permitted(world, "User.Read.All")
    found = _account(world, user)
    kind = "Guest" if found.role == "guest" else "Member"
    names = {"displayName": found.name, "userPrincipalName": name_of(found)}
    return {**names, "mail": mail_of(found), "userType": kind}


def _permitted(world: World, *permissions: str) -> None:
    if not set(permissions) <= world.graph_permissions:
        raise Refused("Authorization_RequestDenied", "Insufficient privileges.", status=403)


def _account(world: World, user: str) -> Any:
    if user not in world.users:
        raise Refused("Request_ResourceNotFound", f"Resource '{user}' does not exist.", status=404)
    return world.users[user]
