"""What the fake Slack knows: workspaces, people, channels, messages, views. No HTTP here."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.slack.clock import Clock
from tests.fakes.slack.refused import Refused

Json = dict[str, Any]

APP_ID = "A1"
TRIGGER_LIVES = 3.0
"""Seconds (Slack: 3 s)."""


@dataclass
class Workspace:
    """A workspace and our app in it."""

    team: str
    name: str
    bot_user: str
    bot_id: str
    scopes: str = (
        "app_mentions:read,chat:write,commands,files:read,im:history,users:read,users:read.email,usergroups:read"
    )

    @property
    def domain(self) -> str:
        """The first label of its address."""
        return self.name.lower().replace(" ", "-")


@dataclass
class Channel:
    """A place with messages."""

    id: str
    team: str
    members: set[str]
    kind: str = "channel"
    """`channel` (public), `group` (private), `im` or `mpim`, as in `channel_type`."""
    name: str = ""
    is_archived: bool = False
    is_ext_shared: bool = False
    """Shared with another organisation (Slack Connect)."""
    messages: dict[str, Json] = field(default_factory=dict)
    """By ts, oldest first, replies too, as they are stored: with metadata."""


@dataclass
class Token:
    """A token of our app, or of our app for one workspace."""

    team: str
    revoked: bool = False
    expires_at: float | None = None
    """In moved seconds."""


@dataclass
class Trigger:
    """What lets an app open a modal for somebody."""

    team: str
    user: str
    issued_at: float
    view_id: str = ""
    """The modal in which it was issued: what is pushed goes on top of it."""
    used: bool = False


class World:
    """The whole state. Methods of the Web API change it; tests look into it and prepare it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.base_url = ""
        self.workspaces: dict[str, Workspace] = {}
        self.channels: dict[str, Channel] = {}
        self.users: dict[tuple[str, str], Json] = {}
        self.user_groups: dict[tuple[str, str], set[str]] = {}
        """Members of user groups, by team and group id."""
        self.tokens: dict[str, Token] = {}
        self.refresh_tokens: dict[str, str] = {}
        """The team of each refresh token that is still good."""
        self.codes: dict[str, Json] = {}
        """What each code of an install is good for."""
        self.client_id, self.client_secret = "CLIENT", "client-secret"
        self.app_token = "xapp-1"
        self.triggers: dict[str, Trigger] = {}
        self.ephemerals: list[Json] = []
        self.modals: dict[tuple[str, str], list[Json]] = {}
        """The stack of open modals of each (team, user), the visible one last."""
        self.homes: dict[tuple[str, str], Json] = {}
        self.assistant: list[Json] = []
        """Statuses, prompts and titles of threads, in the order they were set."""
        self.response_urls: dict[str, Json] = {}
        self.files: dict[str, tuple[bytes, Json]] = {}
        """Content of the files that people have uploaded, by id, and what Slack says of each."""
        self.moved: dict[str, str] = {}
        """Where whoever wants a file is sent instead, by its id."""
        self.product_mistakes: list[str] = []
        self._numbers = itertools.count(1)
        self._last_ts = 0

    # ------------------------------------------------------------------------------------------- names

    def next_ts(self) -> str:
        """The id of the next message: later than any before."""
        self._last_ts = max(self._last_ts + 1, int(self.clock.now() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def next_id(self, prefix: str) -> str:
        """An id that was not given before."""
        return f"{prefix}{next(self._numbers):06d}"

    # ------------------------------------------------------------------------------------------- people

    def user(self, team: str, user: str) -> Json:
        """A user as that workspace sees them. Raises `Refused`."""
        if (team, user) not in self.users:
            raise Refused("user_not_found")
        return self.users[team, user]

    def known_users(self) -> set[str]:
        """Everybody who may be mentioned."""
        return {user for _, user in self.users} | {w.bot_user for w in self.workspaces.values()}

    # ------------------------------------------------------------------------------------------- places

    def channel(self, team: str, channel: str) -> Channel:
        """A channel of that workspace. Raises `Refused`."""
        found = self.channels.get(channel)
        if found is None or found.team != team:
            raise Refused("channel_not_found")
        return found

    def direct(self, team: str, user: str) -> Channel:
        """The direct messages between the app and somebody, opened if they were not. Raises `Refused`."""
        self.user(team, user)
        for channel in self.channels.values():
            if channel.team == team and channel.kind == "im" and user in channel.members:
                return channel
        number = next(n for n in itertools.count(1) if f"D{n}" not in self.channels)
        channel = Channel(f"D{number}", team, {user, self.workspaces[team].bot_user}, "im")
        self.channels[channel.id] = channel
        return channel

    def message(self, ts: str) -> tuple[Channel, Json] | None:
        """A message wherever it is: no two messages of one fake have the same ts."""
        for channel in self.channels.values():
            if ts in channel.messages:
                return channel, channel.messages[ts]
        return None

    # ------------------------------------------------------------------------------------------- triggers

    def issue_trigger(self, team: str, user: str, view_id: str = "") -> str:
        """A new trigger id."""
        trigger = f"{next(self._numbers)}.{team}.{user}"
        self.triggers[trigger] = Trigger(team, user, self.clock.moved, view_id)
        return trigger

    def exchange_trigger(self, team: str, trigger_id: str) -> Trigger:
        """Use it up. Raises `Refused`: unknown, expired, used before."""
        trigger = self.triggers.get(trigger_id)
        if trigger is None or trigger.team != team:
            raise Refused("invalid_trigger_id")
        if trigger.used:
            raise Refused("exchanged_trigger_id")
        if self.clock.moved - trigger.issued_at > TRIGGER_LIVES:
            raise Refused("expired_trigger_id")
        trigger.used = True
        return trigger


def with_block_ids(world: World, blocks: Iterable[Json]) -> list[Json]:
    """The blocks as Slack stores them: those without an id have got one."""
    return [{**copy.deepcopy(block), "block_id": block.get("block_id") or world.next_id("b")} for block in blocks]
