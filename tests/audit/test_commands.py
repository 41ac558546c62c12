"""The commands, over a log in a file."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.audit.entries import CallEnd, Link
from bot.data_folder import folder_lock
from bot.records.startup import NEWEST_REVISION
from policies.model import Annotations, Tool
from tests.audit.calls import NOON, READING, chain, ended, judged, tool
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

POLICY = """
version: 1
rules:
  - name: reading is free
    match: {tool: look}
    decide: allow
  - name: lamps need two
    match: {tool: make, args: {what: lamp}}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
"""

Command = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A database with an empty log."""
    file = tmp_path / "records.db"
    empty_database(file)
    return file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


@pytest.fixture
def command(records: Path, policy: Path) -> Command:
    """Runs a command; its exit code, what it wrote, and its errors."""

    def run_it(*arguments: str, tools: Sequence[Tool] = ()) -> tuple[int, str, str]:
        return run_command(
            *arguments, database=f"sqlite:///{records}", policy_file=policy, tools=tools, now=NOON + 1_000
        )

    return run_it


def test_records_are_upgraded_as_a_start_would_unless_a_process_works_with_them(
    command: Command, records: Path
) -> None:
    assert command("migrate", "up") == (0, f"{records}: ready (schema {NEWEST_REVISION}).\n", "")
    with folder_lock(records.parent):
        code, out, errors = command("migrate", "up")
    assert (code, out) == (2, "")
    assert "Another Countersign works with" in errors


def keep(records: Path, links: Sequence[Link]) -> None:
    with closing(sqlite3.connect(records)) as connection, connection:
        connection.executemany(
            "INSERT INTO audit (seq, key, at, entry, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            [(link.seq, link.key, NOON + link.seq, link.entry, link.previous, link.hash) for link in links],
        )


def change(records: Path, statement: str) -> None:
    with closing(sqlite3.connect(records)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


# ---------------------------------------------------------------------------------------------- audit verify


def test_an_untouched_log_verifies(command: Command, records: Path) -> None:
    keep(records, chain(ended(1), ended(2), ended(3)))
    code, out, _ = command("audit", "verify")
    assert code == 0
    assert out.startswith("3 entries, all as they were written.")


def test_an_empty_log_verifies(command: Command) -> None:
    assert command("audit", "verify")[0] == 0


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE audit SET entry = replace(entry, 'ana', 'ben') WHERE seq = 2", "entry 2 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "entry 2 is missing"),
        ("UPDATE audit SET seq = 9 WHERE seq = 2", "entry 2 is missing"),
        ("UPDATE audit SET seq = -1 WHERE seq = 2", "entry -1 is out of order: it was entry 2"),
        ("UPDATE audit SET entry = CAST(x'ff00fe' AS TEXT) WHERE seq = 2", "entry 2 was changed"),
        ("UPDATE audit SET entry = replace(hex(zeroblob(9999)), '00', '[') WHERE seq = 2", "entry 2 was changed"),
        ("UPDATE audit SET hash = x'00' WHERE seq = 2", "entry 2 was changed"),
        ("UPDATE audit SET at = at - 86400 WHERE seq = 2", "entry 2 is kept under another moment"),
        ("UPDATE audit SET at = 'long ago' WHERE seq = 2", "entry 2 is kept under another moment"),
        (
            "UPDATE audit SET key = 'm9.0.0:1:done' WHERE seq = 2",
            "entry 2 is kept under another moment",
        ),
    ],
)
def test_a_touched_log_is_told_by_entry_and_exit_code(
    command: Command, records: Path, tampering: str, said: str
) -> None:
    keep(records, chain(ended(1), ended(2), ended(3)))
    change(records, tampering)
    code, out, _ = command("audit", "verify")
    assert code == 1
    assert said in out


def test_a_log_that_was_cut_at_its_end_shows_against_an_anchor(command: Command, records: Path) -> None:
    links = chain(ended(1), ended(2), ended(3))
    keep(records, links)
    anchor = command("audit", "verify")[1].split("--anchor ")[1].strip()
    assert anchor == f"3:{links[2].hash}"
    assert command("audit", "verify", "--anchor", anchor)[0] == 0
    change(records, "DELETE FROM audit WHERE seq = 3")
    assert command("audit", "verify")[0] == 0
    code, out, _ = command("audit", "verify", "--anchor", anchor)
    assert code == 1
    assert "entry 3 is not the one whose hash was kept" in out


