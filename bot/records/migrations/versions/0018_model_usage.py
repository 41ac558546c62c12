"""Usage of language models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What turns have used of language models."""
    op.create_table(
        "model_usage",
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("turn", "agent", "model", name="pk_model_usage"),
    )
    op.create_index("ix_model_usage_message", "model_usage", ["message"])
    op.create_index("ix_model_usage_person_id_day", "model_usage", ["person_id", "day"])
    op.create_index("ix_model_usage_day", "model_usage", ["day"])


def downgrade() -> None:
    """As before."""
    op.drop_table("model_usage")
