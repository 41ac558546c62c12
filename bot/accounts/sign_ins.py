"""Sign-ins: what one person must do in a browser before a tool can act for them. Only they ever get the link."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from bot.accounts.ports import OutsideServices
from bot.crypto import NewId, Sealer, hashed, random_token
from bot.domain import Clock, Person, Refused, Unknown
from bot.limits import Beginnings, Window
from bot.outbox import Outbox
from bot.records import attempts, authorizations, connections, sign_ins, threads
from bot.records.authorizations import AuthorizationRow
from bot.records.database import Database, Transaction, locking_as_found
from bot.records.locks import person_lock
from bot.records.posts import NewPost
from bot.records.sign_ins import SignInRow
from bot.safe_text import link_host, one_line
from bot.settings import Settings
from bot.turns.engine import Engine, resume_thread
from graph.interrupts import Declined, Expired, InterruptAnswer, SignedIn, Superseded
from graph.ports import AccountNeeded, SignInNeeded
from translations import gettext as _
from translations import ngettext

LONGEST_MESSAGE = 300
"""Characters of what a server says about why it wants a sign-in."""
_LINK = re.compile(r"[a-z][a-z0-9+.-]{0,40}://\S+", re.IGNORECASE)
"""Servers like to repeat the link in their message; everybody sees that. A scheme is bounded, so that looking is
linear."""


class SignIns:
    """Keeps what waits for somebody's browser. Fills `graph.ports.SignInPort`.

    `address`: where browsers reach us.
    """

    def __init__(
        self,
        database: Database,
        engine: Engine,
        outbox: Outbox,
        clock: Clock,
        *,
        new_id: NewId,
        services: OutsideServices,
        links: SignInLinks,
        sealer: Sealer,
        address: Callable[[], str],
    ) -> None:
        self._database = database
        self._engine = engine
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._services = services
        self._links = links
        self._sealer = sealer
        self._address = address

    async def ask(
        self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded | AccountNeeded
    ) -> str:
        """Keep what is needed and post a card without the link; asking again for the same call gives the id that is
        open, unless the call was made anew and needs another link: the one of before leads nowhere then."""
        async with self._database.writing(thread_id, person_lock(person)) as tx:
            known = await sign_ins.open_of_call(tx, call_id)
            if known is not None and self._is_for(known, needed):
                return known.sign_in_id
            if known is not None:
                await self.supersede(tx, known, f"made anew:{known.sign_in_id}")
            row = self._row(thread_id, call_id, person, server, needed)
            await sign_ins.add(tx, row)
            if isinstance(needed, AccountNeeded):
                if await self._was_granted_meanwhile(tx, row):
                    await sign_ins.settle(tx, row.sign_in_id, "done", key="connected meanwhile", now=self._clock())
                    await resume_thread(tx, self._engine, thread_id, row.sign_in_id, now=self._clock())
                    return row.sign_in_id
                await self._links.begin(tx, person, needed.connection, needed.challenge)
            card = NewPost(f"sign_in:{row.sign_in_id}", thread_id, "sign_in", subject=row.sign_in_id)
            await self._outbox.say(tx, card)
            await self._outbox.show_call_again(tx, call_id)
        return row.sign_in_id

    def _is_for(self, known: SignInRow, needed: SignInNeeded | AccountNeeded) -> bool:
        if isinstance(needed, AccountNeeded):
            return known.connection == needed.connection
        return known.connection is None and self._sealer.unseal(known.sealed_link) == needed.url

    def _row(
        self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded | AccountNeeded
    ) -> SignInRow:
        base = SignInRow(
            sign_in_id=self._new_id(),
            call_id=call_id,
            thread_id=thread_id,
            person_id=person,
            server=server,
            host="",
            message="",
            sealed_link="",
            status="open",
            asked_at=self._clock(),
            expires_at=None,
        )
        if isinstance(needed, AccountNeeded):
            service = self._services.service(needed.connection)
            label = service.label if service is not None else needed.connection
            host = link_host(self._address())
            return replace(base, connection=needed.connection, service=label, host=host)
        return replace(
            base,
            host=link_host(needed.url),
            message=one_line(_LINK.sub(_("(link)"), needed.message), LONGEST_MESSAGE),
            sealed_link=self._sealer.seal(needed.url),
        )

    async def _was_granted_meanwhile(self, tx: Transaction, row: SignInRow) -> bool:
        """Whether this person signed in after the call had looked for their account, and before it asks here: then
        nothing that is still to come would let it go on."""
        kept = await connections.of(tx, row.person_id, row.connection or "")
        attempt = await attempts.latest(tx, row.call_id)
        if kept is None or kept.status != "active" or attempt is None:
            return False
        return kept.since > attempt.started_at

    async def completed(self, call_id: str) -> None:
        """The server says that what its link led to is finished: the call that waits for it goes on, once. After the
        next link only its owner can say so, or a server that acts, and asks for yet another link, would need nobody."""
        await locking_as_found(self._database.writing_urgently, partial(self._completed, call_id=call_id))

    async def _completed(self, tx: Transaction, call_id: str) -> None:
        row = await sign_ins.open_of_call(tx, call_id)
        if row is None:
            return
        tx.needs(row.thread_id)
        if row.connection is not None or await sign_ins.count_of_call(tx, call_id) > 1:
            return
        key = f"completed:{row.sign_in_id}"
        if await sign_ins.settle(tx, row.sign_in_id, "done", key=key, now=self._clock()):
            await self._outbox.show_again(tx, [row.sign_in_id])
            await resume_thread(tx, self._engine, row.thread_id, row.sign_in_id, now=self._clock())

    async def supersede(self, tx: Transaction, row: SignInRow, key: str) -> None:
        """The turn went on without it."""
        if await sign_ins.settle(tx, row.sign_in_id, "superseded", key=key, now=self._clock()):
            await self._outbox.show_again(tx, [row.sign_in_id])


def no_such_sign_in() -> Unknown:
    """Returns what is said of a sign-in that is not there."""
    return Unknown(_("This sign-in is no longer available."))


def not_your_sign_in() -> Refused:
    """Returns what everybody is told but the one whom a sign-in is for."""
    return Refused(_("This sign-in is for someone else."))


def answer_of(row: SignInRow) -> InterruptAnswer | None:
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


# ------------------------------------------------------------------------------ links to /oauth/start
# One per person and connection at a time, for a quarter of an hour.

HOUR = 3600.0
SIGN_IN_LINK_SECONDS = 900.0
"""How long a link can be used, from when it was asked for."""
GIVEN_AGAIN_SECONDS = 600.0
"""How long the same link is given to who asks again (another of their calls, say), while nobody has used it."""
KEPT_SECONDS = 86_400.0
"""How long it can be told of an old link that it was used, or is too old."""


class SignInLinks:
    """Makes links, and gives them to their owners.

    `address`: where browsers reach us (scheme, host and port); `links_an_hour`: how many links one person may ask for,
    0 for no limit.
    """

    def __init__(
        self,
        database: Database,
        services: OutsideServices,
        sealer: Sealer,
        clock: Clock,
        new_id: NewId,
        *,
        address: Callable[[], str],
        beginnings: Beginnings,
        links_an_hour: int,
    ) -> None:
        self._database = database
        self._services = services
        self._sealer = sealer
        self._clock = clock
        self._new_id = new_id
        self._address = address
        self._beginnings = beginnings
        self._links_an_hour = links_an_hour

    async def link(self, sign_in_id: str, person_id: str) -> str | Refused | Unknown:
        """The link of a sign-in, for its owner only, while it is open."""
        async with self._database.reading() as tx:
            row = await sign_ins.get(tx, sign_in_id)
        if row is None:
            return no_such_sign_in()
        if row.person_id != person_id:
            return Refused(_("This link is for someone else."))
        if row.status != "open":
            return _not_valid()
        if row.connection is not None:
            async with self._database.writing_urgently(person_lock(person_id)) as tx:
                return await self._link_to(tx, row.person_id, row.connection)
        if not row.host:
            said = _("{server} sent a link whose address can’t be verified, so it isn’t shown.")
            return Refused(said.format(server=row.server))
        link = self._sealer.unseal(row.sealed_link)
        return link if link is not None else _not_valid()

    async def connect_link(self, person_id: str, connection: str, name: str = "") -> str | Refused | Unknown:
        """A link to connect an account before anything needs one, or another in its place; for this person only, and
        counted like the others. `name`: of whom nothing is known yet."""
        if self._services.service(connection) is None:
            return Unknown(_("Accounts can’t be connected there."))
        async with self._database.writing_urgently(person_lock(person_id)) as tx:
            if name:
                await threads.introduce(tx, Person(person_id, name), self._clock())
            return await self._link_to(tx, person_id, connection)

    async def begin(self, tx: Transaction, person_id: str, connection: str, challenge: str) -> None:
        """A person needs an account at a connection; what they are on the way to already, they stay on the way to.

        `challenge`: of the newest refusal, which knows what is missing; an empty one says nothing new."""
        now = self._clock()
        await authorizations.forget_codes(tx, now)
        await authorizations.forget(tx, now - KEPT_SECONDS)
        known = await authorizations.open_for(tx, person_id, connection)
        if known is None:
            row = AuthorizationRow(self._new_id(), person_id, connection, challenge, "open", now)
            await authorizations.add(tx, row)
        elif challenge and challenge != known.challenge:
            await authorizations.change(tx, known, challenge=challenge)

    async def _link_to(self, tx: Transaction, person_id: str, connection: str) -> str | Refused:
        """The link to an account at a connection. An older one is of no use any more."""
        now = self._clock()
        await self.begin(tx, person_id, connection, "")
        way = await authorizations.open_for(tx, person_id, connection)
        if way is None:  # it was begun a moment ago, in this transaction
            raise RuntimeError("an authorization that was begun is not there")
        token = self._given_again(way, now)
        if token is None:
            token = random_token()
            links = Window(f"links:{person_id}", self._links_an_hour, HOUR)
            if full := await self._beginnings.count(hashed(token), [links], tx=tx):
                minutes = max(1, round(full.wait / 60))
                said = ngettext(
                    "You asked for too many links. Try again in {count} minute.",
                    "You asked for too many links. Try again in {count} minutes.",
                    minutes,
                )
                return Refused(said.format(count=minutes))
            until = now + SIGN_IN_LINK_SECONDS
            sealed = self._sealer.seal(token)
            await authorizations.change(
                tx, way, link_hash=hashed(token), sealed_link=sealed, link_until=until, browser_hash=None
            )
        return start_link(self._address(), token)

    def _given_again(self, way: AuthorizationRow, now: float) -> str | None:
        """The link that there is, if nobody has used it and it lives long enough to be of use."""
        if way.sealed_link is None or way.link_until is None or way.browser_hash is not None:
            return None
        fresh = way.link_until - now > SIGN_IN_LINK_SECONDS - GIVEN_AGAIN_SECONDS
        return self._sealer.unseal(way.sealed_link) if fresh else None


def _not_valid() -> Refused:
    return Refused(_("This link has expired."))


# ----------------------------------------------------------------------------- addresses for browsers

START, CALLBACK = "/oauth/start", "/oauth/callback"


class Address:
    """Where browsers reach this server: `PUBLIC_URL`, else the address that it listens on."""

    def __init__(self, settings: Settings) -> None:
        self._public_url = settings.public_url
        self._host = settings.host
        self._port = settings.port

    def listens_on(self, port: int) -> None:
        """The port that it got, which `PORT=0` leaves to the system."""
        self._port = port

    def __call__(self) -> str:
        """Scheme, host and port."""
        if self._public_url is not None:
            return self._public_url
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"


def start_link(base: str, token: str) -> str:
    """The link that one person gets."""
    return f"{base}{START}?s={token}"


def callback(base: str, connection: str = "") -> str:
    """Where the service of a connection sends browsers back to (`redirect_uri`): each to an address of its own, so that
    no service can have another's answer taken for its own (RFC 9700, 4.4.2). Without a connection: where those send
    them back to who say whose browser it is."""
    return f"{base}{CALLBACK}/{quote(connection, safe='')}" if connection else f"{base}{CALLBACK}"
