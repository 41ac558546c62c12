"""What the sending half of every chat platform needs for posts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from adapters.shared.calls import CallFailed
from bot.domain import ApprovalView, ClarificationView, Content, OutcomeView, Post, Refused, Said, SignInView, Unknown
from bot.platform import PostFailed

log = structlog.get_logger(__name__)

SAID = "said:"
"""What the ids of posts begin with that say what the model wrote; its message's id follows."""
SignInLink = Callable[[str, str], Awaitable[str | Refused | Unknown]]
"""The link of a sign-in (its id) for its owner (a person id)."""


MOST_KEPT = 50_000
"""Characters of an answer that are kept while it is written: far more than are ever shown of it."""


@dataclass(frozen=True, slots=True)
class DraftPace:
    """Seconds between what is shown of an answer while it is written."""

    before: float = 0.7
    """Before anything is shown: an answer that is finished earlier is posted at once."""
    grace: float = 4.0
    """Seconds after a turn is at rest until a draft that no post has finished is ended."""


class GrowingText:
    """What a model has written so far of an answer."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, delta: str) -> None:
        """More of it. Beyond `MOST_KEPT` characters it grows no more."""
        if self._length <= MOST_KEPT:
            self._length += len(delta)
            self._pieces.append(delta)

    def __str__(self) -> str:
        return "".join(self._pieces)


@contextmanager
def as_post_failures(what: str = "") -> Iterator[None]:
    """A chat service's failures as those of `bot.platform.Platform`; `what` failed, where that is not the call."""
    try:
        yield
    except CallFailed as failure:
        said = f"{what}: {failure}" if what else str(failure)
        raise PostFailed(said, permanent=failure.permanent, retry_after=failure.retry_after) from failure


def message_id_of(post: Post) -> str:
    """Returns the id under which the model wrote what a post says; of other posts an empty one."""
    return post.post_id.removeprefix(SAID) if isinstance(post.content, Said) else ""


def still_waits(content: Content) -> bool:
    """Whether it is a card that people have to act on."""
    match content:
        case ApprovalView(status="pending"):
            return True
        case ClarificationView(status="open") | SignInView(status="open") | OutcomeView(status="open"):
            return True
    return False


async def link_for_owner(link_of: SignInLink, view: SignInView) -> str:
    """Returns the link of a sign-in; empty where there is none to give. Raises nothing: that is no failure of the
    card, whose button gives the link again."""
    try:
        link = await link_of(view.sign_in_id, view.owner_id)
    except Exception as defect:  # noqa: BLE001  # whatever the records raise, the card is shown
        # Without the traceback: its words could hold the link.
        log.error("sign_in_link_not_made", sign_in=view.sign_in_id, cause=type(defect).__name__)  # noqa: TRY400
        return ""
    return link if isinstance(link, str) else ""
