"""Who may decide, in the words of a card."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from policies.model import Ask
from policies.references import is_group


def describe_approvers(ask: Ask, requester_names: Sequence[str], name_of: Callable[[str], str]) -> str:
    """Plain words such as "Ana", "anyone but Ana", "2 of: Ben, Chloe or members of finance".

    `requester_names` are names in the order of `ApprovalAsked.requesters`; `name_of` gives the name of a person id or
    group reference. Names are passed through as they are: escaping them is the renderer's.
    """
    four_eyes = ask.self_approval == "fourEyes"
    listed = [approver for approver in ask.approvers if not (four_eyes and approver == "requester")]
    if "any" in listed:
        listed = ["any"]
    words = [_in_words(approver, requester_names, name_of) for approver in listed]
    if not words:
        return "nobody"
    several = f"{ask.quorum} of: " if ask.quorum > 1 else ""
    return f"{several}{_list(words, 'or')}{_exception(ask, listed, words, requester_names)}"


def _exception(ask: Ask, listed: Sequence[str], words: Sequence[str], requester_names: Sequence[str]) -> str:
    if ask.self_approval != "fourEyes" or not requester_names:
        return ""
    open_ended = any(approver in ("any", "channel") or is_group(approver) for approver in listed)
    if not open_ended and not set(words) & set(requester_names):
        return ""
    return f"{' but' if len(words) == 1 else ', but not'} {_list(list(dict.fromkeys(requester_names)), 'and')}"


def _in_words(approver: str, requester_names: Sequence[str], name_of: Callable[[str], str]) -> str:
    match approver:
        case "any":
            return "anyone"
        case "channel":
            return "anyone in this channel"
        case "requester":
            return requester_names[0] if requester_names else "the requester"
        case group if is_group(group):
            return f"members of {name_of(group)}"
        case person:
            return name_of(person)


def _list(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
