"""The card of an approval: everything a person needs to decide, and afterwards what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import Excerpt, excerpts_of_approval
from adapters.shared.wording import Space
from adapters.teams.actions import DialogButton, dialog_data
from adapters.teams.render.elements import (
    Element,
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
from adapters.teams.render.inputs import reader_time
from bot.card_masks import unseen_in_words
from bot.domain import ApprovalView, GrantView, OutcomeView

LONGEST_IN_SUMMARY = 120
"""Characters of a name, and of who may decide, in the sentence that stands for a card."""
SIGNS = {"info": "", "success": "✔ ", "error": "✖ ", "warning": "⚠ "}
_COLOURS = {"approved": "good", "rejected": "attention"}
_RISKS = {"destroys": "attention", "writes": "warning", "reaches outside": "warning", "reads": "good"}
"""The colour of a risk, the worst first."""


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
    buttons are not. `refresh`: that property of the card. `mentions`: who is notified of it, while it waits.
    """
    arguments = excerpts_of_approval(view)

    def build(space: Space) -> Element:
        shown = arguments(space)
        if view.status != "pending":
            return _settled(view, shown, space)
        looking = [_show_all(view), *([_withdraw(view)] if asked else [])]
        buttons = _deciding(view, asked=asked) if decides else looking
        made = _pending(view, shown, space, buttons, "" if decides else hint)
        return {**mentioning(made, mentions), **(refresh or {})}

    return fitted(build)


def has_asked(view: ApprovalView, person: str) -> bool:
    """Whether it is this person's own request."""
    return view.requester_ids[:1] == (person,)


def reason_input(view: ApprovalView) -> Element:
    """The input for the reason of a rejection."""
    title = "Reason" if view.reason_required else "Reason (optional)"
    return text_input(actions.REASON, title, required=view.reason_required, longest=wording.LONGEST_REASON)


def _risk(view: ApprovalView, space: Space) -> list[Element]:
    """What the call may do to the world: words on a ground of their colour."""
    if not view.risk:
        return []
    colour = next((colour for name, colour in _RISKS.items() if name in view.risk), "warning")
    sign = "⚠ " if colour == "attention" else ""
    return [container(colour, rich(bold("Risk: "), words(f"{sign}{wording.risk(view, space)}")))]


def unseen_note(view: ApprovalView | OutcomeView | GrantView, shown: Excerpt, advice: str = "") -> list[Element]:
    """What of the arguments is not on the card letter by letter, if anything."""
    unseen = unseen_in_words(view, shown.unseen, advice)
    return [small(escape(unseen))] if unseen else []


# ------------------------------------------------------------------------------------------------ waiting
def _pending(view: ApprovalView, shown: Excerpt, space: Space, buttons: Sequence[Element], hint: str) -> Element:
    name, *rest = wording.asking(view, space)
    body = [
        heading(wording.heading(view, space)),
        rich(bold(name), *map(words, rest)),
        *in_their_words(view, space),
        *fact_set(shown.pairs),
        *_risk(view, space),
        *(rich(bold(label), words(text), spacing="Small") for label, text in _facts(view, space) if text),
        *map(small, wording.deadlines(view, reader_time)),
        *unseen_note(view, shown, "“Show all” has everything."),
        *([small(escape(hint))] if hint else []),
    ]
    return card(body, buttons, summary=wording.approval_summary(view, LONGEST_IN_SUMMARY))


def _facts(view: ApprovalView, space: Space) -> Iterator[tuple[str, str]]:
    yield "May decide: ", wording.deciders_line(view, space)
    yield "Votes: ", wording.votes(view, space)
    yield "Vetoes: ", wording.vetoes(view, space)
    yield "Also asked to decide: ", wording.handed_to(view, space)
    yield "Rule: ", wording.rule(view, space)


def in_their_words(view: ApprovalView, space: Space) -> list[Element]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    who, what = wording.written(view, space)
    return [rich(bold(f"{who} "), words(what, italic=True))]


