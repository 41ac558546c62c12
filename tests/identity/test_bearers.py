"""Whom a program's token acts for, and every token that acts for nobody."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapters.oauth.jwts import ProgramTokens
from adapters.oauth.signed_tokens import claims_from
from bot.accounts.ports import Unreachable
from bot.approvals.directory import PeopleDirectory
from bot.domain import AccountFacts, Person
from bot.identity.bearers import Bearers, OwnLogins
from bot.identity.identities import IdentityRecords
from bot.identity.own_tokens import OwnTokens
from bot.identity.page_people import PagePeople
from bot.identity.people import SHARED_SECRET, person_id_of
from bot.identity.ports import Claims
from bot.identity.principal import ALL_SCOPES, NotAuthenticated, Principal
from bot.identity.service_tokens import ServiceTokens
from bot.identity.sessions import PageSessions
from bot.identity.users import Users
from bot.records import identity, threads
from bot.records.database import Database
from bot.records.identity import UserRow
from bot.records.locks import UNLOCKED
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.identity.key_server import AUDIENCE, KeyServer, key_server, private_keys, public_key

SECRET = "a secret of 32 bytes at the least"
KEY = base64.urlsafe_b64encode(b"k" * 32)
OTHER_KEY = base64.urlsafe_b64encode(b"o" * 32)
EMAIL = "ana@example.com"
OTHER_ISSUER = "https://page.example"
SLACK = "slack:T1:UANA"


@dataclass
class PageOfIdentities(RecordingPlatform):
    """The page, as far as the directory asks it."""

    identities: IdentityRecords | None = None

    async def account_of(self, person_id: str) -> AccountFacts:
        assert self.identities is not None
        return await self.identities.account_of(person_id)


class Entrance:
    """`Bearers` with everything that it can take, at an issuer, with one user: ana."""

    def __init__(self, database: Database, issuer: KeyServer, domains: Collection[str] = ()) -> None:
        self.database, self.issuer = database, issuer
        self.clock = SetClock(time.time())
        people = PagePeople(
            "password", issuers=frozenset({issuer.url, OTHER_ISSUER, SHARED_SECRET}), domains=frozenset(domains)
        )
        self.service = ServiceTokens(database, people, self.clock)
        self.sessions = PageSessions(database, self.clock)
        self.own = OwnTokens(KEY, self.clock)
        identities = self.identities = IdentityRecords(database, people, self.clock)
        slack = RecordingPlatform("slack", emails={SLACK: EMAIL})
        platforms = {"web": PageOfIdentities("web", identities=identities), "slack": slack}
        directory = PeopleDirectory(platforms, database, self.clock, patience=1.0)
        identities.when_said_otherwise(directory.forget)
        self.bearers = Bearers(
            database,
            directory,
            people,
            service_tokens=self.service,
            identities=identities,
            verifier=ProgramTokens(issuer=issuer.url, audience=AUDIENCE, secret=SECRET, clock=self.clock),
            logins=OwnLogins(self.own, self.sessions),
        )

    async def principal(self, token: str) -> Principal | NotAuthenticated:
        return await self.bearers.principal(f"Bearer {token}")

    async def acts_for(self, token: str) -> Principal:
        found = await self.principal(token)
        assert isinstance(found, Principal), found
        return found

    async def logged_in(self) -> tuple[str, str]:
        """A token for ana's password, and the hash of its session."""
        session = await self.sessions.begin(Person("web:ana", "Ana"), "password", password_hash="hash")
        assert session is not None
        session_hash = hashlib.sha256(session.encode()).hexdigest()
        return self.own.make("ana", session_hash, 600), session_hash

    async def add_ana(self) -> None:
        async with self.database.writing(UNLOCKED) as tx:
            assert await identity.add_user(tx, UserRow("ana", "Ana", "hash", self.clock()))

    async def remove_ana(self) -> None:
        assert await Users(self.database, self.clock).remove("web:ana")

    async def seen_in_slack(self) -> None:
        async with self.database.writing(UNLOCKED) as tx:
            await threads.remember(tx, Person(SLACK, "Ana A", email=EMAIL), self.clock())

    async def signs_in(self, subject: str, email: str) -> str:
        """Somebody signs in at the issuer, which vouches for this address; their id."""
        claims = Claims(self.issuer.url, subject, "Ana", email)
        return (await self.identities.remember(claims, says_all=True)).person_id

    def shared(self, *, secret: str = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
        """A token that is signed with the shared secret."""
        said = self.issuer.claims(sub="ana") | claims
        return jwt.encode({name: value for name, value in said.items() if value is not None}, secret, algorithm)


@pytest.fixture
async def door(database: Database) -> AsyncIterator[Entrance]:
    async with key_server() as issuer:
        made = Entrance(database, issuer)
        await made.add_ana()
        yield made
        await made.service.close()


# -------------------------------------------------------------------------------------------- forged and stale tokens


def encoded(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header: Mapping[str, Any], claims: Mapping[str, Any], secret: bytes | None) -> str:
    """A token that no library would make: signed with HMAC by any bytes, or not at all."""
    signed = f"{encoded(header)}.{encoded(claims)}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256')) if secret is not None else ''}"


def with_the_public_key(door: Entrance, *, form: str) -> str:
    public = private_keys()["rsa"].public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    secret = pem if form == "pem" else json.dumps(public_key("rsa")).encode()
    return by_hand({"alg": "HS256", "typ": "JWT", "kid": "rsa"}, door.issuer.claims(), secret)


def changed(token: str, **claims: Any) -> str:
    header, payload, signature = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return ".".join((header, encoded(said | claims), signature))


async def revoked(door: Entrance) -> str:
    token, row = await door.service.create("ci", SLACK, ALL_SCOPES, None)
    await door.acts_for(token)
    await door.service.revoke(row.token_id)
    return token


async def expired_service_token(door: Entrance) -> str:
    token, _ = await door.service.create("ci", SLACK, ALL_SCOPES, door.clock() + 60)
    door.clock.move(60)
    return token


async def of_a_removed_user(door: Entrance) -> str:
    token, _ = await door.service.create("ci", "web:ana", ALL_SCOPES, None)
    await door.acts_for(token)
    await door.remove_ana()
    return token


async def of_a_namesake(door: Entrance) -> str:
    """Of somebody who was removed, and whose name somebody else has by now."""
    token = await of_a_removed_user(door)
    await door.add_ana()
    return token


async def shared_secret_for_a_removed_user(door: Entrance) -> str:
    await door.acts_for(door.shared())
    await door.remove_ana()
    return door.shared()


async def signed_out(door: Entrance) -> str:
    token, session_hash = await door.logged_in()
    await door.acts_for(token)
    await door.sessions.end_with_hash(session_hash)
    return token


async def login_of_a_removed_user(door: Entrance) -> str:
    token, _ = await door.logged_in()
    await door.remove_ana()
    return token


async def login_that_is_over(door: Entrance) -> str:
    token, _ = await door.logged_in()
    door.clock.move(600)
    return token


async def login_as_somebody_else(door: Entrance) -> str:
    _, session_hash = await door.logged_in()
    return door.own.make("ben", session_hash, 600)


async def login_signed_with_another_key(door: Entrance) -> str:
    _, session_hash = await door.logged_in()
    return OwnTokens(OTHER_KEY, door.clock).make("ana", session_hash, 600)


def now() -> int:
    """The present moment: tests may begin minutes after they were read."""
    return int(time.time())


WRONG_WAY, WRONG_KEY, NO_JWT = "signed in a way", "a key that the issuer does not publish", "it is no JWT"
UNKNOWN = "it is not known"
REFUSED: Mapping[str, tuple[Callable[[Entrance], str | Awaitable[str]], str]] = {
    "without a signature, and says so": (lambda d: by_hand({"alg": "none"}, d.issuer.claims(), None), WRONG_KEY),
    "without a signature, and does not say so": (lambda d: d.issuer.token().rpartition(".")[0] + ".", "signature"),
    "a MAC with the public key": (lambda d: with_the_public_key(d, form="pem"), "signature"),
    "a MAC with the published key": (lambda d: with_the_public_key(d, form="jwk"), "signature"),
    "another issuer's": (lambda d: d.issuer.token(iss="https://evil.example"), "another issuer"),
    "almost the issuer's": (lambda d: d.issuer.token(iss=f"{d.issuer.url}/"), "another issuer"),
    "nobody's": (lambda d: d.issuer.token(iss=None), "no “iss”"),
    "for another audience": (lambda d: d.issuer.token(aud="https://other.example"), "somebody else"),
    "for no audience": (lambda d: d.issuer.token(aud=None), "no “aud”"),
    "by another key under a known name": (lambda d: d.issuer.token(key="unpublished", headers={"kid": "rsa"}), "signa"),
    "by a key that is not published": (lambda d: d.issuer.token(key="unpublished"), WRONG_KEY),
    "by a key that is too short": (lambda d: d.issuer.token(key="short"), WRONG_KEY),
    "by a key that is not for signing": (lambda d: d.issuer.token(key="encrypting"), WRONG_KEY),
    "that brings its own key": (
        lambda d: d.issuer.token(key="unpublished", headers={"kid": "mine", "jwk": public_key("unpublished")}),
        WRONG_KEY,
    ),
    "that says where its key is": (
        lambda d: d.issuer.token(key="unpublished", headers={"kid": "mine", "jku": f"{d.issuer.url}/keys"}),
        WRONG_KEY,
    ),
    "by one kind of key under the name of another": (lambda d: d.issuer.token(headers={"kid": "elliptic"}), WRONG_KEY),
    "by a key in another way than its own": (lambda d: d.issuer.token(key="rsa-pss", signed_with="RS256"), WRONG_KEY),
    "with a longer hash than is known": (lambda d: d.issuer.token(signed_with="RS512"), WRONG_KEY),
    "without the name of its key": (lambda d: d.issuer.token(headers={"kid": ""}), WRONG_KEY),
    "with a name of its key that is none": (
        lambda d: by_hand({"alg": "RS256", "kid": ["rsa"]}, d.issuer.claims(), b""),
        NO_JWT,
    ),
    "that needs an extension": (
        lambda d: d.issuer.token(headers={"crit": ["http://example.com/x"], "http://example.com/x": 1}),
        NO_JWT,
    ),
    "expired": (lambda d: d.issuer.token(exp=now() - 120), "expired"),
    "without an end": (lambda d: d.issuer.token(exp=None), "no “exp”"),
    "with an end in words": (lambda d: d.issuer.token(exp=str(now() + 300)), "clearly"),
    "without bounds": (lambda d: d.issuer.token(exp=float("inf")), NO_JWT),
    "not yet": (lambda d: d.issuer.token(nbf=now() + 300), "not count yet"),
    "of tomorrow": (lambda d: d.issuer.token(iat=now() + 86_400), "not count yet"),
    "about nobody": (lambda d: d.issuer.token(sub=None), "no “sub”"),
    "about an empty name": (lambda d: d.issuer.token(sub=""), "names nobody"),
    "about a number": (lambda d: d.issuer.token(sub=7), "names nobody"),
    "about what cannot be shown": (lambda d: d.issuer.token(sub="a\x00b"), "names nobody"),
    "changed": (lambda d: changed(d.issuer.token(), sub="boss"), "signature"),
    "too long": (lambda d: d.issuer.token(more="x" * 8_192), "too long"),
    "nested without end": (lambda d: f"{encoded(b'[' * 4_000)}.e30.AA", NO_JWT),
    "garbage": (lambda d: "a.b.c", NO_JWT),
    "with another secret": (lambda d: d.shared(secret="another secret of 32 bytes, at least"), "signature"),
    "with the secret in another way": (lambda d: d.shared(algorithm="HS512"), WRONG_KEY),
    "with the secret for another audience": (lambda d: d.shared(aud="https://other.example"), "somebody else"),
    "with the secret, expired": (lambda d: d.shared(exp=now() - 120), "expired"),
    "with the secret, without an end": (lambda d: d.shared(exp=None), "no “exp”"),
    "with the secret, about nobody": (lambda d: d.shared(sub=None), "no “sub”"),
    "with the secret, about somebody who is no user": (lambda d: d.shared(sub="ben"), "no such user"),
    "with the secret, about a removed user": (shared_secret_for_a_removed_user, "no such user"),
    "a service token that nobody made": (lambda d: f"cs_{'A' * 43}", UNKNOWN),
    "a revoked service token": (revoked, UNKNOWN),
    "an expired service token": (expired_service_token, UNKNOWN),
    "a service token of a removed user": (of_a_removed_user, UNKNOWN),
    "a service token of somebody before": (of_a_namesake, UNKNOWN),
    "a login that was signed out": (signed_out, UNKNOWN),
    "a login of a removed user": (login_of_a_removed_user, UNKNOWN),
    "a login that is over": (login_that_is_over, "signature"),
    "a login that names somebody else": (login_as_somebody_else, UNKNOWN),
    "a login signed with another key": (login_signed_with_another_key, "signature"),
}


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize("forged", REFUSED)
async def test_a_token_is_refused_that_is(forged: str, door: Entrance) -> None:
    make, reason = REFUSED[forged]
    made = make(door)
    found = await door.principal(made if isinstance(made, str) else await made)
    assert isinstance(found, NotAuthenticated), found
    assert reason in found.reason
    assert found.reason.startswith("The token is not accepted: ")


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Token {}", "{}", "Bearer {}, Bearer {}", "Bearer {}é"],
)
async def test_a_header_of_another_form_is_no_token(door: Entrance, header: str | None) -> None:
    given = header.replace("{}", door.issuer.token()) if header else header
    found = await door.bearers.principal(given)
    assert isinstance(found, NotAuthenticated)
    assert "Authorization: Bearer" in found.reason


