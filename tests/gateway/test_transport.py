"""The transport of `/mcp`: sessions, who may ask, what is refused, what is delivered, and the stream of changes."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import httpx
import pytest
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client

from adapters.gateway import receiver
from adapters.gateway.requests import GatewaySession
from adapters.gateway.sessions import SESSION_SECONDS
from bot.crypto import Sealer
from tests.gateway.transport import (
    ANA,
    BEN,
    CALL,
    INITIALIZE,
    KEY,
    LIST,
    PAGE,
    WITHIN,
    McpClient,
    ServedGateway,
    next_message,
    served_gateway,
)

NEW_KEY = b"B" * 43 + b"="


@pytest.fixture
async def served() -> AsyncIterator[ServedGateway]:
    async with served_gateway() as made:
        yield made


@pytest.fixture
async def client(served: ServedGateway) -> McpClient:
    """Ana's, in a session."""
    return await served.client().initialized()


async def within(event: asyncio.Event) -> None:
    async with asyncio.timeout(WITHIN):
        await event.wait()


# --------------------------------------------------------------------------------------------------- sessions


async def test_a_session_holds_what_its_calls_need_of_what_the_client_said_of_itself(
    served: ServedGateway, client: McpClient
) -> None:
    answer = await client.post(LIST)
    assert answer.messages[0]["result"]["tools"][0]["name"] == "make"
    (asked,) = served.tool.asked
    session = asked.session
    assert isinstance(session, GatewaySession)
    assert (session.client_name, session.url_elicitation) == ("cursor", True)
    assert (asked.caller.person, asked.caller.client, asked.server) == (ANA, "cursor", None)


async def test_a_session_begun_at_one_replica_counts_at_another_and_after_a_change_of_keys(
    served: ServedGateway, client: McpClient
) -> None:
    async with served_gateway(NEW_KEY + b"," + KEY, tokens=served.tokens) as other:
        client.url = other.url
        assert (await client.post(LIST)).messages[0]["result"]["tools"]
        newer = await other.client().initialized()
        newer.url = served.url
        assert (await newer.post(LIST)).status == 404


async def test_without_a_session_the_client_is_told_to_send_one(served: ServedGateway) -> None:
    answer = await served.client().post(LIST)
    assert answer.status == 400
    assert "Mcp-Session-Id" in answer.json["error"]["message"]


async def test_a_session_is_one_persons_lasts_a_week_and_cannot_be_forged(
    served: ServedGateway, client: McpClient
) -> None:
    bens = served.client(BEN)
    bens.session = client.session
    assert (await bens.post(LIST)).status == 404
    forged = served.client()
    for session in ("x", "ü", "x" * 5_000, Sealer(KEY).seal("{}"), client.session[:-8] + "AAAAAA=="):
        forged.session = session
        assert (await forged.post(LIST)).status == 404
    served.clock.move(SESSION_SECONDS - 1)
    assert (await client.post(LIST)).status == 200
    served.clock.move(1)
    assert (await client.post(LIST)).status == 404
    assert not any(asked.principal.person == BEN for asked in served.tool.asked)


async def test_a_name_of_a_client_is_one_visible_line(served: ServedGateway) -> None:
    client = served.client()
    info = {"name": "evil\u202e\n" + "x" * 500, "version": "1"}
    params = {**INITIALIZE["params"], "clientInfo": info}  # type: ignore[dict-item]
    answer = await client.post({**INITIALIZE, "params": params})
    client.session = answer.headers["Mcp-Session-Id"]
    await client.post(LIST)
    name = served.tool.asked[0].caller.client
    assert name.isprintable()
    assert len(name) <= 100
    assert "\u202e" not in name


