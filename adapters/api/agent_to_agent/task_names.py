"""The ids of tasks: a task is the turn that a message began, and its id says which, to every replica alike."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass

from adapters.api.thread_names import THREAD_PREFIX

KIND = "a2a"
"""In which contract a context is known (`ThreadNames`)."""
LONGEST_CONTEXT = 200
"""Characters."""
LONGEST_TASK_ID = 1_500
_FORM = re.compile(r"([0-9a-f]{40})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class TaskName:
    """What the id of a task says. Whose it is, it does not: that is looked up."""

    thread_id: str
    turn: str
    """Key of the message that began it."""
    context_id: str
    """By what its client calls the conversation."""

    @property
    def task_id(self) -> str:
        """As clients have it."""
        thread, message = self.thread_id.rpartition("-")[2], self.turn.removeprefix(f"{self.thread_id}:")
        return ".".join([thread, _hidden(message), _hidden(self.context_id)])

    @classmethod
    def of(cls, task_id: str) -> TaskName | None:
        """What an id says; `None`: it is no id of a task."""
        found = _FORM.fullmatch(task_id) if len(task_id) <= LONGEST_TASK_ID else None
        if found is None:
            return None
        thread_id = f"{THREAD_PREFIX}{KIND}-{found[1]}"
        message, context_id = _shown(found[2]), _shown(found[3])
        if message is None or context_id is None or len(context_id) > LONGEST_CONTEXT:
            return None
        return cls(thread_id, f"{thread_id}:{message}", context_id)


def _hidden(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _shown(text: str) -> str | None:
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (NotBase64, UnicodeDecodeError):
        return None
    return raw if "\0" not in raw and _hidden(raw) == text else None
