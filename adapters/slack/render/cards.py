"""Cards of approvals, questions and sign-ins: what is needed to decide, then what was decided and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import (
    CARD_ARGUMENTS,
    CARD_VALUE,
    LARGE,
    LONGEST_ARGUMENT_NAME,
    Excerpt,
    call_asked_in,
    excerpts,
    excerpts_of_approval,
    page_of,
    unchanged_in_words,
)
from adapters.shared.previews import preview_rows
from adapters.shared.wording import line, passage
from adapters.slack.actions import ASK_TO_WITHDRAW, MENU, OPEN_LINK, fits_menu, menu_value
from adapters.slack.render.blocks import (
    LONGEST_URL,
    Block,
    SlackMessage,
    button,
    button_row,
    confirmed,
    context,
    escape,
    fields,
    flow,
    link_button,
    mention,
    mrkdwn,
    overflow,
    piece,
    plain,
    preformatted,
    quote,
    reader_time,
    rich_text,
    run,
    section,
    sentence,
)
from bot.card_masks import unseen_in_words
from bot.dates import number_in_words
from bot.domain import ApprovalView, ChangeView, ClarificationView, GrantView, OutcomeView, SignInView
from bot.safe_text import cut_by_size, cut_lines, link_host, visible, widest_in, written_arguments
from translations import gettext as _
from translations import ngettext

SIGNS = {"info": "", "success": "✓ ", "error": "❌ ", "warning": "⚠️ "}
_ENDED = {"approved": "✓ ", "rejected": "✕ "}
"""Before what was settled and has no result; what ended without a decision has a dash."""
_WITHOUT_DECISION = "– "
_MOST_MENTIONS = 20
_MOST_PIECES = 5
"""Elements of a line of small print (Slack: 10) that may say who may decide."""
_SETTLED_VALUES = 200
"""Characters of the values of a settled call, beside its title."""
_PLAIN = re.compile(r"(?:[^\W_]|[ .,;:'’“”„()\[\]/+&%!?€$£·›→–—#-])+")
"""Text in which nothing is formatting, a link, a mention or an emoji, once `&` is escaped."""
_EMOJI = re.compile(r":[^\W_](?:[^\W_]|[+'-])*:|//")


def approval_card(view: ApprovalView, team: str) -> SlackMessage:
    """The message of an approval as it is now; `team` is the workspace in which it is shown."""
    blocks = _pending(view, team) if view.status == "pending" else _settled(view)
    return piece(blocks, wording.approval_summary(view, wording.LONGEST_NAMES))


# ------------------------------------------------------------------------------------------------ buttons
def decision_buttons(view: ApprovalView, *others: Block) -> list[Block]:
    """The row of a waiting approval: at most five, since Slack's phones hide more behind three dots. Nobody decides
    where nothing of a long call was read."""
    approval = view.approval_id
    if view.unread:
        return [button(_("Show all"), actions.SHOW_ALL, approval), *others]
    made = [_approve_button(view), button(_("Reject…"), actions.REJECT, approval)]
    if view.editable:
        made.append(button(_("Edit…"), actions.EDIT, approval))
    if view.together > 1:
        label = _("Approve all {count}…").format(count=number_in_words(view.together))
        made.append(button(label, actions.APPROVE_ALL, approval))
    return [*made, *others]


def _approve_button(view: ApprovalView) -> Block:
    approve = button(_("Approve"), actions.APPROVE, view.approval_id, "primary")
    if not wording.deletes(view):
        return approve
    title = line(wording.call_title(view), wording.LONGEST_TITLE)
    asks = f"{title}\n{_('This deletes data. It may not be possible to undo it.')}"
    return confirmed(approve, _("Delete data?"), asks, _("Approve"))


def menu(view: ApprovalView, *, withdraws: bool) -> list[Block]:
    """The menu behind ⋯, of five entries at most (Slack), or buttons in its place where the id is too long for an
    entry. A card in Slack is the same for everybody, so that some see entries that they are refused.

    Args:
        withdraws: whether whoever asked sees it.
    """
    entries = [
        *([] if view.unread else [(_("Show all"), actions.SHOW_ALL)]),
        *([(_("Allow for a while…"), actions.ALWAYS)] if view.always_offered else []),
        *([(_("Ask someone else…"), actions.HAND_OVER)] if view.handing_offered else []),
        *([(_("Look at hidden values…"), actions.SHOW_HIDDEN)] if view.masks else []),
        *([(_("Withdraw…"), ASK_TO_WITHDRAW)] if withdraws else []),
    ]
    if not entries:
        return []
    if not fits_menu(view.approval_id):
        return [button(text, action, view.approval_id) for text, action in entries]
    return [overflow(MENU, [(text, menu_value(action, view.approval_id)) for text, action in entries])]


def button_rows(elements: Sequence[Block]) -> list[Block]:
    """Rows of at most five, since Slack's phones hide more of a row."""
    return [button_row(*elements[start : start + 5]) for start in range(0, len(elements), 5)]


