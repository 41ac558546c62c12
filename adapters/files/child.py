"""Reads one file, in a process that can do nothing else. Run as a program; imports nothing of the product.

It gets a line of JSON (`name`, `media_type`, `limits`) and the file on standard input, and writes a line of JSON and
the text, in UTF-8, on standard output: `{"missing": 0}` with the text, or `{"reason": "…"}` with a word of `REASONS`.

What is in the file may be made to break what reads it. So before any of it is looked at: no network (a network
namespace of its own where the kernel lets us, and in any case none through Python), no file is opened but those of
Python and its packages, and those only to be read, nothing is written, no program is started, and memory, CPU time and
the size of what is written are limited by the kernel.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import resource
import sys
import zipfile
from collections.abc import Callable, Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any, Final, NoReturn

REASONS: Final = ("encrypted", "damaged", "unsupported", "not_installed", "too_much")
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MOST_ENTRIES = 10_000
"""Files in an archive, as Office documents are. Our own choice: a presentation with 500 slides has 3,000."""
LARGEST_UNPACKED = 200 * 1024 * 1024
"""Bytes of all of them, unpacked."""
MOST_PACKED = 500
"""How many times smaller than its content an entry of more than a megabyte may be; XML packs 20 to 50 times."""
DEEPEST_MAIL = 10
"""Parts of a mail within parts that are looked into."""
MOST_ROWS = 50_000
"""Rows of a table that are read."""
TEXT = frozenset(
    (
        *("txt", "text", "md", "markdown", "rst", "log", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf"),
        *("xml", "sql", "py", "js", "ts", "css", "sh", "c", "h", "cpp", "java", "go", "rs", "rb", "php", "tex", "diff"),
        *("patch", "ics", "vcf"),
    )
)
"""Endings of files whose text is taken as it is."""
BY_MARKITDOWN = frozenset(["pdf", "docx", "xlsx", "xls", "pptx", "html", "htm", "csv", "msg"])
WITHOUT_IT = frozenset(["html", "htm", "csv"])
"""Of these, what can be read without that package, less well."""


class NotRead(Exception):  # noqa: N818 - an answer, no defect
    """The file cannot be read; `reason` is one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def main() -> None:
    """Read the one file."""
    source, out = sys.stdin.buffer, sys.stdout.buffer
    given = json.loads(source.readline(65_536))
    limits = given["limits"]
    without_network()
    limit(limits)
    read = reader_for(given["name"], given["media_type"], source)
    confine()
    text, missing, reason = "", 0, ""
    try:
        text = read()
    except NotRead as unreadable:
        reason = unreadable.reason
    except (MemoryError, RecursionError):
        reason = "too_much"
    except Exception as error:  # noqa: BLE001  # the libraries raise whatever they like at what they cannot read
        reason = _reason_of(error)
    longest = limits["characters"]
    if len(text) > longest:
        text, missing = text[:longest], len(text) - longest
    head = {"reason": reason} if reason else {"missing": missing}
    out.write(json.dumps(head).encode() + b"\n" + text.encode("utf-8", "replace"))
    out.flush()
    os._exit(0)  # what libraries do at the end is nobody's business


def _reason_of(error: Exception) -> str:
    told = f"{type(error).__name__} {error}".lower()
    if "password" in told or "encrypt" in told:
        return "encrypted"
    return "too_much" if "memory" in told else "damaged"


# ------------------------------------------------------------------------------------------ confinement


def without_network() -> None:
    """Leave the network, where the kernel lets us. Before anything starts threads."""
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET)


def limit(limits: dict[str, int]) -> None:
    """From now on there is so much memory and time, and nothing is written to files."""
    for what, most in (
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS knows no RLIMIT_AS
            resource.setrlimit(what, (most, most))


def confine() -> None:
    """From now on nothing is possible but computing: all that is needed has been imported."""
    roots = tuple({os.path.realpath(each) + os.sep for each in (sys.prefix, sys.base_prefix, *sys.path) if each})

    def refuse(what: str) -> NoReturn:
        raise PermissionError(f"{what} is not for whoever reads files")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            )
            if writes or not (isinstance(path, str) and os.path.realpath(path).startswith(roots)):
                refuse(event)
        elif event.partition(".")[0] in FORBIDDEN or event in FORBIDDEN:
            refuse(event)

    sys.addaudithook(watch)


FORBIDDEN = frozenset(
    (
        *("socket", "subprocess", "pty", "shutil", "tempfile", "ftplib", "smtplib", "urllib", "http", "webbrowser"),
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.kill", "os.putenv"),
        *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
        *("os.chown", "os.utime", "os.setxattr", "os.removexattr", "os.killpg", "resource", "sqlite3", "ctypes.dlopen"),
    )
)
"""Audit events, or the beginnings of their names."""


# ---------------------------------------------------------------------------------------- kinds of files


