"""What `docs/policies.md` shows can be used as it stands, and does what it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policies.commands import NAMES
from policies.judging import judge
from policies.model import Call, Deny, Facts, Match, Mode, Tool
from policies.policy_file import ASK_KEYS, parse_policy

DOCS = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
EXAMPLES = {
    match[1]: match[2]
    for match in re.finditer(r"^##+ ([^\n]+)\n(?:(?!^##).)*?```yaml\n(.*?)```", DOCS, re.MULTILINE | re.DOTALL)
}
MONDAY = datetime(2026, 11, 23, 10, tzinfo=UTC)
SUNDAY = datetime(2026, 11, 22, 10, tzinfo=UTC)
COMMANDS = next(name for name in EXAMPLES if name.startswith("A command line"))
COMMAND = {"properties": {"command": {"type": "string"}}, "required": ["command"]}


def decided(example: str, server: str, tool: str, arguments: dict[str, Any], **facts: Any) -> str:
    """The rule that decides, of the example under this heading."""
    policy = parse_policy(EXAMPLES[example], "docs")
    given = {"mode": Mode.DEFAULT, "requester": "slack:T0ACME:U0ANA", "platform": "slack", "place": "", "at": MONDAY}
    schema = COMMAND if "command" in arguments else {}
    return judge(policy, Call(Tool(server, tool, input_schema=schema), arguments), Facts(**{**given, **facts})).rule


def test_every_example_is_found() -> None:
    assert len(EXAMPLES) == DOCS.count("```yaml\n")


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_policy(example: str) -> None:
    assert parse_policy(EXAMPLES[example], "docs").rules


@pytest.mark.parametrize(("amount", "rule"), [(1000, "Large"), (999, "Finance"), ("1000", "Large")])
def test_large_payments_need_two(amount: object, rule: str) -> None:
    assert decided("Two people for large payments", "bank", "pay", {"amount": amount}).startswith(rule)


@pytest.mark.parametrize(("at", "rule"), [(MONDAY, "Releases in"), (SUNDAY, "No releases")])
def test_production_is_changed_in_working_hours(at: datetime, rule: str) -> None:
    arguments = {"environment": "production"}
    assert decided("Production only in working hours", "deploy", "release", arguments, at=at).startswith(rule)


@pytest.mark.parametrize(("email", "rule"), [("ben@acme.example", "Our own"), ("x@other.example", "Someone else")])
def test_guests_are_noticed(email: str, rule: str) -> None:
    arguments = {"attendees": [{"email": "ana@acme.example"}, {"email": email}]}
    assert decided("E-mail that leaves the company", "calendar", "create_event", arguments).startswith(rule)


ATTACKS: list[Any] = [
    "x@evil.example, y@acme.example",
    "x@evil.example\ny@acme.example",
    "x@evil.example y@acme.example",
    "x@evil.example@acme.example",
    "x%40evil.example,y@acme.example",
    "x%evil.example@acme.example",
    "evil.example!x@acme.example",
    "y@acme.example <x@evil.example>",
    "x@evil.example;@acme.example",
    "@evil.example:x@acme.example",
    "x@acme.example.evil.example",
    "x@аcme.example",
    "x@acme.example\u200b",
    "x@evil.example#@acme.example",
    '"x@evil.example"@acme.example',
    ["y@acme.example", "x@evil.example"],
    {"address": "x@evil.example"},
    "",
    None,
]
"""What a calendar may send an invitation outside for, or nobody can know."""


@pytest.mark.parametrize("email", ATTACKS, ids=repr)
def test_no_spelling_of_a_guest_gets_past_the_rule_about_guests(email: Any) -> None:
    """Rule 9: what the documentation offers holds against those who want around it."""
    ours = {"email": "ben@acme.example"}
    for attendees in (
        [{"email": email}],
        [ours, {"email": email}],
        [ours, {"mail": email}],
        [ours, {"Email": email}],
        [ours, email],
        email,
        {"email": email},
        {"a": {"email": email}, "b": ours},
        [[{"email": email}]],
    ):
        if attendees is not None:  # which is nobody
            decision = decided("E-mail that leaves the company", "calendar", "create_event", {"attendees": attendees})
            assert decision.startswith("Someone else")
    decision = decided("E-mail that leaves the company", "calendar", "create_event", {"Attendees": [email]})
    assert decision.startswith("Someone else")


@pytest.mark.parametrize("arguments", [{}, {"attendees": []}])
def test_a_meeting_that_nobody_is_invited_to_needs_nobody(arguments: dict[str, Any]) -> None:
    assert decided("E-mail that leaves the company", "calendar", "create_event", arguments).startswith(
        "Meetings without"
    )


AMOUNTS: list[Any] = ["$5000", "5k", "0x1388", "5.000,00", [5000], {"value": 5000}, None, True, "5000\u200b"]


@pytest.mark.parametrize("amount", AMOUNTS, ids=repr)
def test_no_spelling_of_an_amount_gets_past_the_rules_about_money(amount: Any) -> None:
    assert decided("Two people for large payments", "bank", "pay", {"amount": amount}).startswith("Large")
    around = Facts(
        Mode.DEFAULT,
        requester="slack:T0ACME:U0ANA",
        platform="slack",
        place="slack:T0ACME:C0SUPPORT",
        at=MONDAY,
        groups={"slack-group:T0ACME:S0SUPPORT": True},
    )
    policy = parse_policy(EXAMPLES["One team, one channel"], "docs")
    assert isinstance(judge(policy, Call(Tool("shop", "refund"), {"amount": amount}), around), Deny)


@pytest.mark.parametrize("environment", ["Production", "production\u200b", [["production"]], "pro%64uction", None])
def test_no_spelling_of_production_is_released_on_sunday(environment: Any) -> None:
    arguments = {"environment": environment}
    assert decided("Production only in working hours", "deploy", "release", arguments, at=SUNDAY).startswith("No ")


@pytest.mark.parametrize(
    ("place", "rule"), [("slack:T0ACME:C0SUPPORT", "Support"), ("slack:T0ACME:C0OTHER", "Refunds"), ("", "Refunds")]
)
def test_refunds_belong_in_their_channel(place: str, rule: str) -> None:
    groups = {"slack-group:T0ACME:S0SUPPORT": True}
    decision = decided("One team, one channel", "shop", "refund", {"amount": 20}, place=place, groups=groups)
    assert decision.startswith(rule)


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("m365 teams team list", "Looking"),
        ("m365 entra user get --userName ana@acme.example", "Looking"),
        ("m365 teams team remove --id 1", "No one"),
        ("m365 teams team list; m365 teams team remove --id 1", "No one"),
        ("m365 teams team add --name Ops", "IT confirms"),
        ("m365 spo listitem add --listTitle a", "IT confirms"),
        ("m365 spo list set --id 7", "IT confirms"),
        ("m365 spo file get --url x --asFile --path /tmp/x", "IT confirms"),
        ("m365 request --url https://graph.microsoft.com --method post", "IT confirms"),
        ("m365 util accesstoken get --resource graph", "IT confirms"),
        ("gh api x -XPUT", "IT confirms"),
    ],
)
def test_command_lines_are_judged_by_their_words(command: str, rule: str) -> None:
    assert decided(COMMANDS, "m365", "m365_run_command", {"command": command}).startswith(rule)


@pytest.mark.parametrize(
    "docs", ["../../../../etc/passwd", "teams/../../x.mdx", "teams/team.json", "%2e%2e/x.mdx", "", None]
)
def test_the_documentation_of_commands_is_all_that_is_read_of_the_files_of_a_server(docs: Any) -> None:
    arguments = {"commandName": "x", "docs": docs}
    assert decided(COMMANDS, "m365", "m365_get_command_docs", arguments).startswith("Only the")


@pytest.mark.parametrize(
    ("client", "reads", "rule"),
    [
        ("Cursor", False, "Cursor only"),
        ("Cursor", True, "Programs may"),
        ("goose", False, "Someone else"),
        ("", False, "no"),
    ],
)
def test_programs_may_look_things_up(client: str, reads: bool, rule: str) -> None:  # noqa: FBT001 - a value
    policy = parse_policy(EXAMPLES["Other agents"], "docs")
    around = Facts(Mode.DEFAULT, "slack:T0ACME:U0ANA", "mcp" if client else "slack", "", MONDAY, client=client)
    assert judge(policy, Call(Tool("shop", "stock", reads_only=reads), {}), around).rule.startswith(rule)


def test_every_key_and_field_is_told_of() -> None:
    for word in (*ASK_KEYS, *Match.__dataclass_fields__, *NAMES):
        assert f"`{word}`" in DOCS, word
