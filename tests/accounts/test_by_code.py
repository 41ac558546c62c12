"""Sign-ins without proof of chat identity: nothing is active until its owner has told the bot the code."""

from __future__ import annotations

import re

import pytest

from bot.accounts.flow import FlowProblem, ShowCode
from bot.domain import Invalid, Refused, Settled, Unknown
from graph.ports import AccountNeeded
from tests.accounts.stage import ANA, BEN, ELSEWHERE, EVE, HERE, Stage
from tests.bot.conftest import place, until

THANKS = "Your Example Drive account ana is connected. If it isn’t yours, disconnect it."
"""Names the account: ana may have been talked into telling the code of somebody else's."""


async def shown(stage: Stage, login: str = "ana", **how: object) -> tuple[str, ShowCode]:
    """A browser that shows a code; with the sign-in's id."""
    sign_in_id, link = await stage.asked_and_linked(**how)  # type: ignore[arg-type]
    page = await stage.browser().consents(link, login)
    assert isinstance(page, ShowCode), page
    return sign_in_id, page


async def test_nothing_is_connected_before_the_code_was_told(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    assert re.fullmatch(r"[A-Z0-9]{4}-[A-Z0-9]{4}", page.code)
    assert (page.service, page.account, page.minutes) == ("Example Drive", "ana", 10)
    assert await stage.access_token() is None
    assert await stage.status(sign_in_id) == "open"
    assert await stage.services.connections.of_person(ANA) == ()
    assert (await stage.card(sign_in_id)).code_wanted
    assert await stage.resumes() == []


async def test_the_owner_types_it_and_the_call_goes_on_once(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    told = await stage.tells(ANA, page.code, key="k1")
    assert told == Settled(THANKS)
    assert await stage.access_token() == "secret-access-ana-1"
    assert await stage.status(sign_in_id) == "done"
    assert await stage.tells(ANA, page.code, key="k1") == told
    assert isinstance(await stage.tells(ANA, page.code, key="k2"), Refused)
    assert await stage.resumes() == [f"resume:{sign_in_id}"]
    assert stage.engine.woken == [HERE.key]


async def test_all_calls_that_wait_go_on_in_their_threads_and_others_do_not(stage: Stage) -> None:
    first, page = await shown(stage)
    second = await stage.ask(call="m2.0.0", place=ELSEWHERE)
    other_person = await stage.ask(BEN, "m3.0.0")
    other_service = await stage.ask(call="m4.0.0", needed=AccountNeeded("mail"))
    await stage.tells(ANA, page.code)
    assert [await stage.status(s) for s in (first, second, other_person, other_service)] == [
        "done",
        "done",
        "open",
        "open",
    ]
    assert await stage.resumes(HERE) == [f"resume:{first}"]
    assert await stage.resumes(ELSEWHERE) == [f"resume:{second}"]


async def test_the_colleague_who_was_sent_the_link_cannot_give_their_account_away(stage: Stage) -> None:
    """Eve's link, opened by Ben, who consents with his account: only Ben's browser shows the code."""
    sign_in_id, page = await shown(stage, "ben", person=EVE)
    assert isinstance(await stage.tells(BEN, page.code), Refused)
    assert isinstance(await stage.tells(BEN, page.code, sign_in_id=sign_in_id), Refused)
    for guess in range(6):
        assert not isinstance(await stage.tells(EVE, "CCCC-CCCC", key=f"guess {guess}"), Settled)
    assert not isinstance(await stage.tells(EVE, page.code), Settled)
    assert [await stage.access_token(p) for p in (EVE, BEN)] == [None, None]


async def test_a_code_that_the_colleague_tells_where_the_sender_reads_along_is_of_no_use_to_the_sender(
    stage: Stage,
) -> None:
    """Eve has talked Ben into writing to the bot, in her thread, what his browser shows."""
    sign_in_id, page = await shown(stage, "ben", person=EVE)
    assert await stage.writes(BEN, f"the code is {page.code}")
    assert page.code not in stage.everything()
    await until(lambda: any("isn’t yours to give" in text for _, text in stage.notices()))
    assert not (await stage.card(sign_in_id)).code_wanted
    assert not isinstance(await stage.tells(EVE, page.code), Settled)
    assert not isinstance(await stage.tells(EVE, page.code, sign_in_id=sign_in_id), Settled)
    assert [await stage.access_token(p) for p in (EVE, BEN)] == [None, None]


async def test_so_it_is_when_the_colleague_is_asked_for_a_code_of_their_own(stage: Stage) -> None:
    _, own = await shown(stage, "ben", person=BEN, call="m2.0.0")
    _, page = await shown(stage, "ben", person=EVE)
    for _ in range(9):
        told = await stage.tells(BEN, page.code)
        assert isinstance(told, Refused)
        assert "isn’t yours to give" in told.text
    assert not isinstance(await stage.tells(EVE, page.code), Settled)
    assert isinstance(await stage.tells(BEN, own.code), Settled)


async def test_an_account_with_a_verified_address_that_is_not_the_owners_is_refused(stage: Stage) -> None:
    stage.services_outside.emails["ben"] = "ben@example.com"
    for email in ("eve@example.com", None):
        stage.platform.emails = {EVE.person_id: email} if email else {}
        _, link = await stage.asked_and_linked(EVE, f"call {email}")
        browser = stage.browser()
        went = await browser.opens(link)
        before = stage.everything()
        page = await browser.returns(went.url, code="code-of-ben")  # type: ignore[union-attr]
        assert isinstance(page, FlowProblem)
        assert page.kind == "foreign"
        assert stage.everything() == before
        assert "secret-access" not in page.sentence
        assert "@" not in page.sentence
    assert await stage.access_token(EVE) is None


async def test_an_account_with_the_owners_address_is_taken(stage: Stage) -> None:
    stage.services_outside.emails["ana"] = "Ana@Example.com"
    stage.platform.emails = {ANA.person_id: "ana@example.com"}
    _, page = await shown(stage)
    assert isinstance(await stage.tells(ANA, page.code), Settled)


async def test_a_code_can_be_typed_five_times_and_then_is_of_no_use(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    for left in (4, 3, 2, 1):
        wrong = await stage.tells(ANA, "CCCC-CCCC", key=f"wrong {left}", sign_in_id=sign_in_id)
        assert isinstance(wrong, Invalid)
        assert f"{left} tr" in wrong.errors["code"]
    assert isinstance(await stage.tells(ANA, "CCCC-CCCC", key="last", sign_in_id=sign_in_id), Refused)
    assert not isinstance(await stage.tells(ANA, page.code), Settled)
    assert await stage.access_token() is None
    assert not (await stage.card(sign_in_id)).code_wanted
    assert await stage.link(sign_in_id)


async def test_the_same_wrong_form_delivered_twice_counts_once(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    for _ in range(9):
        await stage.tells(ANA, "CCCC-CCCC", key="the same", sign_in_id=sign_in_id)
    assert isinstance(await stage.tells(ANA, page.code), Settled)


async def test_every_guess_counts_whatever_key_it_comes_under(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    for guess in ("CCCC-CCCC", "DDDD-DDDD", "FFFF-FFFF", "GGGG-GGGG", "HHHH-HHHH"):
        await stage.tells(ANA, guess, key="the same", sign_in_id=sign_in_id)
    assert isinstance(await stage.tells(ANA, page.code), Refused)
    assert await stage.access_token() is None


async def test_a_code_lives_ten_minutes(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    stage.clock.move(600)
    assert isinstance(await stage.tells(ANA, page.code), Refused)
    assert await stage.access_token() is None
    assert not (await stage.card(sign_in_id)).code_wanted


async def test_what_nobody_claims_is_forgotten(stage: Stage) -> None:
    await shown(stage)
    stage.clock.move(601)
    await stage.ask(BEN, "m5.0.0")
    async with stage.database.reading() as tx:
        from bot.records import authorizations

        way = await authorizations.open_for(tx, ANA.person_id, "drive")
    assert way is not None
    assert way.sealed_grant is None


async def test_a_code_survives_a_restart(stage: Stage) -> None:
    _, page = await shown(stage)
    stage.restart()
    assert isinstance(await stage.tells(ANA, page.code), Settled)
    assert await stage.access_token() == "secret-access-ana-1"


async def test_a_new_link_leaves_the_code_that_is_shown_good(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    await stage.browser().opens(await stage.link(sign_in_id))
    assert isinstance(await stage.tells(ANA, page.code), Settled)


async def test_the_code_of_the_later_of_two_browsers_counts(stage: Stage) -> None:
    sign_in_id, first = await shown(stage, "ana")
    second = await stage.browser().consents(await stage.link(sign_in_id), "ana2")
    assert isinstance(second, ShowCode)
    assert not isinstance(await stage.tells(ANA, first.code), Settled)
    assert isinstance(await stage.tells(ANA, second.code), Settled)
    assert (await stage.access_token() or "").startswith("secret-access-ana2-")


async def test_a_form_for_a_sign_in_that_is_not_there_is_told_so(stage: Stage) -> None:
    assert isinstance(await stage.tells(ANA, "CCCC-CCCC", sign_in_id="nonsense"), Unknown)


# ------------------------------------------------------------------------------------------- as a message


async def test_a_code_as_a_message_is_taken_before_any_record_and_answered_to_its_author_alone(stage: Stage) -> None:
    sign_in_id, page = await shown(stage)
    assert await stage.writes(ANA, f" `{page.code.lower()}` ")
    assert await stage.status(sign_in_id) == "done"
    assert page.code not in stage.everything().upper()
    assert await stage.resumes() == [f"resume:{sign_in_id}"]
    await until(stage.notices)
    assert stage.notices() == [(ANA.person_id, THANKS)]


async def test_the_message_delivered_twice_is_answered_and_counted_once(stage: Stage) -> None:
    _, page = await shown(stage)
    assert await stage.writes(ANA, "CCCC-CCCC", "m9")
    for _ in range(5):
        assert not await stage.writes(ANA, "CCCC-CCCC", "m9")
    assert isinstance(await stage.tells(ANA, page.code), Settled)
    assert len(stage.notices()) == 1


async def test_a_code_in_a_place_without_a_thread_yet_is_answered_there(stage: Stage) -> None:
    _, page = await shown(stage)
    dm = place("chat:w1:dm", direct=True)
    assert await stage.writes(ANA, page.code, place=dm)
    await until(stage.notices)
    assert [post.place.key for post in stage.platform.shown.values() if post.only_for] == ["chat:w1:dm"]
    assert await stage.access_token() is not None


async def test_somebody_elses_code_reaches_no_record_and_connects_nothing(stage: Stage) -> None:
    sign_in_id, page = await shown(stage, "ben", person=EVE)
    assert await stage.writes(BEN, page.code)
    assert page.code not in stage.everything()
    assert await stage.status(sign_in_id) == "open"
    await until(lambda: any(person == BEN.person_id for person, _ in stage.notices()))
    assert "isn’t yours" in stage.notices()[-1][1]


async def test_words_that_look_like_a_code_are_just_words_while_none_is_expected(stage: Stage) -> None:
    assert await stage.writes(ANA, "KM34-TX79")
    async with stage.database.reading() as tx:
        from bot.records import deliveries

        assert await deliveries.exists(tx, "m9")


@pytest.mark.parametrize(
    "words", ["it says {code} now", "{code} thanks!", "my code: {blank}", "{plain}", "{lower}, ok?"]
)
async def test_the_code_that_is_shown_is_taken_out_of_a_sentence_too(stage: Stage, words: str) -> None:
    _, page = await shown(stage)
    blank, plain = page.code.replace("-", " "), page.code.replace("-", "")
    said = words.format(code=page.code, blank=blank, plain=plain, lower=page.code.lower())
    assert await stage.writes(ANA, said)
    assert not await stage.writes(ANA, said), "delivered twice"
    assert await stage.access_token() is not None
    for spelling in (page.code, blank, plain):
        assert spelling not in stage.everything().upper()
    await until(stage.notices)
    ((_, told),) = stage.notices()
    assert told.startswith(THANKS)
    assert "didn’t read the rest" in told


async def test_a_sentence_with_something_like_a_code_in_it_is_a_sentence(stage: Stage) -> None:
    await shown(stage)
    assert await stage.writes(ANA, "is KM34-TX79 the right ticket?")
    async with stage.database.reading() as tx:
        from bot.records import deliveries

        assert await deliveries.exists(tx, "m9")