# -------------------------------------------------------------------------------------------- those that count


async def test_a_token_for_the_resource_counts_for_what_asks_there_and_nowhere_else(door: Entrance) -> None:
    mine, other = "https://bot.example/mcp", "https://bot.example/mcp/board"
    for make in (door.issuer.token, door.shared):
        for audience, resources, counts in (
            (mine, [mine], True),
            ([other, mine], [mine], True),
            (AUDIENCE, [mine], True),
            (other, [mine], False),
            (mine, [], False),
        ):
            found = await door.bearers.principal(f"Bearer {make(aud=audience)}", resources)
            assert isinstance(found, Principal) == counts, (audience, resources)


@pytest.mark.parametrize(
    ("key", "signed_with"),
    [("rsa", "RS256"), ("rsa", "PS256"), ("rsa-pss", "PS256"), ("elliptic", "ES256"), ("edwards", "EdDSA")],
)
async def test_every_usual_kind_of_key_counts(door: Entrance, key: str, signed_with: str) -> None:
    found = await door.acts_for(door.issuer.token(key=key, signed_with=signed_with))
    assert (found.via, found.subject, found.scopes) == ("jwt", "nightly", ALL_SCOPES)
    assert found.person.person_id == person_id_of(door.issuer.url, "nightly")


async def test_the_only_key_of_an_issuer_needs_no_name(door: Entrance) -> None:
    door.issuer.keys = {"rsa": {}}
    assert (await door.acts_for(door.issuer.token(headers={"kid": ""}))).subject == "nightly"