def in_their_words(view: ApprovalView) -> list[Block]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    who, what = wording.written(view)
    return [rich_text(flow([run(who, "bold")]), quote(what))]


def unseen_note(
    view: ApprovalView | OutcomeView | ChangeView | GrantView, shown: Excerpt, advice: str | None = None
) -> list[Block]:
    """Returns what stands beside the buttons: which arguments are not on the card letter by letter, if any, and where
    what an id stands for is from."""
    unseen = unseen_in_words(view, shown.unseen, _("“Show all” has everything.") if advice is None else advice)
    return [context(*map(plain, told))] if (told := [text for text in (shown.source, unseen) if text]) else []


# ------------------------------------------------------------------------------------------------ waiting
def _pending(view: ApprovalView, team: str) -> list[Block]:
    shown = excerpts_of_approval(view, below_title=True)(wording.WHOLE)
    return [
        rich_text(flow([run(wording.call_title(view), "bold")])),
        context(plain(wording.in_brief(view))),
        *([context(plain(line(view.again, wording.LONGEST_AGAIN)))] if view.again else []),
        *in_their_words(view),
        *pair_blocks(shown.pairs),
        *preview_blocks(view),
        *unseen_note(view, shown),
        context(*_approvers(view, team), *map(mrkdwn, wording.deadlines(view, reader_time))),
        *([context(*map(plain, told))] if (told := _so_far(view)) else []),
        *button_rows(decision_buttons(view, *menu(view, withdraws=True))),
    ]


def asked_through(view: wording.Asking) -> list[Block]:
    """Who asks, and through which program or agent, where it is not the default agent."""
    return [context(plain(wording.requested_by(view)))] if wording.is_through_another(view) else []


def _so_far(view: ApprovalView) -> list[str]:
    """Who has voted, and who was asked to."""
    others = wording.handed_to(view)
    asked = _("Also asked: {names}").format(names=others) if others else ""
    return [told for told in (wording.votes(view), wording.vetoes(view), asked) if told]


def _approvers(view: ApprovalView, team: str) -> Iterator[Block]:
    """Who may decide, in words, in which people and groups that have no name yet are shown by Slack's; then mentions,
    which notify everybody else of them."""
    told = [mention(approver, team) for approver in view.approvers]
    everybody = list(dict.fromkeys(made for made in told if made))
    if view.quorum == 1 and not view.four_eyes and all(told) and 0 < len(everybody) <= _MOST_MENTIONS:
        sentence = ngettext("Approver: {names}", "Approvers: {names}", len(everybody))
        yield mrkdwn(sentence.format(names=", ".join(everybody)))
        return
    rest = _("Approver: {names}").format(names=wording.deciders_line(view))
    named = 0
    shown = set()
    for reference, element in _nameless(view, team):
        before, found, after = rest.partition(reference)
        if found and named < _MOST_PIECES - 2:
            yield from (plain(part) for part in [before.strip()] if part)
            yield mrkdwn(element)
            named += 2
            rest = after
            shown.add(element)
    if rest.strip():
        yield plain(rest.strip())
    if others := [made for made in everybody[:_MOST_MENTIONS] if made not in shown]:
        yield mrkdwn(" ".join(others))


def _nameless(view: ApprovalView, team: str) -> list[tuple[str, str]]:
    """References that the words hold as such, with the mention of each, in the order in which they stand there."""
    mentions = {approver: made for approver in view.approvers if (made := mention(approver, team))}
    found = {reference: view.may_decide.find(reference) for reference in mentions}
    return [(r, mentions[r]) for r in sorted(mentions, key=lambda r: found[r]) if found[r] >= 0]


