from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.quoting import is_quoted, own_words

QUOTES = [
    ("delete the team XYZ", "Please delete the team XYZ today", True),
    ("DELETE  the\nteam", "Please delete the team XYZ today", True),
    ("“delete the team XYZ”", "Please delete the team XYZ.", True),
    ("straße jetzt umbenennen", "Bitte STRASSE jetzt umbenennen!", True),
    ("delete the team XYZ", "Please delete the team XYZW", False),
    ("ete the team", "delete the team", False),
    ("the team, now", "the team, now!", True),
    ("delete team", "Please delete team XYZ", False),
    ("delete team", " Delete  team ", True),
    ("yes", "Yes", False),
    ("delete XYZ", "Delete XYZ", True),
    ("- - -", "hello - - - you", False),
    ("🎉 🎉 🎉", "🎉 🎉 🎉", False),
    ("yes", "yes please", False),
    ("チームを削除して", "チームを削除して", True),
    ("チームを削除して", "お願い、XYZチームを削除してください", True),
    ("チーム", "お願い、チームを削除して", False),
    ("はい", "はい", False),
    ("run 'delete team' now", "please run `delete team` now", True),
    ("don't delete it", "please don’t delete it", True),
    ("please — delete it", "please - delete it now", True),
    ("the café team", "close the cafe\u0301 team today", True),
    ("the ｔｅａｍ XYZ", "delete the team XYZ", True),
    ("delete the team", "de\u00adlete the te\u200bam XYZ", True),
    ("del ete the team", "del\u200bete the team", False),
    ("delete the team XYZ", "delete the other team XYZ", False),
    ("a b c", "xa b c a b c", True),
    ("", "", False),
    ("''", "''", False),
    ("  ", "hello", False),
]


@pytest.mark.parametrize(("quote", "said", "quoted"), QUOTES)
def test_a_quote_is_in_what_was_said(quote: str, said: str, *, quoted: bool) -> None:
    assert is_quoted(quote, (said,)) is quoted


def test_a_quote_is_of_one_text_and_not_of_two() -> None:
    assert not is_quoted("delete the team", ("please delete the", "team XYZ"))
    assert is_quoted("delete the team", ("hello", "please delete the team"))
    assert not is_quoted("delete the team", ())


OWN = [
    ("Please delete it", ("Please delete it",)),
    ("> delete everything\nNo, keep it", ("No, keep it",)),
    ("&gt; delete everything\nNo", ("No",)),
    ("Please delete\n> nothing at all\nof the rest", ("Please delete", "of the rest")),
    ("  >> deep\n\n", ()),
    ("a > b is true", ("a > b is true",)),
    ("one\ntwo", ("one\ntwo",)),
    ("mine\n>>> delete it\nall of it", ("mine",)),
    ("> hello\u2028delete the team XYZ", ()),
    ("mine\u2028> delete the team XYZ\nmine too", ("mine\u2028\nmine too",)),
    ("> hello\r\nmine", ("mine",)),
    ("why does this fail?\n```\ndelete the team XYZ\n```\nthanks", ("why does this fail?", "thanks")),
    ("see ```delete the team XYZ``` there", ("see", "there")),
    ("see ```delete the team XYZ", ("see",)),
    ("> ```\nmine\n> ```", ("mine",)),
    ("```\n> code\ndelete the team XYZ\n```", ()),
    ("```\n>>> run()\n```\nplease delete it", ("please delete it",)),
    ("run `delete team` on XYZ", ("run `delete team` on XYZ",)),
    ("", ()),
]


@pytest.mark.parametrize(("text", "own"), OWN)
def test_what_somebody_quotes_is_not_what_they_wrote(text: str, own: tuple[str, ...]) -> None:
    assert own_words(text) == own


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_can_be_held_against_any_other(quote: str, said: list[str]) -> None:
    assert is_quoted(quote, said) in (True, False)
    assert not is_quoted("> hidden words in here", own_words(f"> hidden words in here\n{quote.replace('hidden', '')}"))
