"""Who is one human, whose authority a vote had, quotes, grants, the audit log, and what people use."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TEXT = sa.Text()
_PENDING = "status = 'pending'"


def upgrade() -> None:
    """Of what was before, nothing is known of these."""
    _fill("people", "email", "''")
    op.create_index(op.f("ix_people_email"), "people", ["email"])
    op.drop_index("ix_approvals_pending", table_name="approvals")
    _fill("approvals", "quote", "''")
    _fill("approvals", "handed_to", "'[]'", sa.JSON())
    op.create_index(op.f("ix_approvals_thread_id"), "approvals", ["thread_id"])
    _index_pending()
    with op.batch_alter_table("votes") as votes:
        votes.add_column(sa.Column("human", sa.Text(), nullable=True))
    _fill("votes", "authority", "''")
    with op.batch_alter_table("attempts") as attempts:
        attempts.add_column(sa.Column("judged", sa.JSON(), nullable=True))
    op.create_table(
        "grants",
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("given_at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("grant_id", name=op.f("pk_grants")),
    )
    op.create_index(op.f("ix_grants_person_id_until"), "grants", ["person_id", "until"])
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
        sa.UniqueConstraint("key", name=op.f("uq_audit_key")),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.create_table(
        "usage",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", "day", name=op.f("pk_usage")),
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("usage", "audit", "grants"):
        op.drop_table(table)
    with op.batch_alter_table("attempts") as attempts:
        attempts.drop_column("judged")
    with op.batch_alter_table("votes") as votes:
        votes.drop_column("authority")
        votes.drop_column("human")
    op.drop_index("ix_approvals_pending", table_name="approvals")
    op.drop_index(op.f("ix_approvals_thread_id"), table_name="approvals")
    with op.batch_alter_table("approvals") as approvals:
        approvals.drop_column("handed_to")
        approvals.drop_column("quote")
    _index_pending()
    op.drop_index(op.f("ix_people_email"), table_name="people")
    with op.batch_alter_table("people") as people:
        people.drop_column("email")


def _fill(table: str, column: str, value: str, kind: sa.types.TypeEngine[Any] = _TEXT) -> None:
    """A column that must not be empty, with the same value in every row there is."""
    with op.batch_alter_table(table) as batch:
        batch.add_column(sa.Column(column, kind, nullable=True))
    op.execute(f"UPDATE {table} SET {column} = {value}")  # noqa: S608  # ours, all three
    with op.batch_alter_table(table) as batch:
        batch.alter_column(column, existing_type=kind, nullable=False)


def _index_pending() -> None:
    where = sa.text(_PENDING)
    op.create_index("ix_approvals_pending", "approvals", ["thread_id"], sqlite_where=where, postgresql_where=where)
