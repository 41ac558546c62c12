"""What becomes of a delivery that could not be handled: tried later, given up with one sentence, or parked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bot.domain import Notice
from bot.logs import Mask
from bot.outbox import notice
from bot.platform import PostFailed
from bot.records import deliveries
from bot.records.attempts import AttemptRow
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.turns.decision import GiveUp, Park, PutOff, TryLater
from graph.models import ModelProblem, Trouble
from graph.ports import Spoken, Unfinished
from policies.masking import Masker
from translations import gettext as _

MOST_DELIVERY_TRIES = 4
"""Tries of a delivery whose handling fails, before it is parked."""
MOST_OUTAGE_TRIES = 60
"""Tries of a message whose platform cannot be asked about it, over about an hour, before it is parked."""
PAUSES = (1.0, 5.0, 15.0)
"""Seconds before the second, third and fourth try."""
LONGEST_CAUSE = 500
"""Characters of an error that are kept with its delivery; the whole of it is in the log."""
LONGEST_READ = 20_000
"""Characters of an error that secrets are looked for in, of which most may be secrets."""
_NOT_KEPT = frozenset({Trouble.FILTERED, Trouble.TOO_MUCH})
_mask = Mask()


def after_failure(
    delivery: Delivery, failure: Exception, said: Spoken | None, masker: Masker
) -> GiveUp | Park | PutOff | TryLater:
    """What to do after handling a delivery has failed.

    Args:
        said: the model's answer as far as people saw it written. It stays, unless it is not to be seen or is too much.
        masker: takes secrets out of the cause, which operators are shown.
    """
    match failure:
        case PostFailed():
            # The platform could not be told of a failure either, so there is no hurry to give up.
            outages = deliveries.outages(delivery)
            if failure.permanent or outages + 1 >= MOST_OUTAGE_TRIES:
                return Park(cause_of(failure, masker))
            return PutOff(outages, failure.retry_after, cause_of(failure, masker))
        case ModelProblem():
            kept = Unfinished(said, "broken off here") if said and failure.trouble not in _NOT_KEPT else None
            service = said_by_service(failure, masker)
            cause = f"language model: {failure.trouble.value}{f' ({service})' if service else ''}"
            return GiveUp(failure.sentence, kept, failure.trouble.value, cause)
        case _:
            if delivery.tries + 1 >= MOST_DELIVERY_TRIES:
                return Park(cause_of(failure, masker))
            return TryLater(PAUSES[min(delivery.tries, len(PAUSES) - 1)], cause_of(failure, masker))


def cause_of(error: BaseException, masker: Masker) -> str:
    """An error in one piece of text for the records: no tokens, no queries of links, of bounded length."""
    told = f"{type(error).__name__}: {error}"[:LONGEST_READ]
    return masker.mask(_mask(told))[:LONGEST_CAUSE]


def said_by_service(problem: ModelProblem, masker: Masker) -> str:
    """What is behind a model's failure, for the log: what its service said, where it answered with an error; else no
    more than what kind of failure it was, for its text may be part of a conversation."""
    cause = problem.__cause__
    if cause is None:
        return ""
    return cause_of(cause, masker) if isinstance(getattr(cause, "status_code", None), int) else type(cause).__name__


def loss_in_words(begun: Sequence[AttemptRow]) -> str:
    """What somebody is told who decided something that no checkpoint knows of any more. `begun`: the attempts at calls
    that had begun and not ended."""
    if begun:
        calls = ", ".join(f"{each.server} › {each.tool}" for each in begun)
        lost = _("The state of this conversation is lost; nothing more was run. Check {calls} before you retry.")
        return lost.format(calls=calls)
    return _("The state of this conversation is lost; nothing more was run. Ask again for what is missing.")


def gave_up() -> str:
    """What the author of a delivery is told that is parked."""
    return _("Something went wrong. I stopped trying.")


def state_lost() -> str:
    """Why nothing can go on in a thread whose checkpoints are lost."""
    return _("The state of this conversation is lost")


def reference_of(delivery: Delivery) -> str:
    """What a user can quote and an operator can search for: 8 hexadecimal characters, the same at every try."""
    return reference_to(delivery.key)


def reference_to(key: str) -> str:
    """The same, by the key of the delivery."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def regret(delivery: Delivery, sentence: str) -> NewPost:
    """The sentence that tells a delivery's author of its failure, with the reference to it."""
    text = _("{sentence} (Reference {reference})").format(sentence=sentence, reference=reference_of(delivery))
    return notice(f"error:{delivery.key}", delivery.thread_id, Notice(text, "error"))
