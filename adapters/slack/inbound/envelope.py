"""Bodies of requests: decoded, and checked as far as Bolt takes their shape for granted, so that none makes a 500."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from adapters.shared.json_bodies import has_too_many_values
from graph.calls import storable

MAX_DEPTH = 64
"""How deep a payload may nest. Slack's own (a modal with its state) stay below 20."""

MOST_FIELDS = 100
"""Of a form. Slack's slash commands have 14."""

_KINDS = {
    "event_callback": ("event",),
    "block_actions": ("user", "actions"),
    "block_suggestion": ("action_id",),
    "message_action": ("user", "callback_id"),
    "shortcut": ("user", "callback_id"),
    "view_submission": ("user", "view"),
    "view_closed": ("user", "view"),
    "url_verification": ("challenge",),
}
"""`type` of what Slack sends, and what has to be in it. Slash commands have no type but a `command`."""

_NAMED = ("enterprise", "team", "user", "channel")
"""Either an id or an object with one, depending on the payload."""
_OBJECTS = ("event", "view", "message", "previous_message", "item", "assistant_thread", "function", "function_data")
_WORDS = (
    *("type", "subtype", "callback_id", "command", "action_id", "response_url", "challenge", "thread_ts"),
    *(f"{name}_id" for name in _NAMED),
)
_LISTS = ("actions", "authorizations", "response_urls")
_NEVER_NOTHING = frozenset(_OBJECTS + _LISTS + _WORDS)
_KIND_OF: dict[str, tuple[type, ...]] = (
    dict.fromkeys(_NAMED, (str, dict))
    | dict.fromkeys(_OBJECTS, (dict,))
    | dict.fromkeys(_LISTS, (list,))
    | dict.fromkeys(_WORDS, (str,))
)


class MalformedError(Exception):
    """Not what Slack sends. The message says why, and repeats nothing of the body."""


def decode(raw: bytes, content_type: str) -> dict[str, Any]:
    """The payload of a request: JSON for events, a form for commands, JSON within a form for clicks and modals.

    Raises `MalformedError`.
    """
    try:
        text = raw.decode("utf-8")
        if content_type == "application/json":
            return checked(_parsed(text))
        form = dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
        return checked(_parsed(form["payload"]) if "payload" in form else form)
    except UnicodeDecodeError as error:
        raise MalformedError("the body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise MalformedError("the body is neither JSON nor a form") from error


def _parsed(text: str) -> Any:
    if has_too_many_values(text.encode()):
        raise MalformedError("it holds too many values")
    return json.loads(text)


def checked(payload: object) -> dict[str, Any]:
    """The payload, without what no database keeps (NUL, halves of surrogate pairs). Raises `MalformedError`."""
    if not isinstance(payload, dict):
        raise MalformedError("the body is not an object")
    if _depth(payload) > MAX_DEPTH:
        raise MalformedError("the body nests too deeply")
    if payload.get("ssl_check") == "1":
        return {"ssl_check": "1"}
    needed = ("command", "user_id", "channel_id") if "command" in payload else _KINDS.get(str(payload.get("type")))
    if needed is None:
        raise MalformedError("this kind of payload is not for us")
    if missing := [name for name in needed if not payload.get(name)]:
        raise MalformedError(f"it has no {' and no '.join(missing)}")
    sound: dict[str, Any] = storable(_sound(payload))
    if "event" in sound and "type" not in sound["event"]:
        raise MalformedError("its event has no type")
    if sound.get("type", "").startswith("view_") and "type" not in sound["view"]:
        raise MalformedError("its view has no type")
    if not all("action_id" in action for action in sound.get("actions", ())):
        raise MalformedError("one of its actions has no id")
    return sound


def _sound(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload, without the nothings that Bolt does not expect. Raises `MalformedError` where something that Bolt
    reads is of another kind than it assumes."""
    sound = {name: value for name, value in payload.items() if value is not None or name not in _NEVER_NOTHING}
    for name in sound.keys() & _KIND_OF.keys():
        if sound[name] is not None and not isinstance(sound[name], _KIND_OF[name]):
            raise MalformedError(f"{name} is not what it should be")
        if name in _OBJECTS:
            sound[name] = _sound(sound[name])
        elif name in _LISTS:
            if not all(isinstance(item, dict) for item in sound[name]):
                raise MalformedError(f"{name} holds something that is no object")
            sound[name] = [_sound(item) for item in sound[name]]
    return sound


def _depth(value: Any) -> int:
    """How deep it nests, counted without recursion; stops counting beyond the limit."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level, depth = inner, depth + 1
    return depth
