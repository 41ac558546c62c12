"""What an audit entry says of a call. Pure: facts in, canonical JSON out; nothing in it is a secret any more."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from pydantic import TypeAdapter

from bot.task_threads import conversation_of
from graph.agents import DEFAULT
from graph.interrupts import ApprovalAsked
from graph.json_values import storable
from policies.commands import argument_of_command
from policies.defaults import plain, with_defaults
from policies.masking import A_TEXT, DEEPEST, Masker, exceeds
from policies.model import Annotations, Call, Facts, Mode, Tool, Verdict, canonical_json
from policies.reasons import Reasons, why
from policies.replaying import RecordedCall
from translations import SOURCE, in_language

LONGEST_INPUT = 200
"""Characters of the short input."""
LONGEST_ARGUMENTS = 4_000
"""Characters of the arguments that are kept for `policy replay`, as canonical JSON."""
LONGEST_VALUE = 300
"""Characters of a text within arguments that are longer than that."""
OUTPUT_BYTES = 4_096
"""Bytes of the output that its hash covers."""
LONGEST_SECRET = 4_000
"""Characters of a text that are looked through for secrets, where a call has much of it."""
MOST_SEARCHED = 10_000
"""Characters of a call that are looked through, more than twice as many as are kept. It is done where the entry is
written, and a thousand characters that somebody has made for it take up to 4 ms of CPU."""
LOOKED = "looked"
"""Status of an entry that says that somebody looked at what is hidden in a waiting call."""
READ = "read"
"""Status of an entry that says that an operator looked at what is somebody else's, or at what is everybody's."""
ACTED = "acted"
"""Status of an entry that says that an operator did something that changes what happens for everybody."""
LOOKED_UP = "looked up"
"""Status of an entry that says that a tool which only reads was called to show people what a waiting call is about."""
_NOT_STORABLE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
"""Half of a character, or NUL: no database takes them."""
_DEEPEST_ENTRY = 100
"""Levels; arguments have `DEEPEST` at most."""
_A_VOTE = frozenset({"person", "name", "verb", "authority", "at"})
_SINGLE = ("requester", "server", "tool", "input", "mode", "decision", "rule", "source", "version", "note", "output")
"""What an entry says in one text, where it says anything."""
LONGEST_REASON = 200
"""Characters of what somebody wrote with a vote: a reason, or a note."""


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
    """Of a rejection; of an approval what was added for the model."""
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
    """`done`, `failed`, `unknown`, `denied`, `rejected`, `expired`, `superseded`, `withdrawn`, `limited` or `skipped`;
    `looked`: it has not ended, somebody looked at what is hidden in it; `looked up`: it was read for the card of
    another call; `read` and `acted`: there is no call, an operator looked at something, or did it."""
    attempt: int | None = None
    """Which try it was; `None`: the call was not made."""
    judged: Mapping[str, Any] | None = None
    """What the policy said of it, as `bot.audit.entries.judgement` writes it; `None`: it was not judged."""
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


def entry_of(end: CallEnd, masker: Masker) -> str:
    """The entry, as canonical JSON."""
    return canonical_json(contents_of(end, masker))


def contents_of(end: CallEnd, masker: Masker) -> dict[str, Any]:
    """What an entry says."""
    judged = end.judged or {}
    verdict = judged.get("verdict", {})
    whole = dict(end.arguments)
    beginning = _beginning_of(whole) if exceeds(whole, MOST_SEARCHED) else whole
    arguments = masker.for_audit(beginning).value
    kept, cut = _bounded(arguments)
    cut = cut or beginning is not whole
    return {
        **_client(judged, masker),
        **({"agent": judged["agent"]} if "agent" in judged else {}),
        "at": in_utc(end.at),
        "thread": end.thread_id,
        "call": end.call_id,
        "attempt": end.attempt,
        "requester": end.requester,
        "server": end.server,
        "tool": end.tool,
        "input": shortened(canonical_json(arguments), LONGEST_INPUT),
        "mode": judged.get("mode", ""),
        "decision": verdict.get("verdict", ""),
        "rule": verdict.get("rule", ""),
        "source": verdict.get("source", ""),
        "version": verdict.get("version", ""),
        **({"why": judged["why"]} if "why" in judged else {}),
        "votes": [_vote(vote, masker) for vote in end.votes],
        "approval": end.approval_id,
        "digest": end.digest,
        "fingerprint": masker.fingerprint_of_call(end.server, end.tool, end.arguments),
        "duration": None if end.duration is None else round(end.duration, 3),
        "status": end.status,
        "note": shortened(masker.mask(end.note[:LONGEST_SECRET]), LONGEST_INPUT),
        "settled": dict(end.settled),
        "output": None if end.output is None else output_hash(end.output),
        "arguments": kept,
        "arguments_cut": cut,
        "arguments_masked": arguments != beginning,
        "judged": _without_secrets(judged, masker),
    }


def read_entry(text: str) -> dict[str, Any] | None:
    """What an entry says; `None`: it was changed and cannot be read. One that was changed does not stop the
    others from being read: what is returned can be shown and written out."""
    try:
        entry = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not _has_its_form(entry):
        return None
    if _NOT_STORABLE.search(text) is not None and storable(entry) != entry:
        return None
    is_deep = text.count("[") + text.count("{") > _DEEPEST_ENTRY and not _is_within(entry, _DEEPEST_ENTRY)
    return None if is_deep else entry


def _has_its_form(entry: Mapping[str, Any]) -> bool:
    """Whether what readers take for texts, votes and choices are such."""
    is_of_texts = all(isinstance(entry.get(name), str) for name in ("at", "call", "status"))
    votes, settled = entry.get("votes", []), entry.get("settled", {})
    return (
        is_of_texts
        and isinstance(votes, list)
        and all(isinstance(vote, dict) and vote.keys() >= _A_VOTE for vote in votes)
        and isinstance(settled, dict)
        and (not settled or settled.keys() >= {"choice", "by"})
        and not any(isinstance(entry.get(name), dict | list) for name in _SINGLE)
    )


def _is_within(value: Any, levels: int) -> bool:
    match value:
        case dict():
            return levels > 0 and all(_is_within(item, levels - 1) for item in value.values())
        case list():
            return levels > 0 and all(_is_within(item, levels - 1) for item in value)
        case _:
            return True


def key_of(call_id: str, attempt: int | None, status: str, settled: Mapping[str, str], at: str) -> str:
    """What says which end of which call an entry is about, or which look at it: there is one entry of each."""
    if status == LOOKED:
        return f"{call_id}:{LOOKED}:{at}:{settled['by']}"
    if status == LOOKED_UP:
        return f"{call_id}:{LOOKED_UP}:{at}"
    if attempt is None:
        return key_of_unmade(call_id)
    return f"{call_id}:{attempt}:{'settled' if settled else status}"


def key_of_unmade(call_id: str) -> str:
    """The key of the entry of a call that ended without having been made."""
    return f"{call_id}:not made"


def key_of_reading(thread_id: str, settled: Mapping[str, str], at: str) -> str:
    """The same of what an operator reads: there is one entry by person and thing in ten minutes by the clock."""
    ten_minutes = at[: len("2026-11-21T10:3")]
    return f"{READ}:{ten_minutes}:{settled['choice']}:{thread_id}:{settled['by']}"


def key_of_act(settled: Mapping[str, str], at: str) -> str:
    """The same of what an operator does: there is one entry of each act."""
    return f"{ACTED}:{at}:{settled['choice']}:{settled.get('of', '')}:{settled['by']}"


def looker_of(person_id: str, name: str, authority: str) -> str:
    """Who looked, and as what they may."""
    return f"{name} <{person_id}>" + (f" ({authority})" if authority else "")


_LOOKER = re.compile(r"<([^<>]+)>(?: \([^<>]*\))?")


def looker_in(entry: Mapping[str, Any]) -> str:
    """The person id of who looked at what is hidden, by the words of `looker_of`, whatever name people give themselves;
    empty: it is another entry. Raises nothing."""
    settled = entry.get("settled")
    if entry.get("status") != LOOKED or not isinstance(settled, Mapping):
        return ""
    words = str(settled.get("by"))
    found = _LOOKER.fullmatch(words, words.rfind("<")) if "<" in words else None
    return found[1] if found is not None else ""


def log_line_of(contents: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the one line in the log about a tool call, from what its entry says; named as in the traces."""
    duration = contents["duration"]
    return {
        "gen_ai.conversation.id": conversation_of(contents["thread"]),
        "gen_ai.tool.call.id": contents["call"],
        "countersign.tool.server": contents["server"],
        "gen_ai.tool.name": contents["tool"],
        "gen_ai.tool.call.arguments": contents["input"],
        "countersign.policy.verdict": contents["decision"],
        "countersign.policy.rule": contents["rule"],
        "countersign.outcome": contents["status"],
        "countersign.output.sha256": contents["output"],
        "countersign.duration_ms": None if duration is None else round(duration * 1000),
        "user.id": contents["requester"],
    }


