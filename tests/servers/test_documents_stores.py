"""What the stores of documents keep and find: the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servers.documents.server import open_store
from servers.documents.store import Asker, DocumentStore, KeptFor, StoreError
from servers.plain_server import CallRefused
from tests.fakes.embedding_server import vector_of
from tests.servers.test_documents_server import documents
from tests.support import postgres_cluster

ANA, BEN = "slack:T1:U1", "teams:t1:u2"
C1, C2 = "slack:T1:C1", "teams:t1:c2"
SPACE = "m1 (64)"
DAY = 24 * 3_600.0


@pytest.fixture(
    params=[pytest.param("sqlite", marks=pytest.mark.sqlite), pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store with nothing in it."""
    return str(tmp_path / "new" / "documents.db") if request.param == "sqlite" else empty_postgresql()


def empty_postgresql() -> str:
    address = postgres_cluster.emptied_database()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error; DROP SCHEMA IF EXISTS documents CASCADE")
    return address


@pytest.fixture
def store(address: str) -> Iterator[DocumentStore]:
    made = open_store(address)
    yield made
    close = getattr(made, "close", None)
    if close is not None:
        close()


def seen(store: DocumentStore, asker: Asker, query: str = "colours green") -> tuple[set[str], set[str], set[str]]:
    """What somebody finds by words, by meaning, and in the list."""
    by_words = {each.name for each in store.by_words(asker, query, 24)}
    by_vector = {each.name for each in store.by_vector(asker, SPACE, tuple(vector_of(query)), 24)}
    return by_words, by_vector, {each.name for each in store.listed(asker)[0]}


def fill(store: DocumentStore, space: str = SPACE) -> int:
    """Make the vectors that are missing; how many."""
    missing = store.without_vector(space, 1_000)
    store.keep_vectors(space, [(number, text, tuple(vector_of(text))) for number, text in missing])
    return len(missing)


def test_what_is_kept_for_whom_is_found_by_them_and_nobody_else(store: DocumentStore) -> None:
    everywhere = {(person, channel): Asker(person, channel) for person in (ANA, BEN) for channel in ("", C1, C2)}
    added: list[tuple[str, Asker, KeptFor]] = [
        ("of ana", everywhere[ANA, ""], "me"),
        ("of ben", everywhere[BEN, C2], "me"),
        ("of C1", everywhere[ANA, C1], "channel"),
        ("of C2", everywhere[BEN, C2], "channel"),
        ("of all", everywhere[ANA, ""], "everybody"),
    ]
    ids = {
        name: UUID(store.add(asker, name, f"The colour {name} is green.", kept_for).id)
        for name, asker, kept_for in added
    }
    assert fill(store) == len(added)
    own = {"": {ANA: "of ana", BEN: "of ben"}, C1: dict.fromkeys((ANA, BEN), "of C1")}
    own[C2] = dict.fromkeys((ANA, BEN), "of C2")
    for (person, channel), asker in everywhere.items():
        wanted = {own[channel][person], "of all"}
        assert seen(store, asker) == (wanted, wanted, wanted)
        for name in set(ids) - wanted:
            for look in (store.get, store.delete):
                with pytest.raises(CallRefused, match="no such document"):
                    look(asker, ids[name])
    with pytest.raises(CallRefused, match="Only whoever added it"):
        store.delete(everywhere[BEN, ""], ids["of all"])
    store.delete(everywhere[ANA, C1], ids["of all"])
    store.delete(everywhere[BEN, C1], ids["of C1"])
    assert seen(store, everywhere[BEN, C1]) == (set(), set(), set())


def test_what_others_keep_pushes_nothing_out_of_the_nearest(store: DocumentStore) -> None:
    for number in range(30):
        store.add(Asker(BEN, ""), f"near {number}", "annual leave is long", "me")
    store.add(Asker(ANA, ""), "far", "Something about vehicles.", "me")
    fill(store)
    assert [each.name for each in store.by_vector(Asker(ANA, ""), SPACE, tuple(vector_of("leave")), 3)] == ["far"]


