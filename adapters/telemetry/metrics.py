"""Metrics for Prometheus: what happens is counted in this process, what waits is counted when it is asked for.

Labels are names that operators have written (servers, rules, models), names of tools, and words of ours: never people,
conversations or content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.telemetry.outcomes import outcome_of
from bot.measures import Measures, ProcessNow
from bot.prices import Prices
from bot.task_threads import is_task_thread
from graph.observing import (
    ApprovalAnswered,
    CallJudged,
    DeliveryHandled,
    FeedbackGiven,
    Happening,
    ModelAsked,
    ModelTryFailed,
    PostShown,
    RateLimited,
    ToolCalled,
)
from policies.approvers import is_by_grant

STANDING = "standing approval"
"""In the place of a rule where a standing approval allows a call: a label names nobody, and there is no end of them."""
MOST_NAMES = 1_000
"""Names of tools, and of rules, that are told apart in a process: a server may rename its tools each day, and
the name of a rule has that of a tool where an agent has to ask about it. Our own choice: more than a deployment has."""
OTHERS = "others"
"""In the place of further ones."""
_FAST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_PEOPLE = (5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 259_200.0)
"""Seconds: how long people take."""


class PrometheusMetrics:
    """Fills `graph.observing.Observer`, and says what was counted.

    Args:
        version: of the program.
        prices: what models cost.
    """

    content_type = CONTENT_TYPE_LATEST
    """Of the page."""

    def __init__(self, version: str, prices: Prices) -> None:
        self._prices = prices
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        build = Gauge("countersign_build_info", "The program.", ["version"], registry=registry)
        build.labels(version).set(1)

        def histogram(name: str, about: str, labels: Iterable[str], buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"countersign_{name}", about, labels, buckets=buckets, registry=registry)

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"countersign_{name}", about, labels, registry=registry)

        self._handled = counter("deliveries_handled", "Tries at deliveries, by how they ended.", "kind", "ending")
        self._queued = histogram(
            "delivery_queue_seconds", "From the acceptance of a delivery to its handling.", ["kind"], _FAST
        )
        self._turns = counter(
            "turns", "Turns that began, by platform and how their message ended.", "platform", "ending"
        )
        self._turn = histogram(
            "turn_seconds", "From the acceptance of a message to its answer, or to where people are asked.",
            ["platform"], _SLOW,
        )  # fmt: skip
        self._failures = counter("turn_failures", "Turns and deliveries that failed, by trouble.", "trouble")
        self._models = histogram(
            "model_seconds", "A language model's answers, from the question to the end.",
            ["model", "purpose", "outcome"], _SLOW,
        )  # fmt: skip
        self._tries = counter(
            "model_tries_failed", "Tries of which no answer came; others may follow.", "model", "trouble"
        )
        self._first = histogram("model_first_token_seconds", "To the first piece of an answer.", ["model"], _SLOW)
        self._tokens = counter(
            "model_tokens", "Tokens: input (cached ones among them), cached, output.", "model", "type"
        )
        self._cost = counter("model_cost", "What they cost by prices.yaml.", "model", "currency")
        self._verdicts = counter("policy_verdicts", "What the policy said of calls.", "verdict", "rule")
        self._tools = histogram("tool_seconds", "Tool calls that were sent.", ["server", "tool", "outcome"], _SLOW)
        self._decisions = counter("decisions", "Approvals that were answered, by outcome.", "outcome", "rule")
        self._waits = histogram("decision_wait_seconds", "From asking people to what came of it.", ["outcome"], _PEOPLE)
        self._posts = histogram("post_seconds", "Posts, until they were shown.", ["platform", "outcome"], _FAST)
        self._refused = counter("rate_limited", "Answers of services that they are called too often (429).", "service")
        self._named_tools, self._named_rules = _Names(), _Names()
        self._feedback = counter("feedback", "What people think of answers.", "verdict")

    def note(self, happening: Happening) -> None:
        """Count it."""
        match happening:
            case DeliveryHandled():
                self._note_handled(happening)
            case ModelAsked():
                self._note_model(happening)
            case ModelTryFailed(model=model, trouble=trouble):
                self._tries.labels(model, trouble).inc()
            case CallJudged(verdict=verdict):
                rule = STANDING if is_by_grant(verdict.rule) else self._named_rules.known(verdict.rule)
                self._verdicts.labels(verdict.verdict, rule).inc()
            case ToolCalled(tool=tool, outcome=outcome, seconds=seconds):
                named = self._named_tools.known(tool.name, tool.server)
                self._tools.labels(tool.server, named, outcome_of(outcome)).observe(seconds)
            case ApprovalAnswered(outcome=answer, rule=rule):
                self._decisions.labels(answer, self._named_rules.known(rule)).inc()
                if happening.asked_at is not None:
                    self._waits.labels(answer).observe(max(happening.ended_at - happening.asked_at, 0.0))
            case PostShown(platform=platform, outcome=shown, seconds=seconds):
                self._posts.labels(platform, shown).observe(seconds)
            case RateLimited(service=service):
                self._refused.labels(service).inc()
            case FeedbackGiven(verdict=opinion):
                self._feedback.labels(opinion).inc()

    def _note_handled(self, handled: DeliveryHandled) -> None:
        self._handled.labels(handled.kind, handled.ending).inc()
        self._queued.labels(handled.kind).observe(max(handled.began - handled.accepted_at, 0.0))
        if handled.trouble:
            self._failures.labels(handled.trouble).inc()
        is_first = handled.turn is not None and handled.turn["delivery"] == handled.delivery and bool(handled.ran)
        if is_first and handled.ending != "tried again" and not is_task_thread(handled.thread_id):
            self._turns.labels(handled.platform, handled.ending).inc()
            if handled.ending == "broken off":
                return  # it says nothing of how long answers take
            self._turn.labels(handled.platform).observe(handled.began + handled.seconds - handled.accepted_at)

    def _note_model(self, asked: ModelAsked) -> None:
        self._models.labels(asked.model, asked.purpose, asked.trouble or "answered").observe(asked.seconds)
        if asked.refusals:
            self._refused.labels("model").inc(asked.refusals)
        if asked.first_after is not None:
            self._first.labels(asked.model).observe(asked.first_after)
        if (use := asked.use) is None:
            return
        counted = {"input": use["input_tokens"], "cached": use["cached_tokens"], "output": use["output_tokens"]}
        for kind, tokens in counted.items():
            self._tokens.labels(asked.model, kind).inc(tokens)
        if cost := self._prices.cost_of(asked.model, use):
            self._cost.labels(asked.model, self._prices.currency).inc(float(cost))

    async def page(self, measured: Callable[[], Awaitable[Measures | None]], now: Callable[[], ProcessNow]) -> bytes:
        """Returns what there is to know, in the text format of Prometheus.

        Args:
            measured: counts what waits in the records; `None`: they are out of reach.
            now: tells how this process is.
        """
        waiting = CollectorRegistry()
        waiting.register(_Waiting(await measured(), now()))
        # In a thread: a thousand tools take 0.3 s.
        return await asyncio.to_thread(lambda: generate_latest(self._registry) + generate_latest(waiting))


class _Names:
    """The names that are told apart."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def known(self, name: str, of: str = "") -> str:
        """The name, or what stands in its place. `of`: whose it is."""
        if (of, name) not in self._known:
            if len(self._known) >= MOST_NAMES:
                return OTHERS
            self._known.add((of, name))
        return name


