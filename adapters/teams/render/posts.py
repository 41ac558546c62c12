"""Our words → Teams' activities and cards. Pure. Dialogs are in `dialogs`; `entries` reads what was filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from adapters.shared.markdown import Run
from adapters.shared.memories import MemoryList, about_memories
from adapters.shared.plans import plan_title
from adapters.shared.wording import (
    LONGEST_NAME,
    approval_summary,
    change_line,
    overview_summary,
    passage,
    said_by,
    source_lines,
    sources_title,
)
from adapters.teams.actions import COMMANDS, REFRESH, action_data
from adapters.teams.ids import Activity
from adapters.teams.render.calls import activity_card
from adapters.teams.render.cards import LONGEST_IN_SUMMARY, SIGNS, CardMention, approval_card, change_card
from adapters.teams.render.elements import Card, Element, label
from adapters.teams.render.markdown import Page, pages, paragraph
from adapters.teams.render.memories import memory_card
from adapters.teams.render.overview import connections_card, connections_summary, overview_card
from adapters.teams.render.plans import plan_card
from adapters.teams.render.questions import (
    clarification_card,
    outcome_card,
    outcome_summary,
    private_sign_in_card,
    question_summary,
    sign_in_card,
    sign_in_summary,
)
from bot.domain import (
    ApprovalView,
    ChangeView,
    ClarificationView,
    ConnectionView,
    Content,
    GrantView,
    Notice,
    OutcomeView,
    Overview,
    PlanView,
    Post,
    Said,
    ServiceView,
    SignInView,
)
from bot.usage import OwnUsage, own_usage_in_words, own_usage_title
from graph.citations import Source
from translations import gettext as _

MOST_REFRESHED = 60
"""People for whom a card is refreshed (Teams)."""
_CARD = "application/vnd.microsoft.card.adaptive"
_TONES = {"info": "", "warning": "⚠ ", "error": "❗ "}
_LONGEST_TEXT = 3_000
_SUMMARY = 300
_LONGEST_SOURCES = 2_000


@dataclass(frozen=True, slots=True)
class Audience:
    """Who sees a card, as far as that decides what is on it."""

    kind: Literal["personal", "open", "listed"]
    """A direct chat; or a conversation in which anybody may decide but for those named; or nobody but those named."""
    user_ids: tuple[str, ...] = ()
    """Addresses (`29:…`) of those for whom Teams asks what they are to see; 60 at most, the rest is left out."""
    may_decide: bool = True
    """Whether the one person of a direct chat may decide."""
    asked: bool = False
    """Whether the one person of a direct chat has asked for it; in other conversations, whether everybody is shown what
    whoever asked may do, since they could not be found."""
    mentions: tuple[CardMention, ...] = ()
    """Those who are named as approvers and are in the conversation: they are notified."""


def activities(post: Post, audience: Audience) -> tuple[Activity, ...]:
    """A post as one activity, or several for a long answer. Never empty; raises nothing."""
    match post.content:
        case Said():
            return _said(post.content)
        case Notice():
            return (note(_TONES[post.content.tone] + post.content.text),)
        case content:
            return (_message(_posted_card(content, audience), _summary(content)),)


def card_of(content: Content, *, decides: bool, asked: bool = False) -> Card:
    """What one person sees, when Teams asks for them or they have clicked.

    `decides`: they may decide the approval. `asked`: they asked for it.
    """
    match content:
        case ApprovalView():
            return approval_card(content, decides=decides, asked=asked)
        case ClarificationView():
            return clarification_card(content)
        case SignInView():
            return sign_in_card(content)
        case OutcomeView():
            return outcome_card(content)
        case ChangeView():
            return change_card(content, asked=asked)
        case PlanView():
            return plan_card(content)
        case Said() | Notice():
            raise ValueError("this is shown as text, not as a card")
        case _:
            assert_never(content)


def note(text: str) -> Activity:
    """A sentence of the bot's, perhaps for one person."""
    return _text(_literal(text))


def help_activity() -> Activity:
    """What can be written to the bot."""
    commands = {
        "approvals": _("what needs you, and your open requests"),
        "connections": _("your accounts that I may use"),
        "memory": _("what I remember about you, and here"),
        "usage": _("what your requests used of the language model"),
        "agent": _("the agents; “agent NAME” picks one"),
        "new": _("start a new conversation, where there are no threads"),
        "stop": _("stop what I’m doing for you here"),
        "help": _("this list"),
    }
    lines = [f"- **{command}**: {commands[command]}" for command in COMMANDS]
    first = _("**Countersign** works with your tools and asks before it changes anything.")
    last = _("Mention me in a channel or a group chat, or write to me directly.")
    return _text("\n\n".join([first, "\n".join(lines), last]))


def overview_activity(
    overview: Overview,
    grants: Sequence[GrantView] = (),
    connections: Sequence[ConnectionView] = (),
    services: Sequence[ServiceView] = (),
) -> Activity:
    """What is about one person, what they always allow themselves, their accounts, and where they can connect one."""
    return _message(overview_card(overview, grants, connections, services), overview_summary(overview))


def connections_activity(connections: Sequence[ConnectionView], services: Sequence[ServiceView] = ()) -> Activity:
    """The accounts that one person has connected, and where they can connect one."""
    return _message(connections_card(connections, services), connections_summary(connections))


