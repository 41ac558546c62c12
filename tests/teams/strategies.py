"""Views that mean harm, or that are huge (hypothesis)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from adapters.teams.render.dialogs import (
    Dialog,
    always_dialog,
    answer_dialog,
    approve_all_dialog,
    code_dialog,
    disconnect_dialog,
    edit_dialog,
    hand_over_dialog,
    note_dialog,
    reject_dialog,
    show_all_dialog,
)
from adapters.teams.render.posts import Audience
from bot.domain import (
    ApprovalView,
    ClarificationView,
    ConnectionView,
    Form,
    Notice,
    OutcomeView,
    Overview,
    Said,
    Shown,
    SignInView,
    Together,
    Vote,
)
from graph.interrupts import FieldType, FormField
from tests.teams.shown import a_post

TRICKS = (
    "",
    " ",
    "\n",
    "<at>Ana</at> <b>bold</b> <script>alert(1)</script> <img src='https://evil.example/leak.png'>",
    "[good.example](https://evil.example) ![x](https://evil.example/leak.png)",
    "![x][y]\n\n[y]: https://evil.example/leak.png",
    "*bold* _it_ ~~no~~ `code` ``` | a | b |\n|---|---|\n| 1 | 2 |",
    "# head\n- item\n1. one\n> quote\n---\n===\n    code\n* * *\n+ more",
    "{{DATE(2017-02-14T06:08:00Z,SHORT)}} {{TIME(2017-02-14T06:08:00Z)}} ${name} {{{{",
    "&lt;at&gt; &#x202E; &copy; &amp;lt;",
    "pay\u202e001\u202c \u200bnow\x00\x07\x1b[31m\r\u2028",
    "\ud800 half a pair",
    "e" + "\u0301" * 60,
    "👩‍👩‍👧‍👦🏽" * 40,
    "word " * 2_500,
    "x" * 10_001,
    "\n" * 400 + "the end",
    "&<>" * 3_000,
    '\\"' * 3_000,
    "𝕏" * 6_000,
    "{{DATE(2017-02-14T06:08:00Z)}}" * 300,
    "teams:aaaaaaaa-0000-4000-8000-000000000001:aaaaaaaa-0000-4000-8000-00000000000a or members of entra-group:x",
    "# head\n\n```py\n" + "line\n" * 900 + "```\n\n| a | b |\n|-|-|\n" + "| 1 | [x](https://a.example) |\n" * 150,
    "- a\n  - b\n    1. c\n" * 60 + "> quote\n" * 60 + "---\n\n" * 60,
    "![a](https://evil.example)!" * 50 + "](https://evil.example)",
)
_LONG = 14
"""Tricks from here on are long."""
hostile_texts = (
    st.sampled_from(TRICKS) | st.text(max_size=60) | st.builds("".join, st.lists(st.sampled_from(TRICKS[:_LONG])))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_arguments = st.dictionaries(hostile_texts.map(lambda text: text[:200]), json_values, max_size=14) | st.sampled_from(
    [{f"argument_{number}": text for number in range(50)} for text in ("<at>𝕏</at> " * 900, '"\\' * 900, "*" * 900)]
)
_times = st.floats() | st.floats(1.7e9, 1.9e9)
_names = st.lists(hostile_texts, max_size=3).map(tuple)
hostile_fields = st.builds(
    FormField,
    name=st.text(min_size=1, max_size=100),
    label=hostile_texts,
    type=st.sampled_from(FieldType),
    required=st.booleans(),
    options=st.lists(hostile_texts, max_size=4).map(tuple)
    | st.just(tuple(f"option {'x' * 80} {number}" for number in range(120))),
    help=hostile_texts,
    multiline=st.booleans(),
    default=json_values,
)


def _one_of(kind: type, name: str) -> st.SearchStrategy[Any]:
    """One of the words of a `Literal` field."""
    return st.sampled_from(get_args(get_type_hints(kind)[name]))


hostile_approvals = st.builds(
    ApprovalView,
    approval_id=st.text("abc123.:", min_size=1, max_size=120),
    status=_one_of(ApprovalView, "status"),
    server=hostile_texts,
    tool=hostile_texts,
    title=hostile_texts,
    arguments=_arguments,
    asked_arguments=st.none() | _arguments,
    risk=_names | st.sampled_from([("destroys", "writes"), ("writes",), ("reads",)]),
    requester=hostile_texts,
    may_decide=hostile_texts,
    approvers=_names,
    rule=hostile_texts,
    quorum=st.integers(1, 5),
    votes=st.lists(st.builds(Vote, hostile_texts, _one_of(Vote, "verb"), _times), max_size=3).map(tuple),
    asked_at=_times,
    expires_at=st.none() | _times,
    reason_required=st.booleans(),
    editable=st.booleans(),
    decided_by=_names,
    decided_at=st.none() | _times,
    reason=hostile_texts,
    result=hostile_texts,
    result_tone=_one_of(ApprovalView, "result_tone"),
    together=st.integers(1, 10**6),
    quote=hostile_texts,
    always_offered=st.booleans(),
    rejections=st.integers(1, 3),
    escalates_at=st.none() | _times,
    handed_to=_names,
)
hostile_questions = st.builds(
    ClarificationView,
    clarification_id=st.just("q1"),
    status=_one_of(ClarificationView, "status"),
    question=hostile_texts,
    context=hostile_texts,
    fields=st.lists(hostile_fields, max_size=12).map(tuple),
    requester=hostile_texts,
    requester_id=st.just(""),
    answer=hostile_texts,
    server=st.just("") | hostile_texts,
)
hostile_sign_ins = st.builds(
    SignInView,
    sign_in_id=st.just("s1"),
    status=_one_of(SignInView, "status"),
    server=hostile_texts,
    host=hostile_texts,
    message=hostile_texts,
    owner=hostile_texts,
    owner_id=st.just(""),
    service=st.just("") | hostile_texts,
    code_wanted=st.booleans(),
)
hostile_accounts = st.lists(
    st.builds(
        ConnectionView,
        connection_id=st.text("abc123", min_size=1, max_size=60),
        service=hostile_texts,
        account=hostile_texts,
        scopes=_names,
        since=_times,
        used_at=st.none() | _times,
        working=st.booleans(),
    ),
    max_size=4,
).map(lambda views: tuple(views) * 3)
hostile_outcomes = st.builds(
    OutcomeView,
    outcome_id=st.just("o1"),
    status=_one_of(OutcomeView, "status"),
    server=hostile_texts,
    tool=hostile_texts,
    title=hostile_texts,
    arguments=_arguments,
    requester=hostile_texts,
    requester_id=st.just(""),
    settled_by=hostile_texts,
    known=hostile_texts,
)
hostile_cards = hostile_approvals | hostile_questions | hostile_sign_ins | hostile_outcomes
hostile_said = st.builds(Said, hostile_texts, st.booleans())
hostile_contents = st.one_of(
    hostile_said, st.builds(Notice, hostile_texts, _one_of(Notice, "tone")), hostile_approvals, hostile_cards
)
hostile_posts = st.builds(a_post, hostile_contents, st.text("abc:", min_size=1, max_size=200))
audiences = st.builds(
    Audience,
    _one_of(Audience, "kind"),
    st.integers(0, 80).map(lambda count: tuple(f"29:{'x' * 90}{number}" for number in range(count))),
    st.booleans(),
)
hostile_forms = st.builds(
    lambda title, fields, values: Form(title, fields, dict(zip((f.name for f in fields), values, strict=False))),
    hostile_texts,
    st.lists(hostile_fields, max_size=12).map(tuple),
    st.lists(json_values, max_size=12),
)
_references: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.none(),
    st.builds(dict[str, Any]),
    st.text("0123456789abc-:|/?#%<>", max_size=900).map(
        lambda part: {"parts": [part], "conversation": "19:x@thread.v2"}
    ),
)
_shown = st.lists(st.builds(Shown, hostile_posts, _references), max_size=5).map(lambda shown: tuple(shown) * 3)
hostile_overviews = st.builds(Overview, _shown, _shown, _shown)
_errors = st.dictionaries(hostile_texts | st.just(""), hostile_texts, max_size=12)


def _form_dialogs(form: Form, errors: dict[str, str], typed: Sequence[Any]) -> Dialog:
    values = dict(zip((field.name for field in form.fields), typed, strict=False))
    if len(typed) % 2:
        return edit_dialog("call-1.1", form, errors, values)
    return answer_dialog("q1", form, errors, values, server=form.title if len(form.fields) % 2 else "")


hostile_dialogs = st.one_of(
    st.builds(_form_dialogs, hostile_forms, _errors, st.lists(json_values, max_size=12)),
    st.builds(
        lambda view, page, decides: show_all_dialog(view, page, decides=decides),
        hostile_approvals,
        st.integers(-5, 10**9) | st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(reject_dialog, hostile_approvals, _errors, hostile_texts),
    st.builds(always_dialog, hostile_approvals),
    st.builds(hand_over_dialog, hostile_approvals, hostile_texts, hostile_texts),
    st.builds(
        lambda views, more: approve_all_dialog(Together(tuple(views * 20), more)),
        st.lists(hostile_approvals, max_size=2),
        st.integers(0, 200),
    ),
    st.builds(note_dialog, hostile_texts),
    st.builds(code_dialog, hostile_sign_ins, hostile_texts),
    st.builds(disconnect_dialog, hostile_accounts.filter(bool).map(lambda views: views[0])),
)
