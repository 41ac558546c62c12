"""Who did something and where, as an activity says it. Pure: that the sender may speak for Teams is known by then,
whether the person may use the bot is not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from adapters.shared.calls import failures_logged_as
from adapters.shared.people import locale_of, shown_name, time_zone_of, user_of
from adapters.shared.sending import as_post_failures
from adapters.shared.untrusted_json import part, parts, words
from adapters.teams.connector.client import AT_ONCE, BotConnector
from adapters.teams.connector.files import TeamsFiles
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import (
    PLATFORM,
    ConversationKind,
    TeamsCaller,
    TeamsLocation,
    channel_of,
    guid,
    location_of,
    person_id,
    token,
    web_address,
    within_tenant,
)
from bot.domain import Arrival, ConversationReference, Introduction, Overview, Person, Quote, Unwelcome
from bot.queries import Queries

Activity = Mapping[str, Any]
_NOT_IN_A_KEY = re.compile(r"[^0-9A-Za-z_.-]")
_BOT_ADDRESS = "28:"
"""Teams' addresses of bots begin like this, those of people with `29:`."""
_DIRECT = "a:"
"""What ids of direct chats with a bot begin with."""
_KINDS: dict[str, ConversationKind] = {"personal": "personal", "groupchat": "groupChat", "channel": "channel"}
_THREAD = ";messageid="