# ------------------------------------------------------------------------------------------------ settled
def _settled(view: ApprovalView) -> list[Block]:
    """Two lines: what, and how it ended; everything else is behind Details."""
    shown = settled_excerpt(view)
    details = button(_("Details"), actions.SHOW_ALL, view.approval_id)
    titled = what_and_values(sign_of(view), wording.call_title(view), [value for _label, value in shown.pairs])
    retry = [button(_("Retry"), actions.RETRY, view.approval_id)] if view.retry_offered else []
    is_told = view.result_tone != "success" and not wording.says_why_again(view)
    told = wording.result(view, NO_SIGNS) if is_told else ""
    return [
        section(titled) if retry else {**section(titled), "accessory": details},
        *([sentence(told)] if told else []),
        context(*_decision(view), *(plain(told) for told in [unchanged_in_words(shown)] if told)),
        *unseen_note(view, shown, _("“Details” has everything.")),
        *([button_row(*retry, details)] if retry else []),
    ]


NO_SIGNS = dict.fromkeys(SIGNS, "")


def sign_of(view: ApprovalView) -> str:
    """Returns what stands before a settled call: what came of it, or how it was decided."""
    if view.status == "approved" and view.result_tone in ("error", "warning"):
        return SIGNS[view.result_tone]
    return _ENDED.get(view.status, _WITHOUT_DECISION)


def what_and_values(sign: str, title: str, values: Sequence[str]) -> Block:
    """Returns a title and its values on one line. The title is bold where nothing in the line could be formatting."""
    return _titled(sign, title, "".join(f" · {value}" for value in values))


def title_and_text(sign: str, title: str, text: str) -> Block:
    """Returns a title with a text on the line below it, likewise."""
    return _titled(sign, title, f"\n{text}" if text else "")


def _titled(sign: str, title: str, rest: str) -> Block:
    if is_plain(f"{title}{rest}".replace("\n", " ")):
        return mrkdwn(f"{sign}*{escape(title)}*{escape(rest)}")
    return plain(f"{sign}{title}{rest}")


def is_plain(text: str) -> bool:
    """Returns whether nothing in a text could be formatting."""
    return bool(_PLAIN.fullmatch(text)) and not _EMOJI.search(text) and text == text.strip()


def _decision(view: ApprovalView) -> Iterator[Block]:
    """Who decided, when, why, and who edited it."""
    ended = wording.outcome_and_why(view)
    time = "" if view.decided_at is None else reader_time(view.decided_at)
    if view.reason.strip():
        reason = passage(view.reason, wording.LONGEST_REASON)
        yield plain(_("{outcome}: {reason}").format(outcome=ended, reason=reason))
    elif time and is_plain(ended):
        yield mrkdwn(_("{outcome}, {time}").format(outcome=escape(ended), time=time))
        time = ""
    else:
        yield plain(ended)
    if time:
        yield mrkdwn(time)
    if edited := wording.edited(view):
        yield plain(edited)


def details_lines(view: ApprovalView) -> list[str]:
    """What a settled call's details say beside its values: who asked, by which rule, what was added, what came of
    allowed it."""
    told = [*wording.provenance(view), wording.outcome(view), wording.edited(view)]
    if view.reason.strip():
        told.append(_("Reason: {reason}").format(reason=passage(view.reason, wording.LONGEST_REASON)))
    told += wording.notes(view)
    if result := wording.result(view, SIGNS):
        told.append(_("Result: {result}").format(result=result))
    return [each for each in told if each]


# ------------------------------------------------------------------------------------------------ changes
def change_card(view: ChangeView) -> SlackMessage:
    """One quiet line of a change that nobody was asked about, with a button to revoke the standing approval that
    allowed it."""
    shown = compact(excerpt_of(view))
    values = " · ".join(value for _label, value in shown.pairs)
    text = wording.change_line(view, SIGNS, values=values)
    unseen = unseen_note(view, shown, "")
    if view.grant_id is None:
        return piece([context(plain(text)), *unseen], text)
    revoke = button(_("Revoke"), actions.REVOKE, view.grant_id)
    return piece([{**section(plain(text)), "accessory": revoke}, *unseen], text)


