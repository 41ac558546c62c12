"""Who is in a conversation, as the Bot Connector tells it."""

from __future__ import annotations

from tests.fakes.teams.refused import Refused
from tests.fakes.teams.world import Conversation, Json, User, World

SMALLEST_PAGE, LARGEST_PAGE = 50, 500
"""Members of a page (Teams); other sizes become the nearest of these."""


def member_of(world: World, place: Conversation, name: str) -> Json:
    """One member, by object id or address. Raises `Refused`."""
    user = world.user(name)
    if user.user not in place.members:
        raise Refused("MemberNotFoundInConversation", "Member not found in conversation.")
    return _account(user)


def members_of(world: World, place: Conversation, page_size: str, token: str) -> Json:
    """A page of the members. Raises `Refused`: a token that was not given."""
    if (page_size and not page_size.isdecimal()) or (token and not token.removeprefix("page-").isdecimal()):
        raise Refused("BadSyntax", "Bad format of pageSize or continuationToken")
    size = min(max(int(page_size or LARGEST_PAGE), SMALLEST_PAGE), LARGEST_PAGE)
    begin = int(token.removeprefix("page-") or 0)
    everybody = sorted(place.members)
    page: Json = {"members": [_account(world.users[user]) for user in everybody[begin : begin + size]]}
    if begin + size < len(everybody):
        page["continuationToken"] = f"page-{begin + size}"
    return page


def _account(user: User) -> Json:
    first, _, last = user.name.partition(" ")
    account: Json = {"id": user.address, "name": user.name, "userRole": user.role, "tenantId": user.tenant}
    if user.role == "anonymous":
        return account
    return {
        **account,
        "aadObjectId": user.user,
        "objectId": user.user,
        "givenName": first,
        "surname": last,
        "email": mail_of(user),
        "userPrincipalName": name_of(user),
    }


def mail_of(user: User) -> str:
    """The address of an account."""
    return user.mail or f"{user.name.lower().replace(' ', '.')}@example.com"


def name_of(user: User) -> str:
    """The name of an account (`userPrincipalName`)."""
    own = f"{user.name.lower().replace(' ', '.')}@example.com"
    return own if user.role == "user" else f"{own.replace('@', '_')}#EXT#@acme.onmicrosoft.com"
