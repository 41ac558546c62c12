"""Cards of approvals, questions and sign-ins: what is needed to decide, then what was decided and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.shared import actions, wording
from adapters.shared.arguments import (
    LARGE,
    LONGEST_ARGUMENT_NAME,
    Excerpt,
    call_asked_in,
    excerpt,
    excerpts_of_approval,
    page_of,
)
from adapters.shared.wording import call_name, line, passage
from adapters.slack.actions import OPEN_LINK
from adapters.slack.render.blocks import (
    LONGEST_HEADER,
    LONGEST_URL,
    Block,
    SlackMessage,
    button,
    button_row,
    confirmed,
    context,
    fields,
    flow,
    group_id,
    header,
    link_button,
    mention,
    mrkdwn,
    piece,
    plain,
    preformatted,
    quote,
    reader_time,
    rich_text,
    run,
    section,
    sentence,
    user_id,
)
from bot.card_masks import unseen_in_words
from bot.domain import ApprovalView, ClarificationView, GrantView, OutcomeView, SignInView
from bot.safe_text import cut_by_size, cut_lines, link_host, visible, widest_in, written_arguments

SIGNS = {"info": "", "success": "✅ ", "error": "❌ ", "warning": "⚠️ "}
_MOST_MENTIONS = 20


def approval_card(view: ApprovalView, team: str) -> SlackMessage:
    """The message of an approval as it is now; `team` is the workspace in which it is shown."""
    blocks = _pending(view, team) if view.status == "pending" else _settled(view)
    return piece(blocks, wording.approval_summary(view, wording.LONGEST_NAMES))


def decision_buttons(view: ApprovalView) -> list[Block]:
    """The buttons of a waiting approval; at most 5, since Slack's phones hide more of a row behind three dots. Nobody
    decides where nothing of a long call was read."""
    approval = view.approval_id
    if view.unread:
        return [button("Show all", actions.SHOW_ALL, approval)]
    made = [
        button("Approve", actions.APPROVE, approval, "primary"),
        button("Reject…", actions.REJECT, approval, "danger"),
    ]
    if view.editable:
        made.append(button("Edit…", actions.EDIT, approval))
    made.append(button("Show all", actions.SHOW_ALL, approval))
    if view.together > 1:
        made.append(button(f"Approve all {view.together:,}…", actions.APPROVE_ALL, approval))
    return made


def second_row_buttons(view: ApprovalView) -> list[Block]:
    """What else whoever may decide can do."""
    always = [button("Always allow…", actions.ALWAYS, view.approval_id)] if view.always_offered else []
    hand_over = [button("Ask somebody else…", actions.HAND_OVER, view.approval_id)] if view.handing_offered else []
    return [*always, *hand_over, *show_hidden_button(view)]


def show_hidden_button(view: ApprovalView) -> list[Block]:
    """Returns a button for whoever may decide, where something is hidden; others see it too, and are refused."""
    waits = view.status == "pending"
    return [button("Look at what is hidden…", actions.SHOW_HIDDEN, view.approval_id)] if view.masks and waits else []


def withdraw_button(view: ApprovalView) -> Block:
    """Returns a button for the requester; a card in Slack is the same for all, so that others see it too, and are
    refused."""
    name = line(call_name(view.server, view.tool), wording.LONGEST_TITLE)
    asks = f"{name} is then not done. Only who asked for it can withdraw it."
    return confirmed(button("Withdraw", actions.WITHDRAW, view.approval_id), "Withdraw this?", asks, "Withdraw")


def in_their_words(view: ApprovalView) -> list[Block]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    who, what = wording.written(view)
    return [rich_text(flow([run(who, "bold")]), quote(what))]


def unseen_note(
    view: ApprovalView | OutcomeView | GrantView, shown: Excerpt, advice: str = "“Show all” has everything."
) -> list[Block]:
    """Returns what stands beside the buttons: which arguments are not on the card letter by letter, if any."""
    unseen = unseen_in_words(view, shown.unseen, advice)
    return [context(plain(unseen))] if unseen else []


# ------------------------------------------------------------------------------------------------ waiting
def _pending(view: ApprovalView, team: str) -> list[Block]:
    shown = excerpt(view.arguments)
    name, *rest = wording.asking(view)
    return [
        header(wording.heading(view)),
        rich_text(flow([run(name, "bold"), *map(run, rest)])),
        *in_their_words(view),
        *pair_blocks(shown.pairs),
        rich_text(flow(_facts(view, team))),
        *_small_print(view, team),
        *unseen_note(view, shown),
        button_row(*decision_buttons(view)),
        button_row(*second_row_buttons(view), withdraw_button(view)),
    ]


def through_program(name: str, client: str) -> list[Block]:
    """Who asks, and through which program, where another agent does."""
    told = wording.requested_by(name, client)
    return [context(plain(told))] if told else []


def _facts(view: ApprovalView, team: str) -> Iterator[Block]:
    if view.risk:
        sign = "⚠️ " if "destroys" in view.risk else ""
        yield from (run("Risk: ", "bold"), run(f"{sign}{wording.risk(view)}\n"))
    yield run("May decide: ", "bold")
    yield from _deciders(view, team)
    yield from (run(f"\n{told}") for told in (wording.votes(view), wording.vetoes(view)) if told)
    if others := wording.handed_to(view):
        yield from (run("\nAlso asked to decide: ", "bold"), run(others))
    yield from (run("\nRule: ", "bold"), run(wording.rule(view)))


def _deciders(view: ApprovalView, team: str) -> Iterator[Block]:
    """Who may decide, in words; people and groups that have no name in them yet are shown by Slack's."""
    rest = wording.deciders_line(view)
    for reference, element in _nameless(view, team):
        before, found, after = rest.partition(reference)
        if found:
            yield from (run(before), element) if before else (element,)
            rest = after
    if rest:
        yield run(rest)