async def test_clocks_may_differ_by_a_minute(door: Entrance) -> None:
    assert (await door.acts_for(door.issuer.token(exp=now() - 30))).subject == "nightly"
    assert (await door.acts_for(door.issuer.token(nbf=now() + 30, iat=now() + 30))).subject == "nightly"


async def test_the_scheme_may_be_written_in_any_case(door: Entrance) -> None:
    assert isinstance(await door.bearers.principal(f"bearer  {door.issuer.token()}"), Principal)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, {"run", "approve", "read"}),
        ({"scope": "run read"}, {"run", "read"}),
        ({"scope": "openid profile"}, set()),
        ({"scope": ""}, set()),
        ({"scope": 7}, set()),
        ({"scope": "run,read RUN"}, set()),
        ({"scp": ["approve", 7, "other"]}, {"approve"}),
        ({"scp": "read"}, {"read"}),
        ({"scope": "read", "scp": ["approve"]}, {"read"}),
    ],
)
async def test_a_token_allows_what_its_scope_says(door: Entrance, claims: dict[str, Any], scopes: set[str]) -> None:
    assert (await door.acts_for(door.issuer.token(**claims))).scopes == scopes
    assert (await door.acts_for(door.shared(**claims))).scopes == scopes


async def test_a_person_is_remembered_with_the_address_that_is_vouched_for(door: Entrance) -> None:
    await door.seen_in_slack()
    said = {"sub": "s1", "name": "Ana Archer", "email": "Ana@Example.com"}
    unproven = await door.acts_for(door.issuer.token(**said))
    assert (unproven.person.name, unproven.person.email) == ("Ana Archer", "")
    assert unproven.person_ids == {unproven.person.person_id}
    proven = await door.acts_for(door.issuer.token(**said, email_verified=True))
    assert proven.person == Person(unproven.person.person_id, "Ana Archer", email=EMAIL)
    assert proven.person_ids == {proven.person.person_id, SLACK}
    later = await door.acts_for(door.issuer.token(sub="s1"))
    assert (later.person.name, later.person.email) == ("Ana Archer", ""), "this token vouches for nothing"
    assert later.person_ids == proven.person_ids, "what was vouched for counts for days"


