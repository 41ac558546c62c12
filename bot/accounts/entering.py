"""Codes told to the bot: whoever has the code and is the person whom the link was for, has been both ends of it."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence

import structlog

from bot.accounts.codes import MOST_TRIES, code_in, codes_among, entered
from bot.accounts.connecting import Connecting, account_label
from bot.accounts.sealing import Safe
from bot.clock import Clock
from bot.records import authorizations, connections, sign_ins
from bot.records.authorizations import AuthorizationRow
from bot.records.database import Transaction
from bot.secrets import hashed
from bot.vocabulary import ClickResult, CodeEntry, Invalid, Refused, Settled, Unknown

log = structlog.get_logger(__name__)

NO_SUCH = Unknown("This sign-in does not exist (any more).")
NONE_WAITS = Refused("No sign-in of yours waits for a code. Ask for a new link, and use it in your own browser.")
NOT_YOURS = Refused(
    "This code is not for you to tell me. Never pass on a link that you were sent, and never sign in by somebody "
    "else's: your account would become theirs to use."
)
TOO_LATE = Refused("This code does not count (any more). If your account is not connected, ask for a new link.")
USED_UP = Refused("That is not the code, and that was the last try. Ask for a new link and sign in again.")


class CodeDesk:
    """Checks codes and connects accounts."""

    def __init__(self, connecting: Connecting, safe: Safe, clock: Clock) -> None:
        self._connecting = connecting
        self._safe = safe
        self._clock = clock

    async def told_in(self, tx: Transaction, person_id: str, text: str) -> str | None:
        """The code in a message that nobody but us may read: the whole message, where this person is expected to tell
        one, or one that somebody was shown lately, whatever stands around it. `None`: words that look like one, at
        most, are just words."""
        among = codes_among(text)
        if not among:
            return None
        ways = await authorizations.with_codes(tx)
        if told := among & self._codes(ways):
            return min(told)
        return code_in(text) if any(_is_expected(way, person_id) for way in ways) else None

    async def codes_of(self, tx: Transaction, codes: frozenset[str]) -> frozenset[str]:
        """Which of them somebody was shown lately."""
        ways = await authorizations.with_codes(tx) if codes else ()
        return codes & self._codes(ways)

    async def enter(self, tx: Transaction, entry: CodeEntry) -> ClickResult:
        """Check a code. A wrong one counts, and the last wrong one makes the right one useless."""
        person_id = entry.person.person_id
        connection = None
        if entry.sign_in_id is not None:
            row = await sign_ins.get(tx, entry.sign_in_id)
            if row is None:
                return NO_SUCH
            if row.person_id != person_id:
                return Refused("This sign-in is for somebody else only.")
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
            return TOO_LATE if theirs else NONE_WAITS
        return await self._wrong(tx, waiting, entry)

    async def _not_theirs(self, tx: Transaction, way: AuthorizationRow) -> ClickResult:
        """Somebody has signed in by another's link and tells the code, perhaps where that one reads along: from now on
        it is of no use to them either."""
        if way.sealed_grant is not None and await authorizations.change(tx, way, **authorizations.NO_CODE):
            await self._connecting.show_waiting(tx, way)
            log.warning("sign_in_code_of_somebody_else", connection=way.connection)
        return NOT_YOURS

    async def _right(self, tx: Transaction, way: AuthorizationRow, key: str) -> ClickResult:
        grant = self._safe.take_grant(way.person_id, way.connection, way.sealed_grant)
        if grant is None or not await authorizations.finish(tx, way, key=key, now=self._clock()):
            return NONE_WAITS
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
            return USED_UP
        sentence = f"That is not the code that your browser shows. You have {left} more {_tries(left)}."
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
        thanks = f"Thank you, your account at {self._connecting.label(way.connection)} is connected."
        return Settled(f"{thanks} It is {account}: if that is not yours, disconnect it." if account else thanks)


def _is_expected(way: AuthorizationRow, person_id: str) -> bool:
    """Whether this person was asked for a code, in time or too late."""
    return way.person_id == person_id and way.code_until is not None


def _tries(left: int) -> str:
    return "try" if left == 1 else "tries"
