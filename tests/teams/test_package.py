"""The package can be uploaded to Teams: its manifest is within Microsoft's limits, its icons are what Teams wants."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

from adapters.teams.actions import COMMANDS
from adapters.teams.app_package.facts import AppFacts, PackageError, facts_of, project_version
from adapters.teams.app_package.icons import colour_icon, outline_icon
from adapters.teams.app_package.package import READ_WITHOUT_MENTION, hearing_everything, manifest_of, package_of
from tests.teams.local.packages import MANIFEST_SCHEMAS, WITHOUT_PACKAGES

ROOT = Path(__file__).parents[2]
APP_ID = "11111111-2222-3333-4444-555555555555"
VARIABLES = {"MICROSOFT_APP_ID": APP_ID, "PUBLIC_URL": "https://bot.example.com"}
Json = dict[str, Any]


def manifest(**changes: str) -> Json:
    return manifest_of(facts_of({**VARIABLES, **changes}))


def problems(variables: dict[str, str], version: str | None = None) -> tuple[str, ...]:
    with pytest.raises(PackageError) as refused:
        facts_of(variables, version)
    return refused.value.problems


# ------------------------------------------------------------------------------------------------ the manifest


def test_the_bot_can_be_added_for_oneself_to_teams_and_to_group_chats() -> None:
    (bot,) = manifest()["bots"]
    assert bot["botId"] == APP_ID
    assert set(bot["scopes"]) == {"personal", "team", "groupChat"}
    assert not bot["isNotificationOnly"]
    assert bot["supportsFiles"]


def test_its_commands_are_those_that_the_bot_knows() -> None:
    (bot,) = manifest()["bots"]
    listed = {scope: [c["title"] for c in some["commands"]] for some in bot["commandLists"] for scope in some["scopes"]}
    assert set(listed) == set(bot["scopes"])
    assert tuple(listed["personal"]) == COMMANDS == tuple(listed["groupChat"])
    assert listed["team"] == [c for c in COMMANDS if c != "new"], "threads of a channel are not begun anew"


def test_an_app_for_teams_says_that_private_and_shared_channels_are_fine() -> None:
    assert manifest()["supportsChannelFeatures"] == "tier1", "Teams refuses a manifest from 1.25 on without it"


def test_it_asks_for_no_permission_to_hear_what_is_not_said_to_it() -> None:
    plain = manifest()
    assert "authorization" not in plain
    assert "webApplicationInfo" not in plain


def test_it_can_ask_for_what_makes_mentions_unnecessary() -> None:
    hearing = hearing_everything(manifest())
    assert hearing["webApplicationInfo"]["id"] == APP_ID
    asked = hearing["authorization"]["permissions"]["resourceSpecific"]
    assert asked == [{"name": name, "type": "Application"} for name in READ_WITHOUT_MENTION]
    assert {key: hearing[key] for key in manifest()} == manifest()


def test_sign_ins_may_be_opened_at_the_public_address_only() -> None:
    assert manifest(PUBLIC_URL="https://bot.example.com:8443/")["validDomains"] == ["bot.example.com"]


def test_it_is_called_as_the_environment_says() -> None:
    said = manifest(TEAMS_APP_NAME="Acme $Bot", TEAMS_APP_DEVELOPER="Acme IT", TEAMS_APP_WEBSITE="https://acme.org/it")
    assert said["name"]["short"] == "Acme $Bot"
    assert said["developer"]["name"] == "Acme IT"
    assert said["developer"]["privacyUrl"] == "https://acme.org/it"


def test_its_version_is_the_projects_or_the_one_that_was_asked_for() -> None:
    assert manifest()["version"] == project_version()
    assert facts_of(VARIABLES, "2.0.1").version == "2.0.1"


LENGTHS = {
    "name.short": 30,
    "name.full": 100,
    "description.short": 80,
    "description.full": 4000,
    "developer.name": 32,
    "bots.commandLists.commands.title": 32,
    "bots.commandLists.commands.description": 128,
}
"""https://learn.microsoft.com/microsoft-365/extensibility/schema, and for commands what the composer shows."""


def texts(within: object, path: str = "") -> Iterator[tuple[str, str]]:
    match within:
        case dict():
            for key, value in within.items():
                yield from texts(value, f"{path}.{key}" if path else str(key))
        case list():
            for value in within:
                yield from texts(value, path)
        case str():
            yield path, within


def test_every_text_is_as_long_as_teams_wants_it_at_most() -> None:
    longest = manifest(TEAMS_APP_NAME="n" * 30, TEAMS_APP_DEVELOPER="d" * 32)
    seen = {path for path, _ in texts(longest)}
    assert set(LENGTHS) <= seen
    for path, text in texts(longest):
        assert 1 <= len(text) <= LENGTHS.get(path, 2048), path
        assert "${" not in text, path


@pytest.mark.node
@pytest.mark.skipif(not MANIFEST_SCHEMAS, reason=WITHOUT_PACKAGES)
@pytest.mark.parametrize("made", [manifest(), hearing_everything(manifest())], ids=["as it is", "with permissions"])
def test_it_is_valid_for_microsofts_schema(made: Json) -> None:
    assert schema_errors(made) == []


@pytest.mark.node
@pytest.mark.skipif(not MANIFEST_SCHEMAS, reason=WITHOUT_PACKAGES)
def test_microsofts_schema_tells_a_wrong_manifest_from_a_right_one() -> None:
    assert schema_errors({**manifest(), "id": "not a guid"})
    assert schema_errors({**manifest(), "bots": [{**manifest()["bots"][0], "scopes": ["everywhere"]}]})


