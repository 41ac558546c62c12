"""Spans as they are made, without a collector."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adapters.telemetry.ids import TraceIds
from adapters.telemetry.tracing import Tracing
from bot.task_threads import task_thread_id
from graph.observing import CallJudged, ModelAsked, ToolCalled, TurnHandling
from graph.ports import Succeeded
from graph.state import Turn
from policies.model import Allow, Ask, Tool


def turn_of(delivery: str) -> Turn:
    return Turn(
        delivery=delivery,
        requester="web:ana",
        requester_name="Ana",
        time_zone="UTC",
        platform="web",
        channel="",
        thread_id="web:t",
    )


def called(tool: str, delivery: str = "m1") -> ToolCalled:
    run = TurnHandling(turn_of(delivery), delivery)
    return ToolCalled(run, f"{delivery}.0.0", 1, None, Tool("crm", tool), {}, Succeeded("made"), 1.0, 0.5)


def test_half_a_character_in_a_name_does_not_keep_other_spans_from_being_sent() -> None:
    kept = InMemorySpanExporter()
    tracing = Tracing(TraceIds(b"a key"), [SimpleSpanProcessor(kept)], "1")
    for name in ("find\ud800", "make"):
        tracing.note(called(name))
    spans = encode_spans(kept.get_finished_spans()).resource_spans[0].scope_spans[0].spans
    assert [span.name for span in spans] == ["tools/call find?", "tools/call make"]


def test_a_part_of_the_turns_is_traced_whole_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    kept = InMemorySpanExporter()
    tracing = Tracing(TraceIds(b"a key"), [SimpleSpanProcessor(kept)], "1")
    for number in range(40):
        for _ in range(2):
            tracing.note(called("make", f"m{number}"))
    calls = [str((span.attributes or {})["gen_ai.tool.call.id"]) for span in kept.get_finished_spans()]
    assert 5 < len(set(calls)) < 35
    assert all(calls.count(call) == 2 for call in calls)


def test_of_two_judgements_of_a_round_each_has_its_own_span_and_the_one_that_asked_is_known() -> None:
    kept, ids = InMemorySpanExporter(), TraceIds(b"a key")
    tracing = Tracing(ids, [SimpleSpanProcessor(kept)], "1")
    run = TurnHandling(turn_of("m1"), "m1")
    for verdict in (Allow(rule="all"), Allow(rule="all"), Ask(rule="makers ask")):
        tracing.note(CallJudged(run, "m1.0.0", 1, Tool("crm", "make"), verdict, 1.0, 0.5))
    made = [span.context.span_id for span in kept.get_finished_spans() if span.context]
    assert len(set(made)) == 3
    assert made[-1] == ids.policy("m1.0.0", 1)


def test_the_conversation_of_a_task_is_the_one_whose_plan_it_is_of() -> None:
    kept = InMemorySpanExporter()
    tracing = Tracing(TraceIds(b"a key"), [SimpleSpanProcessor(kept)], "1")
    task: Turn = {**turn_of("m1.0.0/find"), "thread_id": task_thread_id("web:t", "m1.0.0", "find")}
    tracing.note(replace(called("make"), run=TurnHandling(task, task["delivery"])))
    (span,) = kept.get_finished_spans()
    attributes = span.attributes or {}
    assert (attributes["session.id"], attributes["gen_ai.conversation.id"]) == ("web:t", "web:t")


@pytest.mark.parametrize(
    ("reason", "model", "told"),
    [
        ("stop", "vendor/model-1.5:free", ("stop", "vendor/model-1.5:free")),
        ("stop" * 9_000, "m" * 9_000, (None, None)),
        ("failed at: my salary is 4,000", "no such model, you asked: my salary", (None, None)),
        (7, None, (None, None)),
    ],
)
def test_of_what_a_service_says_of_an_answer_a_word_is_told(
    reason: object, model: object, told: tuple[str | None, str | None]
) -> None:
    kept = InMemorySpanExporter()
    tracing = Tracing(TraceIds(b"a key"), [SimpleSpanProcessor(kept)], "1")
    answer = AIMessage("hi", response_metadata={"finish_reason": reason, "model_name": model})
    tracing.note(ModelAsked(TurnHandling(turn_of("m1"), "m1"), "answer", "any", 1.0, 0.5, answer=answer))
    (span,) = kept.get_finished_spans()
    said = span.attributes or {}
    reasons = said.get("gen_ai.response.finish_reasons")
    assert (reasons[0] if isinstance(reasons, (list, tuple)) else None, said.get("gen_ai.response.model")) == told
