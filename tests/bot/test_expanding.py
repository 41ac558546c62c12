"""Two versions of the program work with one PostgreSQL while replicas are replaced one after the other. So a migration
only adds what the version before can do without, and takes no lock that others wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from alembic import op
from alembic.script import Script, ScriptDirectory

from bot.records.startup import NEWEST_REVISION, OLDEST_PROGRAM, alembic_config
from tests.support.expanding import statements_of, why_not_expanding

FIRST_SHARED = "0008"
"""The newest revision that was there when records could be kept in PostgreSQL first."""


def revisions_since(revision: str) -> list[Script]:
    connection = sa.create_engine("sqlite://").connect()
    scripts = ScriptDirectory.from_config(alembic_config(connection)).walk_revisions()
    connection.close()
    return [each for each in scripts if each.revision > revision]


SINCE_THEN = revisions_since(min(FIRST_SHARED, OLDEST_PROGRAM))


@pytest.mark.parametrize("script", SINCE_THEN, ids=lambda script: script.revision)
def test_a_migration_leaves_the_version_before_alone(script: Script) -> None:
    assert script.revision <= OLDEST_PROGRAM or why_not_expanding(statements_of(script.module.upgrade)) == []


def test_what_has_been_migrated_so_far_only_added() -> None:
    assert [why_not_expanding(statements_of(each.module.upgrade)) for each in SINCE_THEN] == [[] for _ in SINCE_THEN]


def test_the_oldest_program_is_not_newer_than_this_one() -> None:
    assert FIRST_SHARED < OLDEST_PROGRAM <= NEWEST_REVISION


def test_what_comes_with_a_new_table_is_allowed() -> None:
    def migrate() -> None:
        op.create_table("fresh", sa.Column("name", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("name"))
        op.create_index("ix_fresh_name", "fresh", ["name"], unique=True)
        op.execute("INSERT INTO fresh VALUES ('a')")

    assert why_not_expanding(statements_of(migrate)) == []


@pytest.mark.parametrize(
    "column",
    [
        sa.Column("more", sa.Text(), nullable=True),
        sa.Column("more", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("more", sa.Integer(), nullable=False, server_default="0"),
    ],
)
def test_a_column_is_allowed_that_the_version_before_need_not_fill(column: sa.Column[object]) -> None:
    assert why_not_expanding(statements_of(lambda: op.add_column("votes", column))) == []


@pytest.mark.parametrize(
    ("migrate", "why"),
    [
        (lambda: op.drop_column("votes", "claimed"), "not known"),
        (lambda: op.drop_table("votes"), "not known"),
        (lambda: op.rename_table("votes", "opinions"), "not known"),
        (lambda: op.alter_column("votes", "claimed", new_column_name="said"), "not known"),
        (lambda: op.alter_column("votes", "claimed", type_=sa.Text()), "not known"),
        (lambda: op.alter_column("votes", "claimed", nullable=False), "not known"),
        (lambda: op.create_unique_constraint("uq_votes", "votes", ["claimed"]), "not known"),
        (lambda: op.drop_index("ix_votes"), "not known"),
        (lambda: op.execute("UPDATE votes SET claimed = NULL"), "not known"),
        (lambda: op.create_index("ix_more", "votes", ["claimed"]), "building an index"),
        (lambda: op.add_column("votes", sa.Column("more", sa.Text(), nullable=False)), "do not have it"),
        (lambda: op.add_column("votes", sa.Column("more", sa.Text(), unique=True)), "not known"),
        (lambda: op.execute("ALTER TABLE votes ADD COLUMN at float DEFAULT random()"), "written anew"),
        (lambda: op.execute("ALTER TABLE votes ADD COLUMN a int REFERENCES people"), "looked through"),
        (lambda: op.execute("ALTER TABLE votes ADD COLUMN a text, DROP COLUMN claimed"), "not known"),
    ],
)
def test_what_takes_something_away_or_locks_a_table_for_long_is_found(migrate: Callable[[], None], why: str) -> None:
    assert why in "\n".join(why_not_expanding(statements_of(migrate)))
