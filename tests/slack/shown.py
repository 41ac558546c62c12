"""What the tests of rendering show: plain examples, and views that mean harm (hypothesis)."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from bot.domain import (
    ApprovalView,
    ClarificationView,
    ConnectionView,
    Content,
    ConversationReference,
    Form,
    GrantView,
    Notice,
    OutcomeView,
    Overview,
    Person,
    Post,
    Said,
    Shown,
    SignInView,
    Vote,
)
from graph.interrupts import FieldType, FormField
from tests.support import views
from tests.support.views import NOW, an_approval

ANA = Person("slack:T1:U1", "Ana", "Europe/Berlin")
THREAD = ConversationReference(
    "slack",
    "slack:T1:C1:1700000000.000100",
    {"team": "T1", "channel": "C1", "thread_ts": "1700000000.000100"},
    channel="slack:T1:C1",
)
ALLOWED_USERS = frozenset({"U1", "U2"})
"""Ids of people that the hostile views name as approvers or owners, and so may be mentioned."""


def a_post(content: Content, post_id: str = "said:m1") -> Post:
    """A post in the thread."""
    return Post(post_id, "slack:T1:C1:1700000000.000100", THREAD, 1, NOW, content)


a_question = partial(views.a_question, requester_id="slack:T1:U1")
a_sign_in = partial(views.a_sign_in, owner_id="slack:T1:U1")
an_outcome = partial(views.an_outcome, requester_id="slack:T1:U1")


def a_tools_question(**changes: Any) -> ClarificationView:
    """A question that a tool server put in the middle of a call."""
    values: dict[str, Any] = {"question": "Which seat?", "context": "", "server": "cinema"}
    return a_question(**(values | changes))


def an_account_wanted(**changes: Any) -> SignInView:
    """A sign-in that connects an account, by a link of the product's own."""
    values: dict[str, Any] = {"server": "calendar", "host": "bot.example.com", "message": "", "service": "Google"}
    return a_sign_in(**(values | changes))


def a_connection(connection_id: str = "c1", **changes: Any) -> ConnectionView:
    """An account at Google that works."""
    values: dict[str, Any] = {
        "service": "Google",
        "account": "ana@example.com",
        "scopes": ("calendar.events", "openid"),
        "since": NOW,
        "used_at": NOW + 3_600,
    }
    return views.an_account(connection_id, **(values | changes))


def in_c1(post_id: str, content: Content, ts: str = "1700000000.000200") -> Shown:
    """A card in a thread of C1."""
    return Shown(a_post(content, post_id), {"team": "T1", "channel": "C1", "parts": [ts]})


# ------------------------------------------------------------------------------------------------ views that mean harm

