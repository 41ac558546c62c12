"""Rules that history speaks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.judging import Policy, judge
from policies.model import Allow, Annotations, Ask, Deny, Risk
from policies.policy_file import load_policy, parse_policy
from policies.suggestions import LEAST_APPROVED, LEAST_REJECTED, HistoricCall, Suggestion, suggestions
from tests.policies.builders import READS, WRITES, a_command, a_policy, a_tool
from tests.policies.past import past

DEFAULT = load_policy(Path(__file__).parents[2] / "policies" / "default.yaml")
DELETES = Annotations(read_only=False, destructive=True, open_world=False)


def only(found: list[Suggestion]) -> Suggestion:
    """The one that there is."""
    assert [(each.kind, each.name) for each in found] == [(found[0].kind, found[0].name)]
    return found[0]


def after(suggestion: Suggestion, call: HistoricCall) -> Allow | Ask | Deny:
    """What the file with a suggestion says of a call."""
    return judge(parse_policy(suggestion.policy, "new"), call.recorded.call, call.recorded.facts)


# ---------------------------------------------------------------------------------------------- looser


def test_what_people_always_approve_unchanged_may_be_allowed_and_stands_before_the_rule_that_asks() -> None:
    history = [past(title=f"t{number}") for number in range(12)]
    found = only(suggestions(DEFAULT, history))
    assert (found.kind, found.is_looser, found.before) == ("allow", True, "Requester confirms other changes")
    assert (found.decided, found.replayed, len(found.changed)) == (12, 12, 12)
    assert found.open_arguments == ("title",)
    assert after(found, history[0]) == Allow(
        rule=found.name, source=after(found, history[0]).source, version=after(found, history[0]).version
    )


def test_a_files_comments_and_other_rules_stay_as_they_are() -> None:
    found = only(suggestions(DEFAULT, [past(title=f"t{number}") for number in range(12)]))
    before, now = DEFAULT.text.split("\n"), found.policy.split("\n")
    added = found.rule.rstrip("\n").split("\n")
    at = now.index(added[0])
    assert now[:at] + now[at + len(added) + 1 :] == before
    assert now[at + len(added) + 1].lstrip().startswith("# The same as having no rule")
    assert [rule.name for rule in parse_policy(found.policy, "new").rules][-2:] == [
        found.name,
        "Requester confirms other changes",
    ]


def test_an_allow_is_limited_to_the_numbers_and_the_few_words_that_were_approved() -> None:
    history = [past(amount=number * 10, to="primary" if number % 2 else "team") for number in range(12)]
    found = only(suggestions(DEFAULT, history))
    assert isinstance(after(found, past(amount=110, to="team")), Allow)
    assert isinstance(after(found, past(amount=111, to="team")), Ask)
    assert isinstance(after(found, past(amount=20, to="other")), Ask)
    assert isinstance(after(found, past(to="team")), Ask)


def test_an_argument_that_was_hardly_ever_given_may_not_be_there() -> None:
    history = [past(title=f"t{number}") for number in range(12)] + [past(title="x", notify=True)]
    found = only(suggestions(DEFAULT, history))
    assert len(found.changed) == 12
    assert isinstance(after(found, history[-1]), Ask)


@pytest.mark.parametrize("outcome", ["rejected", "edited", "contested", "withdrawn"])
def test_a_tool_of_which_one_call_was_not_approved_as_it_was_is_not_allowed(outcome: str) -> None:
    history = [past(title=f"t{number}") for number in range(30)]
    assert suggestions(DEFAULT, history)
    assert not suggestions(DEFAULT, [*history, past(outcome, title="x")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "then",
    [{"annotations_trusted": False}, {"annotations": DELETES}, {"annotations": Annotations()}],
    ids=["was not trusted", "was said to delete", "said nothing of itself"],
)
def test_a_call_that_was_rejected_while_its_tool_was_known_less_well_is_not_allowed(then: dict[str, Any]) -> None:
    """The same call is covered from the day on which the operator trusts its server."""
    rejected = past("rejected", to="team")
    call = rejected.recorded.call
    before = replace(rejected, recorded=replace(rejected.recorded, call=replace(call, tool=replace(call.tool, **then))))
    history = [past(to="team")] * 12
    assert suggestions(DEFAULT, history)
    assert not suggestions(DEFAULT, [before, *history])


def test_what_tells_the_rejected_calls_apart_leaves_the_others() -> None:
    history = [past(title=f"t{number}", calendar="primary") for number in range(20)]
    history += [past("rejected", title=f"t{number}", calendar="hr") for number in range(3)]
    found = only(suggestions(DEFAULT, history))
    assert (found.kind, len(found.changed)) == ("allow", 20)
    assert isinstance(after(found, past(title="x", calendar="hr")), Ask)


def test_a_rejected_call_of_which_something_is_masked_is_taken_for_any_call() -> None:
    history = [past(title=f"t{number}", calendar="primary") for number in range(20)]
    whole = past("rejected", title="x", calendar="hr")
    assert suggestions(DEFAULT, [*history, whole])
    assert not suggestions(DEFAULT, [*history, replace(whole, recorded=replace(whole.recorded, is_masked=True))])


def test_people_or_agents_may_be_what_tells_calls_apart() -> None:
    history = [past(title=f"t{number}", agent="planner") for number in range(20)]
    history += [past("rejected", title=f"t{number}") for number in range(2)]
    assert "agent: planner" in only(suggestions(DEFAULT, history)).rule
    history = [past(title=f"t{number}", requester="web:ben") for number in range(20)]
    history += [past("rejected", title=f"t{number}") for number in range(2)]
    assert 'requester: ["web:ben"]' in only(suggestions(DEFAULT, history)).rule


def test_what_deletes_is_never_allowed_and_no_allow_fits_a_call_that_deletes_one_day() -> None:
    policy = a_policy("match: {}, decide: ask")
    assert not suggestions(policy, [past(says=DELETES, n=1) for _ in range(50)])
    assert not suggestions(policy, [past(of=a_tool(says=WRITES, trusted=False), n=1) for _ in range(50)])
    found = only(suggestions(policy, [past(n=1) for _ in range(50)]))
    assert isinstance(after(found, past(says=DELETES, n=1)), Ask)


def test_one_call_that_deletes_keeps_its_tool_from_being_allowed_where_nothing_tells_it_apart() -> None:
    history = [past(n=1) for _ in range(50)]
    found = only(suggestions(DEFAULT, [*history, past("allowed", says=DELETES, n=1)]))
    assert "destructiveHint: false" in found.rule  # which tells it apart


def test_a_command_line_is_not_allowed_since_nobody_knows_the_next_one() -> None:
    call = a_command("m365 planner list", says=WRITES, trusted=True)
    history = [past(of=call.tool, command="m365 planner add") for _ in range(30)]
    assert not suggestions(DEFAULT, history)


def test_a_command_that_deleted_keeps_its_tool_from_being_allowed_although_it_takes_none_any_more() -> None:
    history = [past(n=1) for _ in range(30)]
    took_one = replace(past(n=1).recorded.call.tool, input_schema=a_command("").tool.input_schema)
    deleted = past("allowed", of=took_one, command="rm -r all", n=1)
    assert not suggestions(DEFAULT, [deleted, *history])
    assert suggestions(DEFAULT, history)


def test_what_rules_want_two_people_for_is_not_allowed() -> None:
    four_eyes = a_policy("match: {}, decide: ask, approvers: [any], selfApproval: fourEyes")
    assert not suggestions(four_eyes, [past(n=1) for _ in range(30)])
    quorum = a_policy("match: {}, decide: ask, approvers: [any], quorum: 2")
    assert not suggestions(quorum, [past(n=1) for _ in range(30)])


def test_what_its_server_requires_approval_for_is_not_allowed_by_a_rule() -> None:
    tool = a_tool(requires_approval=True)
    assert not suggestions(a_policy("match: {}, decide: allow"), [past(of=tool, n=1) for _ in range(30)])


def test_few_approvals_or_many_that_nobody_decided_speak_for_nothing() -> None:
    assert not suggestions(DEFAULT, [past(n=1) for _ in range(LEAST_APPROVED - 1)])
    undecided = [past("expired", n=1) for _ in range(3)]
    assert not suggestions(DEFAULT, [*(past(n=1) for _ in range(LEAST_APPROVED)), *undecided])
    assert suggestions(DEFAULT, [*(past(n=1) for _ in range(30)), *undecided])


def test_a_call_that_a_rule_above_denies_stays_denied() -> None:
    history = [past(n=number) for number in range(20)]
    written = "version: 1\nrules:\n" + "".join(
        f"  - name: {name}\n    match: {match}\n    decide: {decide}\n"
        for name, match, decide in (("no", "{args: {n: {min: 100}}}", "deny"), ("ask", "{}", "ask"))
    )
    found = only(suggestions(parse_policy(written, "file"), history))
    assert isinstance(after(found, past(n=100)), Deny)


def test_a_file_of_which_all_rules_stand_on_one_line_gets_no_suggestion() -> None:
    policy = parse_policy("version: 1\nrules: [{name: all, match: {}, decide: ask}]", "file")
    assert suggestions(policy, [past(n=number) for number in range(20)]) == []


@pytest.mark.parametrize(
    ("wanted", "narrower"),
    [
        ("{min: 1}", '"n": {min: 100, max: 119}'),
        ("{max: 1000}", '"n": {max: 119, min: 100}'),
        ("{not: 7, present: true}", '"n": {not: 7, present: true, min: 100, max: 119}'),
    ],
)
def test_a_condition_of_the_rule_in_force_is_narrowed(wanted: str, narrower: str) -> None:
    written = f"version: 1\nrules:\n  - name: some\n    match: {{args: {{n: {wanted}}}}}\n    decide: ask\n"
    found = only(suggestions(parse_policy(written, "file"), [past(n=100 + number) for number in range(20)]))
    assert narrower in found.rule


def test_a_pattern_of_the_rule_in_force_is_narrowed_to_the_words_that_were_given() -> None:
    for wanted, narrower in (
        ('"te*"', '{glob: "te*", in: [team]}'),
        ("team", "team"),
        ("{in: [team, all]}", "{in: [team]}"),
    ):
        written = f"version: 1\nrules:\n  - name: some\n    match: {{args: {{to: {wanted}}}}}\n    decide: ask\n"
        found = only(suggestions(parse_policy(written, "file"), [past(to="team") for _ in range(20)]))
        assert f"to: {narrower}" in found.rule


def test_where_no_rule_fits_a_suggestion_is_the_last_rule_or_the_first_one() -> None:
    empty = parse_policy("version: 1\nrules: []\n", "file")
    found = only(suggestions(empty, [past(n=1) for _ in range(20)]))
    assert found.before == ""
    assert len(parse_policy(found.policy, "new").rules) == 1
    one = parse_policy(
        "version: 1\nrules:\n- name: other\n  match: {server: tasks}\n  decide: allow\n# the end\n", "file"
    )
    found = only(suggestions(one, [past(n=1) for _ in range(20)]))
    assert [rule.name for rule in parse_policy(found.policy, "new").rules] == ["other", found.name]
    assert found.policy.endswith("# the end\n")


def test_a_tool_of_which_rejected_calls_are_missing_gets_no_suggestion() -> None:
    history = [past(n=1) for _ in range(20)]
    assert not suggestions(DEFAULT, history, not_whole={("calendar", "create_event")})


def test_what_the_rule_in_force_wants_a_suggestion_wants_too() -> None:
    written = """
