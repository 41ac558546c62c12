"""Messages: who wrote one, what it means while something is pending in its thread, and what its author is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.accounts.codes import Codes, code_in
from bot.agent_choices import AGENT
from bot.approvals.retries import given_call_of
from bot.domain import Arrival, Clock, Message, Notice, Person, Quote, Unwelcome
from bot.files import FILES, as_kept, references_in
from bot.outbox import notice
from bot.plans import is_task
from bot.platform import Platform
from bot.records import threads
from bot.records.clarifications import ClarificationRow
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.records.threads import ThreadRow
from bot.records.waiting import Waiting
from graph.json_values import storable
from policies.approvers import Decider, Permitted, judge_decider
from translations import gettext as _

HUMAN = "human"
"""In the body of an introduced message: its author's id, the same for all accounts of one human."""
OWNERS = "owners"
"""In the body of a message: person ids of its author's human, where they have more than one (`Message.owners`)."""
STOP = frozenset({"stop", "cancel"})
"""What the requester says to end the turn."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn begins with it."""


@dataclass(frozen=True, slots=True)
class AnswersClarification:
    """The message is the answer to the question that is open."""

    clarification_id: str


@dataclass(frozen=True, slots=True)
class Supersedes:
    """The requester goes on to something else: what is open is superseded, then a turn begins with it."""


