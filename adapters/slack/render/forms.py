"""Modals: views to open or update, each with what it remembers of where it was opened, and what was submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import Excerpt, excerpt
from adapters.shared.wording import call_name, line, passage
from adapters.slack.actions import INPUT, OPEN_LINK, QUESTION, Modal, Origin, block_of
from adapters.slack.render.blocks import (
    LONGEST_TEXT,
    LONGEST_URL,
    Block,
    button,
    button_row,
    context,
    flow,
    link_button,
    plain,
    quote,
    rich_text,
    run,
    section,
    sentence,
)
from adapters.slack.render.cards import argument_page, summary, where_to
from adapters.slack.render.inputs import drawn_inputs, field_label, text_input
from bot.card_masks import fingerprint_in_words, unseen_in_words
from bot.domain import ApprovalView, Form, Hidden, Person, SignInView, Together
from bot.safe_text import link_host
from policies.approvers import DURATIONS

LONGEST_METADATA = 3_000
"""Characters of `private_metadata` (Slack)."""
_TITLE = 24
"""Characters of a modal's title and of its buttons (Slack)."""
_MOST_BYTES = 200_000
"""Bytes of all inputs as JSON (Slack: a view has 250 KB)."""
_CALL_ARGUMENTS = 10
_CALL_VALUE = 150
_NAME = 150
_CONNECT = "Connect an account"
_LONGEST_CODE = 40
"""Characters: a code has nine, and people paste spaces and quotes with it."""


def edit_modal(form: Form, origin: Origin, person: Person) -> Block:
    """The form to edit a waiting call with. Submitting it approves."""
    return _modal("Edit and approve", _form_blocks(form, person), Modal.EDIT, origin, "Approve")


def answer_modal(form: Form, origin: Origin, person: Person, server: str = "") -> Block:
    """The form to answer a question with; `server`: the tool server that asks, empty: the model does."""
    asker = f"The tool server {line(server, _NAME)} asks, and gets the answer. Never tell it a password."
    asked = [context(plain(asker))] if server else []
    yes = "Answer" if form.fields else "Accept"
    return _modal("Answer", [*asked, *_form_blocks(form, person)], Modal.ANSWER, origin, yes)


def code_modal(view: SignInView, origin: Origin) -> Block:
    """The form for the one-time code that the browser showed at the end of a sign-in."""
    typed = {"type": "plain_text_input", "action_id": INPUT, "max_length": _LONGEST_CODE}
    blocks = [
        sentence(f"Your browser shows a code after you have signed in at {where_to(view)}."),
        {
            "type": "input",
            "block_id": block_of(actions.CODE),
            "label": plain("Code"),
            "hint": plain("Such as K7QM-3DZP. Only a code from your own browser: never one that somebody sent you."),
            "element": typed,
        },
    ]
    return _modal("Enter code", blocks, Modal.CODE, origin, "Connect")


def reject_modal(view: ApprovalView, origin: Origin) -> Block:
    """The form for the reason of a rejection."""
    blocks = [
        sentence(line(call_name(view.server, view.tool), _NAME)),
        text_input(actions.REASON, "Reason", optional=not view.reason_required),
    ]
    return _modal("Reject", blocks, Modal.REJECT, origin, "Reject")


def always_modal(view: ApprovalView, origin: Origin) -> Block:
    """The form to approve a call with, and always to allow the same one for a while."""
    shown = excerpt(view.arguments, _CALL_ARGUMENTS, _CALL_VALUE)
    name = run(line(call_name(view.server, view.tool), _NAME), "bold")
    options = [{"text": plain(words), "value": words} for words in DURATIONS]
    menu = {"type": "static_select", "action_id": INPUT, "options": options, "initial_option": options[0]}
    blocks = [
        rich_text(flow([name, *summary(shown.pairs), *_unseen(view, shown)])),
        {"type": "input", "block_id": block_of(actions.DURATION), "label": plain("For"), "element": menu},
        context(plain(f"{wording.ALWAYS_MEANS} in the Home tab.")),
    ]
    return _modal("Always allow", blocks, Modal.ALWAYS, origin, "Approve")


def hand_over_modal(view: ApprovalView, origin: Origin) -> Block:
    """The form to ask somebody else with."""
    menu = {"type": "users_select", "action_id": INPUT}
    typed = {"type": "email_text_input", "action_id": INPUT}
    blocks = [
        sentence(line(call_name(view.server, view.tool), _NAME)),
        {
            "type": "input",
            "block_id": block_of(actions.COLLEAGUE),
            "label": plain("Who should decide?"),
            "hint": plain("They get the card directly. It has to be somebody who may decide this."),
            "optional": True,
            "element": menu,
        },
        {
            "type": "input",
            "block_id": block_of(actions.ADDRESS),
            "label": plain("Or their e-mail address"),
            "hint": plain("For somebody who is elsewhere, such as in Teams, and has written to me there."),
            "optional": True,
            "element": typed,
        },
    ]
    return _modal("Ask somebody else", blocks, Modal.HAND_OVER, origin, "Ask")


