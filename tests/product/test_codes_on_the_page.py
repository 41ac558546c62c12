"""A one-time code that somebody sends as a message on the page: it is taken, and it is nowhere afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

import pytest

from bot.accounts.ports import Account, TokenSet
from bot.accounts.tokens import GrantedAccount, Safe
from bot.crypto import Sealer
from bot.records import authorizations
from bot.records.authorizations import AuthorizationRow
from bot.records.locks import UNLOCKED
from tests.fakes.openai_server import FakeOpenAI
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import all_that_is_kept, opened_records
from tests.support.visitor import Thread, visiting

CODE = "K7QM-3DZP"
ANA, ELSEWHERE = "web:ana", "slack:T1:U1"


async def a_browser_shows(home: ProductFolder, person_id: str, code: str) -> None:
    """As after a consent without proof of chat identity: the code is on somebody's screen."""
    safe = Safe(Sealer(home.key()))
    now = time.time()
    async with opened_records(home) as records, records.database.writing(UNLOCKED) as tx:
        await authorizations.add(
            tx,
            AuthorizationRow(
                authorization_id=f"of {person_id}",
                person_id=person_id,
                connection="drive",
                challenge="",
                status="open",
                began_at=now,
                step="code",
                sealed_grant=safe.put_grant(
                    person_id, "drive", GrantedAccount(TokenSet("access-token-of-a-test"), Account("ana"))
                ),
                sealed_code=safe.put(person_id, "drive", {"code": code}),
                code_until=now + 600,
            ),
        )


@pytest.fixture(params=[ANA, ELSEWHERE])
def owner(request: pytest.FixtureRequest) -> str:
    """Whom the sign-in is for."""
    return str(request.param)


@pytest.fixture
async def thread(workshop_home: ProductFolder, owner: str) -> AsyncIterator[Thread]:
    """A conversation of Ana's, while a browser shows a code."""
    await a_browser_shows(workshop_home, owner, CODE)
    workshop_home.variables["LOG_LEVEL"] = "debug"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        yield thread


@pytest.mark.parametrize("words", [" {code} ", "it says {code}, what now?"])
async def test_a_code_is_taken_answered_in_private_and_left_nowhere(
    thread: Thread,
    owner: str,
    words: str,
    model: FakeOpenAI,
    workshop_home: ProductFolder,
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = "is connected. If it isn’t yours" if owner == ANA else "isn’t yours to give"
    await thread.send("hello")
    await thread.says("You said: hello")
    answer = await thread.send(words.format(code=CODE.lower()))
    assert (answer.status, answer.body) == (202, {"accepted": True, "taken": True})
    await thread.notice(told)
    await thread.send("and on")
    await thread.says("You said: and on")
    connections = await thread.visitor.get("/api/connections")
    seen = json.dumps(list(thread.entries.values()))
    said = [seen, str(await thread.visitor.get("/api/threads")), json.dumps(model.requests), *capfd.readouterr()]
    for where in [*said, *(text for _, text in all_that_is_kept(workshop_home))]:
        assert CODE not in where.upper()
        assert "access-token-of-a-test" not in where
    assert len(connections.body["connections"]) == (owner == ANA)


async def test_words_of_that_shape_are_just_words_for_whom_no_code_is_shown(thread: Thread) -> None:
    async with visiting(thread.visitor.url, "ben") as ben, ben.thread() as bens:
        assert (await bens.send("CCCC-DDDD")).body == {"accepted": True}
        await bens.says("You said: CCCC-DDDD")
