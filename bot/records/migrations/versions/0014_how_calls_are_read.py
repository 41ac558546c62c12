"""How calls are read by people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What a card needs to show a call in people's words; by which standing approval a call ran; deleted threads."""
    op.add_column("approvals", sa.Column("presentation", sa.JSON()))
    op.add_column("attempts", sa.Column("presentation", sa.JSON()))
    op.add_column("attempts", sa.Column("grant_id", sa.Text()))
    op.add_column("grants", sa.Column("title", sa.Text()))
    op.add_column("grants", sa.Column("presentation", sa.JSON()))
    op.add_column("threads", sa.Column("deleted_at", sa.Float()))


def downgrade() -> None:
    """As before."""
    op.drop_column("threads", "deleted_at")
    op.drop_column("grants", "presentation")
    op.drop_column("grants", "title")
    op.drop_column("attempts", "grant_id")
    op.drop_column("attempts", "presentation")
    op.drop_column("approvals", "presentation")
