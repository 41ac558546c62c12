"""What rules have decided, added up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_OUTCOMES = ("allowed", "denied", "unchanged", "edited", "rejected", "contested", "expired", "withdrawn", "other")


def upgrade() -> None:
    """How many calls came to what, and which people did not approve as they were."""
    op.create_table(
        "rule_days",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        *(sa.Column(outcome, sa.Integer(), nullable=False) for outcome in _OUTCOMES),
        sa.Column("waits", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("day", "decided_by", "rule", "server", "tool", name="pk_rule_days"),
    )
    op.create_table(
        "unapproved_calls",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_unapproved_calls"),
    )
    op.create_index("ix_unapproved_calls_server_tool_seq", "unapproved_calls", ["server", "tool", "seq"])
    op.create_table(
        "log_readers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_log_readers"),
    )


def downgrade() -> None:
    """As before: the audit log says it all."""
    for table in ("log_readers", "unapproved_calls", "rule_days"):
        op.drop_table(table)
