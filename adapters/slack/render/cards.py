"""The card of an approval: everything a person needs to decide, and afterwards what was decided and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.slack.actions import ALWAYS, APPROVE, APPROVE_ALL, EDIT, HAND_OVER, LOOK, REJECT, SHOW_ALL, TAKE_BACK
from adapters.slack.render.arguments import Excerpt, edited_excerpt, excerpt, pair_blocks
from adapters.slack.render.blocks import (
    LONGEST_HEADER,
    Block,
    Piece,
    actions,
    button,
    confirmed,
    context,
    flow,
    header,
    mrkdwn,
    piece,
    plain,
    quote,
    rich_text,
    run,
)
from adapters.slack.render.words import group_id, line, mention, moment, passage, user_id
from bot.domain import ApprovalView, GrantView, OutcomeView
from bot.masking import unseen_in_words

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


def approval_card(view: ApprovalView, team: str) -> Piece:
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
    """The buttons of a waiting approval; at most 5, since Slack's phones hide more of a row behind three dots."""
    approval = view.approval_id
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
