"""Codes told to the bot: whoever has the code and is the person whom the link was for, has been both ends of it."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from functools import partial

import structlog

from bot.accounts.connections import ConnectionWriter, account_label
from bot.accounts.sign_ins import no_such_sign_in, not_your_sign_in
from bot.accounts.tokens import Safe
from bot.crypto import hashed
from bot.domain import ClickResult, Clock, CodeEntry, Invalid, Message, Notice, Quote, Refused, Settled
from bot.gateway.people_only import refused_to_programs
from bot.outbox import Outbox, notice
from bot.records import authorizations, connections, posts, sign_ins, threads
from bot.records.authorizations import AuthorizationRow
from bot.records.database import Database, Transaction, locking_as_found
from bot.records.locks import person_lock
from bot.records.posts import NewPost
from bot.sessions import current_thread
from translations import gettext as _
from translations import ngettext

log = structlog.get_logger(__name__)


class Codes:
    """Takes one-time codes, however they come, and connects accounts.

    Whoever has the code, and is the person whom the link was for, has been both ends of it. A code comes as a form, or
    as a message that nobody but us may read: no record, no model, no log.
    """

    def __init__(
        self, database: Database, outbox: Outbox, connecting: ConnectionWriter, safe: Safe, clock: Clock
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._connecting = connecting
        self._safe = safe
        self._clock = clock

    async def taken(self, message: Message) -> bool | None:
        """Take a message as a code; only its author is told the outcome. False: it was taken before. `None`: it is
        no code, but a message like others."""
        if not codes_among(message.text):
            return None
        whose = person_lock(message.author.person_id)
        return await locking_as_found(self._database.writing_urgently, partial(self._taken, message=message), whose)

    async def _taken(self, tx: Transaction, message: Message) -> bool | None:
        if await posts.get(tx, _answer_to(message)) is not None:
            return False
        return True if await self.take(tx, message) else None

    async def take(self, tx: Transaction, message: Message) -> bool:
        """Does what `taken` does, within a transaction, for a message that was not taken before. False: it is no
        code."""
        code = await self._told_in(tx, message.author.person_id, message.text)
        if code is None:
            return False
        result = await self.enter(tx, CodeEntry(message.key, message.author, code))
        await self._outbox.say(tx, await _told(tx, message, result))
        return True

    async def without_codes(self, quotes: Sequence[Quote]) -> tuple[Quote, ...]:
        """What was said in a thread, without what has a code in it: a code is for no model."""
        among = {quote: codes_among(quote.text) for quote in quotes}
        async with self._database.reading() as tx:
            ways = await authorizations.with_codes(tx) if any(among.values()) else ()
        codes = self._codes(ways)
        return tuple(quote for quote in quotes if not among[quote] & codes)

    async def enter(self, tx: Transaction, entry: CodeEntry) -> ClickResult:
        """Check a code. A wrong one counts, and the last wrong one makes the right one useless."""
        person_id = entry.person.person_id
        tx.needs(person_lock(person_id))
        connection = None
        if entry.sign_in_id is not None:
            row = await sign_ins.get(tx, entry.sign_in_id)
            if row is None:
                return no_such_sign_in()
            if row.person_id != person_id:
                return not_your_sign_in()
            if refused := refused_to_programs(row.thread_id, entry.via):
                return refused
            connection = row.connection
        finished = await authorizations.finished_by(tx, person_id, entry.key)
        if finished is not None:  # the same message or form, delivered twice
            kept = await connections.of(tx, person_id, finished.connection)
            return self._thanks(finished, kept.account if kept is not None else "")
        ways = await authorizations.with_codes(tx)
        theirs = [way for way in ways if way.person_id == person_id]
        code, now = entered(entry.code), self._clock()
        waiting = [
            way
            for way in theirs
            if way.code_until is not None and now < way.code_until and connection in (None, way.connection)
        ]
        for way in waiting:
            if self._is_it(way, code):
                return await self._right(tx, way, entry.key)
        for way in ways:
            if way.person_id != person_id and self._is_it(way, code):
                return await self._not_theirs(tx, way)
        if not waiting:
            return _too_late() if theirs else none_waits()
        return await self._wrong(tx, waiting, entry)

    async def _told_in(self, tx: Transaction, person_id: str, text: str) -> str | None:
        """The code in a message that nobody but us may read: the whole message, where this person is expected to tell
        one, or one that somebody was shown lately, whatever stands around it. `None`: words that look like one, at
        most, are just words."""
        among = codes_among(text)
        if not among:
            return None
        ways = await authorizations.with_codes(tx)
        if told := among & self._codes(ways):
            return min(told)
        asked = any(way.person_id == person_id and way.code_until is not None for way in ways)  # in time or too late
        return code_in(text) if asked else None

    async def _not_theirs(self, tx: Transaction, way: AuthorizationRow) -> ClickResult:
        """Somebody has signed in by another's link and tells the code, perhaps where that one reads along: from now on
        it is of no use to them either."""
        tx.needs(person_lock(way.person_id))
        if way.sealed_grant is not None and await authorizations.change(tx, way, **authorizations.NO_CODE):
            await self._connecting.show_waiting(tx, way)
            log.warning("sign_in_code_of_somebody_else", connection=way.connection)
        return _not_yours()

    async def _right(self, tx: Transaction, way: AuthorizationRow, key: str) -> ClickResult:
        grant = self._safe.take_grant(way.person_id, way.connection, way.sealed_grant)
        if grant is None or not await authorizations.finish(tx, way, key=key, now=self._clock()):
            return none_waits()
        await self._connecting.connect(tx, way, grant)
        log.info("account_connected", connection=way.connection)
        return self._thanks(way, account_label(grant))

    async def _wrong(self, tx: Transaction, waiting: Sequence[AuthorizationRow], entry: CodeEntry) -> ClickResult:
        left = 0
        # A key that a client may choose, or that a form keeps, must not make every guess look like the first again.
        guess = f"{entry.key} {hashed(entered(entry.code))}"
        for way in waiting:
            counted = way.code_key == guess
            tries = way.code_tries if counted else way.code_tries + 1
            if tries >= MOST_TRIES:
                await authorizations.change(tx, way, **authorizations.NO_CODE, code_tries=tries)
                await self._connecting.show_waiting(tx, way)
            else:
                await authorizations.change(tx, way, code_tries=tries, code_key=guess)
                left = max(left, MOST_TRIES - tries)
        log.warning("wrong_sign_in_code", left=left)
        if left == 0:
            return Refused(_("Wrong code, and that was your last try. Ask for a new link and sign in again."))
        sentence = ngettext(
            "That’s not the code in your browser. {count} try left.",
            "That’s not the code in your browser. {count} tries left.",
            left,
        ).format(count=left)
        return Invalid({"code": sentence}) if entry.sign_in_id is not None else Refused(sentence)

    def _codes(self, ways: Iterable[AuthorizationRow]) -> frozenset[str]:
        return frozenset(code for way in ways if (code := self._code(way)))

    def _is_it(self, way: AuthorizationRow, code: str) -> bool:
        kept = self._code(way)
        return kept is not None and hmac.compare_digest(kept.encode(), code.encode())

    def _code(self, way: AuthorizationRow) -> str | None:
        kept = self._safe.take(way.person_id, way.connection, way.sealed_code)
        return str(kept["code"]) if kept is not None else None

    def _thanks(self, way: AuthorizationRow, account: str) -> Settled:
        """Names the account: somebody may have been talked into telling the code of somebody else's."""
        service = self._connecting.label(way.connection)
        if not account:
            return Settled(_("Your {service} account is connected.").format(service=service))
        connected = _("Your {service} account {account} is connected. If it isn’t yours, disconnect it.")
        return Settled(connected.format(service=service, account=account))