# ------------------------------------------------------------------------------------------------ questions
def clarification_card(view: ClarificationView, team: str) -> SlackMessage:
    """The message of a question; `team` is the workspace in which it is shown."""
    text = question_summary(view)
    if view.status == "open":
        buttons = answer_buttons(view)
        return piece([*_asked(view, team), *([button_row(*buttons)] if buttons else [])], text)
    name = line(view.requester, wording.LONGEST_NAME)
    answer = passage(view.answer, wording.LONGEST_ANSWER)
    said = [run(f"\n{name}: ", "bold"), run(answer)] if view.answer.strip() else []
    asker = [context(plain(_asker(view))), *asked_in(view)] if view.server else []
    end = run(wording.question_end(view))
    through = asked_through(view)
    return piece([_question(view), *asker, *through, rich_text(flow([end, *said]))], text)


def question_summary(view: ClarificationView) -> str:
    """Returns a question in a sentence, for notifications."""
    name, question = line(view.requester, wording.LONGEST_NAME), passage(view.question, wording.LONGEST_QUESTION)
    if not view.server:
        return _("Question for {name}: {question}").format(name=name, question=question)
    server = line(view.server, wording.LONGEST_NAME)
    return _("Question for {name} from {server}: {question}").format(name=name, server=server, question=question)


def answer_buttons(view: ClarificationView) -> list[Block]:
    """What can be done about an open question: fill in its form, where there is anything to fill in; say no to the tool
    server that asks."""
    if not view.server:
        return [button(_("Answer…"), actions.ANSWER, view.clarification_id, "primary")] if view.fields else []
    return [
        button(_("Answer…") if view.fields else _("Accept…"), actions.ANSWER, view.clarification_id, "primary"),
        button(_("Decline"), actions.DECLINE, view.clarification_id),
        button(_("Cancel"), actions.CANCEL, view.clarification_id),
    ]


def _asked(view: ClarificationView, team: str) -> Iterator[Block]:
    """The question while it is open: for whom, from whom, what, and among what to choose."""
    person = mention(view.requester_id, team)
    name = person or line(view.requester, wording.LONGEST_NAME)
    text = _("Question for {name}").format(name=name)
    yield section(mrkdwn(text) if person else plain(text))
    if view.server:
        yield context(plain(_asker(view)))
        yield from asked_in(view)
    yield from asked_through(view)
    yield _question(view)
    if choices := list(wording.choices(view)):
        yield rich_text(flow(one for label, texts in choices for one in (run(label, "bold"), run(f"{texts}\n"))))
    yield context(plain(_how_to_answer(view)))


def _asker(view: ClarificationView) -> str:
    server = line(view.server, wording.LONGEST_NAME)
    if view.status != "open":
        return _("Asked by {server}").format(server=server)
    return _("Asked by {server}, which gets the answer").format(server=server)


def asked_in(view: ClarificationView) -> list[Block]:
    """In which call a tool asks, if any: two calls may ask the same."""
    told = call_asked_in(view)(wording.WHOLE)
    return [context(plain(told))] if told else []


def _how_to_answer(view: ClarificationView) -> str:
    # A plain reply could not say what belongs to which, and the call of another agent is in no conversation.
    if view.server and (len(view.fields) != 1 or view.client):
        return _("Decline tells the tool no. Cancel tells it nothing. The tool decides what happens next.")
    return _("Use the button, or reply here.") if view.fields else _("Reply here to answer.")


def _question(view: ClarificationView) -> Block:
    words = [flow([run(passage(view.question, wording.LONGEST_QUESTION), "bold")])]
    if view.context.strip():
        words.append(flow([run(passage(view.context, wording.LONGEST_CONTEXT))]))
    return rich_text(*words)


# ------------------------------------------------------------------------------------------------ outcomes
def outcome_card(view: OutcomeView) -> SlackMessage:
    """The message of an attempt whose outcome is unknown."""
    shown = excerpt_of(view)
    text = wording.outcome_sentence(view)
    is_open = view.status == "open"
    known = [rich_text(quote(passage(view.known, wording.LONGEST_KNOWN)))] if is_open and view.known.strip() else []
    title = wording.outcome_title(view) if is_open else wording.call_title(view)
    blocks = [
        rich_text(flow([run("⚠️ " if is_open else ""), run(title, "bold")][not is_open :])),
        context(plain(wording.call_source(view))),
        sentence(text),
        *asked_through(view),
        *known,
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
        *([button_row(*outcome_buttons(view))] if is_open else []),
    ]
    return piece(blocks, f"{title}. {text}" if is_open else f"{title}: {text}")


