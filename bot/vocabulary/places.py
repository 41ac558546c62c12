"""People and places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Person:
    """A user on a platform."""

    person_id: str
    """`slack:{team}:{user}`, `teams:{tenant}:{aad object id}`, `web:{name}`."""
    name: str
    time_zone: str = "UTC"
    """IANA name."""
    locale: str = "en"
    email: str = ""
    """Address that the platform vouches for, in lower case: who has the same on two platforms is one human. Empty: the
    platform does not say."""


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """What a platform knows of whose an account is."""

    email: str = ""
    """Address that it vouches for, of a full member only; empty: none, or it could not be found out."""
    claimed: tuple[str, ...] = ()
    """Further addresses that stand with the account, and for which it does not vouch."""
    is_member: bool | None = None
    """Whether it is a full member's of the workspace or tenant in its person id; false: a guest's, or another
    company's. `None`: could not be found out."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where on a platform a conversation is held."""

    platform: str
    key: str
    """Names the place: `slack:{team}:{channel}:{thread_ts}`, `teams:{tenant}:{conversation}`, `web:{id}`."""
    address: Mapping[str, Any] = field(default_factory=dict)
    """What the platform's adapter needs to post there; opaque to everything else."""
    channel: str = ""
    """The channel the place belongs to, for policies; empty in a direct chat."""
    direct: bool = False
    """A 1:1 chat with the bot: everything said there is said to the bot."""
    has_threads: bool = True
    """False where conversations are not divided into threads, so that they are divided into sessions."""
