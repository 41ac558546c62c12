"""`prices.yaml` to prices of language models, or an error with the line and the reason.

The file's keys are described in `docs/operations.md`. Nothing ships with prices: they differ by contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from graph.usage import LONGEST_MODEL_NAME, ModelUse, total_tokens
from policies.yaml_values import LineError, Located, child, mapping, only_keys, read_yaml, text, whole_number

VERSION = 1
"""The only version of the file there is."""
LARGEST_FILE = 300_000
"""Characters: more than a thousand models have."""
HIGHEST_PRICE = 1_000_000_000
"""Of a million tokens: in rials or dong, that of large models has seven digits."""
_A_MILLION = 1_000_000
_CURRENCY = re.compile(r"[A-Z]{3}")


class PricesFileError(Exception):
    """Prices that cannot be used; the start stops with it.

    `line` counts from 1 and is `None` only when there is no text to point into.
    """

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        super().__init__(f"{source if line is None else f'{source}, line {line}'}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """What a million tokens of one model cost."""

    input: Decimal
    cached: Decimal
    """Of those that its service had kept from an earlier call."""
    output: Decimal


@dataclass(frozen=True, slots=True)
class Prices:
    """What models cost."""

    currency: str = ""
    """ISO 4217; empty: there are no prices."""
    models: Mapping[str, ModelPrices] = field(default_factory=dict)

    def cost_of(self, model: str, use: ModelUse) -> Decimal | None:
        """What calls cost; `None`: nobody has set a price for this model. What used no tokens costs nothing."""
        if not self.currency:
            return None
        if not total_tokens(use):
            return Decimal(0)
        prices = self.models.get(model)
        if prices is None:
            return None
        given = (use["input_tokens"] - use["cached_tokens"]) * prices.input + use["cached_tokens"] * prices.cached
        return (given + use["output_tokens"] * prices.output) / _A_MILLION


NO_PRICES = Prices()


def load_prices(path: Path) -> Prices:
    """The prices in a file (UTF-8); without the file there are none. Raises `PricesFileError`, also when the file
    cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(4 * LARGEST_FILE + 1)  # and no more: it may be a device
        written = content.decode("utf-8-sig")
    except FileNotFoundError:
        return NO_PRICES
    except OSError as error:
        raise PricesFileError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PricesFileError(str(path), line, "is not UTF-8 text") from error
    return parse_prices(written, str(path))


def parse_prices(written: str, source: str) -> Prices:
    """The prices in a text; `source` names it in errors. Raises `PricesFileError`, and nothing else."""
    if len(written) > LARGEST_FILE:
        raise PricesFileError(source, 1, f"too large: at most {LARGEST_FILE:,} characters are read")
    try:
        return _read_prices(read_yaml(written))
    except LineError as fault:
        raise PricesFileError(source, fault.line, fault.reason) from None


def _read_prices(root: Located | None) -> Prices:
    if root is None:
        raise LineError(1, "the file is empty: write “version: 1”, a currency and models, or remove it")
    entries = mapping(root, "the file")
    only_keys(entries, {"version", "currency", "models"}, "the file")
    number = whole_number(child(entries, "version", root), "version")
    if number != VERSION:
        raise LineError(entries["version"].line, f"version {number} is unknown: this program reads version {VERSION}")
    currency = child(entries, "currency", root)
    if not _CURRENCY.fullmatch(text(currency, "currency")):
        raise LineError(currency.line, "currency must be three capital letters, such as EUR or USD")
    models = mapping(child(entries, "models", root), "models")
    return Prices(str(currency.value), {name: _prices_of(name, entry) for name, entry in models.items()})


def _prices_of(name: str, node: Located) -> ModelPrices:
    if not name or len(name) > LONGEST_MODEL_NAME:
        raise LineError(node.key_line, f"a model’s name has 1 to {LONGEST_MODEL_NAME} characters")
    what = f"the model “{name[:60]}”"
    entries = mapping(node, what)
    only_keys(entries, {"input", "cached", "output"}, what)
    given = _price(child(entries, "input", node), "input")
    cached = _price(entries["cached"], "cached") if "cached" in entries else given
    return ModelPrices(given, cached, _price(child(entries, "output", node), "output"))


def _price(node: Located, what: str) -> Decimal:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LineError(node.line, f"{what} must be a number: the price of a million tokens")
    if not 0 <= value <= HIGHEST_PRICE:
        raise LineError(node.line, f"{what} must be between 0 and {HIGHEST_PRICE:,}")
    return Decimal(str(value))
