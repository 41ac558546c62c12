"""The answers of a model, recorded while it is tried and given again later: without the model, the same each time.

A server on loopback stands between the product and a service that speaks OpenAI's chat completions. What is random in a
request (ids of events, tasks, documents and files) is other each time; in the recorded answer there stands which of the
request's ids it is. What has a date is right because the days of a replayed conversation are those of the recording.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from aiohttp import web

Json = dict[str, Any]
VERSION = 1
LARGEST_REQUEST = 32 * 1024 * 1024
"""Bytes: more than any model reads."""
ANSWERS_WITHIN = 600.0
"""Seconds for one answer of the service; the product has its own limit, which is shorter."""
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|file_[0-9A-Za-z-]{8,}")
_MARK = re.compile(r"\{\{id (\d+)\}\}")
_SIGNED = frozenset({"authorization", "api-key", "openai-organization", "openai-project", "user-agent"})
"""Headers of a request that the service gets too."""


class RecordingError(Exception):
    """A file is no recording, or holds another one than is wanted; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer of a model.

    Attributes:
        calls: each with `id`, `name` and `arguments` (a text).
        usage: as the service says it.
        finish_reason: empty where it broke off.
    """

    text: str
    calls: Sequence[Mapping[str, str]] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"


@dataclass(slots=True)
class RecordedConversation:
    """What the model answered in one conversation, and the moment from which its days are counted."""

    now: datetime
    answers: list[ModelAnswer] = field(default_factory=list)


@dataclass(slots=True)
class Recording:
    """What a model answered, by conversation."""

    model: str
    router: str
    """The model that picks the tool types."""
    conversations: dict[str, RecordedConversation] = field(default_factory=dict)

    def written(self) -> str:
        """As JSON Lines."""
        lines: list[Json] = [{"version": VERSION, "model": self.model, "router": self.router}]
        for name, held in self.conversations.items():
            lines.append({"name": name, "now": held.now.isoformat(), "answers": [asdict(a) for a in held.answers]})
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def read_recording(file: Path) -> Recording:
    """The recording in a file. Raises `RecordingError`."""
    number = 1
    try:
        first, *rest = file.read_text(encoding="utf-8").split("\n")
        recording = _head(json.loads(first), file)
        for line in rest:
            number += 1
            if line:
                held = json.loads(line)
                answers = [ModelAnswer(**answer) for answer in held["answers"]]
                now = datetime.fromisoformat(held["now"])
                recording.conversations[held["name"]] = RecordedConversation(now, answers)
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{file}, line {number}: it is no recording ({error})") from error
    return recording


def _head(line: Json, file: Path) -> Recording:
    if line["version"] != VERSION:
        raise RecordingError(f"{file} has version {line['version']}: this program reads version {VERSION}")
    return Recording(line["model"], line["router"])


class Answering(Protocol):
    """Gives the next answer of the conversation that is held."""

    async def answer(self, request: web.Request, body: Json) -> ModelAnswer | web.Response:
        """A response is given to the product as it is."""
        ...


class Recorder:
    """Asks a service, and records what it answers.

    Args:
        base_url: of the service, up to and including `/v1`.
        into: what is recorded.
    """

    def __init__(self, base_url: str, http: aiohttp.ClientSession, into: Recording) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._http = http
        self._into = into
        self._held: RecordedConversation | None = None

    def begin(self, name: str, now: datetime) -> None:
        """What comes next belongs to this conversation."""
        self._held = self._into.conversations[name] = RecordedConversation(now)

    async def answer(self, request: web.Request, body: Json) -> ModelAnswer | web.Response:
        """What the service says. Its errors are passed on, and not recorded."""
        headers = {name: value for name, value in request.headers.items() if name.lower() in _SIGNED}
        async with self._http.post(self._url, json=body, headers=headers) as response:
            said = await response.read()
            if response.status != 200:
                kept = {name: value for name, value in response.headers.items() if name.lower() == "retry-after"}
                return web.Response(status=response.status, body=said, headers=kept, content_type=response.content_type)
        answer = read_answer(said.decode())
        if self._held is not None:
            self._held.answers.append(with_marks(answer, ids_in(body)))
        return answer


class Replayer:
    """Gives the recorded answers again."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._left: Iterator[ModelAnswer] = iter(())

    def begin(self, name: str, now: datetime) -> None:
        """What comes next belongs to this conversation."""
        held = self._recording.conversations.get(name)
        self._left = iter(held.answers if held else ())

    async def answer(self, request: web.Request, body: Json) -> ModelAnswer | web.Response:
        """The next one."""
        recorded = next(self._left, None)
        if recorded is None:
            error = {"message": "the recording has no further answer for this conversation", "type": "invalid_request"}
            return web.json_response({"error": error}, status=400)
        return without_marks(recorded, ids_in(body))


