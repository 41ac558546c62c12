"""The page, served by two processes on one PostgreSQL: here two products in one, each with sockets of its own.

Which of them handles a thread is left to them, so a thread is followed at both, of which one is elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import aiohttp
import psycopg
import pytest
from playwright.async_api import expect

from adapters.shared.live.replicas import OtherReplicas
from adapters.shared.outages import AWAY
from bot.domain import ConversationReference
from bot.records import live_answers
from bot.records import threads as kept_threads
from bot.records.live_answers import LiveAnswer, LiveAnswers
from bot.records.postgresql import postgres_database
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.replicas.processes import replicas
from tests.support.one_way_proxy import BOTH_WAYS, proxied
from tests.support.postgres_cluster import break_connections
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.two_products import share
from tests.support.visitor import Thread, Visitor, new_thread
from tests.support.waiting import at_most_waiting
from tests.web.browsing import CHROMIUM, WITHOUT_CHROMIUM, chromium, window_of

pytestmark = pytest.mark.postgres
POLICY = """
version: 1
rules:
  - name: looking is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: anybody may decide
    match: {tool: make}
    decide: ask
    approvers: [any]
"""
LONG = " ".join(f"word{number}" for number in range(60))


@dataclass
class Pages:
    """What people see at both processes."""

    urls: list[str]
    stack: AsyncExitStack
    sessions: dict[str, list[Visitor]] = field(default_factory=dict)

    async def of(self, person: str, thread_id: str) -> list[Thread]:
        """Follow a thread at both, with one browser session."""
        visitors = self.sessions.get(person) or await self._arrive(person)
        return [await self.stack.enter_async_context(visitor.thread(thread_id)) for visitor in visitors]

    async def _arrive(self, person: str) -> list[Visitor]:
        jar = aiohttp.CookieJar(unsafe=True)
        http = await self.stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
        first, second = (Visitor(url, http) for url in self.urls)
        await first.arrive(f"web:{person}")
        second.me, second._csrf = first.me, first._csrf  # signed in at the one is signed in at the other
        self.sessions[person] = [first, second]
        return [first, second]


@pytest.fixture
def shared_home(workshop_home: ProductFolder) -> ProductFolder:
    workshop_home.policy(POLICY)
    return share(workshop_home)


@pytest.fixture
def address(shared_home: ProductFolder) -> str:
    return shared_home.database


@asynccontextmanager
async def pages_of(home: ProductFolder) -> AsyncIterator[Pages]:
    async with product_here(home) as one, product_here(home) as two, AsyncExitStack() as stack:
        yield Pages([one, two], stack)


@pytest.fixture
async def pages(shared_home: ProductFolder) -> AsyncIterator[Pages]:
    async with pages_of(shared_home) as made:
        yield made


def answers(model: FakeOpenAI, reply: Reply) -> None:
    model._brain = lambda _request: reply


async def both(threads: Sequence[Thread], condition: Any, what: str) -> None:
    await asyncio.gather(*(each.until(lambda each=each: condition(each), what) for each in threads))


# ------------------------------------------------------------------------------------------ posts and messages


async def test_a_conversation_is_the_same_at_both(pages: Pages) -> None:
    thread_id = new_thread()
    at_one, at_two = threads = await pages.of("ana", thread_id)
    await at_two.send("use make what=lamp")
    for thread in threads:
        (card,) = await thread.waiting()
        assert "use make what=lamp" in [e["text"] for e in thread.entries.values() if e["kind"] == "message"]
    assert (await at_one.approve(card["id"]))["kind"] == "settled"
    for thread in threads:
        await thread.card(card["id"], "approved", result="made lamp")
        await thread.says("results: made lamp")
        assert any(thread.statuses)
    # A message is shown where it was sent before it is known when it was kept; and where a page was shown everything
    # anew, no post ends a draft any more.
    unlike: Any = {"at": 0, "ends_draft": None}
    shown = [{name: entry | unlike for name, entry in each.entries.items()} for each in threads]
    assert shown[0] == shown[1]


async def test_the_list_of_threads_and_what_one_is_asked_reach_every_page(pages: Pages) -> None:
    ana = await pages.of("ana", new_thread())
    ben = await pages.of("ben", new_thread())
    await ana[0].send("use make what=lamp")
    (card,) = await ana[0].waiting()
    path = f"/api/approvals/{card['id']}/handover"
    answer = await ana[1].visitor.post(path, {"id": "h1", "to": "web:ben"})
    assert answer.status == 200, answer
    await both(ben, lambda each: [asked["id"] for asked in each.asked] == [card["id"]], "is asked")


async def test_a_new_title_and_a_deletion_reach_every_page(pages: Pages) -> None:
    thread_id = new_thread()
    at_one, at_two = await pages.of("ana", thread_id)
    await at_one.send("hello")
    await both((at_one, at_two), lambda each: each.said, "an answer")
    path = f"/api/threads/{thread_id}"
    assert (await at_one.visitor.post(f"{path}/title", {"id": "r1", "title": "Lamps"})).status == 200
    await at_two.until(lambda: [each["title"] for each in at_two.listed] == ["Lamps"], "the new title")
    async with at_two.visitor.http.get(f"{at_two.visitor.url}/api/events", params={"thread": thread_id}) as stream:
        assert (await at_one.visitor.post(f"{path}/deletion", {"id": "d1"})).status == 200
        async with asyncio.timeout(5):
            await stream.read()


async def test_what_is_for_one_person_reaches_that_person_only(shared_home: ProductFolder) -> None:
    """Rule 7: Ana is told alone that she wrote too much; an operator sees the rest."""
    shared_home.variables |= {"LIMIT_TURNS_PER_MINUTE": "1", "OPERATORS": "web:chloe"}
    async with pages_of(shared_home) as pages:
        thread_id = new_thread()
        ana = await pages.of("ana", thread_id)
        await ana[0].send("hello")
        await both(ana, lambda each: each.said, "an answer")
        chloe = await pages.of("chloe", thread_id)
        await ana[1].send("and again")
        await both(ana, lambda each: each.notices, "a notice")
        await ana[0].send("and once more")
        await both(chloe, lambda each: "and once more" in str(each.entries), "what was written then")
        assert [each.notices for each in chloe] == [[], []]


async def test_whoever_may_decide_follows_the_turn_at_both_and_nobody_else_anything(pages: Pages) -> None:
    thread_id = new_thread()
    ana, ben = await pages.of("ana", thread_id), await pages.of("ben", thread_id)
    await ana[0].send("hello")
    await both(ana, lambda each: each.said, "an answer")
    assert [(await each.send("from Ben")).status for each in ben] == [404, 404]
    assert [each.entries for each in ben] == [{}, {}]
    await ana[1].send("use make what=lamp")
    await both(ben, lambda each: each.approvals("pending"), "the card")
    (card,) = await ben[0].waiting()
    assert (await ben[1].approve(card["id"]))["kind"] == "settled"
    for thread in ben:
        await thread.card(card["id"], "approved", result="made lamp")
        await thread.says("results: made lamp")
        assert "hello" not in str(thread.entries)


async def test_what_was_told_while_nobody_could_hear_is_shown_afterwards(pages: Pages, address: str) -> None:
    threads = await pages.of("ana", new_thread())
    await threads[0].send("hello")
    await both(threads, lambda each: each.said, "an answer")
    break_connections(address)
    while (await threads[0].send("are you there", "m2")).status != 202:
        await asyncio.sleep(0.05)
    await both(threads, lambda each: any("are you there" in said for said in each.said), "the second answer")


async def test_who_leaves_at_one_is_gone_at_the_other(pages: Pages) -> None:
    thread_id = new_thread()
    at_one, at_two = await pages.of("ana", thread_id)
    events = f"{at_two.visitor.url}/api/events"
    async with at_two.visitor.http.get(events, params={"thread": thread_id}) as stream:
        assert (await at_one.visitor.delete("/api/session")).status == 200
        async with asyncio.timeout(5):
            await stream.read()


async def test_who_leaves_at_one_while_the_other_cannot_hear_is_gone_there_afterwards(
    pages: Pages, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 7: what is for one person alone is not shown to whoever has that browser next."""
    thread_id = new_thread()
    at_one, at_two = await pages.of("ana", thread_id)

    async def told_to_nobody(_page: OtherReplicas, _session_id: str) -> None:
        return

    monkeypatch.setattr(OtherReplicas, "session_ended", told_to_nobody)
    events = f"{at_two.visitor.url}/api/events"
    async with at_two.visitor.http.get(events, params={"thread": thread_id}) as stream:
        assert (await at_one.visitor.delete("/api/session")).status == 200
        break_connections(address)
        async with asyncio.timeout(5):
            await stream.read()


