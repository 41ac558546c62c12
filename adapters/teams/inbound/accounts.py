"""What the dialogs about accounts show: to whom they belong, and to nobody else."""

from __future__ import annotations

from adapters.teams import actions
from adapters.teams.inbound.deciding import NOT_KNOWN, SETTLED_ALREADY, content_of
from adapters.teams.inbound.gestures import Click
from adapters.teams.inbound.replies import Reply, opened, said
from adapters.teams.render.account_dialogs import code_dialog, disconnect_dialog
from bot.accounts.connections import Connections
from bot.domain import ClickResult, Person, Settled, SignInView
from bot.queries import Queries

NOT_YOURS = "This sign-in is for somebody else only."
NOT_CONNECTED = "This account is not connected (any more)."


async def code_form(queries: Queries, click: Click, person: Person, mistake: str = "") -> Reply:
    """The form for a code, for the owner of the sign-in while it waits. `mistake`: what was wrong with the last one."""
    view = await content_of(queries, click)
    if not isinstance(view, SignInView):
        return said(mistake or NOT_KNOWN.text)
    if view.owner_id != person.person_id:
        return said(NOT_YOURS)
    return opened(code_dialog(view, mistake), mistake) if view.status == "open" else said(mistake or SETTLED_ALREADY)


async def disconnecting(connections: Connections, click: Click, person: Person) -> Reply:
    """Asks whether they mean it, of an account of their own."""
    own = {view.connection_id: view for view in await connections.of_person(person)}
    view = own.get(click.subject)
    return opened(disconnect_dialog(view)) if view is not None else said(NOT_CONNECTED)


def told_of_account(click: Click, result: ClickResult) -> str:
    """What came of it, where no card shows that to the person; empty for everything else."""
    if click.action not in (actions.ENTER_CODE, actions.DISCONNECT):
        return ""
    return result.text if isinstance(result, Settled) else ""
