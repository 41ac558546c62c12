"""The two ways to show an answer while it is written: Slack's streams, and one message that is updated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.posting import UNFINISHED, show_piece, stop_stream, where
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.markdown import cut_at_line, stable, streamable
from adapters.slack.web_api.client import WebApi
from bot.safe_text import visible_line
from graph.ports import TaskState

MOST_STREAMED = 11_000
"""Characters of Markdown in one stream (Slack: 12,000); the post that follows has all of it."""
LONGEST_TITLE = 120
"""Characters of a task's title."""

PIECE_SECONDS = 4.0
"""Seconds that showing a piece of a draft may take: its post waits for it."""

_STATUS: Mapping[TaskState, str] = {"running": "in_progress", "done": "complete", "failed": "error"}
_BRACKETS = str.maketrans({"<": "‹", ">": "›"})


@dataclass(frozen=True, slots=True)
class TaskCard:
    """A tool call as it stands."""

    title: str
    state: TaskState


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """What has been written so far of an answer."""

    text: str
    """Markdown, as the model wrote it."""
    complete: bool
    """Whether the model has gone on to something else, so that no more text will come."""
    tasks: Mapping[str, TaskCard]

    def shown(self) -> str:
        """The text that can be shown already."""
        return self.text if self.complete else stable(self.text)


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of the finished post when its draft ends."""

    text: str
    """All of it, as the model wrote it; empty when a stream cannot show what the post is to show."""
    blocks: Sequence[Mapping[str, Any]]
    """What stands below it."""
    metadata: Mapping[str, Any]


class SlackStream:
    """A message written by `chat.startStream` and its siblings. `ts`: its timestamp; empty while there is none."""

    def __init__(self, api: WebApi, location: SlackLocation, recipient: Mapping[str, str]) -> None:
        self.ts = ""
        self._api = api
        self._location = location
        self._recipient = recipient
        self._sent = ""
        self._tasks: Mapping[str, TaskCard] = {}

    async def write(self, answer: StreamedAnswer) -> None:
        """Append what is new. Raises `CallFailed`; what was not shown is tried again with the next call."""
        text = self._more(answer.shown())
        chunks = self._changed(answer.tasks)
        if text:
            # Tasks come after the text that announced them.
            chunks.insert(0, {"type": "markdown_text", "text": text})
        if not chunks:
            return
        if self.ts:
            await self._call("chat.appendStream", {"channel": self._location.channel, "ts": self.ts, "chunks": chunks})
        else:
            started = await self._call(
                "chat.startStream", {**where(self._location), **self._recipient, "chunks": chunks}
            )
            self.ts = str(started["ts"])
        self._sent += text
        self._tasks = dict(answer.tasks)

    async def leave(self, tasks: Mapping[str, TaskCard]) -> None:
        """End the stream, with the tool calls as they stand. Raises `CallFailed`."""
        # Nothing replaces it, so that a call shown as running would stay so.
        ended = {name: TaskCard(t.title, "failed" if t.state == "running" else t.state) for name, t in tasks.items()}
        await stop_stream(self._api, self._location, self.ts, chunks=self._changed(ended))

    async def stop(self, ending: Ending) -> bool:
        """End the stream with its post; whether the message now is what the post is to be. Raises `CallFailed`."""
        rest = self._rest(ending.text)
        if rest is None:
            await stop_stream(self._api, self._location, self.ts, metadata=ending.metadata)
            return False
        chunks = [{"type": "markdown_text", "text": rest}] if rest else []
        blocks, metadata = ending.blocks, ending.metadata
        await stop_stream(self._api, self._location, self.ts, chunks=chunks, blocks=blocks, metadata=metadata)
        return True

    def _changed(self, tasks: Mapping[str, TaskCard]) -> list[dict[str, Any]]:
        """What to append of tool calls."""
        return [_task_chunk(name, task) for name, task in tasks.items() if self._tasks.get(name) != task]

    def _more(self, text: str) -> str:
        """What to append. Nothing when making the text safe has changed what was appended already."""
        safe = cut_at_line(streamable(cut_at_line(text, MOST_STREAMED)), MOST_STREAMED)
        more = safe.removeprefix(self._sent) if safe.startswith(self._sent) else ""
        return more if more.strip() else ""

    def _rest(self, text: str) -> str | None:
        """What is missing of the whole text; `None`: the stream cannot become the whole."""
        if len(text) > MOST_STREAMED:
            return None
        safe = streamable(text)
        running = any(task.state == "running" for task in self._tasks.values())
        if not text or running or len(safe) > MOST_STREAMED:
            return None
        if safe.startswith(self._sent):
            return safe.removeprefix(self._sent).rstrip()
        return "" if safe.rstrip() == self._sent.rstrip() else None

    async def _call(self, method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._api.call(self._location.team, method, arguments, patience=PIECE_SECONDS)


class UpdatedMessage:
    """A message posted once and then replaced again and again. Tool calls are not shown in it: the status says them."""

    def __init__(self, api: WebApi, location: SlackLocation, draw: Callable[[str], SlackMessage], ts: str = "") -> None:
        self.ts = ts
        self._api = api
        self._location = location
        self._draw = draw
        self._shown = ""

    async def write(self, answer: StreamedAnswer) -> None:
        """Post it, or replace it. Raises `CallFailed`."""
        text = cut_at_line(answer.shown(), MOST_STREAMED)
        if not text.strip() or text == self._shown:
            return
        if self.ts:
            await self._update(text, UNFINISHED)
        else:
            marked = {"unfurl_links": False, "unfurl_media": False, "metadata": UNFINISHED}
            posted = await self._show("chat.postMessage", where(self._location) | marked, self._draw(text))
            self.ts = str(posted["ts"])
        self._shown = text

    async def leave(self) -> None:
        """Nothing replaces it: it stays as it is, and is not unfinished any more. Raises `CallFailed`."""
        if self._shown:
            await self._update(self._shown, {})

    async def _update(self, text: str, metadata: Mapping[str, Any]) -> None:
        arguments = {"channel": self._location.channel, "ts": self.ts, "metadata": metadata}
        await self._show("chat.update", arguments, self._draw(text))

    async def _show(self, method: str, arguments: Mapping[str, Any], piece: SlackMessage) -> Mapping[str, Any]:
        return await show_piece(self._api, self._location.team, method, arguments, piece, patience=PIECE_SECONDS)


def _task_chunk(name: str, task: TaskCard) -> dict[str, Any]:
    title = visible_line(task.title, LONGEST_TITLE).translate(_BRACKETS)
    return {"type": "task_update", "id": name, "title": title, "status": _STATUS[task.state]}
