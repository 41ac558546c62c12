"""One-time codes of sign-ins that programs send, as messages or by themselves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from bot.accounts.ports import Account, TokenSet
from bot.accounts.tokens import GrantedAccount, Safe
from bot.crypto import Sealer
from bot.records import authorizations
from bot.records.authorizations import AuthorizationRow
from bot.records.locks import UNLOCKED
from tests.api.serving import ANA, ApiUser, ServedApi
from tests.api.things import THREAD
from tests.bot.stubs import KEY

CONNECTED = "Your Board account ana is connected. If it isn’t yours, disconnect it."


async def a_browser_shows(served: ServedApi, code: str) -> str:
    """As after a consent: the code is on Ana's screen."""
    safe, person_id = Safe(Sealer(KEY)), ANA.person_id
    grant = GrantedAccount(TokenSet("access-token-of-a-test"), Account("ana"))
    way = AuthorizationRow(
        authorization_id=f"of {code}",
        person_id=person_id,
        connection="board",
        challenge="",
        status="open",
        began_at=served.clock(),
        step="code",
        sealed_grant=safe.put_grant(person_id, "board", grant),
        sealed_code=safe.put(person_id, "board", {"code": code}),
        code_until=served.clock() + 600,
    )
    async with served.database.writing(UNLOCKED) as tx:
        await authorizations.add(tx, way)
    return code


async def test_a_code_sent_as_a_message_is_answered_and_shown_nowhere(served: ServedApi, ana: ApiUser) -> None:
    await served.open(THREAD)
    with served.sender.hub.reading(THREAD, ANA.person_id, "an open page", sees_all=True) as page:
        code = await a_browser_shows(served, "K7QM-3DZP")
        path = f"threads/{THREAD}/messages"
        sent = await ana.post(path, {"text": code}, Idempotency_Key="k")
        assert (sent.status, sent.body["status"], sent.body["notices"]) == (200, "ended", [CONNECTED])
        assert (await ana.post(path, {"text": code}, Idempotency_Key="k")).body == sent.body
        assert (await ana.get(f"{path}/{sent.body['message_id']}")).body == sent.body
        await ana.post(path, {"text": "and on"})
        seen: list[bytes] = []
        async with asyncio.timeout(10.0):
            while not any(b"and on" in each for each in seen):
                seen.append(await page.next(1.0) or b"")
    assert not any(code.encode() in each for each in seen)


async def test_every_contract_answers_a_code_with_what_came_of_it(served: ServedApi, ana: ApiUser) -> None:
    token = served.tokens.of(ANA)
    served.tokens.people[token] = replace(served.tokens.people[token], subject="ana")
    requests: dict[str, tuple[str, dict[str, Any], str]] = {
        "K7QM-3DZP": ("/run", {"thread_id": "t", "user_request": "{code}"}, "response"),
        "K7QM-3DZC": ("/query", {"query": "{code}"}, "response"),
        "K7QM-3DZD": ("/api/v1/agent/ana/chat", {"message": "{code}", "conversation_id": None}, "agent_response"),
        "K7QM-3DZF": ("/query/stream", {"query": "{code}"}, ""),
        "K7QM-3DZG": ("/ai/agent/stream", {"prompt": "{code}"}, ""),
    }
    for code, (path, body, where) in requests.items():
        await a_browser_shows(served, code)
        given = {name: code if value == "{code}" else value for name, value in body.items()}
        answer = await ana.ask("POST", path, given)
        assert answer.status == 200, answer
        if where:
            assert answer.body[where] == CONNECTED
        else:
            assert CONNECTED in answer.body.replace(r"\u2019", "’")
            assert "event: done" in answer.body or "event: end" in answer.body


async def test_a_code_is_told_where_nothing_waits_for_the_account(served: ServedApi, ana: ApiUser) -> None:
    code = await a_browser_shows(served, "K7QM-3DZP")
    wrong = await ana.post("connectors/code", {"code": "CCCC-CCCC"})
    assert (wrong.status, list(wrong.body["errors"])) == (422, ["code"])
    right = await ana.post("connectors/code", {"code": code})
    assert (right.status, right.body["status"], right.body["text"]) == (200, "settled", CONNECTED)
    assert [each["provider"] for each in (await ana.get("connectors/connections")).body] == ["board"]
