"""The card of an approval: everything a person needs to decide, and afterwards what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import Excerpt, excerpts, excerpts_of_approval, unchanged_in_words
from adapters.shared.previews import PREVIEW_ROWS, PREVIEW_VALUE, preview_rows
from adapters.shared.wording import WHOLE, Space
from adapters.teams.actions import DialogButton, dialog_data
from adapters.teams.render.elements import (
    Element,
    action_set,
    bold,
    card,
    escape,
    execute,
    fact_set,
    fitted,
    folded,
    in_menu,
    opens_dialog,
    rich,
    small,
    text_block,
    text_input,
    titled,
    toggles,
    unfolds,
    words,
)
from adapters.teams.render.inputs import reader_clock, reader_time
from bot.card_masks import unseen_in_words
from bot.dates import number_in_words
from bot.domain import ApprovalView, ChangeView, Content, GrantView, OutcomeView
from bot.safe_text import labels
from translations import gettext as _

LONGEST_IN_SUMMARY = 120
"""Characters of a name, and of who may decide, in the sentence that stands for a card."""
SIGNS = {"info": "", "success": "✓ ", "error": "✕ ", "warning": "⚠ "}
DETAILS = "details"
"""Under what name the rest of a settled card is folded."""
_ENDS = {"approved": "✓ ", "rejected": "✕ ", "expired": "⌛ ", "superseded": "↷ ", "withdrawn": "↩ ", "void": "↻ "}
"""What a settled card begins with, where its call has not run."""
_NOTICED = ("destroys", "reaches outside")
"""What a call may do that stands beside its title."""
_LONGEST_REASON = 500
"""Characters of a reason, or of what came of a call, before its card is unfolded."""


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

    `decides`: they have the buttons. `asked`: they asked for it, and may withdraw it, or retry it. `hint`: what stands
    where the buttons are not. `refresh`: that property of the card. `mentions`: who is notified of it, while it waits.
    """
    arguments = excerpts_of_approval(view, below_title=True)

    def build(space: Space) -> Element:
        shown = arguments(space)
        if view.status != "pending":
            retry = [execute(_("Retry"), actions.RETRY, view.approval_id)] if asked and view.retry_offered else []
            return {**_settled(view, shown, space, retry), **(refresh or {})}
        looking = [_show_all(view), *([_withdraw(view)] if asked else [])]
        buttons = _deciding(view, asked=asked) if decides else looking
        made = _pending(view, shown, space, buttons, "" if decides else hint)
        return {**mentioning(made, mentions), **(refresh or {})}

    return fitted(build)


def has_asked(content: Content, person: str) -> bool:
    """Whether it is this person's own request."""
    match content:
        case ApprovalView():
            return content.requester_ids[:1] == (person,)
        case ChangeView():
            return content.requester_id == person
        case _:
            return False


def reason_input(view: ApprovalView) -> Element:
    """The input for the reason of a rejection."""
    title = wording.reason_label()
    return text_input(actions.REASON, title, required=view.reason_required, longest=wording.LONGEST_REASON)


def approving(view: ApprovalView, button: Element, fallback: Element | None = None) -> Element:
    """The button that approves. Where a call may delete something it asks once more, unfolded below.

    `fallback`: what stands there in clients that cannot unfold.
    """
    if not wording.deletes(view):
        return button
    asks = _("{title}?").format(title=wording.call_title(view))
    return asking_once_more(_("Approve…"), asks, _("This deletes data."), button, fallback)


def asking_once_more(
    title: str, question: str, warning: str, button: Element, fallback: Element | None = None
) -> Element:
    """A button that unfolds the question and the one that means it. `question` and `warning` are literal; `fallback` as
    for `approving`."""
    body = [
        text_block(escape(question), weight="Bolder"),
        text_block(escape(warning), color="Attention", spacing="Small"),
    ]
    properties = {"fallback": fallback} if fallback else {}
    return unfolds(title, body, [button], style="positive", **properties)


