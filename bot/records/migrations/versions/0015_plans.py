"""Plans and their tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_OPEN = sa.text("status = 'open'")


def upgrade() -> None:
    """What an agent handed over to others, and what came of it."""
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("settled_key", sa.Text()),
        sa.Column("begun_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float()),
        sa.PrimaryKeyConstraint("plan_id", name="pk_plans"),
    )
    op.create_index("ix_plans_open", "plans", ["thread_id"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.create_index("ix_plans_settled_key", "plans", ["settled_key"])
    op.create_table(
        "plan_tasks",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text()),
        sa.Column("sources", sa.JSON()),
        sa.Column("owner", sa.Text()),
        sa.Column("begun_at", sa.Float()),
        sa.Column("ended_at", sa.Float()),
        sa.PrimaryKeyConstraint("thread_id", name="pk_plan_tasks"),
    )
    op.create_index("ix_plan_tasks_plan_id_number", "plan_tasks", ["plan_id", "number"])


def downgrade() -> None:
    """Forgotten."""
    op.drop_table("plan_tasks")
    op.drop_table("plans")