# ------------------------------------------------------------------------ codes in forms and messages
# A message that is a code reaches no record, no model and no log.


def none_waits() -> Refused:
    """Returns what somebody is told of whom no code is expected."""
    return Refused(_("You have no sign-in that needs a code. Ask for a new link, and open it in your own browser."))


def _not_yours() -> Refused:
    return Refused(
        _(
            "This code isn’t yours to give. Never share a sign-in link or use someone else’s: that would connect your "
            "account to theirs."
        )
    )


def _too_late() -> Refused:
    return Refused(_("This code has expired. If your account isn’t connected, ask for a new link."))


def _answer_to(message: Message) -> str:
    return f"{posts.CODE}{message.key}"


async def _told(tx: Transaction, message: Message, result: ClickResult) -> NewPost:
    """The answer, in the thread of the message where there is one, else at its place."""
    key = _answer_to(message)
    text = " ".join(result.errors.values()) if isinstance(result, Invalid) else result.text
    if code_in(message.text) is None:
        rest = _("Your message had a code in it, so I didn’t read the rest. Send that again.")
        text = f"{text} {rest}"
    told = Notice(text, "info" if isinstance(result, Settled) else "warning")
    author, place = message.author.person_id, message.place
    thread_id = await current_thread(tx, place, author)
    if thread_id is not None and await threads.get(tx, thread_id) is not None:
        return notice(key, thread_id, told, only_for=author)
    return notice(key, place.key, told, only_for=author, place=place)


