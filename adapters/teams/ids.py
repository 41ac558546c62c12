"""The ids of DESIGN section 2 as Teams spells them: people, places, messages, clicks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bot.domain import Place

PLATFORM = "teams"

Kind = Literal["personal", "groupChat", "channel"]
"""Teams' own words (`conversation.conversationType`)."""

_OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_THREAD = ";messageid="


@dataclass(frozen=True, slots=True)
class Spot:
    """Where in Teams something is posted."""

    tenant: str
    """The tenant in which the conversation is held."""
    conversation: str
    """Conversation id; of a thread in a channel with its `;messageid=`. Empty: the direct chat with `user`, which has
    to be opened first."""
    kind: Kind
    service_url: str = ""
    """The Bot Connector of this conversation's region; empty: the one in the configuration."""
    user: str = ""
    """Entra object id of the person whose direct chat it is."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent an activity, as the activity says; that its tenant may is known, whether they may is not."""

    tenant: str
    """The tenant of the conversation."""
    user: str
    """Entra object id (`from.aadObjectId`)."""
    address: str
    """Teams' id of a user for one bot (`from.id`, `29:…`): what mentions and targeted messages are addressed to."""
    name: str = ""
    time_zone: str = "UTC"
    locale: str = "en"


def is_object_id(text: str) -> bool:
    """Whether it is the id of an account or a group in Entra."""
    return _OBJECT_ID.fullmatch(text) is not None


def person_id(tenant: str, user: str) -> str:
    """`teams:{tenant}:{aad object id}`."""
    return f"{PLATFORM}:{tenant}:{user}"


def user_of(person: str) -> str:
    """The Entra object id at the end of a person id."""
    return person.rsplit(":", 1)[-1]


def message_key(tenant: str, conversation: str, activity_id: str) -> str:
    """A message: activity ids are unique within their conversation only."""
    return f"{PLATFORM}:{tenant}:{conversation}:{activity_id}"


def click_key(tenant: str, conversation: str, activity_id: str, user: str) -> str:
    """A click or a submitted form: the invoke's own id within its conversation."""
    return f"{PLATFORM}:{tenant}:{conversation}:{activity_id}:{user}"


def within_tenant(tenant: str) -> str:
    """What the ids of all threads of a tenant begin with."""
    return f"{PLATFORM}:{tenant}:"


def channel_of(conversation: str) -> str:
    """The channel's own conversation id, without the thread."""
    return conversation.partition(_THREAD)[0]


def place_of(spot: Spot) -> Place:
    """The place of a conversation. Chats have no threads of their own and are divided into sessions."""
    key = f"{within_tenant(spot.tenant)}{spot.conversation or spot.user}"
    address = {
        "tenant": spot.tenant,
        "conversation": spot.conversation,
        "kind": spot.kind,
        "service_url": spot.service_url,
        "user": spot.user,
    }
    direct = spot.kind == "personal"
    channel = "" if direct else f"{within_tenant(spot.tenant)}{channel_of(spot.conversation)}"
    return Place(PLATFORM, key, address, channel=channel, direct=direct, has_threads=spot.kind == "channel")


def spot_of(place: Place) -> Spot:
    """Where to post for a place."""
    return Spot(**place.address)


def named_place(reference: str) -> Place | None:
    """The place that a policy names: `teams:{tenant}:{conversation}`, or somebody's direct chat
    (`teams:{tenant}:{aad object id}`). `None`: it is none of ours."""
    platform, _, rest = reference.partition(":")
    tenant, _, where = rest.partition(":")
    if platform != PLATFORM or not tenant or not where:
        return None
    tenant = tenant.lower()
    if _OBJECT_ID.fullmatch(where):
        return place_of(Spot(tenant, "", "personal", user=where.lower()))
    kind: Kind = "channel" if "@thread.tacv2" in where or "@thread.skype" in where else "groupChat"
    return place_of(Spot(tenant, where, kind))
