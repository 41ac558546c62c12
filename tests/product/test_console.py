"""What operators see over the API of a whole product: what waits, and all that happened in a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from mcp.types import TextContent

from tests.api.contract_clients import Caller, http, token, with_tokens
from tests.fakes.openai_server import Reply, Request, fake_openai
from tests.gateway.agents import agent, deciding
from tests.product.test_audit import RULES
from tests.product.test_plans import BEN_DECIDES, stand
from tests.support.brain import obedient
from tests.support.fixtures import connect
from tests.support.planning import planning, with_worker
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import change_records
from tests.support.tools import Workshop
from tests.support.visitor import WITHIN, Thread, visiting

ASKS_FOR_ALL = """
version: 1
rules:
  - {name: makers ask, match: {tool: "make*"}, decide: ask, approvers: [requester]}
"""

KILLS_THE_PROCESS = """
INSERT INTO deliveries (key, thread_id, kind, body, urgent, accepted_at, due_at, status, tries)
SELECT 'resume:' || approval_id, began.thread_id, 'resume', began.body, began.urgent, accepted_at, due_at, 'waiting', 99
FROM deliveries AS began JOIN approvals ON approvals.thread_id = began.thread_id WHERE began.kind = 'call'
"""
"""What goes on with the call of another agent has killed it again and again."""


@pytest.fixture
def home(workshop_home: ProductFolder) -> ProductFolder:
    """A product whose operator is Olga."""
    workshop_home.policy(RULES)
    workshop_home.variables["OPERATORS"] = "web:olga"
    return with_tokens(workshop_home)


@asynccontextmanager
async def at_work(home: ProductFolder) -> AsyncIterator[tuple[Thread, Caller]]:
    """Ana in a conversation, and Olga at the API."""
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread, http() as connections:
        yield thread, Caller(url, connections, token("olga"))


async def once_it_rests(olga: Caller, **which: str) -> dict[str, Any]:
    """A turn, once nothing of it runs: what it asks is shown a moment before."""
    async with asyncio.timeout(WITHIN):
        while (turn := await whole_turn(olga, **which))["turn"]["status"] == "running":
            await asyncio.sleep(0.02)
    return turn


async def listed_turn(olga: Caller, **which: str) -> dict[str, Any]:
    """The only turn that a list has so."""
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in which.items())
    (listed,) = (await olga.get(f"/api/v1/operator/turns?{query}")).body["turns"]
    return listed


async def whole_turn(olga: Caller, **which: str) -> dict[str, Any]:
    """The only turn that there is so."""
    return await whole_turn_of(olga, (await listed_turn(olga, **which))["id"])


async def whole_turn_of(olga: Caller, turn: str) -> dict[str, Any]:
    """The turn with this id."""
    found = await olga.get(f"/api/v1/operator/turns/{quote(turn, safe='')}")
    assert found.status == 200, found
    return found.body


async def test_a_turn_is_told_from_its_message_to_its_answer(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use look what=lamp; make what=lamp")
        (card,) = await thread.waiting()
        waits = await once_it_rests(olga, card=card["id"])
        await thread.approve(card["id"])
        await thread.says("made lamp")
        ended = await whole_turn(olga, thread_id=thread.thread_id)
    assert waits["turn"]["status"] == "waiting"
    look, make = waits["calls"]
    assert (look["verdict"], look["rule"], look["status"], look["waited"]) == ("allow", "looking is free", "done", None)
    assert (make["verdict"], make["rule"], make["status"]) == ("ask", "makers ask", "waiting")
    assert "makers ask" in make["why"]
    assert (make["arguments"], make["source"][-7:]) == ({"what": "lamp"}, ".yaml:6")
    (_, make) = ended["calls"]
    assert (make["status"], make["arguments"], make["attempts"]) == ("done", {"what": "lamp"}, 1)
    assert "made lamp" in make["result"]
    assert make["waited"] > 0
    assert ended["turn"] | {"at": 0, "id": ""} == {
        "id": "",
        "thread_id": thread.thread_id,
        "platform": "web",
        "channel": "",
        "kind": "message",
        "person_id": "web:ana",
        "person": "Ana",
        "text": "use look what=lamp; make what=lamp",
        "files": [],
        "at": 0,
        "status": "ended",
        "cause": "",
        "reference": waits["turn"]["reference"],
    }
    kinds = [event["kind"] for event in ended["events"] if event["call_id"] in {"", make["call_id"]}]
    assert kinds[0] == "message"
    assert [kind for kind in kinds if kind in {"asked", "vote", "settled", "began", "ended"}] == [
        "asked",
        "vote",
        "settled",
        "began",
        "ended",
    ]
    assert kinds[-1] == "said"
    (model,) = ended["models"]
    assert (model["calls"], model["agent"]) == (2, "default")
    assert ended["total"]["input_tokens"] == model["input_tokens"] > 0


async def test_a_turn_and_its_line_in_the_list_name_the_files_that_came_with_the_message(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        file = (await thread.visitor.upload("hand\u202ebook.txt", b"Leave is 28 days.")).body["id"]
        await thread.send("", files=[file])
        await thread.says("You said")
        listed = await listed_turn(olga, thread_id=thread.thread_id)
        whole = await whole_turn_of(olga, listed["id"])
    assert (listed["text"], listed["files"]) == ("", ["hand⟨U+202E⟩book.txt"])
    assert whole["turn"]["files"] == listed["files"]


async def test_a_turn_says_who_approved_a_call_with_other_arguments(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"], values={"what": "chair", "count": "3"})
        await thread.says("made chair")
        turn = await whole_turn(olga, thread_id=thread.thread_id)
    votes = [(event["person"], event["what"]) for event in turn["events"] if event["kind"] == "vote"]
    assert votes == [("Ana", "edited")]
    assert turn["calls"][0]["arguments"] == {"what": "chair", "count": 3}


async def test_a_turn_says_what_became_of_the_tasks_of_its_plan(home: ProductFolder, shop: Workshop) -> None:
    async with fake_openai(planning) as model:
        with_worker(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("plan a: use look what=chair, b: unlucky")
            await thread.says("results")
            (plan,) = thread.contents("plan")
            turn = await whole_turn(olga, card=plan["id"])
    tasks = [(event["text"], event["what"]) for event in turn["events"] if event["kind"] == "task"]
    assert sorted(tasks) == [
        ("a · worker", "done"),
        ("a · worker", "running"),
        ("b · worker", "failed"),
        ("b · worker", "running"),
    ]


async def test_a_turn_says_who_stopped_it_in_the_middle_of_a_call(home: ProductFolder, shop: Workshop) -> None:
    home.policy(ASKS_FOR_ALL)
    async with at_work(home) as (thread, olga):
        await thread.send("hello")
        await thread.says("you said: hello")
        await thread.send("use make_slowly what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        await shop.started.wait()
        await thread.send("and a vase")
        await thread.stop()
        await thread.notice("Stopped.")
        (_, stopped, greeted) = (await olga.get(f"/api/v1/operator/turns?thread_id={thread.thread_id}")).body["turns"]
        turn, before = await whole_turn_of(olga, stopped["id"]), await whole_turn_of(olga, greeted["id"])
    told = [(each["kind"], each["what"], each["person"]) for each in turn["events"]]
    assert told[-3:] == [("began", "", ""), ("stopped", "turn", "Ana"), ("ended", "unknown", "")]
    assert [each["kind"] for each in before["events"]] == ["message", "said"], "it had ended"


async def test_a_turn_names_nobody_for_a_sign_in_that_was_replaced(home: ProductFolder) -> None:
    home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    async with at_work(home) as (thread, olga):
        await thread.send("use make_with_account what=lamp")
        await thread.until(lambda: thread.contents("sign_in"), "a sign-in")
        await thread.send("hello")
        await thread.says("You said")
        (*_, listed) = (await olga.get(f"/api/v1/operator/turns?thread_id={thread.thread_id}")).body["turns"]
        turn = await whole_turn_of(olga, listed["id"])
    told = [
        (each["kind"], each["what"], each["person"]) for each in turn["events"] if each["kind"] in {"asked", "settled"}
    ]
    assert told == [("asked", "sign_in", "Ana"), ("settled", "superseded", "")]


async def test_each_card_leads_to_its_turn(home: ProductFolder) -> None:
    home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    turns = {}
    async with at_work(home) as (thread, olga):
        for text, kind in (
            ("use make what=lamp", "change"),
            ("use make_with_account what=lamp", "sign_in"),
            ("ask lamp", "clarification"),
        ):
            await thread.send(text)
            (card,) = await thread.until(partial(thread.contents, kind), f"a card: {kind}")
            turns[text] = (await listed_turn(olga, card=card["id"]))["text"]
    assert turns == {text: text for text in turns}


async def test_a_call_that_was_not_made_is_told_with_the_reason(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use delete what=lamp")
        await thread.says("Nothing is deleted here.")
        turn = await whole_turn(olga, person="web:ana")
    (call,) = turn["calls"]
    assert (call["status"], call["ended"], call["verdict"], call["rule"]) == (
        "not made",
        "denied",
        "deny",
        "no deleting",
    )
    assert "Nothing is deleted here." in call["result"]
    assert [event["what"] for event in turn["events"] if event["kind"] == "not made"] == ["denied"]


async def test_what_waits_is_told_to_operators_alone_and_the_log_says_so(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        waiting = (await olga.get("/api/v1/operator/waiting")).body
        others = [
            (await Caller(olga.url, olga.http, token("ben")).get(path)).status
            for path in ("/api/v1/operator/waiting", "/api/v1/operator/turns", f"/api/v1/operator/turns/{card['id']}")
        ]
        log = (await olga.get("/api/v1/audit")).body["entries"]
    assert others == [403, 403, 403]
    (approval,) = waiting["approvals"]
    assert (approval["id"], approval["rule"], approval["requester"]) == (card["id"], "makers ask", "Ana")
    assert approval["for_whom"] == "Ana"
    assert waiting["by_rule"] == [{"rule": "makers ask", "count": 1, "since": approval["asked_at"]}]
    assert [each["entry"]["settled"]["choice"] for each in log] == [
        "looked at what waits for everybody",
        "looked at the audit log",
    ]


async def test_a_failed_turn_is_found_by_the_reference_that_its_author_was_told(home: ProductFolder) -> None:
    async with fake_openai(lambda _: Reply(text="word1", finish_reason="content_filter")) as broken:
        home.variables["OPENAI_BASE_URL"] = broken.base_url
        async with at_work(home) as (thread, olga):
            await thread.send("hello")
            told = await thread.notice("(Reference ")
            reference = told.rpartition("Reference ")[2].rstrip(").")
            turn = await whole_turn(olga, reference=reference)
    assert (turn["turn"]["status"], turn["turn"]["reference"]) == ("failed", reference)
    assert turn["turn"]["cause"] == "language model: filtered"
    assert [event["text"] for event in turn["events"] if event["kind"] == "notice"] == [told]


def fails_after_calls(request: Request) -> Reply:
    """What no answer comes of, once a call or a question has an end."""
    if request["messages"][-1]["role"] == "tool":
        return Reply(text="word1", finish_reason="content_filter")
    return obedient(request)


async def reference_told(thread: Thread) -> str:
    """The reference of the failure that people are told of."""
    return (await thread.notice("(Reference ")).rpartition("Reference ")[2].rstrip(").")


async def test_a_turn_that_fails_after_an_approval_is_found_by_the_reference_and_says_so(
    home: ProductFolder, shop: Workshop
) -> None:
    async with fake_openai(fails_after_calls) as model:
        connect(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("use make what=lamp")
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
            told = await thread.notice("(Reference ")
            reference = told.rpartition("Reference ")[2].rstrip(").")
            turn = await whole_turn(olga, reference=reference)
            listed = await listed_turn(olga, card=card["id"])
    assert turn["turn"] == listed
    assert (listed["text"], listed["status"], listed["reference"]) == ("use make what=lamp", "failed", reference)
    assert listed["cause"] == "language model: filtered"
    assert [event["text"] for event in turn["events"] if event["kind"] == "notice"] == [told]


async def test_a_turn_that_fails_after_nobody_has_decided_is_found_by_the_reference_and_says_so(
    home: ProductFolder, shop: Workshop
) -> None:
    home.policy(RULES.replace("24h", "1s"))
    async with fake_openai(fails_after_calls) as model:
        connect(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("use make what=lamp")
            reference = await reference_told(thread)
            turn = await whole_turn(olga, reference=reference)
            listed = await listed_turn(olga, thread_id=thread.thread_id)
            message = f"/api/v1/threads/{thread.thread_id}/messages/{listed['id']}"
            own = await Caller(olga.url, olga.http, token("ana")).get(message)
    assert turn["turn"] == listed
    assert (listed["text"], listed["status"], listed["reference"]) == ("use make what=lamp", "failed", reference)
    assert [event["what"] for event in turn["events"] if event["kind"] == "notice"] == ["error"]
    assert reference in str(own.body["notices"]), own.body


async def test_a_turn_that_fails_after_a_written_answer_says_so_and_so_does_the_answer(
    home: ProductFolder, shop: Workshop
) -> None:
    async with fake_openai(fails_after_calls) as model:
        connect(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("ask lamp")
            await thread.question()
            await thread.send("4")
            reference = await reference_told(thread)
            by_reference = (await olga.get(f"/api/v1/operator/turns?reference={reference}")).body["turns"]
            asked = await whole_turn_of(olga, by_reference[1]["id"])
    assert [(each["text"], each["status"], each["reference"]) for each in by_reference] == [
        ("4", "failed", reference),
        ("ask lamp", "failed", reference),
    ]
    assert asked["turn"] == by_reference[1]
    assert [event["what"] for event in asked["events"] if event["kind"] == "notice"] == ["error"]


async def test_a_call_of_another_agent_that_was_given_up_is_found_by_the_reference_that_it_was_told(
    home: ProductFolder,
) -> None:
    home.variables["GATEWAY_WAIT"] = "1s"
    async with at_work(home) as (_, olga), agent(olga.url) as session:
        await session.call_tool("workshop__make", {"what": "lamp"})  # its client is told that it waits
    change_records(home, KILLS_THE_PROCESS)
    async with at_work(home) as (_, olga), agent(olga.url) as session:
        result = await session.call_tool("workshop__make", {"what": "lamp"})
        (told,) = result.content
        assert isinstance(told, TextContent)
        reference = told.text.rpartition("Reference ")[2].rstrip(").")
        turn = await whole_turn(olga, reference=reference)
        (parked,) = (await olga.get("/api/v1/operator/parked")).body["parked"]
    assert (turn["turn"]["kind"], turn["turn"]["status"], turn["turn"]["reference"]) == ("call", "failed", reference)
    assert (parked["reference"], parked["cause"]) == (reference, turn["turn"]["cause"])


async def test_a_turn_runs_after_a_written_answer_until_it_has_ended(home: ProductFolder, shop: Workshop) -> None:
    asked_again, held = asyncio.Event(), asyncio.Event()

    async def is_slow_after_calls(request: Request) -> Reply:
        if request["messages"][-1]["role"] == "tool":
            asked_again.set()
            await held.wait()
        return obedient(request)

    async with fake_openai(is_slow_after_calls) as model:
        connect(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("ask lamp")
            await thread.question()
            await thread.send("4")
            await asked_again.wait()
            running = (await olga.get("/api/v1/operator/turns")).body["turns"]
            held.set()
            await thread.says("Results")
            await once_it_rests(olga, person="web:ana")
            ended = await listed_turn(olga, person="web:ana")
    assert [(each["text"], each["status"]) for each in running] == [("4", "running"), ("ask lamp", "running")]
    assert (ended["text"], ended["status"]) == ("ask lamp", "ended")


async def test_the_turns_of_a_person_are_each_on_one_page_whoever_works_on_them(
    home: ProductFolder, shop: Workshop
) -> None:
    texts = ["one", "plan a: use look what=chair, b: use look what=lamp", "two"]
    async with fake_openai(planning) as model:
        with_worker(home, shop, model)
        async with at_work(home) as (thread, olga):
            for text, answer in zip(texts, ("said: one", "results", "said: two"), strict=True):
                await thread.send(text)
                await thread.says(answer)
            pages, before = [], ""
            for _ in texts:
                page = (await olga.get(f"/api/v1/operator/turns?person=web:ana&limit=1&before={before}")).body
                pages.append([each["text"] for each in page["turns"]])
                before = page["next"]
    assert (pages, before) == ([[text] for text in reversed(texts)], "")


async def test_the_turns_of_a_person_have_those_in_which_no_model_has_answered(home: ProductFolder) -> None:
    asked, held = asyncio.Event(), asyncio.Event()

    async def fails_then_is_slow(request: Request) -> Reply:
        if request["messages"][-1]["content"] == "fail":
            return Reply(status=401, error={"code": "invalid_api_key", "message": "Incorrect key"})
        asked.set()
        await held.wait()
        return Reply(text="done")

    home.variables["LIMIT_TURNS_PER_MINUTE"] = "2"
    async with fake_openai(fails_then_is_slow) as model:
        home.variables["OPENAI_BASE_URL"] = model.base_url
        async with at_work(home) as (thread, olga), agent(olga.url) as session:
            await session.call_tool("workshop__look", {"what": "lamp"})
            await thread.send("fail")
            await thread.notice("(Reference ")
            await thread.send("be slow")
            await asked.wait()
            running = await of_ana(olga)
            held.set()
            await thread.says("done")
            await thread.send("too many")
            await thread.until(lambda: len(thread.notices) > 1, "that it is too much")
            ended = await of_ana(olga)
            first = await olga.get("/api/v1/operator/turns?person=web:ana&limit=2")
            rest = await olga.get(f"/api/v1/operator/turns?person=web:ana&before={first.body['next']}")
    assert running == [("be slow", "running"), ("fail", "failed"), ("", "ended")]
    assert ended == [("too many", "ended"), ("be slow", "ended"), ("fail", "failed"), ("", "ended")]
    assert [each["text"] for each in (*first.body["turns"], *rest.body["turns"])] == [text for text, _ in ended]


async def test_the_turns_of_a_person_have_those_that_a_budget_refused(home: ProductFolder) -> None:
    home.variables["LIMIT_TOKENS_PER_DAY"] = "1"
    async with at_work(home) as (thread, olga):
        await thread.send("one")
        await thread.says("said: one")
        await thread.send("two")
        await thread.says("You have used today’s 1 tokens.")
        await thread.send("three")
        await thread.until(lambda: len(thread.said) == 3, "the same again, and the turn before has ended")
        found = await of_ana(olga)
    assert [text for text, _ in found] == ["three", "two", "one"]


async def of_ana(olga: Caller) -> list[tuple[str, str]]:
    """What Ana's turns began with, and how they stand, the newest first."""
    return [
        (each["text"], each["status"])
        for each in (await olga.get("/api/v1/operator/turns?person=web:ana")).body["turns"]
    ]


