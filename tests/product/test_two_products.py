"""Two products on one PostgreSQL: what comes to one of them for a conversation that the other one looks after."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.fastmcp import Context
from pydantic import BaseModel

from bot.ledger import AttemptLedger
from tests.fakes.openai_server import FakeOpenAI
from tests.support.notes import ALLOWED, Notes, asked_to_sign_in, browser_of, link_of, notes_server, signs_in
from tests.support.notes import entry as notes_entry
from tests.support.product import ProductFolder
from tests.support.tools import Workshop
from tests.support.two_products import TakingTurns, TwoProducts, share, taking_turns, two_products
from tests.support.visitor import Json, Thread

pytestmark = pytest.mark.postgres


class Count(BaseModel):
    """What a tool wants to know."""

    count: int


@pytest.fixture
def ordered(shop: Workshop) -> list[str]:
    """What came of the calls of a tool that asks in the middle, and of one that gives a link."""
    outcomes: list[str] = []

    async def order(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        shop.done.append(f"order {what}")
        given = await ctx.elicit("How many?", Count)
        outcomes.append(given.action)
        return f"{what}: {given.action} {given.data.count if given.action == 'accept' else 0}"

    async def pay(ctx: Context) -> str:  # type: ignore[type-arg]
        shop.done.append("pay")
        given = await ctx.elicit_url(message="Pay", url="https://pay.example.com/bill", elicitation_id="bill-7")
        outcomes.append(given.action)
        return f"paying: {given.action}"

    for tool in (order, pay):
        shop.server.tool()(tool)
    return outcomes


@pytest.fixture
async def both(
    workshop_home: ProductFolder, ordered: list[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TwoProducts]:
    workshop_home.policy(ALLOWED)
    async with two_products(share(workshop_home), monkeypatch) as made:
        yield made


async def asked(both: TwoProducts) -> Json:
    """The question of a tool, in the middle of its call."""
    await both.products[0].thread.send("use order what=lamps")
    question: Json = await both.shown(lambda thread: thread.question())
    return question


async def outcome(both: TwoProducts) -> Json:
    """The card that says that the outcome of a call is unknown."""
    (card,) = await both.shown(lambda thread: thread.until(lambda: thread.contents("outcome")))
    return dict(card)


async def post(thread: Thread, path: str, **body: Any) -> int:
    return (await thread.visitor.post(path, {"id": uuid.uuid4().hex, **body})).status


# ------------------------------------------------------------------------- calls that wait in the middle


async def test_a_question_in_the_middle_of_a_call_is_answered_at_the_other(both: TwoProducts) -> None:
    """Rule 4: the call is at one product, and the one attempt that there is goes on."""
    question = await asked(both)
    _, other = await both.owner_and_other()
    await until_only_the_call_waits(both)
    assert (await other.thread.answer_form(question["id"], {"count": 3})).status == 200
    await both.shown(lambda thread: thread.says("lamps: accept 3"))
    assert await both.times_claimed() == 1
    await both.at_rest()


async def test_a_link_in_the_middle_of_a_call_is_done_with_at_the_other(both: TwoProducts, shop: Workshop) -> None:
    """Rule 4."""
    await both.products[0].thread.send("use pay")
    (card,) = await both.shown(lambda thread: thread.until(lambda: thread.contents("sign_in")))
    _, other = await both.owner_and_other()
    await until_only_the_call_waits(both)
    assert await post(other.thread, f"/api/sign-ins/{card['id']}", done=True) == 200
    await both.shown(lambda thread: thread.says("paying: accept"))
    assert await both.times_claimed() == 1
    assert shop.done == ["pay"]


async def test_a_question_is_dismissed_at_the_other(both: TwoProducts, ordered: list[str]) -> None:
    question = await asked(both)
    _, other = await both.owner_and_other()
    await until_only_the_call_waits(both)
    assert await post(other.thread, f"/api/clarifications/{question['id']}/dismissal", action="decline") == 200
    await both.shown(lambda thread: thread.says("lamps: decline"))
    assert ordered == ["decline"]
    assert await both.times_claimed() == 1


async def test_a_stop_at_the_other_ends_a_call_that_waits(both: TwoProducts, ordered: list[str]) -> None:
    await asked(both)
    _, other = await both.owner_and_other()
    await until_only_the_call_waits(both)
    assert (await other.thread.stop()).status == 200
    await until(lambda: ordered == ["cancel"])
    assert await both.times_claimed() == 1
    await both.at_rest()


async def test_a_call_that_waits_is_unknown_when_its_product_ends(both: TwoProducts, ordered: list[str]) -> None:
    """Rule 4: as after any restart."""
    question = await asked(both)
    owner, other = await both.owner_and_other()
    both.products.remove(owner)
    await owner.end()
    assert ordered == ["cancel"]
    assert (await other.thread.answer_form(question["id"], {"count": 3})).status == 200
    card = await outcome(both)
    assert await post(other.thread, f"/api/outcomes/{card['id']}", choice="skip") == 200
    await both.shown(lambda thread: thread.says("skipped by ana"))


async def test_a_call_that_waits_is_unknown_when_its_product_is_overtaken(
    both: TwoProducts, ordered: list[str], shop: Workshop
) -> None:
    """Rule 4: whoever was overtaken ends what waits there, and nothing is called again."""
    question = await asked(both)
    _, other = await both.owner_and_other()
    await both.overtake()
    await until(lambda: ordered == ["cancel"])
    assert (await other.thread.answer_form(question["id"], {"count": 3})).status == 200
    await outcome(both)
    assert shop.done == ["order lamps"]


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def until_only_the_call_waits(both: TwoProducts) -> None:
    """Until its product would let others have the conversation, if it were not for the call, and takes up others."""
    await until(lambda: any(run.slots is not None for each in both.products for run in each.places.runs.values()))


# --------------------------------------------------------------------------- before a request leaves


def request_standing_still(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """A product stands still between the attempt that has begun and its request: when it does, and until when."""
    begin, began, may_go_on = AttemptLedger.begin, asyncio.Event(), asyncio.Event()

    async def begin_and_stand_still(ledger: AttemptLedger, record: Any) -> Any:
        begun = await begin(ledger, record)
        if not began.is_set():
            began.set()
            await may_go_on.wait()
        return begun

    monkeypatch.setattr(AttemptLedger, "begin", begin_and_stand_still)
    return began, may_go_on


async def test_a_call_does_not_leave_when_another_has_taken_over_since_its_attempt_began(
    both: TwoProducts, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4: for the one who took over, the outcome is unknown; a request that leaves later would be a surprise."""
    began, may_go_on = request_standing_still(monkeypatch)
    await both.products[0].thread.send("use make what=lamp")
    await began.wait()
    await both.overtake()
    may_go_on.set()
    await outcome(both)
    assert shop.done == []


