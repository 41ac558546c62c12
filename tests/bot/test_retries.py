"""What a retry says in its conversation, which the model reads, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.approvals.retries import retry_text, told_of
from bot.card_masks import PLAIN
from graph.presentation import CallPresentation
from tests.bot.rows import approval


@pytest.mark.parametrize("secret", ["password=Tr0ub4dor-and-3", "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"])
def test_what_may_be_a_secret_is_neither_in_its_title_nor_in_what_the_model_is_told(secret: str) -> None:
    row = approval()
    shown = row.asked.model_copy(update={"presentation": CallPresentation(main="what")})
    row = replace(row, asked=shown, approved_arguments={"what": f"lamp, {secret}"})
    assert retry_text(row, PLAIN).startswith("Retry: workshop: make: ")
    assert secret[-8:] not in retry_text(row, PLAIN)
    assert secret[-8:] not in str(told_of(row, row.asked.arguments, PLAIN))
    assert told_of(row, {"what": f"lamp, {secret}"}, PLAIN) == row.approved_arguments, "it is what the model wrote"
