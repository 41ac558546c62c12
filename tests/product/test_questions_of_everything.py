"""Questions of a server that nobody here wrote, answered on the page: forms and links in the middle of a call."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.support import everything as ev
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import Answer, Json, Thread, visiting

pytestmark = [pytest.mark.node, ev.needs_everything]


@pytest.fixture
def asking_home(home: ProductFolder, model: FakeOpenAI) -> ProductFolder:
    """The product with that server."""
    ev.everything(home)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "x"}
    return home


@pytest.fixture
async def thread(asking_home: ProductFolder) -> AsyncIterator[Thread]:
    """A conversation of Ana's in it."""
    async with product_here(asking_home) as url, visiting(url) as ana, ana.thread(within=40.0) as thread:
        yield thread


async def sign_in(thread: Thread, status: str = "open", host: str = "accounts.example.com") -> Json:
    """The card of a link."""

    def shown() -> Json | None:
        cards = thread.contents("sign_in")
        return next((c for c in cards if c["status"] == status and c["host"] == host), None)

    found: Json = await thread.until(shown, f"a sign-in that is {status}")
    return found


async def post(thread: Thread, path: str, **body: Any) -> Answer:
    return await thread.visitor.post(path, {"id": uuid.uuid4().hex, **body})


async def test_its_form_has_an_input_for_every_kind_of_field_and_the_answers_arrive(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_FORM)
    question = await thread.question()
    assert (question["server"], question["question"]) == ("everything", ev.QUESTION)
    assert [(field["name"], field["type"]) for field in question["fields"]] == list(ev.FIELDS)
    answer = await thread.answer_form(question["id"], ev.ANSWERS)
    assert answer.status == 200, answer
    await thread.says(*ev.ACCEPTED)
    assert (await thread.question("answered"))["id"] == question["id"]


async def test_what_its_schema_does_not_take_comes_back_and_may_be_mended(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_FORM)
    question = await thread.question()
    wrong = {**ev.ANSWERS, "integer": 1000, "untitledMultipleSelectEnum": ["Tuba"]}
    answer = await thread.answer_form(question["id"], wrong)
    assert answer.status == 422
    assert set(answer.body["errors"]) == {"integer", "untitledMultipleSelectEnum"}
    assert (await thread.answer_form(question["id"], ev.ANSWERS)).status == 200
    await thread.says(*ev.ACCEPTED)


@pytest.mark.parametrize(
    ("action", "ends", "says"), [("decline", "declined", ev.DECLINED), ("cancel", "cancelled", ev.CANCELLED)]
)
async def test_its_form_is_declined_or_cancelled(thread: Thread, action: str, ends: str, says: tuple[str, ...]) -> None:
    await thread.send(ev.ASK_BY_FORM)
    question = await thread.question()
    assert (await post(thread, f"/api/clarifications/{question['id']}/dismissal", action=action)).status == 200
    await thread.says(*says)
    await thread.question(ends)


async def test_nobody_else_answers_or_declines_its_form(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_FORM)
    question = await thread.question()
    async with visiting(thread.visitor.url, "ben") as ben, ben.thread() as other:
        assert (await other.answer_form(question["id"], ev.ANSWERS)).status == 404
        assert (await post(other, f"/api/clarifications/{question['id']}/dismissal", action="decline")).status == 404
    await thread.answer_form(question["id"], ev.ANSWERS)
    await thread.says(*ev.ACCEPTED)


async def test_a_form_that_a_restart_came_between_is_answered_once_and_a_repeatable_call_goes_on(
    asking_home: ProductFolder,
) -> None:
    ev.everything(asking_home, idempotentTools=["trigger-elicitation-request"])
    async with product_here(asking_home) as url, visiting(url) as ana, ana.thread(within=40.0) as thread:
        await thread.send(ev.ASK_BY_FORM)
        question = await thread.question()
    async with product_here(asking_home) as url, visiting(url) as ana, ana.thread(thread.thread_id) as again:
        again.within = 40.0
        assert (await again.answer_form(question["id"], ev.ANSWERS)).status == 200
        await again.says(*ev.ACCEPTED)
        assert len(again.contents("clarification")) == 1, "the same question is not put twice"


async def test_a_call_that_asked_before_a_restart_and_may_not_be_repeated_has_an_unknown_outcome(
    asking_home: ProductFolder,
) -> None:
    """Rule 4: nothing says that it did not act before it asked."""
    async with product_here(asking_home) as url, visiting(url) as ana, ana.thread(within=40.0) as thread:
        await thread.send(ev.ASK_BY_FORM)
        question = await thread.question()
    async with product_here(asking_home) as url, visiting(url) as ana, ana.thread(thread.thread_id) as again:
        again.within = 40.0
        assert (await again.answer_form(question["id"], ev.ANSWERS)).status == 200
        (outcome,) = await again.until(lambda: again.contents("outcome"))
        assert "was gone when the answer came" in outcome["known"]


async def test_its_link_is_for_the_requester_alone_and_the_call_goes_on_when_they_say_so(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_LINK)
    card = await sign_in(thread)
    assert (card["service"], card["server"]) == ("", "everything")
    assert ev.SECRET not in str(card)
    async with visiting(thread.visitor.url, "ben") as ben:
        assert (await ben.get(f"/api/sign-ins/{card['id']}/link")).status == 404
        assert (await ben.post(f"/api/sign-ins/{card['id']}", {"id": "k", "done": True})).status == 404
    link = await thread.visitor.get(f"/api/sign-ins/{card['id']}/link")
    assert link.body == {"url": ev.LINK, "message": "Connect"}
    await post(thread, f"/api/sign-ins/{card['id']}", done=True)
    await thread.says(*ev.OPENED)


async def test_whoever_does_not_open_its_link_declines(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_LINK)
    card = await sign_in(thread)
    await post(thread, f"/api/sign-ins/{card['id']}", done=False)
    await sign_in(thread, "declined")
    await thread.until(lambda: thread.said[1:], "the turn goes on without it")
    assert not any(ev.OPENED[0] in text for text in thread.said)


async def test_an_error_with_a_link_comes_first_and_then_the_call_asks_for_another(thread: Thread) -> None:
    await thread.send(ev.ASK_BY_REFUSAL)
    first = await sign_in(thread, host="modelcontextprotocol.io")
    link = await thread.visitor.get(f"/api/sign-ins/{first['id']}/link")
    assert link.body["url"].rstrip("/") == ev.FIRST_LINK
    await post(thread, f"/api/sign-ins/{first['id']}", done=True)
    second = await sign_in(thread)
    await post(thread, f"/api/sign-ins/{second['id']}", done=True)
    await thread.says(*ev.OPENED)
