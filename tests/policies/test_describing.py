from __future__ import annotations

import pytest

from policies.judging import describe_approvers
from policies.model import Ask

NAMES = {"web:ben": "Ben", "web:chloe": "Chloe", "web:ana": "Ana", "slack-group:T1:S1": "Finance"}

WORDS = [
    ({"approvers": ("requester",)}, "Ana"),
    ({"approvers": ("web:ben",)}, "Ben"),
    ({"approvers": ("requester", "web:ben", "web:chloe")}, "Ana, Ben or Chloe"),
    ({"approvers": ("any",)}, "anyone"),
    ({"approvers": ("web:ben", "any")}, "anyone"),
    ({"approvers": ("any",), "self_approval": "fourEyes"}, "someone other than Ana"),
    ({"approvers": ("channel",), "self_approval": "fourEyes"}, "someone in this channel other than Ana"),
    ({"approvers": ("slack-group:T1:S1",)}, "members of Finance"),
    ({"approvers": ("slack-group:T1:S1",), "self_approval": "fourEyes"}, "members of Finance, except Ana"),
    ({"approvers": ("channel",), "quorum": 2}, "2 people in this channel"),
    ({"approvers": ("any",), "quorum": 2}, "2 people"),
    ({"approvers": ("any",), "quorum": 2, "self_approval": "fourEyes"}, "2 people other than Ana"),
    (
        {"approvers": ("web:ben", "slack-group:T1:S1"), "quorum": 2, "self_approval": "fourEyes"},
        "2 of: Ben or members of Finance, except Ana",
    ),
    ({"approvers": ("requester", "web:ben"), "self_approval": "fourEyes"}, "Ben"),
    ({"approvers": ("web:ana", "web:ben"), "self_approval": "fourEyes"}, "Ana or Ben, except Ana"),
    ({"approvers": ("requester",), "self_approval": "fourEyes"}, "no one"),
]


@pytest.mark.parametrize(("asked", "words"), WORDS)
def test_who_may_decide_is_said_in_plain_words(asked: dict[str, object], words: str) -> None:
    ask = Ask.model_validate({"rule": "r", **asked})
    assert describe_approvers(ask, ("Ana",), lambda reference: NAMES[reference]) == words


def test_an_editor_is_left_out_under_four_eyes_too() -> None:
    ask = Ask(rule="r", approvers=("any",), self_approval="fourEyes")
    assert describe_approvers(ask, ("Ana", "Ben"), str) == "someone other than Ana and Ben"


def test_without_a_name_the_requester_is_called_that() -> None:
    assert describe_approvers(Ask(rule="r"), (), str) == "the requester"
