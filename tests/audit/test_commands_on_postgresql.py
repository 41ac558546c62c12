"""The commands, over a log in PostgreSQL: they find what they find in a file, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from bot.audit.entries import Link
from bot.records.audit import UnreadableLogError, postgres_audit
from tests.audit.calls import NOON, READING, chain, ended
from tests.support import postgres_cluster
from tests.support.commands import run_command

pytestmark = pytest.mark.postgres
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def records() -> str:
    """The address of a database with an empty log."""
    return postgres_cluster.emptied_database()


def commands_on(address: str) -> Command:
    """Runs a command; its exit code, what it wrote, and its errors."""

    def run_it(*arguments: str) -> tuple[int, str, str]:
        return run_command(*arguments, database=address, now=NOON + 1_000)

    return run_it


def keep(records: str, links: Sequence[Link]) -> None:
    with psycopg.connect(records) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO audit (seq, key, at, entry, previous, hash) VALUES (%s, %s, %s, %s, %s, %s)",
            [(link.seq, link.key, NOON + link.seq, link.entry, link.previous, link.hash) for link in links],
        )


def change(records: str, statement: str) -> None:
    with psycopg.connect(records) as connection:
        assert connection.execute(statement).rowcount > 0


def test_an_untouched_log_verifies(records: str) -> None:
    keep(records, chain(*(ended(number) for number in range(1, 1_203))))  # more than are read at once
    code, out, _ = commands_on(records)("audit", "verify")
    assert code == 0
    assert out.startswith("1,202 entries, all as they were written.")


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE audit SET entry = replace(entry, 'ana', 'ben') WHERE seq = 2", "entry 2 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "entry 2 is missing"),
        ("UPDATE audit SET at = at - 86400 WHERE seq = 2", "entry 2 is kept under another moment"),
        (
            "INSERT INTO attempts (attempt_id, call_id, number, thread_id, requester, server, tool, title, arguments,"
            " digest, status, judged, started_at)"
            " VALUES ('a', 'm9.0.0', 1, 'web:t', 'web:ana', 's', 't', '', '{}', '', 'done', '{}', 1)",
            "the entry of call m9.0.0:1:done is missing",
        ),
    ],
)
def test_a_touched_log_is_told_by_entry_and_exit_code(records: str, tampering: str, said: str) -> None:
    keep(records, chain(ended(1), ended(2), ended(3)))
    change(records, tampering)
    code, out, _ = commands_on(records)("audit", "verify")
    assert code == 1
    assert said in out


def test_an_export_of_a_time_range_has_its_beginning_and_not_its_end(records: str) -> None:
    keep(records, chain(*(ended(number) for number in range(1, 6))))
    _, out, _ = commands_on(records)("audit", "export", "--since", "998s", "--until", "996s")
    assert [json.loads(line)["seq"] for line in out.splitlines()] == [2, 3]


def test_a_policy_is_replayed_over_it(records: str, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(
        "version: 1\nrules:\n  - {name: no lamps, match: {tool: make}, decide: deny, reason: No lamps.}\n"
        "  - {name: reading is free, match: {annotations: {readOnlyHint: true}}, decide: allow}\n"
    )
    keep(records, chain(ended(1, READING, {}), ended(2)))
    code, out, _ = commands_on(records)("policy", "replay", str(file))
    assert code == 0
    assert out.splitlines()[-1].startswith("2 calls, 1 decided differently")


def test_a_log_that_is_being_written_is_read_as_it_is_at_one_moment(records: str) -> None:
    keep(records, chain(ended(1)))
    with postgres_audit(records) as reader:
        assert len(list(reader.links())) == 1
        keep(records, chain(ended(1), ended(2))[1:])
        assert len(list(reader.links())) == 1


def test_nothing_can_be_written_through_it(records: str) -> None:
    with pytest.raises(UnreadableLogError, match="read-only"), postgres_audit(records) as reader:
        reader._connection.execute(sa.text("DELETE FROM audit"))


def test_a_database_without_records_is_said_in_a_sentence() -> None:
    code, _, err = commands_on(postgres_cluster.address_of("postgres"))("audit", "verify")
    assert code == 2
    assert "there are no records yet" in err


def test_a_database_out_of_reach_is_said_without_the_password() -> None:
    code, _, err = commands_on("postgresql://bot:hunter2@127.0.0.1:1/records")("audit", "verify")
    assert code == 2
    assert "postgresql://127.0.0.1:1/records: the audit log cannot be read" in err
    assert "hunter2" not in err
    assert err.count("\n") == 1
