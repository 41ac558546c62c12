"""The shape of rich_text and table blocks, whose text is literal."""

from __future__ import annotations

from typing import Any

from tests.fakes.slack.text_rules import Mistakes, Scope, flags, keys, kind_of, listed, string, url

STYLES = {"bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink"}
ROWS, COLUMNS, TABLE_CHARACTERS = 100, 20, 10_000
"""Slack: a table has 100 rows of 20 cells, and 10,000 characters in all its cells."""


def rich_text(block: Any, where: str, scope: Scope) -> Mistakes:
    """A rich_text block (or cell, or value)."""
    elements = block.get("elements")
    yield from listed(elements, f"{where}/elements", 10_000)
    for number, element in enumerate(elements if isinstance(elements, list) else ()):
        yield from _part(element, f"{where}/elements/{number}", scope)


def _part(element: Any, where: str, scope: Scope) -> Mistakes:
    kind = kind_of(element)
    match kind:
        case "rich_text_section":
            yield from keys(element, where, {"type", "elements"})
            yield from _inline(element.get("elements"), where, scope)
        case "rich_text_quote":
            yield from keys(element, where, {"type", "elements"}, {"border"})
            yield from _number(element, where, "border", 1)
            yield from _inline(element.get("elements"), where, scope)
        case "rich_text_preformatted":
            yield from keys(element, where, {"type", "elements"}, {"border", "language"})
            yield from _number(element, where, "border", 1)
            yield from _inline(element.get("elements"), where, scope, {"text", "link"})
        case "rich_text_list":
            yield from keys(element, where, {"type", "style", "elements"}, {"indent", "offset", "border"})
            if element.get("style") not in ("bullet", "ordered"):
                yield f"{where}/style: neither bullet nor ordered"
            yield from _number(element, where, "indent", 8)
            yield from _number(element, where, "offset", 1_000_000)
            yield from _number(element, where, "border", 1)
            yield from _items(element.get("elements"), f"{where}/elements", scope)
        case _:
            yield f"{where}: {kind!r} is no part of rich text"


def _items(items: Any, where: str, scope: Scope) -> Mistakes:
    yield from listed(items, where, 10_000)
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if kind_of(item) != "rich_text_section":
            yield f"{where}/{number}: an item of a list is a rich_text_section"
        else:
            yield from _part(item, f"{where}/{number}", scope)


def _inline(elements: Any, where: str, scope: Scope, kinds: set[str] | None = None) -> Mistakes:
    yield from listed(elements, f"{where}/elements", 10_000)
    for number, element in enumerate(elements if isinstance(elements, list) else ()):
        here = f"{where}/elements/{number}"
        if not isinstance(element, dict):
            yield f"{here}: not an object"
        elif kinds is not None and kind_of(element) not in kinds:
            yield f"{here}: {kind_of(element)!r} is not allowed in here"
        else:
            yield from _word(element, here, scope)


def _word(element: dict[str, Any], where: str, scope: Scope) -> Mistakes:
    """One inline element. `broadcast` is Slack's, but never ours."""
    match element.get("type"):
        case "text":
            yield from keys(element, where, {"type", "text"}, {"style"})
            yield from string(element.get("text"), f"{where}/text", 40_000)
        case "link":
            yield from keys(element, where, {"type", "url"}, {"text", "style", "unsafe"})
            yield from url(element.get("url"), f"{where}/url")
            yield from string(element.get("text", "x"), f"{where}/text", 40_000)
        case "emoji":
            yield from keys(element, where, {"type", "name"}, {"style", "unicode", "skin_tone"})
            yield from string(element.get("name"), f"{where}/name", 255)
        case "user":
            yield from keys(element, where, {"type", "user_id"}, {"style"})
            if scope.users is not None and element.get("user_id") not in scope.users:
                yield f"{where}: mentions nobody we know: {element.get('user_id')!r}"
        case "channel" | "usergroup" as kind:
            yield from keys(element, where, {"type", f"{kind}_id"}, {"style"})
            yield from string(element.get(f"{kind}_id"), f"{where}/{kind}_id", 255)
        case "date":
            yield from keys(element, where, {"type", "timestamp", "format"}, {"style", "url", "fallback"})
            if not isinstance(element.get("timestamp"), int):
                yield f"{where}/timestamp: not a whole number"
        case other:
            yield f"{where}: {other!r} may not be said"
    yield from _style(element.get("style", {}), f"{where}/style")


def _style(style: Any, where: str) -> Mistakes:
    if not isinstance(style, dict):
        yield f"{where}: not an object"
        return
    yield from keys(style, where, (), STYLES)
    yield from flags(style, where, *STYLES)


def _number(element: dict[str, Any], where: str, name: str, most: int) -> Mistakes:
    value = element.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        yield f"{where}/{name}: not a number from 0 to {most}"


def table(block: dict[str, Any], where: str, scope: Scope) -> Mistakes:
    """A table block."""
    rows = block.get("rows")
    yield from listed(rows, f"{where}/rows", ROWS)
    settings = block.get("column_settings", [])
    yield from listed(settings, f"{where}/column_settings", COLUMNS, 0)
    for number, setting in enumerate(settings if isinstance(settings, list) else ()):
        if not isinstance(setting, dict | None):
            yield f"{where}/column_settings/{number}: not an object"
        elif setting is not None:
            yield from keys(setting, f"{where}/column_settings/{number}", (), {"align", "is_wrapped"})
            if setting.get("align", "left") not in ("left", "center", "right"):
                yield f"{where}/column_settings/{number}/align: not a side"
    if not isinstance(rows, list):
        return
    for number, row in enumerate(rows):
        yield from listed(row, f"{where}/rows/{number}", COLUMNS)
        for column, cell in enumerate(row if isinstance(row, list) else ()):
            yield from _cell(cell, f"{where}/rows/{number}/{column}", scope)
    if len({len(row) for row in rows if isinstance(row, list)}) > 1:
        yield f"{where}/rows: rows of different lengths"


def _cell(cell: Any, where: str, scope: Scope) -> Mistakes:
    kind = kind_of(cell)
    if kind == "raw_text":
        yield from keys(cell, where, {"type", "text"})
        yield from string(cell.get("text"), f"{where}/text", TABLE_CHARACTERS)
    elif kind == "rich_text":
        yield from keys(cell, where, {"type", "elements"}, {"block_id"})
        yield from rich_text(cell, where, scope)
    else:
        yield f"{where}: a cell is raw_text or rich_text"


def text_length(value: Any) -> int:
    """All characters that somebody reads in a block: the texts in it, however deep."""
    if isinstance(value, list):
        return sum(text_length(item) for item in value)
    if not isinstance(value, dict):
        return 0
    own = sum(len(value[name]) for name in ("text", "url") if isinstance(value.get(name), str))
    return own + sum(text_length(item) for item in value.values() if isinstance(item, (dict, list)))