# ------------------------------------------------------------------------------------------ while it is written


async def test_an_answer_is_shown_at_both_while_it_is_written(pages: Pages, model: FakeOpenAI) -> None:
    """The page of the process that does not write it is some 0.1 s behind: it is told, and does not find out when it
    looks whether anything is there still, which it does each 2 s."""
    answers(model, Reply(text=LONG, pause=0.02))
    threads = await pages.of("ana", new_thread())
    seen: list[dict[int, float]] = [{}, {}]

    async def watch(thread: Thread, when: dict[int, float]) -> None:
        loop = asyncio.get_running_loop()
        async with thread.changed:
            while not thread.said:
                for _, text in thread.drafts.values():
                    when.setdefault(len(text), loop.time())
                await thread.changed.wait()

    watching = asyncio.gather(*(watch(thread, when) for thread, when in zip(threads, seen, strict=True)))
    await threads[0].send("tell me")
    await watching
    assert all(thread.said == [LONG] for thread in threads)
    assert all(not thread.drafts for thread in threads)
    here, elsewhere = sorted(seen, key=len, reverse=True)
    assert len(elsewhere) > 5
    late = [
        min(at for length, at in elsewhere.items() if length >= wanted) - written_at
        for wanted, written_at in here.items()
        if wanted <= max(elsewhere)
    ]
    assert median(late) < 1.0


