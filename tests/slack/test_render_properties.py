"""Whatever a view says, everything shown is within Slack's limits, pings nobody by accident, and raises nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.actions import Origin, load_origin
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.cards import approval_card, sign_in_piece
from adapters.slack.render.forms import (
    always_modal,
    answer_modal,
    approve_all_modal,
    arguments_modal,
    ask_modal,
    code_modal,
    connect_modal,
    edit_modal,
    hand_over_modal,
    note_modal,
    reject_modal,
)
from adapters.slack.render.home import connections_piece, home_view, overview_piece
from adapters.slack.render.inputs import entries, error_blocks
from adapters.slack.render.posts import help_piece, note, pieces, thread_start
from bot.characters import is_kept_in_context, is_suspicious
from bot.domain import (
    ApprovalView,
    ConnectionView,
    Form,
    GrantView,
    Overview,
    Person,
    Post,
    ServiceView,
    SignInView,
    Together,
)
from graph.interrupts import FormField
from tests.fakes.slack.block_rules import mistakes, text_mistakes, view_mistakes
from tests.slack.shown import (
    ALLOWED_USERS,
    hostile,
    hostile_connections,
    hostile_grants,
    hostile_links,
    hostile_people,
    hostile_services,
)
from tests.support.examples import examples

HOSTILE = settings(max_examples=examples(20))
ORIGIN = Origin("call-1.1", "C1", "1700000000.000100", "1700000000.000100")


def assert_sound(piece: SlackMessage) -> None:
    """Slack takes it, and its fallback is escaped."""
    assert mistakes(list(piece.blocks), users=ALLOWED_USERS) == []
    assert 0 < len(piece.text) <= 4_000
    assert text_mistakes(piece.text, users=()) == []
    assert_readable([*piece.blocks, piece.text])


def assert_sound_view(view: dict[str, Any], surface: str = "modal") -> None:
    """Slack takes it; what it remembers can be read again."""
    assert view_mistakes(view, surface=surface, users=ALLOWED_USERS) == []
    if surface == "modal":
        load_origin(view["private_metadata"])
    assert_readable(view)


def assert_readable(shown: Any) -> None:
    """No character in it is invisible or reversed; initial values and ids aside, which have to come back unchanged."""
    for text in texts_of(shown):
        unseen = [c for i, c in enumerate(text) if is_suspicious(c) and not is_kept_in_context(text, i)]
        assert unseen == [], text


def texts_of(shown: Any) -> Sequence[str]:
    match shown:
        case str():
            return [shown]
        case dict():
            return [
                text
                for name, value in shown.items()
                if name not in ("initial_value", "block_id")
                for text in texts_of(value)
            ]
        case list() | tuple():
            return [text for value in shown for text in texts_of(value)]
        case _:
            return []


@settings(max_examples=examples(65))
@given(hostile.posts)
def test_every_post_is_sound(post: Post) -> None:
    made = pieces(post)
    assert made
    for piece in made:
        assert_sound(piece)


@HOSTILE
@given(hostile.sign_ins, hostile.texts | st.just("https://accounts.example.com/authorize?state=1"))
def test_every_private_sign_in_is_sound_and_has_its_link_in_the_button_alone(view: SignInView, link: str) -> None:
    piece = sign_in_piece(view, link)
    assert_sound(piece)
    assert_sound_view(code_modal(view, ORIGIN))
    if link.startswith("https://"):
        assert json.dumps([piece.blocks, piece.text]).count(link) == 1


@HOSTILE
@given(hostile.texts, hostile.texts, hostile.texts)
def test_every_sentence_is_sound(name: str, text: str, quoted: str) -> None:
    for piece in (note(text), thread_start(name, text, quoted), help_piece()):
        assert_sound(piece)
    assert_sound_view(note_modal(name, text))
    assert_sound_view(ask_modal(quoted, ORIGIN))


@HOSTILE
@given(hostile.approvals)
def test_at_most_five_buttons_stand_in_a_row(view: ApprovalView) -> None:
    rows = [block["elements"] for block in approval_card(view, "T1").blocks if block["type"] == "actions"]
    assert all(1 <= len(row) <= 5 for row in rows)


@HOSTILE
@given(hostile.approvals, st.integers(-5, 10**9))
def test_every_modal_of_an_approval_is_sound(view: ApprovalView, page: int) -> None:
    assert_sound_view(reject_modal(view, ORIGIN))
    assert_sound_view(always_modal(view, ORIGIN))
    assert_sound_view(hand_over_modal(view, ORIGIN))
    assert_sound_view(arguments_modal(view, page, ORIGIN, decides=True))


@settings(max_examples=examples(20))
@given(st.lists(hostile.approvals, max_size=2).map(lambda views: views * 21))
def test_every_list_to_approve_is_sound_and_remembers_what_it_lists(views: list[ApprovalView]) -> None:
    view = approve_all_modal(Together(tuple(views), 0), ORIGIN)
    assert_sound_view(view)
    subjects = load_origin(view["private_metadata"]).subject.split()
    assert subjects == [each.approval_id for each in views[: len(subjects)]]
    assert sum(block["type"] == "rich_text" for block in view["blocks"]) == len(subjects)


@HOSTILE
@given(hostile.forms, hostile.approvals, hostile_people)
def test_every_form_is_sound(form: Form, view: ApprovalView, person: Person) -> None:
    assert_sound_view(edit_modal(form, view, ORIGIN, person))
    assert_sound_view(answer_modal(form, ORIGIN, person))
    assert_sound_view(answer_modal(form, ORIGIN, person, form.title))


@settings(max_examples=examples(25))
@given(hostile.overviews, hostile_links, hostile_people, hostile_grants, hostile_connections, hostile_services)
def test_every_home_and_every_list_is_sound(
    overview: Overview,
    link: str,
    person: Person,
    grants: tuple[GrantView, ...],
    connections: tuple[ConnectionView, ...],
    services: tuple[ServiceView, ...],
) -> None:
    home = home_view(overview, lambda _shown: link, person, grants, connections, services=services)
    assert_sound_view(home, surface="home")
    for service in services[:1]:
        assert_sound_view(connect_modal(service.service, link))
    assert_sound(overview_piece(overview, lambda _shown: link))
    assert_sound(connections_piece(connections))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
STATES = st.fixed_dictionaries(
    {"type": st.sampled_from(["plain_text_input", "static_select", "checkboxes", "datetimepicker", "datepicker", "x"])},
    optional={
        "value": ANYTHING,
        "selected_option": ANYTHING | st.fixed_dictionaries({"value": ANYTHING | st.just("0")}),
        "selected_options": ANYTHING,
        "selected_date_time": ANYTHING,
        "selected_date": ANYTHING,
    },
)


@given(st.lists(hostile.fields, max_size=3), ANYTHING | STATES, hostile_people)
def test_whatever_comes_back_is_read(fields: list[FormField], state: Any, person: Person) -> None:
    values: dict[str, Any] = {f"input:{field.name}": {"value": state} for field in fields}
    made = entries(values, fields, person)
    assert set(made) <= {field.name for field in fields}
    assert all(entry is None or isinstance(entry, str | bool) for entry in made.values())
    assert entries(state, fields, person) == {}


@given(
    st.dictionaries(st.text(max_size=9), hostile.texts, max_size=3),
    ANYTHING | st.fixed_dictionaries({"blocks": ANYTHING}),
)
def test_mistakes_find_an_input_or_nothing(errors: dict[str, str], view: Any) -> None:
    assert error_blocks(errors, view if isinstance(view, dict) else {}) == {}
