"""What an Adaptive Card must be: Microsoft's shape and Teams' limits (`refusals`), and our product's own rules.

`mistakes(card)` says all of it in words; an empty list means that Teams shows the card and the product is content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.fakes.teams.card_schema import INPUTS, KINDS, Kind
from tests.fakes.teams.text_rules import card_text_mistakes

__all__ = ["mistakes", "product_mistakes", "refusals"]

Json = Mapping[str, Any]
Surface = Literal["any", "message", "dialog"]
Found = Iterator[tuple[str, Json]]
"""Where, and what stands there."""

CARD_BYTES = 28 * 1024
"""Bytes of a card as JSON (Teams: 28 KB)."""
MOST_BUTTONS = 5
"""Beside each other, the menu of those of `mode: secondary` included (our product; Teams shows six)."""
MOST_IN_MENU = 6
"""Of `mode: secondary` (our product)."""
MOST_REFRESHED = 60
"""People for whom a card is refreshed by itself (Teams)."""
_AT = re.compile(r"(?<!\\)<at>[^<\\]*</at>", re.IGNORECASE)
"""A mention as Teams finds it; an escaped one is none."""
_READ_AS_MARKDOWN = {"TextBlock": ("text",), "Fact": ("title", "value")}


def mistakes(card: Any, surface: Surface = "any") -> list[str]:
    """Everything that is wrong with a card, in a message or a dialog (`any`: it is not known)."""
    return refusals(card) or product_mistakes(card, surface)


def refusals(card: Any) -> list[str]:
    """What Microsoft's schema does not allow, or is more than Teams takes."""
    wrong = list(_shape(card, "", frozenset({"AdaptiveCard"})))
    if wrong:
        return wrong
    if "version" not in card:
        wrong.append("/version: it is missing")
    sizes = (len(json.dumps(card, ensure_ascii=False).encode()), len(json.dumps(card)))
    if max(sizes) > CARD_BYTES:
        wrong.append(f"/: {max(sizes):,} bytes, {CARD_BYTES:,} are allowed")
    ids = [node["id"] for _, node in _nodes(card, "") if "id" in node and not _is(node, "Action.")]
    wrong += [f"the id {name!r} is there more than once" for name in sorted({i for i in ids if ids.count(i) > 1})]
    users = card.get("refresh", {}).get("userIds", [])
    if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
        wrong.append("/refresh/userIds: not a list of ids")
    elif len(users) > MOST_REFRESHED:
        wrong.append(f"/refresh/userIds: {len(users)} people, {MOST_REFRESHED} are allowed")
    return wrong


def product_mistakes(card: Any, surface: Surface = "any") -> list[str]:
    """What our product does not allow in a card that has the right shape."""
    wrong = [*_whole(card, surface)]
    for where, node in _nodes(card, ""):
        kind = str(node.get("type", ""))
        wrong += [f"{where}: {mistake}" for mistake in _one(node, kind, surface)]
        for name in (*_READ_AS_MARKDOWN.get(kind, ()), *(("label",) if kind in INPUTS else ())):
            wrong += [f"{where}/{name}: {mistake}" for mistake in card_text_mistakes(node.get(name, ""))]
    return wrong


# ------------------------------------------------------------------------------------------- shape


def _shape(node: Any, where: str, allowed: frozenset[str]) -> Iterator[str]:
    if isinstance(node, str) and allowed == {"TextRun"}:
        return
    if not isinstance(node, dict):
        yield f"{where or '/'}: {type(node).__name__} is no object"
        return
    kind = node.get("type")
    if kind is None and len(allowed) == 1 and KINDS[next(iter(allowed))].default:
        kind = next(iter(allowed))
    if not isinstance(kind, str) or kind not in allowed:
        yield f"{where or '/'}: {kind!r} is nothing that we use here"
        return
    known = KINDS[kind]
    for name in sorted(known.required - set(node)):
        yield f"{where}/{name}: {kind} needs it"
    for name, value in node.items():
        if name == "choices" and value == [] and "choices.data" in node:
            continue  # people find them
        yield from _property(known, kind, name, value, f"{where}/{name}")


def _property(known: Kind, kind: str, name: str, value: Any, where: str) -> Iterator[str]:
    if name == "type":
        return
    if name in known.lists:
        if not isinstance(value, list) or not value:
            yield f"{where}: not a list of at least one"
            return
        for number, one in enumerate(value):
            yield from _shape(one, f"{where}/{number}", known.lists[name])
    elif name in known.parts:
        yield from _shape(value, where, known.parts[name])
    elif name not in known.properties:
        yield f"{where}: {kind} has no such property that we use"
    elif problem := known.properties[name](value):
        yield f"{where}: {problem}"


def _nodes(node: Json, where: str) -> Found:
    """The node and all that it is made of, cards behind buttons and fallbacks included."""
    yield where or "/", node
    kind = KINDS.get(_kind(node))
    if kind is None:
        return
    for name in kind.lists:
        for number, one in enumerate(node.get(name, [])):
            if isinstance(one, dict):
                yield from _nodes(_named(one, kind.lists[name]), f"{where}/{name}/{number}")
    for name in kind.parts:
        if isinstance(node.get(name), dict):
            yield from _nodes(_named(node[name], kind.parts[name]), f"{where}/{name}")


def _named(node: dict[str, Any], allowed: frozenset[str]) -> Json:
    """With its type, also where it may be left out (there it can be of one only)."""
    return node if "type" in node else {"type": next(iter(allowed)), **node}


