"""Words of cards and dialogs that read the same on every platform, in the space that a card has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.dates import number_in_words
from bot.domain import (
    ApprovalView,
    CallActivity,
    ChangeView,
    ClarificationView,
    ConnectionView,
    GrantView,
    OutcomeView,
    Overview,
    ServiceView,
    SignInView,
)
from bot.readings import main_value
from bot.safe_text import beginning_of_list, labels, visible_line, visible_passage
from graph.citations import Source
from policies.reasons import why as why_in_words
from translations import gettext as _
from translations import ngettext

LONGEST_AGAIN = 400
"""Characters of why something is asked again; the page has as many."""
LONGEST_REASON = 2_000
"""Characters of the reason of a rejection."""
LONGEST_HEADING = 150
_MAIN_VALUE = 80
"""Characters of the value in a title."""
_QUOTATION_MARKS = re.compile('[“”"„«»]')
"""In what is quoted itself, where one could seem to end it."""
_APOSTROPHE = "’"
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
_WHY = 600
_RESULT = 500
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; the form has them all."""
_CHOICES = 250
_SOURCE = 160
_MORE_SOURCES = 100
"""Characters that are left for the words around a list of sources."""
_LEAST = 24
"""Characters that a text has at least, so that something of it is left beside the count of what is not."""


def line(text: str, limit: int, unseen: int = 0) -> str:
    """Returns one visible line of at most `limit` characters; "(empty)" for nothing, since platforms refuse empty text
    or leave it out.

    Args:
        unseen: how many characters follow that are not in `text`.
    """
    return visible_line(text, limit, unseen) or _("(empty)")[:limit]


def passage(text: str, limit: int) -> str:
    """Returns visible text of at most `limit` characters with its lines kept; "(empty)" for nothing."""
    shown = visible_passage(text, limit)
    return shown if shown.strip() else _("(empty)")[:limit]


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
Titled = ApprovalView | OutcomeView | ChangeView | GrantView
"""What has a call's arguments, and its title."""
Asking = ApprovalView | ClarificationView | SignInView | OutcomeView | ChangeView
"""What somebody's request has brought about, through whichever program or agent."""


# ------------------------------------------------------------------------------------------------ approvals
def call_name(server: str, tool: str) -> str:
    """Returns a tool under the names that the operator knows; not cut."""
    return f"{server}: {tool}"


def call_source(view: Titled | CallActivity, space: Space = WHOLE) -> str:
    """Returns server and tool of a call under the names that the operator knows, for the line below its title."""
    return space.line(f"{view.server} › {view.tool}", LONGEST_HEADING)


def call_title(view: Titled | CallActivity, space: Space = WHOLE) -> str:
    """Returns what a call does in people's words: "Create event: Standup". The titles of a server that is not trusted
    are in quotation marks, behind the name that the operator gave it: `calendar › “Create event”: Standup`. Nothing
    else that a model wrote is in it but the value of the main argument, as it is masked on the card."""
    tool = _what(view)
    value = "" if isinstance(view, CallActivity) else main_value(view.arguments, view.presentation)
    if not value:
        return space.line(tool, LONGEST_HEADING)
    about = visible_line(value, space.of(_MAIN_VALUE))
    return space.line(_("{what}: {value}").format(what=tool, value=about), LONGEST_HEADING + _MAIN_VALUE)


def is_in_title(view: Titled, value: str, space: Space = WHOLE) -> bool:
    """Returns whether `call_title` ends with this value of the main argument, all of it and just as it is."""
    return call_title(view, space) == _("{what}: {value}").format(what=_what(view), value=value)


def _what(view: Titled | CallActivity) -> str:
    if view.presentation.trusted:
        return view.title.strip() or labels([view.tool])[view.tool]
    quoted = _QUOTATION_MARKS.sub(_APOSTROPHE, view.title.strip() or view.tool)
    return _("{server} › “{title}”").format(server=view.server, title=quoted)


def change_line(view: ChangeView, signs: Mapping[str, str], space: Space = WHOLE, values: str = "") -> str:
    """Returns a change that was made without asking, and why nobody was asked, on one line.

    Args:
        values: what else of the call is shown, made visible already; empty: nothing.
    """
    title = f"{signs[view.result_tone]}{call_title(view, space)}"
    ended = space.line(view.result, _RESULT) if view.result_tone != "success" and view.result.strip() else ""
    return " · ".join(filter(None, [title, values, ended, change_reason(view, space), through(view, space)]))


