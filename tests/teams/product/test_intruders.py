"""People who ought not to: guests, other companies, made-up ids; and what the log must never have."""

from __future__ import annotations

import json
from typing import Any

from adapters.teams.connector.people import refused
from tests.fakes.teams.server import ANA, BEN, GUS, OTHER_TENANT, TENANT, FakeTeams
from tests.support.product import ProductFolder, ProductProcess
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import Answer, HttpTransport
from tests.support.tools import Workshop
from tests.teams.product.conftest import as_, opened
from tests.teams.product.talk import Json, Talk, buttons, words

ABOUT_ACCOUNTS = ("decline", "cancel", "enter_code", "disconnect")
ON_CARDS = ("approve", "reject", "refresh", "answer", "get_link", "signed_in", "it_was_done", "skip", *ABOUT_ACCOUNTS)
IN_DIALOGS = (
    "code_dialog",
    "disconnect_dialog",
    "show_all",
    "edit_dialog",
    "reject_dialog",
    "approve_all_dialog",
    "answer_dialog",
    "page",
)
SUBMITTED = ("approve_all", "edit", "reject", "answer", "page", "show_all", *ABOUT_ACCOUNTS)


def subject_of(card: Json) -> str:
    """The id on a card's buttons."""
    found: list[str] = []

    def collect(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("countersign") == "show_all":
                found.append(node["id"])
            for value in node.values():
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    collect(card)
    return found[0]


async def everything(person: TeamsPerson, subject: str, conversation: str, message: str = "") -> list[Answer]:
    """All that a client of one's own can send about something."""
    answers = []
    for name in ON_CARDS:
        value: Json = {"action": {"verb": name, "data": {"countersign": name, "id": subject}}}
        answers.append(await person.invokes("adaptiveCard/action", value, conversation, message))
    for invoke, names in (("task/fetch", IN_DIALOGS), ("task/submit", SUBMITTED)):
        for name in names:
            data = {"countersign": name, "id": f"0:{subject}" if name == "page" else subject}
            answers.append(await person.invokes(invoke, {"data": data}, conversation, message))
    return answers


def written(answer: Answer) -> str:
    """What was answered, with its characters as people read them."""
    return json.dumps(answer.json, ensure_ascii=False)


async def test_a_guest_is_refused_whatever_they_try_and_nobody_else_sees_it(
    talk: Talk, teams: FakeTeams, transport: HttpTransport, shop: Workshop
) -> None:
    await talk.mentions("use make what=zebrafish")
    card = await talk.card()
    gus = TeamsPerson(teams, GUS, transport)
    for answer in await everything(gus, subject_of(card), card["conversation"], card["id"]):
        assert answer.status == 200
        assert refused("guest") in written(answer)
        assert "zebrafish" not in answer.text
    await gus.sends("message", card["conversation"], value={"countersign": "approve", "id": subject_of(card)})
    await as_(gus, talk).told("Guests")
    await gus.verifies(subject_of(card), card["conversation"])
    assert shop.done == []
    assert len(talk.of_the_bot()) == 2
    assert len(talk.waiting()) == 1


async def test_a_dialog_that_was_opened_before_somebody_became_a_guest_decides_nothing(
    talk: Talk, teams: FakeTeams, shop: Workshop, ana: TeamsPerson
) -> None:
    await talk.mentions("use make what=lamp")
    dialog = await talk.opens(await talk.card(), "edit_dialog")
    teams.world.users[ANA].role = "guest"
    await ana.leaves(teams.channel)
    teams.world.conversations[teams.channel].members.add(ANA)
    assert refused("guest") in written(await talk.submits(dialog, "edit"))
    assert shop.done == []


async def test_somebody_of_another_company_sees_and_decides_nothing_of_ours(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: ask, approvers: [any]}\n")
    home.variables["TEAMS_ALLOWED_TENANTS"] = f"{TENANT},{OTHER_TENANT}"
    theirs, sam = "19:theirs@thread.v2", "d0000000-0000-4000-8000-00000000000d"
    teams.add_user(sam, name="Sam Stranger", tenant=OTHER_TENANT)
    teams.world.add_group(theirs, members=(sam,), tenant=OTHER_TENANT)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("use make what=zebrafish")
        card = await talk.card()
        for answer in await everything(TeamsPerson(teams, sam, transport), subject_of(card), theirs):
            assert answer.status == 200
            assert "zebrafish" not in answer.text
            assert "Ana" not in answer.text
        assert shop.done == []
        assert len(talk.waiting()) == 1
        await talk.clicks(card, "approve")
        await talk.says("made zebrafish")
        for answer in await everything(TeamsPerson(teams, sam, transport), subject_of(card), theirs):
            assert "zebrafish" not in answer.text
            assert "Ana" not in answer.text


async def test_who_was_removed_from_the_team_decides_nothing(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: ask, approvers: [any]}\n")
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("use make what=lamp")
        card = await talk.card()
        ben = TeamsPerson(teams, BEN, transport)
        await ben.opens(card, "show_all")
        await ben.leaves(teams.channel)
        assert refused("stranger") in (await ben.clicks(card, "approve")).message
        assert shop.done == []


async def test_no_level_of_the_log_has_words_links_or_tokens(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    home.variables["LOG_LEVEL"] = "debug"
    process = ProductProcess(home)
    try:
        transport = HttpTransport(f"{await process.start()}/api/messages", teams)
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        teams.fail("send", status=500)
        teams.fail("member", status=500)
        teams.fail("update", status=400, code="BadSyntax")
        await talk.mentions("use make_with_account what=zebrafish")
        await talk.clicks(await talk.card(), "approve")
        given = await talk.told("Connect your account")
        card = await talk.says("Waiting for Ana")
        await talk.clicks(card, "get_link")
        await transport.post('{"type": "message", "text": "zebrafish"')
        await transport.activity({"type": "message", "text": "zebrafish"})
        await talk.person.invokes("composeExtension/query", {"zebrafish": "zebrafish"})
        await TeamsPerson(teams, GUS, transport).says(talk.conversation, "zebrafish?")
        shop.signed_in = True
        await talk.clicks(given, "signed_in")
        answer = await talk.says("Results:", "zebrafish with the account")
        await talk.person.feeds_back(answer, "dislike", "zebrafish!")
        await process.terminate()
        log = process.log_beside_arguments()
        assert "teams_connected" in log
        bearers = {call.token for call in teams.calls if call.token}
        assert bearers
        for secret in ("zebrafish", "top-secret", teams.app_password, "Which", "eyJ", *bearers):
            assert secret not in log, secret
        assert "get_link" not in buttons(talk.of_the_bot())
        assert "zebrafish" in words(talk.of_the_bot())
    finally:
        await process.kill()
