"""Slack's documented limits for blocks and views, and our product's own: no images, nothing that pings by accident.

`mistakes(blocks)` says in words what Slack would refuse; an empty list means that it would show them.
https://docs.slack.dev/reference/block-kit
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from tests.fakes.slack.element_rules import (
    IN_ACTIONS,
    IN_CONTEXT_ACTIONS,
    IN_INPUT,
    IN_SECTION,
    element_mistakes,
)
from tests.fakes.slack.rich_text_rules import TABLE_CHARACTERS, rich_text, table, text_length
from tests.fakes.slack.text_rules import (
    Mistakes,
    Scope,
    flags,
    keys,
    kind_of,
    listed,
    plain,
    string,
    text_mistakes,
    text_object,
)

__all__ = ["EVERYTHING_TOO_LONG", "metadata_mistakes", "mistakes", "text_mistakes", "view_mistakes"]

Block = dict[str, Any]

MOST_BLOCKS = {"message": 50, "modal": 100, "home": 100}
EVERYTHING_TOO_LONG = "msg_blocks_too_long"
"""Slack's word for a message whose blocks hold too much in all: begins the mistake that says so."""
MESSAGE_CHARACTERS = 13_000
"""Characters in all blocks of a message (Slack does not document it; about 13,200 have been seen to be refused)."""
MARKDOWN_CHARACTERS = 12_000
"""Characters in all markdown blocks of a message (Slack)."""
VIEW_BYTES = 250_000
"""Bytes of a view as JSON (Slack: 250 KB)."""
METADATA_BYTES = 8_000
"""Bytes of a message's metadata as JSON; what is seen to be refused (Slack: metadata_too_large)."""


def mistakes(blocks: Any, surface: str = "message", *, users: Collection[str] | None = None) -> list[str]:
    """What is wrong with the blocks of a `message`, `modal` or `home`. `users`: who may be mentioned (default: any)."""
    scope = Scope(surface, users)
    wrong = list(listed(blocks, "/blocks", MOST_BLOCKS[surface], 0))
    if not isinstance(blocks, list):
        return wrong
    for number, block in enumerate(blocks):
        wrong += _block(block, f"/blocks/{number}", scope)
    if wrong:
        return wrong
    return [
        *_twice([block["block_id"] for block in blocks if "block_id" in block], "/blocks: block_id"),
        *_sums(blocks, surface),
    ]


def view_mistakes(view: Any, *, surface: str = "modal", users: Collection[str] | None = None) -> list[str]:
    """What is wrong with a modal or a home tab as a whole."""
    if not isinstance(view, dict):
        return ["/: a view is an object"]
    scope = Scope(surface, users)
    optional = {"private_metadata", "callback_id", "external_id"}
    wrong: list[str] = []
    if surface == "modal":
        wrong += keys(view, "", {"type", "title", "blocks"}, {*optional, *MODAL_ONLY})
        wrong += plain(view.get("title"), "/title", scope, 24)
        for name in ("submit", "close"):
            wrong += plain(view[name], f"/{name}", scope, 24) if view.get(name) is not None else ()
        wrong += flags(view, "", "clear_on_close", "notify_on_close", "submit_disabled")
    else:
        wrong += keys(view, "", {"type", "blocks"}, optional)
    if view.get("type") != surface:
        wrong.append(f"/type: not {surface}")
    wrong += string(view.get("private_metadata", ""), "/private_metadata", 3000, 0)
    wrong += string(view.get("callback_id", ""), "/callback_id", 255, 0)
    wrong += string(view.get("external_id", ""), "/external_id", 255, 0)
    wrong += mistakes(view.get("blocks"), surface, users=users)
    if wrong:
        return wrong
    if surface == "modal" and not view.get("submit") and any(b["type"] == "input" for b in view["blocks"]):
        wrong.append("/submit: a modal with an input needs it")
    if sum(bool(e.get("focus_on_load")) for block in view["blocks"] for e in elements_of(block)) > 1:
        wrong.append("/blocks: focus_on_load on more than one element")
    if (size := len(json.dumps(view).encode())) > VIEW_BYTES:
        wrong.append(f"/: {size:,} bytes, {VIEW_BYTES:,} are allowed")
    return wrong


