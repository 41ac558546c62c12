"""What a run found, as JSON that later runs are compared with, and as tables. Pure, but for reading a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evals.scoring import Counts, InjectionScore, Score

VERSION = 1


class ResultError(Exception):
    """A file has no result; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """How a conversation went."""

    name: str
    fingerprint: str
    counts: Counts
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """What came of a text that tries to make the agent act."""

    name: str
    fingerprint: str
    seen: bool
    proposed: Sequence[str]
    ran: Sequence[str]
    trouble: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found.

    Attributes:
        fingerprint: of the set.
        router: the model that picks the tool types.
        commit: of the product; with a `+` where files were changed since. Empty: it is not known.
        at: when, ISO 8601.
        recording: the name of the file that was replayed; empty: the model itself was asked.
    """

    fingerprint: str
    model: str
    router: str
    commit: str
    at: str
    recording: str
    conversations: Sequence[ConversationResult]
    injections: Sequence[InjectionResult]

    @property
    def has_run_unapproved(self) -> bool:
        """Whether something ran that nobody approved: a defect of the product, whatever the model is."""
        return total(self.conversations).unapproved > 0 or any(each.ran for each in self.injections)

    @property
    def is_without_any_end(self) -> bool:
        """Whether nothing was tried to its end, as where no model answers: the figures say nothing then."""
        ended = [not each.counts.unfinished for each in self.conversations]
        return not any([*ended, *(not each.trouble for each in self.injections)])

    def written(self) -> str:
        """As JSON."""
        summary = {"counts": asdict(total(self.conversations)), "passed": passed(self.conversations)}
        return json.dumps({"version": VERSION, **asdict(self), "summary": summary}, ensure_ascii=False, indent=1) + "\n"


def conversation_result(name: str, fingerprint: str, score: Score) -> ConversationResult:
    """As it is kept."""
    return ConversationResult(name, fingerprint, score.counts, list(score.problems))


def injection_result(name: str, fingerprint: str, score: InjectionScore) -> InjectionResult:
    """As it is kept."""
    return InjectionResult(name, fingerprint, score.seen, list(score.proposed), list(score.ran), score.trouble)


def read_result(file: Path) -> RunResult:
    """The result in a file. Raises `ResultError`."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept.pop("version") != VERSION:
            raise ResultError(f"{file} has another version: this program reads version {VERSION}")
        kept.pop("summary")
        conversations = [
            ConversationResult(**{**each, "counts": Counts(**each["counts"])}) for each in kept.pop("conversations")
        ]
        injections = [InjectionResult(**each) for each in kept.pop("injections")]
        return RunResult(**kept, conversations=conversations, injections=injections)
    except OSError as error:
        raise ResultError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{file} has no result of the evals ({error})") from error


def total(conversations: Sequence[ConversationResult]) -> Counts:
    """All that was counted."""
    return sum((each.counts for each in conversations), Counts())


def passed(conversations: Sequence[ConversationResult]) -> int:
    """How many had no problem."""
    return sum(not each.problems for each in conversations)


# ------------------------------------------------------------------------------------------------ tables


def table(results: Sequence[RunResult]) -> str:
    """A Markdown table with a row for each run."""
    heads = [name for name, _ in _COLUMNS]
    rows = [[column(result) for _, column in _COLUMNS] for result in results]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---", *["--:"] * (len(heads) - 1)], *rows])


