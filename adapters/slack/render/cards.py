"""Cards of approvals, questions and sign-ins: what is needed to decide, then what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.slack.actions import (
    ALWAYS,
    ANSWER,
    APPROVE,
    APPROVE_ALL,
    CANCEL,
    DECLINE,
    EDIT,
    ENTER_CODE,
    GET_LINK,
    HAND_OVER,
    IT_WAS_DONE,
    LOOK,
    NOT_NOW,
    OPEN_LINK,
    REJECT,
    SHOW_ALL,
    SIGNED_IN,
    SKIP,
    TAKE_BACK,
    TRY_AGAIN,
)
from adapters.slack.render.arguments import Excerpt, edited_excerpt, excerpt, pair_blocks
from adapters.slack.render.blocks import (
    LONGEST_HEADER,
    LONGEST_URL,
    Block,
    SlackMessage,
    actions,
    button,
    confirmed,
    context,
    flow,
    group_id,
    header,
    line,
    link_button,
    mention,
    moment,
    mrkdwn,
    passage,
    piece,
    plain,
    quote,
    rich_text,
    run,
    section,
    sentence,
    user_id,
)
from bot.domain import ApprovalView, ClarificationView, GrantView, OutcomeView, SignInView
from bot.masking import unseen_in_words
from bot.safe_text import beginning_of_list, link_host
from graph.fields import FormField

_ENDS = {
    "approved": "Approved",
    "rejected": "Rejected",
    "expired": "Expired",
    "superseded": "Superseded",
    "withdrawn": "Withdrawn",
    "void": "No longer valid",
}
_TONES = {"info": "", "success": "✅ ", "error": "❌ ", "warning": "⚠️ "}
_MOST_MENTIONS = 20
_NAMES = 300
"""Characters of a list of names."""
_RULE = 200
_REASON = 2_000
_QUOTE = 1_000
_RESULT = 500
_TITLE = 120


def approval_card(view: ApprovalView, team: str) -> SlackMessage:
    """The message of an approval as it is now; `team` is the workspace in which it is shown."""
    if view.status == "pending":
        text = f"{heading(view)}. {line(view.requester, _NAMES)} asks. May decide: {line(view.may_decide, _NAMES)}."
        return piece(_pending(view, team), text)
    return piece(_settled(view), f"{heading(view)}. {outcome(view)}")


def heading(view: ApprovalView) -> str:
    """What it is about, on one line: the operator's name of the server, and the tool's."""
    word = "Approve?" if view.status == "pending" else f"{_ENDS[view.status]}:"
    return line(f"{word} {call_name(view.server, view.tool)}", LONGEST_HEADER)


def call_name(server: str, tool: str) -> str:
    """A tool under the names that the operator knows."""
    return f"{server}: {tool}"


def decision_buttons(view: ApprovalView) -> list[Block]:
    """The buttons of a waiting approval; at most 5, since Slack's phones hide more of a row behind three dots. Nobody
    decides where nothing of a long call was read."""
    approval = view.approval_id
    if view.unread:
        return [button("Show all", SHOW_ALL, approval)]
    made = [button("Approve", APPROVE, approval, "primary"), button("Reject…", REJECT, approval, "danger")]
    if view.editable:
        made.append(button("Edit…", EDIT, approval))
    made.append(button("Show all", SHOW_ALL, approval))
    if view.together > 1:
        made.append(button(f"Approve all {view.together:,}…", APPROVE_ALL, approval))
    return made


def rarer_buttons(view: ApprovalView) -> list[Block]:
    """What else whoever may decide can do."""
    always = [button("Always allow…", ALWAYS, view.approval_id)] if view.always_offered else []
    hand_over = [button("Ask somebody else…", HAND_OVER, view.approval_id)] if view.handing_offered else []
    return [*always, *hand_over, *look_button(view)]


def look_button(view: ApprovalView) -> list[Block]:
    """For whoever may decide, where something is hidden; others see it too, and are refused."""
    waits = view.status == "pending"
    return [button("Look at what is hidden…", LOOK, view.approval_id)] if view.masks and waits else []


def take_back_button(view: ApprovalView) -> Block:
    """For the requester; a card in Slack is the same for all, so that others see it too, and are refused."""
    name = line(call_name(view.server, view.tool), _TITLE)
    asks = f"{name} is then not done. Only who asked for it can withdraw it."
    return confirmed(button("Withdraw", TAKE_BACK, view.approval_id), "Withdraw this?", asks, "Withdraw")


def in_their_words(view: ApprovalView) -> list[Block]:
    """What the requester wrote to ask for this very call, where that is needed."""
    if not view.quote.strip():
        return []
    return [
        rich_text(flow([run(f"{line(view.requester, _NAMES)} wrote:", "bold")]), quote(passage(view.quote, _QUOTE)))
    ]


def unseen_note(
    view: ApprovalView | OutcomeView | GrantView, shown: Excerpt, advice: str = "“Show all” has everything."
) -> list[Block]:
    """Beside the buttons: what of the arguments is not on the card letter by letter, if anything."""
    unseen = unseen_in_words(view, shown.unseen, advice)
    return [context(plain(unseen))] if unseen else []


def result_line(view: ApprovalView) -> str:
    """What came of the call, with a sign; empty while it has not run."""
    return _TONES[view.result_tone] + line(view.result, _RESULT) if view.result.strip() else ""


# ------------------------------------------------------------------------------------------------ waiting
def _pending(view: ApprovalView, team: str) -> list[Block]:
    shown = excerpt(view.arguments)
    return [
        header(heading(view)),
        rich_text(flow(_asks(view))),
        *in_their_words(view),
        *pair_blocks(shown.pairs),
        rich_text(flow(_facts(view, team))),
        *_small_print(view, team),
        *unseen_note(view, shown),
        actions(*decision_buttons(view)),
        actions(*rarer_buttons(view), take_back_button(view)),
    ]


def _asks(view: ApprovalView) -> Iterator[Block]:
    yield run(line(view.requester, _NAMES), "bold")
    yield run(" asks for this.")
    if view.title.strip() and view.title != view.tool:
        yield run(f" The server calls it “{line(view.title, _TITLE)}”.")


def _facts(view: ApprovalView, team: str) -> Iterator[Block]:
    if view.risk:
        sign = "⚠️ " if "destroys" in view.risk else ""
        yield from (run("Risk: ", "bold"), run(f"{sign}{line(', '.join(view.risk), _NAMES)}\n"))
    yield run("May decide: ", "bold")
    yield from _deciders(view, team)
    if view.quorum > 1:
        yield run(f"\n{_votes(view)}")
    if view.rejections > 1:
        yield run(f"\n{_vetoes(view)}")
    if view.handed_to:
        yield from (run("\nAlso asked to decide: ", "bold"), run(line(", ".join(view.handed_to), _NAMES)))
    yield from (run("\nRule: ", "bold"), run(line(view.rule, _RULE)))


def _deciders(view: ApprovalView, team: str) -> Iterator[Block]:
    """Who may decide, in words; people and groups that have no name in them yet are shown by Slack's."""
    rest = line(view.may_decide, 4 * _NAMES)
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
    """Mentions, so that those who may decide hear of it, and the deadline."""
    told = [made for approver in view.approvers[:_MOST_MENTIONS] if (made := mention(approver, team))]
    words = [f"For {' '.join(dict.fromkeys(told))}"] if told else []
    words += [f"Open until {moment(view.expires_at)}"] if view.expires_at is not None else []
    words += [f"Others may decide too from {moment(view.escalates_at)}"] if view.escalates_at is not None else []
    return [context(*map(mrkdwn, words))] if words else []


