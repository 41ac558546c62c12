"""Words of cards and dialogs that read the same on every platform, in the space that a card has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain import ApprovalView, ClarificationView, ConnectionView, GrantView, OutcomeView, Overview, ServiceView
from bot.safe_text import beginning_of_list, visible_line, visible_passage

LONGEST_REASON = 2_000
"""Characters of the reason of a rejection."""
LONGEST_HEADING = 150
LONGEST_NAMES = 300
"""Characters of a list of names."""
LONGEST_TITLE = 120
_QUOTE = 1_000
LONGEST_NAME = 100
LONGEST_QUESTION = 3_000
LONGEST_CONTEXT = 2_000
LONGEST_ANSWER = 3_000
LONGEST_KNOWN = 700
"""Characters of what is known of an attempt whose outcome is unknown."""
_RULE = 200
_RESULT = 500
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; the form has them all."""
_CHOICES = 250
_LEAST = 24
"""Characters that a text has at least, so that something of it is left beside the count of what is not."""
ENDS = {
    "approved": "Approved",
    "rejected": "Rejected",
    "expired": "Expired",
    "superseded": "Superseded",
    "withdrawn": "Withdrawn",
    "void": "No longer valid",
}
_OUTCOME_ENDS = {
    "it_was_done": "It was done",
    "try_again": "Tried again",
    "skip": "Skipped",
    "superseded": "Superseded",
}
QUESTION_ENDS = {
    "answered": "Answered.",
    "declined": "Declined: {asker} was told no.",
    "cancelled": "Cancelled: {asker} got no answer.",
    "superseded": "Superseded: it needs no answer any more.",
}
"""How a question of `asker` ended, by its status."""
SIGN_IN_ENDS = {
    "done": "{owner} has signed in at {where}.",
    "declined": "{owner} did not sign in at {where} this time.",
    "expired": "The sign-in of {owner} at {where} has expired.",
    "superseded": "The sign-in of {owner} at {where} is not needed any more.",
}
"""How a sign-in of `owner` at `where` ended, by its status."""
HIDDEN_MEANS = "Only you see this, and the audit log says that you looked. Do not pass it on."
TOO_LONG_FOR_A_LIST = "What waits here is too long for a list: decide it at its own card."
_EDITED = "Edited before it was approved: what was asked → what was approved."
_CHANGED = "Changed: what was asked → what it was changed to."
ALWAYS_MEANS = (
    "It is approved now. Until then, when you ask for exactly this call again, with these arguments, it runs without "
    "asking. It holds for nobody else, and you can revoke it"
)
TO_DECIDE = "Waiting for your decision"
WAITING = "You asked, and it waits"
NOTHING_WAITS = "Nothing waits for you, and nothing that you asked for waits."


def line(text: str, limit: int, unseen: int = 0) -> str:
    """Returns one visible line of at most `limit` characters; "(empty)" for nothing, since platforms refuse empty text
    or leave it out.

    Args:
        unseen: how many characters follow that are not in `text`.
    """
    return visible_line(text, limit, unseen) or "(empty)"[:limit]


def passage(text: str, limit: int) -> str:
    """Returns visible text of at most `limit` characters with its lines kept; "(empty)" for nothing."""
    shown = visible_passage(text, limit)
    return shown if shown.strip() else "(empty)"[:limit]


@dataclass(frozen=True, slots=True)
class Space:
    """A share of the usual limits. Where a card's size is limited in bytes, what fits is known only afterwards, since
    characters take from 1 to 12 of them."""

    share: float = 1.0

    def of(self, limit: int) -> int:
        """Returns that share of a limit in characters."""
        return min(limit, max(int(limit * self.share), _LEAST))

    def line(self, text: str, limit: int) -> str:
        """Returns `line` within the space."""
        return line(text, self.of(limit))

    def list(self, texts: Sequence[str], limit: int) -> str:
        """Returns the texts as one such line, with commas in between."""
        text, unseen = beginning_of_list(texts, ", ", self.of(limit))
        return line(text, self.of(limit), unseen)

    def passage(self, text: str, limit: int) -> str:
        """Returns `passage` within the space."""
        return passage(text, self.of(limit))


WHOLE = Space()


# ------------------------------------------------------------------------------------------------ approvals
def call_name(server: str, tool: str) -> str:
    """Returns a tool under the names that the operator knows; not cut."""
    return f"{server}: {tool}"


