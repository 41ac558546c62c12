"""Threads that could not be settled when a delivery was parked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is known of what was parked before: it counts as settled, as nearly all of it was."""
    with op.batch_alter_table("threads") as threads:
        threads.add_column(sa.Column("unsettled", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Forgotten, so that the next message sees through what was left."""
    with op.batch_alter_table("threads") as threads:
        threads.drop_column("unsettled")