@asynccontextmanager
async def answering_server(answering: Answering) -> AsyncIterator[str]:
    """Serves `/v1/chat/completions` on loopback; the base URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        given = await answering.answer(request, body)
        if isinstance(given, web.Response):
            return given
        if body.get("stream"):
            events = "".join(f"data: {json.dumps(event)}\n\n" for event in streamed(given, str(body.get("model"))))
            return web.Response(text=f"{events}data: [DONE]\n\n", content_type="text/event-stream")
        return web.json_response(whole(given, str(body.get("model"))))

    application = web.Application(client_max_size=LARGEST_REQUEST)
    application.router.add_post("/v1/chat/completions", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


# ------------------------------------------------------------------------------------------------ ids


def ids_in(body: Mapping[str, Any]) -> list[str]:
    """The ids in the messages of a request, in the order in which they come. Those of calls are the model's own."""
    said = [message.get("content") for message in body.get("messages", ())]
    return list(dict.fromkeys(_ID.findall(json.dumps(said))))


def with_marks(answer: ModelAnswer, ids: Sequence[str]) -> ModelAnswer:
    """The answer with a mark in the place of each id that the request has."""
    numbers = {found: number for number, found in enumerate(ids)}

    def mark(found: re.Match[str]) -> str:
        return f"{{{{id {numbers[found[0]]}}}}}" if found[0] in numbers else found[0]

    return _changed(answer, lambda text: _ID.sub(mark, text))


def without_marks(answer: ModelAnswer, ids: Sequence[str]) -> ModelAnswer:
    """The answer with the ids of another request."""

    def unmark(found: re.Match[str]) -> str:
        number = int(found[1])
        return ids[number] if number < len(ids) else found[0]

    return _changed(answer, lambda text: _MARK.sub(unmark, text))


def _changed(answer: ModelAnswer, change: Any) -> ModelAnswer:
    calls = [{**call, "arguments": change(call["arguments"])} for call in answer.calls]
    return ModelAnswer(change(answer.text), calls, answer.usage, answer.finish_reason)


# ------------------------------------------------------------------------------------------------ the wire


def read_answer(said: str) -> ModelAnswer:
    """An answer of the service, streamed or not."""
    if said.lstrip().startswith("{"):  # a stream may begin with a comment
        body = json.loads(said)
        (choice,) = body["choices"][:1]
        message = choice["message"]
        calls = [{"id": c["id"], **_of_function(c["function"])} for c in message.get("tool_calls") or ()]
        return ModelAnswer(
            message.get("content") or "", calls, body.get("usage") or {}, choice.get("finish_reason") or "stop"
        )
    text, calls_, usage, reason = "", dict[int, dict[str, str]](), Json(), ""
    for line in said.splitlines():
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        event = json.loads(data)
        usage = event.get("usage") or usage
        for choice in event.get("choices", ())[:1]:
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                call = calls_.setdefault(piece.get("index", len(calls_)), {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.get("id") or call["id"]
                said_of_it = _of_function(piece.get("function") or {})
                call["name"] = said_of_it["name"] or call["name"]
                call["arguments"] += said_of_it["arguments"]
    return ModelAnswer(text, list(calls_.values()), usage, reason)


def _of_function(function: Mapping[str, Any]) -> dict[str, str]:
    return {"name": function.get("name") or "", "arguments": function.get("arguments") or ""}


def streamed(answer: ModelAnswer, model: str) -> list[Json]:
    """An answer as the events of a stream."""
    deltas: list[Json] = [{"role": "assistant", "content": answer.text}]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(_calls(answer))]
    events = [_event(model, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(_event(model, [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason or None}]))
    return [*events, _event(model, []) | {"usage": answer.usage}] if answer.usage else events


def whole(answer: ModelAnswer, model: str) -> Json:
    """An answer as one body."""
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return _event(model, [choice]) | {"object": "chat.completion", "usage": answer.usage}


def _calls(answer: ModelAnswer) -> list[Json]:
    return [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in answer.calls
    ]


def _event(model: str, choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-recorded",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
        "choices": choices,
    }
