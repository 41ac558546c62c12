"""When an operator has stopped everything."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A program of before does not know that it is to stop: replace it before the switch is needed."""
    op.create_table(
        "halts",
        sa.Column("halt_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("ended_why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("halt_id", name="pk_halts"),
    )
    open_ones = sa.text("ended_at IS NULL")
    op.create_index("ix_halts_open", "halts", ["at"], sqlite_where=open_ones, postgresql_where=open_ones)


def downgrade() -> None:
    """As before."""
    op.drop_table("halts")
