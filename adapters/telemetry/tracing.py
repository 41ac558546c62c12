"""Traces by OpenTelemetry, with its conventions for generative AI and MCP
(https://github.com/open-telemetry/semantic-conventions-genai): one trace for each turn, whatever pauses and restarts it
has. What the conventions have no name for is called `countersign.…`.

Each span is made once what it tells of is over, so a process that dies loses no more than those of the last seconds,
and what is handled again is told by whoever ends it. Their ids are known beforehand (`adapters.telemetry.ids`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from adapters.telemetry.content import TracedContent
from adapters.telemetry.ids import TraceIds, root_turn, turn_of_post
from adapters.telemetry.outcomes import outcome_of
from bot.task_threads import conversation_of
from graph.agents import DEFAULT, name_in
from graph.json_values import storable
from graph.observing import (
    ApprovalAnswered,
    CallJudged,
    DeliveryHandled,
    Happening,
    ModelAsked,
    PostShown,
    ToolCalled,
    TurnHandling,
)
from graph.state import Turn

SERVICE = "countersign"
LONGEST_SESSION = 200
"""Characters of a session's or user's id that Langfuse takes."""
_WORD = re.compile(r"[\w.:/@+-]{1,200}")
"""What a model's service says of an answer, such as why it ended. It may say anything, and a sentence may quote a
question: no more than a word is told."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_FINE, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)
_ERRORS = {"failed": "tool_error", "unknown": "outcome_unknown", "not sent": "not_sent", "broken off": "broken_off"}
"""What came of a call → `error.type`; the first as the conventions have it."""
_PROVIDERS = {"anthropic": "anthropic", "google": "gcp.gemini", "demo": SERVICE}
"""Beginning of a model's name → `gen_ai.provider.name`."""

Attributes = Mapping[str, AttributeValue]


