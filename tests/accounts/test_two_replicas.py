"""Two replicas with one person's accounts: what both do at once comes out as if one had been first.

Each test fails when nobody locks anything (`locks`), or each counts by itself (`counts`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from structlog.testing import capture_logs

from bot.accounts.flow import TOO_OFTEN, UNKNOWN_STATE, Connected, FlowProblem, GoTo, ShowCode
from bot.accounts.ports import TokenSet
from bot.accounts.tokens import ClientStore
from bot.crypto import Sealer
from bot.domain import Refused, Settled
from bot.records import authorizations, connections, leases, tables
from bot.records.beginnings import SharedBeginnings
from bot.records.database import Database, is_away
from bot.records.leases import Leases
from bot.records.locks import CLIENT_REGISTRATIONS, UNLOCKED, refresh_name
from bot.records.postgres_connections import CANCEL_SECONDS
from bot.records.postgresql import MOST_ALONE, MOST_ALONE_AT_ONE, PostgresDatabase, PostgresTransaction
from tests.accounts.services import FakeServices
from tests.accounts.stage import ANA, BEN, ELSEWHERE, KEY, Stage
from tests.bot.conftest import until
from tests.support.replicas import Held, take_locks_out, until_done_or_blocked, with_and_without
from tests.support.transactions import Execute, statement_of, wrap_statements

pytestmark = pytest.mark.postgres


@dataclass
class Replicas:
    """The services, twice, with the same world outside."""

    one: Stage
    other: Stage
    watching: PostgresDatabase
    outside: FakeServices
    monkeypatch: pytest.MonkeyPatch

    def held_before(self, table: str, **kind: Any) -> Held:
        """Stops the first replica there."""
        assert isinstance(self.one.database, PostgresDatabase)
        return Held(self.monkeypatch, self.one.database, table, **kind)

    async def while_a_service_is_asked(self, first: Any, second: Any, *, cut_off: bool = False) -> tuple[Any, Any]:
        """Does the second while the first waits for the service, and lets that answer when both wait. `cut_off`: the
        first loses all its connections meanwhile, and with them its locks."""
        self.outside.held, before = asyncio.Event(), self.outside.asked
        one = asyncio.create_task(first)
        await until_done_or_blocked(one, self.watching, lambda: self.outside.asked > before)
        if cut_off:
            await self.end_connections()
        waits = self._waits_for_a_lease()
        two = asyncio.create_task(second)
        await until_done_or_blocked(two, self.watching, lambda: waits.is_set() or self.outside.asked > before + 1)
        self.outside.held.set()
        return await one, await two

    async def end_connections(self) -> None:
        """As when PostgreSQL restarts."""
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        async with self.watching.reading() as tx:
            await tx.all(sa.text(f"{ended} pg_backend_pid()"))

    def _waits_for_a_lease(self) -> asyncio.Event:
        """Set when somebody has found another process alone with something."""
        take, waits = Leases._take, asyncio.Event()

        async def noted(taking: Leases, name: str, mine: str, gone: Any) -> Any:
            word = await take(taking, name, mine, gone)
            if word.holder != mine:
                waits.set()
            return word

        self.monkeypatch.setattr(Leases, "_take", noted)
        return waits

    def next_commit_is_not_heard_of(self, table: str) -> None:
        """The next commit after a change of a table takes effect, and the connection ends before that is known."""
        database, commit, changed = self.one.database, PostgresDatabase._commit, [False]
        assert isinstance(database, PostgresDatabase)

        def noting(execute: Execute) -> Execute:
            async def noted(tx: Any, statement: Any, values: Any = None) -> Any:
                made = statement_of(tx, statement)
                changed[0] = changed[0] or (isinstance(made, sa.Update) and made.table.name == table)
                return await execute(tx, statement, values)

            return noted

        async def commit_untold(committing: PostgresDatabase, driver: Any) -> None:
            await commit(committing, driver)
            if changed[0]:
                self.monkeypatch.setattr(PostgresDatabase, "_commit", commit)
                await driver.close()
                raise sa.exc.OperationalError("COMMIT", {}, psycopg.OperationalError("no answer"))

        wrap_statements(self.monkeypatch, noting)
        self.monkeypatch.setattr(PostgresDatabase, "_commit", commit_untold)


@pytest.fixture(
    params=[None, pytest.param((), marks=pytest.mark.xfail(strict=True, reason="nobody locks anything"))],
    ids=["locked", "unlocked"],
)
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is not None:
        take_locks_out(monkeypatch, *request.param)


@pytest.fixture
async def replicas(two_stages: tuple[Stage, Stage], monkeypatch: pytest.MonkeyPatch) -> Replicas:
    one, other = two_stages
    assert isinstance(other.database, PostgresDatabase)
    assert isinstance(one.services_outside, FakeServices)
    return Replicas(one, other, other.database, one.services_outside, monkeypatch)


async def code_shown(stage: Stage) -> ShowCode:
    """Ana has signed in, and has yet to tell the code."""
    _, link = await stage.asked_and_linked()
    shown = await stage.browser().consents(link, "ana")
    assert isinstance(shown, ShowCode)
    return shown


@with_and_without("person:")
async def test_no_sign_in_stays_open_that_was_asked_for_while_the_account_was_connected(
    replicas: Replicas, locks: None
) -> None:
    shown = await code_shown(replicas.one)
    asked, told = await replicas.held_before("authorizations").while_first(
        replicas.one.ask(ANA, "m2.0.0", ELSEWHERE), replicas.other.tells(ANA, shown.code), replicas.watching
    )
    assert isinstance(told, Settled)
    assert await replicas.one.status(asked) == "done"
    assert await replicas.one.resumes(ELSEWHERE) == [f"resume:{asked}"]


@with_and_without("person:")
async def test_two_wrong_codes_at_once_are_two(replicas: Replicas, locks: None) -> None:
    await code_shown(replicas.one)
    await replicas.held_before("authorizations").while_first(
        replicas.one.tells(ANA, "CCCC-CCCC"), replicas.other.tells(ANA, "DDDD-DDDD"), replicas.watching
    )
    async with replicas.watching.reading() as tx:
        (way,) = await authorizations.with_codes(tx)
    assert way.code_tries == 2


@with_and_without("person:")
async def test_a_code_that_somebody_else_tells_is_of_no_use_any_more_to_anybody(
    replicas: Replicas, locks: None
) -> None:
    """Either its owner was first, or nobody can use it."""
    shown = await code_shown(replicas.one)
    await replicas.held_before("authorizations", kind=sa.Update).while_first(
        replicas.one.tells(BEN, shown.code), replicas.other.tells(ANA, shown.code), replicas.watching
    )
    assert await replicas.one.access_token() is None


@with_and_without("refresh:")
async def test_tokens_are_refreshed_once_though_two_need_them(replicas: Replicas, locks: None) -> None:
    """Services that rotate refresh tokens take the second use of one for theft."""
    await replicas.one.connect()
    old = TokenSet(await replicas.one.access_token() or "")
    refreshes = [each.tokens.refused(ANA.person_id, "drive", old) for each in (replicas.one, replicas.other)]
    fresh = await replicas.while_a_service_is_asked(*refreshes)
    assert len(replicas.outside.refreshed) == 1
    assert fresh[0] == fresh[1]


@with_and_without("return:")
async def test_a_code_of_a_service_is_redeemed_once_though_the_browser_returns_to_both(
    replicas: Replicas, locks: None
) -> None:
    _, link = await replicas.one.asked_and_linked()
    browser = replicas.one.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    there = replicas.other.browser()
    there.cookie = browser.cookie
    returns = [each.returns(went.url, code="code-of-ana") for each in (browser, there)]
    pages = await replicas.while_a_service_is_asked(*returns)
    assert len(replicas.outside.exchanged) == 1
    assert [isinstance(page, ShowCode | Connected) for page in pages] == [True, False]


@with_and_without("revoke:")
async def test_a_service_is_told_once_of_an_end_though_another_process_starts_meanwhile(
    replicas: Replicas, locks: None
) -> None:
    await replicas.one.connect()
    (account,) = await replicas.one.services.connections.of_person(ANA)

    async def start() -> None:
        starting = replicas.other.services.connections
        await starting.start()
        await asyncio.gather(*starting._telling.values())

    ended = replicas.one.services.connections.disconnect(account.connection_id, ANA)
    told, _ = await replicas.while_a_service_is_asked(ended, start())
    assert replicas.outside.revoked == ["secret-access-ana-1"]
    assert isinstance(told, Settled)
    assert "also remove the access" not in told.text, "the service knows"


@with_and_without(CLIENT_REGISTRATIONS)
async def test_a_new_registration_is_not_replaced_by_an_old_one_with_a_new_seal(
    replicas: Replicas, locks: None
) -> None:
    """A process that starts seals anew what there is, while another one registers us anew at a service."""
    new, of = Fernet.generate_key(), ("drive", "https://i", "https://r")
    clients = [
        ClientStore(each.database, each.clock, Sealer(new + b"," + KEY)) for each in (replicas.one, replicas.other)
    ]
    await ClientStore(replicas.one.database, replicas.one.clock, Sealer(KEY)).keep(*of, {"client_id": "old"})
    replicas.one.key = new + b"," + KEY
    replicas.one.restart()
    starting = replicas.one.services.connections
    await replicas.held_before("oauth_clients", kind=sa.Insert).while_first(
        starting._reseal(), clients[1].keep(*of, {"client_id": "new"}), replicas.watching
    )
    assert await clients[0].get(*of) == {"client_id": "new"}


async def test_of_an_end_that_a_dead_process_has_not_told_another_one_tells(replicas: Replicas) -> None:
    await replicas.one.connect()
    (account,) = await replicas.one.services.connections.of_person(ANA)
    replicas.outside.held = asyncio.Event()
    ending = asyncio.create_task(replicas.one.services.connections.disconnect(account.connection_id, ANA))
    await until_done_or_blocked(ending, replicas.watching, lambda: replicas.outside.asked > 1)
    await replicas.one.services.connections.close()  # as if it had died
    ending.cancel()
    replicas.outside.held.set()
    other = replicas.other.services.connections
    await other.tell_left()
    await asyncio.gather(*other._telling.values())
    assert replicas.outside.revoked == ["secret-access-ana-1"]
    await other.tell_left()
    assert not other._telling


# ----------------------------------------------------------------------------------------- records that went away


async def test_tokens_are_refreshed_once_though_the_lock_went_with_its_connection(replicas: Replicas) -> None:
    await replicas.one.connect()
    old = TokenSet(await replicas.one.access_token() or "")
    refreshes = [each.tokens.refused(ANA.person_id, "drive", old) for each in (replicas.one, replicas.other)]
    fresh = await replicas.while_a_service_is_asked(*refreshes, cut_off=True)
    assert len(replicas.outside.refreshed) == 1
    assert fresh[0] == fresh[1] != old


async def test_a_code_is_redeemed_once_though_the_lock_went_with_its_connection(replicas: Replicas) -> None:
    """And the page that says so is shown."""
    _, link = await replicas.one.asked_and_linked()
    browser = replicas.one.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    there = replicas.other.browser()
    there.cookie = browser.cookie
    returns = [each.returns(went.url, code="code-of-ana") for each in (browser, there)]
    pages = await replicas.while_a_service_is_asked(*returns, cut_off=True)
    assert len(replicas.outside.exchanged) == 1
    assert [isinstance(page, ShowCode | Connected) for page in pages] == [True, False]


async def test_fresh_tokens_are_kept_though_the_records_went_away_when_the_service_had_answered(
    replicas: Replicas,
) -> None:
    """The old refresh token is used up: nobody could have others."""
    await replicas.one.connect()
    old = TokenSet(await replicas.one.access_token() or "")
    held = replicas.held_before("connections", kind=sa.Update)
    refreshing = asyncio.create_task(replicas.one.tokens.refused(ANA.person_id, "drive", old))
    await held.reached.wait()
    await replicas.end_connections()
    held.go_on.set()
    fresh = await refreshing
    assert fresh is not None
    assert await replicas.other.access_token() == fresh.access_token != old.access_token


async def test_what_came_of_a_code_is_kept_though_the_records_went_away_when_it_was_redeemed(
    replicas: Replicas,
) -> None:
    _, link = await replicas.one.asked_and_linked()
    browser = replicas.one.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    held = replicas.held_before("authorizations", kind=sa.Update)
    returning = asyncio.create_task(browser.returns(went.url, code="code-of-ana"))
    await held.reached.wait()
    await replicas.end_connections()
    held.go_on.set()
    page = await returning
    assert isinstance(page, ShowCode)
    assert isinstance(await replicas.other.tells(ANA, page.code), Settled)


async def test_a_disconnected_account_is_forgotten_though_the_records_went_away_meanwhile(replicas: Replicas) -> None:
    await replicas.one.connect()
    (account,) = await replicas.one.services.connections.of_person(ANA)
    held = replicas.held_before("connections", kind=sa.Delete)
    ending = asyncio.create_task(replicas.one.services.connections.disconnect(account.connection_id, ANA))
    await held.reached.wait()
    await replicas.end_connections()
    held.go_on.set()
    assert isinstance(await ending, Settled)
    await asyncio.gather(*replicas.one.services.connections._telling.values())
    async with replicas.watching.reading() as tx:
        assert await connections.get(tx, account.connection_id) is None


@pytest.mark.parametrize("proven", [False, True], ids=["with a code", "with a proof"])
async def test_who_signs_in_is_shown_the_end_of_it_though_nobody_heard_that_it_was_kept(
    replicas: Replicas, *, proven: bool
) -> None:
    """Rule 6: what was done once is not taken for somebody else's when it is tried to be written again."""
    if proven:
        replicas.one.proofs.providers["chat"] = "Chat"
        replicas.one.restart()
    _, link = await replicas.one.asked_and_linked()
    browser = replicas.one.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    if proven:
        went = await browser.returns(went.url, code=f"proof-of-{ANA.person_id}")
        assert isinstance(went, GoTo)
    replicas.next_commit_is_not_heard_of("authorizations")
    page = await browser.returns(went.url, code="code-of-ana")
    if proven:
        assert isinstance(page, Connected)
    else:
        assert isinstance(page, ShowCode)
        assert isinstance(await replicas.other.tells(ANA, page.code), Settled)
    assert await replicas.other.access_token()


