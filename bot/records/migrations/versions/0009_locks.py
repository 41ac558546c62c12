"""What transactions lock where several processes write, and how often a place was claimed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is locked yet."""
    op.create_table(
        "locks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_locks"),
    )


def downgrade() -> None:
    """Forgotten."""
    op.drop_table("locks")