def change_reason(view: ChangeView, space: Space = WHOLE) -> str:
    """Returns why nobody was asked before a change was made."""
    if view.rule.strip():
        return _("Allowed by rule “{rule}”").format(rule=space.line(view.rule, _RULE))
    return _("Standing approval of {name}").format(name=space.line(view.requester, LONGEST_NAMES))


def approval_summary(view: ApprovalView, longest: int) -> str:
    """Returns an approval in sentences, for notifications; names and who may decide have `longest` characters each."""
    title = call_title(view)
    if says_why_again(view):
        return f"{title}. {outcome_and_why(view)}"
    if view.status != "pending":
        told = _("{outcome}: {title}").format(outcome=outcome(view), title=title)
        return f"{told}. {line(view.result, _RESULT)}" if view.result.strip() else f"{told}."
    name, client = line(view.requester, longest), line(view.client, LONGEST_NAME)
    approvers = line(view.may_decide, longest)
    if view.client:
        return _("{name} requests approval through {client}: {title}. Approver: {approvers}.").format(
            name=name, client=client, title=title, approvers=approvers
        )
    if view.agent:
        return _("{name} requests approval through the {agent} agent: {title}. Approver: {approvers}.").format(
            name=name, agent=view.agent, title=title, approvers=approvers
        )
    return _("{name} requests approval: {title}. Approver: {approvers}.").format(
        name=name, title=title, approvers=approvers
    )


def said_by(agent: str) -> str:
    """Returns what stands above what an agent says that has a name of its own."""
    return _("{agent} agent").format(agent=agent)


def requested_by(view: Asking, space: Space = WHOLE) -> str:
    """Returns who asks, and through which program, or which agent of ours where it is not the default one. What a
    program calls itself is its own word, so it comes last."""
    name = space.line(view.owner if isinstance(view, SignInView) else view.requester, LONGEST_NAMES)
    if view.client:
        client = space.line(view.client, LONGEST_NAME)
        return _("Requested by {name}, through {client}").format(name=name, client=client)
    if view.agent:
        agent = space.line(view.agent, LONGEST_NAME)
        return _("Requested by {name}, through the {agent} agent").format(name=name, agent=agent)
    return _("Requested by {name}").format(name=name)


def is_through_another(view: Asking) -> bool:
    """Returns whether something else asks than Countersign's default agent: a card says so where it does not name who
    asks anyway."""
    return bool(view.client or view.agent)


def through(view: Asking, space: Space = WHOLE) -> str:
    """Returns through which program or agent somebody's own request came; empty: through none."""
    if view.client:
        return _("Requested through {client}").format(client=space.line(view.client, LONGEST_NAME))
    if view.agent:
        return _("Requested through the {agent} agent").format(agent=space.line(view.agent, LONGEST_NAME))
    return ""


def only_through(grant: GrantView, space: Space = WHOLE) -> str:
    """Returns through which program alone a call runs without asking; empty: it is our own agent's."""
    return _("Only through {client}").format(client=space.line(grant.client, LONGEST_NAME)) if grant.client else ""


def written(view: ApprovalView, space: Space = WHOLE) -> tuple[str, str]:
    """Returns what stands before the words by which the requester asked for this very call, and those words."""
    who = _("{name} wrote:").format(name=space.line(view.requester, LONGEST_NAMES))
    return who, space.passage(view.quote, _QUOTE)


