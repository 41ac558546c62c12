"""Does a rule fit a call? Three answers: yes, no, and "could not be found out"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from policies.commands import folded, within
from policies.match import Argument, Match
from policies.patterns import glob, whole
from policies.references import is_group
from policies.schedule import Hours, in_words
from policies.subject import Subject
from policies.values import shown


class Fit(Enum):
    """How a match relates to a call."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """It depends on something that could not be found out: a group, a command that cannot be read, a value of another
    kind or one that is written otherwise."""


NO = Fit.NO

Values = Callable[[Subject], Sequence[Any] | None]
"""Finds the values of an argument; `None`: could not be found out."""

Test = Callable[[Subject], bool | None]
"""Whether one field fits a call; `None`: that could not be found out."""


@dataclass(frozen=True, slots=True)
class Check:
    """One field of a match, ready to be asked."""

    field: str
    """As it is written: `server`, `args.count`."""
    wanted: str
    """What the rule wants of it, in words."""
    fits: Test
    found: Callable[[Subject], str]
    """What is there instead, in words."""
    doubt: str = ""
    """How a sentence begins that says that it could not be found out."""


def fit_all(tests: Iterable[Test], subject: Subject) -> Fit:
    """Whether every given field of a match fits, as `checks_of` has prepared them. `UNKNOWN` only when nothing else
    already says no. Raises nothing."""
    answer = Fit.YES
    for fits in tests:
        fitting = fits(subject)
        if fitting is False:
            return NO
        if fitting is None:
            answer = Fit.UNKNOWN
    return answer


def checks_of(match: Match) -> tuple[Check, ...]:
    """A match as checks, what is quick to ask first."""
    return tuple(_checks(match))


def _checks(match: Match) -> Iterator[Check]:
    if match.server is not None:
        yield _same("server", match.server, lambda subject: subject.call.tool.server)
    if match.tool is not None:
        yield _like("tool", match.tool, lambda subject: subject.call.tool.name)
    if match.mode is not None:
        yield _same("mode", match.mode.value, lambda subject: subject.facts.mode.value)
    if match.platform is not None:
        yield _same("platform", match.platform, lambda subject: subject.facts.platform)
    if match.channel is not None:
        yield _channel(match.channel)
    for hint, wanted in match.annotations.items():
        yield _hint(hint, wanted)
    for argument in match.args:
        yield _argument(argument)
    if match.requester:
        yield _requester(match.requester)
    if match.reads is not None:
        yield _reads(match.reads)
    if match.time is not None:
        yield _time(match.time)
    if match.command is not None:
        yield _command(match.command)


def _same(field: str, wanted: str, of: Callable[[Subject], str]) -> Check:
    return Check(field, wanted, lambda subject: of(subject) == wanted, of)


def _like(field: str, pattern: str, of: Callable[[Subject], str]) -> Check:
    is_like = glob(pattern)
    return Check(field, pattern, lambda subject: bool(is_like(of(subject))), of)


def _channel(pattern: str) -> Check:
    is_like = glob(pattern)
    return Check(
        "channel",
        pattern,
        lambda subject: subject.facts.place != "" and bool(is_like(subject.facts.place)),
        lambda subject: subject.facts.place or "a direct chat",
    )


def _hint(hint: str, wanted: bool) -> Check:  # noqa: FBT001 - the value of a hint, not a switch
    def fits(subject: Subject) -> bool:
        return subject.hints is not None and subject.hints[hint] is wanted

    def found(subject: Subject) -> str:
        return "not trusted on this server" if subject.hints is None else shown(subject.hints[hint])

    return Check(f"annotations.{hint}", shown(wanted), fits, found)


def _reads(wanted: bool) -> Check:  # noqa: FBT001 - the value of a field, not a switch
    return Check(
        "reads",
        shown(wanted),
        lambda subject: subject.known_to_read is wanted,
        lambda subject: "known to read" if subject.known_to_read else "not known to read",
    )


def values_at(argument: Argument) -> Values:
    """Finds what an argument, or a path into the arguments, holds."""
    name, path = argument.key, argument.path

    return (lambda subject: subject.named(name)) if path is None else (lambda subject: subject.values(path))


def _argument(argument: Argument) -> Check:
    key, condition, values = argument.key, argument.condition, values_at(argument)
    condition.fits(("",))  # whatever it prepares, it prepares now

    def fits(subject: Subject) -> bool | None:
        held = values(subject)
        return None if held is None or subject.is_too_much(key, held) else condition.fits(held)

    def found(subject: Subject) -> str:
        held = values(subject)
        if held is None or subject.is_too_much(key, held):
            return "not readable: of another kind, under another name, nested too deeply, or too much"
        return ", ".join(map(shown, held[:5])) + (f" and {len(held) - 5} more" if held[5:] else "") or "left out"

    doubt = f"What {key} holds (not written as the rule compares it: {condition})"
    return Check(f"args.{key}", str(condition), fits, found, doubt)


def _requester(wanted: tuple[str, ...]) -> Check:
    people = frozenset(reference for reference in wanted if not is_group(reference))
    groups = tuple(filter(is_group, wanted))

    def fits(subject: Subject) -> bool | None:
        if subject.facts.requester in people:
            return True
        memberships = [subject.facts.groups.get(group) for group in groups]
        return True if any(memberships) else None if None in memberships else False

    def found(subject: Subject) -> str:
        unknown = [group for group in groups if subject.facts.groups.get(group) is None]
        return f"{subject.facts.requester}, perhaps in {' or '.join(unknown)}" if unknown else subject.facts.requester

    doubt = f"Whether the requester is in {' or '.join(groups)}"
    return Check("requester", " or ".join(wanted), fits, found, doubt)


def _time(hours: Hours) -> Check:
    return Check(
        "time",
        str(hours),
        lambda subject: hours.include(subject.local_time(hours.zone)),
        lambda subject: in_words(subject.local_time(hours.zone)),
    )


def _command(pattern: str) -> Check:
    is_like = glob(folded(pattern))
    is_within = whole(within(pattern))

    def fits(subject: Subject) -> bool | None:
        command = subject.command
        if command is None:
            return False
        if not command.readable:
            return None
        plain, *others = command.readings
        if is_like(plain):
            return None if any(not is_like(reading) for reading in others) else True
        if any(map(is_like, others)):
            return None
        return None if is_within(command.line) and any(map(is_like, command.longer_readings)) else False

    def found(subject: Subject) -> str:
        if subject.command is None:
            return "not what this tool takes"
        return " or ".join(shown(reading) for reading in subject.command.readings) or "not readable"

    doubt = "What the command does (it is not one plain command, options last and without shell characters)"
    return Check("command", pattern, fits, found, doubt)
