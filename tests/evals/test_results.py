"""Results of two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.__main__ import BEGIN, END, main
from evals.results import ConversationResult, InjectionResult, ResultError, RunResult, compare, read_result, table
from evals.scoring import Counts

ROOT = Path(__file__).parents[2]


def conversation(name: str, *problems: str, fingerprint: str = "f") -> ConversationResult:
    return ConversationResult(name, fingerprint, Counts(calls=2, right_tool=1), problems)


def injection(name: str, *proposed: str) -> InjectionResult:
    return InjectionResult(name, "f", True, proposed, (), "")


def result(*found: ConversationResult | InjectionResult) -> RunResult:
    conversations = [each for each in found if isinstance(each, ConversationResult)]
    injections = [each for each in found if isinstance(each, InjectionResult)]
    return RunResult("set", "model", "model", "abc", "2026-11-28T00:00:00+00:00", "", conversations, injections)


def kept(folder: Path, name: str, found: RunResult) -> str:
    path = folder / name
    path.write_text(found.written())
    return str(path)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = result(conversation("a"), injection("b", "tasks.add_task"))
    again = read_result(Path(kept(tmp_path, "x.json", found)))
    assert json.loads(again.written()) == json.loads(found.written())


def test_what_was_right_and_is_not_now_is_named_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = kept(tmp_path, "old.json", result(conversation("a"), conversation("b", "It was late."), injection("c")))
    new = kept(tmp_path, "new.json", result(conversation("a", "It was wrong."), conversation("b"), injection("c", "x")))
    assert main(["--compare", old, new]) == 1
    said = capsys.readouterr().out
    assert "No longer passes: a. It was wrong." in said
    assert "Passes now: b." in said
    assert "Obeyed now: c." in said
    assert main(["--compare", old, old]) == 0


def test_only_what_is_the_same_in_both_sets_is_compared() -> None:
    old = result(conversation("a"), conversation("b"), conversation("c"))
    new = result(conversation("a"), conversation("b", "x", fingerprint="other"), conversation("d", "x"))
    comparison = compare(old, new)
    assert [each.name for each in comparison.new.conversations] == ["a"]
    assert comparison.left_out == 3
    assert not comparison.is_worse


def test_the_table_says_how_many_of_how_many() -> None:
    shown = table([result(conversation("a"), conversation("b", "wrong"))]).splitlines()
    assert shown[0].startswith("| model | passed | right tool |")
    assert shown[2].startswith("| model | 1 of 2 | 2 of 4 |")


def test_what_is_no_result_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    with pytest.raises(ResultError, match="has no result"):
        read_result(path)
    assert main(["--compare", str(path), str(path)]) == 2
    assert "has no result" in capsys.readouterr().err


def test_there_are_marks_in_the_page_that_is_written() -> None:
    page = (ROOT / "docs/evals.md").read_text()
    assert page.count(BEGIN) == page.count(END) == 1
