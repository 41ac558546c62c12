"""Cards in a real browser: everything to decide with, one click, and what came of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Locator, Route, expect

from bot.domain import ApprovalView, GrantView, OutcomeView, PlanTaskView, SignInView
from graph.presentation import CallPresentation, PresentedArgument, Preview
from tests.support.views import NOW, a_plan, a_plan_that_failed, a_question, an_approval
from tests.web.browsing import Window, window_of
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"
TITLED = CallPresentation(trusted=True, main="name", arguments={"name": PresentedArgument(kind="text")})


def card(window: Window, name: str) -> Locator:
    return window.log.get_by_role("article").filter(has_text=name)


async def choose(window: Window, name: str) -> None:
    """Press an entry of the card's menu."""
    await window.button("More actions").click()
    await window.page.get_by_role("menuitem", name=name, exact=True).click()


async def test_a_card_shows_all_that_a_decision_needs(product: Product, window: Window) -> None:
    view = an_approval(risk=("writes", "destroys"), may_decide="someone other than Ana", title="Create event")
    await product.services.post(THREAD, view)
    await window.open(THREAD)
    shown = card(window, "calendar › create_event")
    for text in ("Create event", "Team Meeting", "2026-11-21T10:00:00+01:00"):
        await expect(shown).to_contain_text(text)
    await expect(shown.locator("time").first).to_have_attribute("datetime", "2026-11-22T10:00:00.000Z")
    await expect(shown).to_contain_text("Requested by Ana · calendar › create_event · Deletes data")
    await expect(shown).to_contain_text("Approver: someone other than Ana · Expires ")
    for name in ("Approve", "Reject…", "Edit…", "More actions"):
        await expect(shown.get_by_role("button", name=name, exact=True)).to_be_enabled()


