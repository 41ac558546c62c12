"""What a bot may answer to Teams' invokes."""

from __future__ import annotations

from typing import Any

from tests.fakes.teams.card_rules import mistakes
from tests.fakes.teams.inputs import CARD

MESSAGE = "application/vnd.microsoft.activity.message"
_ERROR = "application/vnd.microsoft.error"
_SIZES = ("small", "medium", "large")


def action_mistakes(body: Any) -> list[str]:
    """What is wrong with the answer to `adaptiveCard/action`.

    https://learn.microsoft.com/adaptive-cards/authoring-cards/universal-action-model#response-format
    """
    if not isinstance(body, dict) or set(body) - {"statusCode", "type", "value"}:
        return ["action: the answer is an object with statusCode, type and value"]
    kind, value = body.get("type"), body.get("value")
    if not isinstance(body.get("statusCode"), int):
        return ["action: statusCode is missing"]
    if kind == CARD:
        return [f"action: {mistake}" for mistake in mistakes(value, surface="message")]
    if kind == MESSAGE:
        return [] if isinstance(value, str) and value else ["action: a message is a text"]
    if isinstance(kind, str) and kind.startswith(_ERROR):
        is_error = isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("code", "message"))
        return [] if is_error and body["statusCode"] >= 400 else ["action: an error has a code and a message"]
    return [f"action: unknown type {kind!r}"]


def dialog_mistakes(body: Any) -> list[str]:
    """What is wrong with the answer to `task/fetch` or `task/submit`. Nothing at all closes the dialog.

    https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/task-modules/task-modules-bots
    """
    if body is None or body == {}:
        return []
    task = body.get("task") if isinstance(body, dict) else None
    if not isinstance(task, dict) or task.get("type") not in ("continue", "message"):
        return ["dialog: the answer is a task of type continue or message"]
    value = task.get("value")
    if task["type"] == "message":
        return [] if isinstance(value, str) and value else ["dialog: a message is a text"]
    if not isinstance(value, dict):
        return ["dialog: value is missing"]
    wrong = [
        f"dialog: {name} is a number of pixels or one of {_SIZES}"
        for name in ("height", "width")
        if name in value and not (value[name] in _SIZES or isinstance(value[name], int))
    ]
    if not isinstance(value.get("title"), str) or not value["title"]:
        wrong.append("dialog: it has no title")
    if unknown := set(value) - {"title", "height", "width", "card"}:
        wrong.append(f"dialog: unknown {sorted(unknown)}")
    card = value.get("card")
    if not isinstance(card, dict) or card.get("contentType") != CARD:
        return [*wrong, "dialog: card is an attachment"]
    return wrong + [f"dialog: {mistake}" for mistake in mistakes(card.get("content"), surface="dialog")]
