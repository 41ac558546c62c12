"""`POST /ai/agent/stream` and `POST /ai/stream`, by a client that knows what the contract says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api.following import SentText
from adapters.api.stream_contract import piece
from adapters.shared.live.board import WrittenSoFar
from bot.safe_text import visible
from tests.api.stream_clients import Program, Streamed, ask_agent, events_of, program
from tests.fakes.openai_server import Brain, FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.support.brain import obedient
from tests.support.notes import ALLOWED
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import rows_in_records
from tests.support.tools import Workshop
from tests.support.visitor import visiting

MIXED = """\
version: 1
rules:
  - {name: looking, match: {tool: look}, decide: allow}
  - {name: failing, match: {tool: fail}, decide: allow}
  - {name: never, match: {tool: delete}, decide: deny, reason: Nothing is deleted here.}
"""


@pytest.fixture
async def ana(workshop_home: ProductFolder) -> AsyncIterator[Program]:
    """A program of Ana's."""
    workshop_home.policy(MIXED)
    async with product_here(workshop_home) as url, program(url) as made:
        yield made


async def test_all_that_the_bot_says_is_streamed_and_calls_are_told_of_in_order(ana: Program) -> None:
    streamed = await ask_agent(ana, "use look what=lamp; fail what=lamp; delete what=lamp")
    assert streamed.is_over
    assert streamed.text.startswith("On it.\n\nResults: lamp looks fine | ")
    assert streamed.text == "\n\n".join(await _said(ana))
    assert set(streamed.events) == {
        ("tool_start", "look"),
        ("tool_end", "look"),
        ("tool_start", "fail"),
        ("tool_error", "fail"),
        ("policy_blocked", "delete"),
    }
    assert len(streamed.events) == 5
    assert streamed.in_order[0] == streamed.in_order[-1] == "text"
    assert streamed.events.index(("tool_start", "look")) < streamed.events.index(("tool_end", "look"))


async def _said(ana: Program) -> list[str]:
    newest = (await ana.threads())[0]
    entries = (await ana.get(f"/api/v1/threads/{newest}")).body["entries"]
    posts = [entry["content"] for entry in entries if entry["kind"] == "post"]
    return [content["text"] for content in posts if content["kind"] == "said"]


async def test_a_stream_ends_when_people_are_asked_and_the_conversation_goes_on_later(
    ana: Program, shop: Workshop
) -> None:
    first = await ask_agent(ana, "use make what=lamp", threadId="mine")
    assert first.is_over
    assert first.events == [("approval_required", "make")]
    [thread_id] = await ana.threads()
    async with visiting(ana.url) as visitor, visitor.thread(thread_id) as page:
        [card] = await page.waiting()
        await page.approve(card["id"])
        await page.says("made lamp")
    second = await ask_agent(ana, "hello", threadId="mine")
    assert (second.text, second.events) == ("You said: hello", [])
    assert await ana.threads() == [thread_id]
    assert shop.done == ["make lamp 1"]


async def test_the_stricter_mode_counts(ana: Program, shop: Workshop) -> None:
    streamed = await ask_agent(ana, "use make what=lamp", mode="readOnly")
    assert streamed.events == [("policy_blocked", "make")]
    assert shop.done == []


async def test_without_tools_there_are_none(ana: Program, model: FakeOpenAI) -> None:
    streamed = await ask_agent(ana, "hello", "/ai/stream")
    assert (streamed.text, streamed.events, streamed.is_over) == ("You said: hello", [], True)
    assert not model.requests[-1].get("tools")


@pytest.mark.parametrize("prompt", ["", " \n"])
async def test_an_empty_prompt_streams_an_error_and_closes(ana: Program, prompt: str) -> None:
    streamed = await ask_agent(ana, prompt)
    assert (streamed.text, streamed.is_over) == ("", True)
    assert streamed.words == ["The prompt is empty: write what you want to know, or have done."]
    assert await ana.threads() == []


async def test_a_question_is_streamed_as_text_and_the_next_prompt_answers_it(ana: Program) -> None:
    asked = await ask_agent(ana, "ask lamp", threadId="mine")
    assert (asked.text, asked.is_over) == ("Which lamp?", True)
    answered = await ask_agent(ana, "7", threadId="mine")
    assert answered.is_over
    assert answered.text.startswith("Results: ")
    assert "Which lamp?" not in answered.text