def output_hash(output: str) -> str:
    """SHA-256, hexadecimal, of the first 4 KB of an output as it is kept in the records (in UTF-8)."""
    return hashlib.sha256(output.encode("utf-8", "surrogatepass")[:OUTPUT_BYTES]).hexdigest()


def in_utc(seconds: float) -> str:
    """A moment as `2026-11-21T10:30:00.250Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shortened(text: str, limit: int) -> str:
    """Returns at most `limit` characters of a text."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def name_as_given(name: str, masker: Masker) -> str:
    """A name from outside, which may hold anything: masked and cut."""
    return shortened(masker.mask(name[:LONGEST_SECRET]), LONGEST_INPUT)


def _client(judged: Mapping[str, Any], masker: Masker) -> dict[str, str]:
    """The name of the program that called, as it gave it itself; nothing of our own agent's calls."""
    name = judged.get("client", "")
    return {"client": name_as_given(name, masker)} if name else {}


def _vote(vote: VoteCast, masker: Masker) -> dict[str, Any]:
    return {
        "round": vote.round,
        "person": vote.person,
        "name": vote.name,
        "verb": vote.verb,
        "authority": vote.authority,
        "reason": shortened(masker.mask(vote.reason), LONGEST_REASON),
        "at": in_utc(vote.at),
    }