async def test_a_cause_that_quotes_a_secret_is_shown_without_it(home: ProductFolder) -> None:
    key = home.variables["OPENAI_API_KEY"] = "whatever-a-gateway-takes-for-a-key"

    def refuses(_request: Request) -> Reply:
        return Reply(status=401, error={"code": "invalid_api_key", "message": f"Unknown: {key}"})

    async with fake_openai(refuses) as model:
        home.variables["OPENAI_BASE_URL"] = model.base_url
        async with at_work(home) as (thread, olga):
            await thread.send("hello")
            await thread.notice("(Reference ")
            (turn,) = (await olga.get("/api/v1/operator/turns")).body["turns"]
    assert "Unknown: " in turn["cause"]
    assert key not in turn["cause"]


async def test_the_turns_of_a_person_have_the_calls_of_other_agents_also_once_their_results_are_forgotten(
    home: ProductFolder,
) -> None:
    home.policy(BEN_DECIDES)
    async with at_work(home) as (_, olga), agent(olga.url) as session, deciding(olga.url, "ben") as ben:
        await session.call_tool("workshop__look", {"what": "lamp"})
        making = asyncio.create_task(session.call_tool("workshop__make", {"what": "lamp"}))
        await ben.approve(*await ben.asked())
        await making
        before = (await olga.get("/api/v1/operator/turns?person=web:ana")).body["turns"]
    change_records(home, "DELETE FROM gateway_calls WHERE forgotten_at IS NOT NULL")
    async with at_work(home) as (_, olga):
        await olga.get("/api/v1/operator/audit?person=ana")  # by now it can be found who asked
        first = (await olga.get("/api/v1/operator/turns?person=web:ana&limit=1")).body
        rest = (await olga.get(f"/api/v1/operator/turns?person=web:ana&before={first['next']}")).body
        of_ben = (await olga.get("/api/v1/operator/turns?person=web:ben")).body["turns"]
    assert [*first["turns"], *rest["turns"]] == before
    assert [each["kind"] for each in before] == ["call", "call"]
    assert of_ben == [], "he has decided, and not asked"


