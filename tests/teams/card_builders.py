"""Cards to try the rules with."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def card(*body: Json, actions: list[Json] | None = None, **facts: Any) -> Json:
    """A card that the product is content with."""
    made: Json = {"type": "AdaptiveCard", "version": "1.5", "fallbackText": "A card", "body": list(body) or [text("x")]}
    return {**made, **({"actions": actions} if actions else {}), **facts}


def text(markdown: str, **facts: Any) -> Json:
    """A paragraph."""
    return {"type": "TextBlock", "text": markdown, "wrap": True, **facts}


def runs(*inlines: Any) -> Json:
    """Literal text."""
    return {"type": "RichTextBlock", "inlines": list(inlines)}


def facts(title: str = "Name", value: str = "Value") -> Json:
    """One label with its value."""
    return {"type": "FactSet", "facts": [{"title": title, "value": value}]}


def data(name: str = "approve", **more: Any) -> Json:
    """What a button carries."""
    return {"countersign": name, "id": "a1", **more}


def execute(name: str = "approve", title: str = "Approve", **changes: Any) -> Json:
    """A button that is answered with a card."""
    carried = changes.get("data", data(name))
    fallback = {"type": "Action.Submit", "title": title, "data": carried}
    return {
        "type": "Action.Execute",
        "title": title,
        "verb": name,
        "data": carried,
        "fallback": fallback,
        **changes,
    }


def submit(name: str = "edit", title: str = "Send", **more: Any) -> Json:
    """A button of a dialog, or one that opens a dialog."""
    return {"type": "Action.Submit", "title": title, "data": data(name, **more)}


def opens(name: str = "edit_dialog", title: str = "Edit…") -> Json:
    """A button that opens a dialog."""
    return submit(name, title, msteams={"type": "task/fetch"})


def unfolds(*body: Json, actions: list[Json] | None = None) -> Json:
    """A button that shows more of the card."""
    inner = {"type": "AdaptiveCard", "body": list(body), "actions": actions or [execute("reject", "Reject")]}
    return {"type": "Action.ShowCard", "title": "Reject…", "card": inner}


def asks(kind: str = "Text", name: str = "reason", **facts: Any) -> Json:
    """An input."""
    return {"type": f"Input.{kind}", "id": name, "label": "Why", **facts}


def choices(*values: str, **facts: Any) -> Json:
    """An input with choices."""
    offered = [{"title": value, "value": value} for value in values]
    return asks("ChoiceSet", "which", choices=offered, **facts)


def refreshing(*users: str, **facts: Any) -> Json:
    """Who sees something of their own."""
    action = {"type": "Action.Execute", "verb": "refresh", "data": data("refresh")}
    return {"action": action, "userIds": list(users), **facts}


def mention(address: str, name: str) -> Json:
    """What makes `<at>name</at>` in a card's text a mention of somebody."""
    return {"type": "mention", "text": f"<at>{name}</at>", "mentioned": {"id": address, "name": name}}
