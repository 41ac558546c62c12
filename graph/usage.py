"""What a turn uses of language models, model by model. It rides in the graph's state: a checkpoint that stands has
counted its calls, so that a restart neither loses nor repeats them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

MOST_TOKENS = 100_000_000
"""Of one answer, that are believed: more than any model reads. Our own choice."""
LONGEST_MODEL_NAME = 200
"""Characters."""
MOST_COUNTED = 10**15
"""Tokens of one turn: what a database takes, and a checkpoint."""


class ServiceCount:
    """What a service says that it has counted of one answer so far. Services count from the beginning, in one event or
    in many; some say the tokens of the question in the first one only, and those of the answer in the last: of each,
    the largest number counts."""

    __slots__ = ("cached", "given", "made")

    def __init__(self) -> None:
        self.given = self.cached = self.made = 0

    def note(self, *, given: object = None, cached: object = None, made: object = None) -> None:
        """Take in what an event says.

        Args:
            given: tokens of all that the model was given, the cached ones among them.
            cached: those that its service had kept from an earlier call.
            made: those that the model has made, its thoughts among them.
        """
        self.given = larger(self.given, given)
        self.cached = larger(self.cached, cached)
        self.made = larger(self.made, made)


class ModelUse(TypedDict):
    """What calls of one model came to."""

    calls: int
    input_tokens: int
    """Of all that it was given, the cached ones among them."""
    cached_tokens: int
    """Those of them that its service had kept from an earlier call."""
    output_tokens: int
    seconds: float
    """From the question to the end of the answer, tries that failed included."""


Usage = Mapping[str, ModelUse]
"""Name of a model → what its calls came to."""
NO_USAGE: Usage = {}


def use_of(
    answer: AIMessage | None, seconds: float, *, lost_input: int = 0, lost_cached: int = 0, lost_output: int = 0
) -> ModelUse:
    """What asking once came to, never less than nothing, nor more than can be counted: the answer, as its service says,
    and tries that gave none.

    Args:
        answer: `None`: no try gave one.
        lost_input: tokens of the question in tries that gave none.
        lost_cached: those of them that its service had kept from an earlier call.
        lost_output: those that had come of them.
    """
    said = answer.usage_metadata if answer is not None else None
    given = _bounded(said["input_tokens"]) if said else 0
    cached = said.get("input_token_details", {}).get("cache_read", 0) if said else 0
    made = _bounded(said["output_tokens"]) if said else 0
    return ModelUse(
        calls=1,
        input_tokens=given + _bounded(lost_input),
        cached_tokens=min(_bounded(cached), given) + min(_bounded(lost_cached), _bounded(lost_input)),
        output_tokens=made + _bounded(lost_output),
        seconds=round(max(seconds, 0.0), 3),
    )


def with_use(usage: Usage, model: str, use: ModelUse) -> Usage:
    """The usage with one more call, or several."""
    before = usage.get(model)
    return {**usage, model: use if before is None else added(before, use)}


def added(one: ModelUse, other: ModelUse) -> ModelUse:
    """Both together."""
    return ModelUse(
        calls=one["calls"] + other["calls"],
        input_tokens=min(one["input_tokens"] + other["input_tokens"], MOST_COUNTED),
        cached_tokens=min(one["cached_tokens"] + other["cached_tokens"], MOST_COUNTED),
        output_tokens=min(one["output_tokens"] + other["output_tokens"], MOST_COUNTED),
        seconds=round(one["seconds"] + other["seconds"], 3),
    )


def total_tokens(use: ModelUse) -> int:
    """Those of questions and answers."""
    return use["input_tokens"] + use["output_tokens"]


def name_of(model: BaseChatModel) -> str:
    """The name under which the calls of a model are counted: the one that the settings have for it (`app.py` gives it),
    else its service's."""
    names = (getattr(model, attribute, None) for attribute in ("name", "model_name", "model"))
    found = next((name for name in names if isinstance(name, str) and name), type(model).__name__)
    return found[:LONGEST_MODEL_NAME]


def larger(before: int, said: object) -> int:
    """What counts of what a service has said before and says now. What is no number says nothing."""
    if isinstance(said, bool) or not isinstance(said, int | float) or not said > before:
        return before
    return int(min(said, MOST_TOKENS))


def largest(before: Mapping[str, int], said: object) -> dict[str, int]:
    """The same of several numbers by name; what is no mapping says nothing."""
    names = said if isinstance(said, Mapping) else {}
    return {name: larger(count, names.get(name)) for name, count in before.items()}


def _bounded(count: int) -> int:
    return min(max(count, 0), MOST_TOKENS)