@dataclass(frozen=True, slots=True)
class TeamsRecipient:
    """The bot that an activity was sent to, and when."""

    local: bool = False
    """Local clients know no Entra: who has no object id goes by the id they have."""
    tenant: str = ""
    """The tenant of local clients that name none."""
    now: float = 0.0
    """Time of activities without one, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class TeamsVisitor:
    """Who does something, and where."""

    caller: TeamsCaller
    location: TeamsLocation
    message: str = ""
    """Id of the message on which they did it; empty: on none."""

    @property
    def person(self) -> Person:
        """Returns the person as the activity describes them; nothing is looked up."""
        caller = self.caller
        return Person(person_id(caller.tenant, caller.user), caller.name, caller.time_zone, caller.locale)


def visitor_of(activity: Activity, recipient: TeamsRecipient) -> TeamsVisitor | None:
    """The person; `None`: a bot, ourselves, or nobody of any tenant did it."""
    address, tenant = token(activity, "from", "id"), tenant_of(activity, recipient)
    user = guid(activity, "from", "aadObjectId")
    if not user and recipient.local:
        user = _NOT_IN_A_KEY.sub("_", address)[:100].lower()
    if not user or not tenant or _is_a_machine(activity, address):
        return None
    client = next((entity for entity in parts(activity, "entities") if words(entity, "type") == "clientInfo"), {})
    caller = TeamsCaller(
        tenant,
        user,
        address,
        shown_name(words(activity, "from", "name")),
        time_zone_of(words(client, "timezone") or words(activity, "localTimezone")),
        locale_of(words(activity, "locale") or words(client, "locale")),
    )
    location = location_of_activity(activity, recipient, user)
    return TeamsVisitor(caller, location, token(activity, "replyToId")) if location else None


def location_of_activity(activity: Activity, recipient: TeamsRecipient, user: str = "") -> TeamsLocation | None:
    """The conversation, which in a channel is a thread; `None`: the activity names none.

    `user` is whose direct chat it is, where it is one.
    """
    tenant, conversation = tenant_of(activity, recipient), token(activity, "conversation", "id")
    if not tenant or not conversation:
        return None
    kind = _kind(activity, conversation)
    personal = kind == "personal"
    return TeamsLocation(tenant, conversation, kind, web_address(activity, "serviceUrl"), user if personal else "")


def in_a_thread(location: TeamsLocation, message: str) -> TeamsLocation:
    """The thread that a message in a channel begins, where its conversation does not say so already."""
    if location.kind != "channel" or _THREAD in location.conversation or not message:
        return location
    return TeamsLocation(
        location.tenant, f"{location.conversation}{_THREAD}{message}", location.kind, location.service_url
    )


def tenant_of(activity: Activity, recipient: TeamsRecipient) -> str:
    """`channelData.tenant.id`, which the Bot Connector always gives."""
    named = guid(activity, "channelData", "tenant", "id")
    return named or ((guid(activity, "conversation", "tenantId") or recipient.tenant) if recipient.local else "")


def bot_of(activity: Activity) -> str:
    """Our own address."""
    return token(activity, "recipient", "id")


def key_of(location: TeamsLocation, name: str) -> str:
    """Names an event in a conversation that is no message."""
    return f"{PLATFORM}:{location.tenant}:{location.conversation}:{name}"


def _is_a_machine(activity: Activity, address: str) -> bool:
    role = words(activity, "from", "role").lower()
    return address == bot_of(activity) or address.startswith(_BOT_ADDRESS) or role in ("bot", "skill")


def _kind(activity: Activity, conversation: str) -> ConversationKind:
    said = _KINDS.get(words(activity, "conversation", "conversationType").lower())
    if said:
        return said
    if "@thread.tacv2" in conversation or "@thread.skype" in conversation:
        return "channel"
    # Where nothing says that a chat has one reader alone, what is for one person alone is not posted openly.
    is_group = part(activity, "conversation").get("isGroup")
    return "personal" if is_group is not True and conversation.startswith(_DIRECT) else "groupChat"


# ------------------------------------------------------ the author of a message, and what they quoted

ADMISSION_SECONDS = 10.0
"""Seconds for finding out who it is: nobody waits at a button."""


async def introduce(people: TeamsPeople, files: TeamsFiles, arrival: Arrival) -> Introduction | Unwelcome:
    """Fills `bot.platform.Platform.introduce`. Raises `PostFailed` when the author cannot be found out.

    What others said in the thread before is not among it: Teams gives that only to apps with Graph permissions.
    """
    message = arrival.message
    location, author = location_of(message.place), message.author
    caller = TeamsCaller(
        location.tenant,
        user_of(author.person_id),
        words(message.origin, "address"),
        author.name,
        author.time_zone,
        words(message.origin, "locale") or author.locale,
    )
    with as_post_failures("cannot find out who wrote"):
        person = await people.admitted(location, caller, patience=ADMISSION_SECONDS)
    if isinstance(person, Unwelcome):
        return person
    quotes = tuple(_quote(quote, message.at) for quote in parts(message.origin, "quotes"))
    return Introduction(person, message.text, quotes, await files.of_message(message))


def _quote(quote: Mapping[str, Any], otherwise: float) -> Quote:
    at = quote.get("at")
    return Quote(
        words(quote, "author"), words(quote, "text"), float(at) if isinstance(at, int | float) and at else otherwise
    )


# ------------------------------------------------------------------------------ what a person may see
# Nothing that was asked in a conversation which they are not in.

log = structlog.get_logger(__name__)
MOST_CONVERSATIONS = 40
"""Conversations whose members are asked for; what was asked in others is left out."""


async def overview_of(queries: Queries, connector: BotConnector, visitor: TeamsVisitor, person: Person) -> Overview:
    """Returns a person's overview of this tenant, as far as they may see it."""
    among = partial(_among, connector, visitor)
    return await queries.overview(person, within_tenant(visitor.location.tenant), among)


async def _among(connector: BotConnector, visitor: TeamsVisitor, places: Sequence[ConversationReference]) -> set[str]:
    """Keys of the places in whose channels and chats they are."""
    asked = list(dict.fromkeys(map(_roster, places)))[:MOST_CONVERSATIONS]
    theirs = await asyncio.gather(*(_is_member(connector, location, visitor) for location in asked))
    seen = {location for location, is_theirs in zip(asked, theirs, strict=True) if is_theirs}
    return {place.key for place in places if _roster(place) in seen}


async def _is_member(connector: BotConnector, location: TeamsLocation, visitor: TeamsVisitor) -> bool:
    """Whether they are in a conversation; not, where that cannot be found out."""
    with failures_logged_as("teams_not_shown", tenant=location.tenant):
        await connector.member(location, visitor.caller.address or visitor.caller.user, patience=AT_ONCE)
        return True
    return False


def _roster(place: ConversationReference) -> TeamsLocation:
    """Returns the conversation whose members are asked for: a thread's are its channel's."""
    location = location_of(place)
    return replace(location, conversation=channel_of(location.conversation))
