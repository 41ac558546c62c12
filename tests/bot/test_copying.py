"""`migrate copy`: an installation that was begun on SQLite goes to PostgreSQL, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC
from functools import cache
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
import sqlalchemy as sa
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.base import PutOp, SearchOp
from langgraph.types import Command, Send, interrupt

from adapters.slack.web_api.installing import installation_tables
from bot.commands import run
from bot.data_folder import folder_lock
from bot.records.checkpoints import sqlite_checkpoints
from bot.records.memory_store import memory_file, postgres_memory_store, sqlite_memory_store
from bot.records.postgres_checkpoints import postgres_checkpoints
from bot.records.startup import upgrade_postgres
from bot.records.tables import metadata
from tests.audit.calls import NOON, chain, ended
from tests.support import postgres_cluster
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

ROOT = Path(__file__).parents[2]
ROWS = 5
"""Of each table; but one is the audit log, which has three entries."""
JSON = ['{"b":1,  "a":"\\u0000 \\ud83d é\\ud800"}', "null", '[1.0, 1e3, "x"]', '"text"', "{}"]
"""Written as only our own `json` would not write it, so that it shows when it is read and written again."""
MEMORY = {"text": "I prefer tea, über alles", "at": 1.5, "by": ""}
LOG = chain(ended(1), ended(2), ended(3))
_numbers = count(1)


class Conversation(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    turn: dict[str, Any]
    summary: str
    rounds: int
    call: dict[str, Any] | None


def ask(state: Conversation) -> Conversation:
    answer = interrupt({"question": state.get("call"), "text": "tab\tand é"})
    return {"messages": [AIMessage(str(answer))]}


def fan_out(state: Conversation) -> list[Send]:
    return [Send("ask", {**state, "call": {"id": f"m1.0.{n}", "args": {"what": ["lamp", None, 1.5]}}}) for n in (0, 1)]


def graph_of() -> StateGraph[Any]:
    graph = StateGraph(Conversation)
    graph.add_node("begin", lambda _: {"summary": "of\0 before", "rounds": 2, "turn": {"requester": "web:ana"}})
    graph.add_node("ask", ask)
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("begin", fan_out, ["ask"])
    graph.add_edge("ask", END)
    return graph


@pytest.fixture
async def installation(tmp_path: Path) -> Path:
    """Every table with rows, and two conversations: one waits for answers, one is done."""
    file = tmp_path / "data" / "countersign.db"
    empty_database(file)
    with closing(sqlite3.connect(file)) as connection, connection:
        for table in metadata.sorted_tables:
            if table.name != "audit":
                fill(connection, table)
        connection.executemany(
            "INSERT INTO audit (seq, key, at, entry, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            [(each.seq, each.key, NOON + each.seq, each.entry, each.previous, each.hash) for each in LOG],
        )
    async with sqlite_checkpoints(file.with_suffix(".checkpoints.db")) as saver:
        graph = graph_of().compile(checkpointer=saver)
        for thread_id in ("web:t1", "web:t2"):
            where = RunnableConfig(configurable={"thread_id": thread_id})
            await graph.ainvoke({"messages": [HumanMessage("ü", id="m1")]}, where, durability="sync")
        answers = {each.id: "yes" for each in (await graph.aget_state(where)).interrupts}
        await graph.ainvoke(Command(resume=answers), where, durability="sync")
    async with sqlite_memory_store(memory_file(file)) as store:
        await store.abatch([PutOp(("memory", "person", "web:ana"), f"m{n}", MEMORY) for n in range(ROWS)])
    return file


def fill(connection: sqlite3.Connection, table: sa.Table) -> None:
    for number in range(ROWS):
        row = {column.name: value_of(column, number) for column in table.columns}
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        connection.execute(f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', list(row.values()))


def value_of(column: sa.Column[Any], number: int) -> Any:
    """What the file holds. In each column that may be empty, one is."""
    if column.nullable and number == 1:
        return None
    match column.type:
        case sa.JSON():
            return JSON[number]
        case sa.Boolean():
            return number % 2
        case sa.Float():
            return NOON + number / 7
        case sa.BigInteger():
            return 2**40 + number
        case sa.Integer():
            return 1_000 + number if column.primary_key else 2**31 - 1 - number
        case sa.DateTime():
            return f"2026-11-22 10:00:0{number}.123456"
        case _:
            return f"{number}" if column.foreign_keys or column.primary_key else f"{column.name}\n\t\\N é {number}"


@pytest.fixture
def bare_target() -> Iterator[str]:
    """The address of a database with nothing in it."""
    with new_database() as address:
        yield address


@pytest.fixture
def target() -> Iterator[str]:
    """The address of a database with the present schema and no rows."""
    with new_database(like=prepared()) as address:
        yield address


@contextmanager
def new_database(like: str = "template1") -> Iterator[str]:
    name = f"copy_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_cluster.address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        yield postgres_cluster.address_of(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def prepared() -> str:
    name = f"prepared_{os.getpid()}"
    with psycopg.connect(postgres_cluster.address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    upgrade_postgres(postgres_cluster.address_of(name))
    return name


def copy(file: Path, target: str, *, key_is_set: bool = False) -> tuple[int, str, str]:
    """Run the command; its exit code, what it wrote, and its errors."""
    return run_command(
        *("migrate", "copy", "--from", f"sqlite:///{file}", "--to", target),
        database=target,
        further_tables=installation_tables,
        key_is_set=key_is_set,
        now=NOON,
    )


def kept_in_file(file: Path, table: sa.Table) -> list[tuple[Any, ...]]:
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f'SELECT {names} FROM "{table.name}"').fetchall()
    return sorted(rows, key=repr)


def kept_in_postgresql(address: str, table: sa.Table) -> list[tuple[Any, ...]]:
    """As the file has it: JSON as text, truths as numbers."""
    names = ", ".join(f'"{column.name}"{cast_of(column)}' for column in table.columns)
    with psycopg.connect(address) as connection:
        rows = connection.execute(f'SELECT {names} FROM "{table.name}"').fetchall()
    return sorted(rows, key=repr)


def cast_of(column: sa.Column[Any]) -> str:
    return {sa.JSON: "::text", sa.Boolean: "::int", sa.DateTime: "::text"}.get(type(column.type), "")


def is_empty(address: str) -> bool:
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        ours = {name for (name,) in found} & {*metadata.tables, "checkpoints", "checkpoint_writes", "checkpoint_blobs"}
        return not any(connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in ours)


@pytest.mark.postgres
def test_every_row_of_every_table_arrives_as_it_was(installation: Path, bare_target: str) -> None:
    code, out, err = copy(installation, bare_target)
    assert (code, err) == (0, "")
    for table in metadata.sorted_tables:
        assert kept_in_postgresql(bare_target, table) == kept_in_file(installation, table), table.name
        assert f"{3 if table.name == 'audit' else ROWS}  {table.name}\n" in out


@pytest.mark.postgres
async def test_conversations_are_read_from_the_copy_as_from_the_file(installation: Path, target: str) -> None:
    assert copy(installation, target)[0] == 0
    serde = JsonPlusSerializer(allowed_msgpack_modules=[])
    async with postgres_checkpoints(target, most_connections=2) as copied:
        with closing(sqlite3.connect(installation.with_suffix(".checkpoints.db"))) as connection:
            original = SqliteSaver(connection, serde=serde)
            original.setup()
            before = {str(each.config): each for each in original.list(None)}
        after = {str(each.config): each async for each in copied.alist(None)}
        assert len(before) >= 2
        assert after.keys() == before.keys()
        for place, each in before.items():
            assert after[place].checkpoint == each.checkpoint
            assert after[place].metadata == each.metadata
            assert after[place].parent_config == each.parent_config
            assert sorted(map(repr, after[place].pending_writes or ())) == sorted(map(repr, each.pending_writes or ()))
        assert any(each.pending_writes for each in before.values())
        graph = graph_of().compile(checkpointer=copied)
        waits, done = [await graph.aget_state({"configurable": {"thread_id": each}}) for each in ("web:t1", "web:t2")]
        assert (len(waits.interrupts), len(done.interrupts)) == (2, 0)
        assert [message.text for message in done.values["messages"]] == ["ü", "yes", "yes"]


@pytest.mark.postgres
async def test_what_is_remembered_is_read_from_the_copy_as_from_the_file(installation: Path, target: str) -> None:
    code, out, _ = copy(installation, target)
    assert (code, f"{ROWS}  store\n" in out) == (0, True)
    wanted = [SearchOp(("memory", "person", "web:ana"))]
    async with sqlite_memory_store(memory_file(installation)) as original, postgres_memory_store(target) as copied:
        (before,), (after,) = [await store.abatch(wanted) for store in (original, copied)]
        assert {each.key: each.value for each in after} == {f"m{n}": MEMORY for n in range(ROWS)}
        made = {each.key: each.created_at.replace(tzinfo=UTC) for each in before}
        assert {each.key: each.created_at for each in after} == made


@pytest.mark.postgres
def test_an_installation_that_never_remembered_anything_is_copied(installation: Path, target: str) -> None:
    memory_file(installation).unlink()
    assert copy(installation, target)[0] == 0


@pytest.mark.postgres
def test_what_is_written_later_is_numbered_behind_what_was_copied(installation: Path, target: str) -> None:
    assert copy(installation, target)[0] == 0
    with psycopg.connect(target) as connection:
        for table, highest in (("deliveries", 2**40 + 4), ("posts", 2**40 + 4)):
            found = connection.execute(f"SELECT nextval(pg_get_serial_sequence('{table}', 'seq'))").fetchone()
            assert found == (highest + 1,)


@pytest.mark.postgres
def test_installations_in_slack_are_copied_with_the_records(installation: Path, target: str) -> None:
    engine = sa.create_engine(f"sqlite:///{installation}")
    for table in installation_tables():
        table.create(engine)
    engine.dispose()
    with closing(sqlite3.connect(installation)) as connection, connection:
        for table in installation_tables():
            fill(connection, table)
    assert copy(installation, target)[0] == 0
    for table in installation_tables():
        assert kept_in_postgresql(target, table) == kept_in_file(installation, table), table.name
    with psycopg.connect(target) as copied:
        found = copied.execute("SELECT nextval(pg_get_serial_sequence('slack_bots', 'id'))").fetchone()
    assert found == (1_000 + ROWS,)


@pytest.mark.postgres
def test_what_a_killed_process_left_beside_the_file_is_copied(installation: Path, target: str, tmp_path: Path) -> None:
    left = tmp_path / "left" / installation.name
    left.parent.mkdir()
    with closing(sqlite3.connect(installation, isolation_level=None)) as product:
        product.execute("PRAGMA journal_mode = WAL")
        product.execute("UPDATE people SET name = 'newest' WHERE person_id = '3'")
        for each in installation.parent.glob("countersign.*"):
            if not each.name.endswith("-shm"):
                shutil.copy(each, left.parent)
    assert left.with_name("countersign.db-wal").stat().st_size > 0
    assert copy(left, target)[0] == 0
    with psycopg.connect(target) as connection:
        assert connection.execute("SELECT name FROM people WHERE person_id = '3'").fetchone() == ("newest",)


@pytest.mark.postgres
def test_a_table_that_is_none_of_ours_is_named_and_left(installation: Path, target: str) -> None:
    change(installation, "CREATE TABLE notes (text TEXT)")
    code, out, _ = copy(installation, target)
    assert code == 0
    assert "Not copied, since they are none of Countersign's: notes\n" in out


@pytest.mark.postgres
def test_the_audit_log_verifies_in_the_copy_with_the_anchor_that_was_said(installation: Path, target: str) -> None:
    out = copy(installation, target)[1]
    anchor = out.split("--anchor ")[1].split()[0]
    assert anchor.startswith("3:")
    with psycopg.connect(target) as connection:
        connection.execute("DELETE FROM attempts")  # made up, without entries
    environment = {**os.environ, "DATABASE_URL": target}
    done = subprocess.run(
        [sys.executable, str(ROOT / "app.py"), "audit", "verify", "--anchor", anchor],
        env=environment,
        cwd=installation.parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.postgres
def test_what_was_wrong_with_the_audit_log_stays_so_and_is_said(installation: Path, target: str) -> None:
    change(installation, "UPDATE audit SET entry = replace(entry, 'ana', 'ben') WHERE seq = 2")
    code, out, _ = copy(installation, target)
    assert code == 0
    assert "The audit log is as it was, with 1 fault" in out


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("key_file", "key_is_set", "said"),
    [
        (True, False, "set ENCRYPTION_KEY to what that file holds"),
        (True, True, "needs the same ENCRYPTION_KEY: set it as it is set now"),
        (False, False, "No key was found here"),
    ],
)
def test_it_says_which_key_the_copy_needs_and_not_the_key(
    installation: Path, target: str, *, key_file: bool, key_is_set: bool, said: str
) -> None:
    if key_file:
        installation.with_name("encryption.key").write_text("the-key-itself")
    code, out, _ = copy(installation, target, key_is_set=key_is_set)
    assert code == 0
    assert said in out
    assert "the-key-itself" not in out


# -------------------------------------------------------------------------------------------- refusals


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def refused(file: Path, target: str) -> str:
    """Why; that nothing has changed is seen to."""
    before = {each.name: each.read_bytes() for each in file.parent.iterdir()} if file.parent.exists() else {}
    code, out, err = copy(file, target)
    assert (code, out) == (2, "")
    after = {each.name: each.read_bytes() for each in file.parent.iterdir()} if file.parent.exists() else {}
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name for name in changed if name != "lock" and not name.endswith(("-shm", "-wal"))} == set()
    return err


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["people", "locks", "checkpoint_blobs", "slack_bots"])
def test_a_target_that_is_not_empty_is_refused(installation: Path, target: str, table: str) -> None:
    engine = sa.create_engine(f"sqlite:///{installation}")
    statements = {
        "people": "INSERT INTO people VALUES ('web:ana', '', '', '', '', 1)",
        "locks": "INSERT INTO locks (name, epoch) VALUES ('web:t1', 1)",
        "checkpoint_blobs": "INSERT INTO checkpoint_blobs VALUES ('t', '', 'c', '1', 'null', NULL)",
        "slack_bots": "INSERT INTO slack_bots (client_id, app_id, is_enterprise_install, installed_at)"
        " VALUES ('c', 'a', false, now())",
    }
    if table == "slack_bots":
        made = sa.create_engine(sa.make_url(target).set(drivername="postgresql+psycopg"))
        for each in installation_tables():
            each.create(engine)
            each.create(made)
        made.dispose()
    engine.dispose()
    with psycopg.connect(target) as connection:
        connection.execute(statements[table])
    assert f"is not empty: there are rows in {table}" in refused(installation, target)


@pytest.mark.postgres
def test_a_target_with_which_a_countersign_works_is_refused(installation: Path, target: str) -> None:
    with psycopg.connect(target, application_name="countersign"):
        assert "A Countersign works with" in refused(installation, target)
    assert is_empty(target)


@pytest.mark.postgres
def test_a_target_into_which_something_writes_is_refused(installation: Path, target: str) -> None:
    with psycopg.connect(target) as connection:
        connection.execute("INSERT INTO people VALUES ('web:ana', '', '', '', '', 1)")
        assert "Something else works with" in refused(installation, target)
        connection.rollback()
    assert is_empty(target)


@pytest.mark.postgres
def test_a_target_with_a_newer_schema_is_refused(installation: Path, target: str) -> None:
    with psycopg.connect(target) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "made by a newer version" in refused(installation, target)


def test_a_target_out_of_reach_is_said_without_the_password(installation: Path) -> None:
    said = refused(installation, "postgresql://bot:hunter2@127.0.0.1:1/records")
    assert "postgresql://127.0.0.1:1/records cannot be used" in said
    assert "hunter2" not in said


NOWHERE = "postgresql://127.0.0.1:1/records"


def test_a_file_that_is_in_use_is_refused(installation: Path) -> None:
    with folder_lock(installation.parent):
        assert "Another Countersign works with" in refused(installation, NOWHERE)


@pytest.mark.parametrize(
    ("schema", "said"),
    [("0009", "was made by an older version"), ("9999", "was made by a newer version"), (None, "there are no records")],
)
def test_another_schema_is_refused(installation: Path, schema: str | None, said: str) -> None:
    change(
        installation,
        f"UPDATE alembic_version SET version_num = '{schema}'" if schema else "DROP TABLE alembic_version",
    )
    assert said in refused(installation, NOWHERE)


def test_a_file_that_is_not_there_is_refused_and_nothing_made(tmp_path: Path) -> None:
    assert "there are no records" in refused(tmp_path / "data" / "countersign.db", NOWHERE)
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_its_checkpoints_is_refused(installation: Path) -> None:
    for each in installation.parent.glob("*.checkpoints.db*"):
        each.unlink()
    assert "countersign.checkpoints.db is missing" in refused(installation, NOWHERE)


def test_a_damaged_file_is_refused(installation: Path) -> None:
    installation.write_bytes(b"This is no database." * 500)
    assert "cannot be read" in refused(installation, NOWHERE)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("postgresql://h/d", "postgresql://h/d", "must be a SQLite file"),
        ("sqlite:///a.db", "sqlite:///b.db", "must be a PostgreSQL database"),
        ("sqlite:///a.db", "mysql://u:hunter2@h/d", "unknown scheme"),
        ("sqlite:///a.db", "postgresql://u:hunter2@h", "names no database"),
    ],
)
def test_addresses_that_are_none_are_refused_without_the_password(
    source: str, target: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run(["migrate", "copy", "--from", source, "--to", target], None)  # type: ignore[arg-type]  # it comes to nothing
    assert exit_.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert "hunter2" not in err


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE people SET name = 'what' || char(0) || 'ana' WHERE person_id = '3'", "Something in the table people"),
        ("UPDATE people SET seen_at = 'long ago' WHERE person_id = '3'", "Something in the table people"),
        ("UPDATE people SET name = x'00ff' WHERE person_id = '3'", "the column name holds bytes"),
        ("UPDATE threads SET place = 'no JSON of ana' WHERE thread_id = '3'", "Something in the table threads"),
        ("ALTER TABLE people ADD COLUMN of_ana TEXT", "has columns that this version does not know"),
    ],
)
def test_what_does_not_fit_is_told_by_table_and_nothing_is_copied(
    installation: Path, target: str, statement: str, said: str
) -> None:
    change(installation, statement)
    assert said in refused(installation, target)
    assert is_empty(target)


@pytest.mark.postgres
def test_a_copy_that_lacks_a_row_is_taken_back(
    installation: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(target) as connection:
        connection.execute(
            "CREATE FUNCTION dropped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER dropped BEFORE INSERT ON people FOR EACH ROW WHEN (NEW.person_id = '2')"
            " EXECUTE FUNCTION dropped()"
        )
    assert "4 rows of 5 arrived in the table people" in refused(installation, target)
    assert is_empty(target)


@pytest.mark.postgres
def test_a_copy_whose_audit_log_is_another_is_taken_back(installation: Path, target: str) -> None:
    with psycopg.connect(target) as connection:
        connection.execute(
            "CREATE FUNCTION altered() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.entry := replace(NEW.entry, ''ana'', ''ben''); RETURN NEW; END';"
            "CREATE TRIGGER altered BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION altered()"
        )
    assert "The audit log is not the same in the copy" in refused(installation, target)
    assert is_empty(target)


@pytest.mark.postgres
@pytest.mark.kills
def test_a_copy_that_is_killed_leaves_nothing_and_begins_anew(installation: Path, target: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END';"
            "CREATE TRIGGER slow BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION slow()"
        )
        command = ["migrate", "copy", "--from", f"sqlite:///{installation}", "--to", target]
        running = subprocess.Popen([sys.executable, str(ROOT / "app.py"), *command], cwd=installation.parent)
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
        until(lambda: connection.execute(asleep).fetchone() == (1,))
        os.kill(running.pid, signal.SIGKILL)
        running.wait(10)
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        assert is_empty(target)
        connection.execute("DROP FUNCTION slow CASCADE")
    assert copy(installation, target)[0] == 0
    for table in metadata.sorted_tables:
        assert kept_in_postgresql(target, table) == kept_in_file(installation, table), table.name


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.postgres
@pytest.mark.long
def test_long_rows_do_not_pile_up_in_memory(installation: Path, target: str) -> None:
    with closing(sqlite3.connect(installation)) as connection, connection:
        connection.executemany(
            "INSERT INTO places (place_key, place, arrived_at) VALUES (?, ?, 1)",
            ((f"long{number}", json.dumps("x" * 1_000_000)) for number in range(100)),
        )
    code = (
        "import sys; from pathlib import Path; from bot.records.copying import copy_records;"
        "most = lambda: int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]);"
        "before = most(); copy_records(Path(sys.argv[1]), sys.argv[2], list); print(most() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(installation), target],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert int(done.stdout.splitlines()[-1]) < 50_000, "kilobytes"
