"""Examples of everything that Slack shows, and the files that say what they looked like when somebody last checked.

`python -m tests.slack.snapshot_files` writes the files anew: read the difference before you keep it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adapters.shared.memories import MemoryList
from adapters.slack.actions import Origin
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.cards import sign_in_piece
from adapters.slack.render.forms import (
    always_modal,
    answer_modal,
    approve_all_modal,
    arguments_modal,
    ask_modal,
    code_modal,
    connect_modal,
    edit_modal,
    hand_over_modal,
    note_modal,
    reject_modal,
)
from adapters.slack.render.home import connections_piece, home_view, overview_piece
from adapters.slack.render.memories import memory_piece
from adapters.slack.render.posts import help_piece, note, pieces, thread_start
from bot.domain import Content, Form, GrantView, Notice, Overview, Said, Shown, Together, Vote
from bot.memory import PersonMemories
from graph.interrupts import FieldType, FormField
from graph.memory import MemoryItem
from tests.slack.shown import (
    ANA,
    NOW,
    a_connection,
    a_plan,
    a_post,
    a_question,
    a_sign_in,
    a_tools_question,
    an_account_wanted,
    an_approval,
    an_outcome,
)
from tests.support.views import CITING, a_plan_that_failed, a_plan_that_was_stopped, a_service

FOLDER = Path(__file__).parent / "snapshots"
ORIGIN = Origin("call-1.1", "C1", "1700000000.000200", "1700000000.000100")
LINK = "https://acme.slack.com/archives/C1/p1700000000000100"

ANSWER = """## Free rooms

