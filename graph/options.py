"""How a turn differs from others (`graph.state.TurnOptions`). Whatever is not known there takes away the most."""

from __future__ import annotations

from math import inf

from graph.state import Turn, TurnOptions
from policies.model import Ask, Mode, stricter_of


def mode_of(turn: Turn, configured: Mode) -> Mode:
    """The mode in which a turn is: the stricter of its own and the configured one."""
    options = _options_of(turn)
    return stricter_of(configured, options["mode"]) if "mode" in options else configured


def has_tools(turn: Turn) -> bool:
    """Whether the model may call tools in a turn."""
    return _options_of(turn).get("tools", True) is True


def may_ask(turn: Turn) -> bool:
    """Whether people may be asked something in a turn."""
    return _options_of(turn).get("asks", True) is True


def may_ask_for(turn: Turn, ask: Ask) -> bool:
    """Whether people may be asked for an approval in a turn. The call of another agent, whose person can be asked
    nowhere, is asked about where its rule says, or else its turn."""
    return may_ask(turn) or (turn["platform"] == "mcp" and bool(ask_within(turn, ask).route_to))


def ask_within(turn: Turn, ask: Ask) -> Ask:
    """The same demands, which expire when approvals of a turn do at the latest, and are asked where the turn says."""
    options, changes = _options_of(turn), dict[str, object]()
    if "approval_seconds" in options:
        longest = max(0.0, options["approval_seconds"])
        changes["expires_in"] = longest if ask.expires_in is None else min(longest, ask.expires_in)
    if "route_to" in options and not ask.route_to:
        changes["route_to"] = (options["route_to"],)
    return ask.model_copy(update=changes) if changes else ask


def is_stricter(options: TurnOptions, turn: Turn) -> bool:
    """Whether these options take away anything that a turn may do."""
    asked, own = Turn(**{**turn, "options": options}), _options_of(turn)
    mode = mode_of(turn, Mode.DEFAULT)
    return (
        mode_of(asked, mode) != mode
        or has_tools(turn) > has_tools(asked)
        or may_ask(turn) > may_ask(asked)
        or options.get("approval_seconds", inf) < own.get("approval_seconds", inf)
    )


def _options_of(turn: Turn) -> TurnOptions:
    return turn.get("options") or {}  # turns that were begun by an earlier version have none
