"""What two people, and three, can do with an approval, wherever they are.

A platform shows what each of its buttons and forms does, and what it shows alone. What the rest of a rule does once it
was clicked is the same for all, and told once, at the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.both.conftest import Both
from tests.both.people import NOT_OFFERED, InSlack, InTeams, OnPage, Someone
from tests.fakes.teams.server import ANA, BEN, CHLOE, TENANT
from tests.slack.product.talk import Talk as SlackTalk
from tests.support.product import product_here
from tests.support.slack_people import SlackPerson
from tests.support.teams_people import TeamsPerson
from tests.support.visitor import new_thread, visiting
from tests.teams.product.talk import Talk as TeamsTalk

PEOPLE = {
    "slack": ("slack:T1:U1", "slack:T1:U2", "slack:T1:U3"),
    "teams": tuple(f"teams:{TENANT}:{user}" for user in (ANA, BEN, CHLOE)),
    "web": ("web:ana", "web:ben", "web:chloe"),
}
"""Ana, Ben and Chloe, by platform."""
UNKNOWN = {
    "slack": "slack-group:T1:S404",
    "teams": f"entra-group:{TENANT}:e1000000-0000-4000-8000-0000000000e9",
    "web": "slack-group:T1:S1",
}
"""Groups of which nothing can be found out."""


@dataclass
class Scene:
    """A platform where Ana, Ben and Chloe see the same conversation."""

    both: Both
    name: str
    stack: AsyncExitStack
    url: str = ""

    def rules(self, *rules: str) -> None:
        """The policy; `ANA`, `BEN`, `CHLOE` and `UNKNOWN` stand for what they are called here."""
        text = "\n".join(
            ["version: 1", "rules:", *(f"  - {{name: rule {n}, {rule}}}" for n, rule in enumerate(rules, 1))]
        )
        names = dict(zip(("ANA", "BEN", "CHLOE"), PEOPLE[self.name], strict=True)) | {"UNKNOWN": UNKNOWN[self.name]}
        for name, meant in names.items():
            text = text.replace(name, f'"{meant}"')
        self.both.home.policy(text)

    async def open(self) -> tuple[Someone, Someone, Someone]:
        """Start the product: Ana, Ben and Chloe."""
        self.url = url = await self.stack.enter_async_context(product_here(self.both.home))
        slack, teams = self.both.transports(url)
        match self.name:
            case "slack":
                talk = SlackTalk(self.both.slack, SlackPerson(self.both.slack, "T1", "U1", slack), "C1")
                others = (_Following(talk, SlackPerson(self.both.slack, "T1", user, slack)) for user in ("U2", "U3"))
                return InSlack(talk), *map(InSlack, others)  # type: ignore[return-value]  # three they are
            case "teams":
                group = self.both.teams.group
                people = (TeamsPerson(self.both.teams, user, teams) for user in (ANA, BEN, CHLOE))
                return tuple(InTeams(TeamsTalk(self.both.teams, person, group)) for person in people)  # type: ignore[return-value]  # likewise
            case _:
                thread_id, people = new_thread(), []
                for name in ("ana", "ben", "chloe"):
                    visitor = await self.stack.enter_async_context(visiting(url, name))
                    people.append(OnPage(await self.stack.enter_async_context(visitor.thread(thread_id))))
                return tuple(people)  # type: ignore[return-value]  # likewise

    async def alone(self, name: str) -> OnPage:
        """Somebody at the page in a conversation of their own."""
        visitor = await self.stack.enter_async_context(visiting(self.url, name))
        return OnPage(await self.stack.enter_async_context(visitor.thread(new_thread())))


class _Following(SlackTalk):
    """The thread that somebody else begins."""

    def __init__(self, begun: SlackTalk, person: SlackPerson) -> None:
        super().__init__(begun.slack, person, begun.channel)
        self._begun = begun

    @property
    def thread_ts(self) -> str:  # type: ignore[override]  # a field there
        return self._begun.thread_ts

    @thread_ts.setter
    def thread_ts(self, _: str) -> None:
        return


@pytest.fixture(params=["slack", "teams", "web"])
async def scene(request: pytest.FixtureRequest, both: Both) -> AsyncIterator[Scene]:
    both.home.variables["WEB_ENABLED"] = "true"
    async with AsyncExitStack() as stack:
        yield Scene(both, request.param, stack)


AT_THE_PAGE = pytest.mark.parametrize("scene", ["web"], indirect=True)


@AT_THE_PAGE
async def test_four_eyes(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], selfApproval: fourEyes")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ana.is_refused("someone else must approve")
    assert scene.both.shop.done == []
    await ben.sees("lamp")
    await ben.approves()
    await ana.sees_it_end("approved", "Ben")
    await ana.hears("made lamp")
    assert scene.both.shop.done == ["make lamp 1"]


async def test_a_quorum_of_two(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], quorum: 2")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ana.approves()
    await ana.sees_on_it("1 of 2 approved: Ana")
    await ana.is_refused("already approved this")
    assert scene.both.shop.done == []
    await ben.sees("lamp")
    await ben.approves()
    await ana.sees_it_end("approved", "Ana", "Ben")
    await ana.hears("made lamp")
    assert scene.both.shop.done == ["make lamp 1"]


@AT_THE_PAGE
async def test_a_veto(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], quorum: 2")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ana.approves()
    await ben.sees("lamp", "Ana")
    await ben.rejects("not today")
    await ana.sees_it_end("rejected", "Ben", "not today")
    await ana.hears("Results:", "not today")
    assert scene.both.shop.done == []


async def test_a_foreign_click(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [BEN]")
    ana, ben, chloe = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    chloe.card = ana.card = ben.card
    for somebody in (chloe, ana):
        await somebody.is_refused("can’t approve this")
    assert scene.both.shop.done == []
    await ben.approves()
    await ben.sees_it_end("approved", "Ben")


async def test_a_group_that_cannot_be_looked_up(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [UNKNOWN]")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    # On the page, nobody else sees what they are not known to decide.
    for somebody in (ana, ben) if scene.name != "web" else (ana,):
        await somebody.sees("lamp")
        await somebody.is_refused("Couldn’t check")
    assert scene.both.shop.done == []


@AT_THE_PAGE
async def test_a_reminder_comes_once_while_it_waits(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [BEN], remindAfter: 1s")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    await ana.hears("Reminder", "workshop: make", "Ana")
    await ben.approves()
    await ana.hears("Results: made lamp")


@AT_THE_PAGE
async def test_an_escalation_gives_it_to_somebody_else_and_lets_them_decide(scene: Scene) -> None:
    rule = "match: {tool: make}, decide: ask, approvers: [BEN], escalateAfter: 2s, escalateTo: [CHLOE]"
    scene.rules(rule)
    ana, ben, chloe = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    chloe.card = ben.card
    await chloe.is_refused("can’t approve this")
    await chloe.is_given("lamp")
    await chloe.approves()
    await ben.sees_it_end("approved", "Chloe")


async def test_somebody_else_is_asked_and_gets_it_themselves(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [BEN, CHLOE]")
    ana, ben, chloe = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    refused = NOT_OFFERED if scene.name == "slack" else "can’t approve this"
    assert refused in await ben.asks_somebody_else(ana.person_id)
    assert "Chloe" in await ben.asks_somebody_else(chloe.person_id)
    await ben.sees_on_it("Chloe")
    await chloe.is_given("lamp", "Ana")
    await chloe.approves()
    await ben.sees_it_end("approved", "Chloe")
    await chloe.sees_it_end("approved", "Chloe")
    await ana.hears("Results: made lamp")


@pytest.mark.parametrize("scene", ["slack", "web"], indirect=True)  # in Teams there is no such button for them
async def test_a_requester_who_may_not_decide_asks_somebody_who_may(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [BEN, CHLOE]")
    ana, ben, chloe = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    await ana.sees("lamp")
    assert "Asked Chloe" in await ana.asks_somebody_else(chloe.person_id)
    await chloe.is_given("lamp", "Ana")
    await ana.is_refused("can’t approve this")
    assert scene.both.shop.done == []


@AT_THE_PAGE
async def test_it_expires_and_everybody_is_told(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], expiresIn: 2s")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ben.sees("lamp")
    await ben.sees_it_end("expired")
    await ana.hears("Results:", "expired")
    assert scene.both.shop.done == []


async def test_what_is_always_allowed_runs_until_it_is_revoked_and_for_nobody_else(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [requester], alwaysAllow: true")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ana.always_allows("1 h")
    await ana.hears("Results: made lamp")
    await ana.asks("use make what=lamp count=2; make what=lamp")
    await ana.sees("2")
    await _until(lambda: scene.both.shop.done == ["make lamp 1"] * 2)
    await ana.approves()
    await _until(lambda: len(scene.both.shop.done) == 3)
    if scene.name == "web":
        ben = await scene.alone("ben")
    await ben.asks("use make what=lamp")
    await ben.sees("Ben", "lamp")
    await ben.withdraws()
    await ana.revokes()
    await ana.asks("use make what=lamp")
    await ana.sees("Ana", "lamp")
    assert len(scene.both.shop.done) == 3


async def test_an_edit_into_what_is_stricter_asks_again(scene: Scene) -> None:
    scene.rules(
        "match: {tool: make, args: {what: gold*}}, decide: ask, approvers: [any], selfApproval: fourEyes",
        "match: {tool: make}, decide: ask, approvers: [requester]",
    )
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ana.edits(what="goldring")
    await ana.sees("goldring", "someone other than Ana")
    await ana.is_refused("someone else must approve")
    assert scene.both.shop.done == []
    await ben.sees("goldring", "someone other than Ana")
    await ben.approves()
    await ana.hears("Results: Approved with changes", "made goldring")
    assert scene.both.shop.done == ["make goldring 1"]


async def test_an_edit_that_others_have_to_approve_is_never_shown_as_approved_however_long_the_run_is_busy(
    scene: Scene,
) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], quorum: 2", "match: {}, decide: allow")
    ana, ben, chloe = await scene.open()
    await ana.asks("use make_slowly what=table; make what=lamp")
    await asyncio.gather(*(somebody.sees("lamp") for somebody in (ana, ben, chloe)))
    await scene.both.shop.started.wait()
    await ana.approves()
    await ben.edits(what="chair")
    told = ("Ben", "edited it, so someone else must approve.")
    await chloe.sees_it_end("void", *told)
    await chloe.is_refused(*told)
    scene.both.shop.may_end.set()
    await chloe.sees("chair", "2 people")
    assert scene.both.shop.done == ["make_slowly table"]


async def test_the_requester_withdraws_and_nobody_else_can(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any], selfApproval: fourEyes")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ben.sees("lamp")
    await ana.withdraws()
    await ben.sees_it_end("withdrawn")
    await ana.hears("Results:", "withdr")
    assert scene.both.shop.done == []


@AT_THE_PAGE
async def test_of_two_who_approve_at_once_one_settles_it(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any]")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ben.sees("lamp")
    await asyncio.gather(*(somebody.approves() for somebody in (ana, ben, ben, ana)))
    await ana.sees_it_end("approved")
    await ana.hears("made lamp")
    assert scene.both.shop.done == ["make lamp 1"]


@AT_THE_PAGE
async def test_of_an_approval_and_a_withdrawal_at_once_one_settles_it(scene: Scene) -> None:
    scene.rules("match: {tool: make}, decide: ask, approvers: [any]")
    ana, ben, _ = await scene.open()
    await ana.asks("use make what=lamp")
    await ana.sees("lamp")
    await ben.sees("lamp")
    await asyncio.gather(ben.approves(), ana.withdraws(), return_exceptions=True)
    await ana.hears("Results:")
    await ben.sees_it_end("approved" if scene.both.shop.done else "withdrawn")
    assert scene.both.shop.done in ([], ["make lamp 1"])


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
