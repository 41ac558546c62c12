"""The ceilings: nothing but known reads in readOnly, nothing unasked-for in safeWrite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.commands import read_command
from policies.judging import judge
from policies.model import Allow, Annotations, Ask, Call, Deny, Mode, Tool, stricter_of
from policies.trust import call_known_to_read
from tests.policies.builders import READS, SILENT, WRITES, a_call, a_command, a_policy, a_tool, facts, judged

READ_ONLY, SAFE_WRITE, DEFAULT = Mode.READ_ONLY, Mode.SAFE_WRITE, Mode.DEFAULT
ALLOW_ALL = "match: {}, decide: allow"
ASK_ALL = "match: {}, decide: ask"
NAMES_TOOL = "match: {tool: create_event}, decide: allow"
NAMES_SERVER = "match: {server: calendar}, decide: allow"
NAMES_NOTHING = "match: {tool: '*'}, decide: allow"
READS_BY_RULE = "match: {tool: create_event}, decide: allow, reads: true"
SAID = "Please create the board meeting on Monday"
QUOTE = "create the board meeting"

ORDER = {"readOnly": 0, "safeWrite": 1, "default": 2}


@pytest.mark.parametrize("named", ["readOnly", "safeWrite", "default", "", "SafeWrite", "anything"])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_stricter_of_two_modes_counts_and_an_unknown_one_is_the_strictest(mode: Mode, named: str) -> None:
    assert ORDER[stricter_of(mode, named)] == min(ORDER[mode], ORDER.get(named, 0))


def listing(says: Annotations = SILENT, *, trusted: bool = True, name: str = "list_events") -> Tool:
    return a_tool(name, says=says, trusted=trusted)


READING = [
    (ALLOW_ALL, a_tool(), Deny),
    (NAMES_TOOL, a_tool(), Deny),
    (ASK_ALL, a_tool(), Deny),
    (READS_BY_RULE, a_tool(), Allow),
    (READS_BY_RULE, a_tool(trusted=False), Allow),
    ("match: {tool: create_event}, decide: ask, reads: true", a_tool(), Ask),
    ("match: {tool: create_event}, decide: allow, reads: false", a_tool(), Deny),
    ("match: {tool: other}, decide: allow, reads: true", a_tool(), Deny),
    (ALLOW_ALL, a_tool(says=READS), Allow),
    (ALLOW_ALL, a_tool(says=READS, trusted=False), Deny),
    (ALLOW_ALL, a_tool(says=Annotations()), Deny),
    (ASK_ALL, a_tool(says=READS), Ask),
    ("match: {}, decide: deny", a_tool(says=READS), Deny),
    (ALLOW_ALL, listing(), Allow),
    (ALLOW_ALL, listing(name="searchMail"), Allow),
    (ALLOW_ALL, listing(name="GetUser"), Allow),
    (ALLOW_ALL, listing(name="status"), Allow),
    (ALLOW_ALL, listing(trusted=False), Deny),
    (ALLOW_ALL, listing(Annotations(read_only=False)), Deny),
    (ALLOW_ALL, listing(Annotations(destructive=True)), Deny),
    (ALLOW_ALL, listing(name="get_or_create_user"), Deny),
    (ALLOW_ALL, listing(name="list_and_delete"), Deny),
    (ALLOW_ALL, listing(name="get_and_invite"), Deny),
    (ALLOW_ALL, listing(name="read_write_file"), Deny),
    (ALLOW_ALL, listing(name="searchReplace"), Deny),
    (ALLOW_ALL, listing(name="get_post"), Allow),
    (ALLOW_ALL, listing(name="unlist_event"), Deny),
    (ALLOW_ALL, listing(name="listen"), Deny),
    (ALLOW_ALL, listing(name="event_list"), Deny),
    (ALLOW_ALL, listing(name="获取"), Deny),
]


@pytest.mark.parametrize(("rule", "tool", "verdict"), READING)
def test_in_read_only_mode_nothing_runs_that_is_not_known_to_read(rule: str, tool: Tool, verdict: type) -> None:
    assert isinstance(judge(a_policy(rule), a_call(tool), facts(mode=READ_ONLY)), verdict)


WRITING = [
    (ALLOW_ALL, a_tool(), QUOTE, Deny),
    (NAMES_NOTHING, a_tool(), QUOTE, Deny),
    ("match: {tool: '?*'}, decide: allow", a_tool(), QUOTE, Deny),
    ("match: {command: '* *'}, decide: allow", a_tool(), QUOTE, Deny),
    ("match: {tool: other}, decide: allow", a_tool(), QUOTE, Deny),
    (NAMES_TOOL, a_tool(), QUOTE, Allow),
    (NAMES_TOOL, a_tool(), SAID.upper(), Allow),
    (NAMES_TOOL, a_tool(), "", Deny),
    (NAMES_TOOL, a_tool(), "delete the board meeting", Deny),
    (NAMES_TOOL, a_tool(), "board meeting", Deny),
    (NAMES_SERVER, a_tool(), QUOTE, Allow),
    (NAMES_SERVER, a_tool(), "", Deny),
    ("match: {tool: create_event}, decide: ask", a_tool(), QUOTE, Ask),
    ("match: {tool: create_event}, decide: ask", a_tool(), "", Deny),
    ("match: {tool: create_event}, decide: deny", a_tool(), QUOTE, Deny),
    (READS_BY_RULE, a_tool(), "", Allow),
    (ALLOW_ALL, a_tool(says=READS), "", Allow),
    (ALLOW_ALL, listing(), "", Allow),
    (ALLOW_ALL, listing(trusted=False), "", Deny),
]


@pytest.mark.parametrize(("rule", "tool", "quote", "verdict"), WRITING)
def test_in_safe_write_mode_a_write_needs_a_rule_that_names_it_and_the_requesters_own_words(
    rule: str, tool: Tool, quote: str, verdict: type
) -> None:
    call = Call(tool, {}, quote)
    assert isinstance(judge(a_policy(rule), call, facts(mode=SAFE_WRITE, said=(SAID,))), verdict)


def test_what_was_said_by_nobody_is_no_quote() -> None:
    assert isinstance(judge(a_policy(NAMES_TOOL), Call(a_tool(), {}, QUOTE), facts(mode=SAFE_WRITE)), Deny)


COMMANDS = [
    ("m365 teams team list", True),
    ("m365 teams team get --id 7", True),
    ("m365 status", True),
    ("list teams", False),
    ("Get-Team", False),
    ("m365 teams team list --output json --query 'x'", True),
    ("kubectl get pods my-pod", True),
    ("aws s3api list-buckets", True),
    ("m365 teams team remove --id 7", False),
    ("delete team XYZ", False),
    ("m365 spo list remove --id 7", False),
    ("m365 spo list --debug remove", False),
    ("m365 spo list --debug 'remove'", False),
    ("m365 spo site-remove list", False),
    ("m365 list removeUser", False),
    ("m365 spo listitem add", False),
    ("m365 teams 'team remove' list", False),
    ("m365 flow run list", False),
    ("m365 teams", False),
    ("", False),
    ("--help list", False),
    ("m365 team list; m365 team remove", False),
    ("m365 team list && x", False),
    ("m365 team list | tee x", False),
    ("m365 team list > x", False),
    ("m365 team list $(x)", False),
    ("m365 team list `x`", False),
    ("m365 team list\nm365 team remove", False),
    ("m365 team list\u2028x", False),
    ("m365 team list\u00a0remove", False),
    ("m365 team list %PATH%", False),
    ("m365 team 'list", False),
    ("m365 team list \\", False),
    ("bash list", False),
    ("python3.11 get", False),
    ("SUDO list", False),
    ("./list", False),
    ("/tmp/x list", False),
    ("X=1 list", False),
    ("reboot # list", False),
    ("git commit list", False),
    ("kubectl scale deployment list", False),
    ("busybox list", False),
    ("deploy.sh list", False),
    ("@args list", False),
    ("m365 team list –-force", False),
    ("m365 team list ’x’", False),
    ("m365 team rеmove list", False),
    ("m365 team ｒｅｍｏｖｅ list", False),
    ("m365 team list；x", False),
    ("m365 team list --delete", False),
    ("m365 team list --force-remove x", False),
    ("gh api status --method=DELETE", False),
    ("gh api status -XDELETE", False),
    ("Get-Item -Action:Remove", False),
    ("schtasks list /delete", False),
    ("schtasks /x list", False),
    ("m365 team list --x 'team remove'", False),
    ("m365 team list --start-time 2026-01-01", False),
    ("m365 user get --name Jürgen", True),
    ("показать list", False),
    ("list " + "x" * 5_000, False),
    (None, False),
    (["list"], False),
]


@pytest.mark.parametrize(("command", "reads"), COMMANDS, ids=[repr(c[0])[:40] for c in COMMANDS])
def test_a_command_is_judged_by_its_words(command: Any, *, reads: bool) -> None:
    verdict = judge(a_policy(ALLOW_ALL), a_command(command), facts(mode=READ_ONLY))
    assert isinstance(verdict, Allow if reads else Deny)


def test_the_seed_cases() -> None:
    """“List all teams” runs, “delete team XYZ” is blocked with an answer that people understand."""
    policy = a_policy("match: {server: m365}, decide: allow")
    around = facts(mode=READ_ONLY)
    assert isinstance(judge(policy, a_command("m365 teams team list"), around), Allow)
    blocked = judged(policy, a_command("m365 teams team remove --name XYZ"), around)
    assert blocked == Deny(
        rule="mode readOnly",
        reason="In readOnly mode nothing may be changed, and the command “m365 teams team remove” for run_command of "
        "m365 is not known to only read.",
    )
    unasked = judge(policy, a_command("m365 teams team remove --name XYZ"), facts(mode=SAFE_WRITE, said=("Hello",)))
    assert isinstance(unasked, Deny)
    assert "needs a quote" in unasked.reason


KNOWN = [
    "m365 teams team list",
    "m365 teams team list --output json --query teams",
    "m365 teams team list --output=csv",
    "m365 entra user get --userName 'ana@acme.example' --properties displayName,mail",
    "m365 spo site get --url https://acme.sharepoint.com/sites/ops",
    "kubectl get pods my-pod -n prod -o wide",
    "kubectl logs my-pod --tail 20",
    "gh pr view 12 -R acme/shop --comments",
    "gh issue list --state open --limit 5",
    "az vm list -g prod --output table",
    "az vm show --name web --resource-group prod",
    "aws ec2 describe-instances --instance-ids i-123 --region eu-central-1",
    "aws s3 ls s3://acme/reports/",
    "git log main..HEAD --oneline -n 5",
    "git show HEAD --stat",
    "docker ps -a",
]
NOT_KNOWN = [
    *("gh api repos/a/b -XPUT", "gh api graphql", "gh api x --method PUT", "gh api x -X DELETE", "gh api x -f a=b"),
    *(
        "gh pr list --web",
        "gh pr list --jq env",
        "gh pr list --json a --template x",
        "gh pr view -wR a",
        "gh alias list",
    ),
    *("az rest --method=post --url https://x", "az vm list --method=post", "az vm show --ids @ids.txt"),
    *("az vm list --query @file", "az keyvault secret show --name x", "az storage account keys list --name x"),
    *(
        "az account get-access-token",
        "az vm list --output-file x",
        "az vm list --debug=1",
        "AZ vm list",
        "az.cmd vm list",
    ),
    *(
        "git show --output=FILE",
        "git show --output FILE",
        "git log --ext-diff",
        "git -c core.pager=x log",
        "git log -p",
    ),
    *("git branch new", "git tag v1", "git diff --no-index a b", "git show -O/x", "git --exec-path=/tmp log"),
    *("rg --pre sh x", "rg x", "grep -r x", "find . -exec x", "find . -delete", "cat /etc/passwd", "ls", "sort -o x y"),
    *(
        "redis-cli get flushall",
        "redis-cli get x",
        "psql -c get",
        "mysql -e show",
        "tar -tf x",
        "less x",
        "man -P x list",
    ),
    *(
        "kubectl get pods -f http://x",
        "kubectl get --raw /apis",
        "kubectl get pods --kubeconfig=/tmp/x",
        "kubectl get pods -oyaml",
    ),
    *(
        "kubectl get pods -o go-template-file=/x",
        "kubectl get secrets",
        "kubectl get secret/db -o yaml",
        "kubectl get pods -w",
    ),
    *("kubectl exec my-pod list", "kubectl cp a b", "kubectl get pods --as root", "kubectl --context x get pods"),
    *(
        "aws ec2 describe-instances --endpoint-url http://x",
        "aws s3api get-object --bucket b --key k out",
        "aws s3 cp a b",
    ),
    *(
        "aws ec2 describe-instances --filters file:///etc/passwd",
        "aws ec2 describe-instances --cli-input-json file://x",
    ),
    *("aws secretsmanager list-secrets", "aws secretsmanager get-secret-value", "aws configure list --profile x"),
    *(
        "m365 spo file get --url x --asFile --path /tmp/x",
        "m365 spo file get -p x",
        "m365 util accesstoken get --resource x",
    ),
    *("m365 request --url https://x --method post", "m365 teams team list --output", "m365 teams team list --output x"),
    *("m365 teams team list --name", "m365 teams team list extra", "m365 teams team list --name a extra"),
    *("m365 'teams team' list", "m365 teams team list --name 'a --method post'", "m365 teams team list --name=@x"),
    *("m365 teams team list -ojson", "m365 teams team list -iX", "m365 teams team list --", "m365 teams team list -"),
    *("m365 teams team list --name *", "m365 teams team list --name ~", "m365 teams team list --name [a]", "m365 list"),
    *("M365 teams team list", "m365.cmd teams team list", "m365 Teams team list", "m365  '' teams team list"),
    *(
        "m365 teams team list ―output json",
        "m365 teams team list －－output json",
        "docker --host x ps",
        "docker -H x ps",
    ),
    *("docker exec x ls", "docker run x ls", "docker ps --format x", "docker inspect x", "docker logs -f x"),
]


@pytest.mark.parametrize("command", KNOWN)
def test_what_is_on_the_list_is_known_to_read(command: str) -> None:
    assert isinstance(judge(a_policy(ALLOW_ALL), a_command(command), facts(mode=READ_ONLY)), Allow)


@pytest.mark.parametrize("command", NOT_KNOWN)
def test_a_command_reads_only_when_all_of_it_is_known_to(command: str) -> None:
    """Rule 9: a word that sounds like reading proves nothing, and an option that nobody knows may do anything."""
    call = a_command(command)
    assert not call_known_to_read(call)
    assert isinstance(judge(a_policy(ALLOW_ALL), call, facts(mode=READ_ONLY)), Deny)
    by_reading = a_policy("match: {reads: true}, decide: allow")
    assert isinstance(judge(by_reading, call, facts()), Ask)


@example(words=[], sign="@x", where=7)
@given(
    st.lists(
        st.sampled_from([*" ".join(KNOWN).split(), "--output=x", "-XPUT", "@x", "-o", "--", "'a -b'"]), max_size=7
    ),
    st.sampled_from(
        [";", "|", "\n", "$(x)", "`x`", ">", "&", "\u2028", "\x00", "*", "@x", "-x", "--x=y", "/x", "'", '"']
    ),
    st.integers(0, 60),
)
def test_nothing_of_a_shell_and_no_unknown_option_makes_a_known_command(
    words: list[str], sign: str, where: int
) -> None:
    for line in (" ".join(words), *KNOWN):
        spoiled = f"{line[:where]} {sign} {line[where:]}"
        assert not read_command(spoiled).known_to_read


def test_what_the_operator_lists_as_reading_reads_though_its_server_says_nothing() -> None:
    listed = a_tool("m365_search_commands", says=SILENT, trusted=False)
    for tool, verdict in ((listed, Deny), (replace(listed, reads_only=True), Allow)):
        assert isinstance(judge(a_policy(ALLOW_ALL), a_call(tool), facts(mode=READ_ONLY)), verdict)
        by_reading = a_policy("match: {reads: true}, decide: allow", "match: {reads: false}, decide: deny")
        assert isinstance(judge(by_reading, a_call(tool), facts()), verdict)


def test_a_tool_that_takes_commands_may_be_listed_as_reading_and_its_commands_that_write_still_write() -> None:
    for command, verdict in (("m365 teams", Allow), ("m365 team remove", Deny), ("m365 list; x", Deny)):
        call = a_command(command)
        listed = replace(call, tool=replace(call.tool, reads_only=True))
        assert isinstance(judge(a_policy(ALLOW_ALL), listed, facts(mode=READ_ONLY)), verdict)


ASKED = "decide: ask, approvers: [any]"
SHAPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"properties": {"command": {"type": "string"}}}, {"command": "list"}),
    ({"properties": {"command": {"type": "string"}}, "required": []}, {"command": "list"}),
    ({"properties": {"text": {"type": "string"}}, "required": ["text"]}, {"text": "list"}),
    ({"properties": {"command": {"type": "array"}}, "required": ["command"]}, {"command": "list"}),
    (
        {"properties": {"command": {"type": "string"}, "cwd": {"type": "string"}}, "required": ["command"]},
        {"command": "list"},
    ),
    ({"properties": {"command": {"type": "string"}}, "required": ["command"]}, {"command": "list", "cwd": "/"}),
    ({}, {"command": "list"}),
]


@pytest.mark.parametrize(("schema", "arguments"), SHAPES)
def test_a_tool_that_takes_more_or_other_than_one_command_is_not_judged_by_words(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    tool = a_tool("run", trusted=False, schema=schema)
    assert isinstance(judge(a_policy(ALLOW_ALL), Call(tool, arguments), facts(mode=READ_ONLY)), Deny)


AMONG_OTHERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"command": {"type": "string"}, "timeout": {"type": "integer"}}, {"command": "m365 team remove --id 1"}),
    ({"command": {"type": "string"}, "cwd": {}}, {"command": "m365 --debug team remove", "cwd": "/"}),
    ({"command": {"type": "string", "default": "m365 team remove"}}, {}),
    ({"command": {"type": "array"}}, {"command": ["m365", "team", "remove"]}),
    ({"cmd": {"type": "string"}, "args": {"type": "array"}}, {"cmd": "m365", "args": ["team", "remove"]}),
    ({"cmd": {"type": "string"}, "args": {"type": "string"}}, {"cmd": "m365", "args": "team remove"}),
    ({"command_line": {}, "argv": {}}, {"command_line": None, "argv": ["m365"], "cli": "m365 team remove"}),
    ({}, {"command": "m365 team remove"}),
]


@pytest.mark.parametrize(("properties", "arguments"), AMONG_OTHERS)
def test_a_stricter_rule_about_commands_holds_where_a_tool_takes_more_than_one(
    properties: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """Rule 9: such a tool may get a further argument with any version of its server."""
    call = Call(a_tool("run", schema={"type": "object", "properties": properties}), arguments)
    denied, asked = (
        a_policy(f"match: {{command: '* remove*'}}, {rest}", ALLOW_ALL) for rest in ("decide: deny", ASKED)
    )
    assert isinstance(judge(denied, call, facts()), Deny)
    if "--debug" not in str(arguments):
        assert isinstance(judge(asked, call, facts()), Ask)
    plain = {name: "m365" if value else value for name, value in arguments.items()} or {"command": "m365"}
    assert isinstance(judge(denied, replace(call, arguments=plain), facts()), Allow)


@pytest.mark.parametrize("command", [5, {"a": 1}, ["m365", 5], "m365; x", ["m365", "$(x)"], '["m365","team","remove"]'])
def test_what_cannot_be_read_as_a_command_among_others_is_refused(command: Any) -> None:
    call = Call(a_tool("run", schema={}), {"command": command, "timeout": 5})
    assert isinstance(judge(a_policy("match: {command: '* remove*'}, decide: deny", ALLOW_ALL), call, facts()), Deny)


@pytest.mark.parametrize("words", ['["team","remove"]', ' ["team", "remove"]\n', "['team','remove']"])
def test_nor_can_words_beside_a_command_that_are_written_as_json(words: str) -> None:
    """Rule 9: models write lists as texts, and many servers read these as lists."""
    rules = a_policy("match: {command: '* remove*'}, decide: deny", ALLOW_ALL)
    call = Call(a_tool("run", schema={"properties": {"args": {"type": "array"}}}), {"command": "m365", "args": words})
    assert isinstance(judge(rules, call, facts()), Deny)
    assert isinstance(judge(rules, replace(call, arguments={"command": "m365", "args": "team list"}), facts()), Allow)


def test_no_rule_about_commands_permits_anything_where_a_tool_takes_more() -> None:
    call = Call(a_tool("run", schema={}), {"command": "m365 team list", "env": {"PATH": "/tmp"}})
    allowing = a_policy("match: {command: '* list'}, decide: allow")
    assert isinstance(judge(allowing, call, facts()), Ask)
    reading = a_policy("match: {command: '* list'}, decide: ask, reads: true")
    assert isinstance(judge(reading, call, facts(mode=READ_ONLY)), Deny)
    several = a_policy(*[f"match: {{command: '* {verb}'}}, decide: deny" for verb in ("add", "set", "rm", "list")])
    assert isinstance(judge(several, call, facts()), Deny)  # through the index of many rules


@pytest.mark.parametrize("name", ["command", "cmd", "command_line", "commandLine", "cli"])
def test_a_command_may_be_called_by_several_names(name: str) -> None:
    tool = a_tool("run", trusted=False, schema={"properties": {name: {"type": "string"}}, "required": [name]})
    assert isinstance(
        judge(a_policy(ALLOW_ALL), Call(tool, {name: "m365 teams team list"}), facts(mode=READ_ONLY)), Allow
    )


def test_a_rule_may_say_that_a_command_reads_whatever_its_words() -> None:
    policy = a_policy("match: {command: 'm365 flow run list'}, decide: allow, reads: true", ALLOW_ALL)
    assert isinstance(judge(policy, a_command("m365 flow run list"), facts(mode=READ_ONLY)), Allow)
    assert isinstance(judge(policy, a_command("m365 flow run cancel"), facts(mode=READ_ONLY)), Deny)
    assert isinstance(judge(policy, a_command("m365 flow run list; x"), facts(mode=READ_ONLY)), Deny)


def test_an_annotation_makes_an_unclear_command_a_read_but_not_one_that_writes() -> None:
    for command, verdict in (
        ("m365 teams", Allow),
        ("m365 team remove", Deny),
        ("m365 list; x", Deny),
        ("/x list", Deny),
    ):
        call = a_command(command, says=READS, trusted=True)
        assert isinstance(judge(a_policy(ALLOW_ALL), call, facts(mode=READ_ONLY)), verdict)


def test_the_name_of_a_tool_that_takes_a_command_says_nothing_about_the_command() -> None:
    call = a_command("m365 teams", trusted=True)
    renamed = replace(call, tool=replace(call.tool, name="get_command_output"))
    assert isinstance(judge(a_policy(ALLOW_ALL), renamed, facts(mode=READ_ONLY)), Deny)


def test_a_write_that_a_rule_names_by_its_command_may_run_where_it_was_asked_for() -> None:
    policy = a_policy("match: {command: '* team add'}, decide: allow")
    said = facts(mode=SAFE_WRITE, said=("Please add a team called Ops",))
    command = "m365 teams team add --name Ops"
    assert isinstance(judge(policy, a_command(command, quote="add a team called Ops"), said), Allow)
    assert isinstance(judge(policy, a_command(command), said), Deny)
    assert isinstance(judge(policy, a_command("m365 team remove", quote="add a team called Ops"), said), Deny)


def test_what_a_mode_denies_comes_with_a_sentence_to_pass_on() -> None:
    for mode in (READ_ONLY, SAFE_WRITE):
        verdict = judge(a_policy(), a_call(), facts(mode=mode))
        assert isinstance(verdict, Deny)
        assert (verdict.rule, verdict.source) == (f"mode {mode}", "")
        assert "create_event of calendar" in verdict.reason


def test_what_a_rule_denies_keeps_its_own_reason_in_every_mode() -> None:
    policy = a_policy("match: {}, decide: deny, reason: Never.")
    for mode in Mode:
        assert judged(policy, a_call(a_tool(says=WRITES)), facts(mode=mode)) == Deny(rule="r1", reason="Never.")


def test_the_default_mode_leaves_everything_to_the_rules() -> None:
    assert isinstance(judge(a_policy(ALLOW_ALL), a_command("m365 team remove; x"), facts(mode=DEFAULT)), Allow)