class _Waiting(Collector):
    """What waits, and how this process is, as it was a moment ago."""

    def __init__(self, measures: Measures | None, now: ProcessNow) -> None:
        self._measures = measures
        self._now = now

    def collect(self) -> Iterable[Metric]:
        """Returns the metrics."""
        now = self._now
        yield _gauge("turns_running", "Conversations that are handled here, or wait for a place.", now.running)
        yield _gauge("turn_places", "How many may be handled here at once now.", now.places)
        up = _gauge("tool_server_up", "Whether a tool server can be used.", None, "server")
        tools = _gauge("tool_server_tools", "How many of its tools can be called.", None, "server")
        for each in now.servers:
            up.add_metric([each.server], float(each.is_up))
            tools.add_metric([each.server], each.tools)
        yield up
        yield tools
        yield _gauge("records_up", "Whether the records could be read.", self._measures is not None)
        if self._measures is not None:
            # Else each process knows of itself alone, and nobody is missing for that.
            yield _gauge("replicas", "Processes on the same records.", now.replicas)
            yield from _waiting(self._measures)


def _waiting(measures: Measures) -> Iterable[Metric]:
    counts = _gauge("deliveries", "Deliveries in the records: waiting by kind, and parked.", None, "state", "kind")
    oldest = _gauge("oldest_delivery_seconds", "How long the oldest one has waited.", None, "kind")
    for each in measures.deliveries:
        counts.add_metric(["waiting", each.kind], each.count)
        oldest.add_metric([each.kind], max(measures.at - each.since, 0.0))
    counts.add_metric(["parked", ""], measures.parked)
    yield counts
    yield oldest
    yield _gauge("posts_unsent", "Posts that are not shown as they are now.", measures.posts)
    asked = _gauge("approvals_open", "Approvals that wait, by rule and age.", None, "rule", "age")
    since = _gauge("oldest_approval_seconds", "How long the oldest one has waited.", None, "rule")
    for rule in measures.approvals:
        asked.add_metric([rule.rule, "under an hour"], rule.count - rule.over_an_hour)
        asked.add_metric([rule.rule, "under a day"], rule.over_an_hour - rule.over_a_day)
        asked.add_metric([rule.rule, "over a day"], rule.over_a_day)
        since.add_metric([rule.rule], max(measures.at - rule.since, 0.0))
    yield asked
    yield since
    if (push := measures.push) is not None:
        failing = 0.0 if push.failing_since is None else max(measures.at - push.failing_since, 0.0)
        yield _gauge("audit_push_waiting", "Entries of the audit log that the SIEM has not taken yet.", push.waiting)
        yield _gauge("audit_push_failing_seconds", "How long it has taken none, as of the last try.", failing)


def _gauge(name: str, about: str, value: float | None, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"countersign_{name}", about, value=value, labels=labels or None)