def schema_errors(made: Json) -> list[str]:
    assert MANIFEST_SCHEMAS is not None
    path = MANIFEST_SCHEMAS / f"v{made['manifestVersion']}" / "MicrosoftTeams.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8-sig"))
    return [error.message for error in validator_for(schema)(schema).iter_errors(made)]


# ------------------------------------------------------------------------------------------------ what is told of it

GUIDE = (ROOT / "docs" / "teams.md").read_text()


def test_every_permission_is_explained() -> None:
    asked = [*manifest()["permissions"], *READ_WITHOUT_MENTION]
    assert [name for name in asked if f"`{name}`" not in GUIDE] == []


def test_every_variable_and_every_command_is_explained() -> None:
    variables = (*VARIABLES, "TEAMS_APP_NAME", "TEAMS_APP_DEVELOPER", "TEAMS_APP_WEBSITE")
    assert [name for name in (*variables, *COMMANDS) if f"`{name}`" not in GUIDE] == []


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", GUIDE)
    assert pictures
    assert [name for name in pictures if not (ROOT / "docs" / name).exists()] == []


# ------------------------------------------------------------------------------------------------ the icons


def picture(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height, and the pixels as red, green, blue, opacity (our own PNGs use no filters)."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        data = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 6)
    rows = zlib.decompress(chunks[b"IDAT"])
    size = 1 + 4 * width
    lines = [rows[row * size + 1 : (row + 1) * size] for row in range(height)]
    return width, height, [line[at : at + 4] for line in lines for at in range(0, len(line), 4)]


def test_the_colour_icon_is_192_pixels_wide_and_high_and_not_transparent() -> None:
    width, height, pixels = picture(colour_icon())
    assert (width, height) == (192, 192)
    assert {pixel[3] for pixel in pixels} == {255}


def test_what_the_colour_icon_shows_is_in_the_middle_where_nothing_is_cut_off() -> None:
    _, _, pixels = picture(colour_icon())
    (background,) = {pixels[0], pixels[191], pixels[-1]}
    drawn = [(at % 192, at // 192) for at, pixel in enumerate(pixels) if pixel != background]
    assert drawn
    assert all(36 <= x < 156 and 36 <= y < 156 for x, y in drawn)


def test_the_outline_icon_is_32_pixels_wide_and_high_and_only_white_on_nothing() -> None:
    width, height, pixels = picture(outline_icon())
    assert (width, height) == (32, 32)
    assert {pixel[:3] for pixel in pixels} == {b"\xff\xff\xff"}
    assert {0, 255} <= {pixel[3] for pixel in pixels}


# ------------------------------------------------------------------------------------------------ the zip


def test_the_zip_has_the_manifest_and_both_icons_beside_each_other() -> None:
    with zipfile.ZipFile(io.BytesIO(package_of(manifest()))) as package:
        assert package.testzip() is None
        assert sorted(package.namelist()) == ["color.png", "manifest.json", "outline.png"]
        assert json.loads(package.read("manifest.json")) == manifest()


def test_the_same_input_makes_the_same_bytes() -> None:
    assert package_of(manifest()) == package_of(manifest())


# ------------------------------------------------------------------------------------------------ what is missing


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"MICROSOFT_APP_ID": ""}, "MICROSOFT_APP_ID: is not set."),
        ({"MICROSOFT_APP_ID": "countersign"}, "MICROSOFT_APP_ID: is no GUID."),
        ({"MICROSOFT_APP_ID": f"{APP_ID}0"}, "MICROSOFT_APP_ID: is no GUID."),
        ({"PUBLIC_URL": ""}, "PUBLIC_URL: is not set."),
        ({"PUBLIC_URL": "bot.example.com"}, "PUBLIC_URL: is not an address."),
        ({"PUBLIC_URL": "http://127.0.0.1:3978"}, "PUBLIC_URL: is not https"),
        ({"PUBLIC_URL": "https://bot.example.com/bot"}, "PUBLIC_URL: has more than a host and a port."),
        ({"TEAMS_APP_NAME": "n" * 31}, "TEAMS_APP_NAME: is too long."),
        ({"TEAMS_APP_DEVELOPER": "d" * 33}, "TEAMS_APP_DEVELOPER: is too long."),
        ({"TEAMS_APP_WEBSITE": "acme.org"}, "TEAMS_APP_WEBSITE: is not an http or https address."),
        ({"TEAMS_APP_WEBSITE": "http://acme.org"}, "TEAMS_APP_WEBSITE: is not https"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes: dict[str, str], said: str) -> None:
    (problem,) = problems({**VARIABLES, **changes})
    assert problem.startswith(said)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert [line.split(":")[0] for line in problems({}, "1")] == ["MICROSOFT_APP_ID", "PUBLIC_URL", "--version"]


# ------------------------------------------------------------------------------------------------ the command


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", "adapters.teams.app_package", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.imports
def test_the_command_writes_the_package_from_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"MICROSOFT_APP_ID={APP_ID}\nPUBLIC_URL=https://kept.example.com\n")
    done = run(tmp_path, "--with-rsc", "--version", "1.2.3", PUBLIC_URL="https://bot.example.com")
    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(tmp_path / "dist" / "countersign-teams.zip") as package:
        made = json.loads(package.read("manifest.json"))
    expected = AppFacts(
        APP_ID, "https://bot.example.com", "Countersign", "Countersign", "https://bot.example.com", "1.2.3"
    )
    assert made == hearing_everything(manifest_of(expected)), "the environment wins over the file"


@pytest.mark.imports
def test_the_command_says_what_is_missing_and_writes_nothing(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("teams-package: MICROSOFT_APP_ID: is not set.")
    assert list(tmp_path.iterdir()) == []


def test_make_has_the_command() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "\nteams-package: " in makefile
    assert "-m adapters.teams.app_package" in makefile
