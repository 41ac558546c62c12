"""What is happening now in threads that one process handles and pages of others show: kept for as long as it lasts.

On PostgreSQL only, in a table of which nothing is logged: a crash of the server empties it. Each row names the claim
under which it was written. A row counts while that claim is the newest of its place, is held, and has been renewed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.records.claims import place_of
from bot.records.locks import UNLOCKED

if TYPE_CHECKING:
    from bot.records.postgresql import PostgresDatabase
    from graph.ports import TaskState

TABLE = """
CREATE UNLOGGED TABLE IF NOT EXISTS live_answers (
    thread_id text PRIMARY KEY,
    epoch bigint NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL
)
"""
DEAD_SECONDS = 5.0
"""Without a write, after which a row is taken to be a dead process's."""
# In binary (`%b`): as text, the driver escapes each backslash of an array in Python, and JSON has one for each letter
# that is not of English. Sixty answers in Russian took half a second.
_WRITE = """
INSERT INTO live_answers AS kept (thread_id, epoch, state, at)
SELECT written.thread_id, written.epoch, written.state, now()
FROM unnest(%(threads)s::text[], %(places)s::text[], %(epochs)s::bigint[], %(states)b::text[])
    AS written (thread_id, place, epoch, state)
JOIN locks ON locks.name = written.place AND locks.epoch = written.epoch
ORDER BY written.thread_id
ON CONFLICT (thread_id) DO UPDATE SET epoch = excluded.epoch, state = excluded.state, at = excluded.at
WHERE kept.epoch <= excluded.epoch
"""
_CLEAR = """
DELETE FROM live_answers USING unnest(%(threads)s::text[], %(epochs)s::bigint[]) AS gone (thread_id, epoch)
WHERE live_answers.thread_id = gone.thread_id AND live_answers.epoch <= gone.epoch
"""
_READ = """
SELECT wanted.thread_id, live_answers.epoch, live_answers.state
FROM unnest(%(threads)s::text[], %(places)s::text[]) AS wanted (thread_id, place)
JOIN live_answers USING (thread_id)
JOIN locks ON locks.name = wanted.place AND locks.epoch = live_answers.epoch AND locks.held
WHERE live_answers.at > now() - make_interval(secs => %(dead)s)
"""
_FORGET = "DELETE FROM live_answers WHERE at < now() - interval '1 minute'"


LiveTask = tuple[str, "TaskState", float, float | None]
"""A tool call's title and state, and when it began and ended."""


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """What is happening in a thread."""

    epoch: int
    """Of the claim under which it is done."""
    status: str
    drafts: Mapping[str, str]
    """Answers that are being written, by the ids of their messages."""
    tasks: Mapping[str, LiveTask] = field(default_factory=dict)
    """Tool calls of the turn, by their ids, as they began."""


def _written(answer: LiveAnswer) -> list[object]:
    """Without its tasks where it has none: a version that knows nothing of them reads that."""
    return [answer.status, dict(answer.drafts), *([dict(answer.tasks)] if answer.tasks else [])]


class LiveAnswers:
    """Written by the process that handles a thread, read by those whose pages show it."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def write(self, answers: Mapping[str, LiveAnswer], ended: Mapping[str, int]) -> None:
        """Keep what is happening in threads, unless another process has claimed them since, and nothing any more of
        those in which nothing does (`ended`: by the epoch of the claim under which it did)."""
        async with self._database.writing_apart(UNLOCKED) as tx:
            if answers:
                states = [json.dumps(_written(each)) for each in answers.values()]
                values = {"threads": list(answers), "places": list(map(place_of, answers)), "states": states}
                await tx.execute(_WRITE, values | {"epochs": [each.epoch for each in answers.values()]})
            if ended:
                await tx.execute(_CLEAR, {"threads": list(ended), "epochs": list(ended.values())})

    async def read(self, thread_ids: Sequence[str]) -> Mapping[str, LiveAnswer]:
        """What is happening in those of these threads in which something is."""
        values = {"threads": list(thread_ids), "places": list(map(place_of, thread_ids)), "dead": DEAD_SECONDS}
        async with self._database.reading() as tx:
            cursor = await tx.execute(_READ, values)
            rows = await cursor.fetchall()
        return {thread_id: LiveAnswer(epoch, *json.loads(state)) for thread_id, epoch, state in rows}

    async def forget(self) -> None:
        """Forget what processes that died have left."""
        async with self._database.writing_apart(UNLOCKED) as tx:
            await tx.execute(_FORGET)