async def test_the_turns_of_a_person_have_those_that_a_version_answered_which_kept_no_usage(
    home: ProductFolder,
) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use look what=lamp")
        await thread.says("lamp")
        await thread.send("use make what=chair")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        await thread.says("made chair")
        before = (await olga.get("/api/v1/operator/turns?person=web:ana")).body["turns"]
    change_records(home, "DELETE FROM model_usage")
    async with at_work(home) as (thread, olga):
        await olga.get("/api/v1/operator/audit?person=ana")  # by now it can be found who asked
        just_upgraded = (await olga.get("/api/v1/operator/turns?person=web:ana")).body["turns"]
        await thread.send("use look what=table")
        await thread.says("table")
        first = (await olga.get("/api/v1/operator/turns?person=web:ana&limit=2")).body
        rest = (await olga.get(f"/api/v1/operator/turns?person=web:ana&before={first['next']}")).body
        of_olga = (await olga.get("/api/v1/operator/turns?person=web:olga")).body["turns"]
    texts = ["use make what=chair", "use look what=lamp"]
    assert [each["text"] for each in before] == texts
    assert [each["text"] for each in just_upgraded] == texts
    assert [each["text"] for each in (*first["turns"], *rest["turns"])] == ["use look what=table", *texts]
    assert of_olga == []


