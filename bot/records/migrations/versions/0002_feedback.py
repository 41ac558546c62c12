"""What people think of answers; and an index for what was settled lately."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table and the index."""
    op.create_table(
        "feedback",
        sa.Column("post", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("post", "person_id", name=op.f("pk_feedback")),
    )
    op.create_index(op.f("ix_approvals_settled_at"), "approvals", ["settled_at"], unique=False)


def downgrade() -> None:
    """Drop them."""
    op.drop_index(op.f("ix_approvals_settled_at"), table_name="approvals")
    op.drop_table("feedback")
