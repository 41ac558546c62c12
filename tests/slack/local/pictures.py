"""Takes the pictures for docs/slack.md: `python -m tests.slack.local.pictures`.

A real product in local-slack, real clicks; what it posted is drawn with an independent renderer of Slack's blocks.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from adapters.slack.render.posts import pieces
from tests.slack.local.conftest import product_in
from tests.slack.local.drawing import Drawing, drawing
from tests.slack.local.packages import LOCAL_SLACK, WITHOUT_LOCAL_SLACK
from tests.slack.local.person import Conversation, LocalPerson
from tests.slack.shown import a_post
from tests.support.views import an_approval

IMAGES = Path(__file__).parents[3] / "docs" / "images"


def picture(name: str) -> Path:
    """Where a picture goes."""
    return IMAGES / f"slack-{name}.png"


def thread_of(conversation: Conversation) -> list[dict[str, Any]]:
    """Everything in a thread, with its first message."""
    messages = conversation.workspace.messages(conversation.channel)
    return [message for message in messages if conversation.thread_ts in (message["ts"], message.get("thread_ts"))]


async def main() -> None:
    """Every picture, one conversation after the other."""
    if LOCAL_SLACK is None:
        raise SystemExit(WITHOUT_LOCAL_SLACK)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        async with drawing(where) as page, product_in(where, "events") as workspace:
            ana = LocalPerson(workspace, "U1")
            await _approving(page, ana)
            await _two_at_once(page, ana)
            await _asking(page, ana)
            await page.home(picture("home"), await ana.opens_home())
            await _of_a_program(page)


async def _approving(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("create a meeting called Standup tomorrow at 9am")
    (card,) = await thread.cards()
    await page.thread(picture("approval"), thread_of(thread))
    await page.modal(picture("edit"), await thread.opens(card, "Edit…"))
    await thread.clicks(card, "Approve")
    await thread.says("created", "standup")
    await page.thread(picture("settled"), thread_of(thread))


async def _two_at_once(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    first, second = await thread.cards(2)
    await thread.clicks(first, "Approve")
    await thread.shows(first, "Approved")
    await thread.opens(second, "Reject…")
    await thread.submits(**{"Reason, or what to do instead": "should be 12:30pm"})
    await thread.cards()
    await page.thread(picture("rejected"), thread_of(thread))


async def _asking(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("schedule something")
    await thread.asks()
    await page.thread(picture("question"), thread_of(thread))


async def _of_a_program(page: Drawing) -> None:
    """The card of another agent's call, where its rule routes it to."""
    now = time.time()
    card = an_approval(
        server="tasks",
        tool="delete_task",
        title="",
        arguments={"task_id": "T-318", "reason": "Duplicate of T-301"},
        risk=("destroys",),
        requester="Ana Almeida",
        client="claude-code",
        may_decide="Ben Brook",
        approvers=("slack:T1:U2",),
        rule="deletions need a second person",
        expires_at=now + 24 * 3600,
    )
    [shown] = pieces(a_post(card))
    said = {"user": "UBOT", "bot_id": "BBOT", "ts": str(now), "text": shown.text, "blocks": list(shown.blocks)}
    await page.thread(picture("gateway"), [said])


if __name__ == "__main__":
    asyncio.run(main())