class Tracing:
    """Fills `graph.observing.Observer`.

    Args:
        processors: take the spans, once each has ended.
        version: of the program.
        content: makes content fit to be told; `None`: none is.
    """

    def __init__(
        self, ids: TraceIds, processors: Sequence[SpanProcessor], version: str, content: TracedContent | None = None
    ) -> None:
        self._ids = ids
        self._processors = processors
        self._content = content
        ours = Resource({SERVICE_NAME: SERVICE, SERVICE_VERSION: version})
        self._resource = Resource.create().merge(ours).merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope(SERVICE, version)
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler  # the one that the environment names
        self._random = RandomIdGenerator()

    def note(self, happening: Happening) -> None:
        """Make the span of it. Not to be called by two threads at once."""
        match happening:
            case DeliveryHandled(turn=turn) if turn is not None and happening.ran:
                self._handled(happening, turn)
            case ModelAsked():
                self._asked(happening)
            case CallJudged():
                self._judged(happening)
            case ApprovalAnswered():
                self._answered(happening)
            case ToolCalled():
                self._called(happening)
            case PostShown():
                self._shown(happening)

    def shutdown(self) -> None:
        """Send what is left, to all at once: one that is away takes the others no time. Waits for that."""
        ending = [
            threading.Thread(target=processor.shutdown, name="traces end", daemon=True)
            for processor in self._processors
        ]
        for each in ending:
            each.start()
        for each in ending:
            each.join()

    # ------------------------------------------------------------------------------------------- the spans

    def _handled(self, handled: DeliveryHandled, turn: Turn) -> None:
        """A turn, or how it went on. A try that is to be repeated has an id of its own: the one that ends it is what
        others refer to."""
        key, content = turn["delivery"], self._content
        agent = SERVICE if name_in(turn) == DEFAULT else name_in(turn)
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.provider.name": SERVICE,
            "countersign.platform": handled.platform,
            "countersign.delivery.kind": handled.kind,
            "countersign.delivery.queue_seconds": round(max(handled.began - handled.accepted_at, 0.0), 6),
            "countersign.graph.run": handled.ran,
            "countersign.outcome": handled.ending,
            **_of_turn(turn),
        }
        if content is not None and handled.asked:
            attributes["gen_ai.input.messages"] = content.said("user", handled.asked)
        if content is not None and handled.said:
            attributes["gen_ai.output.messages"] = content.said("assistant", handled.said)
        is_root = handled.delivery == root_turn(key)
        is_to_be_repeated = handled.ending == "tried again"
        self._span(
            f"invoke_agent {agent}",
            key,
            span=None if is_to_be_repeated else self._ids.handling(key, handled.delivery),
            parent=None if is_root and not is_to_be_repeated else self._ids.root(key),
            began=handled.accepted_at,
            ended=handled.began + handled.seconds,
            attributes=attributes,
            links=[self._ids.approval(call_id, round_) for call_id, round_ in handled.resumed],
            error=handled.trouble if handled.ending in {"failed", "parked", "tried again"} else "",
        )

    def _asked(self, asked: ModelAsked) -> None:
        if asked.run is None:
            return  # no turn waits for it: it is counted, and in no trace
        provider, model = _provider_and_model(asked.model)
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
            "countersign.purpose": asked.purpose,
            **_of_turn(asked.run.turn),
        }
        if asked.first_after is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = round(asked.first_after, 6)
        if asked.use is not None:
            attributes["gen_ai.usage.input_tokens"] = asked.use["input_tokens"]
            attributes["gen_ai.usage.output_tokens"] = asked.use["output_tokens"]
            attributes["gen_ai.usage.cache_read.input_tokens"] = asked.use["cached_tokens"]
        reason = ""
        if asked.answer is not None:
            said = asked.answer.response_metadata
            reason = _word(said.get("finish_reason") or said.get("stop_reason"))
            attributes |= {"gen_ai.response.finish_reasons": [reason]} if reason else {}
            named = _word(said.get("model_name") or said.get("model"))
            attributes |= {"gen_ai.response.model": named} if named else {}
        if self._content is not None:
            attributes["gen_ai.input.messages"] = self._content.question(asked.question)
            if asked.answer is not None:
                attributes["gen_ai.output.messages"] = self._content.answer(asked.answer, reason)
        self._within(
            asked.run,
            f"chat {model}" if model else "chat",
            attributes,
            kind=SpanKind.CLIENT,
            began=asked.began,
            seconds=asked.seconds,
            error=asked.trouble,
        )

    def _judged(self, judged: CallJudged) -> None:
        """Of those of one round, such as before and after a sign-in, the wait refers to the one that asked."""
        verdict = judged.verdict
        attributes = {
            **_of_call(judged.call_id, judged.tool.server, judged.tool.name),
            "countersign.policy.verdict": verdict.verdict,
            "countersign.policy.rule": verdict.rule,
            "countersign.policy.source": verdict.source,
            "countersign.policy.version": verdict.version,
            **_of_turn(judged.run.turn),
        }
        self._within(
            judged.run,
            f"policy {judged.tool.name}",
            attributes,
            span=self._ids.policy(judged.call_id, judged.round) if verdict.verdict == "ask" else None,
            began=judged.began,
            seconds=judged.seconds,
        )

    def _answered(self, answered: ApprovalAnswered) -> None:
        """The wait for people: within the turn, not within the handling that ended it, which began when it was over."""
        turn = answered.run.turn
        attributes = {
            **_of_call(answered.call_id, answered.server, answered.tool),
            "countersign.outcome": answered.outcome,
            "countersign.policy.rule": answered.rule,
            "countersign.approval.round": answered.round,
            **_of_turn(turn),
        }
        asked_at = answered.ended_at if answered.asked_at is None else answered.asked_at
        self._span(
            f"approval {answered.tool}",
            turn["delivery"],
            span=self._ids.approval(answered.call_id, answered.round),
            parent=self._ids.root(turn["delivery"]),
            began=asked_at,
            ended=max(answered.ended_at, asked_at),
            attributes=attributes,
            links=[self._ids.policy(answered.call_id, answered.round)],
        )

    def _called(self, called: ToolCalled) -> None:
        """By the conventions for MCP; its attributes are those of `execute_tool` too."""
        outcome = outcome_of(called.outcome)
        attributes: dict[str, AttributeValue] = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.type": "extension",
            **_of_call(called.call_id, called.tool.server, called.tool.name),
            "countersign.attempt": called.attempt,
            "countersign.outcome": outcome,
            **_of_turn(called.run.turn),
        }
        if self._content is not None:
            attributes["gen_ai.tool.call.arguments"] = self._content.arguments(called.arguments)
            attributes["gen_ai.tool.call.result"] = self._content.outcome(called.outcome)
        self._within(
            called.run,
            f"tools/call {called.tool.name}",
            attributes,
            kind=SpanKind.CLIENT,
            began=called.began,
            seconds=called.seconds,
            links=[] if called.round is None else [self._ids.approval(called.call_id, called.round)],
            error=_ERRORS.get(outcome, ""),
        )

    def _shown(self, shown: PostShown) -> None:
        turn = turn_of_post(shown.key, shown.call_id)
        if not turn:
            return  # it belongs to no turn, or it is not known to which
        attributes: dict[str, AttributeValue] = {
            "countersign.platform": shown.platform,
            "countersign.post.kind": shown.kind,
            "countersign.outcome": shown.outcome,
            "countersign.post.tries": shown.tries,
            **_of_session(shown.thread_id),
        }
        self._span(
            f"post {shown.platform}",
            turn,
            parent=self._ids.root(turn),
            kind=SpanKind.CLIENT,
            began=shown.began,
            ended=shown.began + shown.seconds,
            attributes=attributes,
            error="given_up" if shown.outcome == "given up" else "",
        )

    # ------------------------------------------------------------------------------------------- making them

    def _within(
        self,
        run: TurnHandling,
        name: str,
        attributes: Attributes,
        *,
        began: float,
        seconds: float,
        span: int | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[int] = (),
        error: str = "",
    ) -> None:
        """A span of what happened while a delivery was handled."""
        turn = run.turn["delivery"]
        self._span(
            name,
            turn,
            span=span,
            parent=self._ids.handling(turn, run.delivery or turn),
            kind=kind,
            began=began,
            ended=began + seconds,
            attributes=attributes,
            links=links,
            error=error,
        )

    def _span(
        self,
        name: str,
        turn: str,
        *,
        began: float,
        ended: float,
        attributes: Attributes,
        span: int | None = None,
        parent: int | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[int] = (),
        error: str = "",
    ) -> None:
        """One span. `span`: its id; `None`: any. `parent`, `links`: ids of spans of the same trace."""
        trace = self._ids.trace(turn)
        sampled = self._sampler.should_sample(None, trace, name).decision is Decision.RECORD_AND_SAMPLE
        if not sampled:
            return  # nor is anything else of the trace, in any process: it follows from its id

        def context(of: int) -> SpanContext:
            return SpanContext(trace, of, is_remote=True, trace_flags=_SAMPLED)

        # Made as it has ended: beginning and ending a span takes three times as long, and `Tracer` knows no ids.
        made = ReadableSpan(
            storable(name),
            context(self._random.generate_span_id() if span is None else span),
            None if parent is None else context(parent),
            self._resource,
            {key: storable(value) for key, value in attributes.items()} | ({"error.type": error} if error else {}),
            links=[Link(context(each)) for each in links],
            kind=kind,
            status=_FAILED if error else _FINE,
            start_time=int(began * 1e9),
            end_time=int(max(ended, began) * 1e9),
            instrumentation_scope=self._scope,
        )
        for processor in self._processors:
            processor.on_end(made)


def _word(said: object) -> str:
    """What a service says, if it is a word; else nothing."""
    return said if isinstance(said, str) and _WORD.fullmatch(said) else ""


def _of_turn(turn: Turn) -> Attributes:
    """Whose turn it is, under the names by which Langfuse knows sessions and users."""
    return {**_of_session(turn["thread_id"]), "user.id": turn["requester"][:LONGEST_SESSION]}


def _of_session(thread_id: str) -> Attributes:
    conversation = conversation_of(thread_id)  # tasks of plans have threads of their own, which nobody knows
    return {"session.id": conversation[:LONGEST_SESSION], "gen_ai.conversation.id": conversation}


def _of_call(call_id: str, server: str, tool: str) -> dict[str, AttributeValue]:
    return {"gen_ai.tool.name": tool, "gen_ai.tool.call.id": call_id, "countersign.tool.server": server}


def _provider_and_model(name: str) -> tuple[str, str]:
    """By the name that the settings have for a model."""
    prefix, _, rest = name.partition(":")
    if prefix in _PROVIDERS:
        return _PROVIDERS[prefix], rest or name
    return "openai", name
