"""Requests that are made up from the document alone get answers that the document describes."""

from __future__ import annotations

import asyncio

from tests.api.serving import ApiUser, ServedApi
from tests.api.things import everything_of_anas


async def test_what_is_made_up_gets_answers_that_are_described(served: ServedApi, nobody: ApiUser) -> None:
    from tests.api.trial import Trial  # seconds of each worker, were it imported above

    things = await everything_of_anas(served)
    document = (await nobody.ask("GET", "/api/openapi.json")).body
    trial = Trial(served, things, document)
    await asyncio.to_thread(trial.run)
    for name in ("threads/{id}", "approvals/{id}", "clarifications/{id}", "sign-ins/{id}", "outcomes/{id}"):
        assert trial.seen[f"GET /api/v1/{name} 200"], name
