"""What people do on cards and in dialogs, read from what Teams sends. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adapters.shared.untrusted_json import part, words
from adapters.teams.actions import ACTION, SUBJECT
from adapters.teams.ids import click_key, our_id, token
from adapters.teams.inbound.visitors import TeamsVisitor
from bot.safe_text import shorten

Activity = Mapping[str, Any]

LONGEST_COMMENT = 2_000
"""Characters of what somebody says about an answer."""


@dataclass(frozen=True, slots=True)
class TeamsClick:
    """A button was clicked, on a card or in a dialog."""

    visitor: TeamsVisitor
    action: str
    """Its name in `actions`; empty: it is no button of ours."""
    subject: str
    """Id of what it is about; empty when it is none of ours."""
    data: Mapping[str, Any]
    """With the inputs that stood beside it."""
    key: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody thinks of an answer, said with the buttons below it."""

    verdict: Literal["good", "bad"]
    comment: str


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


def read_opinion(activity: Activity) -> Opinion | None:
    """`message/submitAction`; `None`: it is no feedback."""
    given = part(activity, "value", "actionValue")
    verdicts: dict[str, Literal["good", "bad"]] = {"like": "good", "dislike": "bad"}
    verdict = verdicts.get(words(given, "reaction"))
    if words(activity, "value", "actionName") != "feedback" or verdict is None:
        return None
    return Opinion(verdict, shorten(_comment(given.get("feedback")).strip(), LONGEST_COMMENT))


def _comment(feedback: object) -> str:
    """Teams writes it as JSON within a text, other clients as an object or as it is."""
    if isinstance(feedback, str):
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
