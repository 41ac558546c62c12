"""Rule 9, policy fails closed: however a model writes a value, a stricter rule about it is not got around.

A tool server reads leniently: it trims, folds case, decodes, unwraps, takes units off. Nobody here can know which of
that it does, so whatever *some* server could read as what a rule is about must not run under an allow below the rule.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.judging import judge
from policies.model import Allow, Ask, Call, Deny
from policies.spellings import LONGEST_SPELLED, decoded, spellings
from tests.policies.builders import a_call, a_policy, a_tool, facts
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples

LARGE = a_policy("match: {args: {amount: {min: 1000}}}, decide: deny", "match: {}, decide: allow")
FORCED = a_policy("match: {args: {amount: 'true'}}, decide: deny", "match: {}, decide: allow")
FORCED_FLAG = a_policy("match: {args: {amount: true}}, decide: deny", "match: {}, decide: allow")
PRODUCTION = a_policy("match: {args: {amount: production}}, decide: deny", "match: {}, decide: allow")
EXACTLY = a_policy("match: {args: {amount: '5000'}}, decide: deny", "match: {}, decide: allow")
NUMBER = a_policy("match: {args: {amount: {equals: 5000}}}, decide: deny", "match: {}, decide: allow")
ANYTHING: tuple[Any, ...] = (
    True,
    False,
    None,
    [],
    {},
    "",
    " ",
    [[5000]],
    {"value": 5000},
    [True],
    {"a": {"b": "production"}},
)

NUMBERS = [
    *("$5000", "5000 EUR", "EUR5000", "5.000,00", "5k", "5 K", "5K USD", "0x1388", "0o11610", "0b1001110001000"),
    *("5000\u200b", "\ufeff5000", "0" * 1_000 + "5000", "5e3", "5E+3", "5_000", "5'000", "5 000", "5\u00a0000"),
    *(
        "٥٠٠٠",
        "５０００",
        "५०००",
        "+5000",
        "(5000)",
        "5000-",
        "--5000",
        "'5000'",
        '"5000"',
        "[5000]",
        '{"value": 5000}',
    ),
    *(
        "5000.",
        "5000,-",
        "five thousand",
        "5 thousand",
        "1e999",
        "inf",
        "Infinity",
        "NaN",
        "9" * 400,
        "5000/1",
        "5000%",
    ),
    *("%35000", "&#53;000", "\\u0035000", "5000;", "5000,1", "2026-01-01", "1.234", "𝟓𝟎𝟎𝟎", "⁵⁰⁰⁰", "⑤⓪⓪⓪", "NTAwMA=="),
]
FLAGS = [
    *("yes", "1", "on", "y", "t", "True", "TRUE", "true ", "enabled", "2", "-1", "x", "truе", "t\u200brue", '"true"')
]
NAMES = [
    *("production\u200b", "Production", " production", "production\n", "ｐroduction", "prоduction", "pro\u00adduction"),
    *("produc%74ion", "produc%2574ion", "&#112;roduction", "&#x70;roduction", "pro\\u0064uction", '"production"'),
    *("['production']", '["production"]', '{"value": "production"}', "staging,production", "staging; production"),
    *("staging|production", "staging\nproduction", "production\x00", "pródúction", "prod\u0301uction", "𝓹𝓻𝓸𝓭𝓾𝓬𝓽𝓲𝓸𝓷"),
    *("рroduction", "production\u202e", "p\u200dr\u200co\u2060duction", "production\ufe0f", "/staging/../production"),
    *("./production", "production/", "<production>", "pro\u034fduction", "\t\tproduction", "production" + " " * 5_000),
]


@pytest.mark.parametrize("amount", [*NUMBERS, *ANYTHING], ids=lambda amount: repr(amount)[:30])
def test_an_amount_is_not_got_past_a_limit_by_writing_it_otherwise(amount: Any) -> None:
    for policy in (LARGE, NUMBER):
        verdict = judge(policy, a_call(amount=amount), facts())
        assert isinstance(verdict, Deny)
        assert "amount" in verdict.reason


@pytest.mark.parametrize("amount", [*FLAGS, 1, 1.0, 5, *ANYTHING], ids=repr)
def test_a_truth_value_is_not_got_past_a_rule_by_writing_it_otherwise(amount: Any) -> None:
    if amount is not False:  # a truth value is what it is
        assert isinstance(judge(FORCED_FLAG, a_call(amount=amount), facts()), Deny)
    assert isinstance(judge(FORCED, a_call(amount=amount), facts()), Deny)


@pytest.mark.parametrize("amount", [*NAMES, 5, ["production"], [["production"]], {"value": "production"}], ids=repr)
def test_a_name_is_not_got_past_a_rule_by_writing_it_otherwise(amount: Any) -> None:
    assert isinstance(judge(PRODUCTION, a_call(amount=amount), facts()), Deny)


@pytest.mark.parametrize(
    "amount", ["5000.0", "5,000", "$5000", "05000", "0x1388", "5e3", "5k", 5000, [5000], "5000 EUR"]
)
def test_a_text_that_is_a_number_is_also_meant_by_its_other_spellings(amount: Any) -> None:
    assert isinstance(judge(EXACTLY, a_call(amount=amount), facts()), Deny)


@pytest.mark.parametrize(
    ("policy", "amount"),
    [
        *((LARGE, amount) for amount in (0, 999, 999.99, -5000, "999", "999.5", "-5000", "0")),
        *((FORCED, amount) for amount in ("false", "no", "False", "off", "0")),
        (FORCED_FLAG, False),
        *((PRODUCTION, amount) for amount in ("staging", "Staging", "pre-production", "production2", "Größe", "日本")),
        *((EXACTLY, amount) for amount in ("5001", "primary", "team-7", "4999.5")),
    ],
)
def test_what_is_plainly_something_else_runs(policy: Any, amount: Any) -> None:
    assert isinstance(judge(policy, a_call(amount=amount), facts()), Allow)


@pytest.mark.parametrize("name", ["Amount", "AMOUNT", "amount ", "a_mount", "amount\u200b", "ａmount", "$.amount"])
def test_a_value_is_not_got_past_a_rule_under_another_spelling_of_its_name(name: str) -> None:
    """Go's JSON, for one, takes names in any case. A path is no name that a tool has."""
    given = {name: 5000}
    assert isinstance(judge(LARGE, Call(a_tool(), given), facts()), Allow if name == "$.amount" else Deny)
    path = a_policy("match: {args: {'$.order.amount': {min: 1000}}}, decide: deny", "match: {}, decide: allow")
    verdict = judge(path, Call(a_tool(), {"order": {**given, "amount": 1}}), facts())
    assert isinstance(verdict, Allow if name == "$.amount" else Deny)


