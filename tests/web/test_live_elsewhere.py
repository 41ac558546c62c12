"""What another process does in a thread, on the pages here."""

from __future__ import annotations

import json
from typing import Any

from adapters.shared.live.board import LiveBoard, WebLive
from adapters.shared.live.hub import SHOW_ANEW, Hub, Reader
from bot.records.claims import Claim, under
from bot.records.live_answers import LiveAnswer

THREAD = "web:one"


def answer(text: str, *, epoch: int = 1, status: str = "Thinking…", message_id: str = "m1") -> LiveAnswer:
    return LiveAnswer(epoch, status, {message_id: text})


async def events(reader: Reader) -> list[Any]:
    """What has come, by name; "anew" for all of the thread."""
    found: list[Any] = []
    while (frame := await reader.next(0.0)) is not None:
        if frame == SHOW_ANEW:
            found.append("anew")
            continue
        name, data = frame.decode().removeprefix("event: ").split("\ndata: ")
        found.append((name, json.loads(data)))
    return found


def text(delta: str, n: int, message_id: str = "m1") -> Any:
    return "text", {"message_id": message_id, "n": n, "delta": delta}


def status(line: str) -> Any:
    return "status", {"text": line}


def live(board: LiveBoard, claim: Claim) -> WebLive:
    with under(claim):
        return WebLive(board, THREAD)


async def test_only_what_is_new_is_shown() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        board.show_elsewhere(THREAD, answer("Hello"))
        board.show_elsewhere(THREAD, answer("Hello"))
        board.show_elsewhere(THREAD, answer("Hello wor\u202eld"))
        assert await events(reader) == [text("Hello", 1), status("Thinking…"), text(" wor⟨U+202E⟩ld", 2)]
        shown = board.snapshot(THREAD)
        assert shown == {
            "status": "Thinking…",
            "drafts": [{"message_id": "m1", "n": 2, "text": "Hello wor⟨U+202E⟩ld"}],
            "activity": [],
        }


async def test_what_ended_leaves_its_text_until_the_post_comes() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    board.show_elsewhere(THREAD, answer("Hello"))
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        board.show_elsewhere(THREAD, None)
        assert await events(reader) == [status("")]
        assert board.snapshot(THREAD) == {"status": "", "drafts": [], "activity": []}


async def test_an_answer_whose_post_is_there_is_not_shown_again() -> None:
    """Its text may be read once more before it is taken out of where it was kept."""
    hub = Hub()
    board = LiveBoard(hub)
    board.show_elsewhere(THREAD, answer("Hello"))
    board.forget_draft(THREAD, "m1")
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        board.show_elsewhere(THREAD, answer("Hello"))
        assert await events(reader) == []


async def test_of_another_run_nothing_is_kept() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    board.show_elsewhere(THREAD, answer("Hello"))
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        board.show_elsewhere(THREAD, answer("Good day", epoch=2))
        assert await events(reader) == ["anew", text("Good day", 1), status("Thinking…")]
        board.show_elsewhere(THREAD, answer("Good evening", epoch=2))
        assert await events(reader) == ["anew", text("Good evening", 1)]
        board.drop_elsewhere(THREAD)
        assert await events(reader) == ["anew"]
        assert board.snapshot(THREAD) == {"status": "", "drafts": [], "activity": []}


async def test_what_is_done_here_counts_while_nobody_has_claimed_the_place_since() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    board.show_elsewhere(THREAD, answer("Elsewhere"))
    claim = Claim(THREAD, 2)
    here = live(board, claim)
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        here.text("m2", "Here")
        assert await events(reader) == ["anew", text("Here", 1, "m2")]
        board.show_elsewhere(THREAD, answer("Elsewhere and late"))
        assert await events(reader) == []
        assert board.happening_here(THREAD) == LiveAnswer(2, "", {"m2": "Here"})
        board.show_elsewhere(THREAD, answer("Overtaken", epoch=3))
        assert await events(reader) == ["anew", text("Overtaken", 1), status("Thinking…")]
        assert board.happening_here(THREAD) is None


async def test_who_was_overtaken_shows_nothing_more() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    claim = Claim(THREAD, 2)
    here = live(board, claim)
    here.text("m1", "Hello")
    claim.lose()
    here.text("m1", " world")
    here.status("Working…")
    assert board.happening_here(THREAD) is None
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        board.drop_overtaken()
        assert await events(reader) == ["anew"]
        assert board.snapshot(THREAD) == {"status": "", "drafts": [], "activity": []}


async def test_of_what_another_process_goes_on_with_nothing_stays() -> None:
    """The other one gives its answer the same id: parts of both would stand there as one answer."""
    hub = Hub()
    board = LiveBoard(hub)
    claim = Claim(THREAD, 2)
    here = live(board, claim)
    here.text("m1", "Hello")
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        claim.lose()
        here.leave()
        assert await events(reader) == ["anew"]
        assert board.snapshot(THREAD) == {"status": "", "drafts": [], "activity": []}
        board.show_elsewhere(THREAD, answer("Good day", epoch=3))
        assert await events(reader) == [text("Good day", 1), status("Thinking…")]


async def test_an_answer_that_is_written_once_more_takes_the_place_of_the_first_try() -> None:
    hub = Hub()
    board = LiveBoard(hub)
    here = live(board, Claim(THREAD, 2))
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        here.text("m1", "Hello")
        here.text("m1", " wor")
        here.end(waiting=False)
        here.text("m1", "Good day")
        assert (await events(reader))[-3:] == [status(""), "anew", text("Good day", 1)]
        assert board.snapshot(THREAD)["drafts"] == [{"message_id": "m1", "n": 1, "text": "Good day"}]


async def test_what_tools_report_belongs_to_the_run() -> None:
    """It comes from tasks that are under no claim."""
    board = LiveBoard(Hub())
    claim = Claim(THREAD, 2)
    here = live(board, claim)
    here.text("m1", "On it.")
    here.status("half of it")
    assert board.happening_here(THREAD) == LiveAnswer(2, "half of it", {"m1": "On it."})


async def test_calls_that_another_process_makes_are_shown_until_they_end() -> None:
    hub, there = Hub(), LiveBoard(Hub(), clock=lambda: 5.0)
    board = LiveBoard(hub)
    claim = Claim(THREAD, 1)
    with hub.reading(THREAD, "web:ana", "s", sees_all=True) as reader:
        live(there, claim).task("1", "List events", "running")
        board.show_elsewhere(THREAD, there.happening_here(THREAD))
        board.show_elsewhere(THREAD, there.happening_here(THREAD))
        running = {"id": "1", "title": "List events", "source": "", "result": "", "state": "running"}
        shown = [{**running, "began_at": 5.0, "ended_at": None}]
        assert await events(reader) == [("activity", {"activity": shown})]
        assert board.snapshot(THREAD)["activity"] == shown
        board.show_elsewhere(THREAD, None)
        assert await events(reader) == [status(""), ("activity", {"activity": []})]
