"""The sentences that the code shows to people, and the catalogues of their translations.

`make translations` writes them into each `{language}.po`: new ones without a translation, and without those that are
used no more. From that it makes what is read while the product runs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from translations import FOLDER, NAMES, SOURCE

ROOT = FOLDER.parent
PAGE = Path("adapters/web/static")
"""Where the page's files are, below the root."""
_PACKAGES = ("adapters", "bot", "graph", "policies")
_IN_PYTHON = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}
_IN_SCRIPTS = {"t": None, "parts": None, "n": (1, 2)}
_SHOWN_ATTRIBUTES = ("aria-label", "placeholder", "title", "alt")
_SENTENCE = re.compile(r"[A-Za-z]{2}")
_NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)
"""In what is compiled, so that the same sentences make the same file."""
Found = tuple[str, int, str | tuple[str, ...]]
"""File below the root, line, and the sentence or its singular and plural."""


def sentences() -> Iterator[Found]:
    """Yields every sentence that is marked to be translated."""
    for package in _PACKAGES:
        yield from _found(Path(package), "**.py", "python", _IN_PYTHON)
    yield from _found(PAGE, "*.js", "javascript", _IN_SCRIPTS)
    yield from _in_page()


def _found(folder: Path, files: str, method: str, keywords: Mapping[str, tuple[int, int] | None]) -> Iterator[Found]:
    extracted = extract_from_dir(ROOT / folder, [(files, method)], {}, keywords, strip_comment_tags=True)
    for name, line, sentence, _comments, _context in extracted:
        yield str(folder / name), line, sentence


def _in_page() -> Iterator[Found]:
    """What the page's own HTML says: `translatePage` in language.js looks it up under the same sentences."""
    path = PAGE / "index.html"
    reader = _PageReader()
    reader.feed((ROOT / path).read_text(encoding="utf-8"))
    for line, sentence in reader.found:
        yield str(path), line, sentence


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in _SHOWN_ATTRIBUTES and value:
                self._keep(value)

    def handle_data(self, data: str) -> None:
        self._keep(data)

    def _keep(self, text: str) -> None:
        sentence = " ".join(text.split())
        if _SENTENCE.search(sentence):
            self.found.append((self.getpos()[0], sentence))


def updated(catalogue: Catalog, found: Iterable[Found]) -> Catalog:
    """Returns a catalogue with these sentences, and the translations that it has for them."""
    template = Catalog(project="Countersign")
    for file, line, sentence in found:
        template.add(sentence, locations=[(file, line)])
    catalogue.update(template, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    return catalogue


def read(language: str) -> Catalog:
    """Returns the catalogue of a language; an empty one where there is none yet."""
    path = FOLDER / f"{language}.po"
    if not path.is_file():
        return Catalog(locale=language, project="Countersign")
    with path.open("rb") as file:
        return read_po(file, locale=language)


def compiled(catalogue: Catalog) -> bytes:
    """Returns what `translations.catalogue` reads."""
    catalogue.creation_date = catalogue.revision_date = _NO_DATE
    written = BytesIO()
    write_mo(written, catalogue)
    return written.getvalue()


def page_sentences(catalogue: Catalog) -> bytes:
    """Returns what the page reads, as JSON: English sentence → its translation, or its forms for one and for many."""
    said = {}
    for message in catalogue:
        forms = _forms(message)
        if message.id and all(forms) and any(at.startswith(f"{PAGE}/") for at, _ in message.locations):
            one = message.id if isinstance(message.id, str) else message.id[0]
            said[one] = forms[0] if isinstance(message.id, str) else forms
    return json.dumps(said, ensure_ascii=False, indent=0, sort_keys=True).encode() + b"\n"


def _forms(message: Message) -> list[str]:
    """A translation, or its forms for one and for many; with an empty one where something of it is missing."""
    return [message.string] if isinstance(message.string, str) else list(message.string or [""])


def main() -> int:
    """Writes the catalogues and what is made of them."""
    found = [*sentences()]
    for language in NAMES:
        if language == SOURCE:
            continue
        catalogue = updated(read(language), found)
        with (FOLDER / f"{language}.po").open("wb") as file:
            write_po(file, catalogue, width=120, sort_by_file=True, include_lineno=False, omit_header=True)
        (FOLDER / f"{language}.mo").write_bytes(compiled(catalogue))
        (ROOT / PAGE / f"sentences.{language}.json").write_bytes(page_sentences(catalogue))
        missing = sum(1 for message in catalogue if message.id and not all(_forms(message)))
        sys.stdout.write(f"{language}: {len(catalogue)} sentences, {missing} without a translation\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