def brief(view: ApprovalView, space: Space = WHOLE) -> str:
    """Who asks, by which tool, and what is to be noticed of the call, on one line of a list."""
    asked = wording.requested_by(view, space)
    return " · ".join(filter(None, [asked, wording.call_source(view, space), _noticed(view, space)]))


def unseen_note(
    view: ApprovalView | OutcomeView | GrantView | ChangeView, shown: Excerpt, advice: str = ""
) -> list[Element]:
    """What of the arguments is not on the card letter by letter, if anything, and where what an id stands for is
    from."""
    told = " · ".join(filter(None, [shown.source, unseen_in_words(view, shown.unseen, advice)]))
    return [small(escape(told))] if told else []


# ------------------------------------------------------------------------------------------------ waiting
def _pending(view: ApprovalView, shown: Excerpt, space: Space, buttons: Sequence[Element], hint: str) -> Element:
    # An id that is shown by what it stands for is nothing to worry about: what tells it from others comes last.
    is_quiet = shown.only_ids and not view.masks and not view.confusing
    unseen = unseen_note(view, shown)
    body = [
        _title(view, space),
        small(escape(_context(view, space))),
        *([small(escape(wording.line(view.again, space.of(wording.LONGEST_AGAIN))))] if view.again else []),
        *in_their_words(view, space),
        *facts_and_preview(view, shown.pairs, space),
        *([] if is_quiet else unseen),
        *(small(escape(told)) for told in (wording.votes(view, space), wording.vetoes(view, space)) if told),
        *_approvers(view, space),
        *(unseen if is_quiet else []),
        *([small(escape(hint))] if hint else []),
    ]
    return card(body, buttons, summary=wording.approval_summary(view, LONGEST_IN_SUMMARY))


def facts_and_preview(view: ApprovalView, pairs: Sequence[tuple[str, str]], space: Space) -> list[Element]:
    """The values of a call, then what it would change, below the tool that says so, where one is named for it: a row of
    a preview is not to be taken for a value that runs."""
    told = preview_rows(view, max(1, int(PREVIEW_ROWS * space.share)), space.of(PREVIEW_VALUE))
    if told is None:
        return fact_set(pairs)
    if told.problem:
        return [*fact_set(pairs), small(escape(told.problem))]
    rows = [(row.label, row.change) for row in told.rows]
    above = " · ".join(filter(None, [told.source, told.hidden]))
    return [*fact_set(pairs), small(escape(above)), *fact_set(rows)]


def _title(view: ApprovalView, space: Space) -> Element:
    """What the call does, and beside it what is to be noticed of it: that it deletes, or reaches outside."""
    colour = "Attention" if wording.deletes(view) else "Accent"
    return titled(wording.call_title(view, space), _noticed(view, space), colour)


def _noticed(view: ApprovalView, space: Space) -> str:
    """That a call deletes, or reaches outside; empty for a plain change, since every request is one."""
    note = wording.risk(replace(view, risk=tuple(risk for risk in view.risk if risk in _NOTICED)), space)
    return f"⚠ {note}" if wording.deletes(view) else note


def _context(view: ApprovalView, space: Space) -> str:
    """Who asks, and by which tool."""
    asked = wording.requested_by(view, space)
    return " · ".join([asked, wording.call_source(view, space)])


def _approvers(view: ApprovalView, space: Space) -> Iterator[Element]:
    approvers = _("Approver: {names}").format(names=wording.deciders_line(view, space))
    yield small(" · ".join([escape(approvers), *wording.deadlines(view, reader_time)]))
    if others := wording.handed_to(view, space):
        yield small(escape(_("Also asked: {names}").format(names=others)))


def in_their_words(view: ApprovalView, space: Space) -> list[Element]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    who, what = wording.written(view, space)
    return [rich(bold(f"{who} "), words(what, italic=True))]


