"""What has been shown of the answer that is being written."""

from __future__ import annotations

from graph.ports import Live, Spoken, TaskState


class Written:
    """A live view that passes everything on, and can tell the text of the newest answer: it is nowhere else until the
    answer is finished."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._message_id = ""
        self._pieces: list[str] = []

    @property
    def newest(self) -> Spoken | None:
        """The newest answer as far as it was written; `None`: nothing was."""
        text = "".join(self._pieces)
        return Spoken(self._message_id, text) if text.strip() else None

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        if message_id != self._message_id:
            self._message_id, self._pieces = message_id, []
        self._pieces.append(delta)
        self._live.text(message_id, delta)

    def status(self, text: str) -> None:
        """One short line about what the bot is doing."""
        self._live.status(text)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands."""
        self._live.task(task_id, title, state)

    def end(self, *, waiting: bool) -> None:
        """The delivery has been handled."""
        self._live.end(waiting=waiting)
