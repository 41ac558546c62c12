"""Budgets by cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What the language model cost in a day; earlier programs count tokens only."""
    op.add_column("usage", sa.Column("cost_billionths", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """As before."""
    op.drop_column("usage", "cost_billionths")
