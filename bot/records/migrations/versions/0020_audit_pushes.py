"""Where the audit log is pushed to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """How far the audit log was sent."""
    op.create_table(
        "audit_pushes",
        sa.Column("destination", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("held_until", sa.Float(), nullable=False),
        sa.Column("next_at", sa.Float(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", sa.Float()),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("pushed_at", sa.Float()),
        sa.PrimaryKeyConstraint("destination", name="pk_audit_pushes"),
    )


def downgrade() -> None:
    """As before."""
    op.drop_table("audit_pushes")
