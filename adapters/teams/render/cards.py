"""The card of an approval: everything a person needs to decide, and afterwards what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from adapters.teams.actions import (
    ALWAYS_DIALOG,
    APPROVE,
    APPROVE_ALL_DIALOG,
    EDIT_DIALOG,
    HAND_OVER_DIALOG,
    LOOK_DIALOG,
    REASON,
    REJECT,
    REJECT_DIALOG,
    SHOW_ALL,
    TAKE_BACK,
    dialog_data,
)
from adapters.teams.render.arguments import Excerpt, edits, excerpt, spelled
from adapters.teams.render.elements import (
    Element,
    Room,
    Words,
    bold,
    card,
    container,
    escape,
    execute,
    fact_set,
    fitted,
    heading,
    opens_dialog,
    rich,
    small,
    text_input,
    unfolds,
    words,
)
from adapters.teams.render.inputs import moment
from adapters.teams.render.mentions import CardMention, mentioning
from bot.domain import ApprovalView, GrantView, OutcomeView
from bot.masking import unseen_in_words

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
_QUOTE = 1_000


def approval_card(
    view: ApprovalView,
    *,
    decides: bool,
    asked: bool = False,
    hint: str = "",
    refresh: Mapping[str, Any] | None = None,
    mentions: Sequence[CardMention] = (),
) -> Element:
    """An approval as one person sees it.

    `decides`: they have the buttons. `asked`: they asked for it, and may withdraw it. `hint`: what stands where the
    buttons are not. `refresh`: that property of the card. `mentions`: who is to hear of it, while it waits.
    """
    arguments = _arguments(view)

    def build(room: Room) -> Element:
        shown = arguments(room)
        if not is_open(view):
            return _settled(view, shown, room)
        looking = [_show_all(view), *([_withdraw(view)] if asked else [])]
        buttons = _deciding(view, asked=asked) if decides else looking
        made = _pending(view, shown, room, buttons, "" if decides else hint)
        return {**mentioning(made, mentions), **(refresh or {})}

    return fitted(build)


def is_open(view: ApprovalView) -> bool:
    """Whether it waits to be decided."""
    return view.status == "pending"


def has_asked(view: ApprovalView, person: str) -> bool:
    """Whether it is this person's own request."""
    return view.requester_ids[:1] == (person,)


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


def unseen_note(view: ApprovalView | OutcomeView | GrantView, shown: Excerpt, advice: str = "") -> list[Element]:
    """What of the arguments is not on the card letter by letter, if anything."""
    unseen = unseen_in_words(view, shown.unseen, advice)
    return [small(escape(unseen))] if unseen else []


def _arguments(view: ApprovalView) -> Callable[[Room], Excerpt]:
    if view.asked_arguments is not None and not is_open(view):
        return edits(view.asked_arguments, view.arguments)
    return partial(excerpt, spelled(view.arguments))


# ------------------------------------------------------------------------------------------------ waiting


def _pending(view: ApprovalView, shown: Excerpt, room: Room, buttons: Sequence[Element], hint: str) -> Element:
    body = [
        heading(title_of(view, room)),
        rich(*_asks(view, room)),
        *in_their_words(view, room),
        *fact_set(shown.pairs),
        *risk(view, room),
        *(rich(*fact, spacing="Small") for fact in _facts(view, room)),
        *([small(f"Open until {moment(view.expires_at)}")] if view.expires_at is not None else []),
        *([small(f"Others may decide too from {moment(view.escalates_at)}")] if view.escalates_at is not None else []),
        *unseen_note(view, shown, "“Show all” has everything."),
        *([small(escape(hint))] if hint else []),
    ]
    return card(body, buttons, summary=summary_of(view))


def _asks(view: ApprovalView, room: Room) -> Iterator[Words]:
    yield bold(room.line(view.requester, _NAMES))
    yield words(" asks for this.")
    if view.title.strip() and view.title != view.tool:
        yield words(f" The server calls it “{room.line(view.title, _TITLE)}”.")


def _facts(view: ApprovalView, room: Room) -> Iterator[tuple[Words, Words]]:
    yield bold("May decide: "), words(room.line(view.may_decide, 4 * _NAMES))
    if view.quorum > 1:
        yield bold("Votes: "), words(_counted(view, "approve", f"of {view.quorum} approved", room))
    if view.rejections > 1:
        yield bold("Vetoes: "), words(_counted(view, "reject", f"of {view.rejections} rejected", room))
    if view.handed_to:
        yield bold("Also asked to decide: "), words(room.line(", ".join(view.handed_to), _NAMES))
    yield bold("Rule: "), words(room.line(view.rule, _RULE))


def _counted(view: ApprovalView, verb: str, goal: str, room: Room) -> str:
    names = [vote.name for vote in view.votes if vote.verb == verb]
    by = f": {room.line(', '.join(names), _NAMES)}" if names else ""
    return f"{len(names)} {goal}{by}"


def in_their_words(view: ApprovalView, room: Room) -> list[Element]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    said = rich(
        bold(f"{room.line(view.requester, _NAMES)} wrote: "), words(room.passage(view.quote, _QUOTE), italic=True)
    )
    return [said]


def _deciding(view: ApprovalView, *, asked: bool) -> list[Element]:
    """The buttons of whoever may decide, at most 5: as many stand beside each other in Teams, and a menu of others
    (`mode: secondary`) is not in every client."""
    approval = view.approval_id
    edit = [opens_dialog("Edit…", EDIT_DIALOG, approval)] if view.editable else []
    several = opens_dialog(f"Approve all {view.together:,}…", APPROVE_ALL_DIALOG, approval)
    in_row, in_more = ([several], edit) if view.together > 1 else (edit, [])
    rare = [
        *in_more,
        *([opens_dialog("Always allow…", ALWAYS_DIALOG, approval)] if view.always_offered else []),
        *([opens_dialog("Ask somebody else…", HAND_OVER_DIALOG, approval)] if view.handing_offered else []),
        *([opens_dialog("Look at what is hidden…", LOOK_DIALOG, approval)] if view.masks else []),
        *([_withdraw(view)] if asked else []),
    ]
    more = [unfolds("More…", [small("What else you can do:")], rare)] if rare else []
    return [execute("Approve", APPROVE, approval, style="positive"), _reject(view), *in_row, _show_all(view), *more]


def _withdraw(view: ApprovalView) -> Element:
    return execute("Withdraw", TAKE_BACK, view.approval_id)


def _reject(view: ApprovalView) -> Element:
    """The reason and its button, unfolded below; a dialog where a client cannot unfold."""
    send = execute("Reject", REJECT, view.approval_id, inputs="auto", style="destructive")
    dialog = {"type": "Action.Submit", "title": "Reject…", "data": dialog_data(REJECT_DIALOG, view.approval_id)}
    return unfolds("Reject…", [reason_input(view)], [send], style="destructive", fallback=dialog)


def _show_all(view: ApprovalView) -> Element:
    return opens_dialog("Show all", SHOW_ALL, view.approval_id)


# ------------------------------------------------------------------------------------------------ settled


def _settled(view: ApprovalView, shown: Excerpt, room: Room) -> Element:
    edited = view.asked_arguments is not None
    body = [
        heading(title_of(view, room)),
        container(_COLOURS.get(view.status, "emphasis"), *_decision(view, room)),
        *in_their_words(view, room),
        *([small("Edited before it was approved: what was asked → what was approved.")] if edited else []),
        *fact_set(shown.pairs),
        *unseen_note(view, shown),
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
