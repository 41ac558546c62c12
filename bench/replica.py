"""One process that takes part in handling what there is: the records, the inbox, the engine and the outbox of the
product, without graph, tools and platforms, so that dozens can be started and killed within minutes.

`python -m bench.replica ADDRESS`. Commands come as lines of JSON: `{"accept": KEY, "place": NAME}` keeps a message,
`{"let_go": KEY}` lets its turn end. What happens is told likewise, with its moment on the clock of all processes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import structlog

from bot.domain import ConversationReference, Message, Notice, Person
from bot.inbox import Acceptance
from bot.outbox import Outbox, notice
from bot.platform import Post, Reference
from bot.records import deliveries
from bot.records.claims import Overtaken
from bot.records.deliveries import Delivery
from bot.records.notifications import Notifications
from bot.records.postgresql import postgres_database
from bot.turns.replicas import DistributedEngine, PlacesHere

CONNECTIONS = 3
PLATFORM = "bench"
HELD = "hold"
"""A message whose key begins so is in the middle of its turn until it is let go."""
READY_EVERY = 0.01


class SilentPlatform:
    """Takes every post."""

    name = PLATFORM

    async def send(self, post: Post) -> Reference:
        """It is there."""
        return {"messages": [post.post_id]}

    async def update(self, _: Post, reference: Reference) -> Reference:
        """The same."""
        return reference

    async def find(self, _: Post) -> Reference | None:
        """Nothing is ever found."""
        return None


def tell(**what: Any) -> None:
    """Say on the output what happened just now."""
    sys.stdout.write(json.dumps({**what, "at": time.monotonic()}) + "\n")
    sys.stdout.flush()


async def main(address: str) -> None:
    """Until the input ends, or it is killed."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    database = postgres_database(address, most_connections=CONNECTIONS)
    await database.open()
    here, platforms = PlacesHere(database), {PLATFORM: SilentPlatform()}
    outbox = Outbox(database, time.time, platforms, lanes_here=here)  # type: ignore[arg-type]  # of which posts need no more
    notifications = Notifications(address)
    engine = DistributedEngine(
        database, outbox, here, time.time, notifications=notifications, address=address, concurrency=8
    )
    acceptance = Acceptance(database, time.time)
    let_go: dict[str, asyncio.Event] = {}

    async def handle(delivery: Delivery) -> None:
        tell(begun=delivery.key)
        try:
            if delivery.key.startswith(HELD):
                await let_go.setdefault(delivery.key, asyncio.Event()).wait()
            async with database.writing(delivery.thread_id) as tx:
                await outbox.say(tx, notice(f"to {delivery.key}", delivery.thread_id, Notice("Done.")))
                await deliveries.done(tx, delivery.key)
        except (asyncio.CancelledError, Overtaken):
            tell(broken_off=delivery.key)
            raise
        tell(ended=delivery.key)

    async def accept(key: str, name: str) -> None:
        place = ConversationReference(platform=PLATFORM, key=f"{PLATFORM}:{name}", address={"room": name})
        began = time.monotonic()
        accepted = await acceptance.accept(Message(key, place, Person(f"{PLATFORM}:ana", "Ana"), "hello", 0.0))
        engine.wake(accepted.thread_id)
        tell(accepted=key, began=began)

    await notifications.start()
    await engine.start(handle)
    while not engine.is_ready:
        await asyncio.sleep(READY_EVERY)
    tell(ready=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if "accept" in command:
            await accept(command["accept"], command["place"])
        else:
            let_go.setdefault(command["let_go"], asyncio.Event()).set()
    await engine.stop(0.5)
    await outbox.stop(0.5)
    await notifications.stop()
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