def _deciding(view: ApprovalView, *, asked: bool) -> list[Element]:
    """The buttons of whoever may decide: at most four, and a menu. Nobody decides where nothing of a long call was
    read.

    A client without such menus shows six buttons of a row: “Show all”, whose dialog has all the rest under “More…”, is
    among these. In dialogs that menu does not open on phones (https://github.com/MicrosoftDocs/msteams-docs/issues/9212),
    so that they have none.
    """
    approval = view.approval_id
    if view.unread:
        return [_show_all(view)]
    dialog = opens_dialog(_("Approve…"), actions.SHOW_ALL, approval, style="positive")
    approve = execute(_("Approve"), actions.APPROVE, approval, style="positive")
    several = _("Approve all {count}…").format(count=number_in_words(view.together))
    return [
        approving(view, approve, dialog),
        _reject(view),
        *([opens_dialog(_("Edit…"), DialogButton.EDIT, approval)] if view.editable else []),
        *([opens_dialog(several, DialogButton.APPROVE_ALL, approval)] if view.together > 1 else []),
        *map(in_menu, [_show_all(view), *(opens_dialog(title, name, approval) for title, name in rare(view))]),
        *([in_menu(_withdraw(view))] if asked else []),
    ]


def rare(view: ApprovalView) -> Iterator[tuple[str, str]]:
    """What else whoever may decide can do: words and names of the buttons."""
    if view.always_offered:
        yield _("Allow for a while…"), DialogButton.ALWAYS
    if view.handing_offered:
        yield _("Ask someone else…"), DialogButton.HAND_OVER
    if view.masks:
        yield _("Look at hidden values…"), DialogButton.SHOW_HIDDEN


def _withdraw(view: ApprovalView) -> Element:
    return opens_dialog(_("Withdraw…"), DialogButton.WITHDRAW, view.approval_id)


def _reject(view: ApprovalView) -> Element:
    """The reason and its button, unfolded below; a dialog where a client cannot unfold."""
    send = execute(_("Reject"), actions.REJECT, view.approval_id, inputs="auto", style="destructive")
    dialog = {
        "type": "Action.Submit",
        "title": _("Reject…"),
        "data": dialog_data(DialogButton.REJECT, view.approval_id),
    }
    return unfolds(_("Reject…"), [reason_input(view)], [send], fallback=dialog)


def _show_all(view: ApprovalView) -> Element:
    return opens_dialog(_("Show all"), actions.SHOW_ALL, view.approval_id)


# ------------------------------------------------------------------------------------------------ settled
def _settled(view: ApprovalView, shown: Excerpt, space: Space, retry: Sequence[Element]) -> Element:
    """Two lines: what, and how it ended; the rest is unfolded."""
    body = [
        _what_came_of_it(view, shown, space),
        small(_how_it_ended(view, space)),
        *_why(view, space),
        folded(DETAILS, _details(view, shown, space)),
    ]
    buttons = [*retry, toggles(_("Details"), DETAILS)]
    return card(body, buttons, summary=wording.approval_summary(view, LONGEST_IN_SUMMARY))


def _what_came_of_it(view: ApprovalView, shown: Excerpt, space: Space) -> Element:
    title = wording.call_title(view, space)
    if view.status == "approved" and view.result_tone == "error":
        why = space.line(view.result, _LONGEST_REASON) if view.result.strip() else _("Failed")
        red = {"color": "Attention"}
        return rich(words(SIGNS["error"], **red), bold(title, **red), words(f" · {why}", **red))
    sign = _ENDS[view.status]
    if view.status == "approved":
        sign = SIGNS[view.result_tone] or sign
    style: dict[str, Any] = {} if view.status == "approved" else {"isSubtle": True}
    at = when(view, shown)
    return rich(words(sign, **style), bold(title, **style), words(f" · {at}" if at else "", **style))


def when(view: ApprovalView | ChangeView, shown: Excerpt) -> str:
    """For when the call is, where one of its arguments says so; else nothing."""
    times = {name for name, each in view.presentation.arguments.items() if each.kind in ("date", "date-time")}
    called = {_("When"), *labels(times).values(), *(view.presentation.arguments[name].title for name in times)}
    return next((value for name, value in shown.pairs if name in called), "") if times else ""


