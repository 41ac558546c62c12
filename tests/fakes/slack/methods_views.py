"""views.*: modals and home tabs."""

from __future__ import annotations

import copy

from tests.fakes.slack.calls import Caller, required
from tests.fakes.slack.content import stored_view
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import APP_ID, Json, Trigger, Workspace, World

MOST_MODALS = 3
"""On top of each other (Slack: 3)."""


def open_modal(world: World, caller: Caller, arguments: Json) -> Json:
    """views.open: the only modal of that person."""
    view = stored_view(world, arguments.get("view"), "modal")
    trigger = _trigger(world, caller, arguments)
    world.modals[trigger.team, trigger.user] = [made := made_view(world, caller.workspace, view)]
    return {"view": copy.deepcopy(made)}


def push_modal(world: World, caller: Caller, arguments: Json) -> Json:
    """views.push: on top of the modal in which the trigger was issued."""
    view = stored_view(world, arguments.get("view"), "modal")
    trigger = _trigger(world, caller, arguments)
    stack = world.modals.get((trigger.team, trigger.user), [])
    if not stack:
        raise Refused("not_found")
    made = push(world, caller.workspace, trigger.user, view)
    return {"view": copy.deepcopy(made)}


def update_modal(world: World, caller: Caller, arguments: Json) -> Json:
    """views.update, by view_id or external_id; with `hash` only if nobody was faster."""
    view = stored_view(world, arguments.get("view"), "modal")
    for (team, _), stack in world.modals.items():
        for position, shown in enumerate(stack):
            if team == caller.team and _is_meant(shown, arguments):
                if arguments.get("hash", shown["hash"]) != shown["hash"]:
                    raise Refused("hash_conflict")
                stack[position] = renewed(world, shown, view)
                return {"view": copy.deepcopy(stack[position])}
    raise Refused("not_found")


def publish_home(world: World, caller: Caller, arguments: Json) -> Json:
    """views.publish: the home tab of one person."""
    view = stored_view(world, arguments.get("view"), "home")
    user = required(arguments, "user_id")
    world.user(caller.team, user)
    before = world.homes.get((caller.team, user))
    if before is not None and arguments.get("hash", before["hash"]) != before["hash"]:
        raise Refused("hash_conflict")
    made = renewed(world, before, view) if before else made_view(world, caller.workspace, view)
    world.homes[caller.team, user] = made
    return {"view": copy.deepcopy(made)}


# ------------------------------------------------------------------------------------------- parts


def push(world: World, workspace: Workspace, user: str, view: Json) -> Json:
    """A further modal for somebody who has one open. Raises `Refused`."""
    stack = world.modals[workspace.team, user]
    if len(stack) >= MOST_MODALS:
        raise Refused("push_limit_reached")
    made = made_view(world, workspace, view)
    made |= {"root_view_id": stack[0]["id"], "previous_view_id": stack[-1]["id"]}
    stack.append(made)
    return made


def made_view(world: World, workspace: Workspace, view: Json) -> Json:
    """A new view as Slack stores it."""
    view_id = world.next_id("V")
    return {
        "id": view_id,
        "team_id": workspace.team,
        "app_id": APP_ID,
        "app_installed_team_id": workspace.team,
        "bot_id": workspace.bot_id,
        "title": None,
        "submit": None,
        "close": None,
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "clear_on_close": False,
        "notify_on_close": False,
        "root_view_id": view_id,
        "previous_view_id": None,
        **view,
        "state": {"values": {}},
        "hash": world.next_id("1700000000.h"),
    }


def renewed(world: World, before: Json, view: Json) -> Json:
    """The same view with other content: the id stays, the hash does not."""
    cleared = {"title": None, "submit": None, "close": None, "private_metadata": "", "callback_id": ""}
    return {**before, **cleared, **view, "state": {"values": {}}, "hash": world.next_id("1700000000.h")}


def _trigger(world: World, caller: Caller, arguments: Json) -> Trigger:
    return world.exchange_trigger(caller.team, required(arguments, "trigger_id", "invalid_trigger_id"))


def _is_meant(view: Json, arguments: Json) -> bool:
    if arguments.get("view_id"):
        return bool(view["id"] == arguments["view_id"])
    return bool(view["external_id"]) and view["external_id"] == arguments.get("external_id")
