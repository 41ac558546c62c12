"""A change that was made without asking leaves one line in its conversation, with its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.audit.log import AuditLog
from bot.domain import ApprovalView, ChangeView, Post, Settled
from bot.ledger import AttemptLedger
from graph.ports import Begun, CallRecord, Failed, Judged, Spoken, Succeeded
from policies.approvers import DURATIONS
from policies.masking import Masker
from policies.model import Allow, Call, Facts, Mode, Tool
from tests.bot.conftest import until
from tests.bot.routing import ANA, LAMP, MAKE, THREAD, Routing

AT = datetime(2026, 11, 24, tzinfo=UTC)
LOOK = Tool(server="workshop", name="look", reads_only=True)
MADE = Succeeded("one lamp")


def call(call_id: str, tool: Tool = MAKE, *, reads: bool = False, **how: Any) -> CallRecord:
    """A call of Ana's that a rule allows; `reads`: and that changes nothing, as the rule says."""
    facts = Facts(Mode.DEFAULT, ANA.person_id, "chat", "room", AT)
    judged = Judged(Call(tool, {"what": "lamp"}), facts, Allow(rule="lamps are free", reads=reads))
    record = CallRecord(THREAD, call_id, ANA.person_id, tool, {"what": "lamp"}, LAMP, None, judged=judged)
    return replace(record, **how)


class Conversation:
    """A conversation of Ana's in which calls are made."""

    def __init__(self, routing: Routing) -> None:
        self.routing = routing
        numbers = iter(range(1, 100))
        audit = AuditLog(routing.database, routing.clock, Masker())
        self._ledger = AttemptLedger(
            routing.database, routing.outbox, routing.clock, lambda: f"t{next(numbers)}", audit
        )

    async def makes(self, record: CallRecord, outcome: Succeeded | Failed = MADE) -> None:
        """A call is made, and this comes of it."""
        begun = await self._ledger.begin(record)
        assert isinstance(begun, Begun)
        await self._ledger.finish(record, begun.attempt, outcome)

    async def cannot_send(self, record: CallRecord) -> None:
        """A call never leaves."""
        await self._ledger.unsent(record, Failed("workshop is unavailable"))

    async def shows(self, count: int) -> Sequence[Post]:
        """What it shows beside cards, in order, before a last change that marks the end: as many posts."""
        await self.makes(call("m9.9.9"), Succeeded("the last"))
        chat = self.routing.chat
        await until(lambda: any("the last" in str(post.content) for post in chat.shown.values()))
        shown = [post for post in chat.shown.values() if not isinstance(post.content, ApprovalView)]
        assert len(shown) == count + 1, shown
        return shown[:-1]

    async def line(self) -> ChangeView:
        """The one line that it shows."""
        (post,) = await self.shows(1)
        assert isinstance(post.content, ChangeView)
        return post.content


@pytest.fixture
async def conversation(routing: Routing) -> Conversation:
    """In which something waits."""
    await routing.ask()
    return Conversation(routing)


async def test_it_says_what_was_done_under_which_rule_and_what_came_of_it(conversation: Conversation) -> None:
    await conversation.makes(call("m2.0.0"))
    line = await conversation.line()
    assert (line.server, line.tool, line.arguments, line.requester) == ("workshop", "make", {"what": "lamp"}, "Ana")
    assert (line.result, line.result_tone) == ("Done: one lamp", "success")
    assert (line.rule, line.grant_id) == ("lamps are free", None)


async def test_a_failure_is_said_too(conversation: Conversation) -> None:
    await conversation.makes(call("m2.0.0"), Failed("no glass left"))
    line = await conversation.line()
    assert (line.result, line.result_tone) == ("Failed: no glass left", "error")


@pytest.mark.parametrize("record", [call("m2.0.0", LOOK), call("m2.0.0", reads=True)])
async def test_reading_leaves_nothing(conversation: Conversation, record: CallRecord) -> None:
    await conversation.makes(record)
    await conversation.shows(0)


async def test_what_was_never_sent_leaves_nothing(conversation: Conversation) -> None:
    await conversation.cannot_send(call("m2.0.0"))
    await conversation.shows(0)


async def test_what_was_approved_has_its_card_and_no_line(conversation: Conversation, routing: Routing) -> None:
    approval_id = await routing.ask(call_id="m2.0.0")
    await routing.click(ANA, approval_id)
    await conversation.makes(call("m2.0.0", approval_round=1))
    await conversation.shows(0)


async def test_what_was_done_with_a_personal_account_is_nobody_elses(conversation: Conversation) -> None:
    await conversation.makes(call("m2.0.0"), Succeeded("a private lamp", owner=ANA.person_id))
    assert (await conversation.line()).result == "Done."


async def test_what_the_model_said_before_stands_above_it(conversation: Conversation) -> None:
    await conversation.makes(call("m2.0.0", spoken=(Spoken("m2.0", "I make one.", final=False),)))
    said, line = await conversation.shows(2)
    assert (said.post_id, line.post_id) == ("said:m2.0", "change:t1")


async def test_it_is_shown_once_however_often_its_end_is_recorded(conversation: Conversation) -> None:
    await conversation.makes(call("m2.0.0"))
    await conversation._ledger.finish(call("m2.0.0"), 1, MADE)
    await conversation.line()


async def test_under_a_standing_approval_it_can_be_revoked_until_it_was(
    conversation: Conversation, routing: Routing
) -> None:
    await routing.click(ANA, await routing.ask(call_id="m2.0.0"), always_for=DURATIONS["8 h"])
    (grant,) = await routing.services.queries.standing_approvals(ANA)
    await conversation.makes(call("m3.0.0", standing=True))
    line = await conversation.line()
    assert (line.grant_id, line.rule) == (grant.grant_id, "")
    assert isinstance(await routing.services.approvals.revoke_standing_approval(grant.grant_id, ANA), Settled)
    updated = await until(lambda: [p for p in routing.chat.shown.values() if "change:" in p.post_id and p.revision > 1])
    assert isinstance(updated[0].content, ChangeView)
    assert updated[0].content.grant_id is None
