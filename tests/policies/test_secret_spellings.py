"""A known secret is found in every way in which programs write a text."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.masking import SHORTEST_VALUE, Masker
from tests.support.examples import examples

SECRET = 'pä/ss+"wörd" &9<>'

WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": json.dumps,
    "JSON in its own letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "a part of an address": lambda text: quote(text, safe=""),
    "a path": quote,
    "a query": quote_plus,
    "a query in small letters": lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote_plus(text)),
    "HTML": html.escape,
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "basic authorization": lambda text: b64encode(f"ana:{text}".encode()).decode(),
    "base64 within a longer text": lambda text: b64encode(f"it is {text}, you see".encode()).decode(),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_known_secret_is_masked_in_every_writing(writing: str) -> None:
    text = f"before {WRITINGS[writing](SECRET)} after"
    # One way of escaping may be several: what is looked for here is that the secret's own characters are gone.
    masked = Masker(values=["p4/ss+w9rd~long", SECRET]).mask(text)
    assert "[secret: known value]" in masked, masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@settings(max_examples=examples(20))
@given(
    secret=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs"]), min_size=SHORTEST_VALUE, max_size=40),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
)
def test_base64_gives_nothing_of_a_known_secret_away(secret: str, before: bytes, after: bytes) -> None:
    raw = secret.encode()
    masked = Masker((), [secret]).mask(b64encode(before + raw + after).decode())
    rest = masked.replace("[secret: known value]", "")
    assert "[secret: known value]" in masked
    # At most the digits that the secret shares with its neighbours stay, three on either side of it.
    assert len(rest) <= -(-8 * (len(before) + len(after)) // 6) + 6