def memory_activity(listed: MemoryList) -> Activity:
    """What is remembered of one person, and of where they ask."""
    return _message(memory_card(listed), about_memories(listed))


def usage_activity(own: OwnUsage) -> Activity:
    """What one person has used of language models."""
    lines = [f"- **{_literal(when)}**: {_literal(what)}" for when, what in own_usage_in_words(own)]
    return _text("\n\n".join([_literal(own_usage_title()), "\n".join(lines)]))


def greeting() -> str:
    """What the bot says where it was brought to."""
    return _(
        "Hello! I work with your tools and ask the right people before I change anything. Mention me in a channel or a "
        "group chat, or write to me directly. Write “help” to see what else I can do."
    )


def sign_in_link(view: SignInView, url: str) -> Activity:
    """A sign-in with its link, for its owner alone. The link is in no text."""
    made = private_sign_in_card(view, url)
    return _message(made, str(made["fallbackText"]))


def open_a_chat_first(owner: str) -> Activity:
    """Said in the conversation when a link can reach its owner by no private way."""
    name = label(owner, LONGEST_NAME)
    told = _("{name}, I can’t reach you privately. Open a chat with me, say hello, then press “Get my link”.")
    return note(told.format(name=name))


# ------------------------------------------------------------------------------------------------ cards

_Card = ApprovalView | ClarificationView | SignInView | OutcomeView | ChangeView | PlanView


def _posted_card(content: _Card, audience: Audience) -> Element:
    """The card that stands in a conversation, for everybody."""
    match content:
        case ChangeView():
            refresh = _refresh(content.attempt_id, audience.user_ids if content.grant_id else ())
            return change_card(content, asked=audience.asked, refresh=refresh)
        case ApprovalView():
            return _posted_approval(content, audience)
        case _:
            return dict(card_of(content, decides=False))


def _posted_approval(view: ApprovalView, audience: Audience) -> Element:
    differs = view.status == "pending" or view.retry_offered
    refresh = _refresh(view.approval_id, audience.user_ids if differs else ())
    match audience.kind:
        case "personal":
            return approval_card(view, decides=audience.may_decide, asked=audience.asked)
        case "open":
            mentions = audience.mentions
            return approval_card(view, decides=True, asked=audience.asked, refresh=refresh, mentions=mentions)
        case "listed":
            hint = _("Approvers see buttons here. Don’t see yours? Use “Show all”.")
            return approval_card(view, decides=False, hint=hint, refresh=refresh, mentions=audience.mentions)


def _refresh(subject: str, user_ids: Sequence[str]) -> Element:
    """Returns whose view of the card Teams asks for (`refresh`), and with which action; empty: nobody's."""
    users = list(dict.fromkeys(user_ids))[:MOST_REFRESHED]
    if not users:
        return {}
    # It is no button, so that it has no title, and older clients need nothing in its place.
    action = {"type": "Action.Execute", "verb": REFRESH, "data": action_data(REFRESH, subject)}
    return {"refresh": {"action": action, "userIds": users}}


def _summary(content: _Card) -> str:
    match content:
        case ApprovalView():
            return approval_summary(content, LONGEST_IN_SUMMARY)
        case ClarificationView():
            return question_summary(content)
        case SignInView():
            return sign_in_summary(content)
        case OutcomeView():
            return outcome_summary(content)
        case ChangeView():
            return change_line(content, SIGNS)
        case PlanView():
            return plan_title(content)


def _message(made: Element, summary: str) -> Activity:
    return {
        "type": "message",
        "summary": label(summary, _SUMMARY),
        "attachments": [{"contentType": _CARD, "content": made}],
    }


# ------------------------------------------------------------------------------------------------ text


def _text(markdown: str) -> dict[str, Any]:
    return {"type": "message", "textFormat": "markdown", "text": markdown}


def _literal(text: str) -> str:
    return paragraph((Run(passage(text, _LONGEST_TEXT)),))


def _sources(sources: Sequence[Source]) -> str:
    """What an answer cites, below it: not every client shows references, and no name leaves its line."""
    lines = "\n".join(source_lines(sources, _LONGEST_SOURCES))
    return f"\n\n**{sources_title()}**\n\n{paragraph((Run(lines),))}"


def _said(said: Said) -> tuple[Activity, ...]:
    text = f"**{said_by(said.agent)}**\n\n{said.text}" if said.agent else said.text
    made = pages(text) or (Page(_literal(text)),)
    *beginning, last = [{**_text(page.text), "entities": [page.citations.entity(said.sources)]} for page in made]
    if said.sources:
        last["text"] += _sources(said.sources)
    if said.final:
        last["channelData"] = {"feedbackLoop": {"type": "default"}}
    if not said.activity or not said.final:
        return (*beginning, last)
    # A message of its own: Teams makes two messages of text beside a card, and tells the id of neither, so that nothing
    # could be updated (MicrosoftDocs/msteams-docs#2594). As one card, an answer could not be streamed or have
    # citations; text alone cannot be folded.
    calls = activity_card(said.activity)
    return (*beginning, last, _message(calls, str(calls["fallbackText"])))
