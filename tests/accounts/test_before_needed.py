"""Accounts that are connected before anything needs them, and how those that were connected are."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet

from bot.accounts.flow import Connected, GoTo, Offer, ShowCode
from bot.accounts.ports import GrantRefused
from bot.domain import Refused, ServiceView, Unknown
from tests.accounts.stage import ANA, BASE, BEN, HERE, WENDY, Stage, token_of

DRIVE, MAIL = (
    ServiceView("drive", "Example Drive", ("files.read",)),
    ServiceView("mail", "Example Mail", ("mail.read",)),
)


async def link_to(stage: Stage, connection: str = "drive", person: str = ANA.person_id, name: str = "") -> str:
    link = await stage.services.sign_in_links.connect_link(person, connection, name)
    assert isinstance(link, str), link
    return link


async def status(stage: Stage) -> str:
    (view,) = await stage.services.connections.of_person(ANA)
    return view.status


# ------------------------------------------------------------------------------------------------ links


async def test_services_are_listed_by_name_with_what_they_are_asked_for(stage: Stage) -> None:
    connections = stage.services.connections
    assert connections.connectable() == (DRIVE, MAIL)
    assert connections.to_connect(()) == (DRIVE, MAIL)
    await stage.connect()
    mine = await connections.of_person(ANA)
    assert [view.provider for view in mine] == ["drive"]
    assert connections.to_connect(mine) == (MAIL,)
    stage.services_outside.unfit.add("drive")
    assert connections.to_connect(await connections.of_person(ANA)) == (DRIVE, MAIL)


async def test_an_account_is_connected_though_nothing_waits_for_it(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    link = await link_to(stage)
    assert urlsplit(link)._replace(query="").geturl() == f"{BASE}/oauth/start"
    browser = stage.browser()
    went = await browser.proves(link, ANA)
    assert isinstance(went, GoTo)
    done = await browser.returns(went.url, code="code-of-ana")
    assert done == Connected("Example Drive", "ana", "Ana", "chat", goes_on=False)
    assert await stage.access_token() == "secret-access-ana-1"
    assert await stage.resumes() == []
    assert await status(stage) == "active"


async def test_a_code_is_told_in_chat_though_nothing_waits_for_it(stage: Stage) -> None:
    page = await stage.browser().consents(await link_to(stage), "ana")
    assert isinstance(page, ShowCode)
    assert await stage.writes(ANA, page.code)
    assert await stage.access_token() == "secret-access-ana-1"
    assert page.code not in stage.everything()
    assert await stage.resumes() == []


async def test_what_came_to_need_it_meanwhile_goes_on(stage: Stage) -> None:
    link = await link_to(stage)
    sign_in_id, same = await stage.asked_and_linked()
    assert link == same
    page = await stage.browser().consents(link, "ana")
    assert isinstance(page, ShowCode)
    await stage.tells(ANA, page.code)
    assert await stage.resumes(HERE) == [f"resume:{sign_in_id}"]


async def test_another_account_takes_the_place_of_the_first(stage: Stage) -> None:
    await stage.connect()
    link = await link_to(stage)
    page = await stage.browser().consents(link, "ana.work")
    assert isinstance(page, ShowCode)
    await stage.tells(ANA, page.code)
    assert [view.account for view in await stage.services.connections.of_person(ANA)] == ["ana.work"]


async def test_nobody_connects_what_is_not_configured(stage: Stage) -> None:
    for name in ("calendar", "", "../drive", "x" * 5_000):
        assert isinstance(await stage.services.sign_in_links.connect_link(ANA.person_id, name), Unknown)


async def test_these_links_count_like_those_of_sign_ins(stage: Stage) -> None:
    stage.links_an_hour = 2
    stage.restart()
    sign_in_id = await stage.ask()
    await stage.browser().opens(await stage.link(sign_in_id))
    await stage.browser().opens(await link_to(stage))
    assert isinstance(await stage.services.sign_in_links.connect_link(ANA.person_id, "drive"), Refused)
    assert isinstance(await stage.services.sign_in_links.link(sign_in_id, ANA.person_id), Refused)
    assert await link_to(stage, person=BEN.person_id)


async def test_the_page_of_a_link_names_whom_nobody_has_heard_of_before(stage: Stage) -> None:
    link = await link_to(stage, person="chat:w1:u7", name="Gus")
    offered = await stage.parts.flow.offered(token_of(link))
    assert isinstance(offered, Offer)
    assert offered.person == "Gus"


async def test_somebody_of_the_page_is_connected_at_once_in_their_own_session(stage: Stage) -> None:
    link = await link_to(stage, person=WENDY.person_id)
    done = await stage.browser().consents(link, "wendy", visitor=WENDY.person_id)
    assert done == Connected("Example Drive", "wendy", "Wendy", "the chat page", goes_on=False)


# ---------------------------------------------------------------------- how a connected account is


async def test_tokens_that_can_be_renewed_do_not_expire(stage: Stage) -> None:
    stage.services_outside.lifetime = stage.clock() + 60
    await stage.connect()
    stage.clock.move(61)
    assert await status(stage) == "active"


async def test_tokens_that_cannot_be_renewed_expire(stage: Stage) -> None:
    stage.services_outside.lifetime = stage.clock() + 60
    stage.services_outside.renewable = False
    await stage.connect()
    assert await status(stage) == "active"
    stage.clock.move(61)
    assert await status(stage) == "expired"
    assert await stage.access_token() is None
    assert await status(stage) == "expired"


@pytest.mark.parametrize("renewable", [True, False])
async def test_what_the_service_does_not_accept_any_more_is_revoked(stage: Stage, *, renewable: bool) -> None:
    stage.services_outside.renewable = renewable
    await stage.connect()
    tokens = await stage.tokens.kept(ANA.person_id, "drive")
    assert tokens is not None
    stage.services_outside.trouble = GrantRefused("invalid_grant")
    assert await stage.tokens.refused(ANA.person_id, "drive", tokens) is None
    assert await status(stage) == "revoked"


async def test_what_is_of_no_use_for_a_reason_of_ours_is_an_error(stage: Stage) -> None:
    await stage.connect()
    stage.services_outside.unfit.add("drive")
    assert await status(stage) == "error"
    stage.services_outside.unfit.clear()
    stage.key = Fernet.generate_key()
    stage.restart()
    assert await status(stage) == "error"
