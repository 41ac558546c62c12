"""Our words → JSON, for the page and for streams of programs. Pure.

Every text passes `visible`, so that nothing invisible or reversed reaches a reader unmarked. Nothing is escaped as
HTML: the page builds its nodes from text and never parses HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any, assert_never

from adapters.shared.arguments import call_asked_in, hidden_in_words, page_of
from adapters.shared.plans import LONGEST_INSTRUCTION, plan_title, task_name, task_result, task_state
from adapters.shared.previews import preview_rows
from adapters.shared.wording import (
    LONGEST_NAME,
    WHOLE,
    Titled,
    call_source,
    call_title,
    is_in_title,
    risks,
    source_name,
    why,
)
from bot.agent_choices import AgentChoice
from bot.card_masks import unseen_in_words
from bot.characters import before_suspicious
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    CallActivity,
    ChangeView,
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
    PendingApprovals,
    Person,
    PlanTaskView,
    PlanView,
    Post,
    Refused,
    Said,
    ServiceView,
    Settled,
    Shown,
    SignInView,
    ThreadSummary,
    ThreadView,
    Unknown,
)
from bot.files import LONGEST_NAME as LONGEST_FILE_NAME
from bot.gateway.thread_ids import is_gateway_thread
from bot.memory import PersonMemories
from bot.readings import ReadableLine, change_in_words, main_value, readings
from bot.safe_text import (
    cut_by_size,
    holds_unseen,
    is_unwieldy,
    visible,
    visible_line,
    visible_passage,
    widest_in,
    written_arguments,
    written_value,
)
from bot.usage import OwnUsage, UsageTotal
from graph.citations import Source
from graph.interrupts import FormField
from graph.memory import LONGEST_MEMORY
from graph.presentation import NOTHING_KNOWN, CallPresentation
from graph.usage import LONGEST_MODEL_NAME
from translations import gettext as _

Json = dict[str, Any]
PAGE = "web:"
"""What the ids of threads begin with that the page shows."""
LONGEST_ANSWER = 100_000
"""Characters of an answer; more is cut with a count."""
LONGEST_PASSAGE = 10_000
"""Characters of any other text from elsewhere; more is cut with a count."""
LONGEST_VALUES = 20_000
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
LONGEST_LABEL = 1_000
"""Characters of the words around an input."""
_MOST_SUSPICIOUS = 1_000
"""Characters that may be invisible, of an argument that is sent whole."""
LONGEST_TITLE = 120
"""Characters of a title."""
LONGEST_RESULT = 400
"""Characters of a result's one line."""
LONGEST_SOURCE = 300
"""Characters of where a passage stands that is cited."""
LONGEST_TASK_RESULT = 1_000
"""Characters of what came of a task of a plan."""
MOST_ACTIVITIES = 200
"""Calls of one answer that are listed with it; of more, the last."""
_KINDS = {Settled: "settled", AlreadySettled: "already_settled", Refused: "refused", Unknown: "unknown"}


# ------------------------------------------------------------------------------------------------ threads
def thread_json(view: ThreadView) -> Json:
    """A thread, without its entries."""
    return {"thread_id": view.thread_id, "title": line(view.title, LONGEST_TITLE), "seen_as": view.seen_as}


def entry_json(entry: MessageView | Post) -> Json:
    """What somebody wrote, or a post."""
    return message_json(entry) if isinstance(entry, MessageView) else post_json(entry)


def agents_json(choices: Sequence[AgentChoice]) -> list[Json]:
    """The agents among which somebody can pick; none where there is only one."""
    return [_json(each, as_is="name description is_current") for each in choices] if len(choices) > 1 else []


def threads_json(summaries: tuple[ThreadSummary, ...]) -> Json:
    """The list of threads."""
    as_is = "thread_id updated_at waiting questions"
    return {"threads": [_json(each, lines="title owner", as_is=as_is) for each in summaries]}


def asked_json(pending: PendingApprovals, through_programs: Sequence[Shown] = ()) -> Json:
    """Approvals that somebody may decide; what waits for the calls of their other agents, which are in no conversation;
    and what they asked for in conversations and others decide.

    Args:
        through_programs: what else than approvals waits for these calls.
    """
    in_programs = [*through_programs, *(each for each in pending.asked_for if is_gateway_thread(each.post.thread_id))]
    for_others = [each for each in pending.asked_for if not is_gateway_thread(each.post.thread_id)]
    return {
        "asked": list(map(_listed_json, pending.to_decide)),
        "more_asked": pending.more,
        "through_programs": list(map(_listed_json, in_programs)),
        "for_others": list(map(_listed_json, for_others)),
    }