def test_a_database_that_is_not_there_is_said_in_a_sentence(command: Command, records: Path) -> None:
    records.unlink()
    code, _, err = command("audit", "verify")
    assert code == 2
    assert "there are no records yet" in err
    assert not records.exists()


@pytest.mark.parametrize("content", [b"", b"This is no database." * 50])
@pytest.mark.parametrize("asked", [("audit", "verify"), ("audit", "export"), ("policy", "replay", "POLICY")])
def test_a_file_that_holds_no_log_is_said_to(
    command: Command, records: Path, policy: Path, content: bytes, asked: tuple[str, ...]
) -> None:
    records.write_bytes(content)
    code, _, err = command(*(str(policy) if word == "POLICY" else word for word in asked))
    assert code == 2
    assert "the audit log cannot be read" in err
    assert records.read_bytes() == content


def test_a_log_that_is_being_written_can_be_verified(command: Command, records: Path) -> None:
    keep(records, chain(ended(1)))
    with closing(sqlite3.connect(records, isolation_level=None)) as product:
        product.execute("PRAGMA journal_mode = WAL")
        product.execute("BEGIN IMMEDIATE")
        product.execute("UPDATE audit SET entry = 'half written'")
        assert command("audit", "verify")[0] == 0
        product.execute("ROLLBACK")


