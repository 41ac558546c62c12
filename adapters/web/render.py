"""Our words → JSON for the page. Pure.

Every text passes `visible`, so that nothing invisible or reversed reaches a reader unmarked. Nothing is escaped as
HTML: the page builds its nodes from text and never parses HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from bot.exactness import unseen_in_words
from bot.safe_text import argument_lines, one_line, visible
from bot.vocabulary import (
    AlreadySettled,
    ApprovalView,
    ClarificationView,
    ClickResult,
    Content,
    Form,
    GrantView,
    Hidden,
    Invalid,
    MessageView,
    Notice,
    OutcomeView,
    Post,
    Refused,
    Said,
    Settled,
    SignInView,
    ThreadSummary,
    ThreadView,
    Unknown,
    Vote,
)
from graph.fields import FormField

Json = dict[str, Any]

SHOWN_CHARACTERS = 600
"""Characters of one argument that a card shows at first; the rest is behind "Show all"."""
SHOWN_LINES = 12
"""Lines of one argument that a card shows at first."""
TITLE_LIMIT = 120
"""Characters of a title."""
RESULT_LIMIT = 400
"""Characters of a result's one line."""


# ------------------------------------------------------------------------------------------------ threads


def thread_json(view: ThreadView) -> Json:
    """A whole thread, oldest entry first."""
    entries = [message_json(e) if isinstance(e, MessageView) else post_json(e) for e in view.entries]
    return {"thread_id": view.thread_id, "title": line(view.title, TITLE_LIMIT), "entries": entries}


def threads_json(summaries: tuple[ThreadSummary, ...]) -> Json:
    """The list of threads."""
    return {
        "threads": [
            {
                "thread_id": summary.thread_id,
                "title": line(summary.title, TITLE_LIMIT),
                "updated_at": summary.updated_at,
                "waiting": summary.waiting,
            }
            for summary in summaries
        ]
    }


def asked_json(asked: Sequence[Post]) -> Json:
    """Approvals that somebody was asked to decide."""
    return {
        "asked": [
            {
                "id": post.content.approval_id,
                "thread_id": post.thread_id,
                "requester": line(post.content.requester, TITLE_LIMIT),
                **what_json(post.content.server, post.content.tool, post.content.title),
            }
            for post in asked
            if isinstance(post.content, ApprovalView)
        ]
    }


def message_json(view: MessageView) -> Json:
    """A person's message."""
    return {
        "kind": "message",
        "id": view.key,
        "author": line(view.author, TITLE_LIMIT),
        "author_id": view.author_id,
        "text": visible(view.text),
        "at": view.at,
    }


def post_json(post: Post) -> Json:
    """Something the bot said."""
    return {
        "kind": "post",
        "id": post.post_id,
        "thread_id": post.thread_id,
        "revision": post.revision,
        "at": post.at,
        "private": post.only_for is not None,
        "content": content_json(post.content),
    }


# ------------------------------------------------------------------------------------------------ contents


def content_json(content: Content) -> Json:
    """What a post shows; `kind` says which card it is."""
    match content:
        case Said():
            return {"kind": "said", "text": visible(content.text)}
        case Notice():
            return {"kind": "notice", "text": visible(content.text), "tone": content.tone}
        case ApprovalView():
            return _approval(content)
        case ClarificationView():
            return _clarification(content)
        case SignInView():
            return _sign_in(content)
        case OutcomeView():
            return _outcome(content)
        case _:
            assert_never(content)


def _approval(view: ApprovalView) -> Json:
    return {
        "kind": "approval",
        "id": view.approval_id,
        "status": view.status,
        **what_json(view.server, view.tool, view.title),
        "arguments": arguments_json(view.arguments),
        **seen_json(view),
        "asked_arguments": None if view.asked_arguments is None else arguments_json(view.asked_arguments),
        "risk": [visible(word) for word in view.risk],
        "requester": visible(view.requester),
        "may_decide": visible(view.may_decide),
        "rule": visible(view.rule),
        "quorum": view.quorum,
        "votes": [_vote(vote) for vote in view.votes],
        "asked_at": view.asked_at,
        "expires_at": view.expires_at,
        "reason_required": view.reason_required,
        "editable": view.editable,
        "requester_id": view.requester_ids[0] if view.requester_ids else "",
        "quote": visible(view.quote),
        "always_offered": view.always_offered,
        "rejections": view.rejections,
        "escalates_at": view.escalates_at,
        "handed_to": [visible(name) for name in view.handed_to],
        "decided_by": [visible(name) for name in view.decided_by],
        "decided_at": view.decided_at,
        "reason": visible(view.reason),
        "result": line(view.result, RESULT_LIMIT),
        "result_tone": view.result_tone,
    }


