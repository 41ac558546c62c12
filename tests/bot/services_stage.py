"""The services on real records, with an engine that only notes what it is told."""

from __future__ import annotations

from bot.crypto import NewId
from bot.domain import Clock, ConversationReference, Message, Person
from bot.outbox import Outbox
from bot.records import approvals, deliveries
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from tests.bot.rows import asked
from tests.bot.stubs import NotedEngine, make_parts

ANA, BEN = Person("chat:ana", "Ana"), Person("chat:ben", "Ben")
THREAD = "chat:T1"
HERE = ConversationReference("chat", THREAD, {"room": THREAD})


class Stage:
    """The services on real records, with an engine that only notes what it is told."""

    def __init__(self, database: Database, outbox: Outbox, clock: Clock, new_id: NewId) -> None:
        self.database, self.outbox, self.clock = database, outbox, clock
        self.engine = NotedEngine()
        self.parts = make_parts(database, outbox, clock, new_id, engine=self.engine)
        self.services = self.parts.services

    async def write(self, person: Person, key: str, text: str = "hello", *, addressed: bool = True) -> bool:
        return await self.services.inbox.accept(Message(key, HERE, person, text, self.clock(), addressed))

    async def ask(self, approval_id: str, requester: Person = ANA, thread_id: str = THREAD) -> str:
        async with self.database.writing(UNLOCKED) as tx:
            request = asked(f"call of {approval_id}", requesters=(requester.person_id,), approvers=("any",))
            await approvals.add(tx, approval_id, thread_id, request, now=self.clock(), expires_at=None)
        return approval_id

    async def waiting(self, thread_id: str = THREAD) -> list[str]:
        """Keys of what is to be handled, in the order it will be."""
        keys = []
        async with self.database.writing(UNLOCKED) as tx:
            while (head := await deliveries.head(tx, thread_id, self.clock())) is not None:
                keys.append(head.key)
                await deliveries.park(tx, head.key, "seen")
        return keys