def outcome_buttons(view: OutcomeView) -> list[Block]:
    """The three things that may have come of it."""
    return [
        button(_("It was done"), actions.IT_WAS_DONE, view.outcome_id, "primary"),
        button(_("Try again"), actions.TRY_AGAIN, view.outcome_id),
        button(_("Skip"), actions.SKIP, view.outcome_id),
    ]


# --------------------------------------- sign-ins: the public card, and the private one with the link
_HOST = 100
_MESSAGE = 500


def _about_the_code() -> str:
    return _(
        "If your browser shows a code at the end, press “Enter code…” on the card, or send me the code. Sign in only "
        "if you asked for this yourself, and share neither link nor code."
    )


def sign_in_card(view: SignInView) -> SlackMessage:
    """The public message of a sign-in, without its link."""
    owner, where = line(view.owner, wording.LONGEST_NAME), where_to(view)
    server = _server_for_account(view)
    if view.status != "open":
        text = wording.sign_in_end(view, where)
        return piece([sentence(text), *asked_through(view)], text)
    if view.code_wanted:
        text = _("Waiting for {name} to enter the code from their browser to connect {where}.").format(
            name=owner, where=where
        )
    elif server:
        text = _("Waiting for {name} to sign in to {where} for {server}.").format(
            name=owner, where=where, server=server
        )
    elif view.service:
        text = _("Waiting for {name} to sign in to {where}.").format(name=owner, where=where)
    else:
        text = _("Waiting for {name} to sign in to {where} at {host}.").format(
            name=owner, where=where, host=line(view.host, _HOST)
        )
    through = asked_through(view)
    return piece([sentence(text), *through, button_row(*sign_in_buttons(view))], text)


def sign_in_piece(view: SignInView, link: str) -> SlackMessage:
    """The private message of a sign-in, for its owner alone. The link is in its button, not in its text."""
    where, host = where_to(view), link_host(link)
    not_now = button(_("Not now"), actions.NOT_NOW, view.sign_in_id)
    if not host or len(link) > LONGEST_URL:
        text = wording.unreachable(where, "Slack", host)
        return piece([sentence(text), button_row(not_now)], text)
    server, address = _server_for_account(view), line(host, _HOST)
    if server:
        text = _("Sign in to {where} for {server}. The link opens {host} and is yours alone.").format(
            where=where, server=server, host=address
        )
    else:
        text = _("Sign in to {where}. The link opens {host} and is yours alone.").format(where=where, host=address)
    told = [
        *asked_through(view),
        *([sentence(_about_the_code())] if view.service else _in_its_words(view)),
    ]
    # When an account is connected, the callback says when that is done.
    done = [] if view.service else [button(_("I’ve signed in"), actions.SIGNED_IN, view.sign_in_id, "primary")]
    code = [_enter_code(view)] if view.code_wanted else []
    buttons = button_row(link_button(_("Open sign-in page"), OPEN_LINK, link), *done, *code, not_now)
    return piece([sentence(text), *told, buttons], text)


def sign_in_buttons(view: SignInView) -> list[Block]:
    """What its owner can do about an open sign-in, where others see the buttons too."""
    code = [_enter_code(view)] if view.code_wanted else []
    return [*code, button(_("Sign in"), actions.GET_LINK, view.sign_in_id)]


def where_to(view: SignInView) -> str:
    """Name of what somebody signs in to: the service whose account is wanted, or the server that gave the link."""
    return line(view.service or view.server, wording.LONGEST_NAME)


def _server_for_account(view: SignInView) -> str:
    """The tool server that is to act with an account; empty: it is the service itself, or no account is wanted."""
    server = line(view.server, wording.LONGEST_NAME)
    return server if view.service and server != where_to(view) else ""