async def test_how_far_a_tool_is_is_shown_at_both(pages: Pages, shop: Workshop) -> None:
    """That comes from the tool server's session, which belongs to no thread."""
    threads = await pages.of("ana", new_thread())
    await threads[0].send("use report what=slowlamp")
    await both(threads, lambda each: each.statuses and "half of slowlamp" in each.statuses[-1], "half of it")
    shop.may_end.set()
    await both(threads, lambda each: any("made all of slowlamp" in said for said in each.said), "all of it")


async def test_who_comes_in_the_middle_of_an_answer_sees_its_beginning(pages: Pages, model: FakeOpenAI) -> None:
    answers(model, Reply(text=LONG, pause=0.05))
    thread_id = new_thread()
    at_one, at_two = await pages.of("ana", thread_id)
    await at_one.send("tell me")
    await both([at_one, at_two], lambda each: any(each.drafts.values()), "a draft")
    later = await pages.of("ana", thread_id)
    await both(later, lambda each: any(text.startswith("word0 word1") for _, text in each.drafts.values()), "a draft")
    await both(later, lambda each: each.said == [LONG] and not each.drafts, "the answer")


async def test_nothing_is_kept_of_what_nobody_reads_elsewhere(
    pages: Pages, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    written: list[Any] = []
    write = LiveAnswers.write

    async def noting(self: LiveAnswers, happening: Any, ended: Any) -> None:
        written.append((happening, ended))
        await write(self, happening, ended)

    monkeypatch.setattr(LiveAnswers, "write", noting)
    answers(model, Reply(text=LONG))
    unread, read = new_thread(), new_thread()
    (at_one, _) = await pages.of("ana", read)
    path = f"/api/threads/{unread.replace(':', '%3A')}/messages"
    assert (await at_one.visitor.post(path, {"id": "m1", "text": "hello"})).status == 202
    async with asyncio.timeout(20):
        while not await answered(address, unread):
            await asyncio.sleep(0.02)
    assert not written
    await at_one.send("tell me")
    await at_one.says("word59")
    assert {thread_id for happening, _ in written for thread_id in happening} == {read}
    async with asyncio.timeout(5):
        while kept(address):
            await asyncio.sleep(0.02)


async def answered(address: str, thread_id: str) -> bool:
    async with await psycopg.AsyncConnection.connect(address) as connection:
        cursor = await connection.execute("SELECT 1 FROM posts WHERE thread_id = %s AND kind = 'said'", [thread_id])
        return await cursor.fetchone() is not None


def kept(address: str) -> list[Any]:
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT thread_id, state FROM live_answers").fetchall()


# ------------------------------------------------------------------------------------------ ends


async def test_who_is_sent_away_finds_everything_at_another(
    shared_home: ProductFolder, shop: Workshop, model: FakeOpenAI
) -> None:
    """Rule 1: a process that ends hands over what it does; its pages come back elsewhere and have lost nothing."""
    async with product_here(shared_home) as stays, AsyncExitStack() as stack:
        ending = AsyncExitStack()
        ends = await ending.enter_async_context(product_here(shared_home))
        pages = Pages([ends, stays], stack)
        thread_id = new_thread()
        (leaving, _) = await pages.of("ana", thread_id)
        await leaving.send("use make what=lamp")
        (card,) = await leaving.waiting()
        answers(model, Reply(text=LONG, pause=0.02))
        await leaving.approve(card["id"])
        await leaving.until(lambda: any(leaving.drafts.values()), "a draft")
        leaving.visitor.url = stays  # where it is sent when it comes back
        await ending.aclose()
        await leaving.says("word59")
        await leaving.card(card["id"], "approved", result="made lamp")
        assert shop.done == ["make lamp 1"]
        assert not leaving.drafts


async def test_what_a_dead_process_left_is_not_shown_as_a_live_answer(
    pages: Pages, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown for as long as its process may be alive, which is made short here."""
    thread_id = new_thread()
    database = postgres_database(address, most_connections=2)
    await database.open()
    place = ConversationReference("web", thread_id, {"thread": thread_id}, direct=True)
    async with database.writing_urgently(thread_id) as tx:
        await kept_threads.ensure(tx, thread_id, place, "tell me", time.time(), requester="web:ana")
    answers, claim = LiveAnswers(database), await database.claim(thread_id)
    written = {thread_id: LiveAnswer(claim.epoch, "Thinking…", {"m1": "Half an ans"})}
    await answers.write(written, {})
    threads = await pages.of("ana", thread_id)
    await both(threads, lambda each: [text for _, text in each.drafts.values()] == ["Half an ans"], "a draft")
    monkeypatch.setattr(live_answers, "DEAD_SECONDS", 0.2)
    await both(threads, lambda each: not each.drafts and each.statuses[-1] == "", "nothing")
    later = await pages.of("ana", thread_id)
    assert not any(each.drafts for each in later)
    await database.close()


@pytest.mark.waits
async def test_the_page_goes_on_elsewhere_when_the_process_that_writes_is_killed(
    shared_home: ProductFolder, model: FakeOpenAI
) -> None:
    """Rule 1. Half of the dead process's answer is not left beside the whole one of who takes over."""
    replies = iter([Reply(text=" ".join([LONG] * 6), pause=0.03), Reply(text="Second try, and whole.", pause=0.05)])
    model._brain = lambda _request: next(replies)
    async with replicas(shared_home, shared_home.database) as (one, two), AsyncExitStack() as stack:
        await asyncio.gather(one.up(), two.up())
        http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
        visitors = [Visitor(each.url, http) for each in (one, two)]
        for visitor in visitors:
            await visitor.arrive("web:ana")  # at each, since without TLS their ports name their cookies
        at_one, at_two = await Pages([], stack, {"ana": visitors}).of("ana", new_thread())
        await at_one.send("tell me")

        def parts(thread: Thread) -> int:
            return max((n for n, _ in thread.drafts.values()), default=0)

        await both([at_one, at_two], lambda each: parts(each) >= 10, "a draft")
        # Elsewhere it comes in fewer and larger parts.
        dying, stays = (one, at_two) if parts(at_one) > parts(at_two) else (two, at_one)
        await dying.kill()
        await stays.until(lambda: any("Second" in text for _, text in stays.drafts.values()), "the second try")
        assert len(stays.drafts) == 1
        await stays.says("second try, and whole")
        await stays.until(lambda: stays.statuses[-1] == "", "rest")
        assert stays.said == ["Second try, and whole."]
        assert not stays.drafts


async def test_a_stream_ends_as_soon_as_its_server_takes_nothing_new(workshop_home: ProductFolder) -> None:
    async with AsyncExitStack() as serving, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        url = await serving.enter_async_context(product_here(workshop_home))
        ana = Visitor(url, http)
        await ana.arrive("web:ana")
        async with http.get(f"{url}/api/events", params={"thread": new_thread()}) as stream:
            await stream.content.readline()
            ending = asyncio.create_task(serving.aclose())
            while await stream.content.readline():
                pass  # to a proper end, and not to one in the middle, which is an error
            assert not ending.done()
            await ending


@pytest.mark.waits
async def test_a_page_whose_process_is_cut_off_from_the_records_is_sent_away_until_they_are_back(
    shared_home: ProductFolder, address: str
) -> None:
    """Nothing is heard there of what others do. It goes on at another process, or reads that nothing can be read."""
    thread_id = new_thread()
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxied(address))
        beyond = ProductFolder(shared_home.folder, shared_home.variables | {"DATABASE_URL": proxy.address})
        stays, cut_off = [await stack.enter_async_context(product_here(each)) for each in (shared_home, beyond)]
        at_one, at_other = await Pages([stays, cut_off], stack).of("ana", thread_id)
        still_there = Visitor(cut_off, at_other.visitor.http)
        while (await still_there.get("/ready")).status != 200:
            await asyncio.sleep(0.02)
        at_other.visitor.url = stays  # where it is sent when it comes back
        proxy.hold_back(*BOTH_WAYS)
        await at_one.send("hello")
        async with at_most_waiting(8):
            await at_other.says("you said: hello")
        async with at_most_waiting(3):
            refused = await still_there.get(f"/api/events?thread={thread_id}")
        assert (refused.status, refused.body) == (503, {"error": AWAY})
        proxy.let_through()
        async with still_there.thread(thread_id) as back:
            await back.says("you said: hello")


# ------------------------------------------------------------------------------------------ in a real browser


@dataclass
class Served:
    """Where a product is."""

    url: str


@pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT_CHROMIUM)
async def test_in_a_browser_the_page_of_each_shows_the_answer_while_it_is_written(
    pages: Pages, model: FakeOpenAI
) -> None:
    answers(model, Reply(text=LONG, pause=0.05))
    thread_id = new_thread()
    async with chromium() as browser, AsyncExitStack() as stack:
        windows = [await stack.enter_async_context(window_of(Served(url), browser)) for url in pages.urls]
        for window in windows:
            await window.open(thread_id)
        await windows[0].say("tell me")
        for window in windows:
            await expect(window.page.locator("#drafts")).to_contain_text("word2 word3")
        for window in windows:
            await expect(window.log).to_contain_text("word58 word59")
            await expect(window.page.locator("#drafts")).to_be_empty()
            await expect(window.log).to_contain_text("tell me")