def _bounded(arguments: Any) -> tuple[Any, bool]:
    """The arguments when they are short enough; else with their texts cut, or none; and whether something is left out.

    Cut only after secrets were taken out: half a secret is not recognised.
    """
    if len(canonical_json(arguments)) <= LONGEST_ARGUMENTS:
        return arguments, False
    cut = _texts_cut(arguments)
    return (cut if len(canonical_json(cut)) <= LONGEST_ARGUMENTS else None), True


def _texts_cut(value: Any) -> Any:
    match value:
        case str():
            return shortened(value, LONGEST_VALUE)
        case Mapping():
            return {key: _texts_cut(item) for key, item in value.items()}
        case list():
            return [_texts_cut(item) for item in value]
        case _:
            return value


def _beginning_of(value: Any, space_left: int = MOST_SEARCHED) -> Any:
    """The part of a large value that may be kept: the beginnings of its texts, long enough for a secret that begins in
    what is kept of them to be seen whole; nothing after the limit."""
    left = space_left

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


def _without_secrets(judged: Mapping[str, Any], masker: Masker) -> dict[str, Any]:
    """A judgement without secrets: people's words and values are in the quote and in the defaults only."""
    if not judged:
        return {}
    # Once more: calls that an earlier version began have them whole.
    defaults, _ = _bounded(masker.for_audit(_beginning_of_defaults(judged["tool"]["defaults"])).value)
    return {
        **judged,
        **_client(judged, masker),
        "quote": shortened(masker.mask(judged["quote"]), LONGEST_ARGUMENTS),
        "tool": {**judged["tool"], "defaults": defaults or {}},
    }


