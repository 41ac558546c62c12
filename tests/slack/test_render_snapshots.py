"""Everything looks as it did when somebody last looked at it (see `snapshot_files`)."""

from __future__ import annotations

import json

import pytest

from tests.fakes.slack.block_rules import mistakes, view_mistakes
from tests.slack.snapshot_files import EXAMPLES, FOLDER, written


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_looks_as_before(name: str) -> None:
    assert written(name) == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_slack_would_show_it(name: str) -> None:
    shown = json.loads(written(name))
    for one in shown if isinstance(shown, list) else [shown]:
        if "type" in one:
            assert view_mistakes(one, surface=one["type"]) == []
        else:
            assert mistakes(one["blocks"]) == []


def test_there_is_no_file_without_an_example() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXAMPLES)