async def test_approving_shows_who_when_and_the_result(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await window.button("Approve").click()
    await expect(window.log).to_contain_text("Approved by Ana")
    await expect(window.button("Approve")).to_have_count(0)
    await expect(window.log.get_by_role("article")).to_be_focused()
    await product.services.change(
        replace(product.services.approvals["a"], result="Created at 10:00.", result_tone="success")
    )
    await window.log.get_by_text("Details").click()
    await expect(window.log.get_by_text("Created at 10:00.")).to_be_visible()


async def test_rejecting_asks_for_the_reason_in_a_dialog(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await window.button("Reject…").click()
    await expect(window.dialog.get_by_label("Reason, or what to do instead")).to_be_focused()
    await window.page.keyboard.press("Escape")
    await expect(window.dialog).to_have_count(0)
    await expect(window.button("Reject…")).to_be_focused()
    assert product.services.decisions == []
    await window.button("Reject…").click()
    await window.dialog.get_by_label("Reason, or what to do instead").fill("should be 10am")
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(window.log).to_contain_text("Rejected by Ana")
    await expect(window.log).to_contain_text("Reason: should be 10am")


async def test_a_reason_that_is_required_is_asked_for(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", reason_required=True))
    await window.open(THREAD)
    await window.button("Reject…").click()
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(window.dialog).to_contain_text("Please give a reason.")
    assert product.services.decisions == []


async def test_two_people_see_the_same_card_and_only_the_clicker_sees_the_refusal(
    product: Product, window: Window, chrome: Chromium
) -> None:
    await product.services.post(THREAD, an_approval("a", may_decide="someone other than Ana"))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_be_visible()
    product.services.may_decide["a"] = {"web:ben"}  # since the card was drawn
    async with window_of(product, chrome) as other:
        await other.become("Ben")
        await other.open(THREAD)
        await window.button("Approve").click()
        await expect(window.log).to_contain_text("You may not decide this: someone other than Ana may.")
        await expect(other.log).to_contain_text("Approver: someone other than Ana")
        await expect(other.log).not_to_contain_text("You may not decide this")
        await other.button("Approve").click()
        await expect(window.log).to_contain_text("Approved by Ben")
    window.complaints.clear()  # the browser's own about the 403


async def test_what_the_title_says_is_no_line_of_its_own_and_is_counted_among_what_an_edit_left(
    product: Product, window: Window
) -> None:
    arguments = {"name": "Standup", "room": "Blue"}
    view = an_approval("a", arguments=arguments, presentation=TITLED, title="Create event")
    await product.services.post(THREAD, view)
    edited = replace(view, approval_id="b", status="approved", decided_by=("Ana",), decided_at=1.0, edited_by="Ana")
    await product.services.post(THREAD, replace(edited, asked_arguments={"name": "Standup", "room": "Red"}))
    await window.open(THREAD)
    waits, settled = window.log.get_by_role("article").first, window.log.get_by_role("article").last
    await expect(waits.get_by_role("heading", name="Create event: Standup")).to_be_visible()
    await expect(waits.locator("dl.arguments")).to_have_text("RoomBlue")
    await settled.get_by_text("Details").click()
    await expect(settled.get_by_text("1 unchanged")).to_be_visible()
    await expect(settled.locator("dl.arguments").first).to_have_text("RoomRed → Blue")
    await waits.get_by_role("button", name="More actions").click()
    await window.page.get_by_role("menuitem", name="Show all").click()
    await expect(window.dialog.locator("dl.arguments")).to_have_text("NameStandupRoomBlue")


async def test_a_moment_that_was_moved_is_told_in_one_line(product: Product, window: Window) -> None:
    at = {"at": PresentedArgument(kind="date-time")}
    moment = CallPresentation(trusted=True, time_zone="Europe/Berlin", year=2026, arguments=at)
    asked = {"at": "2026-11-22T13:00:00+01:00"}
    view = an_approval("a", arguments={"at": "2026-11-22T14:30:00+01:00"}, presentation=moment, asked_arguments=asked)
    await product.services.post(THREAD, replace(view, status="approved", edited_by="Ana"))
    await window.open(THREAD)
    await window.log.get_by_text("Details").click()
    await expect(window.log.locator("dl.arguments ins")).to_have_text("Sun 22 Nov, 13:00 → 14:30 (Europe/Berlin)")
    await expect(window.log.locator("dl.arguments del")).to_have_count(0)


async def test_an_answer_that_stands_below_as_a_message_is_not_on_the_question_too(
    product: Product, window: Window
) -> None:
    question = a_question("q", requester_id="web:ana", status="answered", answer="Tomorrow at 9")
    await product.services.post(THREAD, question)
    await window.open(THREAD)
    card_of_it = window.log.get_by_role("article")
    await expect(card_of_it).to_contain_text("Tomorrow at 9")
    await window.say("Tomorrow at 9")
    await expect(card_of_it).not_to_contain_text("Tomorrow at 9")
    await expect(window.log.get_by_text("Tomorrow at 9")).to_have_count(1)


async def test_what_overwrites_and_shows_both_sides_is_not_asked_about_as_a_deletion(
    product: Product, window: Window
) -> None:
    preview = Preview(source="calendar › preview_update_event", before={"room": "Blue"}, after={"room": "Red"})
    shown = CallPresentation(trusted=True, preview=preview)
    await product.services.post(THREAD, an_approval("a", risk=("writes", "destroys"), presentation=shown))
    await window.open(THREAD)
    await expect(window.log.get_by_role("article")).to_contain_text("Overwrites data")
    await window.button("Approve").click()
    await expect(window.log).to_contain_text("Approved by Ana")


async def test_approve_is_offered_to_those_who_may_decide(product: Product, window: Window) -> None:
    """Rule 6: the server says who, and judges again at the click."""
    product.services.may_decide["a"] = {"web:ben"}
    await product.services.post(THREAD, an_approval("a"))
    await product.services.post(THREAD, an_approval("b"))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_have_count(1)
    await expect(window.button("Reject…")).to_have_count(1)
    await expect(window.page.locator("#approve-all")).to_be_hidden()


async def test_a_call_that_was_approved_and_failed_looks_failed(product: Product, window: Window) -> None:
    view = an_approval("a", status="approved", decided_by=("Ana",), result="Failed: no such room", result_tone="error")
    await product.services.post(THREAD, view)
    await window.open(THREAD)
    await expect(window.log.locator("article.approval.bad .result.error")).to_have_text("Failed: no such room")
    await expect(window.log.locator(".good")).to_have_count(0)


async def test_enormous_arguments_are_counted_and_whole_behind_show_all(product: Product, window: Window) -> None:
    """Rule 8."""
    arguments = {"notes": "word " * 8_000 + "the end", "start": "today"}
    await product.services.post(THREAD, an_approval("a", arguments=arguments))
    await window.open(THREAD)
    await expect(window.log.get_by_text("today", exact=True)).to_be_visible()
    await expect(window.log).to_contain_text("39,407 characters hidden.")
    await window.log.get_by_role("button", name="Show all").click()
    await expect(window.dialog).to_contain_text("Page 1 of 4")
    for _ in range(3):
        await window.dialog.get_by_role("button", name="Next").click()
    await expect(window.dialog).to_contain_text("the end")


async def test_a_late_click_is_answered_even_when_the_card_has_changed_meanwhile(
    product: Product, window: Window
) -> None:
    post = await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)

    async def ben_is_earlier(route: Route) -> None:
        view = post.content
        assert isinstance(view, ApprovalView)
        await product.services.change(replace(view, status="rejected", decided_by=("Ben",), decided_at=1.0))
        await expect(window.log).to_contain_text("Rejected by Ben")
        await route.continue_()

    await window.page.route("**/decisions", ben_is_earlier)
    await window.button("Approve").click()
    await expect(window.log).to_contain_text("Ben was earlier.")
    window.complaints.clear()  # the browser's own about the 409


async def test_approve_all_is_there_when_several_wait(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_have_count(1)
    await expect(window.page.locator("#approve-all")).to_be_hidden()
    await product.services.post(THREAD, an_approval("b"))
    await product.services.post(THREAD, an_approval("c", risk=("destroys",)))
    await expect(window.page.get_by_text("3 requests need approval")).to_be_visible()
    await expect(window.page.locator("#approve-all")).to_have_text("Approve all 3…")
    product.services.may_decide["c"] = {"web:ben"}
    await window.page.locator("#approve-all").click()
    await expect(window.dialog.locator(".approving > li")).to_have_count(3)
    await expect(window.dialog.locator(".approving > li").nth(2)).to_contain_text("Deletes data")
    assert not product.services.decisions
    await window.dialog.get_by_role("button", name="Approve 3").click()
    await expect(window.log.get_by_text("Approved by Ana")).to_have_count(2)
    await expect(window.log).to_contain_text("You may not decide this")
    await expect(window.page.locator("#approve-all")).to_be_hidden()
    [click] = product.services.decisions
    assert click.approval_ids == ("a", "b", "c")


async def test_a_long_argument_says_beside_approve_how_much_is_not_shown(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", arguments={"notes": "word " * 300 + "the end"}))
    await window.open(THREAD)
    await expect(window.log).to_contain_text("907 characters hidden.")
    await expect(window.log).not_to_contain_text("the end")
    await window.log.get_by_role("button", name="Show all").click()
    await expect(window.log).to_contain_text("the end")
    await expect(window.log).not_to_contain_text("characters hidden")


async def test_what_an_approver_changed_is_marked(product: Product, window: Window) -> None:
    view = an_approval("a", status="approved", arguments={"name": "Standup"}, asked_arguments={"name": "Meeting"})
    await product.services.post(THREAD, view)
    await window.open(THREAD)
    await window.log.get_by_text("Details").click()
    await expect(window.log.locator("del")).to_have_text("Meeting")
    await expect(window.log.locator("ins")).to_have_text("Standup")


async def test_what_is_left_out_of_what_was_asked_is_counted_and_no_text_is_not_the_word_for_it(
    product: Product, window: Window
) -> None:
    """Rule 12."""
    asked = {"name": "word " * 200, "more": "", "less": "empty"}
    now = {"name": "Standup", "more": "empty", "less": ""}
    await product.services.post(THREAD, an_approval("a", status="approved", arguments=now, asked_arguments=asked))
    await window.open(THREAD)
    await window.log.get_by_text("Details").click()
    await expect(window.log.locator("del").first).to_contain_text("… (400 characters hidden)")
    await expect(window.log.locator("del")).to_contain_text(["word", "(empty)", "empty"])
    await expect(window.log.locator("ins")).to_have_text(["Standup", "empty", "(empty)"])


async def test_a_sign_in_link_shows_its_host_to_its_owner_alone(product: Product, window: Window) -> None:
    product.services.links["s"] = "https://accounts.example.com/authorize?state=1"
    await product.services.post(THREAD, SignInView("s", "open", "github", "accounts.example.com", "", "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Sign in").click()
    link = window.log.get_by_role("link", name="Open the sign-in page")
    await expect(link).to_have_attribute("href", "https://accounts.example.com/authorize?state=1")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(window.log).to_contain_text("(accounts.example.com)")
    await window.become("Ben")
    await expect(window.log).to_contain_text("Waiting for Ana to sign in.")
    await expect(window.log.get_by_role("link")).to_have_count(0)
    await window.become("Ana")
    await window.button("I have signed in").click()
    await expect(window.log).to_contain_text("Signed in")


async def test_a_link_that_is_no_web_address_is_not_offered(product: Product, window: Window) -> None:
    product.services.links["s"] = "javascript:alert(1)"
    await product.services.post(THREAD, SignInView("s", "open", "github", "", "", "Ana", "web:ana"))
    await window.open(THREAD)
    await window.button("Sign in").click()
    await expect(window.log).to_contain_text("it is not a web address")
    await expect(window.log.get_by_role("link")).to_have_count(0)


@pytest.mark.parametrize(
    ("choice", "ended"), [("It was done", "Confirmed"), ("Try again", "Tried again"), ("Skip", "Skipped")]
)
async def test_the_outcome_of_a_broken_attempt_is_settled(
    product: Product, window: Window, choice: str, ended: str
) -> None:
    await product.services.post(
        THREAD, OutcomeView("o:1.0/1", "open", "tasks", "add_task", "", {"title": "milk"}, "Ana", "web:ana")
    )
    await window.open(THREAD)
    await window.button(choice).click()
    await expect(window.log).to_contain_text(f"{ended} by Ana")


async def test_enormous_arguments_of_a_broken_attempt_and_of_a_grant_are_whole_behind_show_all(
    product: Product, window: Window
) -> None:
    """Rule 8."""
    long = {"notes": "word " * 8_000 + "the end"}
    await product.services.post(THREAD, OutcomeView("o:1.0/1", "open", "tasks", "add_task", "", long, "Ana", "web:ana"))
    product.services.given["g1"] = ("web:ana", GrantView("g1", "calendar", "create_event", long, NOW))
    await window.open(THREAD)
    await window.log.get_by_role("button", name="Show all").click()
    await all_pages_end(window, "the end")
    await window.dialog.get_by_role("button", name="Close", exact=True).click()
    await window.button("Standing approvals…").click()
    await window.dialog.get_by_role("button", name="Show all").click()
    await all_pages_end(window, "the end")


async def all_pages_end(window: Window, words: str) -> None:
    """Turn the pages of the newest dialog up to the last."""
    dialog = window.dialog.last
    await expect(dialog).to_contain_text("Page 1 of 4")
    for _ in range(3):
        await dialog.get_by_role("button", name="Next").click()
    await expect(dialog).to_contain_text(words)


async def test_always_allowing_asks_for_how_long(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", always_offered=True, quote="book the team meeting"))
    await window.open(THREAD)
    await expect(card(window, "calendar")).to_contain_text("Ana wrote: “book the team meeting”")
    await choose(window, "Allow for a while…")
    await expect(window.dialog.get_by_role("button", name="Approve and allow for 1 hour")).to_be_visible()
    await window.dialog.get_by_label("For how long").select_option("8 hours")
    await window.dialog.get_by_role("button", name="Approve and allow for 8 hours").click()
    await expect(window.log).to_contain_text("Approved by Ana")
    [decision] = product.services.decisions
    assert decision.choices[0].always_for == 28_800


async def test_somebody_else_is_asked_and_withdrawing_is_for_who_asked(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", requester_ids=("web:ana",)))
    await window.open(THREAD)
    await choose(window, "Ask someone else…")
    await window.dialog.get_by_label("Who should decide?").select_option("Ben")
    await window.dialog.get_by_role("button", name="Ask", exact=True).click()
    await expect(card(window, "calendar")).to_contain_text("Also asked: ")
    [handover] = product.services.handovers
    assert handover.to == "web:ben"
    await choose(window, "Withdraw…")
    await window.dialog.get_by_role("button", name="Withdraw", exact=True).click()
    await expect(window.log).to_contain_text("Withdrawn by Ana")


async def test_what_one_always_allows_is_listed_and_revoked(product: Product, window: Window) -> None:
    given = GrantView("g1", "calendar", "create_event", {"name": "Standup"}, NOW, client="cursor")
    product.services.given["g1"] = ("web:ana", given)
    await window.open(THREAD)
    await window.button("Standing approvals…").click()
    await expect(window.dialog).to_contain_text("Standup")
    await expect(window.dialog).to_contain_text("Through cursor, expires")
    await window.dialog.get_by_role("button", name="Revoke", exact=True).click()
    await expect(window.dialog).to_contain_text("No standing approvals")
    await window.dialog.get_by_role("button", name="Close", exact=True).click()
    assert product.services.given == {}


async def test_what_is_hidden_is_counted_and_shown_in_a_dialog_to_whoever_asks_and_may(
    product: Product, window: Window
) -> None:
    """Rule 12: a mask says how many characters it hides, and whoever may decide can look."""
    mask, token = "[secret: github token, 40 characters, #3fa9c2d1]", "ghp_" + "a1B2" * 9
    product.services.hidden = {mask: token}
    await product.services.post(
        THREAD, an_approval(arguments={"what": f"use {mask}"}, masks=1, fingerprint="#3fa9c2d1e0b4")
    )
    await window.open(THREAD)
    shown = card(window, "calendar › create_event")
    await expect(shown).to_contain_text(f"use {mask}")
    await expect(shown.locator(".unseen")).to_have_text("1 part is masked. Fingerprint: #3fa9c2d1e0b4.")
    await choose(window, "Look at hidden values…")
    await expect(window.dialog).to_contain_text(token)
    await expect(window.dialog).to_contain_text(mask)
    await window.page.keyboard.press("Escape")
    await expect(window.page.locator("body")).not_to_contain_text(token)


async def test_whoever_may_not_look_is_told_so(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a", masks=1))
    await window.open(THREAD)
    await expect(window.button("Approve")).to_be_visible()
    product.services.may_decide["a"] = {"web:ben"}  # since the card was drawn
    await choose(window, "Look at hidden values…")
    await expect(window.log).to_contain_text("You may not look at this.")
    await expect(window.dialog).to_have_count(0)
    window.complaints.clear()  # the browser's own about the answer's status


async def test_where_nothing_is_hidden_there_is_nothing_to_look_at(product: Product, window: Window) -> None:
    await product.services.post(THREAD, an_approval("a"))
    await window.open(THREAD)
    await window.button("More actions").click()
    await expect(window.page.get_by_role("menuitem", name="Show all")).to_be_visible()
    await expect(window.page.get_by_role("menuitem", name="Look at hidden values…")).to_have_count(0)
    await expect(window.log.locator(".unseen")).to_be_hidden()


# ------------------------------------------------------------------------------------------------ plans


async def test_a_plan_has_a_line_for_each_task_that_says_how_far_it_is(product: Product, window: Window) -> None:
    await product.services.post(THREAD, a_plan("p", requester_id="web:ana"))
    await window.open(THREAD)
    plan = window.log.get_by_role("article", name="Plan: 2 of 4 tasks done")
    tasks = plan.get_by_role("listitem")
    await expect(tasks).to_have_count(4)
    await expect(tasks.nth(0)).to_contain_text("find List the open invoices.")
    await expect(tasks.nth(0)).to_contain_text("bookkeeper agent · done")
    await expect(tasks.nth(0)).to_contain_text("three: INV-7, INV-8, INV-9")
    await expect(tasks.nth(2)).to_contain_text("bookkeeper agent · waiting for someone")
    await expect(tasks.nth(3)).to_contain_text("writer agent · waits for check")
    ended = replace(a_plan_that_failed(requester_id="web:ana"), plan_id="p")
    await product.services.change(ended)
    tasks = window.log.get_by_role("article", name="Plan ended: 2 of 4 tasks done").get_by_role("listitem")
    await expect(tasks.nth(2)).to_contain_text("failed: The model could not be reached.")
    await expect(tasks.nth(3)).to_contain_text("not begun: check was not done")
    await expect(window.log.get_by_role("article")).to_have_count(1)


async def test_what_is_unfolded_of_a_task_stays_so_and_keeps_the_focus_while_others_change(
    product: Product, window: Window
) -> None:
    find, _orders, _check, mail = a_plan(requester_id="web:ana").tasks
    long = PlanTaskView("long", "writer", "Write it all down. " * 20, "running")
    await product.services.post(THREAD, a_plan("p", requester_id="web:ana", tasks=(find, long)))
    await window.open(THREAD)
    details = window.log.get_by_text("Details")
    await expect(details).to_have_count(1)
    await window.log.locator("details[data-fold=long] > summary").focus()
    await window.page.keyboard.press("Enter")
    await expect(window.log.get_by_text(long.instruction.strip())).to_be_visible()
    ended = replace(find, result="INV-7, " * 60)
    await product.services.change(a_plan("p", requester_id="web:ana", tasks=(ended, long, mail)))
    await expect(window.log.get_by_role("listitem")).to_have_count(3)
    await expect(window.log.get_by_text(long.instruction.strip())).to_be_visible()
    await expect(window.log.locator("details[data-fold=long] > summary")).to_be_focused()
    await expect(window.log.locator("details[data-fold=find]")).not_to_have_attribute("open", "")
    await window.log.get_by_text("Details").first.click()
    await expect(window.log.get_by_text(ended.result.strip())).to_be_visible()
