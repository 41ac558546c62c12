"""Our words → JSON for the page. Pure.

Every text passes `visible`, so that nothing invisible or reversed reaches a reader unmarked. Nothing is escaped as
HTML: the page builds its nodes from text and never parses HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, assert_never

from adapters.shared.arguments import page_of
from adapters.web.config import PageFacts
from bot.characters import before_suspicious
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    AskedToDecide,
    ClarificationView,
    ClickResult,
    ConnectionView,
    Content,
    Form,
    GrantView,
    Hidden,
    Invalid,
    MessageView,
    Notice,
    OutcomeView,
    Person,
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
from bot.masking import unseen_in_words
from bot.safe_text import (
    cut_by_size,
    holds_unseen,
    visible,
    visible_line,
    visible_passage,
    widest_in,
    written_arguments,
    written_value,
)
from graph.interrupts import FormField

Json = dict[str, Any]
ANSWER_LIMIT = 100_000
"""Characters of an answer; more is cut with a count."""
PASSAGE_LIMIT = 10_000
"""Characters of any other text from elsewhere; more is cut with a count."""
VALUES_LIMIT = 20_000
"""Characters of all arguments of a call together that are sent with its card; of longer ones only the beginning is, and
the rest is fetched when somebody wants to see it."""
PAGE_CHARACTERS = 12_000
"""Characters of a page of such arguments."""
SHOWN_CHARACTERS = 600
"""Characters of one argument that a card shows at first; the rest is behind "Show all"."""
SHOWN_LINES = 12
"""Lines of one argument that a card shows at first."""
LONGEST_VALUE = 50_000
"""Characters of a value in a form: a few of them come back in one request."""
LABEL_LIMIT = 1_000
"""Characters of the words around an input."""
_MOST_SUSPICIOUS = 1_000
"""Characters that may be invisible, of an argument that is sent whole."""
TITLE_LIMIT = 120
"""Characters of a title."""
RESULT_LIMIT = 400
"""Characters of a result's one line."""


# ------------------------------------------------------------------------------------------------ threads
def thread_json(view: ThreadView, entries: Sequence[Json]) -> Json:
    """A whole thread. `entries`: `entry_json` of each, oldest first."""
    return {"thread_id": view.thread_id, "title": line(view.title, TITLE_LIMIT), "entries": entries}


def entry_json(entry: MessageView | Post) -> Json:
    """What somebody wrote, or a post."""
    return message_json(entry) if isinstance(entry, MessageView) else post_json(entry)


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


def asked_json(asked: Sequence[AskedToDecide]) -> Json:
    """Approvals that somebody was asked to decide."""
    return {
        "asked": [
            {
                "id": each.approval_id,
                "thread_id": each.thread_id,
                "requester": line(each.requester, TITLE_LIMIT),
                **what_json(each.server, each.tool, each.title),
            }
            for each in asked
        ]
    }


