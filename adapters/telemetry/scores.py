"""What people think of answers, as scores in Langfuse (https://langfuse.com/docs/evaluation/scores/overview)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from adapters.telemetry.ids import TraceIds, turn_of_post
from bot.repeated_failures import RepeatedFailure
from graph.observing import FeedbackGiven, Happening

NAME = "feedback"
SCORE_SECONDS = 10.0
PAUSES = (1.0, 5.0, 15.0)
"""Seconds before the second, third and fourth try."""
MOST_WAITING = 100
"""Scores that are being sent; further ones are dropped: the records have what people said."""


class LangfuseScores:
    """Fills `graph.observing.Observer`. `close` in the end.

    Args:
        host: its address.
        authorization: the header.
        comment: makes a comment fit to be told; `None`: none is.
        pauses: before each further try, in seconds.
    """

    def __init__(
        self,
        host: str,
        authorization: str,
        ids: TraceIds,
        comment: Callable[[str], str] | None,
        *,
        pauses: tuple[float, ...] = PAUSES,
    ) -> None:
        self._address = f"{host.rstrip('/')}/api/public/scores"
        self._headers = {"Authorization": authorization, "Content-Type": "application/json"}
        self._ids = ids
        self._comment = comment
        self._pauses = pauses
        self._http = Http()
        self._sending: dict[str, asyncio.Task[None]] = {}
        """Id of a score → what sends it."""
        self._failure = RepeatedFailure("scores_not_sent", over="scores_sent_again")

    def note(self, happening: Happening) -> None:
        """Send a score; anything else is none."""
        if not isinstance(happening, FeedbackGiven) or len(self._sending) >= MOST_WAITING:
            return
        turn = turn_of_post(happening.post, "")
        if not turn:
            return  # what belongs to no turn is in no trace
        score: dict[str, Any] = {
            "id": self._ids.score(happening.post, happening.person),
            "traceId": f"{self._ids.trace(turn):032x}",
            "name": NAME,
            "value": 1 if happening.verdict == "good" else 0,
            "dataType": "BOOLEAN",
        }
        if happening.comment and self._comment is not None:
            score["comment"] = self._comment(happening.comment)
        before = self._sending.get(score["id"])
        task = asyncio.get_running_loop().create_task(self._send_after(before, score), name="score")
        self._sending[score["id"]] = task
        task.add_done_callback(partial(self._sent, score["id"]))

    async def close(self, seconds: float) -> None:
        """Give what is being sent that long."""
        if self._sending:
            _, late = await asyncio.wait(self._sending.values(), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._http.close()

    def _sent(self, score_id: str, task: asyncio.Task[None]) -> None:
        if self._sending.get(score_id) is task:
            del self._sending[score_id]

    async def _send_after(self, before: asyncio.Task[None] | None, score: dict[str, Any]) -> None:
        """Send it in the place of an opinion that is still being sent, and which would stand above it later."""
        if before is not None:
            before.cancel()
            await asyncio.wait([before])
        await self._send(score)

    async def _send(self, score: dict[str, Any]) -> None:
        for pause in (*self._pauses, None):
            try:
                answer = await self._http.request(
                    "score",
                    "POST",
                    self._address,
                    seconds=SCORE_SECONDS,
                    headers=self._headers,
                    data=json.dumps(score),
                )
                refused = CallFailed("score", f"http_{answer.status}") if answer.status >= 300 else None
                if refused is None:
                    self._failure.worked()
                    return
                if answer.status < 500 and answer.status != 429:
                    self._failure.failed(refused, status=answer.status)
                    return
            except CallFailed as failure:
                refused = failure
            if pause is None:
                self._failure.failed(refused, said=refused.error)
                return
            await asyncio.sleep(pause)
