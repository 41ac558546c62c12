"""Codes that are told too late, twice, by an edit or by somebody else are still for no record and no model."""

from __future__ import annotations

from bot.accounts.codes import MOST_TRIES
from bot.accounts.flow import ShowCode
from bot.domain import Introduction, Quote
from bot.records import deliveries
from bot.records.deliveries import Delivery
from bot.records.threads import ThreadRow
from bot.turns.messages import Introductions, in_lines
from tests.accounts.stage import ANA, BEN, HERE, Stage
from tests.bot.conftest import until
from tests.bot.test_people_among_themselves import Introducing


async def shown(stage: Stage) -> ShowCode:
    _, link = await stage.asked_and_linked()
    page = await stage.browser().consents(link, "ana")
    assert isinstance(page, ShowCode), page
    return page


async def test_a_code_that_counts_no_more_after_too_many_tries_is_no_message(stage: Stage) -> None:
    page = await shown(stage)
    for _ in range(MOST_TRIES):
        await stage.tells(ANA, "CCCC-DDDD")
    assert await stage.writes(ANA, page.code)
    assert page.code not in stage.everything()
    await until(lambda: any("code has expired" in text for _, text in stage.notices()))
    assert await stage.access_token() is None


async def test_a_code_that_is_told_once_more_when_the_account_is_connected_is_no_message(stage: Stage) -> None:
    page = await shown(stage)
    await stage.tells(ANA, page.code)
    assert await stage.writes(ANA, page.code)
    assert page.code not in stage.everything()


async def test_what_only_looks_like_a_code_is_a_message_again_when_the_account_is_connected(stage: Stage) -> None:
    page = await shown(stage)
    await stage.tells(ANA, page.code)
    assert await stage.writes(ANA, "CCCC-DDDD")
    assert "CCCC-DDDD" in stage.everything()


async def test_an_old_code_of_somebody_else_is_recognised_as_theirs(stage: Stage) -> None:
    await stage.connect(BEN, "ben", "m2.0.0")
    page = await shown(stage)
    assert await stage.writes(BEN, page.code)
    assert page.code not in stage.everything()
    await until(lambda: any("isn’t yours to give" in text for _, text in stage.notices()))


async def test_a_message_that_is_edited_into_a_code_while_it_waits_is_taken_as_one(stage: Stage) -> None:
    page = await shown(stage)
    await stage.writes(ANA, "first", key="m8")
    await stage.writes(ANA, "oops", key="m9")
    assert await stage.services.inbox.amend("m9", page.code)
    assert page.code not in stage.everything()
    assert await stage.access_token() == "secret-access-ana-1"
    async with stage.database.reading() as tx:
        assert [key for key, _ in await deliveries.waiting_messages(tx, HERE.key)] == ["m8"]


def test_a_code_among_what_people_said_before_is_not_told_the_model() -> None:
    said = [("Ana", "look at this"), ("Ana", "`k7qm-3dzp`"), ("Ben", "what?")]
    assert in_lines([Quote(who, text, 0.0) for who, text in said]) == "Ana: look at this\nBen: what?"


async def test_neither_is_one_amid_other_words_when_somebody_was_shown_it(stage: Stage) -> None:
    page = await shown(stage)
    said = [f"look, {page.code.lower()}", "mine is KM34-TX79", f"{page.code.replace('-', ' ')}?"]
    quotes = [Quote("Ana", text, float(n)) for n, text in enumerate(said)]
    assert await stage.parts.codes.without_codes(quotes) == (quotes[1],)


async def test_a_message_is_introduced_without_them(stage: Stage) -> None:
    page = await shown(stage)
    said = (Quote("Ben", f"I see {page.code}", 1.0), Quote("Ben", "hello", 2.0))
    chat = Introducing(answer=Introduction(ANA, "hi", said))
    introductions = Introductions(stage.database, {"chat": chat}, stage.clock, stage.parts.codes)
    await stage.writes(ANA, "hi")
    async with stage.database.reading() as tx:
        delivery = await deliveries.head(tx, HERE.key, stage.clock())
    assert delivery is not None
    introduced = await introductions.of(delivery, ThreadRow(HERE.key, HERE, "hello", None, None, 0.0), None)
    assert isinstance(introduced, Delivery)
    assert introduced.body["background"] == "Ben: hello"
