"""What becomes of a modal when the app has answered its submission, as Slack's client does it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fakes.slack.content import stored_view
from tests.fakes.slack.methods_views import push, renewed
from tests.fakes.slack.refused import Refused
from tests.fakes.slack.world import Json, World
from tests.support.slack_transports import Answer


def settle_modal(
    world: World, team: str, user: str, view: Json, answer: Answer
) -> tuple[Json | None, Mapping[str, str]]:
    """The modal that is visible afterwards, and the errors it shows.

    Raises `AssertionError` where Slack would say "We had some trouble connecting" for what the app answered.
    """
    stack = world.modals.get((team, user), [])
    if answer.status == 200:
        told = answer.json or {}
        match told.get("response_action"):
            case None:
                assert not told, f"Slack does not take {told}"
                stack[:] = [shown for shown in stack if shown["id"] != view["id"]]
            case "clear":
                stack.clear()
            case "errors":
                return view, _errors(view, told)
            case "update":
                new = _view(world, told)
                stack[:] = [renewed(world, shown, new) if shown["id"] == view["id"] else shown for shown in stack]
            case "push":
                push(world, world.workspaces[team], user, _view(world, told))
            case other:
                raise AssertionError(f"Slack knows no response_action {other!r}")
    return (stack[-1] if stack else None), {}


def _errors(view: Json, told: Json) -> dict[str, str]:
    errors = told.get("errors")
    assert isinstance(errors, dict) and errors, "response_action errors without errors"
    inputs = {block["block_id"] for block in view["blocks"] if block["type"] == "input"}
    assert set(errors) <= inputs, f"errors for blocks that are no inputs: {sorted(set(errors) - inputs)}"
    assert all(isinstance(text, str) and text for text in errors.values()), f"an error without words: {errors}"
    return dict(errors)


def _view(world: World, told: Json) -> Json:
    try:
        return stored_view(world, told.get("view"), "modal")
    except Refused as refused:
        raise AssertionError(f"Slack does not take this view: {refused}") from None
