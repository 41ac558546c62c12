"""Users with a password, who is signed in, what issuers said of people, and the tokens of programs."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace

import jwt
import pytest

from bot.crypto import hashed
from bot.domain import Person
from bot.identity import users as users_module
from bot.identity.own_tokens import OwnTokens
from bot.identity.ports import Claims
from bot.identity.sessions import PROGRAM_SECONDS, PageSessions
from bot.identity.users import BadUserError, NameTakenError, User, Users
from bot.records import identity
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from tests.bot.conftest import SetClock

PASSWORD = "correct horse"
KEY = urlsafe_b64encode(b"k" * 32)
OTHER_KEY = urlsafe_b64encode(b"o" * 32)


@pytest.fixture
def users(database: Database, clock: SetClock) -> Users:
    return Users(database, clock)


@pytest.fixture
def sessions(database: Database, clock: SetClock) -> PageSessions:
    return PageSessions(database, clock)


async def test_a_user_is_known_by_name_and_password_and_by_nothing_less(users: Users, database: Database) -> None:
    await users.add("ana", PASSWORD, "Ana Lee")
    found = await users.check("Ana ", PASSWORD)
    assert found is not None
    assert found.person == Person("web:ana", "Ana Lee")
    assert found.password_hash not in repr(found)
    assert await users.check("ana", PASSWORD + " ") is None
    assert await users.check("ben", PASSWORD) is None
    assert await users.check("a\0", PASSWORD) is None
    async with database.reading() as tx:
        row = await identity.user(tx, "ana")
    assert row is not None
    cost = users_module.HASH_COST
    assert row.password_hash.startswith(f"$argon2id$v=19$m={cost.memory_kib},t={cost.rounds},p={cost.lanes}$")


def test_a_hash_takes_what_the_rfc_recommends_where_no_test_says_otherwise() -> None:
    assert users_module.HashCost() == users_module.HashCost(memory_kib=64 * 1024, rounds=3, lanes=4)


async def test_a_name_is_given_once_and_strangers_get_none_that_somebody_had(
    users: Users, sessions: PageSessions
) -> None:
    await users.register("ana", PASSWORD)
    with pytest.raises(NameTakenError):
        await users.add("ana", PASSWORD)
    assert await users.remove("web:ana")
    with pytest.raises(NameTakenError):
        await users.register("ana", PASSWORD)
    assert await users.check("ana", PASSWORD) is None
    assert (await users.add("ana", PASSWORD)).name == "ana", "whoever runs the server decides that it is the same one"


async def test_whoever_registers_gets_no_name_that_the_configuration_means_somebody_by(
    database: Database, clock: SetClock
) -> None:
    users = Users(database, clock, is_named={"web:boss"}.__contains__)
    with pytest.raises(NameTakenError):
        await users.register("boss", PASSWORD)
    assert await users.check("boss", PASSWORD) is None
    assert (await users.register("eve", PASSWORD)).registered
    assert not (await users.add("boss", PASSWORD)).registered, "the operator knows whom they mean"
    assert [(user.name, user.registered) for user in await users.all()] == [("boss", False), ("eve", True)]


@pytest.mark.parametrize("name", ["", "Ana", "-ana", "a b", "oidc.0123", "sub.0123", "a" * 65, "ana\n", "änne"])
async def test_a_name_that_is_none_is_refused(users: Users, name: str) -> None:
    with pytest.raises(BadUserError):
        await users.add(name, PASSWORD)


@pytest.mark.parametrize("password", ["", "7 chars", "x" * 1_001])
async def test_a_password_of_the_wrong_length_is_refused(users: Users, password: str) -> None:
    with pytest.raises(BadUserError):
        await users.add("ana", password)


async def test_a_session_lasts_until_it_ends_is_over_or_its_user_is_removed(
    users: Users, sessions: PageSessions, clock: SetClock
) -> None:
    ana = await users.add("ana", PASSWORD)
    ids = [await signed_in(sessions, ana) for _ in range(3)]
    first, second, third = [each for each in ids if each is not None]
    row = await sessions.find(first)
    assert row is not None
    assert (row.person_id, row.login) == ("web:ana", "password")
    await sessions.end(first)
    assert await sessions.find(first) is None
    assert await sessions.those_left([first, second, third]) == {second, third}
    clock.move(7 * 24 * 3600)
    assert await sessions.find(second) is None
    fresh = await signed_in(sessions, ana)
    assert fresh is not None
    assert await users.remove("web:ana")
    assert await sessions.find(fresh) is None
    assert await signed_in(sessions, ana) is None, "whose password was checked just before"
    assert not await users.remove("web:ana")


async def test_a_password_opens_nothing_of_whoever_has_the_name_since(users: Users, sessions: PageSessions) -> None:
    await users.add("ben", PASSWORD)
    before = await users.check("ben", PASSWORD)
    assert before is not None
    await users.remove("web:ben")
    now = await users.add("ben", PASSWORD)
    assert await signed_in(sessions, before) is None
    assert await signed_in(sessions, now) is not None


async def test_a_session_ends_with_the_issuer_at_which_it_was_begun(database: Database, clock: SetClock) -> None:
    before, after = (PageSessions(database, clock, f"https://{name}.example") for name in ("old", "new"))
    session = await before.begin(Person("web:oidc.1", "Boss"), "oidc")
    assert session is not None
    assert await before.find(session) is not None
    assert await after.find(session) is None
    assert (await before.those_left([session]), await after.those_left([session])) == ({session}, frozenset())


async def signed_in(sessions: PageSessions, user: User) -> str | None:
    return await sessions.begin(user.person, "password", password_hash=user.password_hash)


CLAIMS = Claims("https://issuer.example", "42", "Ana", "ana@example.com")


async def test_of_what_was_said_of_somebody_the_newest_is_kept(database: Database, clock: SetClock) -> None:
    async def said(claims: Claims, at: float | None, *, says_all: bool = False) -> tuple[str, str, float | None]:
        async with database.writing(UNLOCKED) as tx:
            _, kept = await identity.remember_claims(tx, "web:oidc.1", claims, at, says_all=says_all)
        async with database.reading() as tx:
            assert await identity.identity(tx, "web:oidc.1") == kept
        return kept.name, kept.email, kept.said_at

    now = clock()
    assert await said(CLAIMS, None) == ("Ana", "", None), "nobody knows when"
    assert await said(CLAIMS, now) == ("Ana", "ana@example.com", now)
    newer = replace(CLAIMS, name="Ana Lee", email="ana.lee@example.com")
    for older in (None, now - 1):
        assert await said(newer, older) == ("Ana", "ana@example.com", now)
    without = Claims(CLAIMS.issuer, CLAIMS.subject)
    assert await said(without, now + 1) == ("Ana", "ana@example.com", now), "it says nothing of it"
    assert await said(newer, now + 2) == ("Ana Lee", "ana.lee@example.com", now + 2)
    assert await said(without, now + 3, says_all=True) == ("", "", now + 3)
    assert await said(newer, now + 2) == ("Ana Lee", "", now + 3), "the name is better than none"
    assert await said(CLAIMS, now + 4) == ("Ana", "ana@example.com", now + 4)


def test_a_token_of_a_program_says_whose_session_it_is(clock: SetClock) -> None:
    token = OwnTokens(KEY, clock).make("ana", hashed("session"), PROGRAM_SECONDS)
    for key in (KEY, OTHER_KEY + b"," + KEY):
        read = OwnTokens(key, clock).read(token)
        assert read is not None
        assert (read.name, read.session_hash, read.scope) == ("ana", hashed("session"), "approve read run")
    assert OwnTokens(OTHER_KEY, clock).read(token) is None
    clock.move(PROGRAM_SECONDS)
    assert OwnTokens(KEY, clock).read(token) is None


def test_no_token_counts_that_was_changed_or_signed_otherwise(clock: SetClock) -> None:
    tokens = OwnTokens(KEY, clock)
    header, body, signature = tokens.make("ana", hashed("session"), 60).split(".")
    claims = jwt.decode(f"{header}.{body}.{signature}", options={"verify_signature": False})
    none = jwt.encode(claims, None, algorithm="none")
    raw_key = jwt.encode(claims, urlsafe_b64decode(KEY), algorithm="HS256")
    changed = f"{header}.{jwt.encode(claims | {'sub': 'ben'}, 'x' * 32).split('.')[1]}.{signature}"
    for forged in (none, raw_key, changed, "", "a.b.c", f"{header}.{body}.", "x" * 10_000):
        assert tokens.read(forged) is None