def message_json(view: MessageView) -> Json:
    """A person's message."""
    return {
        "kind": "message",
        "id": view.key,
        "author": line(view.author, TITLE_LIMIT),
        "author_id": view.author_id,
        "text": passage(view.text, ANSWER_LIMIT),
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
            return {"kind": "said", "text": passage(content.text, ANSWER_LIMIT)}
        case Notice():
            return {"kind": "notice", "text": passage(content.text), "tone": content.tone}
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
    digests = _Digests()
    return {
        "kind": "approval",
        "id": view.approval_id,
        "status": view.status,
        **what_json(view.server, view.tool, view.title),
        "arguments": _arguments(view.arguments, digests),
        **seen_json(view),
        "asked_arguments": None if view.asked_arguments is None else _arguments(view.asked_arguments, digests),
        "risk": [line(word, TITLE_LIMIT) for word in view.risk],
        "requester": passage(view.requester),
        "may_decide": passage(view.may_decide),
        "rule": passage(view.rule),
        "quorum": view.quorum,
        "votes": [_vote(vote) for vote in view.votes],
        "asked_at": view.asked_at,
        "expires_at": view.expires_at,
        "reason_required": view.reason_required,
        "editable": view.editable,
        "requester_id": view.requester_ids[0] if view.requester_ids else "",
        "quote": passage(view.quote),
        "always_offered": view.always_offered,
        "rejections": view.rejections,
        "escalates_at": view.escalates_at,
        "handing_offered": view.handing_offered,
        "handed_to": [line(name, TITLE_LIMIT) for name in view.handed_to],
        "decided_by": [line(name, TITLE_LIMIT) for name in view.decided_by],
        "decided_at": view.decided_at,
        "reason": passage(view.reason),
        "result": line(view.result, RESULT_LIMIT),
        "result_tone": view.result_tone,
    }


def _clarification(view: ClarificationView) -> Json:
    return {
        "kind": "clarification",
        "id": view.clarification_id,
        "status": view.status,
        "question": passage(view.question),
        "context": passage(view.context),
        "fields": [field_json(field) for field in view.fields],
        "requester": passage(view.requester),
        "requester_id": view.requester_id,
        "answer": passage(view.answer),
        "server": passage(view.server),
    }


def _sign_in(view: SignInView) -> Json:
    return {
        "kind": "sign_in",
        "id": view.sign_in_id,
        "status": view.status,
        "server": passage(view.server),
        "host": passage(view.host),
        "owner": passage(view.owner),
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
        "requester": passage(view.requester),
        "requester_id": view.requester_id,
        "settled_by": passage(view.settled_by),
        "known": passage(view.known),
    }


def line(text: str, limit: int) -> str:
    """Text from elsewhere as one line, bounded."""
    return visible_line(text, limit)


def passage(text: str, limit: int = PASSAGE_LIMIT) -> str:
    """Text from elsewhere with its lines, bounded."""
    return visible_passage(text, limit)


def what_json(server: str, tool: str, title: str) -> Json:
    """What is to be called: the configured names, and the server's own title apart."""
    return {"server": line(server, TITLE_LIMIT), "tool": line(tool, TITLE_LIMIT), "title": line(title, TITLE_LIMIT)}


def _vote(vote: Vote) -> Json:
    return {"name": line(vote.name, TITLE_LIMIT), "verb": vote.verb, "at": vote.at}


def arguments_json(arguments: Mapping[str, Any]) -> list[Json]:
    """Arguments as lines of a definition list: each whole, and how much of it a card shows at first.

    What does not fit into the card's share, and is more than is shown at first, has no `value`, but a `digest` to
    compare it by.
    """
    return _arguments(arguments, _Digests())


class _Digests:
    """Digests of long values. Of one that stood under the same label before it is not made again."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, str]] = {}

    def of(self, label: str, written: str) -> str:
        known = self._made.get(label)
        if known is None or known[0] != written:
            digest = blake2b(written.encode(errors="surrogatepass"), digest_size=16).hexdigest()
            known = self._made[label] = (written, digest)
        return known[1]


def _arguments(arguments: Mapping[str, Any], digests: _Digests) -> list[Json]:
    lines = []
    room = VALUES_LIMIT
    for label, written in written_arguments(arguments):
        name = visible(label)
        room -= len(written)
        if room >= 0 and before_suspicious(written, _MOST_SUSPICIOUS) == len(written):
            lines.append(_whole_line(name, visible(written)))
        else:
            part = first_part(written[: SHOWN_CHARACTERS + SHOWN_LINES])
            shown, hidden = visible(part), len(written) - len(part)
            if not hidden:
                lines.append({"name": name, "value": shown, "shown": shown, "hidden": 0})
                continue
            digest = digests.of(label, written)
            lines.append({"name": name, "value": None, "digest": digest, "shown": shown, "hidden": hidden})
    return lines


def _whole_line(name: str, value: str) -> Json:
    shown = first_part(value)
    return {"name": name, "value": value, "shown": shown, "hidden": len(value) - len(shown)}


def seen_json(view: ApprovalView | OutcomeView | GrantView) -> Json:
    """How many parts of a call are masked, and what of it is not shown letter by letter; `fingerprint` is for wherever
    a part of it is not shown for want of room."""
    return {
        "masks": view.masks,
        "unseen": unseen_in_words(view, ""),
        "fingerprint": line(view.fingerprint, TITLE_LIMIT),
    }


def hidden_json(hidden: Hidden) -> Json:
    """What is hidden in a call, whole, for one person who may decide it: nowhere else is there more of it."""
    secrets = [_whole_line(visible(name), visible(text)) for name, text in written_arguments(hidden.secrets)]
    return {"secrets": secrets, "fingerprint": line(hidden.fingerprint, TITLE_LIMIT)}


def argument_page_json(arguments: Mapping[str, Any], page: int) -> Json:
    """All arguments, whole, on pages: one of them, its number from 0, and how many there are. `page` that does not
    exist is the nearest that does."""
    made = page_of(_boxes(arguments), page, PAGE_CHARACTERS)
    shown = [{"name": visible(name), "text": visible(text)} for name, text in made.boxes]
    return {"page": made.number, "pages": made.count, "arguments": shown}


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for name, written in written_arguments(arguments):
        if not written:
            yield name, "", 0
        for text, size in cut_by_size(written, PAGE_CHARACTERS, widest_in(written), longest=PAGE_CHARACTERS):
            yield name, text, size


def first_part(text: str) -> str:
    """As much of a text as a card shows at first: at most 600 characters and 12 lines."""
    lines = text[: SHOWN_CHARACTERS + 1].splitlines(keepends=True)
    return "".join(lines[:SHOWN_LINES])[:SHOWN_CHARACTERS]


# ------------------------------------------------------------------------------------------------ forms and clicks
def form_json(form: Form) -> Json:
    """A form and its values. Values are as they are, since they come back; what is invisible in one is in `notes`.

    A value that is too long to come back has no field, and so stays as it is: `kept` names it.
    """
    kept = [field for field in form.fields if _length(form.values.get(field.name)) > LONGEST_VALUE]
    names = {field.name for field in kept}
    notes = {
        name: f"Holds characters that cannot be seen: {passage(value)}"
        for name, value in form.values.items()
        if name not in names and isinstance(value, str) and holds_unseen(value)
    }
    return {
        "title": line(form.title, TITLE_LIMIT),
        "fields": [field_json(field) for field in form.fields if field.name not in names],
        "values": {name: value for name, value in form.values.items() if name not in names},
        "notes": notes,
        "kept": [line(field.label or field.name, LABEL_LIMIT) for field in kept],
    }


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(written_value(value))


def field_json(field: FormField) -> Json:
    """One input."""
    return {
        "name": field.name,
        "label": line(field.label or field.name, LABEL_LIMIT),
        "type": field.type.value,
        "required": field.required,
        "options": [{"value": option, "label": line(option, LABEL_LIMIT)} for option in field.options],
        "help": passage(field.help, LABEL_LIMIT),
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


# ------------------------------------------------------------------------- people and the application


def person_json(person: Person) -> Json:
    """A person of the page."""
    return {"person_id": person.person_id, "name": visible(person.name)}


def facts_json(facts: PageFacts) -> Json:
    """What the page says about the house."""
    return {
        "model_notice": visible(facts.model_notice),
        "mode": visible(facts.mode),
        "tool_servers": [
            {
                "name": visible(server.name),
                "state": visible(server.state),
                "tools": server.tools,
                "reason": visible(server.reason),
            }
            for server in facts.tool_servers
        ],
    }


# -------------------------------------------------------- standing approvals and accounts of a person


def grants_json(grants: Sequence[GrantView]) -> Json:
    """What somebody always allows themselves."""
    return {
        "grants": [
            {
                "id": grant.grant_id,
                **what_json(grant.server, grant.tool, ""),
                "arguments": [_unread_json(grant.unread)] if grant.unread else arguments_json(grant.arguments),
                **seen_json(replace(grant, unread=0)),
                "until": grant.until,
            }
            for grant in grants
        ]
    }


def _unread_json(characters: int) -> Json:
    """The line that stands for arguments that are too long for a list: all of them are fetched when somebody asks."""
    return {"name": "Arguments", "value": None, "digest": "", "shown": "", "hidden": characters}


def connections_json(connections: Sequence[ConnectionView]) -> Json:
    """Somebody's accounts at services."""
    return {
        "connections": [
            {
                "id": connection.connection_id,
                "service": line(connection.service, TITLE_LIMIT),
                "account": line(connection.account, TITLE_LIMIT),
                "scopes": [line(scope, TITLE_LIMIT) for scope in connection.scopes],
                "since": connection.since,
                "used_at": connection.used_at,
                "working": connection.working,
            }
            for connection in connections
        ]
    }
