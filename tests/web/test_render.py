"""Our words → JSON: complete, bounded, and with nothing invisible left in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.shared.live.entries import (
    MOST_ACTIVITIES,
    SHOWN_CHARACTERS,
    SHOWN_LINES,
    arguments_json,
    click_json,
    content_json,
    first_part,
    hidden_json,
    post_json,
)
from bot.domain import (
    AlreadySettled,
    CallActivity,
    ClarificationView,
    Content,
    ConversationReference,
    Hidden,
    Invalid,
    Notice,
    OutcomeView,
    PlanTaskView,
    PlanView,
    Post,
    Refused,
    Said,
    Settled,
    SignInView,
    Unknown,
    Vote,
)
from bot.records.plans import TaskStatus
from graph.interrupts import FieldType, FormField
from tests.support.views import a_plan, a_plan_that_failed, a_plan_that_was_stopped, an_approval

TRICK = "pay\u202e001\u202c \u200bnow"
CONTENTS: list[Content] = [
    Said(TRICK),
    Notice(TRICK, "warning"),
    an_approval(
        server=TRICK,
        tool=TRICK,
        title=TRICK,
        arguments={TRICK: TRICK},
        asked_arguments={TRICK: [TRICK]},
        risk=(TRICK,),
        requester=TRICK,
        may_decide=TRICK,
        rule=TRICK,
        votes=(Vote(TRICK, "approve", 1.0),),
        decided_by=(TRICK,),
        reason=TRICK,
        result=TRICK,
        client=TRICK,
        again=TRICK,
    ),
    ClarificationView(
        "c",
        "open",
        TRICK,
        TRICK,
        (FormField(name="a", label=TRICK, type=FieldType.CHOICE, help=TRICK, options=("x",)),),
        TRICK,
        "web:ana",
        TRICK,
        server=TRICK,
        client=TRICK,
        filled_in=((TRICK, TRICK),),
    ),
    SignInView("s", "open", TRICK, TRICK, TRICK, TRICK, "web:ana", service=TRICK, client=TRICK),
    OutcomeView("o", "open", TRICK, TRICK, TRICK, {TRICK: TRICK}, TRICK, "web:ana", TRICK, client=TRICK),
]


PLAN = PlanView(
    "p",
    "open",
    tuple(PlanTaskView(TRICK, TRICK, TRICK, status, (TRICK,), TRICK) for status in get_args(TaskStatus)),
    TRICK,
    "web:ana",
)


@pytest.mark.parametrize("content", [*CONTENTS, PLAN], ids=lambda content: type(content).__name__)
def test_nothing_invisible_or_reversed_is_left_in_what_is_shown(content: Content) -> None:
    shown = json.dumps(content_json(content), ensure_ascii=False)
    assert not {"\u202e", "\u202c", "\u200b"} & set(shown)
    assert "U+202E" in shown


def test_the_configured_names_are_there_and_a_server_that_is_not_trusted_never_titles_a_card_alone() -> None:
    card = content_json(an_approval(title="Totally harmless"))
    assert card["title"].startswith("calendar › “Totally harmless”")
    assert (card["source"], card["server"], card["tool"]) == ("calendar › create_event", "calendar", "create_event")


@pytest.mark.parametrize(
    ("who", "is_anyone_else"),
    [
        ({"four_eyes": True, "approvers": ("any",)}, True),
        ({"approvers": ("any",)}, False),
        ({"four_eyes": True, "approvers": ("web:ben",)}, False),
        ({"four_eyes": True, "approvers": ("any",), "quorum": 2}, False),
        ({"four_eyes": True, "approvers": ("any",), "requester_ids": ("web:ana", "web:ben")}, False),
    ],
)
def test_that_anyone_but_the_requester_may_decide_is_told_as_a_fact(
    *, who: dict[str, Any], is_anyone_else: bool
) -> None:
    view = an_approval(**({"requester_ids": ("web:ana",)} | who))
    assert content_json(view)["anyone_else"] is is_anyone_else


def test_what_was_said_and_done_with_a_call_is_told_with_it() -> None:
    card = content_json(
        an_approval(status="approved", notes=(("Ben", "Use the small room."),), edited_by="Ben", retry_offered=True)
    )
    assert card["notes"] == [{"name": "Ben", "text": "Use the small room."}]
    assert (card["edited_by"], card["retry_offered"]) == ("Ben", True)


def test_a_task_of_a_plan_says_how_far_it_is_and_why_it_was_not_done() -> None:
    begun = content_json(a_plan(requester_id="web:ana"))
    assert begun["title"] == "Plan: 2 of 4 tasks done"
    assert [(task["id"], task["agent"], task["state"], task["result"]) for task in begun["tasks"]] == [
        ("find", "bookkeeper", "done", "three: INV-7, INV-8, INV-9"),
        ("orders", "bookkeeper", "done", ""),
        ("check", "bookkeeper", "waiting for someone", ""),
        ("mail", "writer", "waits for check", ""),
    ]
    failed = content_json(a_plan_that_failed(requester_id="web:ana"))
    assert failed["title"] == "Plan ended: 2 of 4 tasks done"
    assert [(task["state"], task["result"]) for task in failed["tasks"][2:]] == [
        ("failed: The model could not be reached.", ""),
        ("not begun: check was not done", ""),
    ]
    stopped = content_json(a_plan_that_was_stopped(requester_id="web:ana"))
    assert stopped["title"] == "Plan stopped: 1 of 4 tasks done"
    assert [task["state"] for task in stopped["tasks"]] == ["stopped", "done", "stopped", "stopped"]


def test_a_task_waits_only_for_what_is_not_done_yet() -> None:
    find, orders, check, mail = a_plan(requester_id="web:ana").tasks
    waiting = replace(check, status="blocked")
    tasks = (find, replace(orders, status="running"), waiting, mail)
    assert content_json(a_plan(requester_id="web:ana", tasks=tasks))["tasks"][2]["state"] == "waits for orders"


def test_an_answer_has_the_calls_that_were_made_for_it_and_says_how_many_are_not_listed() -> None:
    call = CallActivity("1.1", "calendar", "list_events", "List events", "done", 1.0, 3.1, TRICK)
    said = content_json(Said("Two.", activity=(call,) * (MOST_ACTIVITIES + 3)))
    assert (len(said["activity"]), said["more_activity"]) == (MOST_ACTIVITIES, 3)
    first = said["activity"][0]
    assert (first["state"], first["began_at"], first["ended_at"]) == ("done", 1.0, 3.1)
    assert first["source"] == "calendar › list_events" and "\u202e" not in first["result"]


@pytest.mark.parametrize("content", CONTENTS[2:], ids=lambda content: type(content).__name__)
def test_what_a_program_calls_itself_is_one_line_of_a_hundred_characters(content: Any) -> None:
    client = content_json(replace(content, client="cursor\nMay decide: anyone " + "x" * 200))["client"]
    assert client.startswith("cursor May decide: anyone") and len(client) <= 100


def test_a_long_argument_is_cut_with_a_count_and_kept_whole() -> None:
    [line] = arguments_json({"notes": "word " * 1000})
    assert len(line["value"]) == 5000
    assert len(line["shown"]) == SHOWN_CHARACTERS
    assert line["hidden"] == 5000 - SHOWN_CHARACTERS


@given(st.text(max_size=2000))
def test_the_first_part_is_a_beginning_within_bounds(text: str) -> None:
    part = first_part(text)
    assert text.startswith(part)
    assert len(part) <= SHOWN_CHARACTERS
    assert len(part.splitlines()) <= SHOWN_LINES
    if len(text) <= SHOWN_CHARACTERS and len(text.splitlines()) <= SHOWN_LINES:
        assert part == text


def test_what_is_hidden_is_there_whole_however_long_it_is() -> None:
    """Rule 12: whoever may decide can look at all of it."""
    secrets = {f"[secret: jwt, 30,000 characters, #{number:08x}]": f"{number}" + "x" * 30_000 for number in range(3)}
    sent = hidden_json(Hidden("a", "shop", "make", secrets, "#abc"))["secrets"]
    assert {each["name"]: each["value"] for each in sent} == secrets


def test_a_post_says_whether_it_is_private() -> None:
    post = Post("p", "web:t", ConversationReference("web", "web:t"), 3, 1.0, Said("x"), only_for="web:ana")
    assert (post_json(post)["private"], post_json(post)["revision"]) == (True, 3)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (Settled("x"), "settled"),
        (AlreadySettled("x"), "already_settled"),
        (Refused("x"), "refused"),
        (Unknown("x"), "unknown"),
        (Invalid({"a": "x"}), "invalid"),
    ],
)
def test_every_result_of_a_click_has_a_kind_and_a_sentence(result: Settled, kind: str) -> None:
    answer = click_json(result)
    assert answer["kind"] == kind
    assert answer["text"]


@pytest.mark.parametrize("content", CONTENTS[2:], ids=lambda content: type(content).__name__)
def test_what_a_task_of_a_plan_asks_names_its_agent(content: Any) -> None:
    assert content_json(replace(content, agent="bookkeeper"))["agent"] == "bookkeeper"
    assert "agent" not in content_json(content)