def risk(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns what the call may do to the world; empty: it is not known."""
    return space.line(" · ".join(map(_risk_in_words, risks(view))), LONGEST_NAMES) if view.risk else ""


def risks(view: ApprovalView) -> list[str]:
    """Returns what the call may do to the world, by name: of reading, changing and deleting only the strongest, since
    what deletes data also changes it. What may delete `overwrites` where the card shows what comes in its place,
    by the word of a trusted server: another one's takes no warning away."""
    strongest = next((each for each in reversed(_RISING) if each in view.risk), "")
    kept = [each for each in view.risk if each == strongest or each not in _RISING]
    return ["overwrites" if each == "destroys" and _shows_both_sides(view) else each for each in kept]


_RISING = ("reads", "writes", "destroys")


def _shows_both_sides(view: ApprovalView) -> bool:
    preview = view.presentation.preview
    is_shown = preview is not None and not preview.problem and bool(preview.before) and bool(preview.after)
    return is_shown and view.presentation.trusted


def _risk_in_words(name: str) -> str:
    words = {
        "reads": _("Reads data"),
        "writes": _("Changes data"),
        "destroys": _("Deletes data"),
        "overwrites": _("Overwrites data"),
        "reaches outside": _("External"),
    }
    return words.get(name, name)


def deletes(view: ApprovalView) -> bool:
    """Returns whether the call may delete something, and not only overwrite what its card shows: then whoever approves
    is asked once more."""
    return "destroys" in risks(view)


def in_brief(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns on one line who asks, by which tool, and what the call may do to the world."""
    told = [f"⚠️ {_risk_in_words(each)}" if each == "destroys" else _risk_in_words(each) for each in risks(view)]
    does = space.line(" · ".join(told), LONGEST_NAMES) if told else ""
    asked = requested_by(view, space)
    return " · ".join(filter(None, [asked, call_source(view, space), does]))


def deciders_line(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who may decide."""
    return space.line(view.may_decide, 4 * LONGEST_NAMES)


def votes(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who has approved, where that takes several; else nothing."""
    if view.quorum <= 1:
        return ""
    count, names = _voters(view, "approve", space)
    if not count:
        return _("0 of {goal} approved").format(goal=view.quorum)
    return _("{count} of {goal} approved: {names}").format(count=count, goal=view.quorum, names=names)


def vetoes(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who has rejected, likewise."""
    if view.rejections <= 1:
        return ""
    count, names = _voters(view, "reject", space)
    if not count:
        return _("0 of {goal} rejected").format(goal=view.rejections)
    return _("{count} of {goal} rejected: {names}").format(count=count, goal=view.rejections, names=names)


def _voters(view: ApprovalView, verb: str, space: Space) -> tuple[int, str]:
    names = [vote.name for vote in view.votes if vote.verb == verb]
    return len(names), space.line(", ".join(names), LONGEST_NAMES) if names else ""


def handed_to(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who else was asked to decide; empty: nobody."""
    return space.line(", ".join(view.handed_to), LONGEST_NAMES) if view.handed_to else ""


def rule(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns the name of the rule that asks."""
    return space.line(view.rule, _RULE)


def why(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns why it is asked, in a sentence; of what an earlier version asked, by which rule."""
    reasons = view.presentation.reasons
    if reasons is not None:
        return space.line(why_in_words(reasons), _WHY)
    return _("Rule: {rule}").format(rule=rule(view, space))


def open_turn() -> str:
    """Returns the text of the link to all that happened in the turn of a request, for operators."""
    return _("Open the turn in the console")


def deadlines(view: ApprovalView, reader_time: Callable[[float], str]) -> list[str]:
    """Returns when it expires, and from when others may decide. `reader_time` writes a time as the platform shows
    it."""
    told = []
    if view.expires_at is not None:
        told.append(_("Expires {time}").format(time=reader_time(view.expires_at)))
    if view.escalates_at is not None:
        told.append(_("Escalates {time}").format(time=reader_time(view.escalates_at)))
    return told


def end(status: str) -> str:
    """Returns how an approval ended, in a word or two."""
    return {
        "approved": _("Approved"),
        "rejected": _("Rejected"),
        "expired": _("Expired"),
        "superseded": _("Replaced"),
        "withdrawn": _("Withdrawn"),
        "void": _("Asked again"),
    }[status]


def outcome(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns how an approval was settled, and by whom."""
    if not view.decided_by:
        return end(view.status)
    by = {
        "approved": _("Approved by {names}"),
        "rejected": _("Rejected by {names}"),
        "expired": _("Expired"),
        "superseded": _("Replaced by {names}"),
        "withdrawn": _("Withdrawn by {names}"),
        "void": _("Asked again"),
    }[view.status]
    return by.format(names=space.line(", ".join(view.decided_by), LONGEST_NAMES))


def says_why_again(view: ApprovalView) -> bool:
    """Returns whether the result of an approval is why it is asked again."""
    return view.status == "void" and bool(view.result.strip()) and not view.reason.strip()


def outcome_and_why(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns how an approval was settled, by whom, and of what is asked again, why; that it is, is said once."""
    ended = outcome(view, space)
    if not says_why_again(view):
        return ended
    why = space.line(view.result, _RESULT)
    return why if why.startswith(ended) else _("{outcome}: {reason}").format(outcome=ended, reason=why)


def edited(view: ApprovalView, space: Space = WHOLE) -> str:
    """Returns who edited the arguments before it was settled; empty: nobody did."""
    if view.asked_arguments is None:
        return ""
    if not view.edited_by.strip():
        return _("Edited")
    return _("Edited by {name}").format(name=space.line(view.edited_by, LONGEST_NAME))


def result(view: ApprovalView, signs: Mapping[str, str], space: Space = WHOLE) -> str:
    """Returns what came of the call, behind the sign of its tone; empty while it has not run."""
    return signs[view.result_tone] + space.line(view.result, _RESULT) if view.result.strip() else ""


def provenance(view: ApprovalView, space: Space = WHOLE) -> tuple[str, str]:
    """Returns who asked, and why that took an approval."""
    return requested_by(view, space), why(view, space)


def notes(view: ApprovalView, space: Space = WHOLE) -> list[str]:
    """Returns what those who approved added for the assistant, one line for each."""
    sentence = _("{name} added: {note}")
    return [
        sentence.format(name=space.line(name, LONGEST_NAME), note=space.line(note, LONGEST_REASON))
        for name, note in view.notes
    ]


def note_label() -> str:
    """Returns the label of the input for a note to the assistant."""
    return _("Add a note for the assistant (optional)")


def reason_label() -> str:
    """Returns the label of the input for the reason of a rejection."""
    return _("Reason, or what to do instead")


def always_means() -> str:
    """Returns what it means to always allow a call; each platform adds how to take that back."""
    return _("Approves now. Identical requests from you then run without asking.")


def hidden_means() -> str:
    """Returns what stands above values that are masked for everybody else."""
    return _("Only you see this, and the audit log records that you looked. Don’t share it.")


def page_name(name: str, number: int, count: int) -> str:
    """Returns the title of a page of arguments."""
    if count <= 1:
        return name
    return _("{title} (page {number} of {count})").format(
        title=name, number=number_in_words(number + 1), count=number_in_words(count)
    )


def more_not_listed(count: int) -> str:
    """Returns what is said below a list of calls to approve of those that are not in it."""
    sentence = ngettext(
        "{count} more request isn’t listed here. Decide it on its own card.",
        "{count} more requests aren’t listed here. Decide them on their own cards.",
        count,
    )
    return sentence.format(count=number_in_words(count))


def too_long_for_a_list() -> str:
    """Returns what is said where not even one of the calls to approve fits into a list."""
    return _("These requests are too long for a list. Decide them on their own cards.")


# ------------------------------------------------------------------------------------------------ questions, attempts
def choices(view: ClarificationView, space: Space = WHOLE) -> Iterator[tuple[str, str]]:
    """Yields the label of each field with options, and those options."""
    for field in [field for field in view.fields if field.options][:_MOST_CHOICES]:
        yield f"{space.line(field.label or field.name, LONGEST_NAME)}: ", space.list(field.options, _CHOICES)


def question_end(view: ClarificationView) -> str:
    """Returns how a question ended."""
    return {
        "answered": _("Answered"),
        "declined": _("Declined"),
        "cancelled": _("Canceled without an answer"),
        "superseded": _("No longer needed"),
    }[view.status]


def outcome_title(view: OutcomeView) -> str:
    """Returns the heading of the card of an attempt whose outcome is unknown; not cut."""
    return _("Did this go through? {title}").format(title=call_title(view))


def outcome_sentence(view: OutcomeView, space: Space = WHOLE) -> str:
    """Returns what is asked about such an attempt, or what was answered and by whom."""
    name = space.line(view.requester, LONGEST_NAME)
    if view.status == "open":
        return _("The connection was lost, so nobody knows. {name}, please check, then choose.").format(name=name)
    by = {
        "it_was_done": (_("Marked as done by {name}"), _("Marked as done")),
        "try_again": (_("Tried again by {name}"), _("Tried again")),
        "skip": (_("Skipped by {name}"), _("Skipped")),
        "superseded": (_("Replaced by {name}"), _("Replaced")),
    }
    with_name, without = by[view.status]
    if not view.settled_by.strip():
        return without
    return with_name.format(name=space.line(view.settled_by, LONGEST_NAME))


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
        (to_decide_title(), overview.to_decide, to_decide),
        (open_requests_title(), overview.waiting, waiting),
        (_("Standing approvals"), grants, len(grants)),
        (accounts, connections, len(connections)),
        (connect_title(), services, len(services)),
        (_("Recent"), overview.recent, len(overview.recent)),
    )


def to_decide_title() -> str:
    """Returns the title of what somebody may decide."""
    return _("Needs your approval")


def open_requests_title() -> str:
    """Returns the title of somebody's own requests that wait."""
    return _("Your open requests")


def nothing_open() -> str:
    """Returns what is said to somebody for whom there is nothing to do."""
    return _("You’re all caught up")


def more_in_list(count: int) -> str:
    """Returns what is said below a list of how many are not in it."""
    return ngettext("{count} more", "{count} more", count).format(count=number_in_words(count))


def source_name(source: Source, longest: int) -> str:
    """Returns where a passage stands that an answer cites, in at most `longest` characters."""
    # The end says where in the document, so that it is the name which is cut.
    space = max(longest // 2, _LEAST)
    section = line(source.section, min(space, LONGEST_TITLE)) if source.section else ""
    if source.page is None and not section:
        return line(source.name, longest)
    if not section:
        where = _("page {page}").format(page=source.page)
    elif source.page is None:
        where = section
    else:
        where = _("page {page}, {section}").format(page=source.page, section=section)
    where = line(where, space)
    return f"{line(source.name, longest - len(where) - 2)}, {where}"


def source_lines(sources: Sequence[Source], longest: int) -> list[str]:
    """Returns what an answer cites, each on a line of its own, which no name can leave; `longest` characters in all,
    and how many there are beside these."""
    lines: list[str] = []
    space_left = longest - _MORE_SOURCES
    for source in sources:
        shown = f"[{source.number}] {source_name(source, _SOURCE)}"
        space_left -= len(shown) + 1
        if space_left < 0:
            return [*lines, more_in_list(len(sources) - len(lines))]
        lines.append(shown)
    return lines


def sources_title() -> str:
    """Returns what stands above what an answer cites."""
    return _("Sources")


def connect_title() -> str:
    """Returns the title of the services at which somebody can connect an account."""
    return _("Connect an account")


def connect_label(service: ServiceView, longest: int = LONGEST_NAME) -> str:
    """Returns what the button says that gives a link to connect an account there."""
    return _("Connect {service}").format(service=line(service.service, longest))


def asked_for(service: ServiceView, longest: int) -> str:
    """Returns what an account there is asked for; empty where the configuration does not say."""
    if not service.scopes:
        return ""
    return line(_("Access: {scopes}").format(scopes=", ".join(service.scopes)), longest)


def account_link(service: str, host: str) -> str:
    """Returns what is said beside a link to connect an account before anything needs it; `host`: where the link
    leads."""
    return _(
        "Connect your {service} account. The link opens {host}, which asks you before it connects anything. It’s yours "
        "alone, so don’t share it."
    ).format(service=service, host=host)


def code_in_the_end() -> str:
    """Returns what is said of the one-time code that the browser may show."""
    return _(
        "If your browser shows a code at the end, send it to me in a message of its own. Only do this if you asked for "
        "the link yourself, and share neither link nor code."
    )


def overview_summary(overview: Overview) -> str:
    """Returns it in sentences."""
    to_decide, waiting = counts(overview)
    if not to_decide and not waiting:
        return nothing_open()
    first = ngettext("{count} request needs your approval.", "{count} requests need your approval.", to_decide)
    second = ngettext("You have {count} open request.", "You have {count} open requests.", waiting)
    return f"{first.format(count=number_in_words(to_decide))} {second.format(count=number_in_words(waiting))}"


def sign_in_end(view: SignInView, where: str, space: Space = WHOLE) -> str:
    """Returns how a sign-in at `where` ended, or how an account there was connected, as a sentence."""
    name = space.line(view.owner, LONGEST_NAME)
    if view.service:
        account = {
            "done": _("{name} connected their {where} account."),
            "declined": _("{name} didn’t connect a {where} account."),
            "expired": _("The link to connect {where} expired for {name}."),
            "superseded": _("{name} no longer needs to connect a {where} account."),
        }
        return account[view.status].format(name=name, where=where)
    return {
        "done": _("{name} signed in to {where}."),
        "declined": _("{name} didn’t sign in to {where}."),
        "expired": _("The sign-in to {where} expired for {name}."),
        "superseded": _("{name} no longer needs to sign in to {where}."),
    }[view.status].format(name=name, where=where)


def unreachable(where: str, platform: str, host: str) -> str:
    """Returns why a sign-in page cannot be opened; `host`: empty where its link has none that is beyond doubt."""
    if host:
        return _("Can’t open the sign-in page of {where}: its link is too long for {platform}.").format(
            where=where, platform=platform
        )
    return _("Can’t open the sign-in page of {where}: its link isn’t a safe web address.").format(where=where)
