"""The live view."""

from __future__ import annotations

from typing import Literal, Protocol

TaskState = Literal["running", "done", "failed"]


class Live(Protocol):
    """Shows what happens while it happens. Nothing durable; each verb returns at once."""

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        ...

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing."""
        ...

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands. The same `task_id` again replaces what was shown."""
        ...

    def end(self, *, waiting: bool) -> None:
        """The delivery has been handled: nothing more comes. What was said is posted by others, perhaps later.

        `waiting`: whether the thread now waits for people.
        """
        ...