def _votes(view: ApprovalView) -> str:
    names = [vote.name for vote in view.votes if vote.verb == "approve"]
    by = f": {line(', '.join(names), _NAMES)}" if names else ""
    return f"{len(names)} of {view.quorum} approved{by}"


def _vetoes(view: ApprovalView) -> str:
    names = [vote.name for vote in view.votes if vote.verb == "reject"]
    by = f": {line(', '.join(names), _NAMES)}" if names else ""
    return f"{len(names)} of {view.rejections} rejected{by}"


# ------------------------------------------------------------------------------------------------ settled
def _settled(view: ApprovalView) -> list[Block]:
    edited = view.asked_arguments is not None
    shown = edited_excerpt(view.asked_arguments or {}, view.arguments) if edited else excerpt(view.arguments)
    return [
        header(heading(view)),
        rich_text(flow(_decision(view))),
        *in_their_words(view),
        *([context(plain("Edited before it was approved: what was asked → what was approved."))] if edited else []),
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
        context(*_provenance(view)),
    ]


def _decision(view: ApprovalView) -> Iterator[Block]:
    yield run(outcome(view))
    if view.reason.strip():
        yield from (run("\nReason: ", "bold"), run(passage(view.reason, _REASON)))
    if result := result_line(view):
        yield run(f"\n{result}")


