from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.safe_text import apart_from_marks, labels, link_host, one_line, shorten, visible, written_arguments

HIDDEN = [
    ("a right-to-left override", "invoice\u202egpj.exe", "invoice⟨U+202E⟩gpj.exe"),
    ("an isolate", "\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"),
    ("a left-to-right mark", "a\u200eb", "a⟨U+200E⟩b"),
    ("an Arabic letter mark", "\u061c", "⟨U+061C⟩"),
    ("a zero-width space", "pay\u200bpal", "pay⟨U+200B⟩pal"),
    ("a soft hyphen", "a\u00adb", "a⟨U+00AD⟩b"),
    ("a byte order mark", "\ufeffa", "⟨U+FEFF⟩a"),
    ("a word joiner", "a\u2060b", "a⟨U+2060⟩b"),
    ("a Hangul filler", "a\u3164b", "a⟨U+3164⟩b"),
    ("a blank of Braille", "a\u2800b", "a⟨U+2800⟩b"),
    ("a grapheme joiner", "a\u034fb", "a⟨U+034F⟩b"),
    ("a line separator", "a\u2028b", "a⟨U+2028⟩b"),
    ("a null", "a\0b", "a⟨U+0000⟩b"),
    ("an escape sequence", "\x1b[31mred", "⟨U+001B⟩[31mred"),
    ("a carriage return alone", "safe\rdangerous", "safe⟨U+000D⟩dangerous"),
    ("a C1 control", "a\x9bb", "a⟨U+009B⟩b"),
    ("a lone surrogate", "a\ud800b", "a⟨U+D800⟩b"),
    ("a noncharacter", "a\uffffb", "a⟨U+FFFF⟩b"),
    ("a message in tag characters", "hi\U000e0041\U000e0042", "hi⟨U+E0041⟩⟨U+E0042⟩"),
    ("a message in tags behind a flag", "🏴\U000e0067\U000e0062\U000e0078", "🏴⟨U+E0067⟩⟨U+E0062⟩⟨U+E0078⟩"),
    ("a joiner between Latin letters", "a\u200db", "a⟨U+200D⟩b"),
    ("a non-joiner between Latin letters", "a\u200cb", "a⟨U+200C⟩b"),
    ("a joiner at the end of an emoji", "👩\u200d", "👩⟨U+200D⟩"),
    ("a variation selector on a letter", "a\ufe0f", "a⟨U+FE0F⟩"),
    ("a variation selector on a digit that is no keycap", "1\ufe0f2", "1⟨U+FE0F⟩2"),
    ("bytes in variation selectors", "😀\ufe0f\U000e0101\U000e0102", "😀\ufe0f⟨U+E0101⟩⟨U+E0102⟩"),
    ("a tower of accents", "a" + "\u0301" * 10, "a" + "\u0301" * 8 + "⟨U+0301⟩⟨U+0301⟩"),
]


@pytest.mark.parametrize(("text", "shown"), [h[1:] for h in HIDDEN], ids=[h[0] for h in HIDDEN])
def test_what_cannot_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