def decided_json(decided: Sequence[Shown]) -> Json:
    """Approvals that somebody has decided, with their cards."""
    return {"decided": list(map(_listed_json, decided))}


def _listed_json(shown: Shown) -> Json:
    """Something that waits for somebody, or that they have decided, with its card, under which everything else is
    fetched. `is_opened`: whether the page shows its thread."""
    post = shown.post
    card = _short(post.content) if isinstance(post.content, ApprovalView | OutcomeView) else content_json(post.content)
    is_opened = post.thread_id.startswith(PAGE) and not is_gateway_thread(post.thread_id)
    return {"id": card["id"], "thread_id": post.thread_id, "is_opened": is_opened, "card": card}


def _short(view: ApprovalView | OutcomeView) -> Json:
    """A card in a list: what it does not show at first is fetched when somebody wants to see it."""
    card = content_json(replace(view, unread=0))
    if view.unread:
        return card | {"arguments": [_unread_json(view.unread)]}
    lines = [each if not each["hidden"] else each | {"value": None, "digest": ""} for each in card["arguments"]]
    return card | {"arguments": lines}


def message_json(view: MessageView) -> Json:
    """A person's message; `queued`, where something else in its thread has to end first."""
    text = passage(view.text, LONGEST_ANSWER)
    queued = {"queued": True} if view.queued else {}
    files = {"files": [line(name, LONGEST_FILE_NAME) for name in view.files]} if view.files else {}
    return {
        "kind": "message",
        "id": view.key,
        "text": text,
        **_json(view, lines="author", as_is="author_id at"),
        **queued,
        **files,
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
            return {
                "kind": "said",
                "text": passage(content.text, LONGEST_ANSWER),
                **({"agent": content.agent} if content.agent else {}),
                **({"sources": [_source(each) for each in content.sources]} if content.sources else {}),
                **activity_json(content.activity, content.earlier_calls),
            }
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
        case ChangeView():
            return _change(content)
        case PlanView():
            return _plan(content)
        case _:
            assert_never(content)


def _source(source: Source) -> Json:
    """What an answer cites, as one line; `number`: as it is cited."""
    return {"number": source.number, "name": source_name(source, LONGEST_SOURCE)}


def _plan(view: PlanView) -> Json:
    return {
        "kind": "plan",
        "id": view.plan_id,
        "status": view.status,
        "title": plan_title(view),
        "tasks": [_task(view, task) for task in view.tasks],
        **_json(view, passages="requester", as_is="requester_id"),
    }


def _task(view: PlanView, task: PlanTaskView) -> Json:
    """A task of a plan. `instruction`: its beginning on one line; `instructions`: all of it, where that is more."""
    instruction = line(task.instruction, LONGEST_INSTRUCTION)
    whole = passage(task.instruction)
    return {
        "id": task_name(task),
        "instruction": instruction,
        "instructions": "" if whole == instruction else whole,
        "state": task_state(view, task),
        "result": task_result(task, longest=LONGEST_TASK_RESULT),
        **_json(task, lines="agent depends_on", as_is="status began_at ended_at"),
    }


def _change(view: ChangeView) -> Json:
    return {
        "kind": "change",
        "id": view.attempt_id,
        "arguments": _besides_title(view, arguments_json(view.arguments, view.presentation)),
        "result": line(view.result, LONGEST_RESULT),
        **seen_json(view),
        **_client_json(view),
        **_call_json(view),
        **_json(view, passages="requester rule", as_is="result_tone requester_id grant_id"),
    }


def activity_json(calls: Sequence[CallActivity], earlier: int = 0) -> Json:
    """The calls that were made for an answer, the oldest first, and how many before them are not listed; nothing where
    there were none."""
    if not calls:
        return {}
    listed = calls[-MOST_ACTIVITIES:]
    return {
        "activity": [
            {
                "id": call.call_id,
                "result": line(call.result, LONGEST_RESULT),
                **_call_json(call),
                **_json(call, as_is="state began_at ended_at"),
            }
            for call in listed
        ],
        "more_activity": earlier + len(calls) - len(listed),
    }


def _call_json(view: ApprovalView | OutcomeView | ChangeView | GrantView | CallActivity) -> Json:
    """What is to be called: its title in people's words, server and tool as the operator calls them, and both names."""
    return {"title": call_title(view), "source": call_source(view), **_json(view, lines="server tool")}


def _approval(view: ApprovalView) -> Json:
    digests = _Digests()
    shown = _besides_title(view, _arguments(view.arguments, view.presentation, digests))
    asked = None
    if view.asked_arguments is not None:
        asked = _arguments(view.asked_arguments, view.presentation, digests)
        shown = _with_changes(shown, view.asked_arguments, view.arguments, view.presentation)
    return {
        "kind": "approval",
        "id": view.approval_id,
        "arguments": shown,
        "asked_arguments": asked,
        "when": _when(view),
        "preview": preview_json(view),
        "votes": [_json(vote, lines="name", as_is="verb at") for vote in view.votes],
        "requester_id": view.requester_ids[0] if view.requester_ids else "",
        "notes": [{"name": line(name, LONGEST_NAME), "text": passage(text)} for name, text in view.notes],
        "result": line(view.result, LONGEST_RESULT),
        "risk": [line(each, LONGEST_TITLE) for each in risks(view)],
        "again": line(view.again, LONGEST_RESULT),
        "why": why(view),
        "anyone_else": _is_for_anyone_else(view),
        **_call_json(view),
        **_client_json(view),
        **seen_json(view),
        **_json(
            view,
            lines="handed_to decided_by edited_by",
            passages="requester may_decide rule quote reason",
            as_is="status quorum rejections asked_at expires_at escalates_at decided_at result_tone "
            "reason_required editable always_offered handing_offered retry_offered",
        ),
    }


def _is_for_anyone_else(view: ApprovalView) -> bool:
    """Whether all but its one requester may decide, each alone: the page says so to everybody in their own words."""
    is_one = view.quorum == 1 and len(view.requester_ids) == 1
    return is_one and view.four_eyes and "any" in view.approvers


def _when(view: ApprovalView) -> str:
    """The first moment, or span of time, among the values of a settled call, for its line; empty: there is none, or it
    still waits and shows all of them."""
    if view.status == "pending" or view.unread:
        return ""
    found = (each.text for each in _lines(view.arguments, view.presentation) if each.span is not None)
    return line(next(found, ""), LONGEST_TITLE)


def preview_json(view: ApprovalView) -> Json | None:
    """What the call would change: `rows` of `label`, `before`, `after` and `change` (both on one line); `has_before`
    and `has_after`: which sides there are; `hidden`, `source` and `problem` (instead of rows) in words. `None`: no
    preview is named for it."""
    preview = preview_rows(view)
    return None if preview is None else asdict(preview)


def _clarification(view: ClarificationView) -> Json:
    texts = _json(view, passages="question context requester answer server", as_is="status requester_id")
    fields = [field_json(field) for field in view.fields]
    about = call_asked_in(view)(WHOLE)
    return {
        "kind": "clarification",
        "id": view.clarification_id,
        "fields": fields,
        "filled_in": [{"name": line(label, LONGEST_LABEL), "value": passage(value)} for label, value in view.filled_in],
        "about": about,
        **texts,
        **_client_json(view),
    }


def _sign_in(view: SignInView) -> Json:
    shown = _json(view, lines="service", passages="server host owner", as_is="status owner_id code_wanted")
    return {"kind": "sign_in", "id": view.sign_in_id, **shown, **_client_json(view)}


def _outcome(view: OutcomeView) -> Json:
    return {
        "kind": "outcome",
        "id": view.outcome_id,
        "arguments": _besides_title(view, arguments_json(view.arguments, view.presentation)),
        **seen_json(view),
        **_call_json(view),
        **_json(view, passages="requester settled_by known", as_is="status requester_id"),
        **_client_json(view),
    }


def _client_json(
    view: ApprovalView | ClarificationView | SignInView | OutcomeView | ChangeView | GrantView,
) -> Json:
    """What a program calls itself through which it was asked for, its own word; empty: it was asked of our agent. And
    which agent of ours asks, where it is not the default one."""
    asked = {"client": line(view.client, LONGEST_NAME)}
    agent = "" if isinstance(view, GrantView) else view.agent
    return {**asked, "agent": line(agent, LONGEST_NAME)} if agent else asked


def _json(view: object, *, lines: str = "", passages: str = "", as_is: str = "") -> Json:
    """Attributes by name: texts from elsewhere as one line (or several such) or as passages, and as they are words of
    ours, ids, numbers and times."""

    def lined(value: str | Sequence[str]) -> str | list[str]:
        return line(value, LONGEST_TITLE) if isinstance(value, str) else [line(each, LONGEST_TITLE) for each in value]

    return {
        **{name: lined(getattr(view, name)) for name in lines.split()},
        **{name: passage(getattr(view, name)) for name in passages.split()},
        **{name: getattr(view, name) for name in as_is.split()},
    }


def line(text: str, limit: int) -> str:
    """Text from elsewhere as one line, bounded."""
    return visible_line(text, limit)


def passage(text: str, limit: int = LONGEST_PASSAGE) -> str:
    """Text from elsewhere with its lines, bounded."""
    return visible_passage(text, limit)


def arguments_json(arguments: Mapping[str, Any], presentation: CallPresentation = NOTHING_KNOWN) -> list[Json]:
    """Arguments as lines of a definition list, as people read them: each whole, and how much of it a card shows at
    first. What they are letter by letter is `raw`, where that is something else.

    What does not fit into the card's share, and is more than is shown at first, has no `value`, but a `digest` to
    compare it by.
    """
    return _arguments(arguments, presentation, _Digests())


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


def _arguments(arguments: Mapping[str, Any], presentation: CallPresentation, digests: _Digests) -> list[Json]:
    lines: list[Json] = []
    left = LONGEST_VALUES
    for each in _lines(arguments, presentation):
        name, raw = visible(each.label), {} if each.text == each.raw else {"raw": visible(each.raw)}
        left -= len(each.text)
        if left >= 0 and before_suspicious(each.text, _MOST_SUSPICIOUS) == len(each.text):
            lines.append({**_whole_line(name, visible(each.text)), **raw})
        else:
            part = first_part(each.text[: SHOWN_CHARACTERS + SHOWN_LINES])
            shown, hidden = visible(part), len(each.text) - len(part)
            if not hidden:
                lines.append({"name": name, "value": shown, "shown": shown, "hidden": 0, **raw})
                continue
            digest = digests.of(each.label, each.text)
            lines.append({"name": name, "value": None, "digest": digest, "shown": shown, "hidden": hidden})
    return lines


def _besides_title(view: Titled, lines: list[Json]) -> list[Json]:
    """The lines, of which the one that the card's title says already, whole, is marked as `titled`."""
    value = main_value(view.arguments, view.presentation)
    if not value or not is_in_title(view, value):
        return lines
    said = [each for each in lines if each["value"] == value and "raw" not in each]
    if len(said) != 1:
        return lines
    return [{**each, "titled": True} if each is said[0] else each for each in lines]


def _with_changes(
    lines: list[Json], asked: Mapping[str, Any], approved: Mapping[str, Any], presentation: CallPresentation
) -> list[Json]:
    """The lines, with `change` where a moment was moved: "Sun 22 Nov, 13:00 → 14:30 (Europe/Berlin)", or was written in
    another way that reads the same."""
    if is_unwieldy(asked) or is_unwieldy(approved):
        return lines
    before = {each.label: each for each in readings(asked, presentation)}
    moved = {
        visible(each.label): visible(change_in_words(old, each))
        for each in readings(approved, presentation)
        if (old := before.get(each.label)) is not None and old.raw != each.raw
    }
    return [{**each, "change": moved[each["name"]]} if moved.get(each["name"]) else each for each in lines]


def _lines(arguments: Mapping[str, Any], presentation: CallPresentation) -> Iterator[ReadableLine]:
    if not is_unwieldy(arguments):
        yield from readings(arguments, presentation)
        return
    for label, written in written_arguments(arguments):
        yield ReadableLine((), label, written, written)


def _whole_line(name: str, value: str) -> Json:
    shown = first_part(value)
    return {"name": name, "value": value, "shown": shown, "hidden": len(value) - len(shown)}


def seen_json(view: ApprovalView | OutcomeView | ChangeView | GrantView) -> Json:
    """How many parts of a call are masked, and what of it is not shown letter by letter; `warns`: that is more than
    ids, for which the card says what they stand for. `fingerprint` is for wherever a part is not shown for lack of
    space."""
    ids = view.presentation.known_in(view.arguments).values()
    return {
        "masks": view.masks,
        "unseen": unseen_in_words(view, hidden_in_words(0, 0, [len(known.value) for known in ids])),
        "warns": bool(view.masks or view.confusing),
        "fingerprint": line(view.fingerprint, LONGEST_TITLE),
    }


def hidden_json(hidden: Hidden) -> Json:
    """What is hidden in a call, whole, for one person who may decide it: nowhere else is there more of it."""
    secrets = [_whole_line(visible(name), visible(text)) for name, text in written_arguments(hidden.secrets)]
    return {"secrets": secrets, "fingerprint": line(hidden.fingerprint, LONGEST_TITLE)}


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
    """Returns the part of a text that a card shows at first: at most 600 characters and 12 lines."""
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
        name: _("Contains invisible characters: {text}").format(text=passage(value))
        for name, value in form.values.items()
        if name not in names and isinstance(value, str) and holds_unseen(value)
    }
    return {
        "title": line(form.title, LONGEST_TITLE),
        "fields": [field_json(field) for field in form.fields if field.name not in names],
        "values": {name: value for name, value in form.values.items() if name not in names},
        "notes": notes,
        "kept": [line(field.label or field.name, LONGEST_LABEL) for field in kept],
    }


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(written_value(value))