def test_two_names_of_the_tools_own_that_look_alike_are_two_names() -> None:
    tool = a_tool(schema={"properties": {"amount": {}, "Amount": {}}})
    assert isinstance(judge(LARGE, Call(tool, {"amount": 1, "Amount": 5000}), facts()), Allow)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("'/tmp/*'", "/tmp/../etc/passwd"),
        ("'/tmp/*'", "/tmp/%2e%2e/etc/passwd"),
        ("'/tmp/*'", "/tmp/..\\etc"),
        ("'*@acme.example'", "x@evil.example, y@acme.example"),
        ("'*@acme.example'", "x@evil.example y@acme.example"),
        ("'*@acme.example'", "<x@evil.example>;y@acme.example"),
        ("'*@acme.example'", "x%40evil.example,y@acme.example"),
        ("'stag*'", "staging,production"),
        ("'stag*'", ["staging"]),
        ("{regex: '[^/]*'}", "a%2fb"),
        ("{regex: '[^;]*'}", "a；b"),
        ("{max: 5}", "5"),
        ("{max: 5}", None),
        ("{not: production, present: true}", "Production"),
        ("{not: production, present: true}", None),
        ("{present: true}", None),
        ("{present: false}", None),
    ],
)
def test_an_allow_covers_only_what_is_surely_meant(condition: str, value: Any) -> None:
    policy = a_policy(f"match: {{args: {{a: {condition}}}}}, decide: allow")
    assert isinstance(judge(policy, a_call(a=value), facts()), Ask)
    refused = a_policy(f"match: {{args: {{a: {{not: {condition}}}}}}}, decide: deny", "match: {}, decide: allow")
    if condition.startswith("'"):
        assert isinstance(judge(refused, a_call(a=value), facts()), Deny)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("'/tmp/*'", "/tmp/a/b.txt"),
        ("'/tmp/*'", "/tmp/"),
        ("'*@acme.example'", "y@acme.example"),
        ("'*@acme.example'", "x@acme.example, y@acme.example"),
        ("'Test*'", "Test, with Ben"),
        ("'Test*'", "Test 100 % & more (really) of\nlines – “so” Größe 👩\u200d💻"),
        ("{regex: '(?i)select .*'}", "SELECT a, b FROM c WHERE d = 'x'\n LIMIT 5"),
        ("{equals: 'a%20b'}", "a%20b"),
        ("'a%20b'", "a%20b"),
    ],
)
def test_ordinary_text_is_what_it_is(condition: str, value: str) -> None:
    policy = a_policy(f"match: {{args: {{a: {condition}}}}}, decide: allow")
    assert isinstance(judge(policy, a_call(a=value), facts()), Allow)