ORDINARY = [
    ("plain text", "Stand-up, 9:00\n\t(room 3) `x`"),
    ("Western letters", "Grüße, naïve café — “ça va?” 5 €"),
    ("decomposed accents", unicodedata.normalize("NFD", "Việt Nam café")),
    ("Greek, Cyrillic and Georgian", "Ελληνικά Русский ქართული"),
    ("Hebrew with vowels", "עִבְרִית"),
    ("Arabic with vowels", "مُحَمَّد"),
    ("Persian with a non-joiner", "می\u200cخواهم"),
    ("Arabic number sign", "\u0600\u0661"),
    ("Hindi with a joiner", "क्\u200dष"),
    ("Bengali ya-phalaa", "র\u200d্য"),
    ("Thai", "ที่นี่"),
    ("Chinese and Japanese", "会議は 午前9時。"),
    ("an ideographic variant", "葛\U000e0100城"),
    ("Korean", "안녕하세요"),
    ("a family", "👨\u200d👩\u200d👧\u200d👦"),
    ("a skin tone and a joiner", "👩🏽\u200d⚕\ufe0f"),
    ("a rainbow flag", "🏳\ufe0f\u200d🌈"),
    ("a heart and a keycap", "❤\ufe0f 1\ufe0f\u20e3"),
    ("the flag of Scotland", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"),
    ("an emoji newer than Python", "\U0001fae8"),
    ("a hard space", "10\u00a0000"),
]


@pytest.mark.parametrize("text", [o[1] for o in ORDINARY], ids=[o[0] for o in ORDINARY])
def test_ordinary_text_of_all_scripts_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_mark_that_somebody_wrote_does_not_look_like_one_of_ours() -> None:
    """Rule 8: what looks like a mark stands for a character that is there."""
    assert apart_from_marks("pay⟨U+202E⟩001, ⟨x⟩, U+202E") == "pay⟨U+27E8⟩U+202E⟩001, ⟨x⟩, U+202E"


@given(st.text("⟨⟩U+20E\u202e", max_size=30), st.text("⟨⟩U+20E\u202e", max_size=30))
@example("⟨U+202E⟩", "\u202e")
@example("⟨U+27E8⟩U+202E⟩", "⟨U+202E⟩")
def test_two_texts_that_differ_never_read_alike(one: str, other: str) -> None:
    """Rule 8."""
    alike = visible(apart_from_marks(one)) == visible(apart_from_marks(other))
    assert alike == (one == other)


def test_line_ends_of_windows_become_newlines() -> None:
    assert visible("a\r\nb") == "a\nb"


tricky = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "\u200c\u200d\ufe0f\ufe0e🏴👩🏽❤1\u20e3क\u094dم\u0301\u202e\r\na葛\U000e0100\U000e0067\U000e007f"
        ),
        st.characters(categories=["Cf", "Cc", "Cs", "Mn"]),
    )
)
NEVER_SHOWN = {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u200e",
               "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff", "\u00ad", "\r", "\0", "\x1b", "\u2028"}  # fmt: skip


