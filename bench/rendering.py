"""What it costs to render hostile posts: no text or argument of up to 1 MB may hold the process for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from adapters.shared.live.entries import argument_page_json, form_json, post_json
from adapters.slack.actions import Origin
from adapters.slack.outbound.streams import MOST_STREAMED
from adapters.slack.render import forms as slack_forms
from adapters.slack.render import posts as slack_posts
from adapters.slack.render.home import home_view
from adapters.slack.render.markdown import cut_at_line
from adapters.slack.render.markdown import streamable as slack_streamable
from adapters.teams.render import dialogs as teams_dialogs
from adapters.teams.render import posts as teams_posts
from adapters.teams.render.markdown import streamable as teams_streamable
from bench.figures import Figure, Limit
from bot.domain import (
    ApprovalView,
    ClarificationView,
    Content,
    ConversationReference,
    Form,
    Notice,
    OutcomeView,
    Overview,
    Person,
    Post,
    Said,
    Shown,
    SignInView,
    Together,
)
from bot.views import result_line
from graph.interrupts import FieldType, FormField

MOST_MS = 20.0
"""CPU of one rendering, in milliseconds."""
SIZE = 1_000_000
"""Characters of a sample."""
LISTED = 20
"""Entries of a list."""

_SLACK = ConversationReference(
    "slack", "slack:T1:C1", {"team": "T1", "channel": "C1", "thread_ts": "1.1"}, has_threads=True
)
_TEAMS = ConversationReference(
    "teams", "teams:t:19:c", {"tenant": "t", "conversation": "19:c", "kind": "personal"}, direct=True
)
_WEB = ConversationReference("web", "web:1", {"thread": "web:1"}, direct=True, has_threads=True)
_PERSON = Person("web:ana", "Ana")


def texts(size: int = SIZE) -> Iterator[tuple[str, str]]:
    """Name and text of each sample, of `size` characters."""
    repeated = {
        "words": "The quick brown fox jumps over the lazy dog. ",
        "markdown": "## A **title**\n\nSome *text*, `code` and [a link](https://example.com/a).\n\n- one\n- two\n\n",
        "headings": "# a\n",
        "quotes and items": "> - 1. a\n",
        "brackets": "[",
        "images": "![",
        "exclamation marks": "!",
        "number signs": "#",
        "signs": "$%^+=:@>{}#!",
        "links": "[a](b)",
        "addresses": "https://a.b/c ",
        "closing brackets": "https://a.b/)))))))))))))))))))))))) ",
        "one address": "x)",
        "stars": "*a_ ",
        "stars and bars": "*_",
        "open stars": "**a *b _c ",
        "tildes": "~~a~ ",
        "backticks": "`a``b```c ",
        "entities": "&amp;&#64;&#x40;",
        "angles": "<a <b <!-- ",
        "tables": "| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n\n",
        "one line a time": "a\n\n",
        "blank lines": "\n",
        "marks": "a\u0301\u0302",
        "accents": "\u0301",
        "reversed": "\u202e",
        "reversed letters": "a\u202e",
        "joiners": "\u200d\U0001f468",
        "flags": "\U0001f3f4\U000e0067\U000e0062",
        "escapes": "\\*\\_\\[",
        "astral": "\U0001f600",
        "chinese": "漢字",
        "code fences": "```\na\n```\n",
        "definitions": "[a]: b\n",
        "items": "- a\n",
        "numbers": "1. a\n",
        "braces": "{{DATE(2026-",
        "controls": "\x01",
        "halves": "\ud800",
        "spaces": " ",
        "carriage returns": "\r\n",
    }
    for name, unit in repeated.items():
        yield name, (unit * (size // len(unit) + 1))[:size]
    yield "one long word", "a" * size
    yield "one long address", "https://a.b/" + "x)" * (size // 2)
    yield "deep quotes", ">" * size
    yield "deep items", "".join("  " * n + "- a\n" for n in range(int((size) ** 0.5)))[:size]
    yield "a wide table", "|a" * (size // 4) + "\n" + "|-" * (size // 4)
    yield "a long table", "|a|b|\n|-|-|\n" + "|a|b|\n" * (size // 6)
    yield "growing backticks", "".join("`" * n + "a" for n in range(int((2 * size) ** 0.5)))[:size]


def arguments(size: int = SIZE) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and arguments of each sample, of about `size` characters as JSON."""
    for name, text in texts(size):
        yield f"{name} in an argument", {"text": text}
    keys = size // 10
    yield "many arguments", {f"k{n}": n for n in range(keys)}
    yield "a wide object", {"a": {f"k{n}": n for n in range(keys)}}
    yield "a long list", {"a": list(range(keys))}
    yield "a list of lists", {"a": [[] for _ in range(keys)]}
    yield "a long name", {"n" * size: 1}
    yield "camels", {"aB" * (size // 2): 1}
    yield "reversed names", {"\u202e" * 100 + str(n): "\u202e" * 100 for n in range(size // 200)}
    deep: Any = "x" * (size // 2)
    for _ in range(300):
        deep = [deep]
    yield "300 deep", {"a": deep}
    yield "a large number", {"a": 10**4000}


def result_samples(size: int = SIZE) -> Iterator[tuple[str, str]]:
    """Results of tools."""
    yield from texts(size)
    yield "an object", "{" + ", ".join(f'"k{n}": {n}' for n in range(size // 12)) + "}"
    yield "a list", "[" + "1, " * (size // 3) + "1]"
    yield "deep lists", "[" * size
    yield "a deep object", '{"a":' * 500 + "1" + "}" * 500


def approval(given: Mapping[str, Any], **changes: Any) -> ApprovalView:
    """An approval that waits."""
    made: dict[str, Any] = {
        "approval_id": "a1", "status": "pending", "server": "tasks", "tool": "create", "title": "", "arguments": given,
        "asked_arguments": None, "risk": ("writes",), "requester": "Ana", "may_decide": "Ana", "approvers": (),
        "rule": "rule", "quorum": 1, "votes": (), "asked_at": 0.0, "expires_at": None, "reason_required": False,
        "editable": True,
    }  # fmt: skip
    return ApprovalView(**(made | changes))


def contents_of_text(text: str) -> Iterator[tuple[str, Content]]:
    """Each kind of post that holds a text from outside."""
    yield "said", Said(text)
    yield "notice", Notice(text)
    yield "approval's words", approval({}, title=text, requester=text, may_decide=text, rule=text, quote=text)
    yield (
        "approval's end",
        approval({}, status="rejected", decided_by=(text,), decided_at=1.0, reason=text, result=text),
    )
    field = FormField(name="f", label=text, type=FieldType.CHOICE, required=True, options=(text, "b"), help=text)
    yield "question", ClarificationView("c", "open", text, text, (field,), "Ana", "web:ana", "", text)
    yield "answer", ClarificationView("c", "answered", text, text, (), "Ana", "web:ana", text)
    yield "sign-in", SignInView("s", "open", text, text, text, "Ana", "web:ana", text)


def contents_of_arguments(given: Mapping[str, Any]) -> Iterator[tuple[str, Content]]:
    """Each kind of post that holds arguments."""
    yield "approval", approval(given)
    yield "edited approval", approval(given, status="approved", asked_arguments=dict(reversed(given.items())))
    yield "outcome", OutcomeView("o", "open", "tasks", "create", "", given, "Ana", "web:ana")


def renderings(kind: str, content: Content) -> Iterator[tuple[str, Callable[[], object]]]:
    """The post on each platform."""
    del kind
    yield "slack", partial(slack_posts.pieces, Post("p", "t", _SLACK, 1, 0.0, content))
    post = Post("p", "t", _TEAMS, 1, 0.0, content)
    yield "teams", partial(teams_posts.activities, post, teams_posts.Audience("personal"))
    yield "page", partial(post_json, Post("p", "web:1", _WEB, 1, 0.0, content))


def windows(given: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """What opens when somebody asks to see more."""
    view, origin = approval(given), Origin()
    yield "slack: show all, first page", partial(slack_forms.arguments_modal, view, 0, origin)
    yield "slack: show all, last page", partial(slack_forms.arguments_modal, view, 10**6, origin)
    yield "slack: always allow", partial(slack_forms.always_modal, view, origin)
    yield "teams: show all, first page", partial(teams_dialogs.show_all_dialog, view, 0, decides=True)
    yield "teams: show all, last page", partial(teams_dialogs.show_all_dialog, view, 10**6, decides=True)
    yield "page: show all, first page", partial(argument_page_json, given, 0)
    yield "page: show all, last page", partial(argument_page_json, given, 10**6)


def lists(given: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Several of them in one list: each has its part of the size."""
    views = [approval(given, approval_id=f"a{n}", title=str(n)) for n in range(LISTED)]
    in_slack, in_teams = (
        tuple(Shown(Post(f"p{n}", "t", place, 1, 0.0, view), None) for n, view in enumerate(views))
        for place in (_SLACK, _TEAMS)
    )
    yield "slack: approve all", partial(slack_forms.approve_all_modal, Together(tuple(views), 0), Origin())
    yield "slack: home", partial(home_view, Overview(in_slack, (), in_slack), lambda _: "", _PERSON)
    yield "teams: approve all", partial(teams_dialogs.approve_all_dialog, Together(tuple(views), 0))
    yield "teams: overview", partial(teams_posts.overview_activity, Overview(in_teams, (), in_teams))


def forms(text: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Forms with such a text in them."""
    field = FormField(name="f", label=text, type=FieldType.TEXT, required=True, options=(text,), help=text)
    form = Form(text, (field,), {"f": text})
    yield "slack: form", partial(slack_forms.edit_modal, form, approval({"f": text}), Origin(), _PERSON)
    yield "teams: form", partial(teams_dialogs.edit_dialog, "a", form)
    yield "page: form", partial(form_json, form)


def cases(size: int = SIZE) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Sample, kind and rendering of everything that is measured."""
    for sample, text in texts(size):
        for kind, content in contents_of_text(text):
            for platform, render in renderings(kind, content):
                yield sample, f"{platform}: {kind}", render
        for kind, render in forms(text):
            yield sample, kind, render
        yield sample, "slack: draft", partial(slack_streamable, cut_at_line(text, MOST_STREAMED))
        yield sample, "teams: draft", partial(teams_streamable, text)
    for sample, given in arguments(size):
        for kind, content in contents_of_arguments(given):
            for platform, render in renderings(kind, content):
                yield sample, f"{platform}: {kind}", render
        for kind, render in windows(given):
            yield sample, kind, render
    for sample, given in arguments(size // LISTED):
        for kind, render in lists(given):
            yield sample, kind, render
    for sample, text in result_samples(size):
        yield sample, "result line", partial(result_line, text)


def cpu_ms(render: Callable[[], object], tries: int = 3) -> float:
    """Milliseconds of CPU of the fastest of several tries: what the machine does besides is not ours."""
    best = float("inf")
    for _ in range(tries):
        began = time.process_time()
        render()
        best = min(best, (time.process_time() - began) * 1000)
        if best > 1000:
            break
    return best


def hostile_posts(size: int = SIZE) -> list[Figure]:
    """The slowest sample of each kind."""
    worst: dict[str, tuple[float, str]] = {}
    for sample, kind, render in cases(size):
        worst[kind] = max(worst.get(kind, (0.0, "")), (cpu_ms(render, 3 if size == SIZE else 1), sample))
    return [
        Figure(f"render {kind}, worst of all ({sample})", ms, "ms", None, Limit(MOST_MS))
        for kind, (ms, sample) in worst.items()
    ]
