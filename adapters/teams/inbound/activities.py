"""Activities: decoded, checked, and read as what people say and do. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from adapters.shared.messages import WORDLESS, MessageDeleted, MessageEdited
from adapters.shared.untrusted_json import MalformedBodyError, json_in, part, parts, refuse_unsound, words
from adapters.teams.actions import ACTION, SUBJECT
from adapters.teams.connector.files import files_in, hidden_in
from adapters.teams.ids import TeamsLocation, click_key, guid, message_key, our_id, place_of, token
from adapters.teams.inbound.texts import QuotedMessage, mentions_us, written_in
from adapters.teams.inbound.visitors import (
    TeamsRecipient,
    TeamsVisitor,
    bot_of,
    in_a_thread,
    key_of,
    location_of_activity,
    visitor_of,
)
from bot.accounts.codes import code_in
from bot.domain import ConversationReference, Message
from bot.safe_text import shorten
from graph.json_values import storable

Activity = Mapping[str, Any]
LONGEST_COMMENT = 2_000
"""Characters of what somebody says about an answer."""
_LONGEST_WRITTEN = 8 * LONGEST_COMMENT
"""Characters in which Teams may write that, each of them escaped."""


@dataclass(frozen=True, slots=True)
class TeamsClick:
    """A button was clicked, on a card or in a dialog."""

    visitor: TeamsVisitor
    action: str
    """The button's name in `actions`; empty: it is no button of ours."""
    subject: str
    """Id of what it is about; empty when it is none of ours."""
    data: Mapping[str, Any]
    """The button's data with the values of the inputs beside it."""
    key: str


@dataclass(frozen=True, slots=True)
class TeamsFeedback:
    """What somebody thinks of the message `visitor.message`; whose it is, the records know."""

    visitor: TeamsVisitor
    verdict: Literal["good", "bad"]
    comment: str = ""


def card_click(activity: Activity, visitor: TeamsVisitor) -> TeamsClick:
    """`adaptiveCard/action`: an `Action.Execute`, or a refresh that Teams asks for by itself."""
    return read_click(activity, part(activity, "value", "action", "data"), visitor)


def dialog_click(activity: Activity, visitor: TeamsVisitor) -> TeamsClick:
    """`task/fetch` and `task/submit`."""
    return read_click(activity, part(activity, "value", "data"), visitor)


def read_click(activity: Activity, data: Mapping[str, Any], visitor: TeamsVisitor) -> TeamsClick:
    """What a button carries. The same click sent twice has the same key."""
    location, user = visitor.location, visitor.caller.user
    key = click_key(location.tenant, location.conversation, token(activity, "id") or _fingerprint(activity), user)
    action = words(data, ACTION)
    return TeamsClick(visitor, action, our_id(data, SUBJECT) if action else "", data, key)


def read_feedback(activity: Activity, visitor: TeamsVisitor) -> TeamsFeedback | None:
    """`message/submitAction`, of the buttons below an answer; `None`: it is no feedback."""
    given = part(activity, "value", "actionValue")
    verdicts: dict[str, Literal["good", "bad"]] = {"like": "good", "dislike": "bad"}
    verdict = verdicts.get(words(given, "reaction"))
    if words(activity, "value", "actionName") != "feedback" or verdict is None or not visitor.message:
        return None
    return TeamsFeedback(visitor, verdict, shorten(_comment(given.get("feedback")).strip(), LONGEST_COMMENT))


def _comment(feedback: object) -> str:
    """Teams writes it as JSON within a text, other clients as an object or as it is."""
    if isinstance(feedback, str):
        if len(feedback) > _LONGEST_WRITTEN:
            return feedback[:_LONGEST_WRITTEN]  # a megabyte of JSON within a text takes 0.2 s to read
        try:
            parsed = json.loads(feedback)
        except (ValueError, RecursionError):
            return feedback
        if not isinstance(parsed, Mapping):
            return parsed if isinstance(parsed, str) else feedback
        feedback = parsed
    return words(feedback, "feedbackText")


def _fingerprint(activity: Activity) -> str:
    """Stands for the id of an activity that has none: Teams gives one to each."""
    said = json.dumps([activity.get("value"), words(activity, "timestamp"), words(activity, "replyToId")], default=str)
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


# ------------------------------------------------------------------------------------------------ bodies
# Checked as far as the rest of the code relies on it.

DEEPEST = 64
"""How deep an activity may nest. Teams' own stay below 20."""


def decode(raw: bytes) -> dict[str, Any]:
    """The activity, without what no database keeps (NUL, halves of surrogate pairs). Raises `MalformedBodyError`."""
    activity = json_in(raw)
    if not isinstance(activity, dict):
        raise MalformedBodyError("the body is not an object")
    refuse_unsound(activity, DEEPEST)
    sound: dict[str, Any] = storable(activity)
    if not isinstance(sound.get("type"), str) or not sound["type"]:
        raise MalformedBodyError("the activity has no type")
    return sound


CODE = "[a one-time code]"
"""Stands where one was quoted."""
_LONGEST_WITH_CODE = 100
"""Characters of a message that is our name and a code."""
_WORDS_OF_A_CODE = 3
"""Pieces in which a code may be written: with spaces around its dash."""
_GOOD = frozenset({"like", "heart"})
_BAD = frozenset({"sad", "angry"})
"""Teams' own words for reactions; the other two (`laugh`, `surprised`) are no feedback."""


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """People joined or left a conversation."""

    conversation: str
    team_of: str = ""
    """The tenant, where it was a team: Teams tells it of the team's first channel, and means all of them."""


@dataclass(frozen=True, slots=True)
class Left:
    """The bot was removed from a conversation."""

    place: ConversationReference


