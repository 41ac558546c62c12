"""The schema, one for SQLite and PostgreSQL. Times are seconds since the epoch, UTC."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def partial_index(name: str, *columns: str | sa.TextClause, where: str, unique: bool = False) -> sa.Index:
    """An index over the few rows of a growing table that still matter. Statements that are to use it say `where` with
    literals: the value of a parameter is not known when SQLite chooses an index."""
    condition = sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=condition, info={"where": condition})


@sa.event.listens_for(metadata, "before_create")
def _tell_the_dialect(target: sa.MetaData, connection: sa.Connection, **_: Any) -> None:
    """Partial indexes on PostgreSQL. Said where a table is declared, `postgresql_where` imports that dialect: 3 MB that
    SQLite has no use for."""
    name = connection.dialect.name
    for index in (each for table in target.tables.values() for each in table.indexes):
        if name != "sqlite" and "where" in index.info:
            index.dialect_options[name]["where"] = index.info["where"]


PENDING: sa.ColumnElement[str] = sa.literal_column("'pending'")
OPEN: sa.ColumnElement[str] = sa.literal_column("'open'")
WAITING: sa.ColumnElement[str] = sa.literal_column("'waiting'")
PARKED: sa.ColumnElement[str] = sa.literal_column("'parked'")
UNKNOWN: sa.ColumnElement[str] = sa.literal_column("'unknown'")
APPROVED: sa.ColumnElement[str] = sa.literal_column("'approved'")
TIMER: sa.ColumnElement[str] = sa.literal_column("'timer'")
"""Literals, for `partial_index`."""
Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite counts only an INTEGER primary key by itself."""
threads = sa.Table(
    "threads",
    metadata,
    sa.Column("thread_id", sa.Text, primary_key=True),
    sa.Column("platform", sa.Text, nullable=False),
    sa.Column("place_key", sa.Text, nullable=False),
    sa.Column("place", sa.JSON, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("requester", sa.Text),
    sa.Column("turn", sa.Text),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("unsettled", sa.Boolean),
    sa.Column("deleted_at", sa.Float),
    sa.Index(None, "platform", "updated_at"),
    sa.Index(None, "place_key", "created_at"),
    sa.Index("ix_threads_session", "place_key", sa.text("length(thread_id)"), "thread_id"),
    sa.Index("ix_threads_session_of", "place_key", "requester", sa.text("length(thread_id)"), "thread_id"),
)
thread_owners = sa.Table(
    "thread_owners",
    metadata,
    sa.Column("thread_id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("since", sa.Float, nullable=False),
    sa.Index(None, "owner", "since"),
)
"""Who began a conversation of the page or of a program. Of one that an older version began there is no row until
somebody writes there again."""
locks = sa.Table(
    "locks",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("held", sa.Boolean),
)
"""On PostgreSQL, what transactions lock. The epoch of a place counts who has claimed to run what waits there; `held`
until the newest of them has released it."""
people = sa.Table(
    "people",
    metadata,
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("time_zone", sa.Text, nullable=False),
    sa.Column("locale", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("seen_at", sa.Float, nullable=False),
    sa.Index(None, "email"),
)
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("seq", Sequence, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("body", sa.JSON, nullable=False),
    sa.Column("urgent", sa.Boolean, nullable=False),
    sa.Column("accepted_at", sa.Float, nullable=False),
    sa.Column("due_at", sa.Float, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("cause", sa.Text),
    sa.Column("begun", sa.Boolean),
    sa.Index(None, "thread_id", "seq"),
    partial_index("ix_deliveries_waiting", "due_at", where="status = 'waiting'"),
    partial_index("ix_deliveries_waiting_in", "thread_id", "seq", where="status = 'waiting'"),
    partial_index("ix_deliveries_work", "thread_id", "seq", where="status = 'waiting' AND kind != 'timer'"),
    partial_index("ix_deliveries_parked", "thread_id", where="status = 'parked'"),
)
posts = sa.Table(
    "posts",
    metadata,
    sa.Column("seq", Sequence, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("lane", sa.Text, nullable=False),
    sa.Column("place", sa.JSON(none_as_null=True)),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text),
    sa.Column("content", sa.JSON),
    sa.Column("only_for", sa.Text),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("sent_revision", sa.Integer, nullable=False),
    sa.Column("reference", sa.JSON),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("cause", sa.Text),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index(None, "thread_id", "seq"),
    sa.Index(None, "subject"),
    partial_index("ix_posts_unsent", "lane", where="sent_revision < revision"),
    partial_index("ix_posts_elsewhere", "lane", "seq", where="place IS NOT NULL"),
)
post_messages = sa.Table(
    "post_messages",
    metadata,
    sa.Column("message", sa.Text, primary_key=True),
    sa.Column("post", sa.Text, primary_key=True),
    sqlite_with_rowid=False,
)
"""Which post a platform's message belongs to, by the id that its reference has for it."""
places = sa.Table(
    "places",
    metadata,
    sa.Column("place_key", sa.Text, primary_key=True),
    sa.Column("place", sa.JSON, nullable=False),
    sa.Column("arrived_at", sa.Float, nullable=False),
)
approvals = sa.Table(
    "approvals",
    metadata,
    sa.Column("approval_id", sa.Text, primary_key=True),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("risk", sa.JSON, nullable=False),
    sa.Column("ask", sa.JSON, nullable=False),
    sa.Column("requesters", sa.JSON, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("approved_arguments", sa.JSON),
    sa.Column("approved_digest", sa.Text),
    sa.Column("edited_by", sa.Text),
    sa.Column("quote", sa.Text, nullable=False),
    sa.Column("handed_to", sa.JSON, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("settled_key", sa.Text),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float),
    sa.Column("settled_at", sa.Float),
    sa.Column("requester", sa.Text),
    sa.Column("client", sa.Text),
    sa.Column("presentation", sa.JSON(none_as_null=True)),
    sa.Column("agent", sa.Text),
    sa.UniqueConstraint("call_id", "round"),
    partial_index("ix_approvals_pending", "thread_id", where="status = 'pending'"),
    partial_index("ix_approvals_pending_since", "asked_at", where="status = 'pending'"),
    partial_index("ix_approvals_approved", "thread_id", "settled_at", where="status = 'approved'"),
    partial_index("ix_approvals_settled", "requester", "settled_at", where="settled_at IS NOT NULL"),
    partial_index("ix_approvals_settled_key", "settled_key", where="settled_key IS NOT NULL"),
)
votes = sa.Table(
    "votes",
    metadata,
    sa.Column("approval_id", sa.Text, sa.ForeignKey("approvals.approval_id"), primary_key=True),
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("human", sa.Text),
    sa.Column("claimed", sa.JSON),
    sa.Column("authority", sa.Text, nullable=False),
    sa.Column("verb", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
clarifications = sa.Table(
    "clarifications",
    metadata,
    sa.Column("clarification_id", sa.Text, primary_key=True),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("server", sa.Text),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("context", sa.Text, nullable=False),
    sa.Column("fields", sa.JSON, nullable=False),
    sa.Column("schema", sa.JSON(none_as_null=True)),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("answer", sa.JSON),
    sa.Column("settled_key", sa.Text),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("settled_at", sa.Float),
    sa.UniqueConstraint("call_id", "number"),
    partial_index("ix_clarifications_open", "thread_id", where="status = 'open'"),
    partial_index("ix_clarifications_open_for", "requester", where="status = 'open'"),
    partial_index("ix_clarifications_settled_key", "settled_key", where="settled_key IS NOT NULL"),
)
sign_ins = sa.Table(
    "sign_ins",
    metadata,
    sa.Column("sign_in_id", sa.Text, primary_key=True),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("connection", sa.Text),
    sa.Column("service", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("sealed_link", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("settled_key", sa.Text),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float),
    sa.Column("settled_at", sa.Float),
    sa.Index(None, "call_id"),
    partial_index("ix_sign_ins_open", "thread_id", where="status = 'open'"),
    partial_index("ix_sign_ins_open_for", "person_id", "connection", where="status = 'open'"),
    partial_index("ix_sign_ins_settled_key", "settled_key", where="settled_key IS NOT NULL"),
)
attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("attempt_id", sa.Text, primary_key=True),
    sa.Column("call_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("approval_id", sa.Text),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("text", sa.Text),
    sa.Column("whole", sa.Text),
    sa.Column("returned", sa.JSON(none_as_null=True)),
    sa.Column("owner", sa.Text),
    sa.Column("choice", sa.Text),
    sa.Column("choice_by", sa.Text),
    sa.Column("judged", sa.JSON(none_as_null=True)),
    sa.Column("settled_key", sa.Text),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("presentation", sa.JSON(none_as_null=True)),
    sa.Column("grant_id", sa.Text),
    sa.UniqueConstraint("call_id", "number"),
    partial_index("ix_attempts_undecided", "thread_id", where="status = 'unknown' AND choice IS NULL"),
    partial_index("ix_attempts_undecided_for", "requester", where="status = 'unknown' AND choice IS NULL"),
    partial_index("ix_attempts_settled_key", "settled_key", where="settled_key IS NOT NULL"),
)
gateway_calls = sa.Table(
    "gateway_calls",
    metadata,
    sa.Column("gateway_call_id", sa.Text, primary_key=True),
    sa.Column("thread_id", sa.Text, nullable=False, unique=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("client", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("state", sa.JSON(none_as_null=True)),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("task_seconds", sa.Float),
    sa.Column("begun_at", sa.Float, nullable=False),
    sa.Column("changed_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("delivered_at", sa.Float),
    sa.Column("failed", sa.Boolean),
    sa.Column("handed_at", sa.Float),
    sa.Column("forgotten_at", sa.Float),
    partial_index(
        "ix_gateway_calls_undelivered", "person_id", "client", "digest", where="delivered_at IS NULL", unique=True
    ),
    sa.Index(None, "person_id", "begun_at"),
    partial_index("ix_gateway_calls_forgotten", "forgotten_at", where="forgotten_at IS NOT NULL"),
)
"""Calls that other agents make, each with a thread of its own. `step`: of the call's branch, where it stands; `state`:
its `graph.state.ToolCallState`, until it has ended. `forgotten_at`: when nothing needs to be known of it any more. The
same call again is this one until its result was delivered; `handed_at`: since when it is on its way to a client."""
plans = sa.Table(
    "plans",
    metadata,
    sa.Column("plan_id", sa.Text, primary_key=True),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("requester", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("asked", sa.JSON, nullable=False),
    sa.Column("settled_key", sa.Text),
    sa.Column("begun_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    partial_index("ix_plans_open", "thread_id", where="status = 'open'"),
    sa.Index(None, "settled_key"),
)
"""Plans, by the ids of the calls that made them. `asked`: the `graph.interrupts.PlanAsked`; `status`: open, ended, or
superseded."""
plan_tasks = sa.Table(
    "plan_tasks",
    metadata,
    sa.Column("thread_id", sa.Text, primary_key=True),
    sa.Column("plan_id", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("text", sa.Text),
    sa.Column("sources", sa.JSON(none_as_null=True)),
    sa.Column("owner", sa.Text),
    sa.Column("begun_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Index(None, "plan_id", "number"),
)
"""Tasks of plans, each with a thread of its own. `text`: what came of it; `owner`: for whom alone that is."""
feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column("post", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
grants = sa.Table(
    "grants",
    metadata,
    sa.Column("grant_id", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("approval_id", sa.Text, nullable=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("given_at", sa.Float, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    sa.Column("revoked_at", sa.Float),
    sa.Column("client", sa.Text),
    sa.Column("title", sa.Text),
    sa.Column("presentation", sa.JSON(none_as_null=True)),
    sa.Index(None, "person_id", "until"),
)
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("seq", Sequence, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Index(None, "at"),
)
audit_pushes = sa.Table(
    "audit_pushes",
    metadata,
    sa.Column("destination", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("held_until", sa.Float, nullable=False),
    sa.Column("next_at", sa.Float, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("failing_since", sa.Float),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("pushed_at", sa.Float),
)
"""How far the audit log was sent to where it is pushed. `destination`: a hash of its address."""
audit_terms = sa.Table(
    "audit_terms",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sqlite_with_rowid=False,
)
"""What entries of the audit log are found by: `kind` as in `bot.audit.terms`. Filled in some time after an entry was
written, and no part of the log."""
audit_indexed = sa.Table(
    "audit_indexed",
    metadata,
    sa.Column("log", sa.Text, primary_key=True),
    sa.Column("first", sa.BigInteger, nullable=False),
    sa.Column("last", sa.BigInteger, nullable=False),
)
"""Numbers of the first and the last entry of which there are terms; of all between, too. `log`: "audit"."""
OUTCOMES = ("allowed", "denied", "unchanged", "edited", "rejected", "contested", "expired", "withdrawn", "other")
"""What a judged call may come to (`policies.suggestions`), each a column."""
rule_days = sa.Table(
    "rule_days",
    metadata,
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("decided_by", sa.Text, primary_key=True),
    sa.Column("rule", sa.Text, primary_key=True),
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    *(sa.Column(outcome, sa.Integer, nullable=False) for outcome in OUTCOMES),
    sa.Column("waits", sa.JSON, nullable=False),
)
"""How many calls came to what, by day, by what decided, and by tool: what the audit log says, added up, so that nothing
reads through it. `waits`: step of a wait's length → how many (`bot.rules.outcomes`)."""
unapproved_calls = sa.Table(
    "unapproved_calls",
    metadata,
    sa.Column("seq", Sequence, primary_key=True, autoincrement=False),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Index(None, "server", "tool", "seq"),
)
"""Entries of the audit log about calls that people did not approve as they were (`bot.rules.outcomes`)."""
log_readers = sa.Table(
    "log_readers",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
)
"""Who adds up what the audit log says, and the last entry that they have read."""
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, primary_key=True),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_billionths", sa.BigInteger, nullable=False, server_default="0"),
)
"""What was used in a day, by which budgets are judged while there are any: by a person, or in a channel, which has
`channel:{channel}` in the place of the person. Counted when an answer comes, also where its turn is lost. The cost is
in billionths of the currency, so that it adds up exactly."""
model_usage = sa.Table(
    "model_usage",
    metadata,
    sa.Column("turn", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("day", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("cached_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Index(None, "message"),
    sa.Index(None, "person_id", "day"),
    sa.Index(None, "day"),
)
"""What turns have used of language models, kept always: numbers alone, nothing that anybody said."""


# ---------------------------------------------------------------------------------- people's accounts
# Secrets are sealed (`sealed_…`) or kept as a hash only (`…_hash`).


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


# ------------------------------------------------------------------- who people of the page and programs are
# Of passwords and tokens there are hashes only.


users = sa.Table(
    "users",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("display_name", sa.Text, nullable=False),
    sa.Column("password_hash", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("registered", sa.Boolean, nullable=False),
)
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_hash", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("login", sa.Text, nullable=False),
    sa.Column("issuer", sa.Text, nullable=False),
    sa.Column("begun_at", sa.Float, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    sa.Index(None, "person_id"),
    sa.Index(None, "until"),
)
"""Browsers, and programs that were given a token for a password, that are signed in."""
login_attempts = sa.Table(
    "login_attempts",
    metadata,
    sa.Column("state_hash", sa.Text, primary_key=True),
    sa.Column("browser_hash", sa.Text, nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    sa.Index(None, "until"),
)
"""Browsers that were sent to the issuer and have not come back."""
service_tokens = sa.Table(
    "service_tokens",
    metadata,
    sa.Column("token_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("token_hash", sa.Text, nullable=False, unique=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float),
    sa.Column("used_at", sa.Float),
    sa.Column("revoked_at", sa.Float),
    sa.Index(None, "person_id"),
)
identities = sa.Table(
    "identities",
    metadata,
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("issuer", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False),
    sa.Column("said_at", sa.Float),
)
"""What an issuer said of a person when they signed in last, or a program's token did. `email`: vouched for then."""
conversation_numbers = sa.Table(
    "conversation_numbers",
    metadata,
    sa.Column("number", Sequence, primary_key=True, autoincrement=True),
    sa.Column("thread_id", sa.Text, nullable=False, unique=True),
    sa.Column("owner", sa.Text, nullable=False),
)
"""Threads that programs know by a number."""


agent_choices = sa.Table(
    "agent_choices",
    metadata,
    sa.Column("person_id", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("chosen_at", sa.Float, nullable=False),
)
"""Which agent somebody has picked where. `channel`: empty in their direct chat."""


files = sa.Table(
    "files",
    metadata,
    sa.Column("file_id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("thread_id", sa.Text),
    sa.Column("message_key", sa.Text),
    sa.Column("number", sa.Integer),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("missing", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    partial_index("ix_files_unused", "owner", where="thread_id IS NULL"),
    partial_index("ix_files_unused_since", "created_at", where="thread_id IS NULL"),
    partial_index("ix_files_message", "message_key", "number", where="message_key IS NOT NULL", unique=True),
    partial_index("ix_files_thread", "thread_id", where="thread_id IS NOT NULL"),
)
"""What people handed over, as it was read: `text`, or the `reason` why there is none. The file itself is not kept.
Without a thread it was uploaded, and no message has taken it yet."""


halts = sa.Table(
    "halts",
    metadata,
    sa.Column("halt_id", sa.Text, primary_key=True),
    sa.Column("person_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("ended_by", sa.Text),
    sa.Column("ended_why", sa.Text),
    partial_index("ix_halts_open", "at", where="ended_at IS NULL"),
)
"""When an operator has stopped everything, and until when. While one is open nothing runs, in any process."""


# -------------------------------------------------------------------------- what several processes share
# Empty on SQLite, where one process has it in its memory.


beginnings = sa.Table(
    "beginnings",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    sa.Index(None, "until"),
)
"""What has begun, by what it is counted with (`bot.limits.Window`), and until when it counts."""
pauses = sa.Table(
    "pauses",
    metadata,
    sa.Column("service", sa.Text, primary_key=True),
    sa.Column("line", sa.Text, primary_key=True),
    sa.Column("until", sa.Float, nullable=False),
)
"""Until when a service has asked to wait with calls that it counts together."""
leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("said_at", sa.Float, nullable=False),
)
"""Who is alone with something (`Database.alone`), and when they have said so last, on PostgreSQL's clock."""
replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("replica_id", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("policy", sa.Text, nullable=False),
    sa.Column("reloads", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("seen_at", sa.Float, nullable=False),
    sa.Column("facts", sa.Text),
)
"""The processes that are there. `policy`: the version in force; `reloads`: how often somebody has asked this process to
have the policy read again, by all; `facts`: how it is (`bot.console.parts`), as JSON."""
