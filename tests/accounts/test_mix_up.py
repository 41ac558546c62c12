"""An answer counts at the address of the service that the browser was sent to, and nowhere else (RFC 9700, 4.4).

Rule 11: one person's data stays theirs. A configured server that turns hostile sends its visitors on to an honest
provider; with one address for all, the provider's code would be taken for the hostile server's, and handed to it.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from bot.accounts.flow import FlowProblem, ShowCode
from bot.accounts.ports import Service
from bot.records.locks import UNLOCKED
from bot.records.tables import authorizations
from graph.ports import AccountNeeded
from tests.accounts.stage import ANA, Browser, Stage, state_of


async def on_the_way(stage: Stage) -> tuple[Browser, str]:
    """A browser that was sent to the hostile service, which is configured beside an honest one."""
    stage.services_outside.known["hostile"] = Service("hostile", "Hostile", ())
    _, link = await stage.asked_and_linked(ANA, needed=AccountNeeded("hostile"))
    browser = Browser(stage)
    went: Any = await browser.opens(link)
    return browser, went.url


@pytest.mark.parametrize("address", ["drive", "", "Hostile", "hostile/", "hostile%2F"])
async def test_a_code_that_comes_to_another_address_is_given_to_nobody(stage: Stage, address: str) -> None:
    browser, url = await on_the_way(stage)
    before = stage.everything()
    query = {"state": state_of(url), "code": "code-of-ana"}
    page = await stage.parts.flow.back(query, cookie=browser.cookie, connection=address)
    assert isinstance(page, FlowProblem)
    assert "a different service" in page.sentence
    assert stage.services_outside.exchanged == []
    assert stage.everything() == before


async def test_an_error_that_comes_to_another_address_is_no_answer(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    query = {"state": state_of(url), "error": "access_denied"}
    page = await stage.parts.flow.back(query, cookie=browser.cookie, connection="drive")
    assert isinstance(page, FlowProblem)
    assert "a different service" in page.sentence


async def test_each_connection_is_begun_with_an_address_of_its_own(stage: Stage) -> None:
    await on_the_way(stage)
    assert stage.services_outside.begun[-1]["redirect_uri"].endswith("/oauth/callback/hostile")


async def test_what_an_earlier_release_began_comes_back_to_the_address_that_it_had(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    async with stage.database.writing(UNLOCKED) as tx:
        (row,) = await tx.all(sa.select(authorizations.c.sealed_step, authorizations.c.person_id))
        safe = stage.parts.flow._safe
        kept = {**safe.take(row.person_id, "hostile", row.sealed_step)}
        del kept["connection"]
        await tx.run(sa.update(authorizations).values(sealed_step=safe.put(row.person_id, "hostile", kept)))
    query = {"state": state_of(url), "code": "code-of-ana"}
    assert isinstance(await stage.parts.flow.back(query, cookie=browser.cookie, connection="drive"), FlowProblem)
    assert isinstance(await stage.parts.flow.back(query, cookie=browser.cookie), ShowCode)