def injection_table(results: Sequence[RunResult]) -> str:
    """A Markdown table of what tried to make the agent act."""
    lines = ["| model | tried | read | proposed | ran |", "|---|--:|--:|--:|--:|"]
    for result in results:
        tried = result.injections
        figures = [len(tried), sum(t.seen for t in tried), sum(bool(t.proposed) for t in tried), _ran(tried)]
        lines.append(f"| {result.model} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines)


def _ran(injections: Sequence[InjectionResult]) -> int:
    return sum(bool(each.ran) for each in injections)


def _of(part: str, whole: str) -> Callable[[RunResult], str]:
    def shown(result: RunResult) -> str:
        counts = asdict(total(result.conversations))
        return f"{counts[part]} of {counts[whole]}"

    return shown


def _turns(result: RunResult) -> str:
    """The person's messages in a conversation that passed, on average, and how many it takes at the least."""
    done, counts = passed(result.conversations), total(result.conversations)
    return f"{counts.messages / done:.2f} of {counts.fewest_messages / done:.2f}" if done else "–"


_COLUMNS: Sequence[tuple[str, Callable[[RunResult], str]]] = (
    ("model", lambda result: result.model),
    ("passed", lambda result: f"{passed(result.conversations)} of {len(result.conversations)}"),
    ("right tool", _of("right_tool", "calls")),
    ("right arguments", _of("right_arguments", "calls")),
    ("asked when needed", _of("asked", "asks")),
    ("asked in vain", lambda result: str(total(result.conversations).asked_in_vain)),
    ("refused", _of("refused", "refusals")),
    ("clarified when unclear", _of("clarified", "unclear")),
    ("answered", _of("answered", "answers")),
    ("turns to done", _turns),
    ("tokens", lambda result: f"{total(result.conversations).tokens:,}"),
)


# ------------------------------------------------------------------------------------------------ two of them


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results side by side, of what is the same in both sets."""

    old: RunResult
    new: RunResult
    left_out: int
    """Conversations and injections that are in one of them only, or are written otherwise there."""

    @property
    def now_failing(self) -> Sequence[ConversationResult]:
        """What passed before, and does not now."""
        return [new for old, new in zip(self.old.conversations, self.new.conversations, strict=True)
                if new.problems and not old.problems]  # fmt: skip

    @property
    def now_passing(self) -> Sequence[str]:
        """What did not pass before."""
        return [new.name for old, new in zip(self.old.conversations, self.new.conversations, strict=True)
                if old.problems and not new.problems]  # fmt: skip

    @property
    def now_proposed(self) -> Sequence[str]:
        """Injections that the agent obeys now, and did not before."""
        return [new.name for old, new in zip(self.old.injections, self.new.injections, strict=True)
                if new.proposed and not old.proposed]  # fmt: skip

    @property
    def is_worse(self) -> bool:
        """Whether something was right before, and is not now."""
        return bool(self.now_failing or self.now_proposed)

    def shown(self) -> str:
        """In Markdown."""
        old = replace(self.old, model=f"{self.old.model} at {self.old.commit or '?'}")
        new = replace(self.new, model=f"{self.new.model} at {self.new.commit or '?'}")
        parts = [table([old, new]), injection_table([old, new])]
        if self.left_out:
            parts.append(f"{self.left_out} are left out: they are in one of the two only, or were changed since.")
        parts += [f"No longer passes: {each.name}. {' '.join(each.problems)}" for each in self.now_failing]
        parts += [f"Passes now: {name}." for name in self.now_passing]
        parts += [f"Obeyed now: {name}." for name in self.now_proposed]
        return "\n\n".join(parts)


def compare(old: RunResult, new: RunResult) -> Comparison:
    """What both have, in the same order."""
    conversations = _in_both(old.conversations, new.conversations)
    injections = _in_both(old.injections, new.injections)
    names = {each.name for result in (old, new) for each in result.conversations}
    names |= {each.name for result in (old, new) for each in result.injections}
    return Comparison(
        replace(old, conversations=[a for a, _ in conversations], injections=[a for a, _ in injections]),
        replace(new, conversations=[b for _, b in conversations], injections=[b for _, b in injections]),
        len(names - {each.name for _, each in conversations} - {each.name for _, each in injections}),
    )


def _in_both(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[Any, Any]]:
    known: Mapping[tuple[str, str], Any] = {(each.name, each.fingerprint): each for each in old}
    pairs = [(known.get((each.name, each.fingerprint)), each) for each in new]
    return [(a, b) for a, b in pairs if a is not None]
