"""An entry of the audit log as an event of the Open Cybersecurity Schema Framework, which SIEMs read. Pure.

An event is of the class API Activity, with the profile `security_control`, in OCSF 1.8.0 (https://schema.ocsf.io/1.8.0).
Its fields are for searching. What proves it is the entry itself, letter by letter, in `raw_data`, and its place in the
chain in `unmapped.chain`: with both the chain can be verified where it has arrived (`deploy/verify_audit.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from bot.audit.entries import LOOKED, LOOKED_UP, READ, Link, hash_of, looker_in

SCHEMA = "1.8.0"
_CLASS, _CATEGORY = 6003, 6
_PROFILES = ["security_control"]
_SEARCHED = (
    *(
        "thread",
        "call",
        "attempt",
        "input",
        "mode",
        "decision",
        "rule",
        "source",
        "version",
        "why",
        "votes",
        "approval",
    ),
    *("digest", "fingerprint", "duration", "status", "settled", "output", "client", "agent"),
)
"""What of an entry stands in `unmapped.entry`, too; the arguments, and what it was judged on, only in `raw_data`."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """Where entries come from."""

    version: str
    """Of the program; empty: not known."""
    address: str | None
    """PUBLIC_URL, by which a SIEM tells installations apart."""


class _Code(NamedTuple):
    """A number of the schema, and its caption there."""

    number: int
    caption: str


_UNKNOWN, _SUCCESS, _FAILURE = _Code(0, "Unknown"), _Code(1, "Success"), _Code(2, "Failure")
_INFORMATIONAL, _LOW, _MEDIUM, _HIGH = (
    _Code(number, caption) for number, caption in enumerate(("Informational", "Low", "Medium", "High"), start=1)
)
_ALLOWED, _DENIED, _OBSERVED = _Code(1, "Allowed"), _Code(2, "Denied"), _Code(3, "Observed")
_BLOCKED, _LOGGED, _REJECTED, _ERROR = (
    _Code(2, "Blocked"),
    _Code(17, "Logged"),
    _Code(25, "Rejected"),
    _Code(27, "Error"),
)
_READING, _OTHER = _Code(2, "Read"), _Code(99, "Other")


class _Meaning(NamedTuple):
    """What a status of ours is in the schema."""

    status: _Code
    severity: _Code
    action: _Code
    disposition: _Code


_NOT_MADE = _Meaning(_FAILURE, _LOW, _DENIED, _BLOCKED)
_SEEN = _Meaning(_SUCCESS, _INFORMATIONAL, _OBSERVED, _LOGGED)
_MEANINGS: Mapping[str, _Meaning] = {
    "done": _Meaning(_SUCCESS, _INFORMATIONAL, _ALLOWED, _ALLOWED),
    "failed": _Meaning(_FAILURE, _LOW, _ALLOWED, _ERROR),
    "unknown": _Meaning(_UNKNOWN, _MEDIUM, _ALLOWED, _UNKNOWN),
    "rejected": _Meaning(_FAILURE, _LOW, _DENIED, _REJECTED),
    **dict.fromkeys(("denied", "expired", "superseded", "withdrawn", "limited", "skipped"), _NOT_MADE),
    **dict.fromkeys((LOOKED, LOOKED_UP, READ), _SEEN),
}
"""By status; another one is an operator's act."""
_ACT = _Meaning(_SUCCESS, _LOW, _OBSERVED, _LOGGED)
_FAILED_UNMADE = _Meaning(_FAILURE, _LOW, _DENIED, _ERROR)


def event_of(link: Link, source: LogSource, now: float) -> dict[str, Any]:
    """The event, as JSON has it.

    Args:
        now: when it is sent, in seconds since the epoch: of an entry that was changed nobody knows when it was written.
    """
    if hash_of(link.previous, link.seq, link.entry) != link.hash:
        return _of_changed(link, source, now)
    try:
        return _of_entry(json.loads(link.entry), link, source)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return _of_changed(link, source, now)  # with a hash that fits: whoever did it was careful


