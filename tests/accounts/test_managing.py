"""People see and end their own connections; keys can be changed."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest
from cryptography.fernet import Fernet
from structlog.testing import capture_logs

from bot.accounts.codes import CODE_MINUTES
from bot.accounts.connections import Changes, Connections
from bot.accounts.flow import ShowCode
from bot.accounts.ports import Unreachable
from bot.accounts.tokens import CATALOGUES, CatalogueStore, ClientStore
from bot.crypto import Sealer
from bot.domain import ConnectionView, Refused, Settled, SignInReply, Unknown
from bot.records import authorizations, connections
from bot.records import notifications as notifications_module
from bot.records.locks import UNLOCKED
from bot.records.notifications import Notifications
from graph.ports import AccountNeeded, SignInNeeded
from tests.accounts.stage import ANA, BEN, HERE, Stage
from tests.bot.conftest import until
from tests.bot.stubs import KEY, nobody
from tests.support import postgres_cluster
from tests.support.replicas import two_databases


async def only(stage: Stage) -> ConnectionView:
    (view,) = await stage.services.connections.of_person(ANA)
    return view


async def test_a_person_sees_their_accounts_and_nobody_elses(stage: Stage) -> None:
    await stage.connect()
    view = await only(stage)
    assert (view.service, view.account, view.scopes, view.since, view.working) == (
        "Example Drive",
        "ana",
        ("files.read",),
        stage.clock(),
        True,
    )
    assert view.used_at is None
    await stage.access_token()
    assert (await only(stage)).used_at == stage.clock()
    assert await stage.services.connections.of_person(BEN) == ()
    assert await stage.account_counts() == {"drive": 1}


async def test_signing_in_again_takes_the_place_of_the_account_before(stage: Stage) -> None:
    await stage.connect(login="ana")
    before = await only(stage)
    stage.clock.move(60)
    await stage.connect(login="ana.work", call="m2.0.0")
    after = await only(stage)
    assert (after.connection_id, after.account) == (before.connection_id, "ana.work")
    assert (await stage.access_token() or "").startswith("secret-access-ana.work-")


async def test_disconnecting_revokes_and_forgets(stage: Stage) -> None:
    await stage.connect()
    view = await only(stage)
    told = await stage.services.connections.disconnect(view.connection_id, ANA)
    assert isinstance(told, Settled)
    assert stage.services_outside.revoked == ["secret-access-ana-1"]
    assert await stage.access_token() is None
    async with stage.database.reading() as tx:
        assert await connections.get(tx, view.connection_id) is None
    assert isinstance(await stage.services.connections.disconnect(view.connection_id, ANA), Unknown)


async def test_only_its_owner_disconnects_it(stage: Stage) -> None:
    await stage.connect()
    view = await only(stage)
    assert isinstance(await stage.services.connections.disconnect(view.connection_id, BEN), Refused)
    assert await stage.access_token() == "secret-access-ana-1"
    assert stage.services_outside.revoked == []


async def test_a_service_that_cannot_be_told_does_not_keep_the_account_alive(stage: Stage) -> None:
    await stage.connect()
    view = await only(stage)
    stage.services_outside.trouble = Unreachable("away")
    told = await stage.services.connections.disconnect(view.connection_id, ANA)
    assert isinstance(told, Settled)
    assert "in Example Drive’s settings" in told.text
    assert await stage.services.connections.of_person(ANA) == ()


async def test_a_service_that_takes_long_is_told_meanwhile_and_after_a_restart(stage: Stage) -> None:
    await stage.connect()
    view = await only(stage)
    stage.services_outside.held = asyncio.Event()
    impatient = Connections(
        stage.database,
        stage.engine,
        stage.outbox,
        stage.clock,
        services=stage.services_outside,
        sealer=Sealer(KEY),
        codes=stage.parts.codes,
        changes=Changes(nobody),
        patience=0.01,
    )
    assert isinstance(await impatient.disconnect(view.connection_id, ANA), Settled)
    assert await stage.access_token() is None
    await impatient.close()
    stage.services_outside.held.set()
    await stage.parts.services.connections.start()
    await until(lambda: stage.services_outside.revoked == ["secret-access-ana-1"])


async def test_whoever_holds_a_session_open_is_told_when_an_account_changes(stage: Stage) -> None:
    await stage.connect()
    await until(lambda: stage.changes == [(ANA.person_id, "drive")])
    await stage.services.connections.disconnect((await only(stage)).connection_id, ANA)
    await until(lambda: stage.changes == [(ANA.person_id, "drive")] * 2)


# ------------------------------------------------------------------------------------------- sign-ins


async def test_saying_that_one_has_signed_in_connects_nothing(stage: Stage) -> None:
    sign_in_id = await stage.ask()
    said = await stage.services.connections.sign_in_reply(SignInReply("k", ANA, sign_in_id, done=True))
    assert isinstance(said, Refused)
    assert await stage.status(sign_in_id) == "open"
    assert await stage.resumes() == []
    assert isinstance(
        await stage.services.connections.sign_in_reply(SignInReply("k2", ANA, sign_in_id, done=False)), Settled
    )
    assert await stage.status(sign_in_id) == "declined"


async def attempt(stage: Stage, call: str) -> None:
    """A call begins."""
    import sqlalchemy as sa

    from bot.records.tables import attempts

    row = {"attempt_id": call, "call_id": call, "number": 1, "thread_id": HERE.key, "requester": ANA.person_id}
    row |= {"server": "files", "tool": "read", "title": "", "digest": "", "status": "nothing"}
    async with stage.database.writing(UNLOCKED) as tx:
        await tx.run(sa.insert(attempts).values(**row, arguments={}, started_at=stage.clock()))


async def test_a_call_that_looked_just_before_the_account_was_connected_goes_on_by_itself(stage: Stage) -> None:
    await attempt(stage, "late")
    stage.clock.move(1)
    await stage.connect()
    await stage.resumes()
    sign_in_id = await stage.ask(call="late")
    assert await stage.status(sign_in_id) == "done"
    assert await stage.resumes() == [f"resume:{sign_in_id}"]


async def test_a_call_that_an_old_account_was_refused_for_asks(stage: Stage) -> None:
    await stage.connect()
    await stage.resumes()
    stage.clock.move(1)
    await attempt(stage, "refused")
    sign_in_id = await stage.ask(call="refused", needed=AccountNeeded("drive", "Bearer error=invalid_token"))
    assert await stage.status(sign_in_id) == "open"
    assert await stage.link(sign_in_id)


async def test_asking_twice_for_the_same_call_is_asking_once(stage: Stage) -> None:
    assert await stage.ask() == await stage.ask()


async def test_a_call_that_was_made_anew_has_the_link_of_now(stage: Stage) -> None:
    asked = [SignInNeeded(f"https://pay.example/{n}", "Please pay", f"e{n}") for n in (1, 2, 2)]
    ids = [await stage.parts.sign_ins.ask(HERE.key, "c", ANA.person_id, "shop", needed) for needed in asked]
    assert ids[0] != ids[1] == ids[2]
    assert (await stage.status(ids[0]), await stage.status(ids[1])) == ("superseded", "open")
    assert await stage.link(ids[1]) == "https://pay.example/2"


async def test_a_server_that_says_its_link_is_finished_lets_the_call_go_on_once(stage: Stage) -> None:
    needed = SignInNeeded("https://pay.example/x", "Please pay", "e1")
    sign_in_id = await stage.parts.sign_ins.ask(HERE.key, "c", ANA.person_id, "shop", needed)
    await stage.parts.sign_ins.completed("another call")
    assert await stage.status(sign_in_id) == "open"
    await stage.parts.sign_ins.completed("c")
    await stage.parts.sign_ins.completed("c")
    assert await stage.status(sign_in_id) == "done"
    assert await stage.resumes() == [f"resume:{sign_in_id}"]


async def test_a_server_cannot_say_that_an_account_is_connected(stage: Stage) -> None:
    sign_in_id = await stage.ask(call="c")
    await stage.parts.sign_ins.completed("c")
    assert await stage.status(sign_in_id) == "open"


# ------------------------------------------------------------------------------------------- keys, and what is kept


async def test_after_a_change_of_keys_the_old_one_can_be_retired(stage: Stage) -> None:
    await stage.connect()
    clients = ClientStore(stage.database, stage.clock, Sealer(KEY))
    await clients.keep("drive", "https://i", "https://r", {"client_id": "x"})
    new = Fernet.generate_key()
    stage.key = new + b", " + KEY
    stage.restart()
    assert await stage.access_token() == "secret-access-ana-1"
    await stage.parts.services.connections.start()
    await stage.parts.services.connections.resealed()
    stage.key = new
    stage.restart()
    assert await stage.access_token() == "secret-access-ana-1"
    renewed = ClientStore(stage.database, stage.clock, Sealer(new))
    assert await renewed.get("drive", "https://i", "https://r") == {"client_id": "x"}
    assert await clients.get("drive", "https://i", "https://r") is None


async def test_the_link_of_a_tool_server_survives_the_change_of_keys(stage: Stage) -> None:
    needed = SignInNeeded("https://pay.example/x?secret-1", "Please pay", "e1")
    sign_in_id = await stage.parts.sign_ins.ask(HERE.key, "c", ANA.person_id, "shop", needed)
    new = Fernet.generate_key()
    stage.key = new + b"," + KEY
    stage.restart()
    await stage.parts.services.connections.start()
    await stage.parts.services.connections.resealed()
    stage.key = new
    stage.restart()
    assert await stage.link(sign_in_id) == needed.url


async def test_an_operator_who_lost_the_key_is_told_so_at_the_start(stage: Stage) -> None:
    await stage.connect()
    with capture_logs() as logged:
        await stage.parts.services.connections.start()
        await stage.parts.services.connections.resealed()
    assert logged == []
    stage.key = Fernet.generate_key()
    stage.restart()
    with capture_logs() as logged:
        await stage.parts.services.connections.start()
        await stage.parts.services.connections.resealed()
    (told,) = logged
    assert (told["event"], told["accounts"]) == ("accounts_sealed_with_another_key", 1)
    assert "ENCRYPTION_KEY=new,old" in told["note"]


async def test_what_was_granted_and_never_claimed_is_forgotten_at_the_next_start(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    assert isinstance(await stage.browser().consents(link, "ana"), ShowCode)
    async with stage.database.reading() as tx:
        assert [way.sealed_grant is None for way in await authorizations.with_codes(tx)] == [False]
    stage.clock.move(CODE_MINUTES * 60 + 1)
    stage.restart()
    await stage.parts.services.connections.start()
    async with stage.database.reading() as tx:
        assert [way.sealed_grant is None for way in await authorizations.with_codes(tx)] == [True]


async def test_with_another_key_people_have_to_sign_in_anew(stage: Stage) -> None:
    await stage.connect()
    stage.key = Fernet.generate_key()
    stage.restart()
    assert await stage.access_token() is None
    assert not (await only(stage)).working


async def test_client_registrations_are_kept_sealed_by_what_they_are_for(stage: Stage) -> None:
    store = ClientStore(stage.database, stage.clock, Sealer(KEY))
    assert await store.get("drive", "https://i", "https://r") is None
    for secret in ("secret-1", "secret-2"):
        await store.keep("drive", "https://i", "https://r", {"client_secret": secret})
    assert await store.get("drive", "https://i", "https://r") == {"client_secret": "secret-2"}
    assert await store.get("drive", "https://i", "https://other") is None
    assert "secret-" not in stage.everything()
    await store.keep("drive", "https://i", "https://r", {})
    assert await store.get("drive", "https://i", "https://r") is None


async def test_catalogues_are_kept_for_one_configuration(stage: Stage) -> None:
    store = CatalogueStore(stage.database, stage.clock)
    assert await store.load("files", "f1") is None
    await store.keep("files", "f1", [{"name": "read"}])
    assert await store.load("files", "f1") == [{"name": "read"}]
    await store.keep("files", "f2", [])
    assert await store.load("files", "f1") is None
    assert await store.load("files", "f2") == []


@pytest.mark.postgres
async def test_catalogues_that_a_process_has_kept_are_news_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications_module, "RECONNECT_SECONDS", 0.05)
    async with two_databases() as databases, AsyncExitStack() as stack:
        stores = []
        for database in databases:
            notifications = Notifications(postgres_cluster.own_database())
            stores.append(CatalogueStore(database, time.time, notifications))
            await notifications.start()
            stack.push_async_callback(notifications.stop)
        one, other = stores
        await until(lambda: one.news("files") and other.news("files"))  # what was kept before they listened
        before = one.news("files"), other.news("files"), other.news("mail")
        await one.keep("files", "f1", [{"name": "read"}])
        await until(lambda: other.news("files") > before[1])
        assert await other.load("files", "f1") == [{"name": "read"}]
        await other.keep("mail", "m1", [])
        await until(lambda: one.news("mail") > before[0])
        assert (one.news("files"), other.news("mail")) == (before[0], before[2])  # one's own are none

        notifications.tell(CATALOGUES, '["a newer version", {"of": "files"}]')
        await until(lambda: one.news("files") > before[0])