# ------------------------------------------------------------------------------- others who may have died


REFRESH = refresh_name(ANA.person_id, "drive")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """They say that they are there, and others listen, more often than in earnest."""
    often = {"SAID_EVERY": 0.05, "WORD_SECONDS": 0.15, "SILENT_SECONDS": 0.5, "LOOKS_EVERY": 0.02}
    for name, seconds in often.items():
        monkeypatch.setattr(leases, name, seconds)
    return monkeypatch


def leases_of(database: Database) -> Leases:
    assert isinstance(database, PostgresDatabase)
    return database._leases


async def test_who_died_while_a_service_was_asked_keeps_others_waiting_for_some_seconds(
    replicas: Replicas, quick: pytest.MonkeyPatch
) -> None:
    await leases_of(replicas.one.database)._take(REFRESH, "who died", leases._NOBODY)
    began = time.monotonic()
    async with replicas.other.database.alone(REFRESH, "drive"):
        assert time.monotonic() - began >= leases.SILENT_SECONDS
    async with replicas.watching.reading() as tx:
        assert await tx.one(sa.select(tables.leases)) is None


async def test_who_is_there_though_its_connection_is_not_keeps_others_out_until_it_has_done(
    replicas: Replicas, quick: pytest.MonkeyPatch
) -> None:
    """And nobody waits for it without end."""
    quick.setattr(leases, "WAITS_SECONDS", 3 * leases.SILENT_SECONDS)
    async with leases_of(replicas.one.database).held(REFRESH):
        with pytest.raises(sa.exc.TimeoutError) as refused:
            async with replicas.other.database.alone(REFRESH, "drive"):
                pass
    assert is_away(refused.value)
    async with replicas.other.database.alone(REFRESH, "drive"):
        pass


