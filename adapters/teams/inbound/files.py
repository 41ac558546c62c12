"""What came along with a message, noted by name and size. Pure; nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.shared.untrusted_json import part, parts, words
from bot.safe_text import visible_line

MOST_FILES = 20

_UPLOADED = "application/vnd.microsoft.teams.file.download.info"
"""A file sent to the bot in a personal chat."""
_SHARED = "reference"
"""A file shared in a channel or a group chat."""


def file_notes(activity: Mapping[str, Any], *, pictures: bool) -> list[str]:
    """A line for each file; for pictures too, unless they stand in the text already."""
    files = [attached for attached in parts(activity, "attachments") if _is_noted(attached, pictures=pictures)]
    notes = [f"[attached: {_file(file)}]" for file in files[:MOST_FILES]]
    if len(files) > MOST_FILES:
        notes.append(f"[and {len(files) - MOST_FILES} more files]")
    return notes


def _is_noted(attached: Mapping[str, Any], *, pictures: bool) -> bool:
    kind = words(attached, "contentType")
    return kind in (_UPLOADED, _SHARED) or (pictures and kind.startswith("image/"))


def _file(file: Mapping[str, Any]) -> str:
    otherwise = "a picture" if words(file, "contentType").startswith("image/") else "a file"
    name = visible_line(words(file, "name"), 200).replace("]", ")") or otherwise
    content = part(file, "content")
    size = content.get("fileSize", content.get("size"))
    return f"{name}, {_size(size)}" if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else name


def _size(size: int) -> str:
    """Bytes in words, as file managers say it: `12 kB`, `3.4 MB`."""
    if size < 1_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size // 1_000} kB"
    return f"{size // 100_000 / 10:,} MB"
