"""What the server says to the console, where every text is of somebody who would like it to be HTML."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.async_api import Page, Route

EVIL = "<img src=x onerror=\"document.title='owned'\">\u202e"
"""A text of an attacker: it runs where a page takes it for HTML, and turns the rest of a line around."""
NOW = 1_764_300_000.0
USE = {
    "key": EVIL,
    "calls": 2,
    "input_tokens": 1234,
    "cached_tokens": 0,
    "output_tokens": 56,
    "seconds": 3.2,
    "models": [EVIL],
    "cost": 0.25,
}
SUMMARY = {
    "id": "web:one/1",
    "thread_id": "web:one",
    "platform": EVIL,
    "channel": EVIL,
    "kind": "message",
    "person_id": "web:ben",
    "person": EVIL,
    "text": EVIL,
    "files": [EVIL],
    "at": NOW,
    "status": "failed",
    "cause": EVIL,
    "reference": "1a2b3c4d",
}
CALL = {
    "call_id": "web:one/1.1",
    "server": EVIL,
    "tool": EVIL,
    "title": EVIL,
    "agent": EVIL,
    "client": EVIL,
    "arguments": {EVIL: EVIL},
    "mode": "default",
    "verdict": "ask",
    "rule": EVIL,
    "source": EVIL,
    "why": EVIL,
    "status": "failed",
    "ended": "",
    "result": EVIL,
    "characters": 9000,
    "attempts": 1,
    "waited": 34.0,
    "seconds": 0.4,
}
EVENTS = [
    {
        "at": NOW + index,
        "kind": kind,
        "call_id": call,
        "person_id": "web:ben",
        "person": EVIL,
        "subject": "",
        "what": what,
    }
    | {"text": EVIL}
    for index, (kind, what, call) in enumerate(
        [
            ("message", "", ""),
            ("asked", "approval", "web:one/1.1"),
            ("asked", "sign_in", ""),
            ("vote", "approve", "web:one/1.1"),
            ("vote", "reject", ""),
            ("settled", "approved", "web:one/1.1"),
            ("settled", "try_again", "web:one/1.1"),
            ("began", "", "web:one/1.1"),
            ("ended", "failed", "web:one/1.1"),
            ("not made", "denied", ""),
            ("said", "answer", ""),
            ("notice", "error", ""),
            ("read", "looked", ""),
            (EVIL, EVIL, EVIL),
        ]
    )
]
ENTRY = {
    "at": "2026-11-28T10:00:00.000Z",
    "thread": "web:one",
    "call": "web:one/1.1",
    "requester": EVIL,
    "server": EVIL,
    "tool": EVIL,
    "input": EVIL,
    "decision": "ask",
    "rule": EVIL,
    "status": EVIL,
    "note": EVIL,
    "why": EVIL,
    "settled": {},
    "votes": [{"verb": "approve", "name": EVIL, "person": "web:ben"}],
}
SIDE = {"verdict": "ask", "rule": EVIL, "source": EVIL, "why": EVIL, "approvers": EVIL, "text": EVIL}
CHANGE = {"before": "ask", "after": "allow", "calls": 24}
ANSWERS: dict[str, Any] = {
    "GET waiting": {
        "approvals": [
            {
                "id": "a1",
                "call_id": "web:one/1.1",
                "turn": "web:one/1",
                "thread_id": "web:one",
                "server": EVIL,
                "tool": EVIL,
                "title": EVIL,
                "risk": ["destroys", EVIL],
                "requester_id": EVIL,
                "requester": EVIL,
                "client": EVIL,
                "agent": "",
                "for_whom": EVIL,
                "approvers": [EVIL],
                "handed_to": [EVIL],
                "rule": EVIL,
                "why": EVIL,
                "quorum": 2,
                "votes": [{"person_id": "", "name": EVIL, "verb": "reject", "authority": "", "reason": "", "at": NOW}],
                "asked_at": NOW,
                "expires_at": NOW,
                "escalates_at": None,
            }
        ],
        "next": "",
        "by_rule": [{"rule": EVIL, "count": 1, "since": NOW}],
        "questions": [
            {
                "kind": "clarification",
                "id": "q1",
                "call_id": "",
                "turn": "web:one/1",
                "thread_id": "web:one",
                "person_id": EVIL,
                "person": EVIL,
                "server": EVIL,
                "text": EVIL,
                "since": NOW,
            }
        ],
        "most_questions": 2,
    },
    "GET turns": {"turns": [SUMMARY], "next": ""},
    "GET turns/one": {
        "turn": SUMMARY,
        "text": EVIL,
        "calls": [CALL],
        "events": EVENTS,
        "models": [{**USE, "agent": EVIL}],
        "total": USE,
        "currency": "EUR",
    },
    "GET audit": {
        "entries": [
            {"seq": 2, "hash": "ab" * 32, "turn": "web:one/1", "entry": ENTRY},
            {"seq": 1, "hash": "cd" * 32, "turn": "", "entry": None},
        ],
        "next": "",
        "whole": False,
    },
    "GET rules": {
        "source": EVIL,
        "version": EVIL,
        "mode": "default",
        "text": EVIL,
        "since": "2026-10-30",
        "counted": False,
        "rules": [
            {
                "name": EVIL,
                "source": EVIL,
                "decides": "ask",
                "match": [{"field": EVIL, "wanted": EVIL}],
                "approvers": EVIL,
                "reason": EVIL,
                "reads": False,
                "allowed": 0,
                "asked": 12,
                "denied": 0,
            }
        ],
        "besides": [{"decided_by": "former", "rule": EVIL, "allowed": 0, "asked": 1, "denied": 0}],
    },
    "POST rules/question": {
        "verdict": "deny",
        "why": EVIL,
        "rule": EVIL,
        "source": EVIL,
        "version": "v",
        "reason": EVIL,
        "approvers": EVIL,
        "beyond": [EVIL],
        "known_tool": False,
        "groups": {EVIL: None},
        "mode": "default",
        "platform": "web",
        "agent": EVIL,
        "at": NOW,
        "tried": [{"name": EVIL, "source": EVIL, "fit": "no", "because": [EVIL]}],
    },
    "POST rules/replay": {
        "version": "v",
        "since": 0.0,
        "until": NOW,
        "calls": 5,
        "different": 1,
        "different_from_now": 1,
        "doubtful": 1,
        "unreadable": 0,
        "most": 20000,
        "is_cut": True,
        "changes": [CHANGE],
        "differences": [
            {
                "at": "2026-11-21T10:30:00Z",
                "requester": EVIL,
                "client": EVIL,
                "agent": EVIL,
                "server": EVIL,
                "tool": EVIL,
            }
            | {
                "input": EVIL,
                "turn": "web:one/1",
                "call": "web:one/1.1",
                "recorded": SIDE,
                "now": SIDE,
                "changed": SIDE,
            }
            | {"doubt": EVIL}
        ],
        "more": 2,
    },
    "GET fatigue": {
        "since": "2026-10-30",
        "counted": True,
        "lines": [
            {
                "decided_by": "rule",
                "rule": EVIL,
                "server": EVIL,
                "tool": EVIL,
                "asked": 40,
                "unchanged": 38,
                "edited": 1,
                "rejected": 1,
                "contested": 1,
                "expired": 0,
                "other": 0,
                "median_wait": 34.0,
                "candidate": "allow",
            }
        ],
        "more": True,
    },
    "GET suggestions": {
        "state": "ready",
        "computed_at": NOW,
        "version": "v",
        "calls": 5321,
        "since": "",
        "most": 20000,
        "suggestions": [
            {
                "kind": "allow",
                "looser": True,
                "name": EVIL,
                "rule": f"  - name: {EVIL}\n",
                "before": EVIL,
                "policy": f"version: 1  # {EVIL}",
                "server": EVIL,
                "tool": EVIL,
                "because": EVIL,
                "open_arguments": [EVIL],
                "risks": ["writes"],
                "proof": {
                    "calls": 130,
                    "changed": 24,
                    "changes": [CHANGE],
                    "first": "2026-11-01T10:00:00Z",
                    "last": "2026-11-02T10:00:00Z",
                    "requesters": 3,
                    "examples": [
                        {"at": "2026-11-01T10:00:00Z", "requester": EVIL, "input": EVIL, "turn": "web:one/1"}
                        | {"call": "web:one/1.1", "outcome": "unchanged"}
                    ],
                },
            }
        ],
    },
    "GET tool-servers": {
        "servers": [
            {
                "name": EVIL,
                "state": "down",
                "tools": 0,
                "reason": EVIL,
                "withheld": [EVIL],
                "replica": replica,
                "host": EVIL,
            }
            | {"process": 7, "here": replica == "r1"}
            for replica in ("r1", "r2")
        ]
    },
    "POST tool-servers/retry": {"status": "settled", "text": EVIL, "errors": {}},
    "GET replicas": {
        "replicas": [
            {"id": "r1", "host": EVIL, "process": 7, "here": True, "version": EVIL, "started": "2026-11-28T10:00:00Z"}
            | {"seen_seconds_ago": 0.0, "policy": EVIL, "policy_differs": True, "stopped": True}
        ]
    },
    "GET usage": {"since": "2026-11-01", "until": "2026-11-30", "groups": [USE, USE], "more": True, "currency": "EUR"},
    "GET accounts": {
        "accounts": [
            {"id": "c1", "person_id": EVIL, "person": EVIL, "connection": EVIL, "service": EVIL, "account": EVIL}
            | {"status": "refused", "since": NOW, "used_at": None}
        ],
        "next": "",
    },
    "GET parked": {
        "parked": [
            {
                "id": "d1",
                "thread_id": "web:one",
                "kind": EVIL,
                "person_id": EVIL,
                "person": EVIL,
                "text": EVIL,
                "cause": EVIL,
            }
            | {"at": NOW, "tries": 10, "reference": "1a2b3c4d", "can_retry": False, "why_not": EVIL}
        ],
        "next": "",
    },
    "POST parked/d1/giving-up": {"text": EVIL},
    "GET stop": {"stopped": True, "id": EVIL, "person_id": EVIL, "name": EVIL, "why": EVIL, "since": NOW},
}


async def answer_with(page: Page, answers: dict[str, Any]) -> None:
    """Answer what the console asks; what is none of these is refused as of somebody who is no operator."""

    async def answer(route: Route) -> None:
        path = route.request.url.split("/api/console/", 1)[1].split("?", 1)[0]
        path = re.sub(r"(?<=^turns/).+", "one", re.sub(r"(?<=^tool-servers/).+(?=retry$)", "", path))
        found = answers.get(f"{route.request.method} {path}")
        refusal = {"status": 403, "title": "Forbidden", "detail": "Only operators can see this."}
        body = json.dumps(refusal if found is None else found)
        await route.fulfill(status=403 if found is None else 200, content_type="application/json", body=body)

    await page.route("**/api/console/**", answer)
