"""Sign-ins by people whose chat platform tells whose browser it is."""

from __future__ import annotations

from bot.accounts.flow import Connected, FlowProblem, GoTo, ShowCode
from bot.domain import Refused, Settled
from tests.accounts.stage import ANA, BEN, EVE, WENDY, Browser, Stage


def kind(page: object) -> str:
    assert isinstance(page, FlowProblem), page
    return page.kind


async def test_the_owner_proves_consents_and_is_connected_at_once(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    sign_in_id, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.proves(link, ANA)
    assert isinstance(went, GoTo)
    assert went.url.startswith("https://accounts.example/")
    done = await browser.returns(went.url, code="code-of-ana", iss="https://accounts.example")
    assert done == Connected("Example Drive", "ana", "Ana", "chat")
    assert stage.services_outside.exchanged == [("code-of-ana", "https://accounts.example")]
    assert await stage.access_token() == "secret-access-ana-1"
    assert await stage.status(sign_in_id) == "done"
    assert await stage.resumes() == [f"resume:{sign_in_id}"]


async def test_a_colleague_who_opens_the_attackers_link_is_stopped_before_the_service(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked(EVE)
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    before = stage.everything()
    page = await browser.returns(went.url, code=f"proof-of-{BEN.person_id}")
    assert kind(page) == "foreign"
    assert stage.everything() == before
    assert stage.services_outside.begun == []


async def test_the_attacker_who_proves_who_they_are_cannot_pass_on_the_rest_of_the_way(stage: Stage) -> None:
    """Eve proves to be Eve, then sends Ben the service's address: he consents in a browser that was never here."""
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked(EVE)
    went = await stage.browser().proves(link, EVE)
    assert isinstance(went, GoTo)
    before = stage.everything()
    for cookie in (None, "x", "A" * 43):
        assert kind(await Browser(stage, cookie).returns(went.url, code="code-of-ben")) == "foreign"
    assert stage.everything() == before
    assert stage.services_outside.exchanged == []
    assert await stage.access_token(EVE) is None


async def test_a_proof_does_not_stay_with_the_link(stage: Stage) -> None:
    """Eve proves, then asks anew, and the proof is gone: whoever goes on has to prove it again."""
    stage.proofs.providers["chat"] = "Chat"
    sign_in_id, link = await stage.asked_and_linked(EVE)
    eve = stage.browser()
    await eve.proves(link, EVE)
    ben = stage.browser()
    went = await ben.opens(await stage.link(sign_in_id, EVE))
    assert isinstance(went, GoTo)
    assert went.url.startswith("https://chat.example/")
    assert kind(await ben.returns(went.url, code="code-of-ben")) == "service"
    assert await stage.access_token(EVE) is None


async def test_a_proof_counts_for_its_own_step_only(stage: Stage) -> None:
    """Eve proved who she is; then proofs are not configured any more, and Ben goes on with a new link of hers."""
    stage.proofs.providers["chat"] = "Chat"
    sign_in_id, link = await stage.asked_and_linked(EVE)
    await stage.browser().proves(link, EVE)
    stage.proofs.providers.clear()
    page = await stage.browser().consents(await stage.link(sign_in_id, EVE), "ben")
    assert isinstance(page, ShowCode)
    assert await stage.access_token(EVE) is None


async def test_a_proof_that_is_not_one_is_refused(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    before = stage.everything()
    assert kind(await browser.returns(went.url, code="forged")) == "service"
    assert kind(await browser.returns(went.url, error="access_denied")) == "denied"
    assert stage.everything() == before


async def test_each_attempt_has_a_nonce_of_its_own(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    await browser.opens(link)
    await browser.opens(link)
    assert len(set(stage.proofs.nonces)) == 2
    assert not any(nonce in stage.everything() for nonce in stage.proofs.nonces)


# ------------------------------------------------------------------------------------------- the chat page


async def test_on_the_chat_page_its_own_session_is_the_proof(stage: Stage) -> None:
    _, link = await stage.asked_and_linked(WENDY)
    page = await stage.browser().consents(link, "wendy", visitor=WENDY.person_id)
    assert page == Connected("Example Drive", "wendy", "Wendy", "the chat page")
    assert await stage.access_token(WENDY) == "secret-access-wendy-1"


async def test_in_somebody_elses_session_the_link_leads_nowhere(stage: Stage) -> None:
    _, link = await stage.asked_and_linked(WENDY)
    before = stage.everything()
    for visitor in ("web:somebody", ANA.person_id):
        assert kind(await stage.browser().opens(link, visitor=visitor)) == "foreign"
    assert stage.everything() == before


async def test_without_a_session_nothing_is_connected_before_its_owner_has_entered_the_code(stage: Stage) -> None:
    """Somebody of the page for whom a program acts: their browser has never been there."""
    stage.services_outside.emails["wendy"] = "wendy@example.com"
    _, link = await stage.asked_and_linked(WENDY)
    page = await stage.browser().consents(link, "wendy")
    assert isinstance(page, ShowCode)
    assert not page.in_chat
    assert await stage.access_token(WENDY) is None
    assert await stage.services.connections.waits_for_code(WENDY)
    assert isinstance(await stage.tells(EVE, page.code), Refused)


async def test_the_code_is_of_use_to_its_owner_alone_who_has_no_session(stage: Stage) -> None:
    _, link = await stage.asked_and_linked(WENDY)
    page = await stage.browser().consents(link, "wendy")
    assert isinstance(page, ShowCode)
    assert isinstance(await stage.tells(WENDY, page.code), Settled)
    assert await stage.access_token(WENDY) == "secret-access-wendy-1"
    assert not await stage.services.connections.waits_for_code(WENDY)


async def test_an_account_with_another_address_than_the_page_vouches_for_is_refused(stage: Stage) -> None:
    stage.platform.emails = {WENDY.person_id: "wendy@example.com"}
    stage.services_outside.emails["ben"] = "ben@example.com"
    _, link = await stage.asked_and_linked(WENDY)
    assert kind(await stage.browser().consents(link, "ben")) == "foreign"


async def test_a_session_of_the_chat_page_proves_nothing_of_people_elsewhere(stage: Stage) -> None:
    """With the proof of their own platform configured, that is what counts."""
    stage.proofs.providers["chat"] = "Chat"
    _, link = await stage.asked_and_linked(ANA)
    went = await stage.browser().opens(link, visitor=ANA.person_id)
    assert isinstance(went, GoTo)
    assert went.url.startswith("https://chat.example/")
