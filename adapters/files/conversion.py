"""Makes Markdown of a file. Run in the child process alone.

markitdown's converters are used one by one: what chooses among them (`MarkItDown`) loads a model of 100 MB to tell what
a file is, and that is known here. Sheets are read row by row, since a table that goes through HTML takes a second for
each thousand of rows, and has names and values that are not in the file.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import mimetypes
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from email import policy
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from typing import Any, Final

from adapters.files.kinds import Kind, kind_of

REASONS: Final = ("encrypted", "damaged", "unsupported", "not_installed", "too_much")
CAREFUL_SECONDS = 8.0
"""Of CPU time for the pages of a PDF with their tables; of the others only the words are read, 20 times faster."""
SECONDS = 18.0
"""Of CPU time in all, after which pages and rows are left out, and that is said. Below the limit of the process."""
MOST_ATTACHED = 100
"""Attachments of a mail that are named."""
_BEGAN = time.monotonic()

Reading = Callable[[], str]


class NotRead(Exception):  # noqa: N818 - an answer, no defect
    """The file cannot be read; `reason` is one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def reader_for(name: str, media_type: str, content: bytes) -> Reading:
    """Returns what reads a file, with all that it needs imported; little of the file is looked at before."""
    kind, refusal = kind_of(content, name, media_type)
    if kind is None:
        return _raising(refusal or "unsupported")
    mimetypes.knownfiles.clear()  # of the system, which libraries would have it read
    for unneeded in ("numpy", "pandas"):  # an import of it is an ImportError now, and they do without
        sys.modules.setdefault(unneeded, None)  # type: ignore[arg-type]
    try:
        return _READERS[kind](content)
    except ImportError:
        return _raising("not_installed")


def reason_of(error: Exception) -> str:
    """Returns the word for what a library has raised."""
    told = f"{type(error).__name__} {error}".lower()
    if "password" in told or "encrypt" in told:
        return "encrypted"
    return "too_much" if "memory" in told else "damaged"


def _raising(reason: str) -> Reading:
    def read() -> str:
        raise NotRead(reason)

    return read


def _is_late(seconds: float) -> bool:
    """Whether so much CPU time is used up, or half as much again has passed: where the machine is busy, the process
    would else be killed, and nothing be read."""
    return max(time.process_time(), (time.monotonic() - _BEGAN) / 1.5) > seconds


