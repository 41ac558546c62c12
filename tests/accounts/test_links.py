"""Links: whose they are, how long they live, and that they lie nowhere in the open."""

from __future__ import annotations

import pytest

from bot.accounts.flow import PAGE, FlowProblem, GoTo, Offer
from bot.accounts.ports import Unreachable
from bot.domain import Person, Refused, Unknown
from bot.records.locks import UNLOCKED
from graph.ports import AccountNeeded
from tests.accounts.stage import ANA, BASE, BEN, ELSEWHERE, EVE, WENDY, Stage, token_of


async def offer(stage: Stage, link: str) -> Offer | FlowProblem:
    return await stage.parts.flow.offered(token_of(link))


def kind(page: object) -> str:
    assert isinstance(page, FlowProblem), page
    return page.kind


async def test_the_owner_gets_a_link_that_says_what_it_is_for(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    assert link.startswith(f"{BASE}/oauth/start?s=")
    assert await offer(stage, link) == Offer("Example Drive", "Ana", "chat", ("files.read",), "")


async def test_nobody_else_gets_it(stage: Stage) -> None:
    sign_in_id = await stage.ask()
    for other in (BEN, EVE):
        assert isinstance(await stage.services.sign_in_links.link(sign_in_id, other.person_id), Refused)
    assert isinstance(await stage.services.sign_in_links.link("nonsense", ANA.person_id), Unknown)


async def test_the_card_names_the_service_and_our_host_and_has_no_link(stage: Stage) -> None:
    sign_in_id, link = await stage.asked_and_linked()
    card = await stage.card(sign_in_id)
    assert (card.service, card.host, card.owner_id, card.code_wanted) == (
        "Example Drive",
        "bot.example",
        ANA.person_id,
        False,
    )
    assert token_of(link) not in repr(card)


async def test_the_link_is_not_in_the_database(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    assert token_of(link) not in stage.everything()


async def test_looking_at_a_link_changes_nothing_however_often_previews_fetch_it(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    before = stage.everything()
    for _ in range(3):
        assert isinstance(await offer(stage, link), Offer)
    assert stage.everything() == before
    assert stage.services_outside.begun == []


async def test_two_calls_of_one_person_share_a_link(stage: Stage) -> None:
    _, first = await stage.asked_and_linked()
    _, second = await stage.asked_and_linked(call="m2.0.0", place=ELSEWHERE)
    assert first == second


async def test_two_people_and_two_services_have_links_of_their_own(stage: Stage) -> None:
    links = {
        (await stage.asked_and_linked(ANA, "1"))[1],
        (await stage.asked_and_linked(BEN, "2"))[1],
        (await stage.asked_and_linked(ANA, "3", needed=AccountNeeded("mail")))[1],
    }
    assert len(links) == 3


async def test_a_link_dies_after_a_quarter_of_an_hour(stage: Stage) -> None:
    sign_in_id, link = await stage.asked_and_linked()
    stage.clock.move(901)
    before = stage.everything()
    assert kind(await offer(stage, link)) == "expired"
    assert kind(await stage.browser().opens(link)) == "expired"
    assert stage.everything() == before
    assert isinstance(await offer(stage, await stage.link(sign_in_id)), Offer)


async def test_asking_again_when_it_is_old_or_used_gives_a_new_one_and_the_old_one_dies(stage: Stage) -> None:
    sign_in_id, first = await stage.asked_and_linked()
    stage.clock.move(700)
    second = await stage.link(sign_in_id)
    assert isinstance(await stage.browser().opens(second), GoTo)
    third = await stage.link(sign_in_id)
    assert len({first, second, third}) == 3
    assert [kind(await offer(stage, old)) for old in (first, second)] == ["unknown", "unknown"]
    assert isinstance(await offer(stage, third), Offer)


async def test_a_link_that_was_never_made_is_unknown(stage: Stage) -> None:
    await stage.asked_and_linked()
    for token in ("", "x", "../../etc", "ü\ud800", "a" * 5000):
        assert kind(await stage.parts.flow.offered(token)) == "unknown"
        assert kind(await stage.parts.flow.start(token, visitor=None, cookie=None)) == "unknown"


async def test_a_link_whose_sign_in_is_over_is_not_given_again(stage: Stage) -> None:
    sign_in_id, _link = await stage.asked_and_linked()
    async with stage.database.writing(UNLOCKED) as tx:
        await stage.parts.sign_ins.supersede(tx, (await _row(stage, sign_in_id)), "new message")
    assert isinstance(await stage.services.sign_in_links.link(sign_in_id, ANA.person_id), Refused)


async def _row(stage: Stage, sign_in_id: str):  # type: ignore[no-untyped-def]
    from bot.records import sign_ins

    async with stage.database.reading() as tx:
        return await sign_ins.get(tx, sign_in_id)


async def test_somebody_who_asks_for_too_many_links_is_told_to_wait(stage: Stage) -> None:
    stage.links_an_hour = 3
    stage.restart()
    sign_in_id = await stage.ask()
    for _ in range(3):
        assert isinstance(await stage.browser().opens(await stage.link(sign_in_id)), GoTo)
    assert isinstance(await stage.services.sign_in_links.link(sign_in_id, ANA.person_id), Refused)
    assert await stage.asked_and_linked(BEN, "2")
    stage.clock.move(3601)
    assert await stage.link(sign_in_id)


async def test_one_link_cannot_be_used_to_ask_a_service_without_end(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    for _ in range(10):
        assert isinstance(await browser.opens(link), GoTo)
    assert kind(await browser.opens(link)) == "service"
    assert len(stage.services_outside.begun) == 10


async def test_a_service_that_cannot_be_reached_changes_nothing(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    before = stage.everything()
    stage.services_outside.trouble = Unreachable("connection refused")
    assert kind(await stage.browser().opens(link)) == "service"
    assert stage.everything() == before


async def test_a_service_that_is_not_configured_any_more_is_said_to_be_so(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    del stage.services_outside.known["drive"]
    assert kind(await offer(stage, link)) == "service"


async def test_what_the_server_said_is_missing_reaches_the_service(stage: Stage) -> None:
    challenge = 'Bearer error="insufficient_scope", scope="files.write"'
    _, link = await stage.asked_and_linked()
    await stage.ask(call="m2.0.0", needed=AccountNeeded("drive", challenge))
    await stage.browser().opens(link)
    assert stage.services_outside.begun == [
        {"connection": "drive", "redirect_uri": f"{BASE}/oauth/callback/drive", "challenge": challenge}
    ]


@pytest.mark.parametrize(
    ("person", "visitor", "proof"), [(ANA, None, "Chat"), (WENDY, WENDY.person_id, PAGE), (WENDY, None, "")]
)
async def test_the_offer_says_what_has_to_be_proven_first(
    stage: Stage, person: Person, visitor: str | None, proof: str
) -> None:
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked(person)
    offered = await stage.parts.flow.offered(token_of(link), visitor=visitor)
    assert isinstance(offered, Offer)
    assert offered.proof == proof