**Blue** is free at *10:00*, ~~Red~~ is not. See [the plan](https://rooms.example/plan?day=21) or `rooms list`.

1. Blue
   - 8 seats
   - [x] projector
2. Green

> Please be on time.

```sh
rooms book --room blue
```

| Room | Seats |
|:-----|------:|
| Blue | 8 |
| Green | |

---

Shall I book **Blue**?
"""

FORM = Form(
    "calendar: create_event",
    (
        FormField(name="name", label="Name"),
        FormField(name="notes", label="Notes", multiline=True, required=False, help="For everybody."),
        FormField(name="duration", label="Duration", type=FieldType.INTEGER),
        FormField(name="day", label="Day", type=FieldType.DATE),
        FormField(name="at", label="At", type=FieldType.TIME),
        FormField(name="start", label="Start", type=FieldType.DATE_TIME),
        FormField(name="room", label="Room", type=FieldType.CHOICE, options=("Blue", "Green")),
        FormField(name="remind", label="Remind", type=FieldType.YES_NO),
        FormField(name="owner", label="Owner", type=FieldType.PERSON),
        FormField(name="where", label="Channel", type=FieldType.CHANNEL, required=False),
        FormField(name="guests", label="Guests", type=FieldType.JSON),
        FormField(name="agenda", label="Agenda"),
    ),
    {
        "name": "Standup",
        "duration": 15,
        "day": "2026-11-21",
        "at": "09:30",
        "start": "2026-11-21T09:30",
        "room": "Blue",
        "remind": True,
        "owner": "U1",
        "guests": ["Ben"],
        "agenda": "x" * 4_000,
    },
)

APPROVED = an_approval(
    status="approved",
    asked_arguments={"name": "Meeting", "duration": 60},
    arguments={"name": "Standup", "duration": 15},
    quote="please book the standup for 15 minutes",
    decided_by=("Ben",),
    decided_at=NOW + 60,
    result="Done: id 7",
    result_tone="success",
)
GRANT = GrantView("g1", "calendar", "create_event", {"name": "Standup", "duration": 15}, NOW + 3_600)
CONNECTIONS = (
    a_connection(),
    a_connection(connection_id="c2", service="notes", account="", scopes=(), used_at=None, status="revoked"),
)
SERVICES = (a_service(), a_service("notes", service="Notes & <b>more</b>", scopes=()))
MEMORIES = MemoryList(
    PersonMemories(
        (MemoryItem("m1", "call me Al", 1_700_000_000.0), MemoryItem("m2", "<!here> & co", 1.0)), is_remembered=True
    ),
    (MemoryItem("m3", "we ship on Tuesdays", 1_700_000_000.0, "Ben"),),
)
OVERVIEW = Overview(
    (Shown(a_post(an_approval(requester="Ben"), "a:1"), {}),),
    (Shown(a_post(a_question(), "q:1"), {}), Shown(a_post(a_sign_in(), "s:1"), {})),
    (Shown(a_post(APPROVED, "a:2"), {}),),
)


def _post(content: Content) -> Callable[[], Any]:
    return lambda: [_message(piece) for piece in pieces(a_post(content))]


def _message(piece: SlackMessage) -> Any:
    return {"text": piece.text, "blocks": list(piece.blocks)}


EXAMPLES: Mapping[str, Callable[[], Any]] = {
    "approval_waiting": _post(
        an_approval(
            may_decide="2 of: Ben or members of slack-group:T1:S7",
            approvers=("slack:T1:U2", "slack-group:T1:S7"),
            quorum=2,
            votes=(Vote("Ben", "approve", NOW),),
            together=3,
            always_offered=True,
            quote="please book a meeting tomorrow",
            rejections=2,
            handed_to=("Chloe",),
            escalates_at=NOW + 3_600,
            arguments={"name": "Meeting", "notes": "word " * 200, "when": {"day": "2026-11-21"}},
        )
    ),
    "approval_approved_with_edits": _post(APPROVED),
    "approval_rejected": _post(
        an_approval(status="rejected", decided_by=("Ben",), decided_at=NOW + 60, reason="Too early.\nTry at 10.")
    ),
    "approval_expired": _post(an_approval(status="expired", decided_at=NOW + 86_400)),
    "approval_of_a_program": _post(
        an_approval(client="claude-code", may_decide="Ben", approvers=("slack:T1:U2",), asked_at=NOW)
    ),
    "approval_of_a_program_approved": _post(
        an_approval(client="claude-code", status="approved", decided_by=("Ben",), decided_at=NOW + 60)
    ),
    "question_of_a_tool_to_a_program": _post(a_tools_question(client="claude-code")),
    "sign_in_for_a_program": _post(a_sign_in(client="claude-code")),
    "sign_in_for_a_program_private": lambda: _message(
        sign_in_piece(a_sign_in(client="claude-code"), "https://accounts.example.com/authorize?state=1")
    ),
    "outcome_of_a_program": _post(an_outcome(client="claude-code")),
    "question_open": _post(a_question()),
    "question_answered": _post(a_question(status="answered", answer="size: large")),
    "question_of_a_tool_open": _post(a_tools_question()),
    "question_of_a_tool_to_be_accepted": _post(a_tools_question(fields=())),
    "question_of_a_tool_declined": _post(a_tools_question(status="declined")),
    "question_of_a_tool_cancelled": _post(a_tools_question(status="cancelled")),
    "sign_in_open": _post(a_sign_in()),
    "account_wanted": _post(an_account_wanted()),
    "account_code_wanted": _post(an_account_wanted(code_wanted=True)),
    "account_connected": _post(an_account_wanted(status="done")),
    "account_private": lambda: _message(
        sign_in_piece(an_account_wanted(), "https://bot.example.com/oauth/start?s=only-for-ana")
    ),
    "connections": lambda: _message(connections_piece(CONNECTIONS)),
    "memory": lambda: _message(memory_piece(MEMORIES)),
    "memory_of_nobody": lambda: _message(memory_piece(MemoryList(PersonMemories((), is_remembered=False)))),
    "connections_none": lambda: _message(connections_piece(())),
    "sign_in_done": _post(a_sign_in(status="done")),
    "sign_in_private": lambda: _message(sign_in_piece(a_sign_in(), "https://accounts.example.com/authorize?state=1")),
    "outcome_open": _post(an_outcome()),
    "outcome_settled": _post(an_outcome(status="it_was_done", settled_by="Ana")),
    "plan_open": _post(a_plan()),
    "plan_that_failed": _post(a_plan_that_failed(requester_id=ANA.person_id)),
    "plan_stopped": _post(a_plan_that_was_stopped(requester_id=ANA.person_id)),
    "answer": _post(Said(ANSWER)),
    "answer_that_cites": _post(CITING),
    "answer_of_an_agent": _post(Said("Two invoices are open.", agent="finance")),
    "approval_of_an_agent": _post(an_approval(agent="finance", may_decide="Ben", approvers=("slack:T1:U2",))),
    "notice": _post(Notice("I am waiting for Ben.", "warning")),
    "note": lambda: _message(note("Only Ben may decide this.")),
    "opening": lambda: _message(thread_start("Ana", "book a room", "Where do we meet?")),
    "help": lambda: _message(help_piece()),
    "list": lambda: _message(overview_piece(OVERVIEW, lambda _shown: LINK)),
    "home": lambda: home_view(OVERVIEW, lambda _shown: LINK, ANA, (GRANT,), CONNECTIONS, services=SERVICES),
    "home_of_nothing": lambda: home_view(Overview((), (), ()), lambda _shown: LINK, ANA, services=SERVICES),
    "modal_connect": lambda: connect_modal("GitHub", "https://bot.example.com/oauth/start?s=only-for-ana"),
    "modal_always": lambda: always_modal(an_approval(always_offered=True), ORIGIN),
    "modal_hand_over": lambda: hand_over_modal(an_approval(), ORIGIN),
    "modal_edit": lambda: edit_modal(FORM, an_approval(), ORIGIN, ANA),
    "modal_answer": lambda: answer_modal(Form("Which room?", a_question().fields, {"size": "small"}), ORIGIN, ANA),
    "modal_answer_of_a_tool": lambda: answer_modal(
        Form("Which seat?", a_tools_question().fields, {}), ORIGIN, ANA, "cinema"
    ),
    "modal_accept": lambda: answer_modal(Form("Book it?", (), {}), ORIGIN, ANA, "cinema"),
    "modal_code": lambda: code_modal(an_account_wanted(code_wanted=True), ORIGIN),
    "modal_reject": lambda: reject_modal(an_approval(reason_required=True), ORIGIN),
    "modal_approve_all": lambda: approve_all_modal(
        Together((an_approval(), an_approval("call-1.2", tool="delete_event")), 0), ORIGIN
    ),
    "modal_show_all": lambda: arguments_modal(an_approval(arguments={"notes": "word " * 3_000}), 1, ORIGIN),
    "modal_ask": lambda: ask_modal("Where do we meet?", ORIGIN),
    "modal_note": lambda: note_modal("Countersign", "That was settled already."),
}


def written(name: str) -> str:
    """An example as its file has it."""
    return json.dumps(EXAMPLES[name](), indent=1, ensure_ascii=False) + "\n"


def write_all() -> None:
    """Write every file, and remove those of examples that are no more."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name in EXAMPLES:
        (FOLDER / f"{name}.json").write_text(written(name), encoding="utf-8")


if __name__ == "__main__":
    write_all()