def _decoded(content: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16") if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else ("utf-8-sig",):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding)
    return content.decode("cp1252", "replace")


# --------------------------------------------------------------------------------------------------- tables


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def _table(rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown. Rows stay as long as they are: filled up, one long row would make the others as long."""
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        if number % 500 == 0 and _is_late(SECONDS):
            lines.append("\n(There are more rows. They were not read: that takes too long.)")
            break
        if not any(row):
            continue
        lines.append(_row(row))
        if len(lines) == 1:
            lines.append("|" + " --- |" * len(row))
    return "\n".join(lines)


def _csv(content: bytes) -> Reading:
    def read() -> str:
        text = _decoded(content)
        head = next((line for line in text.splitlines() if line.strip()), "")
        csv.field_size_limit(len(text) + 1)
        return _table(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count)))

    return read


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return str(value.date()) if value.time() == datetime.time() else str(value)
    return str(value)


def _cells(values: Sequence[Any]) -> list[str]:
    cells = [_cell(value) for value in values]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _sheet(name: str, rows: Iterable[Sequence[str]], *, is_hidden: bool) -> str:
    hidden = " (a hidden sheet)" if is_hidden else ""
    return f"## {name}{hidden}\n\n{_table(rows)}"


def _xlsx(content: bytes) -> Reading:
    import openpyxl  # type: ignore[import-untyped]  # noqa: PLC0415

    def read() -> str:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = []
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what is declared may be wrong, or a million rows
            rows = (_cells(row) for row in sheet.iter_rows(values_only=True))
            sheets.append(_sheet(sheet.title, rows, is_hidden=sheet.sheet_state != "visible"))
        return "\n\n".join(sheets)

    return read


def _xls(content: bytes) -> Reading:
    import xlrd  # type: ignore[import-untyped]  # noqa: PLC0415

    def value(cell: Any, datemode: int) -> Any:
        if cell.ctype == xlrd.XL_CELL_DATE:
            with contextlib.suppress(xlrd.XLDateError, ValueError, OverflowError):
                return xlrd.xldate_as_datetime(cell.value, datemode)
        if cell.ctype == xlrd.XL_CELL_BOOLEAN:
            return bool(cell.value)
        if cell.ctype == xlrd.XL_CELL_ERROR:
            return xlrd.error_text_from_code.get(cell.value, "#ERROR")
        return cell.value

    def read() -> str:
        book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO(), on_demand=True)
        sheets = []
        for number in range(book.nsheets):
            sheet = book.sheet_by_index(number)
            rows = (_cells([value(cell, book.datemode) for cell in sheet.row(at)]) for at in range(sheet.nrows))
            sheets.append(_sheet(sheet.name, rows, is_hidden=sheet.visibility != 0))
            book.unload_sheet(number)
        return "\n\n".join(sheets)

    return read


# ----------------------------------------------------------------------------------------------------- HTML


def _html(content: bytes) -> Reading:
    convert = _from_html()
    return lambda: convert(content)


def _from_html() -> Callable[[bytes | str], str]:
    from bs4 import BeautifulSoup  # noqa: PLC0415
    from markdownify import ATX, MarkdownConverter  # noqa: PLC0415

    def convert(content: bytes | str) -> str:
        if isinstance(content, bytes):
            with contextlib.suppress(UnicodeDecodeError):  # else it is as the page declares
                content = content.decode("utf-8-sig")
        page = BeautifulSoup(content, "html.parser")
        for part in page(["script", "style", "head"]):
            part.extract()
        try:
            return str(MarkdownConverter(heading_style=ATX, strip=["img"]).convert_soup(page)).strip()
        except RecursionError:
            return page.get_text("\n", strip=True)

    return convert


# -------------------------------------------------------------------------------------------- by markitdown


def _markitdown() -> Any:
    """Its converters, without the model by which it tells what a file is (`magika`): importing takes 0.3 s and 60 MB in
    place of 0.8 s and 160 MB."""
    sys.modules.setdefault("magika", types.ModuleType("magika"))
    import markitdown  # noqa: PLC0415
    from markitdown import converters  # noqa: PLC0415

    return lambda name, ending: _converting(getattr(converters, name)(), markitdown.StreamInfo(extension=ending))


def _converting(converter: Any, known: Any) -> Callable[[bytes], str]:
    return lambda content: str(converter.convert(io.BytesIO(content), known).markdown)


def _docx(content: bytes) -> Reading:
    convert = _markitdown()("DocxConverter", ".docx")
    return lambda: convert(content)


def _pptx(content: bytes) -> Reading:
    convert = _markitdown()("PptxConverter", ".pptx")
    return lambda: convert(content)


def _pdf(content: bytes) -> Reading:
    convert = _markitdown()("PdfConverter", ".pdf")
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415

    def read() -> str:
        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            if reason_of(error) == "encrypted":
                raise
            return "\n\n".join(_numbered(enumerate(convert(content).rstrip("\f\n ").split("\f"), 1)))
        return "\n\n".join(_numbered(_pages(pypdfium2, document, convert)))

    return read


def _numbered(pages: Iterable[tuple[int, str]]) -> Iterator[str]:
    """A line before each page."""
    for number, page in pages:
        if page.strip():
            yield f"<!-- page {number} -->\n\n{page.strip()}"


def _pages(pdfium: Any, document: Any, convert: Callable[[bytes], str]) -> Iterator[tuple[int, str]]:
    """Each page, converted as a document of its own, since markitdown does not say where a page with tables ends; and
    after some time its words only."""
    last = len(document)
    for at in range(last):
        if _is_late(SECONDS):
            yield at + 1, f"(Pages {at + 1} to {last} were not read: that takes too long.)"
            return
        yield at + 1, _words(document, at) if _is_late(CAREFUL_SECONDS) else convert(_single(pdfium, document, at))


def _single(pdfium: Any, document: Any, at: int) -> bytes:
    single, out = pdfium.PdfDocument.new(), io.BytesIO()
    single.import_pages(document, [at])
    single.save(out)
    single.close()
    return out.getvalue()


def _words(document: Any, at: int) -> str:
    page = document[at]
    words = page.get_textpage()
    try:
        return str(words.get_text_bounded()).replace("\r\n", "\n")
    finally:
        words.close()
        page.close()


# ----------------------------------------------------------------------------------------------------- mail


def _attached(names: Sequence[str]) -> str:
    """The names of what is attached, which is not opened."""
    listed = [f"- {' '.join(name.split())}" for name in names[:MOST_ATTACHED]]
    more = [f"- and {len(names) - MOST_ATTACHED} more"] if len(names) > MOST_ATTACHED else []
    return "\n".join(["Attached, not opened:", *listed, *more]) if listed else ""


def _msg(content: bytes) -> Reading:
    convert = _markitdown()("OutlookMsgConverter", ".msg")
    from_html = _from_html()
    import olefile  # type: ignore[import-untyped]  # noqa: PLC0415

    def read() -> str:
        text = convert(content)
        with olefile.OleFileIO(io.BytesIO(content)) as mail:

            def stream(*path: str) -> bytes:
                return bytes(mail.openstream(path).read()) if mail.exists(path) else b""

            def words(*path: str) -> str:
                *folder, tag = path
                wide = stream(*folder, f"__substg1.0_{tag}001F").decode("utf-16-le", "replace")
                return (wide or _decoded(stream(*folder, f"__substg1.0_{tag}001E"))).strip("\0 ")

            if not words("1000"):
                text += "\n\n" + from_html(stream("__substg1.0_10130102") or words("1013"))
            folders = sorted({path[0] for path in mail.listdir() if path[0].startswith("__attach_version1.0_")})
            names = [words(folder, "3707") or words(folder, "3704") or "without a name" for folder in folders]
        return "\n\n".join(filter(None, (text.strip(), _attached(names))))

    return read


def _eml(content: bytes) -> Reading:
    from_html = _from_html()

    def read() -> str:
        mail = BytesParser(policy=policy.default).parsebytes(content)
        if not mail.keys():
            raise NotRead("damaged")
        heads = [(name, _head(mail, name)) for name in ("From", "To", "Cc", "Date", "Subject")]
        body = mail.get_body(("plain", "html"))
        text = _content(body) if body is not None else ""
        if body is not None and body.get_content_subtype() == "html":
            text = from_html(text)
        names = [_part_name(part) for part in _parts_beside(mail)]
        told = "\n".join(f"**{name}:** {value}" for name, value in heads if value)
        return "\n\n".join(filter(None, (told, text.strip(), _attached(names))))

    return read


def _head(mail: EmailMessage, name: str) -> str:
    try:
        return str(mail[name] or "")
    except Exception:  # noqa: BLE001  # the library parses a head when it is asked for, and some it cannot
        return str(dict(mail.raw_items()).get(name, ""))


def _content(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError, ValueError):  # an encoding that nobody knows
        raw = part.get_payload(decode=True)
        return _decoded(raw) if isinstance(raw, bytes) else ""


def _part_name(part: Any) -> str:
    with contextlib.suppress(Exception):  # as with heads
        return str(part.get_filename() or part.get_content_type())
    return "without a name"


def _parts_beside(mail: EmailMessage) -> Iterator[Any]:
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        yield from mail.iter_attachments()


_READERS: Final[dict[Kind, Callable[[bytes], Reading]]] = {
    "text": lambda content: lambda: _decoded(content),
    "csv": _csv,
    "html": _html,
    "eml": _eml,
    "pdf": _pdf,
    "docx": _docx,
    "xlsx": _xlsx,
    "pptx": _pptx,
    "xls": _xls,
    "msg": _msg,
}
