"""`mcp.json`: what it means, and on which line what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.config import (
    AccountConfig,
    ConfigError,
    HttpTransport,
    ServerConfig,
    StdioTransport,
    keeping_files_here,
    load_config,
    parse_config,
    source_tools,
)
from adapters.tool_servers.positions import NotJsonError, locate
from policies.model import Lookup

FILE = Path("/srv/bot/mcp.json")


def parsed(entry: dict[str, Any], **environ: str) -> ServerConfig:
    return parse_config(json.dumps({"mcpServers": {"one": entry}}), FILE, environ).servers[0]


def error_in(text: str, **environ: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, FILE, environ)
    return caught.value


def test_the_servers_come_in_the_order_of_the_file() -> None:
    config = parse_config('{"mcpServers": {"b": {"command": "x"}, "a": {"url": "http://h/mcp"}}}', FILE, {})
    assert [server.name for server in config.servers] == ["b", "a"]


def test_what_the_file_says_has_no_white_space_of_its_own() -> None:
    text = '{"mcpServers": {"b": {"command": "x"}}}'
    said = parse_config(text, FILE, {}).said
    assert said == {"mcpServers": {"b": {"command": "x"}}}
    assert said == parse_config(text.replace(" ", "\r\n  "), FILE, {}).said


def test_a_program_gets_its_arguments_environment_and_folder() -> None:
    server = parsed(
        {"command": "npx", "args": ["-y", "${PACKAGE}"], "env": {"TOKEN": "x-${SECRET}"}, "cwd": "tools"},
        PACKAGE="some-server",
        SECRET="abc",
    )
    assert server.transport == StdioTransport("npx", ("-y", "some-server"), {"TOKEN": "x-abc"}, Path("/srv/bot/tools"))


def test_a_program_runs_in_the_folder_of_the_file_when_none_is_given() -> None:
    assert parsed({"command": "x"}).transport == StdioTransport("x", (), {}, Path("/srv/bot"))


def test_an_endpoint_gets_its_headers_and_counts_as_signed_in_with_them() -> None:
    server = parsed({"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}, T="abc")
    assert server.transport == HttpTransport("https://h/mcp", {"Authorization": "Bearer abc"})
    assert server.auth == "headers"


def test_the_line_break_at_the_end_of_a_secrets_file_is_no_part_of_the_secret() -> None:
    there = parsed({"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}, T="abc\n")
    assert there.transport == HttpTransport("https://h/mcp", {"Authorization": "Bearer abc"})
    here = parsed({"command": "x", "env": {"KEY": "${T}"}}, T="abc\r\n")
    assert here.transport == StdioTransport("x", (), {"KEY": "abc"}, FILE.parent)


def test_what_a_variable_contains_is_not_filled_in_again() -> None:
    assert parsed({"command": "x", "args": ["${A}"]}, A="${B}").transport == StdioTransport(
        "x", ("${B}",), {}, FILE.parent
    )


def test_all_that_the_operator_says_of_the_tools_is_kept() -> None:
    server = parsed(
        {
            "command": "x",
            "category": "office",
            "tools": ["read", "write"],
            "requireApproval": ["write"],
            "idempotentTools": ["read"],
            "readOnlyTools": ["read"],
            "sourceTools": ["read"],
            "trustAnnotations": True,
            "timeoutSeconds": 5,
        }
    )
    assert (server.category, server.trust_annotations, server.timeout) == ("office", True, 5.0)
    assert server.tools == frozenset({"read", "write"})
    assert server.require_approval == frozenset({"write"})
    assert server.idempotent_tools == server.read_only_tools == server.source_tools == frozenset({"read"})
    assert source_tools([server]) == frozenset({"one__read"})


def test_what_is_read_for_cards_is_named_by_argument_and_by_tool() -> None:
    server = parsed(
        {
            "command": "x",
            "readOnlyTools": ["get", "find", "preview"],
            "lookupTools": {"event_id": "get", "room": {"tool": "find", "argument": "id"}},
            "previewTools": {"move": "preview"},
        }
    )
    assert server.lookups == {"event_id": Lookup("get", "event_id"), "room": Lookup("find", "id")}
    assert server.preview_tools == {"move": "preview"}


def test_the_defaults_trust_nothing() -> None:
    server = parsed({"command": "x"})
    assert (server.category, server.tools, server.auth, server.timeout) == ("general", None, "none", 60.0)
    assert not (
        server.trust_annotations or server.require_approval or server.idempotent_tools or server.read_only_tools
    )


def test_no_file_means_no_servers(tmp_path: Path) -> None:
    assert load_config(tmp_path / "mcp.json", {}).servers == ()


def test_the_file_of_the_project_is_right() -> None:
    calendar, tasks, documents = load_config(Path(__file__).parents[2] / "mcp.json", {}).servers
    assert (calendar.name, calendar.category, tasks.name, tasks.category) == ("calendar", "calendar", "tasks", "tasks")
    assert calendar.trust_annotations
    assert tasks.trust_annotations
    assert (documents.tells_channel, documents.category) == (True, "documents")


def test_a_bundled_program_is_not_shared_unless_what_it_keeps_is() -> None:
    program = {"command": "python", "args": ["-m", "servers.documents"]}
    address = "postgresql://db/documents"
    assert keeping_files_here([parsed(program)]) == ["one"]
    assert keeping_files_here([parsed(program | {"env": {"DOCUMENTS_DB": "${WHERE}"}}, WHERE=address)]) == []
    assert keeping_files_here([parsed({"url": "http://h/mcp"})]) == []


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 1: cannot be read"):
        load_config(tmp_path, {})


def test_bytes_that_are_no_text_are_reported_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b'{\n"mcpServers":\n{"\xff": 1}}')
    with pytest.raises(ConfigError, match="line 3: is not UTF-8"):
        load_config(file, {})


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b'\xef\xbb\xbf{"mcpServers": {}}')
    assert load_config(file, {}).servers == ()


def entry(*lines: str) -> str:
    """A file whose server `one` has these lines, the first of them on line 4."""
    body = ",\n".join(lines)
    return f'{{\n"mcpServers": {{\n"one": {{\n{body}\n}}}}}}'


MISTAKES = {
    "nothing at all": ("", 1, "not valid JSON"),
    "a missing comma": ('{\n"mcpServers": {\n"a": {"command": "x"}\n"b": {}}}', 4, "not valid JSON"),
    "not a number": (entry('"command": "x"', '"timeoutSeconds":\n  NaN'), 6, "NaN is not a number"),
    "endless digits": (entry('"command": "x"', f'"timeoutSeconds": {"9" * 5000}'), 5, "is not a number"),
    "too deep": (entry('"command": "x"', '"args": ' + "[" * 60 + "]" * 60), 5, "nested too deeply"),
    "deeper than the stack": ("[" * 100_000, 1, "nested too deeply"),
    "a list for the whole": ("\n[]", 2, "must be an object"),
    "no servers": ("\n{}", 2, "mcpServers: is missing"),
    "an unknown key beside the servers": ('{"mcpServers": {},\n"servers": {}}', 2, "servers: unknown key"),
    "an unknown key": (entry('"command": "x"', '"autoApprove": []'), 5, "mcpServers.one.autoApprove: unknown key"),
    "the same key twice": (entry('"command": "x"', '"command": "y"'), 5, "for the second time (first on line 4)"),
    "the same server twice": ('{"mcpServers": {"a": {"command": "x"},\n"a": {}}}', 2, "for the second time"),
    "a server that is no object": ('{"mcpServers": {\n"a":\n"x"}}', 3, "mcpServers.a: must be an object"),
    "neither program nor endpoint": (entry('"args": []'), 3, "needs either `command`"),
    "program and endpoint": (entry('"url": "http://h/"', '"command": "x"'), 5, "both `command` and `url`"),
    "an empty program": (entry('"command": ""'), 4, "must not be empty"),
    "a program that is no text": (entry('"command":\n["x"]'), 5, "must be a text"),
    "arguments that are no list": (entry('"command": "x"', '"args": "-y"'), 5, "args: must be a list"),
    "an argument that is no text": (entry('"command": "x"', '"args": ["-p",\n80]'), 6, "args[1]: must be a text"),
    "a NUL in an argument": (entry('"command": "x"', '"args": ["\\u0000"]'), 5, "NUL"),
    "a variable that is no text": (entry('"command": "x"', '"env": {"A": "",\n"B": 1}'), 6, "env.B: must be a text"),
    "a variable without a name": (entry('"command": "x"', '"env": {"A": "",\n"": ""}'), 6, "no name of an environment"),
    "headers for a program": (entry('"command": "x"', '"headers": {}'), 5, "`headers` goes only with `url`"),
    "arguments for an endpoint": (entry('"url": "http://h/"', '"args": []'), 5, "`args` goes only with `command`"),
    "a header without a name": (entry('"url": "http://h/"', '"headers": {"a b":\n"x"}'), 5, "HTTP header"),
    "a line feed in a header": (entry('"url": "http://h/"', '"headers": {"a":\n"x\\ny"}'), 6, "printable ASCII"),
    "an address of another kind": (entry('"url": "ftp://h/"'), 4, "url: must be an http:// or https:// URL"),
    "an address without a host": (entry('"url": "http://"'), 4, "must be an http"),
    "an address with a bad port": (entry('"url": "http://h:99999/"'), 4, "url: "),
    "brackets around nothing": (entry('"url": "http://[x/"'), 4, "host or port cannot be read"),
    "a password in the address": (entry('"url": "http://u:p@h/"'), 4, "put them into `headers`"),
    "a type that is unknown": (entry('"command": "x"', '"type": "pipe"'), 5, "type: must be 'stdio'"),
    "a program over SSE": (entry('"command": "x"', '"type": "sse"'), 5, "does not go with `command`"),
    "a type that does not fit": (entry('"command": "x"', '"type": "http"'), 5, "does not go with `command`"),
    "an unknown auth": (entry('"url": "http://h/"', '"auth": "basic"'), 5, "auth: must be 'none', 'headers' or"),
    "header auth without headers": (entry('"url": "http://h/"', '"auth": "headers"'), 5, "there are no `headers`"),
    "sign-in for a program": (entry('"command": "x"', '"auth": "oauth"'), 5, "goes only with `url`"),
    "approval for a tool left out": (
        entry('"command": "x"', '"tools": ["a"]', '"requireApproval": ["a",\n"b"]'),
        7,
        'requireApproval[1]: "b" is not among `tools`',
    ),
    "an idempotent tool left out": (
        entry('"command": "x"', '"tools": []', '"idempotentTools": ["b"]'),
        6,
        "not among `tools`",
    ),
    "a reading tool left out": (
        entry('"command": "x"', '"tools": ["a"]', '"readOnlyTools": ["a",\n"b"]'),
        7,
        'readOnlyTools[1]: "b" is not among `tools`',
    ),
    "a look-up left out": (
        entry('"command": "x"', '"tools": ["a"]', '"readOnlyTools": ["a"]', '"lookupTools": {\n"a_id": "b"}'),
        8,
        'lookupTools.a_id: "b" is not among `tools`',
    ),
    "a look-up that may write": (
        entry('"command": "x"', '"lookupTools": {"a_id":\n{"tool": "b", "argument": "id"}}'),
        6,
        'lookupTools.a_id: "b" is not known to read only: name it in `readOnlyTools`, or set `trustAnnotations`',
    ),
    "a look-up with a key too many": (
        entry('"command": "x"', '"lookupTools": {"a_id": {"tool": "b", "argument": "id",\n"as": "c"}}'),
        6,
        "unknown key; known are argument, tool",
    ),
    "a preview that may write": (
        entry('"command": "x"', '"readOnlyTools": ["c"]', '"previewTools": {"a": "c",\n"b": "d"}'),
        7,
        'previewTools.b: "d" is not known to read only',
    ),
    "a preview of what is left out": (
        entry('"command": "x"', '"tools": ["c"]', '"trustAnnotations": true', '"previewTools": {\n"a": "c"}'),
        8,
        'previewTools.a: "a" is not among `tools`',
    ),
    "a preview of a preview": (
        entry('"command": "x"', '"trustAnnotations": true', '"previewTools": {"a": "b",\n"b": "c"}'),
        6,
        'previewTools.a: "b" has a preview itself',
    ),
    "a secret of a server that is told nothing": (
        entry('"url": "http://h/"', '"requesterSecret": "x"'),
        5,
        "goes only with `url` and `tellRequester`",
    ),
    "a secret for a program": (
        entry('"command": "x"', '"tellRequester": true', '"requesterSecret": "x"'),
        6,
        "goes only with `url` and `tellRequester`",
    ),
    "sources of a tool that is not there": (
        entry('"command": "x"', '"tools": ["a"]', '"sourceTools": ["a",\n"b"]'),
        7,
        'sourceTools[1]: "b" is not among `tools`',
    ),
    "files for whom nobody signs": (entry('"command": "x"', '"fileArguments": {"a": "b"}'), 5, "goes only with"),
    "a channel without a person": (entry('"command": "x"', '"tellChannel": true'), 5, "goes only with"),
    "nothing to sign with": (entry('"url": "http://h/"', '"tellRequester": true'), 5, "needs `requesterSecret`"),
    "too little to sign with": (
        entry('"url": "http://h/"', '"tellRequester": true', f'"requesterSecret": "{"x" * 31}"'),
        6,
        "requesterSecret: is too short: use at least 32 characters",
    ),
    "a tool without a name": (entry('"command": "x"', '"tools": ["a",\n""]'), 6, "must not be empty"),
    "trust that is not yes or no": (entry('"command": "x"', '"trustAnnotations": "yes"'), 5, "must be true or false"),
    "no time at all": (entry('"command": "x"', '"timeoutSeconds": 0'), 5, "greater than 0"),
    "more time than there is": (entry('"command": "x"', '"timeoutSeconds": 1e999'), 5, "less than or equal to 3600"),
    "time as a text": (entry('"command": "x"', '"timeoutSeconds": "60"'), 5, "must be a number"),
    "an odd category": (entry('"command": "x"', '"category": "a\\nb"'), 5, "at most 40 letters"),
    "a name with two underscores": ('{"mcpServers": {\n"a__b":\n{"command": "x"}}}', 2, "no server name"),
    "a name with an underscore at the end": ('{"mcpServers": {\n"a_": {"command": "x"}}}', 2, "no server name"),
    "a name with a blank": ('{"mcpServers": {\n"a b": {"command": "x"}}}', 2, "no server name"),
    "an empty name": ('{"mcpServers": {\n"": {"command": "x"}}}', 2, "no server name"),
    "a name that is too long": (f'{{"mcpServers": {{\n"{"a" * 33}": {{"command": "x"}}}}}}', 2, "at most 32"),
    "a variable that is not set": (
        entry('"command": "x"', '"args": ["a",\n"${NO_SUCH}"]'),
        6,
        "args[1]: the environment variable NO_SUCH is not set",
    ),
    "a variable with a default": (entry('"command": "x"', '"env": {"A": "${A:-b}"}'), 5, "write ${NAME}"),
}


@pytest.mark.parametrize(("text", "line", "reason"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_with_its_line_and_reason(text: str, line: int, reason: str) -> None:
    error = error_in(text)
    assert (error.path, error.line) == (FILE, line), error
    assert reason in error.reason
    assert str(error) == f"{FILE}, line {line}: {error.reason}"


def test_of_several_mistakes_the_first_in_the_file_is_reported() -> None:
    assert error_in(entry('"command": "x"', '"bad": 1', '"timeoutSeconds": 0')).line == 5


def test_an_error_gives_no_secret_away() -> None:
    text = entry('"url": "http://h:${SECRET}/"', '"headers": {"X": "${SECRET}\\n"}')
    assert "hunter2hunter2" not in str(error_in(text, SECRET="hunter2hunter2"))


def test_a_configuration_shows_no_secret_in_its_repr() -> None:
    program = parsed({"command": "x", "args": ["--token=${T}"], "env": {"API_KEY": "hunter2hunter2"}}, T="abcabcabc")
    endpoint = parsed({"url": "https://h/${T}", "headers": {"Authorization": "Bearer ${T}"}}, T="abcabcabc")
    for shown in (repr(program), repr(endpoint)):
        assert "abcabcabc" not in shown
        assert "hunter2hunter2" not in shown


def test_what_is_signed_with_is_shown_nowhere_and_voids_nothing_when_it_is_another() -> None:
    one, two = (parsed({"command": "x", "tellRequester": True}) for _ in range(2))
    given = [each.transport.env for each in (one, two) if isinstance(each.transport, StdioTransport)]
    assert [env["COUNTERSIGN_REQUESTER_SERVER"] for env in given] == ["one", "one"]
    first, second = (env["COUNTERSIGN_REQUESTER_SECRET"] for env in given)
    assert first == one.requester_secret != second
    assert (first not in repr(one), one.secrets, one.fingerprint) == (True, {first}, two.fingerprint)
    assert one.fingerprint != parsed({"command": "x"}).fingerprint

    entry = {"url": "https://h/", "tellRequester": True, "requesterSecret": "${SIGNING}"}
    one, two = (parsed(entry, SIGNING=letter * 32) for letter in "ab")
    assert (one.requester_secret, one.secrets, one.fingerprint) == ("a" * 32, {"a" * 32}, two.fingerprint)
    assert "a" * 32 not in repr(one)


def test_what_was_handed_to_a_server_in_confidence_is_known() -> None:
    assert parsed({"command": "x", "args": ["${MY_TOKEN}"]}, MY_TOKEN="abcabcabc").secrets == {"abcabcabc"}
    assert "abcabcabc" in parsed({"url": "https://h/", "headers": {"Authorization": "Bearer abcabcabc"}}).secrets
    assert parsed({"command": "x", "env": {"LEVEL": "information"}}).secrets == set()


class TestTheFingerprint:
    def test_is_the_same_for_the_same_configuration_in_another_order(self) -> None:
        one = parsed({"command": "x", "env": {"A": "1", "B": "2"}}).fingerprint
        assert one == parsed({"env": {"B": "2", "A": "1"}, "command": "x"}).fingerprint
        assert len(one) == 64

    @pytest.mark.parametrize(
        "other",
        [
            {"command": "y", "args": ["a"], "env": {"A": "1"}, "cwd": "c"},
            {"command": "x", "args": ["b"], "env": {"A": "1"}, "cwd": "c"},
            {"command": "x", "args": ["a"], "env": {"A": "2"}, "cwd": "c"},
            {"command": "x", "args": ["a"], "env": {"A": "1", "TOKEN": "t"}, "cwd": "c"},
            {"command": "x", "args": ["a"], "env": {"A": "1"}, "cwd": "d"},
            {"url": "http://h/"},
        ],
    )
    def test_is_another_when_something_else_would_run(self, other: dict[str, Any]) -> None:
        this = {"command": "x", "args": ["a"], "env": {"A": "1"}, "cwd": "c"}
        assert parsed(this).fingerprint != parsed(other).fingerprint

    def test_is_another_for_another_address_or_another_header(self) -> None:
        this = parsed({"url": "http://h/", "headers": {"X-Team": "a"}}).fingerprint
        assert this != parsed({"url": "http://h/2", "headers": {"X-Team": "a"}}).fingerprint
        assert this != parsed({"url": "http://h/", "headers": {"X-Team": "b"}}).fingerprint
        assert this != parsed({"url": "http://h/", "headers": {"X-Team": "a", "Cookie": ""}}).fingerprint

    def test_stays_when_a_token_is_renewed(self) -> None:
        entry = {"url": "http://h/", "headers": {"Authorization": "Bearer ${T}"}}
        assert parsed(entry, T="old").fingerprint == parsed(entry, T="new").fingerprint

    def test_follows_what_a_variable_contains(self) -> None:
        entry = {"command": "x", "args": ["${DB}"]}
        assert parsed(entry, DB="staging").fingerprint != parsed(entry, DB="production").fingerprint

    def test_stays_when_only_the_judgement_of_its_tools_changes(self) -> None:
        this = parsed({"command": "x"}).fingerprint
        assert this == parsed({"command": "x", "timeoutSeconds": 5, "category": "c"}).fingerprint


WORDS = st.sampled_from(
    [
        "mcpServers",
        "one",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "type",
        "tools",
        "auth",
        "http://h/",
        "${A}",
    ]
) | st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
VALID = json.dumps({"mcpServers": {"one": {"command": "x", "args": ["${A}"], "timeoutSeconds": 1.5}}}, indent=1)


def survives(text: str) -> None:
    try:
        parse_config(text, FILE, {"A": "a"})
    except ConfigError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        str(error).encode()


@settings(deadline=None)  # a busy machine is no mistake
@given(st.text())
def test_no_text_makes_anything_but_a_config_error(text: str) -> None:
    survives(text)


@settings(deadline=None)  # a busy machine is no mistake
@given(value=JSON, wrapped=st.booleans())
def test_no_json_makes_anything_but_a_config_error(*, value: Any, wrapped: bool) -> None:
    survives(json.dumps({"mcpServers": {"one": value}} if wrapped else value, indent=1))


@settings(deadline=None)  # a busy machine is no mistake
@given(st.integers(0, len(VALID)), st.integers(0, 3), st.text(max_size=3))
def test_no_slip_of_the_pen_makes_anything_but_a_config_error(at: int, removed: int, inserted: str) -> None:
    survives(VALID[:at] + inserted + VALID[at + removed :])


@settings(deadline=None)  # a busy machine is no mistake
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), min_size=1), st.integers(0, 3))
def test_every_value_is_found_on_its_line(members: dict[str, Any], blank: int) -> None:
    text = "\n" * blank + json.dumps(members, indent=1)
    located = locate(text)
    assert located.value == members
    for key, value in members.items():
        line = located.values[(key,)]
        assert line == located.keys[(key,)]
        assert f"{json.dumps(key)}: {json.dumps(value)}" in text.split("\n")[line - 1]


def test_what_is_no_json_is_told_apart_from_what_means_nothing() -> None:
    with pytest.raises(NotJsonError, match="line 2"):
        locate("{\n,}")


# ------------------------------------------------------------------------------------------------ people's accounts


def test_a_server_with_its_own_sign_in_is_its_own_connection() -> None:
    server = parsed({"url": "https://h/mcp", "auth": "oauth"})
    assert (server.auth, server.account) == ("oauth", AccountConfig("one"))


def test_a_client_of_ours_may_be_configured() -> None:
    auth = {"type": "oauth", "scopes": ["a:b"], "clientId": "${ID}", "clientSecret": "${SECRET}"}
    server = parsed({"url": "https://h/mcp", "auth": auth}, ID="client", SECRET="hunter2hunter2")
    assert server.account == AccountConfig("one", None, ("a:b",), "client", "hunter2hunter2")
    assert server.secrets == {"hunter2hunter2"}
    assert "hunter2" not in repr(server)


def test_a_provider_is_a_connection_that_servers_share() -> None:
    server = parsed({"url": "https://h/mcp", "auth": {"provider": "google", "scopes": ["files", "mail"]}})
    assert (server.auth, server.account) == ("oauth", AccountConfig("google", "google", ("files", "mail")))


def test_whose_accounts_and_what_they_allow_is_part_of_what_was_approved() -> None:
    def fingerprint(auth: Any) -> str:
        return parsed({"url": "https://h/mcp", "auth": auth}).fingerprint

    secret = {"clientId": "c", "clientSecret": "one"}
    ways: list[Any] = ["none", "oauth", {"provider": "a"}, {"provider": "b"}, {"scopes": ["s"]}, secret]
    assert len({fingerprint(auth) for auth in ways}) == len(ways)
    assert fingerprint(secret) == fingerprint({**secret, "clientSecret": "two"})


ACCOUNT_MISTAKES = {
    "an unknown key": ('{"provder": "google"}', "auth.provder: unknown key; known are clientId"),
    "no scope": ('{"scopes": ["a b"]}', "auth.scopes[0]: must be one scope"),
    "no provider": ('{"provider": "a b"}', "auth.provider: must be the name of a provider"),
    "a client at a provider": ('{"provider": "a", "clientId": "c"}', "`clientId` does not go with `provider`"),
    "a secret of nobody": ('{"clientSecret": "c"}', "`clientSecret` goes only with `clientId`"),
    "neither word nor object": ("7", "auth: must be"),
}


@pytest.mark.parametrize(("auth", "reason"), ACCOUNT_MISTAKES.values(), ids=ACCOUNT_MISTAKES)
def test_a_mistake_in_auth_is_reported_where_it_is(auth: str, reason: str) -> None:
    error = error_in(entry('"url": "http://h/"', f'"auth": {auth}'))
    assert reason in error.reason
    assert error.line == 5


def test_people_s_accounts_need_a_url_and_leave_no_room_for_another_credential() -> None:
    assert "goes only with `url`" in error_in(entry('"command": "x"', '"auth": {"provider": "a"}')).reason
    both = entry('"url": "http://h/"', '"auth": "oauth"', '"headers": {"authorization": "x"}')
    assert "each person's own account" in error_in(both).reason


def test_a_server_and_a_provider_cannot_share_a_name() -> None:
    google = '"google": {"url": "http://h/", "auth": "oauth"}'
    other = '"files": {"url": "http://h/", "auth": {"provider": "google"}}'
    error = error_in(f'{{"mcpServers": {{\n{other},\n{google}}}}}')
    assert (error.line, "same name" in error.reason) == (3, True)


def test_the_operator_may_describe_how_a_server_says_that_somebody_must_sign_in() -> None:
    server = parsed({"command": "x", "signIn": {"pattern": "log in first", "host": "idp.test:8443"}})
    assert server.sign_in
    assert (server.sign_in.host, bool(server.sign_in.pattern.search(b"please log in first"))) == ("idp.test:8443", True)
    assert parsed({"command": "x"}).sign_in is None


@pytest.mark.parametrize(
    ("rule", "line", "reason"),
    [
        ('{"pattern": "a(", "host": "idp.test"}', 3, "is no regular expression in RE2's syntax: missing ): a("),
        ('{"pattern": "(?=a)", "host": "idp.test"}', 3, "is no regular expression in RE2's syntax"),
        ('{"pattern": "", "host": "idp.test"}', 3, "must not be empty"),
        ('{"pattern": "a",\n"host": "https://idp.test"}', 4, "must be a host as in a link"),
        ('{"pattern": "a",\n"host": "IDP.test"}', 4, "must be a host as in a link"),
        ('{"pattern": "a",\n"host": ""}', 4, "must be a host as in a link"),
        ('{"pattern": "a"}', 3, "is missing"),
        ('{"pattern": "a",\n"hosts": "idp.test"}', 3, "is missing"),
        ('{"pattern": "a", "host": "a.test",\n"more": 1}', 4, "unknown key; known are host, pattern"),
    ],
)
def test_a_mistake_in_that_description_is_reported_where_it_stands(rule: str, line: int, reason: str) -> None:
    error = error_in(f'{{"mcpServers": {{"one": {{\n"command": "x",\n"signIn": {rule}}}}}}}')
    assert error.line == line
    assert "mcpServers.one.signIn" in error.reason
    assert reason in error.reason
