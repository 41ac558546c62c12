"""What is looked up before a call is judged, how grants and limits count, and what the audit log is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from bot.records.database import NotOnDisk
from graph import judging
from graph.interrupts import Approved, Expired, InterruptAnswer, Rejected, SignedIn, Superseded, Withdrawn
from graph.models.tool_calls import MOST_CALLS
from graph.ports import Failed, NotSent, SignInNeeded, Succeeded, Unavailable
from graph.state import Silent, Turn
from policies.approvers import StandingApproval, digest_of
from policies.model import Annotations, Deny, Mode, Risk, Verdict
from policies.policy_file import parse_policy
from policies.reasons import Reasons
from tests.graph.parts import Bench, calls, does, rig, tool, turn

LIVE = Silent()
ADMINS = "slack-group:T1:S1"
FOR_ADMINS = f"""
version: 1
rules:
  - {{name: others, match: {{tool: "other*", requester: ["slack-group:T1:S2"]}}, decide: allow}}
  - {{name: admins, match: {{tool: "free*", requester: ["{ADMINS}"]}}, decide: allow}}
  - {{name: nobody else, match: {{tool: "*"}}, decide: deny, reason: not here}}
"""
HARMLESS: dict[str, Any] = {
    "annotations": Annotations(destructive=False, open_world=False),
    "annotations_trusted": True,
}


def granted(name: str, until: float, person: str = "web:ana") -> StandingApproval:
    return StandingApproval(person, "s", name, digest_of(tool(name, **HARMLESS), {"k": 1}), until, (Risk.WRITES,))


@pytest.mark.parametrize(("answer", "called"), [(True, 1), (False, 0), (None, 0)])
async def test_the_requesters_groups_are_looked_up_before_judging(
    tmp_path: Path, *, answer: bool | None, called: int
) -> None:
    bench = Bench(["free"], groups={ADMINS: answer})
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert len(bench.called) == called
        assert bench.looked_up == [("web:ana", frozenset([ADMINS]))], "once, where nothing was waited for"


async def test_of_many_tools_those_worth_offering_are_found_with_one_looking_up() -> None:
    bench, many = Bench([], groups={ADMINS: True}), [tool("free"), tool("other"), tool("wipe")]
    ports: Any = SimpleNamespace(directory=bench, mode=Mode.DEFAULT)
    policy = parse_policy(
        FOR_ADMINS.replace("rules:", 'rules:\n  - {name: x, match: {tool: free, client: "y*"}, decide: deny}'), "p.yaml"
    )

    async def offered(client: str) -> list[str]:
        begun = Turn(**{**turn("m1"), "platform": "mcp", "client": client})
        facts = await judging.facts_for_listing(ports, policy, begun, many, 0.0)
        return [each.name for each in await judging.not_denied_anyway(policy, many, facts)]

    assert await offered("x") == ["free", "other"], "whether others may use it was not found out"
    assert bench.looked_up == [("web:ana", frozenset([ADMINS, "slack-group:T1:S2"]))]
    assert await offered("Y 2") == ["other"]


async def test_the_defaults_of_a_large_schema_are_filled_in_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a default of 9,000 objects, each with a default of its own, takes judging a tenth of a second."""
    judge, threads = judging.judge_with_reasons, set[int]()

    def noting(*given: Any) -> tuple[Verdict, Reasons]:
        threads.add(threading.get_ident())
        return judge(*given)

    monkeypatch.setattr(judging, "judge_with_reasons", noting)
    item = {"type": "object", "properties": {"name": {"default": "word"}}}
    schema = {"type": "object", "properties": {"items": {"default": [{}] * 9_000, "items": item}}}
    bench = Bench(["free"], schemas={"free": schema})
    async with rig(tmp_path, does("free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert len(bench.called) == 1
    assert threads
    assert threading.get_ident() not in threads


IN_WORKING_HOURS = """
version: 1
rules:
  - {name: in working hours, match: {tool: "*", time: {from: "09:00", until: "16:00", zone: UTC}}, decide: allow}
  - {name: later, match: {tool: "*"}, decide: deny, reason: nobody is here}
"""


async def test_a_call_is_judged_by_the_time_at_which_it_is_and_not_its_run(tmp_path: Path) -> None:
    """Rule 9: an earlier call of the same run may take until the working hours are over."""
    clock = [10 * 3600.0]

    async def takes_all_day(_arguments: Any) -> Succeeded:
        clock[0] = 20 * 3600.0
        return Succeeded("done")

    def answering(messages: Sequence[BaseMessage]) -> AIMessage:
        results = sum(m.type == "tool" for m in messages)
        return calls(["slow", "release"][results]) if results < 2 else AIMessage("done")

    bench = Bench(["slow", "release"], outcomes={"slow": takes_all_day})
    async with rig(tmp_path, answering, bench, policy=IN_WORKING_HOURS, clock=lambda: clock[0]) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert len(bench.called) == 1
    assert [unmade.status for unmade in bench.unmade] == ["denied"]


NOT_ANY_MORE = FOR_ADMINS.replace("decide: allow", "decide: deny, reason: not any more")


def _another_policy(bench: Bench) -> None:
    bench.rules = parse_policy(NOT_ANY_MORE, "policy.yaml")


def _the_same_policy_read_again(bench: Bench) -> None:
    bench.rules = parse_policy(FOR_ADMINS, "policy.yaml")
    bench.groups[ADMINS] = False


def _another_tool_of_that_name(bench: Bench) -> None:
    bench.schemas["free"] = {"type": "object", "properties": {"k": {"type": "integer"}}}
    bench.groups[ADMINS] = False


@pytest.mark.parametrize("change", [_another_policy, _the_same_policy_read_again, _another_tool_of_that_name])
async def test_a_call_is_judged_again_when_something_changes_after_the_gate(
    tmp_path: Path, change: Callable[[Bench], None]
) -> None:
    class Changing(Bench):
        async def not_asked(self, call_id: str, round_: int) -> None:
            if not self.unmade and len(self.looked_up) == 1:
                change(self)

    bench = Changing(["free"], groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert (bench.called, [u.status for u in bench.unmade]) == ([], ["denied"])
        assert len(bench.looked_up) == 3, "at the gate, before making it, and at the gate again"
        assert status.spoken[-1].text.startswith("Blocked by policy: not")


async def test_a_policy_that_changes_while_a_call_is_prepared_holds_for_it(tmp_path: Path) -> None:
    bench = Bench(["free"], groups={ADMINS: True})

    def preparing() -> Failed:
        _another_policy(bench)
        return Failed("not ready")

    bench.unready["free"] = preparing
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert [u.status for u in bench.unmade] == ["denied"]


async def test_a_call_that_takes_long_to_prepare_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "JUDGED_FOR", -1.0)
    bench = Bench(["free"], groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert (len(bench.called), len(bench.looked_up)) == (1, 2)


async def test_a_call_that_is_tried_again_is_judged_again(tmp_path: Path) -> None:
    bench = Bench(["free"], {"free": lambda _: NotSent("was away")}, groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert (len(bench.called), len(bench.looked_up)) == (2, 2)


async def test_a_call_is_judged_again_after_a_restart_between_the_gate_and_making_it(tmp_path: Path) -> None:
    class Dying(Bench):
        async def recall(self, call_id: str, *, repeatable: bool) -> Any:
            if len(self.looked_up) == 1:
                raise NotOnDisk("the process dies")
            return await super().recall(call_id, repeatable=repeatable)

    bench = Dying(["free"], groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=FOR_ADMINS) as r:
        with pytest.raises(NotOnDisk):
            await r.agent.begin(turn("m1"), "go", LIVE)
        bench.groups[ADMINS] = False
        bench.looked_up.append(("", frozenset()))
        await r.agent.go_on("t", "m1", "run", LIVE)
        assert (bench.called, [u.status for u in bench.unmade]) == ([], ["denied"])


async def test_an_approved_call_is_judged_once_more_after_the_wait(tmp_path: Path) -> None:
    asks = FOR_ADMINS.replace("decide: allow", "decide: ask")
    bench = Bench(["free"], groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=asks) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert len(bench.looked_up) == 1
        bench.looked_up.clear()
        await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        assert (len(bench.called), len(bench.looked_up)) == (1, 1)


async def test_edited_arguments_are_judged_once_after_the_wait(tmp_path: Path) -> None:
    asks = FOR_ADMINS.replace("decide: allow", "decide: ask")
    bench = Bench(["free"], groups={ADMINS: True})
    async with rig(tmp_path, does("free"), bench, policy=asks) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.looked_up.clear()
        edited = Approved(by=("Ana",), arguments={"k": 2}, edited_by="web:ana")
        await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: edited}, LIVE)
        assert (len(bench.called), len(bench.looked_up)) == (1, 1)


async def test_while_a_call_with_long_arguments_is_judged_others_have_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: under a thousand rules about it, an argument of 1 MB held the event loop for half a second."""
    others_at_work, judge = threading.Event(), judging.judge_with_reasons
    had_their_turn: list[bool] = []

    def judged(*what: Any) -> tuple[Verdict, Reasons]:
        asyncio.run_coroutine_threadsafe(_at_work(), loop)
        had_their_turn.append(others_at_work.wait(timeout=2.0))
        return judge(*what)

    async def _at_work() -> None:
        others_at_work.set()

    def writing_much(messages: Sequence[BaseMessage]) -> AIMessage:
        message = does("free")(messages)
        for call in message.tool_calls:
            call["args"] = {"k": "word " * 1_000}
        return message

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(judging, "judge_with_reasons", judged)
    bench = Bench(["free"])
    async with rig(tmp_path, writing_much, bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
    assert len(bench.called) == 1
    assert had_their_turn
    assert all(had_their_turn)


async def test_nothing_is_looked_up_for_a_tool_whose_rules_name_no_group(tmp_path: Path) -> None:
    bench = Bench(["plain"])
    async with rig(tmp_path, does("plain"), bench, policy=FOR_ADMINS) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert bench.looked_up == []


async def test_nothing_is_looked_up_for_grants_that_nobody_gave(tmp_path: Path) -> None:
    policy = f'version: 1\nrules:\n  - {{name: x, match: {{tool: "*"}}, decide: ask, approvers: ["{ADMINS}"]}}\n'
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench, policy=policy) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert (len(bench.asked), bench.looked_up) == (1, [])


async def test_what_the_requester_always_allows_themselves_runs_without_asking(tmp_path: Path) -> None:
    bench = Bench(["ask_a"], given=[granted("ask_a", until=60.0)], more=HARMLESS)
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert (status.interrupts, bench.asked, len(bench.called)) == ((), [], 1)
        assert bench.records[0].judged is not None
        assert bench.records[0].judged.verdict.rule == "always allow by web:ana until 1970-01-01 00:01 UTC"


@pytest.mark.parametrize(
    ("name", "grant"),
    [
        ("ask_a", granted("ask_a", until=0.0)),
        ("ask_a", granted("ask_a", until=60.0, person="web:ben")),
        ("ask_a", granted("ask_b", until=60.0)),
        ("ask_four", granted("ask_four", until=60.0)),
    ],
    ids=["over", "another's", "another tool", "four eyes"],
)
async def test_other_grants_change_nothing(tmp_path: Path, name: str, grant: StandingApproval) -> None:
    bench = Bench([name], given=[grant], more=HARMLESS)
    async with rig(tmp_path, does(name), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert (len(bench.asked), bench.called) == (1, [])


async def test_a_grant_that_was_revoked_while_the_call_waited_for_a_sign_in_is_asked_about(tmp_path: Path) -> None:
    def signing_in(_: Any) -> SignInNeeded:
        bench.given.clear()
        return SignInNeeded("https://x/", "")

    bench = Bench(["ask_a"], {"ask_a": signing_in}, given=[granted("ask_a", until=60.0)], more=HARMLESS)
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert [w.asked.kind for w in status.interrupts] == ["sign_in"]
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: SignedIn()}, LIVE)
        assert [w.asked.kind for w in status.interrupts] == ["approval"]


async def test_calls_over_the_limit_of_a_turn_are_not_made_and_the_model_is_told(tmp_path: Path) -> None:
    bench = Bench(["free"])
    async with rig(tmp_path, does("free", "free", "free"), bench, calls_a_turn=2) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert sorted(bench.called) == ["m1.0.0", "m1.0.1"]
        assert "Limited: one turn may make 2 tool calls, and this one was over that" in status.spoken[-1].text
        assert [(u.call_id, u.status) for u in bench.unmade] == [("m1.0.2", "limited")]
        await r.agent.begin(turn("m2"), "go", LIVE)
        assert sorted(bench.called)[2:] == ["m2.0.0", "m2.0.1"], "the next turn has its own"


async def test_the_limit_counts_the_calls_of_all_steps_of_a_turn(tmp_path: Path) -> None:
    bench = Bench(["free"])

    def again_and_again(messages: Any) -> AIMessage:
        done = [m for m in messages if m.type == "tool"]
        return AIMessage("enough") if len(done) == 3 else calls("free")

    async with rig(tmp_path, again_and_again, bench, calls_a_turn=2) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        assert bench.called == ["m1.0.0", "m1.1.0"]
        assert [u.call_id for u in bench.unmade] == ["m1.2.0"]


async def test_a_model_that_goes_on_over_the_limit_is_stopped(tmp_path: Path) -> None:
    """Rule 13: each call of each of its 25 answers stayed in the conversation, 1,600 in a turn."""
    bench = Bench(["free"])
    async with rig(tmp_path, lambda _: calls(*["free"] * MOST_CALLS), bench, calls_a_turn=2) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert len(r.model.seen) == 2, "it may say what is left once it was told"
        assert len(bench.called) == 2
        assert status.spoken[-1].text.startswith(f"I stopped after {2 * MOST_CALLS} tool calls; ")
        assert r.problems() == []


async def test_who_has_used_up_their_tokens_is_told_so_without_asking_the_model(tmp_path: Path) -> None:
    bench = Bench(["free"], used_up="You have used up your tokens.")
    async with rig(tmp_path, does("free"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        assert ([s.text for s in status.spoken], r.model.seen) == (["You have used up your tokens."], [])


async def test_what_an_answer_cost_is_counted(tmp_path: Path) -> None:
    bench = Bench([])
    usage: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    async with rig(tmp_path, lambda _: AIMessage("hi", usage_metadata=usage), bench) as r:
        await r.agent.begin(turn("m1"), "hello", LIVE)
        assert bench.tokens == 15


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Rejected(by="Ben", reason="no"), "Rejected by Ben. Reason: no"),
        (Expired(), "Expired: nobody decided in time. The call was not made."),
        (Withdrawn(by="Ana"), "Withdrawn by Ana, who asked for it."),
        (Superseded(reason="Ana wrote something new"), "Superseded: Ana wrote something new. The call was not made."),
    ],
)
async def test_a_call_that_was_not_approved_is_told_to_the_model_and_written_down_once(
    tmp_path: Path, answer: InterruptAnswer, told: str
) -> None:
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: answer}, LIVE)
        assert status.spoken[-1].text.startswith(told)
        (unmade,) = bench.unmade
        assert (unmade.status, unmade.approval_round) == (answer.kind, 1)
        assert unmade.judged is not None
        assert unmade.judged.verdict == bench.asked[0].ask


async def test_what_the_policy_denies_and_what_does_not_exist_is_written_down_with_the_reason(tmp_path: Path) -> None:
    bench = Bench(["deny_a"])
    async with rig(tmp_path, does("deny_a", "unheard_of"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        denied, unheard = sorted(bench.unmade, key=lambda u: u.call_id)
        assert denied.judged is not None
        verdict = denied.judged.verdict
        assert isinstance(verdict, Deny)
        assert (denied.status, verdict.source, denied.tool is not None) == ("denied", "policy.yaml:6", True)
        assert (unheard.status, unheard.tool, unheard.judged) == ("failed", None, None)


async def test_what_is_given_up_unmade_is_written_down_and_what_was_made_is_the_ledgers(tmp_path: Path) -> None:
    bench = Bench(["ask_a", "free"])
    async with rig(tmp_path, does("ask_a", "free"), bench) as r:
        await r.agent.begin(turn("m1"), "go", LIVE)
        await r.agent.settle("t", "m2", "Ana wrote something new")
        assert [(u.call_id, u.status) for u in bench.unmade] == [("m1.0.0", "superseded")]


async def test_a_call_whose_tool_has_gone_when_it_is_approved_is_written_down_as_failed(tmp_path: Path) -> None:
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.names = []
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        assert status.spoken[-1].text == "Failed: there is no tool called s__ask_a (any more)."
        assert [(u.status, u.approval_round) for u in bench.unmade] == [("failed", 1)]


async def test_a_call_whose_server_is_not_up_yet_when_it_is_approved_is_not_told_that_its_tool_is_gone(
    tmp_path: Path,
) -> None:
    """Rule 10: an error says what is the matter."""
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.names, bench.down = [], [Unavailable("s", "is being started")]
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        assert status.spoken[-1].text == "Failed: s is unavailable: it is being started. The call was not made."


async def test_a_call_that_was_started_before_its_tool_went_is_told_to_be_unknown(tmp_path: Path) -> None:
    bench = Bench(["ask_a"])
    async with rig(tmp_path, does("ask_a"), bench) as r:
        status = await r.agent.begin(turn("m1"), "go", LIVE)
        bench.names, bench.attempts["m1.0.0"] = [], "started"
        status = await r.agent.resume("t", "r1", {status.interrupts[0].interrupt_id: Approved(by=("Ana",))}, LIVE)
        assert status.spoken[-1].text.startswith("Outcome unknown")
        assert bench.unmade == []
