"""Accounts of our own: a name and a password each (`WEB_LOGIN=password`).

Passwords are kept as hashes only (argon2id). To compute one takes much memory and all of a processor for a moment, on
purpose: it is done in threads, and for few at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from bot.dates import number_in_words
from bot.domain import Clock, Person
from bot.identity.people import HASHED_SUBJECTS, USER_NAME, user_name, user_person_id
from bot.records import identity, service_tokens, threads
from bot.records.database import Database
from bot.records.identity import UserRow
from bot.records.locks import person_lock
from translations import gettext as _

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 1_000
"""Characters (NIST SP 800-63B asks for 8 at least)."""
LONGEST_DISPLAY_NAME = 80
"""Characters."""
AT_ONCE = 2
"""Hashes that are computed at a time."""
MOST_WAITING = 40
"""How many more may wait for theirs, each some tenths of a second."""
_NOBODYS_HASH = "$argon2id$v=19$m={},t={},p={}$IGTxS0trpgfnqMnpwZQVRw$i+yjP27kv5ZihCWcfH4mSJrD+vc4iVgoqyYCq84GHB8"
"""Compared with where there is no such user, so that it takes as long; with its cost. No password has it."""
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class HashCost:
    """What a hash takes. RFC 9106, 4: the second recommended choice."""

    memory_kib: int = 65_536
    rounds: int = 3
    lanes: int = 4


HASH_COST = HashCost()
"""Of each hash that is made from now on."""


class BadUserError(Exception):
    """A user cannot be made like this; the text is a sentence about why."""


class NameTakenError(Exception):
    """There is a user of that name, or somebody of that name was here before or is meant by the configuration."""


class TooManyChecksError(Exception):
    """More passwords are being checked than can be."""


@dataclass(frozen=True, slots=True)
class User:
    """An account of our own."""

    name: str
    display_name: str
    created_at: float
    registered: bool = False
    """Whether somebody made it themselves; otherwise an operator did, for one human."""
    password_hash: str = field(default="", repr=False)
    """Of the password that was checked: whose it is any more is to be asked of this."""

    @property
    def person(self) -> Person:
        """Whose it is."""
        return Person(user_person_id(self.name), self.display_name)


def nobody(_person_id: str) -> bool:
    """Returns that nobody is named."""
    return False


class Users:
    """Makes and removes users, and says whether a password is theirs.

    Args:
        is_named: whether the configuration means somebody by this person id: whoever registers is not that person.
    """

    def __init__(self, database: Database, clock: Clock, is_named: Callable[[str], bool] = nobody) -> None:
        self._database = database
        self._clock = clock
        self._is_named = is_named
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._made_hasher: PasswordHasher | None = None

    async def add(self, name: str, password: str, display_name: str = "") -> User:
        """Make a user. What somebody of that name had here before is theirs. Raises `BadUserError` and
        `NameTakenError`."""
        return await self._add(name, password, display_name, strangers=False)

    async def register(self, name: str, password: str) -> User:
        """Make a user of whom nothing is known but this. Raises what `add` raises, and `NameTakenError` too where
        somebody of that name was here before, or is named as an operator or in a rule: what they have, and what they
        may, is not for whoever comes first."""
        return await self._add(name, password, "", strangers=True)

    async def _add(self, name: str, password: str, display_name: str, *, strangers: bool) -> User:
        check_user_name(name)
        check_new_password(password, name)
        if strangers and self._is_named(user_person_id(name)):
            raise NameTakenError
        shown = " ".join(display_name.split()) or name
        if len(shown) > LONGEST_DISPLAY_NAME or not shown.isprintable():
            raise BadUserError(_("Use at most {count} printable characters.").format(count=LONGEST_DISPLAY_NAME))
        password_hash = await self._hashing(lambda: self._hasher.hash(password))
        user = User(name, shown, self._clock(), registered=strangers, password_hash=password_hash)
        async with self._database.writing_urgently(person_lock(user.person.person_id)) as tx:
            if strangers and await identity.was_seen(tx, user.person.person_id):
                raise NameTakenError
            if not await identity.add_user(tx, UserRow(name, shown, password_hash, user.created_at, strangers)):
                raise NameTakenError
            known = await threads.person(tx, user.person.person_id)
            kept = Person(user.person.person_id, shown, known.time_zone, known.locale) if known else user.person
            await threads.remember(tx, kept, user.created_at)
        return user

    async def all(self) -> Sequence[User]:
        """All users, by name."""
        async with self._database.reading() as tx:
            return [_user_of(row) for row in await identity.all_users(tx)]

    async def get(self, name: str) -> User | None:
        """The user of that name, or none."""
        async with self._database.reading() as tx:
            row = await identity.user(tx, name)
        return _user_of(row) if row is not None else None

    async def remove(self, person_id: str) -> bool:
        """Remove a user, or whoever has signed in at an issuer: they are signed out everywhere, and nobody here any
        more. A user cannot sign in again; about others their issuer decides. False: there was nobody."""
        async with self._database.writing_urgently(person_lock(person_id)) as tx:
            was_user = await identity.remove_user(tx, user_name(person_id))
            ended = await identity.end_sessions_of(tx, person_id)
            was_known = await identity.forget_identity(tx, person_id)
            await service_tokens.revoke_of(tx, person_id, self._clock())
        return was_user or was_known or ended > 0

    async def check(self, name: str, password: str) -> User | None:
        """Returns whose name and password these were when it was read; `None`: nobody's, which takes as long to find
        out. Raises `TooManyChecksError`."""
        if len(password) > LONGEST_PASSWORD:
            return None
        async with self._database.reading() as tx:
            row = await identity.user(tx, name.strip().lower()) if "\0" not in name else None
        known = row.password_hash if row is not None else _nobodys_hash()
        is_right = await self._hashing(lambda: self._is_of(known, password))
        if row is None or not is_right:
            return None
        return _user_of(row)

    @property
    def _hasher(self) -> PasswordHasher:
        if self._made_hasher is None:
            from argon2 import PasswordHasher  # noqa: PLC0415  # of no use until somebody signs in

            self._made_hasher = PasswordHasher(HASH_COST.rounds, HASH_COST.memory_kib, HASH_COST.lanes)
        return self._made_hasher

    def _is_of(self, password_hash: str, password: str) -> bool:
        from argon2.exceptions import VerificationError  # noqa: PLC0415  # as above

        try:
            return self._hasher.verify(password_hash, password.encode("utf-8", "surrogatepass"))
        except VerificationError:
            return False

    async def _hashing(self, work: Callable[[], Done]) -> Done:
        if self._waiting >= MOST_WAITING:
            raise TooManyChecksError
        self._waiting += 1
        try:
            async with self._at_once:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


def _nobodys_hash() -> str:
    return _NOBODYS_HASH.format(HASH_COST.memory_kib, HASH_COST.rounds, HASH_COST.lanes)


def _user_of(row: UserRow) -> User:
    return User(row.name, row.display_name, row.created_at, row.registered, row.password_hash)


def check_user_name(name: str) -> None:
    """Raises `BadUserError` for what cannot be a user's name."""
    if not USER_NAME.fullmatch(name):
        raise BadUserError(
            _(
                "Use up to 64 lowercase letters, digits, dots, dashes and underscores, beginning with a letter or a "
                "digit."
            )
        )
    if name.startswith(HASHED_SUBJECTS):
        raise BadUserError(_("Names can’t start with {prefixes}.").format(prefixes=", ".join(HASHED_SUBJECTS)))


def check_new_password(password: str, name: str = "") -> None:
    """Raises `BadUserError` for what cannot be a password."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        sentence = _("Use {least} to {most} characters for the password.")
        raise BadUserError(sentence.format(least=SHORTEST_PASSWORD, most=number_in_words(LONGEST_PASSWORD)))
    if password.lower() == name:
        raise BadUserError(_("The password can’t be the name."))
