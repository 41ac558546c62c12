"""Marks of invisible characters that a model writes itself."""

from __future__ import annotations

from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting


async def test_a_mark_that_a_model_writes_does_not_look_like_one_of_ours(workshop_home: ProductFolder) -> None:
    """Rule 8: the first is a text like any other, the second a character that cannot be seen."""
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("pay⟨U+202E⟩001 and pay\u202e001")
        assert await thread.says("You said") == "You said: pay⟨U+27E8⟩U+202E⟩001 and pay⟨U+202E⟩001"