def test_vectors_are_in_one_space_and_of_what_is_there(store: DocumentStore) -> None:
    ana = Asker(ANA, "")
    kept = store.add(ana, "first", "# A\n\n## B\n\nannual leave\n\n<!-- page 2 -->\n\nvehicles", "me")
    [heading, *missing] = store.without_vector(SPACE, 10)
    assert [text.splitlines()[0] for _number, text in missing] == ["A › B", "A › B"], "headings are meant, too"
    (number, text), (second, _text) = missing
    assert store.without_vector(SPACE, 10, [heading[0], number, second]) == []
    store.keep_vectors(SPACE, [(number, "another text", (1.0, 0.0))])
    assert store.without_vector(SPACE, 10) == [heading, *missing], "a passage that is not there any more gets none"
    store.keep_vectors(SPACE, [(number, text, (1.0, 0.0))])
    assert len(store.by_vector(ana, SPACE, (0.5, 0.5), 5)) == 1
    assert store.by_vector(ana, "m2 (2)", (0.5, 0.5), 5) == []
    assert store.by_vector(ana, SPACE, (0.5, 0.5, 0.5), 5) == [], "no error, whatever a service gives"
    assert store.without_vector("m2 (3)", 10) == [heading, *missing]
    store.keep_vectors("m2 (3)", [(number, text, (0.0, 1.0, 0.0))])
    store.keep_vectors(SPACE, [(number, text, (0.0, 1.0))])
    assert len(store.by_vector(ana, SPACE, (0.5, 0.5), 5)) == 1, "replicas with two models do not disturb each other"
    store.delete(ana, UUID(kept.id))
    assert store.without_vector("m3", 10) == []
    store.keep_vectors(SPACE, [(number, text, (0.0, 1.0))])


