"""Agents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Which agent somebody has picked where; which one asks for an approval."""
    op.create_table(
        "agent_choices",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("chosen_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", "channel", name="pk_agent_choices"),
    )
    op.add_column("approvals", sa.Column("agent", sa.Text()))


def downgrade() -> None:
    """As before."""
    op.drop_column("approvals", "agent")
    op.drop_table("agent_choices")
