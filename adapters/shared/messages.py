"""Messages that people write, edit and delete, and the files with them, noted by name and size."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain import Message
from bot.inbox import Inbox
from bot.safe_text import visible_line

WORDLESS = "[mentioned you without a word]"
"""What a bare mention says, in the middle of a thread for instance: models take no empty messages."""


@dataclass(frozen=True, slots=True)
class MessageEdited:
    """A message was edited."""

    key: str
    text: str
    message: Message | None
    """The message, when it may speak to the bot only since the edit: it is then accepted like a new one."""


@dataclass(frozen=True, slots=True)
class MessageDeleted:
    """A message was deleted."""

    key: str


async def keep(inbox: Inbox, change: Message | MessageEdited | MessageDeleted) -> None:
    """Keeps what was written, as it reads now. Raises whatever the inbox raises."""
    match change:
        case Message():
            await inbox.accept(change)
        case MessageEdited(key, text, message):
            if message is None or not await inbox.accept(message):
                await inbox.amend(key, text)
        case MessageDeleted(key):
            await inbox.withdraw(key)


_IN_AN_ADDRESS = re.compile(r"[\w.+-]")


def apart(before: str, mention: str) -> str:
    """Returns a mention (`@name`, `#name`) with a space before it where it would follow what an address of mail may
    hold: nobody could tell that the name begins there. `before`: the character that it follows; empty: none."""
    return f" {mention}" if mention[:1] in ("@", "#") and before and _IN_AN_ADDRESS.match(before) else mention


MOST_FILES = 20
"""Files that are noted; of further ones only their number."""


def attachment_notes(
    files: Sequence[Mapping[str, Any]], described: Callable[[Mapping[str, Any]], tuple[str, object]]
) -> list[str]:
    """Returns a line for each file. `described` says its name, and its size in bytes where that is a whole number."""
    notes = [f"[attached: {_with_size(*described(file))}]" for file in files[:MOST_FILES]]
    if len(files) > MOST_FILES:
        notes.append(f"[and {len(files) - MOST_FILES} more files]")
    return notes


def file_name(said: str, otherwise: str) -> str:
    """Returns what a platform calls a file, in one line that cannot end a note; `otherwise` where that is nothing."""
    return visible_line(said, 200).replace("]", ")") or otherwise


def size_in_bytes(said: object) -> int | None:
    """Returns the size of a file where what a platform says is one; else `None`."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 2**53 else None


def _with_size(name: str, said: object) -> str:
    return name if (size := size_in_bytes(said)) is None else f"{name}, {_in_words(size)}"


def _in_words(size: int) -> str:
    """Bytes as file managers say it: `12 kB`, `3.4 MB`."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size // 1_000} kB"
    return f"{size // 100_000 / 10:,} MB"