async def test_nobody_vouches_for_the_address_of_a_user(door: Entrance) -> None:
    await door.seen_in_slack()
    found = await door.acts_for(door.shared(email=EMAIL, email_verified=True))
    assert found.person.email == ""
    assert found.person_ids == {"web:ana"}


async def test_whoever_shares_a_secret_vouches_for_addresses_and_else_for_nobody(door: Entrance) -> None:
    await door.seen_in_slack()
    found = await door.acts_for(door.shared(sub="Nightly", email=EMAIL, email_verified=True))
    assert (found.person.email, found.person_ids) == (EMAIL, {"web:Nightly", SLACK})
    assert await door.identities.account_of("web:Nightly") == AccountFacts(EMAIL, is_member=False)
    await door.acts_for(door.shared(sub="Hourly", email=EMAIL))
    assert await door.identities.account_of("web:Hourly") == AccountFacts(is_member=False)


async def test_an_older_token_brings_no_address_back_that_the_issuer_has_withdrawn(door: Entrance) -> None:
    await door.seen_in_slack()
    token = door.issuer.token(sub="s1", email=EMAIL, email_verified=True)
    person_id = (await door.acts_for(token)).person.person_id
    assert (await door.acts_for(token)).person_ids == {person_id, SLACK}
    door.clock.move(60)
    await door.signs_in("s1", "")
    found = await door.acts_for(token)
    assert (found.person.email, found.person_ids) == ("", {person_id}), "at once"
    await door.signs_in("s1", "ana.new@example.com")
    assert (await door.acts_for(token)).person.email == ""
    assert await door.identities.account_of(person_id) == AccountFacts("ana.new@example.com", is_member=True)


