"""Whether one person may decide one recorded approval, judged at the click, and the sentence that refuses it.

`permission_of` asks the policy (`policies.approvers.judge_decider`), and adds what the policy does not know: whether
the person belongs to the workspace where it was asked, and whether their account may be the requester's second one.
Pure: `accounts_matter` and `needs_of` say what has to be looked up first, and `bot.approvals.directory` looks it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain import Person
from bot.records.approvals import ApprovalRow
from policies.approvers import (
    UNKNOWN,
    CouldNotFindOut,
    CountedVote,
    Decider,
    Identity,
    NotPermitted,
    Permission,
    Permitted,
    as_of,
    groups_to_look_up,
    judge_decider,
    vote_counts,
)
from policies.model import Ask, home_of, is_group, realm_of
from translations import gettext as _

_PAGE = "web:"


@dataclass(frozen=True, slots=True)
class Known:
    """What was looked up about one person just now. What is missing, or `None`, could not be found out."""

    groups: Mapping[str, bool | None] = field(default_factory=dict)
    """Group reference → whether they are in it."""
    in_channel: Mapping[str, bool | None] = field(default_factory=dict)
    """Thread id → whether they are in the channel where the thread is held."""
    identities: Mapping[str, Identity] = field(default_factory=dict)
    """Person id → whose that is, of them and of those whom approvals name."""
    other_accounts: tuple[str, ...] = ()
    """Further person ids of the same human; looked up where `accounts_matter`."""

    def identity(self, person_id: str) -> Identity:
        """Returns whose an account is; `UNKNOWN` when that was not looked up."""
        return self.identities.get(person_id, UNKNOWN)

    def described(self, person: Person) -> Person:
        """Returns the person with their address, as far as it was found out."""
        return replace(person, email=person.email or self.identity(person.person_id).human or "")


NOTHING = Known()


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to be looked up about somebody before they can be judged."""

    groups: frozenset[str] = frozenset()
    channel: bool = False
    people: frozenset[str] = frozenset()
    """Person ids of which it matters who they are."""


NO_NEEDS = Needs()


def _is_within(row: ApprovalRow, within: str) -> bool:
    """Returns whether an approval's thread, or a place that it was routed to, is in a platform or one workspace of it.

    Args:
        within: what the ids of the platform's or workspace's threads and places begin with.
    """
    return any(where.startswith(within) for where in (row.thread_id, *row.asked.ask.route_to))


def is_shown_within(row: ApprovalRow, within: str) -> bool:
    """Returns whether its card is shown there to anybody: also to those whom it was escalated or handed to."""
    return _is_within(row, within) or any(to.startswith(within) for to in (*row.asked.ask.escalate_to, *row.handed_to))


def permission_of(row: ApprovalRow, person_id: str, known: Known, now: float) -> Permission:
    """Returns whether they may decide now: the policy permits it, and a vote of theirs would count.

    Args:
        known: what `accounts_matter` and `needs_of` wanted, as far as it was found out.
        now: seconds since the epoch.
    """
    ask = as_of(row.asked.ask, row.asked_at, now)
    outside = outsider_refusal(row, person_id, known, now)
    if outside is not None:
        return outside
    permission = judge_decider(ask, _decider(row, person_id, known))
    if not isinstance(permission, Permitted):
        return permission
    requesters = requesters_of(row, known)
    match vote_counts(ask, CountedVote(person_id, known.identity(person_id), "approve"), requesters):
        case True:
            return permission
        case False:
            return NotPermitted(
                _(
                    "Your account shares an email with the person who requested or edited this. "
                    "Someone else must approve."
                )
            )
        case None:
            return CouldNotFindOut(_unknown_human(row, person_id, known.identity(person_id), requesters))


def authority_of(row: ApprovalRow, person_id: str, known: Known, now: float) -> str:
    """Returns which of the approvers that the policy lists permits them to decide, in words; empty when none does."""
    decider = _decider(row, person_id, known)
    listed = row.asked.ask.approvers
    for approver in as_of(row.asked.ask, row.asked_at, now).approvers:
        alone = row.asked.ask.model_copy(update={"approvers": (approver,)})
        if isinstance(judge_decider(alone, decider), Permitted):
            return _in_words(approver) if approver in listed else "escalation"
    return ""


def requesters_of(row: ApprovalRow, known: Known) -> dict[str, Identity]:
    """Returns person id → whose that is, of whoever asked for the call or edited it."""
    return {person_id: known.identity(person_id) for person_id in row.asked.requesters}