def field_json(field: FormField) -> Json:
    """One input."""
    return {
        "name": field.name,
        "label": line(field.label or field.name, LONGEST_LABEL),
        "type": field.type.value,
        "required": field.required,
        "options": [{"value": option, "label": line(option, LONGEST_LABEL)} for option in field.options],
        "help": passage(field.help, LONGEST_LABEL),
        "multiline": field.multiline,
        "default": field.default,
    }


def click_json(result: ClickResult) -> Json:
    """What a click gets."""
    if isinstance(result, Invalid):
        errors = {name: visible(error) for name, error in result.errors.items()}
        return {"kind": "invalid", "text": errors.get("", _("Fix the highlighted fields.")), "errors": errors}
    final = {"final": result.final} if isinstance(result, Settled) else {}
    return {"kind": _KINDS[type(result)], "text": visible(result.text), **final}


# --------------------------------------------------------------------------------- people


def person_json(person: Person) -> Json:
    """A person of the page."""
    return {"person_id": person.person_id, "name": visible(person.name)}


# -------------------------------------------------------- standing approvals and accounts of a person


def grants_json(grants: Sequence[GrantView]) -> Json:
    """What somebody always allows themselves."""
    return {
        "grants": [
            {
                "id": grant.grant_id,
                "arguments": [_unread_json(grant.unread)]
                if grant.unread
                else _besides_title(grant, arguments_json(grant.arguments, grant.presentation)),
                **seen_json(replace(grant, unread=0)),
                **_call_json(grant),
                **_json(grant, as_is="until"),
                **_client_json(grant),
            }
            for grant in grants
        ]
    }