# ----------------------------------------------------------------------------------------- a lenient server


def lenient_numbers(value: Any, depth: int = 4) -> Iterator[float]:
    """All the numbers that some server might make of a value: Python's and JavaScript's casts, and what people write
    to be helpful."""
    if depth == 0:
        return
    match value:
        case bool() | int() | float():
            yield float(value)
        case list() if value:
            for item in value:
                yield from lenient_numbers(item, depth - 1)
        case dict():
            for item in value.values():
                yield from lenient_numbers(item, depth - 1)
        case str():
            yield from _lenient_number(value, depth)


def _lenient_number(text: str, depth: int) -> Iterator[float]:
    seen = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf").strip()
    for decode in (unquote, html.unescape):
        if decode(seen) != seen:
            yield from lenient_numbers(decode(seen), depth - 1)
    bare = seen.strip("$€£ \t\n'\"[](){}<>")
    scale = {"k": 1e3, "m": 1e6}.get(bare[-1:].lower(), 1)
    for spelled in (bare, re.sub(r"[^0-9.eE+-]", "", bare), re.sub(r"[,_' ]", "", bare), bare.replace(".", "")):
        for read in (float, lambda x: int(x, 0), lambda x: float(x.replace(",", "."))):
            try:
                number = float(read(spelled))
            except (ValueError, OverflowError):
                continue
            yield number
            yield number * scale
    with suppress(ValueError, RecursionError):
        yield from lenient_numbers(json.loads(seen), depth - 1)


WRITERS = st.sampled_from(
    [
        *("${}", "{} EUR", "0{}", "{}.0", "{},00", "{}e0", " {} ", "[{}]", '"{}"', "{}\u200b", "+{}", "'{}'", "({})"),
        *('{{"value": {}}}', "{}k", "{}_0", "{};", "%3{}", "{}\t", "\u2067{}", "<{}>", "~{}", "≥{}", "{}/1"),
    ]
)
WRAPPERS = st.sampled_from([lambda v: [v], lambda v: {"value": v}, lambda v: [[v]], lambda v: {"a": [v]}, lambda v: v])
amounts = st.builds(
    lambda number, writers, wrap: wrap(_written(number, writers)),
    st.integers(0, 100_000) | st.sampled_from([999, 1000, 1001]),
    st.lists(WRITERS, max_size=3),
    WRAPPERS,
)
anything = st.text("0159.,ekxEKX-+_ $'%\u200b٥", max_size=8) | st.integers() | st.floats() | st.booleans() | st.none()