def _nameless(view: ApprovalView, team: str) -> list[tuple[str, Block]]:
    """References that the words hold as such, in the order in which they stand there."""
    elements: dict[str, Block] = {}
    for approver in view.approvers:
        if user := user_id(approver, team):
            elements[approver] = {"type": "user", "user_id": user}
        elif group := group_id(approver, team):
            elements[approver] = {"type": "usergroup", "usergroup_id": group}
    found = {reference: view.may_decide.find(reference) for reference in elements}
    return [(r, elements[r]) for r in sorted(elements, key=lambda r: found[r]) if found[r] >= 0]


def _small_print(view: ApprovalView, team: str) -> list[Block]:
    """Mentions, which notify those who may decide, and the deadline."""
    told = [made for approver in view.approvers[:_MOST_MENTIONS] if (made := mention(approver, team))]
    words = [f"For {' '.join(dict.fromkeys(told))}"] if told else []
    words += wording.deadlines(view, reader_time)
    return [context(*map(mrkdwn, words))] if words else []


# ------------------------------------------------------------------------------------------------ settled
def _settled(view: ApprovalView) -> list[Block]:
    shown = excerpts_of_approval(view)(wording.WHOLE)
    when = [] if view.decided_at is None else [mrkdwn(f"{wording.ENDS[view.status]} {reader_time(view.decided_at)}")]
    return [
        header(wording.heading(view)),
        rich_text(flow(_decision(view))),
        *in_their_words(view),
        *([context(plain(edited))] if (edited := wording.edited(view)) else []),
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
        context(*when, plain(wording.provenance(view))),
    ]


def _decision(view: ApprovalView) -> Iterator[Block]:
    yield run(wording.outcome(view))
    if view.reason.strip():
        yield from (run("\nReason: ", "bold"), run(passage(view.reason, wording.LONGEST_REASON)))
    if told := wording.result(view, SIGNS):
        yield run(f"\n{told}")


# ------------------------------------------------------------------------------------------------ questions
def clarification_card(view: ClarificationView, team: str) -> SlackMessage:
    """The message of a question; `team` is the workspace in which it is shown."""
    name = line(view.requester, wording.LONGEST_NAME)
    text = f"A question for {name}{_from_whom(view)}: {passage(view.question, wording.LONGEST_QUESTION)}"
    if view.status == "open":
        buttons = answer_buttons(view)
        return piece([*_asked(view, team), *([button_row(*buttons)] if buttons else [])], text)
    said = (
        []
        if not view.answer.strip()
        else [run(f"\n{name}: ", "bold"), run(passage(view.answer, wording.LONGEST_ANSWER))]
    )
    asker = (
        [context(plain(f"Asked by the tool server {line(view.server, wording.LONGEST_NAME)}")), *asked_in(view)]
        if view.server
        else []
    )
    end = run(wording.QUESTION_ENDS[view.status].format(asker="the tool server"))
    through = through_program(view.requester, view.client)
    return piece([_question(view), *asker, *through, rich_text(flow([end, *said]))], text)