@dataclass(frozen=True, slots=True)
class ToldToWait:
    """It begins and answers nothing, and its author is told why: somebody else is being waited for, or it cannot be
    taken for the answer to what is open."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """People write to each other."""


Meaning = NewTurn | AnswersClarification | Supersedes | ToldToWait | Ignored


def is_stop(text: str) -> bool:
    """Whether the whole message is a word that ends the turn."""
    return text.strip().rstrip(".!").lower() in STOP


def meaning(
    author: str,
    *,
    addressed: bool,
    at: float,
    requester: str | None,
    waiting: Waiting,
    is_stricter: bool = False,
    answers: bool = True,
    accounts: Collection[str] = (),
) -> Meaning:
    """What a message by `author` means. Text is never an approval.

    Args:
        at: when it was accepted, in seconds since the epoch.
        is_stricter: its options take away something that the turn which waits may do. Were it taken for an answer, that
            turn would go on with what its author has just ruled out.
        answers: false for what is no text that could answer a question: a call that is to be made again.
        accounts: other person ids of the author's human, whose requests and questions are the author's too.
    """
    mine = {author, *accounts}
    if requester is not None and requester in mine:
        author = requester
    if not waiting:
        return NewTurn() if addressed or author == requester else Ignored()
    if own := [question for question in waiting.clarifications if question.requester in mine]:
        return Supersedes() if is_stricter or not answers else _reply_to(own, at)
    if author != requester:
        return ToldToWait(told_to_wait(waiting)) if addressed else Ignored()
    if not waiting.for_people:  # the agents of a plan are at work
        return (
            ToldToWait(_("Still working on your plan. Wait for the answer, or say “stop”.")) if addressed else Ignored()
        )
    return Supersedes() if addressed or _waits_only_for(author, waiting) else Ignored()


def _reply_to(questions: Sequence[ClarificationRow], at: float) -> Meaning:
    """What a message means to whose author these questions were put.

    A tool gets an answer as it is typed, and may act on a mere "yes": so a message is no answer to a question that a
    tool asked after it was written, nor to one of several. The model reads its answer as what was said, whenever that
    was, and all that follows from it is judged.
    """
    could_be_seen = [question for question in questions if question.server is None or question.asked_at <= at]
    match could_be_seen:
        case [question]:
            return AnswersClarification(question.clarification_id)
        case []:
            return ToldToWait(_("You wrote this before the question was asked. Answer it now, or say “stop”."))
        case _:
            return ToldToWait(_("Several questions are open. Answer each with its form, or say “stop”."))


def _waits_only_for(requester: str, waiting: Waiting) -> bool:
    """Whether a plain reply can be meant for nobody but the bot."""
    return all(
        {*row.asked.ask.approvers, *row.asked.ask.escalate_to} <= {"requester", requester}
        and isinstance(judge_decider(row.asked.ask, Decider(requester, row.asked.requesters)), Permitted)
        for row in waiting.approvals
    )


def waits_for(waiting: Waiting) -> str:
    """What a conversation waits for, as a list. Under the names that the operator knows: a server's titles may say
    anything."""
    parts = []
    if waiting.approvals:
        calls = ", ".join(f"{a.asked.server} › {a.asked.tool}" for a in waiting.approvals)
        parts.append(_("approval ({calls})").format(calls=calls))
    if waiting.clarifications:
        parts.append(_("an answer"))
    if waiting.sign_ins:
        parts.append(_("a sign-in ({services})").format(services=", ".join(s.server for s in waiting.sign_ins)))
    if waiting.outcomes:
        calls = ", ".join(f"{o.server} › {o.tool}" for o in waiting.outcomes)
        parts.append(_("an outcome ({calls})").format(calls=calls))
    if waiting.plans and not parts:
        parts.append(_("a plan"))
    return ", ".join(parts)


def told_to_wait(waiting: Waiting) -> str:
    """What somebody is told who writes where somebody else is waited for."""
    told = _("Waiting on someone else: {what}. Start your own conversation.")
    return told.format(what=waits_for(waiting))


def asks_for_new_session(delivery: Delivery) -> bool:
    """Whether the message only asks for a new conversation."""
    return delivery.body.get("begins") == "asked"


def announcement(delivery: Delivery) -> NewPost | None:
    """The sentence that says that a new conversation begins, where people cannot see that by themselves: in chats
    without threads. None when the message begins no other than the first."""
    begins = delivery.body.get("begins")
    if begins is None:
        return None
    return notice(f"begins:{delivery.key}", delivery.thread_id, Notice(_asked() if begins == "asked" else _quiet()))


def _asked() -> str:
    return _("New conversation. Earlier messages are not part of it.")


def _quiet() -> str:
    return _("New conversation after a long pause. Earlier messages are not part of it.")


def why_stopped(name: str) -> str:
    """Why what was open was given up, after a stop by whoever is called so."""
    return _("{name} stopped it").format(name=name)


def for_author(kind: str, delivery: Delivery, sentence: str) -> NewPost:
    """A sentence for the author of a message alone, once for each kind of sentence."""
    return notice(f"{kind}:{delivery.key}", delivery.thread_id, Notice(sentence), only_for=delivery.body["person"])


class Introductions:
    """Asks the platform who wrote a message and what was said before it: when its turn has come, not when it is
    accepted."""

    def __init__(self, database: Database, platforms: Mapping[str, Platform], clock: Clock, codes: Codes) -> None:
        self._database = database
        self._platforms = platforms
        self._clock = clock
        self._codes = codes

    async def of(self, delivery: Delivery, thread: ThreadRow, heard: str | None) -> Delivery | Unwelcome:
        """The delivery with its author's name and time zone, its text in words, and as its `background` what people
        said before it; or why its author may not use the bot. A platform that is not connected adds nothing.

        Args:
            heard: key of the message before it in its thread; `None`: it is the first.

        Raises `PostFailed` when the platform cannot tell now.
        """
        platform = self._platforms.get(thread.place.platform)
        if platform is None or given_call_of(delivery) is not None or is_task(delivery):  # of which all is known
            return delivery
        introduced = await platform.introduce(Arrival(message_of(delivery, thread, delivery.body["text"]), heard))
        if isinstance(introduced, Unwelcome):
            return introduced
        author = replace(introduced.author, name=storable(introduced.author.name))
        async with self._database.reading() as tx:
            accounts = await threads.kept_with_accounts(tx, author)
        if accounts is None:
            async with self._database.writing(delivery.thread_id) as tx:
                await threads.remember(tx, author, self._clock())
                accounts = await threads.accounts_of(tx, author.person_id)
        background = await self._codes.without_codes(introduced.background)
        body = {
            **delivery.body,
            "name": author.name,
            "time_zone": author.time_zone,
            "text": storable(introduced.text),
            "background": storable(in_lines(background)),
            HUMAN: accounts[0],
        }
        if introduced.files is not None:
            body = {name: value for name, value in body.items() if name != FILES}
            body |= {FILES: as_kept(introduced.files)} if introduced.files else {}
        return replace(delivery, body=body)


def in_lines(background: Sequence[Quote]) -> str:
    """What was said, one paragraph each, with who said it. Further lines of a paragraph are indented, so that nobody
    can seem to be another."""
    told = (quote for quote in background if code_in(quote.text) is None)  # a code of a sign-in is for no model
    return "\n".join(f"{' '.join(quote.author.split())}: {_indented(quote.text)}" for quote in told)


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())


def message_of(delivery: Delivery, thread: ThreadRow, text: str) -> Message:
    """The message that was accepted as this delivery, with a text that may have been edited since."""
    body = delivery.body
    return Message(
        key=delivery.key,
        place=thread.place,
        author=Person(body["person"], body["name"], body["time_zone"]),
        text=text,
        at=body.get("at", delivery.accepted_at),
        addressed=body["addressed"],
        origin=body.get("origin", {}),
        via=body.get("via", ""),
        options=body.get("options", {}),
        agent=body.get(AGENT, ""),
        files=references_in(body),
    )
