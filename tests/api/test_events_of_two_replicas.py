"""A stream of events at one replica, of what happens at another."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.contract_clients import Caller, http, token, with_tokens
from tests.api.serving import EventReader, StreamedEvent
from tests.fakes.openai_server import fake_openai
from tests.support.brain import obedient
from tests.support.fixtures import connect, shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.two_products import share

__all__ = ["shop"]


@pytest.mark.postgres
async def test_what_happens_at_one_replica_is_streamed_at_another_and_a_stream_goes_on_at_either(
    tmp_path: Path, shop: Workshop
) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(obedient))
        home = share(with_tokens(ProductFolder(tmp_path)))
        connect(home, shop, model)
        home.variables["PORT"] = "0"
        here, there = [await stack.enter_async_context(product_here(home)) for _ in range(2)]
        session = await stack.enter_async_context(http())
        ana, other = (Caller(url, session, token("ana")) for url in (here, there))
        thread = f"/api/v1/threads/{(await ana.post('/api/v1/threads', {})).body['id']}"

        async def entries(url: str, last: str, count: int) -> list[StreamedEvent]:
            sent = {"Authorization": f"Bearer {ana.token}", **({"Last-Event-ID": last} if last else {})}
            async with session.get(f"{url}{thread}/events", headers=sent) as response:
                events = EventReader(response)
                if not last:  # once it is open
                    await ana.post(f"{thread}/messages", {"text": "use make what=lamp"})
                seen: list[StreamedEvent] = []
                while len(seen) < count:
                    event = await events.next()
                    assert event is not None
                    seen += [event] if event.event_id else []
                return seen

        asked = await entries(there, "", 3)
        assert [each.name for each in asked] == ["message", "post", "post"]
        approval = asked[-1].data["content"]["id"]
        decided = await other.post(f"/api/v1/approvals/{approval}/decision", {"verb": "approve"})
        assert decided.status == 200
        last = asked[-1].event_id
        texts: list[str] = []
        while "Results: made lamp" not in texts:
            (event,) = (await entries(here, last, 1))[:1]
            last = event.event_id
            texts.append(event.data["content"].get("text", ""))
            assert event.name == "post"
            assert len(texts) < 10
