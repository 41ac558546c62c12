"""`/countersign`, and the threads that it and the shortcut on a message begin with a post of ours."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.caches import Remembered
from adapters.shared.calls import CallFailed
from adapters.shared.clicks import in_words
from adapters.shared.memories import memory_list
from adapters.shared.untrusted_json import parts, words
from adapters.slack.ids import SlackLocation, message_key, permalink, place_of, slack_ts, within_team
from adapters.slack.inbound.answers import SlackAnswers
from adapters.slack.inbound.events import origin_of
from adapters.slack.inbound.home_tab import SlackOverviews
from adapters.slack.inbound.payloads import SlackVisitor, SlashCommand, code_entry, without_code
from adapters.slack.outbound.posting import remove, show_piece, where
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.home import connections_piece, overview_piece
from adapters.slack.render.memories import memory_piece
from adapters.slack.render.posts import help_piece, note, thread_start, usage_piece
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.texts import mentioned, plain_text, text_of, with_names
from bot.accounts.codes import code_in
from bot.domain import Message, Person, Settled, Unwelcome
from bot.inbox import Inbox
from bot.safe_text import shorten
from bot.services import Services
from translations import choose, in_language, in_shared_language, ngettext
from translations import gettext as _

log = structlog.get_logger(__name__)
EVENT_TYPE = "countersign_opening"
"""Under which a thread's first message is marked as ours in its metadata, so that nobody takes it for an answer."""
LONGEST_QUOTE = 2_000
"""Characters of the message that somebody asks about."""
ANSWER_WITHIN = 2.6
"""Seconds: Slack waits 3 s for the answer to a command or a form, and then tells the person that it did not work."""
WHO_WITHIN = 1.2
"""Seconds of them for finding out who asks."""
_QUOTE_PATIENCE = 0.6
"""Seconds of them for the quote: the question is asked without it sooner than not."""
_LEAST_PATIENCE = 0.3
"""Seconds that a post gets however late it is."""
_LOOK_AFTER = 2.0
"""Seconds after which a post that Slack did not confirm stands in the channel, if it ever does."""
_LOOK_BACK = 120.0
"""Seconds before then in which it was posted; Slack's clock is not ours."""
_KEEP, _MOST = 600.0, 1_000
"""Seconds for which the same command, delivered again when a socket broke, is known."""


def answer_until() -> float:
    """When a command or form that has come in now must be answered, on the event loop's clock."""
    return asyncio.get_running_loop().time() + ANSWER_WITHIN


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """What somebody asks. The same one, delivered twice, is equal."""

    visitor: SlackVisitor
    person: Person
    text: str
    location: SlackLocation
    direct: bool
    about_ts: str = ""
    """Timestamp of the message that it is about."""
    until: float = field(default_factory=answer_until, compare=False)
    use: str = field(default_factory=lambda: uuid4().hex, compare=False)
    """Names the message in its metadata."""


