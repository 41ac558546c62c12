"""A few blocks to build on, for tests of the rules."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text}


def section(text: str) -> Json:
    return {"type": "section", "text": plain(text)}


def button(text: str = "Go", **more: Any) -> Json:
    return {"type": "button", "text": plain(text), "action_id": "go", **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def numbered(count: int) -> list[Json]:
    return [button(action_id=f"go{n}") for n in range(count)]


def field(element: Json, **more: Any) -> Json:
    return {"type": "input", "label": plain("Name"), "element": {"action_id": "value", **element}, **more}


def options(count: int, text: str = "one", value: str = "v") -> list[Json]:
    return [{"text": plain(text), "value": f"{value}{n}"} for n in range(count)]


def words(*elements: Json) -> Json:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}


def items(**more: Any) -> Json:
    item = {"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_list", "style": "bullet", "elements": [item], **more}],
    }


def table(rows: int, columns: int, text: str = "x") -> Json:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": text}] * columns for _ in range(rows)]}


def confirm(title: int = 1, text: int = 1, yes: int = 1) -> Json:
    return {"title": plain("t" * title), "text": plain("t" * text), "confirm": plain("y" * yes), "deny": plain("No")}


def picture() -> Json:
    return {"type": "image", "image_url": "https://example.com/a.png", "alt_text": "a"}


def task(task_id: str = "1", title: str = "x", **more: Any) -> Json:
    return {"type": "task_card", "task_id": task_id, "title": title, "status": "pending", **more}


def plan(*tasks: Json, title: str = "x") -> Json:
    return {"type": "plan", "title": title, "tasks": list(tasks)}


def feedback(value: str = "good:1") -> Json:
    pressed = {"text": plain("Good"), "value": value}
    return {"type": "feedback_buttons", "action_id": "f", "positive_button": pressed, "negative_button": pressed}
