"""Two calls that differ anywhere look different wherever people decide on them, and what is left out is counted.

Rule 12: what an approver sees is what runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adapters.shared.arguments import excerpt
from adapters.shared.live.entries import content_json, grants_json
from adapters.slack.actions import Origin
from adapters.slack.render import cards as slack_cards
from adapters.slack.render import forms as slack_forms
from adapters.slack.render.cards import outcome_card as slack_outcome
from adapters.slack.render.home import home_view
from adapters.teams.render import cards as teams_cards
from adapters.teams.render import dialogs as teams_dialogs
from adapters.teams.render import questions as teams_questions
from adapters.teams.render.overview import overview_card
from bot.card_masks import is_exact, masked
from bot.characters import reads_one_way
from bot.domain import ApprovalView, ClarificationView, GrantView, OutcomeView, Overview, Person, Shown, Together
from policies.masking import Masker
from policies.secret_shapes import EMAILS, TOKENS
from tests.slack.shown import an_approval, in_c1
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples
from tests.teams.shown import a_post

LETTERS = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7f"
TOKEN, OTHER = f"ghp_{LETTERS[:36]}", f"ghp_{LETTERS[1:37]}"
MASKER = Masker((*TOKENS, EMAILS), key=b"a key")
MASK = MASKER.for_card(TOKEN).value
ANA = Person("slack:T1:U1", "Ana")

ALIKE = [
    [5, "5", 5.0, "5.0", '"5"', "05", "5 "],
    [True, "yes", "true", '"yes"', False, "no", None, "(nothing)", "null"],
    ["", " ", "  ", "\t", "\n", "(empty)", "(1 blank)", "(not given)"],
    ["a", "a ", " a", "a\u200b", "a⟨U+200B⟩", "a⟨U+27E8⟩U+200B⟩", "a\u00a0", "a\ufe0f", "a\u202e"],
    ["a\nb", "a\r\nb", "a\rb", "a\n\nb", "a\n \nb", "a  b", "a\tb", "a\\nb", "a\n"],
    ["é", "e\u0301", "{{DATE(2026-01-01T00:00:00Z)}}", "{ {DATE(2026-01-01T00:00:00Z)}}", "{\\{DATE(x)}}"],
    [["a"], '["a"]', [["a"]], ["a", ""], {"a": 1}, '{"a": 1}', {"a": "1"}, {"a": None}, {}, []],
    [TOKEN, OTHER, MASK, "[secret: password]", "[secret: github token]", [TOKEN], [OTHER], {TOKEN: 1}, {OTHER: 1}],
    [
        "ana@corp.example",
        "eve@evil.example",
        "x ana@corp.example",
        "DROP TABLE a; -- password=abc123",
        "password=abc123",
    ],
    [
        "x" * 3_000,
        "x" * 3_001,
        "x" * 2_999 + "y",
        "a" * 2_700 + "b",
        "a" * 2_700 + "\nb",
        "l\n" * 30,
        "l\n" * 29 + "m\n",
    ],
]
NAMES = [
    "a",
    "A",
    "a_b",
    "aB",
    "A b",
    "a b",
    "a-b",
    "a__b",
    "",
    "a" * 90,
    "a" * 90 + "b",
    "a\u200b",
    TOKEN,
    OTHER,
    MASK,
]
names = st.sampled_from(NAMES) | st.text(max_size=3)
values = st.sampled_from([value for alike in ALIKE for value in alike]) | st.text(max_size=4) | st.integers()
calls = st.dictionaries(names, values, max_size=13)


def approval(arguments: dict[str, Any], tool: str = "make", **changes: Any) -> ApprovalView:
    view = replace(an_approval(server="shop", tool=tool, title="", arguments=arguments), **changes)
    return masked(view, MASKER)


def shown(arguments: dict[str, Any], tool: str = "make") -> Iterator[tuple[str, Any]]:
    """Everywhere where people see a call: the place, and what is shown there."""
    view = approval(arguments, tool)
    settled = approval(arguments, tool, status="approved", asked_arguments={"a": 0})
    outcome = masked(OutcomeView("o", "open", "shop", tool, "", arguments, "Ana", "slack:T1:U1"), MASKER)
    asks = ClarificationView("q", "open", "Are you sure?", "", (), "Ana", "slack:T1:U1", server="shop", tool=tool)
    question = masked(replace(asks, arguments=arguments), MASKER)
    grant = masked(GrantView("g", "shop", tool, arguments, 0.0), MASKER)
    origin = Origin("call-1.1")
    yield "a card in Slack", slack_cards.approval_card(view, "T1").blocks
    yield "a settled card in Slack", slack_cards.approval_card(settled, "T1").blocks
    yield "an outcome in Slack", slack_outcome(outcome).blocks
    yield "a tool's question in Slack", slack_cards.clarification_card(question, "T1").blocks
    yield "an answered question in Slack", slack_cards.clarification_card(replace(question, status="answered"), "T1")
    questions = Overview((), (in_c1("p", question),), ())
    yield "a tool's question in the Home tab", home_view(questions, lambda _: "", ANA)
    yield "show all in Slack", [slack_forms.arguments_modal(view, page, origin) for page in range(3)]
    yield "approve all in Slack", slack_forms.approve_all_modal(Together((view,), 0), origin)
    yield "always allow in Slack", slack_forms.always_modal(view, origin)
    waits = Overview((in_c1("p", view),), (), ())
    yield "what waits, in the Home tab", home_view(waits, lambda _: "", ANA)
    asked = Overview((), (in_c1("p", view),), ())
    yield "what waits for others, in the Home tab", home_view(asked, lambda _: "", ANA)
    lost = Overview((), (in_c1("p", outcome),), ())
    yield "an outcome in the Home tab", home_view(lost, lambda _: "", ANA)
    yield "what is allowed, in the Home tab", home_view(Overview((), (), ()), lambda _: "", ANA, [grant])
    yield "a card in Teams", teams_cards.approval_card(view, decides=True)
    yield "a settled card in Teams", teams_cards.approval_card(settled, decides=False)
    yield "an outcome in Teams", teams_questions.outcome_card(outcome)
    yield "a tool's question in Teams", teams_questions.clarification_card(question)
    yield "a tool's question in the list in Teams", overview_card(Overview((), (Shown(a_post(question), None),), ()))
    yield "show all in Teams", [teams_dialogs.show_all_dialog(view, page, decides=True) for page in range(3)]
    yield "approve all in Teams", teams_dialogs.approve_all_dialog(Together((view,), 0))
    yield "always allow in Teams", teams_dialogs.always_dialog(view)
    yield "what waits in Teams", overview_card(Overview((Shown(a_post(view), None),), (), ()))
    yield "what is allowed in Teams", overview_card(Overview((), (), ()), [grant])
    yield "a card on the page", at_first(content_json(view))
    yield "a settled card on the page", at_first(content_json(settled))
    yield "an outcome on the page", at_first(content_json(outcome))
    yield "a tool's question on the page", content_json(question)
    yield "what is allowed on the page", at_first(grants_json((grant,))["grants"][0])


def where_it_is_approved(view: ApprovalView) -> Iterator[tuple[str, Any]]:
    """Everywhere where a button approves a call as it stands: the place, and what is shown there."""
    waits = Overview((in_c1("p", view),), (), ())
    yield "a card in Slack", slack_cards.approval_card(view, "T1").blocks
    yield "approve all in Slack", slack_forms.approve_all_modal(Together((view,), 0), Origin("call-1.1"))
    yield "what waits, in the Home tab", home_view(waits, lambda _: "", ANA)
    yield "a card in Teams", teams_cards.approval_card(view, decides=True)
    yield "show all in Teams", teams_dialogs.show_all_dialog(view, 0, decides=True)
    yield "approve all in Teams", teams_dialogs.approve_all_dialog(Together((view,), 0))
    yield "a card on the page", content_json(view)


def at_first(card: dict[str, Any]) -> Any:
    """What of a call the page shows before anybody asks for all of it."""
    lines = [(line["name"], line["shown"], line["hidden"]) for line in card["arguments"]]
    return card["tool"], lines, card["unseen"], card["fingerprint"] if any(hidden for *_, hidden in lines) else ""


def written(value: Any) -> str:
    return json.dumps(value, default=repr)


def assert_they_look_different(
    one: dict[str, Any], two: dict[str, Any], tools: tuple[str, str] = ("make",) * 2
) -> None:
    for (place, first), (_, second) in zip(shown(one, tools[0]), shown(two, tools[1]), strict=True):
        assert written(first) != written(second), f"{one} and {two} look alike: {place}"


def differ(one: Any, two: Any) -> bool:
    return json.dumps(one, sort_keys=True) != json.dumps(two, sort_keys=True)


@pytest.mark.parametrize("alike", ALIKE, ids=[str(alike[0])[:20] for alike in ALIKE])
def test_values_that_are_nearly_alike_look_different(alike: list[Any]) -> None:
    made = [[(place, written(what)) for place, what in shown({"a": value})] for value in alike]
    for place in range(len(made[0])):
        looks = [one[place][1] for one in made]
        assert len(set(looks)) == len(alike), f"{made[0][place][0]}: two of {alike} look alike"


@pytest.mark.parametrize(
    "alike",
    [
        ["/srv/א/1/2", "/srv/1/2/א"],
        ["א 1", "1 א"],
        ["100 شكرا 200", "200 شكرا 100"],
        [["א", 1], [1, "א"]],
        ["paypal", "раураl", "paypаl", "ｐａｙｐａｌ", "𝐩aypal", "ρaypal"],
        ["to Ivan: a", "to Ivan: а"],
        ["Отправь 3 штуки", "Отправь З штуки"],
        ["Ж3", "Жз"],
        ["Привет, а как", "Привет, a как"],
        ["二回", "ニ回"],
        ["ロ", "口"],
        ["東京へ", "東京ヘ"],
        ["a-b", "a‐b", "a−b", "a–b"],
        ["a/b", "a∕b", "a⁄b"],
        ["it's", "it’s", "itʹs"],
        ["a\nb", "a \nb", "a\n b"],
        ["a\n\n\nb", "a\n\n\n\nb"],
        ["<b>", "&lt;b>", "&#60;b>"],
        ["Đ", "Ð"],
        ["i", "i\u0307"],
        ["\ue000", "\ue001", "\u0378"],
        ["[secret: github token, 40 characters, #6cd1d5f3]", "[ѕecret: github token, 40 characters, #6cd1d5f3]"],
    ],
)
def test_of_calls_that_eyes_cannot_tell_apart_one_at_most_is_without_a_fingerprint(alike: list[Any]) -> None:
    views = [approval({"to": value}) for value in alike]
    assert sum(view.exact for view in views) <= 1, [view.arguments for view in views]


@pytest.mark.parametrize(
    "text",
    [
        "Größe — naïve façade, Łódź, İstanbul",
        "Nguyễn Văn An",
        "Привет, как дела у Анны и Ивана?",
        "会議を設定する。第二回、一千万円",
        "コーヒーを注文",
        "안녕하세요",
        "Deploy done 🎉",
        "One.\n\nTwo.",
        "a & b; c < d",
    ],
)
def test_what_reads_one_way_only_has_no_fingerprint_beside_it(text: str) -> None:
    assert approval({"to": text}).exact


LOOKALIKES = "aаαoоοО0ЗзЗ3cсpрxхyукkκнhдДжЖzDdñé —1lІ"


@given(st.text(st.sampled_from(LOOKALIKES), max_size=8), st.data())
def test_a_text_that_reads_one_way_has_no_double(text: str, data: st.DataObject) -> None:
    doubles = [set("aаα"), set("oоο"), set("О0"), set("Зз3"), set("cс"), set("pр"), set("xх"), set("yу"), set("кkκ")]
    double = "".join(data.draw(st.sampled_from(sorted(next((s for s in doubles if c in s), {c})))) for c in text)
    assume(double != text)
    assert not (reads_one_way(text) and reads_one_way(double))


def test_of_much_text_beyond_ascii_nothing_is_looked_at() -> None:
    """Rule 13: it would take half a second."""
    with at_most_cpu(0.4):
        assert not is_exact("shop", "make", {"to": ["жж " * 6_000 + "ж"] * 50})


def test_who_asks_and_what_the_call_may_do_stand_wherever_it_is_approved() -> None:
    """Rule 12: a list, or what it opens, may be all that somebody has seen of a call."""
    view = approval({"a": 1}, requester="Somebody", risk=("destroys",))
    for place, look in where_it_is_approved(view):
        assert "Somebody" in written(look), place
        assert "Deletes data" in written(look) or '"destroys"' in written(look), place  # the page has words of its own


def test_names_that_are_nearly_alike_look_different() -> None:
    made = [[(place, written(what)) for place, what in shown({name: "x"})] for name in NAMES]
    for place in range(len(made[0])):
        assert len({one[place][1] for one in made}) == len(NAMES), made[0][place][0]


@settings(max_examples=examples(20))
@given(calls, names, values)
@example({f"n{number}": 1 for number in range(12)}, "n11", 2)
def test_calls_that_differ_in_one_argument_look_different(call: dict[str, Any], name: str, value: Any) -> None:
    other = {**call, name: value}
    assume(differ(call, other))
    assert_they_look_different(call, other)


@settings(max_examples=examples(10))
@given(calls)
def test_calls_of_another_tool_look_different(call: dict[str, Any]) -> None:
    assert_they_look_different(call, call, "make_more")


plain_texts = st.text(st.sampled_from("ab c\n"), max_size=40).map(lambda text: f"x{text * 60}x")


@settings(max_examples=examples(20))
@given(st.lists(plain_texts | st.just("short"), min_size=1, max_size=14))
def test_what_is_left_out_is_counted(texts: list[str]) -> None:
    arguments = {f"n{number}": text for number, text in enumerate(texts)}
    shown = excerpt(arguments)
    hidden = 0
    for (_, part), text in zip(shown.pairs, texts, strict=False):
        counted = re.search(r"… \(([0-9,]+) more characters\)\Z", part)
        kept = part[: counted.start()] if counted else part
        assert text.startswith(kept)
        assert len(kept) + (int(counted[1].replace(",", "")) if counted else 0) == len(text)
        hidden += len(text) - len(kept)
    left_out = len(texts) - len(shown.pairs)
    assert (f"{hidden:,} character" in shown.unseen) is (hidden > 0)
    assert (f"{left_out} argument" in shown.unseen) is (left_out > 0)
