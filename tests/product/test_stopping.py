"""An answer that ends in the middle, by Stop or by the model's service: what was read stays where it was read."""

from __future__ import annotations

from tests.fakes.openai_server import Brain, Reply, Request, fake_openai
from tests.support.brain import obedient
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting


def slow(request: Request) -> Reply:
    """Tells a story word by word; anything else as ever."""
    if request["messages"][-1]["content"] == "tell":
        return Reply(text="```\n" + " ".join(f"word{n}" for n in range(2_000)), pause=0.01)
    return obedient(request)


async def test_a_stopped_answer_stays_as_far_as_it_was_written_and_the_model_knows_it(
    workshop_home: ProductFolder,
) -> None:
    async with fake_openai(slow) as server:
        workshop_home.variables["OPENAI_BASE_URL"] = server.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("tell")
            await thread.until(lambda: "word3" in "".join(thread.live_texts), "the beginning of the answer")
            assert (await thread.stop()).status == 200
            await thread.notice("stopped")
            text = await thread.says("word1 word2 word3")
            assert text.endswith("\n```\n\n*(stopped here)*")
            assert "word1999" not in text
            await thread.send("and now?")
            await thread.until(lambda: len(thread.said) == 2, "the next answer")
        kept = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "assistant"]
    assert kept == [text]
    kinds = [e["content"]["kind"] for e in thread.entries.values() if e["kind"] == "post"]
    assert kinds == ["said", "notice", "said"]


def failing(reply: Reply) -> Brain:
    """Breaks off in the middle of a story; anything else as ever."""

    def brain(request: Request) -> Reply:
        return reply if request["messages"][-1]["content"] == "tell" else obedient(request)

    return brain


async def test_an_answer_that_the_service_breaks_off_stays_and_the_error_follows(workshop_home: ProductFolder) -> None:
    """Rule 10: the error reaches its user, below what they had read already."""
    async with fake_openai(failing(Reply(text="word1 word2 word3 word4", drop_after=4))) as server:
        workshop_home.variables["OPENAI_BASE_URL"] = server.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("tell")
            text = await thread.says("word1")
            assert text.endswith("\n\n*(broken off here)*")
            assert "word4" not in text
            await thread.notice("The language model", "(Reference ")
            await thread.send("and now?")
            await thread.until(lambda: len(thread.said) == 2, "the next answer")
        kept = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "assistant"]
    assert kept == [text]
    kinds = [e["content"]["kind"] for e in thread.entries.values() if e["kind"] == "post"]
    assert kinds == ["said", "notice", "said"]


async def test_of_an_answer_that_a_filter_ended_nothing_is_kept(workshop_home: ProductFolder) -> None:
    """Rule 10: the service says that it was not to be seen."""
    async with fake_openai(failing(Reply(text="word1 word2", finish_reason="content_filter"))) as server:
        workshop_home.variables["OPENAI_BASE_URL"] = server.base_url
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
            await thread.send("tell")
            await thread.notice("content filter", "(Reference ")
            assert thread.said == []