def _written(number: int, writers: list[str]) -> str:
    written = str(number)
    for writer in writers:
        written = writer.format(written)
    return written


@given(amounts | anything | st.lists(anything, max_size=2))
@settings(max_examples=examples(135))
@example("0" * 1_000 + "5000")
@example("1e3")
def test_what_some_server_reads_as_a_large_amount_never_runs_as_a_small_one(amount: Any) -> None:
    if any(not number < 1000 for number in lenient_numbers(amount)):
        assert isinstance(judge(LARGE, a_call(amount=amount), facts()), Deny)


CLOAKS = st.sampled_from(
    [
        *(str.upper, str.title, str.swapcase, lambda t: f" {t}\n", lambda t: f'"{t}"', lambda t: f"[{t}]", json.dumps),
        *("\u200b".join, lambda t: f"\ufeff{t}", lambda t: t.replace("o", "ｏ"), lambda t: f"a,{t}"),
        *(lambda t: quote(t, safe=""), lambda t: t.replace("d", "%64"), lambda t: t.replace("d", "&#100;")),
        *(lambda t: t.replace("o", "ó"), lambda t: unicodedata.normalize("NFD", t), lambda t: t.replace("o", "о")),
        *(lambda t: f"./{t}", lambda t: f"x/../{t}", lambda t: t + "\x00", lambda t: t.replace("p", "\\u0070")),
    ]
)


@given(st.lists(CLOAKS, max_size=3), WRAPPERS)
@settings(max_examples=examples(100))
def test_a_cloaked_name_never_gets_past_a_rule_about_it(cloaks: list[Any], wrap: Any) -> None:
    name = "production"
    for cloak in cloaks:
        name = cloak(name)
    assert isinstance(judge(PRODUCTION, a_call(amount=wrap(name)), facts()), Deny)


