"""The list that the command `approvals` gives: what is about one person.

Its buttons lead to dialogs and to the cards themselves. None settles anything by itself: a click is answered with the
next state of its card, which would take the list's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

from adapters.shared import wording
from adapters.shared.actions import GET_LINK, REVOKE, SHOW_ALL
from adapters.shared.arguments import Excerpt, call_asked_in, excerpts
from adapters.shared.plans import plan_title
from adapters.shared.wording import Space
from adapters.teams.actions import DialogButton
from adapters.teams.ids import channel_of, location_of
from adapters.teams.render.cards import SIGNS, brief, unseen_note
from adapters.teams.render.elements import (
    LARGEST_CARD,
    Element,
    action_set,
    bold,
    card,
    container,
    escape,
    execute,
    fitted,
    heading,
    opens_dialog,
    opens_page,
    rich,
    small,
    weight,
    words,
)
from adapters.teams.render.inputs import reader_time
from adapters.teams.render.questions import answer_button, code_button, sign_in_title
from bot.card_masks import fingerprint_in_words
from bot.dates import number_in_words
from bot.domain import (
    ApprovalView,
    ChangeView,
    ClarificationView,
    ConnectionView,
    GrantView,
    OutcomeView,
    Overview,
    PlanView,
    ServiceView,
    Shown,
    SignInView,
)
from translations import gettext as _
from translations import ngettext

_MESSAGE_LINK = "https://teams.microsoft.com/l/message"
_LISTED = 12
"""Entries of a group."""
_ENTRY_BYTES = 2_600
_SHARES = (0.35, 0.18, 0.13, 0.13, 0.07, 0.09)
"""Share of each group in a card."""
_ARGUMENTS = 5
_VALUE = 120
_QUESTION = 300
_DETAIL = 300
_LONGEST_LINK = 700


def overview_card(
    overview: Overview,
    grants: Sequence[GrantView] = (),
    connections: Sequence[ConnectionView] = (),
    services: Sequence[ServiceView] = (),
) -> Element:
    """What waits, with a way to what is shown of it, what this person always allows themselves, their accounts, where
    they can connect one, and what was settled lately."""
    entries: Sequence[Callable[[Any], Element]] = (_entry, _entry, _granted, connection_entry, _to_connect, _entry)
    groups = wording.groups(overview, grants, connections, services, accounts_title())
    concerned = any(count for title, _shown, count in groups if title != wording.connect_title())
    body: list[Element] = [] if concerned else [rich(words(wording.nothing_open()))]
    for (title, shown, count), entry, share in zip(groups, entries, _SHARES, strict=True):
        body += _group(title, map(entry, shown), count, share)
    return card(body, summary=wording.overview_summary(overview))


def _group(title: str, entries: Iterable[Element], count: int, share: float, most: int = _LISTED) -> list[Element]:
    """A heading and as many whole entries, of `count` and at most `most`, as fit into that share of a card."""
    made: list[Element] = []
    bytes_left = int(share * (LARGEST_CARD - 2_000))  # with space around them
    for entry in islice(entries, most):
        bytes_left -= weight(entry)
        if bytes_left < 0:
            break
        made.append(entry)
    left = count - len(made)
    more = [small(wording.more_in_list(left))] if left else []
    return [heading(title), *made, *more] if count else []


def _granted(grant: GrantView) -> Element:
    shown = excerpts(grant.arguments, _ARGUMENTS, _VALUE, grant.presentation, below=grant)
    return fitted(lambda space: _granted_in(grant, shown(space), space), _ENTRY_BYTES)


def _granted_in(grant: GrantView, arguments: Excerpt, space: Space) -> Element:
    pairs = _in_a_row(arguments)
    told = [rich(words(space.line(pairs, _DETAIL)), spacing="Small")] if pairs else []
    name = rich(bold(wording.call_title(grant, space)))
    source = small(escape(wording.call_source(grant, space)))
    until = [small(_("Runs without asking until {time}").format(time=reader_time(grant.until)))]
    until += [small(escape(told)) for told in [wording.only_through(grant, space)] if told]
    revoke = action_set(execute(_("Revoke"), REVOKE, grant.grant_id))
    return container("default", name, source, *told, *until, *_unseen(grant, arguments), revoke, separator=True)


def _in_a_row(arguments: Excerpt) -> str:
    return " · ".join(_("{label}: {value}").format(label=name, value=value) for name, value in arguments.pairs)


def _unseen(view: ApprovalView | GrantView, arguments: Excerpt) -> list[Element]:
    """On one line values cannot be told from each other, so that the fingerprint always stands below."""
    return unseen_note(view, arguments) or [small(escape(told)) for told in [fingerprint_in_words(view)] if told]


def _entry(shown: Shown) -> Element:
    content = shown.post.content
    call = content if isinstance(content, ApprovalView) else None
    arguments = (
        excerpts(call.arguments, _ARGUMENTS, _VALUE, call.presentation, below=call)
        if call
        else excerpts({}, _ARGUMENTS, _VALUE)
    )
    return fitted(lambda space: _entry_in(shown, arguments(space), space), _ENTRY_BYTES)


def _entry_in(shown: Shown, arguments: Excerpt, space: Space) -> Element:
    title, detail, buttons = _said(shown, arguments, space)
    told = [rich(words(detail), spacing="Small")] if detail else []
    buttons = [*buttons, *_open(shown)]
    row = [action_set(*buttons)] if buttons else []
    view = shown.post.content
    unseen = _unseen(view, arguments) if isinstance(view, ApprovalView) and view.status == "pending" else []
    return container("default", rich(bold(title)), *told, *unseen, *row, separator=True)


def _said(shown: Shown, arguments: Excerpt, space: Space) -> tuple[str, str, list[Element]]:
    """Title, detail and buttons of an entry."""
    match shown.post.content:
        case ApprovalView(status="pending") as view:
            pairs = _in_a_row(arguments)
            detail = "\n".join(filter(None, [brief(view, space), space.line(pairs, _DETAIL) if pairs else ""]))
            return wording.call_title(view, space), detail, [opens_dialog(_("Review…"), SHOW_ALL, view.approval_id)]
        case ApprovalView() as view:
            told = [wording.outcome(view, space), wording.result(view, SIGNS, space)]
            return wording.call_title(view, space), " · ".join(filter(None, told)), []
        case ClarificationView() as view:
            if view.server:
                title = _("{server} asks: {question}").format(server=view.server, question=view.question)
            else:
                title = _("Question: {question}").format(question=view.question)
            told = [wording.through(view, space), call_asked_in(view)(space)]
            return space.line(title, _QUESTION), " · ".join(filter(None, told)), answer_button(view)
        case SignInView() as view:
            told = [_("Waiting for you"), wording.through(view, space)]
            link = execute(_("Get my link"), GET_LINK, view.sign_in_id)
            return (
                space.line(sign_in_title(view), _QUESTION),
                " · ".join(filter(None, told)),
                [*code_button(view), link],
            )
        case OutcomeView() as view:
            title = space.line(wording.outcome_title(view), _QUESTION)
            return title, wording.through(view, space), []
        case ChangeView() as view:
            return wording.call_title(view, space), "", []
        case PlanView() as view:
            return space.line(plan_title(view), _QUESTION), "", []
        case content:
            return space.line(content.text, _QUESTION), "", []


def _open(shown: Shown) -> list[Element]:
    link = message_link(shown)
    return [opens_page(_("Open"), link)] if link and weight(link) <= _LONGEST_LINK else []


def message_link(shown: Shown) -> str:
    """Permanent link to where a post is shown; empty when there is none."""
    location = location_of(shown.post.place)
    reference = shown.reference or {}
    parts = reference.get("parts") or ()
    conversation = str(reference.get("conversation") or location.conversation)
    if not parts or not conversation or reference.get("private"):
        return ""
    # A chat needs to be told apart; the link of a channel's message is the channel's, with the message's own id.
    context = {} if location.kind == "channel" else {"context": '{"contextType":"chat"}'}
    query = urlencode({"tenantId": location.tenant, **context})
    return f"{_MESSAGE_LINK}/{quote(channel_of(conversation), safe='')}/{quote(str(parts[0]), safe='')}?{query}"


# ------------------------------------------------------------- connected accounts; never their tokens

_SCOPES = 300
_OFFERED = 0.3
"""Share of the card that has the services at which an account can be connected."""


def accounts_title() -> str:
    """Returns the title of the accounts that somebody has connected."""
    return _("Your accounts")


def no_accounts() -> str:
    """Returns what is said to somebody who has none."""
    return _("No connected accounts. I ask when a tool needs one.")


def connections_card(connections: Sequence[ConnectionView], services: Sequence[ServiceView] = ()) -> Element:
    """The accounts that a person has connected, and the services at which they can connect one, as many as fit."""
    share = 1 - _OFFERED if services else 1.0
    entries = _group(
        accounts_title(), map(connection_entry, connections), len(connections), share, most=len(connections)
    )
    offered = _group(wording.connect_title(), map(_to_connect, services), len(services), _OFFERED)
    return card([*(entries or [rich(words(no_accounts()))]), *offered], summary=connections_summary(connections))


def connections_summary(connections: Sequence[ConnectionView]) -> str:
    """Returns the overview in a sentence."""
    if not connections:
        return no_accounts()
    sentence = ngettext("You have {count} connected account.", "You have {count} connected accounts.", len(connections))
    return sentence.format(count=number_in_words(len(connections)))


def connection_entry(view: ConnectionView) -> Element:
    """One of them, with a way to end it."""
    return fitted(lambda space: _account_entry(view, space), _ENTRY_BYTES)


def _to_connect(service: ServiceView) -> Element:
    """A service, with a way to a link."""
    scopes = wording.asked_for(service, _SCOPES)
    connect = opens_dialog(wording.connect_label(service), DialogButton.CONNECT, service.provider)
    told = [rich(words(scopes), spacing="Small")] if scopes else []
    return container("default", *told, action_set(connect), separator=True)


def account_name(view: ConnectionView, space: Space) -> str:
    """The service, and whose account it is there, where the service says so."""
    service = space.line(view.service, wording.LONGEST_NAME)
    return f"{service}: {space.line(view.account, wording.LONGEST_NAME)}" if view.account.strip() else service


def _account_entry(view: ConnectionView, space: Space) -> Element:
    scopes = [rich(words(space.line(", ".join(view.scopes), _SCOPES)), spacing="Small")] if view.scopes else []
    used = _("Not used yet")
    if view.used_at is not None:
        used = _("Last used {time}").format(time=reader_time(view.used_at))
    broken = [] if view.working else [small(_("Access expired. Sign in again when asked."))]
    end = action_set(opens_dialog(_("Disconnect…"), DialogButton.DISCONNECT, view.connection_id))
    since = small(" · ".join([_("Connected {time}").format(time=reader_time(view.since)), used]))
    return container("default", rich(bold(account_name(view, space))), *scopes, since, *broken, end, separator=True)
