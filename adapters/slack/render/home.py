"""The App Home, `/countersign approvals` and `/countersign connections`: what is about one person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.shared import wording
from adapters.shared.actions import CONNECT, DISCONNECT, REVOKE, WITHDRAW
from adapters.shared.plans import plan_title
from adapters.shared.wording import line
from adapters.slack.actions import OPEN_THREAD
from adapters.slack.render.blocks import (
    LONGEST_URL,
    Block,
    SlackMessage,
    button,
    button_row,
    confirmed,
    context,
    divider,
    flow,
    header,
    link_button,
    mrkdwn,
    piece,
    plain,
    reader_time,
    rich_text,
    run,
    section,
    sentence,
)
from adapters.slack.render.blocks import link as link_element
from adapters.slack.render.cards import (
    NO_SIGNS,
    answer_buttons,
    asked_in,
    button_rows,
    compact,
    decision_buttons,
    excerpt_of,
    in_their_words,
    menu,
    outcome_buttons,
    question_summary,
    sign_in_buttons,
    sign_of,
    summary,
    title_and_text,
    unseen_note,
    where_to,
)
from bot.domain import (
    ApprovalView,
    ChangeView,
    ClarificationView,
    ConnectionView,
    GrantView,
    OutcomeView,
    Overview,
    Person,
    PlanView,
    ServiceView,
    Shown,
    SignInView,
)
from bot.safe_text import link_host
from translations import gettext as _

_SCOPES = 300
_IN_A_QUESTION = 60
"""Characters of a name where Slack has space for 300 in all."""
_LISTED = 15
"""Accounts in the list of the slash command: three blocks each, of the 50 that a message has (Slack)."""


def no_accounts() -> str:
    """Returns what is said to somebody who has connected no account."""
    return _("No connected accounts. When a tool needs one, I’ll send you a private link.")


def connection_blocks(view: ConnectionView) -> list[Block]:
    """One account, with the button to disconnect it."""
    account = [run(f" · {line(view.account, wording.LONGEST_NAME)}")] if view.account.strip() else []
    ended = [] if view.working else [run("\n" + _("Access expired. Sign in again when asked."))]
    times = [mrkdwn(_("Connected {time}").format(time=reader_time(view.since)))]
    if view.used_at is not None:
        times.append(mrkdwn(_("Last used {time}").format(time=reader_time(view.used_at))))
    allowed = line(_("Access: {scopes}").format(scopes=", ".join(view.scopes)), _SCOPES)
    return [
        rich_text(flow([run(line(view.service, wording.LONGEST_NAME), "bold"), *account, *ended])),
        context(*times, *([plain(allowed)] if view.scopes else [])),
        button_row(_disconnect(view)),
    ]


def connections_piece(views: Sequence[ConnectionView]) -> SlackMessage:
    """Somebody's accounts, for them alone."""
    if not views:
        return piece([sentence(no_accounts())], no_accounts())
    blocks = [header(_("Connected accounts"))]
    for view in views[:_LISTED]:
        blocks += connection_blocks(view)
    if (more := len(views) - _LISTED) > 0:
        blocks.append(context(plain(wording.more_in_list(more))))
    names = ", ".join(line(view.service, wording.LONGEST_NAME) for view in views[:_LISTED])
    return piece(blocks, _("Connected accounts: {names}.").format(names=names))


def _disconnect(view: ConnectionView) -> Block:
    name, account = line(view.service, _IN_A_QUESTION), line(view.account, _IN_A_QUESTION)
    if view.account.strip():
        asks = _("Countersign forgets your {service} account ({account}). Tools that need it ask you to sign in again.")
    else:
        asks = _("Countersign forgets your {service} account. Tools that need it ask you to sign in again.")
    return confirmed(
        button(_("Disconnect"), DISCONNECT, view.connection_id, "danger"),
        _("Disconnect account?"),
        asks.format(service=name, account=account),
        _("Disconnect"),
    )


# ------------------------------------------------------------ the App Home and /countersign approvals

LinkOf = Callable[[Shown], str]
"""The permanent link of where a post is shown; empty when there is none."""
_BLOCKS_IN_ALL = 82
"""Blocks of all entries on the App Home; with headings 100 at most (Slack)."""
_BYTES_IN_ALL = 210_000
"""Bytes of all entries as JSON (Slack: a view has 250 KB)."""
_SHARES = (0.4, 0.19, 0.09, 0.15, 0.07, 0.1)
"""Share of each group in these blocks and bytes; what one leaves is for those after it."""
_ARGUMENTS = 5
_VALUE = 200
_QUESTION = 300
_DETAIL = 500
_RECENT = 20
"""Of what was settled, the newest."""


