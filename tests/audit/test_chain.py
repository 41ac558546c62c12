"""The chain shows what was done to it, and says to which entry."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.audit.entries import BEGINNING, Link, faults, hash_of, link
from tests.audit.calls import chain, ended
from tests.support.examples import examples

LOG = chain(*(ended(number) for number in range(1, 8)))


def found(links: list[Link]) -> list[str]:
    return [fault.what for fault in faults(links)]


def test_an_untouched_log_has_no_faults() -> None:
    assert found(LOG) == []
    assert found([]) == []


def test_numbers_count_from_one_and_each_link_holds_the_one_before() -> None:
    assert [each.seq for each in LOG] == [1, 2, 3, 4, 5, 6, 7]
    assert LOG[0].previous == BEGINNING
    assert all(after.previous == before.hash for before, after in itertools.pairwise(LOG))


def test_a_changed_entry_is_named() -> None:
    changed = replace(LOG[3], entry=LOG[3].entry.replace("web:ana", "web:ben"))
    assert found([*LOG[:3], changed, *LOG[4:]]) == ["entry 4 was changed"]


def test_a_changed_entry_with_a_new_hash_shows_at_the_next_one() -> None:
    entry = LOG[3].entry.replace("web:ana", "web:ben")
    changed = replace(LOG[3], entry=entry, hash=hash_of(LOG[3].previous, 4, entry))
    (fault,) = found([*LOG[:3], changed, *LOG[4:]])
    assert fault.startswith("entry 5 does not follow the one before it")


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ([1, 2, 4, 5, 6, 7], "entry 3 is missing"),
        ([1, 5, 6, 7], "entries 2 to 4 are missing"),
        ([2, 3, 4, 5, 6, 7], "entry 1 is missing"),
    ],
)
def test_missing_entries_are_named(kept: list[int], said: str) -> None:
    assert found([LOG[seq - 1] for seq in kept])[0] == said


def test_a_missing_entry_shows_also_when_the_rest_was_renumbered() -> None:
    moved_up = [replace(each, seq=each.seq - 1) for each in LOG[3:]]
    assert found([*LOG[:2], *moved_up])[0] == "entry 3 is out of order: it was entry 4"


def test_two_entries_in_each_others_place_are_named() -> None:
    swapped = [*LOG[:2], replace(LOG[3], seq=3), replace(LOG[2], seq=4), *LOG[4:]]
    assert found(swapped)[:2] == ["entry 3 is out of order: it was entry 4", "entry 4 is out of order: it was entry 3"]


def test_an_entry_that_was_slipped_in_shows() -> None:
    slipped = link(LOG[1], "x", '{"at":"x"}')
    assert found([*LOG[:2], slipped, *(replace(each, seq=each.seq + 1) for each in LOG[2:])]) != []


@settings(max_examples=examples(20))
@given(at=st.integers(0, len(LOG) - 1), field=st.sampled_from(["entry", "previous", "hash"]), where=st.integers(0, 63))
def test_no_single_change_goes_unseen(at: int, field: str, where: int) -> None:
    text = getattr(LOG[at], field)
    changed = text[:where] + ("x" if text[where] != "x" else "y") + text[where + 1 :]
    assert found([*LOG[:at], replace(LOG[at], **{field: changed}), *LOG[at + 1 :]]) != []
