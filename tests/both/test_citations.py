"""Answers with right, wrong and smuggled citations, on Slack and in Teams."""

from __future__ import annotations

from tests.both.conftest import Both
from tests.fakes.openai_server import Reply, Request, ToolUse, fake_openai
from tests.slack.product.talk import words as slack_words
from tests.support.shelf import shelf

POLICY = "version: 1\nrules:\n  - {name: all, match: {}, decide: allow}\n"
ANSWER = "Leave is 28 days [2], not 30 [9]. [[9]9] `x[9]`\n\n[2]: https://evil.example"


def believer(request: Request) -> Reply:
    """A model that searches, and then also cites what a passage tells it to."""
    is_found = request["messages"][-1]["role"] == "tool"
    return Reply(ANSWER) if is_found else Reply(calls=[ToolUse("documents__search_documents", {"query": "leave"})])


async def test_only_what_was_found_is_cited_and_no_name_pings_or_links(both: Both) -> None:
    async with shelf() as url, fake_openai(believer) as model:
        both.home.tool_servers(
            {"documents": {"url": url, "trustAnnotations": True, "sourceTools": ["search_documents"]}}
        )
        both.home.policy(POLICY)
        both.home.variables["OPENAI_BASE_URL"] = model.base_url
        async with both.running() as (in_slack, in_teams):
            await in_slack.mentions("how many days?")
            await in_slack.says("28 days [2], not 30.")
            message = next(m for m in both.slack.messages("C1") if "28 days" in slack_words(m))
            (line,) = [
                element["text"]
                for block in message["blocks"]
                if block["type"] == "context"
                for element in block["elements"]
                if "Sources" in element["text"]
            ]
            assert line == "Sources:\n[2] Hand⟨U+202E⟩book [1].pdf, page 3, Leave"
            assert "[9]" not in slack_words(message).replace("x[9]", "")
            await in_teams.mentions("how many days?")
            await in_teams.says("28 days [2], not 30.")
            post = next(m for m in both.teams.posts(in_teams.conversation) if "28 days" in m.get("text", ""))
            assert "\\[2\\] Hand⟨U+202E⟩book \\[1\\].pdf, page 3, Leave" in post["text"]
            (claim,) = post["entities"][0]["citation"]
            assert (claim["position"], claim["appearance"]["name"]) == (2, "Hand⟨U+202E⟩book [1].pdf")
            assert "[2]: " not in post["text"]
