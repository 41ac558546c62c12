"""The ids that the rest of the product knows people, places, messages and clicks by, made from Teams'."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adapters.shared.untrusted_json import matching, one_line_up_to
from bot.domain import ConversationReference

Activity = Mapping[str, Any]
"""An activity's JSON (https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference),
without where it goes to and who sends it: those are added on the way out."""
PLATFORM = "teams"
ConversationKind = Literal["personal", "groupChat", "channel"]
"""Teams' own words (`conversation.conversationType`)."""
_OBJECT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_THREAD = ";messageid="


@dataclass(frozen=True, slots=True)
class TeamsLocation:
    """Where in Teams something is posted."""

    tenant: str
    """The tenant in which the conversation is held."""
    conversation: str
    """Conversation id; of a thread in a channel with its `;messageid=`. Empty: the direct chat with `user`, which has
    to be opened first."""
    kind: ConversationKind
    service_url: str = ""
    """The Bot Connector of this conversation's region; empty: the one in the configuration."""
    user: str = ""
    """Entra object id of the person whose direct chat it is."""


@dataclass(frozen=True, slots=True)
class TeamsCaller:
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


def place_of(location: TeamsLocation) -> ConversationReference:
    """The place of a conversation. Chats have no threads of their own and are divided into sessions."""
    key = f"{within_tenant(location.tenant)}{location.conversation or location.user}"
    address = {
        "tenant": location.tenant,
        "conversation": location.conversation,
        "kind": location.kind,
        "service_url": location.service_url,
        "user": location.user,
    }
    direct = location.kind == "personal"
    channel = "" if direct else f"{within_tenant(location.tenant)}{channel_of(location.conversation)}"
    return ConversationReference(
        PLATFORM, key, address, channel=channel, direct=direct, has_threads=location.kind == "channel"
    )


def location_of(place: ConversationReference) -> TeamsLocation:
    """Where to post for a place."""
    return TeamsLocation(**place.address)


def named_place(reference: str) -> ConversationReference | None:
    """The place that a policy names: `teams:{tenant}:{conversation}`, or somebody's direct chat
    (`teams:{tenant}:{aad object id}`). `None`: it is none of ours."""
    platform, _, rest = reference.partition(":")
    tenant, _, where = rest.partition(":")
    if platform != PLATFORM or not tenant or not where:
        return None
    tenant = tenant.lower()
    if _OBJECT_ID.fullmatch(where):
        return place_of(TeamsLocation(tenant, "", "personal", user=where.lower()))
    kind: ConversationKind = "channel" if "@thread.tacv2" in where or "@thread.skype" in where else "groupChat"
    return place_of(TeamsLocation(tenant, where, kind))


# ------------------------------------------------------------------------ ids in what Teams sends

_TOKEN = re.compile(r"[!-~]{1,500}")
"""Conversation ids (`19:…@thread.tacv2;messageid=…`, `a:1…`), activity ids (`1700000000000`, `f:…`), addresses
(`29:…`): opaque, without spaces."""
_PART_OF_A_KEY = re.compile(r"[0-9A-Za-z_.-]{1,100}")
"""Ids of tenants and people are GUIDs; those of local clients are less strict. No colon: it divides our own ids."""
_LONGEST_ID = 8_000


def token(payload: object, *path: str) -> str:
    """An opaque word of Teams' (conversation, activity, address); empty when it is none."""
    return matching(_TOKEN, payload, *path)


def guid(payload: object, *path: str) -> str:
    """Id of a tenant or of a person, in small letters; empty when it is none."""
    return matching(_PART_OF_A_KEY, payload, *path).lower()


def our_id(payload: object, *path: str) -> str:
    """An id of ours that comes back on a button: as long as one may be, and in one line; empty when it is none."""
    return one_line_up_to(_LONGEST_ID, payload, *path)


def web_address(payload: object, *path: str) -> str:
    """A web address; empty when it is none."""
    found = token(payload, *path)
    return found if found.startswith(("https://", "http://")) else ""
