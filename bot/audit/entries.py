"""What an audit entry says of a call. Pure: facts in, canonical JSON out; nothing in it is a secret any more."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from policies.model import canonical_json
from policies.redaction import A_TEXT, DEEPEST, Redactor, exceeds

INPUT_LIMIT = 200
"""Characters of the short input."""
ARGUMENTS_LIMIT = 4_000
"""Characters of the arguments that are kept for `policy replay`, as canonical JSON."""
VALUE_LIMIT = 300
"""Characters of a text within arguments that are longer than that."""
OUTPUT_BYTES = 4_096
"""Of the output, that its hash covers."""
LONGEST_SECRET = 4_000
"""Characters of a text that are looked through for secrets, where a call has much of it."""
LOOKED_THROUGH = 10_000
"""Characters of a call that are looked through, more than twice as many as are kept. It is done where the entry is
written, and a thousand characters that somebody has made for it take up to 4 ms of CPU."""
LOOKED = "looked"
"""Status of an entry that says that somebody looked at what is hidden in a waiting call."""
REASON_LIMIT = 200
"""Characters of what somebody wrote beside a vote."""


@dataclass(frozen=True, slots=True)
class VoteCast:
    """One vote on a call, in whichever round."""

    round: int
    person: str
    name: str
    verb: str
    authority: str
    """Which entry of the approvers permitted it, in words."""
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call that has come to an end, as whoever ended it knows it."""

    at: float
    thread_id: str
    call_id: str
    requester: str
    server: str
    """Empty where the tool is not known."""
    tool: str
    arguments: Mapping[str, Any]
    status: str
    """`done`, `failed`, `unknown`, `denied`, `rejected`, `expired`, `superseded`, `withdrawn` or `limited`; `looked`:
    it has not ended, somebody looked at what is hidden in it."""
    attempt: int | None = None
    """Which try it was; `None`: the call was not made."""
    judged: Mapping[str, Any] | None = None
    """`bot.audit.judgement` of it; `None`: it was not judged."""
    approval_id: str | None = None
    digest: str = ""
    duration: float | None = None
    """Seconds."""
    output: str | None = None
    """What the tool returned, or the sentence of its failure; `None`: nothing came of it, as far as is known."""
    note: str = ""
    """What the model was told of a call that was not made."""
    votes: Sequence[VoteCast] = ()
    settled: Mapping[str, str] = field(default_factory=dict)
    """What a person said of an outcome that was unknown, or did before: `choice` and `by`."""


def entry_of(end: CallEnd, redactor: Redactor) -> str:
    """The entry, as canonical JSON."""
    judged = end.judged or {}
    verdict = judged.get("verdict", {})
    whole = dict(end.arguments)
    beginning = _beginning_of(whole) if exceeds(whole, LOOKED_THROUGH) else whole
    arguments = redactor.for_audit(beginning).value
    kept, cut = _bounded(arguments)
    cut = cut or beginning is not whole
    return canonical_json(
        {
            "at": in_utc(end.at),
            "thread": end.thread_id,
            "call": end.call_id,
            "attempt": end.attempt,
            "requester": end.requester,
            "server": end.server,
            "tool": end.tool,
            "input": shortened(canonical_json(arguments), INPUT_LIMIT),
            "mode": judged.get("mode", ""),
            "decision": verdict.get("verdict", ""),
            "rule": verdict.get("rule", ""),
            "source": verdict.get("source", ""),
            "version": verdict.get("version", ""),
            "votes": [_vote(vote, redactor) for vote in end.votes],
            "approval": end.approval_id,
            "digest": end.digest,
            "fingerprint": redactor.fingerprint_of_call(end.server, end.tool, end.arguments),
            "duration": None if end.duration is None else round(end.duration, 3),
            "status": end.status,
            "note": shortened(redactor.redact(end.note[:LONGEST_SECRET]), INPUT_LIMIT),
            "settled": dict(end.settled),
            "output": None if end.output is None else output_hash(end.output),
            "arguments": kept,
            "arguments_cut": cut,
            "arguments_masked": arguments != beginning,
            "judged": _without_secrets(judged, redactor),
        }
    )


def key_of(call_id: str, attempt: int | None, status: str, settled: Mapping[str, str], at: str) -> str:
    """What says which end of which call an entry is about, or which look at it: there is one entry of each."""
    if status == LOOKED:
        return f"{call_id}:{LOOKED}:{at}:{settled['by']}"
    if attempt is None:
        return f"{call_id}:not made"
    return f"{call_id}:{attempt}:{'settled' if settled else status}"


def looker_of(person_id: str, name: str, authority: str) -> str:
    """Who looked, and as what they may."""
    return f"{name} <{person_id}>" + (f" ({authority})" if authority else "")


def output_hash(output: str) -> str:
    """SHA-256, hexadecimal, of the first 4 KB of an output as it is kept in the records (in UTF-8)."""
    return hashlib.sha256(output.encode("utf-8", "surrogatepass")[:OUTPUT_BYTES]).hexdigest()


def in_utc(seconds: float) -> str:
    """A moment as `2026-11-21T10:30:00.250Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of a text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _vote(vote: VoteCast, redactor: Redactor) -> dict[str, Any]:
    return {
        "round": vote.round,
        "person": vote.person,
        "name": vote.name,
        "verb": vote.verb,
        "authority": vote.authority,
        "reason": shortened(redactor.redact(vote.reason), REASON_LIMIT),
        "at": in_utc(vote.at),
    }


def _bounded(arguments: Any) -> tuple[Any, bool]:
    """The arguments when they are short enough; else with their texts cut, or none; and whether something is left out.

    Cut only after secrets were taken out: half a secret is not recognised.
    """
    if len(canonical_json(arguments)) <= ARGUMENTS_LIMIT:
        return arguments, False
    cut = _texts_cut(arguments)
    return (cut if len(canonical_json(cut)) <= ARGUMENTS_LIMIT else None), True


def _texts_cut(value: Any) -> Any:
    match value:
        case str():
            return shortened(value, VALUE_LIMIT)
        case Mapping():
            return {key: _texts_cut(item) for key, item in value.items()}
        case list():
            return [_texts_cut(item) for item in value]
        case _:
            return value


def _beginning_of(value: Any, room: int = LOOKED_THROUGH) -> Any:
    """As much of a large value as may be kept: the beginnings of its texts, long enough for a secret that begins in
    what is kept of them to be seen whole; nothing of what comes when there is no more room."""
    left = room

    def beginning(each: Any, levels: int) -> Any:
        nonlocal left
        match each:
            case Mapping() | list() | tuple() if levels == 0:
                return None
            case str():
                part = each[: min(LONGEST_SECRET, max(left, 0))]
                left -= len(part) + A_TEXT
                return part
            case Mapping():
                kept = {}
                for key, item in each.items():
                    left -= len(str(key)) + A_TEXT
                    if left <= 0:
                        break
                    kept[key] = beginning(item, levels - 1)
                return kept
            case list() | tuple():
                return [beginning(item, levels - 1) for item in each if left > 0]
            case _:
                left -= 1
                return each

    return beginning(value, DEEPEST)


def _without_secrets(judged: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """A judgement without secrets: people's words and values are in the quote and in the defaults only."""
    if not judged:
        return {}
    defaults, _ = _bounded(redactor.for_audit(judged["tool"]["defaults"]).value)
    return {
        **judged,
        "quote": shortened(redactor.redact(judged["quote"]), ARGUMENTS_LIMIT),
        "tool": {**judged["tool"], "defaults": defaults or {}},
    }
