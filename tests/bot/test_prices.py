"""`prices.yaml`: what models cost, or the line and the reason why it cannot be read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from bot.prices import NO_PRICES, ModelPrices, PricesFileError, load_prices, parse_prices

GOOD = """
version: 1
currency: EUR
models:
  gpt-large: {input: 1.25, cached: 0.125, output: 10}
  "anthropic:some": {input: 3, output: 15}
"""


def test_prices_are_of_a_million_tokens_and_cached_ones_cost_as_others_unless_said() -> None:
    prices = parse_prices(GOOD, "prices.yaml")
    assert prices.currency == "EUR"
    assert prices.models == {
        "gpt-large": ModelPrices(Decimal("1.25"), Decimal("0.125"), Decimal(10)),
        "anthropic:some": ModelPrices(Decimal(3), Decimal(3), Decimal(15)),
    }


def test_without_the_file_there_are_no_prices(tmp_path: Path) -> None:
    assert load_prices(tmp_path / "prices.yaml") == NO_PRICES


@pytest.mark.parametrize(
    ("written", "line", "reason"),
    [
        ("", 1, "the file is empty"),
        ("- a", 1, "the file must be a mapping"),
        ("version: 2\ncurrency: EUR\nmodels: {}", 1, "version 2 is unknown"),
        ("currency: EUR\nmodels: {}", 1, "“version” is missing"),
        ("version: 1\nmodels: {}", 1, "“currency” is missing"),
        ("version: 1\ncurrency: euro\nmodels: {}", 2, "three capital letters"),
        ("version: 1\ncurrency: EUR", 1, "“models” is missing"),
        ("version: 1\ncurrency: EUR\nmodel: {}", 3, "did you mean “models”?"),
        ("version: 1\ncurrency: EUR\nmodels: [a]", 3, "models must be a mapping"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a: 3", 4, "the model “a” must be a mapping"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a: {input: 1}", 4, "“output” is missing"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a: {output: 1}", 4, "“input” is missing"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a:\n    input: 1\n    out: 2", 6, "did you mean “output”?"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a:\n    input: cheap\n    output: 2", 5, "input must be a number"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a:\n    input: true\n    output: 2", 5, "input must be a number"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a:\n    input: 1\n    output: -2", 6, "between 0 and 1,000,000,000"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a: {input: 1, output: 1}\n  a: {input: 1, output: 1}", 5, "twice"),
        ("version: 1\ncurrency: EUR\nmodels:\n  a: {input: 1, output: 1", 4, "not valid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(written: str, line: int, reason: str) -> None:
    with pytest.raises(PricesFileError) as found:
        parse_prices(written, "prices.yaml")
    assert found.value.line == line
    assert reason in found.value.reason
    assert str(found.value).startswith(f"prices.yaml, line {line}: ")


def test_what_is_no_text_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_bytes(b"version: 1\n\xff")
    with pytest.raises(PricesFileError, match="line 2: is not UTF-8 text"):
        load_prices(file)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("#" * 300_001)
    with pytest.raises(PricesFileError, match="too large"):
        load_prices(file)