class QuestionStarter:
    """Posts the question, then has it answered in the thread of that post. `close` in the end."""

    def __init__(self, inbox: Inbox, sender: SlackSender, background: BackgroundTasks) -> None:
        self._inbox = inbox
        self._sender = sender
        self._background = background
        self._asked: Remembered[AskedQuestion, str] = Remembered(keep=_KEEP, most=_MOST)

    async def ask(self, question: AskedQuestion) -> str:
        """Begin a thread with it. What went wrong, in a sentence; empty: nothing. Raises whatever the inbox raises.

        It is asked once, however often it is delivered: clicks and commands are known by their trigger.
        """
        if not question.visitor.trigger_id:
            return await self._begin(question)
        return await self._asked.get(question, self._begin)

    async def close(self) -> None:
        """End what is under way."""
        await self._asked.close()

    async def _begin(self, asked: AskedQuestion) -> str:
        location, visitor = asked.location, asked.visitor
        quoted = await self._quote(location, asked.about_ts) if asked.about_ts else ""
        try:
            bot = await self._sender.workspaces.bot(location.team)
            question = plain_text(asked.text, bot.bot_user)
            ts = await self._post(asked, question, quoted)
        except CallFailed as failure:
            if failure.may_have_acted:
                self._background.start(self._take_back(asked), "question taken back")
            return trouble(failure)
        place = place_of(SlackLocation(location.team, location.channel, location.thread_ts or ts), direct=asked.direct)
        message = Message(
            key=message_key(location.team, location.channel, ts),
            place=place,
            author=asked.person,
            text=about(question, quoted),
            at=float(ts),
            origin=origin_of(user_team=visitor.home_team, bot_user=bot.bot_user),
        )
        try:
            await self._inbox.accept(message)
        except Exception:
            # Whatever it was: the question is not kept, and must not stand there as if it would be answered.
            self._background.start(remove(self._sender.api, location, ts), "question taken back")
            raise
        return ""

    async def _post(self, asked: AskedQuestion, question: str, quoted: str) -> str:
        location, user = asked.location, asked.visitor.user
        with in_shared_language():  # everybody there reads it
            piece = thread_start(
                asked.person.name, self._readable(location.team, question), self._readable(location.team, quoted)
            )
        quiet = {"unfurl_links": False, "unfurl_media": False}
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"asked_by": user, "use": asked.use}}
        arguments = {**where(location), **quiet, "metadata": metadata}
        left = max(asked.until - asyncio.get_running_loop().time(), _LEAST_PATIENCE)
        answer = await show_piece(self._sender.api, location.team, "chat.postMessage", arguments, piece, patience=left)
        ts = slack_ts(answer, "ts")
        if not ts:
            raise CallFailed("chat.postMessage", "no_ts", may_have_acted=True)
        return ts

    async def _take_back(self, asked: AskedQuestion) -> None:
        """Delete the post of a question that was not kept, if there is one after all: nobody would answer it."""
        await asyncio.sleep(_LOOK_AFTER)
        location = asked.location
        arguments = {
            **(
                {"channel": location.channel, "ts": location.thread_ts}
                if location.thread_ts
                else {"channel": location.channel}
            ),
            "oldest": f"{self._sender.clock() - _LOOK_BACK:.6f}",
            "limit": 100,
            "include_all_metadata": True,
        }
        method = "conversations.replies" if location.thread_ts else "conversations.history"
        answer = await self._sender.api.call(location.team, method, arguments)
        for message in parts(answer, "messages"):
            if words(message, "metadata", "event_payload", "use") == asked.use:
                await remove(self._sender.api, location, slack_ts(message, "ts"))

    async def _quote(self, location: SlackLocation, message_ts: str) -> str:
        """What the message says now. Empty when that cannot be read: the thread it is in will be, when its turn
        comes."""
        arguments = {
            "channel": location.channel,
            "ts": location.thread_ts or message_ts,
            "oldest": message_ts,
            "latest": message_ts,
            "inclusive": True,
            "limit": 2,  # the first message of a thread always comes along
        }
        try:
            answer = await self._sender.api.call(
                location.team, "conversations.replies", arguments, patience=_QUOTE_PATIENCE
            )
            bot = await self._sender.workspaces.bot(location.team)
        except CallFailed as failure:
            log.info("slack_message_not_quoted", team=location.team, channel=location.channel, error=failure.error)
            return ""
        found = [text_of(m, bot.bot_user) for m in parts(answer, "messages") if slack_ts(m, "ts") == message_ts]
        return shorten(without_code(found[0]), LONGEST_QUOTE) if found else ""

    def _readable(self, team: str, text: str) -> str:
        """The text with the names that are known already."""
        users, _ = mentioned(text)
        known = {user: self._sender.people.known_name(team, user) for user in users}
        return with_names(text, {user: name for user, name in known.items() if name})


def about(question: str, quoted: str) -> str:
    """What is asked, with the message that it is about."""
    if not quoted:
        return question
    lines = "\n".join(f"> {line}" for line in quoted.splitlines())
    return f"{question}\n\nThis is about the message:\n{lines}"  # for the model


def trouble(failure: CallFailed) -> str:
    """Why a question was not asked, for the person who asked."""
    if failure.may_have_acted:
        return _("Slack didn’t answer. Check whether your question was posted before you ask again.")
    match failure.error:
        case "not_in_channel" | "channel_not_found":
            return _("Countersign isn’t in this channel. Add it with /invite, or send it a direct message.")
        case "is_archived":
            return _("This channel is archived.")
        case "restricted_action":
            return _("Countersign can’t post in this channel. Send it a direct message.")
        case "thread_not_found":
            return _("That message was deleted.")
        case "cannot_reply_to_message":
            return _("That message can’t be replied to. Send Countersign a direct message.")
        case error:
            return _("Slack didn’t accept the post ({error}). Try again in a moment.").format(error=error)