@pytest.mark.parametrize(
    ("denied", "written"),
    [
        *(
            ("/srv/data", same)
            for same in ("/srv/data/", "/srv/data//", "/srv/data/.", "\\srv\\data\\", "/srv/x/../data/")
        ),
        *(("straße", same) for same in ("STRASSE", "Strasse", "STRAẞE")),
        ("größe", "GRÖSSE"),
        *(
            ("https://evil.example/*", same)
            for same in (
                "https://me@evil.example/a",
                "https://good.example@evil.example/a",
                "https://evil.example:443/a",
                "HTTPS://Evil.Example./a",
                "https:/evil.example/a",
                "https:evil.example/a",
                "https:\\\\evil.example\\a",
                "https://evil.example",
                "https://evil.example?a=b",
                "https://evil.example#b",
                "https://evil.example:/a",
                "https://evil.example:0443/a",
                "https://ev\til.exam\nple/a",
                "https://evil\u3002example/a",
                "https://evil\uff61example/a",
            )
        ),
        *(
            ("http://169.254.169.254/*", f"http://{same}/latest")
            for same in ("2852039166", "0xA9FEA9FE", "169.254.43518", "0251.0376.0251.0376", "[::ffff:a9fe:a9fe]")
        ),
        ("https://bücher.example/*", "https://xn--bcher-kva.example/a"),
        ("https://xn--bcher-kva.example/*", "https://BÜCHER.example/a"),
        *(("https://evil.example/a", f"https://evil.example/a{end}") for end in ("?", "#b", "/")),
    ],
)
def test_folders_addresses_and_capitals_are_the_same_however_they_are_written(denied: str, written: str) -> None:
    rules = a_policy(f"match: {{args: {{amount: '{denied}'}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(amount=written), facts()), Deny)


IDENTIFIERS = [
    ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "de89-3704-0044-0532-0130-00"],
    ["0f1e2d3c4b5a69788796a5b4c3d2e1f0", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"],
    ["4012888888881881", "4012 8888 8888 1881", "4012-8888-8888-1881"],
    ["15550109999", "+1 (555) 010-9999", "1-555-010-9999", "+15550109999"],
    [
        "33140000000",
        "33 1\u201340000000",
        "+33\u20111\u201140\u201100\u201100\u201100",
        "+33.1.40.00.00.00",
        "+33 1/40000000",
    ],
]


@pytest.mark.parametrize("rules", [1, 6, 30], ids=["one rule", "several rules, which are indexed", "names looked up"])
@pytest.mark.parametrize(
    ("denied", "written"),
    [
        (denied, written)
        for ways in IDENTIFIERS
        for denied in ways
        for written in (*ways, f"{ways[1]}, 7", f"7;{ways[0]}", f" {ways[1]} ", f"urn:uuid:{ways[1]}")
    ],
)
def test_an_identifier_is_the_same_in_groups_and_in_one(denied: str, written: str, rules: int) -> None:
    """Rule 9: a model copies an account from an invoice in groups of four, and a UUID from a link without hyphens."""
    others = [f"DE00 {number:04} 0044 0532 0130 00" for number in range(rules)]
    wanted = [f"{{in: {[denied, *others]}}}"] if rules == 30 else [f"'{each}'" for each in [*others, denied]]
    denies = (f"match: {{args: {{to: {each}}}}}, decide: deny" for each in wanted)
    policy = a_policy(*denies, "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(to=written), facts()), Deny)


@pytest.mark.parametrize("separator", [", ", ";", "\n"])
def test_an_identifier_in_groups_is_found_in_a_long_list(separator: str) -> None:
    """Rule 9: seven accounts in one text were too long to be looked through."""
    accounts = [f"DE{number} 3704 0044 0532 0130 00" for number in range(10, 99)]
    policy = a_policy("match: {args: {to: DE89370400440532013000}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(to=separator.join(accounts)), facts()), Deny)
    assert isinstance(judge(policy, a_call(to=separator.join(accounts[:70])), facts()), Allow)


@pytest.mark.parametrize(
    ("denied", "other"),
    [
        ("DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
        ("2026-11-22", "20261122"),
        ("1-23", "12-3"),
        ("10.0.12.34", "100.1.23.4"),
        ("10.120.30.140", "101.20.30.140"),
        ("10.120.30.140/24", "101.20.30.140/24"),
        ("v1.23.456.7890", "v12.3.456.7890"),
        ("555 010 9999", "555 010 999"),
        ("pay (all)", "payall"),
        ("room 4-1", "room 41"),
        ("(0800) 100200300|x", "x"),
    ],
)
def test_what_is_no_long_identifier_keeps_its_groups(denied: str, other: str) -> None:
    policy = a_policy(f"match: {{args: {{to: {{equals: '{denied}'}}}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(to=other), facts()), Allow)
    assert isinstance(judge(policy, a_call(to=denied), facts()), Deny)


@pytest.mark.parametrize("rules", [1, 30], ids=["one name", "names looked up"])
@pytest.mark.parametrize(
    ("denied", "written"),
    [("prod-eu", "prod\u2011eu"), ("prod\u2013eu", "prod-eu"), ("2026-11-22", "2026\u201111\u201122")],
)
def test_a_dash_of_another_kind_is_a_hyphen(denied: str, written: str, rules: int) -> None:
    """Rule 9: models write non-breaking hyphens, and word processors longer dashes, where people type hyphens."""
    names = [denied, *(f"other {number}" for number in range(rules - 1))]
    policy = a_policy(f"match: {{args: {{to: {{in: {names}}}}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(to=written), facts()), Deny)


def test_a_dash_in_a_class_of_characters_stays() -> None:
    policy = a_policy("match: {args: {to: '[.\u2013\u2014]x'}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(to="\u2013x"), facts()), Deny)


@pytest.mark.parametrize("many", [False, True], ids=["one name", "many names, which are looked up"])
@pytest.mark.parametrize(
    ("denied", "written"),
    [
        (denied, written)
        for denied in ("general", "#general")
        for written in ("general", "#general", "@general", "a, #general")
    ],
)
def test_a_name_is_the_same_with_the_sign_before_it_that_chats_and_trackers_use(
    denied: str, written: str, *, many: bool
) -> None:
    """Rule 9: a model that is told to post in #general writes that, and the tool finds the channel "general"."""
    listed = [denied, *(f"#c{number}" for number in range(30))] if many else [denied]
    rules = a_policy(f"match: {{args: {{channel: {{in: {listed}}}}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(channel=written), facts()), Deny)
    assert isinstance(judge(rules, a_call(channel="#random"), facts()), Allow)


@pytest.mark.parametrize(
    "value",
    ["'/srv/data/x'", "“/srv/data/x”", "<`/srv/data/x`>", "(/srv/data/x)", "/srv%252fdata/x", "/srv/dat%2561/x"],
)
def test_a_path_from_the_root_keeps_its_first_slash_when_quotes_are_taken_off_and_escapes_decoded(value: str) -> None:
    """Rule 9: what is taken for one path is taken for all that it may read like."""
    for denied in ("/srv/data/*", "/srv/data/x"):
        rules = a_policy(f"match: {{args: {{to: '{denied}'}}}}, decide: deny", "match: {}, decide: allow")
        assert isinstance(judge(rules, a_call(to=value), facts()), Deny)


@pytest.mark.parametrize(
    "other",
    [
        "/srv/datas",
        "https://evil.example.com/b",
        "https://x.example/?a@evil.example/a",
        "https://x.example#https://evil.example/",
        "https://evil.example:8443/a",
        "http://evil.example:443/a",
        "https://[::1/a",
        "https://xn--\u00fc.example/a",
        "https://1.2.3.4.5/a",
        "Gross",
    ],
)
def test_other_folders_and_addresses_stay_others(other: str) -> None:
    denied = ("/srv/data", "https://evil.example/*", "größe")
    rules = a_policy(f"match: {{args: {{amount: {{in: {list(denied)}}}}}}}, decide: deny", "match: {}, decide: allow")
    assert isinstance(judge(rules, a_call(amount=other), facts()), Allow)


@pytest.mark.parametrize("rules", [1, 6], ids=["one rule", "several rules, which are indexed"])
def test_a_plain_number_in_quotes_is_not_another_number(rules: int) -> None:
    others = [f"match: {{args: {{amount: {number}}}}}, decide: deny" for number in range(5, 5 + rules)]
    policy = a_policy(*others, "match: {}, decide: allow")
    assert isinstance(judge(policy, a_call(amount="999"), facts()), Allow)
    assert all(isinstance(judge(policy, a_call(amount=same), facts()), Deny) for same in ("5", "5.0", "5.00", "$999"))


HOSTILE = [
    "a" + "\u0301\u0316" * 500_000,
    "%25" * 300_000,
    "&amp;" * 200_000,
    "\\u005c" * 150_000,
    "/../" * 250_000,
    "x@y," * 250_000,
    "\u200b" * LONGEST_SPELLED,
    "é%41&#65;\\x41" * (LONGEST_SPELLED // 13),
    "[" * LONGEST_SPELLED,
    " ," * (LONGEST_SPELLED // 2),
    "https://" + "xn--a." * (LONGEST_SPELLED // 7),
    "https://" + "a:1" * (LONGEST_SPELLED // 4),
    "https://" + "é" * (LONGEST_SPELLED - 8),
]


@pytest.mark.timed
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:8]))
def test_reading_a_hostile_text_takes_time_by_its_length_at_most(text: str) -> None:
    """Rule 13: 50 ms of the event loop are the most that anything from outside may hold, the judgement included."""
    spellings("warm")
    with at_most_cpu(0.3):  # now 40 ms at most
        spellings(text)
        decoded(text)
        judge(PRODUCTION, a_call(amount=text), facts())
