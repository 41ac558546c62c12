"""Cards say who may decide by name, also of people whom a policy names and nobody has met."""

from __future__ import annotations

from bot.domain import ApprovalView
from bot.records import threads
from bot.records.locks import UNLOCKED
from tests.bot.routing import ANA, BEN, HERE, Routing
from tests.bot.rows import asked
from tests.support.overviews import everywhere


async def nobody_comes_first() -> None:
    pass


async def who_may_decide(routing: Routing) -> str:
    request = asked(requesters=(ANA.person_id,), approvers=(BEN.person_id,))
    async with routing.database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, HERE.key, HERE, "hello", routing.clock())
    await routing.parts.requests.ask(HERE.key, request, [], nobody_comes_first)
    [shown] = (await routing.services.queries.overview(ANA, HERE.key, everywhere)).waiting
    assert isinstance(shown.post.content, ApprovalView)
    return shown.post.content.may_decide


async def test_somebody_whom_nobody_has_met_is_called_as_their_platform_calls_them(routing: Routing) -> None:
    routing.chat.names[BEN.person_id] = "Ben Baker"
    assert await who_may_decide(routing) == "Ben Baker"


async def test_a_name_that_is_known_is_not_asked_for_again(routing: Routing) -> None:
    routing.chat.names[BEN.person_id] = "Somebody else"
    async with routing.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, BEN, routing.clock())
    assert await who_may_decide(routing) == "Ben"


async def test_whoever_has_no_name_is_shown_by_the_reference_that_their_platform_can_show(routing: Routing) -> None:
    assert await who_may_decide(routing) == BEN.person_id