# ---------------------------------------------- /countersign: ask, approvals, connections, stop, help
# Every answer is for the person alone.


def nothing_to_stop() -> str:
    """Returns what somebody is told for whom nothing runs in the channel where they say stop."""
    return _("Nothing of yours is running in this channel.")


class SlackCommandHandler:
    """What each verb does."""

    def __init__(
        self,
        services: Services,
        sender: SlackSender,
        *,
        answers: SlackAnswers,
        overviews: SlackOverviews,
        questions: QuestionStarter,
    ) -> None:
        self._services = services
        self._sender = sender
        self._answers = answers
        self._overviews = overviews
        self._questions = questions

    async def handle(self, command: SlashCommand) -> dict[str, Any]:
        """Do what was asked; the body of the answer, empty when there is nothing to say. Raises whatever the services
        raises, so that Slack says that it did not work."""
        until = answer_until()
        person = await self._answers.who(command.visitor, WHO_WITHIN)
        if isinstance(person, Unwelcome):
            return ephemeral(note(person.text))
        with in_language(choose(person.locale)):
            return await self._answer(command, person, until)

    async def _answer(self, command: SlashCommand, person: Person, until: float) -> dict[str, Any]:
        visitor = command.visitor
        match command.verb:
            case "help":
                return ephemeral(help_piece())
            case "approvals":
                return ephemeral(await self._approvals(command, person))
            case "connections":
                return ephemeral(connections_piece(await self._services.connections.of_person(person)))
            case "memory":
                listed = await memory_list(self._services.memories, person.person_id, channel_of(visitor))
                return ephemeral(memory_piece(listed))
            case "usage":
                return ephemeral(usage_piece(await self._services.usage.own(person)))
            case "stop":
                return ephemeral(note(await self._stop(command, person)))
            case "agent":
                told = await self._services.agents.command(person.person_id, channel_of(visitor), command.text)
                return ephemeral(note(told))
            case "ask" if code := code_in(command.text):  # typed here, it would stand in the channel
                return ephemeral(
                    note(in_words(await self._services.connections.enter_code(code_entry(visitor, person, code))))
                )
            case "ask":
                location = SlackLocation(visitor.team, visitor.location.channel)
                question = AskedQuestion(visitor, person, command.text, location, command.direct, until=until)
                trouble = await self._questions.ask(question)
                return ephemeral(note(trouble)) if trouble else {}

    async def _approvals(self, command: SlashCommand, person: Person) -> SlackMessage:
        bot = await self._sender.workspaces.bot(command.visitor.team)
        overview = await self._overviews.of(command.visitor, person)
        return overview_piece(overview, lambda shown: permalink(bot.url, shown))

    async def _stop(self, command: SlashCommand, person: Person) -> str:
        """Everything of this person's in the channel where they say it."""
        team, channel = command.visitor.team, command.visitor.location.channel
        here = f"{within_team(team)}{channel}"
        found = await self._services.queries.turns_of(person, here)
        threads = [thread for thread in found if is_within(thread, here)]
        # Each thread is stopped by a delivery of its own; the trigger names this one use of the command.
        use = f"{within_team(team)}stop:{command.visitor.trigger_id or uuid4().hex}"
        results = [await self._services.inbox.stop(f"{use}:{thread}", thread, person) for thread in threads]
        stopped = sum(isinstance(result, Settled) for result in results)
        if not stopped:
            return nothing_to_stop()  # or it has ended by itself meanwhile, which is the same
        return ngettext("Stopped {count} conversation.", "Stopped {count} conversations.", stopped).format(
            count=stopped
        )


def channel_of(visitor: SlackVisitor) -> str:
    """`ConversationReference.channel` of where somebody does something: the channel that Slack says they are in."""
    here = visitor.location.channel
    return place_of(SlackLocation(visitor.team, here), direct=here.startswith("D")).channel if here else ""


def is_within(thread_id: str, channel: str) -> bool:
    """Whether a thread (`{channel}:{ts}`) or session (`{channel}#{number}`) is in that channel, not in one whose id
    merely begins like it."""
    return thread_id == channel or thread_id.removeprefix(channel)[:1] in (":", "#")


def ephemeral(piece: SlackMessage) -> dict[str, Any]:
    """The answer to a command, for whoever gave it."""
    return {"response_type": "ephemeral", "text": piece.text, "blocks": list(piece.blocks)}