async def test_a_token_vouches_for_a_week_from_when_it_was_issued(door: Entrance) -> None:
    await door.seen_in_slack()
    token = door.issuer.token(sub="s1", email=EMAIL, email_verified=True, iat=int(time.time()) - 8 * 24 * 3600)
    found = await door.acts_for(token)
    assert (found.person.email, found.person_ids) == ("", {found.person.person_id})


async def test_a_token_that_does_not_say_since_when_vouches_unless_something_else_was_said(door: Entrance) -> None:
    await door.seen_in_slack()
    token = door.issuer.token(sub="s1", email=EMAIL, email_verified=True, iat=None)
    assert (await door.acts_for(token)).person.email == EMAIL
    door.clock.move(8 * 24 * 3600)
    assert (await door.acts_for(token)).person.email == EMAIL, "it lasts"
    await door.signs_in("s1", "")
    assert (await door.acts_for(token)).person.email == ""


async def test_nobody_vouches_for_an_address_whose_issuer_is_not_configured_any_more(door: Entrance) -> None:
    claims = Claims("https://former.example", "1", "Ana", EMAIL)
    person = await door.identities.remember(claims, says_all=True)
    assert person.email == ""
    assert await door.identities.account_of(person.person_id) == AccountFacts()


async def test_only_tokens_about_people_of_the_domains_that_may_sign_in_count(
    door: Entrance, database: Database
) -> None:
    at_company = Entrance(database, door.issuer, domains={"example.com"})
    colleague = door.issuer.token(sub="s1", email="Ana@Example.com", email_verified=True)
    assert isinstance(await at_company.principal(colleague), Principal)
    for strangers in (
        {"email": "eve@example.com"},
        {"email": "eve@sub.example.com", "email_verified": True},
        {"email": "eve@example.com.evil.example", "email_verified": True},
        {"hd": "example.com"},
        {},
    ):
        found = await at_company.principal(door.issuer.token(sub="s2", **strangers))
        assert isinstance(found, NotAuthenticated)
        assert "domain" in found.reason
    assert isinstance(await at_company.principal(door.shared()), Principal), "who has our secret says who may"
    for everybody in ((), ("*",)):
        assert isinstance(await Entrance(database, door.issuer, everybody).principal(door.issuer.token()), Principal)