def _of_entry(entry: Mapping[str, Any], link: Link, source: LogSource) -> dict[str, Any]:
    meaning = _meaning_of(entry)
    activity = _READING if _reads_only(entry) else _OTHER
    operation = entry["tool"] or entry["settled"].get("choice", "")
    about = f"{entry['server']} {operation}".strip()
    return {
        **_classified(activity, meaning.severity),
        "time": _milliseconds(entry["at"]),
        "message": f"{about}: {entry['status']}",
        "status_id": meaning.status.number,
        "status": meaning.status.caption,
        "status_code": entry["status"],
        **({"status_detail": entry["note"]} if entry["note"] else {}),
        "action_id": meaning.action.number,
        "action": meaning.action.caption,
        "disposition_id": meaning.disposition.number,
        "disposition": meaning.disposition.caption,
        "actor": {
            "user": {"uid": looker_in(entry) or entry["requester"], "type_id": 1, "type": "User"},
            **_program(entry),
        },
        "api": {
            "operation": operation,
            "request": {"uid": entry["call"]},
            **({"service": {"name": entry["server"]}} if entry["server"] else {}),
        },
        "src_endpoint": _endpoint((entry.get("judged") or {}).get("platform", "")),
        **({"authorizations": [_authorization(entry)]} if entry["decision"] else {}),
        "metadata": _metadata(link, source),
        "unmapped": {
            "chain": _chain(link),
            "entry": {name: entry[name] for name in _SEARCHED if name in entry},
        },
        "raw_data": link.entry,
    }


def _of_changed(link: Link, source: LogSource, now: float) -> dict[str, Any]:
    """Of an entry that is not what was written nothing is believed; it is passed on all the same, as it is."""
    link = replace(
        link, entry=str(link.entry), previous=str(link.previous), hash=str(link.hash)
    )  # SQLite keeps anything
    return {
        **_classified(_OTHER, _HIGH),
        "time": round(now * 1000),
        "message": f"entry {link.seq} of the audit log was changed",
        "is_alert": True,
        "status_id": _UNKNOWN.number,
        "status": _UNKNOWN.caption,
        "actor": {"app_name": "Countersign"},
        "api": {"operation": "unknown"},
        "src_endpoint": _endpoint(""),
        "metadata": _metadata(link, source),
        "unmapped": {"chain": _chain(link)},
        "raw_data": link.entry,
    }


def _classified(activity: _Code, severity: _Code) -> dict[str, Any]:
    return {
        "category_uid": _CATEGORY,
        "category_name": "Application Activity",
        "class_uid": _CLASS,
        "class_name": "API Activity",
        "activity_id": activity.number,
        "activity_name": activity.caption,
        "type_uid": _CLASS * 100 + activity.number,
        "type_name": f"API Activity: {activity.caption}",
        "severity_id": severity.number,
        "severity": severity.caption,
    }


def _metadata(link: Link, source: LogSource) -> dict[str, Any]:
    version = {"version": source.version} if source.version else {}
    return {
        "version": SCHEMA,
        "profiles": _PROFILES,
        "product": {"name": "Countersign", "vendor_name": "Countersign", **version},
        "log_name": "audit",
        **({"log_source": source.address} if source.address else {}),
        "sequence": link.seq,
        "uid": link.hash,
        "original_event_uid": str(link.seq),
    }


def _chain(link: Link) -> dict[str, Any]:
    return {"seq": link.seq, "previous": link.previous, "hash": link.hash}


def _endpoint(platform: str) -> dict[str, str]:
    return {"svc_name": "countersign", **({"name": platform} if platform else {})}


def _program(entry: Mapping[str, Any]) -> dict[str, str]:
    name = entry.get("client") or entry.get("agent")
    return {"app_name": name} if name else {}


def _authorization(entry: Mapping[str, Any]) -> dict[str, Any]:
    said = {"name": entry["rule"], "uid": entry["source"], "version": entry["version"], "desc": entry.get("why", "")}
    policy = {name: text for name, text in said.items() if text}
    return {"decision": entry["decision"], **({"policy": policy} if {"name", "uid"} & {*policy} else {})}


def _meaning_of(entry: Mapping[str, Any]) -> _Meaning:
    if entry["status"] == "failed" and entry["attempt"] is None:
        return _FAILED_UNMADE
    return _MEANINGS.get(entry["status"], _ACT)


def _reads_only(entry: Mapping[str, Any]) -> bool:
    if entry["status"] in (LOOKED, LOOKED_UP, READ):
        return True
    about = (entry.get("judged") or {}).get("tool", {})
    return bool(about.get("reads_only") or (about.get("trusted") and about.get("annotations", {}).get("read_only")))


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
