"""Questions that tools ask: recorded, answered as their schema wants, or not answered."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.tool_servers.elicitation import form_question
from adapters.tool_servers.text import unchanged
from bot.domain import AlreadySettled, ClarificationView, Dismissal, FormAnswer, Invalid, Refused, Settled, Unknown
from bot.forms.editing import read_elicited
from bot.forms.values import FormErrors
from bot.records import clarifications, deliveries
from bot.records.locks import UNLOCKED
from bot.turns.open_requests import OpenRequests
from graph.interrupts import Answered, ClarificationAsked, Dismissed, ElicitationAsked, FieldType, FormField, Superseded
from graph.ports import QuestionPut
from graph.running import PendingInterrupt
from tests.accounts.stage import ANA, BEN, HERE, Stage
from tests.bot.conftest import until
from tests.bot.stubs import FragileAgent, make_turn_handler
from tests.support.cpu import at_most_cpu

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 6},
        "class": {"type": "string", "oneOf": [{"const": "e", "title": "Economy"}, {"const": "f", "title": "First"}]},
    },
    "required": ["email", "seats"],
}
FIELDS = (
    FormField(name="email"),
    FormField(name="seats", type=FieldType.INTEGER),
    FormField(name="class", type=FieldType.CHOICE, options=("Economy", "First"), required=False),
)


def asked(number: int = 1, **changes: Any) -> ElicitationAsked:
    values = {"call_id": "c", "number": number, "server": "shop", "message": "Who flies?", "requester": ANA.person_id}
    return ElicitationAsked(**{**values, "fields": FIELDS, "schema_": SCHEMA, **changes})


async def recorded(stage: Stage, question: ElicitationAsked | ClarificationAsked) -> str:
    async with stage.database.writing(UNLOCKED) as tx:
        await requests(stage).record(tx, HERE.key, [PendingInterrupt("i", question)])
        row = await clarifications.of_call(tx, question.call_id, getattr(question, "number", 0))
    assert row is not None
    return row.clarification_id


def requests(stage: Stage) -> OpenRequests:
    return stage.parts.open_requests


async def answer(stage: Stage, question: ElicitationAsked) -> Any:
    async with stage.database.reading() as tx:
        answers = await requests(stage).answers(tx, [PendingInterrupt("i", question)])
    return answers["i"].answer if answers else None


async def test_the_card_says_which_server_asks(stage: Stage) -> None:
    question = await recorded(stage, asked())
    card = (await stage.services.queries.shown(question))[0].post.content
    assert isinstance(card, ClarificationView)
    assert (card.server, card.question, card.status, card.fields) == ("shop", "Who flies?", "open", FIELDS)


async def test_an_answer_that_the_schema_accepts_goes_to_the_tool(stage: Stage) -> None:
    question = await recorded(stage, asked())
    assert await answer(stage, asked()) is None
    typed = {"email": "ana@example.com", "seats": "2", "class": "First"}
    assert isinstance(await stage.services.questions.answer(FormAnswer("k", ANA, question, typed)), Settled)
    assert await answer(stage, asked()) == Answered(values={"email": "ana@example.com", "seats": 2, "class": "f"})
    assert await stage.resumes() == [f"resume:{question}"]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"email": "ana@example.com", "seats": "7"}, "seats"),
        ({"email": "nonsense", "seats": "2"}, "email"),
        ({"email": "ana@example.com"}, "seats"),
        ({"email": "ana@example.com", "seats": "2", "class": "Third"}, "class"),
        ({"email": "ana@example.com", "seats": "2", "admin": "yes"}, ""),
    ],
)
async def test_one_that_it_does_not_accept_changes_nothing(stage: Stage, typed: dict[str, str], field: str) -> None:
    question = await recorded(stage, asked())
    told = await stage.services.questions.answer(FormAnswer("k", ANA, question, typed))
    assert isinstance(told, Invalid)
    assert field in told.errors
    assert await answer(stage, asked()) is None
    assert await stage.resumes() == []


@pytest.mark.parametrize(("action", "status"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_the_requester_may_say_no_once(stage: Stage, action: Any, status: str) -> None:
    question = await recorded(stage, asked())
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k0", BEN, question, action)), Refused)
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k", ANA, question, action)), Settled)
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k", ANA, question, action)), Settled)
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k2", ANA, question, "cancel")), AlreadySettled)
    typed = {"email": "ana@example.com", "seats": "2"}
    assert isinstance(await stage.services.questions.answer(FormAnswer("k3", ANA, question, typed)), AlreadySettled)
    assert await answer(stage, asked()) == Dismissed(action=action)
    assert (await stage.services.queries.shown(question))[0].post.content.status == status  # type: ignore[union-attr]
    assert await stage.resumes() == [f"resume:{question}"]


async def test_a_question_of_the_model_cannot_be_declined(stage: Stage) -> None:
    question = await recorded(stage, ClarificationAsked(call_id="c0", question="Which?", requester=ANA.person_id))
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k", ANA, question, "decline")), Refused)
    assert isinstance(await stage.services.questions.dismiss(Dismissal("k", ANA, "nonsense", "decline")), Unknown)


async def test_the_questions_of_one_call_are_told_apart(stage: Stage) -> None:
    first, second = await recorded(stage, asked(1)), await recorded(stage, asked(2))
    assert first != second
    assert await recorded(stage, asked(2)) == second
    await stage.services.questions.dismiss(Dismissal("k", ANA, first, "cancel"))
    assert await answer(stage, asked(2)) is None


async def test_what_the_turn_went_on_without_is_superseded(stage: Stage) -> None:
    await recorded(stage, asked())
    async with stage.database.writing(UNLOCKED) as tx:
        await requests(stage).supersede(tx, HERE.key, "m2", "something new")
    assert await answer(stage, asked()) == Superseded()


async def test_a_plain_reply_answers_where_one_thing_is_asked(stage: Stage) -> None:
    one = asked(fields=(FIELDS[1],), schema_={"type": "object", "properties": {"seats": SCHEMA["properties"]["seats"]}})
    question = await recorded(stage, one)
    async with stage.database.writing(UNLOCKED) as tx:
        row = await clarifications.get(tx, question)
        assert row is not None
        assert isinstance(await stage.services.questions.answer_text(tx, row, "seven", "m1"), FormErrors)
        assert isinstance(await stage.services.questions.answer_text(tx, row, "7", "m1"), FormErrors)
        assert await stage.services.questions.answer_text(tx, row, "3", "m1") is True
    assert await answer(stage, one) == Answered(values={"seats": 3})


async def test_a_plain_reply_does_not_answer_several_questions_at_once(stage: Stage) -> None:
    question = await recorded(stage, asked())
    async with stage.database.writing(UNLOCKED) as tx:
        row = await clarifications.get(tx, question)
        assert row is not None
        assert isinstance(await stage.services.questions.answer_text(tx, row, "two", "m1"), FormErrors)
    assert await answer(stage, asked()) is None


@pytest.mark.parametrize(
    ("schema", "typed", "meant"),
    [
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "Red", "r"),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "g", "g"),
        ({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}}, ["Red"], ["r"]),
        ({"type": "string"}, "Red", "Red"),
        ({"type": "string"}, "yes", "yes"),
        ({"type": "boolean"}, "yes", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "integer", "enum": [1, 2]}, "2", 2),
    ],
)
def test_options_stand_for_their_values(schema: dict[str, Any], typed: Any, meant: Any) -> None:
    field = FormField(name="x", type=FieldType.JSON if isinstance(typed, list) else FieldType.TEXT)
    whole = {"type": "object", "properties": {"x": schema}}
    assert read_elicited([field], whole, {"x": typed}) == {"x": meant}


SOME = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]}
TIME = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("of", "entry", "meant"),
    [
        (SOME, None, []),
        ({**SOME, "minItems": 1}, None, None),
        ({"type": "string", "default": "everybody"}, "", ""),
        ({"type": "string", "default": "everybody", "minLength": 3}, "", None),
        ({"type": "integer", "default": 5}, "", None),
        ({"type": ["integer", "null"], "default": 5}, "", "null"),
        (TIME, "2026-01-01T14:00", "2026-01-01T14:00"),
        ({**TIME, "default": "2026-01-01T09:30:00Z"}, "2026-01-01T14:00", "2026-01-01T14:00:00Z"),
        ({**TIME, "default": "2026-01-01T09:30:00Z"}, "2026-01-01T09:30", "2026-01-01T09:30:00Z"),
    ],
)
def test_a_tool_gets_what_its_form_shows(of: dict[str, Any], entry: Any, meant: Any) -> None:
    """Rule 12: a tool takes its default for what is left out, and a time without its offset for another time. `None`:
    the answer is refused."""
    whole = {"type": "object", "properties": {"x": of}}
    put = form_question("calendar", "When, and for whom?", whole, 1, unchanged)
    assert isinstance(put, QuestionPut)
    read = read_elicited(put.fields, put.schema, {"x": entry})
    assert isinstance(read, FormErrors) if meant is None else read == {"x": None if meant == "null" else meant}


@pytest.mark.parametrize("depth", [1, 2])
def test_many_chosen_options_of_many_are_looked_up(depth: int) -> None:
    """Rule 13: a server chooses the options, and what is chosen at first."""
    items: dict[str, Any] = {"oneOf": [{"const": f"c{number}", "title": f"t{number}"} for number in range(1_700)]}
    chosen: Any = ["t1"] * 3_000
    if depth > 1:
        items, chosen = {"type": "array", "items": items}, [["t1"]] * 2_400
    whole = {"type": "object", "properties": {"x": {"type": "array", "items": items, "maxItems": 1}}}
    field = FormField(name="x", type=FieldType.JSON)
    read_elicited([field], whole, {"x": []})  # what checks is imported
    with at_most_cpu(0.3):  # 2 s before; most of it is what checking may take
        assert isinstance(read_elicited([field], whole, {"x": chosen}), FormErrors)


async def said_in_the_thread(stage: Stage, text: str) -> FragileAgent:
    """What the requester writes while the question is open, handled."""
    agent = FragileAgent()
    handler = make_turn_handler(
        stage.database, stage.outbox, stage.clock, stage.parts, agent, stage.engine, {"chat": stage.platform}
    )
    assert await stage.writes(ANA, text, "m2")
    async with stage.database.reading() as tx:
        delivery = await deliveries.head(tx, HERE.key, stage.clock())
    assert delivery is not None
    await handler.handle(delivery)
    return agent


async def test_whoever_writes_instead_of_filling_in_the_form_is_told_to(stage: Stage) -> None:
    await recorded(stage, asked())
    agent = await said_in_the_thread(stage, "two of us")
    await until(stage.notices)
    assert stage.notices() == [(ANA.person_id, "shop asks several questions. Answer with the form.")]
    assert agent.begun == []
    assert await answer(stage, asked()) is None


async def test_a_plain_reply_in_the_thread_is_the_answer_where_it_can_be(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"seats": SCHEMA["properties"]["seats"]}}
    one = asked(fields=(FIELDS[1],), schema_=schema)
    await recorded(stage, one)
    agent = await said_in_the_thread(stage, "3")
    assert await answer(stage, one) == Answered(values={"seats": 3})
    assert agent.begun == []