async def holder_of_lease(replicas: Replicas) -> Any:
    async with replicas.watching.reading() as tx:
        return await tx.one(sa.select(tables.leases))


async def test_who_is_there_says_so_also_on_a_server_that_does_not_know_of_it(
    replicas: Replicas, quick: pytest.MonkeyPatch
) -> None:
    """It took over from another one, and lacks what was written there last."""
    async with leases_of(replicas.one.database).held(REFRESH):
        held = await holder_of_lease(replicas)
        async with replicas.watching.writing(UNLOCKED) as tx:
            await tx.run(sa.delete(tables.leases))
        async with asyncio.timeout(5.0):
            while (now := await holder_of_lease(replicas)) is None:
                await asyncio.sleep(0.01)
        assert now.holder == held.holder
    assert await holder_of_lease(replicas) is None


async def test_who_was_taken_to_be_gone_and_is_there_says_so_in_the_log(
    replicas: Replicas, quick: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logged:
        async with leases_of(replicas.one.database).held(REFRESH):
            async with replicas.watching.writing(UNLOCKED) as tx:
                await tx.run(sa.update(tables.leases).values(holder="another"))
            await until(lambda: [each for each in logged if each["event"] == "lease_overtaken"])
    assert [each["what"] for each in logged if each["event"] == "lease_overtaken"] == ["refresh"]


async def test_who_is_there_is_not_taken_to_be_gone_because_one_word_gets_no_answer(
    replicas: Replicas, quick: pytest.MonkeyPatch
) -> None:
    quick.setattr(leases, "WAITS_SECONDS", 2 * leases.SILENT_SECONDS)
    execute, lost = PostgresTransaction.execute, []

    async def first_is_lost(tx: PostgresTransaction, sql: str, parameters: Any = None) -> Any:
        if sql == leases._SAY and not lost:
            lost.append(sql)
            await asyncio.Event().wait()
        return await execute(tx, sql, parameters)

    quick.setattr(PostgresTransaction, "execute", first_is_lost)
    async with leases_of(replicas.one.database).held(REFRESH):
        with pytest.raises(sa.exc.TimeoutError):
            async with replicas.other.database.alone(REFRESH, "drive"):
                pass
    assert lost


def test_silence_is_longer_than_a_holder_is_silent_because_of_one_word_that_gets_no_answer() -> None:
    said = leases.SAID_EVERY + leases.WORD_SECONDS
    assert said + CANCEL_SECONDS + said < leases.SILENT_SECONDS


# ----------------------------------------------------------------------------------------- who waits for whom


@asynccontextmanager
async def asked_and_silent(stage: Stage, count: int, service: str) -> AsyncIterator[None]:
    """So many people's accounts at a service wait for its answer."""
    answered, tasks = asyncio.Event(), []

    async def ask(person: str, begun: asyncio.Event) -> None:
        async with stage.database.alone(refresh_name(person, service), service):
            begun.set()
            await answered.wait()

    for number in range(count):
        begun = asyncio.Event()
        tasks.append(asyncio.create_task(ask(f"chat:w1:p{number}", begun)))
        if number < MOST_ALONE_AT_ONE:
            await begun.wait()
    try:
        yield
    finally:
        answered.set()
        await asyncio.gather(*tasks)


async def test_a_service_that_does_not_answer_holds_up_no_other_ones_accounts(replicas: Replicas) -> None:
    """Rule 2: who waits for it waits with those who asked it, too."""
    await replicas.one.connect()
    old = TokenSet(await replicas.one.access_token() or "")
    async with asked_and_silent(replicas.one, 2 * MOST_ALONE, "files"), asyncio.timeout(5.0):
        assert await replicas.one.tokens.refused(ANA.person_id, "drive", old) != old


async def test_who_comes_back_without_having_been_sent_away_keeps_nobody_waiting(replicas: Replicas) -> None:
    """Rule 13: anybody can send that, as often as they like."""
    async with AsyncExitStack() as stack, asyncio.timeout(5.0):
        for number in range(MOST_ALONE // MOST_ALONE_AT_ONE):
            await stack.enter_async_context(asked_and_silent(replicas.one, MOST_ALONE_AT_ONE, f"files{number}"))
        for cookie in (None, "somebody's"):
            back = replicas.one.parts.flow.back({"state": "nobody's", "code": "x"}, cookie=cookie, connection="drive")
            assert await back == UNKNOWN_STATE


# ----------------------------------------------------------------------------------------- what is counted


@pytest.fixture(
    params=["shared", pytest.param("not shared", marks=pytest.mark.xfail(strict=True, reason="each counts by itself"))]
)
def counts(request: pytest.FixtureRequest, replicas: Replicas) -> None:
    for each in (replicas.one, replicas.other):
        assert isinstance(each.database, PostgresDatabase)
        each.beginnings = SharedBeginnings(each.database) if request.param == "shared" else None
        each.links_an_hour = 3
        each.restart()


async def test_links_are_counted_by_both(replicas: Replicas, counts: None) -> None:
    sign_in_id = await replicas.one.ask()
    for each in (replicas.one, replicas.other, replicas.one):
        link = await each.link(sign_in_id)
        assert isinstance(await each.browser().opens(link), GoTo)
    refused = await replicas.other.services.sign_in_links.link(sign_in_id, ANA.person_id)
    assert isinstance(refused, Refused)
    assert await replicas.other.asked_and_linked(BEN, "2"), "somebody else"


async def test_what_a_link_begins_is_counted_by_both(replicas: Replicas, counts: None) -> None:
    """Each time costs requests to a service."""
    _, link = await replicas.one.asked_and_linked()
    browser, there = replicas.one.browser(), replicas.other.browser()
    for each in (browser, there) * 5:
        there.cookie = browser.cookie
        assert isinstance(await each.opens(link), GoTo)
    problem = await browser.opens(link)
    assert isinstance(problem, FlowProblem)
    assert problem == TOO_OFTEN
    assert len(replicas.outside.begun) == 10