def metadata_mistakes(metadata: Any) -> list[str]:
    """What is wrong with a message's metadata."""
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_payload"), dict):
        return ["/metadata: needs event_type and the object event_payload"]
    wrong = [*keys(metadata, "/metadata", {"event_type", "event_payload"})]
    wrong += string(metadata.get("event_type"), "/metadata/event_type", 255)
    if len(json.dumps(metadata).encode()) > METADATA_BYTES:
        wrong.append(f"/metadata: more than {METADATA_BYTES:,} bytes")
    return wrong


def elements_of(block: Block) -> list[dict[str, Any]]:
    """The interactive elements of a block."""
    if block.get("type") in {"actions", "context_actions"}:
        return list(block["elements"])
    found = block.get("accessory") or block.get("element")
    return [found] if found else []


# ------------------------------------------------------------------------------------------- one block


def _block(block: Any, where: str, scope: Scope) -> Mistakes:
    kind = kind_of(block)
    if kind not in BLOCKS:
        yield f"{where}: {kind!r} is no block that we use"
        return
    check, required, optional, surfaces = BLOCKS[kind]
    if scope.surface not in surfaces:
        yield f"{where}: {kind} is not for a {scope.surface}"
    yield from keys(block, where, {"type", *required}, {"block_id", *optional})
    if "block_id" in block:
        yield from string(block["block_id"], f"{where}/block_id", 255)
    yield from check(block, where, scope)


