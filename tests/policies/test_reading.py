from __future__ import annotations

import hashlib
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.conditions import Equals, Glob, Hours
from policies.judging import Policy, PolicyError
from policies.model import Allow, Argument, Ask, Deny, Match, Mode
from policies.policy_file import load_policy, parse_policy

HEAD = "version: 1\nrules:\n  - name: r\n    match: {}\n"  # four lines; what follows begins on line 5


def reading(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "policy.yaml")
    return caught.value


def verdict_of(policy: Policy) -> Allow | Ask | Deny:
    """The verdict of its one rule, without where that stands."""
    [rule] = policy.rules
    return rule.verdict.model_copy(update={"source": "", "version": ""})


def test_every_key_of_an_asking_rule_is_read() -> None:
    policy = parse_policy(
        dedent("""\
            version: 1
            rules:
              - name: deleting needs a second pair of eyes
                match:
                  server: calendar
                  tool: "delete_*"
                  args: {calendar_id: primary, count: 3, tags: [a, {b: true}]}
                  annotations: {readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true}
                  mode: safeWrite
                  platform: slack
                  channel: "slack:T1:C1"
                  requester: "slack-group:T1:S1"
                  command: "* remove*"
                  time: {days: [mon-wed, sun], from: "08:00", until: "18:30", zone: Europe/Berlin}
                decide: ask
                reads: true
                approvers: [requester, channel, any, "slack:T1:U2", "slack-group:T1:S123", "entra-group:t1:7f"]
                selfApproval: fourEyes
                quorum: 2
                expiresIn: 15m
                rejections: 3
                remindAfter: 5m
                escalateAfter: 10m
                escalateTo: ["slack:T1:U9", "web:chloe"]
                reasonRequired: true
                editable: [start, name]
                routeTo: ["slack:T1:C2"]
                alwaysAllow: false
            """),
        "policy.yaml",
    )
    [rule] = policy.rules
    assert rule.match == Match(
        server="calendar",
        tool="delete_*",
        args=(
            Argument("calendar_id", Glob("primary")),
            Argument("count", Equals(3)),
            Argument("tags", Equals(["a", {"b": True}])),
        ),
        annotations={"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True},
        mode=Mode.SAFE_WRITE,
        platform="slack",
        channel="slack:T1:C1",
        requester=("slack-group:T1:S1",),
        command="* remove*",
        time=Hours("Europe/Berlin", frozenset({0, 1, 2, 6}), 8 * 60, 18 * 60 + 30),
    )
    assert verdict_of(policy) == Ask(
        rule="deleting needs a second pair of eyes",
        approvers=("requester", "channel", "any", "slack:T1:U2", "slack-group:T1:S123", "entra-group:t1:7f"),
        self_approval="fourEyes",
        quorum=2,
        reads=True,
        rejections=3,
        expires_in=900.0,
        remind_after=300.0,
        escalate_after=600.0,
        escalate_to=("slack:T1:U9", "web:chloe"),
        reason_required=True,
        editable=("start", "name"),
        route_to=("slack:T1:C2",),
        always_allow=False,
    )


def test_an_asking_rule_that_says_nothing_more_asks_the_requester_for_a_day() -> None:
    asked = verdict_of(parse_policy(HEAD + "    decide: ask", "p"))
    assert asked == Ask(rule="r", approvers=("requester",), expires_in=86400.0, rejections=1, always_allow=None)


def test_allow_and_deny_are_read() -> None:
    assert verdict_of(parse_policy(HEAD + "    decide: allow", "p")) == Allow(rule="r")
    denied = verdict_of(parse_policy(HEAD + "    decide: deny\n    reason: Not from chat.", "p"))
    assert denied == Deny(rule="r", reason="Not from chat.")
    bare = verdict_of(parse_policy(HEAD + "    decide: deny", "p"))
    assert bare == Deny(rule="r", reason="The rule “r” does not allow this.")


def test_a_rule_may_say_that_what_it_is_about_only_reads() -> None:
    for decide in ("allow", "ask"):
        written = f"version: 1\nrules:\n- {{name: r, match: {{tool: x}}, decide: {decide}, reads: true}}"
        verdict = verdict_of(parse_policy(written, "p"))
        assert not isinstance(verdict, Deny)
        assert verdict.reads


@pytest.mark.parametrize(
    ("written", "seconds"), [("30s", 30), ("15m", 900), ("24h", 86400), ("7d", 604800), ("never", None)]
)
def test_durations_are_read(written: str, seconds: float | None) -> None:
    [rule] = parse_policy(HEAD + f"    decide: ask\n    expiresIn: {written}", "p").rules
    assert isinstance(rule.verdict, Ask)
    assert rule.verdict.expires_in == seconds


def test_a_date_and_the_word_yes_stay_text() -> None:
    [rule] = parse_policy(
        "version: 1\nrules:\n- {name: r, match: {args: {day: 2026-11-21, sure: yes, at: 1:30}}, decide: allow}", "p"
    ).rules
    assert rule.match.args == (
        Argument("day", Glob("2026-11-21")),
        Argument("sure", Glob("yes")),
        Argument("at", Glob("1:30")),
    )


MISTAKES = [
    ("nothing at all", "", 1, "empty"),
    ("only a comment", "# hello", 1, "empty"),
    ("a list instead of a mapping", "- a", 1, "must be a mapping"),
    ("no version", "rules: []", 1, "“version” is missing"),
    ("an unknown version", "rules: []\nversion: 2", 2, "version 2 is unknown"),
    ("a version in words", "version: one\nrules: []", 1, "whole number"),
    ("a true version", "version: true\nrules: []", 1, "whole number"),
    ("no rules", "version: 1", 1, "“rules” is missing"),
    ("rules that are no list", "version: 1\nrules: {}", 2, "must be a list"),
    ("a misspelt top key", "version: 1\nrulez: []", 2, "did you mean “rules”"),
    ("a rule that is text", "version: 1\nrules:\n  - hello", 3, "must be a mapping"),
    ("a tab", "version: 1\nrules:\n\t- a", 3, "not valid YAML"),
    ("an open bracket", "version: 1\nrules: [\n\n", 4, "not valid YAML"),
    ("a second document", "version: 1\n---\nrules: []", 2, "not valid YAML"),
    ("an alias", "version: 1\nrules:\n  - *a", 3, "aliases"),
    ("an anchor", "version: 1\nrules:\n  - &a {}", 3, "anchors"),
    ("a hidden line break", "version: 1\nrules: # x\x85  - {}\n", 2, "U+0085 is not allowed"),
    ("one of Unicode", "version: 1\nrules: # x\u2028  - {}\n", 2, "U+2028 is not allowed"),
    ("a tag", "version: 1\nrules: !!python/object:os.system []", 2, "tag"),
    ("a control character", "version: 1\n# \x07", 2, "U+0007"),
    ("an impossible escape", 'version: 1\nrules: "\\UFFFFFFFF"', 2, "means nothing"),
    ("a lone surrogate", 'version: 1\nrules:\n  - name: "\\uD800"', 3, "surrogate"),
    ("a number beyond all measure", "version: 1e999\nrules: []", 1, "too large"),
    ("a key that is a number", "version: 1\n5: 3", 2, "must be text"),
    ("brackets a thousand deep", "version: 1\nrules: " + "[" * 1000, 2, "too deeply"),
    ("a rule without a match", "version: 1\nrules:\n  - name: r\n    decide: allow", 3, "“match” is missing"),
    ("a rule without a name", "version: 1\nrules:\n  - match: {}\n    decide: allow", 3, "“name” is missing"),
    ("a rule without a decision", HEAD, 3, "“decide” is missing"),
    ("an empty name", "version: 1\nrules:\n  - name: ' '\n    match: {}\n    decide: allow", 3, "name is empty"),
    ("a name twice", HEAD + "    decide: allow\n  - {name: r, match: {}, decide: deny}", 6, "is taken"),
    ("a key twice", HEAD + "    decide: allow\n    decide: deny", 6, "written twice, first on line 5"),
    ("an unknown decision", HEAD + "    decide: maybe", 5, "one of allow, ask, deny"),
    ("an unknown key", HEAD + "    decide: ask\n    approver: [any]", 6, "did you mean “approvers”"),
    ("approvers of an allow", HEAD + "    decide: allow\n    approvers: [any]", 6, "belongs to “decide: ask”"),
    ("a reason to ask", HEAD + "    decide: ask\n    reason: x", 6, "belongs to “decide: deny”"),
    ("routeTo", HEAD + "    decide: ask\n    routeTo: [a]", 6, "a place to route to must be a channel or a person"),
    ("group", HEAD + "    decide: ask\n    routeTo: ['slack-group:T1:S1']", 6, "must be a channel or a person"),
    ("no approver at all", HEAD + "    decide: ask\n    approvers: []", 6, "approvers is empty"),
    ("an approver nobody knows", HEAD + "    decide: ask\n    approvers: [reqester]", 6, "“reqester”"),
    ("an approver in the third line", HEAD + "    decide: ask\n    approvers:\n      - any\n      - bob", 8, "“bob”"),
    ("an approver twice", HEAD + "    decide: ask\n    approvers: [any, any]", 6, "twice"),
    ("approvers as text", HEAD + "    decide: ask\n    approvers: any", 6, "must be a list"),
    ("an unknown self approval", HEAD + "    decide: ask\n    selfApproval: foureyes", 6, "one of confirm, fourEyes"),
    ("a quorum of none", HEAD + "    decide: ask\n    quorum: 0", 6, "at least 1"),
    ("half a quorum", HEAD + "    decide: ask\n    quorum: 1.5", 6, "whole number"),
    ("a duration without a unit", HEAD + "    decide: ask\n    expiresIn: 30", 6, "needs a unit"),
    ("a duration of nothing", HEAD + "    decide: ask\n    expiresIn: 0s", 6, "longer than nothing"),
    ("a duration in words", HEAD + "    decide: ask\n    expiresIn: soon", 6, "not a duration"),
    ("a duration of centuries", HEAD + "    decide: ask\n    expiresIn: 99999d", 6, "never instead"),
    ("a reason required, yes", HEAD + "    decide: ask\n    reasonRequired: yes", 6, "true or false, not “yes”"),
    ("editable numbers", HEAD + "    decide: ask\n    editable: [1]", 6, "put it in quotes"),
    (
        "a quorum that one person cannot make",
        HEAD + "    decide: ask\n    approvers: [requester]\n    quorum: 2",
        7,
        "at most 1 of the named",
    ),
    (
        "a quorum larger than the named people",
        HEAD + '    decide: ask\n    quorum: 3\n    approvers: ["web:a", "web:b"]',
        6,
        "at most 2 of the named",
    ),
    (
        "a quorum that needs the requester's own eyes",
        HEAD + '    decide: ask\n    selfApproval: fourEyes\n    quorum: 2\n    approvers: [requester, "web:b"]',
        7,
        "at most 1 of the named",
    ),
    ("four eyes without others", HEAD + "    decide: ask\n    selfApproval: fourEyes", 6, "no one else"),
]


@pytest.mark.parametrize(("text", "line", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_refused_with_its_line_and_reason(text: str, line: int, says: str) -> None:
    error = reading(text)
    assert (error.source, error.line) == ("policy.yaml", line)
    assert says in error.reason
    assert str(error) == f"policy.yaml, line {line}: {error.reason}"


def test_a_requester_known_by_name_counts_once_among_the_approvers() -> None:
    rule = "version: 1\nrules:\n- {name: r, match: {requester: 'web:a'}, decide: ask, approvers: [requester, 'web:a'],"
    assert "at most 1" in reading(rule + " quorum: 2}").reason
    assert "no one else" in reading(rule + " selfApproval: fourEyes}").reason


def test_open_ended_approvers_may_make_any_quorum() -> None:
    for approver in ("any", "channel", "'slack-group:T1:S1'"):
        [rule] = parse_policy(HEAD + f"    decide: ask\n    quorum: 5\n    approvers: [{approver}]", "p").rules
        assert isinstance(rule.verdict, Ask)
        assert rule.verdict.quorum == 5


def test_a_policy_names_the_groups_its_requesters_are_matched_by() -> None:
    policy = parse_policy(
        "version: 1\nrules:\n"
        "- {name: a, match: {requester: 'slack-group:T1:S1'}, decide: allow}\n"
        "- {name: b, match: {requester: 'slack:T1:U1'}, decide: ask, approvers: ['entra-group:t1:x']}\n"
        "- {name: c, match: {requester: ['entra-group:t1:y', 'slack:T1:U1']}, decide: allow}",
        "p",
    )
    assert policy.requester_groups == {"slack-group:T1:S1", "entra-group:t1:y"}


def test_a_file_is_loaded_and_its_path_named(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("\ufeffversion: 1\nrules: []\n", encoding="utf-8")
    assert load_policy(path).rules == ()
    assert load_policy(path).version == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    path.write_bytes(b"version: 1\nrules: []\n# \xff\n")
    with pytest.raises(PolicyError, match=r"policy\.yaml, line 3: is not UTF-8 text"):
        load_policy(path)
    with pytest.raises(PolicyError, match=r"cannot be read: No such file") as caught:
        load_policy(tmp_path / "absent.yaml")
    assert caught.value.line is None


FRAGMENTS = """\
version: 1
rules:
  - name: r
    match: {}
    decide: ask
    decide: allow
    approvers: [any
    quorum: 2
  match:
      tool: *
      args: {a: [}
]
"\\U
!!int x
&a
*a
---
...
%YAML 1.1
?\x20
<<: {}
\t
- - -
"""
fragments = st.lists(st.sampled_from(FRAGMENTS.splitlines()), max_size=12).map("\n".join)


@given(st.one_of(st.text(), fragments, st.text("[]{}&*!|>%@`'\"\\U0- \n:,#?")))
@example("[" * 2000)
@example("- " * 2000)
@example("%YAML " + "9" * 5000 + ".1\n---\na")
@example("a: " + "9" * 5000)
def test_no_text_makes_reading_fail_in_any_other_way(text: str) -> None:
    try:
        parse_policy(text, "p")
    except PolicyError as error:
        assert error.line is not None
        assert 1 <= error.line <= len(text.splitlines()) + 1
