"""What the fake Teams knows: people, conversations, messages. No HTTP here."""

from __future__ import annotations

import base64
import copy
import hashlib
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.teams.clock import Clock
from tests.fakes.teams.refused import Refused

Json = dict[str, Any]
Kind = Literal["personal", "groupChat", "channel"]
Role = Literal["user", "guest", "anonymous"]

APP_ID = "11111111-2222-3333-4444-555555555555"
BOT = f"28:{APP_ID}"
BOT_NAME = "Countersign"
TENANT = "10000000-0000-4000-8000-000000000001"
OTHER_TENANT = "20000000-0000-4000-8000-000000000002"
ANA = "a0000000-0000-4000-8000-00000000000a"
BEN = "b0000000-0000-4000-8000-00000000000b"
CHLOE = "c0000000-0000-4000-8000-00000000000c"
GUS = "d0000000-0000-4000-8000-00000000000d"
TEAM = "19:team@thread.tacv2"
GROUP_OF_TEAM = "d1000000-0000-4000-8000-0000000000d1"
"""The team in Entra and in Graph."""
CHANNEL = "19:channel@thread.tacv2"
GROUP = "19:group@thread.v2"
_THREAD = ";messageid="


def address_of(user: str) -> str:
    """The id by which the bot knows a user (`29:…`): made from both, as long as real ones."""
    digest = hashlib.sha512(f"{APP_ID}/{user}".encode()).digest()
    return "29:1" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def personal_of(user: str) -> str:
    """Id of a user's chat with the bot."""
    digest = hashlib.sha512(f"{APP_ID}/chat/{user}".encode()).digest()
    return "a:1" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass
class User:
    """Somebody who may be in conversations."""

    user: str
    """Entra object id."""
    name: str
    tenant: str = TENANT
    """Their own, whichever tenant the conversation is held in."""
    role: Role = "user"
    has_app: bool = True
    """Whether they have installed the app for themselves: only then there is a 1:1 chat."""
    time_zone: str = "Europe/Berlin"
    locale: str = "en-US"
    mail: str = ""
    """Empty: made from the name."""

    @property
    def address(self) -> str:
        """`29:…`."""
        return address_of(self.user)


@dataclass
class Message:
    """A message as the conversation keeps it."""

    id: str
    conversation: str
    """With its `;messageid=`, in a channel."""
    author: str
    """Object id of a user; empty: the bot."""
    content: Json
    """`text`, `attachments`, `entities`, `channelData`, `summary`…, as it was sent last."""
    edited: bool = False
    deleted: bool = False
    only_for: str = ""
    """Address of the one person who sees it; empty: everybody."""
    streaming: bool = False
    status: str = ""
    """What a stream says it is doing."""
    views: dict[str, Json] = field(default_factory=dict)
    """By user: the card that only they see, since a refresh or a click was answered with it."""

    def shown(self) -> Json:
        """As tests look at it, many times a second: not copied, since what was sent is replaced and never changed."""
        return {
            "text": "",
            "attachments": [],
            "entities": [],
            "channelData": {},
            **{name: value for name, value in self.content.items() if name not in {"conversation", "from", "id"}},
            "id": self.id,
            "conversation": self.conversation,
            "author": self.author,
            "edited": self.edited,
            "deleted": self.deleted,
            "only_for": self.only_for,
            "streaming": self.streaming,
            "status": self.status,
        }


@dataclass
class Conversation:
    """A personal chat, a group chat, or a channel with all its threads."""

    id: str
    kind: Kind
    tenant: str = TENANT
    members: set[str] = field(default_factory=set)
    """Object ids."""
    has_bot: bool = True
    name: str = ""
    team: str = ""
    messages: dict[str, Message] = field(default_factory=dict)
    """By activity id, oldest first."""
    typings: int = 0
    """How often the bot has said that it is typing."""


