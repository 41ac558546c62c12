"""`GET /metrics`: what Prometheus reads, and who may."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.telemetry.metrics import MOST_NAMES, OTHERS, PrometheusMetrics
from bot.measures import ProcessNow, ServerMeasure
from bot.prices import NO_PRICES
from bot.task_threads import task_thread_id
from graph.observing import CallJudged, DeliveryHandled, ToolCalled, TurnHandling
from graph.ports import Succeeded
from graph.state import Turn
from policies.model import Allow, Ask, Tool
from tests.api.contract_clients import with_tokens
from tests.api.stream_clients import program
from tests.fakes.openai_server import Reply, fake_openai
from tests.support.forks import ROOT
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import WITHIN, visiting
from tests.telemetry.test_spans import turn_of

TOKEN = "0123456789abcdef"
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def read(page: str) -> Samples:
    """The samples of a page, by name and labels; each is there once."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(page):
        assert family.documentation, family.name
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((f"countersign_{name}", frozenset(labels.items())))


async def scraped(url: str, **headers: str) -> Samples:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics", headers=headers) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return read(await answer.text())


async def away() -> None:
    """Records that are out of reach."""


async def scraped_when(condition: Callable[[Samples], object], url: str, **headers: str) -> Samples:
    """The first page of which something holds."""
    async with asyncio.timeout(WITHIN):
        while not condition(samples := await scraped(url, **headers)):
            pass
    return samples


async def test_a_turn_with_an_approval_is_counted_in_all_its_parts(workshop_home: ProductFolder) -> None:
    prices = workshop_home.folder / "prices.yaml"
    prices.write_text("version: 1\ncurrency: EUR\nmodels:\n  any: {input: 1000000, output: 1000000}\n")
    workshop_home.variables |= {"METRICS": "true", "PRICES_FILE": str(prices), "HEALTH_TOKEN": TOKEN}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with_tokens(workshop_home)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        program(url) as her_program,
        ana.thread() as thread,
    ):
        await thread.send("use make what=lamp; look what=lamp")
        (card,) = await thread.waiting()
        waiting = await scraped_when(
            lambda now: value(now, "turns_total", platform="web", ending="waits"), url, **bearer
        )
        await thread.approve(card["id"])
        await thread.says("made lamp")
        await thread.card(card["id"], "approved", result="made lamp")
        posts = [entry["id"] for entry in thread.entries.values() if entry["kind"] == "post"]
        given = await her_program.post("/api/v1/feedback", {"post_id": posts[-1], "verdict": "good"})
        assert given.status == 200, given.body
        ended = await scraped_when(
            lambda now: value(now, "deliveries_handled_total", kind="resume", ending="done"), url, **bearer
        )

    assert value(waiting, "turns_total", platform="web", ending="waits") == 1
    rules = {dict(labels)["rule"] for name, labels in waiting if name == "countersign_approvals_open"}
    (rule,) = rules
    assert value(waiting, "approvals_open", rule=rule, age="under an hour") == 1
    assert value(waiting, "approvals_open", rule=rule, age="over a day") == 0
    oldest = value(waiting, "oldest_approval_seconds", rule=rule)
    assert oldest is not None
    assert 0 <= oldest < 60
    assert value(waiting, "policy_verdicts_total", verdict="ask", rule=rule) == 1
    assert value(waiting, "decisions_total", outcome="approved", rule=rule) is None

    assert value(ended, "decisions_total", outcome="approved", rule=rule) == 1
    assert value(ended, "decision_wait_seconds_count", outcome="approved") == 1
    assert value(ended, "approvals_open", rule=rule, age="under an hour") is None
    assert value(ended, "tool_seconds_count", server="workshop", tool="make", outcome="done") == 1
    assert value(ended, "tool_seconds_count", server="workshop", tool="look", outcome="done") == 1
    assert value(ended, "model_seconds_count", model="any", purpose="answer", outcome="answered") == 2
    assert value(ended, "model_first_token_seconds_count", model="any") == 2
    tokens = [value(ended, "model_tokens_total", model="any", type=kind) or 0 for kind in ("input", "output")]
    assert sum(tokens) > 0
    cost = value(ended, "model_cost_total", model="any", currency="EUR")
    assert cost is not None
    assert math.isclose(cost, sum(tokens))
    assert value(ended, "deliveries_handled_total", kind="resume", ending="done") == 1
    assert value(ended, "tool_server_up", server="workshop") == 1
    assert value(ended, "deliveries", state="parked", kind="") == 0
    assert value(ended, "records_up") == 1
    assert value(ended, "replicas") == 1
    assert value(ended, "feedback_total", verdict="good") == 1
    assert (value(ended, "post_seconds_count", platform="web", outcome="sent") or 0) >= 2


