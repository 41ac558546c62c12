"""A conversation belongs to whoever began it: what others get at every address of the page, and what they see."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from yarl import URL

from tests.product.test_audit import log_of
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry
from tests.support.visitor import Answer, Json, Thread, Visitor, new_thread, visiting
from tests.web.issuer import GivenIssuer
from tests.web.serving import serve

REQUESTER_DECIDES = """
version: 1
rules:
  - {name: looking is free, match: {tool: look}, decide: allow}
  - {name: the requester decides, match: {}, decide: ask, approvers: [requester], alwaysAllow: true}
"""
BEN_DECIDES = REQUESTER_DECIDES.replace("[requester]", '["web:ben"]')


class Access(NamedTuple):
    """Who gets something at a route, and what somebody else gets who is signed in, about a thing of Ana's."""

    whose: str
    stranger: int
    thing: str = ""
    body: Any = None


CLICK = {"id": "c1"}
ROUTES = {
    "GET /": Access("everybody's", 200),
    "GET /static/{name}": Access("everybody's", 200, "file"),
    "GET /static/{version}/{name}": Access("everybody's", 200, "file"),
    "GET /api/session": Access("one's own", 200),
    "POST /api/session": Access("one's own", 403, body={"person": "web:ana"}),
    "DELETE /api/session": Access("one's own", 403),
    "POST /login": Access("everybody's", 404, body={"username": "ana", "password": "guessed-it"}),
    "POST /register": Access("everybody's", 404, body={"username": "ana", "password": "guessed-it"}),
    "POST /logout": Access("one's own", 403),
    "GET /login/oidc": Access("everybody's", 404),
    "GET /login/oidc/callback": Access("everybody's", 404),
    "GET /api/threads": Access("one's own; with of=everybody, an operator's", 200),
    "GET /api/threads/search": Access("one's own", 400),
    "POST /api/threads/{id}/title": Access("the owner's", 404, "thread", CLICK | {"title": "Mine now"}),
    "POST /api/threads/{id}/deletion": Access("the owner's", 404, "thread", CLICK),
    "GET /api/events": Access("the owner's; an operator's; in part whoever's who may decide in it", 404, "stream"),
    "POST /api/threads/{id}/messages": Access("the owner's", 404, "thread", CLICK | {"text": "hello"}),
    "POST /api/threads/{id}/stop": Access("the owner's", 404, "thread", CLICK),
    "POST /api/approvals/decisions": Access("whoever's who may decide it", 403, "decision"),
    "GET /api/approvals/decided": Access("one's own", 200),
    "POST /api/approvals/{id}/handover": Access(
        "whoever's who may decide it", 403, "approval", CLICK | {"to": "web:ben"}
    ),
    "POST /api/approvals/{id}/withdrawal": Access("the requester's", 403, "approval", CLICK),
    "POST /api/approvals/{id}/retry": Access("the requester's", 403, "approval", CLICK),
    "GET /api/approvals/{id}/colleagues": Access("whoever's who may ask others about it", 200, "approval"),
    "POST /api/approvals/{id}/look": Access("whoever's who may decide it", 403, "approval", CLICK),
    "GET /api/approvals/{id}/together": Access("those that one may decide", 200, "approval"),
    "GET /api/approvals/{id}/arguments": Access("whoever's who sees the card", 404, "approval"),
    "GET /api/approvals/{id}/form": Access("whoever's who may decide it", 403, "approval"),
    "GET /api/grants": Access("one's own", 200),
    "GET /api/grants/{id}/arguments": Access("the giver's", 404, "grant"),
    "DELETE /api/grants/{id}": Access("the giver's", 404, "grant"),
    "POST /api/clarifications/{id}/answer": Access(
        "the requester's", 404, "question", CLICK | {"values": {"size": "3"}}
    ),
    "POST /api/clarifications/{id}/dismissal": Access(
        "the requester's", 404, "question", CLICK | {"action": "decline"}
    ),
    "GET /api/outcomes/{id}/arguments": Access("the owner's", 404, "outcome"),
    "POST /api/outcomes/{id}": Access("the requester's", 404, "outcome", CLICK | {"choice": "skip"}),
    "GET /api/sign-ins/{id}/link": Access("whoever's whose sign-in it is", 404, "sign-in"),
    "POST /api/sign-ins/{id}": Access("whoever's whose sign-in it is", 404, "sign-in", CLICK | {"done": True}),
    "POST /api/sign-ins/{id}/code": Access(
        "whoever's whose sign-in it is", 404, "sign-in", CLICK | {"code": "AAAA-BBBB"}
    ),
    "GET /api/connections": Access("one's own", 200),
    "DELETE /api/connections/{id}": Access("one's own", 404, "connection"),
    "POST /api/connections/{provider}/link": Access("one's own", 404, "provider"),
    "GET /api/memories": Access("one's own", 200),
    "DELETE /api/memories": Access("one's own", 403),
    "DELETE /api/memories/{id}": Access("one's own", 404, "connection"),
    "POST /api/memories/on": Access("one's own", 403, body=CLICK),
    "POST /api/memories/off": Access("one's own", 403, body=CLICK),
    "GET /api/usage": Access("one's own", 200),
    "GET /api/usage/{id}": Access("the requester's, and an operator's, who are told more than null", 200, "answer"),
    "POST /api/files": Access("one's own", 403, body={}),
    "POST /api/agent": Access("one's own", 403, body=CLICK | {"name": "default"}),
    "POST /api/connections/code": Access("one's own", 403, "code", CLICK | {"code": "AAAA-BBBB"}),
}
"""Every address of the page."""


