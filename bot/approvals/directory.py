"""What the platforms say of people, looked up before they are judged: groups, channels, which accounts are one human.

Looked up when somebody wants to decide, so answers come within `LOOKUP_SECONDS` or are "could not be found out", which
refuses. Nothing here raises, and nothing that is not known is taken for granted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import structlog

from bot.approvals.permissions import NO_NEEDS, NOTHING, Known, accounts_matter, needs_of
from bot.domain import AccountFacts, Clock, Person
from bot.gateway.thread_ids import is_gateway_thread
from bot.platform import Platform
from bot.records import approvals, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.task_threads import conversation_of
from policies.approvers import Identity, are_two_humans
from policies.model import home_of, realm_of
from policies.spellings import unmarked

log = structlog.get_logger(__name__)

LOOKUP_SECONDS = 2.0
"""Seconds that somebody who clicks waits for look-ups: Slack and Teams wait 3 and 5 for the answer to a click."""
REMEMBERED = 300.0
"""Seconds for which an address is believed. Groups and channels are asked for anew each time: leaving one counts at
once."""


@dataclass(frozen=True, slots=True)
class _Question:
    """Something to ask of one platform."""

    kind: Literal["group", "channel", "account", "name"]
    platform: str
    person_id: str
    about: str = ""


_Answer = bool | str | AccountFacts | None


class PeopleDirectory:
    """Looks people up on all platforms. The same question put twice at a time is asked once.

    Args:
        platforms: by the name that begins the ids of their people.
        patience: seconds after which a look-up counts as "could not be found out".
    """

    def __init__(
        self, platforms: Mapping[str, Platform], database: Database, clock: Clock, *, patience: float = LOOKUP_SECONDS
    ) -> None:
        self._platforms = platforms
        self._database = database
        self._clock = clock
        self._patience = patience
        self._addresses: dict[str, tuple[str, float]] = {}
        """Account → the address that its platform vouches for, and until when that is believed."""
        self._accounts: dict[str, tuple[AccountFacts, float]] = {}
        """Account → what else its platform said of it, and until when that is believed."""
        self._asking: dict[_Question, asyncio.Task[_Answer]] = {}

    async def for_voting(self, person_id: str, approval_ids: Iterable[str]) -> Known:
        """Returns what these approvals, as they are now, need to know about somebody who decides."""
        async with self._database.reading() as tx:
            rows = await approvals.without_arguments(tx, dict.fromkeys(approval_ids))
        return await self.for_judging(person_id, rows)

    async def for_judging(self, person_id: str, rows: Sequence[ApprovalRow]) -> Known:
        """Returns what these approvals need to know to say whether somebody may decide; at once where nothing has to be
        looked up."""
        now, known = self._clock(), NOTHING
        if any(accounts_matter(row, person_id) for row in rows):
            known = Known(other_accounts=await self.other_accounts(person_id))
        needs = [(row, needs_of(row, person_id, known, now)) for row in rows]
        if all(need == NO_NEEDS for _, need in needs):
            return known  # as most approvals are: three tasks, which would find that out, take 0.1 ms
        accounts = frozenset([person_id, *known.other_accounts])
        groups, in_channel, identities = await asyncio.gather(
            self.groups_of(person_id, {group for _, need in needs for group in need.groups}),
            self._channels(person_id, accounts, [row for row, need in needs if need.channel]),
            self.identities({person for _, need in needs for person in need.people}),
        )
        return replace(known, groups=groups, in_channel=in_channel, identities=identities)

    async def learn_names(self, person_ids: Iterable[str]) -> None:
        """Asks the platforms for the names of those, among them, whom the bot does not know: cards say who may decide.
        Groups are passed over."""
        wanted = list(dict.fromkeys(person_ids))
        async with self._database.reading() as tx:
            known = await threads.known_names(tx, wanted)
        questions = [_Question("name", person_id.partition(":")[0], person_id) for person_id in wanted]
        unknown = [question for question in questions if question.person_id not in known]
        answers = await self._answers(unknown, self._deadline())
        found = {question.person_id: name for question, name in answers.items() if isinstance(name, str) and name}
        if not found:
            return
        async with self._database.writing_apart(UNLOCKED) as tx:  # whoever is known by now stays as they are known
            for person_id in sorted(found.keys() - (await threads.known_names(tx, found)).keys()):
                await threads.introduce(tx, Person(person_id, found[person_id]), self._clock())

    def remember_person(self, person: Person) -> None:
        """Believes for a while what a platform has just said of somebody."""
        if person.email:
            self._remember(person.person_id, person.email)

    def forget(self, person_id: str) -> None:
        """Believes nothing of somebody any more that was said before."""
        self._addresses.pop(person_id, None)
        self._accounts.pop(person_id, None)

    async def groups_of(self, person_id: str, groups: Iterable[str]) -> Mapping[str, bool | None]:
        """Returns group reference → whether this person is in it, with any account of theirs."""
        return await self._memberships("group", person_id, groups)

    async def is_also(self, person_id: str, others: Iterable[str]) -> Mapping[str, bool | None]:
        """Returns person id → whether that account, of another workspace or platform, is this human's too: where both
        platforms vouch for the same address. `None`: that may be, but is not proven, or nothing could be looked up. On
        a platform that is not connected nobody is anybody, and on the page whoever has not proved it."""
        wanted = list(dict.fromkeys(others))
        if _is_of_the_page(person_id) and (await self.humans([person_id]))[person_id] is None:
            return dict.fromkeys(wanted, False)
        identities = await self.identities([person_id, *wanted])
        human = identities[person_id].human
        theirs = await self._confirmed_with(human, self._deadline()) if human else ()
        return {other: self._is_one_human(person_id, other, identities, theirs) for other in wanted}

    def _is_one_human(
        self, person_id: str, other: str, identities: Mapping[str, Identity], theirs: Sequence[str]
    ) -> bool | None:
        """`theirs`: the accounts that were ever seen with the address that is vouched for for the first."""
        if other.partition(":")[0] not in self._platforms:
            return False
        one, another = identities[person_id], identities[other]
        if one.human is not None and one.human == another.human:
            accounts = {person_id, other, *theirs}  # two in one realm with the same address are two people
            return True if len(set(map(realm_of, accounts))) == len(accounts) else None
        if _is_of_the_page(person_id) or _is_of_the_page(other):
            return False
        if are_two_humans(person_id, one, other, another) is False:
            return None
        unknown = any(identity.human is None and identity.is_member is None for identity in (one, another))
        return None if unknown else False

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Returns whether this person is in a channel (`ConversationReference.channel`), with any account of theirs."""
        return (await self._memberships("channel", person_id, [channel]))[channel]

    async def humans(self, person_ids: Iterable[str], *, until: float | None = None) -> Mapping[str, str | None]:
        """Returns person id → who that is: the same for all accounts for which platforms vouch for the same address.

        Args:
            until: the time of the event loop at which the answers have to be there; the patience from now by default.
        """
        wanted = list(dict.fromkeys(person_ids))
        unknown = [person_id for person_id in wanted if self._remembered(person_id) is None]
        await self._accounts_of(unknown, self._deadline() if until is None else until)
        return {person_id: self._remembered(person_id) for person_id in wanted}

    async def identities(self, person_ids: Iterable[str]) -> Mapping[str, Identity]:
        """Returns person id → whose that is, also by addresses that nobody vouches for: to tell two humans apart."""
        wanted = list(dict.fromkeys(person_ids))
        found = await self._accounts_of(wanted, self._deadline())
        return {person_id: self._identity(person_id, found[person_id]) for person_id in wanted}

    async def accounts_of(self, person_id: str) -> frozenset[str]:
        """Returns all person ids, as far as they can be found out, of the human that this is one of."""
        return frozenset([person_id, *await self.other_accounts(person_id)])

    async def other_accounts(self, person_id: str, *, until: float | None = None) -> tuple[str, ...]:
        """Returns the other person ids, of those that were ever seen, of the same human. `until` as for `humans`."""
        until = self._deadline() if until is None else until
        human = (await self.humans([person_id], until=until))[person_id]
        if human is None:
            return ()
        others = [other for other in await self._confirmed_with(human, until) if other != person_id]
        realms = [realm_of(account) for account in (person_id, *others)]
        # Two in one realm with the same address are two people, and nobody knows which of them has the others.
        return tuple(others) if len(set(realms)) == len(realms) else ()

    async def accounts_with(self, email: str) -> tuple[str, ...]:
        """Returns the person ids, of those that were ever seen, for which a platform vouches for this address."""
        address = proof_of_identity(email)
        return await self._confirmed_with(address, self._deadline()) if address else ()

    async def close(self) -> None:
        """Gives up what is being looked up."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    # ------------------------------------------------------------------------------------------- memberships

    async def _memberships(
        self, kind: Literal["group", "channel"], person_id: str, things: Iterable[str]
    ) -> Mapping[str, bool | None]:
        """What no platform knows of this account, one may know of another account of the same human."""
        wanted, until = list(dict.fromkeys(things)), self._deadline()
        found = await self._memberships_of([person_id], kind, wanted, until)
        open_ = [thing for thing in wanted if found[thing] is None]
        others = await self.other_accounts(person_id, until=until) if open_ else ()
        return {**found, **await self._memberships_of(others, kind, open_, until)}

    async def _memberships_of(
        self, accounts: Sequence[str], kind: Literal["group", "channel"], things: Sequence[str], until: float
    ) -> Mapping[str, bool | None]:
        questions = [
            _Question(kind, platform, account, thing)
            for account in accounts
            for thing in things
            for platform in self._platforms
        ]
        answers = await self._answers(questions, until)
        return {thing: _any_of([answers[q] for q in questions if q.about == thing]) for thing in things}

    async def _channels(
        self, person_id: str, accounts: Collection[str], rows: Sequence[ApprovalRow]
    ) -> Mapping[str, bool | None]:
        """Thread id → whether the person is in its channel. In a direct chat with the bot there is nobody but the
        requester."""
        conversations = {row.thread_id: conversation_of(row.thread_id) for row in rows}
        async with self._database.reading() as tx:
            found_in = {thread: await threads.get(tx, conversation) for thread, conversation in conversations.items()}
        places = {thread: row.place for thread, row in found_in.items() if row is not None}
        direct = {row.thread_id: row.asked.requesters[0] in accounts for row in rows}
        wanted = {thread: [place.channel or place.key] for thread, place in places.items() if not place.direct}
        wanted |= {row.thread_id: routed for row in rows if (routed := self._routed_to(row))}
        channels = list(dict.fromkeys(channel for several in wanted.values() for channel in several))
        answers = await asyncio.gather(*(self.in_channel(person_id, channel) for channel in channels))
        found = dict(zip(channels, answers, strict=True))
        return {
            thread: _any_of([found[channel] for channel in wanted[thread]]) if thread in wanted else direct[thread]
            for thread in places
        }

    def _routed_to(self, row: ApprovalRow) -> list[str]:
        """The channels in which a program's call is shown: it was asked for in none."""
        if not is_gateway_thread(row.thread_id):
            return []
        named = (platform.named_place(to) for to in row.asked.ask.route_to for platform in self._platforms.values())
        return [place.channel or place.key for place in named if place is not None and not place.direct]

    # ------------------------------------------------------------------------------------------- who is who

    async def _accounts_of(self, person_ids: Sequence[str], until: float) -> Mapping[str, AccountFacts]:
        """What platforms know of these accounts. Their addresses are remembered, unless another was said just now."""
        now = self._clock()
        kept = {p: self._accounts[p] for p in person_ids if p in self._accounts}
        known = {person_id: facts for person_id, (facts, until) in kept.items() if now < until}
        unknown = [p for p in person_ids if p not in known or (known[p].email and self._remembered(p) is None)]
        questions = [_Question("account", person_id.partition(":")[0], person_id) for person_id in unknown]
        for question, facts in (await self._answers(questions, until)).items():
            if not isinstance(facts, AccountFacts):
                continue
            known[question.person_id] = facts
            if facts.email and self._remembered(question.person_id) is None:
                self._remember(question.person_id, facts.email)
            if facts.email or facts.is_member is False:
                self._accounts[question.person_id] = (facts, self._clock() + REMEMBERED)
        return {person_id: known.get(person_id, AccountFacts()) for person_id in person_ids}

    def _identity(self, person_id: str, facts: AccountFacts) -> Identity:
        human = self._remembered(person_id)
        said = [*facts.claimed, facts.email] if human is None else facts.claimed
        claimed = frozenset(filter(None, map(claimed_address, said)))
        return Identity(human, claimed, True if human is not None else facts.is_member)

    async def _confirmed_with(self, email: str, until: float) -> tuple[str, ...]:
        async with self._database.reading() as tx:
            seen = await threads.with_address(tx, email)
        # What was said of them once may be somebody else's address by now.
        confirmed = await self.humans(seen, until=until)
        return tuple(person_id for person_id in seen if confirmed[person_id] == email)

    def _remember(self, person_id: str, email: str) -> None:
        address = proof_of_identity(email)
        if address is None:
            self._addresses.pop(person_id, None)
        else:
            self._addresses[person_id] = (address, self._clock() + REMEMBERED)

    def _remembered(self, person_id: str) -> str | None:
        address, until = self._addresses.get(person_id, (None, 0.0))
        return address if self._clock() < until else None

    # ------------------------------------------------------------------------------------------- asking

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._patience

    async def _answers(self, questions: Iterable[_Question], until: float) -> Mapping[_Question, _Answer]:
        """What is known by then; later answers are not waited for."""
        tasks = {question: self._asked(question) for question in questions}
        if tasks:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait(tasks.values(), timeout=max(left, 0.0))
        return {question: _result(task) for question, task in tasks.items()}

    def _asked(self, question: _Question) -> asyncio.Task[_Answer]:
        task = self._asking.get(question)
        if task is None:
            task = asyncio.create_task(self._ask(question), name=f"directory {question.kind}")
            self._asking[question] = task
            task.add_done_callback(lambda _: self._asking.pop(question, None))
        return task

    async def _ask(self, question: _Question) -> _Answer:
        platform = self._platforms.get(question.platform)
        if platform is None:
            return None
        try:
            async with asyncio.timeout(self._patience):  # or nobody who asks the same could ever find it out
                match question.kind:
                    case "group":
                        return await platform.in_group(question.person_id, question.about)
                    case "channel":
                        return await platform.in_channel(question.person_id, question.about)
                    case "account":
                        return await platform.account_of(question.person_id)
                    case "name":
                        return await platform.name_of(question.person_id)
        except TimeoutError:
            log.warning("directory_timeout", kind=question.kind, platform=question.platform)
            return None
        except Exception:
            # A defect of the adapter. Whoever clicked is refused, not left without an answer.
            log.exception("directory_defect", kind=question.kind, platform=question.platform)
            return None


