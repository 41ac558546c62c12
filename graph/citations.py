"""Sources that an answer cites: which passages a turn's results hold, under which numbers, and what of an answer cites.

Sources come from the messages of the turn alone: results of the tools that the operator names for it (`sourceTools` in
`mcp.json`). So a run that is repeated finds the same ones under the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph.citation_filter import CitationFilter

if TYPE_CHECKING:  # what takes messages in starts before the libraries of models are imported
    from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

CITED = "sources"
"""Under which a message of the model carries the sources that it cites, in its `additional_kwargs`."""
CITE = "cite"
"""Under which a passage carries its number for the model, whatever its server has put there."""
MOST_SOURCES = 200
"""Sources of one turn; passages beyond them cannot be cited. Our own choice."""
LOOKED_THROUGH = 500_000
"""Characters of a turn's results that are read for sources, the oldest first: some 5 ms. Our own choice."""
LONGEST_SOURCE_NAME = 200
"""Characters of the name of a document or section that are kept."""
RULE = (
    "- Passages of documents carry the number under which you cite them. Write it behind each statement that rests on "
    "one, like [1]. Cite no other numbers; those of earlier turns mean nothing now."
)
"""What the model is told where it can find passages."""


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that may be cited. Its names are a stranger's text, on one line."""

    number: int
    """From 1, through the turn."""
    name: str
    """Of the document."""
    page: int | None = None
    section: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSources:
    """What can be cited in a turn."""

    sources: tuple[Source, ...] = ()
    numbers: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    """Id of a call → the numbers of the passages of its result, in their order; `None`: there were too many."""

    def cited(self, numbers: Collection[int]) -> tuple[Source, ...]:
        """The sources with these numbers, in order."""
        return tuple(source for source in self.sources if source.number in numbers)


class _Passage(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    document_id: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(max_length=2_000)]
    page: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    section: Annotated[str, Field(max_length=2_000)] | None = None
    text: str


class _Passages(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    passages: Annotated[list[_Passage], Field(max_length=100)]


def sources_in(messages: Sequence[AnyMessage], tools: Collection[str]) -> TurnSources:
    """What the results among the messages of a turn offer to cite.

    A result that belongs to one person's account offers nothing: others read the answer, too.

    Args:
        tools: names by which the model calls those whose results hold passages.
    """
    if not tools:
        return TurnSources()
    sources: dict[tuple[str, _Passage], Source] = {}
    numbers: dict[str, tuple[int | None, ...]] = {}
    space_left = LOOKED_THROUGH
    for message in messages:
        result = _citable(message, tools)
        if result is None:
            continue
        space_left -= len(result.text)
        if space_left < 0:
            break
        server = (result.name or "").partition("__")[0]
        passages = _passages_in(result.text)
        numbers[result.tool_call_id] = tuple(_number(sources, (server, passage)) for passage in passages)
    return TurnSources(tuple(sources.values()), numbers)


def _citable(message: AnyMessage, tools: Collection[str]) -> ToolMessage | None:
    if message.type != "tool" or message.name not in tools:
        return None
    return message if message.status == "success" and not message.additional_kwargs.get("owner") else None


def _passages_in(text: str) -> Sequence[_Passage]:
    """The passages that a result is; none where it is anything else."""
    try:
        return _Passages.model_validate_json(text).passages
    except ValidationError:
        return ()


def _number(sources: dict[tuple[str, _Passage], Source], key: tuple[str, _Passage]) -> int | None:
    if key not in sources:
        if len(sources) == MOST_SOURCES:
            return None
        passage = key[1]
        section = _one_line(passage.section or "") or None
        name = _one_line(passage.name) or passage.document_id
        sources[key] = Source(len(sources) + 1, name, passage.page, section)
    return sources[key].number


def _one_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_SOURCE_NAME]


def with_numbers(messages: Sequence[AnyMessage], known: TurnSources) -> list[AnyMessage]:
    """The messages as the model reads them: each passage that can be cited with its number."""
    return [_numbered(message, known) for message in messages] if known.sources else list(messages)


def _numbered(message: AnyMessage, known: TurnSources) -> AnyMessage:
    numbers = known.numbers.get(message.tool_call_id, ()) if message.type == "tool" else ()
    if not any(numbers):
        return message
    try:
        result = json.loads(message.text)
        own = [{name: said for name, said in each.items() if name != CITE} for each in result["passages"]]
        passages = [
            passage if number is None else {CITE: f"[{number}]", **passage}
            for passage, number in zip(own, numbers, strict=True)
        ]
    except (ValueError, KeyError, TypeError, AttributeError):  # masked for this requester
        return message
    written = json.dumps({**result, "passages": passages}, ensure_ascii=False)
    return message.model_copy(update={"content": written})


def as_kept(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Sources as JSON; read by `kept_sources`."""
    return [asdict(source) for source in sources]


def kept_sources(kept: Any) -> tuple[Source, ...]:
    """Sources as `as_kept` has written them."""
    return tuple(Source(each["number"], each["name"], each.get("page"), each.get("section")) for each in kept or ())


def sources_of(message: AIMessage) -> tuple[Source, ...]:
    """The sources that a message of the model cites."""
    return kept_sources(message.additional_kwargs.get(CITED))


def citing(known: TurnSources) -> CitationFilter:
    """What lets the citations of these sources through, each as `[1]`."""
    return CitationFilter({source.number: f"[{source.number}]" for source in known.sources})


def filtered(text: str, known: TurnSources) -> tuple[str, tuple[Source, ...]]:
    """A whole text without citations of anything else, and the sources that it cites."""
    citations = citing(known)
    shown = citations.add(text) + citations.rest()
    return shown, known.cited(citations.cited)


def named_in_words(text: str, sources: Sequence[Source]) -> str:
    """The text with its sources named where they are cited: for whoever does not know their numbers."""
    if not sources:
        return text
    named = CitationFilter({source.number: f" ({in_words(source)})" for source in sources})
    return named.add(text) + named.rest()


def in_words(source: Source) -> str:
    """Where a passage stands, for a model."""
    page = f"page {source.page}" if source.page is not None else ""
    return ", ".join(filter(None, [source.name, page, source.section]))
