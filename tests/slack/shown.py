"""What the tests of rendering show: plain examples, and views that mean harm (hypothesis)."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from bot.domain import (
    ClarificationView,
    ConnectionView,
    Content,
    ConversationReference,
    GrantView,
    Person,
    Post,
    Shown,
    SignInView,
)
from tests.support import views
from tests.support.hostile_views import HostileViews, times
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
a_change = partial(views.a_change, requester_id="slack:T1:U1")
a_plan = partial(views.a_plan, requester_id="slack:T1:U1")
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
hostile = HostileViews(
    TRICKS,
    short=14,
    huge=[{f"argument_{number}": "<!channel> " * 1_000 for number in range(50)}],
    people=["slack:T1:U1", "slack:T1:U1> <!channel>", "slack:T2:U9", "web:ana", ""],
    approvers=["requester", "any", "slack:T1:U1", "slack:T1:U2", "slack:T2:U9", "slack-group:T1:S1"],
    a_post=a_post,
    references=st.none() | st.just({"team": "T1"}),
)
hostile_grants = st.lists(
    st.builds(
        GrantView,
        st.text("abc123-", min_size=1, max_size=80),
        hostile.texts,
        hostile.texts,
        hostile.arguments,
        times,
    ),
    max_size=12,
).map(tuple)
hostile_connections = st.lists(hostile.accounts, max_size=22).map(tuple)
hostile_services = st.lists(hostile.services, max_size=3).map(lambda views: tuple(views) * 5)
hostile_people = st.builds(
    Person,
    st.just("slack:T1:U1"),
    hostile.texts,
    st.sampled_from(["Europe/Berlin", "UTC", "", "/etc/passwd", "Europe", "No/Where", "\x00", "x" * 300]),
)
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