def _section(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from flags(block, where, "expand")
    if "text" not in block and "fields" not in block:
        yield f"{where}: neither text nor fields"
    if "text" in block:
        yield from text_object(block["text"], f"{where}/text", scope, 3000)
    if "fields" in block:
        yield from listed(block["fields"], f"{where}/fields", 10)
        for number, value in enumerate(block["fields"] if isinstance(block["fields"], list) else ()):
            yield from text_object(value, f"{where}/fields/{number}", scope, 2000)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{where}/accessory", scope, IN_SECTION)


def _header(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from plain(block.get("text"), f"{where}/text", scope, 150)


def _divider(_block: Block, _where: str, _scope: Scope) -> Mistakes:
    yield from ()


def _context(block: Block, where: str, scope: Scope) -> Mistakes:
    elements = block.get("elements")
    yield from listed(elements, f"{where}/elements", 10)
    for number, element in enumerate(elements if isinstance(elements, list) else ()):
        yield from text_object(element, f"{where}/elements/{number}", scope, 3000)


def _rows_of(allowed: Collection[str], most: int) -> Callable[[Block, str, Scope], Mistakes]:
    def check(block: Block, where: str, scope: Scope) -> Mistakes:
        elements = block.get("elements")
        yield from listed(elements, f"{where}/elements", most)
        if not isinstance(elements, list):
            return
        for number, element in enumerate(elements):
            yield from _element(element, f"{where}/elements/{number}", scope, allowed)
        ids = [e["action_id"] for e in elements if isinstance(e, dict) and "action_id" in e]
        yield from _twice(ids, f"{where}/elements: action_id")

    return check


def _input(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from flags(block, where, "optional", "dispatch_action")
    yield from plain(block.get("label"), f"{where}/label", scope, 2000)
    if "hint" in block:
        yield from plain(block["hint"], f"{where}/hint", scope, 2000)
    yield from _element(block.get("element"), f"{where}/element", scope, IN_INPUT)


def _markdown(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from string(block.get("text"), f"{where}/text", MARKDOWN_CHARACTERS)
    if isinstance(block.get("text"), str):
        yield from (f"{where}/text: {mistake}" for mistake in text_mistakes(block["text"], users=scope.users))


def _task_card(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from string(block.get("task_id"), f"{where}/task_id", 255)
    yield from _literal_title(block.get("title"), f"{where}/title")
    if block.get("status") not in ("pending", "in_progress", "complete", "error"):
        yield f"{where}/status: unknown"
    for name in ("details", "output"):
        if name in block:
            yield from _block(block[name], f"{where}/{name}", scope)


def _literal_title(title: Any, where: str) -> Mistakes:
    yield from string(title, where, 256)
    if isinstance(title, str) and "<" in title:
        yield f"{where}: might be markup"


def _plan(block: Block, where: str, scope: Scope) -> Mistakes:
    yield from _literal_title(block.get("title"), f"{where}/title")
    tasks = block.get("tasks")
    yield from listed(tasks, f"{where}/tasks", 50)
    for number, task in enumerate(tasks if isinstance(tasks, list) else ()):
        if kind_of(task) != "task_card":
            yield f"{where}/tasks/{number}: no task card"
        else:
            yield from _block(task, f"{where}/tasks/{number}", scope)
    ids = [str(task.get("task_id")) for task in tasks or () if isinstance(task, dict)]
    yield from _twice(ids, f"{where}/tasks: task_id")


def _element(element: Any, where: str, scope: Scope, allowed: Collection[str]) -> Mistakes:
    if kind_of(element) not in allowed:
        yield f"{where}: {kind_of(element)!r} is not allowed in here"
    else:
        yield from element_mistakes(element, where, scope)


def _twice(ids: list[str], what: str) -> Mistakes:
    yield from (f"{what} {name!r} is there more than once" for name in sorted({i for i in ids if ids.count(i) > 1}))


def _sums(blocks: list[Block], surface: str) -> Mistakes:
    if surface != "message":
        return
    tables = [block for block in blocks if block["type"] == "table"]
    if len(tables) > 1:
        yield "/blocks: only one table is allowed in a message"
    if (length := sum(text_length(block["rows"]) for block in tables)) > TABLE_CHARACTERS:
        yield f"/blocks: {length:,} characters in a table, {TABLE_CHARACTERS:,} are allowed"
    if (length := sum(text_length(b) for b in blocks if b["type"] == "markdown")) > MARKDOWN_CHARACTERS:
        yield f"/blocks: {length:,} characters in markdown blocks, {MARKDOWN_CHARACTERS:,} are allowed"
    if (length := text_length(blocks)) > MESSAGE_CHARACTERS:
        yield f"{EVERYTHING_TOO_LONG}: {length:,} characters, {MESSAGE_CHARACTERS:,} are allowed"


MODAL_ONLY = {"submit", "close", "clear_on_close", "notify_on_close", "submit_disabled"}
EVERYWHERE = {"message", "modal", "home"}
IN_MESSAGES = {"message"}
Check = Callable[[Block, str, Scope], Mistakes]
BLOCKS: dict[str, tuple[Check, set[str], set[str], set[str]]] = {
    # type: check, required, optional, surfaces
    "section": (_section, set(), {"text", "fields", "accessory", "expand"}, EVERYWHERE),
    "header": (_header, {"text"}, set(), EVERYWHERE),
    "divider": (_divider, set(), set(), EVERYWHERE),
    "context": (_context, {"elements"}, set(), EVERYWHERE),
    "actions": (_rows_of(IN_ACTIONS, 25), {"elements"}, set(), EVERYWHERE),
    "context_actions": (_rows_of(IN_CONTEXT_ACTIONS, 5), {"elements"}, set(), IN_MESSAGES),
    "input": (_input, {"label", "element"}, {"hint", "optional", "dispatch_action"}, EVERYWHERE),
    "rich_text": (rich_text, {"elements"}, set(), EVERYWHERE),
    "markdown": (_markdown, {"text"}, set(), IN_MESSAGES),
    "table": (table, {"rows"}, {"column_settings"}, IN_MESSAGES),
    "task_card": (_task_card, {"task_id", "title", "status"}, {"details", "output", "sources"}, IN_MESSAGES),
    "plan": (_plan, {"title"}, {"tasks"}, IN_MESSAGES),
}
