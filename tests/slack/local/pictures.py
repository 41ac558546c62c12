"""Takes the pictures for docs/slack.md: `python -m tests.slack.local.pictures`.

A real product in local-slack, real clicks; what it posted is drawn with an independent renderer of Slack's blocks.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from adapters.shared.wording import note_label, reason_label
from adapters.slack.render.posts import pieces
from graph.presentation import CallPresentation, PresentedArgument
from tests.slack.local.conftest import product_in
from tests.slack.local.drawing import Drawing, drawing
from tests.slack.local.packages import LOCAL_SLACK, WITHOUT_LOCAL_SLACK
from tests.slack.local.person import Conversation, LocalPerson, buttons
from tests.slack.local.values import inputs_of
from tests.slack.shown import a_post
from tests.slack.stage import staged, streaming
from tests.support.views import an_approval
from tests.web.browsing import chromium

IMAGES = Path(__file__).parents[3] / "docs" / "images"
ON_THE_CALENDAR = "There is nothing on your calendar tomorrow."
NOTE, REASON = note_label(), reason_label()


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
        async with chromium() as browser, drawing(where, browser) as page, product_in(where, "events") as workspace:
            ana, ben = LocalPerson(workspace, "U1"), LocalPerson(workspace, "U2")
            await _approving(page, ana)
            await _deleting(page, ana, ben)
            await _two_at_once(page, ana)
            await _failing(page, ana, ben)
            await _always_allowing(page, ana)
            await _asking(page, ana)
            await page.home(picture("home"), await ana.opens_home())
            await _of_a_program(page)
            await _looking_up(page)


async def _approving(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("create a meeting called Standup tomorrow at 9am")
    (card,) = await thread.cards()
    await page.thread(picture("approval"), thread_of(thread))
    await page.modal(picture("show-all"), await thread.opens(card, "Show all"), {NOTE: "Invite Chloe as well"})
    await page.modal(picture("edit"), await thread.opens(card, "Edit…"))
    await thread.submits(**later(thread, hours=1))
    await thread.says("created", "standup")
    await page.thread(picture("settled"), thread_of(thread))


async def _deleting(page: Drawing, ana: LocalPerson, ben: LocalPerson) -> None:
    """Somebody else has to decide."""
    thread = await ana.mentions("delete the Standup meeting tomorrow")
    (card,) = await thread.cards()
    await page.thread(picture("deletion"), thread_of(thread))
    await page.confirmation(picture("confirm"), buttons(card["blocks"])["Approve"]["confirm"])
    await thread.clicks(card, "Approve", user=ben.user)
    await thread.says("deleted", "standup")


async def _two_at_once(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("create 2 events: Team Meeting at 10am and Lunch with Ben at 12pm")
    first, second = await thread.cards(2)
    await thread.shows(first, "Approve all 2…")
    await page.modal(picture("approve-all"), await thread.opens(first, "Approve all 2…"))
    await thread.clicks(first, "Approve")
    await thread.shows(first, "Approved")
    reason = {REASON: "should be 12:30pm"}
    await page.modal(picture("reject"), await thread.opens(second, "Reject…"), reason)
    await thread.submits(**reason)
    await thread.shows(second, "Rejected")
    await thread.cards()
    await page.thread(picture("rejected"), thread_of(thread))


async def _failing(page: Drawing, ana: LocalPerson, ben: LocalPerson) -> None:
    """What is to be done is gone by the time that it is approved."""
    adding = await ana.mentions("add a task to call the bank")
    (card,) = await adding.cards()
    await adding.clicks(card, "Approve")
    await adding.says("added", "call the bank")
    thread = await ana.mentions("complete the task call the bank")
    (card,) = await thread.cards()
    deleting = await ana.mentions("delete the task call the bank")
    (deletion,) = await deleting.cards()
    await deleting.clicks(deletion, "Approve", user=ben.user)
    await deleting.says("deleted", "call the bank")
    await thread.clicks(card, "Approve")
    await thread.shows(card, "Retry")
    await page.thread(picture("failed"), thread_of(thread))


async def _always_allowing(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("add a task to water the plants")
    (card,) = await thread.cards()
    await page.modal(picture("always"), await thread.opens(card, "Allow for a while…"))
    await thread.submits()
    await thread.says("added", "water the plants")
    again = await ana.mentions("add a task to water the plants")
    await again.says("added", "water the plants")
    await page.thread(picture("change"), thread_of(again))


async def _asking(page: Drawing, ana: LocalPerson) -> None:
    thread = await ana.mentions("schedule something")
    await thread.asks()
    await page.thread(picture("question"), thread_of(thread))


def later(thread: Conversation, *, hours: int) -> dict[str, int]:
    """What is entered into an open form of an event for another time."""
    inputs = inputs_of(thread.workspace.modals[-1])
    begun = {label: inputs[label]["element"]["initial_date_time"] for label in ("Start", "End")}
    return {label: time + hours * 3_600 for label, time in begun.items()}


async def _looking_up(page: Drawing) -> None:
    """What is looked up stands in the answer itself. local-slack has no streams, our own fake has."""
    async with staged() as stage:
        live = stage.live()
        live.task("1", "calendar: List events", "running")
        await streaming(stage)
        live.task("1", "calendar: List events", "done")
        await stage.slack.until(lambda: stage.answers()[0]["blocks"][0]["status"] == "complete")
        live.text("2", ON_THE_CALENDAR)
        await stage.outbound.send(stage.said("2", ON_THE_CALENDAR))
        [answer] = stage.answers()
    asked = {"user": "U1", "ts": answer["ts"], "text": "<@UBOT> what is on my calendar tomorrow"}
    await page.thread(picture("activity"), [asked, {**answer, "user": "UBOT"}])


async def _of_a_program(page: Drawing) -> None:
    """The card of another agent's call, where its rule routes it to."""
    now = time.time()
    card = an_approval(
        server="tasks",
        tool="add_task",
        title="Add task",
        arguments={"title": "Update the release notes", "due": time.strftime("%Y-%m-%d", time.gmtime(now + 86_400))},
        presentation=CallPresentation(
            trusted=True,
            main="title",
            year=time.gmtime(now).tm_year,
            arguments={
                "title": PresentedArgument(title="Title", kind="text"),
                "due": PresentedArgument(title="Due", kind="date"),
            },
        ),
        requester="Ana",
        client="claude-code",
        may_decide="Ben",
        approvers=("slack:T1:U2",),
        rule="Tasks of other agents need Ben",
        expires_at=now + 24 * 3600,
    )
    [shown] = pieces(a_post(card))
    said = {"user": "UBOT", "bot_id": "BBOT", "ts": str(now), "text": shown.text, "blocks": list(shown.blocks)}
    await page.thread(picture("gateway"), [said])


if __name__ == "__main__":
    asyncio.run(main())
