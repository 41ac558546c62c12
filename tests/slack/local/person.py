"""A person in local-slack: what they type and click, and what they look for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.slack.local.values import state_values
from tests.slack.local.workspace import APP, BOT, CHANNEL, Workspace

Message = dict[str, Any]


def texts(blocks: object) -> Iterator[str]:
    """Every text in blocks, in the order of reading."""
    match blocks:
        case {"text": str() as text}:
            yield text
        case dict():
            for value in blocks.values():
                yield from texts(value)
        case list():
            for value in blocks:
                yield from texts(value)


def shown(message: Message) -> str:
    """What a message shows, as one text: its blocks, or its text where it has none."""
    return " ".join(texts(message["blocks"])) if message.get("blocks") else str(message.get("text", ""))


def buttons(blocks: object) -> dict[str, dict[str, Any]]:
    """The buttons in blocks, and the entries of menus behind ⋯, by their label, each with the id of its block."""
    found: dict[str, dict[str, Any]] = {}
    for block in blocks if isinstance(blocks, list) else []:
        for element in [*block.get("elements", []), block.get("accessory") or {}]:
            if element.get("type") == "button":
                found[element["text"]["text"]] = {**element, "block_id": block.get("block_id", "")}
            for option in element["options"] if element.get("type") == "overflow" else ():
                chosen = {"type": "overflow", "action_id": element["action_id"], "selected_option": option}
                found[option["text"]["text"]] = {**chosen, "block_id": block.get("block_id", "")}
    return found


class Conversation:
    """One thread of a channel or of a direct chat, with a person in it."""

    def __init__(self, workspace: Workspace, user: str, channel: str, thread_ts: str) -> None:
        self.workspace = workspace
        self.user = user
        self.channel = channel
        self.thread_ts = thread_ts

    # ------------------------------------------------------------------------------------------- looking

    def posts(self) -> list[Message]:
        """What the bot said here, oldest first."""
        messages = self.workspace.messages(self.channel)
        return [m for m in messages if m.get("bot_id") and m.get("thread_ts") == self.thread_ts]

    def answers(self) -> list[Message]:
        """What the bot said here of itself, in a model's words: only these can be praised or blamed."""
        return [post for post in self.posts() if _has(post, "context_actions")]

    async def says(self, *parts: str) -> Message:
        """Wait until an answer of the bot has all of these, whatever the case."""

        def found() -> Message | None:
            return next((m for m in self.answers() if all(p.lower() in shown(m).lower() for p in parts)), None)

        return await self.workspace.until(found, f"an answer with {parts}")

    async def asks(self) -> Message:
        """Wait for a question with a form."""
        return await self.workspace.until(
            lambda: next((m for m in self.posts() if "Answer…" in buttons(m.get("blocks"))), None), "a question"
        )

    def waiting(self) -> list[Message]:
        """Posts with an Approve button."""
        return [post for post in self.posts() if "Approve" in buttons(post.get("blocks"))]

    async def cards(self, count: int = 1) -> list[Message]:
        """Wait until exactly that many approvals wait here."""
        await self.workspace.until(lambda: len(self.waiting()) == count, f"{count} cards that wait")
        return self.waiting()

    async def shows(self, post: Message, *parts: str) -> Message:
        """Wait until a post that is here already shows all of these, whatever the case."""

        def found() -> Message | None:
            (now,) = (m for m in self.posts() if m["ts"] == post["ts"])
            return now if all(part.lower() in shown(now).lower() for part in parts) else None

        return await self.workspace.until(found, f"{parts} on a post")

    # ------------------------------------------------------------------------------------------- acting

    async def writes(self, text: str) -> None:
        """Write here, without mentioning anybody."""
        body = {"channel": self.channel, "user": self.user, "text": text, "thread_ts": self.thread_ts}
        await self.workspace.control("message", body)

    async def clicks(self, post: Message, label: str, *, user: str = "") -> None:
        """Click the button of a post with this label."""
        (now,) = (m for m in self.posts() if m["ts"] == post["ts"])
        await self.workspace.control(
            "interact",
            {
                "channel": self.channel,
                "messageTs": post["ts"],
                "user": user or self.user,
                "action": _action(buttons(now.get("blocks")), label),
            },
        )

    async def opens(self, post: Message, label: str) -> dict[str, Any]:
        """Click a button that opens a modal, and wait for the modal."""
        before = self.workspace.modal_changes
        await self.clicks(post, label)
        return await self.workspace.until(
            lambda: (
                self.workspace.modals[-1] if self.workspace.modal_changes > before and self.workspace.modals else None
            ),
            f"the modal of {label}",
        )

    async def submits(self, **entered: Any) -> dict[str, str]:
        """Fill in the open modal by label and submit it; what it got back, block_id → text (nothing: it is closed)."""
        view, before = self.workspace.modals[-1], self.workspace.modal_changes
        await self.workspace.page_says("view_submit", user=self.user, values=state_values(view, entered))
        await self.workspace.until(lambda: self.workspace.modal_changes > before, "an answer to the modal")
        return self.workspace.modal_errors


class LocalPerson:
    """Somebody of the workspace."""

    def __init__(self, workspace: Workspace, user: str) -> None:
        self.workspace = workspace
        self.user = user

    async def mentions(self, text: str) -> Conversation:
        """Mention the bot in the channel; the thread that this begins."""
        said = await self.workspace.control(
            "message", {"channel": CHANNEL, "user": self.user, "text": f"<@{BOT}> {text}"}
        )
        return Conversation(self.workspace, self.user, CHANNEL, said["message"]["ts"])

    async def writes_directly(self, text: str) -> Conversation:
        """Write to the bot in a direct message; the thread that this begins."""
        said = await self.workspace.control("message", {"channel": self.user, "user": self.user, "text": text})
        return Conversation(self.workspace, self.user, said["message"]["channel"], said["message"]["ts"])

    async def commands(self, text: str) -> None:
        """Type `/countersign …` in the channel."""
        body = {"channel": CHANNEL, "user": self.user, "command": "/countersign", "text": text}
        await self.workspace.control("command", body)

    async def opens_home(self) -> dict[str, Any]:
        """Open the App Home, and wait until there is something on it."""
        await self.workspace.control("open-home", {"user": self.user})
        return await self.workspace.until(lambda: self.workspace.homes.get(self.user), "the App Home")

    async def clicks_home(self, label: str, *, about: str) -> None:
        """Click a button on the App Home: the first of that label at or below this text."""
        blocks = self.workspace.homes[self.user]["blocks"]
        begins = next(at for at, block in enumerate(blocks) if about in " ".join(texts(block)))
        among = next(found for block in blocks[begins:] if label in (found := buttons([block])))
        await self.workspace.page_says(
            "block_action", channel="", messageTs="", user=self.user, action=_action(among, label), appId=APP
        )


def _has(post: Message, kind: str) -> bool:
    return any(block["type"] == kind for block in post.get("blocks") or [])


def _action(among: dict[str, dict[str, Any]], label: str) -> dict[str, Any]:
    assert label in among, f"{label} is not among {list(among)}"
    sent = ("type", "action_id", "block_id", "value", "selected_option")
    return {key: among[label][key] for key in sent if key in among[label]}
