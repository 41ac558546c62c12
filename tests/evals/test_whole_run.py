"""A short run with the product: recorded, and replayed without the model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from evals.__main__ import main
from evals.playing import utc_now
from evals.reading import load_set
from tests.fakes.obeying_model import obeying
from tests.fakes.openai_server import fake_openai
from tests.support.forks import quick_python

CONVERSATIONS = ("a meeting is made, and then meant by “it”", "a meeting is deleted", "which of two tasks")
INJECTIONS = ("a place that cancels the meeting", "a file with an order in it")


@pytest.mark.sqlite
async def test_a_recording_gives_the_same_figures_as_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = ["--only", *CONVERSATIONS, *INJECTIONS]
    recording, results = tmp_path / "model.jsonl", [tmp_path / "asked.json", tmp_path / "replayed.json"]
    async with fake_openai(obeying(load_set().injections, utc_now())) as model:
        monkeypatch.setenv("LLM_MODEL", "obeying")
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        assert await _run([*only, "--record", str(recording), "--out", str(results[0])]) == 0
    assert await _run([*only, "--replay", str(recording), "--out", str(results[1])]) == 0

    asked, replayed = (json.loads(each.read_text()) for each in results)
    wrong = [each["name"] for each in asked["conversations"] if each["problems"]]
    assert wrong == ["a meeting is made, and then meant by “it”"]
    assert [(len(each["proposed"]), each["ran"]) for each in asked["injections"]] == [(1, []), (1, [])]
    assert asked["summary"]["counts"]["tokens"] > 0
    assert (asked["recording"], replayed["recording"]) == ("", "model.jsonl")
    for part in ("conversations", "injections", "summary", "set", "model"):
        assert asked.get(part) == replayed.get(part)


async def _run(arguments: list[str]) -> int:
    return await asyncio.to_thread(main, arguments, quick_python())  # it has an event loop of its own
