"""The alert rules and the dashboard ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from adapters.telemetry.metrics import PrometheusMetrics
from bot.measures import Measures, ProcessNow, PushMeasure, ServerMeasure
from bot.prices import NO_PRICES
from bot.records.measures import OpenApprovals, WaitingDeliveries
from tests.deploy.image import ROOT

MONITORING = ROOT / "deploy" / "monitoring"
PROMTOOL = shutil.which("promtool")
NAME = re.compile(r"\bcountersign_[a-z_]+")
GROUPED = re.compile(r"by \(([^)]*)\)")


def alert_expressions() -> Iterator[str]:
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    return (rule["expr"] for group in rules["groups"] for rule in group["rules"])


def dashboard_expressions() -> Iterator[str]:
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return (target["expr"] for panel in panels for target in panel["targets"])


async def names_there_are() -> set[str]:
    """The names of all samples, of metrics that have not been counted yet, too."""
    metrics = PrometheusMetrics("1", NO_PRICES)
    now = ProcessNow(1, 1, [ServerMeasure("calendar", True, 8)], 1)
    waits = Measures(
        [WaitingDeliveries("message", 1, 0.0)], 0, [OpenApprovals("r", 3, 2, 1, 0.0)], 0, 10.0, PushMeasure(2, 0.0)
    )

    async def measured() -> Measures:
        return waits

    page = (await metrics.page(measured, lambda: now)).decode()
    declared = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    endings = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("",), "gauge": ("",)}
    return {f"{name}{ending}" for name, kind in declared.items() for ending in endings.get(kind, ("",))}


async def test_every_metric_that_is_asked_for_is_there() -> None:
    there = await names_there_are()
    for expression in [*alert_expressions(), *dashboard_expressions()]:
        asked = set(NAME.findall(expression))
        assert asked or "process_" in expression or "up{" in expression, expression
        assert asked <= there, expression


async def test_every_metric_is_described_in_the_documentation() -> None:
    written = (ROOT / "docs" / "observability.md").read_text()
    for name in await names_there_are():
        if name.startswith("countersign_") and not name.endswith("_created"):
            plain = re.sub(r"_(bucket|count|sum)$", "", name.removeprefix("countersign_"))
            assert f"`{plain}`" in written, name


def test_no_alert_has_the_name_of_another_and_each_says_what_it_means() -> None:
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names))
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)


def test_no_panel_lies_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)")
def test_promtool_takes_the_rules_and_the_example(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    for check in (["check", "rules", "alerts.yml"], ["check", "config", "--syntax-only", "prometheus.yml"]):
        done = subprocess.run([PROMTOOL, *check], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)")
def test_alerts_fire_when_they_are_to(tmp_path: Path) -> None:
    """A slow tool, a failing model and a lost database, as time series that promtool makes up."""
    assert PROMTOOL is not None
    tool = 'countersign_tool_seconds_bucket{server="crm",tool="find"'
    model = 'countersign_model_seconds_count{model="any",purpose="answer"'
    stopped = 'countersign_model_seconds_count{model="sound",purpose="answer"'
    cases = {
        "rule_files": [str(MONITORING / "alerts.yml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": f'{tool},le="10.0"}}', "values": "0+0x40"},
                    {"series": f'{tool},le="20.0"}}', "values": "0+6x40"},
                    {"series": f'{tool},le="+Inf"}}', "values": "0+6x40"},
                    {"series": f'{model},outcome="answered"}}', "values": "0+5x40"},
                    {"series": f'{model},outcome="timed out"}}', "values": "0+5x40"},
                    {"series": f'{stopped},outcome="answered"}}', "values": "0+5x40"},
                    {"series": f'{stopped},outcome="broken off"}}', "values": "0+5x40"},  # people have stopped them
                    {"series": 'countersign_records_up{instance="a"}', "values": "0x40"},
                ],
                "alert_rule_test": [
                    _fires("CountersignToolSlow", "warning", server="crm", tool="find"),
                    _fires("CountersignModelFails", "critical", model="any"),
                    _fires("CountersignRecordsOutOfReach", "critical", instance="a"),
                    {"eval_time": "30m", "alertname": "CountersignToolServerDown", "exp_alerts": []},
                ],
            }
        ],
    }
    for each in cases["tests"][0]["alert_rule_test"]:  # type: ignore[index]
        for alert in each["exp_alerts"]:
            alert["exp_annotations"] = _annotations(each["alertname"])
    file = tmp_path / "alerts.test.yml"
    file.write_text(yaml.safe_dump(cases))
    done = subprocess.run([PROMTOOL, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PARKED = 'countersign_deliveries{state="parked",kind="",instance="a"}'
REPLICAS = 'countersign_replicas{instance="a"}'
NEW_REPLICA = 'countersign_replicas{instance="b"}'
RATE = 'countersign_rate_limited_total{service="slack",instance="a"}'
PUSH = 'countersign_audit_push_failing_seconds{instance="a"}'
TRIES = 'countersign_model_tries_failed_total{model="m",trouble="%s",instance="a"}'
MODEL = 'countersign_model_seconds_count{model="m",purpose="answer",outcome="%s",instance="a"}'
TOOL = 'countersign_tool_seconds_count{server="s",tool="t",outcome="%s",instance="a"}'
ONCE_IN_TEN_MINUTES = " ".join(str(minute // 10) for minute in range(90))
OVER_A_DAY = 'countersign_approvals_open{rule="r",age="over a day",instance="%s"}'


@pytest.mark.parametrize(
    ("alert", "series", "at", "fires"),
    [
        ("CountersignDeliveriesParked", {PARKED: "0x20 1x20"}, "22m", True),
        ("CountersignDeliveriesParked", {PARKED: "5x20 6x20"}, "22m", True),
        ("CountersignDeliveriesParked", {PARKED: "1x40"}, "22m", False),
        ("CountersignDeliveriesParked", {PARKED: "2x20 1x20"}, "22m", False),
        ("CountersignReplicaMissing", {REPLICAS: "3x60 2x30"}, "75m", True),
        ("CountersignReplicaMissing", {REPLICAS: "3x60 4x4 3x30"}, "80m", False),
        ("CountersignReplicaMissing", {REPLICAS: "5x60 6x14 stale", NEW_REPLICA: "_x60 6x15 5x30"}, "89m", False),
        ("CountersignReplicaMissing", {REPLICAS: "3x60 4x14 stale", NEW_REPLICA: "_x60 4x15 2x30"}, "89m", True),
        ("CountersignRateLimited", {RATE: "0+60x40"}, "30m", True),
        ("CountersignRateLimited", {RATE: "0+6x40"}, "30m", False),
        ("CountersignAuditPushFails", {PUSH: "0+60x40"}, "30m", True),
        ("CountersignAuditPushFails", {PUSH: "0+60x14 0x20"}, "30m", False),
        ("CountersignApprovalsWait", {OVER_A_DAY % "a": "2x90", OVER_A_DAY % "b": "2x90"}, "80m", True),
        ("CountersignApprovalsWait", {OVER_A_DAY % "a": "0x90"}, "80m", False),
        ("CountersignModelFails", {MODEL % "wrong key": ONCE_IN_TEN_MINUTES}, "62m", True),
        ("CountersignModelFails", {MODEL % "wrong key": ONCE_IN_TEN_MINUTES}, "68m", True),
        ("CountersignModelFails", {MODEL % "wrong key": "0x20 1x40"}, "32m", False),
        (
            "CountersignModelFails",
            {MODEL % "wrong key": "0+1x30 30x30", MODEL % "answered": "0x36 1x30"},
            "44m",
            False,
        ),
        (
            "CountersignModelFails",
            {TRIES % "timed out": "0x21 0+3x20", MODEL % "answered": "0+40x20 800x40"},
            "28m",
            True,
        ),
        ("CountersignModelFails", {TRIES % "timed out": "0x20 0+1x4 4x40", MODEL % "answered": "9x70"}, "29m", False),
        ("CountersignModelFails", {TRIES % "timed out": "0x20 0+1x20", MODEL % "answered": "0+9x40"}, "35m", False),
        ("CountersignModelFails", {TRIES % "server failed": "0x20 4x40", MODEL % "answered": "9x70"}, "26m", False),
        ("CountersignModelFails", {TRIES % "rate limited": "0+3x40", MODEL % "answered": "0+1x40"}, "35m", False),
        ("CountersignToolFails", {TOOL % "failed": "1x20 2x40"}, "33m", False),
        ("CountersignToolFails", {TOOL % "failed": "1+1x40"}, "33m", True),
    ],
)
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)")
def test_an_alert_fires_for_what_it_says_and_not_otherwise(
    tmp_path: Path, alert: str, series: dict[str, str], at: str, *, fires: bool
) -> None:
    """A delivery that is given up first of all, and a new version that is rolled out, among others."""
    assert PROMTOOL is not None
    firing = {
        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
        "eval_time": at,
        "exp_samples": [{"labels": "{}", "value": int(fires)}],
    }
    cases = {
        "rule_files": [str(MONITORING / "alerts.yml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [firing],
            }
        ],
    }
    file = tmp_path / "alerts.test.yml"
    file.write_text(yaml.safe_dump(cases))
    done = subprocess.run([PROMTOOL, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _fires(alert: str, severity: str, **labels: str) -> dict[str, object]:
    return {"eval_time": "30m", "alertname": alert, "exp_alerts": [{"exp_labels": {"severity": severity, **labels}}]}


def _annotations(alert: str) -> dict[str, str]:
    """What the alert says, with the values of these time series."""
    said = {
        "CountersignToolSlow": {"summary": "crm › find takes longer than 19.5s"},
        "CountersignModelFails": {
            "summary": "50% of the requests to any fail",
            "description": "By trouble: countersign_model_tries_failed_total.",
        },
        "CountersignRecordsOutOfReach": {
            "summary": "The database of a cannot be used",
            "description": "Nothing is accepted until it is back: docs/operations.md#while-postgresql-is-away.",
        },
    }
    return said[alert]
