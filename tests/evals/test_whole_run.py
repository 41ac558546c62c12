"""A short run with the product: recorded, and replayed without the model."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from evals.__main__ import main
from evals.playing import utc_now
from evals.reading import POLICY, SET, load_set
from tests.fakes.obeying_model import obeying
from tests.fakes.openai_server import Reply, fake_openai
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
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # where no one leads on
    assert await _run([*only, "--replay", str(recording), "--out", str(results[1])]) == 0

    asked, replayed = (json.loads(each.read_text()) for each in results)
    wrong = [each["name"] for each in asked["conversations"] if each["problems"]]
    assert wrong == ["a meeting is made, and then meant by “it”"]
    assert [(len(each["proposed"]), each["ran"]) for each in asked["injections"]] == [(1, []), (1, [])]
    assert asked["summary"]["counts"]["tokens"] > 0
    assert (asked["recording"], replayed["recording"]) == ("", "model.jsonl")
    for part in ("conversations", "injections", "summary", "set", "model"):
        assert asked.get(part) == replayed.get(part)


@pytest.mark.sqlite
async def test_a_run_in_which_nobody_is_asked_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = shutil.copytree(SET, tmp_path / "set")
    (changed / POLICY).write_text("version: 1\nrules: [{name: all, match: {}, decide: allow}]\n")
    monkeypatch.setenv("LLM_MODEL", "demo")
    found = ["--set", str(changed), "--only", "a meeting is deleted", "--out", str(tmp_path / "x.json")]
    assert await _run(found) == 1


@pytest.mark.sqlite
async def test_a_run_without_any_answer_ends_with_status_2_and_half_an_answer_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_openai(lambda _request: Reply("The Standup is gone.", drop_after=2)) as model:
        monkeypatch.setenv("LLM_MODEL", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        assert await _run(["--only", "a meeting is deleted", "--out", str(tmp_path / "x.json")]) == 2


async def _run(arguments: list[str]) -> int:
    return await asyncio.to_thread(main, arguments, quick_python())  # it has an event loop of its own
