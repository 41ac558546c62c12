"""Which accounts are one human: what an address proves, and what it does not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.approvals.directory import PeopleDirectory, proof_of_identity
from bot.domain import AccountFacts, Person, Refused, Settled
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.routing import ANA, ANA_BY_MAIL, BEN, BEN_BY_MAIL, CARA, CHLOE, FAR, Routing
from tests.support.waiting import at_most_waiting

FINANCE = "chat-group:w1:finance"
OTHER_WORKSPACE = Person("chat:w9:ana", "Ana")


@pytest.mark.parametrize(
    ("email", "proof"),
    [
        (" Ana@Example.COM ", "ana@example.com"),
        ("ana+purchases@example.com", None),
        ("", None),
        ("  ", None),
        ("ana", None),
        ("@example.com", None),
        ("ana@", None),
        ("ana@home@example.com", None),
        ("ana@e\u212aample.com", None),  # the sign of Kelvin, which in lower case is a k
        ("\u0430na@example.com", None),  # a Cyrillic a
        ("\ud800@example.com", None),
    ],
)
def test_what_an_address_proves(email: str, proof: str | None) -> None:
    assert proof_of_identity(email) == proof


async def test_an_address_with_a_tag_makes_nobody_a_second_pair_of_eyes(routing: Routing) -> None:
    routing.same_human(ANA)
    routing.mail.emails[ANA_BY_MAIL.person_id] = "ana+purchases@example.com"
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    assert isinstance(await routing.click(ANA_BY_MAIL, approval_id), Refused)


async def test_nor_two_voters_of_a_quorum(routing: Routing) -> None:
    routing.same_human(BEN)
    routing.mail.emails[BEN_BY_MAIL.person_id] = "ben+two@example.com"
    approval_id = await routing.ask(FAR, quorum=2)
    await routing.click(BEN, approval_id)
    assert isinstance(await routing.click(BEN_BY_MAIL, approval_id), Refused)
    assert (await routing.row(approval_id)).status == "pending"


async def test_an_empty_address_is_nobodys(routing: Routing) -> None:
    """Two accounts without an address are not one human, and neither borrows what the other may."""
    approval_id = await routing.ask(FAR, approvers=(BEN.person_id,))
    routing.mail.emails[CARA.person_id] = routing.chat.emails[BEN.person_id] = " "
    assert isinstance(await routing.click(replace(CARA, email=" "), approval_id), Refused)


async def test_two_workspaces_of_one_platform_are_told_apart_by_the_address_too(routing: Routing) -> None:
    approval_id = await routing.ask("chat:w9:hall", self_approval="fourEyes")
    assert isinstance(await routing.click(OTHER_WORKSPACE, approval_id), Refused)  # nobody knows who they are
    routing.chat.emails[ANA.person_id] = routing.chat.emails[OTHER_WORKSPACE.person_id] = "ana@example.com"
    refused = await routing.click(OTHER_WORKSPACE, approval_id)
    assert refused == Refused("You requested or edited this; someone else must approve.")


async def test_who_shares_an_address_within_a_workspace_may_not_what_the_other_may(routing: Routing) -> None:
    for person in (BEN, CHLOE):
        routing.chat.emails[person.person_id] = "purchasing@example.com"
    routing.same_human(CARA)
    approval_id = await routing.ask(approvers=(BEN.person_id, CARA.person_id))
    assert isinstance(await routing.click(CHLOE, approval_id), Refused)
    assert isinstance(await routing.click(BEN, approval_id), Settled)


async def test_who_shares_an_address_within_a_workspace_is_one_vote(routing: Routing) -> None:
    approval_id = await routing.ask(quorum=2)
    for person in (BEN, CHLOE):
        await routing.click(replace(person, email="purchasing@example.com"), approval_id)
    assert [vote.name for vote in await routing.votes(approval_id)] == ["Ben"]


async def test_an_address_of_two_people_lends_neither_of_them_a_third_account(
    database: Database, clock: SetClock
) -> None:
    chat, mail = RecordingPlatform("chat"), RecordingPlatform("mail")
    directory = PeopleDirectory({"chat": chat, "mail": mail}, database, clock)
    chat.groups[FINANCE] = {BEN.person_id: True}
    shared = "purchasing@example.com"
    mail.emails = {BEN_BY_MAIL.person_id: shared, CARA.person_id: shared}
    chat.emails = {BEN.person_id: shared}
    async with database.writing(UNLOCKED) as tx:
        for person in (BEN, BEN_BY_MAIL, CARA):
            await threads.remember(tx, replace(person, email=shared), 0.0)
    assert await directory.other_accounts(CARA.person_id) == ()
    assert await directory.groups_of(CARA.person_id, [FINANCE]) == {FINANCE: None}
    del mail.emails[BEN_BY_MAIL.person_id]
    clock.move(3600)
    assert await directory.other_accounts(CARA.person_id) == (BEN.person_id,)
    await directory.close()


async def test_whose_address_has_changed_is_who_the_new_one_says(routing: Routing) -> None:
    routing.same_human(ANA)
    routing.mail.emails[ANA_BY_MAIL.person_id] = "ana@example.com"
    approval_id = await routing.ask(FAR, self_approval="fourEyes")
    assert isinstance(await routing.click(replace(ANA_BY_MAIL, email="cara@example.com"), approval_id), Settled)


async def test_what_is_recorded_of_somebody_is_what_was_said_last(routing: Routing) -> None:
    for number, name in enumerate(("Ben", "Benjamin", "Ben")):
        await routing.click(replace(BEN, name=name), await routing.ask(call_id=f"c{number}"))
        async with routing.database.reading() as tx:
            assert (await threads.names(tx, [BEN.person_id]))[BEN.person_id] == name


async def test_a_question_that_never_gets_an_answer_is_put_again(database: Database, clock: SetClock) -> None:
    chat = RecordingPlatform("chat", silent=asyncio.Event(), groups={FINANCE: {ANA.person_id: True}})
    directory = PeopleDirectory({"chat": chat}, database, clock, patience=0.1)
    assert await directory.groups_of(ANA.person_id, [FINANCE]) == {FINANCE: None}
    chat.silent = None  # the platform answers again, though never what was asked before
    async with asyncio.timeout(5):
        while await directory.groups_of(ANA.person_id, [FINANCE]) != {FINANCE: True}:
            pass
    await directory.close()


@pytest.mark.waits
async def test_handing_over_by_address_answers_in_time_though_two_look_ups_hang_one_after_the_other(
    routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack waits 3 seconds. Whose address it is takes almost all the patience there is; then the group hangs."""

    async def slow(person_id: str) -> AccountFacts:
        await asyncio.sleep(1.8)
        return AccountFacts("ben@example.com")

    async with routing.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, replace(BEN, email="ben@example.com"), 0.0)
    routing.chat.groups[FINANCE] = {CHLOE.person_id: True}
    approval_id = await routing.ask(approvers=(FINANCE, CHLOE.person_id))
    monkeypatch.setattr(routing.chat, "account_of", slow)
    routing.chat.silent = asyncio.Event()
    async with at_most_waiting(2.9):
        said = await routing.hand_to(CHLOE, approval_id, "ben@example.com")
    assert isinstance(said, Refused)
    assert said.text.startswith("Couldn’t check whether they can approve this.")
    routing.chat.silent.set()