def reader_for(name: str, media_type: str, source: io.BufferedIOBase | Any) -> Callable[[], str]:
    """What reads the file, with all that it needs imported; the file itself is looked at only when it is called."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    content = source.read()
    kind = _kind(content, ending, media_type)
    if kind == "text":
        return lambda: _decoded(content)
    if kind == "eml":
        return lambda: _mail(content)
    if kind not in BY_MARKITDOWN:
        return _raising(kind if kind in REASONS else "unsupported")
    try:
        import markitdown  # noqa: PLC0415
    except ImportError:
        if kind not in WITHOUT_IT:
            return _raising("not_installed")
        if kind == "csv":
            return lambda: _table(_decoded(content))
        from markdownify import markdownify  # noqa: PLC0415

        return lambda: str(markdownify(_decoded(content), strip=["script", "style", "img"]))
    converter = markitdown.MarkItDown(enable_builtins=True, enable_plugins=False)
    known = markitdown.StreamInfo(extension=f".{kind}", filename=f"file.{kind}")

    def convert(part: bytes) -> str:
        return str(converter.convert_stream(io.BytesIO(part), stream_info=known).markdown)

    if kind == "pdf":
        with contextlib.suppress(ImportError):
            import pypdfium2  # type: ignore[import-untyped]  # noqa: F401, PLC0415
        return lambda: _pages(content, convert)
    return lambda: convert(content)


def _kind(content: bytes, ending: str, media_type: str) -> str:
    """What the file is, first by what is in it."""
    start = content[:1_024]
    if b"%PDF-" in start:
        return "pdf"
    if start.startswith(b"PK\x03\x04"):
        return _kind_of_archive(content)
    if start.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):  # an OLE container
        if _is_encrypted_office(content):
            return "encrypted"
        return ending if ending in {"xls", "msg"} else "unsupported"
    if ending in {"eml", "html", "htm", "csv"}:
        return ending
    if b"\x00" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "unsupported"
    if ending in TEXT or media_type.startswith("text/") or not ending:
        return {"text/html": "html", "text/csv": "csv", "message/rfc822": "eml"}.get(media_type, "text")
    return "unsupported"


def _is_encrypted_office(content: bytes) -> bool:
    return "EncryptedPackage".encode("utf-16-le") in content[: 1024 * 1024]


def _kind_of_archive(content: bytes) -> str:
    """Office documents are archives; what would not fit into memory when it is unpacked is not unpacked."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OSError):
        return "damaged"
    entries = archive.infolist()
    unpacked = sum(each.file_size for each in entries)
    is_bomb = any(
        each.file_size > 1024 * 1024 and each.file_size > MOST_PACKED * max(1, each.compress_size) for each in entries
    )
    if len(entries) > MOST_ENTRIES or unpacked > LARGEST_UNPACKED or is_bomb:
        return "too_much"
    if any(each.flag_bits & 1 for each in entries):
        return "encrypted"
    names = {each.filename for each in entries}
    for kind, name in (("docx", "word/document.xml"), ("xlsx", "xl/workbook.xml"), ("pptx", "ppt/presentation.xml")):
        if name in names:
            return kind
    return "unsupported"


def _raising(reason: str) -> Callable[[], str]:
    def read() -> str:
        raise NotRead(reason)

    return read


def _pages(content: bytes, convert: Callable[[bytes], str]) -> str:
    """A PDF with a line before each page."""
    whole = convert(content)
    pages = whole.rstrip("\f\n ").split("\f")
    if len(pages) == 1 and "pypdfium2" in sys.modules:
        pages = [convert(page) for page in _single_pages(content)] or [whole]
    return "\n\n".join(
        f"<!-- page {number} -->\n\n{page.strip()}" for number, page in enumerate(pages, 1) if page.strip()
    )


def _single_pages(content: bytes) -> Iterator[bytes]:
    """Each page as a PDF of its own: where there are tables, markitdown does not say where a page ends."""
    pdfium = sys.modules["pypdfium2"]
    document = pdfium.PdfDocument(content)
    for number in range(len(document)):
        single, out = pdfium.PdfDocument.new(), io.BytesIO()
        single.import_pages(document, [number])
        single.save(out)
        yield out.getvalue()


def _decoded(content: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16") if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else ("utf-8-sig",):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding)
    return content.decode("cp1252", "replace")


def _table(text: str) -> str:
    rows = [row for row, _ in zip(csv.reader(io.StringIO(text)), range(MOST_ROWS), strict=False) if row]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in [*row, *[""] * (width - len(row))]) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _mail(content: bytes) -> str:
    """The heads, the text, and the names of what is attached, which is not opened."""
    mail = BytesParser(policy=policy.default).parsebytes(content)
    if not mail.keys():
        raise NotRead("damaged")
    heads = [f"**{name}:** {mail[name]}" for name in ("From", "To", "Cc", "Date", "Subject") if mail[name]]
    attached = [f"- {part.get_filename() or part.get_content_type()}" for part in _attachments(mail)]
    body = mail.get_body(("plain", "html")) if isinstance(mail, EmailMessage) else None
    text = str(body.get_content()) if body is not None else ""
    if body is not None and body.get_content_subtype() == "html":
        text = _text_of_html(text)
    parts = ["\n".join(heads), text.strip(), *(["Attached, not opened:\n" + "\n".join(attached)] if attached else [])]
    return "\n\n".join(filter(None, parts))


def _attachments(mail: Any, depth: int = 0) -> Iterator[Any]:
    if depth < DEEPEST_MAIL and hasattr(mail, "iter_attachments"):
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            yield from mail.iter_attachments()


def _text_of_html(text: str) -> str:
    from html.parser import HTMLParser  # noqa: PLC0415

    shown: list[str] = []

    class Reader(HTMLParser):
        hidden = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.hidden += tag in {"script", "style", "head"}
            if tag in {"p", "br", "div", "tr", "li", "h1", "h2", "h3"}:
                shown.append("\n")

        def handle_endtag(self, tag: str) -> None:
            self.hidden -= tag in {"script", "style", "head"}

        def handle_data(self, data: str) -> None:
            if self.hidden <= 0:
                shown.append(data)

    Reader().feed(text)
    return "".join(shown)


if __name__ == "__main__":
    main()
