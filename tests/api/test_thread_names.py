"""Which thread a caller means with an id of its own."""

from __future__ import annotations

import pytest

from adapters.api.thread_names import ThreadNames
from bot.domain import Person
from bot.identity.principal import Principal
from tests.api.serving import ServedApi

ANA, BEN = (Principal(Person(f"web:{name}", name)) for name in ("ana", "ben"))


@pytest.fixture
def named(served: ServedApi) -> dict[str, ThreadNames]:
    """By the keys there are."""
    return {keys: ThreadNames(keys.encode(), served.services.conversations) for keys in ("old", "new,old", "new")}


async def test_each_caller_each_contract_and_each_id_has_a_thread_of_its_own(named: dict[str, ThreadNames]) -> None:
    asked = [(ANA, "run", "t"), (BEN, "run", "t"), (ANA, "chat", "t"), (ANA, "run", "u")]
    threads = [await named["new"].thread_of(*each) for each in asked]
    assert len(set(threads)) == len(asked)
    assert threads == [await named["new"].thread_of(*each) for each in asked]


async def test_who_does_not_have_the_key_cannot_tell_a_thread(named: dict[str, ThreadNames]) -> None:
    assert await named["new"].thread_of(ANA, "run", "t") != await named["old"].thread_of(ANA, "run", "t")


async def test_with_a_new_key_in_front_threads_that_there_are_keep_their_ids(
    served: ServedApi, named: dict[str, ThreadNames]
) -> None:
    before = await named["old"].thread_of(ANA, "run", "t")
    assert await named["new,old"].thread_of(ANA, "run", "t") == await named["new"].thread_of(ANA, "run", "t")
    await served.open(before, ANA.person)
    assert await named["new,old"].thread_of(ANA, "run", "t") == before
