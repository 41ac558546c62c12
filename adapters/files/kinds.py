"""What a file is: by what is in it, then by its name, and by what was said of it only where neither tells. Pure; run in
the child process."""

from __future__ import annotations

import io
import zipfile
from typing import Final, Literal

Kind = Literal["text", "csv", "html", "eml", "pdf", "docx", "xlsx", "pptx", "xls", "msg"]
Refusal = Literal["encrypted", "damaged", "unsupported", "too_much"]

MOST_ENTRIES = 10_000
"""Files in an archive, as Office documents are. Our own choice: a presentation with 500 slides has 3,000."""
LARGEST_UNPACKED = 200 * 1024 * 1024
"""Bytes of all of them, unpacked. Python's `zipfile` unpacks no more than is declared."""
MOST_PACKED = 500
"""How many times smaller than its content an entry of more than a megabyte may be; XML packs 20 to 50 times."""
_START = 4_096
"""Bytes at the beginning of a file that tell what it is."""
TEXT: Final = frozenset(
    (
        *("txt", "text", "md", "markdown", "rst", "log", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf"),
        *("xml", "sql", "py", "js", "ts", "css", "sh", "c", "h", "cpp", "java", "go", "rs", "rb", "php", "tex", "diff"),
        *("patch", "ics", "vcf"),
    )
)
"""Endings of files whose text is taken as it is, whatever bytes are in it."""
BY_ENDING: Final[dict[str, Kind]] = {"csv": "csv", "tsv": "csv", "html": "html", "htm": "html", "eml": "eml"}
BY_MEDIA_TYPE: Final[dict[str, Kind]] = {"text/html": "html", "text/csv": "csv", "message/rfc822": "eml"}
BY_ENTRY: Final[dict[str, Kind]] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "xlsx",
    "ppt/presentation.xml": "pptx",
}
_ARCHIVE, _CONTAINER = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


def kind_of(content: bytes, name: str, media_type: str) -> tuple[Kind | None, Refusal | None]:
    """Returns what a file is, or why it cannot be read."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    start = content[:_START]
    if start.removeprefix(_BOM).lstrip().startswith(b"%PDF-") or (ending == "pdf" and b"%PDF-" in start):
        return "pdf", None
    if start.startswith(_ARCHIVE):
        return _in_archive(content)
    if start.startswith(_CONTAINER):
        return _in_container(content, ending)
    if ending == "pdf" or ending in {"docx", "xlsx", "pptx", "xls", "msg"}:
        return None, "damaged"
    if start.startswith(b"{\\rtf") or (b"\x00" in start and not start.startswith(_UTF16)):
        return None, "unsupported"
    if ending in BY_ENDING:
        return BY_ENDING[ending], None
    if ending in TEXT:
        return "text", None
    if start.removeprefix(_BOM).lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "html", None
    if _is_text(content):
        return BY_MEDIA_TYPE.get(media_type.partition(";")[0].strip().lower(), "text"), None
    if not ending or media_type.startswith("text/"):
        return "text", None
    return None, "unsupported"


def _is_text(content: bytes) -> bool:
    """Whether a file whose ending says nothing is text: UTF-8 (or marked UTF-16) without control characters."""
    if content.startswith(_UTF16):
        return True
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not any(character < " " and character not in "\t\n\r\f\x1b" for character in set(text))


def _in_archive(content: bytes) -> tuple[Kind | None, Refusal | None]:
    """Office documents are archives; what would not fit into memory when it is unpacked is not unpacked."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return None, "damaged"
    unpacked = sum(each.file_size for each in entries)
    is_bomb = any(
        each.file_size > 1024 * 1024 and each.file_size > MOST_PACKED * max(1, each.compress_size) for each in entries
    )
    if len(entries) > MOST_ENTRIES or unpacked > LARGEST_UNPACKED or is_bomb:
        return None, "too_much"
    if any(each.flag_bits & 1 for each in entries):
        return None, "encrypted"
    names = {each.filename for each in entries}
    for name, kind in BY_ENTRY.items():
        if name in names:
            return kind, None
    return None, "unsupported"


def _in_container(content: bytes, ending: str) -> tuple[Kind | None, Refusal | None]:
    """What is in an OLE container, as old Office documents, mails of Outlook, and documents with a password are, by the
    names of its streams."""

    def has(stream: str) -> bool:
        return (stream + "\0").encode("utf-16-le") in content

    if has("__properties_version1.0"):
        return "msg", None
    if has("EncryptedPackage"):
        return None, "encrypted"
    if ending == "xls" or not (has("WordDocument") or has("PowerPoint Document")):
        if has("Workbook") or has("Book"):
            return "xls", None
        return None, "damaged" if ending in {"xls", "msg"} else "unsupported"
    return None, "unsupported"
