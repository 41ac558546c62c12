"""What a person's requests used of the language model, in Slack: `/countersign usage`."""

from __future__ import annotations

from tests.fakes.slack.server import FakeSlack
from tests.slack.product.talk import Talk, words
from tests.support.slack_people import SlackPerson


async def test_the_command_says_what_ones_own_requests_used(
    slack: FakeSlack, talk: Talk, ana: SlackPerson, ben: SlackPerson
) -> None:
    await talk.mentions("hello")
    await talk.says("You said")
    for person, calls in ((ana, "1 model call ·"), (ben, "0 model calls ·")):
        await person.commands("usage", "C1")  # its answer is shown at once
        told = words(slack.ephemerals(person.user)[-1])
        assert "What your requests used of the language model" in told
        assert f"Today: {calls}" in told
        assert f"30 days: {calls}" in told
