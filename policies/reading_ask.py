"""The keys of a rule with `decide: ask`, and the combinations of them that nobody could ever satisfy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from policies import durations
from policies.match import Match
from policies.model import Ask
from policies.reading_values import choice, flag, person, place, reference, text, texts, whole_number
from policies.references import is_group
from policies.yaml_lines import LineError, Located

ASK_KEYS = frozenset(
    {"approvers", "selfApproval", "quorum", "rejections", "expiresIn", "remindAfter", "escalateAfter", "escalateTo"}
    | {"reasonRequired", "editable", "routeTo", "alwaysAllow"}
)

_OPEN_ENDED = frozenset({"channel", "any"})
_KEYWORDS = _OPEN_ENDED | {"requester"}
_DEFAULTS = Ask(rule="")


def read_ask(name: str, entries: Mapping[str, Located], match: Match) -> Ask:
    """The verdict of an asking rule. Raises `LineError`, also when no set of people could satisfy it."""
    ask = Ask(
        rule=name,
        approvers=_approvers(entries["approvers"]) if "approvers" in entries else _DEFAULTS.approvers,
        self_approval=_self_approval(entries["selfApproval"]) if "selfApproval" in entries else "confirm",
        quorum=_at_least_one(entries["quorum"], "quorum") if "quorum" in entries else 1,
        rejections=_at_least_one(entries["rejections"], "rejections") if "rejections" in entries else 1,
        expires_in=_expiry(entries["expiresIn"]) if "expiresIn" in entries else _DEFAULTS.expires_in,
        remind_after=_duration(entries["remindAfter"], "remindAfter") if "remindAfter" in entries else None,
        escalate_after=_duration(entries["escalateAfter"], "escalateAfter") if "escalateAfter" in entries else None,
        escalate_to=_people(entries["escalateTo"]) if "escalateTo" in entries else (),
        reason_required=flag(entries["reasonRequired"], "reasonRequired") if "reasonRequired" in entries else False,
        editable=_editable(entries["editable"]) if "editable" in entries else None,
        route_to=_routes(entries["routeTo"]) if "routeTo" in entries else (),
        always_allow=flag(entries["alwaysAllow"], "alwaysAllow") if "alwaysAllow" in entries else None,
    )
    _refuse_half_an_escalation(entries)
    _refuse_what_comes_too_late(ask, entries)
    _refuse_too_few_people(ask, entries, match)
    _refuse_standing_permission_for_several(ask, entries)
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


def _at_least_one(node: Located, what: str) -> int:
    number = whole_number(node, what)
    if number < 1:
        raise LineError(node.line, f"{what} must be at least 1")
    return number


def _expiry(node: Located) -> float | None:
    return None if node.value == "never" else _duration(node, "expiresIn")


def _duration(node: Located, what: str) -> float:
    if isinstance(node.value, int | float) and not isinstance(node.value, bool):
        raise LineError(node.line, f"{what} needs a unit, such as 30s, 15m, 24h or 7d")
    try:
        return durations.seconds(text(node, what))
    except ValueError as error:
        raise LineError(node.line, f"{what}: {error}") from None


def _people(node: Located) -> tuple[str, ...]:
    items = texts(node, "escalateTo")
    if not items:
        raise LineError(node.line, "escalateTo is empty: name somebody")
    return tuple(person(item, "somebody to escalate to") for item in items)


def _editable(node: Located) -> tuple[str, ...]:
    return tuple(text(item, "editable") for item in texts(node, "editable"))


def _routes(node: Located) -> tuple[str, ...]:
    return tuple(place(item, "a place to route to") for item in texts(node, "routeTo"))


def _refuse_half_an_escalation(entries: Mapping[str, Located]) -> None:
    for one, other in (("escalateAfter", "escalateTo"), ("escalateTo", "escalateAfter")):
        if one in entries and other not in entries:
            raise LineError(entries[one].key_line, f"{one} needs {other} beside it: when, and to whom")


def _refuse_what_comes_too_late(ask: Ask, entries: Mapping[str, Located]) -> None:
    for key, after in (("remindAfter", ask.remind_after), ("escalateAfter", ask.escalate_after)):
        if after is not None and ask.expires_in is not None and after >= ask.expires_in:
            expiry = "" if "expiresIn" in entries else " (the default)"
            raise LineError(
                entries[key].line,
                f"{key} ({durations.in_words(after)}) comes too late: it expires after "
                f"{durations.in_words(ask.expires_in)}{expiry}",
            )


def _refuse_standing_permission_for_several(ask: Ask, entries: Mapping[str, Located]) -> None:
    if ask.always_allow and (ask.self_approval == "fourEyes" or ask.quorum > 1):
        raise LineError(
            entries["alwaysAllow"].line,
            "alwaysAllow lets one person decide for themselves, which fourEyes and a quorum forbid: take one out",
        )


def _refuse_too_few_people(ask: Ask, entries: Mapping[str, Located], match: Match) -> None:
    most = _most_voters(ask, match)
    if most is None:
        return
    if most == 0:
        raise LineError(
            entries["selfApproval"].line,
            "with fourEyes the requester may not decide, and nobody else is among the approvers: add somebody",
        )
    for key, needed in (("quorum", ask.quorum), ("rejections", ask.rejections)):
        if needed > most:
            raise LineError(
                entries[key].line,
                f"{key} is {needed}, but at most {most} of the named approvers can ever decide: name more people "
                "or lower it",
            )


def _most_voters(ask: Ask, match: Match) -> int | None:
    """How many people could decide at most, after an escalation; `None` when groups or channels leave it open."""
    named = {*ask.approvers, *ask.escalate_to}
    if named & _OPEN_ENDED or any(map(is_group, named)):
        return None
    four_eyes = ask.self_approval == "fourEyes"
    if len(match.requester) == 1 and not is_group(match.requester[0]):
        # The requester is known by name: they and the word "requester" are one person, who counts once or not at all.
        people = {match.requester[0] if who == "requester" else who for who in named}
        return len(people - set(match.requester) if four_eyes else people)
    return len(named - {"requester"} if four_eyes else named)
