"""What people do on the page arrives at the services, once, as who they are; every click gets an answer."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import pytest

from adapters.web import inbound
from bot.domain import (
    Choice,
    ClarificationView,
    Form,
    GrantView,
    OutcomeView,
    SignInView,
)
from tests.support.views import EVENT_FIELDS, NOW, an_approval
from tests.web.serving import Browser, Product, browser_of
from tests.web.streaming import stream_of

THREAD = "web:one"
MESSAGES = f"/api/threads/{quote(THREAD, safe='')}/messages"


async def test_a_message_is_accepted_with_its_place_and_author(product: Product, ana: Browser) -> None:
    status, body = await ana.post(MESSAGES, {"id": "m-1", "text": "Hello"})
    assert (status, body) == (202, {"accepted": True})
    [message] = product.services.messages
    assert message.key == "web:one:m-1"
    assert (message.place.platform, message.place.key, message.place.direct) == ("web", THREAD, True)
    assert message.place.address == {"thread": THREAD}
    assert message.author.person_id == "web:ana"
    assert message.text == "Hello"


async def test_the_same_message_sent_twice_is_accepted_once(product: Product, ana: Browser) -> None:
    await ana.post(MESSAGES, {"id": "m-1", "text": "Hello"})
    status, body = await ana.post(MESSAGES, {"id": "m-1", "text": "Hello"})
    assert (status, body) == (202, {"accepted": False})
    assert len(product.services.messages) == 1


async def test_the_browsers_time_zone_is_the_authors(product: Product, ana: Browser) -> None:
    await ana.post(MESSAGES, {"id": "m-1", "text": "Tomorrow at 9am"}, **{"X-Time-Zone": "Europe/Berlin"})
    await ana.post(MESSAGES, {"id": "m-2", "text": "Tomorrow at 9am"}, **{"X-Time-Zone": "../../etc/passwd"})
    assert [message.author.time_zone for message in product.services.messages] == ["Europe/Berlin", "UTC"]


async def test_a_click_decides_as_the_person_of_the_browser(product: Product, ben: Browser) -> None:
    await product.services.post(THREAD, an_approval("call/1.1"))
    body = {"id": "c-1", "approvals": ["call/1.1"], "verb": "reject", "reason": "should be 10am"}
    status, answer = await ben.post("/api/approvals/decisions", body)
    assert status == 200
    assert answer == {"results": {"call/1.1": {"kind": "settled", "text": "Rejected.", "final": True}}}
    [decision] = product.services.decisions
    assert decision.key == "web:c-1:web:ben"
    assert decision.person.name == "Ben"
    assert decision.choices == (Choice("call/1.1", "reject", "should be 10am"),)


async def test_approve_all_answers_for_each_approval(product: Product, ana: Browser) -> None:
    for approval_id in ("a", "b"):
        await product.services.post(THREAD, an_approval(approval_id))
    product.services.may_decide["b"] = {"web:ben"}
    click = {"id": "c-1", "approvals": ["a", "b", "nothing"], "verb": "approve"}
    status, answer = await ana.post("/api/approvals/decisions", click)
    assert status == 200
    assert {name: result["kind"] for name, result in answer["results"].items()} == {
        "a": "settled",
        "b": "refused",
        "nothing": "unknown",
    }


async def test_a_late_click_is_told_who_was_earlier(product: Product, ana: Browser, ben: Browser) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await ana.post("/api/approvals/decisions", {"id": "c-1", "approvals": ["a"], "verb": "approve"})
    status, answer = await ben.post("/api/approvals/decisions", {"id": "c-2", "approvals": ["a"], "verb": "reject"})
    assert (status, answer["error"]) == (409, "Ana was earlier.")
    assert answer["results"]["a"] == {"kind": "already_settled", "text": "Ana was earlier."}


async def test_a_click_that_settles_nothing_says_so_by_its_status(product: Product, ana: Browser) -> None:
    """Rules 5 and 10."""
    for approval_id in ("a", "b"):
        await product.services.post(THREAD, an_approval(approval_id))
        product.services.may_decide[approval_id] = {"web:ben"}
    for approvals in (["a"], ["a", "b"]):
        click = {"id": "c-1", "approvals": approvals, "verb": "approve"}
        status, answer = await ana.post("/api/approvals/decisions", click)
        assert (status, answer["kind"], set(answer["results"])) == (403, "refused", set(approvals))


async def test_a_reason_that_nobody_would_keep_is_refused(product: Product, ana: Browser) -> None:
    """Rule 10: it changes nothing rather than being dropped."""
    await product.services.post(THREAD, an_approval("a"))
    click = {"id": "c-1", "approvals": ["a"], "verb": "approve", "reason": "but only this once"}
    assert (await ana.post("/api/approvals/decisions", click))[0] == 400
    assert not product.services.decisions


async def test_the_pages_of_enormous_arguments_are_read_one_at_a_time(product: Product, ana: Browser) -> None:
    """Rule 8."""
    await product.services.post(THREAD, an_approval("a", arguments={"notes": "x" * 30_000}))
    status, page = await ana.get("/api/approvals/a/arguments?page=9")
    assert (status, page["page"], page["pages"]) == (200, page["pages"] - 1, page["pages"])
    assert (await ana.get("/api/approvals/a/arguments?page=x"))[0] == 400
    assert (await ana.get("/api/approvals/none/arguments"))[0] == 404


async def test_so_are_those_of_a_broken_attempt_and_of_a_grant_of_ones_own(
    product: Product, ana: Browser, ben: Browser
) -> None:
    """Rules 8 and 11: what somebody always allows is nobody else's business."""
    long = {"notes": "x" * 30_000}
    await product.services.post(THREAD, OutcomeView("o:1.0/1", "open", "tasks", "add_task", "", long, "Ana", "web:ana"))
    secret = OutcomeView("o:2.0/1", "open", "tasks", "add_task", "", long, "Ana", "web:ana")
    await product.services.post(THREAD, secret, only_for="web:ana")
    product.services.given["g"] = ("web:ana", GrantView("g", "calendar", "create_event", long, 0.0))
    paths = {path: f"/api/{path}/arguments?page=1" for path in ("outcomes/o:1.0%2F1", "outcomes/o:2.0%2F1", "grants/g")}
    for path in paths.values():
        status, page = await ana.get(path)
        assert (status, page["page"]) == (200, 1)
    assert [(await ben.get(path))[0] for path in paths.values()] == [200, 404, 404]
    assert (await ana.get("/api/outcomes/none/arguments"))[0] == 404
    assert (await ana.get("/api/grants/g/arguments?page=x"))[0] == 400


