"""Where secrets are found in a text, and which of them are certain.

Rule 12: what people decide on hides only what is a secret for certain, and its own characters alone.
"""

from __future__ import annotations

import pytest

from policies.masking import Masker
from policies.secret_shapes import EMAILS, TOKENS
from tests.policies.builders import Secret, secrets_in
from tests.policies.test_masking import KEY, SHAPES


@pytest.mark.parametrize(("kind", "secret"), SHAPES, ids=[s[0] + s[1][:8] for s in SHAPES])
@pytest.mark.parametrize("before", ["", "note: ", "für Ünal 😀 "])
def test_tokens_of_known_services_are_certain_and_found_in_characters(kind: str, secret: str, before: str) -> None:
    found = [each for each in secrets_in(Masker(), f"{before}{secret} ü") if each.certain]
    assert found[0] == Secret(len(before), len(before) + len(secret), kind, certain=True)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE customers; -- password=abc123",
        '{"token": "drop-every-table-of-2026"}',
        "curl -H 'Authorization: Bearer drop-every-table-2026'",
        "-----BEGIN PRIVATE KEY----- DROP TABLE customers -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ndropallcustomersfromtables\n-----END PRIVATE KEY-----",
        "postgres://app:DROP-TABLE-customers@db/x",
        "https://x.blob/y?sv=1&sig=drop-the-table-of-all-customers-now",
    ],
)
def test_what_cannot_be_told_apart_from_ordinary_text_is_doubtful(text: str) -> None:
    found = secrets_in(Masker(), text)
    assert found
    assert not any(each.certain for each in found)


def test_values_of_this_process_and_what_the_operator_wants_masked_are_certain() -> None:
    masker = Masker((*TOKENS, EMAILS), ["known-to-us"])
    text = "ü known-to-us, ana@corp.example"
    assert [text[each.start : each.end] for each in secrets_in(masker, text) if each.certain] == [
        "known-to-us",
        "ana@corp.example",
    ]


def test_a_private_key_is_found_to_its_end() -> None:
    (certain,) = (each for each in secrets_in(Masker(), f"a {KEY} b") if each.certain)
    assert (certain.start, certain.end) == (2, 2 + len(KEY))