def _is_of_the_page(person_id: str) -> bool:
    """Whether it may be somebody's own word alone that this is who they are."""
    return home_of(person_id) == "web"


def proof_of_identity(email: str) -> str | None:
    """Returns the one spelling of an address by which accounts are known to be one human's; `None`: it proves nothing.

    Whoever has a mailbox has as many addresses `name+anything@…` as they like, one for each pair of eyes. And what is
    not ASCII can be spelled so that it looks, or becomes in lower case, like somebody else's.
    """
    address = email.strip()
    name, at, host = address.partition("@")
    if not (name and at and host) or "+" in name or "@" in host or not address.isascii():
        return None
    return address.lower()


def claimed_address(email: str) -> str | None:
    """Returns an address as whoever has its mailbox may write it: without a tag, in lower case, with the letters that
    it looks like. For doubting that two accounts are two humans, never for taking them for one to their advantage."""
    name, at, host = unmarked(email.strip()).casefold().rpartition("@")
    name = name.partition("+")[0]
    return f"{name}@{host}" if name and at and host else None


def _any_of(answers: Sequence[_Answer]) -> bool | None:
    """One answer of those of all platforms: only one knows a thing, the others say nothing of it."""
    if any(answer is True for answer in answers):
        return True
    return False if any(answer is False for answer in answers) else None


def _result(task: asyncio.Task[_Answer]) -> _Answer:
    return task.result() if task.done() and not task.cancelled() else None