def home_view(
    overview: Overview,
    link: LinkOf,
    person: Person,
    grants: Sequence[GrantView] = (),
    connections: Sequence[ConnectionView] = (),
    *,
    services: Sequence[ServiceView] = (),
) -> Block:
    """The App Home of a person, with buttons that work there. `services`: where they can connect an account."""
    to_decide, waiting, recent = (partial(entry, link=link) for entry in (_to_decide, _waiting, _recent))
    blocks_of: Sequence[Callable[[Any], list[Block]]] = (
        to_decide,
        waiting,
        _granted,
        connection_blocks,
        _to_connect,
        recent,
    )
    listed = replace(overview, recent=overview.recent[:_RECENT])
    groups = wording.groups(listed, grants, connections, services, _("Connected accounts"))
    blocks: list[Block] = []
    spare = 0.0
    for (title, shown, count), entry, share in zip(groups, blocks_of, _SHARES, strict=True):
        group = _group(title, map(entry, shown), count, share + spare)
        spare = max(0.0, share + spare - max(len(group) / _BLOCKS_IN_ALL, len(json.dumps(group)) / _BYTES_IN_ALL))
        blocks += group
    concerned = any(count for title, _entries, count in groups if title != wording.connect_title())
    return {"type": "home", "blocks": [*([] if concerned else [sentence(_nothing())]), *blocks]}


def overview_piece(overview: Overview, link: LinkOf) -> SlackMessage:
    """What waits, as a list with links."""
    to_decide, that_wait = wording.counts(overview)
    blocks = [
        *_listed(wording.to_decide_title(), overview.to_decide, to_decide, link),
        *_listed(wording.open_requests_title(), overview.waiting, that_wait, link),
    ]
    return piece(blocks or [sentence(wording.nothing_open())], wording.overview_summary(overview))


def title_of(shown: Shown) -> str:
    """What a post is about, on one line."""
    match shown.post.content:
        case ApprovalView() as view:
            return wording.call_title(view)
        case ClarificationView() as view:
            return line(question_summary(view), _QUESTION)
        case SignInView() as view:
            return line(_("Sign in to {where}").format(where=where_to(view)), _QUESTION)
        case OutcomeView() as view:
            return line(wording.outcome_title(view), _QUESTION)
        case ChangeView() as view:
            return wording.call_title(view)
        case PlanView() as view:
            return line(plan_title(view), _QUESTION)
        case content:
            return line(content.text, _QUESTION)


def _nothing() -> str:
    nothing = wording.nothing_open()
    return _("{nothing}. Mention me in a channel or message me to get started.").format(nothing=nothing)


# ------------------------------------------------------------------------------------------------ App Home


def _group(title: str, entries: Iterable[list[Block]], count: int, share: float) -> list[Block]:
    """A heading and as many whole entries, of `count`, as fit into that share of the App Home; no more are made."""
    if not count:
        return []
    blocks: list[Block] = []
    size, left = 0, count
    for entry in entries:
        size += len(json.dumps(entry))
        if len(blocks) + len(entry) > share * _BLOCKS_IN_ALL or size > share * _BYTES_IN_ALL:
            break
        blocks += entry
        left -= 1
    more = [context(plain(wording.more_in_list(left)))] if left else []
    return [header(title), *blocks, *more, divider()]


def _to_decide(shown: Shown, link: LinkOf) -> list[Block]:
    view = shown.post.content
    if not isinstance(view, ApprovalView):
        return _waiting(shown, link)
    part = excerpt_of(view, _ARGUMENTS, _VALUE)
    small = [plain(wording.in_brief(view)), *map(mrkdwn, wording.deadlines(view, reader_time))]
    return [
        rich_text(flow([run(title_of(shown), "bold"), *summary(part.pairs)])),
        *in_their_words(view),
        context(*small),
        *unseen_note(view, part),
        *button_rows([*decision_buttons(view, *menu(view, withdraws=False)), *_open_thread(shown, link)]),
    ]


def _waiting(shown: Shown, link: LinkOf) -> list[Block]:
    match shown.post.content:
        case ApprovalView() as view:
            detail = _("Approver: {names}").format(names=line(view.may_decide, _QUESTION))
            return _call_entry(shown, view, f"{detail}{_through(view)}", [_withdraw_button(view)], link)
        case ClarificationView() as view:
            entry = _entry(shown, _through(view).strip(), [])
            row = [*answer_buttons(view), *_open_thread(shown, link)]
            return [*entry, *asked_in(view), *([button_row(*row)] if row else [])]
        case SignInView() as view:
            wanted = _("Enter the code that your browser shows.") if view.code_wanted else _("Sign in to continue.")
            detail, buttons = f"{wanted}{_through(view)}", sign_in_buttons(view)
        case OutcomeView(unread=0) as view:
            told = f"{_('Check, then choose.')}{_through(view)}"
            return _call_entry(shown, view, told, outcome_buttons(view), link)
        case OutcomeView() as view:  # nothing of it was read, so that nobody could tell which call would be made again
            told = f"{_('Answer on its card.')}{_through(view)}"
            return _call_entry(shown, view, told, [], link)
        case _:
            detail, buttons = "", []
    return _entry(shown, detail, [*buttons, *_open_thread(shown, link)])