# ------------------------------------------ how a call was judged, as JSON and back (`policy replay`)

_verdict: TypeAdapter[Verdict] = TypeAdapter(Verdict)


def judgement(call: Call, facts: Facts, verdict: Verdict, reasons: Reasons | None = None) -> dict[str, Any]:
    """A judgement as plain JSON: what was said, and all that it was said on but the arguments of the call."""
    tool = call.tool
    filled = plain(with_defaults(tool.input_schema, call.arguments))
    client = {"client": facts.client} if facts.client else {}
    agent = {"agent": facts.agent} if facts.agent not in ("", DEFAULT) else {}
    asks = {"agent_asks": True} if facts.agent_asks else {}
    with in_language(SOURCE):  # the log is in one language, whoever reads it
        told = {} if reasons is None else {"why": why(reasons)}
    return {
        **client,
        **agent,
        **asks,
        **told,
        "verdict": verdict.model_dump(mode="json"),
        "mode": facts.mode.value,
        "requester": facts.requester,
        "platform": facts.platform,
        "place": facts.place,
        "at": facts.at.timestamp(),
        "groups": dict(facts.groups),
        "quote": call.quote,
        "tool": {
            "server": tool.server,
            "name": tool.name,
            "annotations": asdict(tool.annotations),
            "trusted": tool.annotations_trusted,
            "requires_approval": tool.requires_approval,
            "reads_only": tool.reads_only,
            "command": argument_of_command(tool.input_schema),
            # Left out by the call and filled in by the schema: rules are held against these too.
            "defaults": _beginning_of_defaults(
                {name: value for name, value in filled.items() if name not in call.arguments}
            ),
        },
    }


def judgement_as_asked(asked: ApprovalAsked) -> dict[str, Any]:
    """What is known of the judgement of a call about which people were asked, where its tool is not known any more: too
    little to judge it again by other rules (`recorded_call`)."""
    client = {"client": asked.client} if asked.client else {}
    agent = {"agent": asked.agent} if asked.agent else {}
    reasons = asked.presentation.reasons
    with in_language(SOURCE):
        told = {} if reasons is None else {"why": why(reasons)}
    return {
        **client,
        **agent,
        **told,
        "verdict": asked.ask.model_dump(mode="json"),
        "quote": asked.quote,
        "tool": {"server": asked.server, "name": asked.tool, "defaults": {}},
    }


def _beginning_of_defaults(defaults: Mapping[str, Any]) -> Any:
    """As much of them as may be kept. A schema of 50 kB can refer a thousand times to one default of 30 kB."""
    return _beginning_of(defaults) if exceeds(defaults, MOST_SEARCHED) else defaults


def recorded_call(entry: Mapping[str, Any]) -> RecordedCall:
    """The call of an entry that says how it was judged. Raises `KeyError`, `ValueError`, `TypeError` or
    `AttributeError` for what is no such entry."""
    call, facts, then = judged_again(entry["judged"], entry["arguments"] or {})
    return RecordedCall(
        call,
        facts,
        then,
        why=str(entry["judged"].get("why", "")),
        is_cut=bool(entry["arguments_cut"]),
        is_masked=bool(entry["arguments_masked"]),
    )