def test_a_domain_of_a_company_is_said_by_google_alone() -> None:
    people = PagePeople("oidc", domains=frozenset({"example.com"}))
    for issuer, may in (("https://accounts.google.com", True), ("https://id.example", False)):
        assert people.may_sign_in(claims_from({"sub": "1", "hd": "Example.com"}, issuer)) is may


async def test_who_has_a_name_is_not_called_by_an_address(door: Entrance) -> None:
    await door.acts_for(door.issuer.token(sub="s1", name="Ana Archer"))
    later = await door.acts_for(door.issuer.token(sub="s1", email=EMAIL, email_verified=True))
    assert later.person.name == "Ana Archer"


async def test_one_human_at_two_issuers_is_who_they_are_in_slack_with_both(door: Entrance) -> None:
    await door.seen_in_slack()
    program = (await door.acts_for(door.issuer.token(sub="cli", email=EMAIL, email_verified=True))).person.person_id
    at_page = await door.identities.remember(Claims(OTHER_ISSUER, "1", "Ana", EMAIL), says_all=True)
    found = await door.acts_for(door.issuer.token(sub="cli", email=EMAIL, email_verified=True))
    assert found.person_ids == {program, at_page.person_id, SLACK}


async def test_a_service_token_acts_for_its_person_and_their_accounts(door: Entrance) -> None:
    async with door.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, Person(SLACK, "Ana A", "Europe/Berlin", "de", EMAIL), door.clock())
    person = (await door.acts_for(door.issuer.token(sub="s1", email=EMAIL, email_verified=True))).person
    token, _ = await door.service.create("ci", SLACK, {"run"}, None)
    found = await door.acts_for(token)
    assert (found.person, found.via, found.scopes) == (Person(SLACK, "Ana A", "Europe/Berlin", "de"), "token", {"run"})
    assert found.person_ids == {SLACK, person.person_id}
    token, _ = await door.service.create("ci", "teams:t:new", {"read"}, None)
    assert (await door.acts_for(token)).person == Person("teams:t:new", "new")


async def test_a_login_acts_for_its_user(door: Entrance) -> None:
    token, _ = await door.logged_in()
    found = await door.acts_for(token)
    assert (found.person, found.via, found.subject) == (Person("web:ana", "Ana"), "jwt", "ana")
    assert found.scopes == ALL_SCOPES


@pytest.mark.parametrize("subject", ["Ana", "oidc.0123", "sub.0123", "a b", "ana@example.com", "x" * 65])
async def test_a_subject_that_can_be_no_users_name_is_somebody_else(door: Entrance, subject: str) -> None:
    found = await door.acts_for(door.shared(sub=subject))
    assert found.person.person_id == person_id_of("", subject)
    assert found.subject == subject


# -------------------------------------------------------------------------------------------- the issuer


