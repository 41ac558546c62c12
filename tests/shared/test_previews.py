"""What an id stands for and what a call would change, as cards show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapters.shared.arguments import excerpt, excerpts_of_approval
from adapters.shared.live.entries import content_json
from adapters.shared.previews import PREVIEW_VALUE, preview_rows
from adapters.shared.wording import WHOLE, call_title
from bot.card_masks import PLAIN, masked
from bot.domain import ApprovalView
from graph.presentation import CallPresentation, KnownId, PresentedArgument, Preview, PreviewProblem
from tests.support.views import an_approval

EVENT = "877f3c1e-0000-4000-8000-000000000001"
SOURCE = "calendar › preview_update_event"
BEFORE = {
    "title": "Standup",
    "start": "2026-11-22T09:00:00+01:00",
    "end": "2026-11-22T10:00:00+01:00",
    "location": "",
}


def deleting(**known: Any) -> ApprovalView:
    stands_for = KnownId(
        **{
            "argument": "event_id",
            "value": EVENT,
            "title": "Standup",
            "at": "2026-11-22T09:00:00+01:00",
            "source": "calendar › list_events",
            **known,
        }
    )
    kept = CallPresentation(time_zone="Europe/Berlin", year=2026, known_ids=(stands_for,))
    return an_approval(tool="delete_event", title="Delete event", arguments={"event_id": EVENT}, presentation=kept)


def changing(before: dict[str, Any], after: dict[str, Any], **more: Any) -> ApprovalView:
    preview = Preview(before=before, after=after, digest="d", source=SOURCE, **more)
    return an_approval(presentation=CallPresentation(time_zone="Europe/Berlin", year=2026, preview=preview))


def test_an_id_is_told_with_the_source_of_that_knowledge() -> None:
    ((_, told),) = excerpt(deleting().arguments, presentation=deleting().presentation).pairs
    assert told.startswith("Standup, Sun 22 Nov, 9:00 (from calendar › list_events)")


def test_an_id_that_was_edited_since_is_not_described() -> None:
    ((_, told),) = excerpt({"event_id": "another"}, presentation=deleting().presentation).pairs
    assert told == "another"


def test_a_card_that_reads_an_id_has_the_fingerprint() -> None:
    """Rule 12: two events may have the same title and time."""
    view = deleting()
    assert not masked(view, PLAIN).exact
    nothing_known = an_approval(tool=view.tool, title=view.title, arguments=view.arguments)
    assert masked(nothing_known, PLAIN).exact


def test_what_a_tool_says_of_an_id_can_neither_hide_nor_break_anything() -> None:
    view = deleting(title="Stand\u202eup\n<b>")
    ((_, told),) = excerpt(view.arguments, presentation=view.presentation).pairs
    assert "⟨U+202E⟩" in told


def test_a_change_shows_what_changes_and_counts_the_rest() -> None:
    moved = {**BEFORE, "start": "2026-11-22T11:00:00+01:00", "end": "2026-11-22T12:00:00+01:00"}
    shown = preview_rows(changing(BEFORE, moved))
    assert shown is not None
    (row,) = shown.rows
    assert "9:00–10:00" in row.before
    assert "11:00–12:00" in row.after
    assert (shown.has_after, shown.hidden, shown.source) == (True, "2 unchanged", f"Preview from {SOURCE}")


def test_a_preview_of_what_was_asked_is_none_of_what_an_edit_made_of_it() -> None:
    moved = changing(BEFORE, {**BEFORE, "start": "2026-11-22T11:00:00+01:00"})
    assert preview_rows(replace(moved, status="approved", asked_arguments=moved.arguments)) is None


def test_what_will_be_never_looks_like_what_is() -> None:
    shown = preview_rows(changing({}, {"title": "Standup"}))
    assert shown is not None
    assert (shown.has_before, shown.has_after) == (False, True)
    assert [(row.label, row.before, row.after, row.change) for row in shown.rows] == [
        ("Title", "", "Standup", "→ Standup")
    ]
    added = preview_rows(changing({"a": 1}, {"a": 1, "title": "Standup"}))
    assert added is not None
    assert [row.change for row in added.rows] == ["– → Standup"]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("2026-11-22T09:00+01:00", "2026-11-22T09:00:00+01:00", None),
        ("2026-11-22T09:00:05+01:00", "2026-11-22T09:00:06+01:00", "Sun 22 Nov, 9:00:05 → 9:00:06 (Europe/Berlin)"),
        ("x" * 1_000 + "a", "x" * 1_000 + "b", f"… {'x' * 20}a → … {'x' * 20}b"),
    ],
)
def test_two_values_that_differ_look_different(before: str, after: str, change: str | None) -> None:
    """Rule 12."""
    shown = preview_rows(changing({"at": before}, {"at": after}))
    assert shown is not None
    (row,) = shown.rows
    assert row.before != row.after
    assert row.change == (change or f"{before} → {after}")


def test_a_deletion_shows_what_is_there() -> None:
    shown = preview_rows(changing(BEFORE, {}))
    assert shown is not None
    assert not shown.has_after
    rows = {row.label: row.change for row in shown.rows}
    assert rows["Title"] == "Standup"
    assert any("Sun 22 Nov, 9:00–10:00" in value for value in rows.values())


def test_a_deletion_shows_nothing_that_its_card_says_anyway() -> None:
    deleted = deleting()
    preview = Preview(before={**BEFORE, "event_id": EVENT}, digest="d", source=SOURCE)
    view = replace(deleted, presentation=deleted.presentation.model_copy(update={"preview": preview}))
    shown = preview_rows(view)
    assert shown is not None
    assert [(row.label, row.change) for row in shown.rows] == [
        ("When", "Sun 22 Nov, 9:00–10:00 (Europe/Berlin)"),
    ]
    assert shown.hidden == "1 empty value", "its location"
    only_its_title = Preview(before={"title": "Standup"}, digest="d", source=SOURCE)
    told = replace(deleted, presentation=deleted.presentation.model_copy(update={"preview": only_its_title}))
    assert preview_rows(told) is None
    what_else = {"title": "Standup", "calendar": "Standup", "moved_from": "2026-11-22T09:00:00+01:00"}
    named_alike = Preview(before=what_else, digest="d", source=SOURCE)
    rows = preview_rows(replace(deleted, presentation=deleted.presentation.model_copy(update={"preview": named_alike})))
    assert rows is not None
    assert [row.label for row in rows.rows] == ["Calendar", "Moved from"], "which its card does not say"


def test_a_time_that_the_schema_calls_a_text_is_read_in_a_preview_all_the_same() -> None:
    view = changing({"start": BEFORE["start"]}, {"start": "2026-11-22T11:00:00+01:00"})
    arguments = {"start": PresentedArgument(title="Begins", kind="text")}
    read = replace(view, presentation=view.presentation.model_copy(update={"arguments": arguments}))
    shown = preview_rows(read)
    assert shown is not None
    assert [(row.label, row.change) for row in shown.rows] == [("Begins", "Sun 22 Nov, 9:00 → 11:00 (Europe/Berlin)")]


def test_what_a_title_says_in_full_is_not_shown_below_it_once_more() -> None:
    kept = CallPresentation(main="name", arguments={"name": PresentedArgument(kind="text")}, trusted=True)
    view = an_approval(arguments={"name": "Team Meeting", "duration": 60}, presentation=kept)
    assert call_title(view) == "Create event: Team Meeting"
    assert excerpts_of_approval(view, below_title=True)(WHOLE).pairs == (("Duration", "60"),)
    assert len(excerpts_of_approval(view)(WHOLE).pairs) == 2
    for cut in ("Team Meeting " * 20, "Team  Meeting", "yes", "12"):
        other = replace(view, arguments={"name": cut, "duration": 60})
        assert len(excerpts_of_approval(other, below_title=True)(WHOLE).pairs) == 2, cut
    deleted = deleting()
    known = replace(deleted, presentation=deleted.presentation.model_copy(update={"main": "event_id"}))
    shown = excerpts_of_approval(known, below_title=True)(WHOLE)
    assert shown.pairs == ()
    assert (shown.unseen, shown.source) == ("ID hidden (36 characters)", "Read from calendar › list_events")


def test_what_a_card_has_no_space_for_is_counted() -> None:
    before = {f"name_{number}": "x" * 1_000 for number in range(20)}
    shown = preview_rows(changing(before, {}, hidden=3))
    assert shown is not None
    assert shown.hidden == f"{20 - len(shown.rows) + 3} values hidden"
    assert all(len(row.before) <= PREVIEW_VALUE and " characters" in row.before for row in shown.rows)


@pytest.mark.parametrize(
    ("problem", "said", "note"),
    [
        ("nothing", "", "No preview: nothing to show."),
        ("unreadable", "", f"No preview: couldn’t read what {SOURCE} answered."),
        ("unavailable", "", f"No preview: {SOURCE} didn’t answer."),
        ("refused", "There is no such event.", f"No preview. {SOURCE} says: There is no such event."),
    ],
)
def test_why_there_is_no_preview_is_a_sentence(problem: PreviewProblem, said: str, note: str) -> None:
    view = changing({}, {}, problem=problem, said=said)
    shown = preview_rows(view)
    assert shown is not None
    assert (shown.rows, shown.problem) == ((), note)


def test_the_page_gets_rows() -> None:
    assert content_json(deleting())["preview"] is None
    preview = content_json(changing({"a": 1}, {"a": 2}))["preview"]
    assert list(preview["rows"]) == [{"label": "A", "before": "1", "after": "2", "change": "1 → 2"}]


def test_a_value_cannot_write_rows_or_arrows_of_its_own() -> None:
    """Whoever can name an event would otherwise say what is changed."""
    told = preview_rows(
        changing({"a": "Blue → Red", "b": "x\nRoom: Blue", "c": '"'}, {"a": "Green", "b": "y", "c": "z"})
    )
    assert told is not None
    assert [row.change for row in told.rows] == ['"Blue → Red" → Green', "x ↵ Room: Blue → y", '"\\"" → z']
    assert [row.before for row in told.rows] == ["Blue → Red", "x\nRoom: Blue", '"']
