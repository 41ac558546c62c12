"""Named examples of everything that Teams shows: for snapshots, for Microsoft's renderer, and for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from adapters.shared.memories import MemoryList
from adapters.teams.ids import Activity
from adapters.teams.render.dialogs import (
    Dialog,
    always_dialog,
    answer_dialog,
    approve_all_dialog,
    code_dialog,
    connect_dialog,
    disconnect_dialog,
    edit_dialog,
    hand_over_dialog,
    note_dialog,
    reject_dialog,
    show_all_dialog,
)
from adapters.teams.render.elements import Card
from adapters.teams.render.memories import memory_card
from adapters.teams.render.posts import (
    Audience,
    card_of,
    connections_activity,
    help_activity,
    note,
    open_a_chat_first,
    overview_activity,
    sign_in_link,
)
from adapters.teams.render.posts import activities as activities_of
from bot.domain import (
    ApprovalView,
    CallActivity,
    Content,
    Form,
    GrantView,
    Notice,
    Overview,
    PlanTaskView,
    Said,
    Shown,
    Together,
    Vote,
)
from bot.memory import PersonMemories
from graph.interrupts import FieldType, FormField
from graph.memory import MemoryItem
from graph.plans import MOST_TASKS
from tests.support.views import CITING, a_plan_that_failed, a_plan_that_was_stopped, a_service
from tests.teams.shown import (
    ANA_ID,
    NOW,
    a_change,
    a_plan,
    a_post,
    a_question,
    a_sign_in,
    an_account,
    an_approval,
    an_outcome,
)

CHAT = Audience("personal")
EVERYBODY = Audience("open")
LISTED = Audience("listed", ("29:1-ben", "29:1-chloe"))

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

HOSTILE = (
    "<at>everyone</at> [good.example](https://evil.example) ![x](https://evil.example/leak.png) *bold* `code` "
    "{{DATE(2017-02-14T06:08:00Z,SHORT)}} pay\u202e001\u202c \u200bnow\n# head\n- item\n1. one\n> quote\n---"
)
HUGE = "A very long line of text, as tools may ask for it. " * 400

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
        "owner": "ben@contoso.example",
        "guests": ["Ben"],
        "agenda": "x" * 12_000,
    },
)
HOSTILE_FORM = Form(
    HOSTILE,
    (
        FormField(name="a", label=HOSTILE, help=HOSTILE),
        FormField(name="b", label="Room", type=FieldType.CHOICE, options=("Blue", HOSTILE)),
    ),
    {"a": HOSTILE},
)

FOUR_EYES = an_approval(
    tool="delete_event",
    title="Delete event",
    risk=("destroys", "reaches outside"),
    may_decide="2 of: Ben, Chloe, except Ana",
    rule="deleting needs a second pair of eyes",
    quorum=2,
    votes=(Vote("Ben", "approve", NOW),),
    together=3,
    arguments={"name": "Team Meeting", "notes": "word " * 200, "when": {"day": "2026-11-21", "all_day": True}},
)
APPROVED = an_approval(
    status="approved",
    asked_arguments={"name": "Meeting", "duration": 60},
    arguments={"name": "Standup", "duration": 15},
    decided_by=("Ben",),
    decided_at=NOW + 60,
    result="Done: id 7",
    result_tone="success",
)
FAILED = an_approval(
    status="approved",
    decided_by=("Ben",),
    decided_at=NOW + 60,
    result="Failed: the calendar is read-only",
    result_tone="error",
)
REJECTED = an_approval(status="rejected", decided_by=("Ben",), decided_at=NOW + 60, reason="Too early.\nTry at 10.")
HOSTILE_APPROVAL = an_approval(
    server=HOSTILE,
    tool=HOSTILE,
    title=HOSTILE,
    requester=HOSTILE,
    may_decide=HOSTILE,
    rule=HOSTILE,
    risk=(HOSTILE,),
    arguments={HOSTILE: HOSTILE, "second": {HOSTILE: [HOSTILE]}, "third": "    indented\n\n\tand more"},
)
HOSTILE_PLAN = a_plan(
    tasks=(
        PlanTaskView(HOSTILE, HOSTILE, HOSTILE, "done", result=HOSTILE),
        PlanTaskView("b", HOSTILE, HOSTILE, "failed", result=HOSTILE),
        PlanTaskView("c", HOSTILE, HOSTILE, "not_run", ("b", HOSTILE, "c")),
        PlanTaskView("d", HOSTILE, HOSTILE, "blocked", ("b", HOSTILE)),
    )
)
HUGE_PLAN = a_plan(tasks=(PlanTaskView(HUGE, HUGE, HUGE, "done", result=HUGE),) * MOST_TASKS)
HUGE_APPROVAL = an_approval(
    server=HUGE,
    tool=HUGE,
    requester=HUGE,
    may_decide=HUGE,
    rule=HUGE,
    reason=HUGE,
    arguments={f"argument {number}": "Ω𝕏 " + HUGE for number in range(40)},
    together=12_345,
)
WITH_EVERYTHING = an_approval(
    always_offered=True,
    together=3,
    quote="please book the team meeting",
    rejections=2,
    handed_to=("Chloe",),
    escalates_at=NOW + 3_600,
)
MANY_FIELDS = tuple(FormField(name=f"field_{number}", label=f"Field {number}") for number in range(90))


def _in_place(view: ApprovalView, place: int) -> Shown:
    return Shown(a_post(view, f"a:{place}"), {"conversation": "19:x@thread.v2", "parts": [f"17000000000{place:02}"]})


GRANT = GrantView("g1", "calendar", "create_event", {"name": "Standup", "duration": 15}, NOW + 3_600)
ELICITED = a_question(server="issues", question="Which label?", context="")
ACCOUNT = a_sign_in(server="issues", service="GitHub", host="bot.example.com", message="")
SERVICES = (a_service(), a_service("notes", service=HOSTILE, scopes=()))
ACCOUNTS = (
    an_account(),
    an_account(connection_id="c2", service="mail", account="", scopes=(), used_at=None, status="revoked"),
)
CALLS = (
    CallActivity("1", "calendar", "list_events", "List events", "done", NOW, NOW + 0.4, "2 events"),
    CallActivity("2", "rooms", "find_room", "Find a room", "failed", NOW + 1, NOW + 2.1, "Failed: no room is free"),
    CallActivity("3", "calendar", "create_event", "Create event", "waiting", NOW + 2),
)
OVERVIEW = Overview(
    (_in_place(an_approval(requester="Ben"), 1), _in_place(FOUR_EYES, 2)),
    (Shown(a_post(a_question(), "q:1"), {}), Shown(a_post(a_sign_in(), "s:1"), {}), Shown(a_post(an_outcome()), {})),
    (_in_place(APPROVED, 3), _in_place(REJECTED, 4)),
)

_POSTS: Mapping[str, tuple[Content, Audience]] = {
    "approval_waiting": (an_approval(), EVERYBODY),
    "approval_waiting_in_a_chat": (an_approval(), CHAT),
    "approval_waiting_for_others": (FOUR_EYES, LISTED),
    "approval_of_a_program": (an_approval(client="claude-code"), CHAT),
    "approval_of_an_agent": (an_approval(agent="finance"), CHAT),
    "approval_of_a_program_approved": (
        an_approval(client="claude-code", status="approved", decided_by=("Ben",), decided_at=NOW + 60),
        CHAT,
    ),
    "sign_in_for_a_program": (a_sign_in(client="claude-code"), CHAT),
    "outcome_of_a_program": (an_outcome(client="claude-code"), CHAT),
    "question_of_a_tool_to_a_program": (a_question(server="cinema", client="claude-code"), CHAT),
    "approval_approved": (FAILED, EVERYBODY),
    "approval_approved_with_edits": (APPROVED, EVERYBODY),
    "approval_rejected": (REJECTED, EVERYBODY),
    "approval_expired": (an_approval(status="expired", decided_at=NOW + 86_400), EVERYBODY),
    "approval_superseded": (an_approval(status="superseded", decided_at=NOW + 60), EVERYBODY),
    "approval_withdrawn": (an_approval(status="withdrawn", decided_at=NOW + 60), EVERYBODY),
    "approval_void": (an_approval(status="void", decided_by=("Ben",), result="Asked anew."), EVERYBODY),
    "question_open": (a_question(), CHAT),
    "question_with_many_fields": (a_question(fields=FORM.fields), CHAT),
    "question_without_fields": (a_question(fields=()), CHAT),
    "question_answered": (a_question(status="answered", answer="Size: large"), CHAT),
    "question_superseded": (a_question(status="superseded"), CHAT),
    "question_of_a_tool": (ELICITED, CHAT),
    "question_of_a_tool_that_wants_consent": (a_question(server="issues", fields=(), context=""), CHAT),
    "question_of_a_tool_declined": (a_question(server="issues", status="declined"), CHAT),
    "question_of_a_tool_cancelled": (a_question(server="issues", status="cancelled"), CHAT),
    "account_needed": (ACCOUNT, EVERYBODY),
    "account_needed_and_its_code": (
        a_sign_in(server="issues", service="GitHub", message="", code_wanted=True),
        EVERYBODY,
    ),
    "account_connected": (a_sign_in(server="issues", service="GitHub", status="done"), EVERYBODY),
    "account_declined": (a_sign_in(server="issues", service="GitHub", status="declined"), EVERYBODY),
    "sign_in_open": (a_sign_in(), EVERYBODY),
    "sign_in_done": (a_sign_in(status="done"), EVERYBODY),
    "sign_in_declined": (a_sign_in(status="declined"), EVERYBODY),
    "sign_in_expired": (a_sign_in(status="expired"), EVERYBODY),
    "outcome_open": (an_outcome(), EVERYBODY),
    "outcome_settled": (an_outcome(status="it_was_done", settled_by="Ana"), EVERYBODY),
    "answer": (Said(ANSWER), CHAT),
    "answer_of_an_agent": (Said("Two invoices are open.", agent="finance"), CHAT),
    "answer_that_cites": (CITING, CHAT),
    "answer_on_the_way": (Said("I look into the calendar first.", final=False), CHAT),
    "answer_and_its_calls": (Said("Blue is free.", activity=CALLS), CHAT),
    "change_that_is_allowed": (a_change(rule="tasks are allowed", grant_id=None), EVERYBODY),
    "change_that_is_always_allowed": (a_change(), Audience("personal", asked=True)),
    "approval_that_failed": (replace(FAILED, retry_offered=True), Audience("personal", asked=True)),
    "answer_in_parts": (Said("\n\n".join(f"Paragraph {n}. {'word ' * 300}" for n in range(12))), CHAT),
    "notice": (Notice("I am waiting for Ben.", "warning"), EVERYBODY),
    "hostile_approval": (HOSTILE_APPROVAL, EVERYBODY),
    "hostile_question": (a_question(question=HOSTILE, context=HOSTILE, fields=HOSTILE_FORM.fields), CHAT),
    "hostile_sign_in": (a_sign_in(server=HOSTILE, owner=HOSTILE, host=HOSTILE, message=HOSTILE), EVERYBODY),
    "hostile_question_of_a_tool": (
        a_question(server=HOSTILE, question=HOSTILE, context=HOSTILE, fields=HOSTILE_FORM.fields),
        CHAT,
    ),
    "hostile_account_needed": (
        a_sign_in(server=HOSTILE, owner=HOSTILE, service=HOSTILE, message=HOSTILE, code_wanted=True),
        EVERYBODY,
    ),
    "hostile_outcome": (an_outcome(tool=HOSTILE, requester=HOSTILE, arguments={HOSTILE: HOSTILE}), EVERYBODY),
    "hostile_calls": (
        Said(HOSTILE, activity=(replace(CALLS[1], server=HOSTILE, title=HOSTILE, result=HOSTILE),)),
        CHAT,
    ),
    "hostile_change": (
        a_change(server=HOSTILE, title=HOSTILE, result=HOSTILE, arguments={HOSTILE: HOSTILE}),
        EVERYBODY,
    ),
    "plan_open": (a_plan(), EVERYBODY),
    "plan_that_failed": (a_plan_that_failed(requester_id=ANA_ID), CHAT),
    "plan_stopped": (a_plan_that_was_stopped(requester_id=ANA_ID), CHAT),
    "hostile_plan": (HOSTILE_PLAN, EVERYBODY),
    "huge_plan": (HUGE_PLAN, EVERYBODY),
    "hostile_answer": (Said(HOSTILE), CHAT),
    "hostile_notice": (Notice(HOSTILE), CHAT),
    "huge_approval": (HUGE_APPROVAL, LISTED),
    "huge_question": (a_question(question=HUGE, context=HUGE, fields=MANY_FIELDS), CHAT),
}


def activities() -> dict[str, tuple[Activity, ...]]:
    """Every kind of post in every state, and what is said to one person."""
    made = {name: activities_of(a_post(content), audience) for name, (content, audience) in _POSTS.items()}
    private = {
        "sign_in_link": sign_in_link(a_sign_in(), "https://accounts.example.com/authorize?state=1"),
        "sign_in_link_that_leads_nowhere": sign_in_link(a_sign_in(), "javascript:alert(1)"),
        "account_link": sign_in_link(ACCOUNT, "https://bot.example.com/oauth/start?s=1"),
        "connections": connections_activity(ACCOUNTS),
        "connections_of_nobody": connections_activity(()),
        "connections_to_make": connections_activity((), SERVICES),
        "hostile_connections": connections_activity((an_account(service=HOSTILE, account=HOSTILE, scopes=(HOSTILE,)),)),
        "open_a_chat_first": open_a_chat_first("Ana"),
        "note": note("Only Ben may decide this."),
        "help": help_activity(),
        "overview": overview_activity(OVERVIEW, (GRANT,), ACCOUNTS, SERVICES),
        "overview_of_nothing": overview_activity(Overview((), (), ())),
    }
    return made | {name: (activity,) for name, activity in private.items()}


MEMORIES = MemoryList(
    PersonMemories(
        (MemoryItem("m1", "call me Al", 1_700_000_000.0), MemoryItem("m2", "**bold** & co", 1.0)), is_remembered=True
    ),
    (MemoryItem("m3", "we ship on Tuesdays", 1_700_000_000.0, "Ben"),),
)


def cards() -> dict[str, Card]:
    """What only one person sees of what everybody sees."""
    return {
        "memories": memory_card(MEMORIES),
        "memories_of_nobody": memory_card(MemoryList(PersonMemories((), is_remembered=False))),
        "approval_waiting_for_one_who_may_decide": card_of(FOUR_EYES, decides=True),
        "approval_waiting_for_one_who_may_not": card_of(an_approval(), decides=False),
        "approval_with_everything": card_of(WITH_EVERYTHING, decides=True, asked=True),
        "approval_with_a_reason_required": card_of(an_approval(reason_required=True), decides=True),
        "huge_approval_with_buttons": card_of(HUGE_APPROVAL, decides=True),
    }


def dialogs() -> dict[str, Dialog]:
    """Every kind of dialog."""
    mistakes = {"name": "Required", "duration": "Enter a whole number, such as 3.", "": "Too long in all."}
    typed = {"name": "", "duration": "many", "start": "2026-11-22", "remind": False}
    long = an_approval(arguments={"notes": "word " * 6_000, "empty": "", "deep": {"a": ["b"] * 9}})
    return {
        "edit": edit_dialog("call-1.1", FORM),
        "edit_with_errors": edit_dialog("call-1.1", FORM, mistakes, typed),
        "answer": answer_dialog("q1", Form("Which room?", a_question().fields, {"size": "small"})),
        "answer_a_tool": answer_dialog("q1", Form("Which label?", ELICITED.fields, {}), server="issues"),
        "code": code_dialog(ACCOUNT),
        "code_with_a_mistake": code_dialog(ACCOUNT, "That is not the code that your browser shows."),
        "connect": connect_dialog("GitHub", "https://bot.example.com/oauth/start?s=only-for-ana"),
        "hostile_connect": connect_dialog(HOSTILE, "javascript:alert(1)"),
        "disconnect": disconnect_dialog(an_account()),
        "hostile_code": code_dialog(a_sign_in(service=HOSTILE), HOSTILE),
        "hostile_disconnect": disconnect_dialog(an_account(service=HOSTILE, account=HOSTILE)),
        "always": always_dialog(WITH_EVERYTHING),
        "hostile_always": always_dialog(HOSTILE_APPROVAL),
        "hand_over": hand_over_dialog(an_approval()),
        "reject": reject_dialog(an_approval(reason_required=True)),
        "reject_with_errors": reject_dialog(an_approval(reason_required=True), {"reason": "A reason is needed."}, " "),
        "approve_all": approve_all_dialog(Together((an_approval(), FOUR_EYES), 0)),
        "show_all": show_all_dialog(an_approval(), 0, decides=True),
        "show_all_of_many_pages": show_all_dialog(long, 1, decides=True),
        "show_all_to_one_who_may_not": show_all_dialog(APPROVED, 0, decides=False),
        "note": note_dialog("That was settled already."),
        "hostile_edit": edit_dialog("call-1.1", HOSTILE_FORM, {"a": HOSTILE, "": HOSTILE}, {"a": HOSTILE}),
        "hostile_show_all": show_all_dialog(HOSTILE_APPROVAL, 0, decides=True),
        "huge_edit": edit_dialog(
            "call-1.1", Form(HUGE, MANY_FIELDS, dict.fromkeys(("field_1", "field_2"), "Ω" * 3_000))
        ),
        "huge_approve_all": approve_all_dialog(Together((HUGE_APPROVAL,) * 60, 0)),
        "huge_show_all": show_all_dialog(HUGE_APPROVAL, 3, decides=True),
    }
