"""Tokens as services count them: at once, in many events, in one that is missing, or before an answer breaks off."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from pydantic import SecretStr

from graph.models import ModelProblem, ModelSpec, close_model, create_model
from graph.models.asking import Asking, ask
from graph.observing import NOBODY
from graph.usage import ModelUse
from tests.fakes.anthropic_server import fake_anthropic
from tests.fakes.google_server import fake_google
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import ONCE
from tests.models.native import tool

ASK: list[AnyMessage] = [SystemMessage("r" * 400), HumanMessage("h" * 40)]
QUESTION = 111
"""Tokens, by its length."""
Events = Sequence[Mapping[str, Any]]
Counted = tuple[int, int, int]
"""Tokens of the question, those of them that were cached, and those of the answer."""


async def counted(service: str, events: Events, tools: Sequence[Mapping[str, Any]] = ()) -> Counted:
    """What an answer of these events is counted as, also where it is none."""
    lost: list[ModelUse] = []

    async def keep_lost(use: ModelUse) -> None:
        lost.append(use)

    fakes: Any = {"gpt": fake_openai, "anthropic:claude": fake_anthropic, "google:gemini": fake_google}
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    async with fakes[service]([Reply(raw=raw)]) as server:
        model = create_model(ModelSpec(f"{service}-test", server.base_url, SecretStr("key"), 10.0))
        asking = Asking(NOBODY, None, "answer", "any", time.time, keep_lost=keep_lost)
        bound: Any = model.bind_tools(tools) if tools else model
        try:
            _, use = await ask(bound, ASK, lambda _: None, retry=ONCE, asking=asking)
        except ModelProblem:
            (use,) = lost
        finally:
            await close_model(model)
    return use["input_tokens"], use["cached_tokens"], use["output_tokens"]


# ---------------------------------------------------------------------------------------- chat completions


def piece(text: str = "", usage: object = None, *, end: str | None = None, **more: object) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": end}
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice], "usage": usage, **more}


def said(given: object, made: object, cached: object = None) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": given, "completion_tokens": made, **details}


CACHED = {"cache_read_input_tokens": 900, "cache_creation_input_tokens": 90}


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([piece("hi", said(1000, 0, 900)), piece("", said(1000, 50), end="stop")], (1000, 900, 50)),
        ([piece("hi", said(0, 50)), piece("", said(1000, 0, 900), end="stop")], (1000, 900, 50)),
        ([piece("hi", said(1000, 0, 900)), piece("", end="stop")], (1000, 900, 1)),
        ([piece("hi"), piece("", {"completion_tokens": 50}, end="stop")], (QUESTION, 0, 50)),
        ([piece("hi", {**said(1000, 5), "total_tokens": 1050}, end="stop")], (1000, 0, 50)),
        ([piece("hi", {**said(0, 5), "total_tokens": 1050}, end="stop")], (QUESTION, 0, 5)),
        ([piece("hi", {**said(10, 50), **CACHED, "total_tokens": 1050}, end="stop")], (1000, 900, 50)),
        ([piece("hi", {**said(1000, 50), **CACHED, "total_tokens": 1050}, end="stop")], (1000, 900, 50)),
        ([piece("hi", {**said(1000, 50, 900), **CACHED}, end="stop")], (1000, 900, 50)),
        ([piece("hi", said(1000, 25, 900))], (1000, 900, 25)),
        ([piece("hi"), piece("", said(1000, 50, 900), end="content_filter")], (1000, 900, 50)),
        ([piece("hi"), piece("", said(1000, 50, 900), end="stop", service_tier="priority")], (1000, 900, 50)),
    ],
    ids=[
        "first",
        "last",
        "question only",
        "answer only",
        "thoughts beside the answer",
        "a sum of nothing",
        "cached beside the question",
        "cached within the question",
        "cached without a sum",
        "broken off",
        "filtered",
        "another tier",
    ],
)
async def test_of_what_a_service_says_bit_by_bit_nothing_is_lost(events: Events, wanted: Counted) -> None:
    assert await counted("gpt", events) == wanted


@pytest.mark.parametrize("usage", [[1, 2], "many", said("1000", "50"), said(None, None), said(-5, -5), {"x": {}}])
async def test_what_says_nothing_of_tokens_takes_no_answer_away(usage: object) -> None:
    assert await counted("gpt", [piece("a" * 40, usage, end="stop")]) == (QUESTION, 0, 11)


async def test_where_nothing_is_counted_tools_count_by_their_length() -> None:
    tools = [tool("tasks__add", properties={"title": {"type": "string", "description": "d" * 4_000}})]
    given, _, _ = await counted("gpt", [piece("hi", end="stop")], tools)
    assert given > QUESTION + 1_000


# ---------------------------------------------------------------------------------------- services of their own


BEGUN = {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 1}
BEGINNING = [
    {"type": "message_start", "message": {"usage": BEGUN}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
]


def ended(reason: str) -> Mapping[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 50}}


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        (BEGINNING, (1000, 900, 1)),
        (BEGINNING[:1], (1000, 900, 1)),
        ([*BEGINNING, {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}], (1000, 900, 1)),
        ([*BEGINNING, ended("refusal")], (1000, 900, 50)),
    ],
    ids=["broken off", "nothing came", "failed", "refused"],
)
async def test_what_anthropic_has_counted_of_an_answer_that_is_none_counts(events: Events, wanted: Counted) -> None:
    assert await counted("anthropic:claude", events) == wanted


def candidate(text: str = "", end: str | None = None, **counts: int) -> Mapping[str, Any]:
    reason = {"finishReason": end} if end else {}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **reason}], "usageMetadata": counts}


FIRST = candidate("hi", promptTokenCount=1000, cachedContentTokenCount=900, thoughtsTokenCount=20)
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 1000}}


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([FIRST, candidate("", "STOP", candidatesTokenCount=30)], (1000, 900, 50)),
        ([FIRST], (1000, 900, 20)),
        ([FIRST, candidate("", "SAFETY", candidatesTokenCount=30)], (1000, 900, 50)),
        ([BLOCKED], (1000, 0, 0)),
    ],
    ids=["bit by bit", "broken off", "filtered", "question blocked"],
)
async def test_what_google_has_counted_counts_whatever_comes_of_the_answer(events: Events, wanted: Counted) -> None:
    assert await counted("google:gemini", events) == wanted
