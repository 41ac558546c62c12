"""Whoever measures and traces, as the settings want it. What they need is imported only when they are switched on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.logs import Mask
from bot.prices import Prices
from bot.settings import Settings, plain
from graph.observing import NOBODY, Happening, Observer
from policies.masking import Masker

if TYPE_CHECKING:
    from adapters.telemetry.metrics import PrometheusMetrics

log = structlog.get_logger(__name__)
_OURS = "OTEL_"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HTTP = "http/protobuf"
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""The library gives what these say to each collector, Langfuse too: they are in the settings, and belong to one."""


class TelemetryError(Exception):
    """What the settings want cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Whoever is told what happens."""

    observer: Observer = NOBODY
    metrics: PrometheusMetrics | None = None
    """`None`: `/metrics` is not served."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What telemetry has to know of what it observes."""

    version: str
    """Of the program."""
    key: bytes
    """From which the ids of traces follow: the same in all processes, and after a restart."""
    masker: Masker
    secrets: frozenset[str]
    """Values that nothing may hold."""
    prices: Prices


class Observers:
    """Several, and a fault of one of them is no fault of what it observes."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self._faults: set[type[Exception]] = set()

    def note(self, happening: Happening) -> None:
        """Tell each of them. A fault is logged once for each kind of it."""
        for observer in self._observers:
            try:
                observer.note(happening)
            except Exception as fault:
                if type(fault) not in self._faults:
                    self._faults.add(type(fault))
                    log.exception("telemetry_failed", about=type(happening).__name__)


@asynccontextmanager
async def telemetry(
    settings: Settings, of: Deployment, variables: Mapping[str, str], environment: MutableMapping[str, str]
) -> AsyncIterator[Telemetry]:
    """What the settings switch on; in the end what is left is sent, for so long as that may take.

    Args:
        variables: those of `.env` and the environment.
        environment: of this process, where OpenTelemetry looks for its own: what only `.env` has of them is added.

    Raises:
        TelemetryError: before anything is observed.
    """
    async with AsyncExitStack() as stack:
        observers: list[Observer] = []
        metrics = None
        if settings.metrics:
            metrics = _metrics(of)
            observers.append(metrics)
        for name, value in variables.items():
            if name.startswith(_OURS):
                environment.setdefault(name, value)
        for name in _HEADERS:
            environment.pop(name, None)
        if wants_traces(settings, environment):
            observers += await _tracing(settings, of, environment, stack)
        yield Telemetry(Observers(observers) if observers else NOBODY, metrics)


def wants_traces(settings: Settings, environment: Mapping[str, str]) -> bool:
    """Whether traces are sent anywhere. The environment may switch off all that OpenTelemetry does, as everywhere."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return bool(settings.langfuse_public_key) or _collects(settings, environment)


def _collects(settings: Settings, environment: Mapping[str, str]) -> bool:
    is_off = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return bool(_collector_address(settings)) and not is_off


def _collector_address(settings: Settings) -> str:
    """Where traces go; empty: to no collector. https://opentelemetry.io/docs/specs/otel/protocol/exporter/"""
    if settings.otel_exporter_otlp_traces_endpoint:
        return settings.otel_exporter_otlp_traces_endpoint
    base = settings.otel_exporter_otlp_endpoint
    return f"{base.rstrip('/')}/v1/traces" if base else ""


def _metrics(of: Deployment) -> PrometheusMetrics:
    try:
        from adapters.telemetry.metrics import PrometheusMetrics  # noqa: PLC0415  # only when it is on
    except ImportError as error:
        raise TelemetryError(_missing("METRICS", error)) from error
    return PrometheusMetrics(of.version, of.prices)


async def _tracing(
    settings: Settings, of: Deployment, environment: Mapping[str, str], stack: AsyncExitStack
) -> list[Observer]:
    collects = _collects(settings, environment)
    variable = "OTEL_EXPORTER_OTLP_ENDPOINT" if collects else "LANGFUSE_PUBLIC_KEY"
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _HTTP)
    if collects and protocol != _HTTP:
        raise TelemetryError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL: is {protocol}. Traces are sent by {_HTTP} only: set that, and the "
            "collector's port for it (4318)."
        )
    try:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # only when it is on

        from adapters.telemetry import exporting  # noqa: PLC0415  # the same
        from adapters.telemetry.content import TracedContent  # noqa: PLC0415  # the same
        from adapters.telemetry.ids import TraceIds  # noqa: PLC0415  # the same
        from adapters.telemetry.scores import LangfuseScores  # noqa: PLC0415  # the same
        from adapters.telemetry.tracing import Tracing  # noqa: PLC0415  # the same
    except ImportError as error:
        raise TelemetryError(_missing(variable, error)) from error
    ids, observers, exporters = TraceIds(of.key), list[Observer](), []
    content = TracedContent(of.masker, Mask(of.secrets, of.masker)) if settings.trace_content else None
    if collects:
        of_traces, of_all = settings.otel_exporter_otlp_traces_headers, settings.otel_exporter_otlp_headers
        try:
            exporters.append(exporting.collector(_collector_address(settings), plain(of_traces or of_all)))
        except exporting.HeadersError as error:
            raise TelemetryError(f"{_HEADERS[0 if of_traces else 1]}: {error}") from None
    public, secret = settings.langfuse_public_key, plain(settings.langfuse_secret_key)
    if public and secret:
        host = settings.langfuse_host or exporting.LANGFUSE_CLOUD
        exporters.append(exporting.langfuse(host, public, secret))
        scores = LangfuseScores(host, exporting.basic(public, secret), ids, content.text if content else None)
        stack.push_async_callback(scores.close, exporting.FLUSH_SECONDS)
        observers.append(scores)
    try:
        processors = [BatchSpanProcessor(exporter) for exporter in exporters]
    except ValueError as error:  # as the environment has what it reads there
        raise TelemetryError(f"OTEL_BSP_…: {error}") from error
    try:
        tracing = Tracing(ids, processors, of.version, content)
    except ValueError as error:  # likewise, such as its limits
        raise TelemetryError(f"OTEL_…: {error}") from error

    async def close() -> None:
        if not await exporting.finished(later.shutdown, exporting.FLUSH_SECONDS):
            for exporter in exporters:
                exporter.shutdown()

    later = exporting.TracedLater(tracing)
    stack.push_async_callback(close)
    observers.append(later)
    log.info("traces_are_sent", to=[exporter.to for exporter in exporters], content=content is not None)
    return observers


def _missing(variable: str, error: ImportError) -> str:
    return (
        f"{variable}: needs packages that are not installed ({error.name}). Install the extra `telemetry`: "
        "uv sync --extra telemetry, or pip install the packages that pyproject.toml lists for it."
    )
