"""Dialogs: a title and a card. Their buttons carry what `task/submit` brings back, with the inputs beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import LARGE, LONGEST_ARGUMENT_NAME, Excerpt, beginning_of, excerpts, page_of
from adapters.shared.forms import DrawnForm
from adapters.shared.wording import LONGEST_REASON, WHOLE, Space, call_name, line
from adapters.teams.actions import CLOSE, DialogButton
from adapters.teams.render.cards import in_their_words, reason_input
from adapters.teams.render.elements import (
    LARGEST_CARD,
    Card,
    Element,
    Words,
    bold,
    card,
    container,
    escape,
    fitted,
    label,
    menu,
    needed,
    opens_page,
    people_picker,
    rich,
    small,
    submit,
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
from bot.domain import ApprovalView, ConnectionView, Form, Hidden, SignInView, Together
from bot.safe_text import cut_by_size, cut_lines, link_host, visible, written_arguments
from graph.json_values import storable
from policies.approvers import DURATIONS

_TITLE = 60
_HEADING = 500
_NAME = 150
_TEXT = 3_000
_ERROR = 300
_MOST_ERRORS = 8
"""Mistakes that are told at a time."""
_KEPT = 600
_CALL_VALUE = 150
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
def show_all_dialog(view: ApprovalView, page: int, *, decides: bool, asked: bool = False) -> Dialog:
    """All arguments of a call, whole. `page` counts from 0; one that does not exist is the nearest that does.

    `decides`: who opens it may decide, and has the buttons here too, for clients that do not refresh cards. `asked`:
    they asked for it, and may withdraw it.
    """
    shown, page, pages = argument_page(view.arguments, page)
    name = label(_name_of(view), _NAME)
    is_open = view.status == "pending"
    buttons = [
        *_turns(page, pages, actions.PAGE, view.approval_id),
        *(_decision_buttons(view) if decides and is_open else [_close()]),
        *([submit("Withdraw", actions.WITHDRAW, view.approval_id, inputs="none")] if asked and is_open else []),
        *(_show_hidden_button(view) if decides and is_open else []),
    ]
    quoted = in_their_words(view, WHOLE) if page == 0 else []
    unseen = unseen_in_words(view, "") or fingerprint_in_words(view)
    told = [small(escape(text)) for text in (wording.in_brief(view) if is_open else "", unseen) if text]
    body = [rich(bold(wording.page_name(name, page, pages))), *told, *quoted, *shown]
    return Dialog("Show all", card(body, buttons, summary=name), "large", "large")


def hidden_dialog(hidden: Hidden, page: int) -> Dialog:
    """What is behind the masks of a call, for one person who may decide it. `page` as for `show_all_dialog`."""
    shown, page, pages = argument_page(hidden.secrets, page)
    name = label(call_name(hidden.server, hidden.tool), _NAME)
    told = [small(wording.HIDDEN_MEANS), small(escape(fingerprint_in_words(hidden)))]
    buttons = [*_turns(page, pages, actions.SHOW_HIDDEN_PAGE, hidden.approval_id), _close()]
    body = [rich(bold(wording.page_name(name, page, pages))), *told, *shown]
    return Dialog("What is hidden", card(body, buttons, summary="What is hidden"), "large", "large")


def reject_dialog(view: ApprovalView, errors: Mapping[str, str] | None = None, reason: str = "") -> Dialog:
    """The form for the reason of a rejection; `errors` by input, with what was typed."""
    reason = storable(reason)
    fits = len(reason) <= LONGEST_REASON and weight(reason) < LARGEST_CARD // 2
    given = {"value": reason} if reason and fits else {}
    body = [
        rich(bold(label(call_name(view.server, view.tool), _NAME))),
        *mistakes(errors or {}, {actions.REASON: "Reason"}),
        {**reason_input(view), **given},
    ]
    buttons = [submit("Reject", actions.REJECT, view.approval_id, style="destructive")]
    return Dialog("Reject", card(body, buttons, summary="Reject"), "small")


def edit_dialog(
    approval_id: str,
    form: Form,
    errors: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Dialog:
    """The form to edit a waiting call with. Submitting it approves. `values`: what was typed, to be shown again."""
    send = submit("Approve with these changes", actions.EDIT, approval_id, style="positive")
    return _form_dialog("Edit and approve", form, [send], errors or {}, values or {})


def always_dialog(view: ApprovalView) -> Dialog:
    """The form to approve a call with, and always to allow the same one for a while."""
    shown = excerpts(view.arguments, longest=_CALL_VALUE)

    def build(space: Space) -> Element:
        body = [
            _call_in(view, [bold(space.line(_name_of(view), _NAME))], shown(space)),
            menu(actions.DURATION, "For", DURATIONS),
            small(f"{wording.ALWAYS_MEANS}: write “approvals” to me."),
        ]
        return card(
            body, [submit("Approve", actions.ALWAYS, view.approval_id, style="positive")], summary="Always allow"
        )

    return Dialog("Always allow", fitted(build))


def hand_over_dialog(view: ApprovalView, mistake: str = "", address: str = "") -> Dialog:
    """The form to ask somebody else with; `mistake`: what was wrong with it, with what was typed."""
    address = storable(address)
    typed = text_line(actions.ADDRESS, "Or their e-mail address", longest=_ADDRESS)
    body = [
        rich(bold(label(_name_of(view), _NAME))),
        *mistakes({_WHOLE_FORM: mistake} if mistake else {}, {}),
        people_picker(actions.COLLEAGUE, "Who should decide?"),
        {**typed, "value": address} if 0 < len(address) <= _ADDRESS else typed,
        small(
            "They get the card in their direct chat with me. It has to be somebody who may decide this. The address is "
            "for whoever this list does not have, such as somebody who has written to me in Slack."
        ),
    ]
    buttons = [submit("Ask", actions.HAND_OVER, view.approval_id)]
    return Dialog("Ask somebody else", card(body, buttons, summary="Ask somebody else"))


def approve_all_dialog(together: Together) -> Dialog:
    """Everything that one click would approve: what its button carries is exactly what is listed."""
    listed = _listed(together.listed)
    if not listed:
        return note_dialog(wording.TOO_LONG_FOR_A_LIST)
    body = [call for _, call in listed]
    if left := len(together.listed) - len(listed) + together.more:
        body.append(small(wording.more_not_listed(left)))
    subject = " ".join(approval_id for approval_id, _ in listed)
    buttons = [submit(f"Approve {len(listed)}", actions.APPROVE_ALL, subject, style="positive")]
    return Dialog("Approve all", card(body, buttons, summary=f"Approve {len(listed)}"), "large", "large")


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
    send = submit("Answer", actions.ANSWER, clarification_id, style="positive")
    if not server:
        return _form_dialog("Answer", form, [send], errors or {}, values or {})
    decline = submit("Decline", actions.DECLINE, clarification_id, inputs="none")
    cancel = submit("Cancel", actions.CANCEL, clarification_id, inputs="none")
    asker = f"From the tool server {server}"
    return _form_dialog("Answer", form, [send, decline, cancel], errors or {}, values or {}, above=asker)


def note_dialog(text: str) -> Dialog:
    """A dialog that only says something."""
    made = fitted(lambda space: card([rich(words(space.passage(text, _TEXT)))], [_close()], summary=text))
    return Dialog("Countersign", made, "small", "small")


def _close() -> Element:
    return submit("Close", CLOSE, "", inputs="none")


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
        told.append(small(f"And {left:,} more."))
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
        notes.append(f"These stay as they are, being more than a form in Teams can show: {names}")
    if lost:
        names = space.line(", ".join(lost), _KEPT)
        notes.append(f"What you typed here was too long to be shown again, so that it has to be typed anew: {names}")
    return [small(escape(note)) for note in notes]


# ------------------------------------------------------------------ show all
def _turns(page: int, pages: int, action: str, approval_id: str) -> list[Element]:
    """The buttons to the pages before and after."""
    before = [submit("Previous", action, f"{page - 1}:{approval_id}", inputs="none")] if page > 0 else []
    after = [submit("Next", action, f"{page + 1}:{approval_id}", inputs="none")] if page + 1 < pages else []
    return [*before, *after]


def _show_hidden_button(view: ApprovalView) -> list[Element]:
    look = submit("Look at what is hidden…", DialogButton.SHOW_HIDDEN, view.approval_id, inputs="none")
    return [look] if view.masks else []


def _decision_buttons(view: ApprovalView) -> list[Element]:
    send = submit("Reject", actions.REJECT, view.approval_id, style="destructive")
    return [
        submit("Approve", actions.APPROVE, view.approval_id, inputs="none", style="positive"),
        unfolds("Reject…", [reason_input(view)], [send], style="destructive"),
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
    shown = excerpts(view.arguments, longest=_CALL_VALUE)

    def build(space: Space) -> Element:
        name = bold(f"{number}. {space.line(_name_of(view), _NAME)}")
        return _call_in(view, [name, words(f"\n{wording.in_brief(view, space)}")], shown(space)) | {
            "separator": number > 1
        }

    return fitted(build, LARGEST_CARD // 3)


def _name_of(view: ApprovalView) -> str:
    return call_name(view.server, view.tool)


def _call_in(view: ApprovalView, named: Sequence[Words], shown: Excerpt) -> Element:
    pairs = [run for title, value in shown.pairs for run in (bold(f"\n{title}: "), words(value))]
    unseen = unseen_in_words(view, shown.unseen)
    told = [words(f"\n{unseen}", italic=True)] if unseen else []
    return rich(*named, *pairs, *told, spacing="Medium")


# ------------------------------------------------------------ accounts: one-time codes, disconnecting
_LONGEST_SERVICE = 100
_LONGEST_CODE = 40
"""Characters of a code with whatever is pasted around it; it has nine itself."""


def code_dialog(view: SignInView, mistake: str = "") -> Dialog:
    """The form for the code that a browser shows. What was typed is never shown again. `mistake`: what was wrong."""
    typed = {**text_line(actions.CODE, "Code", longest=_LONGEST_CODE), **needed(required=True)}

    def build(space: Space) -> Element:
        service = space.line(view.service or view.server, _LONGEST_SERVICE)
        told = (
            f"Enter the code that your browser shows since you have signed in at {service}. It has to be your own "
            "browser, and a link that I gave to you."
        )
        body = [rich(words(told)), *mistakes({"": mistake} if mistake else {}, {}, space), typed]
        connect = submit("Connect", actions.ENTER_CODE, view.sign_in_id, style="positive")
        return card(body, [connect], summary="Enter the code")

    return Dialog("Enter the code", fitted(build), "small")


def connect_dialog(service: str, link: str) -> Dialog:
    """A link to connect an account, for whoever opens it alone. It is in its button, not in its text."""

    def build(space: Space) -> Element:
        name, host = space.line(service, _LONGEST_SERVICE), link_host(link)
        if not host or weight(link) > LONGEST_LINK:
            text = wording.unreachable(name, "Teams", host)
            return card([rich(words(text))], [_close()], summary=text)
        told = [wording.account_link(name, space.line(host, _NAME)), wording.CODE_IN_THE_END]
        opens = opens_page("Open the sign-in page", link, style="positive")
        return card([rich(words(text)) for text in told], [opens, _close()], summary=told[0])

    return Dialog("Connect an account", fitted(build), "small")


def disconnect_dialog(view: ConnectionView) -> Dialog:
    """Whether a connection is really to be ended."""

    def build(space: Space) -> Element:
        told = (
            "It is of no use to me from then on, and what I keep of it is deleted. When a tool needs it again, I ask "
            "you to sign in anew."
        )
        end = submit("Disconnect", actions.DISCONNECT, view.connection_id, inputs="none", style="destructive")
        keep = submit("Keep it", CLOSE, "", inputs="none")
        body = [rich(bold(f"Disconnect {account_name(view, space)}?")), rich(words(told))]
        return card(body, [end, keep], summary="Disconnect?")

    return Dialog("Disconnect", fitted(build), "small")


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
    return shown or [rich(words("There are no arguments."))], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """A label and its value, or a part of a long one, and the bytes that they take at most."""
    for name, value in written_arguments(arguments):
        title = line(name, 3 * LONGEST_ARGUMENT_NAME)
        shown, others = f"{title}\n", f"{title} (continued)\n"
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
