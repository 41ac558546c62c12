"""The card of an approval: everything a person needs to decide, and afterwards what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from adapters.teams.actions import (
    APPROVE,
    APPROVE_ALL_DIALOG,
    EDIT_DIALOG,
    REASON,
    REJECT,
    REJECT_DIALOG,
    SHOW_ALL,
    dialog_data,
)
from adapters.teams.render.arguments import Excerpt, edits, excerpt, spelled
from adapters.teams.render.elements import (
    Element,
    Words,
    bold,
    card,
    container,
    execute,
    fact_set,
    heading,
    opens_dialog,
    rich,
    small,
    text_input,
    unfolds,
    words,
)
from adapters.teams.render.mentions import Mention, mentioning
from adapters.teams.render.moments import moment
from adapters.teams.render.room import Room, fitted
from adapters.teams.render.text import escape
from bot.vocabulary import ApprovalView

LONGEST_REASON = 2_000
"""Characters of the reason of a rejection."""
_ENDS = {
    "approved": "Approved",
    "rejected": "Rejected",
    "expired": "Expired",
    "superseded": "Superseded",
    "withdrawn": "Withdrawn",
    "void": "No longer valid",
}
_COLOURS = {"approved": "good", "rejected": "attention"}
_TONES = {"info": "", "success": "✔ ", "error": "✖ ", "warning": "⚠ "}
_RISKS = {"destroys": "attention", "writes": "warning", "reaches outside": "warning", "reads": "good"}
"""The colour of a risk, the worst first."""
_HEADING = 150
_NAMES = 300
"""Characters of a list of names."""
_RULE = 200
_RESULT = 500
_TITLE = 120


def approval_card(
    view: ApprovalView,
    *,
    decides: bool,
    hint: str = "",
    refresh: Mapping[str, Any] | None = None,
    mentions: Sequence[Mention] = (),
) -> Element:
    """An approval as one person sees it. `decides`: they have the buttons. `hint`: what stands where those are not.
    `refresh`: that property of the card. `mentions`: who is to hear of it, while it waits."""

    arguments = _arguments(view)

    def build(room: Room) -> Element:
        shown = arguments(room)
        if not is_open(view):
            return _settled(view, shown, room)
        made = mentioning(_pending(view, shown, room, decides, hint), mentions)
        return {**made, **(refresh or {})}

    return fitted(build)


def is_open(view: ApprovalView) -> bool:
    """Whether it waits to be decided."""
    return view.status == "pending"


def title_of(view: ApprovalView, room: Room) -> str:
    """What it is about, on one line: the operator's name of the server, and the tool's."""
    word = "Approve?" if is_open(view) else f"{_ENDS[view.status]}:"
    return room.line(f"{word} {call_name(view.server, view.tool)}", _HEADING)


def call_name(server: str, tool: str) -> str:
    """A tool under the names that the operator knows."""
    return f"{server}: {tool}"


def summary_of(view: ApprovalView) -> str:
    """It in a sentence, for notifications."""
    room = Room()
    if not is_open(view):
        return f"{title_of(view, room)}. {outcome(view, room)}"
    asks = f"{room.line(view.requester, _TITLE)} asks"
    return f"{title_of(view, room)}. {asks}. May decide: {room.line(view.may_decide, _TITLE)}."


def result_line(view: ApprovalView, room: Room) -> str:
    """What came of the call, with a sign; empty while it has not run."""
    return _TONES[view.result_tone] + room.line(view.result, _RESULT) if view.result.strip() else ""


def outcome(view: ApprovalView, room: Room) -> str:
    """How it was settled, and by whom."""
    names = room.line(", ".join(view.decided_by), _NAMES) if view.decided_by else ""
    return f"{_ENDS[view.status]} by {names}." if names else f"{_ENDS[view.status]}."


def reason_input(view: ApprovalView) -> Element:
    """The input for the reason of a rejection."""
    title = "Reason" if view.reason_required else "Reason (optional)"
    return text_input(REASON, title, required=view.reason_required, longest=LONGEST_REASON)


def risk(view: ApprovalView, room: Room) -> list[Element]:
    """What the call may do to the world: words on a ground of their colour."""
    if not view.risk:
        return []
    colour = next((colour for name, colour in _RISKS.items() if name in view.risk), "warning")
    sign = "⚠ " if colour == "attention" else ""
    return [container(colour, rich(bold("Risk: "), words(f"{sign}{room.line(', '.join(view.risk), _NAMES)}")))]


def unseen_note(shown: Excerpt, advice: str = "") -> list[Element]:
    """What of the arguments is not on the card, if anything."""
    return [small(escape(f"Not whole here: {shown.unseen}.{advice}"))] if shown.unseen else []


def _arguments(view: ApprovalView) -> Callable[[Room], Excerpt]:
    if view.asked_arguments is not None and not is_open(view):
        return edits(view.asked_arguments, view.arguments)
    return partial(excerpt, spelled(view.arguments))


# ------------------------------------------------------------------------------------------------ waiting


def _pending(view: ApprovalView, shown: Excerpt, room: Room, decides: bool, hint: str) -> Element:  # noqa: FBT001 - see approval_card
    body = [
        heading(title_of(view, room)),
        rich(*_asks(view, room)),
        *fact_set(shown.pairs),
        *risk(view, room),
        *(rich(*fact, spacing="Small") for fact in _facts(view, room)),
        *([small(f"Open until {moment(view.expires_at)}")] if view.expires_at is not None else []),
        *unseen_note(shown, " “Show all” has everything."),
        *([small(escape(hint))] if hint and not decides else []),
    ]
    return card(body, _buttons(view) if decides else [_show_all(view)], summary=summary_of(view))


def _asks(view: ApprovalView, room: Room) -> Iterator[Words]:
    yield bold(room.line(view.requester, _NAMES))
    yield words(" asks for this.")
    if view.title.strip() and view.title != view.tool:
        yield words(f" The server calls it “{room.line(view.title, _TITLE)}”.")


def _facts(view: ApprovalView, room: Room) -> Iterator[tuple[Words, Words]]:
    yield bold("May decide: "), words(room.line(view.may_decide, 4 * _NAMES))
    if view.quorum > 1:
        yield bold("Votes: "), words(_votes(view, room))
    yield bold("Rule: "), words(room.line(view.rule, _RULE))


def _votes(view: ApprovalView, room: Room) -> str:
    names = [vote.name for vote in view.votes if vote.verb == "approve"]
    by = f": {room.line(', '.join(names), _NAMES)}" if names else ""
    return f"{len(names)} of {view.quorum} approved{by}"


def _buttons(view: ApprovalView) -> list[Element]:
    approval = view.approval_id
    made = [execute("Approve", APPROVE, approval, style="positive"), _reject(view)]
    if view.editable:
        made.append(opens_dialog("Edit…", EDIT_DIALOG, approval))
    made.append(_show_all(view))
    if view.together > 1:
        made.append(opens_dialog(f"Approve all {view.together:,}…", APPROVE_ALL_DIALOG, approval))
    return made


def _reject(view: ApprovalView) -> Element:
    """The reason and its button, unfolded below; a dialog where a client cannot unfold."""
    send = execute("Reject", REJECT, view.approval_id, inputs="auto", style="destructive")
    dialog = {"type": "Action.Submit", "title": "Reject…", "data": dialog_data(REJECT_DIALOG, view.approval_id)}
    return unfolds("Reject…", [reason_input(view)], send, style="destructive", fallback=dialog)


def _show_all(view: ApprovalView) -> Element:
    return opens_dialog("Show all", SHOW_ALL, view.approval_id)


# ------------------------------------------------------------------------------------------------ settled


def _settled(view: ApprovalView, shown: Excerpt, room: Room) -> Element:
    edited = view.asked_arguments is not None
    body = [
        heading(title_of(view, room)),
        container(_COLOURS.get(view.status, "emphasis"), *_decision(view, room)),
        *([small("Edited before it was approved: what was asked → what was approved.")] if edited else []),
        *fact_set(shown.pairs),
        *unseen_note(shown),
        *([small(f"{_ENDS[view.status]} {moment(view.decided_at)}")] if view.decided_at is not None else []),
        small(escape(f"Asked by {room.line(view.requester, _NAMES)}. Rule: {room.line(view.rule, _RULE)}.")),
    ]
    return card(body, summary=summary_of(view))


def _decision(view: ApprovalView, room: Room) -> Iterator[Element]:
    yield rich(bold(outcome(view, room)))
    if view.reason.strip():
        yield rich(bold("Reason: "), words(room.passage(view.reason, LONGEST_REASON)))
    if result := result_line(view, room):
        yield rich(words(result))