def outsider_refusal(row: ApprovalRow, person_id: str, known: Known, now: float) -> NotPermitted | None:
    """Returns why nothing is said of it to this person, also when it is settled; `None` when something may be.

    "any" means anybody of the workspaces where it was asked or that it was routed to, not of all that have installed
    us. The page is no workspace: who anybody there is may be their own word alone. So its people count in its own
    threads, and elsewhere as much as an account there that is proven to be theirs.
    """
    if not accounts_matter(row, person_id):
        if person_id.startswith(_PAGE) or _belongs(row, person_id, now):
            return None
        return NotPermitted(_("This was requested in another workspace."))
    if any(_belongs(row, account, now) for account in known.other_accounts):
        return None
    if known.other_accounts:
        return NotPermitted(_("This was requested in a workspace where you have no known account."))
    return NotPermitted(_("On this page you can only approve what was requested here."))


def accounts_matter(row: ApprovalRow, person_id: str) -> bool:
    """Returns whether it depends on their other accounts whether they belong where this was asked."""
    return person_id.startswith(_PAGE) and not row.thread_id.startswith(_PAGE)


def _belongs(row: ApprovalRow, person_id: str, now: float) -> bool:
    """Whether an account is of a workspace where this is shown, or named among those who may decide."""
    return _is_within(row, f"{home_of(person_id)}:") or person_id in as_of(row.asked.ask, row.asked_at, now).approvers


def needs_of(row: ApprovalRow, person_id: str, known: Known, now: float) -> Needs:
    """Returns what has to be looked up before `permission_of`.

    Args:
        known: their other accounts, where these matter.
    """
    if row.status != "pending" or outsider_refusal(row, person_id, known, now) is not None:
        return NO_NEEDS
    ask = as_of(row.asked.ask, row.asked_at, now)
    themselves = frozenset({person_id, *row.asked.requesters})
    people = themselves if _who_matters(ask) else frozenset()
    if _is_permitted_anyhow(ask, row, person_id, known):
        return Needs(people=people)
    named = {approver for approver in ask.approvers if ":" in approver and not is_group(approver)}
    return Needs(groups_to_look_up(ask), "channel" in ask.approvers, people | _if_apart(themselves | named))


def _if_apart(people: frozenset[str]) -> frozenset[str]:
    """Returns the people whose accounts have to be looked up: none where all are of one realm, since a human has one
    account there."""
    return frozenset(people if len({realm_of(person_id) for person_id in people}) > 1 else ())


def _is_permitted_anyhow(ask: Ask, row: ApprovalRow, person_id: str, known: Known) -> bool:
    """Whether the list names them, or everybody, so that no group or channel has to be looked up."""
    confirmed = ask.model_copy(update={"self_approval": "confirm"})
    return isinstance(judge_decider(confirmed, _decider(row, person_id, known)), Permitted)


def _who_matters(ask: Ask) -> bool:
    """Returns whether two accounts of one human must not count as two people."""
    return ask.self_approval == "fourEyes" or ask.quorum > 1 or ask.rejections > 1


def _decider(row: ApprovalRow, person_id: str, known: Known) -> Decider:
    human, realm = known.identity(person_id).human, realm_of(person_id)
    # Of two in one realm with the same address neither is the other: it is the address of several people.
    others = [
        other
        for other, identity in known.identities.items()
        if human is not None and identity.human == human and realm_of(other) != realm
    ]
    accounts = tuple(dict.fromkeys((*known.other_accounts, *others)))
    return Decider(
        person_id, row.asked.requesters, known.groups, known.in_channel.get(row.thread_id), other_accounts=accounts
    )


def _unknown_human(row: ApprovalRow, person_id: str, identity: Identity, requesters: Mapping[str, Identity]) -> str:
    """Why it is not known whether they are somebody else than those who count already, and what to do."""
    if identity.human is None and not identity.is_member:
        if identity.is_member is False:
            return _("This needs a second person, and guest or external accounts don’t count. Ask a full member.")
        return _("This needs a second person, and we couldn’t verify your account. Try again, or ask a colleague.")
    if any(each.human is None and not each.is_member for each in requesters.values()):
        return _(
            "This needs a second person, and we couldn’t verify who requested or edited it. Try again, or have a full "
            "member request it."
        )
    here = _platform_of(row.thread_id)
    if here == _platform_of(person_id):
        return _("We couldn’t verify that you’re a second person. Approve it in the workspace where it was requested.")
    text = _("We couldn’t verify that you’re a second person. Approve it in {platform}, where it was requested.")
    return text.format(platform=here.capitalize())


def _in_words(approver: str) -> str:
    match approver:
        case "requester" | "any":
            return approver
        case "channel":
            return "in the channel"
        case group if is_group(group):
            return f"member of {group}"
        case _:
            return "named"


def _platform_of(thing: str) -> str:
    return thing.partition(":")[0]
