"""What an outgoing activity must be: Teams' rules (`refusals`), and our product's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.fakes.teams import card_rules
from tests.fakes.teams.inputs import CARD
from tests.fakes.teams.text_rules import message_text_mistakes

Json = dict[str, Any]

ROOT = "https://schema.org/Message"
MOST_CITATIONS = 20
LONGEST_NAME, LONGEST_ABSTRACT, LONGEST_KEYWORD, MOST_KEYWORDS = 80, 160, 28, 3
"""Of a citation; in characters (https://learn.microsoft.com/microsoftteams/platform/bots/how-to/bot-messages-ai-generated-content)."""
CHANNEL_DATA = {"feedbackLoop", "notification"}
_CITED = re.compile(r"\[(\d+)\]")


def refusals(activity: Json) -> list[str]:
    """What Teams would refuse."""
    return [*_refused(activity)]


def product_mistakes(activity: Json) -> list[str]:
    """What Teams would take and our product does not."""
    return [*_forbidden(activity)]


# ------------------------------------------------------------------------------------------- Teams


def _refused(activity: Json) -> Iterator[str]:
    if not isinstance(activity.get("type"), str):
        yield "Activity type is missing"
        return
    attachments, text = activity.get("attachments", []), activity.get("text", "")
    if not isinstance(text, str) or not isinstance(attachments, list):
        yield "Activity has a text that is no text, or attachments that are no list"
        return
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield "Activity has half a character in its text"
    if activity["type"] == "message" and not text and not attachments:
        yield "Activity must include non empty 'text' field or at least 1 attachment"
    if activity.get("textFormat", "markdown") not in ("markdown", "plain", "xml"):
        yield f"Unknown textFormat {activity['textFormat']!r}"
    for attachment in attachments:
        if not isinstance(attachment, dict) or not isinstance(attachment.get("contentType"), str):
            yield "An attachment has no contentType"
        elif attachment["contentType"] == CARD:
            yield from (f"card {mistake}" for mistake in card_rules.refusals(attachment.get("content")))
    yield from _entities(activity)


def _entities(activity: Json) -> Iterator[str]:
    entities = activity.get("entities", [])
    if not isinstance(entities, list) or not all(isinstance(entity, dict) for entity in entities):
        yield "Entities are no list of objects"
        return
    roots = [entity for entity in entities if entity.get("type") == ROOT]
    if len(roots) > 1:
        yield "Multiple root message entities found"
    for root in roots:
        if root.get("@type") != "Message" or root.get("@context") != "https://schema.org":
            yield "Error parsing message entity: @type or @context"
        if root.get("additionalType", ["AIGeneratedContent"]) != ["AIGeneratedContent"]:
            yield "Error parsing message entity: additionalType"
        citations = root.get("citation", [])
        if not isinstance(citations, list) or len(citations) > MOST_CITATIONS:
            yield f"Bot message with more than {MOST_CITATIONS} citations"
        else:
            yield from (wrong for citation in citations for wrong in _citation(citation))
    for entity in entities:
        if entity.get("type") == "mention":
            mentioned = entity.get("mentioned")
            if not isinstance(mentioned, dict) or not mentioned.get("id") or not entity.get("text"):
                yield "A mention names nobody"


def _citation(citation: Any) -> Iterator[str]:
    appearance = citation.get("appearance") if isinstance(citation, dict) else None
    if not isinstance(appearance, dict) or not appearance:
        yield "The appearance object of a citation is empty"
        return
    position = citation.get("position")
    if citation.get("@type") != "Claim" or not isinstance(position, int) or position < 1:
        yield f"Error while parsing citation entity with ID: {position}"
    if appearance.get("@type") != "DigitalDocument":
        yield f"Error while parsing citation entity with ID: {position}: @type"
    for name, most in (("name", LONGEST_NAME), ("abstract", LONGEST_ABSTRACT)):
        value = appearance.get(name, "" if name == "abstract" else None)
        if not isinstance(value, str) or len(value) > most or (name == "name" and not value):
            yield f"The {name} of citation {position} is missing or longer than {most}"
    keywords = appearance.get("keywords", [])
    if len(keywords) > MOST_KEYWORDS or any(len(keyword) > LONGEST_KEYWORD for keyword in keywords):
        yield f"The keywords of citation {position} are too many or too long"
    if not str(appearance.get("url", "https://")).startswith(("https://", "http://")):
        yield f"The url of citation {position} is none"


# ------------------------------------------------------------------------------------------- the product


def _forbidden(activity: Json) -> Iterator[str]:
    kind, text = activity.get("type"), activity.get("text", "")
    if kind not in ("message", "typing"):
        yield f"activity: our product sends no {kind!r}"
    attachments = [one for one in activity.get("attachments", []) if isinstance(one, dict)]
    if text and attachments:
        yield "activity: text beside a card, which Teams splits into two messages without ids"
    if len(attachments) > 1:
        yield "activity: more than one card"
    for attachment in attachments:
        if attachment.get("contentType") != CARD:
            yield f"activity: an attachment of type {attachment.get('contentType')!r}"
        elif not card_rules.refusals(attachment.get("content")):
            wrong = card_rules.product_mistakes(attachment["content"], "message")
            yield from (f"card {mistake}" for mistake in wrong)
    if kind == "message" and attachments and not activity.get("summary"):
        yield "activity: a card without a summary, which is what a notification shows"
    if activity.get("textFormat") == "xml":
        yield "activity: HTML"
    if isinstance(text, str) and activity.get("textFormat") != "plain":
        yield from (f"text: {mistake}" for mistake in message_text_mistakes(text, _mentions(activity)))
    yield from _labels(activity)


def _labels(activity: Json) -> Iterator[str]:
    """The AI label, citations and feedback buttons."""
    channel_data = activity.get("channelData") or {}
    if unknown := set(channel_data) - CHANNEL_DATA:
        yield f"channelData: unknown {sorted(unknown)}"
    if channel_data.get("feedbackLoop", {"type": "default"}) != {"type": "default"}:
        yield "channelData: feedbackLoop is {type: default}, which needs no form of ours"
    if channel_data.get("notification", {"alert": True}) not in ({"alert": True}, {"alert": False}):
        yield "channelData: notification is {alert: true | false}"
    for entity in activity.get("entities", []):
        if entity.get("type") not in (ROOT, "mention", "streaminfo"):
            yield f"entities: our product sends no {entity.get('type')!r}"
        citations = entity.get("citation", []) if entity.get("type") == ROOT else []
        positions = {int(citation.get("position") or 0) for citation in citations if isinstance(citation, dict)}
        shown = {int(number) for number in _CITED.findall(str(activity.get("text", "")))}
        if positions - shown:
            yield f"entities: citations {sorted(positions - shown)} are not in the text"


def _mentions(activity: Json) -> list[str]:
    return [str(entity.get("text")) for entity in activity.get("entities", []) if entity.get("type") == "mention"]