async def test_a_turn_in_which_somebody_is_asked_something_waits_until_they_have_answered(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("ask lamp")
        question = await thread.question()
        waits = await once_it_rests(olga, thread_id=thread.thread_id)
        listed = await listed_turn(olga, thread_id=thread.thread_id)
        assert (await thread.answer_form(question["id"], {"size": 4})).status == 200
        await thread.until(lambda: thread.said, "an answer")
        ended = await once_it_rests(olga, thread_id=thread.thread_id)
        listed_later = await listed_turn(olga, thread_id=thread.thread_id)
    assert [each["turn"]["status"] for each in (waits, ended)] == ["waiting", "ended"]
    assert [each["status"] for each in (listed, listed_later)] == ["waiting", "ended"]


async def test_a_turn_runs_in_lists_too_while_a_call_is_made_that_people_have_approved(
    home: ProductFolder, shop: Workshop
) -> None:
    home.policy(ASKS_FOR_ALL)
    async with at_work(home) as (thread, olga):
        await thread.send("use make_slowly what=lamp; make what=vase")
        slow = next(each for each in await thread.waiting(2) if "slowly" in str(each))
        await thread.approve(slow["id"])
        await shop.started.wait()
        runs = await whole_turn(olga, thread_id=thread.thread_id)
        listed = await listed_turn(olga, thread_id=thread.thread_id)
        shop.may_end.set()
        await once_it_rests(olga, thread_id=thread.thread_id)
        waits = await listed_turn(olga, thread_id=thread.thread_id)
    assert runs["turn"]["status"] == listed["status"] == "running"
    assert waits["status"] == "waiting", "for the other call"


async def test_a_turn_runs_as_long_as_a_task_of_its_plan_does(home: ProductFolder, shop: Workshop) -> None:
    held = asyncio.Event()

    async def works(request: Request) -> Reply:
        if str(request["messages"][-1]["content"]).startswith("think"):
            await held.wait()
        return planning(request)

    async with fake_openai(works) as model:
        with_worker(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("plan think: think, look: use look what=chair")
            await stand(thread, think="running", look="done")
            runs = await whole_turn(olga, thread_id=thread.thread_id)
            listed = await listed_turn(olga, thread_id=thread.thread_id)
            held.set()
            await thread.says("results")
    assert runs["turn"]["status"] == listed["status"] == "running"


async def test_the_turn_of_a_task_waits_as_that_of_its_plan_does(home: ProductFolder, shop: Workshop) -> None:
    async with fake_openai(planning) as model:
        with_worker(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("plan check: use make what=chair, look: use look what=chair")
            await stand(thread, check="waiting", look="done")
            async with asyncio.timeout(WITHIN):
                while "running" in (listed := await statuses(olga)).values():
                    await asyncio.sleep(0.02)
            whole = {name: await whole_turn_of(olga, name) for name in listed}
            alone = {name: turn["turn"]["status"] for name, turn in whole.items()}
    assert sorted(listed.values()) == ["ended", "waiting", "waiting"]
    assert [status for name, status in listed.items() if name.endswith("/check")] == ["waiting"]
    assert alone == listed
    used = {name.rpartition("/")[2]: turn["total"]["calls"] for name, turn in whole.items() if "/" in name}
    assert used == {"check": 1, "look": 2}
    (of_plan,) = (turn["total"]["calls"] for name, turn in whole.items() if "/" not in name)
    assert of_plan == 4, "with that of its tasks"


async def statuses(olga: Caller) -> dict[str, str]:
    """How each turn stands, by its id, as a list says it."""
    return {each["id"]: each["status"] for each in (await olga.get("/api/v1/operator/turns")).body["turns"]}


async def test_the_turn_of_a_task_that_failed_has_failed_and_says_why(home: ProductFolder, shop: Workshop) -> None:
    async with fake_openai(planning) as model:
        with_worker(home, shop, model)
        async with at_work(home) as (thread, olga):
            await thread.send("plan bad: unlucky, look: use look what=chair")
            await thread.says("results")
            turns = (await olga.get("/api/v1/operator/turns")).body["turns"]
    stand_so = {each["text"]: each["status"] for each in turns}
    assert stand_so["unlucky"] == "failed"
    assert next(each["cause"] for each in turns if each["text"] == "unlucky").startswith("language model: wrong key")
    assert stand_so["use look what=chair"] == "ended"


async def test_an_edit_is_told_as_a_vote_before_what_it_settles(home: ProductFolder) -> None:
    async with at_work(home) as (thread, olga):
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"], values={"what": "vase"})
        await thread.says("made vase")
        turn = await once_it_rests(olga, card=card["id"])
    kinds = [event["kind"] for event in turn["events"] if event["call_id"]]
    assert kinds == ["asked", "vote", "settled", "began", "ended"]