async def test_every_route_of_the_page_says_whose_it_is() -> None:
    async with serve(login="oidc", open_id=GivenIssuer()) as page:
        routes = {f"{route.method} {route.path}" for route in page.receiver.routes()}
    assert routes == set(ROUTES), "a route of the page needs a line in ROUTES, and the other way round"


@pytest.fixture
def home(home: ProductFolder) -> ProductFolder:
    home.policy(REQUESTER_DECIDES)
    return home


async def things_of(ana: Visitor, shop: Workshop, stack: list[str]) -> dict[str, str]:
    """Ids of one thing of each kind in conversations of Ana's; the ids of those are added to `stack`."""
    found = {"file": "app.js", "connection": "none", "provider": "none"}
    async with ana.thread() as asked, ana.thread() as asking, ana.thread() as linked, ana.thread() as lost:
        stack += [each.thread_id for each in (asked, asking, linked, lost)]
        found["thread"] = asked.thread_id
        await asked.send("hello")
        await asked.says("hello")
        found["answer"] = asked.said_ids[-1]
        await lost.send("use make_slowly what=secret-lamp")
        (card,) = await lost.waiting()
        always = {"id": "g", "approvals": [card["id"]], "verb": "approve", "always_for": "8 h"}
        assert (await ana.post("/api/approvals/decisions", always)).status == 200
        await asking.send("ask secret-lamp")
        await linked.send("use make_with_account what=secret-lamp")
        (card,) = await linked.waiting()
        await linked.approve(card["id"])
        await asked.send("use make what=secret-lamp")
        found["approval"] = (await asked.waiting())[0]["id"]
        found["question"] = (await asking.question())["id"]
        found["sign-in"] = (await linked.until(lambda: linked.contents("sign_in")))[0]["id"]
        found["outcome"] = (await lost.until(lambda: lost.contents("outcome")))[0]["id"]
        shop.may_end.set()
    (grant,) = (await ana.get("/api/grants")).body["grants"]
    return found | {"grant": grant["id"]}


async def asked_for(who: Visitor, route: str, access: Access, things: dict[str, str]) -> Answer:
    """What somebody gets at a route, about the thing that its line names."""
    method, path = route.split()
    if "{" in path:
        path = re.sub(r"\{\w+\}", quote(things[access.thing], safe=""), path)
    body = access.body
    if access.thing == "stream":
        path += f"?thread={quote(things['thread'], safe='')}"
    elif access.thing == "decision":
        body = CLICK | {"approvals": [things["approval"]], "verb": "approve"}
    headers = {"X-CSRF-Token": who._csrf} if access.thing else {}  # one's own session is not to end here
    url, headers = f"{who.url}{path}", headers | {"Origin": who.url}
    async with who.http.request(method, URL(url, encoded=True), json=body, headers=headers) as answer:
        is_json = answer.content_type == "application/json"
        return Answer(answer.status, await answer.json() if is_json else {})


