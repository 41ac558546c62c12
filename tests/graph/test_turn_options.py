"""What whoever begins a turn may ask for: each of it takes away from what the turn may do, and nothing gives more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graph.agents import ONLY_DEFAULT
from graph.calls import CLARIFICATION
from graph.interrupts import Approved
from graph.judging import QUOTE
from graph.options import is_stricter
from graph.ports import AccountNeeded, Given, QuestionPut, SignInNeeded, Succeeded
from graph.running import ThreadStatus
from graph.state import Silent, TurnOptions
from graph.workflow import at_start
from policies.model import Mode
from tests.graph.parts import POLICY, Bench, calls, does, rig, tool, turn

LIVE = Silent()
NOBODY = TurnOptions(asks=False)
ESCALATING = """
version: 1
rules:
  - {name: ask, match: {}, decide: ask, approvers: [any], selfApproval: fourEyes, expiresIn: %s,
     remindAfter: 10m, escalateAfter: 20m, escalateTo: ["web:eve"]}
"""


def offered(definitions: Sequence[dict[str, Any]]) -> list[str]:
    return [each["function"]["name"] for each in definitions]


def said(status: ThreadStatus) -> str:
    return status.spoken[-1].text


# -------------------------------------------------------------------------------------------------------- mode


@pytest.mark.parametrize("mode", ["readOnly", "no mode at all"])
async def test_a_turn_may_be_stricter_than_the_configured_mode(tmp_path: Path, mode: str) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1", options=TurnOptions(mode=mode)), "go", LIVE)
        assert said(status).startswith("Blocked by policy: In readOnly mode nothing may be changed")
        assert bench.unmade[0].judged is not None
        assert (bench.unmade[0].judged.facts.mode, bench.called) == (Mode.READ_ONLY, [])
        assert "You are in read-only mode" in r.model.seen[0][0].text
        await r.agent.begin(turn("m2"), "go", LIVE)
        assert bench.called == ["m2.0.0"], "the next turn is as configured"


async def test_a_turn_cannot_be_freer_than_the_configured_mode(tmp_path: Path) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free"), bench, mode=Mode.READ_ONLY) as r:
        for number, mode in enumerate(["default", "safeWrite"]):
            await r.agent.begin(turn(f"m{number}", options=TurnOptions(mode=mode)), "go", LIVE)
        assert ([each.status for each in bench.unmade], bench.called) == (["denied", "denied"], [])


async def test_a_turn_in_safe_write_needs_quotes_and_the_next_one_does_not(tmp_path: Path) -> None:
    """The model is offered the tools of each turn as that turn has them, also where both have the same tools."""
    bench = Bench(["run"])
    policy = "version: 1\nrules:\n  - {name: running, match: {tool: run}, decide: allow}\n"

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage(messages[-1].text)
        arguments = {"k": 1, QUOTE: "please run it now"}
        return AIMessage("", tool_calls=[{"name": "s__run", "args": arguments, "id": "call_0"}])

    async with rig(tmp_path, answering, bench, policy=policy) as r:
        await r.agent.begin(turn("m1"), "please run it now", LIVE)
        await r.agent.begin(turn("m2", options=TurnOptions(mode="safeWrite")), "please run it now", LIVE)
        status = await r.agent.begin(turn("m3", options=TurnOptions(mode="safeWrite")), "how are you?", LIVE)
        assert "needs a quote" in said(status)
        assert [record.arguments for record in bench.records] == [{"k": 1, QUOTE: "please run it now"}, {"k": 1}]
        assert [QUOTE in str(definitions) for definitions in r.model.bound] == [False, True]
        assert QUOTE not in r.model.seen[0][0].text
        assert QUOTE in r.model.seen[2][0].text


# ------------------------------------------------------------------------------------------------------- tools


async def test_a_turn_without_tools_offers_none_and_makes_no_call(tmp_path: Path) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free", CLARIFICATION), bench) as r:
        status = await r.agent.begin(turn("m1", options=TurnOptions(tools=False)), "go", LIVE)
        assert (status.interrupts, bench.called, bench.asked, r.model.bound) == ((), [], [], [])
        assert said(status).count("Failed: this turn has no tools. The call was not made.") == 2
        assert [(each.call_id, each.status) for each in bench.unmade] == [("m1.0.0", "failed")]
        assert "This turn has no tools" in r.model.seen[0][0].text
        assert r.problems() == []
        await r.agent.begin(turn("m2"), "hello", LIVE)
        assert offered(r.model.bound[-1]) == ["s__free", CLARIFICATION]


@pytest.mark.parametrize(("options", "first"), [(None, "policy_router"), (TurnOptions(tools=False), "task_executor")])
async def test_nothing_is_routed_in_a_turn_without_tools(options: TurnOptions | None, first: str) -> None:
    many = [tool(f"t{number}", category="ab"[number % 2]) for number in range(30)]

    async def available() -> Any:
        return many

    ports: Any = SimpleNamespace(tools=SimpleNamespace(available=available), agents=ONLY_DEFAULT)
    state: Any = {"turn": turn("m1", options=options), "messages": [HumanMessage("hello", id="m1")]}
    assert await at_start(ports)(state) == first


# -------------------------------------------------------------------------------------------------------- asks


async def test_where_nobody_is_asked_a_call_that_needs_approval_is_not_made(tmp_path: Path) -> None:
    bench = Bench(["ask_a", "free"])
    async with rig(tmp_path, does("ask_a", "free"), bench) as r:
        status = await r.agent.begin(turn("m1", options=NOBODY), "go", LIVE)
        assert (status.at_rest, status.interrupts, bench.asked, bench.called) == (True, (), [], ["m1.0.1"])
        (unmade,) = bench.unmade
        assert (unmade.call_id, unmade.status, unmade.approval_round) == ("m1.0.0", "skipped", None)
        assert unmade.judged is not None
        assert unmade.judged.verdict.rule == "ask"
        assert said(status).startswith("hitl_skipped_non_streaming: people have to approve this call")
        assert said(status).endswith("free done")
        assert "In this turn nobody can be asked anything" in r.model.seen[0][0].text
        status = await r.agent.begin(turn("m2"), "go", LIVE)
        assert [each.asked.kind for each in status.interrupts] == ["approval"], "the next turn asks"


async def test_where_nobody_is_asked_the_model_cannot_ask_either(tmp_path: Path) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does(CLARIFICATION), bench) as r:
        status = await r.agent.begin(turn("m1", options=NOBODY), "go", LIVE)
        assert status.interrupts == ()
        assert said(status).startswith("Failed: nobody can answer now")
        assert [offered(definitions) for definitions in r.model.bound] == [["s__free"]]
        await r.agent.begin(turn("m2"), "hello", LIVE)
        assert offered(r.model.bound[-1]) == ["s__free", CLARIFICATION]


async def test_without_tools_and_questions_the_model_is_offered_no_empty_list(tmp_path: Path) -> None:
    async with rig(tmp_path, does(), Bench([])) as r:
        await r.agent.begin(turn("m1", options=NOBODY), "hello", LIVE)
        assert r.model.bound == []


@pytest.mark.parametrize("needed", [AccountNeeded("github"), SignInNeeded("https://x/", "")])
@pytest.mark.parametrize("sent", [True, False], ids=["its answer", "before it is sent"])
async def test_where_nobody_is_asked_a_call_fails_that_needs_an_account(
    tmp_path: Path, needed: Any, *, sent: bool
) -> None:
    bench = Bench(["free"], {"free": needed} if sent else {}, {} if sent else {"free": lambda: needed})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1", options=NOBODY), "go", LIVE)
        assert (status.interrupts, bench.needed, len(bench.called)) == ((), [], int(sent))
        assert said(status).startswith("Failed: Ana has to connect an account for s first")
        assert [each.status for each in bench.unmade] == ["failed"]


async def test_where_nobody_is_asked_a_tool_that_asks_is_told_that_nobody_answers(tmp_path: Path) -> None:
    question = QuestionPut(1, "Which size?", (), {"type": "object"})
    outcomes = iter([question, Succeeded("nothing ordered")])
    bench = Bench(["free"], {"free": lambda _: next(outcomes)})
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1", options=NOBODY), "go", LIVE)
        assert (status.interrupts, said(status)) == ((), "nothing ordered")
        assert bench.callers[-1].answers == (Given(1, "cancel", digest=question.digest),)


# -------------------------------------------------------------------------------------------- approval_seconds


@pytest.mark.parametrize(
    ("rule", "seconds", "expires"),
    [("never", 120, 120.0), ("24h", 120.0, 120.0), ("30m", 7200.0, 1800.0), ("24h", -1.0, 0.0)],
)
async def test_approvals_of_a_turn_expire_when_it_says_at_the_latest(
    tmp_path: Path, rule: str, seconds: float, expires: float
) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free"), bench, policy=ESCALATING % rule) as r:
        options = TurnOptions(approval_seconds=seconds)
        status = await r.agent.begin(turn("m1", options=options), "go", LIVE)
        (asked,) = bench.asked
        assert asked.ask.expires_in == expires
        await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ben",))}, LIVE)
        assert (bench.called, len(bench.asked)) == (["m1.0.0"], 1), "the approval is as good as any"


# ---------------------------------------------------------------------------------------------------- nothing


@pytest.mark.parametrize(
    ("options", "of_the_turn", "stricter"),
    [
        (TurnOptions(), None, False),
        (TurnOptions(), TurnOptions(tools=False), False),
        (TurnOptions(mode="default", tools=True, asks=True), None, False),
        (TurnOptions(mode="readOnly"), None, True),
        (TurnOptions(mode="readOnly"), TurnOptions(mode="safeWrite"), True),
        (TurnOptions(mode="safeWrite"), TurnOptions(mode="safeWrite"), False),
        (TurnOptions(mode="safeWrite"), TurnOptions(mode="readOnly"), False),
        (TurnOptions(tools=False), TurnOptions(mode="readOnly"), True),
        (TurnOptions(tools=False), TurnOptions(tools=False), False),
        (TurnOptions(asks=False), TurnOptions(approval_seconds=5.0), True),
        (TurnOptions(approval_seconds=5.0), None, True),
        (TurnOptions(approval_seconds=5.0), TurnOptions(approval_seconds=5.0), False),
    ],
)
def test_options_are_stricter_than_a_turn_where_they_take_away_what_it_may_do(
    options: TurnOptions, of_the_turn: TurnOptions | None, *, stricter: bool
) -> None:
    assert is_stricter(options, turn("m1", options=of_the_turn)) is stricter


@pytest.mark.parametrize("options", [None, TurnOptions(), TurnOptions(tools=True, asks=True, mode="default")])
async def test_a_turn_without_options_is_like_any_other(tmp_path: Path, options: TurnOptions | None) -> None:
    bench = Bench(["ask_a", "free"])
    async with rig(tmp_path, does("ask_a", "free"), bench, policy=POLICY) as r:
        status = await r.agent.begin(turn("m1", options=options), "go", LIVE)
        assert [each.asked.kind for each in status.interrupts] == ["approval"]
        assert (bench.called, bench.asked[0].ask.expires_in) == (["m1.0.1"], 24 * 3600.0)
        assert offered(r.model.bound[0]) == ["s__ask_a", "s__free", CLARIFICATION]


async def test_the_options_of_a_turn_outlive_what_it_waits_for(tmp_path: Path) -> None:
    """They are kept with the turn: what the model proposes after an approval is judged as strictly as before."""
    bench = Bench(["ask_a"])

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        results = [message.text for message in messages if message.type == "tool"]
        return calls("ask_a") if len(results) < 2 else AIMessage(results[-1])

    options = TurnOptions(approval_seconds=60.0, mode="default")
    async with rig(tmp_path, answering, bench) as r:
        status = await r.agent.begin(turn("m1", options=options), "go", LIVE)
    async with rig(tmp_path, answering, bench) as r:
        await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        assert [asked.ask.expires_in for asked in bench.asked] == [60.0, 60.0]