def answer_buttons(view: ClarificationView) -> list[Block]:
    """What can be done about an open question: fill in its form, where there is anything to fill in; say no to the tool
    server that asks."""
    if not view.server:
        return [button("Answer…", actions.ANSWER, view.clarification_id, "primary")] if view.fields else []
    return [
        button("Answer…" if view.fields else "Accept…", actions.ANSWER, view.clarification_id, "primary"),
        button("Decline", actions.DECLINE, view.clarification_id),
        button("Cancel", actions.CANCEL, view.clarification_id),
    ]


def _asked(view: ClarificationView, team: str) -> Iterator[Block]:
    """The question while it is open: for whom, from whom, what, and among what to choose."""
    person = mention(view.requester_id, team)
    name = line(view.requester, wording.LONGEST_NAME)
    yield section(mrkdwn(f"*A question for* {person}") if person else plain(f"A question for {name}"))
    if view.server:
        yield context(plain(f"From the tool server {line(view.server, wording.LONGEST_NAME)}, which gets the answer"))
        yield from asked_in(view)
    yield from through_program(view.requester, view.client)
    yield _question(view)
    if choices := list(wording.choices(view)):
        yield rich_text(flow(one for label, texts in choices for one in (run(label, "bold"), run(f"{texts}\n"))))
    yield context(plain(_how_to_answer(view)))


def asked_in(view: ClarificationView) -> list[Block]:
    """In which call a tool asks, if any: two calls may ask the same."""
    told = call_asked_in(view)(wording.WHOLE)
    return [context(plain(told))] if told else []


def _how_to_answer(view: ClarificationView) -> str:
    # A plain reply could not say what belongs to which, and the call of another agent is in no conversation.
    if view.server and (len(view.fields) != 1 or view.client):
        return "Use the buttons. Decline says no, Cancel says nothing; what comes of that is up to the tool."
    return "Use the button, or simply reply here." if view.fields else "Please reply here."


def _from_whom(view: ClarificationView) -> str:
    return f" from the tool server {line(view.server, wording.LONGEST_NAME)}" if view.server else ""


def _question(view: ClarificationView) -> Block:
    words = [flow([run(passage(view.question, wording.LONGEST_QUESTION), "bold")])]
    if view.context.strip():
        words.append(flow([run(passage(view.context, wording.LONGEST_CONTEXT))]))
    return rich_text(*words)


# ------------------------------------------------------------------------------------------------ outcomes
def outcome_card(view: OutcomeView) -> SlackMessage:
    """The message of an attempt whose outcome is unknown."""
    shown = excerpt(view.arguments)
    text = wording.outcome_sentence(view)
    is_open = view.status == "open"
    known = [rich_text(quote(passage(view.known, wording.LONGEST_KNOWN)))] if is_open and view.known.strip() else []
    blocks = [
        header(line(wording.outcome_title(view), LONGEST_HEADER)),
        sentence(text),
        *through_program(view.requester, view.client),
        *known,
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
        *([button_row(*outcome_buttons(view))] if is_open else []),
    ]
    return piece(blocks, f"{call_name(view.server, view.tool)}: {text}")


def outcome_buttons(view: OutcomeView) -> list[Block]:
    """The three things that may have come of it."""
    return [
        button("It was done", actions.IT_WAS_DONE, view.outcome_id, "primary"),
        button("Try again", actions.TRY_AGAIN, view.outcome_id),
        button("Skip", actions.SKIP, view.outcome_id),
    ]


# --------------------------------------- sign-ins: the public card, and the private one with the link
_HOST = 100
_MESSAGE = 500
_CODE = (
    "In the end your browser may show a code: then press “Enter code…” on the card, or simply write the code to me. "
    "Sign in only if it was you who asked for this, and pass neither link nor code on."
)