async def test_of_a_grant_that_is_too_long_for_the_list_all_can_be_shown(product: Product, ana: Browser) -> None:
    """Rule 8: it is not said to have no arguments."""
    product.services.given["g"] = ("web:ana", GrantView("g", "calendar", "create_event", {}, 0.0, unread=30_012))
    _, body = await ana.get("/api/grants")
    (line,) = body["grants"][0]["arguments"]
    assert (line["value"], line["hidden"], body["grants"][0]["unseen"]) == (None, 30_012, "")


async def test_an_edited_call_goes_with_its_values_and_comes_back_with_its_mistakes(
    product: Product, ana: Browser
) -> None:
    await product.services.post(THREAD, an_approval("a"))
    product.services.mistakes = {"start": "This is no date.", "": "Two fields contradict each other."}
    click = {"id": "c-1", "approvals": ["a"], "verb": "approve", "values": {"name": "Standup"}}
    _, answer = await ana.post("/api/approvals/decisions", click)
    assert answer["results"]["a"]["kind"] == "invalid"
    assert answer["results"]["a"]["errors"]["start"] == "This is no date."
    [decision] = product.services.decisions
    assert decision.choices[0].arguments == {"name": "Standup"}


async def test_a_form_opens_with_the_calls_arguments(product: Product, ana: Browser) -> None:
    await product.services.post(THREAD, an_approval("call/1.1", arguments={"name": "safe\u202egnp.exe"}))
    status, form = await ana.get(f"/api/approvals/{quote('call/1.1', safe='')}/form")
    assert status == 200
    assert form["values"] == {"name": "safe\u202egnp.exe"}, "values come back, so they are not changed"
    assert "⟨U+202E⟩" in form["notes"]["name"]
    assert [field["type"] for field in form["fields"]] == [field.type.value for field in EVENT_FIELDS]


