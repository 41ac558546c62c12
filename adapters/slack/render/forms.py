"""Modals: views to open or update, each with what it remembers of where it was opened, and what was submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import Excerpt, excerpts_of_approval
from adapters.shared.previews import preview_rows
from adapters.shared.wording import line, passage
from adapters.slack.actions import DELETION, INPUT, OPEN_LINK, QUESTION, Modal, Origin, block_of
from adapters.slack.render.blocks import (
    LONGEST_TEXT,
    LONGEST_URL,
    Block,
    button,
    button_row,
    context,
    flow,
    link,
    link_button,
    plain,
    quote,
    rich_text,
    run,
    section,
    sentence,
)
from adapters.slack.render.cards import (
    argument_page,
    details_lines,
    excerpt_of,
    in_their_words,
    pair_blocks,
    preview_blocks,
    summary,
    where_to,
)
from adapters.slack.render.inputs import LONGEST_OPTION, MOST_OPTIONS, drawn_inputs, field_label, text_input
from bot.card_masks import fingerprint_in_words, unseen_in_words
from bot.domain import ApprovalView, Form, Hidden, Person, SignInView, Together
from bot.safe_text import link_host
from policies.approvers import DURATIONS
from translations import gettext as _
from translations import ngettext

LONGEST_METADATA = 3_000
"""Characters of `private_metadata` (Slack)."""
_TITLE = 24
"""Characters of a modal's title and of its buttons (Slack)."""
_MOST_BYTES = 200_000
"""Bytes of all inputs as JSON (Slack: a view has 250 KB)."""
_SMALL_PRINT = 1_900
_CALL_ARGUMENTS = 10
_CALL_VALUE = 150
_NAME = 150
_LONGEST_CODE = 40
"""Characters: a code has nine, and people paste spaces and quotes with it."""


def edit_modal(form: Form, view: ApprovalView, origin: Origin, person: Person) -> Block:
    """The form to edit a waiting call with. Submitting it approves."""
    blocks = [*_titled(view), *_inputs(form, person), *_asked_once_more([view])]
    return _modal(_("Edit"), blocks, Modal.EDIT, origin, _("Save and approve"))


def answer_modal(form: Form, origin: Origin, person: Person, server: str = "") -> Block:
    """The form to answer a question with; `server`: the tool server that asks, empty: the model does."""
    asker = _("{server} asks this and gets the answer. Never share a password.").format(server=line(server, _NAME))
    asked = [context(plain(asker))] if server else []
    yes = _("Answer") if form.fields else _("Accept")
    return _modal(_("Answer"), [*asked, *_form_blocks(form, person)], Modal.ANSWER, origin, yes)


def code_modal(view: SignInView, origin: Origin) -> Block:
    """The form for the one-time code that the browser showed at the end of a sign-in."""
    typed = {"type": "plain_text_input", "action_id": INPUT, "max_length": _LONGEST_CODE}
    blocks = [
        sentence(_("After you sign in to {where}, your browser shows a code.").format(where=where_to(view))),
        {
            "type": "input",
            "block_id": block_of(actions.CODE),
            "label": plain(_("Code")),
            "hint": plain(
                _("For example K7QM-3DZP. Enter only a code from your own browser, never one you were sent.")
            ),
            "element": typed,
        },
    ]
    return _modal(_("Enter code"), blocks, Modal.CODE, origin, _("Connect"))


def reject_modal(view: ApprovalView, origin: Origin) -> Block:
    """The form for the reason of a rejection."""
    blocks = [
        *_titled(view),
        text_input(
            actions.REASON,
            wording.reason_label(),
            optional=not view.reason_required,
            hint=_("Helps improve the next proposal."),
        ),
    ]
    return _modal(_("Reject"), blocks, Modal.REJECT, origin, _("Reject"))


def withdraw_modal(view: ApprovalView, origin: Origin) -> Block:
    """Asks whoever asked for a call once more before it is withdrawn."""
    blocks = [
        *_titled(view),
        sentence(
            _("This cancels the request. Only {name} can withdraw it.").format(
                name=line(view.requester, wording.LONGEST_NAME)
            )
        ),
    ]
    return _modal(_("Withdraw request?"), blocks, Modal.WITHDRAW, origin, _("Withdraw"))


