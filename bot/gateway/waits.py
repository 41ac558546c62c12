"""What a call waits for, in words for a model."""

from __future__ import annotations

from dataclasses import replace

from bot.domain import ConversationReference
from bot.gateway.views import GatewayWait
from bot.records import attempts, posts, threads, waiting
from bot.records.database import Transaction
from bot.views import deciders_in_words

_PLATFORMS = {"slack": "Slack", "teams": "Teams"}
_NOT_BEGUN = "nothing has been done yet"
_GOES_ON = "the call has begun and continues with the answer"
_GOES_ON_THEN = "the call has begun and continues after that"
_NOT_CERTAIN = "the call has begun, and asking doesn’t make it again"
_NOT_SHOWN = (
    " This couldn’t be shown to anyone, so tell the person you work for. Countersign’s log says where it should have "
    "been shown."
)


async def wait_in(tx: Transaction, thread_id: str, now: float) -> GatewayWait | None:
    """Returns what is open in the thread of a call; `None`: nothing is, so that it goes on."""
    open_ = await waiting.in_thread(tx, thread_id)
    for approval in open_.approvals:
        asked, who = approval.asked, await deciders_in_words(tx, approval, now)
        text = f"{asked.server}: {asked.tool} is waiting for approval by {who}"
        return await _placed(tx, thread_id, GatewayWait("approval", text, approval.approval_id, _NOT_BEGUN))
    for sign_in in open_.sign_ins:
        text = f"{sign_in.server} is waiting for the person you work for to sign in with the link they got"
        so_far = _NOT_BEGUN if await _is_not_begun(tx, sign_in.call_id) else _GOES_ON_THEN
        return await _placed(tx, thread_id, GatewayWait("sign_in", text, sign_in.sign_in_id, so_far))
    for question in open_.clarifications:
        text = f"{question.server} is waiting for the person you work for to answer a question"
        return await _placed(tx, thread_id, GatewayWait("question", text, question.clarification_id, _GOES_ON))
    for attempt in open_.outcomes:
        text = f"It’s unknown whether {attempt.server}: {attempt.tool} was done. The person you work for is being asked"
        return await _placed(tx, thread_id, GatewayWait("outcome", text, attempt.attempt_id, _NOT_CERTAIN))
    return None


async def _is_not_begun(tx: Transaction, call_id: str) -> bool:
    latest = await attempts.latest(tx, call_id)
    return latest is None or latest.status == "nothing"


async def _placed(tx: Transaction, thread_id: str, wait: GatewayWait) -> GatewayWait:
    """The same, with where people are asked, as far as that can be said."""
    cards = (await posts.of_subjects(tx, [wait.subject])).get(wait.subject, ())
    thread = await threads.get(tx, thread_id)
    shown = [card.place or (thread.place if thread else None) for card in cards if not card.is_nowhere]
    words = list(dict.fromkeys(word for place in shown if place is not None and (word := _in_words(place))))
    where = f" ({' and '.join(words)})" if words else ""
    nowhere = _NOT_SHOWN if cards and not shown else ""
    return replace(wait, text=f"{wait.text}{where}.{nowhere}")


def _in_words(place: ConversationReference) -> str:
    if place.platform == "web":
        return "on the page of Countersign"
    name = _PLATFORMS.get(place.platform)
    if name is None:
        return ""
    if place.direct:
        return f"in a direct message in {name}"
    # Slack shows people a channel by its id too; a conversation's id in Teams says nothing to anybody.
    channel = f"the channel {place.channel.rpartition(':')[2]}" if place.platform == "slack" else "a channel"
    return f"in {channel} in {name}"
