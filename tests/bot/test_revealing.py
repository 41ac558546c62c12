"""Revealing what is masked in a waiting call: to whoever may decide it, at that moment, and the audit log says so.

Rule 12: a mask hides a secret's own characters. Rule 6: who may see it is judged on the server, as a decision is.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from bot.approvals import decisions
from bot.domain import AlreadySettled, Form, Hidden, Refused, Settled, Unknown
from bot.records.tables import audit
from policies import masking
from tests.bot.routing import ANA, BEN, CARA, STRANGER, Routing

TOKEN = "ghp_" + "a1B2" * 9
FINANCE = "chat-group:w1:finance"


async def looks_of(routing: Routing) -> list[dict[str, Any]]:
    async with routing.database.reading() as tx:
        return [json.loads(row.entry) for row in await tx.all(sa.select(audit))]


async def test_whoever_may_decide_sees_what_is_hidden_and_the_audit_log_says_so(routing: Routing) -> None:
    approval_id = await routing.ask(what=f"lamp {TOKEN}", approvers=("requester",))
    view = await routing.view(approval_id)
    hidden = await routing.services.approvals.reveal(approval_id, ANA)
    assert isinstance(hidden, Hidden)
    ((mask, secret),) = hidden.secrets.items()
    assert (view.arguments["what"], secret, hidden.fingerprint) == (f"lamp {mask}", TOKEN, view.fingerprint)
    (look,) = await looks_of(routing)
    assert (look["status"], look["approval"]) == ("looked", approval_id)
    assert look["settled"] == {"choice": "looked at what is hidden", "by": f"Ana <{ANA.person_id}> (requester)"}
    assert TOKEN not in json.dumps(look)


async def test_nobody_else_sees_it(routing: Routing) -> None:
    approval_id = await routing.ask(what=TOKEN, approvers=("requester",))
    for person in (BEN, CARA, STRANGER):
        assert isinstance(await routing.services.approvals.reveal(approval_id, person), Refused)
    assert await looks_of(routing) == []


async def test_under_four_eyes_the_requester_does_not(routing: Routing) -> None:
    approval_id = await routing.ask(what=TOKEN, self_approval="fourEyes")
    assert isinstance(await routing.services.approvals.reveal(approval_id, ANA), Refused)
    assert isinstance(await routing.services.approvals.reveal(approval_id, BEN), Hidden)


async def test_who_has_left_the_group_since_does_not(routing: Routing) -> None:
    routing.chat.groups[FINANCE] = {BEN.person_id: True}
    approval_id = await routing.ask(what=TOKEN, approvers=(FINANCE,))
    assert isinstance(await routing.services.approvals.reveal(approval_id, BEN), Hidden)
    routing.chat.groups[FINANCE] = {BEN.person_id: False}
    routing.clock.move(600)
    assert isinstance(await routing.services.approvals.reveal(approval_id, BEN), Refused)


async def test_once_it_is_settled_nobody_does(routing: Routing) -> None:
    approval_id = await routing.ask(what=TOKEN)
    await routing.click(BEN, approval_id)
    assert await routing.services.approvals.reveal(approval_id, BEN) == AlreadySettled("Already decided.")


async def test_where_nothing_is_hidden_there_is_nothing_to_look_at(routing: Routing) -> None:
    approval_id = await routing.ask()
    assert await routing.services.approvals.reveal(approval_id, BEN) == Refused("Nothing is hidden.")
    assert isinstance(await routing.services.approvals.reveal("no-such", BEN), Unknown)
    assert await looks_of(routing) == []


async def test_each_look_is_an_entry_of_its_own(routing: Routing) -> None:
    approval_id = await routing.ask(what=TOKEN)
    for person in (ANA, BEN, ANA):
        routing.clock.move(1)
        await routing.services.approvals.reveal(approval_id, person)
    assert [look["settled"]["by"][:3] for look in await looks_of(routing)] == ["Ana", "Ben", "Ana"]


async def test_a_megabyte_is_looked_through_once_and_in_a_thread(
    routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: nothing from outside holds the event loop."""
    approval_id = await routing.ask(what=f"{TOKEN} " + "word " * 100_000)
    threads: list[str] = []
    look = masking.secret_spans

    def noted(text: bytes, *others: Any, **how: Any) -> Any:
        threads.extend([threading.current_thread().name] if len(text) > masking.LARGE else [])
        return look(text, *others, **how)

    monkeypatch.setattr(masking, "secret_spans", noted)
    for _ in range(3):
        assert (await routing.view(approval_id)).masks == 1
    assert isinstance(await routing.services.approvals.edit_form(approval_id, BEN), Form)
    assert threads
    assert threading.main_thread().name not in threads
    assert len(threads) <= 3, "what is shown, what is posted at the same time, and the form"


async def test_a_form_is_made_in_a_thread(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: a hundred long values, or defaults of the tool's schema, took 135 ms."""
    approval_id = await routing.ask(what="lamp")
    threads: list[threading.Thread] = []
    make = decisions.edit_fields

    def noted(*what: Any, **how: Any) -> Any:
        threads.append(threading.current_thread())
        return make(*what, **how)

    monkeypatch.setattr(decisions, "edit_fields", noted)
    assert isinstance(await routing.services.approvals.edit_form(approval_id, BEN), Form)
    assert threads
    assert threading.main_thread() not in threads


async def test_a_form_that_comes_back_is_read_in_a_thread(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: a megabyte of arguments is masked and checked again."""
    threads: list[str] = []
    read = decisions.read_form

    def noted(*given: Any, **how: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(*given, **how)

    monkeypatch.setattr(decisions, "read_form", noted)
    approval_id = await routing.ask(what=f"lamp {TOKEN}")
    assert isinstance(await routing.edit(BEN, approval_id, {"what": "chair"}), Settled)
    assert len(threads) == 1
    assert threading.main_thread().name not in threads