def test_vectors_that_nobody_uses_any_more_are_dropped(store: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sqlite_store", "postgres_store"):
        monkeypatch.setattr(f"servers.documents.{module}.MOST_DROPPED", 2)
    ana = Asker(ANA, "")
    for number in range(5):
        store.add(ana, f"d{number}", "annual leave", "me")
    store.use_space("old", 0.0)
    fill(store, "old")
    store.use_space(SPACE, 0.9 * DAY)
    fill(store)
    assert store.with_vector(ana, "old") == (5, 5), "for a day another replica may use them"
    store.use_space("old", 0.95 * DAY)
    store.use_space("old", 1.94 * DAY)
    assert (store.with_vector(ana, "old"), store.with_vector(ana, SPACE)) == ((5, 5), (0, 5))


@pytest.mark.sqlite
def test_nothing_of_a_deleted_document_is_left_on_disk(tmp_path: Path) -> None:
    ana, store = Asker(ANA, ""), open_store(str(tmp_path / "documents.db"))
    store.add(ana, "kept", "something else", "me")
    deleted = store.add(ana, "confidentialname", "## Confidentialheading\n\nconfidentialword " * 200, "me")
    store.delete(ana, UUID(deleted.id))
    on_disk = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"something else" in on_disk
    assert b"onfidential" not in on_disk


def test_what_others_keep_is_not_counted(store: DocumentStore) -> None:
    for asker in (Asker(ANA, ""), Asker(BEN, ""), Asker(BEN, "")):
        store.add(asker, "d", "annual leave", "me")
    store.add(Asker(BEN, C1), "of C1", "annual leave", "channel")
    [(first, text), *_] = store.without_vector(SPACE, 10)
    store.keep_vectors(SPACE, [(first, text, (1.0, 0.0))])
    askers = (Asker(ANA, ""), Asker(BEN, ""), Asker(ANA, C1), Asker(ANA, C2))
    assert [store.with_vector(asker, SPACE) for asker in askers] == [(1, 1), (0, 2), (0, 1), (0, 0)]


def test_what_others_keep_does_not_change_the_order(store: DocumentStore) -> None:
    """Else the order would say which words are in what they keep: the rarer word counts more."""
    ana, ben = Asker(ANA, ""), Asker(BEN, "")
    for number in range(10):
        store.add(ana, f"other {number}", "nothing of it", "me")
        store.add(ben, "other", "nothing of it", "me")
    for word in ("falcon", "zebra"):
        store.add(ana, word, f"one {word} here", "me")
    assert [each.name for each in store.by_words(ana, "zebra falcon", 8)] == ["falcon", "zebra"]
    for _ in range(3):
        store.add(ben, "secret", "one falcon here", "me")
    assert [each.name for each in store.by_words(ana, "zebra falcon", 8)] == ["falcon", "zebra"]
    store.add(ana, "again", "one falcon here, and there is much more to it", "me")
    assert next(each.name for each in store.by_words(ana, "zebra falcon", 8)) == "zebra", "it is rarer now"


@pytest.mark.postgres
def test_of_several_who_share_a_database_one_makes_vectors() -> None:
    address = empty_postgresql()
    one, other = open_store(address), open_store(address)
    with one.filling(SPACE) as first, other.filling(SPACE) as second, other.filling("m2 (3)") as third:
        assert (first, second, third) == (True, False, True)
    with other.filling(SPACE) as again:
        assert again
    for each in (one, other):
        each.close()  # type: ignore[attr-defined]  # of PostgreSQL


def test_it_is_read_in_order_and_by_its_pages(store: DocumentStore) -> None:
    ana = Asker(ANA, "")
    pages = "\n\n".join(f"<!-- page {number} -->\n\n# Part {number}\n\nWords of {number}." for number in range(1, 6))
    document_id = UUID(store.add(ana, "paged", pages, "me").id)
    passages, count = store.read(ana, document_id, store.place_of_page(ana, document_id, 3), 2)
    assert ([each.page for each in passages], passages[0].section, count) == ([3, 4], "Part 3", 5)
    with pytest.raises(CallRefused, match="no page 9"):
        store.place_of_page(ana, document_id, 9)


@pytest.fixture
def words(store: DocumentStore) -> DocumentStore:
    store.add(Asker(ANA, ""), "words", "Grüße aus Köln. Die Urlaubsregelung. Hotels, meetings, invoices.", "me")
    return store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_no_query_is_an_error(words: DocumentStore, query: str) -> None:
    words.by_words(Asker(ANA, ""), query, 8)


@pytest.mark.parametrize(
    "query",
    ["GRÜßE", "koln", "Koeln Köln", "urlaub", "Urlaubsregelungen", "meeting", "hotel", "invoice?", '"hotel" AND NOT'],
)
def test_words_are_found_in_other_forms(words: DocumentStore, query: str) -> None:
    assert words.by_words(Asker(ANA, ""), query, 8)


def test_text_that_no_database_keeps_is_kept_as_far_as_it_goes(store: DocumentStore) -> None:
    kept = store.add(Asker(ANA, ""), "odd\0name", "before\0after " + "x" * 5_000, "me")
    assert store.get(Asker(ANA, ""), UUID(kept.id)) == kept
    assert store.by_words(Asker(ANA, ""), "after", 8)


def test_nobody_uses_up_the_space_of_others(store: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.documents.store.MOST_DOCUMENTS", 1)
    for asker in (Asker(ANA, ""), Asker(BEN, ""), Asker(ANA, C1), Asker(ANA, C2)):
        kept_for: KeptFor = "channel" if asker.channel else "me"
        store.add(asker, "first", "The first.", kept_for)
        with pytest.raises(CallRefused, match="documents already"):
            store.add(asker, "second", "The second.", kept_for)
    store.add(Asker(ANA, ""), "of all", "Another.", "everybody")
    with pytest.raises(CallRefused, match="documents already"):
        store.add(Asker(BEN, ""), "of all", "Another.", "everybody")


def test_much_text_uses_up_the_space_of_few_documents(store: DocumentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.documents.store.MOST_CHARACTERS", 10)
    store.add(Asker(ANA, ""), "first", "Six ch", "me")
    with pytest.raises(CallRefused, match="no space"):
        store.add(Asker(ANA, ""), "second", "Five!", "me")
    store.add(Asker(ANA, ""), "third", "Four", "me")
    store.add(Asker(BEN, ""), "first", "Ten chars!", "me")


def test_many_who_write_at_once_are_all_served(address: str) -> None:
    """As replicas of the server do that start at the same moment, and go on at once."""
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: open_store(address), range(4)))
        for number, kept in enumerate(
            threads.map(lambda n: stores[n % 4].add(Asker(ANA, ""), f"d{n}", f"text {n}", "me"), range(20))
        ):
            assert kept.name == f"d{number}"
    assert len(stores[0].listed(Asker(ANA, ""))[0]) == 20
    for each in stores:
        close = getattr(each, "close", None)
        if close is not None:
            close()


def test_all_who_begin_at_the_same_moment_can_begin(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        for number in range(20):
            path = str(tmp_path / f"{number}.db")
            assert len(list(threads.map(open_store, [path] * 6))) == 6


@pytest.mark.postgres
def test_a_database_that_goes_away_is_said_and_comes_back() -> None:
    address = empty_postgresql()
    store = open_store(address)
    store.add(Asker(ANA, ""), "kept", "some words", "me")
    postgres_cluster.break_connections(address)
    assert store.by_words(Asker(ANA, ""), "words", 8), "on a new connection"
    store.close()  # type: ignore[attr-defined]  # of PostgreSQL
    with pytest.raises(StoreError):
        store.by_words(Asker(ANA, ""), "words", 8)


def test_an_address_that_cannot_be_used_is_said_without_its_password() -> None:
    with pytest.raises(StoreError) as raised:
        open_store("postgresql://somebody:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


@pytest.mark.postgres
async def test_two_servers_on_one_database_find_what_the_other_keeps(tmp_path: Path) -> None:
    address = await asyncio.to_thread(empty_postgresql)
    async with documents(tmp_path, DOCUMENTS_DB=address) as one, documents(tmp_path, DOCUMENTS_DB=address) as other:
        await one.call("add_document", keep_for="everybody", text="The colour is green.", name="of all")
        assert await other.finds("colours") == {"of all"}