def judged_again(kept: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Call, Facts, Verdict]:
    """The call, the facts and the verdict of then. Raises `KeyError`, `ValueError`, `TypeError` or `AttributeError` for
    what is no judgement."""
    about = kept["tool"]
    tool = Tool(
        server=about["server"],
        name=about["name"],
        input_schema=_schema(about["command"]),
        annotations=Annotations(**about["annotations"]),
        annotations_trusted=about["trusted"],
        requires_approval=about["requires_approval"],
        reads_only=about.get("reads_only", False),  # older entries do not say
    )
    facts = Facts(
        mode=Mode(kept["mode"]),
        requester=kept["requester"],
        platform=kept["platform"],
        place=kept["place"],
        at=datetime.fromtimestamp(kept["at"], UTC),
        groups=kept["groups"],
        client=kept.get("client", ""),
        agent=kept.get("agent") or ("" if kept["platform"] == "mcp" else DEFAULT),
        agent_asks=kept.get("agent_asks", False),
        said=(kept["quote"],) if kept["quote"] else (),
    )
    call = Call(tool, {**about["defaults"], **arguments}, quote=kept["quote"])
    return call, facts, _verdict.validate_python(kept["verdict"])


def _schema(command: str | None) -> dict[str, Any]:
    """The part of the schema that judging reads: whether the tool takes one command line."""
    if command is None:
        return {}
    return {"type": "object", "properties": {command: {"type": "string"}}, "required": [command]}


# ------------------------------------------------------------------------------------------ the chain
# Each entry's hash covers its number, its text and the hash before it, so that a changed, removed or moved entry shows.
# The chain alone does not show that its newest entries were cut off: keep the newest number and hash elsewhere
# (`python app.py audit verify --anchor`). The ledger shows it for calls that were made.
BEGINNING = "0" * 64
"""What stands for the hash before the first entry."""
FURTHEST = 10_000
"""Places that a moved entry is looked for in, on either side of where it stands."""


@dataclass(frozen=True, slots=True)
class Link:
    """One entry as it is recorded."""

    seq: int
    """Counts from 1 without gaps."""
    key: str
    entry: str
    """Canonical JSON."""
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with the chain."""

    seq: int
    what: str
    """A sentence about it."""


def hash_of(previous: str, seq: int, entry: str) -> str:
    """SHA-256, hexadecimal, of the hash before, the number and the text."""
    return hashlib.sha256(f"{previous}\n{seq}\n{entry}".encode("utf-8", "surrogatepass")).hexdigest()


def link(before: Link | None, key: str, entry: str) -> Link:
    """The next link after `before`; `None`: the first."""
    previous, seq = (before.hash, before.seq + 1) if before else (BEGINNING, 1)
    return Link(seq, key, entry, previous, hash_of(previous, seq, entry))


class ChainCheck:
    """Follows the links as they are recorded, by number."""

    def __init__(self) -> None:
        self._expected, self._previous = 1, BEGINNING

    def faults_of(self, link: Link) -> Iterator[Fault]:
        """What is wrong with the next link. Each fault is told once: after it the chain is followed on from what is
        recorded."""
        if link.seq != self._expected:
            yield Fault(self._expected, _missing(self._expected, link.seq))
        if hash_of(link.previous, link.seq, link.entry) != link.hash:
            yield Fault(link.seq, _changed_or_moved(link))
        elif link.seq == self._expected and link.previous != self._previous:
            yield Fault(
                link.seq,
                f"entry {link.seq} does not follow the one before it: that one was changed, or the log was cut and "
                "continued here",
            )
        self._expected, self._previous = link.seq + 1, link.hash


def faults(links: Iterable[Link]) -> Iterator[Fault]:
    """What is wrong, in the order in which it stands; `links` as recorded, by number."""
    check = ChainCheck()
    return chain.from_iterable(map(check.faults_of, links))


def _missing(first: int, found: int) -> str:
    if found < first:
        return f"entry {found} stands a second time"
    return f"entry {first} is missing" if found == first + 1 else f"entries {first} to {found - 1} are missing"


def _changed_or_moved(each: Link) -> str:
    own = _own_number(each)
    if own is not None:
        return f"entry {each.seq} is out of order: it was entry {own}"
    return f"entry {each.seq} was changed"


def _own_number(each: Link) -> int | None:
    """The number under which an entry was written, if it is only its number that was changed."""
    around = range(max(1, each.seq - FURTHEST), each.seq + FURTHEST)
    return next((seq for seq in around if hash_of(each.previous, seq, each.entry) == each.hash), None)