class World:
    """The whole state. Calls of the Bot Connector change it; tests look into it and prepare it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.service_url = ""
        self.tenant = TENANT
        self.users: dict[str, User] = {}
        self.conversations: dict[str, Conversation] = {}
        self.product_mistakes: list[str] = []
        self.entra_groups: dict[str, set[str]] = {}
        """Members of groups, by the group's object id."""
        self.files: dict[str, bytes] = {}
        """Content of the files that people have uploaded, by name."""
        self.unsaid_files: dict[str, list[Json]] = {}
        """What Graph says is attached to a message, by its id."""
        self.file_people: dict[str, dict[str, str]] = {}
        """Who made a file (`createdBy`) and changed it last (`lastModifiedBy`), by its name."""
        self.graph_permissions = {"GroupMember.Read.All", "User.Read.All"}
        """What an administrator has let the app do in Microsoft Graph."""
        self.targeted = True
        """Whether the tenant has targeted messages."""
        self.limit: tuple[int, float] | None = None
        """Messages that a conversation takes within so many seconds."""
        self._last_id = 0

    # ------------------------------------------------------------------------------------------- names

    def next_message_id(self) -> str:
        """The id of the next message: milliseconds since 1970, later than any before."""
        self._last_id = max(self._last_id + 1, int(self.clock.now() * 1000))
        return str(self._last_id)

    def next_event_id(self) -> str:
        """The id of anything that is no message."""
        return f"f:{uuid.uuid4()}"

    # ------------------------------------------------------------------------------------------- preparing

    def add_user(
        self,
        user: str,
        *,
        name: str = "",
        tenant: str = TENANT,
        role: Role = "user",
        has_app: bool = True,
        time_zone: str = "Europe/Berlin",
        locale: str = "en-US",
    ) -> User:
        """Somebody, and their personal chat; `has_app` says whether the bot is in it. They are in nothing else."""
        made = User(user, name or user, tenant, role, has_app, time_zone, locale)
        self.users[user] = made
        chat = personal_of(user)
        self.conversations[chat] = Conversation(chat, "personal", self.tenant, {user})
        return made

    def add_channel(
        self,
        channel: str,
        *,
        members: Collection[str] = (),
        name: str = "",
        team: str = TEAM,
        tenant: str = TENANT,
        has_bot: bool = True,
    ) -> None:
        """A channel of a team."""
        made = Conversation(channel, "channel", tenant, set(members), has_bot, name or channel, team)
        self.conversations[channel] = made

    def add_group(
        self, group: str, *, members: Collection[str] = (), tenant: str = TENANT, has_bot: bool = True
    ) -> None:
        """A group chat."""
        self.conversations[group] = Conversation(group, "groupChat", tenant, set(members), has_bot)

    # ------------------------------------------------------------------------------------------- finding

    def user(self, name: str) -> User:
        """By object id or address. Raises `Refused`."""
        for user in self.users.values():
            if name in (user.user, user.address):
                return user
        raise Refused("MemberNotFoundInConversation", "Member not found in conversation.")

    def conversation(self, name: str) -> Conversation:
        """The conversation that an id (also a thread's) belongs to. Raises `Refused`: unknown."""
        base, _, thread = name.partition(_THREAD)
        found = self.conversations.get(base)
        if found is None or (thread and thread not in found.messages):
            raise Refused("ConversationNotFound", "Conversation not found.")
        return found

    def entered(self, name: str) -> Conversation:
        """A conversation that the bot is in. Raises `Refused`."""
        found = self.conversation(name)
        if not self.has_bot(found):
            raise Refused("BotNotInConversationRoster", "The bot is not part of the conversation roster.")
        return found

    def has_bot(self, conversation: Conversation) -> bool:
        """Whether the bot is in a conversation: in a personal chat, whether they have the app."""
        if conversation.kind == "personal":
            return all(self.users[user].has_app for user in conversation.members)
        return conversation.has_bot

    def message(self, message_id: str) -> Message | None:
        """A message anywhere, also a deleted one."""
        return next((m for m in self.all_messages() if m.id == message_id), None)

    def all_messages(self) -> Iterator[Message]:
        """All messages of all conversations."""
        for conversation in self.conversations.values():
            yield from conversation.messages.values()

    # ------------------------------------------------------------------------------------------- changing

    def post(self, conversation: str, author: str, content: Json, *, only_for: str = "") -> Message:
        """Keep a new message. In a channel without a thread it begins one."""
        place = self.conversation(conversation)
        message_id = self.next_message_id()
        where = conversation
        if place.kind == "channel" and _THREAD not in conversation:
            where = f"{conversation}{_THREAD}{message_id}"
        message = Message(message_id, where, author, copy.deepcopy(content), only_for=only_for)
        place.messages[message_id] = message
        return message


def populate(world: World) -> None:
    """Three people and a guest, all of them in one channel and one group chat, with the bot."""
    world.add_user(ANA, name="Ana Alvarez")
    world.add_user(BEN, name="Ben Baker")
    world.add_user(CHLOE, name="Chloe Chen")
    world.add_user(GUS, name="Gus Guest", tenant=OTHER_TENANT, role="guest")
    everybody = (ANA, BEN, CHLOE, GUS)
    world.add_channel(CHANNEL, members=everybody, name="General")
    world.add_group(GROUP, members=everybody)