async def test_a_turn_that_somebody_stops_is_counted_and_says_nothing_of_how_long_answers_take(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.variables |= {"METRICS": "true", "HEALTH_TOKEN": TOKEN}
    workshop_home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        await thread.stop()
        samples = await scraped_when(
            lambda now: value(now, "turns_total", platform="web", ending="broken off"),
            url,
            Authorization=f"Bearer {TOKEN}",
        )
    assert value(samples, "turns_total", platform="web", ending="broken off") == 1
    assert value(samples, "turn_seconds_count", platform="web") is None


async def test_a_model_that_refuses_is_counted_by_its_trouble(workshop_home: ProductFolder) -> None:
    workshop_home.variables |= {"METRICS": "true", "HEALTH_TOKEN": TOKEN}
    async with fake_openai(lambda _: Reply(status=429)) as busy:
        workshop_home.variables["OPENAI_BASE_URL"] = busy.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("hello")
            await thread.notice("busy")
            samples = await scraped_when(
                lambda now: value(now, "turn_failures_total", trouble="rate limited"),
                url,
                Authorization=f"Bearer {TOKEN}",
            )
    assert value(samples, "model_seconds_count", model="any", purpose="answer", outcome="rate limited") == 1
    assert value(samples, "rate_limited_total", service="model") == 1
    assert value(samples, "turns_total", platform="web", ending="failed") == 1
    assert value(samples, "turn_failures_total", trouble="rate limited") == 1


async def test_a_try_that_fails_is_counted_while_the_model_is_asked_again(workshop_home: ProductFolder) -> None:
    workshop_home.variables |= {"METRICS": "true", "HEALTH_TOKEN": TOKEN, "MODEL_RETRIES": "1"}
    held = asyncio.Event()
    replies = iter([Reply(status=500), Reply(text="Here I am", wait_for=held)])
    async with fake_openai(lambda _: next(replies)) as failing:
        workshop_home.variables["OPENAI_BASE_URL"] = failing.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("hello")
            await failing.asked(2)
            samples = await scraped(url, Authorization=f"Bearer {TOKEN}")
            held.set()
            await thread.says("here I am")
    assert value(samples, "model_tries_failed_total", model="any", trouble="server failed") == 1
    assert not [name for name, _ in samples if name == "countersign_model_seconds_count"]


async def test_while_the_records_are_away_it_is_told_and_the_rest_goes_on() -> None:
    now = ProcessNow(running=1, places=8, servers=[ServerMeasure("crm", is_up=False, tools=0)], replicas=2)
    samples = read((await PrometheusMetrics("1", NO_PRICES).page(away, lambda: now)).decode())
    assert (value(samples, "records_up"), value(samples, "tool_server_up", server="crm")) == (0, 0)
    assert value(samples, "turn_places") == 8
    assert not [name for name, _ in samples if "approvals_open" in name or "deliveries" in name or "replicas" in name]


async def test_a_standing_approval_is_no_label_of_its_own_and_names_nobody() -> None:
    metrics = PrometheusMetrics("1", NO_PRICES)
    for person in ("slack:T1:U1", "slack:T1:U2"):
        verdict = Allow(rule=f"always allow by {person} until 2026-11-28 10:00 UTC", source="a:1", version="1")
        run = TurnHandling(turn_of("m1"), "m1")
        metrics.note(CallJudged(run, "m1.0.0", 1, Tool("crm", "make"), verdict, 0.0, 0.0))
    samples = read((await metrics.page(away, lambda: ProcessNow(0, 8, [], 1))).decode())
    assert value(samples, "policy_verdicts_total", verdict="allow", rule="standing approval") == 2
    assert not [labels for name, labels in samples if "U1" in str(labels)]


async def test_a_plan_is_one_turn_however_many_tasks_it_has() -> None:
    metrics, turn = PrometheusMetrics("1", NO_PRICES), turn_of("m1")
    began = DeliveryHandled("m1", "message", "web:t", "web", turn, "began", "waits", 0.0, 1.0, 0.5)
    metrics.note(began)
    for name in ("find", "check"):
        key, thread_id = f"m1.0.0/{name}", task_thread_id("web:t", "m1.0.0", name)
        task: Turn = {**turn, "delivery": key, "thread_id": thread_id}
        metrics.note(replace(began, delivery=key, thread_id=thread_id, turn=task, ending="done"))
    samples = read((await metrics.page(away, lambda: ProcessNow(0, 8, [], 1))).decode())
    assert sum(count for (name, _), count in samples.items() if name == "countersign_turns_total") == 1
    assert value(samples, "turn_seconds_count", platform="web") == 1
    assert value(samples, "deliveries_handled_total", kind="message", ending="done") == 2


async def test_a_server_that_calls_its_tools_otherwise_each_day_makes_no_series_without_end() -> None:
    metrics, run = PrometheusMetrics("1", NO_PRICES), TurnHandling(turn_of("m1"), "m1")
    for number in range(MOST_NAMES + 5):
        tool, rule = Tool("crm", f"find_{number}"), Ask(rule=f"reading; the crm agent requires approval for {number}")
        metrics.note(CallJudged(run, "m1.0.0", 1, tool, rule, 0.0, 0.1))
        metrics.note(ToolCalled(run, "m1.0.0", 1, None, tool, {}, Succeeded("found"), 0.0, 0.1))
    page, rounds = asyncio.create_task(metrics.page(away, lambda: ProcessNow(0, 8, [], 1))), 0
    while not page.done():
        rounds += 1
        await asyncio.sleep(0)
    samples = read((await page).decode())
    names = [name for name, _ in samples]
    assert names.count("countersign_tool_seconds_count") == MOST_NAMES + 1
    assert names.count("countersign_policy_verdicts_total") == MOST_NAMES + 1
    assert value(samples, "tool_seconds_count", server="crm", tool="find_999", outcome="done") == 1
    assert value(samples, "tool_seconds_count", server="crm", tool=OTHERS, outcome="done") == 5
    assert value(samples, "policy_verdicts_total", verdict="ask", rule=OTHERS) == 5
    assert rounds > 10, "others get their turn while the page is written"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": "Bearer something else"}, 403),
        ({"X-Forwarded-For": "203.0.113.5"}, 403),
    ],
)
async def test_metrics_are_for_this_machine_and_for_the_token(
    workshop_home: ProductFolder, headers: dict[str, str], status: int
) -> None:
    workshop_home.variables |= {"METRICS": "true", "HEALTH_TOKEN": TOKEN}
    async with (
        product_here(workshop_home) as url,
        aiohttp.ClientSession() as http,
        http.get(f"{url}/metrics", headers=headers) as answer,
    ):
        assert answer.status == status
        assert ("countersign_" in await answer.text()) == (status == 200)


async def test_without_the_setting_there_is_no_page(workshop_home: ProductFolder) -> None:
    async with (
        product_here(workshop_home) as url,
        aiohttp.ClientSession() as http,
        http.get(f"{url}/metrics") as answer,
    ):
        assert answer.status == 404


def test_what_is_off_is_not_imported() -> None:
    look = (
        "import sys, app, graph.workflow, bot.turns.handler\n"
        "ours = ('prometheus_client', 'opentelemetry.exporter', 'adapters.telemetry.')\n"
        "print(sorted(name for name in sys.modules if name.startswith(ours)))"
    )
    shown = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['adapters.telemetry.opening', 'adapters.telemetry.pauses']"
