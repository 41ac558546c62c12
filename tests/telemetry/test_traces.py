"""Traces as a collector gets them: one for each turn, whatever pauses and restarts it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app import ConfigurationError
from tests.api.contract_clients import with_tokens
from tests.api.stream_clients import program
from tests.fakes.collector import Collector, TracedSpan, collecting
from tests.fakes.openai_server import Reply, fake_openai
from tests.support.planted import COLD, LEAKS, PLANTED, plant
from tests.support.product import ProductFolder, product_here, product_process
from tests.support.tools import Workshop
from tests.support.visitor import WITHIN, Thread, visiting

SECRET = "sk-lf-0123456789abcdef"
LINK = "https://files.example.com/share/top-secret-path?code=4711-0815"


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    """A strict collector."""
    async with collecting() as running:
        yield running


@pytest.fixture
def traced_home(workshop_home: ProductFolder, collector: Collector) -> ProductFolder:
    """The product, which sends its traces there at once."""
    workshop_home.variables |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team=ops,authorization=Bearer%20of-the-collector",
        "OTEL_SERVICE_NAME": "our-bot",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    return workshop_home


def only(spans: list[TracedSpan]) -> TracedSpan:
    assert len(spans) == 1, spans
    return spans[0]


async def make_with_a_restart_in_between(home: ProductFolder, message: str = "use make what=lamp") -> Thread:
    """A conversation whose turn asks somebody, pauses, and goes on in another process."""
    async with product_process(home) as first, visiting(first.url) as ana, ana.thread(within=COLD) as thread:
        await thread.send(message)
        (card,) = await thread.waiting()
        await first.terminate()
    async with (
        product_process(home) as second,
        visiting(second.url) as ana,
        ana.thread(thread.thread_id, within=COLD) as thread,
    ):
        await thread.approve(card["id"])
        await thread.says("made lamp")
        await thread.card(card["id"], "approved", result="made lamp")
        await second.terminate()
    return thread


async def test_a_turn_is_one_trace_from_its_message_to_its_last_post_over_a_pause_and_a_restart(
    traced_home: ProductFolder, collector: Collector
) -> None:
    thread = await make_with_a_restart_in_between(traced_home)
    assert collector.faults == []
    assert len({span.trace for span in collector.spans}) == 1
    root = only([span for span in collector.spans if not span.parent])
    known = {span.span_id for span in collector.spans}
    assert {span.parent for span in collector.spans} - {""} <= known, "nobody is lost"
    assert {link for span in collector.spans for link in span.links} <= known

    assert root.name == "invoke_agent countersign"
    asked, resumed = collector.named("invoke_agent countersign")
    assert asked is root
    assert (asked.attributes["countersign.outcome"], resumed.attributes["countersign.outcome"]) == ("waits", "done")
    first, second = collector.named("chat any")
    assert (first.parent, second.parent) == (root.span_id, resumed.span_id)
    assert first.kind == "CLIENT"
    assert (first.attributes["gen_ai.operation.name"], first.attributes["gen_ai.request.model"]) == ("chat", "any")
    assert (first.attributes["gen_ai.usage.input_tokens"], first.attributes["gen_ai.usage.output_tokens"]) == (10, 5)
    assert 0 <= first.attributes["gen_ai.response.time_to_first_chunk"] <= (first.ended - first.began) / 1e9
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]

    judged = only(collector.named("policy make"))
    approval = only(collector.named("approval make"))
    called = only(collector.named("tools/call make"))
    assert judged.attributes["countersign.policy.verdict"] == "ask"
    assert (judged.parent, approval.parent, called.parent) == (root.span_id, root.span_id, resumed.span_id)
    assert approval.links == (judged.span_id,)
    assert called.links == (approval.span_id,), "the call is linked to the wait that it resumes from"
    assert resumed.links == (approval.span_id,)
    assert approval.attributes["countersign.outcome"] == "approved"
    assert approval.began <= root.ended <= resumed.began <= called.began
    assert (called.kind, called.attributes["mcp.method.name"]) == ("CLIENT", "tools/call")
    assert called.attributes["gen_ai.operation.name"] == "execute_tool"
    assert (called.attributes["gen_ai.tool.name"], called.attributes["countersign.tool.server"]) == ("make", "workshop")
    assert called.attributes["countersign.outcome"] == "done"

    posts = collector.named("post web")
    assert {post.parent for post in posts} == {root.span_id}
    assert {"approval", "said"} <= {post.attributes["countersign.post.kind"] for post in posts}
    assert max(span.ended for span in posts) >= second.ended, "the answer was shown"
    assert {span.attributes["session.id"] for span in collector.spans} == {thread.thread_id}
    assert {span.attributes.get("user.id") for span in collector.spans} == {"web:ana", None}
    resource = root.resource
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("our-bot", "test")
    assert {sent["x-team"] for sent in collector.headers} == {"ops"}
    assert {sent["authorization"] for sent in collector.headers} == {"Bearer of-the-collector"}


async def test_without_content_nothing_that_anybody_said_is_in_a_trace(
    traced_home: ProductFolder, collector: Collector
) -> None:
    await make_with_a_restart_in_between(traced_home)
    sent = b"".join(collector.bodies)
    assert collector.spans
    for said in (b"lamp", b"On it", b"Results", b"sk-test-key-of-nobody"):
        assert said not in sent


async def test_with_content_it_says_what_was_said_and_called(traced_home: ProductFolder, collector: Collector) -> None:
    traced_home.variables |= {"TRACE_CONTENT": "true", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    await make_with_a_restart_in_between(traced_home)
    assert collector.faults == []
    assert {sent["content-encoding"] for sent in collector.headers} == {"gzip"}
    called = only(collector.named("tools/call make"))
    assert called.attributes["gen_ai.tool.call.arguments"] == '{"what":"lamp"}'
    assert called.attributes["gen_ai.tool.call.result"] == "made lamp"
    first, second = collector.named("chat any")
    assert '"use make what=lamp"' in first.attributes["gen_ai.input.messages"]
    assert '"tool_call"' in first.attributes["gen_ai.output.messages"]
    assert "made lamp" in second.attributes["gen_ai.output.messages"]
    root, resumed = collector.named("invoke_agent countersign")
    assert "use make" in root.attributes["gen_ai.input.messages"]
    assert "made lamp" in resumed.attributes["gen_ai.output.messages"]


@pytest.mark.parametrize("content", ["false", "true"])
async def test_no_secret_link_code_or_token_is_in_any_span(
    traced_home: ProductFolder, collector: Collector, shop: Workshop, content: str
) -> None:
    plant(traced_home, shop)

    async def share(what: str) -> str:
        return f"{what} is at {LINK}, or ftp://ana:pass-of-ana@files.example.com/x"

    shop.server.tool(title="Share")(share)
    traced_home.variables["TRACE_CONTENT"] = content
    traced_home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    async with product_here(traced_home) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send(f"{LEAKS}; share what=it")
        await thread.says("results")
        await thread.send(f"look at {LINK} with token ghp_{'A1b2C3' * 6}")
        await thread.says("you said")
        await thread.send("use make_with_account what=lamp")  # whose server sends a link to sign in
        await thread.until(lambda: thread.contents("sign_in"))
    assert collector.faults == []
    assert (len(collector.named("tools/call share")), len(collector.named("tools/call make_with_account"))) == (1, 1)
    sent = b"".join(collector.bodies).decode("utf-8", "replace")
    for secret in (
        *PLANTED, "A1b2C3A1b2C3", "top-secret-path", "4711-0815", "pass-of-ana", "top-secret-ticket", "sk-test-key",
        "of-the-collector",
    ):  # fmt: skip
        assert secret not in sent, secret
    assert ("files.example.com" in sent) == (content == "true"), "the host of a link may be told"


async def test_a_model_that_fails_is_seen_in_its_span_and_in_the_turn(
    traced_home: ProductFolder, collector: Collector
) -> None:
    async with fake_openai(lambda _: Reply(status=401)) as refusing:
        traced_home.variables["OPENAI_BASE_URL"] = refusing.base_url
        async with product_here(traced_home) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
            await thread.send("hello")
            await thread.notice("key rejected")
    assert collector.faults == []
    chat, root = only(collector.named("chat any")), only(collector.named("invoke_agent countersign"))
    assert chat.attributes["error.type"] == root.attributes["error.type"] == "wrong key"
    assert (chat.failed, root.failed, root.parent) == (True, True, "")
    assert [post.parent for post in collector.named("post web")] == [root.span_id], "the regret is in the trace"


async def test_a_tool_that_fails_is_an_error_by_the_conventions(
    traced_home: ProductFolder, collector: Collector
) -> None:
    traced_home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    async with product_here(traced_home) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send("use fail what=lamp")
        await thread.says("results")
    called = only(collector.named("tools/call fail"))
    assert (called.failed, called.attributes["error.type"], called.links) == (True, "tool_error", ())


async def test_a_turn_that_somebody_stops_is_a_whole_trace_too(
    traced_home: ProductFolder, collector: Collector, shop: Workshop
) -> None:
    traced_home.policy("version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n")
    async with product_here(traced_home) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send("hello")
        await thread.says("you said: hello")
        await thread.send("use make_slowly what=lamp")
        await shop.started.wait()
        await thread.stop()
        await thread.notice("stopped")
    assert collector.faults == []
    said, stopped, ended = collector.named("invoke_agent countersign")
    assert (said.attributes["countersign.outcome"], stopped.attributes["countersign.outcome"]) == ("done", "broken off")
    assert (stopped.parent, stopped.failed, ended.parent) == ("", False, stopped.span_id)
    called = only(collector.named("tools/call make_slowly"))
    assert called.parent == stopped.span_id
    assert stopped.began <= called.began < called.ended <= stopped.ended <= ended.ended
    known = {span.span_id for span in collector.spans}
    assert {span.parent for span in collector.spans} - {""} <= known


async def test_a_collector_that_takes_nothing_holds_up_neither_answers_nor_the_end(
    traced_home: ProductFolder, collector: Collector
) -> None:
    collector.held = asyncio.Event()
    async with product_process(traced_home) as product:
        async with visiting(product.url) as ana, ana.thread(within=COLD) as thread:
            for number in range(3):
                await thread.send(f"hello {number}")
                await thread.says(f"you said: hello {number}")
        async with asyncio.timeout(10):
            await product.terminate()
        assert "traces_lost" in product.log()
    collector.held.set()


async def test_a_queue_that_holds_nothing_stops_the_start_with_a_sentence(traced_home: ProductFolder) -> None:
    traced_home.variables["OTEL_BSP_MAX_QUEUE_SIZE"] = "-1"
    with pytest.raises(ConfigurationError, match=r"^OTEL_BSP_…: max_queue_size must be a positive integer\.$"):
        async with product_here(traced_home):
            pass


async def test_headers_that_are_none_stop_the_start_and_are_in_no_message(traced_home: ProductFolder) -> None:
    traced_home.variables["OTEL_EXPORTER_OTLP_HEADERS"] = "x-team=ops,Bearer of-the-collector"
    with pytest.raises(ConfigurationError, match=r"^OTEL_EXPORTER_OTLP_HEADERS: number 2 is no header\.") as found:
        async with product_here(traced_home):
            pass
    assert "of-the-collector" not in str(found.value)


async def test_a_collector_that_refuses_is_told_of_once(traced_home: ProductFolder, collector: Collector) -> None:
    collector.status = 403
    async with product_process(traced_home) as product:
        async with visiting(product.url) as ana, ana.thread(within=COLD) as thread:
            for number in range(3):
                await thread.send(f"hello {number}")
                await thread.says(f"you said: hello {number}")
                await asyncio.to_thread(_nothing)
        await product.terminate()
        assert product.log().count("traces_not_sent") == 1
        assert "of-the-collector" not in product.log()


def _nothing() -> None:
    """Lets the threads of the product have their turn."""


async def test_langfuse_gets_sessions_users_and_feedback_as_scores(
    workshop_home: ProductFolder, collector: Collector
) -> None:
    with_tokens(workshop_home)
    workshop_home.variables |= {
        "LANGFUSE_PUBLIC_KEY": "pk-lf-of-the-test",
        "LANGFUSE_SECRET_KEY": SECRET,
        "LANGFUSE_HOST": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-team=ops",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    async with product_here(workshop_home) as url, program(url) as ana:
        thread = (await ana.post("/api/v1/threads", {})).body["id"]
        await ana.post(f"/api/v1/threads/{thread}/messages?wait={WITHIN}", {"text": "use look what=lamp"})
        entries = (await ana.get(f"/api/v1/threads/{thread}")).body["entries"]
        post = [each["id"] for each in entries if each["kind"] == "post"][-1]
        for count, verdict in enumerate(("bad", "good"), 1):
            given = {"post_id": post, "verdict": verdict, "comment": f"see {LINK}"}
            assert (await ana.post("/api/v1/feedback", given)).status == 200
            await collector.until(lambda count=count: len(collector.scores) == count)
    assert collector.faults == []
    first, last = collector.scores
    assert first["id"] == last["id"], "the last opinion replaces the one before"
    assert (first["value"], last["value"], last["name"], last["dataType"]) == (0, 1, "feedback", "BOOLEAN")
    assert "comment" not in last
    assert {span.trace for span in collector.spans} == {last["traceId"]}
    sessions = {span.attributes["session.id"] for span in collector.spans}
    assert len(sessions) == 1
    for sent in collector.headers:
        assert sent["authorization"].startswith("Basic ")
        assert "x-team" not in sent, "what another collector wants is not for this one"
    assert SECRET not in b"".join(collector.bodies).decode("utf-8", "replace")