# ------------------------------------------------------------------------------------- one-time codes
# Such as `K7QM-3DZP`: shown by a browser, told to the bot by whoever the sign-in is for.

ALPHABET = "CDFGHJKMNPQRTVWXYZ34679"
"""Characters of codes, without what is mistaken for something else (0 O, 1 I L, 2 Z, 5 S, 8 B, U V: one of each, or
none), and without vowels, so that no code is a word. Eight of them are 36 bits: with `MOST_TRIES`, nobody guesses
one."""
CODE_MINUTES = 10
"""How long a code can be told."""
MOST_TRIES = 5
"""Wrong codes until the right one is of no use any more."""
_GROUP = f"[{ALPHABET}{ALPHABET.lower()}]{{4}}"
_DASH = "[-‐‑‒–—−]"
_WRITTEN = re.compile(rf"[\s`*_\"'“”‘’(\[]*({_GROUP})\s?{_DASH}\s?({_GROUP})[\s`*_\"'“”‘’)\].!]*")
"""A code as people type or paste it: in upper or lower case, with what chat programs and phones make of the dash and
around it."""
_STANDING = re.compile(rf"(?<![^\W_])(?=({_GROUP})(?:\s?{_DASH}\s?|\s{{0,2}})({_GROUP})(?![^\W_]))")
"""A code amid other words, also where the dash was left out. A lookahead: two that overlap are both found."""


def new_code() -> str:
    """A random code."""
    first, second = ("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(2))
    return f"{first}-{second}"


def code_in(text: str) -> str | None:
    """The code that a whole message consists of, in its proper spelling; `None`: it is no code."""
    written = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    return f"{written[1]}-{written[2]}".upper() if written else None


def codes_among(text: str) -> frozenset[str]:
    """Everything in a text that might be a code, in its proper spelling: words, mostly, until it is compared."""
    return frozenset(f"{first}-{second}".upper() for first, second in _STANDING.findall(text))


def entered(text: str) -> str:
    """What was typed into a form that asks for a code: also without its dash, or in pieces."""
    letters = re.sub(r"[^0-9A-Za-z]", "", text[:_LONGEST]).upper()
    return f"{letters[:4]}-{letters[4:]}"


_LONGEST = 60
"""Characters of a message that may be a code: every message is searched, so this has to be cheap."""