def test_a_backup_on_a_disk_that_is_mounted_read_only_is_verified(
    command: Command, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(records, chain(ended(1)))
    with closing(sqlite3.connect(records)) as product:
        product.execute("PRAGMA journal_mode = WAL")
    before = sorted(records.parent.iterdir())
    mounted = SimpleNamespace(f_flag=os.statvfs(records).f_flag | os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _: mounted)
    assert command("audit", "verify")[0] == 0
    assert sorted(records.parent.iterdir()) == before, "nothing could be written beside it"


# ---------------------------------------------------------------------------------------------- audit export


def test_an_export_has_every_entry_as_a_line_of_json_that_proves_itself(command: Command, records: Path) -> None:
    links = chain(*(ended(number) for number in range(1, 1_203)))  # more than are read at once
    keep(records, links)
    code, out, _ = command("audit", "export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["seq"] for line in lines] == list(range(1, 1_203))
    assert [line["hash"] for line in lines] == [link.hash for link in links]


def test_an_export_of_a_time_range_has_its_beginning_and_not_its_end(command: Command, records: Path) -> None:
    keep(records, chain(*(ended(number) for number in range(1, 6))))
    _, out, _ = command("audit", "export", "--since", "998s", "--until", "996s")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [2, 3]


def test_an_export_for_spreadsheets_calculates_nothing(command: Command, records: Path, tmp_path: Path) -> None:
    keep(records, chain(ended(1, arguments={}, requester="=1+1"), ended(2)))
    target = tmp_path / "log.csv"
    assert command("audit", "export", "--format", "csv", "--output", str(target))[0] == 0
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["requester"] for row in rows] == ["'=1+1", "web:ana"]
    assert [row["seq"] for row in rows] == ["1", "2"]


@pytest.mark.parametrize("entry", ["no JSON", "[1]", "7"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_entry_that_cannot_be_read_is_named_instead_of_exported(
    command: Command, records: Path, entry: str, form: str
) -> None:
    keep(records, chain(ended(1), ended(2)))
    change(records, f"UPDATE audit SET entry = '{entry}' WHERE seq = 2")
    code, out, err = command("audit", "export", "--format", form)
    assert code == 2
    assert out.startswith(("{", "seq"))
    assert "entry 2 was changed" in err


def test_the_log_is_not_exported_over_itself(command: Command, records: Path) -> None:
    keep(records, chain(ended(1)))
    before = records.read_bytes()
    code, _, err = command("audit", "export", "--output", str(records.parent / "." / records.name))
    assert code == 2
    assert "is the log itself" in err
    assert records.read_bytes() == before


def test_a_target_that_cannot_be_written_is_said(command: Command, records: Path) -> None:
    code, _, err = command("audit", "export", "--output", str(records.parent / "missing" / "log.csv"))
    assert code == 2
    assert "cannot be written" in err


def test_a_range_that_ends_before_it_begins_is_refused(command: Command, policy: Path) -> None:
    for asked in (["audit", "export"], ["policy", "replay", str(policy)]):
        code, _, err = command(*asked, "--since", "1d", "--until", "2d")
        assert code == 2
        assert "ends before it begins" in err


def test_a_reader_that_has_seen_enough_is_no_error(records: Path) -> None:
    keep(records, chain(*(ended(number) for number in range(1, 400))))
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{records}"}
    app = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py"), "audit", "export"],
        env=environment,
        cwd=records.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert app.stdout is not None
    assert app.stderr is not None
    assert app.stdout.readline().startswith(b'{"seq": 1')
    app.stdout.close()
    with app.stderr:
        assert app.stderr.read() == b""
    assert app.wait(60) == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_export_is_utf_8_whatever_the_terminal_writes(records: Path, encoding: str) -> None:
    """It would end in the middle, and what is there would verify."""
    keep(records, chain(ended(1, arguments={"what": "Lämpchen"}), ended(2, arguments={"what": "💡"})))
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{records}", "PYTHONIOENCODING": encoding}
    command = [sys.executable, str(ROOT / "app.py"), "audit", "export"]
    done = subprocess.run(command, env=environment, cwd=records.parent, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    entries = [json.loads(line.decode("utf-8")) for line in done.stdout.splitlines()]
    assert [each["arguments"]["what"] for each in entries] == ["Lämpchen", "💡"]


@pytest.mark.parametrize("moment", ["yesterday", "30", "2026-13-01", ""])
def test_a_moment_that_is_none_is_refused_with_how_to_write_it(command: Command, moment: str) -> None:
    code, _, err = command("audit", "export", "--since", moment)
    assert code == 2
    assert "is no moment" in err


# ---------------------------------------------------------------------------------------------- policy


def test_a_policy_that_can_be_used_is_said_to_be_so(command: Command, policy: Path) -> None:
    code, out, _ = command("policy", "check", str(policy))
    assert code == 0
    assert "2 rules" in out


def test_a_policy_that_cannot_be_used_is_told_by_line_and_reason(command: Command, policy: Path) -> None:
    policy.write_text(POLICY.replace("decide: allow", "decide: perhaps"))
    code, _, err = command("policy", "check", str(policy))
    assert code == 1
    assert "line 6" in err
    assert "allow, ask" in err


def test_an_explanation_names_the_rule_its_line_and_who_could_approve(command: Command) -> None:
    code, out, _ = command(
        "policy", "explain", "--tool", "workshop__make", "--args", '{"what": "lamp"}', "--as", "web:ana", tools=[tool()]
    )
    assert code == 0
    assert "ASK: rule “lamps need two”" in out
    assert "policy.yaml:7" in out
    assert "who could approve: someone other than web:ana" in out
    assert "tool is make; wanted: look" in out


def test_an_explanation_says_when_the_tool_is_not_known(command: Command) -> None:
    _, out, _ = command("policy", "explain", "--tool", "workshop__look", "--as", "web:ana")
    assert "judged without its annotations" in out
    assert "ALLOW" in out


def test_an_explanation_in_another_mode_says_what_the_mode_took_away(command: Command) -> None:
    arguments = ("policy", "explain", "--tool", "workshop__make", "--as", "web:ana", "--mode", "readOnly")
    _, out, _ = command(*arguments, tools=[tool()])
    assert "DENY" in out
    assert "Mode readOnly" in out


def test_an_explanation_can_be_of_what_a_program_asks_for(command: Command) -> None:
    arguments = ("policy", "explain", "--tool", "workshop__make", "--as", "web:ana", "--platform", "api")
    _, out, _ = command(*arguments, tools=[tool()])
    assert "asked for by web:ana on api" in out


def test_an_explanation_can_be_of_what_another_agent_calls(command: Command, policy: Path) -> None:
    policy.write_text(POLICY.replace("{tool: look}", '{tool: look, client: ["claude*", "cursor*"]}'))
    arguments = ("policy", "explain", "--tool", "workshop__look", "--as", "slack:T1:U2", "--client")
    _, out, _ = command(*arguments, "Cursor", tools=[READING])
    assert "asked for by slack:T1:U2 on mcp through Cursor" in out
    assert "ALLOW" in out
    _, out, _ = command(*arguments, "goose", "--platform", "mcp", tools=[READING])
    assert "client is goose; wanted: claude* or cursor*" in out
    assert "ASK" in out
    _, out, _ = command(*arguments[:-1], tools=[READING])
    assert "client is our own agent; wanted" in out
    code, _, err = command(*arguments, "Cursor", "--platform", "slack", tools=[READING])
    assert code == 2
    assert "only calls on platform mcp have a client" in err


def test_a_rule_that_permits_something_to_a_client_is_warned_of(command: Command, policy: Path) -> None:
    policy.write_text(POLICY.replace("{tool: look}", "{tool: look, client: x}"))
    code, out, _ = command("policy", "check", str(policy))
    assert code == 0
    assert f"Warning: {policy}:4, “reading is free”: a program says of itself what it is called" in out


def test_an_explanation_shows_what_of_the_arguments_cannot_be_seen(command: Command) -> None:
    """Rule 8: no escape sequence reaches the terminal, and half a character, which has no bytes, ends nothing."""
    given = '{"what": "a\\u001b[31m\\u009b\\u202e\\ud800"}'
    code, out, _ = command("policy", "explain", "--tool", "workshop__make", "--args", given, "--as", "web:ana")
    assert code == 0
    assert "⟨U+202E⟩" in out
    assert not any(sign in out for sign in "\x1b\x9b\u202e\ud800")


@pytest.mark.parametrize("name", ["make", "__make", "workshop__"])
def test_a_name_that_is_no_tools_is_refused(command: Command, name: str) -> None:
    code, _, err = command("policy", "explain", "--tool", name, "--as", "web:ana")
    assert code == 2
    assert "calendar__create_event" in err


def test_a_replay_tells_what_would_be_decided_otherwise_and_nothing_else(command: Command, records: Path) -> None:
    policy = """
version: 1
rules:
  - {name: no lamps, match: {tool: make, args: {what: lamp}}, decide: deny, reason: No lamps.}
  - {name: reading is free, match: {annotations: {readOnlyHint: true}}, decide: allow}
"""
    file = records.with_name("new.yaml")
    file.write_text(policy)
    keep(records, chain(ended(1, READING, {}), ended(2), ended(3, arguments={"what": "vase"})))
    code, out, _ = command("policy", "replay", str(file), "--since", "30d")
    assert code == 0
    assert out.splitlines()[-1].startswith("3 calls, 1 decided differently")
    assert "was: ask web:ana" in out
    assert "now: deny (“no lamps”" in out
    assert "lamp" in out
    assert "vase" not in out


def test_a_replay_knows_which_program_called(command: Command, records: Path) -> None:
    file = records.with_name("new.yaml")
    file.write_text('version: 1\nrules:\n  - {name: not cursor, match: {client: "cursor*"}, decide: deny}\n')
    by_cursor = judged(tool(), {"what": "lamp"}, platform="mcp", client="Cursor 2")
    keep(records, chain(ended(1), ended(2, judged=by_cursor)))
    _, out, _ = command("policy", "replay", str(file))
    assert out.splitlines()[-1].startswith("2 calls, 1 decided differently")
    assert "web:ana through Cursor 2" in out


def test_a_replay_shows_what_of_the_arguments_cannot_be_seen(command: Command, records: Path) -> None:
    """Rule 8: what a model wrote cannot change how the operator's terminal shows it."""
    file = records.with_name("new.yaml")
    file.write_text("version: 1\nrules:\n  - {name: nothing is made, match: {tool: make}, decide: deny}\n")
    keep(records, chain(ended(1, arguments={"what": "a\u202e\x9bb"})))
    _, out, _ = command("policy", "replay", str(file))
    assert "a⟨U+202E⟩⟨U+009B⟩b" in out


def test_a_replay_says_where_arguments_were_cut(command: Command, records: Path, policy: Path) -> None:
    keep(records, chain(ended(1, arguments={"what": "lamp", "text": "x" * 9_000})))
    _, out, _ = command("policy", "replay", str(policy))
    assert "perhaps: its arguments were too long" in out


def test_a_replay_says_where_nobody_asked_for_a_group(command: Command, records: Path) -> None:
    file = records.with_name("new.yaml")
    file.write_text("""
version: 1
rules:
  - {name: for finance, match: {requester: ["slack-group:T1:S1"]}, decide: allow}
""")
    keep(records, chain(ended(1)))
    _, out, _ = command("policy", "replay", str(file))
    assert "1 calls not all is kept" in out


def test_a_replay_counts_what_it_cannot_read(command: Command, records: Path, policy: Path) -> None:
    keep(records, chain(ended(1), ended(2), ended(3), ended(4)))
    for seq, entry in ((1, "no JSON"), (2, '{"judged": {"tool": 7}, "call": "x"}'), (3, '{"judged": 7, "call": "y"}')):
        change(records, f"UPDATE audit SET entry = '{entry}' WHERE seq = {seq}")
    code, out, _ = command("policy", "replay", str(policy))
    assert code == 0
    assert "3 calls could not be read" in out


@pytest.mark.parametrize("at", ["99999w", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"])
def test_a_moment_that_no_calendar_has_is_no_crash(command: Command, at: str) -> None:
    code, _, err = command("policy", "explain", "--tool", "workshop__make", "--as", "web:ana", "--at", at)
    assert code in {0, 2}
    assert ("too far away" in err) == (code == 2)


def test_a_replay_counts_a_call_once_however_it_went_on(command: Command, records: Path, policy: Path) -> None:
    unknown = ended(1, status="unknown")
    keep(records, chain(unknown, ended(1, settled={"choice": "it_was_done", "by": "Ana"})))
    assert command("policy", "replay", str(policy))[1].splitlines()[-1].startswith("1 calls, 1 ")


def test_reading_changes_nothing(command: Command, records: Path, policy: Path) -> None:
    keep(records, chain(ended(1)))
    before = records.read_bytes()
    for arguments in (["audit", "verify"], ["audit", "export"], ["policy", "replay", str(policy)]):
        assert command(*arguments)[0] == 0
    assert records.read_bytes() == before


# ------------------------------------------------------------------------------------- policy suggest


def approve(records: Path, *calls: str, status: str = "approved") -> None:
    """People were asked about these calls."""
    with closing(sqlite3.connect(records)) as connection, connection:
        connection.executemany(
            "INSERT INTO approvals (approval_id, call_id, round, thread_id, server, tool, title, arguments, digest,"
            " risk, ask, requesters, status, quote, handed_to, asked_at, settled_at)"
            " VALUES (?, ?, 1, 'web:t1', 'workshop', 'make', '', '{}', '', '[]', ?, '[]', ?, '', '[]', 1, 2)",
            [(call, call, json.dumps({"rule": "no rule matched", "source": ""}), status) for call in calls],
        )


def asked_about(*numbers: int, status: str = "done") -> list[CallEnd]:
    """Calls of Ana's that change something, and delete nothing."""
    writing = tool(annotations=Annotations(False, False, False, False), annotations_trusted=True)
    return [ended(number, writing, {"what": "lamp"}, status=status) for number in numbers]


def test_rules_are_suggested_with_the_replay_that_proves_them(command: Command, records: Path, policy: Path) -> None:
    policy.write_text("version: 1\nrules: []\n")
    keep(records, chain(*asked_about(*range(1, 13))))
    approve(records, *(f"m{number}.0.0" for number in range(1, 13)))
    code, out, _ = command("policy", "suggest")
    assert code == 0
    assert out.startswith("LOOSER: workshop: make: approved unchanged 12 times, never edited, rejected or withdrawn")
    assert "match: {server: workshop, tool: make, annotations: {destructiveHint: false}" in out
    assert "Replay of 12 calls of the tool: 12 would be allow instead of ask." in out
    assert '{"what":"lamp"}  (unchanged)' in out
    assert "and 2 before that" in out
    assert out.splitlines()[-1].startswith("12 calls looked at, 1 rule to consider. Nothing was changed")


def test_what_somebody_rejected_once_is_not_suggested(command: Command, records: Path, policy: Path) -> None:
    policy.write_text("version: 1\nrules: []\n")
    keep(records, chain(*asked_about(*range(1, 13)), *asked_about(13, status="rejected")))
    approve(records, *(f"m{number}.0.0" for number in range(1, 13)))
    approve(records, "m13.0.0", status="rejected")
    code, out, _ = command("policy", "suggest", "--file", str(policy))
    assert (code, out.splitlines()[-1]) == (0, "13 calls looked at, 0 rules to consider.")


def test_an_empty_log_speaks_for_nothing(command: Command) -> None:
    code, out, _ = command("policy", "suggest")
    assert (code, out[:7]) == (0, "0 calls")
