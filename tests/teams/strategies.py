"""Views that mean harm, or that are huge (hypothesis)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from adapters.teams.render.dialogs import (
    Dialog,
    always_dialog,
    answer_dialog,
    approve_all_dialog,
    code_dialog,
    connect_dialog,
    disconnect_dialog,
    edit_dialog,
    hand_over_dialog,
    note_dialog,
    reject_dialog,
    show_all_dialog,
)
from adapters.teams.render.posts import Audience
from bot.domain import (
    Form,
    Together,
)
from tests.support.hostile_views import HostileViews, one_of
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
_references: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.none(),
    st.builds(dict[str, Any]),
    st.text("0123456789abc-:|/?#%<>", max_size=900).map(
        lambda part: {"parts": [part], "conversation": "19:x@thread.v2"}
    ),
)
hostile = HostileViews(
    TRICKS,
    short=14,
    huge=[{f"argument_{n}": text for n in range(50)} for text in ("<at>𝕏</at> " * 900, '"\\' * 900, "*" * 900)],
    people=[""],
    approvers=["requester", "any"],
    a_post=a_post,
    references=_references,
)
hostile_services = st.lists(hostile.services, max_size=3).map(lambda views: tuple(views) * 5)
hostile_accounts = st.lists(hostile.accounts, max_size=4).map(lambda views: tuple(views) * 3)
audiences = st.builds(
    Audience,
    one_of(Audience, "kind"),
    st.integers(0, 80).map(lambda count: tuple(f"29:{'x' * 90}{number}" for number in range(count))),
    st.booleans(),
)
_errors = st.dictionaries(hostile.texts | st.just(""), hostile.texts, max_size=12)


def _form_dialogs(form: Form, errors: dict[str, str], typed: Sequence[Any]) -> Dialog:
    values = dict(zip((field.name for field in form.fields), typed, strict=False))
    if len(typed) % 2:
        return edit_dialog("call-1.1", form, errors, values)
    return answer_dialog("q1", form, errors, values, server=form.title if len(form.fields) % 2 else "")


hostile_dialogs = st.one_of(
    st.builds(_form_dialogs, hostile.forms, _errors, st.lists(hostile.values, max_size=12)),
    st.builds(
        lambda view, page, decides: show_all_dialog(view, page, decides=decides),
        hostile.approvals,
        st.integers(-5, 10**9) | st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(reject_dialog, hostile.approvals, _errors, hostile.texts),
    st.builds(always_dialog, hostile.approvals),
    st.builds(hand_over_dialog, hostile.approvals, hostile.texts, hostile.texts),
    st.builds(
        lambda views, more: approve_all_dialog(Together(tuple(views * 20), more)),
        st.lists(hostile.approvals, max_size=2),
        st.integers(0, 200),
    ),
    st.builds(note_dialog, hostile.texts),
    st.builds(code_dialog, hostile.sign_ins, hostile.texts),
    st.builds(connect_dialog, hostile.texts, hostile.texts | st.just("https://bot.example.com/oauth/start?s=1")),
    st.builds(disconnect_dialog, hostile_accounts.filter(bool).map(lambda views: views[0])),
)
