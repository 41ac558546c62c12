"""An answer while it is written: Teams' rules for streamed messages.

https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.teams.refused import Refused
from tests.fakes.teams.world import Conversation, Json, Message, World

LONGEST_STATUS = 1_000
"""Characters of an informative update (Teams)."""
LIVES = 120.0
"""Seconds from its first update in which a stream has to be finished (Teams: 2 minutes)."""
LARGEST = 100 * 1024
"""Bytes of an activity as JSON (Teams: about 100 KB)."""


@dataclass
class Stream:
    """A streamed message, from its first update on."""

    id: str
    conversation: str
    begun_at: float
    """In moved seconds."""
    state: str = "informative"
    """`informative`, `streaming`, then `final` or `cancelled`; that its time is over is asked of the clock."""
    sequence: int = 0
    """Of the last update."""
    text: str = ""
    updates: list[tuple[str, str]] = field(default_factory=list)
    """`(informative | streaming | final, text)`, as they were taken."""


class Streams:
    """All streams of one fake."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.all: dict[str, Stream] = {}

    def take(self, place: Conversation, conversation: str, activity: Json, info: Json) -> tuple[int, Json]:
        """An update or the end of a stream: status and body of the answer. Raises `Refused`."""
        if place.kind != "personal":
            raise Refused("BadArgument", "Streaming api is not enabled for this conversation.")
        is_final = activity.get("type") == "message"
        kind = info.get("streamType", "streaming")
        self._check_shape(activity, info, kind, is_final)
        if not info.get("streamId"):
            return 201, {"id": self._begin(place, conversation, activity, kind, info)}
        stream = self._running(str(info["streamId"]), conversation)
        if is_final:
            self._finish(place, stream, activity)
            return 202, {}
        if info["streamSequence"] <= stream.sequence:
            self._world.product_mistakes.append(f"stream: update {info['streamSequence']} after {stream.sequence}")
            message = "PreCondition failed exception when processing streaming activity."
            return 202, Refused("ContentStreamSequenceOrderPreConditionFailed", message, status=202).body
        self._write(place, stream, kind, activity["text"], info["streamSequence"])
        return 202, {}

    def cancel(self, stream_id: str) -> None:
        """The person presses Stop."""
        self.all[stream_id].state = "cancelled"
        self._settle(stream_id)

    def expire(self) -> None:
        """Teams ends by itself what took too long; called before anything is looked at."""
        for stream in self.all.values():
            if self._is_running(stream) and self._world.clock.moved - stream.begun_at >= LIVES:
                self._settle(stream.id)

    def _begin(self, place: Conversation, conversation: str, activity: Json, kind: str, info: Json) -> str:
        if info["streamSequence"] != 1:
            raise Refused("BadRequest", "Start streaming activities should have a streamSequence of 1")
        for other in self.all.values():
            if other.conversation == conversation and self._is_running(other) and not self._is_over(other):
                raise Refused("ContentStreamNotAllowed", "Content stream is not allowed")
        message = self._world.post(conversation, "", {"type": "message", "text": ""})
        message.streaming = True
        stream = Stream(message.id, conversation, self._world.clock.moved)
        self.all[stream.id] = stream
        self._write(place, stream, kind, activity["text"], 1)
        return stream.id

    def _write(self, place: Conversation, stream: Stream, kind: str, text: str, sequence: int) -> None:
        message = place.messages[stream.id]
        if kind == "informative":
            if len(text) > LONGEST_STATUS:
                raise Refused("BadRequest", "Informative messages should not be more than 1000 characters")
            if stream.state == "streaming":
                self._world.product_mistakes.append("stream: an informative update after text, which nobody sees")
            message.status = text
        else:
            if not text.startswith(stream.text):
                self._world.product_mistakes.append("stream: a text that does not begin with the text before it")
                raise Refused("ContentStreamNotAllowed", "Streamed content should contain what was streamed before")
            stream.state, stream.text = "streaming", text
            message.content, message.status = {**message.content, "text": text}, ""
        stream.sequence = sequence
        stream.updates.append((kind, text))

    def _finish(self, place: Conversation, stream: Stream, activity: Json) -> None:
        message = place.messages[stream.id]
        text = str(activity.get("text", ""))
        if text and stream.text not in text:
            self._world.product_mistakes.append("stream: a final message without what was streamed before")
            raise Refused("ContentStreamNotAllowed", "Streamed content should contain what was streamed before")
        stream.updates.append(("final", text))
        stream.state = "final"
        message.content = copy.deepcopy(activity)
        message.streaming, message.status = False, ""

    def _running(self, stream_id: str, conversation: str) -> Stream:
        stream = self.all.get(stream_id)
        if stream is None or stream.conversation != conversation:
            raise Refused("BadRequest", "There is no stream with this streamId")
        if stream.state == "final":
            raise Refused(
                "ContentStreamNotAllowed", "Content stream is not allowed on an already completed streamed message"
            )
        if stream.state == "cancelled":
            raise Refused("ContentStreamNotAllowed", "Content stream was canceled by user")
        if self._is_over(stream):
            raise Refused("ContentStreamNotAllowed", "Content stream finished due to exceeded streaming time.")
        return stream

    def _check_shape(self, activity: Json, info: Json, kind: str, is_final: bool) -> None:  # noqa: FBT001  # what it is
        text = activity.get("text")
        if is_final and (kind != "final" or not info.get("streamId")):
            raise Refused("BadRequest", "Only end streaming type is allowed as a message activity")
        if is_final:
            if "streamSequence" in info:
                raise Refused("BadRequest", "End streaming activities should not have a streamSequence")
            return
        if activity.get("type") != "typing" or kind not in ("informative", "streaming"):
            raise Refused("BadRequest", "Streaming activities are typing activities of type informative or streaming")
        if not isinstance(text, str) or not text:
            raise Refused("BadRequest", "Start streaming activities should include text")
        if not isinstance(info.get("streamSequence"), int):
            raise Refused("BadRequest", "Streaming activities should include a streamSequence")
        if activity.get("attachments"):
            raise Refused("BadRequest", "Attachments are allowed in the final message only")
        if len(activity.get("entities", [])) > 1 or "feedbackLoop" in (activity.get("channelData") or {}):
            self._world.product_mistakes.append("stream: AI label, citations and feedback are for the final message")

    def _is_over(self, stream: Stream) -> bool:
        return self._world.clock.moved - stream.begun_at >= LIVES

    def _is_running(self, stream: Stream) -> bool:
        return stream.state in ("informative", "streaming")

    def _settle(self, stream_id: str) -> None:
        message = self._world.message(stream_id)
        if message is not None:
            message.streaming, message.status = False, ""


def stream_info(activity: Json) -> Json | None:
    """The entity that makes an activity part of a stream."""
    entities: Any = activity.get("entities")
    for entity in entities if isinstance(entities, list) else ():
        if isinstance(entity, dict) and entity.get("type") == "streaminfo":
            return entity
    return None


def shown_stream(stream: Stream, message: Message | None) -> Json:
    """As tests look at it."""
    is_streaming = bool(message and message.streaming)
    return {
        "id": stream.id,
        "conversation": stream.conversation,
        "state": stream.state,
        "streaming": is_streaming,
        "updates": list(stream.updates),
    }
