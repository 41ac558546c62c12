"""What `app.py doctor` says of records in PostgreSQL: whether the role of DATABASE_URL can do what each start does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from app import ConfigurationError
from bot.findings import Finding, Health, HeardTimes
from bot.records.checkup import record_findings
from bot.records.startup import upgrade_postgres
from tests.replicas.processes import SHARED
from tests.support import postgres_cluster
from tests.support.product import ProductFolder, product_here

pytestmark = pytest.mark.postgres


class Records:
    """A database, and a role that connects to it and owns nothing."""

    def __init__(self, address: str) -> None:
        self._url = sa.make_url(address)
        self.role = f"bot_of_{self._url.database}"

    @property
    def address(self) -> str:
        """The address with which the role connects."""
        return self._url.set(username=self.role).render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        """Run a statement as who owns the database. `{role}` and `{database}` stand for these."""
        names = {"role": sql.Identifier(self.role), "database": sql.Identifier(str(self._url.database))}
        made: Any = sql.SQL(statement).format(**names)  # type: ignore[arg-type]  # wants literals, as all of these are
        address = self._url.render_as_string(hide_password=False)
        writing = "-c default_transaction_read_only=off"
        with psycopg.connect(address, autocommit=True, options=writing) as connection:
            connection.execute(made)

    def fault(self) -> Finding | None:
        """What is found that is not fine, as the role; nothing more than one thing may be."""
        found = record_findings(self.address, None, HeardTimes(time.time))
        faults = [each for each in found if each.status is not Health.FINE]
        assert len(faults) <= 1, faults
        return next(iter(faults), None)


@pytest.fixture
def records() -> Iterator[Records]:
    made = Records(postgres_cluster.emptied_database())
    made.run("CREATE ROLE {role} LOGIN")
    made.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    made.run("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
    made.run("GRANT CREATE ON SCHEMA public TO {role}")
    yield made
    made.run("ALTER DATABASE {database} RESET default_transaction_read_only")
    made.run("DROP OWNED BY {role}")
    made.run("DROP ROLE {role}")


def test_a_role_that_may_make_and_write_tables_is_fine(records: Records) -> None:
    assert records.fault() is None


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("REVOKE CREATE ON SCHEMA public FROM {role}", "may not make tables in public"),
        ("REVOKE USAGE ON SCHEMA public FROM PUBLIC", "may not make tables in"),
        ("REVOKE INSERT ON deliveries FROM {role}", "may not write to the table deliveries"),
        ("REVOKE UPDATE ON deliveries FROM {role}", "may not write to the table deliveries"),
        ("REVOKE DELETE ON checkpoints FROM {role}", "may not write to the table checkpoints"),
        ("REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role}", "may not use the sequence conversation_numbers_"),
        ("REVOKE ALL ON SEQUENCE procrastinate_jobs_id_seq FROM {role}", "may not use the sequence procrastinate_jobs"),
        ("ALTER DATABASE {database} SET default_transaction_read_only = on", "default_transaction_read_only"),
    ],
)
def test_a_role_that_may_not_is_found(records: Records, statement: str, said: str) -> None:
    records.run(statement)
    try:
        fault = records.fault()
    finally:
        records.run("GRANT USAGE ON SCHEMA public TO PUBLIC")
    assert fault is not None
    assert (fault.status, fault.what, said in fault.where) == (Health.WRONG, "database", True), fault


def test_an_empty_database_whose_role_may_make_nothing_is_found_before_the_first_start(records: Records) -> None:
    """PostgreSQL 15 and newer let only who owns a database make tables in it."""
    records.run("CREATE SCHEMA another")
    try:
        records.run("GRANT USAGE ON SCHEMA another TO {role}")
        records.run("ALTER ROLE {role} SET search_path = another")
        fault = records.fault()
        assert fault is not None
        assert (fault.status, "may not make tables in another" in fault.where) == (Health.WRONG, True), fault
        records.run("GRANT CREATE ON SCHEMA another TO {role}")
        assert records.fault() is None
        upgrade_postgres(records.address)
        assert records.fault() is None
    finally:
        records.run("DROP SCHEMA another CASCADE")


async def test_the_start_says_so_in_a_sentence(records: Records, tmp_path: Path) -> None:
    records.run("REVOKE CREATE ON SCHEMA public FROM {role}")
    home = ProductFolder(tmp_path, makes_its_records=True)
    home.variables |= {**SHARED, "DATABASE_URL": records.address}
    with pytest.raises(ConfigurationError, match=r"DATABASE_URL: permission denied for schema public\. What mends it"):
        async with product_here(home):
            pass
