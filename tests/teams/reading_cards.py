"""What a card says, read off as a person would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.teams.render.posts import Audience, activities
from bot.domain import Content
from tests.teams.shown import a_post

Json = Mapping[str, Any]
EVERYBODY = Audience("open")
CHAT = Audience("personal")


def shown(content: Content, audience: Audience = EVERYBODY) -> Json:
    """The card of a post."""
    [activity] = activities(a_post(content), audience)
    return dict(activity["attachments"][0]["content"])


def buttons(card: Json) -> dict[str, str]:
    """The words on the buttons of a card → what they carry: name and id, or address."""
    return {action["title"]: _carried(action) for action in card.get("actions", []) if "targetElements" not in action}


def _carried(action: Json) -> str:
    if action["type"] == "Action.ShowCard":
        return ", ".join(map(_carried, action["card"]["actions"]))
    data = action.get("data", {})
    return action.get("url") or f"{data['countersign']} {data['id']}"


def facts(card: Json) -> list[tuple[str, str]]:
    sets = [element["facts"] for element in card["body"] if element["type"] == "FactSet"]
    return [(fact["title"], fact["value"]) for each in sets for fact in each]


def said(element: Any) -> str:
    """All words of a card, a line for each paragraph."""
    return "\n".join(_lines(element))


def _lines(element: Any) -> Iterator[str]:
    match element:
        case {"type": "TextBlock"}:
            yield element["text"]
        case {"type": "RichTextBlock"}:
            yield "".join(run["text"] for run in element["inlines"])
        case Mapping():
            for value in element.values():
                yield from _lines(value)
        case list() | tuple():
            for value in element:
                yield from _lines(value)
