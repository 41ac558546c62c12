"""The ids of DESIGN section 2 as Slack spells them: people, places, messages, clicks."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain import Place

PLATFORM = "slack"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where in Slack something is posted: a channel, and a thread of it or none."""

    team: str
    """The workspace whose installation we speak as."""
    channel: str
    thread_ts: str = ""
    """Empty: in the channel itself, as in a direct message outside the agent container."""


def person_id(team: str, user: str) -> str:
    """`slack:{team}:{user}`."""
    return f"{PLATFORM}:{team}:{user}"


def user_of(person: str) -> str:
    """The Slack user id at the end of a person id."""
    return person.rsplit(":", 1)[-1]


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


def place_of(spot: Spot, *, direct: bool) -> Place:
    """The place of a conversation. A direct message without a thread is divided into sessions."""
    key = f"{within_team(spot.team)}{spot.channel}" + (f":{spot.thread_ts}" if spot.thread_ts else "")
    address = {"team": spot.team, "channel": spot.channel, "thread_ts": spot.thread_ts}
    channel = "" if direct else f"{within_team(spot.team)}{spot.channel}"
    return Place(PLATFORM, key, address, channel=channel, direct=direct, has_threads=bool(spot.thread_ts))


def named_place(reference: str) -> Place | None:
    """The place that a policy names: `slack:{team}:{channel}`, or somebody's direct messages (`slack:{team}:{user}`).
    `None`: it is none of ours."""
    platform, _, rest = reference.partition(":")
    team, _, where = rest.partition(":")
    if platform != PLATFORM or not team or not where or ":" in where:
        return None
    return place_of(Spot(team, where), direct=is_user(where))


def is_user(channel: str) -> bool:
    """Whether a channel is given by the id of the person whose direct messages it is."""
    return channel[:1] in {"U", "W"}


def spot_of(place: Place) -> Spot:
    """Where to post for a place."""
    address = place.address
    return Spot(address["team"], address["channel"], address["thread_ts"])
