"""The ids that the rest of the product knows people, places, messages and clicks by, made from Slack's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from adapters.shared.untrusted_json import matching, one_line_up_to
from bot.domain import ConversationReference, Shown

PLATFORM = "slack"


@dataclass(frozen=True, slots=True)
class SlackLocation:
    """Where in Slack something is posted: a channel, and a thread of it or none."""

    team: str
    """The workspace whose installation is used."""
    channel: str
    thread_ts: str = ""
    """Empty: in the channel itself, as in a direct message outside the agent container."""


def person_id(team: str, user: str) -> str:
    """`slack:{team}:{user}`."""
    return f"{PLATFORM}:{team}:{user}"


def message_key(team: str, channel: str, ts: str) -> str:
    """The message's own identity: one mention arrives as two events, retries have other event ids."""
    return f"{PLATFORM}:{team}:{channel}:{ts}"


def ts_of(key: str) -> str:
    """The message's timestamp at the end of its key."""
    return key.rsplit(":", 1)[-1]


def click_key(team: str, container: str, action_ts: str, user: str) -> str:
    """A click: clicks have no event id. `container` is the message's ts or the view's id."""
    return f"{PLATFORM}:{team}:{container}:{action_ts}:{user}"


def form_key(team: str, view_id: str, view_hash: str) -> str:
    """A submitted modal."""
    return f"{PLATFORM}:{team}:{view_id}:{view_hash}"


def within_team(team: str) -> str:
    """What the ids of all threads of a workspace begin with."""
    return f"{PLATFORM}:{team}:"


def place_of(location: SlackLocation, *, direct: bool) -> ConversationReference:
    """The place of a conversation. A direct message without a thread is divided into sessions."""
    key = f"{within_team(location.team)}{location.channel}" + (f":{location.thread_ts}" if location.thread_ts else "")
    address = {"team": location.team, "channel": location.channel, "thread_ts": location.thread_ts}
    channel = "" if direct else f"{within_team(location.team)}{location.channel}"
    return ConversationReference(
        PLATFORM, key, address, channel=channel, direct=direct, has_threads=bool(location.thread_ts)
    )


def named_place(reference: str) -> ConversationReference | None:
    """The place that a policy names: `slack:{team}:{channel}`, or somebody's direct messages (`slack:{team}:{user}`).
    `None`: it is none of ours."""
    platform, _, rest = reference.partition(":")
    team, _, where = rest.partition(":")
    if platform != PLATFORM or not team or not where or ":" in where:
        return None
    return place_of(SlackLocation(team, where), direct=is_user(where))


def is_user(channel: str) -> bool:
    """Whether a channel is given by the id of the person whose direct messages it is."""
    return channel[:1] in {"U", "W"}


def location_of(place: ConversationReference) -> SlackLocation:
    """Where to post for a place."""
    address = place.address
    return SlackLocation(address["team"], address["channel"], address["thread_ts"])


# ------------------------------------------------------------------------ ids in what Slack sends
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TS = re.compile(r"\d{1,12}\.\d{1,9}")
_TOKEN = re.compile(r"[!-~]{1,300}")
_LONGEST_ID = 500


def slack_id(payload: object, *path: str) -> str:
    """An id of Slack's (`U123`, `C123`, `T123`, `V123`); empty when it is none."""
    return matching(_ID, payload, *path)


def slack_ts(payload: object, *path: str) -> str:
    """A timestamp of Slack's (`1700000000.000100`), which names a message; empty when it is none."""
    return matching(_TS, payload, *path)


def token(payload: object, *path: str) -> str:
    """An opaque word that goes into a key or back to Slack (trigger, hash); empty when it is none."""
    return matching(_TOKEN, payload, *path)


def our_id(payload: object, *path: str) -> str:
    """An id of ours that comes back on a button: as long as one may be, and in one line; empty when it is none."""
    return one_line_up_to(_LONGEST_ID, payload, *path)


# Permanent links to what is shown in Slack. Pure: Slack's own form of them, without asking for each.


def permalink(workspace_url: str, shown: Shown) -> str:
    """Where a post is shown: its own message, or where that is not known its thread or channel.

    `workspace_url` is what `auth.test` calls `url`: `https://acme.slack.com/`.
    """
    location = location_of(shown.post.place)
    ts = _first_part(shown) or location.thread_ts
    link = f"{workspace_url.rstrip('/')}/archives/{location.channel}"
    if not ts:
        return link
    within = f"?{urlencode({'thread_ts': location.thread_ts, 'cid': location.channel})}" if location.thread_ts else ""
    return f"{link}/p{ts.replace('.', '')}{within}"


def _first_part(shown: Shown) -> str:
    parts = (shown.reference or {}).get("parts") or ()
    return str(parts[0]) if parts else ""