def _withdraw_button(view: ApprovalView) -> Block:
    asks = _("This cancels the request: {title}").format(title=line(wording.call_title(view), wording.LONGEST_TITLE))
    withdraw = button(_("Withdraw"), WITHDRAW, view.approval_id)
    return confirmed(withdraw, _("Withdraw request?"), asks, _("Withdraw"))


def _through(view: wording.Asking) -> str:
    return f"\n{told}" if (told := wording.through(view)) else ""


def _call_entry(
    shown: Shown, view: ApprovalView | OutcomeView, detail: str, buttons: Sequence[Block], link: LinkOf
) -> list[Block]:
    """A call that its requester can settle here, with what tells it from other calls of the same tool."""
    part = excerpt_of(view, _ARGUMENTS, _VALUE)
    words = flow([run(detail), *summary(part.pairs)])
    row = [*buttons, *_open_thread(shown, link)]
    return [
        rich_text(flow([run(title_of(shown), "bold")]), words),
        *unseen_note(view, part, ""),
        *([button_row(*row)] if row else []),
    ]


def _granted(grant: GrantView) -> list[Block]:
    part = excerpt_of(grant, _ARGUMENTS, _VALUE)
    name = run(wording.call_title(grant), "bold")
    through = filter(None, [wording.call_source(grant), wording.only_through(grant)])
    until = mrkdwn(_("Expires {time}").format(time=reader_time(grant.until)))
    return [
        rich_text(flow([name, *summary(part.pairs)])),
        context(until, *map(plain, through)),
        *unseen_note(grant, part, ""),
        button_row(button(_("Revoke"), REVOKE, grant.grant_id)),
    ]


def _to_connect(service: ServiceView) -> list[Block]:
    """One block, with the button that gives the link."""
    told = filter(None, [line(service.service, wording.LONGEST_NAME), wording.asked_for(service, _SCOPES)])
    connect = button(wording.connect_label(service, _IN_A_QUESTION), CONNECT, service.provider)
    return [{**section(plain("\n".join(told))), "accessory": connect}]


def _recent(shown: Shown, link: LinkOf) -> list[Block]:
    """One block, with the link to its conversation beside it."""
    view = shown.post.content
    told, sign = (_result(view), sign_of(view)) if isinstance(view, ApprovalView) else ("", "")
    beside = _open_thread(shown, link)
    return [{**section(title_and_text(sign, title_of(shown), told)), **({"accessory": beside[0]} if beside else {})}]


def _result(view: ApprovalView) -> str:
    """How it ended, and what of it tells it from others."""
    if view.status == "pending":
        return ""
    shown = compact(excerpt_of(view, _ARGUMENTS, _VALUE))
    result = wording.result(view, NO_SIGNS) if view.result_tone != "success" else ""
    told = [wording.outcome(view), result or view.reason.strip(), *(text for _label, text in shown.pairs)]
    return line(" · ".join(filter(None, [*told, shown.unseen, view.fingerprint if shown.unseen else ""])), _DETAIL)


def _entry(shown: Shown, detail: str, buttons: Sequence[Block]) -> list[Block]:
    words = [flow([run(title_of(shown), "bold")]), *([flow([run(detail)])] if detail else [])]
    return [rich_text(*words), *([button_row(*buttons)] if buttons else [])]


def _open_thread(shown: Shown, link: LinkOf) -> list[Block]:
    url = _address(shown, link)
    return [link_button(_("Open conversation"), OPEN_THREAD, url)] if url else []


def _address(shown: Shown, link: LinkOf) -> str:
    url = link(shown)
    return url if link_host(url) and len(url) <= LONGEST_URL else ""


# ------------------------------------------------------------------------------------------------ the command's list
def _listed(title: str, entries: Sequence[Shown], count: int, link: LinkOf) -> list[Block]:
    if not entries:
        return []
    items = [flow(_line(shown, link)) for shown in entries[:_LISTED]]
    more = count - len(items)
    listing: Block = {"type": "rich_text_list", "style": "bullet", "elements": items}
    return [header(title), rich_text(listing), *([context(plain(wording.more_in_list(more)))] if more else [])]


def _line(shown: Shown, link: LinkOf) -> list[Block]:
    url = _address(shown, link)
    words = [run(title_of(shown))]
    return [*words, run(" "), link_element(url, _("Open conversation"))] if url else words
