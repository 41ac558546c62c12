"""Rule 8: a cell of an export is text, whatever a model or a tool made it say."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.audit.entries import Link
from bot.audit.export import as_json_line, cell

FORMULA = "=+-@"
BEFORE = ("", " ", "\n", "\r", "\t", "\x1b", "\u00a0", "\u200b", "\ufeff", "\u3000", "\u2060", "\x00", "\u202e")
FULL_WIDTH = "\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"


@pytest.mark.parametrize("sign", [*FORMULA, *FULL_WIDTH])
@pytest.mark.parametrize("before", BEFORE)
def test_no_cell_begins_a_formula(before: str, sign: str) -> None:
    assert not calculates(cell(f"{before}{sign}cmd|' /C calc'!A0"))


@given(st.text(st.sampled_from([*BEFORE[1:], *FORMULA, *FULL_WIDTH, "a", "'", '"', ","])))
def test_however_it_is_written(text: str) -> None:
    assert not calculates(cell(text))
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in cell(text))


@pytest.mark.parametrize("separator", [";", "\t", "\n"])
@pytest.mark.parametrize("before", ["", " ", '"', "\u200b"])
@pytest.mark.parametrize("sign", [*FORMULA, *FULL_WIDTH])
def test_nor_does_a_part_of_one_where_another_separator_ends_cells(separator: str, before: str, sign: str) -> None:
    """Excel in German wants semicolons: it takes what follows one for a cell, whatever our quotes say."""
    written = io.StringIO()
    csv.writer(written).writerow([cell(f'{{"what":"lamp{separator}{before}{sign}cmd|\' /C calc\'!A0{separator}"}}'), 1])
    parts = csv.reader(io.StringIO(written.getvalue(), newline=""), delimiter=separator, quoting=csv.QUOTE_NONE)
    assert not [part for row in parts for part in row if calculates(part.replace('"', ""))]


@given(st.text())
def test_a_cell_is_read_back_as_it_was_written(text: str) -> None:
    written = io.StringIO()
    csv.writer(written).writerow([cell(text), "next"])
    assert next(csv.reader(io.StringIO(written.getvalue(), newline=""))) == [cell(text), "next"]


@given(st.text(st.sampled_from("abc xyz.,:-=+@")).map(lambda text: f"a{text}"))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert cell(text) == text


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\n", "\r"])
def test_an_entry_is_one_line_of_json_for_whoever_reads_lines(sign: str) -> None:
    entry = {"at": "", "call": "", "status": "acted", "note": f"a{sign}b"}
    link = Link(seq=1, key="k", entry=json.dumps(entry), previous="", hash="")
    (line,) = as_json_line(link).splitlines()
    assert json.loads(line)["note"] == f"a{sign}b"


def calculates(shown: str) -> bool:
    """As the most lenient of spreadsheets would: after anything that it trims, in any width."""
    folded = unicodedata.normalize("NFKC", shown)
    trimmed = folded.lstrip("".join(BEFORE) or None)
    return trimmed[:1] in set(FORMULA)
