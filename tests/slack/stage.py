"""The outgoing half of the Slack platform against the fake Slack, and posts for it to show."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.slack.ids import SlackLocation, place_of
from adapters.slack.outbound.drafts import SlackDrafts, SlackLiveAnswer, SlackPace
from adapters.slack.outbound.outbox import SlackPostSender
from adapters.slack.outbound.status import StatusPace
from adapters.slack.web_api.client import WebApi
from bot.domain import ApprovalView, Content, ConversationReference, Notice, Post, Refused, Said, SignInView, Unknown
from tests.fakes.slack.server import FakeSlack, fake_slack

QUICK = SlackPace(before=0.05, append=0.05, update=0.05, grace=0.3)
NEVER = SlackPace(before=60.0)
LINK = "https://sign.in/acme?state=very-secret"
LONG = "\n\n".join(f"Paragraph {n}: " + "words and more words " * 30 for n in range(60))
"""An answer of several messages."""
ANA, BEN = "slack:T1:U1", "slack:T1:U2"


@dataclass
class Stage:
    """One process's worth of it; `again` is the process after a crash."""

    slack: FakeSlack
    api: WebApi
    pace: SlackPace
    status_pace: StatusPace
    thread_ts: str
    links: dict[str, str | Refused | Unknown | Exception] = field(default_factory=dict)
    """What the services answers when it is asked for a sign-in's link."""
    now: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.again()

    def again(self) -> None:
        """What a new process knows: nothing."""
        self.drafts = SlackDrafts(self.api, clock=lambda: self.now, pace=self.pace, status_pace=self.status_pace)
        self.outbound = SlackPostSender(self.api, self.drafts, self._link)

    async def _link(self, sign_in_id: str, person_id: str) -> str | Refused | Unknown:
        answer = self.links[f"{sign_in_id} {person_id}"]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def thread(self) -> ConversationReference:
        """A thread in a channel."""
        return place_of(SlackLocation("T1", "C1", self.thread_ts), direct=False)

    def live(self, place: ConversationReference | None = None, reader: str = ANA) -> SlackLiveAnswer:
        return self.drafts.live("thread-1", place or self.thread, reader)

    def post(self, post_id: str, content: Content, place: ConversationReference | None = None, **more: Any) -> Post:
        return Post(post_id, "thread-1", place or self.thread, 1, time.time(), content, **more)

    def said(self, message_id: str, text: str, place: ConversationReference | None = None) -> Post:
        return self.post(f"said:{message_id}", Said(text), place)

    def notice(self, post_id: str, text: str, **more: Any) -> Post:
        return self.post(post_id, Notice(text), **more)

    def answers(self, channel: str = "C1") -> list[dict[str, Any]]:
        """The bot's messages, oldest first."""
        return [message for message in self.slack.messages(channel) if message.get("bot_id") == "BBOT"]

    def methods(self) -> list[str]:
        """The methods that write, in the order they were called."""
        reading = {"auth.test", "conversations.replies", "conversations.history"}
        return [call.method for call in self.slack.calls if call.method not in reading]


@asynccontextmanager
async def staged(pace: SlackPace = QUICK, status_pace: StatusPace | None = None) -> AsyncIterator[Stage]:
    """The fake, with somebody's message in C1 to answer."""

    async def token(_team: str) -> str:
        return "xoxb-1"

    async with fake_slack() as slack:
        api = WebApi(token, slack.api_url)
        stage = Stage(
            slack, api, pace, status_pace or StatusPace(0.05, 0.1, before=0.0), human_says(slack, "C1", "<@UBOT> hi")
        )
        try:
            yield stage
            assert slack.product_mistakes == []
        finally:
            await stage.drafts.close()
            await api.close()


def human_says(slack: FakeSlack, channel: str, text: str, **more: Any) -> str:
    """A message of Ana's; its timestamp."""
    ts = slack.world.next_ts()
    slack.world.channels[channel].messages[ts] = {"type": "message", "ts": ts, "user": "U1", "text": text, **more}
    return ts


async def streaming(stage: Stage) -> str:
    """Wait until a stream is open in C1; its timestamp."""
    found = await stage.slack.until(lambda: [m["ts"] for m in stage.answers() if m["streaming"]])
    return str(found[-1])


def shown_text(message: Mapping[str, Any]) -> str:
    """Everything that people can read in a message's blocks, in one string."""
    found: list[str] = []

    def collect(part: Any) -> None:
        if isinstance(part, Mapping):
            if isinstance(part.get("text"), str):
                found.append(part["text"])
            for value in part.values():
                collect(value)
        elif isinstance(part, list):
            for value in part:
                collect(value)

    collect(message["blocks"])
    return "".join(found)


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    """Which parts of their post these messages are."""
    return [message["metadata"]["event_payload"]["part"] for message in messages]


def feedback_of(message: Mapping[str, Any]) -> list[str]:
    """The kinds of blocks below a message that ask for an opinion."""
    return [block["type"] for block in message["blocks"] if block["type"] == "context_actions"]


APPROVAL = ApprovalView(
    approval_id="a1",
    status="pending",
    server="tasks",
    tool="create_task",
    title="Create a task",
    arguments={"title": "Buy paint"},
    asked_arguments=None,
    risk=("writes",),
    requester="Ana",
    may_decide="Ana",
    approvers=("requester",),
    rule="asks",
    quorum=1,
    votes=(),
    asked_at=1_790_000_000.0,
    expires_at=1_790_086_400.0,
    reason_required=False,
    editable=True,
)
REJECTED = replace(APPROVAL, status="rejected", decided_by=("Ana",), decided_at=1_790_000_100.0, reason="not now")
SIGN_IN = SignInView(
    sign_in_id="s1",
    status="open",
    server="drive",
    host="sign.in",
    message="Please sign in.",
    owner="Ana",
    owner_id=ANA,
)
