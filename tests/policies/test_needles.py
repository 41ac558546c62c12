"""Rule 13: nothing from outside holds the event loop: most texts have no secret, and saying so costs next to nothing.
Rule 7: what is looked for first is in every text that has a secret of a kind, so that none is passed over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]  # google-re2 ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.logs import Mask
from policies.masking import Masker
from policies.patterns import Needles
from policies.secret_shapes import EMAILS, TOKENS
from tests.policies import secret_corpus as corpus
from tests.policies.builders import Secret, secrets_in
from tests.policies.secret_corpus import ordinary
from tests.support.cpu import quickest
from tests.support.examples import examples

SHORT = "the tool calendar__list was called for web:ana, which took 12 ms"
LOOKS = 300
LINE = {"event": "tool_call_finished", "level": "info", "logger": "bot.turns", "thread": "web:77aa9c1e"}
MASKER = Masker((*TOKENS, EMAILS), ["known-secret-value"])
FORMS = [form.replace("«", "").replace("»", "") for forms in corpus.FORMS.values() for form in forms]
PIECES = [
    *sorted({piece for form in FORMS for piece in re.split(r"(\W+)", form) if piece}),
    *(" ", "\n", ": ", "known-secret-value", "ana@corp.example"),
]


def found_in(texts: list[str]) -> list[list[Secret]]:
    return [secrets_in(MASKER, text) for text in texts]


def test_nothing_is_passed_over_for_the_sake_of_its_needles(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is what all patterns find that look through everything."""
    texts = [each for form in FORMS for each in (form, form.upper(), form.swapcase())]
    texts += [text[:5_000] for _, text in ordinary()]
    found = found_in(texts)
    monkeypatch.setattr(Needles, "whose_are_in", _all_of_them)
    assert found_in(texts) == found
    assert sum(map(bool, found)) > len(FORMS)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@settings(max_examples=examples(35))
def test_nor_in_any_mixture_of_what_secrets_stand_in(text: str) -> None:
    found = secrets_in(MASKER, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Needles, "whose_are_in", _all_of_them)
        assert secrets_in(MASKER, text) == found


def _all_of_them(needles: Needles[Any], text: bytes) -> list[Any]:
    """As when RE2 has no memory to say."""
    del text
    return list(dict.fromkeys([*needles._anywhere, *(each for some in needles._by_needle for each in some)]))


def test_what_has_no_needles_may_be_anywhere_and_each_is_named_once() -> None:
    needles = Needles([("a", [b"left", b"right"]), ("b", []), ("c", [b"never"])])
    assert list(needles.whose_are_in(b"LEFT and Right")) == ["b", "a"]
    assert list(needles.whose_are_in(b"neither")) == ["b"]


def test_without_memory_to_look_everything_may_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    needles = Needles([("a", [b"left"]), ("b", [])])
    monkeypatch.setattr(needles, "_set", type("Exhausted", (), {"Match": staticmethod(lambda _: None)}))
    assert set(needles.whose_are_in(b"nothing")) == {"a", "b"}


def test_that_a_short_text_has_no_secret_is_said_for_a_few_plain_searches() -> None:
    """Measured against the quickest search that there is, on the same machine at the same time."""
    masker, plain = Masker(TOKENS, ["known-secret-value"]), re2.compile("never")
    masker.mask(SHORT)
    assert _quickest(lambda: masker.mask(SHORT)) < 100 * _quickest(lambda: plain.search(SHORT))  # 470 before, now 11


def test_what_comes_again_on_every_line_of_a_log_is_looked_at_once() -> None:
    mask = Mask(["known-secret-value"], Masker(TOKENS))
    words = [mask(text) for text in LINE.values()]
    assert words == list(LINE.values())
    again, once = Mask(["known-secret-value"], Masker(TOKENS)), [f"{text} {{}}" for text in LINE.values()]
    fresh = _quickest(lambda: [again(text.format(time.perf_counter_ns())) for text in once])
    assert _quickest(lambda: [mask(text) for text in LINE.values()]) < fresh / 5


def test_remembering_what_is_clean_hides_no_secret_that_comes_later() -> None:
    mask = Mask(["known-secret-value"], Masker(TOKENS))
    for number in range(3_000):
        assert mask(f"line {number}") == f"line {number}"
    assert "known-secret-value" not in mask("line known-secret-value")
    assert "known-secret-value" not in mask("line known-secret-value")


def _quickest(look: Callable[[], object]) -> float:
    def looks() -> None:
        for _ in range(LOOKS):
            look()

    return quickest(looks, tries=7)
