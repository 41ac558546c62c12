"""The App Home: what concerns a person, with buttons that work there too."""

from __future__ import annotations

from adapters.slack.actions import load_origin
from tests.slack.serving import Served, serving
from tests.slack.shown import an_approval


async def a_home(product: Served, user: str = "U1") -> dict[str, object]:
    """Open it, and wait until it is there."""
    assert (await product.person(user).opens_home()).status == 200
    home: dict[str, object] = await product.slack.until(lambda: product.slack.home(user))
    return home


async def test_it_shows_what_waits_with_its_link() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        home = await a_home(product)
        assert "create_event" in str(home["blocks"])
        assert "https://acme.slack.com/archives/C1/p1700000000000200" in str(home["blocks"])


async def test_the_messages_tab_is_no_home() -> None:
    async with serving() as product:
        await product.person().opens_home(tab="messages")
        await product.close()
        assert product.slack.calls_of("views.publish") == []


async def test_approving_there_works_and_shows_it_anew() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        home = await a_home(product)
        assert (await product.person().clicks(home, "approve")).status == 200
        assert [d.choices[0].verb for d in product.services.decisions] == ["approve"]
        assert product.services.decisions[0].key.startswith(f"slack:T1:{home['id']}:")
        await product.slack.until(lambda: "create_event" not in str((product.slack.home("U1") or {})["blocks"]))


async def test_a_refusal_there_is_a_window() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        home = await a_home(product)
        product.services.may_decide["call-1.1"] = set()
        await product.person().clicks(home, "approve")
        modal = await product.modal()
        assert "You may not decide this" in str(modal["blocks"])
        assert product.told() == []


async def test_a_refusal_there_comes_as_a_direct_message_when_no_window_opens() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        home = await a_home(product)
        product.services.may_decide["call-1.1"] = set()
        product.slack.fail("views.open", error="expired_trigger_id")
        await product.person().clicks(home, "approve")
        dm = product.person().dm
        await product.slack.until(lambda: "You may not decide this" in str(product.slack.messages(dm)))


async def test_a_form_opened_there_shows_it_anew_when_it_is_submitted() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        home = await a_home(product)
        await product.person().clicks(home, "reject")
        modal = await product.modal()
        assert load_origin(modal["private_metadata"]).home
        published = len(product.slack.calls_of("views.publish"))
        await product.person().submits(modal, {"reason": "no"})
        await product.slack.until(lambda: len(product.slack.calls_of("views.publish")) > published)
        assert product.services.approvals["call-1.1"].status == "rejected"


async def test_a_click_there_without_a_view_is_one_from_there() -> None:
    """As `local-slack` sends them."""
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        clicked = await product.person().clicks(await a_home(product), "approve")
        payload = {name: value for name, value in clicked.payload.items() if name != "view"}
        empty = {"id": "", "name": ""}
        answer = await product.transport.interaction({**payload, "container": {"type": "message"}, "channel": empty})
        assert answer.status == 200
        assert len(product.services.decisions) == 2
        assert "was earlier" in str((await product.modal())["blocks"])


async def test_a_guest_is_told_why_there_is_nothing() -> None:
    async with serving() as product:
        product.slack.add_user("U7", name="Gus", is_restricted=True)
        product.slack.add_channel("D7", kind="im", members=["U7", "UBOT"])
        home = await a_home(product, "U7")
        assert "use Countersign in this workspace" in str(home["blocks"])


async def test_a_slack_that_refuses_the_home_is_no_failure() -> None:
    async with serving() as product:
        product.slack.fail("views.publish", error="not_enabled")
        assert (await product.person().opens_home()).status == 200
        await product.slack.until(lambda: product.slack.calls_of("views.publish"))
        await a_home(product)