def _deciding(view: ApprovalView, *, asked: bool) -> list[Element]:
    """The buttons of whoever may decide, at most 5: as many stand beside each other in Teams, and a menu of others
    (`mode: secondary`) is not in every client."""
    approval = view.approval_id
    edit = [opens_dialog("Edit…", DialogButton.EDIT, approval)] if view.editable else []
    several = opens_dialog(f"Approve all {view.together:,}…", DialogButton.APPROVE_ALL, approval)
    in_row, in_more = ([several], edit) if view.together > 1 else (edit, [])
    rare = [
        *in_more,
        *([opens_dialog("Always allow…", DialogButton.ALWAYS, approval)] if view.always_offered else []),
        *([opens_dialog("Ask somebody else…", DialogButton.HAND_OVER, approval)] if view.handing_offered else []),
        *([opens_dialog("Look at what is hidden…", DialogButton.SHOW_HIDDEN, approval)] if view.masks else []),
        *([_withdraw(view)] if asked else []),
    ]
    more = [unfolds("More…", [small("What else you can do:")], rare)] if rare else []
    return [
        execute("Approve", actions.APPROVE, approval, style="positive"),
        _reject(view),
        *in_row,
        _show_all(view),
        *more,
    ]


def _withdraw(view: ApprovalView) -> Element:
    return execute("Withdraw", actions.WITHDRAW, view.approval_id)


def _reject(view: ApprovalView) -> Element:
    """The reason and its button, unfolded below; a dialog where a client cannot unfold."""
    send = execute("Reject", actions.REJECT, view.approval_id, inputs="auto", style="destructive")
    dialog = {
        "type": "Action.Submit",
        "title": "Reject…",
        "data": dialog_data(DialogButton.REJECT, view.approval_id),
    }
    return unfolds("Reject…", [reason_input(view)], [send], style="destructive", fallback=dialog)


def _show_all(view: ApprovalView) -> Element:
    return opens_dialog("Show all", actions.SHOW_ALL, view.approval_id)


# ------------------------------------------------------------------------------------------------ settled
def _settled(view: ApprovalView, shown: Excerpt, space: Space) -> Element:
    body = [
        heading(wording.heading(view, space)),
        container(_COLOURS.get(view.status, "emphasis"), *_decision(view, space)),
        *in_their_words(view, space),
        *([small(edited)] if (edited := wording.edited(view)) else []),
        *fact_set(shown.pairs),
        *unseen_note(view, shown),
        *([] if view.decided_at is None else [small(f"{wording.ENDS[view.status]} {reader_time(view.decided_at)}")]),
        small(escape(wording.provenance(view, space))),
    ]
    return card(body, summary=wording.approval_summary(view, LONGEST_IN_SUMMARY))


def _decision(view: ApprovalView, space: Space) -> Iterator[Element]:
    yield rich(bold(wording.outcome(view, space)))
    if view.reason.strip():
        yield rich(bold("Reason: "), words(space.passage(view.reason, wording.LONGEST_REASON)))
    if told := wording.result(view, SIGNS, space):
        yield rich(words(told))


# ------------------------------------------------------------------------------------------------ mentions
# They notify those who may decide. Built from ids and names that Teams gave us.

MOST_MENTIONED = 20
"""People who are mentioned on one card; who else may decide stands in its words."""
_NAME = 60
_IN_NAMES = frozenset(" .,'-")


@dataclass(frozen=True, slots=True)
class CardMention:
    """Somebody who is notified of a card."""

    address: str
    """`29:…`."""
    name: str


def mentioning(card: Element, mentions: Sequence[CardMention]) -> Element:
    """The card with a line for those it is for; as it was, if they are none."""
    called = {f"<at>{plain_name(each.name)}</at>": each for each in mentions[:MOST_MENTIONED]}
    if not called:
        return card
    # Teams finds each entity by its text, which is why two people of one name cannot both be called by it.
    entities = [
        {"type": "mention", "text": text, "mentioned": {"id": each.address, "name": plain_name(each.name)}}
        for text, each in called.items()
    ]
    line = small(f"For {', '.join(called)}")
    return {**card, "body": [*card["body"], line], "msteams": {**card["msteams"], "entities": entities}}


def plain_name(name: str) -> str:
    """A name with nothing in it that means anything in Markdown or in a tag."""
    kept = "".join(c for c in " ".join(name.split()) if c.isalnum() or c in _IN_NAMES).strip()
    return kept[:_NAME] or "approver"