async def test_many_unknown_keys_do_not_make_many_requests(door: Entrance) -> None:
    tokens = [door.issuer.token(headers={"kid": f"made-up-{number}"}) for number in range(30)]
    answers = await asyncio.gather(*(door.principal(token) for token in tokens))
    assert all(isinstance(answer, NotAuthenticated) for answer in answers)
    assert door.issuer.asked == ["metadata", "keys"]


async def test_what_ends_a_token_ends_what_is_answered_to_it_for_long(door: Entrance) -> None:
    service, row = await door.service.create("ci", SLACK, ALL_SCOPES, None)
    brief, _ = await door.service.create("brief", SLACK, ALL_SCOPES, door.clock() + 60)
    login, session_hash = await door.logged_in()
    tokens = {"service": service, "brief": brief, "login": login, "user": door.shared(), "issuer": door.issuer.token()}
    acting = {name: await door.acts_for(token) for name, token in tokens.items()}

    async def left() -> set[str]:
        keys = await door.bearers.keys_left({each.key for each in acting.values()}, door.clock())
        return {name for name, each in acting.items() if each.key in keys}

    assert await left() == acting.keys()
    door.clock.move(60)
    assert await left() == acting.keys() - {"brief"}
    await door.service.revoke(row.token_id)
    await door.sessions.end_with_hash(session_hash)
    assert await left() == {"user", "issuer"}
    await door.remove_ana()
    await Users(door.database, door.clock).remove(acting["issuer"].person.person_id)
    assert await left() == set()
    expiry = jwt.decode(tokens["issuer"], options={"verify_signature": False})["exp"]
    assert acting["issuer"].until == expiry + 60, "as long as it is accepted: clocks may differ by a minute"


async def test_who_waits_for_a_slow_issuer_shares_one_request_and_its_failure(door: Entrance) -> None:
    door.issuer.is_quick.clear()
    waiting = [asyncio.create_task(door.principal(door.issuer.token())) for _ in range(20)]
    await door.issuer.was_asked.wait()
    gone = waiting.pop(0)
    gone.cancel()
    door.clock.move(10)
    door.issuer.is_away = True
    door.issuer.is_quick.set()
    assert {type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)} == {Unreachable}
    door.clock.move(4)
    with pytest.raises(Unreachable):
        await door.principal(door.issuer.token())
    assert door.issuer.asked == ["metadata"]
    door.clock.move(1)
    door.issuer.is_away = False
    await door.acts_for(door.issuer.token())


async def test_keys_of_yesterday_count_while_the_issuer_cannot_be_asked(door: Entrance) -> None:
    await door.acts_for(door.issuer.token())
    door.issuer.is_quick.clear()
    door.clock.move(25 * 3600)
    await door.acts_for(door.issuer.token())
    door.issuer.is_away = True
    door.issuer.is_quick.set()
    door.clock.move(24 * 3600)
    with pytest.raises(Unreachable):
        await door.principal(door.issuer.token())


async def test_a_new_key_counts_within_a_minute(door: Entrance) -> None:
    await door.acts_for(door.issuer.token())
    door.issuer.keys["new"] = {}
    token = door.issuer.token(key="new", signed_with="ES256")
    assert isinstance(await door.principal(token), NotAuthenticated)
    door.clock.move(61)
    assert (await door.acts_for(token)).subject == "nightly"
    assert door.issuer.asked.count("keys") == 2


async def test_an_issuer_that_is_away_is_nobodys_fault(door: Entrance) -> None:
    door.issuer.is_away = True
    for _ in range(3):
        with pytest.raises(Unreachable):
            await door.principal(door.issuer.token())
    assert door.issuer.asked == ["metadata"], "it is left alone for a while"
    assert isinstance(await door.principal(door.shared()), Principal), "who does not need it is served"
    door.issuer.is_away = False
    door.clock.move(6)
    await door.acts_for(door.issuer.token())
    door.issuer.is_away = True
    assert isinstance(await door.principal(door.issuer.token()), Principal), "its keys are known"
    door.clock.move(61)
    with pytest.raises(Unreachable):
        await door.principal(door.issuer.token(headers={"kid": "perhaps-new"}))