def approve_all_modal(together: Together, origin: Origin) -> Block:
    """Everything that one click would approve. Its origin's subjects are exactly those that are listed."""
    listed = _fitting(together.listed, origin)
    if not listed:
        return note_modal("Approve all", wording.TOO_LONG_FOR_A_LIST)
    fitting, blocks = [view for view, _ in listed], [call for _, call in listed]
    if left := len(together.listed) - len(fitting) + together.more:
        blocks.append(context(plain(wording.more_not_listed(left))))
    return _modal("Approve all", blocks, Modal.APPROVE_ALL, _about(fitting, origin), f"Approve {len(fitting)}")


def arguments_modal(view: ApprovalView, page: int, origin: Origin) -> Block:
    """All arguments of a call, whole. `page` counts from 0; one that does not exist is the nearest that does."""
    told = [unseen_in_words(view, "") or fingerprint_in_words(view)]
    name = call_name(view.server, view.tool)
    blocks = _paged(name, told, view.arguments, page, action=actions.PAGE, approval_id=view.approval_id)
    return _modal("Show all", blocks, Modal.NOTE, origin)


def hidden_modal(hidden: Hidden, page: int, origin: Origin) -> Block:
    """What is behind the masks of a call, for one person who may decide it. `page` as for `arguments_modal`."""
    told = [wording.HIDDEN_MEANS, fingerprint_in_words(hidden)]
    name = call_name(hidden.server, hidden.tool)
    blocks = _paged(name, told, hidden.secrets, page, action=actions.SHOW_HIDDEN_PAGE, approval_id=hidden.approval_id)
    return _modal("What is hidden", blocks, Modal.NOTE, origin)


def _paged(
    name: str, told: Sequence[str], arguments: Mapping[str, Any], page: int, *, action: str, approval_id: str
) -> list[Block]:
    shown, page, pages = argument_page(arguments, page)
    title = wording.page_name(line(name, _NAME), page, pages)
    blocks = [sentence(title), *(context(plain(text)) for text in told if text)]
    # Two rows of buttons, since the two have the same action_id, which is to be unique in a row (Slack).
    if page > 0:
        blocks.append(_turn("Previous", action, page - 1, approval_id))
    blocks += shown
    if page + 1 < pages:
        blocks.append(_turn("Next", action, page + 1, approval_id))
    return blocks


def ask_modal(quoted: str, origin: Origin) -> Block:
    """The form of the message shortcut: what to do about a message."""
    blocks = [
        rich_text(quote(passage(quoted, LONGEST_TEXT))),
        text_input(QUESTION, "What should I do about it?"),
    ]
    return _modal("Ask Countersign", blocks, Modal.ASK, origin, "Ask")


def connect_modal(service: str, link: str) -> Block:
    """A link to connect an account, for whom it is opened for alone. It is in its button, not in its text."""
    name, host = line(service, _NAME), link_host(link)
    if not host or len(link) > LONGEST_URL:
        return note_modal(_CONNECT, wording.unreachable(name, "Slack", host))
    told = wording.account_link(name, line(host, _NAME))
    opens = button_row(link_button("Open the sign-in page", OPEN_LINK, link))
    return _modal(_CONNECT, [sentence(told), sentence(wording.CODE_IN_THE_END), opens], Modal.CONNECT, Origin())


def note_modal(title: str, text: str) -> Block:
    """A modal that only says something."""
    return _modal(line(title, _TITLE), [section(plain(passage(text, LONGEST_TEXT)))], Modal.NOTE, Origin())


def _modal(title: str, blocks: Sequence[Block], callback_id: str, origin: Origin, submit: str = "") -> Block:
    view: Block = {
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": origin.dump(),
        "title": plain(title),
        "close": plain("Cancel" if submit else "Close"),
        "blocks": list(blocks),
    }
    return {**view, "submit": plain(submit)} if submit else view


# ------------------------------------------------------------------------------------------------ forms
def _form_blocks(form: Form, person: Person) -> list[Block]:
    made = drawn_inputs(form, person)
    names = line(", ".join(map(field_label, made.kept)), LONGEST_TEXT - 100)
    kept = [context(plain(f"These stay as they are, being more than a form in Slack can show: {names}"))]
    title = rich_text(flow([run(passage(form.title, LONGEST_TEXT), "bold")]))
    return [title, *(each.input for each in made.drawn), *(kept if made.kept else [])]


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
        about = _about([*(listed for listed, _ in fitting), view], origin)
        if size > _MOST_BYTES or len(about.dump()) > LONGEST_METADATA:
            break
        fitting.append((view, call))
    return fitting


def _call(number: int, view: ApprovalView) -> Block:
    shown = excerpt(view.arguments, _CALL_ARGUMENTS, _CALL_VALUE)
    name = run(f"{number}. {line(call_name(view.server, view.tool), _NAME)}", "bold")
    brief = run(f"\n{wording.in_brief(view)}")
    return rich_text(flow([name, brief, *summary(shown.pairs), *_unseen(view, shown)]))


def _unseen(view: ApprovalView, shown: Excerpt) -> list[Block]:
    unseen = unseen_in_words(view, shown.unseen)
    return [run(f"\n{unseen}", "italic")] if unseen else []


# ------------------------------------------------------------------------------------------------ pages
def _turn(text: str, action: str, page: int, approval_id: str) -> Block:
    return {"type": "actions", "elements": [button(text, action, f"{page}:{approval_id}")]}