@given(tricky)
@example("क\u094d\u200dष" + "\u094d" * 12 + "\u200dष")
def test_making_visible_twice_changes_nothing_more(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(tricky)
def test_what_is_visible_holds_no_hidden_control_and_can_be_sent(text: str) -> None:
    shown = visible(text)
    assert not NEVER_SHOWN & set(shown)
    shown.encode()


@given(tricky)
def test_making_visible_only_replaces_characters_by_their_names(text: str) -> None:
    names = [f"⟨U+{ord(character):04X}⟩" for character in text.replace("\r\n", "\n")]
    rest = visible(text)
    for character, name in zip(text.replace("\r\n", "\n"), names, strict=True):
        taken = character if rest.startswith(character) else name
        assert rest.startswith(taken)
        rest = rest[len(taken) :]
    assert rest == ""


def test_what_is_too_long_is_cut_with_a_count() -> None:
    assert shorten("x" * 1300, 92) == "x" * 67 + "… (1,233 more characters)"


def test_what_fits_is_not_cut() -> None:
    assert shorten("x" * 40, 40) == "x" * 40


def test_a_limit_without_room_for_the_count_still_says_that_something_is_missing() -> None:
    assert [shorten("abcdef", limit) for limit in (0, 1, 4)] == ["", "…", "abc…"]


def test_no_letter_is_cut_from_its_accent_nor_an_emoji_in_two() -> None:
    family = "👨\u200d👩\u200d👧"
    for text in (family * 50, "e\u0301" * 200, "👍🏽" * 200):
        for limit in range(40, 60):
            kept = shorten(text, limit).split("…")[0]
            assert text[len(kept)] in "👨e👍"


def test_of_emoji_without_end_no_joiner_is_left_where_they_are_cut() -> None:
    for limit in range(28, 60):
        assert not shorten("👩\u200d" * 200, limit).split("…")[0].endswith("\u200d")


@given(tricky, st.integers(0, 60))
def test_shortening_keeps_to_its_limit_and_counts_rightly(text: str, limit: int) -> None:
    cut = shorten(text, limit)
    assert len(cut) <= limit
    if cut != text and cut.endswith("more characters)"):
        kept, _, count = cut.rpartition("… (")
        assert text.startswith(kept)
        assert len(kept) + int(count.split(" ")[0].replace(",", "")) == len(text)


@given(tricky, st.integers(0, 60))
def test_one_line_is_one_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert len(line) <= limit


def test_one_line_joins_lines_with_single_spaces() -> None:
    assert one_line("  a\n\n b\tc ", 20) == "a b c"


def _shown(arguments: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(visible(name), visible(value)) for name, value in written_arguments(arguments)]


def test_arguments_are_shown_whole_and_readable() -> None:
    assert _shown(
        {
            "title": "Stand-up\nat nine",
            "start": "2026-11-21T09:00:00+01:00",
            "all_day": False,
            "sure": True,
            "count": 3,
            "end": None,
            "attendees": ["Bob", "Zoë"],
            "where": {"room": 3},
            "note": "",
            "replyTo": "Zoë",
        }
    ) == [
        ("Title", "Stand-up\nat nine"),
        ("Start", "2026-11-21T09:00:00+01:00"),
        ("All day", "no"),
        ("Sure", "yes"),
        ("Count", "3"),
        ("End", "(nothing)"),
        ("Attendees", '["Bob", "Zoë"]'),
        ("Where", '{"room": 3}'),
        ("Note", ""),
        ("replyTo", "Zoë"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (True, "yes"),
        (False, "no"),
        (None, "(nothing)"),
        ({"a": 1}, '{"a": 1}'),
        (["a"], '["a"]'),
        (0.5, "0.5"),
    ],
)
def test_text_that_reads_like_something_else_is_in_quotes(value: object, text: str) -> None:
    """Rule 12: two calls that differ look different."""
    assert _shown({"a": value}) == [("A", text)]
    assert _shown({"a": text}) == [("A", json.dumps(text))]
    assert _shown({"a": json.dumps(text)}) == [("A", json.dumps(json.dumps(text)))]


def test_arguments_are_never_cut() -> None:
    assert _shown({"body": "x" * 50_000}) == [("Body", "x" * 50_000)]


def test_hidden_characters_in_names_and_nested_values_are_made_visible() -> None:
    assert _shown({"a\u202eb": ["c\u200bd"]}) == [('"a⟨U+202E⟩b"', '["c⟨U+200B⟩d"]')]


def test_no_two_names_have_the_same_label() -> None:
    """Rule 12: two calls that differ look different, in the names of their arguments too."""
    assert labels(["calendar_id", "calendarId", "calendar id", "Calendar id", "calendar-id", "Calendar_id", ""]) == {
        "calendar_id": "Calendar id",
        "calendarId": "calendarId",
        "calendar id": '"calendar id"',
        "Calendar id": '"Calendar id"',
        "calendar-id": "calendar-id",
        "Calendar_id": '"Calendar_id"',
        "": '""',
    }


def test_a_value_that_is_not_json_is_shown_as_what_it_is() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert _shown({"a": circle}) == [("A", "(can’t be shown)")]


@given(st.dictionaries(tricky, st.recursive(tricky | st.floats() | st.none(), st.lists, max_leaves=4), max_size=5))
def test_any_arguments_can_be_shown(arguments: dict[str, object]) -> None:
    lines = _shown(arguments)
    assert len(lines) == len(arguments)
    assert all(not NEVER_SHOWN & set(label + value) for label, value in lines)


HOSTS = [
    ("https://example.com/a?b#c", "example.com"),
    ("HTTP://EXAMPLE.com", "example.com"),
    ("https://example.com:8443/", "example.com:8443"),
    ("https://bank.com@evil.com/", "evil.com"),
    ("https://münchen.de/", "xn--mnchen-3ya.de"),
    ("https://аpple.com/", "xn--pple-43d.com"),
    ("http://127.0.0.1:3978/x", "127.0.0.1:3978"),
    ("http://[::1]/", "[::1]"),
    ("https://bank.com\\@evil.com/", ""),
    ("https://bank.com\t.evil.com", ""),
    ("https://bank.com\u202e/", ""),
    ("https://faß.de/", ""),
    ("https://ex%61mple.com/", ""),
    ("https:evil.com", ""),
    ("//evil.com", ""),
    ("javascript:alert(1)", ""),
    ("data:text/html,x", ""),
    ("ftp://example.com", ""),
    ("https://", ""),
    ("https://a..b/", ""),
    ("https://example.com:99999/", ""),
    ("https://[::1", ""),
    (f"https://{'a.' * 200}com", ""),
    ("", ""),
]


@pytest.mark.parametrize(("url", "host"), HOSTS)
def test_the_host_of_a_link_is_where_a_browser_would_go(url: str, host: str) -> None:
    assert link_host(url) == host


@given(st.one_of(tricky, st.tuples(st.sampled_from(["https://", "http://", "https:"]), st.text()).map("".join)))
def test_a_host_is_plain_ascii_whatever_the_link(url: str) -> None:
    host = link_host(url)
    assert host.isascii()
    assert not set(host) & set(" @\\/%")