def _clarification(view: ClarificationView) -> Json:
    return {
        "kind": "clarification",
        "id": view.clarification_id,
        "status": view.status,
        "question": visible(view.question),
        "context": visible(view.context),
        "fields": [field_json(field) for field in view.fields],
        "requester": visible(view.requester),
        "requester_id": view.requester_id,
        "answer": visible(view.answer),
        "server": visible(view.server),
    }


def _sign_in(view: SignInView) -> Json:
    return {
        "kind": "sign_in",
        "id": view.sign_in_id,
        "status": view.status,
        "server": visible(view.server),
        "host": visible(view.host),
        "owner": visible(view.owner),
        "owner_id": view.owner_id,
        "service": line(view.service, TITLE_LIMIT),
        "code_wanted": view.code_wanted,
    }


def _outcome(view: OutcomeView) -> Json:
    return {
        "kind": "outcome",
        "id": view.outcome_id,
        "status": view.status,
        **what_json(view.server, view.tool, view.title),
        "arguments": arguments_json(view.arguments),
        **seen_json(view),
        "requester": visible(view.requester),
        "requester_id": view.requester_id,
        "settled_by": visible(view.settled_by),
    }


def line(text: str, limit: int) -> str:
    """Text from elsewhere as one line, bounded."""
    return one_line(visible(text), limit)


def what_json(server: str, tool: str, title: str) -> Json:
    """What is to be called: the configured names, and the server's own title apart."""
    return {"server": visible(server), "tool": visible(tool), "title": line(title, TITLE_LIMIT)}


def _vote(vote: Vote) -> Json:
    return {"name": visible(vote.name), "verb": vote.verb, "at": vote.at}


def arguments_json(arguments: Mapping[str, Any]) -> list[Json]:
    """Arguments as lines of a definition list: each whole, and how much of it a card shows at first."""
    lines = []
    for name, value in argument_lines(arguments):
        shown = first_part(value)
        lines.append({"name": name, "value": value, "shown": shown, "hidden": len(value) - len(shown)})
    return lines


def seen_json(view: ApprovalView | OutcomeView | GrantView) -> Json:
    """How many parts of a call are masked, and what of it is not shown letter by letter; `fingerprint` is for wherever
    a part of it is not shown for want of room."""
    return {"masks": view.masks, "unseen": unseen_in_words(view, ""), "fingerprint": visible(view.fingerprint)}


def hidden_json(hidden: Hidden) -> Json:
    """What is hidden in a call, for one person who may decide it."""
    return {"secrets": arguments_json(hidden.secrets), "fingerprint": visible(hidden.fingerprint)}


def first_part(text: str) -> str:
    """As much of a text as a card shows at first: at most 600 characters and 12 lines."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[:SHOWN_LINES])[:SHOWN_CHARACTERS]


# ------------------------------------------------------------------------------------------------ forms and clicks


def form_json(form: Form) -> Json:
    """A form and its values. Values are as they are, since they come back; what is invisible in one is in `notes`."""
    notes = {
        name: f"Holds characters that cannot be seen: {visible(value)}"
        for name, value in form.values.items()
        if isinstance(value, str) and visible(value) != value.replace("\r\n", "\n")
    }
    return {
        "title": line(form.title, TITLE_LIMIT),
        "fields": [field_json(field) for field in form.fields],
        "values": dict(form.values),
        "notes": notes,
    }


def field_json(field: FormField) -> Json:
    """One input."""
    return {
        "name": field.name,
        "label": visible(field.label or field.name),
        "type": field.type.value,
        "required": field.required,
        "options": [{"value": option, "label": visible(option)} for option in field.options],
        "help": visible(field.help),
        "multiline": field.multiline,
        "default": field.default,
    }


def click_json(result: ClickResult) -> Json:
    """What a click gets."""
    match result:
        case Settled():
            return {"kind": "settled", "text": visible(result.text), "final": result.final}
        case AlreadySettled():
            return {"kind": "already_settled", "text": visible(result.text)}
        case Refused():
            return {"kind": "refused", "text": visible(result.text)}
        case Unknown():
            return {"kind": "unknown", "text": visible(result.text)}
        case Invalid():
            errors = {name: visible(error) for name, error in result.errors.items()}
            return {"kind": "invalid", "text": errors.get("", "Please mend the marked fields."), "errors": errors}
        case _:
            assert_never(result)
