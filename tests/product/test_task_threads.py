"""The thread of a task is no conversation: nobody reads, writes in or stops it but through the one it belongs to."""

from __future__ import annotations

from urllib.parse import quote

import aiohttp

from tests.api.contract_clients import Caller, token, with_tokens
from tests.fakes.openai_server import fake_openai
from tests.product.test_plans import asked_about, stand
from tests.support.finance import ANSWER, REQUEST, brain, finance_company
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import rows_in_records
from tests.support.visitor import visiting


async def test_nobody_reads_writes_in_or_stops_the_thread_of_a_task_as_a_conversation(home: ProductFolder) -> None:
    async with fake_openai(brain) as model:
        finance_company(with_tokens(home), model)
        home.variables["OPERATORS"] = "web:chloe"
        async with (
            product_here(home) as url,
            visiting(url, "ana") as ana,
            ana.thread() as thread,
            aiohttp.ClientSession() as http,
        ):
            await thread.send(REQUEST)
            flag = await asked_about(thread, "flag")
            await stand(thread, find="done", orders="done", check="waiting", mail="blocked")
            tasks = [row.thread_id for row in rows_in_records(home, "SELECT thread_id FROM plan_tasks ORDER BY number")]
            assert len(tasks) == 4
            api = Caller(url, http, token("ana"))
            for task in tasks:
                path = f"/api/v1/threads/{quote(task, safe=':')}"
                tried = [
                    await api.get(path),
                    await api.post(f"{path}/messages", {"text": "find: done, nothing differs"}),
                    await api.post(f"{path}/messages", {"text": "stop"}),
                    await api.post(f"{path}/stop", {}),
                ]
                assert [each.status for each in tried] == [404] * 4, task
            async with visiting(url, "chloe") as chloe:
                listed = await chloe.get("/api/threads?of=everybody")
            assert [each["thread_id"] for each in listed.body["threads"]] == [thread.thread_id]
            await thread.approve(flag["id"])
            await thread.approve((await asked_about(thread, "draft"))["id"])
            assert await thread.says("INV-8") == ANSWER


async def test_a_card_of_a_task_is_gone_with_the_conversation(home: ProductFolder) -> None:
    async with fake_openai(brain) as model:
        finance_company(with_tokens(home), model)
        async with (
            product_here(home) as url,
            visiting(url, "ana") as ana,
            ana.thread() as thread,
            aiohttp.ClientSession() as http,
        ):
            await thread.send(REQUEST)
            flag = await asked_about(thread, "flag")
            api, card = Caller(url, http, token("ana")), f"/api/v1/approvals/{flag['id']}"
            assert (await api.get(card)).status == 200
            assert (await ana.post(f"/api/threads/{thread.thread_id}/deletion", {"id": "d1"})).status == 200
            assert (await api.get(card)).status == 404
