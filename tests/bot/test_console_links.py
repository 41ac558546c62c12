"""Links from cards to the console: for operators, where people can reach the page, and never waited for."""

from __future__ import annotations

import asyncio

from bot.console.links import ConsoleLinks
from bot.domain import Person
from tests.support.waiting import at_most_waiting

ANA, BEN = Person("slack:T1:U1", "Ana"), Person("slack:T1:U2", "Ben")


async def is_ana(person: Person) -> bool:
    return person == ANA


async def test_an_operator_is_led_to_the_turn_of_an_approval_and_nobody_else_is() -> None:
    links = ConsoleLinks("https://bot.example/", is_ana)
    assert await links.turn_link("call/1)1", ANA) == "https://bot.example/#console/turns?card=call%2F1%291"
    assert await links.turn_link("call/1)1", BEN) == ""


async def test_where_nobody_can_reach_the_page_there_is_no_link() -> None:
    assert await ConsoleLinks(None, is_ana).turn_link("call-1", ANA) == ""


async def test_a_dialog_does_not_wait_for_a_service_that_says_who_operators_are() -> None:
    async def never(_person: Person) -> bool:
        await asyncio.Event().wait()
        return True

    async with at_most_waiting(3):
        assert await ConsoleLinks("https://bot.example", never).turn_link("call-1", ANA) == ""
