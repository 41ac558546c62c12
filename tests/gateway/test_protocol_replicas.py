"""One client whose requests reach one process of the product or the other."""

from __future__ import annotations

import aiohttp
import pytest

from tests.api.contract_clients import token
from tests.gateway.transport import McpClient, next_message
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.two_products import share


@pytest.mark.postgres
async def test_whoever_has_read_a_result_makes_a_new_call_with_the_same_one_at_the_other_replica(
    agents_home: ProductFolder, shop: Workshop
) -> None:
    """The other one may not have heard yet that the result was delivered."""
    share(agents_home)
    agents_home.variables["PORT"] = "0"
    look = {"name": "workshop__look", "arguments": {"what": "lamp"}}
    async with (
        product_here(agents_home) as one,
        product_here(agents_home) as other,
        aiohttp.ClientSession() as http,
    ):
        client = await McpClient(one, http, token("ana")).initialized()
        for number in range(20):
            client.url = (one, other)[number % 2]
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": look}
            async with client.begun(message) as response:
                assert "lamp looks fine" in str(await next_message(response))
    assert len(shop.looked) == 20
