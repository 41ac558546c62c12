"""Where an app may speak and read."""

from __future__ import annotations

from tests.fakes.slack.calls import Caller
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Channel, World


def spoken_in(world: World, caller: Caller, name: str) -> Channel:
    """A channel that the app may post in; a user's id is their direct messages. Raises `Refused`."""
    channel = (
        world.direct(caller.team, name) if (caller.team, name) in world.users else world.channel(caller.team, name)
    )
    _entered(channel, caller)
    if channel.is_archived:
        raise Refused("is_archived")
    return channel


def readable(world: World, caller: Caller, name: str) -> Channel:
    """A channel whose messages the app may read. Raises `Refused`."""
    channel = world.channel(caller.team, name)
    _entered(channel, caller)
    return channel


def visible(world: World, caller: Caller, name: str) -> Channel:
    """A channel that the app may know of. Raises `Refused`."""
    channel = world.channel(caller.team, name)
    if channel.kind != "channel":
        _entered(channel, caller)
    return channel


def _entered(channel: Channel, caller: Caller) -> None:
    if caller.workspace.bot_user not in channel.members:
        raise Refused("not_in_channel" if channel.kind == "channel" else "channel_not_found")