def outcome(view: ApprovalView) -> str:
    """How it was settled, and by whom."""
    names = line(", ".join(view.decided_by), _NAMES) if view.decided_by else ""
    return f"{_ENDS[view.status]} by {names}." if names else f"{_ENDS[view.status]}."


def _provenance(view: ApprovalView) -> Sequence[Block]:
    by = [plain(f"Asked by {line(view.requester, _NAMES)}. Rule: {line(view.rule, _RULE)}.")]
    return by if view.decided_at is None else [mrkdwn(f"{_ENDS[view.status]} {moment(view.decided_at)}"), *by]


# ------------------------------------------------------------- questions, and attempts that broke off

_NAME = 100
_QUESTION = 3_000
_CONTEXT = 2_000
_ANSWER = 3_000
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; the form has them all."""
_CHOICES = 250
_KNOWN = 700
_QUESTION_ENDS = {
    "answered": "Answered.",
    "declined": "Declined: the tool server was told no.",
    "cancelled": "Cancelled: the tool server got no answer.",
    "superseded": "Superseded: it needs no answer any more.",
}
_OUTCOME_ENDS = {
    "it_was_done": "It was done",
    "try_again": "Tried again",
    "skip": "Skipped",
    "superseded": "Superseded",
}


# ------------------------------------------------------------------------------------------------ questions
def clarification_card(view: ClarificationView, team: str) -> SlackMessage:
    """The message of a question; `team` is the workspace in which it is shown."""
    name = line(view.requester, _NAME)
    text = f"A question for {name}{_from_whom(view)}: {passage(view.question, _QUESTION)}"
    if view.status == "open":
        buttons = answer_buttons(view)
        return piece([*_asked(view, team), *([actions(*buttons)] if buttons else [])], text)
    said = [] if not view.answer.strip() else [run(f"\n{name}: ", "bold"), run(passage(view.answer, _ANSWER))]
    asker = [context(plain(f"Asked by the tool server {line(view.server, _NAME)}"))] if view.server else []
    return piece([_question(view), *asker, rich_text(flow([run(_QUESTION_ENDS[view.status]), *said]))], text)


def answer_buttons(view: ClarificationView) -> list[Block]:
    """What can be done about an open question: fill in its form, where there is anything to fill in; say no to the tool
    server that asks."""
    if not view.server:
        return [button("Answer…", ANSWER, view.clarification_id, "primary")] if view.fields else []
    return [
        button("Answer…" if view.fields else "Accept…", ANSWER, view.clarification_id, "primary"),
        button("Decline", DECLINE, view.clarification_id),
        button("Cancel", CANCEL, view.clarification_id),
    ]


def _asked(view: ClarificationView, team: str) -> Iterator[Block]:
    """The question while it is open: for whom, from whom, what, and among what to choose."""
    person = mention(view.requester_id, team)
    yield section(
        mrkdwn(f"*A question for* {person}") if person else plain(f"A question for {line(view.requester, _NAME)}")
    )
    if view.server:
        yield context(plain(f"From the tool server {line(view.server, _NAME)}, which gets the answer"))
    yield _question(view)
    choices = [field for field in view.fields if field.options][:_MOST_CHOICES]
    if choices:
        yield rich_text(flow(element for field in choices for element in _choices(field)))
    yield context(plain(_how_to_answer(view)))


def _how_to_answer(view: ClarificationView) -> str:
    if view.server and len(view.fields) != 1:  # a plain reply could not say what belongs to which
        return "Use the buttons. Decline says no, Cancel says nothing; what comes of that is up to the tool."
    return "Use the button, or simply reply here." if view.fields else "Please reply here."


def _from_whom(view: ClarificationView) -> str:
    return f" from the tool server {line(view.server, _NAME)}" if view.server else ""


def _question(view: ClarificationView) -> Block:
    words = [flow([run(passage(view.question, _QUESTION), "bold")])]
    if view.context.strip():
        words.append(flow([run(passage(view.context, _CONTEXT))]))
    return rich_text(*words)


def _choices(field: FormField) -> Sequence[Block]:
    options, unseen = beginning_of_list(field.options, ", ", _CHOICES)
    return run(f"{line(field.label or field.name, _NAME)}: ", "bold"), run(line(options, _CHOICES, unseen) + "\n")


# ------------------------------------------------------------------------------------------------ outcomes
def outcome_card(view: OutcomeView) -> SlackMessage:
    """The message of an attempt that broke off."""
    name = call_name(view.server, view.tool)
    title = header(line(f"What came of it? {name}", LONGEST_HEADER))
    shown = excerpt(view.arguments)
    arguments = [
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
    ]
    if view.status != "open":
        by = f", says {line(view.settled_by, _NAME)}" if view.settled_by.strip() else ""
        text = f"{_OUTCOME_ENDS[view.status]}{by}."
        return piece([title, sentence(text), *arguments], f"{name}: {text}")
    text = (
        "Nobody knows what came of this: it may or may not have happened. "
        f"{line(view.requester, _NAME)}, please look, and say which."
    )
    known = [rich_text(quote(passage(view.known, _KNOWN)))] if view.known.strip() else []
    return piece([title, sentence(text), *known, *arguments, actions(*outcome_buttons(view))], f"{name}: {text}")


def outcome_buttons(view: OutcomeView) -> list[Block]:
    """The three things that may have come of it."""
    return [
        button("It was done", IT_WAS_DONE, view.outcome_id, "primary"),
        button("Try again", TRY_AGAIN, view.outcome_id),
        button("Skip", SKIP, view.outcome_id),
    ]


# --------------------------------------- sign-ins: the public card, and the private one with the link

_HOST = 100
_MESSAGE = 500
_SIGN_IN_ENDS = {
    "done": "{owner} has signed in at {where}.",
    "declined": "{owner} did not sign in at {where} this time.",
    "expired": "The sign-in of {owner} at {where} has expired.",
    "superseded": "The sign-in of {owner} at {where} is not needed any more.",
}
_CODE = (
    "In the end your browser may show a code: then press “Enter code…” on the card, or simply write the code to me. "
    "Sign in only if it was you who asked for this, and pass neither link nor code on."
)


def sign_in_card(view: SignInView) -> SlackMessage:
    """The public message of a sign-in, without its link."""
    owner, where = line(view.owner, _NAME), where_to(view)
    if view.status != "open":
        text = _SIGN_IN_ENDS[view.status].format(owner=owner, where=where)
        return piece([sentence(text)], text)
    text = f"Waiting for {owner} to sign in at {where} ({line(view.host, _HOST)})."
    if view.service:
        text = f"Waiting for {owner} to sign in at {where}{_for_whom(view)}."
    if view.code_wanted:
        text = f"Waiting for {owner} to tell me the code that their browser shows, to connect their account at {where}."
    return piece([sentence(text), actions(*sign_in_buttons(view))], text)


def sign_in_piece(view: SignInView, link: str) -> SlackMessage:
    """The private message of a sign-in, for its owner alone. The link is in its button, not in its text."""
    where, host = where_to(view), link_host(link)
    not_now = button("Not now", NOT_NOW, view.sign_in_id)
    if not host or len(link) > LONGEST_URL:
        why = "too long for Slack" if host else "no safe web address"
        text = f"The sign-in page of {where} cannot be opened from here: its link is {why}."
        return piece([sentence(text), actions(not_now)], text)
    text = f"Please sign in at {where}{_for_whom(view)}. The link leads to {line(host, _HOST)} and is yours alone."
    told = [sentence(_CODE)] if view.service else _in_its_words(view)
    # Where an account of the house's is connected, the house itself knows when that is done.
    done = [] if view.service else [button("I have signed in", SIGNED_IN, view.sign_in_id, "primary")]
    code = [_enter_code(view)] if view.code_wanted else []
    buttons = actions(link_button("Open the sign-in page", OPEN_LINK, link), *done, *code, not_now)
    return piece([sentence(text), *told, buttons], text)


def sign_in_buttons(view: SignInView) -> list[Block]:
    """What its owner can do about an open sign-in, where others see the buttons too."""
    code = [_enter_code(view)] if view.code_wanted else []
    return [*code, button("Get my link", GET_LINK, view.sign_in_id)]


def where_to(view: SignInView) -> str:
    """Name of what somebody signs in to: the service whose account is wanted, or the server that gave the link."""
    return line(view.service or view.server, _NAME)


def _for_whom(view: SignInView) -> str:
    """The tool server that is to act with the account, unless it is the service itself."""
    server = line(view.server, _NAME)
    return f", for the tool server {server}" if view.service and server != where_to(view) else ""


def _in_its_words(view: SignInView) -> list[Block]:
    return [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []


def _enter_code(view: SignInView) -> Block:
    return button("Enter code…", ENTER_CODE, view.sign_in_id, "primary")
