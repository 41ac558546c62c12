"""The two ways to show an answer while it is written: Slack's streams, and one message that is updated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.posting import UNFINISHED, show_piece, stop_stream, update_piece, where
from adapters.slack.render.blocks import MOST_BLOCKS, SlackMessage, piece, task_card, without_brackets
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


@dataclass(frozen=True, slots=True)
class TaskCard:
    """A tool call as it stands."""

    title: str
    state: TaskState

    def ended(self) -> TaskCard:
        """The call when nothing more comes: one that is shown as running would stay so."""
        return replace(self, state="failed") if self.state == "running" else self


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

    def ended(self) -> StreamedAnswer:
        """What stays of it when nothing more comes."""
        return replace(self, tasks={name: task.ended() for name, task in self.tasks.items()})


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of the finished post when its draft ends."""

    text: str
    """All of it, as the model wrote it; empty when a stream cannot show what the post is to show."""
    calls: Sequence[Mapping[str, Any]]
    """The blocks that name the tool calls made for it; a stream that has shown them as they ran needs none."""
    blocks: Sequence[Mapping[str, Any]]
    """What stands below that."""
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
            # Tasks come after the text that announced them, and before one that is still being written: they would
            # stand in its middle.
            chunks.insert(0 if answer.complete else len(chunks), {"type": "markdown_text", "text": text})
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

    @property
    def tasks(self) -> frozenset[str]:
        """The tool calls that it shows."""
        return frozenset(self._tasks)

    async def leave(self, answer: StreamedAnswer) -> None:
        """End the stream: nothing more comes, and nothing replaces it. Raises `CallFailed`."""
        ended = answer.ended().tasks
        await stop_stream(self._api, self._location, self.ts, chunks=self._changed(ended))
        self._tasks = dict(ended)

    async def give_up(self) -> None:
        """End the stream as it is: its message is updated from now on, and not finished before. Raises `CallFailed`."""
        await stop_stream(self._api, self._location, self.ts, metadata=UNFINISHED, patience=PIECE_SECONDS)

    async def stop(self, ending: Ending) -> bool:
        """End the stream with its post; whether the message now is what the post is to be. Raises `CallFailed`."""
        rest = self._rest(ending.text)
        if rest is None:
            await stop_stream(self._api, self._location, self.ts, metadata=ending.metadata)
            return False
        chunks = [{"type": "markdown_text", "text": rest}] if rest else []
        blocks, metadata = [*(() if self._tasks else ending.calls), *ending.blocks], ending.metadata
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
    """A message posted once and then replaced again and again. Tool calls begin none, since the status says them; in a
    message that is there already, which a stream may have begun with them, they are shown until there is text."""

    def __init__(self, api: WebApi, location: SlackLocation, draw: Callable[[str], SlackMessage], ts: str = "") -> None:
        self.ts = ts
        self._api = api
        self._location = location
        self._draw = draw
        self._shown = _Content("", {})

    async def write(self, answer: StreamedAnswer) -> None:
        """Post it, or replace it. Raises `CallFailed`."""
        new = self._to_show(answer)
        if new.is_empty or new == self._shown:
            return
        if self.ts:
            await self._update(new, UNFINISHED)
        else:
            marked = {"unfurl_links": False, "unfurl_media": False, "metadata": UNFINISHED}
            arguments, drawn = where(self._location) | marked, self._draw(new.text)
            team = self._location.team
            posted = await show_piece(self._api, team, "chat.postMessage", arguments, drawn, patience=PIECE_SECONDS)
            self.ts = str(posted["ts"])
        self._shown = new

    async def leave(self, answer: StreamedAnswer) -> None:
        """Nothing more comes, and nothing replaces it: it is not unfinished any more. Raises `CallFailed`."""
        last = self._to_show(answer.ended())
        if not last.is_empty:
            await self._update(last, {})
            self._shown = last

    @property
    def tasks(self) -> frozenset[str]:
        """The tool calls that it shows."""
        return frozenset(self._shown.tasks)

    def _to_show(self, answer: StreamedAnswer) -> _Content:
        text = cut_at_line(answer.shown(), MOST_STREAMED)
        if text.strip():
            return _Content(text, {})
        return _Content("", dict(answer.tasks) if self.ts else {})

    async def _update(self, new: _Content, metadata: Mapping[str, Any]) -> None:
        drawn = self._draw(new.text) if new.text else _draw_tasks(new.tasks)
        await update_piece(self._api, self._location, self.ts, drawn, metadata, patience=PIECE_SECONDS)


@dataclass(frozen=True, slots=True)
class _Content:
    """What an updated message shows."""

    text: str
    tasks: Mapping[str, TaskCard]

    @property
    def is_empty(self) -> bool:
        """Whether that is nothing."""
        return not self.text and not self.tasks


def _task_chunk(name: str, task: TaskCard) -> dict[str, Any]:
    return {"type": "task_update", "id": name, "title": _title(task), "status": _STATUS[task.state]}


def _draw_tasks(tasks: Mapping[str, TaskCard]) -> SlackMessage:
    """Tool calls as a message of their own, as a stream shows them; the newest, where there are too many."""
    newest = list(tasks.items())[-MOST_BLOCKS:]
    cards = [task_card(name, _title(task), _STATUS[task.state]) for name, task in newest]
    return piece(cards, "\n".join(f"{_title(task)} ({task.state})" for _, task in newest))


def _title(task: TaskCard) -> str:
    return without_brackets(visible_line(task.title, LONGEST_TITLE))
