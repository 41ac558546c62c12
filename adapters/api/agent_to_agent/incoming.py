"""What a message of another agent says: words, or decisions about calls, or answers to questions by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from a2a.helpers.proto_helpers import get_data_parts
from a2a.types import Message, Role
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError

from adapters.api.agent_to_agent.task_names import LONGEST_CONTEXT
from adapters.api.endings import LONGEST_KEY
from adapters.api.turns import LONGEST_TEXT
from bot.approvals.decisions import LONGEST_REASON

MOST_PARTS = 100
LONGEST_ID = 200
"""Characters of the id of what is asked."""
Verb = Literal["approve", "reject"]
_VERBS: Mapping[str, Verb] = {"approve": "approve", "deny": "reject"}
NOT_KNOWN = (
    'A data part is a decision, {"decision_type": "approve" or "deny", "reason", "id"}, or an answer, {"answer", "id"}.'
)


@dataclass(frozen=True, slots=True)
class Words:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is decided about one call. `approval_id`: empty: the only one that waits."""

    verb: Verb
    reason: str
    approval_id: str


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The answer to one question: a text, or the values of a form."""

    answer: str | Mapping[str, Any]
    question_id: str


def said_in(message: Message) -> Words | list[Verdict] | list[QuestionAnswer]:
    """Returns what a message says. Raises `A2AError` for what it cannot say."""
    if message.role != Role.ROLE_USER:
        raise InvalidParamsError("The role of a message to the agent is that of a user.")
    if len(message.message_id) > LONGEST_KEY or len(message.context_id) > LONGEST_CONTEXT:
        raise InvalidParamsError(f"A messageId has at most {LONGEST_KEY} characters, a contextId {LONGEST_CONTEXT}.")
    if not 0 < len(message.parts) <= MOST_PARTS:
        raise InvalidParamsError(f"A message has between 1 and {MOST_PARTS} parts.")
    if any(part.WhichOneof("content") not in {"text", "data"} for part in message.parts):
        raise ContentTypeNotSupportedError("Only texts, decisions and answers are taken; no files.")
    data = get_data_parts(message.parts)
    if not data:
        return Words("\n".join(part.text for part in message.parts))
    if len(data) < len(message.parts):
        raise InvalidParamsError("Send either a text, or decisions or answers: what both together mean is not clear.")
    if all(isinstance(each, dict) and "decision_type" in each for each in data):
        return _each_once([_verdict(each) for each in data], [each.get("id", "") for each in data])
    if all(isinstance(each, dict) and "answer" in each for each in data):
        return _each_once([_reply(each) for each in data], [each.get("id", "") for each in data])
    raise InvalidParamsError(NOT_KNOWN)


def _each_once(said: list[Any], ids: Sequence[object]) -> list[Any]:
    if len(set(ids)) < len(ids):
        raise InvalidParamsError("Each decision or answer is about something else: name it by its id.")
    return said


def _verdict(data: Mapping[str, Any]) -> Verdict:
    verb = _VERBS.get(str(data["decision_type"]))
    if verb is None:
        raise InvalidParamsError('decision_type is "approve" or "deny".')
    reason = data.get("reason") or ""
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise InvalidParamsError(f"reason is a text of at most {LONGEST_REASON} characters.")
    return Verdict(verb, reason if verb == "reject" else "", _id(data))


def _reply(data: Mapping[str, Any]) -> QuestionAnswer:
    answer = data["answer"]
    if not isinstance(answer, str | dict) or len(str(answer)) > LONGEST_TEXT:
        raise InvalidParamsError(f"answer is a text, or an object of values, of at most {LONGEST_TEXT:,} characters.")
    return QuestionAnswer(answer, _id(data))


def _id(data: Mapping[str, Any]) -> str:
    found = data.get("id", "")
    if not isinstance(found, str) or len(found) > LONGEST_ID:
        raise InvalidParamsError("id is the id of what is asked: a text.")
    return found
