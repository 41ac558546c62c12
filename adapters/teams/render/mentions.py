"""Mentions on a card, so that those who may decide hear of it. Built from ids and names that Teams gave us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.teams.render.elements import Element, small

MOST = 20
"""People who are mentioned on one card; who else may decide stands in its words."""
_NAME = 60
_IN_NAMES = frozenset(" .,'-")


@dataclass(frozen=True, slots=True)
class CardMention:
    """Somebody who is to hear of a card."""

    address: str
    """`29:…`."""
    name: str


def mentioning(card: Element, mentions: Sequence[CardMention]) -> Element:
    """The card with a line for those it is for; as it was, if they are none."""
    called = {f"<at>{plain_name(each.name)}</at>": each for each in mentions[:MOST]}
    if not called:
        return card
    # Teams finds each entity by its text, which is why two people of one name cannot both be called by it.
    entities = [
        {"type": "mention", "text": text, "mentioned": {"id": each.address, "name": plain_name(each.name)}}
        for text, each in called.items()
    ]
    line = small(f"For {', '.join(called)}")
    return {**card, "body": [*card["body"], line], "msteams": {**card["msteams"], "entities": entities}}


def plain_name(name: str) -> str:
    """A name with nothing in it that means anything in Markdown or in a tag."""
    kept = "".join(c for c in " ".join(name.split()) if c.isalnum() or c in _IN_NAMES).strip()
    return kept[:_NAME] or "approver"
