"""What a process has begun, and holds, where several could."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is held or noted as begun yet; versions before this one know of neither."""
    op.add_column("locks", sa.Column("held", sa.Boolean(), nullable=True))
    op.add_column("deliveries", sa.Column("begun", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Forgotten."""
    op.drop_column("deliveries", "begun")
    op.drop_column("locks", "held")
