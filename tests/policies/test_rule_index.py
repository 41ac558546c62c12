"""The rule index leaves out nothing that fits or may fit, and most of what does not."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.conditions import Between, Equals, Glob, Regex
from policies.judging import judge
from policies.matching import TOGETHER, Fit, Subject, rule_index
from policies.model import Argument, Call, Match
from tests.policies.builders import a_call, a_command, a_policy, a_tool, facts, fit
from tests.policies.strategies import any_mode, arguments, conditions, json_values, matches
from tests.support.examples import examples

keys = st.sampled_from(["a", "$.a", "$.a[*]"])
asking = st.builds(lambda key, condition: Match(args=(Argument.of(key, condition),)), keys, conditions)
signs = st.text("aAbB*?[]!-^\\.ß１1 \n", max_size=6)
looking_alike = st.builds(
    lambda condition: Match(args=(Argument.of("a", condition),)),
    st.builds(Glob, signs) | st.builds(Equals, signs | st.integers(-2, 12)) | st.builds(Between, st.none(), st.just(1)),
)
values = json_values | signs | st.sampled_from(["1", " 1 ", "1,000", 10**400, "9" * 400, float("nan"), "nan", True, []])


def excluded(asked: list[Match], subject: Subject) -> list[Match]:
    left = rule_index(asked).left(subject)
    return [match for number, match in enumerate(asked) if not left >> number & 1]


@given(st.lists(asking | looking_alike, min_size=4, max_size=9), st.dictionaries(st.just("a"), values))
@settings(max_examples=examples(100))
@example([Match(args=(Argument.of("a", Equals(10**400)),))] * 4, {"a": 10**400})
@example([Match(args=(Argument.of("a", Equals(float("nan"))),))] * 4, {"a": 1})
@example([Match(args=(Argument.of("a", Regex("(?P<x>a)")),))] * 4, {"a": "A"})
def test_what_is_kept_back_does_not_fit_its_argument(asked: list[Match], given_arguments: dict[str, Any]) -> None:
    call = Call(a_tool(), given_arguments)
    for match in excluded(asked, Subject(call, facts())):
        assert fit(match, call, facts()) is Fit.NO


@given(st.lists(matches(any_mode), min_size=4, max_size=9), arguments)
def test_what_is_kept_back_does_not_fit_at_all(asked: list[Match], given_arguments: dict[str, Any]) -> None:
    call = Call(a_tool(), given_arguments)
    for match in excluded(asked, Subject(call, facts())):
        assert fit(match, call, facts()) is Fit.NO


patterns = st.lists(st.sampled_from(["*", "m365", "list", "re*", "remove", "team", "[a b]", "t?am"]), min_size=1).map(
    " ".join
)
lines = st.lists(st.sampled_from(["m365", "list", "REMOVE", "team", "-x", "--y=delete", "7"]), min_size=1).map(" ".join)


@given(st.lists(patterns, min_size=4, max_size=6), lines)
def test_what_is_kept_back_does_not_fit_the_command(asked: list[str], line: str) -> None:
    call = a_command(line)
    for match in excluded([Match(command=pattern) for pattern in asked], Subject(call, facts())):
        assert fit(match, call, facts()) is Fit.NO


def left(asked: list[Match], call: Call, **around: Any) -> int:
    return rule_index(asked).left(Subject(call, facts(**around)))


def test_most_of_what_does_not_fit_is_kept_back() -> None:
    texts = [Match(args=(Argument.of("a", Regex(f"thing {number}.*")),)) for number in range(10)]
    assert left(texts, a_call(a="thing 7!")) == (1 << 10) - 1
    assert left(texts, a_call(a="lamp")) == 0
    assert left(texts, a_call()) == 0
    numbers = [Match(args=(Argument.of("a", Between(number, number + 1)),)) for number in range(10)]
    assert left(numbers, a_call(a=99)) == 0
    assert left(numbers, a_call(a=5)) != 0
    assert left(numbers, a_call(a="99")) == 0
    assert left(numbers, a_call(a="lamp")) == (1 << 10) - 1  # what a tool makes of it is not known
    people = [Match(requester=(f"web:{name}",)) for name in ("ben", "eve", "zoe", "chloe")]
    assert left(people, a_call()) == 0
    assert left(people, a_call(), requester="web:eve") == 0b1111
    channels = [Match(channel=f"slack:T1:C{number}") for number in range(4)]
    assert left(channels, a_call()) == 0
    assert left(channels, a_call(), place="slack:T1:C2") == 0b1111
    lines_ = [Match(command=f"* remove{number}") for number in range(4)]
    assert left(lines_, a_call()) == 0
    assert left(lines_, a_command("m365 team list")) == 0
    assert left(lines_, a_command("m365 team list; x")) == 0b1111


def test_rules_without_such_questions_are_all_left() -> None:
    assert left([Match()] * 10, a_call()) == (1 << 10) - 1
    assert left([Match(args=(Argument.of("a", Equals(True)),))] * 5, a_call(a="lamp")) == 0b11111


def test_of_many_rules_the_first_that_fits_decides_wherever_it_stands() -> None:
    """Also across the stretches in which they are asked together."""
    written = [f"match: {{args: {{a: 'thing {number}'}}}}, decide: deny" for number in range(200)]
    policy = a_policy(*written, "match: {args: {a: 'thing*'}}, decide: allow", "match: {}, decide: ask")
    for number in (0, 1, 63, 64, 127, 128, 199):
        assert judge(policy, a_call(a=f"thing {number}"), facts()).rule == f"r{number + 1}"
    assert judge(policy, a_call(a="thing 200"), facts()).rule == "r201"
    assert judge(policy, a_call(a="lamp"), facts()).rule == "r202"


def test_of_a_thousand_rules_about_one_argument_few_are_held_against_a_call() -> None:
    """What keeps judging under a millisecond: the others were asked together."""
    written = [
        f"match: {{tool: create_event, args: {{a: {{regex: '.*thing {n}[0-9]*'}}}}}}, decide: deny" for n in range(999)
    ]
    policy = a_policy(*written, "match: {}, decide: allow")
    held = list(policy.held_against(Subject(a_call(a="a lamp"), facts())))
    assert [rule.name for rule in held] == ["r1000"]
    assert len(list(policy.held_against(Subject(a_call(a="thing 998"), facts())))) <= 4 * TOGETHER
