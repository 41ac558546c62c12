"""The keys of a rule with `decide: ask`, and the combinations of them that nobody could ever satisfy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from policies import durations
from policies.model import Ask
from policies.reading_values import choice, flag, place, reference, text, texts, whole_number
from policies.rules import Match, is_group
from policies.yaml_lines import LineError, Located

ASK_KEYS = frozenset({"approvers", "selfApproval", "quorum", "expiresIn", "reasonRequired", "editable", "routeTo"})

_OPEN_ENDED = frozenset({"channel", "any"})
_KEYWORDS = _OPEN_ENDED | {"requester"}
_DEFAULTS = Ask(rule="")


def read_ask(name: str, entries: Mapping[str, Located], match: Match) -> Ask:
    """The verdict of an asking rule. Raises `LineError`, also when no set of people could satisfy it."""
    ask = Ask(
        rule=name,
        approvers=_approvers(entries["approvers"]) if "approvers" in entries else _DEFAULTS.approvers,
        self_approval=_self_approval(entries["selfApproval"]) if "selfApproval" in entries else "confirm",
        quorum=_quorum(entries["quorum"]) if "quorum" in entries else _DEFAULTS.quorum,
        expires_in=_expiry(entries["expiresIn"]) if "expiresIn" in entries else _DEFAULTS.expires_in,
        reason_required=flag(entries["reasonRequired"], "reasonRequired") if "reasonRequired" in entries else False,
        editable=_editable(entries["editable"]) if "editable" in entries else None,
        route_to=_routes(entries["routeTo"]) if "routeTo" in entries else (),
    )
    _refuse_the_impossible(ask, entries, match)
    return ask


def _approvers(node: Located) -> tuple[str, ...]:
    items = texts(node, "approvers")
    if not items:
        raise LineError(node.line, "approvers is empty: nobody could ever decide")
    return tuple(_approver(item) for item in items)


def _approver(item: Located) -> str:
    if isinstance(item.value, str) and item.value in _KEYWORDS:
        return item.value
    return reference(item, "an approver, unless it is requester, channel or any,")


def _self_approval(node: Located) -> Literal["confirm", "fourEyes"]:
    return "fourEyes" if choice(node, "selfApproval", ("confirm", "fourEyes")) == "fourEyes" else "confirm"


def _quorum(node: Located) -> int:
    quorum = whole_number(node, "quorum")
    if quorum < 1:
        raise LineError(node.line, "quorum must be at least 1")
    return quorum


def _expiry(node: Located) -> float | None:
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        raise LineError(node.line, "expiresIn needs a unit, such as 30s, 15m, 24h or 7d")
    written = text(node, "expiresIn")
    if written == "never":
        return None
    try:
        return durations.seconds(written)
    except ValueError as error:
        raise LineError(node.line, f"expiresIn: {error}") from None


def _editable(node: Located) -> tuple[str, ...]:
    return tuple(text(item, "editable") for item in texts(node, "editable"))


def _routes(node: Located) -> tuple[str, ...]:
    return tuple(place(item, "a place to route to") for item in texts(node, "routeTo"))


def _refuse_the_impossible(ask: Ask, entries: Mapping[str, Located], match: Match) -> None:
    most = _most_voters(ask, match)
    if most is None or most >= ask.quorum:
        return
    if most == 0:
        raise LineError(
            entries["selfApproval"].line,
            "with fourEyes the requester may not decide, and nobody else is among the approvers: add somebody",
        )
    raise LineError(
        entries["quorum"].line,
        f"quorum is {ask.quorum}, but at most {most} of the named approvers can ever decide: name more people "
        "or lower it",
    )


def _most_voters(ask: Ask, match: Match) -> int | None:
    """How many people could decide at most; `None` when groups or channels leave it open."""
    named = set(ask.approvers)
    if named & _OPEN_ENDED or any(map(is_group, named)):
        return None
    four_eyes = ask.self_approval == "fourEyes"
    if match.requester is not None and not is_group(match.requester):
        # The requester is known by name: they and the word "requester" are one person, who counts once or not at all.
        people = {match.requester if who == "requester" else who for who in named}
        return len(people - {match.requester} if four_eyes else people)
    return len(named - {"requester"} if four_eyes else named)