def _titled(view: ApprovalView) -> list[Block]:
    return [
        rich_text(flow([run(wording.call_title(view), "bold")])),
        context(plain(wording.in_brief(view))),
        *_again(view),
    ]


def _again(view: ApprovalView) -> list[Block]:
    """Why it is asked again."""
    return [context(plain(line(view.again, wording.LONGEST_AGAIN)))] if view.again else []


def always_modal(view: ApprovalView, origin: Origin) -> Block:
    """The form to approve a call with, and always to allow the same one for a while."""
    shown = excerpt_of(view, _CALL_ARGUMENTS, _CALL_VALUE)
    options = [{"text": plain(text), "value": value} for value, text in _durations()]
    menu = {"type": "static_select", "action_id": INPUT, "options": options, "initial_option": options[0]}
    lines = [*summary(shown.pairs), *_previewed(view), *_unseen(view, shown)]
    blocks = [
        *_titled(view),
        *([rich_text(flow(lines))] if lines else []),
        {"type": "input", "block_id": block_of(actions.DURATION), "label": plain(_("Allow for")), "element": menu},
        context(plain(wording.always_means()), plain(_("Revoke it anytime in the Home tab."))),
        *_asked_once_more([view]),
    ]
    return _modal(_("Allow for a while"), blocks, Modal.ALWAYS, origin, _("Approve and allow"))


def _durations() -> list[tuple[str, str]]:
    """How long a standing approval can be for: the policy's name of it, and what people read."""
    return [(name, _duration(seconds)) for name, seconds in DURATIONS.items()]