async def test_nor_does_the_answer_to_a_question_in_the_middle(
    both: TwoProducts, ordered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4."""
    question = await asked(both)
    began, may_go_on = request_standing_still(monkeypatch)
    assert (await both.products[0].thread.answer_form(question["id"], {"count": 3})).status == 200
    await began.wait()
    await both.overtake()
    may_go_on.set()
    await outcome(both)
    assert ordered == ["cancel"]


# ------------------------------------------------------------------- whatever comes while the other one runs


async def test_a_stop_at_the_other_breaks_off_what_runs(both: TwoProducts, shop: Workshop) -> None:
    await both.products[0].thread.send("use make_slowly what=lamp")
    await shop.started.wait()
    owner, other = await both.owner_and_other()
    assert (await other.thread.stop()).status == 200
    await both.shown(lambda thread: thread.notice("stopped"))
    await until(lambda: not owner.has_it)
    assert shop.done == ["make_slowly lamp"]


async def test_what_is_written_at_the_other_is_answered_after_what_runs(both: TwoProducts, shop: Workshop) -> None:
    """Rule 2."""
    await both.products[0].thread.send("use make_slowly what=lamp")
    await shop.started.wait()
    _, other = await both.owner_and_other()
    await other.thread.send("hello again")
    shop.may_end.set()
    await both.shown(lambda thread: thread.says("you said: hello again"))
    assert await both.times_claimed() == 1


async def test_a_form_is_answered_at_either(both: TwoProducts) -> None:
    for count, each in enumerate(both.products, 1):
        await each.thread.send("ask paint")
        question = await both.shown(lambda thread: thread.question())
        assert (await each.thread.answer_form(question["id"], {"size": "3"})).status == 200
        await asyncio.gather(*(until_answered(at.thread, count) for at in both.products))
    await both.at_rest()


async def until_answered(thread: Thread, count: int) -> None:
    """Waits until it shows so many questions, and none of them open."""

    def answered() -> bool:
        shown = [each["status"] for each in thread.contents("clarification")]
        return len(shown) == count and "open" not in shown

    await thread.until(answered)


ASKED = "version: 1\nrules:\n  - {name: asked, match: {}, decide: ask, approvers: [any]}\n"


@pytest.fixture
async def asking(workshop_home: ProductFolder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TwoProducts]:
    workshop_home.policy(ASKED)
    async with two_products(share(workshop_home), monkeypatch) as made:
        yield made


async def test_a_call_is_approved_at_the_other_while_one_runs(asking: TwoProducts, shop: Workshop) -> None:
    await asking.products[0].thread.send("use make_slowly what=lamp;make what=shade")
    cards = await asking.shown(lambda thread: thread.waiting(2))
    slow, quick = sorted(cards, key=lambda card: "slowly" not in card["tool"])
    await asking.products[0].thread.approve(slow["id"])
    await shop.started.wait()
    _, other = await asking.owner_and_other()
    assert (await other.thread.approve(quick["id"]))["kind"] == "settled"
    shop.may_end.set()
    await asking.shown(lambda thread: thread.says("made lamp slowly", "made shade"))
    assert sorted(shop.done) == ["make shade 1", "make_slowly lamp"]


async def test_a_call_is_handed_to_somebody_at_the_other_who_decides_there(asking: TwoProducts, shop: Workshop) -> None:
    one, two = (each.thread for each in asking.products)
    await one.send("use make what=lamp")
    (card,) = await asking.shown(lambda thread: thread.waiting())
    assert await post(two, f"/api/approvals/{card['id']}/handover", to="web:ben") == 200
    await two.visitor.arrive("web:ben")
    assert (await two.approve(card["id"]))["kind"] == "settled"
    await until(lambda: shop.done == ["make lamp 1"])


async def test_what_came_of_a_call_is_said_at_the_other(
    asking: TwoProducts, shop: Workshop, workshop_home: ProductFolder
) -> None:
    one, two = (each.thread for each in asking.products)
    await one.send("use make_slowly what=lamp")
    (card,) = await asking.shown(lambda thread: thread.waiting())
    await one.approve(card["id"])
    await shop.started.wait()
    await asking.overtake()
    unknown = await outcome(asking)
    assert await post(two, f"/api/outcomes/{unknown['id']}", choice="it_was_done") == 200
    await asking.shown(lambda thread: thread.says("as ana confirmed"))
    assert shop.done == ["make_slowly lamp"]


# --------------------------------------------------------------------------------- a sign-in by way of both


@asynccontextmanager
async def taking_notes(
    home: ProductFolder, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Notes, TakingTurns, TwoProducts]]:
    """Both, behind one address, with a tool server that asks everybody to sign in."""
    async with notes_server() as notes, taking_turns() as turns:
        home.tool_servers({"notes": notes_entry(notes)})
        home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-nobody", "LLM_MODEL": "any"}
        share(home).variables["PUBLIC_URL"] = turns.url
        async with two_products(home, monkeypatch) as both:
            turns.between(each.url for each in both.products)
            yield notes, turns, both


async def test_a_browser_on_its_way_through_a_sign_in_reaches_one_and_the_other(
    home: ProductFolder, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 7. And the call goes on at whichever looks after its conversation."""
    home.policy(ALLOWED)
    async with taking_notes(home, model, monkeypatch) as (notes, turns, both):
        one, other = both.products
        await one.thread.send("use notes__sign_in")
        (card,) = await both.shown(asked_to_sign_in)
        link = await link_of(notes, other.thread.visitor, card)
        async with browser_of(one.thread.visitor, "ana-at-notes") as browser:
            shown = await notes.consents(browser, link)
        assert "is connected" in shown.words
        await both.shown(lambda thread: thread.says("signed in"))
        await other.thread.send("use notes__write what=milk")
        await both.shown(lambda thread: thread.says("ana-at-notes wrote milk"))
    assert turns.taken >= {0, 1}
    assert notes.written == [("ana-at-notes", "milk")]


ASKED_TO_WRITE = """\
version: 1
rules:
  - {name: asked, match: {tool: write}, decide: ask, approvers: [any]}
  - {name: the rest, match: {}, decide: allow}
"""


async def test_a_tool_that_a_sign_in_has_shown_to_one_is_there_for_the_other(
    home: ProductFolder, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 7. Whichever had the session, the call is decided and made where that has never been."""
    home.policy(ASKED_TO_WRITE)
    async with taking_notes(home, model, monkeypatch) as (notes, _, both):
        one, other = both.products
        await one.thread.send("use notes__sign_in")
        await both.shown(asked_to_sign_in)
        await signs_in(notes, one.thread, "ana-at-notes")
        await both.shown(lambda thread: thread.says("signed in"))
        await one.thread.send("use notes__write what=milk")
        (card,) = await both.shown(lambda thread: thread.waiting())
        for each in both.products:
            assert (await each.thread.visitor.get(f"/api/approvals/{card['id']}/form")).status == 200
        both.products.remove(one)
        await one.end()
        await other.thread.approve(card["id"])
        await other.thread.says("ana-at-notes wrote milk")
    assert notes.written == [("ana-at-notes", "milk")]


async def test_a_tool_that_has_changed_is_shown_as_it_is_now_by_both(
    home: ProductFolder, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though only one of them has had a session in which it was listed so."""
    home.policy(ASKED_TO_WRITE)
    async with taking_notes(home, model, monkeypatch) as (notes, _, both):
        one, other = (each.thread for each in both.products)
        await one.send("use notes__sign_in")
        await both.shown(asked_to_sign_in)
        await signs_in(notes, one, "ana-at-notes")
        await both.shown(lambda thread: thread.says("signed in"))
        await one.send("use notes__write what=milk")
        (card,) = await both.shown(lambda thread: thread.waiting())
        for thread in (one, other):
            assert await fields(thread, card) == {"what"}

        notes.upgraded()
        (account,) = (await one.visitor.get("/api/connections")).body["connections"]
        assert (await one.visitor.delete(f"/api/connections/{account['id']}")).status == 200
        await one.approve(card["id"])
        await both.shown(asked_to_sign_in)
        await signs_in(notes, one, "ana-at-notes")
        await both.shown(lambda thread: thread.says("has changed in the meantime"))
        await one.send("use notes__write what=rye")
        (card,) = await both.shown(lambda thread: thread.waiting())
        async with asyncio.timeout(5):
            for thread in (one, other):
                while await fields(thread, card) != {"what", "colour"}:
                    await asyncio.sleep(0.05)


async def fields(thread: Thread, card: Json) -> set[str]:
    """What can be edited in a call, as one of them shows it."""
    form = await thread.visitor.get(f"/api/approvals/{card['id']}/form")
    assert form.status == 200
    return {field["name"] for field in form.body["fields"]}