def _in_its_words(view: SignInView) -> list[Block]:
    return [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []


def _enter_code(view: SignInView) -> Block:
    return button(_("Enter code…"), actions.ENTER_CODE, view.sign_in_id, "primary")


# ------------------------------------------------------------------------------------------------ arguments
PAGE_CHARACTERS = 12_000
"""Characters on a page of the modal that shows everything."""
_PAGE_BLOCKS = 90
_BOX = 2_700
"""Characters of one box on a page, so that a page holds four."""
_PAIRS = 5
"""Label and value pairs in a section (Slack: 10 fields)."""
_WORDS = re.compile(r"[^\W_]+(?: [^\W_]+)*")


def preview_blocks(view: ApprovalView) -> list[Block]:
    """What the call would change, as a tool says, with its source; nothing where no preview is named for it."""
    preview = preview_rows(view)
    if preview is None:
        return []
    pairs = [(row.label, row.change) for row in preview.rows]
    told = [preview.source, preview.problem, preview.hidden]
    return [context(*(plain(text) for text in told if text)), *pair_blocks(pairs)]


def excerpt_of(
    view: ApprovalView | OutcomeView | ChangeView | GrantView, most: int = CARD_ARGUMENTS, longest: int = CARD_VALUE
) -> Excerpt:
    """The part of a call's arguments that is shown below its title."""
    return excerpts(view.arguments, most, longest, view.presentation, below=view)(wording.WHOLE)


def settled_excerpt(view: ApprovalView) -> Excerpt:
    """The values of a settled call as they stand beside its title; what does not fit there is counted."""
    return replace(compact(excerpts_of_approval(view, below_title=True)(wording.WHOLE)), source="")


def compact(shown: Excerpt) -> Excerpt:
    """As many whole values as fit on one line, under their labels; the others are counted."""
    left, kept, hidden = _SETTLED_VALUES, [], 0
    for label, value in shown.pairs:
        text = value if label == _("When") else f"{label} {value}"
        if value != " ".join(value.split()) or len(text) > left:
            hidden += 1
            continue
        left -= len(text)
        kept.append((label, text))
    more = ngettext("{count} value hidden", "{count} values hidden", hidden).format(count=hidden) if hidden else ""
    return replace(shown, pairs=tuple(kept), unseen=", ".join(filter(None, [more, shown.unseen])))


def pair_blocks(pairs: Sequence[tuple[str, str]]) -> list[Block]:
    """Labels and values in two columns."""
    groups = (pairs[start : start + _PAIRS] for start in range(0, len(pairs), _PAIRS))
    return [fields(text for name, value in group for text in (_label(name), plain(value))) for group in groups]


def _label(name: str) -> Block:
    """Bold, where nothing in it could be taken for formatting."""
    return mrkdwn(f"*{name}*") if _WORDS.fullmatch(name) else plain(name)


def summary(pairs: Sequence[tuple[str, str]]) -> list[Block]:
    """Returns the pairs as elements of a rich text, one line each, where columns would take too much space."""
    return [element for label, value in pairs for element in (run(f"\n{label}: ", "bold"), run(value))]


def argument_page(arguments: Mapping[str, Any], number: int) -> tuple[list[Block], int, int]:
    """All arguments, whole, on pages of at most 12,000 characters: the blocks of one page, its number from 0 and how
    many there are, at least one. A page that does not exist is the nearest that does."""
    boxes = ((label, text, len(label) + size) for label, text, size in _boxes(arguments))
    page = page_of(boxes, number, PAGE_CHARACTERS, _PAGE_BLOCKS)
    blocks = [rich_text(flow([run(label, "bold")]), preformatted(visible(text))) for label, text in page.boxes]
    return blocks or [sentence(_("No values"))], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Label, text and size of each box: one for a short value, several for a long one."""
    for name, value in written_arguments(arguments):
        first, *rest = list(_cut(value)) or [(_("(empty)"), len(_("(empty)")))]
        label = line(name, 3 * LONGEST_ARGUMENT_NAME)
        yield label, *first
        continued = _("{label} (continued)").format(label=label)
        yield from ((continued, text, size) for text, size in rest)


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the characters that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) <= LARGE:
        yield from ((text, len(text)) for text in cut_lines(visible(value), _BOX))
    else:
        yield from cut_by_size(value, _BOX, widest_in(value), longest=_BOX)