TRICKS = (
    "",
    " ",
    "\n",
    "<!channel>",
    "<!here> <@U9> <!subteam^S9> <#C9>",
    "<https://evil.example|https://good.example>",
    "[good.example](https://evil.example) ![x](https://evil.example/leak.png)",
    "@channel @here :rotating_light: *bold* _it_ ~no~ `code` ```",
    "&lt;!channel&gt; &#x202E;",
    "pay\u202e001\u202c \u200bnow\x00\x07\x1b[31m",
    "\ud800 half a pair",
    "e" + "\u0301" * 60,
    "👩‍👩‍👧‍👦🏽" * 40,
    "word " * 2_500,
    "x" * 10_001,
    "\n" * 400 + "the end",
    "&<>" * 3_000,
    "slack:T1:U1 or members of slack-group:T1:S1",
    "# head\n\n```py\n" + "line\n" * 900 + "```\n\n| a | b |\n|-|-|\n" + "| 1 | [x](https://a.example) |\n" * 150,
    "- a\n  - b\n    1. c\n" * 60 + "> quote\n" * 60 + "---\n\n" * 60,
)
hostile_texts = (
    st.sampled_from(TRICKS) | st.text(max_size=60) | st.builds("".join, st.lists(st.sampled_from(TRICKS[:14])))
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(hostile_texts.map(lambda text: text[:200]), _json, max_size=14) | st.just(
    {f"argument_{number}": "<!channel> " * 1_000 for number in range(50)}
)
times = st.floats() | st.floats(1.7e9, 1.9e9)
_approvers = st.lists(
    st.sampled_from(["requester", "any", "slack:T1:U1", "slack:T1:U2", "slack:T2:U9", "slack-group:T1:S1"])
    | hostile_texts,
    max_size=30,
).map(tuple)
_names = st.lists(hostile_texts, max_size=3).map(tuple)
_people = st.sampled_from(["slack:T1:U1", "slack:T1:U1> <!channel>", "slack:T2:U9", "web:ana", ""])
hostile_fields = st.builds(
    FormField,
    name=st.text(min_size=1, max_size=100),
    label=hostile_texts,
    type=st.sampled_from(FieldType),
    required=st.booleans(),
    options=st.lists(hostile_texts, max_size=4).map(tuple)
    | st.just(tuple(f"option {'x' * 80} {n}" for n in range(120))),
    help=hostile_texts,
    multiline=st.booleans(),
    default=_json,
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
    arguments=arguments,
    asked_arguments=st.none() | arguments,
    risk=_names,
    requester=hostile_texts,
    may_decide=hostile_texts,
    approvers=_approvers,
    rule=hostile_texts,
    quorum=st.integers(1, 5),
    votes=st.lists(st.builds(Vote, hostile_texts, _one_of(Vote, "verb"), times), max_size=3).map(tuple),
    asked_at=times,
    expires_at=st.none() | times,
    reason_required=st.booleans(),
    editable=st.booleans(),
    decided_by=_names,
    decided_at=st.none() | times,
    reason=hostile_texts,
    result=hostile_texts,
    result_tone=_one_of(ApprovalView, "result_tone"),
    together=st.integers(1, 10**6),
    quote=hostile_texts,
    always_offered=st.booleans(),
    rejections=st.integers(1, 3),
    escalates_at=st.none() | times,
    handed_to=_names,
)
hostile_grants = st.lists(
    st.builds(GrantView, st.text("abc123-", min_size=1, max_size=80), hostile_texts, hostile_texts, arguments, times),
    max_size=12,
).map(tuple)
hostile_questions = st.builds(
    ClarificationView,
    clarification_id=st.just("q1"),
    status=_one_of(ClarificationView, "status"),
    question=hostile_texts,
    context=hostile_texts,
    fields=st.lists(hostile_fields, max_size=12).map(tuple),
    requester=hostile_texts,
    requester_id=_people,
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
    owner_id=_people,
    service=st.just("") | hostile_texts,
    code_wanted=st.booleans(),
)
hostile_connections = st.lists(
    st.builds(
        ConnectionView,
        connection_id=st.text("abc123-", min_size=1, max_size=80),
        service=hostile_texts,
        account=hostile_texts,
        scopes=_names,
        since=times,
        used_at=st.none() | times,
        working=st.booleans(),
    ),
    max_size=22,
).map(tuple)
hostile_outcomes = st.builds(
    OutcomeView,
    outcome_id=st.just("o1"),
    status=_one_of(OutcomeView, "status"),
    server=hostile_texts,
    tool=hostile_texts,
    title=hostile_texts,
    arguments=arguments,
    requester=hostile_texts,
    requester_id=_people,
    settled_by=hostile_texts,
    known=hostile_texts,
)
hostile_contents = (
    st.builds(Said, hostile_texts)
    | st.builds(Notice, hostile_texts, _one_of(Notice, "tone"))
    | hostile_approvals
    | hostile_questions
    | hostile_sign_ins
    | hostile_outcomes
)
hostile_posts = st.builds(a_post, hostile_contents, st.text("abc:", min_size=1, max_size=200))
hostile_people = st.builds(
    Person,
    st.just("slack:T1:U1"),
    hostile_texts,
    st.sampled_from(["Europe/Berlin", "UTC", "", "/etc/passwd", "Europe", "No/Where", "\x00", "x" * 300]),
)
hostile_forms = st.builds(
    lambda title, fields, values: Form(title, fields, dict(zip((f.name for f in fields), values, strict=False))),
    hostile_texts,
    st.lists(hostile_fields, max_size=12).map(tuple),
    st.lists(_json, max_size=12),
)
_shown = st.lists(st.builds(Shown, hostile_posts, st.none() | st.just({"team": "T1"})), max_size=6).map(
    lambda shown: tuple(shown) * 3
)
hostile_overviews = st.builds(Overview, _shown, _shown, _shown)
hostile_links = st.sampled_from(
    [
        "",
        "https://acme.slack.com/archives/C1/p1",
        "javascript:alert(1)",
        "https://a.example/" + "x" * 4_000,
        "<!channel>",
    ]
)

__all__ = ["NOW", "an_approval"]
