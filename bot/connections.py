"""Sign-ins: links that one person must open before a tool can act for them. Only their owner ever gets the link."""

from __future__ import annotations

import re

from bot.clock import Clock
from bot.ids import NewId
from bot.posts import Posts
from bot.records import sign_ins
from bot.records.database import Database, Transaction
from bot.records.posts import NewPost
from bot.records.sign_ins import SignInRow
from bot.safe_text import link_host, one_line
from bot.secrets import Sealer
from bot.vocabulary import AlreadySettled, ClickResult, Person, Refused, Settled, SignInReply, Unknown
from graph.interrupts import Answer, Declined, Expired, SignedIn, Superseded
from graph.ports import SignInNeeded

MESSAGE_LIMIT = 300
"""Characters of what a server says about why it wants a sign-in."""
_LINK = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
"""Servers like to repeat the link in their message; everybody sees that."""
NO_SUCH = Unknown("This sign-in does not exist (any more).")


class SignInBook:
    """Keeps links sealed and gives them to their owner. Fills `graph.ports.SignIns`."""

    def __init__(self, database: Database, posts: Posts, clock: Clock, new_id: NewId, sealer: Sealer) -> None:
        self._database = database
        self._posts = posts
        self._clock = clock
        self._new_id = new_id
        self._sealer = sealer

    async def ask(self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded) -> str:
        """Keep the link and post a card without it; asking again for the same call gives the id that is open."""
        async with self._database.writing() as tx:
            known = await sign_ins.open_of_call(tx, call_id)
            if known is not None:
                return known.sign_in_id
            row = SignInRow(
                sign_in_id=self._new_id(),
                call_id=call_id,
                thread_id=thread_id,
                person_id=person,
                server=server,
                host=link_host(needed.url),
                message=one_line(_LINK.sub("(link)", needed.message), MESSAGE_LIMIT),
                sealed_link=self._sealer.seal(needed.url),
                status="open",
                asked_at=self._clock(),
                expires_at=None,
            )
            await sign_ins.add(tx, row)
            card = NewPost(f"sign_in:{row.sign_in_id}", thread_id, "sign_in", subject=row.sign_in_id)
            await self._posts.say(tx, card)
        return row.sign_in_id

    async def link(self, sign_in_id: str, person: Person) -> str | Refused | Unknown:
        """The link, for its owner only, while it is open."""
        async with self._database.reading() as tx:
            row = await sign_ins.get(tx, sign_in_id)
        if row is None:
            return NO_SUCH
        if row.person_id != person.person_id:
            return Refused("This link is for somebody else only.")
        if not row.host:
            return Refused(f"{row.server} gave a link whose host cannot be told for certain, so it is not offered.")
        link = self._sealer.unseal(row.sealed_link) if row.status == "open" else None
        return link if link is not None else Refused("This link is not valid any more.")

    async def reply(self, tx: Transaction, reply: SignInReply) -> tuple[ClickResult, str | None]:
        """Record that the person has signed in or will not; with the thread to resume when that settled it."""
        row = await sign_ins.get(tx, reply.sign_in_id)
        if row is None:
            return NO_SUCH, None
        if row.person_id != reply.person.person_id:
            return Refused("This sign-in is for somebody else only."), None
        status = "done" if reply.done else "declined"
        if not await sign_ins.settle(tx, reply.sign_in_id, status, key=reply.key, now=self._clock()):
            twice = row.settled_key == reply.key
            return Settled("Noted.") if twice else AlreadySettled("This was settled already."), None
        await self._posts.show_again(tx, [reply.sign_in_id])
        return Settled("Thank you, going on." if reply.done else "All right, without it."), row.thread_id

    async def supersede(self, tx: Transaction, row: SignInRow, key: str) -> None:
        """The turn went on without it."""
        if await sign_ins.settle(tx, row.sign_in_id, "superseded", key=key, now=self._clock()):
            await self._posts.show_again(tx, [row.sign_in_id])


def answer_of(row: SignInRow) -> Answer | None:
    """What a settled sign-in tells the graph; `None` while it is open."""
    match row.status:
        case "open":
            return None
        case "done":
            return SignedIn()
        case "declined":
            return Declined()
        case "expired":
            return Expired()
        case _:
            return Superseded()