def _unread_json(characters: int) -> Json:
    """The line that stands for arguments that are too long for a list: all of them are fetched when somebody asks."""
    return {"name": _("Values"), "value": None, "digest": "", "shown": "", "hidden": characters}


def memories_json(memories: PersonMemories, *, is_on: bool) -> Json:
    """What is remembered of somebody. `is_on`: whether anything is, of anybody."""
    items = [
        {"id": item.memory_id, "text": visible_line(item.text, LONGEST_MEMORY), "at": item.at}
        for item in memories.items
    ]
    return {"memories": items, "remembers": memories.is_remembered, "on": is_on}


def usage_json(own: OwnUsage) -> Json:
    """What somebody has used of language models."""
    return {
        "today": total_json(own.today),
        "recent": total_json(own.recent),
        "days": [total_json(each) for each in own.days],
        "currency": own.currency,
    }


def total_json(total: UsageTotal) -> Json:
    """Usage added up; `cost` is null where there is no price."""
    cost = None if total.cost is None else float(total.cost)
    models = [visible_line(each, LONGEST_MODEL_NAME) for each in total.models]
    return {"key": total.key, **total.use, "models": models, "cost": cost}


def connections_json(
    connections: Sequence[ConnectionView], services: Sequence[ServiceView] = (), *, code_wanted: bool = False
) -> Json:
    """Somebody's accounts at services, the services at which they can connect one, and whether a browser shows a code
    that they are to enter."""
    return {
        "connections": [
            {
                "id": each.connection_id,
                **_json(each, lines="service account scopes", as_is="since used_at status provider"),
                "working": each.working,
            }
            for each in connections
        ],
        "services": [_json(each, lines="service scopes", as_is="provider") for each in services],
        "code_wanted": code_wanted,
    }
