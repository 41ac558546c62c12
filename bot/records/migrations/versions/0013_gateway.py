"""Calls of other agents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_UNDELIVERED = sa.text("delivered_at IS NULL")


def upgrade() -> None:
    """What waits for people, or was returned and not delivered yet; and which program asks."""
    op.create_table(
        "gateway_calls",
        sa.Column("gateway_call_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("state", sa.JSON()),
        sa.Column("result", sa.JSON()),
        sa.Column("task_seconds", sa.Float()),
        sa.Column("begun_at", sa.Float(), nullable=False),
        sa.Column("changed_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float()),
        sa.Column("delivered_at", sa.Float()),
        sa.Column("failed", sa.Boolean()),
        sa.Column("handed_at", sa.Float()),
        sa.Column("forgotten_at", sa.Float()),
        sa.PrimaryKeyConstraint("gateway_call_id", name="pk_gateway_calls"),
        sa.UniqueConstraint("thread_id", name="uq_gateway_calls_thread_id"),
    )
    op.create_index(
        "ix_gateway_calls_undelivered",
        "gateway_calls",
        ["person_id", "client", "digest"],
        unique=True,
        sqlite_where=_UNDELIVERED,
        postgresql_where=_UNDELIVERED,
    )
    op.create_index(
        "ix_gateway_calls_forgotten",
        "gateway_calls",
        ["forgotten_at"],
        sqlite_where=sa.text("forgotten_at IS NOT NULL"),
        postgresql_where=sa.text("forgotten_at IS NOT NULL"),
    )
    op.create_index("ix_gateway_calls_person_id_begun_at", "gateway_calls", ["person_id", "begun_at"])
    op.add_column("approvals", sa.Column("client", sa.Text()))
    op.add_column("attempts", sa.Column("returned", sa.JSON()))
    op.add_column("grants", sa.Column("client", sa.Text()))


def downgrade() -> None:
    """Forgotten."""
    op.drop_column("grants", "client")
    op.drop_column("attempts", "returned")
    op.drop_column("approvals", "client")
    op.drop_table("gateway_calls")