def heading(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns what an approval is about, on one line: the operator's name of the server, and the tool's."""
    word = "Approve?" if view.status == "pending" else f"{ENDS[view.status]}:"
    return space.line(f"{word} {call_name(view.server, view.tool)}", LONGEST_HEADING)


def approval_summary(view: ApprovalView, longest: int) -> str:
    """Returns an approval in a sentence, for notifications; names and who may decide have `longest` characters each."""
    if view.status != "pending":
        return f"{heading(view)}. {outcome(view)}"
    asks = requested_by(line(view.requester, longest), view.client) or f"{line(view.requester, longest)} asks."
    return f"{heading(view)}. {asks} May decide: {line(view.may_decide, longest)}."


def requested_by(name: str, client: str, space: Space = WHOLE) -> str:
    """Returns who asks, and through which program, as a sentence; empty where our own agent asks. What a program calls
    itself is its own word, so it comes last."""
    if not client:
        return ""
    return f"Requested by {space.line(name, LONGEST_NAMES)}, through {space.line(client, LONGEST_NAME)}."


def through(client: str, space: Space = WHOLE) -> str:
    """Returns through which program somebody's own request came, as a sentence; empty: through none."""
    return f"Requested through {space.line(client, LONGEST_NAME)}." if client else ""


def only_through(grant: GrantView, space: Space = WHOLE) -> str:
    """Returns through which program alone a call runs without asking, as a sentence; empty: it is our own agent's."""
    return f"Only through {space.line(grant.client, LONGEST_NAME)}." if grant.client else ""


def asking(view: ApprovalView, space: Space = WHOLE) -> tuple[str, ...]:
    """Returns who asks, and the rest of that sentence, with the server's own title of the tool."""
    titled = view.title.strip() and view.title != view.tool
    title = (f" The server calls it “{space.line(view.title, LONGEST_TITLE)}”.",) if titled else ()
    if by_client := requested_by(view.requester, view.client, space):
        return (by_client, *title)
    return (space.line(view.requester, LONGEST_NAMES), " asks for this.", *title)


def written(view: ApprovalView, space: Space = WHOLE) -> tuple[str, str]:
    """Returns what stands before the words by which the requester asked for this very call, and those words."""
    return f"{space.line(view.requester, LONGEST_NAMES)} wrote:", space.passage(view.quote, _QUOTE)


def risk(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns what the call may do to the world."""
    return space.line(", ".join(view.risk), LONGEST_NAMES)


def in_brief(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who asks, and what the call may do to the world, where it is decided away from its card."""
    warned = f" Risk: {risk(view, space)}." if view.risk else ""
    asks = requested_by(view.requester, view.client, space) or f"{space.line(view.requester, LONGEST_NAMES)} asks."
    return f"{asks}{warned}"


def deciders_line(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who may decide."""
    return space.line(view.may_decide, 4 * LONGEST_NAMES)


def votes(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who has approved, where that takes several; else nothing."""
    return _counted(view, "approve", f"of {view.quorum} approved", space) if view.quorum > 1 else ""


def vetoes(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who has rejected, likewise."""
    return _counted(view, "reject", f"of {view.rejections} rejected", space) if view.rejections > 1 else ""


def _counted(view: ApprovalView, verb: str, goal: str, space: Space) -> str:
    names = [vote.name for vote in view.votes if vote.verb == verb]
    by = f": {space.line(', '.join(names), LONGEST_NAMES)}" if names else ""
    return f"{len(names)} {goal}{by}"


def handed_to(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who else was asked to decide; empty: nobody."""
    return space.line(", ".join(view.handed_to), LONGEST_NAMES) if view.handed_to else ""


def rule(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns the name of the rule that asks."""
    return space.line(view.rule, _RULE)


def deadlines(view: ApprovalView, reader_time: Callable[[float], str]) -> list[str]:
    """Returns until when it waits, and from when others may decide. `reader_time` writes a time as the platform shows
    it."""
    times = (("Open until", view.expires_at), ("Others may decide too from", view.escalates_at))
    return [f"{words} {reader_time(at)}" for words, at in times if at is not None]


def outcome(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns how an approval was settled, and by whom."""
    names = space.line(", ".join(view.decided_by), LONGEST_NAMES) if view.decided_by else ""
    return f"{ENDS[view.status]} by {names}." if names else f"{ENDS[view.status]}."


def edited(view: ApprovalView) -> str:
    """Returns what the arrows between its arguments mean; empty: nobody edited them."""
    if view.asked_arguments is None:
        return ""
    return _EDITED if view.status == "approved" else _CHANGED


def result(view: ApprovalView, signs: Mapping[str, str], space: Space = WHOLE) -> str:
    """Returns what came of the call, behind the sign of its tone; empty while it has not run."""
    return signs[view.result_tone] + space.line(view.result, _RESULT) if view.result.strip() else ""


def provenance(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who asked, and by which rule that took an approval."""
    name = space.line(view.requester, LONGEST_NAMES)
    asked = requested_by(view.requester, view.client, space) or f"Asked by {name}."
    return f"{asked} Rule: {rule(view, space)}."


def page_name(name: str, number: int, count: int) -> str:
    """Returns the title of a page of arguments."""
    return f"{name} (page {number + 1:,} of {count:,})" if count > 1 else name


def more_not_listed(count: int) -> str:
    """Returns what is said below a list of calls to approve of those that are not in it."""
    return f"{count:,} more wait and are not in this list: decide them at their own cards."


# ------------------------------------------------------------------------------------------------ questions, attempts
def choices(view: ClarificationView, space: Space = WHOLE) -> Iterator[tuple[str, str]]:
    """Yields the label of each field with options, and those options."""
    for field in [field for field in view.fields if field.options][:_MOST_CHOICES]:
        yield f"{space.line(field.label or field.name, LONGEST_NAME)}: ", space.list(field.options, _CHOICES)


def outcome_title(view: OutcomeView) -> str:
    """Returns the heading of the card of an attempt whose outcome is unknown; not cut."""
    return f"What came of it? {call_name(view.server, view.tool)}"


def outcome_sentence(view: OutcomeView, space: Space = WHOLE) -> str:
    """Returns what is asked about such an attempt, or what was answered and by whom."""
    if view.status != "open":
        by = f", says {space.line(view.settled_by, LONGEST_NAME)}" if view.settled_by.strip() else ""
        return f"{_OUTCOME_ENDS[view.status]}{by}."
    return (
        "Nobody knows what came of this: it may or may not have happened. "
        f"{space.line(view.requester, LONGEST_NAME)}, please look, and say which."
    )


# ------------------------------------------------------------------------------------------------ lists
def counts(overview: Overview) -> tuple[int, int]:
    """Returns how many a person may decide, and how many of their requests wait, listed or not."""
    return len(overview.to_decide) + overview.more_to_decide, len(overview.waiting) + overview.more_waiting


def groups(
    overview: Overview,
    grants: Sequence[GrantView],
    connections: Sequence[ConnectionView],
    services: Sequence[ServiceView],
    accounts: str,
) -> tuple[tuple[str, Sequence[Any], int], ...]:
    """Returns what concerns a person: title, entries and count, listed or not, of what they may decide, of what waits,
    of their standing approvals, of their accounts (under the title `accounts`), of the services at which they can
    connect one, and of what was settled lately."""
    to_decide, waiting = counts(overview)
    return (
        (TO_DECIDE, overview.to_decide, to_decide),
        (WAITING, overview.waiting, waiting),
        ("You always allow", grants, len(grants)),
        (accounts, connections, len(connections)),
        (CONNECT, services, len(services)),
        ("Settled lately", overview.recent, len(overview.recent)),
    )


CONNECT = "Connect an account"
"""Title of the services at which somebody can connect one."""


def connect_label(service: ServiceView, longest: int = LONGEST_NAME) -> str:
    """What the button says that gives a link to connect an account there."""
    return f"Connect {line(service.service, longest)}"


def asked_for(service: ServiceView, longest: int) -> str:
    """What an account there is asked for; empty where the configuration does not say."""
    return line(f"Asks for: {', '.join(service.scopes)}", longest) if service.scopes else ""


def account_link(service: str, host: str) -> str:
    """What is said beside a link to connect an account before anything needs it; `host`: where the link leads."""
    return (
        f"Please connect your account at {service}. The link leads to {host}, which asks you before it connects "
        "anything, and is yours alone: pass it on to nobody."
    )


CODE_IN_THE_END = (
    "In the end your browser may show a code: then write it to me, as a message of its own. Do so only if it was you "
    "who asked for this, and give neither link nor code to anybody else."
)


def overview_summary(overview: Overview) -> str:
    """Returns it in a sentence."""
    to_decide, waiting = counts(overview)
    return f"{to_decide:,} wait for your decision; {waiting:,} of your requests wait."


def unreachable(where: str, platform: str, host: str) -> str:
    """Returns why a sign-in page cannot be opened; `host`: empty where its link has none that is beyond doubt."""
    why = f"too long for {platform}" if host else "no safe web address"
    return f"The sign-in page of {where} cannot be opened from here: its link is {why}."