version: 1
rules:
  - name: large ones
    match: {server: calendar, tool: "create_*", args: {amount: {min: 100}}, platform: web}
    decide: ask
"""
    found = only(suggestions(parse_policy(written, "file"), [past(amount=100 + number) for number in range(20)]))
    assert found.before == "large ones"
    assert "platform: web" in found.rule
    assert isinstance(after(found, past(amount=50)), Ask)


def test_words_that_yaml_takes_for_something_else_stay_words() -> None:
    for word in ("true", "08", "null", "1e3", "a: b", "- x", "no", "#1", "{}", "“ü”", "it's"):
        history = [past(kind=word) for _ in range(20)]
        found = only(suggestions(DEFAULT, history))
        assert isinstance(after(found, past(kind=word)), Allow), found.rule
        assert isinstance(after(found, past(kind="another")), Ask), found.rule


# -------------------------------------------------------------------------------------------- stricter


def test_what_people_always_reject_may_be_denied() -> None:
    history = [past("rejected", n=number) for number in range(LEAST_REJECTED)]
    found = only(suggestions(DEFAULT, history))
    assert (found.kind, found.is_looser, found.decided) == ("deny", False, LEAST_REJECTED)
    assert isinstance(after(found, history[0]), Deny)


@pytest.mark.parametrize("outcome", ["unchanged", "edited", "contested", "allowed"])
def test_what_somebody_approved_or_what_ran_is_not_denied(outcome: str) -> None:
    history = [past("rejected", n=1) for _ in range(20)]
    assert not suggestions(DEFAULT, [*history, past(outcome, n=1)])  # type: ignore[arg-type]


def test_a_deny_can_be_for_what_the_rejected_calls_have_in_common() -> None:
    history = [past("rejected", title=f"t{number}", calendar="hr") for number in range(8)]
    history += [past(title=f"t{number}", calendar="primary") for number in range(5)]
    found = only(suggestions(DEFAULT, history))
    assert (found.kind, len(found.changed)) == ("deny", 8)
    assert isinstance(after(found, past(title="t", calendar="primary")), Ask)


def test_what_deletes_and_ran_without_anybody_being_asked_may_be_asked_about() -> None:
    policy = parse_policy(
        "version: 1\nrules:\n  - name: all of it\n    match: {server: calendar}\n    decide: allow\n", "file"
    )
    history = [past("allowed", says=DELETES, tool="drop", n=number, policy=policy) for number in range(4)]
    history += [past("allowed", says=READS, tool="look", n=number, policy=policy) for number in range(40)]
    found = only(suggestions(policy, history))
    assert (found.kind, found.is_looser, found.tool, found.risks[-1]) == ("ask", False, "drop", Risk.DESTROYS)
    assert isinstance(after(found, history[0]), Ask)
    assert isinstance(after(found, history[-1]), Allow)


def test_rules_of_no_file_get_no_suggestions() -> None:
    rules = replace(DEFAULT, text="")
    assert suggestions(rules, [past(n=1) for _ in range(20)]) == []
    assert suggestions(Policy(), [past(n=1) for _ in range(20)]) == []
