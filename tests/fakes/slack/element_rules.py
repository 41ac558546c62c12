"""Slack's limits for buttons, menus, pickers and inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from tests.fakes.slack.text_rules import Mistakes, Scope, flags, keys, kind_of, listed, plain, string, text_object, url

Element = dict[str, Any]

EVERY_INPUT = {"focus_on_load"}
MENU = {"placeholder", "confirm", *EVERY_INPUT}


def element_mistakes(element: Any, where: str, scope: Scope) -> Mistakes:
    """What is wrong with one element."""
    kind = kind_of(element)
    if kind not in CHECKS:
        yield f"{where}: {kind!r} is no element that we use"
        return
    yield from flags(element, where, "focus_on_load")
    if "action_id" in element:
        yield from string(element["action_id"], f"{where}/action_id", 255)
    if "placeholder" in element:
        yield from plain(element["placeholder"], f"{where}/placeholder", scope, 150)
    if "confirm" in element:
        yield from _confirm(element["confirm"], f"{where}/confirm", scope)
    yield from CHECKS[kind](element, where, scope)


def _only(element: Element, where: str, *optional: str, required: tuple[str, ...] = ()) -> Mistakes:
    yield from keys(element, where, {"type", *required}, {"action_id", *optional})


def _confirm(confirm: Any, where: str, scope: Scope) -> Mistakes:
    if not isinstance(confirm, dict):
        yield f"{where}: not an object"
        return
    yield from keys(confirm, where, {"title", "text", "confirm", "deny"}, {"style"})
    yield from plain(confirm.get("title"), f"{where}/title", scope, 100)
    yield from text_object(confirm.get("text"), f"{where}/text", scope, 300)
    yield from plain(confirm.get("confirm"), f"{where}/confirm", scope, 30)
    yield from plain(confirm.get("deny"), f"{where}/deny", scope, 30)
    yield from _style(confirm, where)


def _style(element: Element, where: str) -> Mistakes:
    if element.get("style", "primary") not in ("primary", "danger"):
        yield f"{where}/style: neither primary nor danger"


def _button(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(
        element,
        where,
        "url",
        "value",
        "style",
        "confirm",
        "accessibility_label",
        "visible_to_user_ids",
        required=("text",),
    )
    yield from plain(element.get("text"), f"{where}/text", scope, 75)
    if "url" in element:
        yield from url(element["url"], f"{where}/url")
    yield from string(element.get("value", "x"), f"{where}/value", 2000)
    yield from string(element.get("accessibility_label", "x"), f"{where}/accessibility_label", 75)
    yield from _style(element, where)


def _feedback_buttons(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, required=("positive_button", "negative_button"))
    for name in ("positive_button", "negative_button"):
        button, here = element.get(name), f"{where}/{name}"
        if not isinstance(button, dict):
            yield f"{here}: not an object"
            continue
        yield from keys(button, here, {"text", "value"}, {"accessibility_label"})
        yield from plain(button.get("text"), f"{here}/text", scope, 75)
        yield from string(button.get("value"), f"{here}/value", 2000)
        yield from string(button.get("accessibility_label", "x"), f"{here}/accessibility_label", 75)


def _options(
    element: Element, where: str, scope: Scope, most: int, kinds: tuple[str, ...] = ("plain_text",)
) -> Mistakes:
    options = element.get("options")
    yield from listed(options, f"{where}/options", most)
    values = []
    for number, option in enumerate(options if isinstance(options, list) else ()):
        here = f"{where}/options/{number}"
        if not isinstance(option, dict):
            yield f"{here}: not an object"
            continue
        yield from keys(option, here, {"text", "value"}, {"description", "url"})
        yield from text_object(option.get("text"), f"{here}/text", scope, 75, kinds)
        yield from string(option.get("value"), f"{here}/value", 150)
        if "description" in option:
            yield from text_object(option["description"], f"{here}/description", scope, 75, kinds)
        values.append(str(option.get("value")))
    if len(set(values)) != len(values):
        yield f"{where}/options: two have the same value"
    initial = [element["initial_option"]] if "initial_option" in element else element.get("initial_options", [])
    yield from listed(initial, f"{where}/initial_options", most, 0 if "initial_options" not in element else 1)
    if isinstance(options, list) and isinstance(initial, list) and any(option not in options for option in initial):
        yield f"{where}: an initial option is not among the options"


def _static_select(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_option", *MENU, required=("options",))
    yield from _options(element, where, scope, 100)


def _multi_static_select(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_options", "max_selected_items", *MENU, required=("options",))
    yield from _options(element, where, scope, 100)


def _overflow(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, "confirm", required=("options",))
    yield from _options(element, where, scope, 5)


def _checkboxes(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_options", "confirm", *EVERY_INPUT, required=("options",))
    yield from _options(element, where, scope, 10, ("plain_text", "mrkdwn"))


def _radio_buttons(element: Element, where: str, scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_option", "confirm", *EVERY_INPUT, required=("options",))
    yield from _options(element, where, scope, 10, ("plain_text", "mrkdwn"))


def _picks(initial: str, *optional: str) -> Callable[[Element, str, Scope], Mistakes]:
    """A menu that Slack fills: people or channels."""

    def check(element: Element, where: str, scope: Scope) -> Mistakes:
        yield from _only(element, where, initial, *optional, *MENU)
        yield from string(element.get(initial, "x"), f"{where}/{initial}", 255)
        if "response_url_enabled" in element and scope.surface != "modal":
            yield f"{where}: response_url_enabled is for modals"

    return check


def _datepicker(element: Element, where: str, _scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_date", *MENU)
    try:
        good = re.fullmatch(r"\d{4}-\d\d-\d\d", element.get("initial_date", "2000-01-01")) is not None
        date.fromisoformat(element.get("initial_date", "2000-01-01"))
    except (TypeError, ValueError):
        good = False
    if not good:
        yield f"{where}/initial_date: not YYYY-MM-DD"


def _timepicker(element: Element, where: str, _scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_time", "timezone", *MENU)
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", str(element.get("initial_time", "00:00"))):
        yield f"{where}/initial_time: not HH:MM"


def _datetimepicker(element: Element, where: str, _scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_date_time", "confirm", *EVERY_INPUT)
    initial = element.get("initial_date_time", 1_000_000_000)
    if not isinstance(initial, int) or not 1_000_000_000 <= initial <= 9_999_999_999:
        yield f"{where}/initial_date_time: not a UNIX timestamp of 10 digits"


def _plain_text_input(element: Element, where: str, _scope: Scope) -> Mistakes:
    own = ("multiline", "initial_value", "min_length", "max_length", "dispatch_action_config", "placeholder")
    yield from _only(element, where, *own, *EVERY_INPUT)
    yield from flags(element, where, "multiline")
    most, least = element.get("max_length", 3000), element.get("min_length", 0)
    if not isinstance(most, int) or not 1 <= most <= 3000:
        yield f"{where}/max_length: not from 1 to 3,000"
    elif not isinstance(least, int) or not 0 <= least <= most:
        yield f"{where}/min_length: not from 0 to max_length"
    else:
        yield from string(element.get("initial_value", ""), f"{where}/initial_value", most, 0)


def _number_input(element: Element, where: str, _scope: Scope) -> Mistakes:
    own = ("initial_value", "min_value", "max_value", "dispatch_action_config", "placeholder")
    yield from _only(element, where, *own, *EVERY_INPUT, required=("is_decimal_allowed",))
    yield from flags(element, where, "is_decimal_allowed")
    pattern = r"-?\d+(\.\d+)?" if element.get("is_decimal_allowed") else r"-?\d+"
    for name in ("initial_value", "min_value", "max_value"):
        value = element.get(name, "0")
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            yield f"{where}/{name}: not such a number, in text"


def _address_input(element: Element, where: str, _scope: Scope) -> Mistakes:
    yield from _only(element, where, "initial_value", "dispatch_action_config", "placeholder", *EVERY_INPUT)
    yield from string(element.get("initial_value", "x"), f"{where}/initial_value", 3000)


CHECKS: dict[str, Callable[[Element, str, Scope], Mistakes]] = {
    "button": _button,
    "feedback_buttons": _feedback_buttons,
    "static_select": _static_select,
    "multi_static_select": _multi_static_select,
    "overflow": _overflow,
    "checkboxes": _checkboxes,
    "radio_buttons": _radio_buttons,
    "users_select": _picks("initial_user"),
    "channels_select": _picks("initial_channel", "response_url_enabled"),
    "conversations_select": _picks(
        "initial_conversation", "default_to_current_conversation", "filter", "response_url_enabled"
    ),
    "datepicker": _datepicker,
    "timepicker": _timepicker,
    "datetimepicker": _datetimepicker,
    "plain_text_input": _plain_text_input,
    "number_input": _number_input,
    "email_text_input": _address_input,
    "url_text_input": _address_input,
}

MENUS = {"static_select", "users_select", "channels_select", "conversations_select"}
PICKERS = {"datepicker", "timepicker", "checkboxes", "radio_buttons"}
IN_ACTIONS = {"button", "overflow", "datetimepicker", *MENUS, *PICKERS}
IN_SECTION = {"button", "overflow", "multi_static_select", *MENUS, *PICKERS}
IN_CONTEXT_ACTIONS = {"feedback_buttons"}
IN_INPUT = {
    *{
        "plain_text_input",
        "number_input",
        "email_text_input",
        "url_text_input",
        "datetimepicker",
        "multi_static_select",
    },
    *MENUS,
    *PICKERS,
}
