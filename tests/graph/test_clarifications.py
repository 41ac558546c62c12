"""What a model's question to the requester becomes."""

from __future__ import annotations

from graph.interrupts import MOST_OFFERED
from graph.nodes.human_clarification import asked_of

UNSEEN = "é\u200b"


def test_no_more_options_are_offered_than_can_be_drawn() -> None:
    """Rule 13: a question with 9,600 options, a megabyte, held the event loop for 0.7 s whenever the page showed it."""
    options = [f"{UNSEEN * 44}{number}" for number in range(480)]
    fields = [{"name": f"f{number}", "label": "Which?", "type": "choice", "options": options} for number in range(19)]
    last = {"name": "colour", "label": "Colour", "type": "choice", "options": ["red", "blue"]}
    asked = asked_of({"id": "m1.0.0", "args": {"question": "Which?", "fields": [*fields, last]}}, "web:ana")
    assert asked is not None
    assert len(asked.fields) == 20
    assert sum(len(option) for field in asked.fields for option in field.options) <= MOST_OFFERED
    assert asked.fields[-1].options == ("red", "blue")
