"""Dialogs: a title and a card. Their buttons carry what `task/submit` brings back, with the inputs beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import LARGE, LONGEST_ARGUMENT_NAME, Excerpt, beginning_of, excerpts, page_of
from adapters.shared.forms import DrawnForm
from adapters.shared.previews import PREVIEW_ROWS, preview_rows
from adapters.shared.wording import LONGEST_REASON, WHOLE, Space, call_name, line
from adapters.teams.actions import CLOSE, DialogButton
from adapters.teams.render.cards import SIGNS, approving, asking_once_more, brief, in_their_words, rare, reason_input
from adapters.teams.render.elements import (
    LARGEST_CARD,
    Card,
    Element,
    Words,
    bold,
    card,
    container,
    escape,
    fact_set,
    fitted,
    label,
    menu,
    needed,
    opens_page,
    people_picker,
    rich,
    small,
    submit,
    text_input,
    text_line,
    unfolds,
    weight,
    words,
)
from adapters.teams.render.inputs import DrawnInput, Elements, field_label, filled, inputs
from adapters.teams.render.markdown import units
from adapters.teams.render.overview import account_name
from adapters.teams.render.questions import LONGEST_LINK
from bot.card_masks import fingerprint_in_words, unseen_in_words
from bot.characters import CleanParts
from bot.dates import number_in_words
from bot.domain import ApprovalView, ConnectionView, Form, Hidden, SignInView, Together
from bot.safe_text import cut_by_size, cut_lines, link_host, visible, written_arguments
from graph.json_values import storable
from policies.approvers import DURATIONS
from translations import gettext as _
from translations import ngettext

_TITLE = 60
_HEADING = 500
_NAME = 150
_TEXT = 3_000
_ERROR = 300
_MOST_ERRORS = 8
"""Mistakes that are told at a time."""
_KEPT = 600
_CALL_VALUE = 150
_NOTE_BYTES = 3 * 1024
"""Bytes of a note as JSON that is shown again on another page; a longer one has to be typed once more."""
_PREVIEW_BYTES = 2_000
"""Bytes of a preview above a page of arguments, which takes 20 KB itself."""
_ADDRESS = 320
"""Characters of an e-mail address (RFC 3696)."""
_WHOLE_FORM = ""
_SEEN_AT_ONCE = 3
"""Inputs that fit into a dialog of medium height."""


@dataclass(frozen=True, slots=True)
class Dialog:
    """What `task/fetch` and `task/submit` are answered with."""

    title: str
    card: Card
    height: str = "medium"
    """`small`, `medium` or `large`."""
    width: str = "medium"


# ------------------------------------------------------------------ approvals
def show_all_dialog(
    view: ApprovalView, page: int, *, decides: bool, asked: bool = False, note: str = "", console: str = ""
) -> Dialog:
    """All arguments of a call, whole. `page` counts from 0; one that does not exist is the nearest that does.

    `decides`: who opens it may decide, and has all the buttons here, with a note for the assistant; also for clients
    that do not refresh cards, or have no menus on them. `asked`: they asked for it, and may withdraw it. `note`: what
    was typed on another page. `console`: where operators see its turn; empty: who opens it is none.
    """
    shown, page, pages = argument_page(view.arguments, page)
    title = wording.call_title(view)
    is_open = view.status == "pending"
    deciding = decides and is_open and not view.unread
    rare = _rare(view, decides=deciding, asked=asked and is_open)
    buttons = [
        *(_decision_buttons(view) if deciding else []),
        *_turns(page, pages, actions.PAGE, view.approval_id, inputs="auto" if deciding else "none"),
        *([unfolds(_("More…"), [small(_("What else you can do:"))], rare)] if rare else []),
    ]
    above = [*_again(view), *in_their_words(view, WHOLE), *_preview_in(view), *_end(view)] if page == 0 else []
    told = unseen_in_words(view, "") or fingerprint_in_words(view)
    body = [
        rich(bold(wording.page_name(title, page, pages))),
        *map(small, map(escape, filter(None, [*_brief(view), told]))),
        *above,
        *shown,
        *([small(f"[{wording.open_turn()}]({console})")] if console else []),
        *([_note_input(note)] if deciding else []),
    ]
    return Dialog(_("Show all"), card(body, buttons or [_close()], summary=title), "large", "large")


def _brief(view: ApprovalView) -> list[str]:
    """By which tool, who asks, and by which rule it takes an approval."""
    parts = [wording.call_source(view), wording.risk(view)]
    return [" · ".join(filter(None, parts)), *wording.provenance(view)]


def _again(view: ApprovalView) -> list[Element]:
    """Why it is asked again."""
    return [small(escape(line(view.again, wording.LONGEST_AGAIN)))] if view.again else []


def _preview_in(view: ApprovalView) -> list[Element]:
    """What it would change, while it waits."""
    if view.status != "pending" or preview_rows(view) is None:
        return []
    return [fitted(lambda space: rich(*_previewed(view, space)), _PREVIEW_BYTES)]


def _end(view: ApprovalView) -> Iterator[Element]:
    """How it ended, by what reason, and what came of it."""
    if view.status == "pending":
        return
    edited = wording.edited(view)
    yield rich(bold(wording.outcome(view)), words(f" · {edited}" if edited else ""), spacing="Medium")
    reason = [(_("Reason"), WHOLE.passage(view.reason, LONGEST_REASON))] if view.reason.strip() else []
    result = [(_("Result"), told)] if (told := wording.result(view, SIGNS)) else []
    yield from fact_set([*reason, *result])
    yield from (small(escape(note)) for note in wording.notes(view))


def _note_input(note: str) -> Element:
    given = {"value": note} if note and len(note) <= LONGEST_REASON and weight(note) < _NOTE_BYTES else {}
    made = text_input(actions.NOTE, wording.note_label(), required=False, longest=LONGEST_REASON)
    return {**made, **given, "separator": True}


def hidden_dialog(hidden: Hidden, page: int) -> Dialog:
    """What is behind the masks of a call, for one person who may decide it. `page` as for `show_all_dialog`."""
    shown, page, pages = argument_page(hidden.secrets, page)
    name = label(call_name(hidden.server, hidden.tool), _NAME)
    told = [small(wording.hidden_means()), small(escape(fingerprint_in_words(hidden)))]
    buttons = [*_turns(page, pages, actions.SHOW_HIDDEN_PAGE, hidden.approval_id), _close()]
    body = [rich(bold(wording.page_name(name, page, pages))), *told, *shown]
    return Dialog(_("Hidden values"), card(body, buttons, summary=_("Hidden values")), "large", "large")


def reject_dialog(view: ApprovalView, errors: Mapping[str, str] | None = None, reason: str = "") -> Dialog:
    """The form for the reason of a rejection; `errors` by input, with what was typed."""
    reason = storable(reason)
    fits = len(reason) <= LONGEST_REASON and weight(reason) < LARGEST_CARD // 2
    given = {"value": reason} if reason and fits else {}
    body = [
        rich(bold(wording.call_title(view))),
        *mistakes(errors or {}, {actions.REASON: _("Reason")}),
        {**reason_input(view), **given},
    ]
    buttons = [submit(_("Reject"), actions.REJECT, view.approval_id, style="destructive")]
    return Dialog(_("Reject"), card(body, buttons, summary=_("Reject")), "small")


def withdraw_dialog(view: ApprovalView) -> Dialog:
    """Whether a request is really to be withdrawn."""
    body = [rich(bold(wording.call_title(view))), small(_("This cancels the request."))]
    end = submit(_("Withdraw"), actions.WITHDRAW, view.approval_id, inputs="none", style="destructive")
    return Dialog(_("Withdraw"), card(body, [end, _keep()], summary=_("Withdraw")), "small", "small")


def edit_dialog(
    approval_id: str,
    form: Form,
    errors: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    view: ApprovalView | None = None,
) -> Dialog:
    """The form to edit a waiting call with. Submitting it approves, after one more question where the call may delete
    something. `values`: what was typed, to be shown again. `view`: of the call; `None`: it is gone."""
    send = submit(_("Save and approve"), actions.EDIT, approval_id, style="positive")
    send = send if view is None else approving(view, send)
    return _form_dialog(_("Edit"), form, [send], errors or {}, values or {})


def always_dialog(view: ApprovalView) -> Dialog:
    """The form to approve a call with, and always to allow the same one for a while."""
    shown = excerpts(view.arguments, longest=_CALL_VALUE, presentation=view.presentation, below=view)

    def build(space: Space) -> Element:
        revoking = _("To revoke this, write “approvals” to me.")
        body = [
            _call_in(view, [bold(wording.call_title(view, space))], shown(space), space),
            menu(actions.DURATION, _("For"), duration_choices()),
            small(f"{wording.always_means()} {revoking}"),
        ]
        send = submit(_("Approve and allow"), actions.ALWAYS, view.approval_id, style="positive")
        return card(body, [send], summary=_("Allow for a while"))

    return Dialog(_("Allow for a while"), fitted(build))


def duration_choices() -> Mapping[str, str]:
    """For how long a call can always be allowed: what is sent → what people read."""
    said = {"1 h": _("1 hour"), "8 h": _("8 hours"), "7 days": _("7 days")}
    return {name: said.get(name, name) for name in DURATIONS}


def hand_over_dialog(view: ApprovalView, mistake: str = "", address: str = "") -> Dialog:
    """The form to ask someone else with; `mistake`: what was wrong with it, with what was typed."""
    address = storable(address)
    typed = text_line(actions.ADDRESS, _("Or their email address"), longest=_ADDRESS)
    body = [
        rich(bold(wording.call_title(view))),
        *mistakes({_WHOLE_FORM: mistake} if mistake else {}, {}),
        people_picker(actions.COLLEAGUE, _("Approver")),
        {**typed, "value": address} if 0 < len(address) <= _ADDRESS else typed,
        small(_("They get this request in their chat with me. Only someone who may approve it can be asked.")),
    ]
    buttons = [submit(_("Ask"), actions.HAND_OVER, view.approval_id)]
    return Dialog(_("Ask someone else"), card(body, buttons, summary=_("Ask someone else")))


def approve_all_dialog(together: Together) -> Dialog:
    """Everything that one click would approve: what its button carries is exactly what is listed."""
    listed = _listed(together.listed)
    if not listed:
        return note_dialog(wording.too_long_for_a_list())
    body = [call for _id, call in listed]
    if left := len(together.listed) - len(listed) + together.more:
        body.append(small(wording.more_not_listed(left)))
    subject = " ".join(approval_id for approval_id, _call in listed)
    title = _("Approve {count}").format(count=number_in_words(len(listed)))
    button = submit(title, actions.APPROVE_ALL, subject, style="positive")
    if deleting := sum(map(wording.deletes, together.listed[: len(listed)])):
        button = _asked_once_more(len(listed), deleting, button)
    return Dialog(_("Approve all"), card(body, [button], summary=title), "large", "large")


def _asked_once_more(count: int, deleting: int, button: Element) -> Element:
    """What approves a list of which some requests delete data."""
    asks = ngettext("Approve {count} request?", "Approve {count} requests?", count).format(count=number_in_words(count))
    some = ngettext("{count} of them deletes data.", "{count} of them delete data.", deleting)
    warning = some.format(count=number_in_words(deleting)) if count > 1 else _("This deletes data.")
    return asking_once_more(_("Approve {count}…").format(count=number_in_words(count)), asks, warning, button)


# ------------------------------------------------------------------ the rest
def answer_dialog(
    clarification_id: str,
    form: Form,
    errors: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    server: str = "",
) -> Dialog:
    """The form to answer a question with. `values`: what was typed, to be shown again. `server`: name of the tool
    server that asks, and takes no for an answer."""
    send = submit(_("Answer"), actions.ANSWER, clarification_id, style="positive")
    if not server:
        return _form_dialog(_("Answer"), form, [send], errors or {}, values or {})
    decline = submit(_("Decline"), actions.DECLINE, clarification_id, inputs="none")
    cancel = submit(_("Cancel"), actions.CANCEL, clarification_id, inputs="none")
    asker = _("From the tool server {server}").format(server=server)
    return _form_dialog(_("Answer"), form, [send, decline, cancel], errors or {}, values or {}, above=asker)


def note_dialog(text: str) -> Dialog:
    """A dialog that only says something."""
    made = fitted(lambda space: card([rich(words(space.passage(text, _TEXT)))], [_close()], summary=text))
    return Dialog("Countersign", made, "small", "small")


def _close() -> Element:
    return submit(_("Close"), CLOSE, "", inputs="none")


def _keep() -> Element:
    return submit(_("Keep it"), CLOSE, "", inputs="none")


# ------------------------------------------------------------------ forms
def _form_dialog(
    title: str,
    form: Form,
    buttons: Sequence[Element],
    errors: Mapping[str, str],
    values: Mapping[str, Any],
    *,
    above: str = "",
) -> Dialog:
    made = inputs(form)
    drawn = filled(made, values)
    names = {each.field.name: field_label(each.field) for each in drawn}

    def build(space: Space) -> Element:
        body = [
            *([rich(words(space.line(above, _NAME)))] if above else []),
            rich(bold(space.passage(form.title, _HEADING))),
            *mistakes(errors, names, space),
            *(element for each in drawn for element in each.input),
            *_notes(made, drawn, values, space),
        ]
        return card(body, buttons, summary=title)

    return Dialog(title, fitted(build), "large" if len(drawn) > _SEEN_AT_ONCE else "medium")


def mistakes(errors: Mapping[str, str], names: Mapping[str, str], space: Space | None = None) -> list[Element]:
    """What is wrong and how to mend it, above the inputs, where it is read first; `names`: what fields are called."""
    space = space or WHOLE
    told = []
    for field, sentence in list(errors.items())[:_MOST_ERRORS]:
        where = "" if field == _WHOLE_FORM else f"{space.line(names.get(field, field), _NAME)}: "
        told.append(rich(bold(where), words(space.line(sentence, _ERROR)), spacing="Small"))
    if left := len(errors) - len(told):
        told.append(small(ngettext("{count} more", "{count} more", left).format(count=number_in_words(left))))
    return [container("attention", *told)] if told else []


def _notes(
    made: DrawnForm[Elements], drawn: Sequence[DrawnInput], values: Mapping[str, Any], space: Space
) -> list[Element]:
    """What the form does not show."""
    lost = [
        field_label(now.field)
        for now, before in zip(drawn, made.drawn, strict=True)
        if now is before and now.field.name in values
    ]
    notes = []
    if made.kept:
        names = space.line(", ".join(map(field_label, made.kept)), _KEPT)
        notes.append(_("Not editable here: {names}").format(names=names))
    if lost:
        names = space.line(", ".join(lost), _KEPT)
        notes.append(_("Too long to show again; type it once more: {names}").format(names=names))
    return [small(escape(note)) for note in notes]


# ------------------------------------------------------------------ show all
def _turns(page: int, pages: int, action: str, approval_id: str, *, inputs: str = "none") -> list[Element]:
    """The buttons to the pages before and after. `inputs`: `auto` where something is typed that is to be kept."""
    before = [submit(_("Previous"), action, f"{page - 1}:{approval_id}", inputs=inputs)] if page > 0 else []
    after = [submit(_("Next"), action, f"{page + 1}:{approval_id}", inputs=inputs)] if page + 1 < pages else []
    return [*before, *after]


def _rare(view: ApprovalView, *, decides: bool, asked: bool) -> list[Element]:
    """What else whoever sees this can do."""
    offered = [*(rare(view) if decides else ()), *([(_("Withdraw…"), DialogButton.WITHDRAW)] if asked else [])]
    return [submit(title, name, view.approval_id, inputs="none") for title, name in offered]


def _decision_buttons(view: ApprovalView) -> list[Element]:
    send = submit(_("Reject"), actions.REJECT, view.approval_id, style="destructive")
    return [
        approving(view, submit(_("Approve"), actions.APPROVE, view.approval_id, style="positive")),
        unfolds(_("Reject…"), [reason_input(view)], [send]),
    ]


# ------------------------------------------------------------------ approve all
def _listed(views: Sequence[ApprovalView]) -> Sequence[tuple[str, Element]]:
    """The first of them, as many as a dialog can list: id and what is shown."""
    fitting: list[tuple[str, Element]] = []
    size = 2_000  # of all that is around the list
    for number, view in enumerate(views, 1):
        call = _call(number, view)
        size += weight(call) + weight(view.approval_id) + 2
        if size > LARGEST_CARD:
            break
        fitting.append((view.approval_id, call))
    return fitting


def _call(number: int, view: ApprovalView) -> Element:
    shown = excerpts(view.arguments, longest=_CALL_VALUE, presentation=view.presentation, below=view)

    def build(space: Space) -> Element:
        name = bold(f"{number}. {wording.call_title(view, space)}")
        made = _call_in(view, [name], shown(space), space, brief(view, space))
        return made | {"separator": number > 1}

    return fitted(build, LARGEST_CARD // 3)


def _call_in(view: ApprovalView, named: Sequence[Words], shown: Excerpt, space: Space, asked: str = "") -> Element:
    """A call in a few lines: what it does, why it is asked again, with which values, and what it would change; then who
    asks (`asked`)."""
    again = [words(f"\n{space.line(view.again, wording.LONGEST_AGAIN)}")] if view.again else []
    about = [words(f"\n{asked}", size="Small", isSubtle=True)] if asked else []
    unseen = " · ".join(filter(None, [shown.source, unseen_in_words(view, shown.unseen)]))
    told = [words(f"\n{unseen}", italic=True)] if unseen else []
    return rich(*named, *again, *_pairs_in(shown.pairs), *_previewed(view, space), *told, *about, spacing="Medium")


def _previewed(view: ApprovalView, space: Space) -> list[Words]:
    """What the call would change, below the tool that says so; nothing where no preview is named for it."""
    preview = preview_rows(view, max(1, int(PREVIEW_ROWS * space.share)), space.of(_CALL_VALUE))
    if preview is None:
        return []
    told = " · ".join(filter(None, [preview.source, preview.problem, preview.hidden]))
    return [words(f"\n{told}", italic=True), *_pairs_in([(row.label, row.change) for row in preview.rows])]


def _pairs_in(pairs: Sequence[tuple[str, str]]) -> list[Words]:
    return [run for title, value in pairs for run in (bold(f"\n{title}: "), words(value))]


# ------------------------------------------------------------ accounts: one-time codes, disconnecting
_LONGEST_SERVICE = 100
_LONGEST_CODE = 40
"""Characters of a code with whatever is pasted around it; it has nine itself."""


def code_dialog(view: SignInView, mistake: str = "") -> Dialog:
    """The form for the code that a browser shows. What was typed is never shown again. `mistake`: what was wrong."""
    typed = {**text_line(actions.CODE, _("Code"), longest=_LONGEST_CODE), **needed(required=True)}

    def build(space: Space) -> Element:
        service = space.line(view.service or view.server, _LONGEST_SERVICE)
        told = _(
            "Enter the code that your browser shows after signing in to {service}. Only do this with a link that I "
            "gave you."
        ).format(service=service)
        body = [rich(words(told)), *mistakes({"": mistake} if mistake else {}, {}, space), typed]
        connect = submit(_("Connect"), actions.ENTER_CODE, view.sign_in_id, style="positive")
        return card(body, [connect], summary=_("Enter the code"))

    return Dialog(_("Enter the code"), fitted(build), "small")


def connect_dialog(service: str, link: str) -> Dialog:
    """A link to connect an account, for whoever opens it alone. It is in its button, not in its text."""

    def build(space: Space) -> Element:
        name, host = space.line(service, _LONGEST_SERVICE), link_host(link)
        if not host or weight(link) > LONGEST_LINK:
            text = wording.unreachable(name, "Teams", host)
            return card([rich(words(text))], [_close()], summary=text)
        told = [wording.account_link(name, space.line(host, _NAME)), wording.code_in_the_end()]
        opens = opens_page(_("Open the sign-in page"), link, style="positive")
        return card([rich(words(text)) for text in told], [opens, _close()], summary=told[0])

    return Dialog(_("Connect an account"), fitted(build), "small")


def disconnect_dialog(view: ConnectionView) -> Dialog:
    """Whether a connection is really to be ended."""

    def build(space: Space) -> Element:
        told = _("I can’t use it from then on, and delete what I store of it. You sign in again when a tool needs it.")
        end = submit(_("Disconnect"), actions.DISCONNECT, view.connection_id, inputs="none", style="destructive")
        asks = _("Disconnect {account}?").format(account=account_name(view, space))
        return card([rich(bold(asks)), rich(words(told))], [end, _keep()], summary=_("Disconnect"))

    return Dialog(_("Disconnect"), fitted(build), "small")


# ------------------------------------------------------------------ all arguments of a call

PAGE_BYTES = 20 * 1024
"""Bytes on one page of the dialog that shows everything, so that there is space around it."""
_BOX_BYTES = 9 * 1024
_AROUND = 200
"""Bytes that a box takes without its text."""
_ESCAPED = 6
"""Bytes of a character that JSON escapes."""
_MARK = 24
"""Bytes of `⟨U+10FFFF⟩`, and some."""


def argument_page(arguments: Mapping[str, Any], number: int) -> tuple[list[Element], int, int]:
    """All arguments, whole, on pages of at most 20 KB: the elements of one page, its number from 0 and how many there
    are, at least one. A page that does not exist is the nearest that does."""
    page = page_of(_boxes(arguments), number, PAGE_BYTES)
    shown = [_box(label, text) for label, text in page.boxes]
    return shown or [rich(words(_("No values")))], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """A label and its value, or a part of a long one, and the bytes that they take at most."""
    for name, value in written_arguments(arguments):
        title = line(name, 3 * LONGEST_ARGUMENT_NAME)
        shown, others = f"{title}\n", _("{title} (continued)").format(title=title) + "\n"
        around, around_others = (weight(each) + _AROUND for each in (shown, others))
        for text, size in _cut(value):
            yield shown, text, weight(_box(shown, text)) + 2 if len(value) <= LARGE else around + size
            shown, around = others, around_others


def _box(title: str, text: str) -> Element:
    return rich(bold(title), words(visible(text), fontType="Monospace"), spacing="Medium")


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the bytes that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) > LARGE:
        longest = _BOX_BYTES // 2 if value.isascii() else _BOX_BYTES // _ESCAPED
        yield from cut_by_size(value, _BOX_BYTES, _widest_in(value), longest=longest)
    elif value.strip():
        yield from ((text, 0) for text in _fitting(visible(value), _BOX_BYTES - _AROUND))
    else:
        yield beginning_of(value, LONGEST_ARGUMENT_NAME)[0], 0


def _widest_in(text: str) -> Callable[[int, int], int]:
    """Bytes that what stands from one place to another takes at most when it is visible; to be asked from left to
    right."""
    clean = CleanParts(text).is_clean

    def widest(start: int, end: int) -> int:
        if not clean(start, end):
            return _MARK * (end - start)
        part = text[start:end]
        # Blanks at the beginning of a line, and the second of two, become hard ones.
        if part.isascii():
            return len(part) * (_ESCAPED if "  " in part or "\n " in part else 2)
        return units(part) * _ESCAPED

    return widest


def _fitting(text: str, longest: int) -> Iterator[str]:
    for part in cut_lines(text, longest):
        if weight({"inlines": words(part)}) <= _BOX_BYTES:
            yield part
        else:
            yield from _fitting(part, len(part) // 2)
