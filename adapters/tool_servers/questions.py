"""What a server asks a person in the middle of a call (MCP elicitation), as the house's outcomes. Pure.

A form that seems to ask for a secret is refused: what is typed into a chat is read by more than its addressee. The
protocol forbids such forms, too, and has links for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adapters.tool_servers.listing import LARGEST_SCHEMA, masked_schema
from adapters.tool_servers.redaction import Redact
from adapters.tool_servers.replies import LONGEST_MESSAGE, is_web_link
from adapters.tool_servers.text import clean, one_line, shorten, without_links
from bot.forms import edit_fields
from bot.schemas.measuring import problem_of
from graph.fields import FieldType, FormField
from graph.ports import QuestionPut, SignInNeeded

MOST_FIELDS = 40
"""Inputs of a form. A Slack modal holds 100 blocks, and nobody answers more."""

LONGEST_QUESTION = 2_000
"""Characters."""

LONGEST_READ = 10_000
"""Characters of a question that are looked at; it is masked before it is cut to its length."""

LONGEST_TITLE = 100
"""Characters."""

MOST_OPTIONS = 100
"""Of a list to choose several from: what Slack's selects hold. With more it is typed."""

_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "credential", "credentials"}
    | {"apikey", "privatekey", "pin", "cvv", "cvc", "otp", "totp", "ssn", "iban"}
)
_SECRET_PHRASE = re.compile(
    r"\b(?:pass[ -]?(?:word|phrase|code)s?|api[ _-]?keys?|(?:access|auth|bearer|refresh)[ _-]?tokens?"
    r"|(?:private|secret|access|signing|encryption)[ _-]?keys?|client[ _-]?secret|credit[ _-]?card|card[ _-]?number"
    r"|security[ _-]?code|one[ -]?time[ -]?(?:code|password)|(?:verification|recovery|backup|2fa|mfa)[ _-]?codes?"
    r"|seed[ _-]?phrase|social[ _-]?security|passw[oö]rt|kennwort|mot de passe|contrase[nñ]a"
    r"|(?:your|the|my) (?:pin|token|secret|otp|cvv|cvc|ssn|iban|credentials?|pwd))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


_AS_JSON = "As JSON."
"""What `bot.forms` says of an input for anything nested: not of a list of options, which can be drawn as one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A question that is put to nobody."""

    notice: str
    """A sentence for the person and the model that says so."""


def form_question(
    server: str, message: str, schema: Mapping[str, Any], number: int, redact: Redact
) -> QuestionPut | Refused:
    """A form as a question to the requester."""
    message = message[:LONGEST_READ]
    problem = _problem(schema)
    if problem:
        return Refused(f"{server} asked a question that cannot be shown ({problem}), so nobody was asked.")
    secret = _asks_for_a_secret(message, schema)
    if secret:
        named = one_line(redact(clean(secret)), 60)
        return Refused(
            f"{server} asked for something that looks like a secret ({named}). Secrets have no place in a chat, so the "
            "question was refused and nobody was asked."
        )
    # Everybody sees a question, and a link in it may be for one person: for those there is URL elicitation.
    said = shorten(without_links(redact(clean(message))), LONGEST_QUESTION)
    shown = _without_links(masked_schema(schema, lambda text: redact(clean(text))))
    return QuestionPut(number, said, _fields(shown), shown)


def link_question(server: str, message: str, url: str, elicitation_id: str, redact: Redact) -> SignInNeeded | Refused:
    """A link that a person shall open."""
    if not is_web_link(url):
        return Refused(f"{server} wants somebody to open a link, but did not give a usable one, so nobody was asked.")
    said = redact(clean(message[:LONGEST_READ]))
    return SignInNeeded(url, one_line(said, LONGEST_MESSAGE), elicitation_id)


def _problem(schema: Mapping[str, Any]) -> str | None:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        return "it describes no form"
    if len(properties) > MOST_FIELDS:
        return f"it has more than {MOST_FIELDS} fields"
    try:
        if len(json.dumps(schema, allow_nan=False).encode()) > LARGEST_SCHEMA:
            return f"it is larger than {LARGEST_SCHEMA:,} bytes"
    except (TypeError, ValueError, RecursionError):
        return "it is no JSON"
    problem = problem_of(schema)
    return problem and f"its schema {problem}"


def _fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    properties: Mapping[str, Any] = schema["properties"]
    fields, _ = edit_fields(schema, {}, None)
    return tuple(_titled(field, properties.get(field.name)) for field in fields)


def _titled(field: FormField, written: Any) -> FormField:
    """The field under the server's own title, and with its titles of the options, which stand for other values."""
    of = written if isinstance(written, Mapping) else {}
    title = one_line(_text(of.get("title")), LONGEST_TITLE)
    meanings = "; ".join(
        f"{value}: {title}" for value, title in islice(_titled_options(of), MOST_OPTIONS) if value != title
    )
    several = _several(of) if field.type is FieldType.JSON else ()
    own = field.help.removesuffix(_AS_JSON).strip() + " Any number of these." if several else field.help
    told = one_line(" ".join(part for part in (own, f"({meanings})" if own and meanings else meanings) if part), 300)
    changes: dict[str, Any] = {"label": title or field.label, "help": told} | ({"options": several} if several else {})
    return field.model_copy(update=changes)


def _several(of: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be chosen any number of; empty: the value is no list of options."""
    items = of.get("items")
    if of.get("type") != "array" or not isinstance(items, Mapping):
        return ()
    options = items.get("enum")
    if isinstance(options, list) and len(options) > MOST_OPTIONS:
        return ()
    if isinstance(options, list) and all(isinstance(option, str) for option in options):
        return tuple(options)
    titled = tuple(islice((value for value, _ in _titled_options(of)), MOST_OPTIONS + 1))
    return titled if len(titled) <= MOST_OPTIONS else ()


def _titled_options(of: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    items = of.get("items")
    holder = items if isinstance(items, Mapping) else of
    for key in ("oneOf", "anyOf"):
        alternatives = holder.get(key)
        for each in alternatives if isinstance(alternatives, list) else ():
            if isinstance(each, Mapping) and isinstance(each.get("const"), str):
                yield each["const"], _text(each.get("title")) or each["const"]
    options, names = of.get("enum"), of.get("enumNames")
    if isinstance(options, list) and isinstance(names, list):
        for option, name in zip(options, names, strict=False):
            if isinstance(option, str) and isinstance(name, str):
                yield option, name


def _asks_for_a_secret(message: str, schema: Mapping[str, Any]) -> str | None:
    """What of the form seems to ask for a secret, by its words; `None`: nothing does."""
    open_fields = [(name, of) for name, of in _properties(schema) if _takes_anything(of)]
    said = " ".join([message, _text(schema.get("title")), _text(schema.get("description"))])
    if open_fields and (found := _SECRET_PHRASE.search(said)):
        return found.group()
    for name, of in open_fields:
        title, description = _text(of.get("title")), _text(of.get("description"))
        hidden = of.get("format") == "password" or of.get("writeOnly") is True
        if hidden or any(_says_secret(words) for words in (name, title)) or _SECRET_PHRASE.search(description):
            return title or name
    return None


def _properties(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What may be entered, however deep."""
    if isinstance(schema, list):
        for each in schema:
            yield from _properties(each)
    if not isinstance(schema, Mapping):
        return
    for key, part in schema.items():
        if key == "properties" and isinstance(part, Mapping):
            yield from ((str(name), of) for name, of in part.items() if isinstance(of, Mapping))
        yield from _properties(part)


def _takes_anything(of: Mapping[str, Any]) -> bool:
    """Whether more can be entered than a yes, a date, or one of a few options: no secret is chosen from a list."""
    return not (
        of.get("type") == "boolean" or of.get("format") in {"date", "date-time"} or "enum" in of or "const" in of
    )


def _without_links(schema: Any, key: str = "") -> Any:
    """The schema without links in what only explains it; the values that may be given are left as they are."""
    match schema:
        case str() if key in {"title", "description"}:
            return without_links(schema)
        case Mapping():
            return {name: _without_links(part, name) for name, part in schema.items()}
        case list():
            return [_without_links(part) for part in schema]
        case _:
            return schema


def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    # `userPassword`, `api_key`, and `apikey` as one word
    return not _SECRET_WORDS.isdisjoint(words) or _SECRET_PHRASE.search(" ".join(words)) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
