"""What is happening right now, kept just long enough."""

from __future__ import annotations

import pytest

from adapters.shared.live import board as live_module
from adapters.shared.live.board import LONGEST_DRAFT, LONGEST_SUSPICIOUS, MOST_ENDED, MOST_TASKS, LiveBoard, WebLive
from adapters.shared.live.hub import Hub

NOTHING = {"status": "", "drafts": [], "activity": []}


def test_a_post_ends_its_own_draft_and_no_other() -> None:
    board = LiveBoard(Hub())
    for name in ("m1", "m2", "m3"):
        board.add_text("t", name, "The same words")
    board.end_draft("t", "m2")
    board.end_draft("t", "unheard of")
    assert [draft["message_id"] for draft in board.snapshot("t")["drafts"]] == ["m1", "m3"]


def test_calls_are_shown_while_the_turn_runs() -> None:
    at = iter(range(10))
    board = LiveBoard(Hub(), lambda: next(at))
    live = WebLive(board, "t")
    live.task("c1", "calendar › Create\u202eevent", "running")
    live.task("c2", "tasks › Search", "running")
    live.task("c1", "calendar › Create\u202eevent", "failed")
    call = {"id": "c1", "title": "calendar › Create⟨U+202E⟩event", "source": "", "result": "", "state": "failed"}
    assert board.snapshot("t")["activity"] == [
        call | {"began_at": 0, "ended_at": 2},
        call | {"id": "c2", "title": "tasks › Search", "state": "running", "began_at": 1, "ended_at": None},
    ]
    live.end(waiting=False)
    assert board.snapshot("t")["activity"] == []


def test_of_many_calls_the_newest_are_shown() -> None:
    board = LiveBoard(Hub())
    for number in range(MOST_TASKS + 3):
        board.set_task("t", f"c{number}", "tasks › Search", "running")
    assert [each["id"] for each in board.snapshot("t")["activity"]] == [f"c{n}" for n in range(3, MOST_TASKS + 3)]


def test_at_rest_a_draft_is_kept_for_its_post_alone() -> None:
    """Rule 12: what is on the page is what was said, once."""
    board = LiveBoard(Hub())
    live = WebLive(board, "t")
    live.status("Thinking…")
    live.text("m1", "The answer")
    live.end(waiting=False)
    assert board.snapshot("t") == NOTHING
    assert board._now == {}
    board.end_draft("t", "m1")
    assert not board._ended


def test_drafts_whose_posts_never_come_are_forgotten() -> None:
    board = LiveBoard(Hub())
    for number in range(MOST_ENDED + 5):
        live = WebLive(board, f"t{number}")
        live.text("m1", "Half an ans")
        live.end(waiting=False)
    assert len(board._ended) == MOST_ENDED


def test_the_end_of_one_call_is_not_the_end_of_the_turn() -> None:
    """The faster of two parallel calls says that it has nothing to say any more; Stop and the draft stay."""
    board = LiveBoard(Hub())
    live = WebLive(board, "t")
    live.text("m1", "Let me look")
    live.status("Using tasks: List…")
    live.status("")
    assert board.snapshot("t")["status"] == "Working…"
    assert board.snapshot("t")["drafts"]


def test_a_draft_without_end_is_not_kept_without_end() -> None:
    board = LiveBoard(Hub())
    for _ in range(3):
        board.add_text("t", "m1", "x" * (LONGEST_DRAFT // 2))
    assert len(board.snapshot("t")["drafts"][0]["text"]) == LONGEST_DRAFT


def test_a_status_is_one_short_line() -> None:
    board = LiveBoard(Hub())
    board.set_status("t", "Looking\nat " + "everything " * 100)
    status = board.snapshot("t")["status"]
    assert "\n" not in status
    assert len(status) <= 120


def test_looking_at_a_thread_keeps_nothing() -> None:
    board = LiveBoard(Hub())
    board.snapshot("t")
    board.end_draft("t", "x")
    assert board._now == {}


def test_of_a_draft_full_of_invisible_characters_no_more_is_shown_until_its_post_comes() -> None:
    """Rule 13: in one piece of 200,000 characters, judging each held the event loop for 0.3 s."""
    board = LiveBoard(Hub())
    board.add_text("t", "m1", "Hello")
    board.add_text("t", "m1", "a\u202e" * (LONGEST_SUSPICIOUS + 1))
    board.add_text("t", "m1", " and more")
    assert board.snapshot("t")["drafts"] == [{"message_id": "m1", "n": 1, "text": "Hello"}]


def test_a_long_draft_in_a_script_that_needs_joiners_is_shown() -> None:
    board = LiveBoard(Hub())
    for _ in range(100):
        board.add_text("t", "m1", "می\u200cخواهم " * 30)
    assert board.snapshot("t")["drafts"][0]["n"] == 100


def test_a_draft_is_made_visible_once_however_many_pages_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: 200,000 characters that cannot be seen took 160 ms of the event loop, for each page that opened."""
    judged: list[int] = []

    def counted(text: str) -> str:
        judged.append(len(text))
        return text

    monkeypatch.setattr(live_module, "visible", counted)
    board = LiveBoard(Hub())
    for _ in range(300):
        board.add_text("t", "m1", "x" * 1_000)
    for _ in range(50):
        assert len(board.snapshot("t")["drafts"][0]["text"]) == LONGEST_DRAFT
    assert sum(judged) == LONGEST_DRAFT == 50_000