@dataclass(frozen=True, slots=True)
class Arrived:
    """The bot was brought to a conversation."""

    key: str
    place: ConversationReference


Heard = Message | MessageEdited | MessageDeleted | TeamsFeedback | Arrived | Left | MembersChanged | TeamsClick


def heard(activity: Activity, recipient: TeamsRecipient) -> Heard | None:
    """What the activity says to us; `None`: it is nothing to us. Reads anything and raises nothing."""
    match words(activity, "type"):
        case "message":
            return _message(activity, recipient)
        case "messageUpdate":
            return _edited(activity, recipient)
        case "messageDelete":
            return _deleted(activity, recipient)
        case "messageReaction":
            return _reacted(activity, recipient)
        case "installationUpdate" | "conversationUpdate":
            return _came_or_went(activity, recipient)
        case _:
            return None


def _message(activity: Activity, recipient: TeamsRecipient) -> Message | TeamsClick | None:
    visitor = visitor_of(activity, recipient)
    if visitor is None:
        return None
    click = read_click(activity, part(activity, "value"), visitor)
    if click.action:
        return click
    return _said(activity, visitor, recipient)


def _edited(activity: Activity, recipient: TeamsRecipient) -> MessageEdited | None:
    visitor = visitor_of(activity, recipient)
    if visitor is None or words(activity, "channelData", "eventType") != "editMessage":
        return None  # a deletion taken back: what was withdrawn stays so, and is sent anew if it is meant
    message = _said(activity, visitor, recipient, WORDLESS)
    if message is None:
        return None
    # Teams does not say what it was before.
    may_be_new = message.addressed and not message.place.direct
    return MessageEdited(message.key, message.text, message if may_be_new else None)


def _said(
    activity: Activity, visitor: TeamsVisitor, recipient: TeamsRecipient, without_words: str = ""
) -> Message | None:
    activity_id = token(activity, "id")
    if not activity_id:
        return None
    written = written_in(activity)
    text = written.text or without_words
    if not text:
        return None
    location = in_a_thread(visitor.location, activity_id)
    place = place_of(location)
    return Message(
        key=message_key(location.tenant, location.conversation, activity_id),
        place=place,
        author=visitor.person,
        text=text,
        at=_time(activity, recipient),
        addressed=place.direct or mentions_us(activity),
        origin=_origin(activity, visitor, written.quotes),
        files=files_in(activity, visitor.caller.user) or (() if place.direct else hidden_in(activity)),
    )


def _origin(activity: Activity, visitor: TeamsVisitor, quotes: tuple[QuotedMessage, ...]) -> dict[str, Any]:
    """What is needed to introduce a message later."""
    team = guid(activity, "channelData", "team", "aadGroupId")
    return ({"team": team} if team else {}) | {
        "address": visitor.caller.address,
        "locale": visitor.caller.locale,
        "quotes": [{"author": q.author, "text": _without_code(q.text), "at": q.at} for q in quotes],
    }


def _without_code(quoted: str) -> str:
    """A one-time code that was told us in a message of its own is for no record and no model, quoted neither. Where
    others read along, that message begins with our name."""
    said = quoted.split()[-_WORDS_OF_A_CODE:] if len(quoted) <= _LONGEST_WITH_CODE else []
    is_code = any(code_in(" ".join(said[start:])) for start in range(len(said)))
    return CODE if is_code else quoted


def _deleted(activity: Activity, recipient: TeamsRecipient) -> MessageDeleted | None:
    location, activity_id = location_of_activity(activity, recipient), token(activity, "id")
    if location is None or not activity_id:
        return None
    location = in_a_thread(location, activity_id)
    return MessageDeleted(message_key(location.tenant, location.conversation, activity_id))


def _reacted(activity: Activity, recipient: TeamsRecipient) -> TeamsFeedback | None:
    """Taking a reaction back takes no feedback back: nobody can tell what they think now."""
    visitor = visitor_of(activity, recipient)
    kinds = [words(reaction, "type") for reaction in parts(activity, "reactionsAdded")]
    verdicts = [kind for kind in kinds if kind in _GOOD | _BAD]
    if visitor is None or not visitor.message or not verdicts:
        return None
    return TeamsFeedback(visitor, "good" if verdicts[-1] in _GOOD else "bad")


def _came_or_went(activity: Activity, recipient: TeamsRecipient) -> Arrived | Left | MembersChanged | None:
    """Teams says it twice, in either order: as an installation, and as a change of the conversation's members."""
    action, bot = words(activity, "action").lower(), bot_of(activity)
    came = action == "add" or _is_among(bot, activity, "membersAdded")
    went = action == "remove" or _is_among(bot, activity, "membersRemoved")
    location = _place_of_installation(activity, recipient)
    if location is None:
        return None
    if came == went:
        changed = activity.get("membersAdded") or activity.get("membersRemoved")
        team_of = location.tenant if words(activity, "channelData", "team", "id") else ""
        return MembersChanged(location.conversation, team_of) if changed else None
    place = place_of(location)
    name = token(activity, "id") or str(_time(activity, recipient))
    return Arrived(key_of(location, f"arrived:{name}"), place) if came else Left(place)


def _place_of_installation(activity: Activity, recipient: TeamsRecipient) -> TeamsLocation | None:
    """The conversation; in a team the channel, and in a direct chat it is known whose it is."""
    visitor = visitor_of(activity, recipient)
    return visitor.location if visitor else location_of_activity(activity, recipient)


def _is_among(bot: str, activity: Activity, members: str) -> bool:
    return bot != "" and any(token(member, "id") == bot for member in parts(activity, members))


def _time(activity: Activity, recipient: TeamsRecipient) -> float:
    """Seconds since the epoch."""
    try:
        at = datetime.fromisoformat(words(activity, "timestamp"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return recipient.now
