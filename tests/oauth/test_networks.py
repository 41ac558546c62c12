"""Nobody out there makes us ask what is inside (server-side request forgery).

Rule 13, and the care of section 6 for what comes from outside: a tool server names its metadata, an authorisation
server and its endpoints; each is resolved once, all its addresses are checked, and what was checked is connected to.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.oauth.http import Network, OAuthHttpClient, host_address, is_odd_spelling, may_follow, network_of
from bot.accounts.ports import Unreachable
from tests.oauth.test_discovery import PUBLIC_SERVER, serving
from tests.support.certificates import certificate_of

INSIDE = "https://10.0.0.5/mcp"
HERE = "http://127.0.0.1:1/mcp"


class Names:
    """A resolver that says another thing each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "127.1",
        "127.0.1",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "10.1",
        "3232235777",
        "0xa9fea9fe",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[::ffff:10.0.0.7]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[::]",
        "0.0.0.0",
        "0",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "224.0.0.1",
        "[ff02::1]",
        "255.255.255.255",
        "192.168.1.1",
        "172.16.0.1",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "127.0.0.1.",
    ],
)
def test_no_spelling_of_an_address_inside_is_followed(host: str) -> None:
    assert not may_follow(f"https://{host}/x", PUBLIC_SERVER)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "10.0.0.7"],
        ["::1"],
        ["fe80::1%eth0"],
        ["::ffff:169.254.169.254"],
        ["100.64.0.1"],
        ["224.0.0.1"],
        ["64:ff9b::a00:7"],
        [],
    ],
)
async def test_a_name_that_leads_inside_is_refused_before_anything_is_connected(addresses: list[str]) -> None:
    names = Names(addresses)
    http = OAuthHttpClient(resolve=names).for_addresses_named_by(PUBLIC_SERVER)
    with pytest.raises(Unreachable, match=r"login\.example: this address is not one to go to"):
        await http.request("GET", "https://login.example/x?code=secret")
    assert names.asked == ["login.example"]


async def test_what_was_checked_is_connected_to_and_a_name_is_resolved_once() -> None:
    """A second answer of the resolver would lead elsewhere (rebinding)."""

    async def told(request: web.Request) -> web.Response:
        return web.json_response({"host": request.host})

    async with serving(web.get("/x", told)) as base:
        port = base.rpartition(":")[2]
        names = Names(["127.0.0.1"])
        http = OAuthHttpClient(resolve=names).for_addresses_named_by(HERE)
        assert await http.json(f"http://login.example:{port}/x") == {"host": f"login.example:{port}"}
    assert names.asked == ["login.example"]


async def test_another_address_of_the_same_name_is_tried() -> None:
    async def told(_: web.Request) -> web.Response:
        return web.json_response({})

    async with serving(web.get("/x", told)) as base:
        port = base.rpartition(":")[2]
        names = Names(["127.0.0.9", "127.0.0.1"])
        assert (
            await OAuthHttpClient(resolve=names).for_addresses_named_by(HERE).json(f"http://login.example:{port}/x")
            == {}
        )


async def test_the_operator_s_own_address_is_asked_wherever_it_is() -> None:
    async def told(_: web.Request) -> web.Response:
        return web.json_response({})

    async with serving(web.get("/x", told)) as base:
        names = Names()
        assert await OAuthHttpClient(resolve=names).for_addresses_named_by(f"{base}/mcp").json(f"{base}/x") == {}
        assert names.asked == []


@pytest.mark.parametrize(
    ("server", "addresses", "goes"),
    [
        (INSIDE, ["10.0.0.6"], True),
        (INSIDE, ["127.0.0.1"], False),
        (INSIDE, ["169.254.169.254"], False),
        ("https://mcp.corp.internal/mcp", ["10.0.0.6"], True),
        ("http://mcp:8080/mcp", ["10.0.0.6"], True),
        ("http://mcp:8080/mcp", ["169.254.169.254"], False),
        # Whoever owns a name out there decides what it resolves to, and would let themselves in.
        ("https://mcp.evil.example/mcp", ["10.0.0.6"], False),
        (HERE, ["10.0.0.6"], False),
    ],
)
async def test_a_server_inside_may_name_others_where_it_is(server: str, addresses: list[str], *, goes: bool) -> None:
    http = OAuthHttpClient(resolve=Names(addresses), seconds=0.2).for_addresses_named_by(server)
    with pytest.raises(Unreachable) as refusal:
        await http.request("GET", "https://login.example:9/x")
    assert ("not one to go to" in str(refusal.value)) is not goes


def test_addresses_out_there_are_known_as_such() -> None:
    for address in ("93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34"):
        assert network_of(address) is Network.PUBLIC
        assert not is_odd_spelling(address)
    assert host_address("login.example.com") is None


@given(st.ip_addresses())
def test_every_address_is_in_one_network(address: object) -> None:
    assert network_of(str(address)) in Network


@given(st.text(max_size=40))
def test_no_host_breaks_the_reading_of_addresses(host: str) -> None:
    assert isinstance(is_odd_spelling(host), bool)


@pytest.mark.parametrize("name", ["login.example", "other.example"])
async def test_the_certificate_has_to_be_the_name_s_whatever_address_is_connected_to(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = certificate_of("login.example", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(certificate)

    async def told(_: web.Request) -> web.Response:
        return web.json_response({})

    application = web.Application()
    application.add_routes([web.get("/x", told)])
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=here).start()
        url = f"https://{name}:{runner.addresses[0][1]}/x"
        http = OAuthHttpClient(resolve=Names(["127.0.0.1"])).for_addresses_named_by(HERE)
        if name == "login.example":
            assert await http.json(url) == {}
        else:
            with pytest.raises(Unreachable):
                await http.json(url)
    finally:
        await runner.cleanup()