async def test_a_form_is_written_beside_the_event_loop(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a hundred values full of invisible characters, which its notes show, took a fifth of a second."""
    write, threads = inbound.form_json, set[int]()

    def noting(form: Form) -> Any:
        threads.add(threading.get_ident())
        return write(form)

    monkeypatch.setattr(inbound, "form_json", noting)
    await product.services.post(THREAD, an_approval("call/1.1"))
    assert (await ana.get(f"/api/approvals/{quote('call/1.1', safe='')}/form"))[0] == 200
    assert threads
    assert threading.get_ident() not in threads


async def test_a_clarification_is_answered(product: Product, ana: Browser) -> None:
    await product.services.post(
        THREAD, ClarificationView("c.1", "open", "Which?", "", EVENT_FIELDS[:1], "Ana", "web:ana")
    )
    status, body = await ana.post("/api/clarifications/c.1/answer", {"id": "k", "values": {"name": "The first"}})
    assert (status, body["kind"]) == (200, "settled")


async def test_a_mistake_in_an_answer_is_422_and_names_the_field(product: Product, ana: Browser) -> None:
    await product.services.post(
        THREAD, ClarificationView("c.1", "open", "Which?", "", EVENT_FIELDS[:1], "Ana", "web:ana")
    )
    product.services.mistakes = {"name": "Required"}
    status, body = await ana.post("/api/clarifications/c.1/answer", {"id": "k", "values": {}})
    assert status == 422
    assert body["errors"] == {"name": "Required"}
    assert body["error"]


@pytest.mark.parametrize("outcome_id", ["plain", "web:one:m-1.2.0:1", "a/b%2Fc d"])
async def test_the_outcome_of_a_broken_attempt_is_settled_whatever_its_id(
    product: Product, ana: Browser, outcome_id: str
) -> None:
    view = OutcomeView(outcome_id, "open", "tasks", "add_task", "", {"title": "milk"}, "Ana", "web:ana")
    await product.services.post(THREAD, view)
    status, _ = await ana.post(f"/api/outcomes/{quote(outcome_id, safe='')}", {"id": "k", "choice": "skip"})
    assert status == 200
    [choice] = product.services.choices
    assert (choice.outcome_id, choice.choice) == (outcome_id, "skip")


async def test_a_sign_in_link_is_for_its_owner_alone(product: Product, ana: Browser, ben: Browser) -> None:
    product.services.links["s"] = "https://accounts.example.com/authorize?state=secret"
    await product.services.post(THREAD, SignInView("s", "open", "github", "accounts.example.com", "", "Ana", "web:ana"))
    assert await ana.get("/api/sign-ins/s/link") == (
        200,
        {"url": "https://accounts.example.com/authorize?state=secret", "message": ""},
    )
    status, refusal = await ben.get("/api/sign-ins/s/link")
    assert status == 403
    assert "accounts.example.com" not in str(refusal)
    assert (await ana.post("/api/sign-ins/s", {"id": "k", "done": True}))[0] == 200


async def test_stop_reaches_the_services(product: Product, ana: Browser) -> None:
    status, body = await ana.post("/api/threads/web%3Aone/stop", {"id": "k"})
    assert (status, body["text"]) == (200, "Stopped.")
    assert product.services.stopped == [(THREAD, "web:ana")]
    assert product.services.stopped_under == {"web:ana", "chat:ana"}


async def test_threads_are_listed(product: Product, ana: Browser) -> None:
    await product.services.post(THREAD, an_approval("a"))
    status, body = await ana.get("/api/threads")
    assert status == 200
    assert body["threads"] == [
        {
            "thread_id": THREAD,
            "title": "A conversation",
            "owner": "",
            "updated_at": NOW,
            "waiting": 1,
            "questions": 0,
        }
    ]


async def test_other_platforms_threads_cannot_be_reached_from_the_page(product: Product, ana: Browser) -> None:
    for thread_id in ("slack:T1:C1:1.2", "teams:t:c", "web:", "web:a/b", "web:" + "x" * 200):
        path = quote(thread_id, safe="")
        assert (await ana.get(f"/api/events?thread={path}"))[0] == 404
        assert (await ana.post(f"/api/threads/{path}/messages", {"id": "k", "text": "x"}))[0] == 404
        assert (await ana.post(f"/api/threads/{path}/stop", {"id": "k"}))[0] == 404
    assert product.services.messages == []
    assert product.services.stopped == []


async def test_what_does_not_exist_is_404(ana: Browser) -> None:
    assert (await ana.get("/api/approvals/nothing/form"))[0] == 404
    assert (await ana.get("/api/sign-ins/nothing/link"))[0] == 404
    assert (await ana.post("/api/sign-ins/nothing", {"id": "k", "done": True}))[0] == 404
    assert (await ana.post("/api/outcomes/nothing", {"id": "k", "choice": "skip"}))[0] == 404
    assert (await ana.post("/api/clarifications/nothing/answer", {"id": "k", "values": {}}))[0] == 404


async def test_a_person_may_be_chosen_and_stays_chosen(product: Product) -> None:
    async with browser_of(product) as browser:
        assert (await browser.hello())["me"] == {"person_id": "web:ana", "name": "Ana"}
        await browser.post("/api/session", {"person": "web:chloe"})
        session = await browser.hello()
        assert session["me"] == {"person_id": "web:chloe", "name": "Chloe"}
        assert [person["name"] for person in session["people"]] == ["Ana", "Ben", "Chloe"]
        assert session["facts"]["tool_servers"][1]["reason"] == "It stopped; starting it again in 4 s."
        assert (await browser.post("/api/session", {"person": "slack:T1:U1"}))[0] == 404


@pytest.mark.parametrize(("choice", "seconds"), [("1 h", 3_600.0), ("8 h", 28_800.0), ("7 days", 604_800.0)])
async def test_always_allowing_approves_and_says_for_how_long(
    product: Product, ana: Browser, choice: str, seconds: float
) -> None:
    await product.services.post(THREAD, an_approval("a", always_offered=True))
    click = {"id": "c-1", "approvals": ["a"], "verb": "approve", "always_for": choice}
    assert (await ana.post("/api/approvals/decisions", click))[0] == 200
    [decision] = product.services.decisions
    assert decision.choices[0].always_for == seconds


@pytest.mark.parametrize(
    "change", [{"always_for": "for ever"}, {"always_for": 3600}, {"verb": "reject"}, {"approvals": ["a", "b"]}]
)
async def test_nothing_else_is_always_allowed(product: Product, ana: Browser, change: dict[str, object]) -> None:
    click = {"id": "c-1", "approvals": ["a"], "verb": "approve", "always_for": "1 h"} | change
    assert (await ana.post("/api/approvals/decisions", click))[0] == 400
    assert product.services.decisions == []


async def test_somebody_else_is_asked_who_may(product: Product, ana: Browser) -> None:
    await product.services.post(THREAD, an_approval("a/1"))
    address = f"/api/approvals/{quote('a/1', safe='')}/handover"
    assert (await ana.post(address, {"id": "c-1", "to": "web:ben"}))[0] == 200
    [handover] = product.services.handovers
    assert (handover.person.person_id, handover.approval_id, handover.to) == ("web:ana", "a/1", "web:ben")
    product.services.may_decide["a/1"] = {"web:ana"}
    status, body = await ana.post(address, {"id": "c-2", "to": "web:ben"})
    assert (status, body["error"]) == (403, "They may not decide this.")


async def test_the_requester_withdraws_and_nobody_else_can(product: Product, ana: Browser, ben: Browser) -> None:
    await product.services.post(THREAD, an_approval("a", requester_ids=("web:ana",)))
    assert (await ben.post("/api/approvals/a/withdrawal", {"id": "c-1"}))[0] == 403
    assert (await ana.post("/api/approvals/a/withdrawal", {"id": "c-2"}))[0] == 200
    assert product.services.approvals["a"].status == "withdrawn"


async def test_ones_own_grants_are_listed(product: Product, ana: Browser, ben: Browser) -> None:
    given = GrantView("g1", "calendar", "create_event", {"name": "Standup"}, NOW, client="cursor")
    product.services.given["g1"] = ("web:ana", given)
    _, body = await ana.get("/api/grants")
    [grant] = body["grants"]
    assert grant["client"] == "cursor"
    assert (grant["id"], grant["server"], grant["tool"], grant["until"]) == ("g1", "calendar", "create_event", NOW)
    assert (await ben.get("/api/grants"))[1] == {"grants": []}


async def test_whoever_is_asked_is_told_beside_any_conversation(product: Product, ana: Browser, ben: Browser) -> None:
    await product.services.post(THREAD, an_approval("a/1", handed_to=("web:ben",)))
    product.services.of[THREAD] = "web:ana"
    for browser, expected in ((ben, [THREAD]), (ana, [])):
        async with stream_of(browser, "web:another") as events:
            asked = (await events.until("threads"))["asked"]
            assert [each["thread_id"] for each in asked] == expected


async def test_whoever_is_asked_has_the_name_of_the_page(product: Product, ana: Browser) -> None:
    await product.services.post(THREAD, an_approval("a/1"))
    await ana.post(f"/api/approvals/{quote('a/1', safe='')}/handover", {"id": "c-1", "to": "web:ben"})
    [handover] = product.services.handovers
    assert handover.name == "Ben"


async def test_what_is_hidden_is_in_the_answer_to_whoever_may_decide_alone(
    product: Product, ana: Browser, ben: Browser
) -> None:
    """Rule 12, on the page: a private answer, judged by the services at that moment (rule 6)."""
    mask, token = "[secret: github token, 40 characters, #3fa9c2d1]", "ghp_" + "a1B2" * 9
    product.services.hidden = {mask: token}
    product.services.may_decide["call-1.1"] = {"web:ana"}
    await product.services.post(THREAD, an_approval("call-1.1", masks=1, fingerprint="#3fa9c2d1e0b4"))
    status, body = await ben.post("/api/approvals/call-1.1/look", {"id": "l-1"})
    assert status == 403
    assert token not in str(body)
    status, body = await ana.post("/api/approvals/call-1.1/look", {"id": "l-2"})
    assert status == 200
    assert [(line["name"], line["value"]) for line in body["secrets"]] == [(mask, token)]
    assert (await ana.post("/api/approvals/call-9/look", {"id": "l-3"}))[0] == 404