def _kind(node: Json) -> str:
    return str(node.get("type", ""))


def _is(node: Json, family: str) -> bool:
    return _kind(node).startswith(family)


# ------------------------------------------------------------------------------------------- the product


def _whole(card: Json, surface: Surface) -> Iterator[str]:
    if card.get("version") != "1.5":
        yield "/version: our cards are 1.5"
    if not card.get("fallbackText"):
        yield "/fallbackText: nothing for clients that cannot show the card"
    teams = card.get("msteams", {})
    if set(teams) - {"width", "entities"} or str(teams.get("width", "full")).lower() != "full":
        yield "/msteams: only the width, which is full, and mentions"
    yield from _mentions(card, teams.get("entities", []))
    if "refresh" not in card:
        return
    if surface == "dialog":
        yield "/refresh: a dialog is not refreshed"
    users = card["refresh"].get("userIds", [])
    if not users:
        yield "/refresh/userIds: nobody, so that everybody is offered to refresh by hand"
    if any(not user.startswith("29:") for user in users) or len(set(users)) != len(users):
        yield "/refresh/userIds: addresses (29:…), each once"


def _mentions(card: Json, entities: list[Json]) -> Iterator[str]:
    """Each `<at>` has its entity, and each entity stands in the text."""
    blocks = [str(node.get("text", "")) for _, node in _nodes(card, "") if _kind(node) == "TextBlock"]
    texts = [str(entity.get("text")) for entity in entities]
    for entity, text in zip(entities, texts, strict=True):
        who = entity.get("mentioned", {})
        if entity.get("type") != "mention" or text != f"<at>{who.get('name')}</at>" or not who["id"].startswith("29:"):
            yield f"/msteams/entities: {entity} is no mention"
        if not any(text in block for block in blocks):
            yield f"/msteams/entities: {text} is not in the text"
    if sorted(_AT.findall("\n".join(blocks))) != sorted(texts):
        yield "<at> without an entity"


def _one(node: Json, kind: str, surface: Surface) -> Iterator[str]:
    if kind == "TextBlock" and (node.get("wrap") is not True or "maxLines" in node):
        yield "it would be clipped"
    if kind in INPUTS:
        yield from _input(node, kind)
    if "actions" in node:
        yield from _row(node["actions"])
        if any("title" not in action for action in node["actions"]):
            yield "an action without a title"
    if kind in ("Action.Execute", "Action.Submit"):
        yield from _sending(node, kind, surface)
    if kind == "Action.Execute":
        yield from _execute(node, surface)
    if kind == "Action.OpenUrl":
        address = urlsplit(node["url"])
        if address.scheme not in ("http", "https") or not address.hostname:
            yield f"it opens {node['url']!r}"


def _row(actions: list[Json]) -> Iterator[str]:
    in_menu = [action for action in actions if action.get("mode") == "secondary"]
    beside = len(actions) - len(in_menu) + bool(in_menu)
    if beside > MOST_BUTTONS:
        yield f"{beside} buttons, {MOST_BUTTONS} are allowed"
    if len(in_menu) > MOST_IN_MENU:
        yield f"{len(in_menu)} buttons in a menu, {MOST_IN_MENU} are allowed"
    if any(action["type"] == "Action.ShowCard" for action in in_menu):
        yield "what unfolds cannot be in a menu"
    if in_menu and actions[-len(in_menu) :] != in_menu:
        yield "the menu is at the end: clients without one show the first buttons"


def _input(node: Json, kind: str) -> Iterator[str]:
    if "label" not in node and kind != "Input.Toggle":
        yield "an input needs a label"
    if node.get("isRequired") and "errorMessage" not in node:
        yield "a required input says what is wrong"
    if kind == "Input.ChoiceSet":
        values = [choice["value"] for choice in node["choices"]]
        if len(set(values)) != len(values):
            yield "two choices have one value"
        many = bool(node.get("isMultiSelect"))
        if many and any("," in value for value in values):
            yield "a comma in a value, where several are joined by commas"
        chosen = [value for value in (node.get("value", "").split(",") if many else [node.get("value", "")]) if value]
        if set(chosen) - set(values):
            yield f"{chosen} is chosen and not offered"
    if kind == "Input.Text" and len(node.get("value", "")) > node.get("maxLength", len(node.get("value", ""))):
        yield "its value is longer than it takes"


def _sending(node: Json, kind: str, surface: Surface) -> Iterator[str]:
    """Cards carry an opaque id and the name of what to do, nothing else."""
    data = node.get("data")
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in ("countersign", "id")):
        yield "data is {countersign, id}"
        return
    opens = data.get("msteams")
    if opens not in (None, {"type": "task/fetch"}) or set(data) - {"countersign", "id", "msteams"}:
        yield f"data holds more than {{countersign, id}}: {sorted(data)}"
    if opens and (kind == "Action.Execute" or surface == "dialog"):
        yield "a dialog is opened by an Action.Submit of a message"


def _execute(node: Json, surface: Surface) -> Iterator[str]:
    if surface == "dialog":
        yield "Action.Execute is not for dialogs"
    data = node.get("data")
    if not isinstance(data, dict) or node["verb"] != data.get("countersign"):
        yield "verb and data say different things"
    if "title" not in node:
        return  # a refresh, which is no button
    fallback = node.get("fallback")
    if not isinstance(fallback, dict):
        yield "no fallback for clients without Action.Execute"
    elif fallback.get("data") != data or fallback.get("associatedInputs") != node.get("associatedInputs"):
        yield "the fallback sends something else"
