"""What people see while it happens: status, progress, streamed text."""

from __future__ import annotations

import aiohttp

from tests.support.visitor import Thread


async def test_the_answer_streams_before_it_is_kept(at_work: Thread) -> None:
    await at_work.send("hello, how are you today")
    await at_work.says("you said: hello, how are you today")
    assert "".join(at_work.live_texts) == "You said: hello, how are you today"
    assert len(at_work.live_texts) > 1


async def test_a_running_tool_is_named_and_its_progress_shown(at_work: Thread) -> None:
    await at_work.send("use report what=lamp")
    await at_work.says("made all of lamp")
    assert "Thinking…" in at_work.statuses
    assert "Using workshop: Report…" in at_work.statuses
    assert any("half of lamp" in s and "50%" in s for s in at_work.statuses)


async def test_another_open_page_catches_up_with_the_same_conversation(at_work: Thread) -> None:
    async with at_work.visitor.thread(at_work.thread_id) as beside:
        await at_work.send("use make what=lamp")
        await at_work.waiting()
        await beside.waiting()
    async with at_work.visitor.thread(at_work.thread_id) as again:
        assert list(again.entries) == list(at_work.entries)


async def test_the_health_check_says_what_is_connected(workshop_product: str) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{workshop_product}/health-check") as response:
        health = await response.json()
    assert response.status == 200
    assert health["status"] == "ok"
    assert health["platforms"] == ["web"]
    assert health["deliveries"] == {"waiting": 0, "parked": 0, "running": 0}
