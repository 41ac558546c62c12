"""The tables of people's accounts. What is secret is sealed (`sealed_…`) or kept as a hash only (`…_hash`)."""

from __future__ import annotations

import sqlalchemy as sa

from bot.records.tables import metadata, partial_index

authorizations = sa.Table(
    "authorizations",
    metadata,
    sa.Column("authorization_id", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("connection", sa.Text, nullable=False),
    sa.Column("challenge", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("began_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("settled_key", sa.Text),
    sa.Column("link_hash", sa.Text, unique=True),
    sa.Column("sealed_link", sa.Text),
    sa.Column("link_until", sa.Float),
    sa.Column("browser_hash", sa.Text),
    sa.Column("step", sa.Text),
    sa.Column("state_hash", sa.Text, unique=True),
    sa.Column("sealed_step", sa.Text),
    sa.Column("step_until", sa.Float),
    sa.Column("proven", sa.Boolean, nullable=False),
    sa.Column("sealed_grant", sa.Text),
    sa.Column("sealed_code", sa.Text),
    sa.Column("code_until", sa.Float),
    sa.Column("code_tries", sa.Integer, nullable=False),
    sa.Column("code_key", sa.Text),
    partial_index("ix_authorizations_code", "began_at", where="sealed_code IS NOT NULL"),
    partial_index("ix_authorizations_grant", "code_until", where="sealed_grant IS NOT NULL"),
    partial_index("ix_authorizations_settled_key", "settled_key", where="settled_key IS NOT NULL"),
    sa.Index(None, "began_at"),
    partial_index("ix_authorizations_open", "person_id", "connection", where="status = 'open'", unique=True),
)

connections = sa.Table(
    "connections",
    metadata,
    sa.Column("connection_id", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("connection", sa.Text, nullable=False),
    sa.Column("service", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("sealed_tokens", sa.Text, nullable=False),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("used_at", sa.Float),
    partial_index("ix_connections_active", "connection", where="status = 'active'"),
    partial_index("ix_connections_ended", "connection_id", where="status = 'ended'"),
    partial_index("ix_connections_kept", "person_id", "connection", where="status != 'ended'", unique=True),
)

oauth_clients = sa.Table(
    "oauth_clients",
    metadata,
    sa.Column("connection", sa.Text, primary_key=True),
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("redirect_uri", sa.Text, primary_key=True),
    sa.Column("sealed_client", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)

catalogues = sa.Table(
    "catalogues",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("tools", sa.JSON, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
