"""Does a rule fit a call? Three answers: yes, no, and "could not be found out"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cached_property, reduce
from operator import or_
from typing import Any

from policies.commands import CommandLine, argument_of_command, command_among, command_of, folded, within
from policies.conditions import (
    AllConditions,
    AllOf,
    AnyOf,
    Between,
    Condition,
    Equals,
    Glob,
    Hours,
    OneOf,
    Regex,
    in_words,
    is_literal,
    local_time,
    says_more_than_its_letters,
)
from policies.defaults import with_defaults
from policies.model import Argument, Call, Facts, Match, Tool, is_group
from policies.patterns import NOTHING, Likeness, any_glob, glob, literally, of_glob, perhaps, whole
from policies.spellings import LONGEST_NAME, LONGEST_SPELLED, LongText, folded_name
from policies.trust import believed, call_known_to_read
from policies.values import Doubt, Implied, Path, Undetermined, ValueKind, cost_of_reading, kind_of, number_in, shown

# ---------------------------------------------------------------- a call, prepared once for all rules

MOST_NAMES = 20_000
"""Characters of the names in the arguments that are not ASCII, and 10 for each such name: folding them takes 20 ms."""
MOST_READ = 50_000
"""What reading the arguments that rules are about may cost for one call (`cost_of_reading`): about 50 ms."""


@dataclass(frozen=True)
class Subject:
    """What is being judged."""

    call: Call
    facts: Facts
    _long: dict[int, LongText] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Identity of a text → what is known of it: the arguments keep the text as long as this lives."""
    _costs: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _too_much: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _local: dict[str, datetime] = field(default_factory=dict, init=False, repr=False, compare=False)
    _named: dict[str, Sequence[Any] | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _found: dict[str, list[Any] | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _spent: list[int] = field(default_factory=lambda: [0], init=False, repr=False, compare=False)

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as the tool will take them, with its defaults."""
        return with_defaults(self.call.tool.input_schema, self.call.arguments)

    def named(self, name: str) -> Sequence[Any] | None:
        """The value of an argument, or nothing, looked up once; `None`: it is there under another spelling of its name,
        or nobody knows whether it has a default."""
        if name not in self._named:
            self._named[name] = self._looked_up(name)
        return self._named[name]

    def _looked_up(self, name: str) -> Sequence[Any] | None:
        given = self.arguments
        if self._has_too_many_names or any(other != name for other in self._spelled.get(folded_name(name), ())):
            return None
        if name in given and not isinstance(given[name], Implied):
            return (self._read_once(given[name]),)
        return None if isinstance(given, Undetermined) else ()

    @cached_property
    def _spelled(self) -> Mapping[str, Sequence[str]]:
        """The names of arguments that the tool does not have, by their letters."""
        properties = self.call.tool.input_schema.get("properties")
        own = properties if isinstance(properties, Mapping) else {}
        spelled: defaultdict[str, list[str]] = defaultdict(list)
        for name in self.arguments:
            if name not in own:
                spelled[folded_name(name)].append(name)
        return spelled

    def values(self, path: Path) -> list[Any] | None:
        """What a path into the arguments yields, looked up once; `None`: could not be found out (`Path.values`)."""
        if path.text not in self._found:
            found = None if self._has_too_many_names else path.values(self.arguments)
            self._found[path.text] = found if found is None else [*map(self._read_once, found)]
        return self._found[path.text]

    def _read_once(self, value: Any) -> Any:
        """A value that a rule asks about; a long text in a form that remembers what is found out about it."""
        match value:
            case str() if len(value) > LONGEST_SPELLED:
                return self._long.setdefault(id(value), LongText(value))
            case Doubt():
                return Doubt(tuple(map(self._read_once, value.options)))
            case _:
                return value

    @cached_property
    def _has_too_many_names(self) -> bool:
        """Whether comparing the names in the arguments would take too long, so that nothing is known of them."""
        cost = 0
        waiting: list[Any] = [self.call.arguments]
        while waiting and cost <= MOST_NAMES:
            one = waiting.pop()
            if isinstance(one, Mapping):
                cost += sum(10 + min(len(name), LONGEST_NAME) for name in one if not name.isascii())
                waiting += one.values()
            elif isinstance(one, list | tuple):
                waiting += one
        return cost > MOST_NAMES

    def is_too_much(self, key: str, values: Sequence[Any]) -> bool:
        """Whether these values of an argument, or a path, are more than can be read in all the ways in which a tool may
        read them, after what was read for this call before."""
        if key not in self._costs:
            self._costs[key] = cost_of_reading(values, MOST_READ - self._spent[0])
            self._spent[0] += self._costs[key]
            if self._spent[0] > MOST_READ:
                self._too_much.add(key)
                self._spent[0] -= self._costs[key]
        return key in self._too_much

    def local_time(self, zone: str) -> datetime:
        """When it is, by the wall clock of a zone."""
        if zone not in self._local:
            self._local[zone] = local_time(self.facts.at, zone)
        return self._local[zone]

    @cached_property
    def hints(self) -> Mapping[str, bool] | None:
        """MCP hint → its value; `None` where the server's annotations are not trusted."""
        if not self.call.tool.annotations_trusted:
            return None
        facts = believed(self.call.tool)
        return {
            "readOnlyHint": facts.read_only,
            "destructiveHint": facts.destructive,
            "idempotentHint": facts.idempotent,
            "openWorldHint": facts.open_world,
        }

    @cached_property
    def known_to_read(self) -> bool:
        """Whether the call is known to change nothing."""
        return call_known_to_read(self.call)

    @cached_property
    def command(self) -> CommandLine | None:
        """The command of a call to a command-shaped tool."""
        return command_of(self.call.tool.input_schema, self.call.arguments)

    @cached_property
    def command_given(self) -> CommandLine | None:
        """The command of a call to any tool that takes one, alone or among other arguments."""
        return self.command or command_among(self.arguments)


class Fit(Enum):
    """How a match relates to a call."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """It depends on something that could not be found out: a group, a command that cannot be read, a value of another
    kind or one that is written otherwise."""


NO = Fit.NO
ValuesOf = Callable[[Subject], Sequence[Any] | None]
"""Finds the values of an argument; `None`: could not be found out."""
Test = Callable[[Subject], bool | None]
"""Whether one field fits a call; `None`: that could not be found out."""


@dataclass(frozen=True, slots=True)
class Check:
    """One field of a match, ready to be asked."""

    field: str
    """The field as it is written: `server`, `args.count`."""
    wanted: str
    """What the rule wants of it, in words."""
    fits: Test
    found: Callable[[Subject], str]
    """What is there instead, in words."""
    doubt: str = ""
    """How a sentence begins that says that it could not be found out."""
    varies: Callable[[Tool], bool] = lambda _: False
    """Whether calls of a tool by the same caller can get different answers: the field is about arguments or time."""


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
    yield from (check(wanted) for check, wanted in ((_client, match.client), (_agent, match.agent)) if wanted)
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


def _always(_: Tool) -> bool:
    return True


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


def _client(patterns: tuple[str, ...]) -> Check:
    is_like = any_glob(patterns)
    return Check(
        "client",
        " or ".join(patterns),
        lambda subject: subject.facts.client != "" and bool(is_like(subject.facts.client)),
        lambda subject: subject.facts.client or "our own agent",
    )


def _agent(patterns: tuple[str, ...]) -> Check:
    is_like = any_glob(patterns)
    return Check(
        "agent",
        " or ".join(patterns),
        lambda subject: subject.facts.agent != "" and bool(is_like(subject.facts.agent)),
        lambda subject: subject.facts.agent or "a program",
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
        varies=lambda tool: argument_of_command(tool.input_schema) is not None,
    )


def values_at(argument: Argument) -> ValuesOf:
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
    return Check(f"args.{key}", str(condition), fits, found, doubt, _always)


def _requester(wanted: tuple[str, ...]) -> Check:
    people = frozenset(reference for reference in wanted if not is_group(reference))
    groups = tuple(filter(is_group, wanted))

    def fits(subject: Subject) -> bool | None:
        if subject.facts.requester in people:
            return True
        known = subject.facts.groups
        memberships = [*(known.get(group) for group in groups), *(known.get(person, False) for person in people)]
        return True if any(memberships) else None if None in memberships else False

    def found(subject: Subject) -> str:
        known = subject.facts.groups
        unknown = [group for group in groups if known.get(group) is None]
        unknown += [person for person in wanted if known.get(person, False) is None and person in people]
        return f"{subject.facts.requester}, perhaps in {' or '.join(unknown)}" if unknown else subject.facts.requester

    doubt = f"Whether the requester is {'in ' if groups else ''}{' or '.join(groups or wanted)}"
    return Check("requester", " or ".join(wanted), fits, found, doubt)


def _time(hours: Hours) -> Check:
    return Check(
        "time",
        str(hours),
        lambda subject: hours.include(subject.local_time(hours.zone)),
        lambda subject: in_words(subject.local_time(hours.zone)),
        varies=_always,
    )


def _command(pattern: str) -> Check:
    is_like = glob(folded(pattern))
    is_within = whole(within(pattern))

    def fits(subject: Subject) -> bool | None:
        command = subject.command_given
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
        if subject.command_given is None:
            return "not what this tool takes"
        return " or ".join(shown(reading) for reading in subject.command_given.readings) or "not readable"

    doubt = "What the command does (it is not one plain command, options last and without shell characters)"
    return Check("command", pattern, fits, found, doubt, _always)


def nothing_but_a_command() -> Check:
    """That a call gives its tool nothing beside a command: what else it is given may change what the command does. To
    be asked where a rule about commands permits something."""
    return Check(
        "command",
        "all that the tool takes",
        lambda subject: subject.command is not None,
        lambda subject: "one of several arguments" if subject.command_given else "not what this tool takes",
    )


# ------------------------------------------------------------ which of many rules can be about a call
# Conditions of many rules on one argument are combined: a thousand regular expressions in one cost little more than
# one.
# Whatever the index returns is then checked rule by rule. The index must never leave out a rule that fits or may fit.

TOGETHER = 64
"""Rules that are asked at once; RE2 is quickest with some dozens of patterns in one."""
WORTH_IT = 4
"""Rules about one argument from which on it is asked for all of them at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a value must be like, at the least: text like one of `texts`, or a number from `low` to `high`."""

    texts: tuple[str, ...] = ()
    """Regular expressions (RE2)."""
    low: float = float("inf")
    high: float = float("-inf")

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(self.texts + other.texts, min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, slots=True)
class Question:
    """What many rules ask of one argument."""

    key: str
    values: ValuesOf
    may_be_text: Likeness
    wants_text: bool
    low: float
    high: float
    asking: int
    """The rules that ask it, a bit for each."""

    def excludes(self, subject: Subject) -> bool:
        """Whether no value can be what any of them wants."""
        values = self.values(subject)
        if values is None or subject.is_too_much(self.key, values):
            return False
        return not any(map(self._may_be, values))

    def _may_be(self, value: Any) -> bool:
        match value:
            case str():
                if self.may_be_text(value):
                    return True
                number = number_in(value) if self.low <= self.high else None
                return self.low <= self.high if number is None else self._includes(number)
            case bool():
                return True  # seldom asked about, and not worth being asked about quickly
            case int() | float():
                return self.wants_text or self._includes(value)
            case _:
                return True

    def _includes(self, number: float) -> bool:
        # What JavaScript rounds may be on the other side of an end.
        return not (number < self.low or number > self.high) or abs(number) > _EXACT


@dataclass(frozen=True, slots=True)
class RuleIndex:
    """Questions about some rules."""

    questions: tuple[Question, ...]
    everything: int
    """A bit for each rule."""

    def left(self, subject: Subject) -> int:
        """The rules that may be about a call, a bit for each, the first one lowest."""
        left = self.everything
        for question in self.questions:
            if left & question.asking and question.excludes(subject):
                left &= ~question.asking
        return left


def rule_index(matches: Sequence[Match]) -> RuleIndex:
    """The questions worth asking about these rules."""
    asked: defaultdict[str, list[tuple[int, ValuesOf, Wanted]]] = defaultdict(list)
    for number, match in enumerate(matches):
        for key, values, wanted in _questions_of(match):
            asked[key].append((1 << number, values, wanted))
    together = (_together(key.removeprefix("args."), each) for key, each in asked.items() if len(each) >= WORTH_IT)
    return RuleIndex(tuple(question for question in together if question is not None), (1 << len(matches)) - 1)


def _together(key: str, askings: Sequence[tuple[int, ValuesOf, Wanted]]) -> Question | None:
    wanted, asking = Wanted(), 0
    for bit, _, each in askings:
        wanted, asking = wanted | each, asking | bit
    try:
        return Question(
            key, askings[0][1], perhaps(wanted.texts or (NOTHING,)), bool(wanted.texts), wanted.low, wanted.high, asking
        )
    except ValueError:
        return None  # together they are too large for RE2


def _questions_of(match: Match) -> Iterable[tuple[str, ValuesOf, Wanted]]:
    for argument in match.args:
        wanted = _wanted(argument.condition)
        if wanted is not None:
            yield f"args.{argument.key}", values_at(argument), wanted
    if match.requester and not any(map(is_group, match.requester)):
        yield "requester", _accounts, Wanted(tuple(map(literally, match.requester)))
    if match.channel is not None:
        yield "channel", lambda subject: (subject.facts.place,), Wanted((of_glob(match.channel),))
    if match.command is not None:
        yield (
            "command",
            _command_line,
            Wanted((within(match.command), of_glob(" ".join(match.command.lower().split())))),
        )


def _accounts(subject: Subject) -> Sequence[str]:
    """The requester's account, and those that are, or may be, theirs too."""
    return (subject.facts.requester, *(one for one, is_so in subject.facts.groups.items() if is_so is not False))


def _command_line(subject: Subject) -> Sequence[str] | None:
    command = subject.command_given
    if command is None:
        return ()
    return (command.line,) if command.readable else None


def _wanted(condition: Condition) -> Wanted | None:
    """`None`: it can fit what is not there, or too many kinds of values."""
    match condition:
        case Glob(pattern=text) | Equals(value=str() as text) if _means_more(condition, text):
            return None
        case Regex():
            return Wanted((condition.expression,))
        case Equals(value=str() as text):
            return Wanted((literally(text),))
        case Equals(value=bool()):
            return None
        case Equals(value=int() | float() as number):
            return Wanted(low=number, high=number) if kind_of(number) is ValueKind.NUMBER else None
        case Between(low=low, high=high):
            return Wanted(low=float("-inf") if low is None else low, high=float("inf") if high is None else high)
        case OneOf(options=options):
            each = [_wanted(Equals(option)) for option in options]
            return None if None in each else reduce(or_, filter(None, each), Wanted())
        case AnyOf() | AllOf():
            return _wanted(condition.condition)
        case AllConditions():
            return next(filter(None, map(_wanted, condition.conditions)), None)
        case _:
            return None


def _means_more(condition: Condition, text: str) -> bool:
    """Whether text unlike this one may be meant as it: not what regular expressions can ask."""
    return says_more_than_its_letters(text) and (not isinstance(condition, Glob) or is_literal(text))


_EXACT = 2.0**53