async def test_an_initialize_that_is_refused_begins_no_session(served: ServedGateway) -> None:
    client = served.client()
    for params in ({"clientInfo": 7}, {"clientInfo": {"name": "cursor"}}):
        answer = await client.post({**INITIALIZE, "params": params})
        assert answer.messages[0]["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in answer.headers
    refused = [
        await client.post(INITIALIZE, Accept="application/json"),
        await client.post(INITIALIZE | {"jsonrpc": "1"}),
    ]
    assert [(answer.status, "Mcp-Session-Id" in answer.headers) for answer in refused] == [(406, False), (400, False)]


async def test_a_session_can_be_ended_by_its_client(client: McpClient) -> None:
    assert (await client.ask("DELETE")).status == 204
    client.session = "x"
    assert (await client.ask("DELETE")).status == 404


# ------------------------------------------------------------------------------------------------ what is refused

BROKEN: dict[str, tuple[Any, dict[str, str], int]] = {
    "a batch": ([LIST, LIST], {}, 400),
    "no JSON": (b"{", {}, 400),
    "no UTF-8": (b'"\xff"', {}, 400),
    "no message": ({"hello": 1}, {}, 400),
    "a text": ("hello", {}, 400),
    "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', {}, 400),
    "nested without end": (b"[" * 100_000, {}, 413),
    "nested too deeply": (b"[" * 100 + b"]" * 100, {}, 400),
    "half a character as its id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', {}, 400),
    "half a character in it": (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":["\\uDFFF"]}}', {}, 400),
    "too large": (io.BytesIO(b" " * (1024 * 1024 + 1)), {}, 413),
    "nothing": ({}, {}, 400),
    "of another JSON-RPC": (LIST | {"jsonrpc": "1.0"}, {}, 400),
    "without a method": ({"jsonrpc": "2.0", "id": 1}, {}, 400),
    "with a number for its method": (LIST | {"method": 5}, {}, 400),
    "with a list for its parameters": (LIST | {"params": [1]}, {}, 400),
    "initialize with a list for its parameters": (INITIALIZE | {"params": []}, {}, 400),
    "with no id but null": (LIST | {"id": None}, {}, 400),
    "with a list for its id": (LIST | {"id": [1]}, {}, 400),
    "with an object for its id": (LIST | {"id": {"a": 1}}, {}, 400),
    "with half a number for its id": (LIST | {"id": 1.5}, {}, 400),
    "with a truth for its id": (LIST | {"id": True}, {}, 400),
    "with a long id": (LIST | {"id": "x" * 1001}, {}, 400),
    "with a long number for its id": (LIST | {"id": 10**1000}, {}, 400),
    "with a long progress token": (LIST | {"params": {"_meta": {"progressToken": "x" * 1001}}}, {}, 400),
    "with a list for its progress token": (LIST | {"params": {"_meta": {"progressToken": []}}}, {}, 400),
    "a form": (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "not to be answered with a stream": (LIST, {"Accept": "application/json"}, 406),
    "of another version": (LIST, {"MCP_Protocol_Version": "1999-01-01"}, 400),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_message_is_refused_with_a_clear_error_that_is(what: str, client: McpClient) -> None:
    body, headers, status = BROKEN[what]
    answer = await client.post(body, **headers)
    assert answer.status == status, answer
    assert answer.json["error"]["message"]
    assert "pydantic" not in answer.text
    assert (await client.post(LIST)).status == 200


async def test_an_id_of_any_length_that_is_taken_is_that_of_the_answer(
    served: ServedGateway, client: McpClient
) -> None:
    served.tool.may_answer.set()
    for request_id in ("\0" * 1000, "😀" * 1000, 10**999):
        answer = await client.post(CALL | {"id": request_id})
        assert answer.messages[0]["id"] == request_id
    await served.end()
    assert served.delivered == ["call7"] * 3


async def test_an_answer_to_nothing_that_was_asked_is_taken_and_ignored(client: McpClient) -> None:
    for answer in ({"id": 3, "result": {}}, {"id": 3, "error": {"whatever": 1}}):
        taken = await client.post({"jsonrpc": "2.0", **answer})
        assert (taken.status, taken.text) == (202, "")


async def test_an_address_for_no_tool_server_is_not_there(served: ServedGateway) -> None:
    client = served.client()
    for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
        assert (await client.ask(method, body, "/mcp/nothing")).status == 404
    assert (await client.ask("GET", path="/.well-known/oauth-protected-resource/mcp/nothing")).status == 404
    await client.initialized("/mcp/workshop")
    await client.post(LIST, "/mcp/workshop")
    assert served.tool.asked[0].server == "workshop"


async def test_whoever_connects_to_no_tool_server_reads_that_there_is_none(served: ServedGateway) -> None:
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {served.tokens.of(ANA)}"}) as http,
        streamable_http_client(f"{served.url}/mcp/nothing", http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        with pytest.raises(McpError, match=r"There’s no tool server of this name\."):
            await session.initialize()


async def test_a_slash_at_the_end_of_an_address_changes_nothing(served: ServedGateway) -> None:
    for path in ("/mcp/", "/mcp/workshop/"):
        client = await served.client().initialized(path)
        assert (await client.post(LIST, path)).messages[0]["result"]["tools"]
        async with client.stream(path) as stream:
            assert stream.status == 200
        metadata = await client.ask("GET", path=f"/.well-known/oauth-protected-resource{path}")
        assert metadata.json["resource"] == f"{served.url}{path.removesuffix('/')}"
        assert (await client.ask("DELETE", path=path)).status == 204
    assert [asked.server for asked in served.tool.asked] == [None, "workshop"]


async def test_other_methods_are_not_possible(client: McpClient) -> None:
    answer = await client.ask("PUT", LIST)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST, GET, DELETE")


# --------------------------------------------------------------------------------------------------- who may ask


async def test_without_a_good_token_clients_are_told_where_they_get_one(served: ServedGateway) -> None:
    where = f'resource_metadata="{served.url}/.well-known/oauth-protected-resource/mcp"'
    nobody = McpClient(served.url, served.http)
    for method, body in (("POST", INITIALIZE), ("GET", None), ("DELETE", None)):
        answer = await nobody.ask(method, body)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        assert where in answer.headers["WWW-Authenticate"]
    nobody.token = "stale"
    answer = await nobody.post(INITIALIZE, "/mcp/workshop")
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert '/oauth-protected-resource/mcp/workshop"' in answer.headers["WWW-Authenticate"]


async def test_the_metadata_name_the_resource_and_who_gives_out_tokens() -> None:
    async with served_gateway(public_url="https://bot.example") as served:
        nobody = McpClient(served.url, served.http)
        expected = {
            "": "https://bot.example/mcp",
            "/mcp": "https://bot.example/mcp",
            "/mcp/workshop": "https://bot.example/mcp/workshop",
        }
        for path, resource in expected.items():
            answer = await nobody.ask("GET", path=f"/.well-known/oauth-protected-resource{path}")
            assert answer.json == {
                "resource": resource,
                "resource_name": "Countersign",
                "authorization_servers": ["https://id.example"],
                "scopes_supported": ["read", "run"],
                "bearer_methods_supported": ["header"],
            }


async def test_without_an_issuer_nothing_leads_clients_away_from_the_token_that_they_were_given() -> None:
    async with served_gateway(issuer=None) as served:
        nobody = McpClient(served.url, served.http)
        for path in ("", "/mcp", "/mcp/workshop"):
            assert (await nobody.ask("GET", path=f"/.well-known/oauth-protected-resource{path}")).status == 404
        answer = await nobody.post(INITIALIZE)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer scope="run"')


async def test_a_token_for_reading_lists_and_calls_nothing(served: ServedGateway) -> None:
    client = await served.client(ANA, "read").initialized()
    assert (await client.post(LIST)).status == 200
    answer = await client.post(CALL)
    assert answer.status == 403
    assert 'error="insufficient_scope", scope="run"' in answer.headers["WWW-Authenticate"]
    assert "resource_metadata=" in answer.headers["WWW-Authenticate"]
    assert not served.tool.started.is_set()
    assert (await served.client(ANA, "approve").post(INITIALIZE)).status == 403


async def test_pages_of_other_sites_may_not_ask_and_listed_ones_may(client: McpClient) -> None:
    answer = await client.post(LIST, Origin="https://evil.example")
    assert (answer.status, "Access-Control-Allow-Origin" in answer.headers) == (403, False)
    answer = await client.post(LIST, Origin=PAGE)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
    assert "Mcp-Session-Id" in answer.headers["Access-Control-Expose-Headers"]
    answer = await client.ask("OPTIONS", Origin=PAGE)
    allowed = answer.headers["Access-Control-Allow-Headers"]
    assert answer.status == 204
    assert all(name in allowed for name in ("Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "Authorization"))


async def test_whoever_sits_at_the_machine_needs_no_token_and_a_page_that_took_its_name_does() -> None:
    async with served_gateway(local=ANA) as served:
        client = await McpClient(served.url, served.http).initialized()
        assert (await client.post(LIST)).status == 200
        assert (await client.post(LIST, Host="evil.example")).status == 401
        assert (await client.post(LIST, X_Forwarded_For="203.0.113.7")).status == 401
        assert (await client.post(LIST, Sec_Fetch_Site="cross-site")).status == 401


# ------------------------------------------------------------------------------------------------ what is delivered


async def test_a_result_counts_as_delivered_when_all_of_it_was_written(
    served: ServedGateway, client: McpClient
) -> None:
    served.tool.text = "x" * 3_000_000
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        assert served.delivered == []
        served.tool.may_answer.set()
        assert (await response.read()).count(b"x") >= 3_000_000
    assert served.delivered == ["call7"]


async def test_a_client_that_goes_away_ends_the_wait_and_gets_nothing_delivered(
    served: ServedGateway, client: McpClient
) -> None:
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        response.close()
    await within(served.tool.given_up)
    assert served.delivered == []


async def test_a_result_that_was_not_all_taken_is_not_delivered(
    served: ServedGateway, client: McpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.shared.asgi.WRITE_SECONDS", 0.2)
    served.tool.text = "x" * 30_000_000
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        served.tool.may_answer.set()
        await response.content.readany()
        await asyncio.sleep(0.5)  # the client takes nothing for longer than it may
        response.close()
    assert served.delivered == []
    assert (await client.post(LIST)).status == 200


async def test_a_client_that_does_not_wait_any_more_ends_the_request_alone(
    served: ServedGateway, client: McpClient
) -> None:
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
        bens = await served.client(BEN).initialized()
        assert (await bens.post(cancelled)).status == 202
        assert not served.tool.given_up.is_set()
        assert (await client.post(cancelled)).status == 202
        await within(served.tool.given_up)
        assert await next_message(response) is None
    assert served.delivered == []


async def test_the_wait_ends_with_the_token(served: ServedGateway, client: McpClient) -> None:
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        served.tokens.people.clear()
        await within(served.tool.given_up)
        assert await next_message(response) is None
    assert served.delivered == []


async def test_at_the_end_whoever_waits_is_told_how_to_go_on(served: ServedGateway, client: McpClient) -> None:
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        ending = asyncio.create_task(served.end())
        assert (await next_message(response))["result"]["content"][0]["text"] == "call again"
        await ending
    assert served.delivered == []


async def test_at_the_end_a_request_that_does_not_end_is_ended(served: ServedGateway, client: McpClient) -> None:
    served.tool.heeds_the_end = False
    async with client.begun(CALL) as response:
        await within(served.tool.started)
        async with asyncio.timeout(15.0):
            await served.end()
        assert await next_message(response) is None
    await within(served.tool.given_up)
    assert served.delivered == []


# ---------------------------------------------------------------------------------------------------- the stream


async def test_the_stream_tells_that_tools_have_changed_once_for_all_at_a_time(
    served: ServedGateway, client: McpClient
) -> None:
    async with client.stream() as every, client.stream("/mcp/workshop") as only:
        for stream in (every, only):
            assert (stream.status, stream.content_type) == (200, "text/event-stream")
            await stream.content.readline()
        served.listeners.changed("elsewhere")
        served.listeners.changed("elsewhere")
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert await next_message(every) == changed
        served.listeners.changed("workshop")
        assert await next_message(only) == changed
        assert await next_message(every) == changed
        await served.end()
        assert [await next_message(every), await next_message(only)] == [None, None]


async def test_the_stream_says_that_it_is_still_there(
    served: ServedGateway, client: McpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "HEARTBEAT_SECONDS", 0.01)
    async with asyncio.timeout(WITHIN), client.stream() as stream:
        for _ in range(3):
            assert await stream.content.readline() == b": still here\n"
            assert await stream.content.readline() == b"\n"


async def test_the_stream_ends_with_the_token(served: ServedGateway, client: McpClient) -> None:
    async with client.stream() as stream:
        await stream.content.readline()
        served.tokens.people.clear()
        with pytest.raises(aiohttp.ClientError):  # cut
            async with asyncio.timeout(WITHIN):
                await stream.read()


async def test_one_person_has_only_so_many_streams(served: ServedGateway, client: McpClient) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(receiver.MOST_STREAMS):
            stream = await stack.enter_async_context(client.stream())
            assert stream.status == 200
        assert (await client.ask("GET")).status == 429
        bens = await served.client(BEN).initialized()
        async with bens.stream() as stream:
            assert stream.status == 200


async def test_a_stream_needs_a_session_and_a_client_that_takes_one(client: McpClient) -> None:
    assert (await client.ask("GET", Accept="application/json")).status == 406
    client.session = ""
    assert (await client.ask("GET")).status == 400
    client.session = base64.b64encode(b"x" * 80).decode()
    assert (await client.ask("GET")).status == 404
