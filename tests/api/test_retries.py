"""`POST /api/v1/approvals/{id}/retry`: whoever asked for a call that failed has a program request it again."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import aiohttp
import pytest

from tests.api.contract_clients import Caller, Json, token
from tests.api.serving import ApiUser, ServedApi
from tests.api.test_resources import problem
from tests.api.things import THREAD
from tests.fakes.openai_server import FakeOpenAI
from tests.support.product import ProductFolder, product_here


@pytest.mark.parametrize("scope", ["", "read approve"])
async def test_what_failed_is_requested_again_once_and_has_to_be_approved_again(
    workshop_home: ProductFolder, model: FakeOpenAI, scope: str
) -> None:
    async with product_here(workshop_home) as url, aiohttp.ClientSession() as http:
        ana, ben = (Caller(url, http, token(name)) for name in ("ana", "ben"))
        thread = (await ana.post("/api/v1/threads", {})).body["id"]
        turn = await ana.post(f"/api/v1/threads/{thread}/messages?wait=60", {"text": "use fail what=lamp"})
        (asked,) = turn.body["approvals"]
        approval = f"/api/v1/approvals/{quote(asked['id'], safe='')}"
        assert (await ana.post(f"{approval}/retry", None)).status == 403, "it was not even decided"
        assert not asked["retry_offered"]
        await ana.post(f"{approval}/decision", {"verb": "approve"})
        ended = await settled(ana, thread, turn.body["message_id"])
        assert ended["status"] == "ended"
        assert (await ana.get(approval)).body["retry_offered"]
        requests = len(model.requests)

        assert (await ben.post(f"{approval}/retry", None)).status == 404
        if scope:
            few = replace(ana, token=token("ana", scope))
            assert (await few.post(f"{approval}/retry", None)).status == 403
            return
        first, same = [await ana.post(f"{approval}/retry", None, {"Idempotency-Key": "k"}) for _ in range(2)]
        assert (first.status, first.body) == (200, same.body)
        assert (await ana.post(f"{approval}/retry", None)).status == 409

        again = await settled(ana, thread, first.body["message_id"])
        (card,) = again["approvals"]
        assert (again["status"], card["tool"], card["arguments"]) == ("waiting", "fail", asked["arguments"])
        assert card["id"] != asked["id"]
        assert len(model.requests) == requests, "the model is not asked first"
        assert not (await ana.get(approval)).body["retry_offered"]


async def settled(caller: Caller, thread: str, message_id: str) -> Json:
    """What a turn has come to."""
    return (await caller.get(f"/api/v1/threads/{thread}/messages/{quote(message_id, safe=':')}?wait=60")).body


async def test_nobody_retries_for_whoever_asked(served: ServedApi, ben: ApiUser) -> None:
    approval = await served.wait_for(THREAD, await served.write(THREAD))
    refused = await ben.post(f"approvals/{approval}/retry")
    assert problem(refused) == (403, "Only the person who requested this can retry it.")


async def test_a_request_made_at_mcp_is_not_retried_by_a_program(served: ServedApi, ana: ApiUser) -> None:
    approval = await served.wait_for("web:mcp.1", await served.write("web:mcp.1"))
    assert problem(await ana.post(f"approvals/{approval}/retry"))[0] == 403
