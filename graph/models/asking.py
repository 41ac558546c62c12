"""Asking a model, and telling whoever measures it what came of that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog
from langchain_core.messages import AIMessage, AnyMessage

from graph.models.problems import ModelProblem, Trouble
from graph.models.streaming import AnswerTimes, Model, Retry, stream_message
from graph.observing import ModelAsked, ModelTryFailed, Observer, TurnHandling
from graph.usage import ModelUse, total_tokens, use_of

log = structlog.get_logger(__name__)
KEEPING_SECONDS = 1.0
"""How long counting a lost answer may hold up the end of its turn: the records may be away, or the process may be
ending."""
KeepLost = Callable[[ModelUse], Awaitable[None]]
"""Counts what went into tries of which none gave an answer: their service counts it. An answer, with the tries before
it, is counted by the caller."""


async def _not_counted(_use: ModelUse) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, for what, and who is told of it."""

    observer: Observer
    run: TurnHandling | None
    """`None`: no turn waits for it."""
    purpose: Literal["answer", "routing", "summary", "memory"]
    model: str
    """The name under which its usage is counted."""
    clock: Callable[[], float]
    """Returns seconds since the epoch."""
    keep_lost: KeepLost = _not_counted


async def ask(
    model: Model, messages: Sequence[AnyMessage], on_text: Callable[[str], None], *, retry: Retry, asking: Asking
) -> tuple[AIMessage, ModelUse]:
    """Ask as `stream_message` does. Returns the answer, and what it came to with the tries before it. Raises
    `ModelProblem`."""
    began_at, began = asking.clock(), time.monotonic()

    def tell_of_try(trouble: Trouble) -> None:
        asking.observer.note(ModelTryFailed(asking.model, trouble.value))

    times = AnswerTimes(tell_of_try)

    def tell(trouble: str, use: ModelUse, answer: AIMessage | None = None) -> None:
        asking.observer.note(
            ModelAsked(
                asking.run,
                asking.purpose,
                asking.model,
                began_at,
                time.monotonic() - began,
                first_after=None if times.first is None else times.first - began,
                use=use,
                trouble=trouble,
                refusals=times.refusals,
                question=messages,
                answer=answer,
            )
        )

    def used(answer: AIMessage | None) -> ModelUse:
        seconds = time.monotonic() - began
        return use_of(
            answer,
            seconds,
            lost_input=times.lost_input,
            lost_cached=times.lost_cached,
            lost_output=times.lost_output,
        )

    try:
        answer = await stream_message(model, messages, on_text, retry=retry, times=times)
    except BaseException as end:
        lost = used(None)
        if isinstance(end, ModelProblem | asyncio.CancelledError):
            tell(end.trouble.value if isinstance(end, ModelProblem) else "broken off", lost)
        if total_tokens(lost):
            await _kept(asking.keep_lost, lost)
        raise
    use = used(answer)
    tell("", use, answer)
    return answer, use


async def _kept(keep_lost: KeepLost, use: ModelUse) -> None:
    """Count a lost answer, even when the turn is cancelled meanwhile, and once more: people press Stop twice. When it
    cannot be counted, asking ends as it would have anyway."""
    keeping = asyncio.create_task(_counted(keep_lost, use), name="lost answer")
    broken_off: asyncio.CancelledError | None = None
    while not keeping.done():
        try:
            await asyncio.shield(keeping)
        except asyncio.CancelledError as error:
            broken_off = error
    if broken_off is not None:
        raise broken_off


async def _counted(keep_lost: KeepLost, use: ModelUse) -> None:
    try:
        async with asyncio.timeout(KEEPING_SECONDS):
            await keep_lost(use)
    except Exception:
        log.exception("lost_answer_not_counted")
