"""A collector on loopback that takes traces by OTLP over HTTP, and scores as Langfuse does, and nothing that is not as
the specifications have it (https://opentelemetry.io/docs/specs/otlp/#otlphttp)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

WITHIN = 20.0
"""Seconds that anything a test waits for may take."""


@dataclass(frozen=True)
class TracedSpan:
    """A span as it was received."""

    trace: str
    span_id: str
    parent: str
    """Empty: it begins its trace."""
    name: str
    kind: str
    began: int
    ended: int
    attributes: dict[str, Any]
    links: tuple[str, ...]
    """Ids of spans of the same trace."""
    failed: bool
    resource: dict[str, Any] = field(hash=False)


class Collector:
    """What was received, and where it listens."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[TracedSpan] = []
        self.headers: list[dict[str, str]] = []
        self.scores: list[dict[str, Any]] = []
        self.faults: list[str] = []
        """What was not as it has to be."""
        self.bodies: list[bytes] = []
        self.status = 200
        """What is answered; another one than 200: nothing is taken."""
        self.held: asyncio.Event | None = None
        """Until it is set, nobody is answered."""
        self._changed = asyncio.Condition()

    def named(self, name: str) -> list[TracedSpan]:
        """Spans of a name, in the order in which they began."""
        return sorted((each for each in self.spans if each.name == name), key=lambda each: each.began)

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something holds of what was received, and return it."""
        async with self._changed:
            try:
                async with asyncio.timeout(WITHIN):
                    while not (found := condition()):
                        await self._changed.wait()
            except TimeoutError:
                raise AssertionError(f"did not come; there are {[each.name for each in self.spans]}") from None
        return found

    async def traces(self, request: web.Request) -> web.Response:
        """`POST /v1/traces`."""
        if self.held is not None:
            await self.held.wait()
        if self.status != 200:
            return web.Response(status=self.status)
        body = await request.read()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(body)
        if request.content_type != "application/x-protobuf":
            self.faults.append(f"content type {request.content_type}")
        sent = ExportTraceServiceRequest()
        sent.ParseFromString(body)
        self._no_unknown(sent)
        async with self._changed:
            for resource_spans in sent.resource_spans:
                resource = self._attributes(resource_spans.resource.attributes)
                if not resource.get("service.name") or "telemetry.sdk.name" not in resource:
                    self.faults.append(f"resource {resource}")
                for scope_spans in resource_spans.scope_spans:
                    if not scope_spans.scope.name:
                        self.faults.append("a scope without a name")
                    self.spans += [self._span(each, resource) for each in scope_spans.spans]
            self._changed.notify_all()
        return web.Response(
            body=ExportTraceServiceResponse().SerializeToString(), content_type="application/x-protobuf"
        )

    async def score(self, request: web.Request) -> web.Response:
        """`POST /api/public/scores`."""
        if self.status != 200:
            return web.Response(status=self.status)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        score = json.loads(await request.text())
        allowed = {"id", "traceId", "name", "value", "dataType", "comment", "environment", "metadata", "observationId"}
        if set(score) - allowed or not {"traceId", "name", "value"} <= set(score) or len(score["traceId"]) != 32:
            self.faults.append(f"score {score}")
        if score.get("dataType") == "BOOLEAN" and score["value"] not in (0, 1):
            self.faults.append(f"score {score}")
        async with self._changed:
            self.scores.append(score)
            self._changed.notify_all()
        return web.json_response({"id": score.get("id", "")})

    def _span(self, span: trace_pb2.Span, resource: dict[str, Any]) -> TracedSpan:
        self._no_unknown(span)
        attributes = self._attributes(span.attributes)
        what = f"{span.name} {attributes}"
        ids = [(16, span.trace_id), (8, span.span_id), *((8, each.span_id) for each in span.links)]
        ids += [(8, span.parent_span_id)] if span.parent_span_id else []
        if any(len(each) != size or not any(each) for size, each in ids):
            self.faults.append(f"ids of {what}")
        if any(link.trace_id != span.trace_id for link in span.links):
            self.faults.append(f"links to elsewhere: {what}")
        if not span.name or not span.kind:
            self.faults.append(f"name or kind: {what}")
        if not 0 < span.start_time_unix_nano <= span.end_time_unix_nano:
            self.faults.append(f"times: {what}")
        if any((each.trace, each.span_id) == (span.trace_id.hex(), span.span_id.hex()) for each in self.spans):
            self.faults.append(f"twice the same span: {what}")
        failed = span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
        if failed != ("error.type" in attributes):
            self.faults.append(f"status and error.type: {what}")
        return TracedSpan(
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.name,
            trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            attributes,
            tuple(each.span_id.hex() for each in span.links),
            failed,
            resource,
        )

    def _attributes(self, attributes: Iterable[KeyValue]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in attributes:
            if not each.key or each.key in found:
                self.faults.append(f"attribute {each.key!r}")
            found[each.key] = self._value(each.value)
        return found

    def _value(self, value: AnyValue) -> Any:
        kind = value.WhichOneof("value")
        if kind is None:
            self.faults.append("an attribute without a value")
            return None
        if kind == "array_value":
            return [self._value(each) for each in value.array_value.values]
        return getattr(value, kind)

    def _no_unknown(self, message: Any) -> None:
        if len(UnknownFieldSet(message)):
            self.faults.append(f"unknown fields in {type(message).__name__}")


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector that runs."""
    collector = Collector()
    application = web.Application(client_max_size=64 * 1024**2)
    application.add_routes(
        [
            web.post("/v1/traces", collector.traces),
            web.post("/api/public/otel/v1/traces", collector.traces),
            web.post("/api/public/scores", collector.score),
        ]
    )
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()