def _how_it_ended(view: ApprovalView, space: Space) -> str:
    told = [escape(wording.outcome_and_why(view, space))]
    if view.decided_at is not None:
        told = [_("{outcome}, {time}").format(outcome=told[0], time=reader_clock(view.decided_at))]
    if edited := wording.edited(view, space):
        told.append(escape(edited))
    return " · ".join(told)


def _why(view: ApprovalView, space: Space) -> Iterator[Element]:
    """Why it was rejected, or is not valid any more."""
    if view.reason.strip():
        reason = _("Reason: {reason}").format(reason=space.line(view.reason, _LONGEST_REASON))
        yield small(escape(reason))
    if view.status == "void" and view.result.strip() and not wording.says_why_again(view):
        yield small(escape(wording.result(view, SIGNS, space)))


def _details(view: ApprovalView, shown: Excerpt, space: Space) -> list[Element]:
    """Everything else that there is to know of it."""
    at = [] if view.decided_at is None else [f"{wording.end(view.status)}: {reader_time(view.decided_at)}"]
    return [
        *in_their_words(view, space),
        *facts_and_preview(view, [*_whole_reason(view, space), *_result(view, space), *shown.pairs], space),
        *([small(escape(same))] if (same := unchanged_in_words(shown)) else []),
        *unseen_note(view, shown),
        *(small(escape(note)) for note in wording.notes(view, space)),
        small(escape(wording.call_source(view, space))),
        *(small(escape(told)) for told in wording.provenance(view, space)),
        *map(small, at),
        action_set(opens_dialog(_("Show all"), actions.SHOW_ALL, view.approval_id)),
    ]


def _whole_reason(view: ApprovalView, space: Space) -> Iterator[tuple[str, str]]:
    if len(view.reason) > _LONGEST_REASON or "\n" in view.reason.strip():
        yield _("Reason"), space.passage(view.reason, wording.LONGEST_REASON)


def _result(view: ApprovalView, space: Space) -> Iterator[tuple[str, str]]:
    is_above = view.status == "void" or view.result_tone == "error"
    if not is_above and (told := wording.result(view, SIGNS, space)):
        yield _("Result"), told


# ------------------------------------------------------------------------------------------------ unasked changes
def change_card(view: ChangeView, *, asked: bool, refresh: Mapping[str, Any] | None = None) -> Element:
    """A change that was made without asking, on one quiet line. `asked`: for whoever asked for it, who may revoke the
    standing approval that allowed it. `refresh` as for `approval_card`."""
    arguments = excerpts(view.arguments, presentation=view.presentation, below=view)

    def build(space: Space) -> Element:
        shown = arguments(space)
        line = escape(wording.change_line(view, SIGNS, space, when(view, shown)))
        revoke = [execute(_("Revoke"), actions.REVOKE, view.grant_id)] if asked and view.grant_id else []
        details = [
            *fact_set(
                [*shown.pairs, *([(_("Result"), space.line(view.result, _LONGEST_REASON))] if view.result else [])]
            ),
            *unseen_note(view, shown),
            small(escape(wording.call_source(view, space))),
            small(escape(wording.requested_by(view, space))),
        ]
        colour = {"color": "Attention", "isSubtle": False} if view.result_tone == "error" else {}
        body = [{**small(line), **colour}, folded(DETAILS, details)]
        buttons = [*revoke, toggles(_("Details"), DETAILS)]
        return {**card(body, buttons, summary=wording.change_line(view, SIGNS)), **(refresh or {})}

    return fitted(build)


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
    line = small(_("For {names}").format(names=", ".join(called)))
    return {**card, "body": [*card["body"], line], "msteams": {**card["msteams"], "entities": entities}}


def plain_name(name: str) -> str:
    """A name with nothing in it that means anything in Markdown or in a tag."""
    kept = "".join(c for c in " ".join(name.split()) if c.isalnum() or c in _IN_NAMES).strip()
    return kept[:_NAME] or _("approver")
