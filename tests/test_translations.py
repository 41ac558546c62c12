"""The languages that people read."""

from __future__ import annotations

import asyncio
import contextvars

import translations


def test_a_language_is_chosen_of_those_that_somebody_wants() -> None:
    assert translations.choose("de-AT") == "de"
    assert translations.choose("fr-CH, fr;q=0.9, de;q=0.7, en;q=0.5") == "de"
    assert translations.choose("fr", "en_GB.UTF-8") == "en"
    assert translations.choose("de_DE:en") == "de"
    assert translations.choose("", None, "xx", "\x00" * 9) == "en"
    with translations.in_language("de"):
        assert translations.choose("fr") == "de"


async def test_a_task_writes_in_the_language_of_whoever_began_it() -> None:
    async def written() -> str:
        return translations.language()

    with translations.in_language("de"):
        begun = asyncio.create_task(written())
    assert (await begun, translations.language()) == ("de", "en")


def test_what_several_people_see_is_in_the_language_of_the_operator_whoever_clicked() -> None:
    def written() -> str:
        translations.write_in("de")
        with translations.in_language("en"), translations.in_shared_language():
            return translations.language()

    assert contextvars.copy_context().run(written) == "de"
