"""Who is in which conversations, for overviews."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.domain import ApprovalView, ConversationReference, Shown
from bot.queries import Among


async def everywhere(places: Sequence[ConversationReference]) -> set[str]:
    """Of places, the keys of those where somebody is who is in every conversation."""
    return {place.key for place in places}


async def nowhere(places: Sequence[ConversationReference]) -> set[str]:
    """The same of somebody who is in none."""
    return set()


async def visible(to_decide: Iterable[Shown], among: Among) -> tuple[Shown, ...]:
    """What is left of approvals without those that anybody may decide and that were asked where a person is not."""
    shown = list(to_decide)
    doubtful = [one for one in shown if isinstance(one.post.content, ApprovalView)]
    doubtful = [one for one in doubtful if "any" in one.post.content.approvers and not one.post.place.direct]  # type: ignore[union-attr]
    seen = await among([one.post.place for one in doubtful]) if doubtful else ()
    return tuple(one for one in shown if one not in doubtful or one.post.place.key in seen)