async def test_a_prompt_that_allows_less_than_the_turn_that_asks_begins_a_turn_of_its_own(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    def brain(request: Request) -> Reply:
        said = [m for m in request["messages"] if m["role"] != "system"]
        if said[-1]["role"] == "tool":  # an answer, or what came of the call
            return Reply(text="Done.") if len(said) > 4 else Reply(calls=[ToolUse("workshop__make", {"what": "lamp"})])
        if said[-1]["content"] == "go":
            return Reply(calls=[ToolUse("request_clarification", {"question": "Which?"})])
        return Reply(calls=[ToolUse("workshop__make", {"what": "lamp"})])

    workshop_home.policy(ALLOWED)
    async with fake_openai(brain) as model:
        workshop_home.variables["OPENAI_BASE_URL"] = model.base_url
        async with product_here(workshop_home) as url, program(url) as ana:
            asked = await ask_agent(ana, "go", threadId="mine")
            answered = await ask_agent(ana, "the lamp", threadId="mine", mode="readOnly")
    assert (asked.text, answered.is_over) == ("Which?", True)
    assert answered.events == [("policy_blocked", "make")]
    assert shop.done == []


async def test_switched_off_it_says_so_politely(workshop_home: ProductFolder) -> None:
    workshop_home.variables["AGENT_ENABLE"] = "0"
    async with product_here(workshop_home) as url, program(url) as ana:
        streamed = await ask_agent(ana, "hello")
    assert streamed.text.startswith("I am switched off and have not read this.")
    assert streamed.is_over


def slowly_then(tool: str) -> Brain:
    """Calls something slow, and something else once that is done."""

    def brain(request: Request) -> Reply:
        results = [m for m in request["messages"] if m["role"] == "tool"]
        steps: Sequence[str] = ["workshop__make_slowly", f"workshop__{tool}"]
        if len(results) < len(steps):
            return Reply(calls=[ToolUse(steps[len(results)], {"what": "lamp"})])
        return obedient(request)

    return brain


async def test_a_client_that_goes_away_stops_the_turn_before_the_next_tool_starts(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(ALLOWED)
    async with fake_openai(slowly_then("make")) as model:
        workshop_home.variables["OPENAI_BASE_URL"] = model.base_url
        async with product_here(workshop_home) as url, program(url) as ana:
            streamed = Streamed()
            async with ana.posting("/ai/agent/stream", {"prompt": "go"}) as response:
                async for name, data in events_of(response):
                    streamed.take(name, data)
                    if streamed.events:
                        break
            assert streamed.events == [("tool_start", "make_slowly")]
            [thread_id] = await ana.threads()
            while not rows_in_records(workshop_home, "SELECT key FROM deliveries WHERE key LIKE 'no-calls:%'"):
                await asyncio.sleep(0.02)
            shop.may_end.set()
            turn = await ana.turn(thread_id)
    assert shop.done == ["make_slowly lamp"]
    assert (turn["status"], turn["outcomes"]) == ("ended", [])
    assert [(call["tool"], call["status"]) for call in turn["calls"]][:1] == [("make_slowly", "done")]


async def test_a_client_that_goes_away_leaves_what_another_has_begun_in_its_conversation(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(ALLOWED)
    async with product_here(workshop_home) as url, program(url) as ana:
        first = asyncio.create_task(ask_agent(ana, "use make_slowly what=lamp", threadId="mine"))
        await shop.started.wait()
        async with ana.posting("/ai/agent/stream", {"prompt": "hello", "threadId": "mine"}):
            pass
        while not rows_in_records(workshop_home, "SELECT key FROM deliveries WHERE cause = 'stopped'"):
            await asyncio.sleep(0.02)
        shop.may_end.set()
        streamed = await first
    assert streamed.text.endswith("Results: made lamp slowly")


async def test_a_client_that_goes_away_stops_what_the_model_writes(workshop_home: ProductFolder) -> None:
    never = asyncio.Event()
    async with fake_openai(lambda _: Reply(text="a long story", wait_for=never)) as model:
        workshop_home.variables["OPENAI_BASE_URL"] = model.base_url
        async with product_here(workshop_home) as url, program(url) as ana, visiting(url) as visitor:
            async with ana.posting("/ai/agent/stream", {"prompt": "tell"}):
                [thread_id] = await ana.threads()
            async with visitor.thread(thread_id) as page:
                await page.notice("Stopped.")


# ------------------------------------------------------------------------------------------- any text

_ODD = st.text(st.sampled_from('a \n\r\t{["]}1é́‍❤️👩🚀\u202e\u2028\x85⟨مب'), max_size=12)
_TEXTS = st.lists(st.one_of(st.text(max_size=8), _ODD, st.sampled_from(["[DONE]", "{}", "1", "null", " "])), max_size=8)


@given(_TEXTS)
def test_any_text_arrives_as_it_was_said_however_it_was_cut(parts: list[str]) -> None:
    sent, text, client = SentText(), "".join(parts), Streamed()
    so_far: list[str] = []
    pieces = []
    for part in parts:
        so_far.append(part)
        pieces.append(sent.more(WrittenSoFar(so_far, is_cut=False)))
    pieces.append(sent.rest(text))
    for each in filter(None, pieces):
        [line, *more] = piece(each).decode("utf-8", "surrogatepass").splitlines()
        assert more == [""]
        client.take("", line.removeprefix("data: "))
    assert client.text == visible(text)
    assert not client.is_over


def test_a_text_that_is_written_anew_is_said_whole_after_what_was_said() -> None:
    sent = SentText()
    assert sent.more(WrittenSoFar(["Hello wor"], is_cut=False)) == "Hello wo"
    assert sent.more(WrittenSoFar(["Good"], is_cut=False)) == ""
    assert sent.rest("Good morning") == "\n\nGood morning"