async def test_somebody_else_gets_nothing_of_a_conversation_at_any_route(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    threads: list[str] = []
    async with product_here(workshop_home) as url, visiting(url) as ana, visiting(url, "chloe") as chloe:
        things = await things_of(ana, shop, threads)
        got = {route: await asked_for(chloe, route, access, things) for route, access in ROUTES.items()}
        assert {route: answer.status for route, answer in got.items()} == {r: a.stranger for r, a in ROUTES.items()}
        assert got["GET /api/usage/{id}"].body == {"usage": None}
        shown = json.dumps([answer.body for answer in got.values()])
        assert "secret-lamp" not in shown
        assert [each for each in threads if each in shown] == []
        assert (await chloe.get("/api/threads?of=everybody")).status == 404
        async with ana.thread(things["thread"]) as thread:
            assert thread.approvals()[0]["status"] == "pending"


async def test_of_what_others_have_decided_only_those_hear_who_see_it(workshop_product: str) -> None:
    async with (
        visiting(workshop_product) as ana,
        visiting(workshop_product, "ben") as ben,
        ana.thread() as thread,
    ):
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        await thread.card(card["id"], "approved", result="made lamp")
        click = {"id": "late", "approvals": [card["id"]], "verb": "approve"}
        late = await ana.post("/api/approvals/decisions", click)
        assert (late.status, late.body["text"]) == (409, "Already approved by Ana.")
        told = await ben.post("/api/approvals/decisions", click)
        nothing = await ben.post("/api/approvals/decisions", click | {"approvals": ["nothing"]})
        assert (told.status, told.body["text"]) == (404, nothing.body["text"])


class Counting(Thread):
    """Counts how often the whole conversation was sent."""

    wholes = 0

    async def take(self, name: str, event: Json) -> None:
        self.wholes += name == "thread"
        await super().take(name, event)


async def test_a_page_hears_nothing_of_what_is_refused_about_its_conversation(workshop_product: str) -> None:
    async with visiting(workshop_product) as ana, visiting(workshop_product, "ben") as ben:
        page, ready = Counting(new_thread(), ana), asyncio.Event()
        following = asyncio.create_task(page.follow(ready=ready))
        await ready.wait()
        await page.send("hello")
        await page.says("hello")
        before = page.wholes
        address = f"/api/threads/{quote(page.thread_id, safe='')}"
        assert (await ben.post(f"{address}/title", CLICK | {"title": "Mine now"})).status == 404
        assert (await ben.post(f"{address}/deletion", CLICK)).status == 404
        await page.send("good night")
        await page.says("good night")
        assert page.wholes == before
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_of_two_first_messages_under_one_id_one_begins_the_conversation(workshop_product: str) -> None:
    async with visiting(workshop_product) as ana, visiting(workshop_product, "ben") as ben:
        for number in range(5):
            thread_id = new_thread()
            both = [Thread(thread_id, each) for each in (ana, ben)]
            answers = await asyncio.gather(*(each.send(f"hello {number}") for each in both))
            assert sorted(answer.status for answer in answers) == [202, 404]
            owner, other = (ana, ben) if answers[0].status == 202 else (ben, ana)
            assert (await other.get(f"/api/events?thread={quote(thread_id, safe='')}")).status == 404
            async with owner.thread(thread_id) as thread:
                await thread.says(f"you said: hello {number}")
                assert [e["author_id"] for e in thread.entries.values() if e["kind"] == "message"] == [
                    owner.me["person_id"]
                ]


async def test_a_page_that_is_open_where_somebody_else_begins_shows_nothing(
    at_work: Thread, ben_at_work: Thread
) -> None:
    await at_work.send("hello")
    await at_work.says("you said: hello")
    assert (await ben_at_work.send("and me?")).status == 404
    assert (await ben_at_work.visitor.get(f"/api/events?thread={quote(at_work.thread_id, safe='')}")).status == 404
    assert (ben_at_work.entries, ben_at_work.live_texts, set(ben_at_work.statuses)) == ({}, [], {""})


async def test_whoever_may_decide_sees_the_turn_and_its_card_also_afterwards_and_not_what_was_before(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(BEN_DECIDES)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
        ben.thread() as elsewhere,
    ):
        await thread.send("hello, between us")
        await thread.says("between us")
        await thread.send("use make what=lamp")
        (asked,) = await elsewhere.until(lambda: elsewhere.asked, "listed as asked")
        assert (asked["thread_id"], asked["card"]["requester"], asked["card"]["tool"]) == (
            thread.thread_id,
            "Ana",
            "make",
        )
        async with ben.thread(thread.thread_id) as seen:
            (card,) = await seen.waiting()
            assert seen.said == ["On it."]
            assert (await seen.send("from Ben")).status == 404
            await seen.approve(card["id"])
            await seen.card(card["id"], "approved", result="made lamp")
            await seen.says("results: made lamp")
            await thread.says("results: made lamp")
            await thread.send("thank you, between us")
            await thread.until(lambda: len(thread.said) == 3)
            written = [e["text"] for e in seen.entries.values() if e["kind"] == "message"]
            assert written == ["use make what=lamp"]
            assert "between us" not in json.dumps(list(seen.entries.values()))
            assert seen.live_texts == []
        async with ben.thread(thread.thread_id) as again:
            assert "between us" not in json.dumps(list(again.entries.values()))
            assert [c["status"] for c in again.approvals()] == ["approved"]
        await elsewhere.until(lambda: not elsewhere.asked, "nothing is asked any more")
        assert thread.thread_id not in str(await ben.get("/api/threads"))


async def test_an_operator_sees_a_conversation_live_and_the_audit_log_says_so_once(
    workshop_home: ProductFolder,
) -> None:
    workshop_home.variables["OPERATORS"] = "web:chloe"
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "chloe") as chloe,
        ana.thread() as thread,
    ):
        await thread.send("hello")
        await thread.says("you said: hello")
        async with chloe.thread(thread.thread_id) as seen, chloe.thread(thread.thread_id):
            assert seen.said == ["You said: hello"]
            await thread.send("and on")
            await seen.says("you said: and on")
            assert (await seen.send("from Chloe")).status == 404
            assert (await seen.stop()).status == 404
        everybodys = await chloe.get("/api/threads?of=everybody")
        assert [each["thread_id"] for each in everybodys.body["threads"]] == [thread.thread_id]
        assert (await chloe.get("/api/threads")).body["threads"] == []
        looked = [entry for entry in log_of(workshop_home) if entry["status"] == "read"]
        assert sorted((entry["thread"], entry["requester"]) for entry in looked) == [
            ("", "web:chloe"),
            (thread.thread_id, "web:chloe"),
        ]


async def test_deleting_a_conversation_ends_what_waits_in_it_for_everybody(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.tool_servers({"workshop": entry(shop)})
    workshop_home.policy(BEN_DECIDES)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
        ben.thread() as elsewhere,
    ):
        await thread.send("use make what=lamp")
        (asked,) = await elsewhere.until(lambda: elsewhere.asked, "listed as asked")
        address = f"/api/threads/{quote(thread.thread_id, safe='')}/deletion"
        assert (await ben.post(address, CLICK)).status == 404
        assert (await ana.post(address, CLICK)).status == 200
        await elsewhere.until(lambda: not elsewhere.asked, "nothing is asked any more")
        approve = {"id": "late", "approvals": [asked["id"]], "verb": "approve"}
        assert (await ben.post("/api/approvals/decisions", approve)).status in {404, 409}
        assert (await ana.get("/api/threads")).body["threads"] == []
        assert (await thread.send("hello?")).status == 404
    assert shop.done == []
    assert "superseded" in json.dumps(log_of(workshop_home)), "the audit log says what became of the call"
