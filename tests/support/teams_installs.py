"""Who comes to a conversation in Teams and who leaves it, the bot included: what changes, and what the bot is told."""

from __future__ import annotations

from tests.fakes.teams.activities import Someone, installation, membership
from tests.fakes.teams.world import BOT, Conversation, Json


def arriving(who: Someone, conversation: str) -> list[Json]:
    """Somebody brings the bot to a conversation: Teams tells it twice."""
    place = _with_bot(who, conversation)
    added = [BOT, who.facts.address] if place.kind == "personal" else [BOT]
    return [membership(who, place, "membersAdded", added), installation(who, place, "add")]


def upgrading(who: Someone, conversation: str) -> Json:
    """Somebody takes a newer version of the app."""
    return installation(who, _with_bot(who, conversation), "add-upgrade")


def departing(who: Someone, conversation: str) -> list[Json]:
    """Somebody removes the bot from a conversation; from a personal chat Teams tells it once."""
    place = who.world.conversation(conversation)
    removed = installation(who, place, "remove")
    if place.kind == "personal":
        who.facts.has_app = False
        return [removed]
    place.has_bot = False
    return [removed, membership(who, place, "membersRemoved", [BOT])]


def joining(who: Someone, conversation: str) -> Json:
    """Somebody becomes a member."""
    place = who.world.conversation(conversation)
    place.members.add(who.user)
    return membership(who, place, "membersAdded", [who.facts.address])


def leaving(who: Someone, conversation: str) -> Json:
    """Somebody is a member no longer."""
    place = who.world.conversation(conversation)
    place.members.discard(who.user)
    return membership(who, place, "membersRemoved", [who.facts.address])


def _with_bot(who: Someone, conversation: str) -> Conversation:
    place = who.world.conversation(conversation)
    if place.kind == "personal":
        who.facts.has_app = True
    place.has_bot = True
    return place
