"""What the page keeps of a thread: an event that comes twice, or late, changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browsing import Window

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def run(window: Window, body: str) -> Any:
    """Run a piece of script with the page's own `Entries` and `Drafts`; what it returns."""
    source = f"""async () => {{
      const {{ Entries, Drafts }} = await import("/static/entries.js");
      const post = (id, revision, at = 1) => ({{ id, revision, at }});
      const ids = (entries) => entries.list().map((entry) => `${{entry.id}}.${{entry.revision ?? ""}}`);
      {body}
    }}"""
    return await window.page.evaluate(source)


async def test_a_newer_revision_is_never_replaced_by_an_older_one(window: Window) -> None:
    script = """
      const entries = new Entries();
      const changed = [entries.put(post("a", 2)), entries.put(post("a", 1)), entries.put(post("a", 2))];
      entries.replaceAll([post("a", 1)]);
      return [changed, ids(entries)];
    """
    assert await run(window, script) == [[True, False, False], ["a.2"]]


async def test_the_same_snapshot_twice_is_the_same_thread(window: Window) -> None:
    script = """
      const entries = new Entries();
      const snapshot = [post("a", 1, 1), post("b", 1, 2)];
      entries.replaceAll(snapshot);
      entries.put(post("c", 1, 3));
      entries.replaceAll([...snapshot, post("c", 1, 3)]);
      return ids(entries);
    """
    assert await run(window, script) == ["a.1", "b.1", "c.1"]


async def test_what_is_gone_from_the_snapshot_is_gone_but_a_message_on_its_way_stays(window: Window) -> None:
    script = """
      const entries = new Entries();
      entries.put(post("a", 1));
      entries.put({ id: "mine", at: 0, sending: true });
      entries.replaceAll([post("b", 1)]);
      return ids(entries);
    """
    assert await run(window, script) == ["b.1", "mine."]


async def test_entries_are_shown_in_the_order_of_their_times(window: Window) -> None:
    script = """
      const entries = new Entries();
      for (const [id, at] of [["late", 3], ["early", 1], ["middle", 2]]) entries.put(post(id, 1, at));
      return ids(entries);
    """
    assert await run(window, script) == ["early.1", "middle.1", "late.1"]


async def test_a_part_of_an_answer_is_added_once(window: Window) -> None:
    script = """
      const drafts = new Drafts();
      drafts.add({ message_id: "m", n: 1, delta: "You " });
      drafts.replaceAll([{ message_id: "m", n: 2, text: "You have " }]);
      drafts.add({ message_id: "m", n: 2, delta: "have " });
      drafts.add({ message_id: "m", n: 3, delta: "two." });
      return drafts.list();
    """
    assert await run(window, script) == [{"id": "m", "text": "You have two."}]