def sign_in_card(view: SignInView) -> SlackMessage:
    """The public message of a sign-in, without its link."""
    owner, where = line(view.owner, wording.LONGEST_NAME), where_to(view)
    if view.status != "open":
        text = wording.SIGN_IN_ENDS[view.status].format(owner=owner, where=where)
        return piece([sentence(text), *through_program(view.owner, view.client)], text)
    text = f"Waiting for {owner} to sign in at {where} ({line(view.host, _HOST)})."
    if view.service:
        text = f"Waiting for {owner} to sign in at {where}{_for_whom(view)}."
    if view.code_wanted:
        text = f"Waiting for {owner} to tell me the code that their browser shows, to connect their account at {where}."
    through = through_program(view.owner, view.client)
    return piece([sentence(text), *through, button_row(*sign_in_buttons(view))], text)


def sign_in_piece(view: SignInView, link: str) -> SlackMessage:
    """The private message of a sign-in, for its owner alone. The link is in its button, not in its text."""
    where, host = where_to(view), link_host(link)
    not_now = button("Not now", actions.NOT_NOW, view.sign_in_id)
    if not host or len(link) > LONGEST_URL:
        text = wording.unreachable(where, "Slack", host)
        return piece([sentence(text), button_row(not_now)], text)
    text = f"Please sign in at {where}{_for_whom(view)}. The link leads to {line(host, _HOST)} and is yours alone."
    told = [
        *through_program(view.owner, view.client),
        *([sentence(_CODE)] if view.service else _in_its_words(view)),
    ]
    # When an account is connected, the callback says when that is done.
    done = [] if view.service else [button("I have signed in", actions.SIGNED_IN, view.sign_in_id, "primary")]
    code = [_enter_code(view)] if view.code_wanted else []
    buttons = button_row(link_button("Open the sign-in page", OPEN_LINK, link), *done, *code, not_now)
    return piece([sentence(text), *told, buttons], text)


def sign_in_buttons(view: SignInView) -> list[Block]:
    """What its owner can do about an open sign-in, where others see the buttons too."""
    code = [_enter_code(view)] if view.code_wanted else []
    return [*code, button("Get my link", actions.GET_LINK, view.sign_in_id)]


def where_to(view: SignInView) -> str:
    """Name of what somebody signs in to: the service whose account is wanted, or the server that gave the link."""
    return line(view.service or view.server, wording.LONGEST_NAME)


def _for_whom(view: SignInView) -> str:
    """The tool server that is to act with the account, unless it is the service itself."""
    server = line(view.server, wording.LONGEST_NAME)
    return f", for the tool server {server}" if view.service and server != where_to(view) else ""


def _in_its_words(view: SignInView) -> list[Block]:
    return [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []


def _enter_code(view: SignInView) -> Block:
    return button("Enter code…", actions.ENTER_CODE, view.sign_in_id, "primary")


# ------------------------------------------------------------------------------------------------ arguments
PAGE_CHARACTERS = 12_000
"""Characters on a page of the modal that shows everything."""
_PAGE_BLOCKS = 90
_BOX = 2_700
"""Characters of one box on a page, so that a page holds four."""
_PAIRS = 5
"""Label and value pairs in a section (Slack: 10 fields)."""
_WORDS = re.compile(r"[^\W_]+(?: [^\W_]+)*")


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
    return blocks or [sentence("There are no arguments.")], page.number, page.count


def _boxes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Label, text and size of each box: one for a short value, several for a long one."""
    for name, value in written_arguments(arguments):
        first, *rest = list(_cut(value)) or [("(empty)", len("(empty)"))]
        label = line(name, 3 * LONGEST_ARGUMENT_NAME)
        yield label, *first
        yield from ((f"{label} (continued)", text, size) for text, size in rest)


def _cut(value: str) -> Iterator[tuple[str, int]]:
    """The value in parts that fit into a box when they are visible, and the characters that each takes then at most.

    A very long one is broken as it comes, and only what is on the page is made visible: for one page, all that come
    before it have to be found.
    """
    if len(value) <= LARGE:
        yield from ((text, len(text)) for text in cut_lines(visible(value), _BOX))
    else:
        yield from cut_by_size(value, _BOX, widest_in(value), longest=_BOX)