def _duration(seconds: float) -> str:
    hours = round(seconds / 3_600)
    if hours % 24:
        return ngettext("{count} hour", "{count} hours", hours).format(count=hours)
    return ngettext("{count} day", "{count} days", hours // 24).format(count=hours // 24)


def hand_over_modal(view: ApprovalView, origin: Origin, colleagues: Sequence[Person] | None = None) -> Block:
    """The form to ask somebody else with.

    Args:
        colleagues: those who can be asked; `None`: not all are known, so that whoever is chosen is judged afterwards.
    """
    if colleagues is not None:
        return _choosing_among(colleagues[:MOST_OPTIONS], view, origin)
    menu = {"type": "users_select", "action_id": INPUT}
    typed = {"type": "email_text_input", "action_id": INPUT}
    blocks = [
        *_titled(view),
        {
            "type": "input",
            "block_id": block_of(actions.COLLEAGUE),
            "label": plain(_("Who should decide?")),
            "hint": plain(_("They get this card directly. Choose someone who can approve it.")),
            "optional": True,
            "element": menu,
        },
        {
            "type": "input",
            "block_id": block_of(actions.ADDRESS),
            "label": plain(_("Or their email address")),
            "hint": plain(_("For someone elsewhere, such as in Teams, who has messaged me there.")),
            "optional": True,
            "element": typed,
        },
    ]
    return _modal(_("Ask someone else"), blocks, Modal.HAND_OVER, origin, _("Ask"))


def _choosing_among(colleagues: Sequence[Person], view: ApprovalView, origin: Origin) -> Block:
    title = _("Ask someone else")
    if not colleagues:
        return note_modal(title, _("No one else here can approve this."))
    options = [
        {"text": plain(line(each.name or each.person_id, LONGEST_OPTION)), "value": each.person_id}
        for each in colleagues
    ]
    asked = {
        "type": "input",
        "block_id": block_of(actions.COLLEAGUE),
        "label": plain(_("Who should decide?")),
        "hint": plain(_("They get this card directly.")),
        "element": {"type": "static_select", "action_id": INPUT, "options": options},
    }
    return _modal(title, [*_titled(view), asked], Modal.HAND_OVER, origin, _("Ask"))


def approve_all_modal(together: Together, origin: Origin) -> Block:
    """Everything that one click would approve. Its origin's subjects are exactly those that are listed."""
    listed = _fitting(together.listed, origin)
    if not listed:
        return note_modal(_("Approve all"), wording.too_long_for_a_list())
    fitting, blocks = [view for view, _call in listed], [call for _view, call in listed]
    if left := len(together.listed) - len(fitting) + together.more:
        blocks.append(context(plain(wording.more_not_listed(left))))
    blocks += _asked_once_more(fitting)
    approve = _("Approve {count}").format(count=len(fitting))
    return _modal(_("Approve all"), blocks, Modal.APPROVE_ALL, _about(fitting, origin), approve)


def arguments_modal(
    view: ApprovalView, page: int, origin: Origin, *, decides: bool = False, console: str = ""
) -> Block:
    """All of a call: its values letter by letter, why it is asked, and once it is settled, what came of it.

    Args:
        page: counts from 0; one that does not exist is the nearest that does.
        decides: whether whoever reads it may decide: then it approves, with a note.
        console: where operators see its turn; empty: whoever reads it is none.
    """
    waits = view.status == "pending"
    exact = unseen_in_words(view, "") or fingerprint_in_words(view)
    asked = [wording.in_brief(view), wording.why(view)]
    told = [*(asked if waits else [*details_lines(view), wording.call_source(view)]), exact]
    edited = (
        [] if waits or view.asked_arguments is None else pair_blocks(excerpts_of_approval(view)(wording.WHOLE).pairs)
    )
    blocks = _paged(
        wording.call_title(view),
        told,
        view.arguments,
        page,
        action=actions.PAGE,
        approval_id=view.approval_id,
        above=[*_again(view), *in_their_words(view), *edited, *(preview_blocks(view) if waits else [])],
    )
    if console:
        blocks.append(rich_text(flow([link(console, wording.open_turn())])))
    title = _("Request") if waits else _("Details")
    if not (waits and decides):
        return _modal(title, blocks, Modal.NOTE, origin)
    note = text_input(actions.NOTE, wording.note_label(), optional=True)
    blocks = [*blocks, note, *_asked_once_more([view])]
    return _modal(title, blocks, Modal.SHOW_ALL, replace(origin, subject=view.approval_id), _("Approve"))


def _asked_once_more(views: Sequence[ApprovalView]) -> list[Block]:
    """What has to be ticked before a modal approves something that deletes: unlike a button, what submits a modal
    cannot ask for confirmation."""
    count = sum(map(wording.deletes, views))
    if not count:
        return []
    if len(views) == 1:
        label = _("This deletes data. It may not be possible to undo it.")
    else:
        label = ngettext(
            "{count} of these requests deletes data. It may not be possible to undo it.",
            "{count} of these requests delete data. It may not be possible to undo it.",
            count,
        ).format(count=f"{count:,}")
    option = {"text": plain(_("Yes, delete")), "value": "yes"}
    element = {"type": "checkboxes", "action_id": INPUT, "options": [option]}
    return [{"type": "input", "block_id": DELETION, "label": plain(f"⚠️ {label}"), "element": element}]


def hidden_modal(hidden: Hidden, page: int, origin: Origin) -> Block:
    """What is behind the masks of a call, for one person who may decide it. `page` as for `arguments_modal`."""
    told = [wording.hidden_means(), fingerprint_in_words(hidden)]
    name = f"{hidden.server} › {hidden.tool}"
    blocks = _paged(name, told, hidden.secrets, page, action=actions.SHOW_HIDDEN_PAGE, approval_id=hidden.approval_id)
    return _modal(_("Hidden values"), blocks, Modal.NOTE, origin)


def _paged(
    name: str,
    told: Sequence[str],
    arguments: Mapping[str, Any],
    page: int,
    *,
    action: str,
    approval_id: str,
    above: Sequence[Block] = (),
) -> list[Block]:
    shown, page, pages = argument_page(arguments, page)
    title = wording.page_name(line(name, _NAME), page, pages)
    blocks = [rich_text(flow([run(title, "bold")])), *map(context, map(plain, _in_lines(told))), *above]
    # Two rows of buttons, since the two have the same action_id, which is to be unique in a row (Slack).
    if page > 0:
        blocks.append(_turn(_("Previous"), action, page - 1, approval_id))
    blocks += shown
    if page + 1 < pages:
        blocks.append(_turn(_("Next"), action, page + 1, approval_id))
    return blocks


def _in_lines(texts: Sequence[str]) -> list[str]:
    """The texts one below the other, as many together as one element of small print holds (Slack: 2,000 characters)."""
    made: list[str] = []
    for text in filter(None, texts):
        if made and len(made[-1]) + len(text) < _SMALL_PRINT:
            made[-1] += f"\n{text}"
        else:
            made.append(text)
    return made


def ask_modal(quoted: str, origin: Origin) -> Block:
    """The form of the message shortcut: what to do about a message."""
    blocks = [
        rich_text(quote(passage(quoted, LONGEST_TEXT))),
        text_input(QUESTION, _("What should I do about it?")),
    ]
    return _modal(_("Ask Countersign"), blocks, Modal.ASK, origin, _("Ask"))


def connect_modal(service: str, link: str) -> Block:
    """A link to connect an account, for whom it is opened for alone. It is in its button, not in its text."""
    name, host = line(service, _NAME), link_host(link)
    if not host or len(link) > LONGEST_URL:
        return note_modal(wording.connect_title(), wording.unreachable(name, "Slack", host))
    told = wording.account_link(name, line(host, _NAME))
    opens = button_row(link_button(_("Open sign-in page"), OPEN_LINK, link))
    return _modal(
        wording.connect_title(), [sentence(told), sentence(wording.code_in_the_end()), opens], Modal.CONNECT, Origin()
    )


def note_modal(title: str, text: str) -> Block:
    """A modal that only says something."""
    return _modal(title, [section(plain(passage(text, LONGEST_TEXT)))], Modal.NOTE, Origin())


def _modal(title: str, blocks: Sequence[Block], callback_id: str, origin: Origin, submit: str = "") -> Block:
    view: Block = {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": origin.dump(),
        "title": plain(_cut(title)),
        "close": plain(_("Cancel") if submit else _("Close")),
        "blocks": list(blocks),
    }
    return {**view, "submit": plain(_cut(submit))} if submit else view


def _cut(text: str) -> str:
    """A title or the label of a button, in whatever language, within what Slack takes."""
    return line(text, _TITLE)


# ------------------------------------------------------------------------------------------------ forms
def _form_blocks(form: Form, person: Person) -> list[Block]:
    title = rich_text(flow([run(passage(form.title, LONGEST_TEXT), "bold")]))
    return [title, *_inputs(form, person)]


def _inputs(form: Form, person: Person) -> list[Block]:
    made = drawn_inputs(form, person)
    names = line(", ".join(map(field_label, made.kept)), LONGEST_TEXT - 100)
    kept = [context(plain(_("Not editable here: {names}").format(names=names)))]
    return [*(each.input for each in made.drawn), *(kept if made.kept else [])]


# ------------------------------------------------------------------------------------------------ approve all
def _about(views: Sequence[ApprovalView], origin: Origin) -> Origin:
    return replace(origin, subject=" ".join(view.approval_id for view in views))


def _fitting(views: Sequence[ApprovalView], origin: Origin) -> Sequence[tuple[ApprovalView, Block]]:
    """The first of them, as many as a modal can list and remember, each with what is shown of it."""
    fitting: list[tuple[ApprovalView, Block]] = []
    size = 0
    for view in views:
        call = _call(len(fitting) + 1, view)
        size += len(json.dumps(call))
        about = _about([*(listed for listed, _block in fitting), view], origin)
        if size > _MOST_BYTES or len(about.dump()) > LONGEST_METADATA:
            break
        fitting.append((view, call))
    return fitting


def _call(number: int, view: ApprovalView) -> Block:
    shown = excerpt_of(view, _CALL_ARGUMENTS, _CALL_VALUE)
    name = run(f"{number}. {wording.call_title(view)}", "bold")
    brief = run(f"\n{wording.in_brief(view)}")
    again = [run(f"\n{line(view.again, wording.LONGEST_AGAIN)}")] if view.again else []
    return rich_text(flow([name, *again, *summary(shown.pairs), *_previewed(view), brief, *_unseen(view, shown)]))


def _previewed(view: ApprovalView) -> list[Block]:
    """What the call would change, below the tool that says so; nothing where no preview is named for it."""
    preview = preview_rows(view, longest=_CALL_VALUE)
    if preview is None:
        return []
    told = " · ".join(filter(None, [preview.source, preview.problem, preview.hidden]))
    return [run(f"\n{told}", "italic"), *summary([(row.label, row.change) for row in preview.rows])]


def _unseen(view: ApprovalView, shown: Excerpt) -> list[Block]:
    told = " · ".join(filter(None, [shown.source, unseen_in_words(view, shown.unseen)]))
    return [run(f"\n{told}", "italic")] if told else []


# ------------------------------------------------------------------------------------------------ pages
def _turn(text: str, action: str, page: int, approval_id: str) -> Block:
    return {"type": "actions", "elements": [button(text, action, f"{page}:{approval_id}")]}
