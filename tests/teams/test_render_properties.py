"""Whatever a view says, everything shown is within Teams' limits, none of it is active, and nothing raises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.shared.wording import deletes
from adapters.teams.ids import Activity
from adapters.teams.render.dialogs import Dialog, approve_all_dialog
from adapters.teams.render.elements import LARGEST_CARD, escape
from adapters.teams.render.inputs import entries
from adapters.teams.render.markdown import LONGEST_MESSAGE, units
from adapters.teams.render.posts import (
    Audience,
    activities,
    card_of,
    connections_activity,
    help_activity,
    note,
    open_a_chat_first,
    overview_activity,
    sign_in_link,
)
from bot.characters import is_kept_in_context, is_suspicious
from bot.domain import ApprovalView, ConnectionView, Content, Form, Overview, Post, ServiceView, SignInView, Together
from bot.safe_text import visible
from tests.fakes.teams import activity_rules, card_rules
from tests.support.examples import examples
from tests.teams.strategies import audiences, hostile, hostile_accounts, hostile_dialogs, hostile_services

HOSTILE = settings(max_examples=examples(20))
FUNCTION = re.compile(r"\{\{(?:DATE|TIME)\([0-9]{4}-")
"""What clients replace by a date begins like this; what is cut off before is only text."""
_MARKDOWN = MarkdownIt("js-default", {"html": True}).disable("linkify")
_INVISIBLE_WHEN_TYPED = ("value", "id")


def assert_sound(activity: Activity) -> None:
    """Teams takes it, and the product's rules hold."""
    made = dict(activity)
    assert activity_rules.refusals(made) == []
    assert activity_rules.product_mistakes(made) == []
    assert_readable(made)
    assert len(json.dumps(made).encode("utf-16-le")) < 80_000
    for attachment in made.get("attachments", []):
        assert_sound_card(attachment["content"], "message")


def assert_sound_card(card: Mapping[str, Any], surface: card_rules.Surface) -> None:
    """Teams shows it, and nothing foreign in it is markup."""
    assert card_rules.mistakes(card, surface) == []
    assert max(len(json.dumps(card)), len(json.dumps(card, ensure_ascii=False).encode())) <= LARGEST_CARD
    assert_readable(card)
    for element in elements_of(card):
        for text in [element[name] for name in ("text", "title", "value") if is_markdown(element, name)]:
            assert_literal(text)
        if element.get("type") == "TextRun":
            assert FUNCTION.search(element["text"]) is None


def is_markdown(element: Mapping[str, Any], name: str) -> bool:
    """Whether a client reads this property as Markdown."""
    return name in element and (element.get("type") == "TextBlock" or ("type" not in element and "title" in element))


def assert_literal(markdown: str) -> None:
    """It is paragraphs of text and nothing else."""
    for token in _MARKDOWN.parse(markdown):
        assert token.type in ("paragraph_open", "inline", "paragraph_close"), (token.type, markdown)
        assert {child.type for child in token.children or ()} <= {"text", "softbreak", "hardbreak"}, markdown


def assert_readable(shown: Any) -> None:
    """No character in it is invisible or reversed; values of inputs aside, which have to come back unchanged."""
    for text in texts_of(shown):
        unseen = [c for i, c in enumerate(text) if is_suspicious(c) and not is_kept_in_context(text, i)]
        assert unseen == [], text


def texts_of(shown: Any) -> Iterator[str]:
    match shown:
        case str():
            yield shown
        case Mapping():
            typed = str(shown.get("type", "")).startswith("Input.")
            for name, value in shown.items():
                if not (typed and name in _INVISIBLE_WHEN_TYPED) and name != "choices":
                    yield from texts_of(value)
        case list() | tuple():
            for value in shown:
                yield from texts_of(value)


def elements_of(shown: Any) -> Iterator[Mapping[str, Any]]:
    match shown:
        case Mapping():
            yield shown
            for value in shown.values():
                yield from elements_of(value)
        case list() | tuple():
            for value in shown:
                yield from elements_of(value)


@settings(max_examples=examples(50))
@given(hostile.posts, audiences)
def test_every_post_is_sound(post: Post, audience: Audience) -> None:
    made = activities(post, audience)
    assert made
    for activity in made:
        assert_sound(activity)
        assert units(activity.get("text", "")) <= LONGEST_MESSAGE


@HOSTILE
@given(content=hostile.cards | hostile.plans, decides=st.booleans())
def test_every_view_of_one_person_is_sound(content: Content, *, decides: bool) -> None:
    assert_sound_card(card_of(content, decides=decides), "message")


@settings(max_examples=examples(35))
@given(hostile_dialogs)
def test_every_dialog_is_sound(dialog: Dialog) -> None:
    assert_sound_card(dialog.card, "dialog")
    assert 0 < len(dialog.title) <= 60
    assert {dialog.height, dialog.width} <= {"small", "medium", "large"}


@HOSTILE
@given(hostile.sign_ins, hostile.texts | st.just("https://accounts.example.com/authorize?state=1"))
def test_every_private_sign_in_is_sound_and_has_its_link_in_the_button_alone(view: SignInView, link: str) -> None:
    activity = sign_in_link(view, link)
    assert_sound(activity)
    if link.startswith("https://"):
        assert json.dumps(activity).count(link) == 1


@HOSTILE
@given(hostile.texts)
def test_every_sentence_is_sound(text: str) -> None:
    for activity in (note(text), open_a_chat_first(text), help_activity()):
        assert_sound(activity)
    assert_literal(note(text)["text"])


@settings(max_examples=examples(25))
@given(hostile.overviews, hostile_accounts, hostile_services)
def test_every_list_is_sound(
    overview: Overview, accounts: tuple[ConnectionView, ...], services: tuple[ServiceView, ...]
) -> None:
    assert_sound(overview_activity(overview, (), accounts, services))
    assert_sound(connections_activity(accounts, services))


@settings(max_examples=examples(20))
@given(st.lists(hostile.approvals, min_size=1, max_size=2).map(lambda views: views * 21))
def test_what_approves_several_carries_what_it_lists(views: list[ApprovalView]) -> None:
    card = approve_all_dialog(Together(tuple(views), 0)).card
    [button] = card["actions"]
    if "card" in button:  # it asks once more
        assert any(deletes(view) for view in views)
        [button] = button["card"]["actions"]
    subjects = button["data"]["id"].split()
    assert subjects == [view.approval_id for view in views[: len(subjects)]]
    assert len(subjects) == sum(element["type"] == "RichTextBlock" for element in card["body"]) > 0


@settings(max_examples=examples(100))
@given(hostile.texts | st.text("*_`~[](){}<>&!#+-=|:.1 \n\\a", max_size=40))
def test_escaped_text_reads_as_it_was_written(text: str) -> None:
    """Blanks may be written otherwise, and lines stand apart."""
    shown = visible(text)
    escaped = escape(shown)
    assert_literal(escaped)
    read = "\n".join("".join(c.content or "\n" for c in t.children or ()) for t in _MARKDOWN.parse(escaped))
    assert "".join(read.split()) == "".join(shown.split())
    assert "{{DATE(" not in escaped


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@HOSTILE
@given(hostile.forms, st.lists(ANYTHING, max_size=12))
def test_whatever_comes_back_is_read(form: Form, typed: Sequence[Any]) -> None:
    names = [name for field in form.fields for name in (f"field:{field.name}", f"time:{field.name}")]
    made = entries(dict(zip(names, typed, strict=False)), form)
    assert set(made) <= {field.name for field in form.fields}
    assert all(entry is None or isinstance(entry, str | bool | int | float) for entry in made.values())
