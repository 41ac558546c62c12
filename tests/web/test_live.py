"""What is happening right now, kept just long enough."""

from __future__ import annotations

from adapters.web.hub import Hub
from adapters.web.live import DRAFT_LIMIT, LiveBoard, WebLive

NOTHING = {"status": "", "drafts": []}


def test_a_finished_answer_ends_the_draft_with_its_text_else_the_oldest() -> None:
    board = LiveBoard(Hub())
    for name, text in (("m1", "One"), ("m2", "Two "), ("m3", "Three")):
        board.add_text("t", name, text)
    assert board.end_draft("t", "Two") == "m2"
    assert board.end_draft("t", "something else") == "m1"
    assert board.end_draft("t", "Three") == "m3"
    assert board.end_draft("t", "Three") is None


def test_at_rest_nothing_is_kept() -> None:
    board = LiveBoard(Hub())
    live = WebLive(board, "t")
    live.status("Thinking…")
    live.text("m1", "Half an ans")
    live.status("")
    assert board.snapshot("t") == NOTHING
    assert board._now == {}


def test_a_draft_without_end_is_not_kept_without_end() -> None:
    board = LiveBoard(Hub())
    for _ in range(3):
        board.add_text("t", "m1", "x" * (DRAFT_LIMIT // 2))
    assert len(board.snapshot("t")["drafts"][0]["text"]) == DRAFT_LIMIT


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
