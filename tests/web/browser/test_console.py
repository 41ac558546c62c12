"""The operators' console in a real browser, with a server that says what somebody hostile has written."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Route, expect

from tests.support.views import an_approval
from tests.web.accessibility import needs_axe, violations_in_light_and_dark
from tests.web.browser.console_answers import ANSWERS, EVIL, USE, answer_with
from tests.web.browsing import Window
from tests.web.serving import Product, serve

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PARTS = ("waiting", "turns", "turn/one", "audit", "policy", "fatigue", "usage?by=model", "system", "stop")


@pytest_asyncio.fixture(loop_scope="session")
async def product(port: socket.socket) -> AsyncIterator[Product]:
    """The page, whose operator Ana is."""
    async with serve(port=port) as product:
        product.services.operator = "web:ana"
        yield product


async def go_to(window: Window, part: str) -> None:
    """Go to a part of the console by its address, and wait until it is drawn. To load the page anew for each would take
    most of the time of these tests."""
    await window.page.evaluate("part => { location.hash = part }", f"#console/{part}")
    await expect(window.page.locator(".console-part:not([aria-busy])")).to_be_visible()
    await expect(window.page.locator(".console-part").get_by_text("Loading…")).to_have_count(0)


@pytest.mark.parametrize("part", PARTS)
async def test_what_somebody_hostile_has_written_is_text(window: Window, part: str) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, part)
    console = window.page.locator("#console")
    await expect(console.get_by_role("heading", level=2)).to_be_focused()
    await expect(console).to_contain_text("<img src=x onerror=")
    if part == "policy":
        await console.get_by_label("Tool", exact=True).fill("calendar__create_event")
        await console.get_by_label("Person", exact=True).fill("web:ana")
        await console.get_by_role("button", name="Ask the rules").click()
        await expect(console.get_by_text("There is no such tool now")).to_be_visible()
        await console.get_by_role("button", name="Replay").click()
        await expect(console.get_by_role("table", name="Differences")).to_be_visible()
    if part == "system":
        await console.get_by_role("button", name="Connect again").first.click()
        await expect(console.get_by_role("status").get_by_text("<img").first).to_be_visible()
    for summary in await console.locator("summary").all():
        await summary.click()
    assert await console.locator("img, script, b img").count() == 0
    assert "owned" not in await window.page.title()


@pytest.mark.parametrize("part", ["nothing", "constructor", "__proto__"])
async def test_an_address_of_no_part_shows_the_first_one(window: Window, part: str) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, part)
    await expect(window.page.locator("#console").get_by_role("heading", name="Waiting", level=2)).to_be_visible()


@needs_axe
@pytest.mark.parametrize("part", PARTS)
async def test_every_part_can_be_used_by_keyboard_and_screen_reader(
    product: Product, window: Window, part: str
) -> None:
    await answer_with(window.page, ANSWERS)
    await window.page.emulate_media(reduced_motion="reduce")
    await go_to(window, part)
    for size in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        await window.page.set_viewport_size(size)  # type: ignore[arg-type]
        assert await violations_in_light_and_dark(window.page) == []
        wide = "document.querySelector('#console').scrollWidth > document.querySelector('#console').clientWidth"
        assert not await window.page.evaluate(wide), "nothing is wider than the screen"
    await window.page.set_viewport_size({"width": 1200, "height": 800})
    await window.page.emulate_media(reduced_motion="no-preference")


LONG_NAME = "policies/production/default_for_all_of_europe.yaml"


@pytest.mark.parametrize("part", PARTS)
async def test_nothing_is_wider_than_a_small_phone_whatever_long_names_there_are(window: Window, part: str) -> None:
    await answer_with(window.page, json.loads(json.dumps(ANSWERS).replace(json.dumps(EVIL), json.dumps(LONG_NAME))))
    await window.page.set_viewport_size({"width": 320, "height": 800})
    await go_to(window, part)
    assert await window.page.evaluate("document.querySelector('#console').scrollWidth") == 320
    await window.page.set_viewport_size({"width": 1200, "height": 800})


async def test_who_is_no_operator_sees_neither_a_link_nor_anything_behind_it(window: Window) -> None:
    await answer_with(window.page, {})
    await window.become("Ben")
    await expect(window.page.locator("#console-link")).to_be_hidden()
    await go_to(window, "waiting")
    await expect(window.page.get_by_role("alert").get_by_text("Only operators can use the console.")).to_be_visible()
    assert len(window.complaints) == 1, "the browser says that it was refused"
    assert "403" in window.complaints.pop()


async def test_an_operator_comes_to_the_turn_of_a_card_and_back(product: Product, window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    await product.services.post("web:one", an_approval("call/1.1"))
    await window.open("web:one")
    await window.button("More actions").click()
    await window.page.get_by_role("menuitem", name="Show all").click()
    await window.dialog.get_by_role("link", name="Open the turn in the console").click()
    await expect(window.page.get_by_role("heading", name="What happened")).to_be_visible()
    await expect(window.dialog).to_have_count(0)
    assert await window.page.evaluate("location.hash") == "#console/turn/web%3Aone%2F1"
    await window.page.go_back()
    await expect(window.log).to_be_visible()


async def test_a_suggestion_is_replayed_with_the_file_that_it_makes(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, "fatigue")
    await window.page.get_by_role("button", name="Replay the changed file").click()
    await expect(window.page.get_by_label("The changed file")).to_have_value(f"version: 1  # {EVIL}")


async def test_that_more_questions_may_wait_than_are_listed_is_said(window: Window) -> None:
    waiting = ANSWERS["GET waiting"]
    await answer_with(window.page, {**ANSWERS, "GET waiting": {**waiting, "questions": waiting["questions"] * 2}})
    await go_to(window, "waiting")
    said = window.page.get_by_text("Of each kind, no more than 2 are listed: those that wait longest.")
    await expect(said).to_be_visible()
    await answer_with(window.page, ANSWERS)
    await window.page.get_by_role("button", name="Refresh").click()
    await expect(said).to_have_count(0)


async def test_what_was_given_up_leads_to_its_turn_also_where_it_began_none(window: Window) -> None:
    (given_up,) = ANSWERS["GET parked"]["parked"]
    parked = [{**given_up, "id": kind, "kind": kind, "text": ""} for kind in ("message", "resume")]
    await answer_with(window.page, {**ANSWERS, "GET parked": {"parked": parked, "next": ""}})
    await go_to(window, "system")
    links = window.page.get_by_role("table", name="Given up").get_by_role("link")
    led = [await link.get_attribute("href") for link in await links.all()]
    assert led == ["#console/turn/message", "#console/turns?reference=1a2b3c4d"]


async def test_a_turn_says_in_words_what_somebody_chose_of_an_unknown_outcome(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, "turn/one")
    await expect(window.page.get_by_text("Settled: Try again, by")).to_be_visible()


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("message", "running", "Nothing recorded yet"),
        ("message", "ended", "Nothing recorded"),
        ("call", "ended", "Not used"),
    ],
)
async def test_a_turn_says_that_no_model_was_used_only_where_none_is(
    window: Window, kind: str, status: str, said: str
) -> None:
    turn = ANSWERS["GET turns/one"]
    unused = {name: [] if name == "models" else 0 for name in turn["total"]}
    about = {**turn["turn"], "kind": kind, "status": status}
    await answer_with(window.page, {**ANSWERS, "GET turns/one": {**turn, "turn": about, "models": [], "total": unused}})
    await go_to(window, "turn/one")
    await expect(window.page.locator("dt", has_text="Language model").locator("+ dd")).to_have_text(said)


async def test_what_is_always_approved_is_marked_without_advice_to_allow_it(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, "fatigue")
    asked = window.page.get_by_role("table", name="What people are asked about")
    await expect(asked.locator(".chip")).to_have_text(["Always approved"])


async def test_an_answer_that_comes_late_does_not_lead_away_from_what_was_chosen_meanwhile(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    late = asyncio.Event()

    async def hold(route: Route) -> None:
        await late.wait()
        await route.fallback()

    await go_to(window, "system")
    await window.page.route("**/api/console/parked/*/giving-up", hold)
    await window.page.get_by_role("button", name="Give up…").click()
    async with window.page.expect_request("**/giving-up"):
        await window.dialog.get_by_role("button", name="Give up").click()
    await go_to(window, "audit")
    await window.page.route("**/api/console/turns?card=*", hold)
    async with window.page.expect_request("**/api/console/turns?card=*"):
        await window.page.evaluate("location.hash = '#console/turns?card=a1'")
    await go_to(window, "audit?tool=x")
    async with window.page.expect_response("**/api/console/turns?card=*"):
        late.set()
    await window.page.wait_for_load_state("networkidle")
    assert await window.page.evaluate("location.hash") == "#console/audit?tool=x"
    await expect(window.page.locator("#console").get_by_role("heading", level=2)).to_have_text("Audit log")


async def test_an_answer_of_the_rules_is_told_from_that_to_a_changed_question(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    late = asyncio.Event()

    async def answer(route: Route) -> None:
        asked = (route.request.post_data_json or {})["tool"]
        if asked == "a__first":
            await late.wait()
        await route.fulfill(json={**ANSWERS["POST rules/question"], "why": f"Asked because of {asked}."})

    await window.page.route("**/api/console/rules/question", answer)
    await go_to(window, "policy")
    console = window.page.locator("#console")
    await console.get_by_label("Person", exact=True).fill("web:ana")
    for tool in ("a__first", "a__second"):
        await console.get_by_label("Tool", exact=True).fill(tool)
        await console.get_by_role("button", name="Ask the rules").click()
    await expect(console.get_by_text("Asked because of a__second.")).to_be_visible()
    changed = console.get_by_text("You have changed the question since.")
    await expect(changed).to_have_count(0)
    async with window.page.expect_response("**/api/console/rules/question"):
        late.set()
    await window.page.wait_for_load_state("networkidle")
    await expect(console.get_by_text("Asked because of a__second.")).to_be_visible()
    await console.get_by_label("Arguments").fill("{}")
    await expect(changed).to_be_visible()
    await console.get_by_role("button", name="Ask the rules").click()
    await expect(changed).to_have_count(0)


async def test_what_everybody_used_has_its_sum_unless_more_used_something(window: Window) -> None:
    days = [{**USE, "key": "2026-11-01"}, {**USE, "key": "2026-11-02", "calls": 3, "seconds": 70_000.0}]
    usage = {**ANSWERS["GET usage"], "groups": days, "more": False}
    await answer_with(window.page, {**ANSWERS, "GET usage": usage})
    await go_to(window, "usage?by=day")
    rows = window.page.get_by_role("table", name="Usage").get_by_role("row")
    await expect(rows).to_have_count(4)
    await expect(rows.nth(1)).to_have_text("In all52,468011219.4 h0.50 EUR")
    await expect(rows.nth(2)).to_contain_text("Nov 2, 2026")
    await answer_with(window.page, {**ANSWERS, "GET usage": {**usage, "more": True}})
    await window.page.get_by_role("button", name="Refresh").click()
    await expect(rows).to_have_count(3)


async def test_the_filters_of_a_search_are_in_its_address(window: Window) -> None:
    await answer_with(window.page, ANSWERS)
    await go_to(window, "audit?person=ben")
    await window.page.reload()
    await expect(window.page.get_by_label("Person", exact=True)).to_have_value("ben")
    await window.page.get_by_label("Tool", exact=True).fill("delete_event")
    async with window.page.expect_request(lambda request: "/api/console/audit?" in request.url) as asked:
        await window.page.get_by_label("Tool", exact=True).press("Enter")
    assert "person=ben" in (await asked.value).url
    assert "tool=delete_event" in (await asked.value).url
    await expect(window.page.get_by_role("link", name="CSV")).to_have_attribute(
        "href", "/api/console/audit/export?person=ben&tool=delete_event&format=csv"
    )
